"""Tables in files that pyarrow reads: the common part of CSV and Parquet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem.data.columns import (
    Column,
    Columns,
    Header,
    Wanted,
    check_same_columns,
    choose_columns,
    left_out_of,
)
from swiftem.data.finite import first_bad_cell, not_finite
from swiftem.data.stored import Chunk, StoredSource, weighted
from swiftem.data.weights import checked_weights

__all__ = ["Arrays", "TableFile", "TableSource"]

Arrays = tuple[int, list[Any]]
"""The index of the first row of a batch, and an Arrow array for each of its columns."""


class TableFile(ABC):
    """A table in a file: its columns, and its rows as Arrow arrays."""

    header: Header

    @abstractmethod
    def __init__(self, file: Path) -> None:
        """Read the names and types of the columns."""

    @abstractmethod
    def batches(self, numbers: Sequence[int], text: Sequence[int] = (), **options: Any) -> Iterator[Arrays]:
        """Yield columns of numbers, and further columns, of consecutive rows."""

    def dtype(self, columns: Sequence[int]) -> np.dtype[Any]:
        """Return float32 if it holds all numbers of these columns, else float64."""
        return np.dtype(np.float64)

    def notes(self) -> list[str]:
        """Return remarks on how the file is read."""
        return []

    def is_missing(self, cell: Any) -> bool:
        """Return whether a cell of text is a missing value."""
        return cell is None

    def chunk(self, batch: Arrays, columns: Columns, dtype: np.dtype[Any], allow_missing: bool) -> Chunk:
        """Return the data and weights of a batch, or raise ValueError for a cell that is not finite."""
        first, arrays = batch
        y = np.empty((len(arrays[0]), len(columns.data)), dtype=dtype)
        for place, number in enumerate(columns.data):
            y[:, place] = self._numbers(arrays[place], number, first, allow_missing)
        if columns.weights is None:
            return Chunk(y, None)
        weight = self._numbers(arrays[len(columns.data)], columns.weights, first, allow_missing)
        return Chunk(y, weight.astype(np.float64))

    def _numbers(self, array: Any, number: int, first: int, allow_missing: bool) -> NDArray[Any]:
        """Return an Arrow array of a column as numbers; missing values are NaN, or an error."""
        if str(array.type) == "bool":
            array = array.cast("uint8")
        row, value = None, None
        if array.null_count and not allow_missing:
            row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        else:
            values = np.asarray(array.to_numpy(zero_copy_only=False))
            bad = first_bad_cell(values[:, None], allow_missing)
            if bad is None:
                return values
            row, value = bad[0], values[bad[0]]
        where = f"in column {self.header.label(number)!r}, row {first + row} (from 0)"
        raise not_finite(self.header.file, value, where)


class TableSource(StoredSource):
    """Base class of sources that are tables in files with the same columns.

    A subclass names the class of its files, and implements :meth:`_survey`, which sets ``n``,
    ``total_weight`` and the layout.
    """

    table: ClassVar[type[TableFile]]

    def __init__(
        self,
        files: Any,
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
        self._files = [Path(file) for file in (files if isinstance(files, list | tuple) else [files])]
        self._tables = [self.table(file) for file in self._files]
        self._choices = [choose_columns(table.header, wanted) for table in self._tables]
        parts = list(zip(self._tables, self._choices, strict=True))
        labels = [[table.header.label(number) for number in choice.data] for table, choice in parts]
        for file, others in zip(self._files, labels, strict=True):
            check_same_columns(self._files[0], labels[0], file, others)
        chosen = self._choices[0]
        self.names, self.numbers = chosen.names, chosen.numbers
        self.notes = left_out_of(self._files, self._choices)
        self.tail, self.is_weighted = (len(chosen.data),), chosen.weights is not None
        self.dtype = np.result_type(*(table.dtype(choice.data) for table, choice in parts))
        self._survey()

    @abstractmethod
    def _survey(self) -> None:
        """Count the rows, sum the weights, and set the layout of blocks."""

    def _check_any(self) -> None:
        """Raise ValueError if there is no sample."""
        if not self.n:
            what = "a positive weight, got only zeros" if self.is_weighted else "at least one row, got none"
            raise ValueError(f"{self._files[0]} must have {what}.")

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, including those of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return type(self)(self._files, self.numbers, window=self._window, allow_missing=self.allow_missing)

    def _samples(self, number: int, columns: Columns | None = None, **options: Any) -> Iterator[Chunk]:
        """Yield rows of file ``number`` as samples; those of weight zero are left out."""
        table, choice = self._tables[number], columns or self._choices[number]
        for batch in table.batches(choice.all, **options):
            y, weight = table.chunk(batch, choice, self.dtype, self.allow_missing)
            if weight is None:
                yield Chunk(y, None)
            else:
                yield weighted(y, checked_weights(self._files[number], weight, batch[0]))
