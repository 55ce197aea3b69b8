"""Corpora cut into pieces."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import CsrDocuments
from swiftem.topics.compute import corpus
from swiftem.topics.compute.corpus import PIECES, Documents, SmallDocuments, StreamedDocuments


def test_lengths_and_total():
    X = sp.csr_array(np.array([[0, 0], [1.5, 2], [0, 0], [0, 3], [0, 0]]))
    documents = Documents(X, np.array([9.0, 2.0, 9.0, 1.0, 9.0]))
    np.testing.assert_array_equal(documents.length, [0, 3.5, 0, 3, 0])
    assert documents.total == 10.0
    np.testing.assert_array_equal(documents.matrix().toarray(), X.toarray())
    np.testing.assert_array_equal(documents.some(np.array([3, 1])).length, [3, 3.5])


@pytest.mark.parametrize("lengths", [[200_000], [0, 100_000, 0, 0, 100_000], [50] * 4000, [0]])
def test_pieces_cover_all_documents_once(lengths):
    begin = np.r_[0, np.cumsum(lengths)]
    X = sp.csr_array((np.ones(begin[-1]), np.zeros(begin[-1], dtype=int), begin), shape=(len(lengths), 1))
    pieces = Documents(X).pieces()
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(lengths)
    assert len(pieces) <= PIECES
    assert all(one[1] == two[0] for one, two in pairwise(pieces))


@pytest.mark.parametrize("kind", [Documents, SmallDocuments])
def test_nothing_at_all(kind):
    documents = kind(sp.csr_array((2, 3)))
    topics = np.full((2, 3), 1 / 3)
    found, value = documents.fold_in(topics, np.array([1.0, 3.0]))
    np.testing.assert_allclose(found, [[0.25, 0.75]] * 2)
    np.testing.assert_array_equal(value, 0.0)
    counts, _ = documents.em_pass(found, topics, np.zeros(2))
    np.testing.assert_array_equal(counts, 0.0)
    np.testing.assert_allclose(found, 0.5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("blocks", [False, True])
def test_many_pieces_give_the_sums_of_one(dtype, blocks, monkeypatch):
    """Pieces are added in groups, a group to what the ones before have given, and words in ranges.

    Sums are emptied into a total in float64 whenever they have more entries than are allowed.
    """
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.5, size=(150, 30)).astype(float))
    topics, alpha = np.asfortranarray(rng.dirichlet(np.ones(30), size=5)), np.full(5, 0.1)

    def sums(given):
        found = np.full((150, 5), 0.2)
        passes = [given.em_pass(found, topics, alpha) for _ in range(2)]
        passes.append(given.em_pass(found, topics, alpha, (np.full(5, 40.0), np.full((1, 1), 0.1))))
        passes.append(given.sums(found, np.ascontiguousarray(topics.T), alpha, 3, 0.0))
        return [found, *(part for found in passes for part in found)]

    one = sums(Documents(X, dtype=dtype))
    monkeypatch.setattr(corpus, "LEAST_NUMBERS", 0)
    for most in (1, 30, 100, 1 << 22):
        monkeypatch.setattr(corpus, "MOST_ENTRIES", most)
        many = StreamedDocuments(CsrDocuments(X)) if blocks else Documents(X)
        many.dtype = dtype
        for few, other in zip(one, sums(many), strict=True):
            np.testing.assert_allclose(other, few, rtol=1e-12 if dtype is np.float64 else 1e-5)


def test_tables_are_padded_rounded_and_have_no_tiny_numbers():
    spare, values = Documents(sp.csr_array((1, 1))), np.array([[0.1, 1e-24], [1e-26, 0.0], [np.nan, 1.0]])
    for _ in range(2):  # the second time in memory that was used before
        table = spare._table(values, np.float32)
        assert table.shape == (3, 16)
        np.testing.assert_array_equal(table[:, :2], np.float32([[0.1, 1e-24], [0, 0], [np.nan, 1]]))
        np.testing.assert_array_equal(table[:, 2:], 0.0)
        table[:] = 7.0
        spare._keep(table)
