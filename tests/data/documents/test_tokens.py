"""Tokens and counts as sources; the contract is in tests/contracts/test_sources.py."""

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import CountSource, TokenSource

DOCUMENTS, WORDS = [2, 0, 0, 1], [1, 3, 3, 0]
COUNTS = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 1, 0], [0, 0, 0, 1]])


def test_sizes():
    source = TokenSource(DOCUMENTS, WORDS)
    assert (source.n, source.n_documents, source.n_words, source.total_weight) == (4, 3, 4, 4.0)
    larger = TokenSource(DOCUMENTS, WORDS, n_documents=7, n_words=9)
    assert (larger.n_documents, larger.n_words, larger.access) == (7, 9, "random")
    source = CountSource(sp.csr_array(COUNTS.astype(float)))  # whole floats are tokens
    assert (source.n, source.n_documents, source.n_words, source.total_weight) == (8, 4, 4, 8.0)


def test_tokens_of_weight_zero_are_not_numbered():
    source = TokenSource(DOCUMENTS, WORDS, sample_weight=[0.0, 2.0, 0.0, 0.5])
    assert (source.n, source.total_weight) == (2, 2.5)
    batch = source.take(np.array([1, 0, 1]))
    assert (batch.y.tolist(), batch.weight.tolist()) == ([[1, 0], [0, 3], [1, 0]], [0.5, 2.0, 0.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_documents": 2}, "n_documents must exceed the largest number, 2, got 2"),
        ({"n_words": 3}, "n_words must exceed the largest number, 3, got 3"),
        ({"n_words": 0}, "n_words must be at least 1"),
        ({"n_documents": 3.0}, "n_documents must be an integer"),
        ({"sample_weight": [1.0]}, r"sample_weight must have shape \(4,\), one weight per token"),
    ],
)
def test_bad_sizes(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TokenSource(DOCUMENTS, WORDS, **options)


def test_tokens_are_copied():
    documents = np.array(DOCUMENTS)
    source = TokenSource(documents, WORDS)
    documents[0] = 1
    assert source.take(np.array([0])).y.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("counts", "tokens", "weights"),
    [
        (COUNTS, [[0, 1], [0, 1], [0, 3], [3, 3]], [2.0, 2.0, 2.0, 0.5]),
        (COUNTS / 2, [[0, 1], [0, 3], [3, 3]], [2.0, 1.0, 0.25]),  # fractions are weights
    ],
)
def test_weights_of_documents(counts, tokens, weights):
    source = CountSource(sp.csr_array(counts), [2.0, 5.0, 0.0, 0.5])
    assert (source.n, source.total_weight) == (len(tokens), sum(weights))
    batch = source.take(np.arange(source.n))
    assert (batch.y.tolist(), batch.weight.tolist()) == (tokens, weights)


def test_stored_zeros_are_no_tokens():
    matrix = sp.csr_array((np.array([1, 0, 2]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert CountSource(matrix).take(np.arange(3)).y.tolist() == [[0, 0], [1, 1], [1, 1]]
    assert CountSource(matrix * 0.25).take(np.arange(2)).y.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8])
def test_duplicates_add_up(dtype):
    """Also beyond what their type can hold."""
    values = np.array([100, 100, 100], dtype=dtype)
    matrix = sp.csr_array((values, np.array([1, 1, 1]), np.array([0, 3])), shape=(1, 2))
    assert CountSource(matrix).n == 300
    assert matrix.nnz == 3  # the caller's matrix is as it was


def test_large_counts_cost_no_memory():
    source = CountSource(sp.csr_array(np.array([[10**12, 1]])))
    assert (source.n, source.bytes_needed(1)) == (10**12 + 1, 2 * 96)
    assert source.take(np.array([10**12 - 1, 10**12])).y.tolist() == [[0, 0], [0, 1]]


def test_fingerprints():
    sources = [
        TokenSource(DOCUMENTS, WORDS),
        TokenSource(WORDS, DOCUMENTS),
        TokenSource(DOCUMENTS, WORDS, n_words=9),
        TokenSource(DOCUMENTS, WORDS, sample_weight=[1, 2, 3, 4]),
        CountSource(sp.csr_array(COUNTS)),
        CountSource(sp.csr_array(COUNTS * 2)),
        CountSource(sp.csr_array(COUNTS / 2)),
        CountSource(sp.csr_array(COUNTS), [1, 1, 1, 2]),
        CountSource(sp.csr_array(np.pad(COUNTS, (0, 1)))),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)
    assert TokenSource(np.int32(DOCUMENTS), WORDS).fingerprint() == sources[0].fingerprint()
    assert CountSource(sp.coo_array(COUNTS)).fingerprint() == sources[4].fingerprint()
