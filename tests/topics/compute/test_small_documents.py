"""Small corpora without compiled code: the same numbers as compiled loops, to rounding."""

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.topics import documents as models
from swiftem.topics.compute import documents as document_lane
from swiftem.topics.compute.corpus import Documents, SmallDocuments
from swiftem.topics.compute.documents import RunningCounts
from swiftem.topics.documents import m_step, totals_of

K = 4


@pytest.fixture(params=["plain", "weighted", "fractions", "sparse"])
def corpus(request):
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.05 if request.param == "sparse" else 0.7, size=(60, 25)).astype(float)
    counts[[0, 17, 59]] = 0.0
    if request.param == "fractions":
        counts *= rng.uniform(0.1, 1.4, size=counts.shape)
    weight = rng.uniform(0.2, 3.0, size=60) if request.param == "weighted" else None
    X = sp.csr_array(counts)
    topics = rng.dirichlet(np.full(25, 0.3), size=K)
    topics[0, :20] = 0.0
    return Documents(X, weight), SmallDocuments(X, weight), topics / topics.sum(axis=1, keepdims=True), rng


def both(corpus, call):
    """Return what both kinds of documents give, with topics of documents that they may replace."""
    found = []
    start = corpus[3].dirichlet(np.full(K, 0.5), size=60)
    for documents in corpus[:2]:
        shares = start.copy()
        found.append((*call(documents, shares), shares))
    return found


def assert_same(found):
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_passes(corpus, alpha):
    strength = np.full(K, alpha)
    assert_same(both(corpus, lambda documents, shares: documents.em_pass(shares, corpus[2], strength)))


@pytest.mark.parametrize(
    "beta", [np.full((1, 1), 0.05), np.linspace(0.0, 1.0, 25)[None], np.full((K, 25), 0.3)]
)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_passes_that_leave_one_out(corpus, alpha, beta):
    strength, topics = np.full(K, alpha), corpus[2]
    totals = totals_of(topics * 30.0, beta)
    assert_same(
        both(
            corpus,
            lambda documents, shares: documents.em_pass(shares, topics, strength, (totals, beta)),
        )
    )


@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (2, 1e-2), (7, 0.0), (100, 1e-3)])
def test_folding_in(corpus, max_iter, tol):
    alpha = np.full(K, 0.1)
    found = [documents.fold_in(corpus[2], alpha, max_iter=max_iter, tol=tol) for documents in corpus[:2]]
    assert_same(found)


@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (5, 1e-2), (20, 1e-3)])
def test_sums(corpus, max_iter, tol):
    words, alpha = np.ascontiguousarray(corpus[2].T), np.full(K, 0.1)
    assert_same(both(corpus, lambda documents, shares: documents.sums(shares, words, alpha, max_iter, tol)))


def test_batches_have_the_same_documents(corpus):
    index = np.array([5, 0, 33, 5, 59])
    one, other = (documents.take(index) for documents in corpus[:2])
    assert type(other.y) is SmallDocuments
    np.testing.assert_array_equal(one.weight, other.weight)
    dense = []
    for batch in (one.y, other.y):
        whole = np.zeros((5, 25))
        whole[:, batch.words] = batch.matrix().toarray()
        dense.append(whole)
    np.testing.assert_array_equal(*dense)
    assert type(corpus[1].some(np.array([3, 4]))) is SmallDocuments


def test_nothing_at_all():
    documents, topics = SmallDocuments(sp.csr_array((2, 3))), np.full((2, 3), 1 / 3)
    found, value = documents.fold_in(topics, np.array([1.0, 3.0]))
    np.testing.assert_allclose(found, [[0.25, 0.75]] * 2)
    np.testing.assert_array_equal(value, 0.0)
    counts, _ = documents.em_pass(found, topics, np.zeros(2))
    np.testing.assert_array_equal(counts, 0.0)
    np.testing.assert_allclose(found, 0.5)


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
