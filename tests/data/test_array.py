"""Arrays as sources: which rows are numbered, what is copied, and what a fingerprint distinguishes.

Blocks and ``take`` are checked by the contract, tests/contracts/test_sources.py.
"""

import helpers
import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import ArraySource, CountSource, TokenSource, as_source

Y = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([1.0, 2.0], ArraySource),
        (np.ones((3, 2)), ArraySource),
        ([[1, 2], [3, 4]], ArraySource),
        (sp.csr_array([[1, 2]]), CountSource),
        (sp.coo_matrix([[1, 2]]), CountSource),
        (sp.dok_array(np.array([[1, 2]])), CountSource),
        (([0, 1], [1, 0]), TokenSource),
        ((np.array([0, 1]), [1, 0]), TokenSource),
    ],
)
def test_kinds_of_data(data, kind):
    assert type(as_source(data)) is kind


@pytest.mark.parametrize(
    "source", [ArraySource([1.0]), CountSource(sp.csr_array([[1]])), helpers.SequentialSource([1.0])]
)
def test_a_source_is_returned_as_it_is(source):
    assert as_source(source) is source


def test_sample_weight_is_passed_on():
    for data, total in [([1.0, 2.0], 3.0), (sp.csr_array([[2], [1]]), 4.0), (([0, 1], [1, 0]), 3.0)]:
        assert as_source(data, [1.0, 2.0]).total_weight == total


def test_rows_of_weight_zero_are_not_numbered():
    source = ArraySource(Y, [0, 1, 0, 2, *[0] * 6])
    assert (source.n, source.total_weight) == (2, 3.0)
    np.testing.assert_array_equal(source.take(np.array([1])).y, Y[[3]])


@pytest.mark.parametrize("weight", [None, np.ones(10)])
def test_data_are_not_copied(weight):
    """They may be a memory map larger than the memory."""
    assert np.shares_memory(ArraySource(Y, weight).y, Y)
    assert next(ArraySource(Y, weight).blocks(4)).y.base is not None


def test_fingerprint():
    given = [(Y, None), (Y + 1, None), (Y[:, :1], None), (Y.reshape(5, 4), None), (Y, np.arange(1, 11))]
    assert len({ArraySource(y, weight).fingerprint() for y, weight in given}) == len(given)
    for same in (np.asfortranarray(Y), np.repeat(Y, 2, axis=0)[::2]):
        assert ArraySource(Y).fingerprint() == ArraySource(same).fingerprint()


@pytest.mark.parametrize("n", [4096, 4097, 8192, 10_000])
def test_a_fingerprint_has_every_row(n):
    """Rows are hashed in pieces; the last one may be short."""
    rows, weight = np.zeros((n, 2)), np.ones(n)
    found = {ArraySource(rows, weight).fingerprint()}
    for place in (0, n // 2, n - 1):
        other, heavier = rows.copy(), weight.copy()
        other[place, 1], heavier[place] = 1.0, 2.0
        found |= {ArraySource(other, weight).fingerprint(), ArraySource(rows, heavier).fingerprint()}
    assert len(found) == 7
