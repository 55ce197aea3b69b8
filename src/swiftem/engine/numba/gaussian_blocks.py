"""Gaussian mixtures with covariances on blocks of samples: two matrix products with a softmax in between.

Samples are columns, so that every loop except those of the products runs over the samples of a block, in
vector instructions. T(y) without its first entry, 1, is a (p, b) array: the centred samples, then their
squares. ``theta`` is a :class:`swiftem.models.covariance.Coefficients`, ``kind`` the code of a kind of
covariance. Buffers are flat, so that blocks of every size are contiguous.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.engine.numba.compile import helper
from swiftem.engine.numba.memory import matrix, multiply, vector
from swiftem.engine.numba.softmax import LOWEST, NEGLIGIBLE, add, add_rows, copy, exponentiate, fill

__all__ = [
    "Work",
    "add_squares",
    "add_statistics",
    "add_up",
    "columns",
    "e_step",
    "is_near",
    "make_work",
    "raise_powers",
    "remember",
    "spread",
    "take",
]

FULL, TIED, DIAG, SPHERICAL, LINEAR = 0, 1, 2, 3, 4
"""Entries of T(y) in addition to 1: y and all products; y; y and squares; y and the sum of squares; y alone.

The products of "tied", which are common to all components, are separate."""

FARTHEST = 2.5e5
"""Squared distance, in standard deviations, up to which expanded squares keep ten digits of a logit."""

NUMBERS = 49_152
"""Numbers per block that go through the second-level cache."""

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
        For squares of differences, (d, b).
    largest, totals : ndarray, shape (b,)
        For the likelihood: largest logit, and sum of exponentials relative to it.
    extent : ndarray, shape (d,)
        Distance of a block's samples, and of the means, from the centre.
    sums1, sums2, sums3 : ndarray, shapes (M,), (p, M), (d, d)
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


def columns(kind: int, d: int) -> int:
    """Return p, the number of entries of T(y) without 1 (for "tied": and without squares).

    >>> columns(FULL, 16), columns(TIED, 16), columns(DIAG, 16), columns(SPHERICAL, 16)
    (152, 16, 32, 17)
    """
    return {FULL: d + d * (d + 1) // 2, TIED: d, DIAG: 2 * d, SPHERICAL: d + 1, LINEAR: d}[kind]


def make_work(kind: int, n_components: int, d: int) -> Work:
    """Return buffers for blocks of a size suitable for these numbers.

    The row length of a block is not a power of two of bytes: the transposed write of responsibilities takes
    three times as long at 4096.

    >>> len(make_work(FULL, n_components=20, d=16).largest)
    248
    """
    p = columns(kind, d)
    # Rows of a power of two of bytes would map to the same cache sets.
    b = min(max(NUMBERS // (min(p, 192) + 2 * n_components) // 64 * 64, 128), 512) - 8
    parts = -(-p // max(PRODUCT // (n_components * b), 64))
    k = -(-p // parts)
    return Work(
        np.empty(d * b), np.empty(k * b), np.empty(n_components * b), np.empty(n_components * b),
        np.empty(n_components * b), np.empty(d * b), np.empty(d * b), np.empty(b), np.empty(b), np.empty(d),
        np.empty(n_components), np.empty((p, n_components)), np.empty((d, d)),
    )  # fmt: skip


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
def raise_powers(kind: Any, samples: Any, first: Any, powers: Any) -> None:
    """Write entries of T(y), from ``first`` on, into ``powers`` (k, b)."""
    d, b = samples.shape
    i = j = 0
    if first > d and kind == FULL:
        while (i + 1) * (i + 2) // 2 <= first - d:
            i += 1
        j = first - d - i * (i + 1) // 2
    for place in range(len(powers)):
        entry, line = first + place, powers[place]
        if entry < d:
            copy(samples[entry], line)
        elif kind == SPHERICAL:
            fill(line, 0.0)
            for c in range(d):
                one = samples[c]
                for t in range(b):
                    line[t] += one[t] * one[t]
        else:
            if kind == DIAG:
                i = j = entry - d
            one, other = samples[i], samples[j]
            for t in range(b):
                line[t] = one[t] * other[t]
            j += 1
            if j > i:
                i, j = i + 1, 0


@helper
def spread(samples: Any, extent: Any) -> None:
    """Write the largest absolute values of the rows of ``samples`` (d, b) into ``extent`` (d,)."""
    for c in range(len(samples)):
        largest, line = 0.0, samples[c]
        for t in range(len(line)):
            size = abs(line[t])
            largest = size if size > largest else largest
        extent[c] = largest


@helper
def is_near(theta: Any, extent: Any) -> Any:
    """Tell whether expanded squares of samples and means keep enough digits.

    Bounds ‖U_mᵀ y‖² for all y within ``extent`` (d,) of the centre, in each direction, or as far as a mean;
    ``extent`` is enlarged to include the means.
    """
    n_components, d = theta.means.shape
    for m in range(n_components):
        for c in range(d):
            extent[c] = max(extent[c], abs(theta.means[m, c]))
    for m in range(max(len(theta.whiten), len(theta.scales))):
        square = 0.0
        for i in range(d):
            reach = 0.0
            if len(theta.whiten):
                for j in range(i + 1):
                    reach += abs(theta.whiten[m, i, j]) * extent[j]
            else:
                reach = theta.scales[m, i] * extent[i]
            square += reach * reach
        if not square <= FARTHEST:
            return False
    return True


@helper
def add_squares(lines: Any, sums: Any) -> None:
    """Subtract half the squares of ``lines`` (d, b), summed over d, from ``sums`` (b,)."""
    for c in range(len(lines)):
        line = lines[c]
        for t in range(len(sums)):
            sums[t] -= 0.5 * line[t] * line[t]


@helper
def _differences(samples: Any, theta: Any, differences: Any, whitened: Any, logits: Any) -> None:
    """Write minus half the squares of the whitened differences y − μ_m into ``logits`` (M, b).

    ``differences`` and ``whitened`` are buffers (d, b).
    """
    d, b = samples.shape
    fill(vector(logits), 0.0)
    for m in range(len(logits)):
        for c in range(d):
            scale = theta.scales[m, c] if len(theta.scales) else 1.0
            for t in range(b):
                differences[c, t] = (samples[c, t] - theta.means[m, c]) * scale
        if len(theta.whiten):
            multiply(theta.whiten[min(m, len(theta.whiten) - 1)], differences, whitened)
            add_squares(whitened, logits[m])
        else:
            add_squares(differences, logits[m])


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

    If they are ``near``, squares are expanded: the logits of "tied" then lack −½ yᵀPy, and ``work.powers``
    has T(y) if it has room for all of it.
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
        d = len(samples)
        _differences(samples, theta, matrix(work.differences, d, b), matrix(work.whitened, d, b), logits)
        constant = theta.plain
    _softmax(logits, constant, work.largest[:b], work.totals[:b], rows)


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
