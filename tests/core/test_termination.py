import collections

import helpers
import numpy as np
import pytest
import scipy.stats
from helpers import NAMES, PROBLEMS, assert_identical, make_method

from swiftem import RandomTermination, methods, schedules

SCHEDULES = {
    "constant": schedules.constant(0.1),
    "inverse": schedules.inverse(1, 0),
    "function": lambda k: 1 / k,
}


def assert_distributed(drawn, gamma, n_iter):
    """Chi-square test of P(K = k) ∝ γ_(k+1); the seeds are fixed, so it passes always or never."""
    steps = np.array([gamma(k + 1) for k in range(n_iter)])
    counts = collections.Counter(drawn)
    observed = [counts.pop(k, 0) for k in range(n_iter)]
    assert not counts, f"K outside 0, ..., {n_iter - 1}: {counts}"
    assert scipy.stats.chisquare(observed, len(drawn) * steps / steps.sum()).pvalue > 1e-3


@helpers.parametrize_cases(SCHEDULES)
def test_distribution(case):
    rng = np.random.default_rng(0)
    assert_distributed([RandomTermination(6).draw(case, rng) for _ in range(5_000)], case, 6)


def test_distribution_of_a_resumed_run():
    """Iteration k of a run that goes on has the step size that it always had."""
    rng, gamma = np.random.default_rng(0), SCHEDULES["inverse"]
    drawn = [RandomTermination(6).draw(gamma, rng, first=2) for _ in range(5_000)]
    assert_distributed(drawn, lambda k: gamma(k + 2), 6)


@pytest.mark.parametrize("make", list(PROBLEMS.values()), ids=list(PROBLEMS))
@pytest.mark.parametrize("name", NAMES)
def test_result_is_an_iterate_of_the_plain_run(make, name):
    problem, method = make(20), make_method(name, step_size=schedules.inverse(1, 1), batch_size=2)
    seen = set()
    for seed in range(8):
        plain = problem.run(method, n_iter=12, seed=seed, record_every=1)
        result = problem.run(method, n_iter=RandomTermination(12), seed=seed)
        iterate = plain.path[result.n_iter]
        assert_identical((result.theta, result.s), (iterate.theta, iterate.s))
        assert (result.passes, result.status) == (iterate.passes, "completed")
        seen.add(result.n_iter)
    assert len(seen) > 2


@helpers.parametrize_cases(SCHEDULES)
def test_from_one_to_k_max(case):
    """What Theorem 1 needs: the same draw, one later."""
    once, again = np.random.default_rng(0), np.random.default_rng(0)
    plain, later = RandomTermination(6), RandomTermination(6, earliest=1)
    drawn = [(plain.draw(case, once), later.draw(case, again)) for _ in range(500)]
    assert all(one - zero == 1 for zero, one in drawn)
    assert {one for _, one in drawn} == set(range(1, 7))


def test_given_draws_are_enough_for_k_max():
    problem, draws = helpers.mixture(20), helpers.random_draws("iem", 20, 3)
    found = {
        problem.run(
            methods.IncrementalEM(), n_iter=RandomTermination(3, earliest=1), draws=draws, seed=seed
        ).n_iter
        for seed in range(30)
    }
    assert found == {1, 2, 3}


@pytest.mark.parametrize("earliest", [-1, 2, 0.5, True])
def test_bad_earliest(earliest):
    with pytest.raises((TypeError, ValueError), match=r"^earliest must be"):
        RandomTermination(5, earliest=earliest)


def test_drawn_theta0_stays_the_same():
    """K comes from a stream of its own."""
    problem = helpers.mixture(20)._replace(theta0=None)
    plain = problem.run(methods.EM(), n_iter=0, seed=4)
    result = problem.run(methods.EM(), n_iter=RandomTermination(9), seed=4, record_every=1)
    assert_identical(result.path[0].theta, plain.theta)


def test_given_draws_are_for_the_largest_k():
    problem, method = helpers.mixture(20), methods.IncrementalEM()
    draws = helpers.random_draws("iem", 20, 9)
    result = problem.run(method, n_iter=RandomTermination(9), draws=draws, seed=4)
    expected = problem.run(method, n_iter=result.n_iter, draws=draws[: result.n_iter])
    assert_identical(result.s, expected.s)


@pytest.mark.parametrize("n_iter", [0, -1, 1.5, True, None])
def test_bad_n_iter(n_iter):
    with pytest.raises((TypeError, ValueError), match=r"^n_iter must be"):
        RandomTermination(n_iter)


def test_a_step_that_is_too_long_is_named_by_its_iteration():
    with pytest.raises(ValueError, match="at k = 3"):
        RandomTermination(6).draw(lambda k: 0.5 if k < 3 else 2.0, np.random.default_rng(0))
