"""Counts that only a batch's words touch are those of the dense update."""

import numpy as np
import pytest

from swiftem.topics.compute import documents as document_lane
from swiftem.topics.compute import passes_kernels
from swiftem.topics.compute.documents import RunningCounts
from swiftem.topics.compute.numpy import by_rows
from swiftem.topics.documents import FLUSH, m_step

K = 4


@pytest.mark.parametrize("gammas", [[0.3, 0.1, 0.02], [1.0, 0.5], [0.9] * 120], ids=["small", "one", "many"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("V", [20, 9000], ids=["NumPy", "compiled"])
def test_steps_are_the_dense_ones(gammas, centred, V):
    rng = np.random.default_rng(0)
    counts, beta, tokens = rng.random((V, 3)) * 10, rng.random((3, V)), 12.5 * V
    running = RunningCounts(counts, beta, tokens)
    centre = np.zeros_like(counts)
    if centred:
        centre = rng.random((V, 3)) * 10
        running.renew(centre)
    for gamma in gammas:
        words = rng.permutation(V)[: 2 * V // 3]
        change = rng.random((len(words), 3)) * (1 if not centred else 0.1)
        dense = np.zeros((V, 3))
        dense[words] = change
        assert running.step(words, change, gamma)
        counts = centre + (1 - gamma) * (counts - centre) + gamma * dense
        np.testing.assert_allclose(running.counts(), counts, rtol=1e-9, atol=1e-12)
        some = np.r_[0, 5:V]
        expected = m_step(counts.T, beta * counts.sum() / tokens)[:, some].T
        np.testing.assert_allclose(running.topics_at(some), expected, rtol=1e-9)


@pytest.mark.parametrize("change", [-100.0, -3.0], ids=["a topic below nothing", "no tokens"])
def test_a_step_out_of_the_domain_is_not_made(change):
    running = RunningCounts(np.array([[2.0], [3.0]]), np.ones((1, 1)), 5.0)
    assert not running.step(np.array([0]), np.array([[change]]), 1.0)
    np.testing.assert_array_equal(running.counts(), [[2.0], [3.0]])


def test_a_snapshot_stays_as_it_is():
    running = RunningCounts(np.ones((4, 2)), np.zeros((1, 1)), 8.0)
    other = RunningCounts(np.zeros((4, 2)), np.zeros((1, 1)), 8.0)
    other.restore(running.snapshot())
    for counts in (running, other):
        counts.step(np.array([1, 2]), np.ones((2, 2)), 0.3)
    np.testing.assert_array_equal(running.counts(), other.counts())
    np.testing.assert_array_equal(running.topics_at(np.arange(4)), other.topics_at(np.arange(4)))


def test_m_step_of_extremes():
    topics = m_step(np.array([[0.0, 0.0], [1e-310, 1.0], [-1.0, 2.0], [1e-320, 0.0]]), np.zeros((1, 1)))
    np.testing.assert_array_equal(topics, [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("beta", [np.zeros((1, 1)), np.full((1, 25), 0.3), np.full((K, 25), 0.05)])
def test_m_steps_are_those_of_compiled_code_to_the_bit(beta):
    counts = np.random.default_rng(0).normal(1.0, 2.0, size=(K, 25))
    counts[1], counts[2, :3] = 0.0, [1e-120, np.inf, 1.0]
    by_word, compiled = np.ascontiguousarray(counts.T), np.empty((25, K))
    passes_kernels.m_step(by_word, by_rows(beta, K), FLUSH, compiled, np.zeros(K))
    np.testing.assert_array_equal(m_step(counts, beta), compiled.T)


@pytest.mark.parametrize("centred", [False, True])
def test_running_counts_are_those_of_compiled_code_to_the_bit(centred, monkeypatch):
    rng = np.random.default_rng(0)
    start, change, words = (
        rng.random((25, K)),
        rng.normal(0.5, 1.0, size=(6, K)),
        np.array([3, 4, 9, 0, 21, 7]),
    )
    found = []
    for few in (1 << 16, 0):
        monkeypatch.setattr(document_lane, "FEW", few)
        running = RunningCounts(start, np.full((1, 1), 0.1), 30.0)
        if centred:
            running.renew(start[::-1].copy())
        assert running.step(words, change, 0.3)
        found.append((running.counts(), running.topics_at(words[::-1])))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
