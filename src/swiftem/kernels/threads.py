"""Threads for full passes, with results that do not depend on their number.

The data are cut into pieces that depend on their size alone; each piece is done by one thread, and the
caller adds the parts up in the order of the pieces.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeVar

from swiftem._checks import check_int

__all__ = ["get_threads", "in_order", "one_thread_blas", "pieces", "set_threads"]

T = TypeVar("T")

_threads: int | None = None
_pool: ThreadPoolExecutor | None = None
_blas: Any = None


def get_threads() -> int:
    """Return how many threads full passes use: as set, else SWIFTEM_NUM_THREADS, else the cores at hand."""
    if _threads is not None:
        return _threads
    wanted = os.environ.get("SWIFTEM_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Set how many threads full passes use; None goes back to the default. Results do not depend on it.

    >>> set_threads(1)
    >>> get_threads()
    1
    >>> set_threads(None)
    """
    global _threads
    _threads = None if n is None else check_int("n", n, minimum=1)
    _forget_pool()


def _forget_pool() -> None:
    # A forked child has the object but not its threads, so it must make its own.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def pieces(n: int, most: int = 32, least_rows: int = 4096) -> list[tuple[int, int]]:
    """Return (start, stop) of the pieces of ``n`` samples: at most ``most``, a function of ``n`` alone.

    >>> pieces(10_000)
    [(0, 5000), (5000, 10000)]
    """
    count = max(1, min(most, n // least_rows))
    edges = [n * place // count for place in range(count + 1)]
    return list(pairwise(edges))


def one_thread_blas() -> AbstractContextManager[Any]:
    """Return a context in which matrix products use one thread: the threads are ours, and sums keep order."""
    global _blas
    if _blas is None:
        from threadpoolctl import ThreadpoolController

        _blas = ThreadpoolController()
    return _blas.limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def in_order(function: Callable[..., T], work: Iterable[tuple[Any, ...]]) -> Generator[T, None, None]:
    """Yield ``function(*item)`` for the items of ``work`` in their order, computed by several threads.

    ``function`` should release the GIL. Items are asked for as they are needed, few ahead, so that they may
    be read from a file meanwhile. An exception, Ctrl-C too, drops the work that has not begun.

    >>> list(in_order(pow, ((2, power) for power in range(4))))
    [1, 2, 4, 8]
    """
    global _pool
    threads = get_threads()
    if threads == 1 or (isinstance(work, list) and len(work) == 1):
        for item in work:
            yield function(*item)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(threads, thread_name_prefix="swiftem")
    # A list is all there already; of what is read on the way, each thread has one and the next ones wait.
    ahead = len(work) if isinstance(work, list) else threads + 2
    futures: deque[Future[T]] = deque()
    try:
        for item in work:
            futures.append(_pool.submit(function, *item))
            if len(futures) >= ahead:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()
    finally:
        # Work that has begun may write to the caller's arrays: it must be over when the caller goes on.
        wait([future for future in futures if not future.cancel()])
