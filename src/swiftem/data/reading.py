"""Samples of a stored source: by index, with a bounded number of blocks, or read ahead in a thread."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from swiftem.core.source import Batch
from swiftem.core.types import Index

if TYPE_CHECKING:
    from swiftem.data.stored import Chunk, StoredSource

__all__ = ["RowReader", "read_ahead"]


class RowReader:
    """Keeps the blocks of the current windows: two windows for each stream of draws.

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
        self._streams = 1
        self._in_order: Iterator[tuple[int, Chunk]] = iter(())

    def serve(self, streams: int) -> None:
        """Prepare for this number of streams of draws."""
        self._streams = max(1, streams)

    @property
    def most_blocks(self) -> int:
        """Number of blocks that are kept."""
        return 2 * self._streams * (1 if self._layout.in_order else self._layout.per_window)

    def take(self, index: Index, once: bool = False) -> Batch:
        """Return the samples with these indices; ``once``: blocks are not kept."""
        source, edges = self._source, self._layout.edges
        y = np.empty((len(index), *source.tail), dtype=source.dtype)
        weight = np.ones(len(index))
        if len(index) and (index.min() < 0 or index.max() >= source.n):
            raise IndexError(f"index must be from 0 to {source.n - 1}, got {index.min()} to {index.max()}.")
        of_block = np.searchsorted(edges, index, side="right") - 1
        order = np.argsort(of_block, kind="stable")
        first = np.flatnonzero(np.diff(of_block[order], prepend=-1))
        for start, stop in pairwise([*first, len(order)]):
            here = order[start:stop]
            number = int(of_block[here[0]])
            chunk = self._block(number, 1 if once else self.most_blocks)
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
        from swiftem.data.stored import Chunk

        for place, chunk in self._in_order:
            if place == number:
                return chunk
            if place > number:
                break
        batches = self._source.blocks(int(self._layout.edges[1]))
        self._in_order = ((place, Chunk(batch.y, batch.weight)) for place, batch in enumerate(batches))
        for place, chunk in self._in_order:
            if place == number:
                return chunk
        start = self._layout.edges[number]
        raise ValueError(f"data must be the same in every pass, but row {start} is missing.")


T = TypeVar("T")

AHEAD = 2
"""Items that wait, in addition to the one being read."""
END = object()


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
    >>> from swiftem.data.reading import read_ahead
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    waiting: deque[Future[Any]] = deque()
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
        close = getattr(items, "close", None)
        if close is not None and not is_reader:
            close()
