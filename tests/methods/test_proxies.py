"""What the proofs take from the methods: unbiased proxies, and the mean of what is remembered."""

import helpers
import numpy as np
import pytest
from helpers import assert_close

import swiftem
from swiftem import methods
from swiftem.core.compute import Compute
from swiftem.data import as_source

both = pytest.mark.parametrize("make", [helpers.mixture, helpers.topics], ids=["mixture", "topics"])
N = 20


def e_steps(problem):
    source = as_source(problem.data)
    return Compute(problem.model.bind(source), source)


def copies(state):
    return type(state)(*(np.copy(part) if isinstance(part, np.ndarray) else part for part in state))


@both
@pytest.mark.parametrize("name", ["sem", "sem-vr", "fiem"])
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_over_all_draws_is_a_full_pass(make, name, seed):
    """Equation (expected_grad), at a state in the middle of a run and its current θ."""
    problem = make(N)
    method = helpers.make_method(name, step_size=0.3)
    result = problem.run(method, n_iter=33, seed=seed)  # 33 is no multiple of the epoch
    e_step = e_steps(problem)
    proxies = []
    for i in range(N):
        draws = (np.array([i]), np.array([(i + 3) % N]))[: method.index_streams]
        state = copies(result.state.method)
        proxies.append(method.proxy(33, result.theta, draws, state, e_step)[0])
    expected = e_step.full(result.theta)
    assert_close(np.mean(proxies, axis=0), expected)
    # Not because they are all the same, nor because it had converged.
    assert np.std(proxies, axis=0).max() > 1e-6
    if name != "sem":
        assert np.abs(result.state.method.centre - expected).max() > 1e-6


@both
@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("name", ["iem", "fiem"])
def test_the_centre_is_the_mean_of_the_memory_at_every_iteration(make, name, kernels):
    problem = make(N)
    method = helpers.make_method(name, step_size=0.2)
    e_step = e_steps(problem)
    everybody = e_step.take(np.arange(N))
    result = problem.run(method, n_iter=0, seed=1, kernels=kernels)
    for _ in range(60):
        state = result.state.method
        assert_close(state.centre, e_step.share(everybody, state.memory))
        result = swiftem.run(
            problem.model, problem.data, method, n_iter=1, theta0=result.theta, s0=result.s,
            state=result.state, kernels=kernels,
        )  # fmt: skip
    assert result.n_iter == 60


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_variance_vanishes(name):
    """With a constant step the error goes to zero, where that of sem stays."""
    problem = helpers.mixture(100, spread=3.0, seed=1)
    optimum = problem.run(methods.EM(), n_iter=500).s
    ends = [
        problem.run(helpers.make_method(kind, step_size=0.05), n_iter=4000, seed=0).s
        for kind in (name, "sem")
    ]
    assert np.abs(ends[0] - optimum).max() < 1e-12
    assert np.abs(ends[1] - optimum).max() > 1e-2
