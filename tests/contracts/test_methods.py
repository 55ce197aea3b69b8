"""Every registered method passes the contract tests, and stays at a fixed point."""

import inspect
import pkgutil
from functools import cache
from importlib import import_module

import numpy as np
import pytest

import swiftem
from swiftem import methods
from swiftem.testing import check_method
from swiftem.testing.check_method import small_problems

VARIANTS = [
    *(method() for method in methods.METHODS.values()),
    methods.OnlineEM(step_size=0.2, batch_size=7),
    methods.OnlineEM(step_size=0.2, batch_size=7, order="shuffled"),
    methods.Averaged(methods.OnlineEM(step_size=0.2, order="weighted")),
    methods.Averaged(methods.OnlineEM(step_size=0.2), 20),
    methods.IncrementalEM(batch_size=200),
    methods.VarianceReducedEM(step_size=0.1, batch_size=7, epoch_length=5),
    methods.FastIncrementalEM(step_size=0.1, batch_size=7),
    methods.FastIncrementalEM(memory_order="shuffled"),
    methods.FastIncrementalEM(order="weighted"),
    methods.OptFIEM(step_size=0.1, batch_size=7, memory_order="shuffled"),
    methods.OptFIEM(correction=0.5),
    methods.SpiderEM(step_size=0.1, batch_size=7, epoch_length=5, renewals="geometric", renewal_seed=3),
]


@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_contract(method):
    check_method(method)


def test_every_method_of_the_package_is_registered():
    found = set()
    for module in pkgutil.iter_modules(methods.__path__):
        for _, kind in inspect.getmembers(import_module(f"swiftem.methods.{module.name}"), inspect.isclass):
            if issubclass(kind, methods.Method) and kind is not methods.Method:
                found.add(kind)
    # Wrappers have no name of their own.
    assert found == {*methods.METHODS.values(), methods.Accelerated, methods.Averaged}


@cache
def fixed_point(problem_name):
    (problem,) = (problem for problem in small_problems() if problem.name == problem_name)
    theta = problem.theta0
    for _ in range(20):
        em = swiftem.run(problem.model, problem.data, methods.EM(), theta0=theta, n_iter=1000)
        again = swiftem.run(problem.model, problem.data, methods.EM(), theta0=em.theta, n_iter=1)
        if np.abs(again.s - em.s).max() < 1e-12:
            return em
        theta = em.theta
    raise AssertionError("EM does not converge")


@pytest.mark.parametrize("name", ["iem", "sem-vr", "fiem", "opt-fiem", "spider"])
@pytest.mark.parametrize("problem", small_problems(), ids=lambda problem: problem.name)
def test_fixed_point_of_em_is_one_whatever_is_drawn(name, problem):
    em = fixed_point(problem.name)
    method = methods.METHODS[name]()
    result = swiftem.run(problem.model, problem.data, method, theta0=em.theta, n_iter=200, seed=0)
    np.testing.assert_allclose(result.s, em.s, atol=1e-11)
