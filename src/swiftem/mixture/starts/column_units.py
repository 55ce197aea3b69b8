"""Columns that are multiples of a unit, and rounding noise that makes them continuous."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index

STEP, FIRST, SECOND = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Constants of SplitMix64 (Steele, Lea and Flood 2014)."""
REPEATS = 2.0
"""A column is treated as multiples of a unit only if its values occur this many times on average."""
FIRST_ROWS, FIRST_REPEATS = 1000, 5
"""Rows among which values of such a column repeat so often, in any sample of up to 26,000."""
LEAST = 50
"""Minimum number of rows to detect units."""


def units(y: NDArray[Any], *, shuffled: bool = False) -> Array:
    """Return for each column the unit that its values are multiples of, up to an offset; 0 if there is none.

    The unit is the smallest gap between two values. A column has one if its values repeat and all gaps are
    multiples of the smallest. If rows are ``shuffled``, the first :data:`FIRST` tell whether values repeat:
    of 26,000 rows with every value twice, 19 pairs are among them in the mean.

    >>> import numpy as np
    >>> counts = np.random.default_rng(0).integers(0, 9, size=(100, 1))
    >>> units(np.hstack([0.5 * counts, np.random.default_rng(1).normal(size=(100, 1))]))
    array([0.5, 0. ])
    """
    found = np.zeros(y.shape[1])
    if len(y) < LEAST:
        return found
    for j, column in enumerate(y.T):
        column = column[~np.isnan(column)]
        if (
            shuffled
            and len(column) > FIRST_ROWS
            and len(np.unique(column[:FIRST_ROWS])) > FIRST_ROWS - FIRST_REPEATS
        ):
            continue
        values = np.unique(column).astype(np.float64)
        if len(values) < 2 or len(values) * REPEATS > len(column):
            continue
        size = float(np.abs(values).max())
        rounding = 8.0 * float(np.finfo(y.dtype if y.dtype.kind == "f" else np.float64).eps) * size
        gaps = np.diff(values)
        unit = float(gaps.min())
        if unit <= rounding:
            continue
        steps = np.round(gaps / unit)
        unit = float(gaps.sum() / steps.sum())
        if (np.abs(gaps - steps * unit) <= rounding + 1e-3 * unit).all():
            found[j] = unit
    return found


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
