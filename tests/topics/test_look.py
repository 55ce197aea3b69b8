"""Looks at documents that stay the same."""

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.topics.compute.corpus import Documents
from swiftem.topics.fit import TopicLook

ALPHA = np.full(3, 0.1)


def test_looks():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(40, 0.2), size=3)
    X = np.array([rng.multinomial(n, words[n % 3]) for n in rng.integers(5, 40, 120)])
    documents, topics = Documents(sp.csr_array(X), rng.random(120) + 0.5), rng.dirichlet(np.ones(40), size=3)
    look = TopicLook(documents, ALPHA, 1e-3)
    assert not look.at(topics, 1.0)
    first = look.objective
    assert look.at(topics, 2.0)
    assert look.objective == first
    found, value = documents.fold_in(topics, ALPHA, max_iter=20, tol=1e-2)
    assert first == pytest.approx(-(documents.weight @ value) / documents.total)
    assert found.shape == (120, 3)
