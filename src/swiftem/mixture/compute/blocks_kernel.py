"""The E-step of a mixture on a block of samples: two matrix products with a softmax in between.

Samples are columns, so that every loop except those of the products runs over the samples of a block, in
vector instructions. T(y) without its first entry, 1, is a (p, b) array: the centred samples, then their
squares. ``theta`` is a :class:`swiftem.mixture.components.Coefficients`, ``kind`` the code of a kind of
covariance, or −1 for features that are used as they are. Buffers are flat, so that blocks of every size are
contiguous.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import REORDERED, helper
from swiftem.kernels.memory import LINE, fma, load, matrix, multiply, plus, store, times, vector
from swiftem.kernels.memory import spread as repeat
from swiftem.kernels.softmax import LOWEST, NEGLIGIBLE, add, add_rows, exponentiate, fill
from swiftem.mixture.compute.covariance_kernel import raise_powers
from swiftem.mixture.compute.numpy import FARTHEST
from swiftem.mixture.covariance import TIED, UNIT

__all__ = [
    "Work",
    "add_squares",
    "add_statistics",
    "add_up",
    "e_step",
    "far_component",
    "make_work",
    "remember",
    "spread",
    "take",
]

NUMBERS = 49_152
"""Numbers per block that go through the second-level cache."""

TILE = 2 * LINE // 8
"""Samples that are whitened at a time: two cache lines."""

PRODUCT = 1_000_000
"""Up to this many multiplications OpenBLAS copies no arguments: 57 instead of 42 GFlop/s (measured)."""


class Work(NamedTuple):
    """Buffers for blocks of up to b samples, flat if their shape depends on the block.

    Attributes
    ----------
    samples : ndarray, size d·b
        Samples minus the centre, (d, b).
    powers : ndarray, size k·b
        T(y), (p, b), or a part of it, (k, b).
    logits, addends : ndarray, size M·b
        Logits (M, b), then exponentials; and the part of the logits from a part of T(y).
    rows : ndarray, size b·M
        Responsibilities (b, M).
    differences, whitened : ndarray, size d·b
        For squares of differences, (d, b) or (d, 16).
    largest, totals : ndarray, shape (b,)
        For the likelihood: largest logit, and sum of exponentials relative to it.
    extent : ndarray, shape (d,)
        Distance of a block's samples, and of the means, from the centre.
    sums1, sums2, sums3 : ndarray, shapes (M,), (p, M), (d, d) or (0, 0)
        A block's sums of r, r·T(y) and, for "tied", yyᵀ.
    """

    samples: Any
    powers: Any
    logits: Any
    addends: Any
    rows: Any
    differences: Any
    whitened: Any
    largest: Any
    totals: Any
    extent: Any
    sums1: Any
    sums2: Any
    sums3: Any


def make_work(p: int, n_components: int, d: int, with_products: bool = False) -> Work:
    """Return buffers for blocks of a size suitable for p entries of T(y); with products yyᵀ for "tied".

    The row length of a block is not a power of two of bytes: the transposed write of responsibilities takes
    three times as long at 4096.

    >>> len(make_work(152, n_components=20, d=16).largest)
    248
    """
    # Rows of a power of two of bytes would map to the same cache sets.
    b = min(max(NUMBERS // (min(p, 192) + 2 * n_components) // 64 * 64, 128), 512) - 8
    parts = -(-p // max(PRODUCT // (n_components * b), 64))
    k, products = -(-p // parts), d if with_products else 0
    return Work(
        np.empty(d * b),
        np.empty(k * b),
        np.empty(n_components * b),
        np.empty(n_components * b),
        np.empty(n_components * b),
        np.empty(d * b),
        np.empty(d * b),
        np.empty(b),
        np.empty(b),
        np.empty(d),
        np.empty(n_components),
        np.empty((p, n_components)),
        np.empty((products, products)),
    )


class Twin(NamedTuple):
    """An array of either precision: the other one has no rows.

    Kernels that take it are compiled once for both.
    """

    double: Any
    single: Any


def twin(array: Any) -> Twin:
    """Return an array (n, d) of float64 or float32 with an empty one of the other type.

    >>> [part.shape for part in twin(np.ones((3, 2), dtype=np.float32))]
    [(0, 2), (3, 2)]
    """
    is_double = array.dtype == np.float64
    empty = np.empty((0, array.shape[1]), dtype=np.float32 if is_double else np.float64)
    empty.flags.writeable = array.flags.writeable
    return Twin(array, empty) if is_double else Twin(empty, array)


@helper
def take(y: Any, first: Any, centre: Any, samples: Any) -> None:
    """Write rows of ``y``, a twin (n, d), from ``first`` on, minus the centre, as columns into (d, b)."""
    if len(y.double):
        _take(y.double, first, centre, samples)
    else:
        _take(y.single, first, centre, samples)


@helper
def _take(y: Any, first: Any, centre: Any, samples: Any) -> None:
    d, b = samples.shape
    for t in range(b):
        for c in range(d):
            samples[c, t] = y[first + t, c] - centre[c]


@helper
def spread(samples: Any, extent: Any) -> None:
    """Write the largest absolute values of the rows of ``samples`` (d, b) into ``extent`` (d,)."""
    for c in range(len(samples)):
        largest, line = 0.0, samples[c]
        for t in range(len(line)):
            size = abs(line[t])
            largest = size if size > largest else largest
        extent[c] = largest


@helper(fastmath=REORDERED)
def _square(factor: Any, extent: Any) -> Any:
    """Return the squared length of ``factor`` (d, d) times ``extent`` (d,), all in absolute values."""
    square = 0.0
    for i in range(len(extent)):
        reach = 0.0
        for j in range(len(extent)):
            reach += abs(factor[i, j]) * extent[j]
        square += reach * reach
    return square


@helper
def far_component(theta: Any, extent: Any, guess: Any) -> Any:
    """Return a component for which expanded squares of samples or means lose digits, or −1 if there is none.

    Bounds ‖U_mᵀ y‖² for all y within ``extent`` (d,) of the centre, in each direction, or as far as a mean;
    ``extent`` is enlarged to include the means. ``guess``, if it is not −1, is looked at first.
    """
    n_components, d = theta.means.shape
    for m in range(n_components):
        for c in range(d):
            extent[c] = max(extent[c], abs(theta.means[m, c]))
    count = max(len(theta.whiten), len(theta.scales))
    for place in range(-1, count):
        m = guess if place < 0 else place
        if m < 0:
            continue
        square = 0.0
        if len(theta.whiten):
            square = _square(theta.whiten[m], extent)
        else:
            for c in range(d):
                reach = theta.scales[m, c] * extent[c]
                square += reach * reach
        if not square <= FARTHEST:
            return m
    return -1


@helper
def add_squares(lines: Any, sums: Any) -> None:
    """Subtract half the squares of ``lines`` (d, b), summed over d, from ``sums`` (b,)."""
    for c in range(len(lines)):
        line = lines[c]
        for t in range(len(sums)):
            sums[t] -= 0.5 * line[t] * line[t]


@helper
def _whiten(tile: Any, theta: Any, differences: Any, squares: Any) -> None:
    """Write the squared lengths of the whitened differences of ``tile`` (d, 16) into ``squares`` (M, 16).

    Two rows of U_mᵀ, which is lower triangular, at a time: four sums, which stay in registers. The products
    of matrices as small as these take 1.7 times as long. ``differences`` is a buffer (d, 16).
    """
    d, zero = len(tile), repeat(tile, 0.0)
    for m in range(len(squares)):
        left, right = zero, zero
        for c in range(d):
            mean = repeat(tile, -theta.means[m, c])
            x, y = plus(load(tile, c, 0), mean), plus(load(tile, c, 1), mean)
            if len(theta.scales):
                scale = repeat(tile, theta.scales[m, c])
                x, y = times(scale, x), times(scale, y)
                left, right = fma(x, x, left), fma(y, y, right)
            store(differences, c, 0, x)
            store(differences, c, 1, y)
        if len(theta.whiten):
            factor = theta.whiten[min(m, len(theta.whiten) - 1)]
            if d % 2:
                u = repeat(tile, factor[0, 0])
                x, y = times(u, load(differences, 0, 0)), times(u, load(differences, 0, 1))
                left, right = times(x, x), times(y, y)
            for i in range(d % 2, d, 2):
                a, b, e, f = zero, zero, zero, zero
                for j in range(i + 2):
                    x, y = load(differences, j, 0), load(differences, j, 1)
                    u, v = repeat(tile, factor[i, j]), repeat(tile, factor[i + 1, j])
                    a, b, e, f = fma(u, x, a), fma(u, y, b), fma(v, x, e), fma(v, y, f)
                left, right = fma(e, e, fma(a, a, left)), fma(f, f, fma(b, b, right))
        store(squares, m, 0, left)
        store(squares, m, 1, right)


@helper
def _differences(samples: Any, theta: Any, work: Any, logits: Any) -> None:
    """Write minus half the squares of the whitened differences y − μ_m into ``logits`` (M, b)."""
    d, b = samples.shape
    tile, differences = matrix(work.differences, d, TILE), matrix(work.whitened, d, TILE)
    squares = matrix(work.addends, len(logits), TILE)
    for first in range(0, b, TILE):
        size = min(TILE, b - first)
        for c in range(d):
            for t in range(size):
                tile[c, t] = samples[c, first + t]
            for t in range(size, TILE):
                tile[c, t] = 0.0
        _whiten(tile, theta, differences, squares)
        for m in range(len(logits)):
            for t in range(size):
                logits[m, first + t] = -0.5 * squares[m, t]


@helper
def _softmax(logits: Any, constant: Any, largest: Any, totals: Any, rows: Any) -> None:
    """Write the softmax over m of ``logits`` (M, b) + ``constant`` (M,) into ``rows`` (b, M).

    The largest logits and the sums of exponentials go to ``largest`` and ``totals``, (b,).
    """
    n_components, b = logits.shape
    fill(largest, -math.inf)
    for m in range(n_components):
        line, shift = logits[m], constant[m]
        for t in range(b):
            value = line[t] + shift
            line[t] = value
            largest[t] = value if value > largest[t] else largest[t]
    for m in range(n_components):
        line = logits[m]
        for t in range(b):
            value = line[t] - largest[t]
            line[t] = value if value > LOWEST else LOWEST
    exponentiate(vector(logits))
    fill(totals, 0.0)
    for m in range(n_components):
        line = logits[m]
        for t in range(b):
            totals[t] += line[t]
    for t in range(b):
        inverse = 1.0 / totals[t]
        for m in range(n_components):
            value = logits[m, t] * inverse
            rows[t, m] = value if value > NEGLIGIBLE else 0.0


@helper
def e_step(kind: Any, samples: Any, theta: Any, near: Any, work: Any, rows: Any) -> None:
    """Write the responsibilities of ``samples`` (d, b) into ``rows`` (b, M).

    If they are ``near``, squares are expanded: the largest logits of "tied" then lack −½ yᵀPy, and
    ``work.powers`` has T(y) if it has room for all of it.
    """
    (p, n_components), b = theta.phi.shape, samples.shape[1]
    logits = matrix(work.logits, n_components, b)
    constant = theta.constant
    if near:
        size = len(work.powers) // len(work.largest)
        addends = matrix(work.addends, n_components, b)
        for first in range(0, p, size):
            k = min(size, p - first)
            powers = matrix(work.powers, k, b)
            raise_powers(kind, samples, first, powers)
            multiply(theta.phi[first : first + k].T, powers, addends if first else logits)
            if first:
                add(vector(addends), vector(logits))
    else:
        _differences(samples, theta, work, logits)
        constant = theta.plain
    _softmax(logits, constant, work.largest[:b], work.totals[:b], rows)
    if near and kind == UNIT:  # φ omits the square, which is common to all components
        add_squares(samples, work.largest[:b])


@helper
def add_up(rows: Any, totals: Any) -> None:
    """Write the sum of each row of ``rows`` (b, M) into ``totals`` (b,)."""
    for t in range(len(rows)):
        total = 0.0
        for m in range(rows.shape[1]):
            total += rows[t, m]
        totals[t] = total


@helper
def add_statistics(kind: Any, samples: Any, rows: Any, is_raised: Any, with_products: Any, work: Any) -> None:
    """Write Σ_t rows_t and T(y_t)·rows_t into ``work.sums``; for "tied" also yyᵀ times ``work.totals``."""
    add_rows(rows, work.sums1)
    (d, b), p = samples.shape, len(work.sums2)
    size = len(work.powers) // len(work.largest)
    for first in range(0, p, size):
        k = min(size, p - first)
        powers = matrix(work.powers, k, b)
        if not (is_raised and size >= p):
            raise_powers(kind, samples, first, powers)
        multiply(powers, rows, work.sums2[first : first + k])
    if kind == TIED and with_products:
        weighted = matrix(work.differences, d, b)
        for c in range(d):
            for t in range(b):
                weighted[c, t] = samples[c, t] * work.totals[t]
        multiply(weighted, samples.T, work.sums3)


@helper
def remember(rows: Any, first: Any, memory: Any) -> None:
    """Write ``rows`` (b, M) into the memory, from ``first`` on, and replace them by its rounded values."""
    for t in range(len(rows)):
        for m in range(rows.shape[1]):
            memory[first + t, m] = rows[t, m]
            rows[t, m] = memory[first + t, m]
