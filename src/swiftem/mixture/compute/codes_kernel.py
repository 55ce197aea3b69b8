"""Mixtures with columns of codes: E-steps and statistics of a block of samples.

Indicators of codes are never formed. With codes k_1, k_2, ... of a sample, its logits are
T(y)·φ + table[k_1] + table[k_2] + ... + c, and its responsibilities are added to rows k_1, k_2, ... of the
sums: the cost does not depend on the number of levels. A block is processed column by column, so that a
column's part of the table stays in a cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.kernels.compile import helper
from swiftem.kernels.memory import multiply, vector
from swiftem.kernels.softmax import add_rows, exponentiate, fill, normalise, shift

if TYPE_CHECKING:
    from swiftem.mixture.bound_mixture import CodeCoefficients
    from swiftem.mixture.compute.passes_kernel import Totals, Work

__all__ = ["add_coded", "coded_e_step", "coded_rows"]

NEAR, FAR = 16_384, 65_536
"""Responsibilities per block, for small and for large tables: both fit into a cache."""
LARGE = 32_768
"""Number of entries from which a table is large."""


def coded_rows(n_components: int, levels: int) -> int:
    """Return the number of samples per block.

    >>> coded_rows(n_components=32, levels=10)
    512
    """
    return max(64, (FAR if levels * n_components > LARGE else NEAR) // n_components)


@helper
def _gather(table: Array, codes: Index, first: int, rows: Array) -> None:
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
def _scatter(rows: Array, codes: Index, first: int, table: Array) -> None:
    """Add ``rows[t]`` (M,) to rows ``codes[:, first + t]`` (k,) of ``table`` (L, M), for all of b samples."""
    for j in range(len(codes)):
        for t in range(len(rows)):
            code = np.uintp(codes[j, first + t])
            for m in range(rows.shape[1]):
                table[code, m] += rows[t, m]


@helper
def coded_e_step(
    y: Array, codes: Index, theta: CodeCoefficients, first: int, work: Work, rows: Array
) -> None:
    """Write responsibilities of samples from ``first`` on into ``rows`` (b, M); ``y`` (n, p): features."""
    if y.shape[1]:
        multiply(y[first : first + len(rows)], theta.phi, rows)
    else:
        fill(vector(rows), 0.0)
    _gather(theta.table, codes, first, rows)
    shift(rows, theta.constant, work.largest)
    exponentiate(vector(rows))
    normalise(rows, work.totals)


@helper
def add_coded(y: Array, codes: Index, first: int, rows: Array, work: Work, totals: Totals) -> None:
    """Write Σ_t rows_t and T(y_t)·rows_t of ``rows`` (b, M) into ``work.sums``; add the sums of codes."""
    add_rows(rows, work.sums1)
    if y.shape[1]:
        multiply(y[first : first + len(rows)].T, rows, work.sums2)
    _scatter(rows, codes, first, totals.further)
