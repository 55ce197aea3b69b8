"""Categories of columns: text and other labels as codes, the same in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import shortened, shown
from swiftem.data.array import ArraySource
from swiftem.mixture.families import Blocks, Family
from swiftem.mixture.tables.columns import TEXT, TableColumn, is_missing, objects, replaced

__all__ = [
    "Categories",
    "check_text",
    "decoded",
    "encoded",
    "find_categories",
    "of_places",
    "with_positive_weight",
]

Categories = dict[Any, tuple[Any, ...]]
"""The categories of columns, by name or number: code 0, 1, ..."""


def find_categories(columns: Sequence[TableColumn]) -> Categories:
    """Return the categories that columns of text have, in the order of their type, or sorted.

    >>> find_categories([TableColumn("job", "text", np.array(["b", "a", None, "b"], dtype=object))])
    {'job': ('a', 'b')}
    """
    return {column.name: _categories_in(column) for column in columns if column.kind == TEXT}


def _categories_in(column: TableColumn) -> tuple[Any, ...]:
    seen = {value: None for value in dict.fromkeys(column.values.tolist()) if not is_missing(value)}
    if column.order is not None:
        return tuple(value for value in column.order if value in seen)
    try:
        return tuple(sorted(seen))
    except TypeError:  # of several types
        return tuple(sorted(seen, key=str))


def with_positive_weight(
    columns: Sequence[TableColumn], sample_weight: ArrayLike | None
) -> list[TableColumn]:
    """Return columns without the rows of weight zero, if there are valid weights."""
    try:
        kept = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) > 0.0
    except (TypeError, ValueError):  # an error later says what is wrong
        kept = None
    if kept is None or kept.all() or kept.shape != columns[0].values.shape:
        return list(columns)
    return [column._replace(values=column.values[kept]) for column in columns]


def of_places(categories: Categories, columns: Sequence[Any], names: Sequence[str]) -> Categories:
    """Return categories by the place of their column, which an array has instead of its name.

    Parameters
    ----------
    categories : dict
        Categories by name or number.
    columns : sequence
        Names of the columns of a table, or their numbers.
    names : sequence of str
        Names of the columns of the fit, or none.

    Examples
    --------
    >>> of_places({"job": ("a", "b")}, ["age", "job"], ["age", "job"])
    {1: ('a', 'b')}
    """
    places = {name: place for place, name in enumerate(columns)}
    if not any(isinstance(name, str) for name in places):
        places |= {str(name): place for place, name in enumerate(names) if place < len(columns)}
    known = {name: name if isinstance(name, int) else places.get(name) for name in categories}
    return {known[name]: parts for name, parts in categories.items() if known[name] is not None}


def encoded(X: Any, columns: Sequence[TableColumn], categories: Categories, *, of_fit: bool = False) -> Any:
    """Return a table with codes in place of categories, given by place; a missing cell is NaN.

    Columns of numbers that are objects, because cells are missing, become floats. In the data ``of_fit``
    other categories are in rows of weight zero: any code will do.

    >>> column = TableColumn(0, "text", np.array(["b", "a", None], dtype=object))
    >>> encoded([["b"], ["a"], [None]], [column], {0: ("a", "b")})
    array([[ 1.],
           [ 0.],
           [nan]])
    """
    codes = {
        place: _codes(columns[place], known, of_fit)
        for place, known in categories.items()
        if place < len(columns)  # an error later names the number of columns
    }
    if type(X) is ArraySource:
        return X.like(replaced(X.y, codes), X.weight) if codes else X
    values = objects(X, columns) | codes
    return replaced(X, values) if values else X


def _codes(column: TableColumn, known: tuple[Any, ...], of_fit: bool) -> NDArray[np.float64]:
    codes: dict[Any, float] = {value: float(code) for code, value in enumerate(known)}
    values = column.values.tolist()
    for value in dict.fromkeys(values):
        if is_missing(value):
            codes[value] = np.nan
        elif value not in codes and of_fit:
            codes[value] = 0.0
        elif value not in codes:
            names = shortened([str(part) for part in known])
            raise ValueError(
                f"X must have categories of the fit in column {shown(column.name)} ({names}), "
                f"got {shown(value)}."
            )
    return np.fromiter((codes[value] for value in values), np.float64, len(values))


def decoded(rows: NDArray[Any], categories: Mapping[int, tuple[Any, ...]]) -> dict[int, NDArray[Any]]:
    """Return the columns of categories of rows (n, d) of codes, by place.

    >>> decoded(np.array([[1.0], [0.0]]), {0: ("a", "b")})
    {0: array(['b', 'a'], dtype=object)}
    """
    found = {}
    for place, parts in categories.items():
        labels = np.empty(len(parts), dtype=object)
        labels[:] = parts
        found[place] = labels[rows[:, place].astype(np.intp)]
    return found


def check_text(columns: Sequence[TableColumn], family: Family) -> None:
    """Raise ValueError for text in columns of a family of numbers."""
    kinds: dict[int, Family] = dict.fromkeys(range(len(columns)), family)
    if isinstance(family, Blocks):
        names = [column.name for column in columns if isinstance(column.name, str)]
        family = family.named(names or None)
        kinds = {
            int(place): part
            for part, places in zip(family.families, family.columns, strict=True)
            for place in places
        }
    for place, column in enumerate(columns):
        if column.kind == TEXT and place in kinds and not kinds[place].is_coded:
            raise ValueError(
                f"X must have numbers in columns of family {kinds[place].name!r}, got text in column "
                f"{shown(column.name)}: give it family 'categorical'."
            )
