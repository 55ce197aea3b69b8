"""Reading ahead in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar, cast

__all__ = ["read_ahead"]

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
