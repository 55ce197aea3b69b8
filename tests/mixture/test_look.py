"""When fits stop."""

import numpy as np
import pytest
from mixture_data import KINDS, METHODS, STOCHASTIC, blobs, fitted, given_start

import swiftem
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.methods import FastIncrementalEM, IncrementalEM, OnlineEM, SpiderEM, VarianceReducedEM
from swiftem.mixture import fit as fit_of_mixtures
from swiftem.mixture.fit import Look
from swiftem.mixture.resolve import iterations_in
from swiftem.models import GaussianMixtureModel

X, _ = blobs(1500, 2, 3, apart=2.5, seed=8)
START = given_start(X, 3, "full")


def fit(weight=None, **parameters):
    return fitted(swiftem.GaussianMixture(3, **{"random_state": 0, **START, **parameters}), X, weight)


@pytest.fixture
def looks_at(monkeypatch):
    """Return a function that sets at how many rows fits look."""
    return lambda rows: monkeypatch.setattr(fit_of_mixtures, "LOOKED_AT", rows)


@pytest.fixture(scope="module")
def best():
    return fit(method="em", tol=1e-9, max_iter=2000).score(X)


@pytest.mark.parametrize("method", ["iem", "sem-vr", "fiem"])
@pytest.mark.parametrize("rows", [200, 20_000])
@pytest.mark.parametrize("seed", [0, 1])
def test_fits_stop_and_not_too_early(method, rows, seed, best, looks_at):
    """Also where only a tenth of the rows is looked at, whose noise is far above tol."""
    looks_at(rows)
    mixture = fit(method=method, tol=1e-6, max_iter=600, random_state=seed)
    assert mixture.converged_
    assert mixture.n_iter_ < 600
    assert mixture.score(X) > best - 2e-4


@pytest.mark.parametrize("method", STOCHASTIC)
@pytest.mark.parametrize("rows", [200, 20_000])
def test_the_default_is_as_good_as_ems(method, rows, looks_at):
    looks_at(rows)
    em, other = fit(method="em"), fit(method=method)
    assert other.converged_
    assert other.score(X) > em.score(X) - 0.01


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("given", [True, False], ids=["parameters", "kmeans"])
def test_max_iter_counts_passes(method, max_iter, given):
    parameters = {} if given else dict.fromkeys(START) | {"init_params": "kmeans"}
    mixture = fit(method=method, max_iter=max_iter, tol=0.0, **parameters)
    assert max_iter - 1 <= mixture.n_iter_ <= max_iter
    start = fit(max_iter=0, **parameters)
    if max_iter:
        assert mixture.score(X) > start.score(X)
    else:
        np.testing.assert_array_equal(mixture.means_, start.means_)
        assert (mixture.lower_bound_, mixture.lower_bounds_, len(mixture.history_)) == (-np.inf, [], 0)


@pytest.mark.parametrize("method", STOCHASTIC)
def test_no_tolerance_means_all_passes(method):
    mixture = fit(method=method, tol=0.0, max_iter=12)
    assert not mixture.converged_
    assert mixture.n_iter_ >= 11


def test_passes_are_those_of_the_library():
    """What iterations_in allows, swiftem.run counts: never more, and less by no more than an iteration."""
    n, model = 500, GaussianMixtureModel(3, covariance="diag")
    theta0 = model.theta(means=X[:3], covariances=np.ones((3, 2)))
    s0 = swiftem.run(model, X[:n], OnlineEM(), theta0=theta0, n_iter=0).s
    for method in (
        OnlineEM(batch_size=33), IncrementalEM(batch_size=33, memory_dtype="float32"),
        VarianceReducedEM(step_size=0.1, batch_size=33), SpiderEM(step_size=0.1, batch_size=33),
        SpiderEM(step_size=0.1, batch_size=33, epoch_length=4, renewals="geometric"),
        FastIncrementalEM(step_size=0.1, batch_size=33, memory_dtype="float32"),
    ):  # fmt: skip
        for passes in (1.0, 2.0, 2.5, 3.0, 4.0, 7.0):
            for s in (None, s0):
                count = iterations_in(method, n, passes, s is not None)
                if count:
                    done = swiftem.run(model, X[:n], method, theta0=theta0, s0=s, n_iter=count, seed=0).passes
                    assert done <= passes
                    more = swiftem.run(
                        model, X[:n], method, theta0=theta0, s0=s, n_iter=count + 1, seed=0
                    ).passes
                    assert more > passes


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_at_all_rows_is_the_objective(kind):
    model = GaussianMixtureModel(3, covariance=kind)
    problem = Problem(model, ArraySource(X))
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    one = Look(problem, 1e-3)
    assert one.is_exact
    assert one.at(theta, 0.0) is False
    assert one.objective == pytest.approx(swiftem.objective(model, X, theta))
    assert one.at(theta, 1.0) is True  # nothing has changed


def test_two_looks_in_a_row():
    problem = Problem(GaussianMixtureModel(3, covariance="full"), ArraySource(X))
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    two = Look(problem, 1e-3, looks=2)
    assert [two.at(theta, passes) for passes in (0.0, 1.0, 2.0)] == [False, False, True]


@pytest.fixture
def at_optimum():
    """Return the problem of the rows, and em's optimum."""
    problem = Problem(GaussianMixtureModel(3, covariance="full"), ArraySource(X))
    found = fit(method="em", tol=1e-9, max_iter=1000)
    names = "weights", "means", "covariances"
    return problem, problem.model.theta(**{name: getattr(found, f"{name}_") for name in names})


def test_noise_within_the_tolerance_needs_no_look_at_all_rows(looks_at, at_optimum):
    looks_at(500)
    problem, theta = at_optimum
    for tol in (1.0, 1e-9):
        one = Look(problem, tol)
        assert not one.is_exact
        assert not one.at(theta, 0.0)
        is_calm = one.at(theta._replace(means=theta.means + 1e-3), 1.0)
        assert is_calm == (tol == 1.0)  # a first look at all rows has none to compare with


def test_looks_at_all_rows_are_seldom(looks_at, at_optimum):
    """Each costs a pass: they are a quarter more passes apart each time."""
    looks_at(300)
    problem, theta = at_optimum
    one, looked = Look(problem, 1e-12), set()
    for passes in range(60):
        one.at(theta._replace(means=theta.means + 1e-3 * (-1) ** passes), float(passes))
        looked |= {last[0] for last in [one.state()[3]] if last is not None}
    assert 5 <= len(looked) < 30
    at = np.array(sorted(looked))
    assert (np.diff(at) >= 0.25 * at[:-1] - 1e-9).all()


WEIGHT = np.random.default_rng(0).exponential(size=len(X))


@pytest.mark.parametrize("method", STOCHASTIC)
def test_the_unit_of_weights_does_not_matter_to_looks_at_some_rows(method, looks_at):
    """The noise of a gain is without a unit; a power of two as a factor changes no bit."""
    looks_at(300)
    one, other = (fit(unit * WEIGHT, method=method, max_iter=80) for unit in (1.0, 2.0**-20))
    assert one.history_.passes.tolist() == other.history_.passes.tolist()
    np.testing.assert_array_equal(one.means_, other.means_)
