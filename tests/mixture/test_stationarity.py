"""The certificate of convergence."""

import numpy as np
import pytest
from mixture_data import KINDS, METHODS, blobs, fitted, given_start

import swiftem
from swiftem.core.compute import Compute
from swiftem.core.problem import Problem, certify
from swiftem.data import ArraySource
from swiftem.models import GaussianMixtureModel

X, _ = blobs(400, 3, 3, seed=7)


def fit(data=X, weight=None, **parameters):
    return fitted(swiftem.GaussianMixture(3, random_state=0, **parameters), data, weight)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_at_a_fixed_point(kind):
    assert fit(method="em", covariance_type=kind, tol=0.0, max_iter=500).stationarity_ < 1e-9


@pytest.mark.parametrize("method", ["iem", "sem-vr", "fiem"])
def test_variance_reduced_methods_come_to_rest(method):
    early, late = (fit(method=method, tol=0.0, max_iter=passes).stationarity_ for passes in (4, 150))
    assert late < 1e-5 < early


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_has_no_unit(method, kind):
    scale = 10.0 if kind == "spherical" else np.array([1e-3, 1.0, 1e4])
    start = given_start(X, 3, kind)
    moved = dict(start, means_init=start["means_init"] * scale + 5.0)
    precisions = np.asarray(start["precisions_init"])
    if kind in ("full", "tied"):
        moved["precisions_init"] = precisions / np.outer(np.ones(3) * scale, np.ones(3) * scale)
    else:
        moved["precisions_init"] = precisions / scale**2
    parameters = dict(method=method, covariance_type=kind, max_iter=6, reg_covar=0.0, tol=0.0)
    plain, other = fit(X, **parameters, **start), fit(X * scale + 5.0, **parameters, **moved)
    assert 0.0 < plain.stationarity_ < 1.0
    assert other.stationarity_ == pytest.approx(plain.stationarity_, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_against_the_definition(kind):
    """In whitened columns the scale is one, and it is the plain quotient of norms."""
    white = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind == "spherical":
        white /= np.sqrt((white**2).mean())
    problem = Problem(GaussianMixtureModel(3, covariance=kind), ArraySource(white))
    e_step = Compute(problem.bound, problem.source)
    s = e_step.full(problem.bound.initial_theta(np.random.default_rng(0)))
    theta = problem.bound.m_step(s)
    objective, found = certify(problem, s, theta)
    after = e_step.full(theta)
    assert found == pytest.approx(np.linalg.norm(s - after) / np.linalg.norm(s), rel=1e-6)
    assert objective == pytest.approx(e_step.objective(theta), rel=1e-9)


def test_none_without_a_pass():
    assert np.isnan(fit(max_iter=0).stationarity_)


def test_a_constant_column_is_no_trouble():
    data = np.column_stack([X, np.full(len(X), 3.0)])
    for kind in KINDS:
        assert np.isfinite(fit(data, covariance_type=kind, max_iter=5).stationarity_)
