"""Samples that are not in memory: the common part of files and streams of blocks."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.source import Batch, Layout, Reader, Source
from swiftem.core.types import Array, Index
from swiftem.kernels.threads import get_threads

T = TypeVar("T")

WINDOW_BYTES = 16 * 2**20
"""Default size of a window, within which draws are shuffled."""
CHUNK_BYTES = 2**20
"""Size of the part of a full pass that a thread processes at a time."""
INDICES = 8 * 65_536 * 8
"""Memory of sample indices that are drawn ahead, and of arrays derived from them."""
AHEAD = 2
"""Items that wait to be used while a thread reads the next one."""
END = object()


class Chunk(NamedTuple):
    """Consecutive rows: ``y`` (b, d) or (b,) and ``weight`` (b,), None if there are no weights."""

    y: np.ndarray
    weight: Array | None

    def part(self, start: int, stop: int | None) -> Chunk:
        """Return some of the rows."""
        return Chunk(self.y[start:stop], None if self.weight is None else self.weight[start:stop])


def weighted(y: np.ndarray, weight: Array | None) -> Chunk:
    """Return samples with their weights, if there are any, without samples of weight zero.

    >>> weighted(np.array([1.0, 2.0]), np.array([0.0, 3.0]))
    Chunk(y=array([2.]), weight=array([3.]))
    """
    return Chunk(y, weight) if weight is None or weight.all() else Chunk(y[weight > 0], weight[weight > 0])


class StoredSource(Source):
    """Base class of sources whose samples are read on demand.

    A subclass sets ``n``, ``total_weight``, ``dtype``, ``tail`` (the shape of a sample, () or (d,)) and
    ``is_weighted``, then calls :meth:`lay_out`, and implements :meth:`chunks`, :meth:`fingerprint` and, for
    random access, :meth:`block`. ``examples/npz_source.py`` is a complete one.
    """

    overlaps: bool = True
    """Whether a thread may read ahead."""
    reading: int = 0
    """Bytes used by the reading library itself (measured)."""

    n: int = 0
    total_weight: float = 0.0
    dtype: np.dtype
    tail: tuple[int, ...]
    layout: Layout
    is_weighted: bool = False
    numbers: tuple[int, ...] = ()
    """Indices of the columns in the files, if there are files."""
    notes: tuple[str, ...] = ()

    def __init__(self, window: int | None = None, allow_missing: bool = False) -> None:
        if window is not None:
            check_int("window", window, minimum=1)
        self._window = window
        self.allow_missing = allow_missing

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all samples in order, about ``rows`` at a time; those without weight are left out."""

    def block(self, number: int) -> Chunk:
        """Return the samples of block ``number`` of the layout; for random access only."""
        raise NotImplementedError

    def unweighted(self) -> StoredSource:
        """Return a source of all samples, also of weight zero, without weights."""
        return self

    @property
    def row_bytes(self) -> int:  # type: ignore[override]
        """Size of a sample and its weight in memory."""
        size = self.dtype.itemsize * int(np.prod(self.tail, dtype=np.intp))
        return size + (8 if self.is_weighted else 0)

    @property
    def chunk_rows(self) -> int:  # type: ignore[override]
        """Samples per part of a full pass: a function of the size of a sample alone."""
        return max(256, CHUNK_BYTES // self.row_bytes)

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes of the parts of a full pass, and of the windows of draws."""
        needed = self.reading + (get_threads() + 8) * self.chunk_rows * self.row_bytes
        if streams:
            rows = self.layout.window_rows
            # Blocks of two windows per stream; the samples of a stretch, and their indices.
            cached = 2 * streams * (2 if self.layout.in_order else 1) * rows * self.row_bytes
            needed += cached + streams * rows * (3 * self.row_bytes + 8 * 8) + INDICES
        return needed

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all samples in order, exactly ``rows`` at a time except the last part, in new arrays."""
        part = min(self.chunk_rows, max(rows, 4096))
        chunks = rechunk(self.chunks(part), part)  # small chunks are not worth a change of threads
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

    def reader(self) -> Reader:
        """Return a reader of samples by index, with its own buffers for the windows of one run."""
        return RowReader(self)

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, which may repeat.

        If the data can only be read in order, this is a pass, but takes no more memory than the samples.
        """
        return RowReader(self).take(np.asarray(index), once=True)

    def lay_out(self, lengths: Sequence[int] | Index | None = None) -> None:
        """Set the layout of draws: blocks of these lengths in random order; without any, rows in order."""
        wanted = self._window or max(1, WINDOW_BYTES // self.row_bytes)
        if lengths is None:
            edges = np.append(np.arange(0, self.n, wanted), self.n)
            self.layout = Layout(edges, 1, in_order=True)
            return
        edges = np.append(0, np.cumsum(lengths, dtype=np.intp))
        mean = max(1.0, edges[-1] / (len(edges) - 1))
        per_window = min(max(1, ceil(wanted / mean)), len(edges) - 1)
        self.layout = Layout(edges, per_window, in_order=False)


class RowReader:
    """Reads samples by index, and keeps the blocks of the current windows: two for each stream of draws.

    If data can only be read in order, a block is a window, and an earlier one is found by reading from the
    beginning, as in a new epoch.

    Parameters
    ----------
    source : StoredSource
        The samples.
    """

    def __init__(self, source: StoredSource) -> None:
        self._source, self._layout = source, source.layout
        self._cache: OrderedDict[int, Chunk] = OrderedDict()
        self._in_order: Iterator[tuple[int, Batch]] = iter(())
        self.serve(1)

    def serve(self, streams: int) -> None:
        """Prepare for this number of streams of draws."""
        self._most_blocks = 2 * max(1, streams) * (1 if self._layout.in_order else self._layout.per_window)

    def take(self, index: Index, once: bool = False) -> Batch:
        """Return the samples with these indices; ``once``: blocks are not kept."""
        source, edges = self._source, self._layout.edges
        y = np.empty((len(index), *source.tail), dtype=source.dtype)
        weight = np.ones(len(index))
        if len(index) and (index.min() < 0 or index.max() >= source.n):
            raise IndexError(f"index must be from 0 to {source.n - 1}, got {index.min()} to {index.max()}.")
        blocks = np.searchsorted(edges, index, side="right") - 1
        order = np.argsort(blocks, kind="stable")
        first = np.flatnonzero(np.diff(blocks[order], prepend=-1))
        for start, stop in pairwise([*first, len(order)]):
            here = order[start:stop]
            number = int(blocks[here[0]])
            chunk = self._block(number, 1 if once else self._most_blocks)
            y[here] = chunk.y[index[here] - edges[number]]
            if chunk.weight is not None:
                weight[here] = chunk.weight[index[here] - edges[number]]
        return Batch(y, weight, index)

    def _block(self, number: int, most: int) -> Chunk:
        """Return a block, from the cache of at most ``most`` blocks if it is there."""
        chunk = self._cache.get(number)
        if chunk is None:
            chunk = self._read_on(number) if self._layout.in_order else self._source.block(number)
            while len(self._cache) >= most:
                self._cache.popitem(last=False)
            self._cache[number] = chunk
        self._cache.move_to_end(number)
        return chunk

    def _read_on(self, number: int) -> Chunk:
        """Return block ``number`` of data in order: by reading further, or from the beginning."""
        for is_again in (False, True):
            if is_again:
                self._in_order = enumerate(self._source.blocks(int(self._layout.edges[1])))
            for place, batch in self._in_order:
                if place == number:
                    return Chunk(batch.y, batch.weight)
                if place > number:
                    break
        start = self._layout.edges[number]
        raise ValueError(f"data must be the same in every pass, but row {start} is missing.")


def rechunk(chunks: Iterator[Chunk], rows: int) -> Iterator[Chunk]:
    """Yield the same samples in chunks of exactly ``rows``, except the last.

    >>> import numpy as np
    >>> two = [Chunk(np.arange(3), None), Chunk(np.arange(3, 5), None)]
    >>> [chunk.y.tolist() for chunk in rechunk(iter(two), 2)]
    [[0, 1], [2, 3], [4]]
    """
    pending: list[Chunk] = []
    missing = rows
    for chunk in chunks:
        rest = chunk
        while len(rest.y):
            pending.append(rest.part(0, missing))
            rest, missing = rest.part(missing, None), missing - len(pending[-1].y)
            if not missing:
                yield _joined(pending)
                pending, missing = [], rows
    if pending:
        yield _joined(pending)


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    y = np.concatenate([chunk.y for chunk in chunks])
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return Chunk(y, np.concatenate(weights) if weights else None)


def read_ahead(items: Iterator[T], ahead: int = AHEAD) -> Generator[T, None, None]:
    """Yield the items in order, while a thread reads the next ones, at most ``ahead`` + 1 of them.

    Errors of the thread are raised here, after the items before them. When the consumer stops, by ``close``,
    by an exception or by garbage collection of the generator, the thread ends and ``items`` is closed.

    Parameters
    ----------
    items : iterator
        The items; used only by the thread.
    ahead : int
        Number of items that wait.

    Examples
    --------
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    waiting = deque()  # type: ignore[var-annotated]  # futures of items, or of END
    name = f"swiftem-reader-{id(waiting)}"
    pool = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        while True:
            while len(waiting) <= ahead + 1:
                waiting.append(pool.submit(next, items, END))
            item = waiting.popleft().result()
            if item is END:
                return
            yield item
    finally:
        # The garbage collector may run this in the reader's thread, which cannot wait for itself.
        is_reader = threading.current_thread().name.startswith(name)
        pool.shutdown(wait=not is_reader, cancel_futures=True)
        close = getattr(items, "close", None)  # iterators that are no generators may have none
        if close is not None and not is_reader:
            close()
