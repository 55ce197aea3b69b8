"""When the fused lane of a user's compiled functions is taken, and what happens where it cannot go on."""

import logging
from dataclasses import replace

import helpers
import numba
import numpy as np
import pytest
from compiled_models import START, compare, in_domain, own, some, tuple_e_step, tuple_m_step
from helpers import COMPILED

from swiftem import methods, models
from swiftem.data import ArraySource

every_method = pytest.mark.parametrize("name", COMPILED)


@every_method
def test_a_class_with_compiled_functions(name):
    class Model(models.ExponentialFamilyModel):
        expected_statistics = staticmethod(tuple_e_step)
        m_step = staticmethod(tuple_m_step)

        def initial_theta(self, y, rng):
            return START

        def penalty(self, theta):
            return 0.0

    compare(replace(own(), model=Model()), some(name))

    class Guarded(Model):
        def in_domain(self, s):
            return bool(in_domain(s))

    compare(replace(own(), model=Guarded()), some(name), lane="Algorithm1")


STARTS = {
    "whole numbers": (np.array([1, 1]), np.array([1, 2])),
    "float32": (START[0].astype(np.float32), START[1].astype(np.float32)),
    "read only": tuple(np.broadcast_to(np.array([0.5]), 2) for _ in range(2)),
}


@helpers.parametrize_cases(STARTS)
def test_starts_of_another_type(case):
    compare(own(theta0=case), some("sem-vr"))


@every_method
def test_a_start_that_does_not_fit(name):
    """Until the M-step has given parameters of its own type, iterations are done one by one."""
    problem = own(theta0=np.array(START))
    compare(problem, some(name), n_iter=80)


def test_memory_of_another_shape_is_not_read():
    problem, method = own(), some("fiem")
    first = problem.run(method)
    small = first.state.method._replace(memory=first.state.method.memory[:, :1])
    start = {"theta0": first.theta, "s0": first.s, "state": first.state._replace(method=small), "seed": None}
    with pytest.raises(ValueError, match="shape"):
        problem.run(method, **start, draws=(np.arange(30), np.arange(30)), n_iter=30)


@pytest.mark.parametrize("name", ["iem", "fiem"])
@pytest.mark.parametrize(
    "dtypes", [("float64", "float32"), ("float32", "float64")], ids=["halved", "doubled"]
)
def test_memory_of_another_dtype_is_not_taken_for_ones_own(name, dtypes):
    """A run may go on with another ``memory_dtype``: what is remembered is then read as what it is."""
    problem = own()
    before, after = (some(name, memory_dtype=dtype) for dtype in dtypes)
    first = problem.run(before)
    start = {"theta0": first.theta, "s0": first.s, "state": first.state, "seed": None}
    compare(problem, after, **start)


@numba.njit
def not_compilable(y, theta):
    return y.no_such_thing, y


def fallbacks():
    plain = own().model
    yield "E-step in Python", replace(plain, expected_statistics=tuple_e_step.py_func), methods.OnlineEM()
    yield "M-step in Python", replace(plain, m_step=tuple_m_step.py_func), methods.OnlineEM()
    yield "domain in Python", replace(plain, in_domain=lambda s: True), methods.OnlineEM()
    yield "em", plain, methods.EM()
    yield "a method of one's own", plain, type("Mine", (methods.OnlineEM,), {"update": None})()


@pytest.mark.parametrize(("model", "method"), [pytest.param(*rest, id=name) for name, *rest in fallbacks()])
def test_fallbacks(model, method):
    compare(replace(own(), model=model), method, lane="Algorithm1", n_iter=20)


def test_another_source_falls_back():
    class Mine(ArraySource):
        pass

    problem = own()
    compare(replace(problem, y=Mine(problem.y)), methods.OnlineEM(), lane="Algorithm1")


def test_what_numba_cannot_compile_falls_back(caplog):
    """One line says why, once; the error that the user sees is the reference's."""
    caplog.set_level(logging.DEBUG, "swiftem")
    problem = replace(own(), model=replace(own().model, expected_statistics=not_compilable))
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^expected_statistics must compile for parameters that are"):
            problem.run(methods.OnlineEM())
    assert [r.message.startswith("iterations are not compiled") for r in caplog.records].count(True) == 1


@numba.njit
def shrinking(y, theta):
    q = 2 if len(y) < 5 else 1
    return np.ones((len(y), q)), y


@numba.njit
def raising(y, theta):
    if len(y) < 5:
        raise OverflowError("of the user's own")
    return y.reshape(-1, 1), y


@every_method
def test_errors_inside_compiled_code(name):
    for e_step, error in ((shrinking, ValueError), (raising, OverflowError)):
        problem = own("float")
        problem.model = replace(problem.model, expected_statistics=e_step)
        with pytest.raises(error, match=r"expected_statistics must|of the user's own"):
            problem.run(some(name))
