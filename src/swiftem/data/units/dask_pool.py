"""Tasks of units on the workers of a Dask cluster.

Tasks are pure and units are tasks too, so that results lost with a worker are recomputed with the same bits.
Nothing is scattered, pinned or kept by an actor: these are lost with their worker. Parameters are sent as a
separate task, once per pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter, sleep
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np

from swiftem._warn import warn
from swiftem.data.units.dask_map import NO_SCHEDULER, NO_WORKER, ClusterError, DaskMap, HeldUnit, lost
from swiftem.data.units.versions import difference, versions
from swiftem.data.units.worker_plugin import KernelsPlugin, ThreadsPlugin, host_of

__all__ = ["ClusterError", "DaskPool"]

T = TypeVar("T")

NOTICED = 2.0
"""Seconds after which a client has noticed the loss of its scheduler."""
FRESH = 2.0
"""Seconds for which the list of workers is used again."""
SHARE = 0.5
"""Share of the cluster's memory in which units may be kept."""

_plugins: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def _check_versions(worker: str, theirs: Any) -> None:
    if sentence := difference(worker, theirs):
        raise ClusterError(sentence)


class DaskPool:
    """Runs tasks on the workers of a client's cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster; workers must be able to import swiftem.

    Attributes
    ----------
    compute, transfer : float
        Seconds that threads of workers computed, and that data were on their way between workers.
    available : float
        Seconds of passes, times the threads that the workers have.
    started_again : int
        Tasks that were slow, and were started again elsewhere.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.compute = self.transfer = self.available = 0.0
        self.started_again = 0
        self._threads: tuple[float, dict[str, int]] = (-FRESH, {})
        #: Median seconds of the tasks of a name in its last pass.
        self.usual: dict[str, float] = {}
        self._processors: set[str] = set()
        self._warned = False
        if client not in _plugins:
            self._compare_versions()
        self._register(ThreadsPlugin())

    def _compare_versions(self) -> None:
        """Raise ClusterError if a worker has another swiftem: its results would be others, or fail."""
        found = self._patiently(lambda: self.client.run(versions, on_error="return"))
        for worker, theirs in found.items():
            if not isinstance(theirs, OSError):  # of a worker that has just died
                _check_versions(worker, theirs)

    def note(self, kind: Any) -> None:
        """Check the worker of a result: it may have joined late. Warn, once, if workers differ in their CPU.

        Other versions of swiftem send a text instead of address, processor and versions.
        """
        worker, processor, theirs = ("(of an older version)", "", None) if isinstance(kind, str) else kind
        _check_versions(worker, theirs)
        self._processors.add(processor)
        if len(self._processors) == 2 and not self._warned:
            self._warned = True
            warn(
                f"The workers differ in CPU, and so may the last bits of results: "
                f"{'; '.join(sorted(self._processors))}.",
                UserWarning,
            )

    def equip(self, compile_ahead: Callable[[], None]) -> None:
        """Compile kernels on all workers, also on those that join later."""
        self._register(KernelsPlugin(compile_ahead))

    def _register(self, plugin: Any) -> None:
        known = _plugins.setdefault(self.client, set())
        if plugin.name not in known:
            self._patiently(lambda: self.client.register_plugin(plugin))
            known.add(plugin.name)

    def _patiently(self, call: Callable[[], T]) -> T:
        """Return the result of a call that fails if a worker dies meanwhile."""
        for _ in range(10):
            try:
                return call()
            except OSError as error:
                if not self._is_there():
                    raise lost(self.client) from error
        return call()

    def ask(self, call: Callable[..., Any], **given: Any) -> Any:
        """Return the answer of the scheduler; Dask itself waits half a minute for one that is lost."""
        return self._patiently(lambda: self.client.sync(call, callback_timeout=NO_SCHEDULER, **given))

    def threads(self) -> dict[str, int]:
        """Return the threads of each worker, as of the last two seconds."""
        if perf_counter() - self._threads[0] > FRESH:
            self._threads = perf_counter(), dict(self.ask(self.client.scheduler.ncores, workers=None))
        return self._threads[1]

    def by_host(self) -> dict[str, int]:
        """Return the threads of all workers of each host."""
        found: dict[str, int] = {}
        for worker, threads in self.threads().items():
            found[host_of(worker)] = found.get(host_of(worker), 0) + threads
        return found

    def hold(
        self, prepare: Callable[..., Any], work: list[tuple[Any, ...]], size: float
    ) -> list[tuple[Any, ...]]:
        """Return the work with prepared units, kept by the workers if half of their memory is enough."""
        self._wait_for_a_worker()
        info = self.client.scheduler_info(n_workers=-1)["workers"]
        if not np.isfinite(size) or size > SHARE * sum(found["memory_limit"] or 0 for found in info.values()):
            return work
        slots = [address for address, threads in sorted(self.threads().items()) for _ in range(threads)]
        token = uuid4().hex[:8]
        held = [
            HeldUnit(self.client, prepare, item, f"unit-{token}-{number}", slots[number % len(slots)])
            for number, item in enumerate(work)
        ]
        return [(unit, None, *item[2:]) for unit, item in zip(held, work, strict=True)]

    def _wait_for_a_worker(self) -> None:
        began, said = perf_counter(), False
        while not self.threads():
            if perf_counter() - began > NO_WORKER and not said:
                said = True
                warn("The cluster has no worker: the run waits until one joins.", UserWarning)
            sleep(0.1)
            self._threads = (-FRESH, {})

    def map(
        self, function: Callable[..., Any], common: Any, work: Sequence[tuple[Any, ...]], *,
        name: str, check: Callable[[], None] = lambda: None,
    ) -> list[Any]:  # fmt: skip
        """Return ``function(common, *item)`` of each item, in order; see :class:`Pool`."""
        from distributed import CancelledError

        began = perf_counter()
        try:
            return DaskMap(self, function, common, work, name).results(check)
        # The error of a client without its scheduler depends on its current operation.
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if isinstance(error, ClusterError) or self._is_there():
                raise
            raise lost(self.client) from error
        finally:
            self.available += (perf_counter() - began) * sum(self._threads[1].values())

    def spent(self) -> str:
        """Return a line on the workers, and how their time was spent."""
        threads, whole = self._threads[1].values(), max(self.available, 1e-9)
        shares = [self.compute / whole, self.transfer / whole]
        shares = [min(1.0, share) for share in (*shares, max(0.0, 1.0 - sum(shares)))]
        again = f"; {self.started_again:,} slow tasks started again" if self.started_again else ""
        return (
            f"{len(threads):,} worker{'s' * (len(threads) != 1)}, "
            f"{sum(threads):,} thread{'s' * (sum(threads) != 1)}: their time was "
            f"{shares[0]:.0%} compute, {shares[1]:.0%} transfer, {shares[2]:.0%} wait{again}."
        )

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
