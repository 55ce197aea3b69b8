"""A clock that stands still while kernels are compiled: reported seconds do not contain that."""

from __future__ import annotations

from threading import Lock
from time import perf_counter

__all__ = ["CompileClock", "clock", "compile_clock"]


class CompileClock:
    """Seconds without those of compiling.

    Numba compiles in one thread at a time, so that times of compiling never overlap.

    Examples
    --------
    >>> compiling = CompileClock()
    >>> before = compiling.now()
    >>> compiling.stop()
    >>> stopped = compiling.now()
    >>> compiling.now() == stopped
    True
    >>> _ = compiling.go_on()
    >>> before <= stopped <= compiling.now()
    True
    """

    def __init__(self) -> None:
        self._lock, self._compiled, self._stopped_at = Lock(), 0.0, None

    _stopped_at: float | None

    def stop(self) -> None:
        """Something begins to be compiled."""
        with self._lock:
            if self._stopped_at is None:
                self._stopped_at = perf_counter()

    def go_on(self) -> float:
        """Compiling has ended; return the seconds that it took."""
        with self._lock:
            began, self._stopped_at = self._stopped_at, None
            seconds = 0.0 if began is None else perf_counter() - began
            self._compiled += seconds
            return seconds

    def now(self) -> float:
        """Return the seconds since some moment, without those of compiling."""
        with self._lock:
            now = perf_counter() if self._stopped_at is None else self._stopped_at
            return now - self._compiled


compile_clock = CompileClock()
"""That of this process; :mod:`swiftem.engine.numba.compile` stops it."""


def clock() -> float:
    """As :func:`time.perf_counter`, without the seconds in which kernels were compiled.

    >>> clock() <= clock()
    True
    """
    return compile_clock.now()
