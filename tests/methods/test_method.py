import dataclasses

import helpers
import pytest
from helpers import NAMES

from swiftem import methods

every_method = pytest.mark.parametrize("name", NAMES)


def test_registry():
    assert all(kind.name == name for name, kind in methods.METHODS.items())


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
