"""Tables in CSV files, as samples that are read in order, or at once.

They are read by pyarrow if it is installed, else by Python's reader, with the same result
(``tests/data/test_tables.py``). Pyarrow is fast and does not know lines; Python's reader is slow and does. If
pyarrow fails, or finds numbers that are not finite, Python's reader reads the file again and names the line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from math import nan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.rows.csv_layout import BOOLS, NULLS, CsvLayout, is_missing, layout_of, number_in, records
from swiftem.data.rows.stored_source import Chunk, FileSource, weighted
from swiftem.data.rows.table_columns import (
    Columns,
    Wanted,
    choose_columns,
    first_bad_cell,
    label,
    what_helps,
    what_it_is,
)
from swiftem.data.sample_weight import bad_weights, checked_weights, wanted_of_weight
from swiftem.data.source import Access
from swiftem.files.durable import file_hash

__all__ = ["CsvSource", "read_csv"]

BLOCK_BYTES = 1 << 18
"""Bytes of text that pyarrow reads at a time in a stream; it holds some dozens of such blocks."""
PYTHON_CELLS = 1 << 16
"""Numbers that Python's reader collects at a time."""


class StumbledError(Exception):
    """Pyarrow could not read a file, or found an error that Python's reader has to locate."""


class CsvSource(FileSource):
    r"""The rows of one or several CSV files, read in order on demand.

    Lines have no fixed length, so that row i cannot be found without reading those before it: em, sem and
    sem-vr work, the latter two in the order of the files, shuffled within a window. The constructor reads
    the files once, to count and check the rows.

    Parameters
    ----------
    files : path or sequence of paths
        With the same columns; their layout is found as in :func:`swiftem.data.read_table`.
    columns, weight, drop, window, allow_missing
        As in :func:`swiftem.data.open_source`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import CsvSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "fish.csv")
    ...     _ = file.write_text("kind,length,width\nperch,20.5,3\nbream,31,4.5\n")
    ...     source = CsvSource(file, drop=["kind"])
    ...     source.n, source.names, next(source.blocks(10)).y.tolist()
    (2, ('length', 'width'), [[20.5, 3.0], [31.0, 4.5]])
    """

    access: ClassVar[Access] = "sequential"
    reading: ClassVar[int] = 32 * 10**6

    def _look(self, file: Path, wanted: Wanted) -> tuple[Sequence[str], Columns, CsvLayout]:
        layout = layout_of(file)
        return layout.names, choose_columns(file, layout.names, layout.unfit, wanted), layout

    def _survey(self) -> None:
        """Count the rows and sum the weights; find the files that pyarrow cannot read."""
        self.dtype, self._by_python = np.dtype(np.float64), set[int]()
        self.n, self.total_weight = 0, 0.0
        for number in range(len(self._files)):
            try:
                found = self._count(number)
            except StumbledError:
                self._by_python.add(number)
                found = self._count(number)
            self.n, self.total_weight = self.n + found[0], self.total_weight + found[1]
        if not self.n:
            what = "a positive weight, got only zeros" if self.is_weighted else "at least one row, got none"
            raise ValueError(f"{self._files[0]} must have {what}.")
        self.lay_out()

    def _count(self, number: int) -> tuple[int, float]:
        n, total = 0, 0.0
        for found in self._pieces(number):
            if self.is_weighted:
                n += int(np.count_nonzero(found[:, -1]))
                total += float(found[:, -1].sum())
            else:
                n, total = n + len(found), total + len(found)
        return n, total

    def _pieces(self, number: int) -> Iterator[Array]:
        given = self._files[number], self._looked[number], self._choices[number]
        if number not in self._by_python:
            yield from by_pyarrow(*given, allow_missing=self.allow_missing)
            return
        for found in by_python(*given, self.allow_missing):
            if self.is_weighted:  # a row must have a weight, also if its cells may be missing
                checked_weights(given[0], found[:, -1])
            yield found

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order."""
        for number, file in enumerate(self._files):
            try:
                for found in self._pieces(number):
                    chunk = _chunk(found, self.is_weighted)
                    if chunk.weight is not None:
                        chunk = weighted(chunk.y, chunk.weight)
                    if len(chunk.y):
                        yield chunk
            except StumbledError:
                raise ValueError(f"{file} must be the same in every pass, but has changed.") from None

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the window; it reads all files."""
        what = self._chosen.data, self._chosen.weights, int(self.layout.edges[1])
        return file_hash(f"csv{what}", self._files)


def read_csv(
    file: Path, wanted: Wanted, allow_missing: bool = False
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns, list[str] | None, CsvLayout, list[list[str | None]]]:
    """Return rows (n, d) in float64, weights (n,), the choice of columns, labels, the layout, and text.

    A cell marked as missing is NaN with ``allow_missing``, otherwise an error.
    """
    layout = layout_of(file)
    chosen = choose_columns(file, layout.names, layout.unfit, wanted)
    try:
        pieces = list(by_pyarrow(file, layout, chosen, at_once=True)) if chosen.all else []
    except StumbledError:
        pieces = list(by_python(file, layout, chosen, allow_missing))
    found = np.concatenate([*pieces, np.empty((0, len(chosen.all)))])
    labels = None if chosen.label is None else _labels(file, layout, chosen.label)
    texts = _text(file, layout, list(chosen.text.values()), allow_missing) if chosen.text else []
    if not chosen.all:
        found = np.empty((len(texts[0]), 0))
    return *_chunk(found, chosen.weights is not None), chosen, labels, layout, texts


def _text(
    file: Path, layout: CsvLayout, numbers: Sequence[int], allow_missing: bool
) -> list[list[str | None]]:
    """Return the cells of columns of text, None if they are missing."""
    found: list[list[str | None]] = [[] for _ in numbers]
    for line, cells in records(file, layout.delimiter):
        if line <= layout.header_lines:
            continue
        _check_width(file, layout, cells, line)
        for cells_of, number in zip(found, numbers, strict=True):
            if is_missing(cells[number]):
                if not allow_missing:
                    said = _complaint(file, cells[number], None, label(layout.names, number), line)
                    raise ValueError(said.replace("a number in", "a value in"))
                cells_of.append(None)
            else:
                cells_of.append(cells[number].strip())
    return found


def _check_width(file: Path, layout: CsvLayout, cells: Sequence[str], line: int) -> None:
    """Raise ValueError for a line with more or fewer cells than the first one."""
    width = len(layout.unfit)
    if len(cells) != width:
        raise ValueError(
            f"{file} must have {_cells(width)} in every line, as in its first, "
            f"got {_cells(len(cells))} in line {line}."
        )


def _labels(file: Path, layout: CsvLayout, number: int) -> list[str]:
    """Return the cells of a column unchanged; the file is known to be a table."""
    return [
        cells[number].strip() for line, cells in records(file, layout.delimiter) if line > layout.header_lines
    ]


def _chunk(found: Array, is_weighted: bool) -> Chunk:
    """Return columns, the last of them weights if there are any, as rows and weights."""
    if not is_weighted:
        return Chunk(found, None)
    return Chunk(np.ascontiguousarray(found[:, :-1]), found[:, -1].copy())


def by_pyarrow(
    file: Path, layout: CsvLayout, chosen: Columns, at_once: bool = False, allow_missing: bool = False
) -> Iterator[Array]:
    """Yield the columns (., len(chosen.all)) in pieces; ``at_once`` reads the whole file first, on all cores.

    If pyarrow is missing or fails, or finds numbers that are not finite or an invalid weight, StumbledError
    is raised: Python's reader then names the line.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        raise StumbledError from None
    try:
        if at_once:
            opened: Any = nullcontext(csv.read_csv(file, **_options(layout, chosen)).to_batches())
        else:
            options = _options(layout, chosen, allow_missing, block_size=BLOCK_BYTES, use_threads=False)
            # Pyarrow's own allocator would not return free memory.
            opened = csv.open_csv(file, **options, memory_pool=pa.system_memory_pool())
        with opened as batches:
            for batch in batches:
                found = np.empty((batch.num_rows, len(chosen.all)))
                for place in range(len(chosen.all)):
                    column = batch.column(place).cast(pa.float64())
                    found[:, place] = column.to_numpy(zero_copy_only=False)
                unusable = chosen.weights is not None and len(bad_weights(found[:, -1]))
                if unusable or first_bad_cell(found, allow_missing) is not None:
                    raise StumbledError
                if len(found):
                    yield found
    except pa.ArrowException:
        raise StumbledError from None


def _options(
    layout: CsvLayout, chosen: Columns, allow_missing: bool = False, **reading: Any
) -> dict[str, Any]:
    """Return the options of pyarrow's reader."""
    import pyarrow as pa
    from pyarrow import csv

    wanted = [f"c{number}" for number in chosen.all]
    return {
        "read_options": csv.ReadOptions(
            column_names=[f"c{number}" for number in range(len(layout.unfit))],
            skip_rows=layout.header_lines,
            **reading,
        ),
        "parse_options": csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            include_columns=wanted,
            column_types={
                f"c{number}": pa.bool_() if number in layout.bools else pa.float64() for number in chosen.all
            },
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            null_values=NULLS if allow_missing else [],
            decimal_point=layout.decimal,
        ),
    }


def by_python(file: Path, layout: CsvLayout, chosen: Columns, allow_missing: bool = False) -> Iterator[Array]:
    """Yield the columns (., len(chosen.all)) in pieces, or raise an error with the line.

    With ``allow_missing``, cells without a value are NaN.
    """
    wanted, decimal, bools = chosen.all, layout.decimal, layout.bools
    flat = array("d")
    for line, cells in records(file, layout.delimiter):
        if line <= layout.header_lines:
            continue
        _check_width(file, layout, cells, line)
        for number in wanted:
            if allow_missing and is_missing(cells[number]):
                flat.append(nan)
                continue
            cell = cells[number]
            value = BOOLS.get(cell.strip().lower()) if number in bools else number_in(cell, decimal)
            # An infinity minus itself is NaN, and NaN is not equal to anything.
            if value is None or value - value != 0.0:
                raise ValueError(_complaint(file, cells[number], value, label(layout.names, number), line))
            if number == chosen.weights and (wanted_weight := wanted_of_weight(value)):
                raise ValueError(
                    f"{file} must have weights that are {wanted_weight}, got {value:g} in line {line}."
                )
            flat.append(value)
        if len(flat) >= PYTHON_CELLS:
            yield np.frombuffer(flat, dtype=np.float64).reshape(-1, len(wanted)).copy()
            flat = array("d")
    if flat:
        yield np.frombuffer(flat, dtype=np.float64).reshape(-1, len(wanted)).copy()


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _complaint(file: Path, cell: str, value: float | None, name: str, line: int) -> str:
    where = f"in column {name!r}, line {line}"
    if is_missing(cell):
        got = f"a missing value ({cell.strip()})" if cell.strip() else "a missing value"
        return f"{file} must have a number in every cell, got {got} {where}: {what_helps(None, 'lines')}"
    if value is None:
        shown = cell if len(cell) <= 40 else cell[:37] + "..."
        return (
            f"{file} must have a number in every cell, got {shown!r} {where}: correct it, or omit the column."
        )
    return f"{file} must hold finite numbers, got {what_it_is(value)} {where}: {what_helps(value, 'lines')}"
