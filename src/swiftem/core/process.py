"""What runs share with their process: Ctrl-C, and a clock.

Ctrl-C is delayed until an iteration or an import is complete. The clock stands still while kernels are
compiled: reported seconds do not contain that.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter, sleep
from types import FrameType

AGAIN = 0.01
"""Seconds after which Ctrl-C comes again if there is an import under way."""


class AfterImports:
    """Handler of Ctrl-C that raises KeyboardInterrupt as Python's does, but never within an import.

    Packages turn the exception into errors of their own while they are imported. Only imports within the
    caller of the constructor count: a program may itself be a module that is imported.

    >>> before = signal.signal(signal.SIGINT, AfterImports())
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    def __init__(self) -> None:
        self._caller = sys._getframe(1)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or let the signal come again."""
        found: FrameType | None = sys._getframe(1)
        while found is not None and found is not self._caller:
            if found.f_code.co_filename.startswith("<frozen importlib"):
                _thread.start_new_thread(_send_again, ())  # a Thread takes locks that may be held here
                return
            found = found.f_back
        signal.default_int_handler(number, frame)


def _send_again() -> None:
    sleep(AGAIN)
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # also wakes the thread if it waits
    else:
        _thread.interrupt_main()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Context that Ctrl-C does not interrupt; it takes effect when the context ends.

    For imports of packages that cannot be imported again after a partial import: Numba's registries keep the
    first part. Outside the main thread nothing is changed, as signals do not reach it.

    >>> with uninterrupted():
    ...     import numpy
    """
    before = signal.getsignal(signal.SIGINT)
    # A handler that is not callable ignores the signal, ends the process, or is not Python's.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: pressed.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            before(*pressed[0])


class CompileClock:
    """A clock that stands still while code is compiled.

    Numba compiles in one thread at a time, so that times of compiling never overlap.

    Examples
    --------
    >>> compiling = CompileClock()
    >>> before = compiling.now()
    >>> compiling.stop()
    >>> stopped = compiling.now()
    >>> compiling.now() == stopped
    True
    >>> compiling.go_on()
    >>> before <= stopped <= compiling.now()
    True
    """

    def __init__(self) -> None:
        self._lock, self._compiled = Lock(), 0.0
        self._stopped_at: float | None = None

    def stop(self) -> None:
        """Something begins to be compiled."""
        with self._lock:
            if self._stopped_at is None:
                self._stopped_at = perf_counter()

    def go_on(self) -> None:
        """Compiling has ended."""
        with self._lock:
            if self._stopped_at is not None:
                self._compiled += perf_counter() - self._stopped_at
            self._stopped_at = None

    def now(self) -> float:
        """Return the seconds since some moment, without the time of compiling."""
        with self._lock:
            now = perf_counter() if self._stopped_at is None else self._stopped_at
            return now - self._compiled


compile_clock = CompileClock()
"""That of this process; :mod:`swiftem.kernels.compile` stops it."""


clock = compile_clock.now
"""As :func:`time.perf_counter`, without the seconds in which kernels were compiled."""
