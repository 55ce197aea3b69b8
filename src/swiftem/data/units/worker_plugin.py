"""What workers of a cluster set up before their first task, also those that join late."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

from distributed import WorkerPlugin

from swiftem.engine.threads import get_threads, set_threads

__all__ = ["KernelsPlugin", "ThreadsPlugin", "host_of", "use_threads"]


class ThreadsPlugin(WorkerPlugin):  # type: ignore[misc]
    """Divides the cores of a host among the threads of its workers, and measures what they wait for data.

    Nannies limit the threads of BLAS only: without this each task would start threads on all cores.
    """

    name = "swiftem"

    def __init__(self) -> None:
        self._began: dict[Any, float] = {}
        self._seconds = 0.0

    async def setup(self, worker: Any) -> None:
        """Set the threads of kernels."""
        threads = await worker.scheduler.ncores()
        host = host_of(worker.address)
        use_threads(sum(count for address, count in threads.items() if host_of(address) == host))

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Measure the time of data that other workers send."""
        if finish == "flight":
            self._began[key] = perf_counter()
        elif start == "flight":
            began = self._began.pop(key, None)
            self._seconds += 0.0 if began is None else perf_counter() - began

    def take_seconds(self) -> float:
        """Return the seconds in which data arrived since the last call."""
        found, self._seconds = self._seconds, 0.0
        return found


class KernelsPlugin(WorkerPlugin):  # type: ignore[misc]
    """Compiles kernels before the first task.

    Parameters
    ----------
    compile_ahead : callable
        A function of a module, so that workers find it by name.
    """

    def __init__(self, compile_ahead: Callable[[], None]) -> None:
        self._compile, self.name = compile_ahead, f"swiftem-{compile_ahead.__name__}"

    async def setup(self, worker: Any) -> None:
        """Compile in a thread: the worker answers meanwhile."""
        await asyncio.get_running_loop().run_in_executor(None, self._compile)


def host_of(address: str) -> str:
    """Return the host of a worker's address.

    >>> host_of("tcp://10.0.0.2:4711")
    '10.0.0.2'
    """
    return address.rpartition("://")[2].rpartition(":")[0]


def use_threads(on_host: int) -> None:
    """Set the threads of kernels: the cores, divided among ``on_host`` threads of workers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // max(1, on_host))
    if get_threads() != threads:
        set_threads(threads)
