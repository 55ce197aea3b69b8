"""The E-step of a mixture with unit variances on a block of samples: matrix products around a softmax.

A block of b samples with its responsibilities for M components stays in cache. Its arrays are in a
:class:`Work`, one per thread.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.engine.numba.compile import fused, helper, kernel, summed
from swiftem.engine.numba.memory import multiply, vector

__all__ = [
    "Work",
    "add",
    "add_statistics",
    "begin",
    "copy",
    "e_step",
    "fill",
    "log_likelihood",
    "logits_of",
    "make_work",
    "normalise",
    "weigh",
]

LOWEST = -100.0
"""Logits are clipped here: the exponential then needs no branch, and no result is infinite or subnormal."""

NEGLIGIBLE = 1e-20
"""Smaller responsibilities are set to zero: subnormal numbers, also in float32, slow matrix products down."""

LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10

ROUND = 6755399441055744.0
"""1.5 · 2^52: adding it rounds to an integer, which is then in the lowest bits."""


class Work(NamedTuple):
    """Arrays for one block.

    Attributes
    ----------
    shifted, transposed : ndarray, shapes (M, d) and (d, M)
        Means minus the centre of the data.
    constant : ndarray, shape (M,)
        Added to the logits.
    samples : ndarray, shape (b, d)
        Samples minus the centre.
    rows : ndarray, shape (b, M)
        Logits, then exponentials, then responsibilities.
    largest, totals : ndarray, shape (b,)
        For the likelihood: largest logit, and sum of exponentials relative to it.
    sums1, sums2 : ndarray, shapes (M,) and (M, d)
        Statistics.
    """

    shifted: Any
    transposed: Any
    constant: Any
    samples: Any
    rows: Any
    largest: Any
    totals: Any
    sums1: Any
    sums2: Any


def make_work(b: int, n_components: int, d: int) -> Work:
    """Return arrays for blocks of up to ``b`` samples.

    >>> make_work(8, n_components=3, d=2).rows.shape
    (8, 3)
    """
    return Work(
        np.empty((n_components, d)), np.empty((d, n_components)), np.empty(n_components),
        np.empty((b, d)), np.empty((b, n_components)), np.empty(b), np.empty(b),
        np.empty(n_components), np.empty((n_components, d)),
    )  # fmt: skip


@fused
def exponentiate(values: Any) -> None:
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
def begin(weights: Any, means: Any, centre: Any, expanded: Any, work: Any) -> None:
    """Prepare for the parameters θ; weights need not sum to 1.

    The constants are log ω_m, minus ‖μ_m‖² / 2 if the squares are ``expanded``.
    """
    n_components, d = means.shape
    for m in range(n_components):
        square = 0.0
        for c in range(d):
            value = means[m, c] - centre[c]
            work.shifted[m, c] = value
            work.transposed[c, m] = value
            square += value * value
        work.constant[m] = math.log(weights[m]) if weights[m] > 0.0 else -math.inf
        if expanded:
            work.constant[m] -= 0.5 * square


@helper
def shift(logits: Any, constant: Any, largest: Any) -> None:
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
def copy(values: Any, into: Any) -> None:
    """Write ``values`` (N,) into another vector.

    ``into[:] = values`` takes seconds to compile: for the sentence about arrays of different shapes.
    """
    for i in range(len(into)):
        into[i] = values[i]


@helper
def fill(values: Any, value: Any) -> None:
    """Set all of ``values`` (N,) to ``value``: compiles faster than ``values[:] = value``."""
    for i in range(len(values)):
        values[i] = value


@helper
def add(values: Any, total: Any) -> None:
    """Add ``values`` (N,) to ``total`` (N,), or to nothing, (0,)."""
    for i in range(len(total)):
        total[i] += values[i]


@helper
def add_rows(rows: Any, sums: Any) -> None:
    """Write the sum of the rows of ``rows`` (b, M) into ``sums`` (M,)."""
    fill(sums, 0.0)
    for t in range(len(rows)):
        for m in range(rows.shape[1]):
            sums[m] += rows[t, m]


@helper
def logits_of(samples: Any, rows: Any, expanded: Any, work: Any) -> None:
    """Write the logits, without the constants, into ``rows`` (b, M).

    If squares are not ``expanded``, they are computed from differences: samples far from the centre would
    lose digits otherwise.
    """
    if expanded:
        multiply(samples, work.transposed, rows)
    else:
        for t in range(len(samples)):
            for m in range(rows.shape[1]):
                square = 0.0
                for c in range(samples.shape[1]):
                    difference = samples[t, c] - work.shifted[m, c]
                    square += difference * difference
                rows[t, m] = -0.5 * square


@helper
def e_step(samples: Any, rows: Any, expanded: Any, work: Any) -> None:
    """Write exponentials, relative to each sample's largest, into ``rows`` (b, M), and the largest logits.

    :func:`normalise` then gives (cexp).
    """
    logits_of(samples, rows, expanded, work)
    shift(rows, work.constant, work.largest)
    exponentiate(vector(rows))


@summed
def normalise(rows: Any, totals: Any) -> None:
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
def weigh(rows: Any, sample_weight: Any, index: Any, factor: Any) -> None:
    """Multiply row t by factor times the weight of sample ``index[t]``; ``sample_weight`` (0,): ones."""
    for t in range(len(rows)):
        scale = factor * sample_weight[index[t]] if len(sample_weight) else factor
        for m in range(rows.shape[1]):
            rows[t, m] *= scale


@helper
def add_statistics(samples: Any, rows: Any, sums1: Any, sums2: Any) -> None:
    """Write Σ_t rows_t into ``sums1`` (M,), Σ_t rows_t ⊗ samples_t into ``sums2`` (M, d). (condexp_gmm)."""
    add_rows(rows, sums1)
    multiply(rows.T, samples, sums2)


@kernel
def full_pass(
    y: Any, sample_weight: Any, weights: Any, means: Any, centre: Any, expanded: Any,
    memory: Any, work: Any, total1: Any, total2: Any,
) -> None:  # fmt: skip
    """Add the statistics of samples ``y`` (n, d) to ``total1`` (M,) and ``total2`` (M, d).

    The statistics are of samples minus the centre. Responsibilities go to ``memory`` (n, M) unless it is
    (0, M); its rounded values are used.
    """
    begin(weights, means, centre, expanded, work)
    block = len(work.rows)
    for first in range(0, len(y), block):
        size = min(block, len(y) - first)
        samples, rows = work.samples[:size], work.rows[:size]
        for t in range(size):
            for c in range(y.shape[1]):
                samples[t, c] = y[first + t, c] - centre[c]
        e_step(samples, rows, expanded, work)
        normalise(rows, work.totals)
        if len(memory):
            for t in range(size):
                for m in range(rows.shape[1]):
                    memory[first + t, m] = rows[t, m]
                    rows[t, m] = memory[first + t, m]
        if len(sample_weight):
            for t in range(size):
                for m in range(rows.shape[1]):
                    rows[t, m] *= sample_weight[first + t]
        add_statistics(samples, rows, work.sums1, work.sums2)
        add(work.sums1, total1)
        add(vector(work.sums2), vector(total2))


@kernel
def log_likelihood(
    y: Any, sample_weight: Any, weights: Any, means: Any, centre: Any, expanded: Any,
    work: Any,
) -> Any:  # fmt: skip
    """Return Σ weight · log g(y_t) over samples ``y`` (n, d)."""
    begin(weights, means, centre, expanded, work)
    block, d = len(work.rows), y.shape[1]
    constant = 0.5 * d * math.log(2.0 * math.pi)
    result = 0.0
    for first in range(0, len(y), block):
        size = min(block, len(y) - first)
        samples, rows = work.samples[:size], work.rows[:size]
        for t in range(size):
            for c in range(d):
                samples[t, c] = y[first + t, c] - centre[c]
        e_step(samples, rows, expanded, work)
        normalise(rows, work.totals)
        for t in range(size):
            value = work.largest[t] + math.log(work.totals[t]) - constant
            if expanded:
                for c in range(d):
                    value -= 0.5 * samples[t, c] * samples[t, c]
            result += value * sample_weight[first + t] if len(sample_weight) else value
    return result
