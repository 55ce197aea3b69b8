"""Tasks of units on the workers of a Dask cluster.

Tasks are pure and units are tasks too, so that results lost with a worker are recomputed with the same bits.
Nothing is scattered, pinned or kept by an actor: these are lost with their worker. Parameters are sent as a
separate task, once per pass.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, sleep
from typing import Any
from uuid import uuid4

import numpy as np

from swiftem._warn import warn
from swiftem.engine.threads import get_threads, set_threads

__all__ = ["ClusterError", "DaskPool"]

log = logging.getLogger(__name__)

NO_WORKER, NO_SCHEDULER = 10.0, 15.0
"""Seconds without workers before a warning; seconds without the scheduler before a run ends."""
NOTICED = 2.0
"""Seconds after which a client has noticed the loss of its scheduler."""
SLOW = 2.0
"""A task that takes this multiple of the median is started again elsewhere."""
LEAST_WAIT = 1.0
"""Minimum duration of a task, in seconds, before that."""
MOST_DEATHS = 10
"""How many times a task is started again after its workers died."""
SHARE = 0.5
"""Share of the cluster's memory in which units may be kept."""


class ClusterError(ConnectionError):
    """The cluster cannot continue: the scheduler is lost, or workers die repeatedly at one unit."""


class DaskPool:
    """Runs tasks on the workers of a client's cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster; workers must be able to import swiftem.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seconds = {"compute": 0.0, "wait": 0.0}
        self.started_again = 0
        self._check_alike()

    def _check_alike(self) -> None:
        """Warn if workers differ in properties that the last bits of a result depend on."""
        kinds = set(map(str, self.client.run(_kind).values()))
        if len(kinds) > 1:
            warn(
                f"The workers differ in CPU or versions, and so may the last bits of results: "
                f"{'; '.join(sorted(kinds))}.",
                UserWarning,
            )

    def hold(self, work: list[tuple[Any, ...]], size: float | None) -> list[tuple[Any, ...]]:
        """Return the work with lazy units kept in the memory of the workers, if half of it is enough."""
        limits = [
            found["memory_limit"] for found in self.client.scheduler_info(n_workers=-1)["workers"].values()
        ]
        if size is None or not np.isfinite(size) or not limits or size > SHARE * sum(limits):
            return work
        planned = [item for parts in work for item in parts if _is_planned(item)]
        if not planned:
            return work
        from distributed import futures_of

        kept = {item.key: futures_of(held)[0] for item, held in
                zip(planned, self.client.persist(planned), strict=True)}  # fmt: skip
        return [tuple(kept[item.key] if _is_planned(item) else item for item in parts) for parts in work]

    def map(
        self, function: Callable[..., Any], common: Any, work: Sequence[tuple[Any, ...]], *,
        name: str, check: Callable[[], None] = lambda: None,
    ) -> list[Any]:  # fmt: skip
        """Return ``function(common, *item)`` of each item, in order; see :class:`Pool`."""
        from distributed import CancelledError

        try:
            return _Map(self, function, common, work, name).results(check)
        # The error of a client without its scheduler depends on its current operation.
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if isinstance(error, ClusterError) or self._is_there():
                raise
            raise _lost(self.client) from error

    def _is_there(self) -> bool:
        """Tell whether the scheduler is connected, or soon again: the client takes a moment to notice."""
        began = running = perf_counter()
        while self.client.status != "closed" and perf_counter() - began < NO_SCHEDULER:
            sleep(0.1)
            if self.client.status != "running":
                running = perf_counter()
            elif perf_counter() - running > NOTICED:
                return True
        return False


class _Map:
    """One pass over units."""

    def __init__(
        self,
        pool: DaskPool,
        function: Callable[..., Any],
        common: Any,
        work: Sequence[tuple[Any, ...]],
        name: str,
    ) -> None:
        self._pool, self._client, self._work, self._name = pool, pool.client, work, name
        self._token, self._function = uuid4().hex[:8], function
        shared = _Shared(_threads_by_host(self._client), common)
        self._shared = self._client.submit(_same, shared, key=f"parameters-{self._token}", pure=False)
        self._found: list[Any] = [None] * len(work)
        self._left = set(range(len(work)))
        self._futures: dict[Any, int] = {}
        self._deaths = [0] * len(work)
        self._again: set[int] = set()
        self._took: list[float] = []

    def results(self, check: Callable[[], None]) -> list[Any]:
        from distributed import as_completed

        began = last = perf_counter()
        lost_at: float | None = None
        said = False
        try:
            done = as_completed(self._submit(sorted(self._left), 0))
            while self._left:
                check()
                if done.has_ready():
                    for future in done.next_batch(block=False):
                        self._take(future, done)
                    last, said = perf_counter(), False
                    continue
                now = perf_counter()
                lost_at = None if self._client.status == "running" else lost_at or now
                if lost_at is not None and now - lost_at > NO_SCHEDULER:
                    raise _lost(self._client)
                if now - last > NO_WORKER and not said and lost_at is None and not self._client.nthreads():
                    said = True
                    warn("No worker is left: the run waits until one joins.", UserWarning)
                if now - last > max(LEAST_WAIT, SLOW * median(self._took or [np.inf])):
                    for future in self._slow():
                        done.add(future)
                sleep(0.005)
        finally:
            if self._client.status == "running":
                self._client.cancel([*self._futures, self._shared], force=True)
        self._pool.seconds["compute"] += sum(self._took)
        self._pool.seconds["wait"] += perf_counter() - began
        return self._found

    def _submit(self, numbers: list[int], attempt: int) -> list[Any]:
        """Start tasks of units, with unique keys."""
        keys = [
            f"{self._name}-{self._token}-{number}" + (f"-{attempt}" if attempt else "") for number in numbers
        ]
        items = [self._work[number] for number in numbers]
        if any(_is_planned(part) for item in items for part in item):
            from dask import delayed

            timed = delayed(_timed, pure=False)
            futures = self._client.compute(
                [timed(self._function, self._shared, *item, dask_key_name=key)
                 for item, key in zip(items, keys, strict=True)], optimize_graph=False,
            )  # fmt: skip
        else:
            futures = [
                self._client.submit(_timed, self._function, self._shared, *item, key=key, pure=False)
                for item, key in zip(items, keys, strict=True)
            ]
        self._futures.update(zip(futures, numbers, strict=True))
        return list(futures)

    def _take(self, future: Any, done: Any) -> None:
        """Store the result of a task that has ended, or start it again if its workers died."""
        from distributed import KilledWorker

        number = self._futures.pop(future)
        if number not in self._left:  # another attempt was faster
            return
        if future.status == "finished":
            try:
                seconds, self._found[number] = future.result()
            except KilledWorker:
                pass
            else:
                self._took.append(seconds)
                self._left.discard(number)
                return
        elif future.status == "error" and not isinstance(future.exception(), KilledWorker):
            raise future.exception()
        elif self._client.status != "running":
            raise _lost(self._client)
        self._deaths[number] += 1
        if self._deaths[number] > MOST_DEATHS:
            raise ClusterError(
                f"Workers died {MOST_DEATHS} times at {self._name} {number}: their memory may be too small "
                "for a unit, give smaller chunks."
            )
        log.warning("%s %d: its worker died, it is started again", self._name, number)
        for again in self._submit([number], self._deaths[number]):
            done.add(again)

    def _slow(self) -> list[Any]:
        """Start slow tasks again, if all tasks have begun."""
        if len(self._left) > sum(self._client.nthreads().values()):
            return []
        numbers = sorted(self._left - self._again)
        self._again.update(numbers)
        self._pool.started_again += len(numbers)
        return self._submit(numbers, MOST_DEATHS + 1) if numbers else []


class _Shared:
    """The common argument of all tasks, and the threads of each host."""

    def __init__(self, threads: dict[str, int], common: Any) -> None:
        self.threads, self.common = threads, common


def _same(value: Any) -> Any:
    return value


def _timed(function: Callable[..., Any], shared: _Shared, *item: Any) -> tuple[float, Any]:
    """Return the duration of a task, and its result."""
    from distributed import get_worker

    threads = shared.threads.get(_host(get_worker().address), 1)
    if get_threads() != threads:
        set_threads(threads)
    began = perf_counter()
    found = function(shared.common, *item)
    return perf_counter() - began, found


def _is_planned(value: Any) -> bool:
    return hasattr(type(value), "__dask_graph__")


def _host(address: str) -> str:
    return address.rpartition("://")[2].rpartition(":")[0]


def _threads_by_host(client: Any) -> dict[str, int]:
    """Return the threads of a kernel on each host: its cores, shared by the threads of its workers."""
    found: dict[str, int] = {}
    for worker, threads in client.nthreads().items():
        found[_host(worker)] = found.get(_host(worker), 0) + threads
    cores = os.cpu_count() or 1
    return {host: max(1, cores // threads) for host, threads in found.items()}


def _kind() -> tuple[str, ...]:
    """Return the properties that the last bits of a result depend on."""
    import scipy

    return platform.processor() or platform.machine(), np.__version__, scipy.__version__


def _lost(client: Any) -> ClusterError:
    address = client.scheduler.address if client.scheduler else "of the client"
    return ClusterError(
        f"The scheduler {address} is lost: start a cluster, and resume the run from its checkpoint if it has "
        "one."
    )
