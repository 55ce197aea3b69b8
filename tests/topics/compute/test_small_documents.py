"""Small corpora without compiled code: the same numbers as compiled loops, to rounding."""

import numpy as np
import pytest

from swiftem.topics import documents as models
from swiftem.topics.compute import documents as document_lane
from swiftem.topics.compute.documents import RunningCounts
from swiftem.topics.documents import m_step

K = 4


@pytest.mark.parametrize("beta", [np.zeros((1, 1)), np.full((1, 25), 0.3), np.full((K, 25), 0.05)])
def test_m_steps_are_those_of_compiled_code_to_the_bit(beta, monkeypatch):
    rng = np.random.default_rng(0)
    counts = rng.normal(1.0, 2.0, size=(K, 25))
    counts[1], counts[2, :3] = 0.0, [1e-120, np.inf, 1.0]
    small = m_step(counts, beta)
    monkeypatch.setattr(models, "FEW", 0)
    np.testing.assert_array_equal(small, m_step(counts, beta))


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
