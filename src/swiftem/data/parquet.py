"""Tables in Parquet files, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, ClassVar

from swiftem.core.checks import arrow_reason
from swiftem.core.files import damage_named
from swiftem.core.source import Access
from swiftem.data.columns import Columns, Header
from swiftem.data.table_files import ArrowArray, ArrowBatch, TableFile

UNPACKED, FREE = 1000, 256 << 20
"""Limits of rows in memory: this multiple of the file's size, plus this number of bytes. A column of few
values takes almost no space in a file."""
SMALL = ("float", "halffloat")
"""Arrow's types whose numbers float32 holds."""


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
