"""Samples that are rows of Parquet files, read by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swiftem._checks import check_int
from swiftem.data.rows.parquet_table import check_rows, chosen_of, numbers_of, opened, other_rows
from swiftem.data.rows.stored_source import Chunk, StoredSource
from swiftem.data.rows.table_columns import Column, label, left_out_of, shortened
from swiftem.data.sample_weight import checked_weights
from swiftem.data.source import Access
from swiftem.files.file_hash import file_hash

__all__ = ["ParquetSource"]


class ParquetSource(StoredSource):
    """The rows of one or several Parquet files, read as they are needed.

    A full pass decodes a few thousand rows at a time. Draws are by row groups, which have to be decoded
    whole: files for stochastic methods are best written with row groups of some ten thousand rows.

    Parameters
    ----------
    files : path or sequence of paths
        With the same columns.
    columns : sequence of names or numbers, optional
        Columns to take; by default all that are numeric.
    weight : name or number, optional
        The column of weights; rows of weight zero are as if absent.
    window : int, optional
        Rows within which draws are shuffled, rounded up to whole row groups; by default as many as 16 MiB
        hold.

    Examples
    --------
    >>> import pathlib, pyarrow as pa, pyarrow.parquet, tempfile
    >>> from swiftem.data import ParquetSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "fish.parquet")
    ...     pyarrow.parquet.write_table(pa.table({"length": [20.5, 31.0], "kind": ["perch", "bream"]}), file)
    ...     source = ParquetSource(file)
    ...     source.n, source.names, source.take([1]).y.tolist()
    (2, ('length',), [[31.0]])
    """

    access: ClassVar[Access] = "random"
    reading: ClassVar[int] = 40 * 10**6

    def __init__(
        self,
        files: Any,
        columns: Sequence[Column] | None = None,
        weight: Column | None = None,
        *,
        window: int | None = None,
    ) -> None:
        super().__init__()
        if window is not None:
            check_int("window", window, minimum=1)
        self._files = [Path(file) for file in (files if isinstance(files, list | tuple) else [files])]
        kinds, groups, lengths, choices = [], [], [], []
        for number, file in enumerate(self._files):
            with opened(file) as stored:
                names, chosen, kind = chosen_of(file, stored, columns, weight)
                if not number:
                    self._names, self._chosen = names, chosen
                    self.names = tuple(label(names, place) for place in chosen.data)
                elif self.names != (found := tuple(label(names, place) for place in chosen.data)):
                    raise ValueError(
                        f"{file} must have the columns of {self._files[0]}, {shortened(self.names)}, "
                        f"got {shortened(found)}."
                    )
                kinds.append(kind)
                choices.append(chosen)
                rows = [stored.metadata.row_group(g).num_rows for g in range(stored.metadata.num_row_groups)]
                if sum(rows) != stored.metadata.num_rows:
                    raise other_rows(file, stored.metadata.num_rows)
                for count in rows:
                    check_rows(file, count, len(chosen.all), "write it with smaller row groups")
            starts = np.concatenate([[0], np.cumsum(rows)])
            groups += [_Group(file, g, int(starts[g]), rows[g]) for g in range(len(rows)) if rows[g]]
            lengths += [row for row in rows if row]
        self.notes = left_out_of(self._files, choices)
        self.dtype = np.dtype(np.result_type(*kinds))
        self.tail = (len(self._chosen.data),)
        self.is_weighted = self._chosen.weights is not None
        self._groups = groups
        self.n, self.total_weight = int(sum(lengths)), float(sum(lengths))
        if self.is_weighted:
            lengths = self._weigh()
        self._lay_out(lengths, window, in_order=False)

    def _weigh(self) -> list[int]:
        """Find the number of rows and the sum of weights; return how many rows each row group has."""
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
        """Return the rows of a row group."""
        group = self._groups[number]
        rows = int(self.layout.edges[number + 1] - self.layout.edges[number])
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
            y = np.empty((batch.num_rows, len(self.names)), dtype=self.dtype)
            for place, name in enumerate(self.names):
                y[:, place] = numbers_of(file, batch.column(wanted[place]), name, start)
            weight = None
            if self.is_weighted:
                found = numbers_of(file, batch.column(wanted[-1]), wanted[-1], start)
                weight = checked_weights(file, found, start)
                if not weight.all():
                    y, weight = y[weight > 0], weight[weight > 0]
            yield Chunk(y, weight)

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the layout; it reads all of them."""
        what = (self.names, self._chosen.weights, self.layout.per_window)
        return file_hash(f"parquet{what}", self._files)


class _Group(NamedTuple):
    """A row group: its number in the file, and the number of its first row there."""

    file: Path
    number: int
    start: int
    rows: int


def _batches(groups: list[_Group], columns: list[str], rows: int = 65_536) -> Iterator[tuple[int, Any]]:
    """Yield consecutive row groups of a file, ``rows`` rows at a time, with the number of the first row."""
    file, start, end = groups[0].file, groups[0].start, groups[-1].start + groups[-1].rows
    numbers = [group.number for group in groups]
    with opened(file, memory_map=True) as stored:
        for batch in stored.iter_batches(batch_size=rows, row_groups=numbers, columns=columns):
            if start + batch.num_rows > end:
                break
            yield start, batch
            start += batch.num_rows
        if start != end:
            raise other_rows(file, end)
