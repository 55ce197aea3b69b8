"""Tables in files that pyarrow reads: the common part of CSV and Parquet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from swiftem.core.files import file_hash
from swiftem.data.columns import (
    Column,
    Columns,
    Header,
    Wanted,
    check_same_columns,
    choose_columns,
    left_out_of,
)
from swiftem.data.stored import Chunk, StoredSource, rechunk, weighted
from swiftem.data.weights import checked_weights

__all__ = [
    "MISSING_ADVICE",
    "ArrowArray",
    "ArrowBatch",
    "TableFile",
    "TableSource",
    "as_list",
    "first_bad_cell",
    "not_finite",
]

ArrowArray: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray; pyarrow has no types."""
ArrowBatch = tuple[int, list[ArrowArray]]
"""The index of the first row, and an array for each column."""
ROWS = 65_536
"""Rows read at a time if all of them are needed."""
CELLS = 1 << 20
"""Numbers checked at a time, so that a memory-mapped file of any size needs little memory."""
MISSING_ADVICE = "fill in such rows, or skip them (read_table has skip_missing=True)"


def as_list(files: Any) -> list[Any]:
    """Return several files, or one, as a list."""
    return list(files) if isinstance(files, list | tuple) else [files]


def first_bad_cell(values: np.ndarray, allow_missing: bool = False) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None; with ``allow_missing`` of an infinity.

    >>> import numpy as np
    >>> first_bad_cell(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if values.dtype.kind != "f":
        return None
    rows = max(1, CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        here = values[start : start + rows]
        bad = np.isinf(here) if allow_missing else ~np.isfinite(here)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            return start + int(row), int(column)
    return None


def not_finite(file: Path | str, value: float, where: str) -> ValueError:
    """Return the error for a cell of a file that is missing (NaN) or infinite.

    >>> not_finite("a.csv", np.inf, "in row 3")
    ValueError('a.csv must hold finite numbers, got an infinity in row 3: remove or replace such rows.')
    """
    if np.isinf(value):
        return ValueError(
            f"{file} must hold finite numbers, got an infinity {where}: remove or replace such rows."
        )
    return ValueError(f"{file} must hold finite numbers, got a missing value {where}: {MISSING_ADVICE}.")


class TableFile(ABC):
    """A table in a file: its columns, and its rows as Arrow arrays."""

    header: Header
    groups: Sequence[int | None] = (None,)
    """Numbers of rows of the parts that can be read on their own; None if rows must be counted."""
    small: frozenset[int] = frozenset()
    """Columns whose numbers float32 holds exactly."""

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

    def notes(self) -> list[str]:
        """Return remarks on how the file is read."""
        return []

    def is_missing(self, cell: str | None) -> bool:
        """Return whether a cell of text is a missing value."""
        return cell is None

    def chunk(
        self, first: int, arrays: Sequence[ArrowArray], columns: Columns, dtype: np.dtype, allow_missing: bool
    ) -> Chunk:
        """Return the data and weights of a batch, or raise ValueError for a cell that is not finite."""
        y = np.empty((len(arrays[0]), len(columns.numeric)), dtype=dtype)
        weight = None
        for place, (array, number) in enumerate(zip(arrays, columns.numbers, strict=False)):
            if str(array.type) == "bool":
                array = array.cast("uint8")
            values = np.asarray(array.to_numpy(zero_copy_only=False))
            bad = first_bad_cell(values[:, None], allow_missing)
            if bad is not None:
                where = f"in column {self.header.label(number)!r}, row {first + bad[0]} (from 0)"
                raise not_finite(self.header.file, values[bad[0]], where)
            if place < y.shape[1]:
                y[:, place] = values
            else:
                weight = values.astype(np.float64)
        return Chunk(y, weight)


class TableSource(StoredSource):
    """Base class of sources that are tables in files with the same columns.

    A subclass names the class of its files. Groups of rows are the blocks of draws if access is random.
    """

    table: ClassVar[type[TableFile]]

    def __init__(
        self,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        columns: Sequence[Column] | None = None,
        weight: Column | None = None,
        *,
        drop: Sequence[Column] = (),
        window: int | None = None,
        allow_missing: bool = False,
        leave_out: bool = False,
    ) -> None:
        super().__init__(window, allow_missing)
        wanted = Wanted(columns, weight, drop, leave_out=leave_out)
        self._files = [Path(file) for file in as_list(files)]
        self._tables = [self.table(file) for file in self._files]
        self._choices = [choose_columns(table.header, wanted) for table in self._tables]
        parts = list(zip(self._tables, self._choices, strict=True))
        labels = [[table.header.label(number) for number in choice.data] for table, choice in parts]
        for file, others in zip(self._files, labels, strict=True):
            check_same_columns(self._files[0], labels[0], file, others)
        chosen = self._choices[0]
        self.names, self.numbers = chosen.names, chosen.data
        self.notes = left_out_of(self._files, self._choices)
        self.tail, self.is_weighted = (len(chosen.data),), chosen.weights is not None
        is_small = all(table.small.issuperset(choice.data) for table, choice in parts)
        self.dtype = np.dtype(np.float32 if is_small else np.float64)
        lengths = []
        #: For each group with samples its file and its number there.
        self._groups: list[tuple[int, int]] = []
        for file_number, (table, choice) in enumerate(parts):
            table.check(choice)
            for group in range(len(table.groups)):
                rows, total = self._measure(file_number, group)
                self.total_weight += total
                if rows:
                    lengths.append(rows)
                    self._groups.append((file_number, group))
        self.n = sum(lengths)
        if not self.n:
            what = "a positive weight, got only zeros" if self.is_weighted else "at least one row, got none"
            raise ValueError(f"{self._files[0]} must have {what}.")
        self.lay_out(lengths if self.access == "random" else None)

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
            y, weight = table.chunk(first, arrays, chosen, self.dtype, self.allow_missing)
            if weight is None:
                yield Chunk(y, None)
            else:
                yield weighted(y, checked_weights(self._files[file], weight, first))

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, also of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return type(self)(self._files, self.numbers, window=self._window, allow_missing=self.allow_missing)

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
            raise ValueError(f"{self._files[file]} must be the same in every pass, got other rows.")
        return chunks[0]

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the layout; it reads all files."""
        what = self.numbers, self._choices[0].weights, self.layout.per_window, int(self.layout.edges[1])
        return file_hash(f"{type(self).__name__}{what}", self._files)
