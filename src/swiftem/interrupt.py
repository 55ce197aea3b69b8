"""Ctrl-C, held back until an iteration is complete."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["DeferredInterrupt"]


class DeferredInterrupt:
    """Context in which Ctrl-C raises at the next :meth:`check` instead of anywhere.

    Memory and statistics are then never half-written. A second Ctrl-C raises at once. Outside the main
    thread, or where the program has its own handler of the signal, nothing is changed.

    >>> with DeferredInterrupt() as interrupt:
    ...     interrupt.check()
    """

    def __init__(self) -> None:
        self._requested = False
        self._previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._requested:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True
