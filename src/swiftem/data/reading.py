"""Items that a thread reads ahead of their use."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["read_ahead"]

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
