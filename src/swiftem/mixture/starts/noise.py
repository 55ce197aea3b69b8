"""Rows with rounding noise: columns that are multiples of a unit become continuous."""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array, Index

__all__ = ["with_noise"]

STEP, FIRST, SECOND = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Constants of SplitMix64 (Steele, Lea and Flood 2014)."""


def with_noise(y: np.ndarray, unit: Array, index: Index) -> np.ndarray:
    """Return rows plus uniform noise as wide as the unit of each column.

    The noise of a cell is a function of its row's index and its column alone, so that rows have the same
    noise whenever and in whatever order they are read.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Rows.
    unit : ndarray, shape (d,)
        Units of the columns; 0 adds nothing.
    index : ndarray of int, shape (b,)
        Indices of the rows.

    Examples
    --------
    >>> rows = with_noise(np.zeros((2, 2)), np.array([1.0, 0.0]), np.array([7, 7]))
    >>> rows[0, 0] == rows[1, 0], 0 < abs(rows[0, 0]) <= 0.5, rows[0, 1]
    (np.True_, np.True_, np.float64(0.0))
    """
    columns = np.flatnonzero(unit)
    if not len(columns):
        return y
    noisy = y.astype(y.dtype if y.dtype.kind == "f" else np.float64)
    with np.errstate(over="ignore"):  # words wrap around
        place = np.asarray(index).astype(np.uint64)[:, None] * np.uint64(len(unit)) + columns.astype(
            np.uint64
        )
        word = (place + np.uint64(1)) * STEP
        word = (word ^ (word >> np.uint64(30))) * FIRST
        word = (word ^ (word >> np.uint64(27))) * SECOND
        word ^= word >> np.uint64(31)
    noisy[:, columns] += unit[columns] * ((word >> np.uint64(11)) * 2.0**-53 - 0.5)
    return noisy
