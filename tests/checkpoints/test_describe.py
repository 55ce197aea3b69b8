"""What tells one run from another."""

import numpy as np
import pytest

from swiftem import methods, models, schedules
from swiftem.checkpoints.describe import describe, digest


def make(offset):
    return lambda k: 1 / (k + offset)


SAME = {
    "methods": lambda: methods.OnlineEM(step_size=schedules.inverse(3, 10), batch_size=4),
    "models": lambda: models.GaussianMixtureModel(3, covariance="full", reg_covar=1e-3),
    "arrays": lambda: {"a": np.arange(3.0), "b": (1, 2.5, None)},
    "functions": lambda: methods.OnlineEM(step_size=make(10)),
    "function models": lambda: models.FunctionModel(np.sin, make(1), make(2), make(3)),
}
OTHER = {
    "a hyper-parameter": (methods.OnlineEM(batch_size=1), methods.OnlineEM(batch_size=2)),
    "a last bit": (methods.OnlineEM(step_size=0.3), methods.OnlineEM(step_size=0.1 + 0.2)),
    "a method": (methods.IncrementalEM(), methods.FastIncrementalEM()),
    "what a function encloses": (make(10), make(11)),
    "a function's code": (lambda k: 1 / k, lambda k: 1 / (k + 1)),
    "a default": (lambda k, a=1: a, lambda k, a=2: a),
    "an inner function": (lambda k: (lambda: 1)(), lambda k: (lambda: 2)()),
    "an array": (np.arange(3), np.arange(3.0)),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_the_same_is_described_alike(make):
    assert describe(make()) == describe(make())


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER)
def test_other_things_are_described_differently(pair):
    assert describe(pair[0]) != describe(pair[1])


def test_a_compiled_function_is_told_by_its_code():
    import numba

    one, other = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)
    assert describe(one) == describe(numba.njit(lambda x: x + 1)) | {"is": describe(one)["is"]}
    assert describe(one)["code"] != describe(other)["code"]


def test_a_digest_tells_shapes_and_types_apart():
    values = [
        np.zeros(4), np.zeros((2, 2)), np.zeros(8, dtype=np.float32), (np.zeros(2), np.zeros(2)), None, 0,
        0.0, (None,), np.ones(4),
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)
