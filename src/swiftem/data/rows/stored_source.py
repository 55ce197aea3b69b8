"""Samples that are not in memory: the common part of files and streams of blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import check_int
from swiftem._typing import Array, Index
from swiftem.data.rows.row_reader import RowReader, read_ahead
from swiftem.data.rows.table_columns import Column, Columns, Wanted, check_same_columns, label, left_out_of
from swiftem.data.source import Access, Batch

__all__ = ["Chunk", "FileSource", "Layout", "StoredSource", "rechunk", "weighted"]

WINDOW_BYTES = 16 * 2**20
"""Default size of a window, within which draws are shuffled."""
CHUNK_BYTES = 2**20
"""Size of the part of a full pass that a thread processes at a time."""


class Chunk(NamedTuple):
    """Consecutive rows: ``y`` (b, d) or (b,) and ``weight`` (b,), None if there are no weights."""

    y: NDArray[Any]
    weight: Array | None


def weighted(y: NDArray[Any], weight: Array) -> Chunk:
    """Return samples with their weights, without those of weight zero.

    >>> weighted(np.array([1.0, 2.0]), np.array([0.0, 3.0]))
    Chunk(y=array([2.]), weight=array([3.]))
    """
    return Chunk(y, weight) if weight.all() else Chunk(y[weight > 0], weight[weight > 0])


class Layout(NamedTuple):
    """The order of draws from a source.

    Attributes
    ----------
    edges : ndarray of int, shape (B + 1,)
        First indices of its B blocks, and n.
    per_window : int
        Number of consecutive blocks that are shuffled together.
    in_order : bool
        Whether blocks come in the order of the data, or in random order.
    """

    edges: Index
    per_window: int
    in_order: bool

    @property
    def window_rows(self) -> int:
        """Maximum number of rows of a window."""
        return int(np.sort(np.diff(self.edges))[-self.per_window :].sum())


class StoredSource(ABC):
    """Base class of sources whose samples are read on demand.

    A subclass sets ``n``, ``total_weight``, ``dtype``, ``tail`` (the shape of a sample, () or (d,)) and
    ``is_weighted``, then calls :meth:`lay_out`, and implements :meth:`chunks`, :meth:`fingerprint` and, for
    random access, :meth:`block`. ``examples/npz_source.py`` is a complete one.
    """

    access: ClassVar[Access]
    overlaps: ClassVar[bool] = True
    """Whether a thread may read ahead."""
    reading: ClassVar[int] = 0
    """Bytes used by the reading library itself (measured)."""

    n: int
    total_weight: float
    dtype: np.dtype[Any]
    tail: tuple[int, ...]
    layout: Layout
    is_weighted: bool
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """Indices of the columns in the files, if there are files."""
    notes: tuple[str, ...] = ()

    def __init__(self, window: int | None = None, allow_missing: bool = False) -> None:
        if window is not None:
            check_int("window", window, minimum=1)
        self._window = window
        #: Whether NaN is a missing cell, instead of an error.
        self.allow_missing = allow_missing
        #: Results of passes, such as the mean of the rows, so that they are not computed twice.
        self.found: dict[str, Any] = {}

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all samples in order, about ``rows`` at a time; those of weight zero are left out."""

    def block(self, number: int) -> Chunk:
        """Return the samples of block ``number`` of the layout; for random access only."""
        raise NotImplementedError

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes if samples, weights or the layout, and therefore the draws, change."""

    def unweighted(self) -> StoredSource:
        """Return a source of all samples, including those of weight zero, without weights."""
        return self

    @property
    def row_bytes(self) -> int:
        """Size of a sample and its weight in memory."""
        size = self.dtype.itemsize * int(np.prod(self.tail, dtype=np.intp))
        return size + (8 if self.is_weighted else 0)

    @property
    def chunk_rows(self) -> int:
        """Samples per part of a full pass: a function of the size of a sample alone."""
        return max(256, CHUNK_BYTES // self.row_bytes)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all samples in order, exactly ``rows`` at a time except the last part, in new arrays."""
        wanted = min(self.chunk_rows, max(rows, 4096))
        chunks = self.chunks(wanted)
        if self.overlaps:
            chunks = read_ahead(chunks)
        start = 0
        for y, weight in rechunk(chunks, rows):
            index = np.arange(start, start + len(y))
            yield Batch(y, np.ones(len(y)) if weight is None else weight, index)
            start += len(y)
        if start != self.n:
            raise ValueError(
                f"data must be the same in every pass, got {self.n} rows first and then {start}."
            )

    def reader(self) -> RowReader:
        """Return a reader of samples by index, with its own buffers for the windows of one run."""
        return RowReader(self)

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, which may repeat.

        If the data can only be read in order, this is a pass, but takes no more memory than the samples.
        """
        return self.reader().take(np.asarray(index), once=True)

    def lay_out(self, lengths: Any = None) -> None:
        """Set the layout of draws: blocks of these lengths in random order; without any, rows in order."""
        wanted = self._window or max(1, WINDOW_BYTES // self.row_bytes)
        if lengths is None:
            edges = np.append(np.arange(0, self.n, wanted), self.n)
            self.layout = Layout(edges, 1, in_order=True)
            return
        edges = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.intp))]).astype(np.intp)
        mean = max(1.0, edges[-1] / (len(edges) - 1))
        per_window = min(max(1, ceil(wanted / mean)), len(edges) - 1)
        self.layout = Layout(edges, per_window, in_order=False)


class FileSource(StoredSource):
    """Base class of sources that are tables in files with the same columns.

    A subclass implements :meth:`_look` at a file, and :meth:`_survey`, which sets ``n``, ``total_weight``,
    ``dtype`` and the layout.
    """

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
        self._choices: list[Columns] = []
        self._looked: list[Any] = []
        for file in self._files:
            names, chosen, looked = self._look(file, wanted)
            labels = tuple(label(names, place) for place in chosen.data)
            if not self._choices:
                self._names, first = names, labels
            check_same_columns(self._files[0], first, file, labels)
            self._choices.append(chosen)
            self._looked.append(looked)
        self._chosen = self._choices[0]
        self.names, self.notes = self._chosen.names, left_out_of(self._files, self._choices)
        self.numbers = self._chosen.numbers
        self.tail, self.is_weighted = (len(self._chosen.data),), self._chosen.weights is not None
        self._survey()

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, including those of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return type(self)(self._files, self.numbers, window=self._window, allow_missing=self.allow_missing)

    @abstractmethod
    def _look(self, file: Path, wanted: Wanted) -> tuple[Sequence[str], Columns, Any]:
        """Return the names of all columns of a file, the choice, and further information."""

    @abstractmethod
    def _survey(self) -> None:
        """Count the rows, sum the weights, and set the layout of blocks."""


def rechunk(chunks: Iterator[Chunk], rows: int) -> Iterator[Chunk]:
    """Yield the same samples in chunks of exactly ``rows``, except the last.

    >>> import numpy as np
    >>> two = [Chunk(np.arange(3), None), Chunk(np.arange(3, 5), None)]
    >>> [chunk.y.tolist() for chunk in rechunk(iter(two), 2)]
    [[0, 1], [2, 3], [4]]
    """
    held: list[Chunk] = []
    count = 0
    for chunk in chunks:
        start = 0
        while start < len(chunk.y):
            stop = min(len(chunk.y), start + rows - count)
            weight = None if chunk.weight is None else chunk.weight[start:stop]
            held.append(Chunk(chunk.y[start:stop], weight))
            count += stop - start
            start = stop
            if count == rows:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    weights = [chunk.weight for chunk in held if chunk.weight is not None]
    return Chunk(
        np.concatenate([chunk.y for chunk in held]),
        np.concatenate(weights) if len(weights) == len(held) else None,
    )
