"""Reading while somebody computes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar, cast

__all__ = ["read_ahead"]

T = TypeVar("T")

AHEAD = 2
"""Items that wait, besides the one that is being read."""
PATIENCE = 0.05
"""Seconds after which a reader that nobody takes from looks whether it is still wanted."""


def read_ahead(items: Iterator[T], ahead: int = AHEAD) -> Generator[T, None, None]:
    """Yield the items in order; a thread reads the next ones meanwhile, at most ``ahead`` + 1 of them.

    What goes wrong in the thread is raised here, after the items before it. When the consumer stops, by
    ``close``, by an exception or because nobody holds the generator, the thread ends and ``items`` is closed.

    Parameters
    ----------
    items : iterator
        What is read; used by the thread alone.
    ahead : int
        How many items wait.

    Examples
    --------
    >>> from swiftem.data.rows.read_ahead import read_ahead
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
        thread.join()
