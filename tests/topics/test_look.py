"""Stochastic methods are evaluated on documents that stay the same, once per epoch."""

import numpy as np
import pytest
import scipy.sparse as sp
from topic_fits import fit_topics

from swiftem.topics.compute.corpus import SmallDocuments


def test_looks():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(40, 0.2), size=3)
    X = sp.csr_array(np.array([rng.multinomial(n, words[n % 3]) for n in rng.integers(5, 40, 120)]))
    weight = rng.random(120) + 0.5
    model = fit_topics(X, 3, method="sem", tol=10.0, sample_weight=weight)
    assert model.converged_
    assert len(model.history_) == 3  # two gains are small, of which the first epoch has none
    documents = SmallDocuments(X, weight)
    found, value = documents.fold_in(model.components_, np.full(3, 0.1), max_iter=20, tol=1e-2)
    assert model.history_.objective[-1] == pytest.approx(-(weight @ value) / documents.total)
    assert found.shape == (120, 3)
