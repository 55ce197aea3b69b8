"""Going on from a result's state is exactly the run that never ended."""

import pickle

import helpers
import pytest
from helpers import NAMES, STOCHASTIC, assert_same_result, make_method

from swiftem import methods, schedules

N_ITER = 48
every_method = pytest.mark.parametrize("name", NAMES)


def go_on(problem, result, method, **options):
    return problem.run(method, **{"theta0": result.theta, "s0": result.s, "state": result.state} | options)


def example(name):
    """Large steps: some are rejected."""
    return helpers.mixture(20, M=3), make_method(
        name, step_size=schedules.power(0.9, 0.1), batch_size=2, epoch_length=5
    )


@every_method
def test_a_state_can_be_gone_on_from_twice(name):
    problem, method = example(name)
    first = problem.run(method, n_iter=7, seed=3)
    before = pickle.dumps((first.theta, first.s, first.state))
    once, again = (go_on(problem, first, method, n_iter=9) for _ in range(2))
    assert_same_result(once, again)
    assert pickle.dumps((first.theta, first.s, first.state)) == before


@pytest.mark.parametrize("name", STOCHASTIC)
def test_given_draws_go_on_with_their_rest(name):
    problem, method = example(name)
    draws = helpers.random_draws(name, problem.n, N_ITER, b=2)
    parts = [draws] if name not in helpers.IN_PAIRS else list(draws)
    begin, end = ([part[rows] for part in parts] for rows in (slice(10), slice(10, None)))
    if name not in helpers.IN_PAIRS:
        (begin,), (end,) = begin, end
    whole = problem.run(method, n_iter=N_ITER, draws=draws, seed=0)
    first = problem.run(method, n_iter=10, draws=begin, seed=0)
    assert_same_result(go_on(problem, first, method, n_iter=N_ITER - 10, draws=end), whole)


@pytest.mark.parametrize("split", [4095, 4096, 4097])
def test_draws_go_on_across_chunks(split):
    """Seeded draws are made a few thousand at a time."""
    problem = helpers.mixture(7)
    method = methods.FastIncrementalEM(step_size=0.05, memory_order="shuffled")
    first = problem.run(method, n_iter=split, seed=3)
    whole = problem.run(method, n_iter=4110, seed=3)
    assert_same_result(go_on(problem, first, method, n_iter=4110 - split), whole)


def test_a_stopped_run_goes_on():
    problem, method = example("fiem")
    stopped = problem.run(method, n_iter=N_ITER, seed=3, record_every=6, callback=lambda it: it.k == 12)
    assert (stopped.status, stopped.n_iter) == ("stopped", 12)
    resumed = go_on(problem, stopped, method, n_iter=36, record_every=6)
    assert_same_result(resumed, problem.run(method, n_iter=N_ITER, seed=3))
    assert [iterate.k for iterate in resumed.path] == list(range(18, 49, 6))


def test_the_first_seed_may_be_repeated():
    problem, method = example("sem")
    first = problem.run(method, n_iter=5, seed=3)
    assert_same_result(
        go_on(problem, first, method, n_iter=5, seed=3), problem.run(method, n_iter=10, seed=3)
    )


def test_a_run_without_a_seed_goes_on_with_its_own():
    problem, method = example("fiem")
    first = problem.run(method, n_iter=5)
    once, again = (go_on(problem, first, method, n_iter=5) for _ in range(2))
    assert_same_result(once, again)


REFUSED = {
    "of another method": (
        lambda p, r: go_on(p, r, methods.IncrementalEM(), n_iter=1),
        "state must come from a run of iem",
    ),
    "of another n": (
        lambda p, r: go_on(p._replace(data=p.data[:-1]), r, methods.FastIncrementalEM(), n_iter=1),
        "state must come from a run of fiem on 39 samples",
    ),
    "without theta0": (
        lambda p, r: go_on(p, r, methods.FastIncrementalEM(), n_iter=1, theta0=None),
        "state needs theta0 and s0",
    ),
    "without s0": (
        lambda p, r: go_on(p, r, methods.FastIncrementalEM(), n_iter=1, s0=None),
        "state needs theta0 and s0",
    ),
    "with another seed": (
        lambda p, r: go_on(p, r, methods.FastIncrementalEM(), n_iter=1, seed=4),
        "seed must be left out",
    ),
    "the result itself": (
        lambda p, r: p.run(methods.FastIncrementalEM(), n_iter=1, s0=r.s, state=r),
        "state must be the state of a",
    ),
}


@helpers.parametrize_cases(REFUSED)
def test_a_state_that_does_not_fit_is_refused(case):
    attempt, message = case
    problem = helpers.mixture()
    result = problem.run(methods.FastIncrementalEM(), n_iter=3, seed=3)
    with pytest.raises((TypeError, ValueError), match=message):
        attempt(problem, result)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_put_together_from_two_results_is_what_goes_on(name):
    """The state's own copy of the statistics must not win over θ and s that the caller gives."""
    problem = helpers.topics(60)
    method = make_method(name, step_size=0.05, batch_size=1)
    first, other = (problem.run(method, n_iter=9, seed=seed) for seed in (1, 2))
    mixed = [
        problem.run(method, n_iter=9, theta0=other.theta, s0=first.s, state=first.state, kernels=kernels)
        for kernels in ("auto", "reference")
    ]
    helpers.assert_close(mixed[0].s, mixed[1].s)
