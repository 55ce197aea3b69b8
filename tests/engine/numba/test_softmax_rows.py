"""The softmax of rows and what methods do with it, in tiles, against the equation in NumPy."""

import numba
import numpy as np
import pytest

from swiftem.engine.numba.gaussian_batches import ANCHOR, MEMORY, NOTHING
from swiftem.engine.numba.lines.softmax_rows import TILE, change

KERNEL = numba.njit(lambda *given: change(*given), error_model="numpy")
NONE = np.empty(0)


def softmax(logits):
    """Return the softmax of each row, without what is negligible."""
    found = np.exp(np.maximum(logits - logits.max(axis=1, keepdims=True), -100.0))
    found /= found.sum(axis=1, keepdims=True)
    return np.where(found > 1e-20, found, 0.0)


def reference(logits, olds, index, memory, kind, renew, correction, weight):
    """Return the changes (b, M); renew the memory, sample by sample."""
    rows = softmax(logits)
    for t, i in enumerate(index):
        old = memory[i].astype(np.float64)
        if renew:
            memory[i] = rows[t]
            rows[t] = memory[i] - old
        elif kind == MEMORY:
            rows[t] -= correction * old
        elif kind == ANCHOR:
            rows[t] -= correction * olds[t]
    return rows * weight[index, None]


@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("kind", "renew"), [(NOTHING, False), (ANCHOR, False), (MEMORY, False), (NOTHING, True), (MEMORY, True)]
)
@pytest.mark.parametrize("M", [1, 3, 7, 8, 9, 15, 16, 32, 43, TILE + 1])
def test_same_as_the_equation(M, kind, renew, dtype, weighted):
    """For rows of every remainder, the last tile shorter than others, and samples that are repeated."""
    rng = np.random.default_rng(M)
    b, n = 2 * max(TILE // M, 1) + 5, 40
    index = rng.integers(n, size=b)
    index[1] = index[0]
    rows, constant = 3.0 * rng.normal(size=(b, M)), rng.normal(size=M)
    constant[0] = -np.inf if M > 1 else 0.0
    olds, memory = rng.dirichlet(np.ones(M), size=b), rng.dirichlet(np.ones(M), size=n).astype(dtype)
    sample_weight = rng.random(n) + 0.1 if weighted else NONE
    before, kept = memory.copy(), memory.copy()
    weight = 0.3 * (sample_weight if weighted else np.ones(n))
    expected = reference(rows + constant, olds, index, kept, kind, renew, 0.7, weight)
    sums = np.full(M, np.nan)
    KERNEL(rows, constant, olds, index, memory, kind, renew, 0.7, sample_weight, 0.3, sums)
    rounding = 1e-12 if dtype == np.float64 or not renew else 2e-7
    np.testing.assert_allclose(memory, kept, rtol=rounding, atol=0.0)
    np.testing.assert_allclose(rows, expected, rtol=0.0, atol=rounding)
    if renew:  # the changes are those of the stored values
        changes = np.zeros((n, M))
        np.add.at(changes, index, rows / weight[index, None])
        np.testing.assert_allclose(changes, memory.astype(float) - before, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(sums, rows.sum(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("place", [0, 7, 8, 15, 16, 18])
def test_rows_that_are_far_from_their_largest(place):
    """Logits are cut off at −100, small shares are zero, and no logit is too large, in every place."""
    logits = np.full((3, 19), -1e6)
    logits[0, place] = 1e6
    logits[1, :] = -np.inf
    logits[1, place] = -700.0
    logits[2, :] = -45.0
    logits[2, place] = 0.0
    expected, sums = softmax(logits.copy()), np.empty(19)
    index, memory = np.arange(3), np.empty((0, 19))
    KERNEL(logits, np.zeros(19), logits, index, memory, NOTHING, False, 1.0, NONE, 1.0, sums)
    np.testing.assert_allclose(logits, expected, rtol=1e-12, atol=0.0)
    assert np.count_nonzero(logits[2]) == 19
    assert np.count_nonzero(logits[:2]) == 2


@pytest.mark.parametrize("place", [0, 8, 10])
def test_no_number_is_no_share(place):
    """A logit that is not a number leaves no share in its row, as in passes, and changes no other row."""
    logits = np.zeros((2, 11))
    logits[1, place] = np.nan
    index, memory = np.arange(2), np.empty((0, 11))
    KERNEL(logits, np.zeros(11), logits, index, memory, NOTHING, False, 1.0, NONE, 1.0, np.empty(11))
    np.testing.assert_allclose(logits, [[1 / 11] * 11, [0.0] * 11])
