"""``family="auto"``: a family for each column, by the type of its values.

| values | family |
|---|---|
| true and false, or only the integers 0 and 1 | bernoulli |
| text, categories | categorical |
| integers from 0 on, at most 10 different ones, none above 20 | categorical |
| other integers from 0 to 1,000 | poisson |
| other integers, and floating-point numbers | gaussian |

Missing cells do not count; floating-point numbers that are whole, in a column with missing cells, are
integers: in a data frame integers are floating-point numbers if one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from swiftem.core.checks import shortened
from swiftem.mixture.tables.columns import (
    BOOL,
    FLOAT,
    INTEGER,
    OTHER,
    TEXT,
    TableColumn,
    is_missing,
)

__all__ = ["AUTO", "auto_family", "family_of", "said_of"]

AUTO = "auto"
"""The value of ``family`` that lets the types of columns decide."""
LEVELS, HIGHEST = 10, 20
"""Integers with so many different values, none above the second number, are categories."""
COUNTS = 1000
"""Larger integers are amounts."""


def family_of(column: TableColumn) -> str:
    """Return the name of the family of a column, by the table above.

    >>> [family_of(TableColumn("x", "integer", np.array(x))) for x in ([0, 1], [1, 5], [0, 40], [3, 4000])]
    ['bernoulli', 'categorical', 'poisson', 'gaussian']
    """
    column = _seen(column)
    if not len(column.values):
        raise ValueError(
            f"X must have values in every column, got none in column {column.name!r}: leave it out."
        )
    if column.kind == OTHER:
        raise ValueError(
            f"family='auto' must have columns of numbers, text or categories, got column {column.name!r} of "
            "other values: leave it out, or give a family for each column."
        )
    if column.kind == BOOL:
        return "bernoulli"
    if column.kind == TEXT:
        return "categorical"
    if column.kind == FLOAT:
        return "gaussian"
    lowest, highest = column.values.min(), column.values.max()
    if not (lowest >= 0 and highest <= COUNTS):
        return "gaussian"
    if highest <= 1:
        return "bernoulli"
    return "categorical" if highest <= HIGHEST and len(np.unique(column.values)) <= LEVELS else "poisson"


def _seen(column: TableColumn) -> TableColumn:
    """Return a column without its missing cells."""
    values = column.values
    if column.kind in (TEXT, OTHER, BOOL) or values.dtype.kind == "O":
        seen = np.array([not is_missing(value) for value in values.tolist()], dtype=bool)
    else:
        seen = ~np.isnan(values)
    if seen.all():
        return column
    values = values[seen]
    if column.kind in (INTEGER, FLOAT):
        values = values.astype(np.float64)
        is_whole = bool((values == np.floor(values)).all())
        return column._replace(values=values, kind=INTEGER if is_whole else FLOAT)
    return column._replace(values=values)


def auto_family(columns: Iterable[TableColumn]) -> dict[str, list[Any]]:
    """Return the columns of each family, by number or by name.

    >>> auto_family([TableColumn("a", "text", np.array(["x"])), TableColumn("b", "float", np.array([0.5]))])
    {'categorical': ['a'], 'gaussian': ['b']}
    """
    found: dict[str, list[Any]] = {}
    for column in columns:
        found.setdefault(family_of(column), []).append(column.name)
    return found


def whole_as_integers(columns: Sequence[TableColumn]) -> list[TableColumn]:
    """Return columns of a file without types: columns of whole numbers are integers."""
    return [
        column._replace(kind=INTEGER)
        if column.kind == FLOAT and (column.values == np.floor(column.values)).all()
        else column
        for column in columns
    ]


def said_of(family: dict[str, list[Any]]) -> str:
    """Return a sentence part on what was chosen.

    >>> said_of({"gaussian": ["age", "income"], "bernoulli": [3]})
    'gaussian for age, income; bernoulli for 3'
    """
    return "; ".join(
        f"{name} for {shortened([str(part) for part in parts])}" for name, parts in family.items()
    )
