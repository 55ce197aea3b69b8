"""The first cell of a table that is not a finite number, and the error that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSING_ADVICE", "first_bad_cell", "not_finite"]

CELLS = 1 << 20
"""Numbers checked at a time, so that a memory-mapped file of any size needs little memory."""
MISSING_ADVICE = "fill in such rows, or skip them (read_table has skip_missing=True)"


def first_bad_cell(values: NDArray[Any], allow_missing: bool = False) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None; with ``allow_missing`` of an infinity.

    >>> import numpy as np
    >>> first_bad_cell(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if values.dtype.kind != "f":
        return None
    rows = max(1, CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        here = values[start : start + rows]
        bad = np.isinf(here) if allow_missing else ~np.isfinite(here)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            return start + int(row), int(column)
    return None


def not_finite(file: Any, value: float | None, where: str) -> ValueError:
    """Return the error for a cell of a file that is NaN, infinite or, if None, missing.

    >>> not_finite("a.csv", np.inf, "in row 3")
    ValueError('a.csv must hold finite numbers, got an infinity in row 3: remove or replace such rows.')
    """
    what = "a missing value" if value is None else "NaN" if np.isnan(value) else "an infinity"
    advice = "remove or replace such rows" if what == "an infinity" else MISSING_ADVICE
    return ValueError(f"{file} must hold finite numbers, got {what} {where}: {advice}.")
