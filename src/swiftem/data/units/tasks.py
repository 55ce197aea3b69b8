r"""Units, and tasks over them: one after the other in this process, or on the workers of a Dask cluster.

A unit is a fixed part of the data that a task reads where it runs. Tasks are pure and units are tasks too, so
that Dask recomputes results lost with a worker, with the same bits. Nothing is scattered, pinned or kept by
an actor: these are lost with their worker. What all tasks of a pass share, such as parameters, is sent as a
separate task, once per pass.
"""

from __future__ import annotations

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
from swiftem.core.files import file_hash
from swiftem.core.messages import warn
from swiftem.data.as_source import is_planned
from swiftem.kernels.threads import get_threads, set_threads

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

Item = tuple[object, object, str]
"""A unit and its weights or None, both lazy or not, and the unit's name in errors."""
Work = Sequence[tuple[Any, ...]]
"""Number of a unit, and further arguments of its task."""
NO_WORKER = 10.0
"""Seconds without workers before a warning."""
NO_SCHEDULER = 8.0
"""Seconds without an answer of the scheduler before a run ends."""
POLL = 0.002
"""Seconds between two looks at the results."""
SHARE = 0.5
"""Share of the cluster's memory in which units may be kept."""


class ClusterError(ConnectionError):
    """The cluster cannot continue: the scheduler is lost, or workers die repeatedly at one unit."""


def nothing() -> None:
    """Do nothing between tasks."""


class Units:
    """Units of data that are read by this process. Threads work within a unit; results do not depend on them.

    Parameters
    ----------
    read : callable
        ``read(unit, weight, where)`` returns the checked content of a unit, and takes such content as a unit,
        too. It must be a function of a module, or a partial of one, so that workers find it by name.
    items : iterable of tuple
        Arguments of ``read`` for each unit.

    Examples
    --------
    >>> units = Units(lambda unit, weight, where: unit, [(3, None, "a"), (4, None, "b")])
    >>> units.map(pow, [(1, 2), (0, 3)])
    [16, 27]
    """

    client: Client | None = None
    """The distributed.Client whose workers run the tasks, if any."""

    def __init__(self, read: Callable[..., object], items: Iterable[Item]) -> None:
        self.read, self.items = read, list(items)

    def map(
        self, function: Callable[..., T], work: Work | None = None, *, check: Callable[[], None] = nothing
    ) -> list[T]:
        """Return ``function(content, *arguments)`` of units, in order.

        Parameters
        ----------
        function : callable
            A function of a module, or a partial of one; results depend only on its arguments.
        work : sequence of tuple, optional
            Number of a unit and further arguments of its task; by default all units, without any.
        check : callable
            Called regularly; it may raise, and no task is left running.
        """
        results = []
        for number, *arguments in self.every() if work is None else work:
            check()
            results.append(function(self.read(*map(_computed, self.items[number])), *arguments))
        return results

    def every(self) -> Work:
        """Return the tasks of all units, without further arguments."""
        return [(number,) for number in range(len(self.items))]

    def hold(self, size: float) -> None:
        """Keep the content of units in the workers' memory, if ``size`` bytes fit: not in this process."""


def _computed(part: Any) -> Any:
    """Return a lazy object, computed in this thread; others unchanged."""
    return part.compute(scheduler="synchronous") if is_planned(part) else part


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
            contents = _submit(self.client, self.read, self.items, "unit")
            self.items = [
                (content, None, where) for content, (_, _, where) in zip(contents, self.items, strict=True)
            ]

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
                scheduler = self.client.scheduler
                raise ClusterError(
                    f"The scheduler {scheduler.address if scheduler else 'of the client'} is lost: start a "
                    "cluster, and resume the run from its checkpoint if it has one."
                ) from error
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
        """Return processors and results of all tasks in order; ``check`` is called meanwhile."""
        from distributed import KilledWorker, as_completed

        places = dict(zip(self._start(function, work), range(len(work)), strict=True))
        results: dict[int, tuple[str, T]] = {}
        done = as_completed(places, with_results=True, raise_errors=False, loop=self.client.loop)
        last = perf_counter()
        try:
            while places:
                check()
                batch = done.next_batch(block=False)
                for future, result in batch:
                    place = places.pop(future)
                    if future.status == "error" and isinstance(result[1], KilledWorker):
                        raise ClusterError(
                            f"Workers died repeatedly at {self.items[work[place][0]][2]}: their memory may "
                            "be too small for a unit, give smaller chunks."
                        )
                    if future.status != "finished":
                        future.result()  # raises the error of the task, or CancelledError
                    results[place] = result
                if batch:
                    last = perf_counter()
                    continue
                sleep(POLL)
                if perf_counter() - last > NO_WORKER:
                    last = perf_counter()
                    if not self._threads():
                        warn("No worker is left: the run waits until one joins.", UserWarning)
        finally:
            if places and self.client.status == "running":
                self.client.cancel(list(places), force=True)
        return [results[place] for place in range(len(work))]

    def _start(self, function: Callable[..., object], work: Work) -> list[Future]:
        """Start tasks, with keys of their own."""
        on_host = Counter[str]()
        for worker, threads in self._threads().items():
            on_host[_host(worker)] += threads
        task = self.client.submit(
            partial, _task, function, self.read, dict(on_host), _versions(), key=f"task-{uuid4()}", pure=False
        )
        items = [(task, *self.items[number], *arguments) for number, *arguments in work]
        return _submit(self.client, operator.call, items, getattr(function, "func", function).__name__)

    def _threads(self) -> dict[str, int]:
        """Return the threads of each worker; Dask itself waits half a minute for a scheduler that is lost."""
        ask = self.client.scheduler.ncores
        return dict(self.client.sync(ask, callback_timeout=NO_SCHEDULER, workers=None))


def _submit(
    client: Client, function: Callable[..., object], items: Sequence[tuple[Any, ...]], name: str
) -> list[Future]:
    """Return futures of ``function(*item)``, whose items may have lazy parts."""
    token = uuid4().hex[:8]
    keys = [f"{name}-{token}-{number}" for number in range(len(items))]
    if not any(is_planned(part) for item in items for part in item):
        columns = map(list, zip(*items, strict=True))
        return list(client.map(function, *columns, key=keys, pure=False))
    from dask import delayed

    made = delayed(function, pure=False)
    tasks = [made(*item, dask_key_name=key) for item, key in zip(items, keys, strict=True)]
    return list(client.compute(tasks, optimize_graph=False))


def _task(
    function: Callable[..., T],
    read: Callable[..., object],
    threads: dict[str, int],
    expected: dict[str, str],
    *item: Any,
) -> tuple[str, T]:
    """Return the processor of this worker and the result of a task; other versions raise ClusterError.

    ``item`` has the three arguments of ``read``, then the arguments of ``function`` after the content.
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
    files = sorted(package.rglob("*.py"))
    names = repr([file.relative_to(package).as_posix() for file in files])
    own = f"{sys.modules['swiftem'].__version__} with files {file_hash(names, files)[:8]}"
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
