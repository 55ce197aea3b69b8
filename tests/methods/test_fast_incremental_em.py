import helpers
import numpy as np

from swiftem import methods


def step(problem, i, j, n_iter=1, **options):
    """One or more iterations from scratch, with γ = 1: s is then the proxy."""
    method = methods.FastIncrementalEM(step_size=1.0, **options)
    return problem.run(method, n_iter=n_iter, draws=(i, j))


def test_j_renews_the_memory_and_i_does_not():
    problem = helpers.mixture(20)
    before = step(problem, [0], [0]).state.method.memory
    after = step(problem, [0, 3], [0, 5], n_iter=2).state.method.memory
    assert np.flatnonzero((before != after).any(axis=1)).tolist() == [5]


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
