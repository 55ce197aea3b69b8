"""Corpora cut into pieces."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.engine.documents import PIECES, Documents


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


def test_nothing_at_all():
    documents = Documents(sp.csr_array((2, 3)))
    topics = np.full((2, 3), 1 / 3)
    found, value = documents.fold_in(topics, np.array([1.0, 3.0]))
    np.testing.assert_allclose(found, [[0.25, 0.75]] * 2)
    np.testing.assert_array_equal(value, 0.0)
    counts, _ = documents.em_pass(found, topics, np.zeros(2))
    np.testing.assert_array_equal(counts, 0.0)
    np.testing.assert_allclose(found, 0.5)
