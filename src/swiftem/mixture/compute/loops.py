"""The softmax, products and loops over vectors, which compile faster than NumPy's expressions."""

from __future__ import annotations

import math

import numpy as np

from swiftem.core.types import Array
from swiftem.kernels.compile import FUSED, REORDERED, helper
from swiftem.kernels.vector import vector

LOWEST = -100.0
"""Logits are clipped here: the exponential then needs no branch, and no result is infinite or subnormal."""

NEGLIGIBLE = 1e-20
"""Smaller responsibilities are set to zero: subnormal numbers, also in float32, slow matrix products down."""

LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10

ROUND = 6755399441055744.0
"""1.5 · 2^52: adding it rounds to an integer, which is then in the lowest bits."""


@helper(fastmath=FUSED)
def exponentiate(values: Array) -> None:
    """Replace ``values`` (N,), from −100 to 0, by their exponentials, to 2 units in the last place.

    Plain arithmetic without a branch, which compiles to vector instructions; the exponential of the C
    library, which Numba calls, computes one number at a time. NumPy's computes eight, but a pass that returns
    to Python between its steps holds the interpreter's lock: two threads are then 1.3 times as fast as one,
    instead of 1.8 times. exp(x) = 2^k exp(r) with |r| ≤ ln 2 / 2; a polynomial gives exp(r).
    """
    for m in range(len(values)):
        x = values[m]
        k = x * LOG2_E + ROUND
        bits = (np.float64(k).view(np.int64) + 1023) << 52  # the integer k as the exponent of a float64
        k -= ROUND
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        values[m] = (p * r + 1.0) * np.int64(bits).view(np.float64)


@helper
def shift(logits: Array, constant: Array, largest: Array) -> None:
    """Add ``constant`` (M,) to the rows of ``logits`` (b, M) and subtract each row's ``largest`` (b,)."""
    for t in range(len(logits)):
        top = logits[t, 0] + constant[0]
        for m in range(logits.shape[1]):
            value = logits[t, m] + constant[m]
            logits[t, m] = value
            top = max(top, value)
        largest[t] = top
        for m in range(logits.shape[1]):
            logits[t, m] = max(logits[t, m] - top, LOWEST)


@helper
def copy(values: Array, into: Array) -> None:
    """Write ``values`` (N,) into another vector.

    Avoids ``into[:] = values``: Numba spends seconds compiling its shape check.
    """
    for i in range(len(into)):
        into[i] = values[i]


@helper
def fill(values: Array, value: float) -> None:
    """Set all of ``values`` (N,) to ``value``: compiles faster than ``values[:] = value``."""
    for i in range(len(values)):
        values[i] = value


@helper
def add(values: Array, total: Array) -> None:
    """Add ``values`` (N,) to ``total`` (N,), or to nothing, (0,)."""
    for i in range(len(total)):
        total[i] += values[i]


@helper
def add_rows(rows: Array, sums: Array) -> None:
    """Write the sum of the rows of ``rows`` (b, M) into ``sums`` (M,)."""
    fill(sums, 0.0)
    for t in range(len(rows)):
        for m in range(rows.shape[1]):
            sums[m] += rows[t, m]


@helper
def softmax_rows(logits: Array, constant: Array, largest: Array, totals: Array) -> None:
    """Replace ``logits`` (b, M) by the softmax of each row, with ``constant`` (M,) added.

    The largest logits and the sums of exponentials go to ``largest`` and ``totals``, (b,).
    """
    shift(logits, constant, largest)
    exponentiate(vector(logits))
    normalise(logits, totals)


@helper(fastmath=REORDERED)
def normalise(rows: Array, totals: Array) -> None:
    """Divide the rows of ``rows`` (b, M) by their sums, which go to ``totals`` (b,)."""
    for t in range(len(rows)):
        total = 0.0
        for m in range(rows.shape[1]):
            total += rows[t, m]
        totals[t] = total
        inverse = 1.0 / total
        for m in range(rows.shape[1]):
            value = rows[t, m] * inverse
            rows[t, m] = value if value > NEGLIGIBLE else 0.0


@helper
def multiply(x: Array, y: Array, out: Array) -> None:
    """Write the product of ``x`` (m, k) and ``y`` (k, n), in C order or transposed, into ``out`` (m, n)."""
    np.dot(x, y, out)


@helper
def softmax_columns(logits: Array, constant: Array, largest: Array, totals: Array, rows: Array) -> None:
    """Write the softmax over m of ``logits`` (M, b) + ``constant`` (M,) into ``rows`` (b, M).

    The largest logits and the sums of exponentials go to ``largest`` and ``totals``, (b,).
    """
    n_components, b = logits.shape
    fill(largest, -math.inf)
    for m in range(n_components):
        line, addend = logits[m], constant[m]
        for t in range(b):
            value = line[t] + addend
            line[t] = value
            largest[t] = value if value > largest[t] else largest[t]
    for m in range(n_components):
        line = logits[m]
        for t in range(b):
            value = line[t] - largest[t]
            line[t] = value if value > LOWEST else LOWEST
    exponentiate(vector(logits))
    add_rows(logits, totals)
    for t in range(b):
        inverse = 1.0 / totals[t]
        for m in range(n_components):
            value = logits[m, t] * inverse
            rows[t, m] = value if value > NEGLIGIBLE else 0.0
