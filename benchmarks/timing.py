"""Timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter, perf_counter_ns
from typing import Any

from swiftem.kernels.threads import get_threads, set_threads

__all__ = ["Laps", "interleaved", "least", "threads"]


def interleaved(calls: Sequence[Callable[[], Any]], repeats: int) -> list[int]:
    """Return the minimum time of each call in nanoseconds.

    The calls alternate, so that a busy minute of the machine affects all of them; the minimum is the time
    without disturbance.
    """

    def timed(call: Callable[[], Any]) -> int:
        start = perf_counter_ns()
        call()
        return perf_counter_ns() - start

    return least([lambda call=call: timed(call) for call in calls], repeats)


def least(measurements: Sequence[Callable[[], Any]], repeats: int) -> list[Any]:
    """Return the minimum of each measurement; they alternate."""
    rounds = [[measure() for measure in measurements] for _ in range(repeats)]
    return [min(found) for found in zip(*rounds, strict=True)]


class Laps:
    """A callback that takes the time between two records, without a first pass, checks or copies."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, iterate: Any) -> None:
        self.times.append(perf_counter())

    def least(self) -> float:
        """Return the shortest lap in seconds."""
        return min(later - earlier for earlier, later in pairwise(self.times))


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Set the number of threads of full passes."""
    before = get_threads()
    set_threads(number)
    try:
        yield
    finally:
        set_threads(before)
