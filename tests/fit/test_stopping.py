"""``converged_`` tells the truth: what em would still gain is below ten times ``tol``."""

import warnings

import numpy as np
import pytest
from mixture_data import METHODS, blobs, given_start
from sklearn.exceptions import ConvergenceWarning

import swiftem
import swiftem.mixture.starts.em_of_candidates as module
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.fit.stopping import MULTIPLE, Leaps, Remaining
from swiftem.methods import Squarem
from swiftem.mixture.starts.em_of_candidates import em_of_candidates
from swiftem.models import GaussianMixtureModel

X, _ = blobs(3000, 2, 4, apart=1.5, seed=5)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def still(mixture, data):
    """Return what em gains if it goes on for long."""
    more = swiftem.GaussianMixture.from_parameters(
        mixture.weights_, mixture.means_, mixture.covariances_, method="em", tol=1e-12, max_iter=1500,
        covariance_type=mixture.covariance_type,
        warm_start=True,
    ).fit(data)  # fmt: skip
    return more.score(data) - mixture.score(data)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("start", ["race", "given"])
def test_em_gains_little_after_a_fit_that_converged(method, tol, start):
    given = {} if start == "race" else given_start(X, 4, "full", seed=1)
    mixture = swiftem.GaussianMixture(4, method=method, tol=tol, max_iter=3000, random_state=0, **given).fit(
        X
    )
    assert mixture.converged_
    assert still(mixture, X) <= 10 * tol


@pytest.mark.parametrize("method", ["em", "sem-vr", "fiem"])
def test_a_plateau_is_not_the_end(method):
    """Two components that are nearly the same, halfway between two clusters: the gains are tiny at first."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-2, 1, size=(2000, 1)), rng.normal(2, 1, size=(2000, 1))])
    variance = rows.var()
    start = {
        "weights_init": [0.5, 0.5], "means_init": rows.mean() + np.array([[1e-3], [-1e-3]]),
        "precisions_init": np.full((2, 1, 1), 1 / variance),
    }  # fmt: skip
    mixture = swiftem.GaussianMixture(2, method=method, tol=1e-4, max_iter=2000, random_state=0, **start)
    mixture.fit(rows)
    if mixture.converged_:
        assert still(mixture, rows) <= 1e-3


@pytest.mark.parametrize("method", ["em", "iem", "fiem"])
def test_few_rows_have_no_plateau_on_which_a_fit_ends(method):
    """Without looking ahead, em gained up to 32 times ``tol`` from where some of these fits had ended."""
    data = blobs(400, 3, 8, apart=1.0, seed=2)[0]
    gains = []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture = swiftem.GaussianMixture(
                10, covariance_type="diag", method=method, random_state=seed
            ).fit(data)
        assert mixture.n_iter_ <= mixture.max_iter
        gains.append(still(mixture, data) if mixture.converged_ else 0.0)
    assert max(gains) <= 1.2e-2


def test_a_plateau_without_passes_left_is_no_convergence():
    data = blobs(400, 3, 8, apart=1.0, seed=2)[0]
    ended = []
    for passes in (*range(4, 100, 8), 400):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture = swiftem.GaussianMixture(
                10, covariance_type="diag", method="em", random_state=2, max_iter=passes
            ).fit(data)
        assert mixture.n_iter_ <= passes
        ended.append((mixture.converged_, still(mixture, data)))
    assert not any(converged and gain > 1e-2 for converged, gain in ended)
    assert any(converged for converged, _ in ended)


def test_too_few_passes_are_no_convergence():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        mixture = swiftem.GaussianMixture(
            4, method="em", tol=1e-5, max_iter=4, random_state=0, init_params="random_from_data"
        ).fit(X)
    assert not mixture.converged_


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.97, 0.995])
def test_linear_convergence_ends_where_the_rest_is_small(rate):
    tol, remaining = 1e-3, Remaining(1e-3, 10**9)
    for k in range(10_000):
        if remaining.is_small(-(rate**k)):
            break
    left = rate**k
    assert left <= (MULTIPLE + 1e-9) * tol
    assert left > 0.01 * tol  # and not long after


def test_gains_that_grow_are_no_convergence():
    remaining = Remaining(1e-3, 10**9)
    assert not any(remaining.is_small(1e-4 * 1.1**k) for k in range(24))


def test_a_rate_that_rises_is_expected_to_rise_again():
    """Gains 1, 0.9, 0.9·0.92: with the rate 0.92 9.5 were left, with 0.94 it is 13."""
    bounds = np.cumsum([0.0, 1.0, 0.9, 0.9 * 0.92])
    for left, expected in ((11.2, False), (13.2, True)):
        remaining = Remaining(left / MULTIPLE, 10**9)
        assert [remaining.is_small(bound) for bound in bounds] == [False, False, False, expected]


def test_a_gain_by_a_collapse_is_none(monkeypatch):
    """Where em leads to a component on repeated rows, a fit that looks ahead does not follow."""
    problem = Problem(GaussianMixtureModel(4, covariance="full", reg_covar=1e-6), ArraySource(X))
    theta = problem.bound.initial_theta(np.random.default_rng(2))

    def ahead():
        return module.beyond_plateau(problem, theta, 1e-3, 1e-3, lambda: None)

    found, passes = ahead()
    assert problem.compute.objective(found) < problem.compute.objective(theta) - 1e-3
    assert 0 < passes <= module.AHEAD
    monkeypatch.setattr(module, "find_spurious", lambda on, at: [] if at is theta else [2])
    assert ahead() is None
    monkeypatch.setattr(module, "find_spurious", lambda on, at: [2])  # it was there before
    assert ahead() is not None


def test_a_fixed_point_needs_two_passes():
    remaining = Remaining(1e-3, 100)
    assert [remaining.is_small(-2.0) for _ in range(2)] == [False, True]


def test_no_tolerance_is_never_reached():
    remaining = Remaining(0.0, 10)
    assert not any(remaining.is_small(-2.0) for _ in range(9))


def test_larger_steps_come_to_the_same_place_sooner():
    model = GaussianMixtureModel(4, covariance="full", reg_covar=1e-6)
    problem = Problem(model, ArraySource(X))
    theta = problem.bound.initial_theta(np.random.default_rng(2))
    quick, passes = em_of_candidates(problem, [theta], 400, 1e-9)[0]
    plain = theta
    for _ in range(passes):
        plain = problem.bound.m_step(problem.compute.full(plain))
    assert passes < 400
    assert problem.compute.objective(quick) < problem.compute.objective(plain) - 1e-5


def test_a_step_that_is_worse_is_taken_back():
    problem = Problem(GaussianMixtureModel(4, covariance="full", reg_covar=1e-6), ArraySource(X))
    bound, theta = problem.bound, problem.bound.initial_theta(np.random.default_rng(2))
    steps = Leaps(Squarem())
    for objective in (3.0, 2.0, 1.0):
        s = problem.compute.full(theta)
        assert steps.take(s, objective, problem.compute) is s
        theta = bound.m_step(s if steps.point is None else steps.point)
    assert steps.point is not None
    assert steps.take(problem.compute.full(theta), 1.5, problem.compute) is s
    assert steps.point is None
    assert steps.objective == 1.0
