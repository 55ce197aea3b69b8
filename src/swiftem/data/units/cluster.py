"""Tasks of units on the workers of a Dask cluster.

Tasks are pure and units are tasks too, so that results lost with a worker are recomputed with the same bits.
Nothing is scattered, pinned or kept by an actor: these are lost with their worker. What all tasks of a pass
share, such as parameters, is sent as a separate task, once per pass.
"""

from __future__ import annotations

import hashlib
import logging
import operator
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from swiftem.core.describe import environment, versions
from swiftem.core.messages import warn
from swiftem.data.as_source import is_planned
from swiftem.data.units.tasks import Item, Units, Work, nothing
from swiftem.kernels.threads import get_threads, set_threads

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["ClusterError", "DaskUnits"]

log = logging.getLogger("swiftem")

T = TypeVar("T")

NO_WORKER = 10.0
"""Seconds without workers before a warning."""
NO_SCHEDULER = 8.0
"""Seconds without the scheduler before a run ends."""
POLL = 0.002
"""Seconds between two looks at the results."""
MOST_DEATHS = 10
"""How many times a task is started again after its workers died."""
SHARE = 0.5
"""Share of the cluster's memory in which units may be kept."""


class ClusterError(ConnectionError):
    """The cluster cannot continue: the scheduler is lost, or workers die repeatedly at one unit."""


class DaskUnits(Units):
    """Units that the workers of a cluster read; see :class:`Units`.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster; workers must be able to import swiftem.
    """

    client: Client

    def __init__(self, client: Client, read: Callable[..., object], items: Iterable[Item]) -> None:
        super().__init__(read, items)
        self.client = client
        self.held: dict[int, Future] = {}
        self._processors: set[str] = set()

    def hold(self, size: float) -> None:
        """Keep the content of units in the workers' memory, if half of it is enough."""
        try:
            self.client.wait_for_workers(1, timeout=NO_WORKER)
        except TimeoutError:
            warn("The cluster has no worker: the run waits until one joins.", UserWarning)
            self.client.wait_for_workers(1)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        if size <= SHARE * sum(worker["memory_limit"] or 0 for worker in workers):
            # No worker is suggested for a unit: Dask would not give it to another one that joins later.
            self.held = dict(enumerate(self._contents(self.items)))

    def select(self, numbers: Sequence[int]) -> None:
        """Leave out all but some units."""
        super().select(numbers)
        if self.held:
            self.held = {place: self.held[number] for place, number in enumerate(numbers)}

    def map(
        self, function: Callable[..., T], work: Work | None = None, *, check: Callable[[], None] = nothing
    ) -> list[T]:
        """Return ``function(content, *arguments)`` of units, in order; see :meth:`Units.map`."""
        from distributed import CancelledError

        try:
            results = self._results(function, self.every() if work is None else work, check)
        # The error of a client without its scheduler depends on its current operation.
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if isinstance(error, ClusterError):
                raise
            try:
                self._threads()
            except (OSError, TimeoutError, CancelledError, RuntimeError):
                raise self._lost() from error
            raise
        is_new = len(self._processors) < 2
        self._processors.update(processor for processor, _ in results)
        if is_new and len(self._processors) > 1:
            names = "; ".join(sorted(self._processors))
            warn(f"The workers differ in CPU, and so may the last bits of results: {names}.", UserWarning)
        return [result for _, result in results]

    def _results(
        self, function: Callable[..., T], work: Work, check: Callable[[], None]
    ) -> list[tuple[str, T]]:
        """Start all tasks, and return processors and results in order; ``check`` is called meanwhile."""
        from distributed import as_completed

        deaths: Counter[int] = Counter()
        results: dict[int, tuple[str, T]] = {}
        futures = self._start(function, work, range(len(work)))
        done = as_completed(futures, with_results=True, raise_errors=False, loop=self.client.loop)
        last = running = perf_counter()
        try:
            while len(results) < len(work):
                check()
                batch, now = done.next_batch(block=False), perf_counter()
                for future, result in batch:
                    place = futures.pop(future)
                    if future.status == "finished":
                        results[place] = result
                        continue
                    deaths[place] += 1
                    self._renew(work[place][0], future, result, deaths[place])
                    again = self._start(function, work, [place], deaths[place])
                    futures |= again
                    done.update(again)
                if self.client.status == "running":
                    running = now
                elif now - running > NO_SCHEDULER:
                    raise self._lost()
                if batch:
                    last = now
                else:
                    sleep(POLL)
                if running == now and now - last > NO_WORKER:
                    last = now
                    if not self._threads():
                        warn("No worker is left: the run waits until one joins.", UserWarning)
        finally:
            if futures and self.client.status == "running":
                self.client.cancel(list(futures), force=True)
        return [results[place] for place in range(len(work))]

    def _start(
        self, function: Callable[..., object], work: Work, places: Sequence[int], deaths: int = 0
    ) -> dict[Future, int]:
        """Start tasks, with keys of their own: those of lost tasks would be waited for."""
        token, on_host = uuid4().hex[:8], Counter[str]()
        for worker, threads in self._threads().items():
            on_host[_host(worker)] += threads
        task = self.client.submit(
            partial, _task, function, self.read, dict(on_host), _versions(), key=f"task-{token}", pure=False
        )
        items: list[tuple[Any, ...]] = []
        for place in places:
            number, *arguments = work[place]
            unit, weight, where = self.items[number]
            if number in self.held:
                unit, weight = self.held[number], None
            elif deaths:
                unit, weight = _renamed(unit), _renamed(weight)
            items.append((task, unit, weight, where, *arguments))
        name = getattr(function, "func", function).__name__
        futures = _submit(self.client, operator.call, items, [f"{name}-{token}-{place}" for place in places])
        return dict(zip(futures, places, strict=True))

    def _renew(self, number: int, future: Future, result: Any, deaths: int) -> None:
        """Make the content of a unit again if it is kept; raise the error of a task whose worker lives."""
        from distributed import KilledWorker

        unit, weight, where = self.items[number]
        if future.status == "error" and not isinstance(result[1], KilledWorker):
            raise result[1]
        if self.client.status != "running":
            raise self._lost()
        if deaths > MOST_DEATHS:
            raise ClusterError(
                f"Workers died {MOST_DEATHS} times at {where}: their memory may be too small for a unit, "
                "give smaller chunks."
            )
        log.warning("%s: its worker died, it is started again", where)
        if number in self.held:
            (self.held[number],) = self._contents([(_renamed(unit), _renamed(weight), where)])

    def _contents(self, items: list[Item]) -> list[Future]:
        """Return futures of the content of units."""
        token = uuid4().hex[:8]
        return _submit(self.client, self.read, items, [f"unit-{token}-{k}" for k in range(len(items))])

    def _threads(self) -> dict[str, int]:
        """Return the threads of each worker; Dask itself waits half a minute for a scheduler that is lost."""
        ask = self.client.scheduler.ncores
        return dict(self.client.sync(ask, callback_timeout=NO_SCHEDULER, workers=None))

    def _lost(self) -> ClusterError:
        """Return the error of a client whose scheduler does not answer."""
        address = self.client.scheduler.address if self.client.scheduler else "of the client"
        return ClusterError(
            f"The scheduler {address} is lost: start a cluster, and resume the run from its checkpoint if it "
            "has one."
        )


def _submit(
    client: Client, function: Callable[..., object], items: Sequence[tuple[Any, ...]], keys: list[str]
) -> list[Future]:
    """Return futures of ``function(*item)``, whose items may have lazy parts."""
    if not any(is_planned(part) for item in items for part in item):
        columns = map(list, zip(*items, strict=True))
        return list(client.map(function, *columns, key=keys, pure=False))
    from dask import delayed

    made = delayed(function, pure=False)
    tasks = [made(*item, dask_key_name=key) for item, key in zip(items, keys, strict=True)]
    return list(client.compute(tasks, optimize_graph=False))


def _renamed(part: Any) -> Any:
    """Return a lazy object with new keys: those of lost tasks would be waited for; others unchanged."""
    if not is_planned(part):
        return part
    from dask.graph_manipulation import clone

    return clone(part)


def _task(
    function: Callable[..., T],
    read: Callable[..., object],
    threads: dict[str, int],
    expected: dict[str, str],
    *item: Any,
) -> tuple[str, T]:
    """Return the processor of this worker and the result of a task; other versions raise ClusterError.

    ``item`` has the three arguments of ``read``, and those of ``function`` after the content.
    """
    from distributed import get_worker

    address = get_worker().address
    own = _versions()
    differences = [
        f"{own[name]} of {name}, not {expected[name]}" for name in own if own[name] != expected[name]
    ]
    if differences:
        raise ClusterError(
            f"Worker {address} must have the versions of the client, got {'; '.join(differences)}: install "
            "the same there, and start the worker again."
        )
    _use_threads(threads.get(_host(address), 1))
    return _processor(), function(read(*item[:3]), *item[3:])


@cache
def _processor() -> str:
    return environment()["processor"]


@cache
def _versions() -> dict[str, str]:
    """Return the versions of this process; swiftem's has a hash of its files, as copies may differ."""
    package = Path(__file__).parents[2]
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    own = f"{sys.modules['swiftem'].__version__} with files {digest.hexdigest()}"
    return {"swiftem": own} | versions("numpy", "scipy", "numba")


def _host(address: str) -> str:
    """Return the host of a worker's address.

    >>> _host("tcp://10.0.0.2:4711")
    '10.0.0.2'
    """
    return address.rpartition("://")[2].rpartition(":")[0]


def _use_threads(on_host: int) -> None:
    """Set the threads of kernels: the cores, divided among ``on_host`` threads of workers.

    Nannies limit the threads of BLAS only: without this each task would start threads on all cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // max(1, on_host))
    if get_threads() != threads:
        set_threads(threads)
