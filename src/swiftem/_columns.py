"""Columns of data frames and arrays that are no numbers: text, dates, durations, decimals, lists."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["TEXTS", "arrow_reason", "not_numbers", "refuse_columns", "refuse_values"]

TEXTS = ("text", "categories")
"""What columns may have if they are to be categories."""
OF_DTYPE = {
    "U": "text", "S": "bytes", "T": "text", "M": "dates", "m": "durations", "c": "complex numbers",
}  # fmt: skip
OF_TYPE: tuple[tuple[Any, str], ...] = (
    (str, "text"),
    (bytes, "bytes"),
    (timedelta | np.timedelta64, "durations"),
    (date | np.datetime64, "dates"),
    (time, "times"),
    (Decimal, "decimals"),
    (list | tuple | set | np.ndarray, "lists"),
    (complex | np.complexfloating, "complex numbers"),
)
OF_NAME = {"Period": "dates", "Interval": "intervals"}
"""Types of pandas."""
OF_POLARS = {
    "String": "text", "Utf8": "text", "Categorical": "categories", "Enum": "categories", "Date": "dates",
    "Datetime": "dates", "Time": "times", "Duration": "durations", "Decimal": "decimals", "List": "lists",
    "Array": "lists", "Struct": "structures", "Binary": "bytes",
}  # fmt: skip


def not_numbers(X: Any) -> dict[Any, str]:
    """Return what is in columns that are no numbers, by name or number; empty if there are none.

    Objects of unknown types are not named: they may have a value as a number.

    >>> from datetime import date
    >>> not_numbers(np.array([[date(2020, 1, 1), 1.0, "a"]], dtype=object))
    {0: 'dates', 2: 'text'}
    """
    library = type(X).__module__.partition(".")[0]
    found: Iterable[tuple[Any, str]] = ()
    if library == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        found = ((_name(name, j), _of_pandas(X, j)) for j, name in enumerate(X.columns))
    elif library == "polars" and hasattr(X, "get_columns"):
        found = ((part.name, _of_polars(part)) for part in X.get_columns())
    elif library == "pyarrow" and hasattr(X, "column_names"):
        found = zip(X.column_names, map(arrow_reason, X.schema.types), strict=True)
    elif isinstance(X, np.ndarray):
        found = _of_array(X)
    elif isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple):
        width = len(X[0])
        if all(isinstance(row, list | tuple) and len(row) == width for row in X):
            what = [_of_types(map(type, column)) for column in zip(*X, strict=True)]
            found = () if set(what) == {"lists"} else enumerate(what)  # else it has three axes
    return {name: what for name, what in found if what}


def _name(name: Any, number: int) -> Any:
    return name if isinstance(name, str) else number


def _of_array(X: np.ndarray[Any, Any]) -> Iterable[tuple[Any, str]]:
    if X.dtype.names is not None:
        return ((name, _of_dtype(X.dtype[name])) for name in X.dtype.names)
    what = _of_dtype(X.dtype)
    if X.ndim != 2 or what == "complex numbers":
        return ()
    if what or X.dtype.kind != "O":
        return ((j, what) for j in range(X.shape[1]))
    return ((j, _of_types(map(type, X[:, j].tolist()))) for j in range(X.shape[1]))


def _of_dtype(dtype: Any) -> str:
    return "lists" if dtype.shape else OF_DTYPE.get(dtype.kind, "")


def _of_types(types: Iterable[type]) -> str:
    """Return what values of these types are, or nothing for numbers and missing values."""
    for kind in dict.fromkeys(types):
        if kind.__name__ == "NaTType":  # a missing value, though it is a datetime
            continue
        if kind.__name__ in OF_NAME:
            return OF_NAME[kind.__name__]
        for known, what in OF_TYPE:
            if issubclass(kind, known):
                return what
    return ""


def refuse_values(name: str, values: np.ndarray[Any, Any]) -> None:
    """Raise ValueError for an array whose values are no numbers."""
    is_object = values.dtype.kind == "O"
    what = _of_types(map(type, values.ravel().tolist())) if is_object else _of_dtype(values.dtype)
    if what:
        raise ValueError(f"{name} must have numbers, got {what}.")


def _of_pandas(frame: Any, place: int) -> str:
    dtype = frame.dtypes.iloc[place]
    if hasattr(dtype, "categories"):
        return "categories"
    if hasattr(dtype, "pyarrow_dtype"):
        return arrow_reason(dtype.pyarrow_dtype)
    kind = getattr(dtype, "kind", "O")
    if kind != "O":
        return OF_DTYPE.get(kind, "")
    if type(dtype).__name__ == "StringDtype":
        return "text"
    return _of_types(map(type, frame.iloc[:, place].tolist()))


def _of_polars(series: Any) -> str:
    name = str(series.dtype.base_type())
    return _of_types(map(type, series.to_list())) if name == "Object" else OF_POLARS.get(name, "")


def arrow_reason(kind: Any) -> str:
    """Return what a column of an Arrow type has if it has no numbers, or nothing; a bool is 0 or 1."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return ""
    for is_of_kind, what in (
        (types.is_decimal, "decimals"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_string_view, "text"),
        (types.is_dictionary, "categories"),
        (types.is_duration, "durations"),
        (types.is_interval, "durations"),
        (types.is_time, "times"),
        (types.is_temporal, "dates"),
        (types.is_struct, "structures"),
        (types.is_nested, "lists"),
    ):
        if is_of_kind(kind):
            return what
    return str(kind)


def refuse_columns(name: str, X: Any, *, takes_text: bool = False, for_text: str = "") -> None:
    """Raise ValueError for columns that are no numbers, with their names and an advice ``for_text``."""
    found = {column: what for column, what in not_numbers(X).items() if not (takes_text and what in TEXTS)}
    if found:
        named = [f"{what} in column {column!r}" for column, what in list(found.items())[:10]]
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        instead = for_text if any(what in TEXTS for what in found.values()) else ""
        raise ValueError(
            f"{name} must have numbers in every column, got {', '.join(named)}{more}: leave out such "
            f"columns, or convert them to numbers{instead}."
        )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise ValueError(
            f"{name} must be rows and columns, (n, d), got a structured array: pass it as a data frame, or "
            "by numpy.lib.recfunctions.structured_to_unstructured."
        )
