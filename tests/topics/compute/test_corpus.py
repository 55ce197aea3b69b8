"""Corpora cut into pieces."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem.topics.compute.corpus as streamed
from swiftem.data import CsrDocuments
from swiftem.topics.compute.corpus import PIECES, Documents, SmallDocuments


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_pieces_give_the_sums_of_one(dtype, monkeypatch):
    """Pieces are added in groups, a group to what the ones before have given, and words in ranges."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.5, size=(60, 30)).astype(float))
    topics, alpha = np.asfortranarray(rng.dirichlet(np.ones(30), size=5)), np.full(5, 0.1)

    def sums():
        found = np.full((60, 5), 0.2)
        given = Documents(X, dtype=dtype)
        passes = [given.em_pass(found, topics, alpha)[0] for _ in range(2)]
        left = given.em_pass(found, topics, alpha, (np.full(5, 40.0), np.full((1, 1), 0.1)))[0]
        batch = given.sums(found, np.ascontiguousarray(topics.T), alpha, 3, 0.0)[0]
        return (*passes, left, batch.T, found.T)

    one = sums()
    monkeypatch.setattr("swiftem.topics.compute.corpus.MOST_ENTRIES", 30)
    monkeypatch.setattr("swiftem.topics.compute.corpus.LEAST_NUMBERS", 0)
    assert Documents(X).n_entries > 2 * PIECES * 30
    for few, many in zip(one, sums(), strict=True):
        np.testing.assert_allclose(many, few, rtol=1e-12 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize("most", [1, 100, 1 << 22])
def test_sums_of_blocks_are_added_once(most, monkeypatch):
    """Sums of pieces are emptied into a total in float64 whenever they have more than ``most`` entries."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.5, size=(40, 30)).astype(float))
    topics, start = np.asfortranarray(rng.dirichlet(np.ones(30), size=5)), rng.dirichlet(np.ones(5), size=40)
    monkeypatch.setattr(streamed, "BLOCK", 7)
    monkeypatch.setattr("swiftem.topics.compute.corpus.MOST_ENTRIES", most)
    found = [start.copy(), start.copy()]
    blocks = streamed.StreamedDocuments(CsrDocuments(X))
    sums, value = blocks.em_pass(found[0], topics, np.full(5, 0.1))
    expected, log_likelihood = Documents(X).em_pass(found[1], topics, np.full(5, 0.1))
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    np.testing.assert_array_equal(*found)
    assert value == pytest.approx(log_likelihood, rel=1e-12)


def test_tables_are_padded_rounded_and_have_no_tiny_numbers():
    spare, values = Documents(sp.csr_array((1, 1))), np.array([[0.1, 1e-24], [1e-26, 0.0], [np.nan, 1.0]])
    for _ in range(2):  # the second time in memory that was used before
        table = spare._table(values, np.float32)
        assert table.shape == (3, 16)
        np.testing.assert_array_equal(table[:, :2], np.float32([[0.1, 1e-24], [0, 0], [np.nan, 1]]))
        np.testing.assert_array_equal(table[:, 2:], 0.0)
        table[:] = 7.0
        spare._keep(table)
