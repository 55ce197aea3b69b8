"""How times are taken."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

__all__ = ["interleaved"]


def interleaved(calls: list[Callable[[], Any]], repeats: int) -> list[int]:
    """Return the least time of each call in nanoseconds.

    The calls take turns, so that a busy minute of the machine hits all of them; the minimum is what the
    work costs when nothing else disturbs it.
    """
    least = [0] * len(calls)
    for repeat in range(repeats):
        for place, call in enumerate(calls):
            start = perf_counter_ns()
            call()
            took = perf_counter_ns() - start
            least[place] = took if repeat == 0 else min(least[place], took)
    return least
