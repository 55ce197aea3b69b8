"""The lane of Gaussian mixtures on a device: stretches of iterations there, for any declared method.

Threads draw the samples of the next stretch meanwhile, in memory from which the device copies them.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np

from swiftem._typing import Array, Index, Theta
from swiftem.data.draws import Draws, SeededDraws
from swiftem.engine.compiled_lane import CompiledLane, Drawn, Samples
from swiftem.engine.gpu.expectation import DeviceExpectation
from swiftem.engine.gpu.iterations import Done, DrawnRows, Iterations, Setting
from swiftem.engine.lane import Current, Lane, Task
from swiftem.engine.small_expectation import FULL
from swiftem.methods.em import EM
from swiftem.methods.method import Update, declared
from swiftem.models.components import Coefficients
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["DeviceLane", "DrawsAhead", "device_lane"]

THREADS = 4
"""Most threads: four make more than a device needs."""

log = logging.getLogger("swiftem")
NONE = np.empty(0)
ROWS = 1 << 20
"""Rows of the memory copied at a time."""


def device_lane(task: Task) -> Lane | None:
    """Return the lane of em or a declared method on a device, or None if the rows do not fit there."""
    update, e_step = declared(task.method), task.e_step
    if type(task.method) is EM:
        update = Update()  # the mean of a batch of all rows
    if update is None or not isinstance(e_step, DeviceExpectation):
        return None
    if not isinstance(task.model, BoundGaussians):
        return None
    if e_step.blocks.kept is None:
        return None
    lane = DeviceLane(task, update)
    # Otherwise the passes of Algorithm 1 are the fastest for em.
    return lane if lane.is_fast or type(task.method) is not EM else None


class _Indices(Samples):
    """Draws without samples, which are on the device; at most ``most`` iterations at a time."""

    def __init__(self, most: int) -> None:
        self._most = most

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        return min(stop, start + self._most)

    def drawn(self, index: tuple[Index, ...], memory: Any = None) -> Drawn:
        return Drawn(NONE, NONE, index, memory, None)


class DeviceLane(CompiledLane):
    """Statistics, φ(θ) and the memory stay on the device; draws go there, stretch by stretch.

    Batches are computed by kernels in Triton if there are some for the model, and if float32 is accurate
    enough: they stop at the first θ at which it is not, and everything from there on is float64.
    """

    FIRST = 64

    def __init__(self, task: Task, update: Update) -> None:
        assert isinstance(task.e_step, DeviceExpectation)
        assert isinstance(task.model, BoundGaussians)
        kept = task.e_step.blocks.kept
        assert kept is not None
        divided, scale = task.method.order == "weighted", task.source.n / task.source.total_weight
        is_all = type(task.method) is EM
        self._setting = Setting(
            kept, task.model, update, len(kept) if is_all else task.method.batch_size,
            1.0 if divided else scale, 1.0 / task.source.total_weight, divided, is_all,
        )  # fmt: skip
        self._there = DrawnRows(self._setting)
        self._ahead = DrawsAhead(task.draws, self._there.rooms)
        super().__init__(task._replace(draws=self._ahead), update, _Indices(self._there.most))
        self.bound = task.model
        self._memory: Any = None
        self._memory_of: Any = None
        self._is_changed = False
        self._iterations: Any = self._made()
        self._theta: Coefficients | None = None
        self._is_loaded = self._has_anchor = False
        self._centre_there = NONE
        self._first = self._end = 0

    @property
    def is_fast(self) -> bool:
        """Whether iterations are those of kernels in Triton."""
        return not isinstance(self._iterations, Iterations)

    def _made(self, *, is_exact: bool = False) -> Any:
        """Return the iterations: in float32 if possible, unless they must be exact."""
        fast = None if is_exact else fast_iterations(self._setting, self._there, self._memory)
        return fast or Iterations(self._setting, self._there, self._memory)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1 in stretches."""
        self._end = stop
        super().advance(now, stop)

    def load_theta(self, now: Current) -> None:
        """Note θ; if it is θ̄(s) the device computes it: then the start of a stretch makes no difference."""
        in_domain = self.bound.in_domain(now.s)
        is_of_s = in_domain and all(map(np.array_equal, now.theta, self.bound.m_step(now.s)))
        self._theta = None if is_of_s else self.bound.coefficients(now.theta)
        self._is_loaded = False

    def prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ)."""
        self._has_anchor = False
        return self.bound.coefficients(theta)

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations until the next renewal or ``stop``."""
        self._first = now.k
        stop = super().stretch(now, stop)
        if self._setting.is_all:
            self.task.e_step.evaluations += (stop - self._first) * (self.task.source.n - 1)
        return stop

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations on the device, and make the next draws meanwhile."""
        self._hold(drawn.memory)
        self._load()
        self._there.send(drawn.index, steps)
        self._iterations.start(len(steps))
        last = self._first + len(steps)
        self._ahead.make(last, min(self._end, last + len(steps)))  # the next stretch is about as long
        done = self._iterations.finish()
        self._read()
        if done.iterations < len(steps):  # float32 is not enough at this θ
            self._be_exact(done.iterations)
            self._there.send(tuple(part[done.iterations :] for part in drawn.index), steps[done.iterations :])
            self._iterations.start(len(steps) - done.iterations)
            rest = self._iterations.finish()
            self._read()
            done = Done(
                len(steps), done.rejected + rest.rejected, done.iterations - done.rejected + rest.moved
            )
        self._is_changed = drawn.memory is not None
        return done.rejected, done.moved

    def _load(self) -> None:
        """Copy to the device what is not there yet: ŝ, θ, the centre, the anchor."""
        if not self._is_loaded:
            self._iterations.load(self.s, self.centre, self.moments)
            self._iterations.load_theta(self._theta)
        elif self.centre is not self._centre_there:
            self._iterations.load(NONE, self.centre, NONE)
        self._is_loaded, self._centre_there = True, self.centre
        if self.anchor is not None and not self._has_anchor:
            self._iterations.load_anchor(None if self.restates_anchor else self.anchor, self.before)
            self.restates_anchor, self._has_anchor = False, True

    def _read(self) -> None:
        """Copy the results from the device."""
        read = self._iterations.read()
        self.s[:], self.centre[:], self.before[:] = read.s, read.centre, read.before
        if len(self.moments):
            self.moments[:] = read.moments

    def _be_exact(self, count: int) -> None:
        """Do everything in float64 from here on, after ``count`` iterations of a stretch."""
        self._iterations = self._made(is_exact=True)
        if self.update.reference == "previous" and count:
            self.anchor = self._theta if count == 1 else None  # else it is θ̄(before)
            self.restates_anchor = self.anchor is None
            self.anchor = self.anchor or ()
        if count:
            self._theta = None
        self._is_loaded = self._has_anchor = False
        self._load()

    def _hold(self, memory: Any) -> None:
        """Copy the memory to the device, unless it is there."""
        if memory is None or memory is self._memory_of:
            return
        import torch

        rows = self._setting.rows.y
        if self._memory is None:
            shape, dtype = (len(memory) + 1, memory.shape[1]), getattr(torch, memory.dtype.name)
            e_step: Any = self.task.e_step
            if e_step.blocks.fits(memory.itemsize * shape[0] * shape[1]):
                self._memory = torch.zeros(shape, dtype=dtype, device=rows.device)
            else:
                log.info("the memory of %s stays in pinned memory of the CPU", self.task.method.name)
                self._memory = _on_host(torch, shape, dtype, rows.device)
            self._iterations = self._made()
        for start in range(0, len(memory), ROWS):
            part = torch.from_numpy(np.ascontiguousarray(memory[start : start + ROWS]))
            self._memory[start : start + len(part)].copy_(part)
        self._memory_of = memory

    def store(self, now: Current) -> None:
        """Store s, θ = θ̄(s) and the method's state, the memory included."""
        super().store(now)
        if self._is_changed:
            for start in range(0, self.task.source.n, ROWS):
                part = self._memory[start : min(start + ROWS, self.task.source.n)]
                self._memory_of[start : start + len(part)] = part.cpu().numpy()
            self._is_changed = False


class _Pinned:
    """Pinned memory of the CPU as an array of CUDA: kernels read and write it over the bus."""

    def __init__(self, host: Any) -> None:
        self._host = host
        kinds = {4: "<f4", 8: "<f8"}
        self.__cuda_array_interface__ = {
            "shape": tuple(host.shape), "typestr": kinds[host.element_size()],
            "data": (host.data_ptr(), False), "version": 2,
        }  # fmt: skip


def _on_host(torch: Any, shape: tuple[int, int], dtype: Any, device: Any) -> Any:
    """Return zeros in pinned memory, a tensor of the device."""
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype)
    return torch.as_tensor(_Pinned(torch.zeros(shape, dtype=dtype, pin_memory=True)), device=device)


def fast_iterations(setting: Setting, drawn: DrawnRows, memory: Any) -> Any:
    """Return iterations by kernels in Triton, or None without them."""
    if setting.rows.y.device.type != "cuda" or setting.bound.code != FULL or setting.update.is_optimal:
        return None
    try:
        from swiftem.engine.gpu.fast.iterations import FastIterations
        from swiftem.engine.gpu.fast.prepare import full_rows
    except ImportError:  # Triton is for Linux
        return None
    full = full_rows(setting.rows, setting.bound.n_components)
    return None if full is None else FastIterations(setting, drawn, memory, full)


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
