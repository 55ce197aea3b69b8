"""Iterations on a device of PyTorch: declared methods on batches of rows, and em.

Everything is float64, and nothing is copied to the CPU between iterations, so that CUDA graphs replay them.
Threads draw the samples of the next stretch meanwhile, in memory from which the device copies them.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from os import cpu_count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakMethod

import numpy as np
import torch

from swiftem.core.algorithm import Current, Task
from swiftem.core.draws import Draws
from swiftem.core.method import Update
from swiftem.core.types import Array, Index, Theta
from swiftem.data.samples import Drawn, Samples
from swiftem.kernels.loop import CompiledLoop
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.torch import Given, TorchCompute, features, on_device
from swiftem.mixture.compute.torch_m_step import DeviceMStep
from swiftem.mixture.compute.torch_rows import DeviceRows, Extents, Rows, Sums
from swiftem.mixture.covariance import FULL, TIED
from swiftem.mixture.gaussians import BoundGaussians

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DeviceEM", "DrawsAhead", "Iterations", "Passed", "TorchLoop"]

log = logging.getLogger("swiftem")

NUMBERS = 1 << 27
"""Most whitened differences of a batch; with more, logits are those of expanded squares."""
INDICES = 1 << 24
"""Most indices of a stretch."""
MEMORY_ROWS = 1 << 20
"""Rows of the memory copied at a time."""
THREADS = 4
"""Most threads that draw: four make more than a device needs."""
NONE = np.empty(0)


def graph_of(call: Callable[[], None]) -> Any:
    """Return a CUDA graph of what ``call`` starts, which is not done yet.

    An older graph must not be freed meanwhile, which the garbage collector may do at any time.
    """
    graph, is_enabled = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
    finally:
        if is_enabled:
            gc.enable()
    return graph


class Graphs:
    """An iteration, repeated: on a GPU as a graph, made when it has been done once.

    Parameters
    ----------
    iteration : bound method
        Does one iteration, without waiting for it. Its object is not kept alive: it frees its memory at once.
    is_cuda : bool
        Whether it is done on a GPU.
    """

    AT_ONCE = 16
    """Iterations of the larger graph."""

    def __init__(self, iteration: Callable[[], None], is_cuda: bool) -> None:
        self._method, self._is_cuda = WeakMethod(iteration), is_cuda
        self._graphs: dict[int, Any] = {}

    def run(self, count: int) -> None:
        """Begin as many iterations."""
        iteration = self._method()
        assert iteration is not None, "whoever runs it has its object"
        if self._is_cuda and not self._graphs:
            iteration()  # kernels are compiled, and libraries allocate what they need
            count -= 1
            for size in (1, self.AT_ONCE):
                self._graphs[size] = graph_of(lambda size=size: _repeat(iteration, size))  # type: ignore[misc]
        for size in (self.AT_ONCE, 1):
            while count >= size:
                if self._is_cuda:
                    self._graphs[size].replay()
                else:
                    _repeat(iteration, size)
                count -= size


def _repeat(call: Callable[[], None], count: int) -> None:
    for _ in range(count):
        call()


def _into(held: Coefficients | None, theta: Any) -> Coefficients:
    """Return θ in tensors that graphs read: those of ``held``, or new ones, which have the form of θ."""
    if held is None:
        return Coefficients(*(part.clone() for part in theta))
    for into, part in zip(held, theta, strict=True):
        into.copy_(part)  # type: ignore[attr-defined]  # tensors
    return held


class Passed(NamedTuple):
    """A pass at θ, and whether θ̄(s) follows.

    Attributes
    ----------
    objective : float
        The objective at θ.
    is_in : bool
        Whether s is in the domain; otherwise there is no next θ.
    least : float
        The smallest of the components' weights in s.
    """

    objective: float
    is_in: bool
    least: float


class DeviceEM:
    """em, pass by pass: :meth:`load` sets θ, :meth:`advance` does a pass and the M-step after it.

    Statistics and parameters stay on the device; the CPU reads five numbers of each pass. Passes by kernels
    over rows that stay on the device are graphs that contain the M-step, from the second one on.

    Parameters
    ----------
    compute : TorchCompute
        The E-steps.
    """

    def __init__(self, compute: TorchCompute) -> None:
        self._compute, self._bound = compute, compute.bound
        self._m_step = DeviceMStep(compute.bound, compute.device_rows.device)
        self._now: Any = None
        self._next: Any = None
        self._s: Any = None
        self._before: Any = None
        self._numbers: Any = None
        self._extents = Extents(0.0, 0.0)
        self._graph: Any = None
        self._is_compiled = False

    def load(self, theta: Theta) -> None:
        """Set θ."""
        given = on_device(self._bound.coefficients(theta), self._compute.device_rows.device)
        self._next = _into(self._next, given)
        self._now = _into(self._now, given)
        self._extents = Extents(*self._compute.extents(self._next).tolist())

    def advance(self) -> Passed:
        """Do a pass at θ, and the M-step that gives the next θ; wait for what decides how to continue."""
        _into(self._now, self._next)
        if self._s is not None:
            self._before = self._s.clone()
        compute, rows = self._compute, self._compute.device_rows.resident
        kernels = None if rows is None else compute.kernels(rows, self._extents)
        if kernels is not None and kernels.can_be_captured and self._is_compiled:
            if self._graph is None:
                self._graph = graph_of(lambda: self._finish(self._by_kernels(kernels)))
            self._graph.replay()
        elif kernels is not None:
            self._finish(self._by_kernels(kernels))
            self._is_compiled = self._s.is_cuda
        else:
            self._finish(compute.total(Given(self._bound.code, self._now, self._extents)))
        value, is_in, least, *extents = self._numbers.tolist()
        self._extents = Extents(*extents)
        compute.evaluations += compute.n
        loss = -value - compute.device_rows.total_base
        return Passed(loss / compute.total_weight, bool(is_in), least)

    def _by_kernels(self, kernels: Any) -> Sums:
        return self._compute.completed(kernels.sums(self._now), self._now)

    @property
    def s(self) -> Array:
        """The statistics of the last pass, a copy."""
        return self._s.cpu().numpy().copy()  # type: ignore[no-any-return]

    @property
    def before(self) -> Array:
        """The statistics of the pass before, a copy."""
        return self._before.cpu().numpy().copy()  # type: ignore[no-any-return]

    def _finish(self, total: Sums) -> None:
        """Write s, the next θ, and the numbers that the CPU reads."""
        s = self._compute.flat(total.sums) / self._compute.total_weight
        is_in, theta = self._m_step(s)
        numbers = torch.stack([total.log_likelihood, is_in.double(), s[: len(total.sums)].min()])
        numbers = torch.cat([numbers, self._compute.extents(theta)])
        if self._s is None:
            self._s, self._numbers = s.clone(), numbers.clone()
        else:
            self._s.copy_(s)
            self._numbers.copy_(numbers)
        _into(self._next, theta)


class Setting(NamedTuple):
    """What is constant in a run.

    Attributes
    ----------
    rows : Rows
        All rows, on the device.
    bound : BoundGaussians
        The model.
    update : Update
        The method's declaration.
    batch_size : int
        b.
    scale, share : float
        n / W, or 1 if ``is_divided``, and 1 / W, W the sum of weights.
    is_divided : bool
        Whether samples are drawn in proportion to weights: means over batches then leave these out.
    """

    rows: Rows
    bound: BoundGaussians
    update: Update
    batch_size: int
    scale: float
    share: float
    is_divided: bool


class DrawnRows:
    """The draws and steps of a stretch on the device, in memory that graphs read.

    Attributes
    ----------
    most : int
        Most iterations of a stretch.
    index : list of tensor, shape (most, b)
        Indices of each stream.
    rooms : list of list of ndarray, shape (most, b)
        Memory for draws on the CPU, two rooms with an array for each stream; draws elsewhere are slower.
    first : tensor of bool, shape (most, b), or None
        Whether a sample whose memory is renewed is the first of its kind in the batch.
    steps : tensor, shape (most,)
        γ, float64.
    """

    def __init__(self, setting: Setting) -> None:
        n, b, update = len(setting.rows), setting.batch_size, setting.update
        streams = 1 + (update.renewed_by == "other")
        self.most = max(1, min(1 << 13, INDICES // (b * streams)))
        dtype, device = torch.int32 if n < 2**31 else torch.int64, setting.rows.y.device
        pinned = device.type == "cuda"
        self.index = [torch.zeros((self.most, b), dtype=dtype, device=device) for _ in range(streams)]
        self._host = torch.zeros((2, streams, self.most, b), dtype=dtype, pin_memory=pinned)
        self.rooms = [list(room.numpy()) for room in self._host]
        self.steps = torch.zeros(self.most, dtype=torch.float64, device=device)
        self.first: Tensor | None = None
        if update.renewed_by != "none":
            self.first = torch.zeros((self.most, b), dtype=torch.bool, device=device)

    def send(self, index: tuple[Index, ...], steps: Array) -> None:
        """Copy the draws and steps of a stretch to the device."""
        count = len(steps)
        for into, drawn in zip(self.index, index, strict=True):
            into[:count].copy_(torch.from_numpy(drawn), non_blocking=True)
        self.steps[:count].copy_(torch.from_numpy(steps))
        if self.first is not None:
            values, order = torch.sort(self.index[-1][:count], dim=1, stable=True)
            is_new = torch.ones_like(values, dtype=torch.bool)
            is_new[:, 1:] = values[:, 1:] != values[:, :-1]
            self.first[:count].scatter_(1, order, is_new)


class Iterations:
    """Iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    setting : Setting
        Rows, model and method.
    drawn : DrawnRows
        Draws and steps.
    memory : tensor, shape (n + 1, M), or None
        The memory, if the method has one; the last row is for rows that count for nothing.

    Attributes
    ----------
    s, centre, before : tensor, shape (q,)
        Statistics, centre, and the statistics before the last iteration, float64.
    """

    def __init__(self, setting: Setting, drawn: DrawnRows, memory: Any) -> None:
        self._setting, self._drawn, self._memory = setting, drawn, memory
        device = setting.rows.y.device
        self._m_step = DeviceMStep(setting.bound, device)
        self.s, self.centre, self.before = torch.zeros(
            (3, setting.bound.size), dtype=torch.float64, device=device
        ).unbind()
        self._at, self._rejected, self._rejected_before = torch.zeros(
            (3, 1), dtype=torch.int64, device=device
        ).unbind()
        self._theta: Any = None
        self._anchor: Any = None
        self._count, self._graphs = 0, Graphs(self._iteration, device.type == "cuda")

    def load(self, s: Array, centre: Array) -> None:
        """Set ŝ, unless it is empty, and the centre."""
        for into, values in ((self.s, s), (self.centre, centre)):
            if len(values):
                into.copy_(torch.from_numpy(values))

    def load_theta(self, theta: Coefficients | None) -> None:
        """Set θ; None is θ̄(s)."""
        self._theta = self._loaded(self._theta, theta, self.s)

    def load_anchor(self, anchor: Coefficients | None, before: Array) -> None:
        """Set the anchor; None is θ̄(before)."""
        self.before.copy_(torch.from_numpy(before))
        self._anchor = self._loaded(self._anchor, anchor, self.before)

    def _loaded(self, held: Any, theta: Coefficients | None, s: Tensor) -> Coefficients:
        """Return coefficients in tensors that graphs read."""
        given: Any = self._m_step(s)[1] if theta is None else on_device(theta, s.device)
        return _into(held, [part.contiguous() for part in given])

    def read(self) -> tuple[Array, Array, Array]:
        """Return copies of ``s``, ``centre`` and ``before``."""
        s, centre, before = (part.cpu().numpy() for part in (self.s, self.centre, self.before))
        return s, centre, before

    def start(self, count: int) -> None:
        """Begin as many iterations of the draws, the first of :class:`DrawnRows` first."""
        self._at.zero_()
        self._rejected.zero_()
        self._count = count
        self._graphs.run(count)

    def finish(self) -> tuple[int, int]:
        """Wait; return numbers of rejected steps, and of steps accepted before the last iteration."""
        rejected, before = torch.cat([self._rejected, self._rejected_before]).tolist()
        return rejected, self._count - 1 - before

    def _iteration(self) -> None:
        """Do one iteration: the declaration, term by term."""
        update = self._setting.update
        self._rejected_before.copy_(self._rejected)
        step = self._drawn.steps.index_select(0, self._at)
        candidate: Any = None if update.renewed_by == "drawn" else self._proxy()
        if update.renewed_by != "none":
            self._renew()
        if update.renewed_by == "drawn":
            candidate = self.centre
        if update.reference == "previous":
            self.centre.copy_(candidate)
            self.before.copy_(self.s)
            _into(self._anchor, self._theta)
        candidate = torch.where(step < 1.0, self.s + step * (candidate - self.s), candidate)  # (sestep)
        is_in, theta = self._m_step(candidate)  # (mstep)
        for into, part in zip((self.s, *self._theta), (candidate, *theta), strict=True):
            into.copy_(torch.where(is_in, part, into))
        self._rejected += ~is_in
        self._at += 1

    def _proxy(self) -> Tensor:
        """Return S of the first stream's batch."""
        update, b = self._setting.update, self._setting.batch_size
        index = self._drawn.index[0].index_select(0, self._at)[0]
        x, weight = self._samples(index, is_mean=True)
        rows = self._responsibilities(x, self._theta)
        if update.reference in ("anchor", "previous"):
            rows = rows - update.correction * self._responsibilities(x, self._anchor)
        elif update.reference == "memory":
            rows = rows - update.correction * self._memory.index_select(0, index).double()
        proxy = self._statistics(x, rows * (weight / b)[:, None])
        return proxy if update.centre == "zero" else update.correction * self.centre + proxy

    def _samples(self, index: Tensor, *, is_mean: bool) -> tuple[Tensor, Tensor]:
        """Return centred samples (b, d), float64, and their weights (b,), times n/W or divided by W."""
        setting = self._setting
        x = setting.rows.y.index_select(0, index).double() - setting.rows.centre
        factor = setting.scale if is_mean else setting.share
        if setting.rows.weight is None or (is_mean and setting.is_divided):
            return x, torch.full((len(index),), factor, dtype=torch.float64, device=x.device)
        return x, setting.rows.weight.index_select(0, index) * factor

    def _renew(self) -> None:
        """Renew the memory of a batch and the centre, its mean; a repeated sample counts once."""
        index = self._drawn.index[-1].index_select(0, self._at)[0]
        assert self._drawn.first is not None
        is_first = self._drawn.first.index_select(0, self._at)[0]
        x, weight = self._samples(index, is_mean=False)
        rows = self._responsibilities(x, self._theta).to(self._memory.dtype)
        change = rows.double() - self._memory.index_select(0, index).double()
        self.centre += self._statistics(x, change * (weight * is_first)[:, None])
        self._memory.index_copy_(0, torch.where(is_first, index, len(self._memory) - 1).long(), rows)

    def _responsibilities(self, x: Tensor, theta: Any) -> Tensor:
        """Return responsibilities (b, M) of samples (b, d)."""
        code, (b, d), count = self._setting.bound.code, x.shape, len(theta.plain)
        if b * count * d > NUMBERS:
            return torch.softmax(torch.addmm(theta.constant, features(x, code), theta.phi), dim=1)
        if code == FULL:
            away = (x @ theta.whiten.reshape(count * d, d).T).view(b, count, d)
            away = away - (theta.whiten @ theta.means[:, :, None])[:, :, 0]
        elif code == TIED:
            away = (x @ theta.whiten[0].T)[:, None] - theta.means @ theta.whiten[0].T
        else:
            away = (x[:, None] - theta.means) * theta.scales
        return torch.softmax(theta.plain - 0.5 * away.square().sum(dim=2), dim=1)

    def _statistics(self, x: Tensor, rows: Tensor) -> Tensor:
        """Return flat statistics (q,) of samples (b, d) and weighted rows (b, M)."""
        code, d = self._setting.bound.code, x.shape[1]
        sums = rows.T @ features(x, code)
        squares = sums[:, d:]
        if code == TIED:
            row, column = torch.tril_indices(d, d, device=x.device)
            squares = (x.T @ (x * rows.sum(dim=1, keepdim=True)))[row, column]
        return torch.cat([rows.sum(dim=0), sums[:, :d].reshape(-1), squares.reshape(-1)])


class _Indices(Samples):
    """Draws without samples, which are on the device; at most ``most`` iterations at a time."""

    def __init__(self, most: int) -> None:
        self._most = most

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        return min(stop, start + self._most)

    def drawn(self, index: tuple[Index, ...], memory: Any = None) -> Drawn:
        return Drawn(NONE, NONE, index, memory, None)


class TorchLoop(CompiledLoop):
    """Iterations of a declared method on a device.

    Statistics, φ(θ) and the memory stay there; draws go there, stretch by stretch.

    Parameters
    ----------
    task : Task
        The inputs of the run.
    update : Update
        The method's declaration.
    device_rows : DeviceRows
        The rows, which stay on the device.
    """

    FIRST = 64

    def __init__(self, task: Task, update: Update, device_rows: DeviceRows) -> None:
        rows, is_divided = device_rows.resident, task.method.order == "weighted"
        assert rows is not None
        assert isinstance(task.model, BoundGaussians)
        scale = 1.0 if is_divided else task.source.n / task.source.total_weight
        share = 1.0 / task.source.total_weight
        self._setting = Setting(rows, task.model, update, task.method.batch_size, scale, share, is_divided)
        self._drawn_rows = DrawnRows(self._setting)
        self._ahead = DrawsAhead(task.draws, self._drawn_rows.rooms)
        super().__init__(task._replace(draws=self._ahead), update, _Indices(self._drawn_rows.most))
        self.bound, self._device_rows = task.model, device_rows
        self._memory: Any = None
        self._host_memory: Any = None
        self._is_changed = False
        self._iterations = Iterations(self._setting, self._drawn_rows, None)
        self._theta: Coefficients | None = None
        self._is_loaded = self._has_anchor = False
        self._loaded_centre = NONE
        self._first = self._end = 0

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1 in stretches."""
        self._end = stop
        super().advance(now, stop)

    def load_theta(self, now: Current) -> None:
        """Note θ; if it is θ̄(s) the device computes it: then the start of a stretch makes no difference."""
        self._theta = None if now.is_m_step else self.bound.coefficients(now.theta)
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
        return super().stretch(now, stop)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations on the device, and make the next draws meanwhile."""
        self._load_memory(drawn.memory)
        self._load()
        self._drawn_rows.send(drawn.index, steps)
        self._iterations.start(len(steps))
        last = self._first + len(steps)
        self._ahead.make(last, min(self._end, last + len(steps)))  # the next stretch is about as long
        rejected, moved = self._iterations.finish()
        self.s[:], self.centre[:], self.before[:] = self._iterations.read()
        self._is_changed = drawn.memory is not None
        return rejected, moved

    def _load(self) -> None:
        """Copy to the device what is not there yet: ŝ, θ, the centre, the anchor."""
        if not self._is_loaded:
            self._iterations.load(self.s, self.centre)
            self._iterations.load_theta(self._theta)
        elif self.centre is not self._loaded_centre:
            self._iterations.load(NONE, self.centre)
        self._is_loaded, self._loaded_centre = True, self.centre
        if self.anchor is not None and not self._has_anchor:
            self._iterations.load_anchor(None if self.restates_anchor else self.anchor, self.before)
            self.restates_anchor, self._has_anchor = False, True

    def _load_memory(self, memory: Any) -> None:
        """Copy the memory to the device, unless it is there."""
        if memory is None or memory is self._host_memory:
            return
        if self._memory is None:
            shape, dtype = (len(memory) + 1, memory.shape[1]), getattr(torch, memory.dtype.name)
            device = self._device_rows.device
            if self._device_rows.fits(memory.itemsize * shape[0] * shape[1]):
                self._memory = torch.zeros(shape, dtype=dtype, device=device)
            else:
                log.info("the memory of %s stays in pinned memory of the CPU", self.task.method.name)
                self._memory = _on_host(shape, dtype, device)
            self._iterations = Iterations(self._setting, self._drawn_rows, self._memory)
        for start in range(0, len(memory), MEMORY_ROWS):
            part = torch.from_numpy(np.ascontiguousarray(memory[start : start + MEMORY_ROWS]))
            self._memory[start : start + len(part)].copy_(part)
        self._host_memory = memory

    def store(self, now: Current) -> None:
        """Store s, θ = θ̄(s) and the method's state, the memory included."""
        super().store(now)
        if self._is_changed:
            n = self.task.source.n
            for start in range(0, n, MEMORY_ROWS):
                part = self._memory[start : min(start + MEMORY_ROWS, n)]
                self._host_memory[start : start + len(part)] = part.cpu().numpy()
            self._is_changed = False


class _Pinned:
    """Pinned memory of the CPU as an array of CUDA: kernels read and write it over the bus."""

    def __init__(self, host: Tensor) -> None:
        self._host = host
        kinds = {4: "<f4", 8: "<f8"}
        self.__cuda_array_interface__ = {
            "shape": tuple(host.shape),
            "typestr": kinds[host.element_size()],
            "data": (host.data_ptr(), False),
            "version": 2,
        }


def _on_host(shape: tuple[int, int], dtype: Any, device: Any) -> Tensor:
    """Return zeros in pinned memory, a tensor of the device."""
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype)
    return torch.as_tensor(_Pinned(torch.zeros(shape, dtype=dtype, pin_memory=True)), device=device)


class DrawsAhead(Draws):
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
        self._twins = [draws.twin() for _ in range(threads)]
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
        for room, drawn in zip(self._rooms[0], draws.block(start, stop), strict=True):
            np.copyto(room[here], drawn, casting="same_kind")

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, []
        for part in under_way:
            part.result()
