"""Categories of columns: text and other labels as codes, the same in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import shortened, shown
from swiftem.mixture.tables.columns import TableColumn, is_missing

__all__ = ["Categories", "coded", "decoded", "found_categories"]

Categories = dict[Any, tuple[Any, ...]]
"""The categories of columns, by name or number: code 0, 1, ..."""


def found_categories(column: TableColumn) -> tuple[Any, ...]:
    """Return the categories that a column has, in their order, or sorted.

    >>> found_categories(TableColumn("job", "text", np.array(["b", "a", None, "b"], dtype=object)))
    ('a', 'b')
    """
    seen = {value: None for value in dict.fromkeys(column.values.tolist()) if not is_missing(value)}
    if column.order is not None:
        return tuple(value for value in column.order if value in seen)
    try:
        return tuple(sorted(seen))
    except TypeError:  # of several types
        return tuple(sorted(seen, key=str))


def coded(
    columns: Sequence[TableColumn], categories: Mapping[int, tuple[Any, ...]], of_fit: bool = False
) -> dict[int, NDArray[np.float64]]:
    """Return the codes of the columns that have categories, by place; a missing cell is NaN.

    In the data ``of_fit`` other categories are in rows of weight zero: any code will do.

    >>> column = TableColumn("job", "text", np.array(["b", "a", None], dtype=object))
    >>> coded([column], {0: ("a", "b")})
    {0: array([ 1.,  0., nan])}
    """
    found = {}
    for place, known in categories.items():
        if place >= len(columns):  # refused with a sentence on the number of columns
            continue
        column = columns[place]
        codes: dict[Any, float] = {value: float(code) for code, value in enumerate(known)}
        values = column.values.tolist()
        for value in dict.fromkeys(values):
            if value not in codes:
                if of_fit and not is_missing(value):
                    codes[value] = 0.0
                    continue
                if not is_missing(value):
                    names = shortened([str(part) for part in known])
                    raise ValueError(
                        f"X must have categories of the fit in column {shown(column.name)} ({names}), "
                        f"got {shown(value)}."
                    )
                codes[value] = np.nan
        found[place] = np.fromiter((codes[value] for value in values), np.float64, len(values))
    return found


def decoded(codes: NDArray[np.float64], categories: tuple[Any, ...]) -> NDArray[Any]:
    """Return the categories (n,) of codes (n,).

    >>> decoded(np.array([1.0, 0.0]), ("a", "b"))
    array(['b', 'a'], dtype=object)
    """
    found = np.empty(len(categories), dtype=object)
    found[:] = categories
    return np.asarray(found[codes.astype(np.intp)])
