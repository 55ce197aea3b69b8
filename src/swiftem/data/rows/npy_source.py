"""Arrays in ``.npy`` files, memory-mapped: as samples that are read on demand, or at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._typing import Array, Index
from swiftem.data.rows.npy_header import read_npy_header
from swiftem.data.rows.row_reader import RowReader
from swiftem.data.rows.stored_source import Chunk, StoredSource, weighted
from swiftem.data.rows.table_columns import (
    Column,
    Columns,
    Wanted,
    as_label,
    choose_columns,
    first_bad_cell,
    what_helps,
    what_it_is,
)
from swiftem.data.sample_weight import bad_weights, checked_weights, read_sample_weight
from swiftem.data.source import Access, Batch
from swiftem.files.durable import fingerprint

__all__ = ["NpySource", "read_npy"]

BLOCK_BYTES = 128 * 2**10
"""Bytes of a block of draws: large enough for one efficient disk read, small enough for many in a window."""
WINDOW_BLOCKS, FILE_BLOCKS = 128, 4096
"""Minimum number of blocks of a window and of a file, if there are enough rows: with more blocks, sorted rows
matter less. A large window of few blocks does not help (``benchmarks/sorted_draws.py``)."""
MOST_AXES = 10
"""Maximum length of a shape in a message."""


class NpySource(StoredSource):
    """The rows of one or several ``.npy`` files or memory maps, read on demand.

    Draws are by blocks: see :class:`swiftem.data.draws.BlockDraws`. Numbers that are not finite raise an
    error in the first pass, with their position.

    Parameters
    ----------
    files : path, array, or a sequence of paths or arrays
        Of shape (n,) or (n, d), with the same columns. Arrays should be memory maps; they are not copied.
    columns : sequence of int, optional
        Columns to use; by default all except the weights.
    weight : int, optional
        The column of weights.
    drop : sequence of int, optional
        Columns that are not data.
    sample_weight : array-like, shape (n,), optional
        Weights of all rows, instead of a column.
    window, allow_missing
        As in :func:`swiftem.data.open_source`.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.data import NpySource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "rows.npy")
    ...     np.save(file, np.arange(8.0).reshape(4, 2))
    ...     source = NpySource(file)
    ...     source.n, source.take([3, 0]).y.tolist()
    (4, [[6.0, 7.0], [0.0, 1.0]])
    """

    access: ClassVar[Access] = "random"

    def __init__(
        self,
        files: Any,
        columns: Sequence[Column] | None = None,
        weight: Column | None = None,
        *,
        drop: Sequence[Column] = (),
        sample_weight: ArrayLike | None = None,
        window: int | None = None,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(window, allow_missing)
        parts = list(files) if isinstance(files, list | tuple) else [files]
        if not parts:
            raise ValueError("data must be at least one file, got none.")
        opened = [_open(part, number) for number, part in enumerate(parts)]
        self._files, self._labels = parts, [label for label, _ in opened]
        self._arrays = [array for _, array in opened]
        first = self._arrays[0]
        for label, array in opened[1:]:
            if array.shape[1:] != first.shape[1:]:
                raise ValueError(
                    f"{label} must have the columns of {self._labels[0]}, {_width(first)}, "
                    f"got {_width(array)}."
                )
        width = 1 if first.ndim == 1 else first.shape[1]
        chosen = choose_columns(Path(self._labels[0]), (), [""] * width, Wanted(columns, weight, drop))
        self._columns = None if chosen.data == tuple(range(width)) else list(chosen.data)
        self._weight_column, self.numbers = chosen.weights, chosen.numbers
        small = all(array.dtype in (np.float32, np.float16) for array in self._arrays)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self.tail = () if first.ndim == 1 else (len(chosen.data),)
        self._starts = np.concatenate([[0], np.cumsum([len(array) for array in self._arrays])])
        total = int(self._starts[-1])
        if sample_weight is not None and chosen.weights is not None:
            raise ValueError("sample_weight must be left out if weight names a column.")
        self._weights = read_sample_weight(sample_weight, total, "row")
        self.is_weighted = self._weights is not None or chosen.weights is not None
        rows = min(BLOCK_BYTES // self.row_bytes, total // FILE_BLOCKS)
        rows = max(1, rows if window is None else min(rows, window // WINDOW_BLOCKS))
        #: Positions of the blocks in the files; blocks without weight are left out.
        self._begin = np.arange(0, total, rows)
        self._end = np.append(self._begin[1:], total)
        self._block_rows = rows
        self._checked, self._is_whole = False, True
        self.n, self.total_weight, lengths = total, float(total), self._end - self._begin
        if self.is_weighted:
            lengths = self._weigh()
        self.lay_out(lengths)

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, including those of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return NpySource(self._files, self.numbers, window=self._window, allow_missing=self.allow_missing)

    def _weigh(self) -> Index:
        """Find the number of rows and the sum of weights; return the number of rows per block."""
        lengths = np.empty(len(self._begin), dtype=np.intp)
        self.total_weight = 0.0
        for number in range(len(lengths)):
            weight = self._weight_of(int(self._begin[number]), int(self._end[number]))
            lengths[number] = np.count_nonzero(weight)
            self.total_weight += float(weight.sum())
        self.n = int(lengths.sum())
        if not self.n:
            raise ValueError(f"{self._labels[0]} must have a positive weight, got only zeros.")
        self._is_whole = self.n == self._starts[-1]
        self._begin, self._end = self._begin[lengths > 0], self._end[lengths > 0]
        return lengths[lengths > 0]

    def _weight_of(self, start: int, stop: int) -> Array:
        if self._weights is not None:
            return self._weights[start:stop]
        weight = as_doubles(self._raw_rows(start, stop)[:, self._weight_column])
        bad = bad_weights(weight)
        if len(bad):
            label, row = self._place(start + int(bad[0]))
            checked_weights(Path(label), weight[bad[:1]], row)
        return weight

    def _raw_rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the files unchanged, (., all columns) or (.,)."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        pieces = []
        while start < stop:
            offset = int(self._starts[first])
            piece = self._arrays[first][start - offset : stop - offset]
            pieces.append(piece)
            start += len(piece)
            first += 1
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _rows(self, start: int, stop: int) -> Chunk:
        """Return rows of the files as samples, in new arrays; those without weight are left out."""
        raw = self._raw_rows(start, stop)
        y = self._samples(raw, start)
        if not self.is_weighted:
            return Chunk(y, None)
        return weighted(y, self._weight_of(start, stop))

    def _samples(self, raw: NDArray[Any], start: int | Index) -> NDArray[Any]:
        chosen = raw if self._columns is None else raw[:, self._columns]
        is_own = chosen.base is None and chosen.flags.owndata  # not a view of the file
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # long doubles may overflow: this is reported below
            y = np.array(chosen, dtype=self.dtype, order="C", copy=None if is_own else True)
        if not self._checked and y.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                clean = bool(np.isfinite(y.sum(dtype=np.float64)))
            bad = None if clean else first_bad_cell(y.reshape(len(y), -1), self.allow_missing)
            if bad is not None:
                label, row = self._place(int(start[bad[0]] if np.ndim(start) else start + bad[0]))  # type: ignore[index]
                column = bad[1] if self._columns is None else self._columns[bad[1]]
                raise _not_finite(label, y.reshape(len(y), -1)[bad], row, column)
        return y

    def _place(self, row: int) -> tuple[str, int]:
        """Return the file of a row, and its index there."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self._labels[number], row - int(self._starts[number])

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, ``rows`` rows of the files at a time."""
        total = int(self._starts[-1])
        for start in range(0, total, rows):
            yield self._rows(start, min(start + rows, total))
        self._checked = True

    def block(self, number: int) -> Chunk:
        """Return the rows of a block."""
        return self._rows(int(self._begin[number]), int(self._end[number]))

    def reader(self) -> RowReader:
        """Return a reader of rows by index: it relies on the page cache if no row is left out."""
        return _MappedReader(self) if self._is_whole else RowReader(self)

    def rows_at(self, index: Index) -> Chunk:
        """Return rows of the files by index, if none is left out."""
        of_array = np.searchsorted(self._starts, index, side="right") - 1
        if len(self._arrays) == 1:
            raw = self._arrays[0][index]
        else:
            kind = np.result_type(*(array.dtype for array in self._arrays))
            raw = np.empty((len(index), *self._arrays[0].shape[1:]), dtype=kind)
            for number in np.unique(of_array):
                here = of_array == number
                raw[here] = self._arrays[number][index[here] - self._starts[number]]
        y = self._samples(raw, index)
        if self._weights is not None:
            return Chunk(y, self._weights[index])
        return Chunk(y, as_doubles(raw[:, self._weight_column]) if self.is_weighted else None)

    def fingerprint(self) -> str:
        """Return a hash of the rows, the weights and the layout; it reads all rows."""
        columns = (self._columns, self._weight_column, self.layout.per_window, self._block_rows)
        return fingerprint(f"npy{columns}", *self._arrays, self._weights)


class _MappedReader(RowReader):
    """Reads rows from the memory map."""

    def take(self, index: Index, once: bool = False) -> Batch:
        index = np.asarray(index)
        source = self._source
        assert isinstance(source, NpySource)
        y, weight = source.rows_at(index)
        return Batch(y, np.ones(len(index)) if weight is None else weight, index)


def _open(part: Any, number: int) -> tuple[str, NDArray[Any]]:
    """Return the name of the array in messages, and the array."""
    if isinstance(part, str | os.PathLike):
        file = Path(part)
        array = open_npy(file)
        return str(file), array
    label = f"array {number}" if number else "data"
    if not isinstance(part, np.ndarray):
        raise TypeError(f"data must be .npy files or memory maps, got {type(part).__name__}.")
    name = getattr(part, "filename", None)
    if part.dtype.kind not in "biuf":
        raise TypeError(f"{name or label} must hold real numbers, got dtype {part.dtype}.")
    if part.ndim not in (1, 2) or part.size == 0:
        raise ValueError(
            f"{name or label} must have shape (n,) or (n, d) and at least one row, got {part.shape}."
        )
    return str(name or label), np.asarray(part)


def _width(array: NDArray[Any]) -> str:
    width = 1 if array.ndim == 1 else array.shape[1]
    return "1 column" if width == 1 else f"{width} columns"


def _not_finite(label: str, value: Any, row: int, column: int | None) -> ValueError:
    return ValueError(
        f"{label} must hold finite numbers, got {what_it_is(value)} in row {row}, column {column} "
        f"(both from 0): {what_helps(value)}"
    )


def read_npy(
    file: Path, wanted: Wanted, allow_missing: bool = False
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns, list[str] | None]:
    """Return rows (n, d), weights (n,), the choice of columns and labels.

    Rows that are float32 or float64 and used as a whole stay in the file. NaN is an error, unless
    ``allow_missing``.
    """
    array = open_npy(file)
    if array.ndim == 1:
        array = array[:, None]
    chosen = choose_columns(file, (), [""] * array.shape[1], wanted)
    whole = chosen.data == tuple(range(array.shape[1]))
    # In rows, as a file with these columns alone: sums of columns would round otherwise.
    values = _native(array if whole else np.ascontiguousarray(array[:, chosen.data]))
    weight = None if chosen.weights is None else as_doubles(array[:, chosen.weights])
    for part, numbers in ((values, chosen.data), (weight, (chosen.weights,))):
        bad = None if part is None else first_bad_cell(part.reshape(len(part), -1), allow_missing)
        if part is not None and bad is not None:
            raise _not_finite(str(file), part.reshape(len(part), -1)[bad], bad[0], numbers[bad[1]])
    labels = None if chosen.label is None else [as_label(cell) for cell in array[:, chosen.label].tolist()]
    return values, weight, chosen, labels


def open_npy(file: Path) -> NDArray[Any]:
    """Return the array (n,) or (n, d) of numbers in a file, memory-mapped, or raise an error."""
    with file.open("rb") as stream:
        header = read_npy_header(stream, file)
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in "biuf":
        what = "named fields" if dtype.names else f"dtype {dtype}"
        raise ValueError(f"{file} must hold real numbers, got {what}.")
    if len(shape) not in (1, 2):
        got = shape if len(shape) < MOST_AXES else f"{len(shape)} axes"
        raise ValueError(f"{file} must hold an array of shape (n,) or (n, d), got {got}.")
    if 0 in shape:
        raise ValueError(f"{file} must have at least one row and one column, got shape {shape}.")
    there = file.stat().st_size - header.offset
    if header.n_bytes > there:
        raise ValueError(
            f"{file} must have {header.n_bytes:,} bytes of numbers, as many as its shape {shape} needs, got "
            f"{max(0, there):,}: it is damaged."
        )
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.memmap(file, dtype, mode="r", offset=header.offset, shape=shape, order=order)


def as_doubles(array: NDArray[Any]) -> Array:
    """Return numbers in float64; larger ones become infinite, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Return float32 and float64 unchanged, in native byte order, and other types as one of them."""
    kind = np.float32 if array.dtype in (np.dtype("f2"), np.dtype(">f4"), np.dtype("<f4")) else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow: this is reported later
        return np.asarray(array, dtype=kind)
