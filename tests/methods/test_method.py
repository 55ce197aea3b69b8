import dataclasses
import inspect

import helpers
import pytest
from helpers import NAMES

from swiftem import methods

every_method = pytest.mark.parametrize("name", NAMES)


def test_registry():
    assert all(kind.name == name for name, kind in methods.METHODS.items())


@pytest.mark.parametrize(
    ("name", "streams", "access", "remembers"),
    [
        ("em", 0, "sequential", False),
        ("sem", 1, "sequential", False),
        ("iem", 1, "random", True),
        ("sem-vr", 1, "sequential", False),
        ("fiem", 2, "random", True),
    ],
)
def test_what_methods_declare(name, streams, access, remembers):
    method = helpers.make_method(name)
    assert (method.index_streams, method.access, method.remembers) == (streams, access, remembers)
    assert method.orders == ("iid",) * streams


@every_method
def test_hyper_parameters_are_fixed(name):
    method = helpers.make_method(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.batch_size = 3
    assert method == helpers.make_method(name)
    assert hash(method) == hash(helpers.make_method(name))


@every_method
@pytest.mark.parametrize(("n", "b", "epoch"), [(10, 1, 10), (10, 4, 3), (10, 20, 1), (1, 1, 1)])
def test_epoch(name, n, b, epoch):
    assert helpers.make_method(name, batch_size=b).epoch(n) == (1 if name == "em" else epoch)


@pytest.mark.parametrize(
    ("name", "label"), [("sem", "(oem)"), ("iem", "(iem)"), ("sem-vr", "(svrgem)"), ("fiem", "(sagaem)")]
)
def test_the_equation_s_label_stands_in_the_code(name, label):
    assert label in inspect.getsource(methods.METHODS[name].proxy)
