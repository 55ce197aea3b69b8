"""Tables in Parquet files by pyarrow, as samples that are read by row groups, or at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import arrow_reason
from swiftem.data.rows.stored_source import Chunk, FileSource, weighted
from swiftem.data.rows.table_columns import (
    Columns,
    UnknownColumnError,
    Wanted,
    as_label,
    choose_columns,
    first_bad_cell,
    label,
    what_helps,
    what_it_is,
)
from swiftem.data.sample_weight import checked_weights
from swiftem.data.source import Access
from swiftem.files.durable import damage_named, file_hash

__all__ = ["NEEDS_PYARROW", "ParquetSource", "check_rows", "opened", "parquet_names", "read_parquet"]

NEEDS_PYARROW = "Parquet files need pyarrow: install it with pip install 'swiftem[io]'."
PARQUET = "a Parquet file"
UNPACKED, FREE = 1000, 256 << 20
"""Limits of rows in memory: this multiple of the file's size, plus this number of bytes. A column of few
values takes almost no space in a file."""


class ParquetSource(FileSource):
    """The rows of one or several Parquet files, read on demand.

    A full pass decodes a few thousand rows at a time. Draws are by row groups, which must be decoded as a
    whole: for stochastic methods row groups of about ten thousand rows are best.

    Parameters
    ----------
    files : path or sequence of paths
        With the same columns.
    columns, weight, drop, window, allow_missing, leave_out
        As in :func:`swiftem.data.open_source`; a window is rounded up to whole row groups.

    Examples
    --------
    >>> import pathlib, pyarrow as pa, pyarrow.parquet, tempfile
    >>> from swiftem.data import ParquetSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "fish.parquet")
    ...     pyarrow.parquet.write_table(pa.table({"length": [20.5, 31.0], "kind": ["perch", "bream"]}), file)
    ...     source = ParquetSource(file, drop=["kind"])
    ...     source.n, source.names, source.take([1]).y.tolist()
    (2, ('length',), [[31.0]])
    """

    access: ClassVar[Access] = "random"
    reading: ClassVar[int] = 40 * 10**6

    def _look(
        self, file: Path, wanted: Wanted
    ) -> tuple[Sequence[str], Columns, tuple[np.dtype[Any], list[int]]]:
        with opened(file) as stored:
            names, chosen, kind = chosen_of(file, stored, wanted)
            rows = [stored.metadata.row_group(g).num_rows for g in range(stored.metadata.num_row_groups)]
            if sum(rows) != stored.metadata.num_rows:
                raise other_rows(file, stored.metadata.num_rows)
            for count in rows:
                check_rows(file, count, len(chosen.all), "write it with smaller row groups")
        return names, chosen, (kind, rows)

    def _survey(self) -> None:
        self.dtype = np.dtype(np.result_type(*(kind for kind, _ in self._looked)))
        self._groups: list[_Group] = []
        for file, (_, rows) in zip(self._files, self._looked, strict=True):
            starts = np.concatenate([[0], np.cumsum(rows)])
            self._groups += [_Group(file, g, int(starts[g]), rows[g]) for g in range(len(rows)) if rows[g]]
        lengths = [group.rows for group in self._groups]
        self.n, self.total_weight = sum(lengths), float(sum(lengths))
        if self.is_weighted:
            lengths = self._weigh()
        self.lay_out(lengths)

    def _weigh(self) -> list[int]:
        """Find the number of rows and the sum of weights; return the number of rows per row group."""
        lengths, self.total_weight = [], 0.0
        place = self._chosen.weights
        assert place is not None
        for group in self._groups:
            count = 0
            for start, batch in _batches([group], [self._names[place]]):
                found = numbers_of(group.file, batch.column(0), "weights", start)
                weight = checked_weights(group.file, found, start)
                count += int(np.count_nonzero(weight))
                self.total_weight += float(weight.sum())
            lengths.append(count)
        self.n = sum(lengths)
        if not self.n:
            raise ValueError(f"{self._files[0]} must have a positive weight, got only zeros.")
        self._groups = [group for group, rows in zip(self._groups, lengths, strict=True) if rows]
        return [rows for rows in lengths if rows]

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, about ``rows`` at a time."""
        for _, found in groupby(self._groups, key=lambda group: group.file):
            runs: list[list[_Group]] = []
            for group in found:
                if runs and runs[-1][-1].number == group.number - 1:
                    runs[-1].append(group)
                else:  # the first, or one after a group without weight
                    runs.append([group])
            for run in runs:
                yield from self._read(run, rows)

    def block(self, number: int) -> Chunk:
        """Return the rows of a row group, which errors name."""
        group = self._groups[number]
        try:
            return self._group(group, int(self.layout.edges[number + 1] - self.layout.edges[number]))
        except ValueError as error:
            raise ValueError(f"{error} This is in row group {group.number} of the file.") from None

    def _group(self, group: _Group, rows: int) -> Chunk:
        y = np.empty((rows, *self.tail), dtype=self.dtype)
        weight = np.empty(rows) if self.is_weighted else None
        filled = 0
        for part in self._read([group], self.chunk_rows):
            if filled + len(part.y) > rows:
                raise other_rows(group.file, group.rows)
            y[filled : filled + len(part.y)] = part.y
            if weight is not None:
                weight[filled : filled + len(part.y)] = part.weight
            filled += len(part.y)
        if filled != rows:
            raise other_rows(group.file, group.rows)
        return Chunk(y, weight)

    def _read(self, groups: list[_Group], rows: int) -> Iterator[Chunk]:
        """Yield the rows of consecutive row groups of a file."""
        wanted = [self._names[place] for place in self._chosen.all]
        file = groups[0].file
        for start, batch in _batches(groups, wanted, rows):
            y, weight = _rows(file, batch, self._names, self._chosen, self.dtype, start, self.allow_missing)
            yield Chunk(y, None) if weight is None else weighted(y, checked_weights(file, weight, start))

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the layout; it reads all files."""
        what = (self.names, self._chosen.weights, self.layout.per_window)
        return file_hash(f"parquet{what}", self._files)


class _Group(NamedTuple):
    """A row group: its index in the file, and the index of its first row there."""

    file: Path
    number: int
    start: int
    rows: int


def _batches(groups: list[_Group], columns: list[str], rows: int = 65_536) -> Iterator[tuple[int, Any]]:
    """Yield consecutive row groups of a file, ``rows`` rows at a time, with the index of the first row."""
    end = groups[-1].start + groups[-1].rows
    numbers = [group.number for group in groups]
    with opened(groups[0].file, memory_map=True) as stored:
        read = stored.iter_batches(batch_size=rows, row_groups=numbers, columns=columns)
        yield from _numbered(groups[0].file, read, groups[0].start, end)


def _numbered(file: Path, batches: Any, start: int, end: int) -> Iterator[tuple[int, Any]]:
    """Yield record batches with the indices of their first rows, which must cover ``start`` to ``end``."""
    for batch in batches:
        if start + batch.num_rows > end:
            break
        yield start, batch
        start += batch.num_rows
    if start != end:
        raise other_rows(file, end)


def _rows(
    file: Path, batch: Any, names: Sequence[str], chosen: Columns, kind: np.dtype[Any], start: int,
    allow_missing: bool = False,
) -> tuple[NDArray[Any], NDArray[Any] | None]:  # fmt: skip
    """Return a batch as rows (b, d) and weights (b,); raise an error for numbers that are not finite."""
    columns = [
        numbers_of(file, batch.column(names[number]), label(names, number), start, allow_missing)
        for number in chosen.all
    ]
    y = np.empty((batch.num_rows, len(chosen.data)), dtype=kind)
    for place in range(len(chosen.data)):
        y[:, place] = columns[place]
    return y, None if chosen.weights is None else columns[-1].astype(np.float64)


def read_parquet(
    file: Path, wanted: Wanted, allow_missing: bool = False
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns, list[str] | None, list[list[str | None]]]:
    """Return rows (n, d), weights (n,), the choice of columns, labels and text; float32 if that holds all.

    Index columns of pandas are left out. A missing value is NaN with ``allow_missing``, else an error.
    """
    with opened(file) as stored:
        names, chosen, kind = chosen_of(file, stored, wanted)
        n = stored.metadata.num_rows
        check_rows(file, n, max(len(chosen.all) + len(chosen.text), 1), "read it in pieces with open_source")
        values = np.empty((n, len(chosen.data)), dtype=kind)
        weight = None if chosen.weights is None else np.empty(n)
        read = stored.iter_batches(columns=[names[number] for number in chosen.all]) if chosen.all else ()
        for start, batch in _numbered(file, read, 0, n if chosen.all else 0):
            y, of_batch = _rows(file, batch, names, chosen, kind, start, allow_missing)
            values[start : start + len(y)] = y
            if weight is not None:
                weight[start : start + len(y)] = of_batch
        labels = None
        if chosen.label is not None:
            cells = stored.read(columns=[names[chosen.label]]).column(0).to_pylist()
            labels = ["" if cell is None else as_label(cell) for cell in cells]
        texts = [_text(file, stored, names[number], allow_missing) for number in chosen.text.values()]
    return values, weight, chosen, labels, texts


def _text(file: Path, stored: Any, name: str, allow_missing: bool) -> list[str | None]:
    """Return a column as text, None if a cell is missing."""
    cells = stored.read(columns=[name]).column(0).to_pylist()
    if None in cells and not allow_missing:
        raise ValueError(
            f"{file} must have a value in every cell, got a missing value in column {name!r}, row "
            f"{cells.index(None)} (from 0): {what_helps(None)}"
        )
    return [None if cell is None else as_label(cell) for cell in cells]


def chosen_of(file: Path, stored: Any, wanted: Wanted) -> tuple[list[str], Columns, np.dtype[Any]]:
    """Return the names of all columns of an open file, the choice, and the smallest type that holds it."""
    schema = stored.schema_arrow
    names = [str(name) for name in schema.names]
    index = _index(schema)
    unfit = [
        "an index" if name in index else _unfit(kind) for name, kind in zip(names, schema.types, strict=True)
    ]
    if not names or stored.metadata.num_rows == 0:
        got = f"{stored.metadata.num_rows} rows of {len(names)} columns"
        raise ValueError(f"{file} must have at least one row and one column, got {got}.")
    chosen = choose_columns(file, names, unfit, wanted)
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
    """Open the file, and convert Arrow's errors, now or during reading, into one sentence."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(NEEDS_PYARROW) from None
    refused = None
    with damage_named(file, PARQUET), parquet.ParquetFile(file, **options) as stored:
        try:
            yield stored
        except UnknownColumnError as error:  # of the user, not of the file
            refused = error
    if refused is not None:
        raise refused


def check_rows(file: Path, rows: int, columns: int, instead: str) -> None:
    """Raise ValueError for more rows than a file of its size may have; ``instead`` says what to do."""
    most = UNPACKED * file.stat().st_size + FREE
    if rows < 0 or 8 * rows * columns > most:
        raise ValueError(
            f"{file} must have at most {most // (8 * columns):,} rows of {columns} columns to be read at "
            f"once, got {rows:,}: it is damaged, or {instead}."
        )


def _index(schema: Any) -> list[Any]:
    """Return the columns that are an index of pandas, if its metadata can be read."""
    try:
        found = schema.pandas_metadata["index_columns"]
    except Exception:  # no such metadata, no valid JSON or no such entry
        return []
    return found if isinstance(found, list) else []


def _unfit(kind: Any) -> str:
    """Return why a column of an Arrow type cannot be data, or nothing."""
    from pyarrow import types

    return "no values" if types.is_null(kind) else arrow_reason(kind)


def _kind(schema: Any, chosen: Columns) -> np.dtype[Any]:
    """Return float32 if it holds all columns of data, else float64."""
    from pyarrow import types

    small = all(
        types.is_float32(schema.types[number]) or types.is_float16(schema.types[number])
        for number in chosen.data
    )
    return np.dtype(np.float32 if small else np.float64)


def other_rows(file: Path, rows: int) -> ValueError:
    """Return the error for a file that does not have the number of rows in its metadata."""
    return ValueError(f"{file} must have {rows:,} rows, as its metadata say, got others: it is damaged.")


def numbers_of(file: Path, column: Any, name: str, start: int, allow_missing: bool = False) -> NDArray[Any]:
    """Return an Arrow column as an array; raise an error for the first row, from ``start``, not finite.

    With ``allow_missing``, missing values are NaN.
    """
    import pyarrow as pa
    from pyarrow import types

    bad, what, value = None, "a missing value", None
    if column.null_count and not allow_missing:
        bad = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
    else:
        if types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        found = column.to_numpy(zero_copy_only=False)
        if allow_missing:
            found = np.asarray(found, dtype=np.float32 if found.dtype == np.float32 else np.float64)
        place = first_bad_cell(found[:, None], allow_missing)
        if place is None:
            return np.asarray(found)
        bad, value = place[0], found[place[0]]
        what = what_it_is(value)
    raise ValueError(
        f"{file} must hold finite numbers, got {what} in column {name!r}, row {start + bad} (from 0): "
        f"{what_helps(value)}"
    )
