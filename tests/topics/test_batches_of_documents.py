"""An epoch of sem-vr by documents, and ``partial_fit``, step by step in plain NumPy."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.methods import VarianceReducedEM
from swiftem.topics import read as module

ROUNDS, TOLERANCE = 5, 1e-2


@pytest.fixture(autouse=True, params=["NumPy", "compiled"])
def kernels(request, monkeypatch):
    """Small corpora are fitted by NumPy; here also by the kernels of large ones."""
    if request.param == "compiled":
        monkeypatch.setattr(module, "is_small", lambda *_: False)


def statistics(row, topics, alpha, rounds=ROUNDS):
    """Return expected counts (K, V) of a document that starts uniform and is folded in for a few rounds."""
    a = np.full(len(topics), 1 / len(topics))
    for _ in range(rounds):
        joint = a[:, None] * topics
        new = (row * joint / joint.sum(axis=0)).sum(axis=1) + alpha
        new /= new.sum()
        a, change = new, np.abs(new - a).sum()
        if change < TOLERANCE:
            break
    joint = a[:, None] * topics
    return row * joint / joint.sum(axis=0)


def normalised(counts):
    return np.maximum(counts, 0.0) / np.maximum(counts, 0.0).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("b", [1, 2])
def test_every_document_corrects_by_all_documents_over_the_batch(b):
    """D / b makes the mean of the proxies, over batches that have every document once, the full E-step's.

    Documents are alike but for weights, so that a proxy is known from the weights of its batch; their order
    is one of few.
    """
    row, weights = np.array([5.0, 3.0, 1.0, 2.0, 4.0]), np.array([0.5, 0.5, 1.75, 1.75])
    topics = np.random.default_rng(0).dirichlet(np.ones(5), size=2)
    gamma, alpha, n = 0.4, 0.1, len(weights)
    fit = swiftem.PLSA(
        2, method=VarianceReducedEM(gamma, b), init=topics, alpha=alpha, beta=0.0, max_iter=1,
        random_state=0, tol=0.0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        fit.fit(np.tile(row, (n, 1)), sample_weight=weights)
    start = topics * (weights.sum() * row.sum() / 2)
    anchor = statistics(row, normalised(start), alpha)
    errors = []
    for order in set(permutations(weights)):
        s = start
        for batch in np.reshape(order, (-1, b)):
            change = statistics(row, normalised(s), alpha) - anchor
            s = s + gamma * (weights.sum() * anchor + n / b * batch.sum() * change - s)
        errors.append(np.abs(normalised(s) - fit.components_).max())
    assert min(errors) < 1e-12


def test_partial_fit_weighs_beta_against_the_tokens_that_were_seen():
    """Two steps of 128 documents that are alike, from topics that are worth 2000 tokens."""
    row, alpha, beta, seen = np.array([5.0, 3.0, 1.0, 2.0, 4.0]), 0.1, 50.0, 2000.0
    topics = np.random.default_rng(0).dirichlet(np.ones(5), size=2)
    model = swiftem.PLSA(2, init=topics, alpha=alpha, beta=beta, tol=0.0)
    model.partial_fit(np.tile(row, (256, 1)))
    s, tokens = topics * (seen / 2), 128 * row.sum()
    for _ in range(2):
        gamma = 1.0 - (seen / (seen + tokens)) ** 2
        proxy = 128 * statistics(row, normalised(s + beta), alpha, rounds=10)
        s = (s + gamma * (proxy * (seen / tokens) - s)) * ((seen + tokens) / seen)
        seen += tokens
    np.testing.assert_allclose(model.components_, normalised(s + beta), rtol=1e-12)
