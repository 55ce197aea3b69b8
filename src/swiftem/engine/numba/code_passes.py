"""Mixtures with columns of codes: full passes, E-steps and statistics of many samples, block by block.

Indicators of codes are never formed. With codes k_1, k_2, ... of a sample, its logits are
T(y)·φ + table[k_1] + table[k_2] + ... + c, and its responsibilities are added to rows k_1, k_2, ... of the
sums: the cost does not depend on the number of levels. A block is processed column by column, so that a
column's part of the table stays in a cache.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.engine.numba.compile import helper, kernel
from swiftem.engine.numba.gaussian_blocks import remember
from swiftem.engine.numba.memory import multiply, vector
from swiftem.engine.numba.softmax import add, add_rows, copy, exponentiate, fill, normalise, shift

__all__ = ["Work", "evaluate", "full_pass", "make_work", "statistics"]

NEAR, FAR = 16_384, 65_536
"""Responsibilities per block, for small and for large tables: both fit into a cache."""
LARGE = 32_768
"""Number of entries from which a table is large."""


class Work(NamedTuple):
    """Arrays for one block of b samples.

    Attributes
    ----------
    rows : ndarray, shape (b, M)
        Logits, then exponentials, then responsibilities.
    largest, totals : ndarray, shape (b,)
        For the likelihood: largest logit, and sum of exponentials relative to it.
    sums1, sums2 : ndarray, shapes (M,) and (p, M)
        A block's sums of r and r·T(y).
    """

    rows: Any
    largest: Any
    totals: Any
    sums1: Any
    sums2: Any


def make_work(n_components: int, p: int, levels: int) -> Work:
    """Return arrays for blocks of a size suitable for these numbers.

    >>> make_work(n_components=32, p=2, levels=10).rows.shape
    (512, 32)
    """
    b = max(64, (FAR if levels * n_components > LARGE else NEAR) // n_components)
    return Work(
        np.empty((b, n_components)), np.empty(b), np.empty(b), np.empty(n_components),
        np.empty((p, n_components)),
    )  # fmt: skip


@helper
def gather(table: Any, codes: Any, first: Any, rows: Any) -> None:
    """Add rows ``codes[:, first + t]`` (k,) of ``table`` (L, M) to ``rows[t]``, for each of b samples."""
    fours = len(codes) // 4 * 4
    for j in range(0, fours, 4):  # four at a time: rows are read and written once for them
        for t in range(len(rows)):
            i = first + t
            k0, k1 = np.uintp(codes[j, i]), np.uintp(codes[j + 1, i])
            k2, k3 = np.uintp(codes[j + 2, i]), np.uintp(codes[j + 3, i])
            for m in range(rows.shape[1]):
                rows[t, m] += (table[k0, m] + table[k1, m]) + (table[k2, m] + table[k3, m])
    for j in range(fours, len(codes)):
        for t in range(len(rows)):
            code = np.uintp(codes[j, first + t])
            for m in range(rows.shape[1]):
                rows[t, m] += table[code, m]


@helper
def scatter(rows: Any, codes: Any, first: Any, table: Any) -> None:
    """Add ``rows[t]`` (M,) to rows ``codes[:, first + t]`` (k,) of ``table`` (L, M), for all of b samples."""
    for j in range(len(codes)):
        for t in range(len(rows)):
            code = np.uintp(codes[j, first + t])
            for m in range(rows.shape[1]):
                table[code, m] += rows[t, m]


@helper
def _e_step(y: Any, codes: Any, first: Any, theta: Any, work: Any, rows: Any) -> None:
    """Write the responsibilities of samples from ``first`` on into ``rows`` (b, M)."""
    if y.shape[1]:
        multiply(y[first : first + len(rows)], theta.phi, rows)
    else:
        fill(vector(rows), 0.0)
    gather(theta.table, codes, first, rows)
    shift(rows, theta.constant, work.largest)
    exponentiate(vector(rows))
    normalise(rows, work.totals)


@helper
def _add_statistics(
    y: Any, codes: Any, first: Any, rows: Any, work: Any, total1: Any, total2: Any, total3: Any
) -> None:
    """Add Σ_t rows_t, T(y_t)·rows_t and the sums of codes of ``rows`` (b, M), weighted, to the totals."""
    add_rows(rows, work.sums1)
    add(work.sums1, total1)
    if y.shape[1]:
        multiply(y[first : first + len(rows)].T, rows, work.sums2)
        add(vector(work.sums2), vector(total2))
    scatter(rows, codes, first, total3)


@kernel
def full_pass(
    y: Any, codes: Any, sample_weight: Any, theta: Any, memory: Any, work: Any,
    total1: Any, total2: Any, total3: Any,
) -> Any:  # fmt: skip
    """Add statistics of samples to ``total1`` (M,), ``total2`` (p, M) and ``total3`` (L, M).

    ``y`` (n, p) are the dense features, ``codes`` (k, n) the indicators that are one, all of them from 0 to L
    − 1, and ``memory`` a twin (n, M) for responsibilities, or (0, M); its rounded values are used. Return the
    log-likelihood.
    """
    block, log_likelihood = len(work.largest), 0.0
    for first in range(0, len(y), block):
        rows = work.rows[: min(block, len(y) - first)]
        _e_step(y, codes, first, theta, work, rows)
        for t in range(len(rows)):
            value = work.largest[t] + math.log(work.totals[t])
            log_likelihood += value * sample_weight[first + t] if len(sample_weight) else value
        if len(memory.double):
            remember(rows, first, memory.double)
        if len(memory.single):
            remember(rows, first, memory.single)
        if len(sample_weight):
            for t in range(len(rows)):
                for m in range(rows.shape[1]):
                    rows[t, m] *= sample_weight[first + t]
        _add_statistics(y, codes, first, rows, work, total1, total2, total3)
    return log_likelihood


@kernel
def evaluate(
    y: Any, codes: Any, theta: Any, work: Any, log_likelihood: Any, responsibilities: Any, labels: Any
) -> None:
    """E-step of samples: fill each of the last three that has n entries, (n,), (n, M) and (n,)."""
    block = len(work.largest)
    for first in range(0, len(y), block):
        rows = work.rows[: min(block, len(y) - first)]
        _e_step(y, codes, first, theta, work, rows)
        if len(responsibilities):
            for t in range(len(rows)):
                copy(rows[t], responsibilities[first + t])
        if len(labels):
            for t in range(len(rows)):
                best = 0
                for m in range(rows.shape[1]):
                    if rows[t, m] > rows[t, best]:
                        best = m
                labels[first + t] = best
        if len(log_likelihood):
            for t in range(len(rows)):
                log_likelihood[first + t] = work.largest[t] + math.log(work.totals[t])


@kernel
def statistics(
    y: Any, codes: Any, given: Any, weight: Any, work: Any, total1: Any, total2: Any, total3: Any
) -> None:
    """Add the weighted statistics of ``given`` (n, M), responsibilities or differences, to the totals.

    The rest as in :func:`full_pass`.
    """
    block = len(work.largest)
    for first in range(0, len(y), block):
        rows = work.rows[: min(block, len(y) - first)]
        for t in range(len(rows)):
            for m in range(rows.shape[1]):
                rows[t, m] = given[first + t, m] * weight[first + t]
        _add_statistics(y, codes, first, rows, work, total1, total2, total3)
