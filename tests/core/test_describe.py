"""What tells one run from another."""

from functools import partial

import helpers
import numpy as np
import pytest

from swiftem import methods, models, schedules
from swiftem.core.describe import describe, digest


def make(offset):
    return lambda k: 1 / (k + offset)


def keyword(default):
    def step(k, *, shrink=default):
        return shrink / k

    return step


def ordered(*values):
    """Return a function with a set literal, its elements added in this order."""

    def chosen(k):
        return k in {8, 0}

    constants = [
        frozenset(values) if isinstance(constant, frozenset) else constant
        for constant in chosen.__code__.co_consts
    ]
    chosen.__code__ = chosen.__code__.replace(co_consts=tuple(constants))
    return chosen


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
    "a keyword's default": (keyword(0.1), keyword(0.2)),
    "a name": (lambda k: np.sin(k), lambda k: np.cos(k)),
    "a set": (lambda k: k in {1, 2}, lambda k: k in {1, 3}),
    "a set that is enclosed": (make({1, 2}), make({1, 3})),
    "the type of a constant": (lambda k: k + 1, lambda k: k + True),
    "a part of a function": (partial(keyword(0.1), shrink=0.5), partial(keyword(0.1), shrink=0.6)),
    "whose method it is": (schedules.power(0.9, 0.1).__call__, schedules.power(0.9, 0.2).__call__),
    "an array": (np.arange(3), np.arange(3.0)),
}


def test_the_order_of_a_set_does_not_matter():
    """It is another in each process, where a set holds texts."""
    assert str(frozenset([0, 8])) != str(frozenset([8, 0]))
    assert describe(ordered(0, 8)) == describe(ordered(8, 0))
    assert describe(ordered(0, 8)) != describe(ordered(0, 7))
    assert describe({8, 0}) == describe({0, 8})


def test_numbers_of_numpy_are_as_good_as_pythons():
    for of_numpy, plain in (
        (np.int64(3), 3), (np.float64(0.1), 0.1), (np.bool_(True), True), (np.str_("em"), "em"),
    ):  # fmt: skip
        assert describe(of_numpy) == describe(plain)
        assert type(describe(of_numpy)) is type(describe(plain))
    assert describe(np.float32(0.1)) != describe(0.1)


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_the_same_is_described_alike(make):
    assert describe(make()) == describe(make())


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER)
def test_other_things_are_described_differently(pair):
    assert describe(pair[0]) != describe(pair[1])


def test_types_of_the_library_have_no_module_which_may_move():
    assert describe(methods.EM())["is"] == "EM"
    assert describe(schedules.power(0.9, 0.1))["is"] == "power"
    assert describe(make(1))["is"] == f"{__name__}.make.<locals>.<lambda>"


STEPS = {
    "a name": (lambda k: 0.5 + 0.1 * np.sin(k), lambda k: 0.5 + 0.1 * np.cos(k)),
    "a number": (lambda k: 0.5 / k, lambda k: 0.6 / k),
    "a keyword's default": (keyword(0.5), keyword(0.6)),
}


@helpers.parametrize_cases(STEPS)
def test_a_run_with_another_function_is_refused(tmp_path, case):
    problem, (one, other) = helpers.mixture(20), case
    kept = {"n_iter": 3, "seed": 0, "kernels": "reference", "checkpoint": tmp_path}
    first = problem.run(methods.OnlineEM(step_size=one), **kept)
    with pytest.raises(ValueError, match="belongs to another run: its method is"):
        problem.run(methods.OnlineEM(step_size=other), resume=True, **kept)
    helpers.assert_same_result(problem.run(methods.OnlineEM(step_size=one), resume=True, **kept), first)


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
