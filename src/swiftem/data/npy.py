"""Arrays in ``.npy`` files, memory-mapped, as samples that are read on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import ArrayLike

from swiftem.core.checks import check_weight_column, read_sample_weight
from swiftem.core.files import damage_named, fingerprint
from swiftem.core.source import Access, Batch, Reader
from swiftem.core.types import Array, Index
from swiftem.data.columns import Header, Wanted, choose_columns
from swiftem.data.stored import Chunk, StoredSource, weighted
from swiftem.data.table_files import check_cells

NpyRows: TypeAlias = str | os.PathLike[str] | np.ndarray
"""A file, or a memory map."""
BLOCK_BYTES = 128 * 2**10
"""Bytes of a block of draws: large enough for one efficient disk read, small enough for many in a window."""
WINDOW_BLOCKS, FILE_BLOCKS = 128, 4096
"""Minimum number of blocks of a window and of a file, if there are enough rows: with more blocks, sorted rows
matter less. A large window of few blocks does not help (``benchmarks/sorted_draws.py``)."""


class NpySource(StoredSource):
    """The rows of one or several ``.npy`` files or memory maps, read on demand.

    Draws are by blocks: see :func:`swiftem.core.draws.block_draws`. Numbers that are not finite raise an
    error in the first pass, with their position.

    Parameters
    ----------
    files : path, array, or a sequence of paths or arrays
        Of shape (n,) or (n, d), with the same columns. Arrays should be memory maps; they are not copied.
    wanted : Wanted, optional
        The choice of columns, as :func:`swiftem.data.open_source` makes it; by default all are data.
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
        files: NpyRows | Sequence[NpyRows],
        wanted: Wanted | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        window: int | None = None,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(window, allow_missing)
        if isinstance(files, str | os.PathLike | np.ndarray):
            files = [files]
        self._files = list(files)
        if not self._files:
            raise ValueError("data must be at least one file, got none.")
        opened = [open_npy(part, number) for number, part in enumerate(self._files)]
        self._labels, self._arrays = [label for label, _ in opened], [array for _, array in opened]
        self._choose(wanted or Wanted())
        self._starts = np.cumsum([0, *map(len, self._arrays)])
        self.n = int(self._starts[-1])
        self.total_weight = float(self.n)
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
        header = npy_header(self._labels[0], first)
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
        check_weight_column(weight, lambda row: self._locate(int(index[row])))
        return weight

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, also of weight zero, without weights."""
        if not self.is_weighted:
            return self
        wanted = Wanted(self.numbers)
        return NpySource(self._files, wanted, window=self._window, allow_missing=self.allow_missing)

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

        def locate(row: int, column: int) -> tuple[str, str]:
            label, row_in_file = self._locate(int(index[row]))
            return label, cell_of(row_in_file, self.numbers[column])

        chosen = raw if self._columns is None else raw[:, self._columns]
        with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow: reported below
            # A view of the file is copied.
            y = np.array(chosen, self.dtype, order="C", copy=None if chosen.flags.owndata else True)
        if not self._are_checked:
            check_cells(y.reshape(len(y), -1), self.allow_missing, locate)
        return y

    def _rows(self, start: int, stop: int) -> Chunk:
        """Return rows of the files as samples, in new arrays; those without weight are left out."""
        raw, index = self._raw_rows(slice(start, stop)), np.arange(start, stop)
        return weighted(self._samples(raw, index), self._weight_of(raw, index) if self.is_weighted else None)

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


def open_npy(part: NpyRows, number: int = 0) -> tuple[str, np.ndarray]:
    """Return rows (n,) or (n, d) of numbers with their name in messages; of a file they are memory-mapped."""
    if isinstance(part, str | os.PathLike):
        label = str(part)
        with damage_named(Path(part), "a file of numpy.save with numbers"):
            array = np.asarray(open_memmap(part, mode="r"))
    elif isinstance(part, np.ndarray):
        label = f"array {number}" if number else "data"
        if isinstance(part, np.memmap) and part.filename:
            label = str(part.filename)
        array = np.asarray(part)
    else:
        raise TypeError(f"data must be .npy files or memory maps, got {type(part).__name__}.")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{label} must hold real numbers, got dtype {array.dtype}.")
    if array.ndim not in (1, 2):
        raise ValueError(f"{label} must hold an array of shape (n,) or (n, d), got {array.ndim} axes.")
    if not array.size:
        raise ValueError(f"{label} must have at least one row and one column, got shape {array.shape}.")
    return label, array


def npy_header(label: str, array: np.ndarray) -> Header:
    """Return the columns of an array, which have no names."""
    return Header(Path(label), (), [""] * (1 if array.ndim == 1 else array.shape[1]))


def cell_of(row: int, column: int) -> str:
    """Return the place of a cell in words."""
    return f"in row {row}, column {column} (both from 0)"


def is_small(array: np.ndarray) -> bool:
    """Return whether float32 holds the numbers of an array exactly."""
    return array.dtype.kind == "f" and array.dtype.itemsize <= 4
