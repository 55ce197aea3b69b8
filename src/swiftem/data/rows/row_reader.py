"""Samples of a stored source: by index, with a bounded number of blocks, or read ahead in a thread."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from swiftem._typing import Index
from swiftem.data.source import Batch

if TYPE_CHECKING:
    from swiftem.data.rows.stored_source import Chunk, StoredSource

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
        self._source, self._edges = source, source.layout.edges
        self._held: OrderedDict[int, Chunk] = OrderedDict()
        self._streams = 1
        self._ahead: Iterator[Batch] | None = None
        self._next = 0

    def serve(self, streams: int) -> None:
        """Prepare for this number of streams of draws."""
        self._streams = max(1, streams)

    @property
    def most_blocks(self) -> int:
        """Number of blocks that are kept."""
        layout = self._source.layout
        return 2 * self._streams * (1 if layout.in_order else layout.per_window)

    def take(self, index: Index, once: bool = False) -> Batch:
        """Return the samples with these indices; ``once``: blocks are not kept."""
        source = self._source
        y = np.empty((len(index), *source.tail), dtype=source.dtype)
        weight = np.ones(len(index))
        if len(index) and (index.min() < 0 or index.max() >= source.n):
            raise IndexError(f"index must be from 0 to {source.n - 1}, got {index.min()} to {index.max()}.")
        of_block = np.searchsorted(self._edges, index, side="right") - 1
        order = np.argsort(of_block, kind="stable")
        first = np.flatnonzero(np.diff(of_block[order], prepend=-1))
        for start, stop in pairwise([*first, len(order)]):
            here = order[start:stop]
            number = int(of_block[here[0]])
            chunk = self._block(number, once)
            place = index[here] - self._edges[number]
            y[here] = chunk.y[place]
            if chunk.weight is not None:
                weight[here] = chunk.weight[place]
        return Batch(y, weight, index)

    def _block(self, number: int, once: bool) -> Any:
        chunk = self._held.get(number)
        if chunk is None:
            chunk = self._in_order(number) if self._source.layout.in_order else self._source.block(number)
            most = 1 if once else self.most_blocks
            while len(self._held) >= most:
                self._held.popitem(last=False)
            self._held[number] = chunk
        self._held.move_to_end(number)
        return chunk

    def _in_order(self, number: int) -> Any:
        """Return block ``number``: by reading further, or from the beginning."""
        from swiftem.data.rows.stored_source import Chunk

        rows = int(self._edges[1])
        if self._ahead is None or number < self._next:
            self._ahead, self._next = self._source.blocks(rows), 0
        for batch in self._ahead:
            self._next += 1
            if self._next > number:
                if self._next == len(self._edges) - 1:
                    self._ahead = None
                return Chunk(batch.y, batch.weight)
        raise ValueError(f"data must be the same in every pass, but row {self._edges[number]} is missing.")


T = TypeVar("T")

AHEAD = 2
"""Items that wait, in addition to the one being read."""
PATIENCE = 0.05
"""Seconds after which an idle reader checks whether it is still needed."""


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
    >>> from swiftem.data.rows.row_reader import read_ahead
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(ahead)
    unwanted = threading.Event()

    def hand_over(entry: tuple[T | None, BaseException | None]) -> bool:
        while not unwanted.is_set():
            try:
                waiting.put(entry, timeout=PATIENCE)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        error: BaseException = StopIteration()
        try:
            for item in items:
                if not hand_over((item, None)):
                    return
        except BaseException as raised:
            error = raised
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        hand_over((None, error))

    thread = threading.Thread(target=read, name="swiftem-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is None:
                yield cast(T, item)
            elif isinstance(error, StopIteration):
                return
            else:
                raise error
    finally:
        unwanted.set()
        if thread is not threading.current_thread():  # garbage may be collected by the reader itself
            thread.join()
