"""Batches of documents: means, costs, and where they rest."""

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.estimators.topics.document_batches import ROUNDS, TOLERANCE, DocumentBatches
from swiftem.estimators.topics.documents import Documents
from swiftem.estimators.topics.look import TopicLook
from swiftem.estimators.topics.running_counts import m_step
from swiftem.methods import OnlineEM, VarianceReducedEM

ALPHA, BETA = np.full(3, 0.1), np.full((1, 1), 0.05)


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.2), size=3)
    X = np.array([rng.multinomial(n, topics[n % 3]) for n in rng.integers(5, 40, 120)])
    return Documents(sp.csr_array(X), rng.random(120) + 0.5)


def start(documents, seed=0):
    topics = np.random.default_rng(seed).dirichlet(np.ones(documents.n_words), size=3)
    return topics, np.full((documents.n, 3), 1 / 3)


def test_the_whole_corpus_as_a_batch_is_a_full_e_step(documents):
    topics, shares = start(documents)
    expected, evaluations = documents.sums(
        np.ascontiguousarray(topics.T), ALPHA, shares.copy(), ROUNDS, TOLERANCE
    )
    for method in (OnlineEM(step_size=1.0, batch_size=120), VarianceReducedEM(step_size=1.0, batch_size=120)):
        batches = DocumentBatches(documents, ALPHA, np.zeros((1, 1)), method, 0, topics, shares.copy())
        batches.epoch(lambda: None)
        np.testing.assert_allclose(batches.counts(), expected.T, rtol=1e-9, atol=1e-9)
        times = 3 if method.name == "sem-vr" else 1
        assert batches.passes == pytest.approx(times * evaluations / len(documents.count))


def test_the_correction_of_sem_vr_has_the_right_mean(documents):
    """Over the batches of one permutation, the mean of the proxies is the full E-step at the same topics."""
    rng = np.random.default_rng(1)
    (anchor, shares), (now, _) = start(documents), start(documents, 1)

    def sums(docs, topics, at):
        return docs.sums(np.ascontiguousarray(topics.T), ALPHA, at.copy(), ROUNDS, TOLERANCE)[0]

    full, total = sums(documents, anchor, shares), np.zeros((documents.n_words, 3))
    for numbers in rng.permutation(documents.n).reshape(10, 12):
        batch, words = documents.batch(numbers)
        change = sums(batch, now[:, words], shares[numbers]) - sums(batch, anchor[:, words], shares[numbers])
        proxy = full.copy()
        proxy[words] += change * documents.n / 12
        total += proxy / 10
    np.testing.assert_allclose(total, sums(documents, now, shares), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [OnlineEM, VarianceReducedEM])
def test_counts_keep_their_sum(documents, kind):
    topics, shares = start(documents)
    batches = DocumentBatches(documents, ALPHA, BETA, kind(step_size=0.2, batch_size=7), 0, topics, shares)
    for _ in range(3):
        batches.epoch(lambda: None)
    assert batches.counts().sum() == pytest.approx(documents.total, rel=1e-9)
    assert batches.epochs == 3
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_sem_vr_rests_where_em_does(documents):
    topics, shares = start(documents)
    for _ in range(3000):
        counts, _ = documents.em_pass(shares, topics, ALPHA)
        topics = m_step(counts, BETA)
    method = VarianceReducedEM(step_size=0.1, batch_size=10)
    batches = DocumentBatches(documents, ALPHA, BETA, method, 0, topics, shares)
    for _ in range(3):
        batches.epoch(lambda: None)
    np.testing.assert_allclose(m_step(batches.counts(), BETA), topics, atol=1e-4)


def test_looks(documents):
    topics, _ = start(documents)
    look = TopicLook(documents, ALPHA, 1e-3)
    assert not look.at(topics, 1.0)
    first = look.objective
    assert look.at(topics, 2.0)
    assert look.objective == first
    found, value = documents.fold_in(topics, ALPHA, max_iter=20, tol=1e-2)
    assert first == pytest.approx(-(documents.weight @ value) / documents.total)
    assert found.shape == (120, 3)
