"""One pass over units on a cluster: tasks are started, awaited, and started again if their workers fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import Empty
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from swiftem._warn import warn
from swiftem.data.units.worker_plugin import ThreadsPlugin, host_of, use_threads

if TYPE_CHECKING:
    from swiftem.data.units.dask_pool import DaskPool

__all__ = ["ClusterError", "DaskMap", "HeldUnit", "lost"]

log = logging.getLogger(__name__)

NO_WORKER, NO_SCHEDULER = 10.0, 15.0
"""Seconds without workers before a warning; seconds without the scheduler before a run ends."""
SLOW = 2.0
"""A task that takes this multiple of the median is started again elsewhere."""
LEAST_WAIT = 1.0
"""Minimum duration of a task, in seconds, before that."""
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
        Address of the worker that should have it, if it is there.
    """

    def __init__(
        self, client: Any, prepare: Callable[..., Any], item: tuple[Any, ...], key: str, worker: str
    ) -> None:
        self._client, self._prepare, self._item, self._key = client, prepare, item, key
        self._attempts = 0
        self.future = self._submit(key, [worker], item)

    def _submit(self, key: str, workers: list[str], item: tuple[Any, ...]) -> Any:
        options = {"workers": workers, "allow_other_workers": True}
        if not any(map(is_planned, item)):
            return self._client.submit(self._prepare, *item, key=key, pure=False, **options)
        from dask import delayed

        made = delayed(self._prepare, pure=False)(*item, dask_key_name=key)
        return self._client.compute(made, optimize_graph=False, **options)

    def again(self, workers: list[str]) -> None:
        """Make the unit again, with new keys and preferably on these workers."""
        self._attempts += 1
        self.future = self._submit(f"{self._key}-{self._attempts}", workers, renamed(self._item))


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
        self._again: set[int] = set()
        self._took: list[float] = []

    def results(self, check: Callable[[], None]) -> list[Any]:
        """Start all tasks, and return their results in order; ``check`` is called meanwhile."""
        from distributed import as_completed

        last, lost_at, said = perf_counter(), None, False
        try:
            done = as_completed(self._submit(sorted(self._left), 0, None), with_results=True)
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
                if now - last > NO_WORKER and not said and lost_at is None and not self._pool.threads():
                    said = True
                    warn("No worker is left: the run waits until one joins.", UserWarning)
                if now - last > max(LEAST_WAIT, SLOW * median(self._took or [np.inf])):
                    done.update(self._slow())
        finally:
            if self._futures and self._client.status == "running":
                self._client.cancel(list(self._futures), force=True)
        self._pool.compute += sum(self._took)
        return self._found

    def _submit(self, numbers: list[int], attempt: int, workers: list[str] | None) -> list[Any]:
        """Start tasks of units, with unique keys; later attempts preferably on these workers."""
        end = f"-{attempt}" if attempt else ""
        options: dict[str, Any] = {"workers": workers, "allow_other_workers": True} if workers else {}
        sent = _Shared(self._pool.by_host(), self._common)
        name = f"parameters-{self._token}-{numbers[0]}{end}"
        shared = self._client.submit(_same, sent, key=name, pure=False, **options)
        keys = [f"{self._name}-{self._token}-{number}{end}" for number in numbers]
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
                 for item, key in zip(items, keys, strict=True)], optimize_graph=False, **options,
            )  # fmt: skip
        else:
            same = [[self._function] * len(items), [shared] * len(items)]
            futures = self._client.map(
                _timed, *same, *map(list, zip(*items, strict=True)), key=keys, pure=False, **options
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
            seconds, transfer, self._found[number] = result
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
        self._make_again(number, [])
        done.update(self._submit([number], self._deaths[number], None))

    def _slow(self) -> list[Any]:
        """Start slow tasks again on other workers, if all tasks have begun."""
        if len(self._left) > sum(self._pool.threads().values()):
            return []
        numbers = sorted(self._left - self._again)
        if not numbers:
            return []
        self._again.update(numbers)
        at = {key: worker for worker, keys in self._client.processing().items() for key in keys}
        busy = {at.get(future.key) for future, number in self._futures.items() if number in self._left}
        others = [worker for worker in self._pool.threads() if worker not in busy]
        if not others:
            return []
        self._pool.started_again += len(numbers)
        for number in numbers:
            self._make_again(number, others)
        return self._submit(numbers, MOST_DEATHS + 1, others)

    def _make_again(self, number: int, workers: list[str]) -> None:
        for part in self._work[number]:
            if isinstance(part, HeldUnit):
                part.again(workers or list(self._pool.threads()))


class _Shared:
    """The common argument of all tasks, and the threads of the workers of each host."""

    def __init__(self, threads: dict[str, int], common: Any) -> None:
        self.threads, self.common = threads, common


def _same(value: Any) -> Any:
    return value


def _timed(function: Callable[..., Any], shared: _Shared, *item: Any) -> tuple[float, float, Any]:
    """Return the duration of a task, that of the transfers before it, and its result."""
    from distributed import get_worker

    worker = get_worker()
    use_threads(shared.threads.get(host_of(worker.address), 1))
    plugin = worker.plugins.get(ThreadsPlugin.name)
    began = perf_counter()
    found = function(shared.common, *item)
    return perf_counter() - began, plugin.take_seconds() if plugin else 0.0, found


def is_planned(value: Any) -> bool:
    """Tell whether a value is a lazy object of Dask."""
    return hasattr(type(value), "__dask_graph__")


def renamed(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an item whose lazy parts have new keys: those of lost or slow tasks would be waited for."""
    if not any(map(is_planned, item)):
        return item
    from dask.graph_manipulation import clone

    return tuple(clone(part) if is_planned(part) else part for part in item)
