"""Tables in files that pyarrow reads, Parquet files among them, as samples; checks of cells of all tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from swiftem.core.checks import arrow_reason, check_weight_column
from swiftem.core.files import damage_named, file_hash
from swiftem.core.source import Access
from swiftem.data.columns import Columns, Header, Wanted, check_same_columns, choose_columns, left_out_of
from swiftem.data.stored import Chunk, StoredSource, rechunk, weighted

ArrowArray: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray; pyarrow has no types."""
ArrowBatch = tuple[int, list[ArrowArray]]
"""The index of the first row, and an array for each column."""
ROWS = 65_536
"""Rows read at a time if all of them are needed."""
CELLS = 1 << 20
"""Numbers checked at a time, so that a memory-mapped file of any size needs little memory."""
UNPACKED, FREE = 1000, 256 << 20
"""Limits of rows in memory: this multiple of the file's size, plus this number of bytes. A column of few
values takes almost no space in a file."""
SMALL = ("float", "halffloat")
"""Arrow's types whose numbers float32 holds."""
MISSING_ADVICE = "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip)"


def check_cells(
    values: np.ndarray, allow_missing: bool, locate: Callable[[int, int], tuple[Path | str, str]]
) -> None:
    """Raise ValueError for the first cell that is infinite or, unless allowed, missing (NaN).

    Parameters
    ----------
    values : ndarray, shape (b, d)
        Rows.
    allow_missing : bool
        Whether NaN is no error.
    locate : callable
        Returns the file of a cell, given by row and column, and its place there in words.

    Examples
    --------
    >>> check_cells(np.array([[0.0, np.inf]]), True, lambda row, column: ("a.npy", f"in row {row}"))
    Traceback (most recent call last):
    ...
    ValueError: a.npy must hold finite numbers, got an infinity in row 0: remove or replace such rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is quicker than a test of each cell
        if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
            return
    rows = max(1, CELLS // values.shape[1])
    for start in range(0, len(values), rows):
        here = values[start : start + rows]
        bad = np.isinf(here) if allow_missing else ~np.isfinite(here)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            file, where = locate(start + row, column)
            what, advice = "a missing value", MISSING_ADVICE
            if np.isinf(here[row, column]):
                what, advice = "an infinity", "remove or replace such rows"
            raise ValueError(f"{file} must hold finite numbers, got {what} {where}: {advice}.")


class TableFile(ABC):
    """A table in a file: its columns, and its rows as Arrow arrays."""

    access: ClassVar[Access]
    """Whether groups of rows can be read on their own, as in :class:`swiftem.data.Source`."""
    reading: ClassVar[int]
    """Bytes used by the reading library itself (measured)."""

    header: Header
    groups: Sequence[int | None] = (None,)
    """Numbers of rows of the parts that can be read on their own; None if rows must be counted."""
    small: frozenset[int] = frozenset()
    """Columns whose numbers float32 holds exactly."""
    notes: tuple[str, ...] = ()
    """Remarks for the user on how the file is read."""

    @abstractmethod
    def __init__(self, file: Path) -> None:
        """Read the names and types of the columns."""

    @abstractmethod
    def batches(self, columns: Columns, groups: Sequence[int], rows: int) -> Iterator[ArrowBatch]:
        """Yield columns of numbers and others of some groups, about ``rows`` rows at a time."""

    def read(self, columns: Columns) -> list[ArrowArray]:
        """Return whole columns of numbers and others."""
        import pyarrow as pa

        batches = [arrays for _, arrays in self.batches(columns, range(len(self.groups)), ROWS)]
        return [pa.chunked_array(parts) for parts in zip(*batches, strict=True)]

    def check(self, columns: Columns) -> None:  # noqa: B027  # nothing to check by default
        """Raise ValueError if columns have no numbers, or groups are too large to be read."""

    def is_missing(self, cell: str | None) -> bool:
        """Return whether a cell of text is a missing value."""
        return cell is None

    def chunk(self, batch: ArrowBatch, columns: Columns, dtype: np.dtype, allow_missing: bool) -> Chunk:
        """Return the data and weights of a batch, or raise ValueError for a cell that is not finite."""
        first, arrays = batch
        width = len(columns.numeric)
        y = np.empty((len(arrays[0]), width), dtype=dtype)
        for place, array in enumerate(arrays[:width]):
            y[:, place] = array.to_numpy(zero_copy_only=False)
        self._check_cells(y, first, columns.numeric, allow_missing)
        if columns.weights is None:
            return Chunk(y, None)
        weight = np.array(arrays[width].to_numpy(zero_copy_only=False), dtype=np.float64)
        self._check_cells(weight[:, None], first, [columns.weights], allow_missing)
        return Chunk(y, weight)

    def _check_cells(
        self, values: np.ndarray, first: int, columns: Sequence[int], allow_missing: bool
    ) -> None:
        """Raise ValueError for the first cell that is not finite in rows from ``first``."""

        def locate(row: int, column: int) -> tuple[Path, str]:
            label = self.header.label(columns[column])
            return self.header.file, f"in column {label!r}, row {first + row} (from 0)"

        check_cells(values, allow_missing, locate)

    def locate(self, first: int, row: int) -> tuple[Path, int]:
        """Return the file, and the index there of a row of a batch that begins at row ``first``."""
        return self.header.file, first + row


class TableSource(StoredSource):
    """The rows of Parquet files, or of CSV files, with the same columns, read on demand.

    :func:`swiftem.data.open_source` makes it. Of Parquet files, a full pass decodes a few thousand rows at a
    time. Draws are by row groups, which must be decoded as a whole: for stochastic methods row groups of
    about ten thousand rows are best.

    Lines of CSV files have no fixed length, so that row i needs all lines before it: em, sem and sem-vr work,
    the latter two in the order of the files, shuffled within a window. The constructor reads the files once,
    to count and check the rows.

    Parameters
    ----------
    tables : sequence of TableFile
        The files, of one format.
    wanted : Wanted
        The choice of columns.
    window, allow_missing
        As in :func:`swiftem.data.open_source`; a window is rounded up to whole row groups.
    """

    def __init__(
        self,
        tables: Sequence[TableFile],
        wanted: Wanted,
        *,
        window: int | None = None,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(window, allow_missing)
        self._tables = tables
        self._choices = [choose_columns(table.header, wanted) for table in tables]
        self.reading = tables[0].reading
        files = [table.header.file for table in tables]
        parts = list(zip(tables, self._choices, strict=True))
        labels = [[table.header.label(number) for number in choice.data] for table, choice in parts]
        for file, others in zip(files, labels, strict=True):
            check_same_columns(files[0], labels[0], file, others)
        chosen = self._choices[0]
        self.names, self.numbers = chosen.names, chosen.data
        self.notes = left_out_of(files, self._choices)
        self.tail, self.is_weighted = (len(chosen.data),), chosen.weights is not None
        is_small = all(table.small.issuperset(choice.data) for table, choice in parts)
        self.dtype = np.dtype(np.float32 if is_small else np.float64)
        lengths = []
        #: For each group with samples its file and its number there.
        self._groups: list[tuple[int, int]] = []
        for number, (table, choice) in enumerate(parts):
            table.check(choice)
            for group in range(len(table.groups)):
                rows, total = self._measure(number, group)
                self.total_weight += total
                if rows:
                    lengths.append(rows)
                    self._groups.append((number, group))
        self.n = sum(lengths)
        if not self.n:
            what = "a positive weight, got only zeros" if self.is_weighted else "at least one row, got none"
            raise ValueError(f"{files[0]} must have {what}.")
        self.lay_out(lengths if self.access == "random" else None)

    @property
    def access(self) -> Access:  # type: ignore[override]
        """Whether draws are by row groups, or rows are only read in order."""
        return self._tables[0].access

    def _measure(self, file: int, group: int) -> tuple[int, float]:
        """Return the number of samples of a group, and the sum of their weights."""
        rows = self._tables[file].groups[group]
        if rows is not None and not self.is_weighted:
            return rows, float(rows)
        # Rows that must be counted are read as a whole, and thereby checked.
        columns = self._choices[file] if rows is None else self._choices[file]._replace(data=())
        count, total = 0, 0.0
        for y, weight in self._samples(file, [group], columns=columns):
            count += len(y)
            total += float(len(y)) if weight is None else float(weight.sum())
        return count, total

    def _samples(
        self, file: int, groups: Sequence[int], rows: int = ROWS, columns: Columns | None = None
    ) -> Iterator[Chunk]:
        """Yield rows of some groups of a file as samples; rows of weight zero are left out."""
        table, chosen = self._tables[file], columns or self._choices[file]
        for first, arrays in table.batches(chosen, groups, rows):
            y, weight = table.chunk((first, arrays), chosen, self.dtype, self.allow_missing)
            if weight is not None:
                check_weight_column(weight, partial(table.locate, first))
            yield weighted(y, weight)

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, also of weight zero, without weights."""
        if not self.is_weighted:
            return self
        wanted = Wanted(self.numbers)
        return TableSource(self._tables, wanted, window=self._window, allow_missing=self.allow_missing)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, about ``rows`` at a time."""
        for file, groups in groupby(self._groups, itemgetter(0)):
            yield from self._samples(file, [group for _, group in groups], rows)

    def block(self, number: int) -> Chunk:
        """Return the rows of a group."""
        file, group = self._groups[number]
        rows = int(self.layout.edges[number + 1] - self.layout.edges[number])
        chunks = list(rechunk(self._samples(file, [group], self.chunk_rows), rows))
        if len(chunks) != 1 or len(chunks[0].y) != rows:
            file_name = self._tables[file].header.file
            raise ValueError(f"{file_name} must be the same in every pass, got other rows.")
        return chunks[0]

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the layout; it reads all files."""
        what = self.numbers, self._choices[0].weights, self.layout.per_window, int(self.layout.edges[1])
        return file_hash(f"table{what}", [table.header.file for table in self._tables])


class ParquetFile(TableFile):
    """A Parquet file, whose row groups can be read on their own.

    Parameters
    ----------
    file : Path
        The file.
    """

    access: ClassVar[Access] = "random"
    reading: ClassVar[int] = 40 * 10**6
    groups: Sequence[int]

    def __init__(self, file: Path) -> None:
        with opened(file) as stored:
            schema, metadata = stored.schema_arrow, stored.metadata
            self.groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            index = _index(schema)
        names, n = tuple(map(str, schema.names)), sum(self.groups)
        if not names or not n:
            raise ValueError(
                f"{file} must have at least one row and one column, got {n} rows of {len(names)} columns."
            )
        self._starts = [0, *accumulate(self.groups)]
        kinds = [str(kind) for kind in schema.types]
        self.small = frozenset(number for number, kind in enumerate(kinds) if kind in SMALL)
        self._reasons = ["no values" if kind == "null" else arrow_reason(kind) for kind in kinds]
        unfit = ["an index" if name in index else why for name, why in zip(names, self._reasons, strict=True)]
        self.header = Header(file, names, unfit)

    def check(self, columns: Columns) -> None:
        """Raise ValueError if columns have no numbers, or row groups are too large to be read."""
        file = self.header.file
        for number in columns.numbers:
            if self._reasons[number]:
                name = self.header.label(number)
                raise ValueError(f"{file} must have numbers in column {name!r}, got {self._reasons[number]}.")
        for rows in self.groups:
            check_rows(file, rows, len(columns.numbers), "write it with smaller row groups")

    def read(self, columns: Columns) -> list[ArrowArray]:
        """Return whole columns of numbers and others."""
        width = len(columns.numbers) + len(columns.others)
        check_rows(self.header.file, sum(self.groups), width, "read it in pieces with open_source")
        self.check(columns)
        return super().read(columns)

    def batches(self, columns: Columns, groups: Sequence[int], rows: int) -> Iterator[ArrowBatch]:
        """Yield columns of numbers and others of some row groups, ``rows`` rows at a time."""
        file = self.header.file
        names = [self.header.names[number] for number in (*columns.numbers, *columns.others)]
        with opened(file, memory_map=True) as stored:
            # A reader per group would cost a fifth of a pass.
            for _, run in groupby(enumerate(groups), lambda numbered: numbered[1] - numbered[0]):
                numbers = [group for _, group in run]
                first, end = self._starts[numbers[0]], self._starts[numbers[-1] + 1]
                for batch in stored.iter_batches(rows, row_groups=numbers, columns=names):
                    yield first, [batch.column(name) for name in names]
                    first += batch.num_rows
                if first != end:
                    raise ValueError(
                        f"{file} must have {end:,} rows, as its metadata say, got others: it is damaged."
                    )


@contextmanager
def opened(file: Path, **options: Any) -> Iterator[Any]:
    """Open the file, and convert Arrow's errors, now or during reading, into one sentence."""
    from pyarrow import parquet

    with damage_named(file, "a Parquet file"), parquet.ParquetFile(file, **options) as stored:
        yield stored


def check_rows(file: Path, rows: int, columns: int, instead: str) -> None:
    """Raise ValueError for more rows than a file of its size may have; ``instead`` says what to do."""
    most = UNPACKED * file.stat().st_size + FREE
    if rows < 0 or 8 * rows * columns > most:
        most //= 8 * max(1, columns)
        raise ValueError(
            f"{file} must have at most {most:,} rows of {columns} columns to be read at once, got {rows:,}: "
            f"it is damaged, or {instead}."
        )


def _index(schema: Any) -> list[Any]:
    """Return the columns that are an index of pandas, if its metadata can be read."""
    try:
        index = schema.pandas_metadata["index_columns"]
    except Exception:  # no such metadata, no valid JSON or no such entry
        return []
    return index if isinstance(index, list) else []
