"""Tables in Parquet files, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from swiftem.core.checks import arrow_reason
from swiftem.core.files import damage_named, file_hash
from swiftem.core.source import Access
from swiftem.data.columns import Header
from swiftem.data.stored import Chunk, rechunk
from swiftem.data.table_files import Arrays, TableFile, TableSource

__all__ = ["ParquetFile", "ParquetSource", "check_rows", "opened"]

UNPACKED, FREE = 1000, 256 << 20
"""Limits of rows in memory: this multiple of the file's size, plus this number of bytes. A column of few
values takes almost no space in a file."""


class ParquetFile(TableFile):
    """A Parquet file.

    Parameters
    ----------
    file : Path
        The file.
    """

    def __init__(self, file: Path) -> None:
        from pyarrow import types

        with opened(file) as stored:
            schema, metadata = stored.schema_arrow, stored.metadata
            self.groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            n, index = metadata.num_rows, _index(schema)
        names = tuple(str(name) for name in schema.names)
        if not names or not n:
            raise ValueError(
                f"{file} must have at least one row and one column, got {n} rows of {len(names)} columns."
            )
        if sum(self.groups) != n:
            raise _other_rows(file, n)
        self._starts = [0, *accumulate(self.groups)]
        self._reasons = ["no values" if types.is_null(kind) else arrow_reason(kind) for kind in schema.types]
        self._small = [types.is_float32(kind) or types.is_float16(kind) for kind in schema.types]
        unfit = ["an index" if name in index else why for name, why in zip(names, self._reasons, strict=True)]
        self.header = Header(file, names, unfit)

    def dtype(self, columns: Sequence[int]) -> np.dtype[Any]:
        """Return float32 if it holds all numbers of these columns, else float64."""
        return np.dtype(np.float32 if all(self._small[number] for number in columns) else np.float64)

    def batches(
        self,
        numbers: Sequence[int],
        text: Sequence[int] = (),
        at_once: bool = False,
        groups: Sequence[int] | None = None,
        rows: int = 65_536,
        **options: Any,
    ) -> Iterator[Arrays]:
        """Yield columns of numbers and of text of some row groups, ``rows`` rows at a time."""
        file = self.header.file
        for number in numbers:
            if self._reasons[number]:
                name = self.header.label(number)
                raise ValueError(f"{file} must have numbers in column {name!r}, got {self._reasons[number]}.")
        columns = [self.header.names[number] for number in (*numbers, *text)]
        if at_once:
            check_rows(file, sum(self.groups), len(columns), "read it in pieces with open_source")
        with opened(file, memory_map=True) as stored:
            for group in range(len(self.groups)) if groups is None else groups:
                first, length = self._starts[group], 0
                for batch in stored.iter_batches(rows, row_groups=[group], columns=columns):
                    yield first + length, [batch.column(name) for name in columns]
                    length += batch.num_rows
                if length != self.groups[group]:
                    raise _other_rows(file, self.groups[group])


class ParquetSource(TableSource):
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
    reading: int = 40 * 10**6
    table: ClassVar[type[TableFile]] = ParquetFile
    _tables: list[ParquetFile]  # type: ignore[assignment]

    def _survey(self) -> None:
        """Count rows, by a pass over the weights if there are any; leave out row groups without weight."""
        lengths = []
        #: For each block its file and row group, by index.
        self._groups: list[tuple[int, int]] = []
        for file, table in enumerate(self._tables):
            for number, rows in enumerate(table.groups):
                instead = "write it with smaller row groups"
                check_rows(self._files[file], rows, len(self._choices[file].all), instead)
                if self.is_weighted:
                    rows = self._weigh(file, number)
                else:
                    self.total_weight += rows
                if rows:
                    lengths.append(rows)
                    self._groups.append((file, number))
        self.n = sum(lengths)
        self._check_any()
        self.lay_out(lengths)

    def _weigh(self, file: int, group: int) -> int:
        """Add the weights of a row group; return the number of rows with a positive one."""
        only_weights = replace(self._choices[file], data=())
        rows = 0
        for _, weight in self._samples(file, only_weights, groups=[group]):
            assert weight is not None, "there is a column of weights"
            self.total_weight += float(weight.sum())
            rows += len(weight)
        return rows

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, about ``rows`` at a time."""
        for file in range(len(self._files)):
            groups = [group for its_file, group in self._groups if its_file == file]
            yield from self._samples(file, groups=groups, rows=rows)

    def block(self, number: int) -> Chunk:
        """Return the rows of a row group."""
        file, group = self._groups[number]
        rows = int(self.layout.edges[number + 1] - self.layout.edges[number])
        chunks = list(rechunk(self._samples(file, groups=[group], rows=self.chunk_rows), rows))
        if len(chunks) != 1 or len(chunks[0].y) != rows:
            raise _other_rows(self._files[file], rows)
        return chunks[0]

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the layout; it reads all files."""
        what = (self.names, self._choices[0].weights, self.layout.per_window)
        return file_hash(f"parquet{what}", self._files)


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
        raise ValueError(
            f"{file} must have at most {most // (8 * columns):,} rows of {columns} columns to be read at "
            f"once, got {rows:,}: it is damaged, or {instead}."
        )


def _index(schema: Any) -> list[Any]:
    """Return the columns that are an index of pandas, if its metadata can be read."""
    try:
        index = schema.pandas_metadata["index_columns"]
    except Exception:  # no such metadata, no valid JSON or no such entry
        return []
    return index if isinstance(index, list) else []


def _other_rows(file: Path, rows: int) -> ValueError:
    """Return the error for a file that does not have the number of rows in its metadata."""
    return ValueError(f"{file} must have {rows:,} rows, as its metadata say, got others: it is damaged.")
