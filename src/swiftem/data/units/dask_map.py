"""One pass over units on a cluster: tasks are started, awaited, and started again if their workers fail."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from queue import Empty
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from swiftem._warn import warn
from swiftem.data.units.versions import versions
from swiftem.data.units.worker_plugin import ThreadsPlugin, host_of, use_threads

if TYPE_CHECKING:
    from swiftem.data.units.dask_pool import DaskPool

__all__ = ["ClusterError", "DaskMap", "HeldUnit", "lost"]

log = logging.getLogger("swiftem")

NO_WORKER, NO_SCHEDULER = 10.0, 10.0
"""Seconds without workers before a warning; seconds without the scheduler before a run ends."""
SLOW = 2.0
"""A task that takes this multiple of the median is started again elsewhere."""
LEAST_WAIT, MOST_WAIT = 1.0, 60.0
"""Minimum and maximum time without a result, in seconds, before that."""
POLL = 0.02
"""Seconds between two looks at the state of the cluster, if no result arrives."""
MOST_DEATHS = 10
"""How many times a task is started again after its workers died."""


class ClusterError(ConnectionError):
    """The cluster cannot continue: the scheduler is lost, or workers die repeatedly at one unit."""


def lost(client: Any) -> ClusterError:
    """Return the error of a client whose scheduler does not answer."""
    address = client.scheduler.address if client.scheduler else "of the client"
    return ClusterError(
        f"The scheduler {address} is lost: start a cluster, and resume the run from its checkpoint if it has "
        "one."
    )


class HeldUnit:
    """A prepared unit in the memory of a worker: a pure task, which is done again if its worker is lost.

    Parameters
    ----------
    client : distributed.Client
        Client that holds the future.
    prepare : callable
        Makes the unit from ``item``.
    item : tuple
        Unit, weights and name in errors; lazy or not.
    key : str
        Key of the task; later attempts have keys of their own.
    worker : str
        Address of a worker: a suggestion, so that each has its share, and only for the first attempt.
    """

    def __init__(
        self, client: Any, prepare: Callable[..., Any], item: tuple[Any, ...], key: str, worker: str
    ) -> None:
        self._client, self._prepare, self._item, self._key = client, prepare, item, key
        self._attempts = 0
        self.future = self._submit(key, item, workers=[worker], allow_other_workers=True)

    def _submit(self, key: str, item: tuple[Any, ...], **options: Any) -> Any:
        if not any(map(is_planned, item)):
            return self._client.submit(self._prepare, *item, key=key, pure=False, **options)
        from dask import delayed

        made = delayed(self._prepare, pure=False)(*item, dask_key_name=key)
        return self._client.compute(made, optimize_graph=False, **options)

    def again(self) -> None:
        """Make the unit again, with new keys: those of lost or slow tasks would be waited for."""
        self._attempts += 1
        self.future = self._submit(f"{self._key}-{self._attempts}", renamed(self._item))


class DaskMap:
    """One pass over units; arguments are those of :meth:`swiftem.data.units.pool.Pool.map`."""

    def __init__(
        self,
        pool: DaskPool,
        function: Callable[..., Any],
        common: Any,
        work: Sequence[tuple[Any, ...]],
        name: str,
    ) -> None:
        self._pool, self._client, self._work, self._name = pool, pool.client, work, name
        self._token, self._function, self._common = uuid4().hex[:8], function, common
        self._found: list[Any] = [None] * len(work)
        self._left = set(range(len(work)))
        self._futures: dict[Any, int] = {}
        self._deaths = [0] * len(work)
        self._rounds = 0
        self._took: list[float] = []

    def results(self, check: Callable[[], None]) -> list[Any]:
        """Start all tasks, and return their results in order; ``check`` is called meanwhile."""
        from distributed import as_completed

        last, lost_at, said, looked = perf_counter(), None, False, -np.inf
        try:
            done = as_completed(
                self._submit(sorted(self._left), ""), with_results=True, loop=self._client.loop
            )
            while self._left:
                check()
                try:
                    future, result = done.queue.get(timeout=POLL)
                except Empty:
                    pass
                else:
                    self._take(future, result, done)
                    last, said = perf_counter(), False
                    continue
                now = perf_counter()
                lost_at = None if self._client.status == "running" else lost_at or now
                if lost_at is not None and now - lost_at > NO_SCHEDULER:
                    raise lost(self._client)
                if lost_at is not None:
                    continue
                if now - last > NO_WORKER and not said and not self._pool.threads():
                    said = True
                    warn("No worker is left: the run waits until one joins.", UserWarning)
                usual = median(self._took) if self._took else self._pool.usual.get(self._name, np.inf)
                wait = max(LEAST_WAIT, min(SLOW * usual, MOST_WAIT)) * 2**self._rounds
                if now - max(last, looked) > wait:
                    looked = now
                    done.update(self._slow())
        finally:
            if self._futures and self._client.status == "running":
                self._client.cancel(list(self._futures), force=True)
        self._pool.compute += sum(self._took)
        self._pool.usual[self._name] = median(self._took)
        return self._found

    def _submit(self, numbers: list[int], attempt: str) -> list[Any]:
        """Start tasks of units, with unique keys."""
        sent = _Shared(self._pool.by_host(), self._common)
        name = f"parameters-{self._token}-{numbers[0]}{attempt}"
        shared = self._client.submit(_same, sent, key=name, pure=False)
        keys = [f"{self._name}-{self._token}-{number}{attempt}" for number in numbers]
        items = [self._work[number] for number in numbers]
        if attempt:
            items = [renamed(item) for item in items]
        items = [
            tuple(part.future if isinstance(part, HeldUnit) else part for part in item) for item in items
        ]
        if any(is_planned(part) for item in items for part in item):
            from dask import delayed

            timed = delayed(_timed, pure=False)
            futures = self._client.compute(
                [timed(self._function, shared, *item, dask_key_name=key)
                 for item, key in zip(items, keys, strict=True)], optimize_graph=False,
            )  # fmt: skip
        else:
            same = [[self._function] * len(items), [shared] * len(items)]
            futures = self._client.map(
                _timed, *same, *map(list, zip(*items, strict=True)), key=keys, pure=False
            )
        self._futures.update(zip(futures, numbers, strict=True))
        return list(futures)

    def _take(self, future: Any, result: Any, done: Any) -> None:
        """Store the result of a task that has ended, or start it again if its workers died."""
        from distributed import KilledWorker

        number = self._futures.pop(future)
        if number not in self._left:  # another attempt was faster
            return
        if future.status == "finished":
            kind, seconds, transfer, self._found[number] = result
            self._pool.note(kind)
            self._took.append(seconds)
            self._pool.transfer += transfer
            self._left.discard(number)
            return
        if future.status == "error" and not isinstance(result[1], KilledWorker):
            raise result[1]
        if self._client.status != "running":
            raise lost(self._client)
        self._deaths[number] += 1
        if self._deaths[number] > MOST_DEATHS:
            raise ClusterError(
                f"Workers died {MOST_DEATHS} times at {self._name} {number}: their memory may be too small "
                "for a unit, give smaller chunks."
            )
        log.warning("%s %d: its worker died, it is started again", self._name, number)
        self._make_again([number])
        done.update(self._submit([number], f"-after-{self._deaths[number]}"))

    def _slow(self) -> list[Any]:
        """Start slow tasks again, and those that wait for them, if workers are idle: these get them."""
        if all(self._pool.ask(self._client.scheduler.processing, workers=None).values()):
            return []
        numbers = sorted(self._left)
        self._rounds += 1
        self._pool.started_again += len(numbers)
        self._make_again(numbers)
        return self._submit(numbers, f"-again-{self._rounds}")

    def _make_again(self, numbers: list[int]) -> None:
        for number in numbers:
            for part in self._work[number]:
                if isinstance(part, HeldUnit):
                    part.again()


class _Shared:
    """The common argument of all tasks, and the threads of the workers of each host."""

    def __init__(self, threads: dict[str, int], common: Any) -> None:
        self.threads, self.common = threads, common


def _same(value: Any) -> Any:
    return value


def _timed(function: Callable[..., Any], shared: _Shared, *item: Any) -> tuple[Any, float, float, Any]:
    """Return the kind of this worker, the seconds of a task and of transfers before it, and its result."""
    from distributed import get_worker

    worker = get_worker()
    use_threads(shared.threads.get(host_of(worker.address), 1))
    plugin = worker.plugins.get(ThreadsPlugin.name)
    began = perf_counter()
    found = function(shared.common, *item)
    kind = worker.address, processor(), versions()
    return kind, perf_counter() - began, plugin.take_seconds() if plugin else 0.0, found


@cache
def processor() -> str:
    """Return the name of the CPU, which the last bits of a result depend on."""
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return platform.machine()


def is_planned(value: Any) -> bool:
    """Tell whether a value is a lazy object of Dask."""
    return hasattr(type(value), "__dask_graph__")


def renamed(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an item whose lazy parts have new keys: those of lost or slow tasks would be waited for."""
    if not any(map(is_planned, item)):
        return item
    from dask.graph_manipulation import clone

    return tuple(clone(part) if is_planned(part) else part for part in item)
