"""Tables in Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.data.rows.finite_rows import first_bad_cell, what_it_is
from swiftem.data.rows.table_columns import Column, Columns, choose_columns, label
from swiftem.files.damaged import damage_named

__all__ = [
    "NEEDS_PYARROW", "check_rows", "chosen_of", "numbers_of", "opened", "other_rows", "parquet_names",
    "read_parquet",
]  # fmt: skip

NEEDS_PYARROW = "Parquet files need pyarrow: install it with pip install 'swiftem[io]'."
PARQUET = "a Parquet file"
UNPACKED, FREE = 1000, 256 << 20
"""Rows in memory may be so many times as large as the file, and so many bytes more: a column of few values
takes next to nothing in a file."""


def read_parquet(
    file: Path, columns: Sequence[Column] | None, weights: Column | None
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns]:
    """Return rows (n, d), weights (n,) and the choice of columns; float32 where all columns are no more.

    What pandas keeps as an index is left out.
    """
    with opened(file) as stored:
        names, chosen, kind = chosen_of(file, stored, columns, weights)
        check_rows(file, stored.metadata.num_rows, len(chosen.all), "read it in pieces with open_source")
        values = np.empty((stored.metadata.num_rows, len(chosen.data)), dtype=kind)
        weight = None if chosen.weights is None else np.empty(len(values))
        _fill(file, stored, names, chosen, values, weight)
    return values, weight, chosen


def chosen_of(
    file: Path, stored: Any, columns: Sequence[Column] | None, weights: Column | None
) -> tuple[list[str], Columns, np.dtype[Any]]:
    """Return the names of all columns of an open file, the choice, and the least type that holds it."""
    schema = stored.schema_arrow
    names = [str(name) for name in schema.names]
    index = _index(schema)
    unfit = [
        "an index" if name in index else _unfit(kind) for name, kind in zip(names, schema.types, strict=True)
    ]
    if not names or stored.metadata.num_rows == 0:
        got = f"{stored.metadata.num_rows} rows of {len(names)} columns"
        raise ValueError(f"{file} must have at least one row and one column, got {got}.")
    chosen = choose_columns(file, names, unfit, columns, weights)
    for number in chosen.all:
        why = _unfit(schema.types[number])
        if why:
            raise ValueError(f"{file} must have numbers in column {names[number]!r}, got {why}.")
    return names, chosen, _kind(schema, chosen)


def parquet_names(file: Path) -> tuple[str, ...]:
    """Return the names of all columns."""
    with opened(file) as stored:
        return tuple(str(name) for name in stored.schema_arrow.names)


@contextmanager
def opened(file: Path, **options: Any) -> Iterator[Any]:
    """Open the file, and turn what Arrow complains of, now or while it is read, into a sentence."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(NEEDS_PYARROW) from None
    with damage_named(file, PARQUET), parquet.ParquetFile(file, **options) as stored:
        yield stored


def check_rows(file: Path, rows: int, columns: int, instead: str) -> None:
    """Refuse to take memory for more rows than a file of its size may have; ``instead`` says what helps."""
    most = UNPACKED * file.stat().st_size + FREE
    if rows < 0 or 8 * rows * columns > most:
        raise ValueError(
            f"{file} must have at most {most // (8 * columns):,} rows of {columns} columns to be read at "
            f"once, got {rows:,}: it is damaged, or {instead}."
        )


def _index(schema: Any) -> list[Any]:
    """Return the columns that pandas keeps as an index, as far as what it wrote about them can be read."""
    try:
        found = schema.pandas_metadata["index_columns"]
    except Exception:  # no such note, or one that is no JSON or has no such entry
        return []
    return found if isinstance(found, list) else []


def _unfit(kind: Any) -> str:
    """Return why a column of an Arrow type cannot be data, or nothing."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ""
    if types.is_boolean(kind):
        return "true or false"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_null(kind):
        return "no values"
    if types.is_dictionary(kind):
        return "categories"
    return "times" if types.is_temporal(kind) else str(kind)


def _kind(schema: Any, chosen: Columns) -> np.dtype[Any]:
    """Return float32 where all columns of data are no more, else float64."""
    from pyarrow import types

    small = all(
        types.is_float32(schema.types[number]) or types.is_float16(schema.types[number])
        for number in chosen.data
    )
    return np.dtype(np.float32 if small else np.float64)


def _fill(
    file: Path,
    stored: Any,
    names: Sequence[str],
    chosen: Columns,
    values: NDArray[Any],
    weight: NDArray[Any] | None,
) -> None:
    """Read batch by batch, so that the file's columns and the array are not in memory at the same time."""
    start = stop = 0
    wanted = [names[number] for number in chosen.all]
    for batch in stored.iter_batches(columns=wanted):
        stop = start + batch.num_rows
        if stop > len(values):
            break
        for place, number in enumerate(chosen.all):
            target = weight if weight is not None and place == len(chosen.data) else values[:, place]
            target[start:stop] = numbers_of(file, batch.column(names[number]), label(names, number), start)
        start = stop
    if stop != len(values):
        raise other_rows(file, len(values))


def other_rows(file: Path, rows: int) -> ValueError:
    """Return the sentence on a file that does not have the rows that it says."""
    return ValueError(f"{file} must have {rows:,} rows, as it says itself, got others: it is damaged.")


def numbers_of(file: Path, column: Any, name: str, start: int) -> NDArray[Any]:
    """Return an Arrow column as an array, or say in which row, ``start`` added, there is no finite number."""
    import pyarrow as pa
    from pyarrow import types

    bad, what = None, "a missing value"
    if column.null_count:
        bad = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
    else:
        if types.is_decimal(column.type):
            column = column.cast(pa.float64())
        found = column.to_numpy(zero_copy_only=False)
        place = first_bad_cell(found[:, None])
        if place is None:
            return np.asarray(found)
        bad, what = place[0], what_it_is(found[place[0]])
    raise ValueError(
        f"{file} must hold finite numbers, got {what} in column {name!r}, row {start + bad} (from 0): "
        "remove or replace such rows."
    )
