"""The columns of a table in memory: their types, families by type, and categories as codes.

``family="auto"`` is a family for each column, by the type of its values:

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

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import TOO_LARGE, shortened, shown
from swiftem.data.array import ArraySource
from swiftem.mixture.families import Blocks, Family

BOOL, INTEGER, FLOAT, TEXT, OTHER = "bool", "integer", "float", "text", "other"
KINDS = re.compile(
    r"(?P<bool>bool(ean)?$)|(?P<integer>u?int\d+$)|(?P<float>(half_?)?float\d*$|double$)|"
    r"(?P<text>(large_)?string(_view)?(\[\w+\])?$|str$|utf8$|categorical|enum|dictionary)"
)
"""Names of types in pandas, polars and Arrow, in lower case."""
AUTO = "auto"
"""The value of ``family`` that lets the types of columns decide."""
LEVELS, HIGHEST = 10, 20
"""Integers with so many different values, none above the second number, are categories."""
COUNTS = 1000
"""Larger integers are amounts."""
Categories = dict[Any, tuple[Any, ...]]
"""The categories of columns, by name or number: code 0, 1, ..."""


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
