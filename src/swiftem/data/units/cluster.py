"""Tasks of units on the workers of a Dask cluster.

Tasks are pure and units are tasks too, so that results lost with a worker are recomputed with the same bits.
Nothing is scattered, pinned or kept by an actor: these are lost with their worker. Parameters are sent as a
separate task, once per pass.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from swiftem.core.environment import environment, versions
from swiftem.core.warn import warn
from swiftem.data.foreign import is_planned
from swiftem.data.units.pool import Pool, Work
from swiftem.kernels.threads import get_threads, set_threads

__all__ = ["ClusterError", "DaskPool"]

log = logging.getLogger("swiftem")

NO_WORKER, NO_SCHEDULER = 10.0, 10.0
"""Seconds without workers before a warning; seconds without the scheduler before a run ends."""
NOTICED = 2.0
"""Seconds after which a client has noticed the loss of its scheduler."""
POLL = 0.002
"""Seconds between two looks at the results."""
MOST_DEATHS = 10
"""How many times a task is started again after its workers died."""
SHARE = 0.5
"""Share of the cluster's memory in which units may be kept."""


class ClusterError(ConnectionError):
    """The cluster cannot continue: the scheduler is lost, or workers die repeatedly at one unit."""


class DaskPool(Pool):
    """Runs tasks on the workers of a client's cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster; workers must be able to import swiftem.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._processors: set[str] = set()

    def map(
        self,
        function: Callable[..., Any],
        common: Any,
        work: Sequence[tuple[Any, ...]],
        *,
        name: str,
        check: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """Return ``function(common, *item)`` of each item, in order; see :class:`Pool`."""
        from distributed import CancelledError

        try:
            results = _Pass(self, function, common, work, name).results(check)
        # The error of a client without its scheduler depends on its current operation.
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if isinstance(error, ClusterError) or self._is_connected():
                raise
            raise self.lost() from error
        self._check_processors(processor for processor, _ in results)
        return [result for _, result in results]

    def hold(self, prepare: Callable[..., Any], work: Work, size: float) -> Work:
        """Return the work with prepared units, kept by the workers if half of their memory is enough."""
        self._wait_for_a_worker()
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        if not np.isfinite(size) or size > SHARE * sum(worker["memory_limit"] or 0 for worker in workers):
            return work
        # No worker is suggested for a unit: Dask would not give it to another one that joins later.
        token = uuid4().hex[:8]
        units = [
            _HeldUnit(self.client, prepare, item, f"unit-{token}-{number}")
            for number, item in enumerate(work)
        ]
        return [(unit, None, *item[2:]) for unit, item in zip(units, work, strict=True)]

    def threads(self) -> dict[str, int]:
        """Return the threads of each worker; Dask itself waits half a minute for a scheduler that is lost."""
        ask = self.client.scheduler.ncores
        return dict(self.client.sync(ask, callback_timeout=NO_SCHEDULER, workers=None))

    def lost(self) -> ClusterError:
        """Return the error of a client whose scheduler does not answer."""
        address = self.client.scheduler.address if self.client.scheduler else "of the client"
        return ClusterError(
            f"The scheduler {address} is lost: start a cluster, and resume the run from its checkpoint if it "
            "has one."
        )

    def _wait_for_a_worker(self) -> None:
        began, is_said = perf_counter(), False
        while not self.threads():
            if perf_counter() - began > NO_WORKER and not is_said:
                is_said = True
                warn("The cluster has no worker: the run waits until one joins.", UserWarning)
            sleep(0.1)

    def _check_processors(self, processors: Iterable[str]) -> None:
        """Warn, once, if workers differ in their CPU, which the last bits of results depend on."""
        is_said = len(self._processors) > 1
        self._processors.update(processors)
        if len(self._processors) > 1 and not is_said:
            warn(
                "The workers differ in CPU, and so may the last bits of results: "
                f"{'; '.join(sorted(self._processors))}.",
                UserWarning,
            )

    def _is_connected(self) -> bool:
        """Return whether the scheduler is connected, or soon again: the client takes a moment to notice."""
        began = running = perf_counter()
        while self.client.status != "closed" and perf_counter() - began < NO_SCHEDULER:
            sleep(0.1)
            if self.client.status != "running":
                running = perf_counter()
            elif perf_counter() - running > NOTICED:
                return True
        return False


class _HeldUnit:
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
    """

    def __init__(self, client: Any, prepare: Callable[..., Any], item: tuple[Any, ...], key: str) -> None:
        self._client, self._prepare, self._item, self._key = client, prepare, item, key
        self._attempts = 0
        (self.future,) = _submit(client, prepare, [item], [key])

    def again(self) -> None:
        """Make the unit again."""
        self._attempts += 1
        key = f"{self._key}-{self._attempts}"
        (self.future,) = _submit(self._client, self._prepare, [_renamed(self._item)], [key])


class _Shared(NamedTuple):
    """The common argument of all tasks, the threads on each host, and the client's versions."""

    common: Any
    threads: dict[str, int]
    versions: dict[str, str]


class _Pass:
    """One pass over units; arguments as for :meth:`Pool.map`."""

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
        self._results: dict[int, Any] = {}
        self._futures: dict[Any, int] = {}
        self._deaths = [0] * len(work)

    def results(self, check: Callable[[], None]) -> list[tuple[str, Any]]:
        """Start all tasks, and return processors and results in order; ``check`` is called meanwhile."""
        from distributed import as_completed

        done = as_completed(
            self._start(range(len(self._work))),
            with_results=True,
            raise_errors=False,
            loop=self._client.loop,
        )
        last = running = perf_counter()
        is_said = False
        try:
            while len(self._results) < len(self._work):
                check()
                if batch := done.next_batch(block=False):
                    for future, result in batch:
                        done.update(self._take(future, result))
                    last, is_said = perf_counter(), False
                    continue
                sleep(POLL)
                now = perf_counter()
                if self._client.status != "running":
                    if now - running > NO_SCHEDULER:
                        raise self._pool.lost()
                    continue
                running = now
                if now - last > NO_WORKER and not is_said and not self._pool.threads():
                    is_said = True
                    warn("No worker is left: the run waits until one joins.", UserWarning)
        finally:
            if self._futures and self._client.status == "running":
                self._client.cancel(list(self._futures), force=True)
        return [self._results[number] for number in range(len(self._work))]

    def _start(self, numbers: Sequence[int], attempt: str = "") -> list[Any]:
        """Start tasks of units, with keys of their own: those of lost tasks would be waited for."""
        on_host: dict[str, int] = {}
        for worker, threads in self._pool.threads().items():
            on_host[host_of(worker)] = on_host.get(host_of(worker), 0) + threads
        shared = self._client.submit(
            _Shared,
            self._common,
            on_host,
            library_versions(),
            key=f"parameters-{self._token}-{numbers[0]}{attempt}",
            pure=False,
        )
        items = [self._work[number] for number in numbers]
        if attempt:
            items = [_renamed(item) for item in items]
        arguments = [
            (self._function, shared, *(part.future if isinstance(part, _HeldUnit) else part for part in item))
            for item in items
        ]
        keys = [f"{self._name}-{self._token}-{number}{attempt}" for number in numbers]
        futures = _submit(self._client, _task, arguments, keys)
        self._futures.update(zip(futures, numbers, strict=True))
        return futures

    def _take(self, future: Any, result: Any) -> list[Any]:
        """Store the result of a task that has ended; return its next attempt if its workers died."""
        from distributed import KilledWorker

        number = self._futures.pop(future)
        if future.status == "finished":
            self._results[number] = result
            return []
        if future.status == "error" and not isinstance(result[1], KilledWorker):
            raise result[1]
        if self._client.status != "running":
            raise self._pool.lost()
        self._deaths[number] += 1
        if self._deaths[number] > MOST_DEATHS:
            raise ClusterError(
                f"Workers died {MOST_DEATHS} times at {self._name} {number}: their memory may be too small "
                "for a unit, give smaller chunks."
            )
        log.warning("%s %d: its worker died, it is started again", self._name, number)
        for part in self._work[number]:
            if isinstance(part, _HeldUnit):
                part.again()
        return self._start([number], f"-after-{self._deaths[number]}")


def _submit(
    client: Any, function: Callable[..., Any], items: list[tuple[Any, ...]], keys: list[str]
) -> list[Any]:
    """Return futures of ``function(*item)``, whose items may have lazy parts."""
    if not any(is_planned(part) for item in items for part in item):
        columns = map(list, zip(*items, strict=True))
        return list(client.map(function, *columns, key=keys, pure=False))
    from dask import delayed

    made = delayed(function, pure=False)
    tasks = [made(*item, dask_key_name=key) for item, key in zip(items, keys, strict=True)]
    return list(client.compute(tasks, optimize_graph=False))


def _renamed(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an item whose lazy parts have new keys: those of lost tasks would be waited for."""
    if not any(map(is_planned, item)):
        return item
    from dask.graph_manipulation import clone

    return tuple(clone(part) if is_planned(part) else part for part in item)


def _task(function: Callable[..., Any], shared: _Shared, *item: Any) -> tuple[str, Any]:
    """Return the processor of this worker and the result of a task; other versions raise ClusterError."""
    from distributed import get_worker

    address = get_worker().address
    if sentence := difference(address, shared.versions, library_versions()):
        raise ClusterError(sentence)
    use_threads(shared.threads.get(host_of(address), 1))
    return _processor(), function(shared.common, *item)


@cache
def _processor() -> str:
    return environment()["processor"]


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of this process; swiftem's has a hash of its files, as copies may differ."""
    package = Path(__file__).parents[2]
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    own = f"{sys.modules['swiftem'].__version__} with files {digest.hexdigest()}"
    return {"swiftem": own} | versions("numpy", "scipy", "numba")


def difference(worker: str, ours: dict[str, str], theirs: dict[str, str]) -> str:
    """Return a sentence about a worker whose versions are not the client's; empty if they are.

    >>> difference("tcp://a:1", {"numpy": "2.0"}, {"numpy": "1.0"}).partition(": install")[0]
    'Worker tcp://a:1 must have the versions of the client, got 1.0 of numpy, not 2.0'
    """
    names = [name for name in ours if theirs.get(name) != ours[name]]
    if not names:
        return ""
    got = "; ".join(f"{theirs.get(name)} of {name}, not {ours[name]}" for name in names)
    return (
        f"Worker {worker} must have the versions of the client, got {got}: install the same there, and start "
        "the worker again."
    )


def host_of(address: str) -> str:
    """Return the host of a worker's address.

    >>> host_of("tcp://10.0.0.2:4711")
    '10.0.0.2'
    """
    return address.rpartition("://")[2].rpartition(":")[0]


def use_threads(on_host: int) -> None:
    """Set the threads of kernels: the cores, divided among ``on_host`` threads of workers.

    Nannies limit the threads of BLAS only: without this each task would start threads on all cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // max(1, on_host))
    if get_threads() != threads:
        set_threads(threads)
