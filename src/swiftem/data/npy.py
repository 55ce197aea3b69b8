"""Arrays in ``.npy`` files, memory-mapped, as samples that are read on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import ArrayLike

from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Reader
from swiftem.core.types import Array, Index
from swiftem.data.columns import Column, Header, Wanted, choose_columns
from swiftem.data.stored import Chunk, StoredSource, weighted
from swiftem.data.table_files import as_list, first_bad_cell, not_finite
from swiftem.data.weights import checked_weights, first_bad_weight, read_sample_weight

__all__ = [
    "NpyHeader",
    "NpySource",
    "check_cells",
    "is_small",
    "npy_columns",
    "open_npy",
    "read_npy_header",
]

BLOCK_BYTES = 128 * 2**10
"""Bytes of a block of draws: large enough for one efficient disk read, small enough for many in a window."""
WINDOW_BLOCKS, FILE_BLOCKS = 128, 4096
"""Minimum number of blocks of a window and of a file, if there are enough rows: with more blocks, sorted rows
matter less. A large window of few blocks does not help (``benchmarks/sorted_draws.py``)."""
READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,  # differs only in names of fields
}


class NpySource(StoredSource):
    """The rows of one or several ``.npy`` files or memory maps, read on demand.

    Draws are by blocks: see :func:`swiftem.core.draws.block_draws`. Numbers that are not finite raise an
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
        self._files = as_list(files)
        if not self._files:
            raise ValueError("data must be at least one file, got none.")
        opened = [_open(part, number) for number, part in enumerate(self._files)]
        self._labels, self._arrays = [label for label, _ in opened], [array for _, array in opened]
        self._choose(Wanted(columns, weight, drop))
        self._starts = np.cumsum([0, *map(len, self._arrays)])
        self.n = int(self._starts[-1])
        self.total_weight = float(self.n)
        if sample_weight is not None and self._weight_column is not None:
            raise ValueError("sample_weight must be left out if weight names a column.")
        self._weights = read_sample_weight(sample_weight, self.n, "row")
        self.is_weighted = self._weights is not None or self._weight_column is not None
        rows = min(BLOCK_BYTES // self.row_bytes, self.n // FILE_BLOCKS)
        self._block_rows = max(1, rows if window is None else min(rows, window // WINDOW_BLOCKS))
        #: Positions of the blocks in the files; blocks without weight are left out.
        self._begin = np.arange(0, self.n, self._block_rows)
        self._end = np.append(self._begin[1:], self.n)
        self._are_checked = False
        self.lay_out(self._weigh() if self.is_weighted else self._end - self._begin)
        # Rows can be read by index from the memory map if none is left out.
        self._is_whole = self.n == int(self._starts[-1])

    def _choose(self, wanted: Wanted) -> None:
        """Choose the columns, which are the same in all files, and the precision of the samples."""
        first = self._arrays[0]
        for label, array in zip(self._labels, self._arrays, strict=True):
            if array.shape[1:] != first.shape[1:]:
                raise ValueError(
                    f"{label} must have rows of shape {first.shape[1:]}, as {self._labels[0]}, "
                    f"got {array.shape[1:]}."
                )
        header = npy_columns(Path(self._labels[0]), first)
        chosen = choose_columns(header, wanted)
        is_whole = chosen.data == tuple(range(len(header.unfit)))
        self._columns = None if is_whole else list(chosen.data)
        self._weight_column, self.numbers = chosen.weights, chosen.data
        self.dtype = np.dtype(np.float32 if all(map(is_small, self._arrays)) else np.float64)
        self.tail = () if first.ndim == 1 else (len(chosen.data),)

    def _weigh(self) -> Index:
        """Find the number of rows and the sum of weights; return the lengths of blocks that have weight."""
        lengths = np.empty(len(self._begin), dtype=np.intp)
        self.total_weight = 0.0
        for number, (start, stop) in enumerate(zip(self._begin.tolist(), self._end.tolist(), strict=True)):
            weight = self._weight_of(self._raw_rows(slice(start, stop)), np.arange(start, stop))
            lengths[number] = np.count_nonzero(weight)
            self.total_weight += float(weight.sum())
        self.n = int(lengths.sum())
        if not self.n:
            raise ValueError(f"{self._labels[0]} must have a positive weight, got only zeros.")
        self._begin, self._end = self._begin[lengths > 0], self._end[lengths > 0]
        return lengths[lengths > 0]

    def _weight_of(self, raw: np.ndarray, index: Index) -> Array:
        """Return the weights of rows of the files, which have these indices."""
        if self._weights is not None:
            return self._weights[index]
        if self._weight_column is None:
            return np.ones(len(index))
        with np.errstate(over="ignore", invalid="ignore"):  # long doubles may become infinite
            weight = raw[:, self._weight_column].astype(np.float64)
        bad = first_bad_weight(weight)
        if bad is not None:
            label, row = self._locate(int(index[bad[0]]))
            checked_weights(label, weight[bad[0] :], row)
        return weight

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, also of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return NpySource(self._files, self.numbers, window=self._window, allow_missing=self.allow_missing)

    def _locate(self, row: int) -> tuple[str, int]:
        """Return the file of a row, and its index there."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self._labels[number], row - int(self._starts[number])

    def _raw_rows(self, index: Index | slice) -> np.ndarray:
        """Return rows of the files unchanged, (., all columns) or (.,)."""
        if len(self._arrays) == 1:
            return np.asarray(self._arrays[0][index])
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop)
        file = np.searchsorted(self._starts, index, side="right") - 1
        raw = np.empty((len(index), *self._arrays[0].shape[1:]), dtype=np.result_type(*self._arrays))
        for number in np.unique(file):
            here = file == number
            raw[here] = self._arrays[number][index[here] - self._starts[number]]
        return raw

    def _samples(self, raw: np.ndarray, index: Index) -> np.ndarray:
        """Return rows of the files, which have these indices, as samples in a new array."""
        chosen = raw if self._columns is None else raw[:, self._columns]
        is_own = chosen.base is None and chosen.flags.owndata  # not a view of the file
        with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow: reported below
            y = np.array(chosen, dtype=self.dtype, order="C", copy=None if is_own else True)
            if self._are_checked or np.isfinite(y.sum(dtype=np.float64)):
                return y
        columns = self._columns or range(prod(y.shape[1:]))
        locate = lambda row: self._locate(int(index[row]))  # noqa: E731
        check_cells(y.reshape(len(y), -1), columns, self.allow_missing, locate)
        return y

    def _rows(self, start: int, stop: int) -> Chunk:
        """Return rows of the files as samples, in new arrays; those without weight are left out."""
        raw, index = self._raw_rows(slice(start, stop)), np.arange(start, stop)
        y = self._samples(raw, index)
        return weighted(y, self._weight_of(raw, index)) if self.is_weighted else Chunk(y, None)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, ``rows`` rows of the files at a time."""
        total = int(self._starts[-1])
        for start in range(0, total, rows):
            yield self._rows(start, min(start + rows, total))
        self._are_checked = True

    def block(self, number: int) -> Chunk:
        """Return the rows of a block."""
        return self._rows(int(self._begin[number]), int(self._end[number]))

    def reader(self) -> Reader:
        """Return a reader of rows by index: it relies on the page cache if no row is left out."""
        return self if self._is_whole else super().reader()

    def take(self, index: Index) -> Batch:
        """Return the rows with these indices."""
        if not self._is_whole:
            return super().take(index)
        index = np.asarray(index)
        raw = self._raw_rows(index)
        return Batch(self._samples(raw, index), self._weight_of(raw, index), index)

    def fingerprint(self) -> str:
        """Return a hash of the rows, the weights and the layout; it reads all rows."""
        columns = (self._columns, self._weight_column, self.layout.per_window, self._block_rows)
        return fingerprint(f"npy{columns}", *self._arrays, self._weights)


def _open(part: Any, number: int) -> tuple[str, np.ndarray]:
    """Return the name of the array in messages, and the array."""
    if isinstance(part, str | os.PathLike):
        return str(part), open_npy(Path(part))
    if not isinstance(part, np.ndarray):
        raise TypeError(f"data must be .npy files or memory maps, got {type(part).__name__}.")
    label = f"array {number}" if number else "data"
    if isinstance(part, np.memmap) and part.filename:
        label = str(part.filename)
    _check_rows(label, part.dtype, part.shape)
    return label, np.asarray(part)


def _check_rows(label: Path | str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Raise ValueError for an array that is not rows of numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(f"{label} must hold real numbers, got dtype {dtype}.")
    if len(shape) not in (1, 2):
        raise ValueError(f"{label} must hold an array of shape (n,) or (n, d), got {len(shape)} axes.")
    if 0 in shape:
        raise ValueError(f"{label} must have at least one row and one column, got shape {shape}.")


def check_cells(
    values: np.ndarray,
    columns: Sequence[int],
    allow_missing: bool,
    locate: Callable[[int], tuple[Path | str, int]],
) -> None:
    """Raise ValueError for the first cell that is not finite.

    Parameters
    ----------
    values : ndarray, shape (b, d)
        Rows.
    columns : sequence of int
        Indices of their columns in the file.
    allow_missing : bool
        Whether NaN is no error.
    locate : callable
        Returns the file of a row, and its index there.
    """
    bad = first_bad_cell(values, allow_missing)
    if bad is not None:
        file, row = locate(bad[0])
        raise not_finite(file, values[bad], f"in row {row}, column {columns[bad[1]]} (both from 0)")


def npy_columns(file: Path, array: np.ndarray) -> Header:
    """Return the columns of an array, which have no names."""
    return Header(file, (), [""] * (1 if array.ndim == 1 else array.shape[1]))


class NpyHeader(NamedTuple):
    """Description of an array: ``shape``, ``dtype``, Fortran order, and the offset of the data."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    offset: int

    @property
    def n_bytes(self) -> int:
        """Bytes of the data, as a Python int, which does not overflow."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy_header(stream: BinaryIO, file: Path, what: str = "a file of numpy.save") -> NpyHeader:
    """Return the header at the beginning of a stream, or raise ValueError.

    Parameters
    ----------
    stream : binary file
        At its beginning.
    file : Path
        For the message.
    what : str
        What it should be.

    Examples
    --------
    >>> import io, numpy as np
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.zeros((3, 2)))
    >>> _ = stream.seek(0)
    >>> read_npy_header(stream, Path("toy.npy"))
    NpyHeader(shape=(3, 2), dtype=dtype('float64'), fortran=False, offset=128)
    """
    try:
        shape, fortran, dtype = READERS[npy_format.read_magic(stream)](stream)
        is_sound = dtype.subdtype is None and all(length >= 0 for length in shape)
    except OSError:
        raise
    except Exception:  # NumPy evaluates the header as a literal, which raises any of Python's errors
        is_sound = False
    if not is_sound:
        raise ValueError(f"{file} must be {what}, got a damaged one or something else.")
    if dtype.names:
        raise ValueError(f"{file} must hold real numbers, got named fields.")
    if dtype.hasobject:
        raise ValueError(f"{file} must hold numbers, got Python objects, which are not read.")
    return NpyHeader(shape, dtype, fortran, stream.tell())


def open_npy(file: Path) -> np.ndarray:
    """Return the array (n,) or (n, d) of numbers in a file, memory-mapped, or raise an error."""
    with file.open("rb") as stream:
        header = read_npy_header(stream, file)
    _check_rows(file, header.dtype, header.shape)
    size = max(0, file.stat().st_size - header.offset)
    if header.n_bytes > size:
        raise ValueError(
            f"{file} must have {header.n_bytes:,} bytes of numbers, as many as its shape {header.shape} "
            f"needs, got {size:,}: it is damaged."
        )
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.memmap(file, header.dtype, mode="r", offset=header.offset, shape=header.shape, order=order)


def is_small(array: np.ndarray) -> bool:
    """Return whether float32 holds the numbers of an array exactly."""
    return array.dtype.kind == "f" and array.dtype.itemsize <= 4
