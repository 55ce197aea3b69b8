"""Full passes by several threads, with results that do not depend on their number.

The data are divided into parts, ranges of samples that depend on the source alone. Each part is processed
by one thread, and the caller adds the results in the order of the parts.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.source import Source
from swiftem.core.types import Array

T = TypeVar("T")

_threads: int | None = None
_pool: ThreadPoolExecutor | None = None
_is_forked = False
_blas_lock, _blas_users = Lock(), 0
_blas_before: list[tuple[Any, int]] = []


def get_threads() -> int:
    """Return how many threads full passes use: as set, else SWIFTEM_NUM_THREADS, else the available cores."""
    if _threads is not None:
        return _threads
    wanted = os.environ.get("SWIFTEM_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Set how many threads full passes use; None restores the default. Results do not depend on it.

    >>> set_threads(1)
    >>> get_threads()
    1
    >>> set_threads(None)
    """
    global _threads, _pool
    _threads, _pool = None if n is None else check_int("n", n, minimum=1), None


def _after_fork() -> None:
    # A forked child has the pool but not its threads, and limits that no thread of its own will lift.
    global _is_forked, _pool, _blas_lock, _blas_users
    _is_forked, _pool, _blas_lock, _blas_users = True, None, Lock(), 0
    _restore_blas()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def part_ends(n: int, least_rows: int = 4096) -> list[tuple[int, int]]:
    """Return (start, stop) of the parts of ``n`` samples: at most 32, a function of ``n`` alone.

    >>> part_ends(10_000)
    [(0, 5000), (5000, 10000)]
    """
    count = max(1, min(32, n // least_rows))
    edges = [n * place // count for place in range(count + 1)]
    return list(pairwise(edges))


BLOCKS = 64
"""Blocks converted at a time if samples do not have the kernels' type."""


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view: kernels are compiled for such arrays only.

    Numba would compile them again for a writable array.

    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def plain(y: np.ndarray) -> np.ndarray:
    """Return samples in the kernels' form: (b, d), in C order, read-only, float32 or float64.

    Others are converted: each kind of array would be one more kernel to compile.
    """
    y = y[:, None] if y.ndim == 1 else y
    dtype = y.dtype if y.dtype in (np.float32, np.float64) else np.float64
    return read_only(np.require(y, dtype, ["C", "A"]))


def chunks(count: int, block: int) -> list[slice]:
    """Return slices of whole blocks, large enough to be worth a call, and small if they are converted.

    >>> chunks(150, 1)
    [slice(0, 64, None), slice(64, 128, None), slice(128, 150, None)]
    """
    size = BLOCKS * block
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


NONE = read_only(np.empty(0))


class Part(NamedTuple):
    """Consecutive samples: the index of the first, ``y`` (b, d), and ``weight`` (b,) or (0,) for ones."""

    first: int
    y: np.ndarray
    weight: Array

    @property
    def here(self) -> slice:
        """Their position among all samples."""
        return slice(self.first, self.first + len(self.y))


def is_served(source: Source) -> bool:
    """Return whether compiled code can read the rows of a source: in an array, or part by part."""
    return source.rows_in_memory is not None or source.row_bytes > 0


def parts(source: Source, least_rows: int) -> list[Part] | Iterator[Part]:
    """Return the parts of a full pass, which depend only on the source, not on the number of threads.

    For an array they are views, all at once; for a stored source, they are a mebibyte each, read in order by
    a thread that is a few parts ahead of the computation.
    """
    if source.rows_in_memory is None:
        return _read(source)
    y = source.rows_in_memory.reshape(source.n, -1)
    weight = None if source.weight is None else read_only(source.weight)
    return [
        Part(start, y[start:stop], NONE if weight is None else weight[start:stop])
        for start, stop in part_ends(source.n, least_rows=least_rows)
    ]


def _read(source: Source) -> Iterator[Part]:
    for batch in source.blocks(source.chunk_rows):
        y = batch.y[:, None] if batch.y.ndim == 1 else batch.y
        yield Part(int(batch.index[0]), y, read_only(batch.weight) if source.is_weighted else NONE)


@cache
def _blas_libraries() -> list[Any]:
    """Return controllers of the threads of each BLAS, including SciPy's, which compiled kernels call."""
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_blas_threads(library: Any, threads: int) -> None:
    # The public function does nothing if another live thread has called it before.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


@contextmanager
def one_thread_blas() -> Iterator[None]:
    """Return a context in which matrix products use one thread: threads are the library's, sums keep order.

    The setting is for the whole process. Contexts of several threads overlap without nesting: if each
    restored the value it found, the limit of another could remain. So the number of threads before the first
    of them is restored after the last.
    """
    global _blas_users, _blas_before
    libraries = _blas_libraries()
    with _blas_lock:
        if _blas_users == 0:
            _blas_before = [(library, library.num_threads) for library in libraries]
            for library in libraries:
                _set_blas_threads(library, 1)
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users = max(0, _blas_users - 1)  # already 0 if it was entered before a fork
            if _blas_users == 0:
                _restore_blas()


def _restore_blas() -> None:
    global _blas_before
    before, _blas_before = _blas_before, []
    for library, threads in before:
        _set_blas_threads(library, threads)


@cache
def _openmp() -> Any:
    """Return a controller of the threads of scikit-learn's loops; finding it takes milliseconds."""
    import sklearn.cluster  # noqa: F401  # its loops load the library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")


def one_thread_openmp() -> AbstractContextManager[Any]:
    """Return a context in which scikit-learn's loops use one thread; it applies to the current thread."""
    return _openmp().limit(limits=1)  # type: ignore[no-any-return]


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which neither BLAS nor scikit-learn's loops use a second thread.

    >>> with one_thread():
    ...     pass
    """
    with one_thread_blas(), one_thread_openmp():
        yield


def openmp_after_fork() -> AbstractContextManager[Any]:
    """Return a context for scikit-learn's loops: one thread in a forked child, otherwise as many as are set.

    GNU's OpenMP would wait forever in a forked child for threads that only the parent has.
    """
    return one_thread_openmp() if _is_forked else nullcontext()


def in_order(function: Callable[..., T], work: Iterable[tuple[Any, ...]]) -> Generator[T, None, None]:
    """Yield ``function(*item)`` for the items of ``work`` in their order, computed by several threads.

    ``function`` should release the GIL. The calling thread works, too, if ``work`` is a list: threads take
    longer to wake up than small passes last. Other items are requested on demand, few ahead, so that they may
    be read from a file meanwhile. An exception, including Ctrl-C, drops the work that has not begun.

    >>> list(in_order(pow, ((2, power) for power in range(4))))
    [1, 2, 4, 8]
    """
    global _pool
    threads = get_threads()
    if threads == 1 or (isinstance(work, list) and len(work) == 1):
        for item in work:
            yield function(*item)
        return
    pool = _pool  # set_threads in another thread forgets the pool, not its work
    if pool is None:
        pool = _pool = ThreadPoolExecutor(threads, thread_name_prefix="swiftem")
    if isinstance(work, list):
        yield from _together(function, work, pool, threads)
        return
    futures: deque[Future[T]] = deque()
    try:
        for item in work:
            futures.append(pool.submit(function, *item))
            if len(futures) >= threads + 2:  # each thread has one, and the next ones wait
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()
    finally:
        # Work that has begun may write to the caller's arrays: it must end before the caller continues.
        wait([future for future in futures if not future.cancel()])


def _together(
    function: Callable[..., T], work: list[tuple[Any, ...]], pool: ThreadPoolExecutor, threads: int
) -> Generator[T, None, None]:
    """As :func:`in_order`: each thread, and the caller, does the next item that nobody has begun."""
    found: list[Future[T]] = [Future() for _ in work]
    numbers = iter(range(len(work)))  # a call of next is atomic

    def go_on() -> Iterator[None]:
        for i in numbers:
            try:
                found[i].set_result(function(*work[i]))
            except BaseException as error:
                found[i].set_exception(error)
                if not isinstance(error, Exception):  # Ctrl-C
                    raise
            yield

    helpers = [pool.submit(deque, go_on(), 0) for _ in range(min(threads, len(work)) - 1)]
    done = 0
    try:
        for _ in go_on():
            while done < len(work) and found[done].done():
                yield found[done].result()
                found[done], done = Future(), done + 1  # a result may be large
        for future in found[done:]:
            yield future.result()
    finally:
        # Work that has begun may write to the caller's arrays: it must end before the caller continues.
        deque(numbers, 0)
        wait([helper for helper in helpers if not helper.cancel()])
