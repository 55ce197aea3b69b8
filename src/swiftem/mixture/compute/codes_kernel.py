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

from swiftem.kernels.compile import helper, kernel
from swiftem.kernels.memory import multiply, vector
from swiftem.kernels.softmax import add, add_rows, exponentiate, fill, normalise, shift
from swiftem.mixture.compute.blocks_kernel import remember
from swiftem.mixture.compute.passes_kernel import write_results

__all__ = ["CodedSamples", "CodedTotals", "Work", "evaluate", "full_pass", "make_work", "statistics"]

NEAR, FAR = 16_384, 65_536
"""Responsibilities per block, for small and for large tables: both fit into a cache."""
LARGE = 32_768
"""Number of entries from which a table is large."""


class CodedSamples(NamedTuple):
    """Samples of features and codes.

    Attributes
    ----------
    y : ndarray, shape (n, p)
        Features.
    codes : ndarray of int, shape (k, n)
        Which indicators are one, from 0 to L − 1.
    weight : ndarray, shape (n,), or (0,) for ones
        Weights.
    """

    y: Any
    codes: Any
    weight: Any


class CodedTotals(NamedTuple):
    """Sums over samples, added to in place: ``weights`` (M,), ``features`` (p, M) and ``table`` (L, M)."""

    weights: Any
    features: Any
    table: Any


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
        np.empty((b, n_components)),
        np.empty(b),
        np.empty(b),
        np.empty(n_components),
        np.empty((p, n_components)),
    )


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
def _e_step(data: Any, first: Any, theta: Any, work: Any, rows: Any) -> None:
    """Write the responsibilities of samples from ``first`` on into ``rows`` (b, M)."""
    if data.y.shape[1]:
        multiply(data.y[first : first + len(rows)], theta.phi, rows)
    else:
        fill(vector(rows), 0.0)
    gather(theta.table, data.codes, first, rows)
    shift(rows, theta.constant, work.largest)
    exponentiate(vector(rows))
    normalise(rows, work.totals)


@helper
def _add_statistics(data: Any, first: Any, rows: Any, work: Any, totals: Any) -> None:
    """Add Σ_t rows_t, T(y_t)·rows_t and the sums of codes of ``rows`` (b, M), weighted, to the totals."""
    add_rows(rows, work.sums1)
    add(work.sums1, totals.weights)
    if data.y.shape[1]:
        multiply(data.y[first : first + len(rows)].T, rows, work.sums2)
        add(vector(work.sums2), vector(totals.features))
    scatter(rows, data.codes, first, totals.table)


@kernel
def full_pass(data: Any, theta: Any, memory: Any, work: Any, totals: Any) -> Any:
    """Add statistics of samples to the totals; return the log-likelihood.

    ``memory`` is a twin (n, M) for responsibilities, or (0, M); its rounded values are used.
    """
    weight, block, log_likelihood = data.weight, len(work.largest), 0.0
    for first in range(0, len(data.y), block):
        rows = work.rows[: min(block, len(data.y) - first)]
        _e_step(data, first, theta, work, rows)
        for t in range(len(rows)):
            value = work.largest[t] + math.log(work.totals[t])
            log_likelihood += value * weight[first + t] if len(weight) else value
        if len(memory.double):
            remember(rows, first, memory.double)
        if len(memory.single):
            remember(rows, first, memory.single)
        if len(weight):
            for t in range(len(rows)):
                for m in range(rows.shape[1]):
                    rows[t, m] *= weight[first + t]
        _add_statistics(data, first, rows, work, totals)
    return log_likelihood


@kernel
def evaluate(data: Any, theta: Any, work: Any, results: Any) -> None:
    """E-step of samples: fill the results, as in :mod:`swiftem.mixture.compute.passes_kernel`."""
    block = len(work.largest)
    for first in range(0, len(data.y), block):
        rows = work.rows[: min(block, len(data.y) - first)]
        _e_step(data, first, theta, work, rows)
        write_results(first, rows, work, results)


@kernel
def statistics(data: Any, given: Any, work: Any, totals: Any) -> None:
    """Add the weighted statistics of ``given`` (n, M), responsibilities or differences, to the totals."""
    block = len(work.largest)
    for first in range(0, len(data.y), block):
        rows = work.rows[: min(block, len(data.y) - first)]
        for t in range(len(rows)):
            for m in range(rows.shape[1]):
                rows[t, m] = given[first + t, m] * data.weight[first + t]
        _add_statistics(data, first, rows, work, totals)
