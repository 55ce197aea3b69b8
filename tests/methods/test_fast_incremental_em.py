import helpers
import numpy as np
import pytest
from helpers import assert_close

from swiftem import methods


def step(problem, i, j, n_iter=1, **options):
    """One or more iterations from scratch, with γ = 1: s is then the proxy."""
    method = methods.FastIncrementalEM(step_size=1.0, **options)
    return problem.run(method, n_iter=n_iter, draws=(i, j))


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
def test_i_reads_the_memory_before_j_writes_it(make):
    """Iteration 1 draws i = j = 3: Δ_i is not zero, as it would be from a memory already written."""
    problem = make(20)
    first = step(problem, [0], [0])
    both = step(problem, [0, 3], [0, 3], n_iter=2)
    other = step(problem, [0, 3], [0, 5], n_iter=2)
    assert_close(both.s, other.s)  # the proxy of an iteration does not depend on its own j
    assert np.abs(both.s - first.state.method.centre).max() > 1e-6


def test_j_renews_the_memory_and_i_does_not():
    problem = helpers.mixture(20)
    before = step(problem, [0], [0]).state.method.memory
    after = step(problem, [0, 3], [0, 5], n_iter=2).state.method.memory
    assert np.flatnonzero((before != after).any(axis=1)).tolist() == [5]


def test_repetition_counts_in_the_proxy_and_not_in_the_centre():
    problem = helpers.mixture(20)
    draws = ([[0, 0, 0], [3, 3, 4]], [[0, 0, 0], [5, 5, 6]])
    result = step(problem, *draws, n_iter=2, batch_size=3)
    separate = [step(problem, [0, i], [0, j], n_iter=2) for i, j in ((3, 5), (4, 6))]
    assert_close(result.s, (2 * separate[0].s + separate[1].s) / 3)
    centre = step(problem, [0], [0]).state.method.centre
    changes = [run.state.method.centre - centre for run in separate]
    assert_close(result.state.method.centre, centre + changes[0] + changes[1])


def test_shuffled_memory_is_never_older_than_two_passes():
    problem = helpers.mixture(20)
    method = methods.FastIncrementalEM(step_size=0.05, memory_order="shuffled")
    before = problem.run(method, n_iter=10, seed=0)
    after = problem.run(method, n_iter=30, seed=0)  # j has gone through a whole pass since k = 10
    assert (before.state.method.memory != after.state.method.memory).any(axis=1).sum() >= 10
    assert method.orders == ("iid", "shuffled")
    pass_ = problem.run(method, n_iter=20, seed=0)
    start = problem.run(method, n_iter=0, seed=0)
    # The very first j sees θ^(0) again; every other sample is renewed in the first pass.
    renewed = np.abs(pass_.state.method.memory - start.state.method.memory).max(axis=1) > 1e-12
    assert renewed.sum() == 19


def test_shuffled_converges_faster():
    problem = helpers.mixture(100, spread=3.0, seed=1)
    optimum = problem.run(methods.EM(), n_iter=500).s
    errors = [
        np.abs(
            problem.run(
                methods.FastIncrementalEM(step_size=0.05, memory_order=order), n_iter=1000, seed=0
            ).s - optimum
        ).max()
        for order in ("iid", "shuffled")
    ]  # fmt: skip
    assert errors[1] < 0.05 * errors[0]
