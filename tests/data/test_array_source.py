import numpy as np
import pytest

from swiftem.data import ArraySource

Y = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize("rows", [1, 3, 10, 99])
@pytest.mark.parametrize("weight", [None, np.arange(10) % 3])
def test_blocks_hold_every_row_once_in_order(rows, weight):
    source = ArraySource(Y, weight)
    there = slice(None) if weight is None else weight > 0
    blocks = list(source.blocks(rows))
    assert max(len(block.y) for block in blocks) <= rows
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), Y[there])
    expected = np.ones(10) if weight is None else weight[there]
    np.testing.assert_array_equal(np.concatenate([block.weight for block in blocks]), expected)
    np.testing.assert_array_equal(np.concatenate([block.index for block in blocks]), np.arange(source.n))


def test_take_repeats():
    batch = ArraySource(Y, np.arange(1.0, 11.0)).take(np.array([3, 0, 3]))
    np.testing.assert_array_equal(batch.y, Y[[3, 0, 3]])
    np.testing.assert_array_equal(batch.weight, [4, 1, 4])
    np.testing.assert_array_equal(batch.index, [3, 0, 3])


def test_rows_of_weight_zero_are_not_numbered():
    source = ArraySource(Y, [0, 1, 0, 2, *[0] * 6])
    assert (source.n, source.total_weight) == (2, 3.0)
    np.testing.assert_array_equal(source.take(np.array([1])).y, Y[[3]])


def test_counts():
    source = ArraySource(Y)
    assert (source.n, source.total_weight, source.access) == (10, 10.0, "random")


@pytest.mark.parametrize("weight", [None, np.ones(10)])
def test_data_are_not_copied(weight):
    """They may be a memory map larger than the memory."""
    assert np.shares_memory(ArraySource(Y, weight).y, Y)
    assert next(ArraySource(Y, weight).blocks(4)).y.base is not None


def test_fingerprint():
    fingerprints = {
        ArraySource(y, weight).fingerprint()
        for y, weight in [
            (Y, None),
            (Y + 1, None),
            (Y[:, :1], None),
            (Y.reshape(5, 4), None),
            (Y, np.arange(1, 11)),
        ]
    }
    assert len(fingerprints) == 5
    assert ArraySource(Y).fingerprint() == ArraySource(np.asfortranarray(Y)).fingerprint()
    assert ArraySource(Y).fingerprint() == ArraySource(np.repeat(Y, 2, axis=0)[::2]).fingerprint()


@pytest.mark.parametrize("n", [4096, 4097, 8192, 10_000])
def test_a_fingerprint_has_every_row(n):
    """Rows are hashed in pieces; the last one may be short."""
    rows, weight = np.zeros((n, 2)), np.ones(n)
    found = {ArraySource(rows, weight).fingerprint()}
    for place in (0, n // 2, n - 1):
        other = rows.copy()
        other[place, 1] = 1.0
        found.add(ArraySource(other, weight).fingerprint())
        heavier = weight.copy()
        heavier[place] = 2.0
        found.add(ArraySource(rows, heavier).fingerprint())
    assert len(found) == 7
