"""Finding the first cell of a table that is no finite number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_bad_cell", "what_it_is"]

CELLS = 1 << 20
"""Looked at a time, so that a memory-mapped file of any size costs little memory."""


def first_bad_cell(values: NDArray[Any]) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None.

    >>> import numpy as np
    >>> first_bad_cell(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if values.dtype.kind != "f":
        return None
    rows = max(1, CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        finite = np.isfinite(values[start : start + rows])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return start + int(row), int(column)
    return None


def what_it_is(value: Any) -> str:
    """Return a word for a number that is not finite.

    >>> what_it_is(float("inf"))
    'an infinity'
    """
    return "NaN" if np.isnan(value) else "an infinity"
