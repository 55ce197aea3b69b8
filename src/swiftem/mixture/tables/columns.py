"""The columns of a table in memory: their names, their types, and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import TOO_LARGE

__all__ = ["TEXT", "TableColumn", "is_missing", "objects", "replaced", "table_columns"]

BOOL, INTEGER, FLOAT, TEXT, OTHER = "bool", "integer", "float", "text", "other"
KINDS = re.compile(
    r"(?P<bool>bool(ean)?$)|(?P<integer>u?int\d+$)|(?P<float>(half_?)?float\d*$|double$)|"
    r"(?P<text>(large_)?string(_view)?(\[\w+\])?$|str$|utf8$|categorical|enum|dictionary)"
)
"""Names of types in pandas, polars and Arrow, in lower case."""


class TableColumn(NamedTuple):
    """A column: ``name`` (its number if there are no names), ``kind``, ``values`` (n,), and its ``order``.

    ``order`` has the categories of a column whose type has them, in their order, else it is None.
    """

    name: Any
    kind: str
    values: NDArray[Any]
    order: tuple[Any, ...] | None = None


def table_columns(X: Any) -> list[TableColumn] | None:
    """Return the columns of a data frame, a table or an array; None for other input.

    >>> [(column.name, column.kind) for column in table_columns([["a", 3], ["b", 4]])]
    [(0, 'text'), (1, 'integer')]
    """
    library = type(X).__module__.partition(".")[0]
    if library == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        return [_of_pandas(_name(name, j), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if library == "polars" and hasattr(X, "get_columns"):
        return [_of_polars(part) for part in X.get_columns()]
    if library == "pyarrow" and hasattr(X, "column_names"):
        return [_of_arrow(name, part) for name, part in zip(X.column_names, X.columns, strict=True)]
    if isinstance(X, list | tuple):
        first = X[0] if X and isinstance(X[0], list | tuple) else ()
        if not any(isinstance(value, str) for value in first) or len({len(row) for row in X}) > 1:
            X = np.asarray(X) if _is_regular(X) else None
        else:
            X = np.array(X, dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biufOU":
        return None
    return [_of_values(j, X[:, j]) for j in range(X.shape[1])]


def _is_regular(X: Sequence[Any]) -> bool:
    return len({np.shape(row) for row in X}) == 1


def _name(name: Any, number: int) -> Any:
    return name if isinstance(name, str) else number


def _of_values(name: Any, values: NDArray[Any]) -> TableColumn:
    """Return a column of NumPy values; objects have the type of what they are."""
    kind = {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOAT, "U": TEXT}.get(values.dtype.kind, OTHER)
    if kind == OTHER:
        types = {type(value) for value in values.tolist() if not is_missing(value)}
        if any(issubclass(part, str) for part in types):
            kind = TEXT
        elif types and all(issubclass(part, bool | np.bool_) for part in types):
            kind = BOOL
        elif types and all(issubclass(part, int | np.integer) for part in types):
            kind = INTEGER
        elif types and all(issubclass(part, int | float | np.number) for part in types):
            kind = FLOAT
    return TableColumn(name, kind, values)


def is_missing(value: Any) -> bool:
    """Return whether a cell is None, NaN or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0), is_missing("")
    (True, True, False, False)
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def objects(X: Any, columns: Sequence[TableColumn]) -> dict[int, NDArray[np.float64]]:
    """Return as floats the columns of numbers that are objects or have a type of pandas, by place.

    >>> rows = np.array([[1, None], [2, 5.5]], dtype=object)
    >>> objects(rows, table_columns(rows))[1]
    array([nan, 5.5])
    """
    found = {}
    is_pandas = type(X).__module__.partition(".")[0] == "pandas"
    for place, column in enumerate(columns):
        dtype = X.dtypes.iloc[place] if is_pandas else column.values.dtype
        if column.kind in (TEXT, OTHER) or (isinstance(dtype, np.dtype) and dtype.kind != "O"):
            continue
        values = column.values.tolist()
        try:
            found[place] = np.array([np.nan if is_missing(value) else float(value) for value in values])
        except OverflowError:
            raise ValueError(TOO_LARGE.format(f"X in column {column.name!r}")) from None
    return found


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame or a table of pandas, polars or pyarrow."""
    return type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")


def _kind(name: str) -> str:
    """Return the kind of a column by the name of its type in any library.

    >>> [_kind(name) for name in ("Int64", "double", "large_string", "Enum", "interval[int64]")]
    ['integer', 'float', 'text', 'text', 'other']
    """
    found = KINDS.match(name.lower().removesuffix("[pyarrow]"))
    return found.lastgroup or OTHER if found else OTHER


def _of_pandas(name: Any, series: Any) -> TableColumn:
    if hasattr(series, "cat"):
        return TableColumn(name, TEXT, series.to_numpy(dtype=object), tuple(series.cat.categories.tolist()))
    kind = _kind(str(series.dtype))
    if kind in (TEXT, OTHER):
        return _of_values(name, series.to_numpy(dtype=object))
    values = series.to_numpy()
    if values.dtype.kind == "O":  # with pandas' NA
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return TableColumn(name, kind, values)


def _of_polars(series: Any) -> TableColumn:
    base, kind = str(series.dtype.base_type()), _kind(str(series.dtype.base_type()))
    if kind != TEXT:
        return TableColumn(series.name, kind, series.to_numpy())
    order = tuple(series.dtype.categories) if base == "Enum" else None
    return TableColumn(series.name, TEXT, np.array(series.to_list(), dtype=object), order)


def _of_arrow(name: str, column: Any) -> TableColumn:
    kind = _kind(str(column.type))
    if kind != TEXT:
        return TableColumn(name, kind, column.to_numpy())
    order = None
    if str(column.type).startswith("dictionary"):
        order = tuple(column.combine_chunks().dictionary.to_pylist() if len(column) else ())
    return TableColumn(name, TEXT, np.array(column.to_pylist(), dtype=object), order)


def replaced(X: Any, columns: dict[int, NDArray[np.float64]]) -> Any:
    """Return the table with other values in some columns, by their places.

    >>> replaced([["a", 3], ["b", 4]], {0: np.array([0.0, 1.0])})
    array([[0., 3.],
           [1., 4.]])
    """
    library = type(X).__module__.partition(".")[0]
    if library == "pandas":
        made = X.copy(deep=False)
        for place, values in columns.items():
            made.isetitem(place, values)
        return made
    if library == "polars":
        series = type(X.to_series(0))
        return X.with_columns(
            [series(X.columns[place], values.tolist()) for place, values in columns.items()]
        )
    if library == "pyarrow":
        for place, values in columns.items():
            X = X.set_column(place, X.column_names[place], [values.tolist()])
        return X
    made = np.array(X, dtype=object) if isinstance(X, list | tuple) or X.dtype.kind == "U" else X.copy()
    made = made if made.dtype.kind in "fO" else made.astype(np.float64)
    for place, values in columns.items():
        made[:, place] = values
    return made.astype(np.float64) if made.dtype.kind == "O" else made
