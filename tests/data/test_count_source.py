import helpers
import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import CountSource

COUNTS = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 1, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize("rows", [1, 3, 99])
def test_blocks_hold_every_token_in_order(rows):
    source = CountSource(sp.csr_array(COUNTS))
    blocks = list(source.blocks(rows))
    assert max(len(block.y) for block in blocks) <= rows
    tokens = np.concatenate([block.y for block in blocks])
    np.testing.assert_array_equal(tokens, np.column_stack(helpers.tokens_of(COUNTS)))
    np.testing.assert_array_equal(np.concatenate([block.index for block in blocks]), np.arange(8))


def test_sizes():
    source = CountSource(sp.csr_array(COUNTS))
    sizes = (source.n, source.n_documents, source.n_words, source.total_weight, source.access)
    assert sizes == (8, 4, 4, 8.0, "random")


def test_take_repeats():
    batch = CountSource(sp.csr_array(COUNTS)).take(np.array([7, 0, 0, 3]))
    assert batch.y.tolist() == [[3, 3], [0, 1], [0, 1], [2, 0]]
    assert batch.weight.tolist() == [1, 1, 1, 1]


def test_weights_of_documents():
    source = CountSource(sp.csr_array(COUNTS), [2.0, 5.0, 0.0, 0.5])
    assert (source.n, source.total_weight) == (4, 6.5)
    batch = source.take(np.arange(4))
    assert batch.y.tolist() == [[0, 1], [0, 1], [0, 3], [3, 3]]
    assert batch.weight.tolist() == [2, 2, 2, 0.5]


def test_fractions_are_weights():
    source = CountSource(sp.csr_array(COUNTS / 2), [2.0, 1.0, 1.0, 0.5])
    assert (source.n, source.total_weight) == (5, 5.25)
    batch = source.take(np.arange(5))
    assert batch.y.tolist() == [[0, 1], [0, 3], [2, 0], [2, 2], [3, 3]]
    assert batch.weight.tolist() == [2.0, 1.0, 1.5, 0.5, 0.25]


def test_whole_floats_are_tokens():
    assert CountSource(sp.csr_array(COUNTS.astype(float))).n == 8


def test_stored_zeros_are_no_tokens():
    matrix = sp.csr_array((np.array([1, 0, 2]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert CountSource(matrix).take(np.arange(3)).y.tolist() == [[0, 0], [1, 1], [1, 1]]
    fractions = CountSource(matrix * 0.25)
    assert fractions.n == 2
    assert fractions.take(np.arange(2)).y.tolist() == [[0, 0], [1, 1]]


def test_duplicates_add_up():
    """Also beyond what their type can hold."""
    for dtype in (np.int64, np.int8, np.uint8):
        values = np.array([100, 100, 100], dtype=dtype)
        matrix = sp.csr_array((values, np.array([1, 1, 1]), np.array([0, 3])), shape=(1, 2))
        source = CountSource(matrix)
        assert source.n == 300
        assert matrix.nnz == 3  # the caller's matrix is as it was


def test_large_counts_cost_no_memory():
    source = CountSource(sp.csr_array(np.array([[10**12, 1]])))
    assert source.n == 10**12 + 1
    assert source.take(np.array([10**12 - 1, 10**12])).y.tolist() == [[0, 0], [0, 1]]


def test_fingerprint():
    sources = [
        CountSource(sp.csr_array(COUNTS)),
        CountSource(sp.csr_array(COUNTS * 2)),
        CountSource(sp.csr_array(COUNTS / 2)),
        CountSource(sp.csr_array(COUNTS), [1, 1, 1, 2]),
        CountSource(sp.csr_array(np.pad(COUNTS, (0, 1)))),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)
    assert CountSource(sp.coo_array(COUNTS)).fingerprint() == sources[0].fingerprint()
