"""Counts that only a batch's words touch are those of the dense update."""

import numpy as np
import pytest

from swiftem.estimators.topics.running_counts import RunningCounts, m_step


@pytest.mark.parametrize("gammas", [[0.3, 0.1, 0.02], [1.0, 0.5], [0.9] * 120], ids=["small", "one", "many"])
@pytest.mark.parametrize("centred", [False, True])
def test_steps_are_the_dense_ones(gammas, centred):
    rng = np.random.default_rng(0)
    counts, beta = rng.random((3, 20)) * 10, rng.random((3, 20))
    running = RunningCounts(counts, beta)
    centre = np.zeros_like(counts)
    if centred:
        centre = rng.random((3, 20)) * 10
        running.renew(centre)
    for gamma in gammas:
        words = rng.permutation(20)[:7]
        change = rng.random((7, 3)) * (1 if not centred else 0.1)
        dense = np.zeros((3, 20))
        dense[:, words] = change.T
        assert running.step(words, change, gamma)
        counts = centre + (1 - gamma) * (counts - centre) + gamma * dense
        np.testing.assert_allclose(running.counts(), counts, rtol=1e-9, atol=1e-12)
        some = np.array([0, 5, 19])
        np.testing.assert_allclose(running.topics_at(some), m_step(counts, beta)[:, some].T, rtol=1e-9)


def test_a_step_out_of_the_domain_is_not_made():
    running = RunningCounts(np.array([[2.0, 3.0]]), np.zeros((1, 1)))
    assert not running.step(np.array([0]), np.array([[-100.0]]), 0.5)
    np.testing.assert_array_equal(running.counts(), [[2.0, 3.0]])


def test_m_step_of_extremes():
    topics = m_step(np.array([[0.0, 0.0], [1e-310, 1.0], [-1.0, 2.0], [1e-320, 0.0]]), np.zeros((1, 1)))
    np.testing.assert_array_equal(topics, [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
