"""Draws that threads make while a device computes, in memory from which it copies them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np

from swiftem._typing import Index
from swiftem.data.draws import Draws, SeededDraws

__all__ = ["DrawsAhead"]

THREADS = 4
"""Most threads: four make more than a device needs."""


class DrawsAhead:
    """As ``draws``, of which the next block can be made in advance.

    Parameters
    ----------
    draws : Draws
        The sample indices.
    rooms : list of list of ndarray, shape (most, b)
        Two rooms, each an array per stream; a block is valid until the next but one.
    """

    def __init__(self, draws: Draws, rooms: list[list[Any]]) -> None:
        self._draws, self._rooms = draws, rooms
        threads = min(THREADS, cpu_count() or 1)
        # The chunks that draws keep belong to one thread.
        self._twins = [draws.twin() if isinstance(draws, SeededDraws) else draws for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="swiftem-draws")
        self._start = self._stop = 0
        self._under_way: list[Future[None]] = []

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``."""
        return self._draws.at(k)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1, at most as many as there is room."""
        if start != self._start:
            self.make(start, stop)
        self._wait()
        if self._stop < stop:
            self._begin(self._stop, stop)
            self._wait()
        return tuple(room[: stop - start] for room in self._rooms[0])

    def make(self, start: int, stop: int) -> None:
        """Begin to make the indices of these iterations, in the other room."""
        self._wait()
        self._rooms.reverse()
        self._start = self._stop = start
        self._begin(start, stop)

    def _begin(self, start: int, stop: int) -> None:
        """Begin to write iterations ``start`` to ``stop`` − 1, each thread a part."""
        edges = np.linspace(start, stop, len(self._twins) + 1).astype(int)
        for draws, first, last in zip(self._twins, edges[:-1], edges[1:], strict=True):
            if last > first:
                self._under_way.append(self._pool.submit(self._write, draws, int(first), int(last)))
        self._stop = stop

    def _write(self, draws: Draws, start: int, stop: int) -> None:
        here = slice(start - self._start, stop - self._start)
        for room, found in zip(self._rooms[0], draws.block(start, stop), strict=True):
            np.copyto(room[here], found, casting="same_kind")

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, []
        for part in under_way:
            part.result()
