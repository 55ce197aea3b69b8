"""Iterations on a device of PyTorch: declared methods on batches of rows, and em.

Everything is float64, and nothing is copied to the CPU between iterations, so that CUDA graphs replay them.
The CPU draws the samples of the next stretch meanwhile.
"""

from __future__ import annotations

import logging
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from swiftem.core.algorithm import Current, Task
from swiftem.core.draws import Draws
from swiftem.core.method import Update
from swiftem.core.types import Array, Index, Theta
from swiftem.data.samples import Drawn, Samples
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.torch_device import graph_of
from swiftem.mixture.compute.torch import Given, TorchCompute, features, on_device, whitened_logits
from swiftem.mixture.compute.torch_m_step import DeviceMStep
from swiftem.mixture.compute.torch_rows import DeviceRows, DeviceTheta, Sums
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["DeviceEM", "TorchLoop"]

log = logging.getLogger("swiftem")

NUMBERS = 1 << 27
"""Most whitened differences of a batch; with more, logits are those of expanded squares."""
INDICES = 1 << 24
"""Most indices of a stretch."""
AT_ONCE = 16
"""Iterations of the larger CUDA graph."""
NONE = np.empty(0)


def _into(held: DeviceTheta | None, theta: DeviceTheta) -> DeviceTheta:
    """Return θ in tensors that graphs read: those of ``held``, or new ones, which have the form of θ."""
    if held is None:
        return DeviceTheta(*(part.clone(memory_format=torch.contiguous_format) for part in theta))
    for into, part in zip(held, theta, strict=True):
        into.copy_(part)
    return held


class DeviceEM:
    """em, pass by pass: :meth:`load` sets θ, :meth:`advance` does a pass and the M-step after it.

    Statistics and parameters stay on the device; the CPU reads five numbers of each pass. Passes by kernels
    over rows that stay on the device are graphs that contain the M-step, from the second one on.

    Parameters
    ----------
    compute : TorchCompute
        The E-steps.
    bound : BoundGaussians
        The model.
    """

    def __init__(self, compute: TorchCompute, bound: BoundGaussians) -> None:
        self._compute, self._bound, self._device = compute, bound, compute.device_rows.device
        self._m_step = DeviceMStep(bound, self._device)
        self._now: DeviceTheta | None = None
        self._next: DeviceTheta | None = None
        self._s, self._before = torch.zeros((2, bound.size), dtype=torch.float64, device=self._device)
        self._numbers = self._s.new_zeros(5)
        self._extents = [0.0, 0.0]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._is_compiled = False

    def load(self, theta: Theta) -> None:
        """Set θ."""
        given = on_device(self._bound.coefficients(theta), self._device)
        self._now, self._next = _into(self._now, given), _into(self._next, given)
        self._extents = self._compute.extents(given).tolist()

    def advance(self) -> tuple[float, bool, float]:
        """Do a pass at θ, and the M-step that gives the next θ; wait for what decides how to continue.

        Return the objective at θ, whether s is in the domain (otherwise there is no next θ), and the smallest
        of the components' weights in s.
        """
        assert self._next is not None, "load comes first"
        now, compute = _into(self._now, self._next), self._compute
        self._before.copy_(self._s)
        given, rows = Given(self._bound.code, now, *self._extents), compute.device_rows.resident
        kernels = None if rows is None else compute.kernels(rows, given)
        if kernels is None:
            self._finish(compute.total(given))
        elif self._is_compiled and kernels.can_be_captured:
            if self._graph is None:
                self._graph = graph_of(lambda: self._finish(compute.completed(kernels.sums(now), now)))
            self._graph.replay()
        else:
            self._finish(compute.completed(kernels.sums(now), now))
            self._is_compiled = self._s.is_cuda
        value, is_in, least, *self._extents = self._numbers.tolist()
        compute.evaluations += compute.n
        loss = -value - compute.device_rows.total_base
        return loss / compute.total_weight, bool(is_in), least

    def _finish(self, total: Sums) -> None:
        """Write s, the next θ, and the numbers that the CPU reads."""
        s = self._compute.flat(total.sums) / self._compute.total_weight
        is_in, theta = self._m_step(s)
        numbers = torch.stack([total.log_likelihood, is_in.double(), s[: len(total.sums)].min()])
        self._numbers.copy_(torch.cat([numbers, self._compute.extents(theta)]))
        self._s.copy_(s)
        _into(self._next, theta)

    @property
    def s(self) -> Array:
        """The statistics of the last pass, a copy."""
        return np.array(self._s.cpu().numpy())

    @property
    def before(self) -> Array:
        """The statistics of the pass before, a copy."""
        return np.array(self._before.cpu().numpy())


def _on_host(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return zeros in pinned memory, a tensor of the device: kernels read and write it over the bus."""
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype)
    host = torch.zeros(shape, dtype=dtype, pin_memory=True)
    interface = {
        "shape": shape,
        "typestr": f"<f{dtype.itemsize}",
        "data": (host.data_ptr(), False),
        "version": 2,
    }
    # The tensor keeps this object, and with it the memory.
    return torch.as_tensor(SimpleNamespace(host=host, __cuda_array_interface__=interface), device=device)


class _Indices(Draws, Samples):
    """Draws of a stretch without their samples, which are on the device; the next ones are drawn ahead.

    Parameters
    ----------
    draws : Draws
        The sample indices.
    most : int
        Most iterations of a stretch.
    """

    def __init__(self, draws: Draws, most: int) -> None:
        self._draws, self._most = draws, most
        self._start, self._made = 0, draws.block(0, 0)

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        return min(stop, start + self._most)

    def drawn(self, index: tuple[Index, ...], memory: Array | None = None) -> Drawn:
        return Drawn(NONE, NONE, index, memory, None)

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``."""
        return self._draws.at(k)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1."""
        if start != self._start:
            self.draw_ahead(start, stop)
        missing = self._draws.block(start + len(self._made[0]), stop)
        made = zip(self._made, missing, strict=True)
        return tuple(np.concatenate(parts)[: stop - start] for parts in made)

    def draw_ahead(self, start: int, stop: int) -> None:
        """Draw the indices of these iterations."""
        self._start, self._made = start, self._draws.block(start, stop)


class TorchLoop(CompiledLoop):
    """Iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ) on a device.

    Statistics, φ(θ) and the memory stay there; draws go there, stretch by stretch. All tensors keep their
    place, as graphs read and write them.

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
        assert device_rows.resident is not None
        assert isinstance(task.model, BoundGaussians)
        n, b = task.source.n, task.method.batch_size
        most = max(1, min(1 << 13, INDICES // (b * update.streams)))
        self._ahead = _Indices(task.draws, most)
        super().__init__(task._replace(draws=self._ahead), update, self._ahead)
        self.bound, self._rows, self._device = task.model, device_rows.resident, device_rows.device
        self._m_step = DeviceMStep(self.bound, self._device)

        def room(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=self._device)

        #: Statistics, centre, and the statistics before the last iteration.
        self._state = room(3, self.bound.size)
        #: Indices of each stream, γ, and whether a sample is the first of its kind in the renewed batch.
        self._index = room(update.streams, most, b, dtype=torch.int32 if n < 2**31 else torch.int64)
        self._steps, self._first = room(most), room(most, b, dtype=torch.bool)
        #: Number of the iteration in the stretch, rejected steps, and those before the last iteration.
        self._at, self._rejected, self._rejected_before = room(3, 1, dtype=torch.int64)
        #: The last row of the memory is for rows that count for nothing.
        shape = (n + 1 if update.centre == "memory" else 0), self.bound.n_components
        dtype = getattr(torch, task.compute.memory_dtype.name)
        if device_rows.fits(dtype.itemsize * shape[0] * shape[1]):
            self._memory = room(*shape, dtype=dtype)
        else:
            log.info("the memory of %s stays in pinned memory of the CPU", task.method.name)
            self._memory = _on_host(shape, dtype, self._device)
        self._host_memory: Array | None = None
        self._theta: DeviceTheta | None = None
        self._anchor: DeviceTheta | None = None
        self._given: DeviceTheta | None = None
        self._is_loaded = self._has_anchor = self._is_changed = False
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._k = self._end = 0

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1 in stretches."""
        self._end = stop
        super().advance(now, stop)

    def load_theta(self, now: Current) -> None:
        """Note θ; if it is θ̄(s) the device computes it: then the start of a stretch makes no difference."""
        self._given = None if now.is_m_step else self.prepared(now.theta)
        self._is_loaded = False

    def prepared(self, theta: Theta) -> DeviceTheta:
        """Return φ(θ)."""
        self._has_anchor = False
        return on_device(self.bound.coefficients(theta), self._device)

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations until the next renewal or ``stop``."""
        self._k = now.k
        return super().stretch(now, stop)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations on the device, and draw those of the next stretch meanwhile."""
        self._load(drawn.memory)
        self._send(drawn.index, steps)
        self._run(len(steps))
        last = self._k + len(steps)
        self._ahead.draw_ahead(last, min(self._end, last + len(steps)))  # the next stretch is about as long
        rejected, before = torch.cat([self._rejected, self._rejected_before]).tolist()
        self.s[:], self.centre[:], self.before[:] = self._state.cpu().numpy()
        self._is_changed = drawn.memory is not None
        return rejected, len(steps) - 1 - before

    def _load(self, memory: Array | None) -> None:
        """Copy to the device what is not there yet: ŝ, θ, the centre, the anchor, the memory."""
        self._state.copy_(torch.from_numpy(np.stack([self.s, self.centre, self.before])))
        s, _, before = self._state
        if not self._is_loaded:
            self._theta = _into(self._theta, self._m_step(s)[1] if self._given is None else self._given)
            self._is_loaded = True
        if self.anchor is not None and not self._has_anchor:
            anchor = self._m_step(before)[1] if self.restates_anchor else self.anchor
            self._anchor = _into(self._anchor, anchor)
            self.restates_anchor, self._has_anchor = False, True
        if memory is not None and memory is not self._host_memory:
            self._memory[:-1].copy_(torch.from_numpy(memory))
            self._host_memory = memory

    def _send(self, index: tuple[Index, ...], steps: Array) -> None:
        """Copy the draws and steps of a stretch to the device."""
        count = len(steps)
        for into, drawn in zip(self._index, index, strict=True):
            into[:count].copy_(torch.from_numpy(drawn))
        self._steps[:count].copy_(torch.from_numpy(steps))
        if self.update.renewed_by != "none":
            values, order = torch.sort(self._index[-1, :count], dim=1, stable=True)
            is_new = torch.ones_like(values, dtype=torch.bool)
            is_new[:, 1:] = values[:, 1:] != values[:, :-1]
            self._first[:count].scatter_(1, order, is_new)

    def _run(self, count: int) -> None:
        """Begin as many iterations: on a GPU as graphs, made when an iteration has been done once."""
        self._at.zero_()
        self._rejected.zero_()
        if self._device.type != "cuda":
            self._repeat(count)
            return
        if not self._graphs:
            self._iteration()  # libraries allocate what they need
            count -= 1
            self._graphs = {size: graph_of(partial(self._repeat, size)) for size in (AT_ONCE, 1)}
        for size, graph in self._graphs.items():
            for _ in range(count // size):
                graph.replay()
            count %= size

    def _repeat(self, count: int) -> None:
        for _ in range(count):
            self._iteration()

    def _iteration(self) -> None:
        """Do one iteration: the declaration, term by term."""
        assert self._theta is not None
        update, (s, centre, before) = self.update, self._state
        self._rejected_before.copy_(self._rejected)
        step = self._steps.index_select(0, self._at)
        candidate = centre if update.renewed_by == "drawn" else self._proxy(self._theta)
        if update.renewed_by != "none":
            self._renew_memory(self._theta)
        if update.reference == "previous":
            centre.copy_(candidate)
            before.copy_(s)
            _into(self._anchor, self._theta)
        candidate = torch.where(step < 1.0, s + step * (candidate - s), candidate)  # (sestep)
        is_in, theta = self._m_step(candidate)  # (mstep)
        for into, part in zip((s, *self._theta), (candidate, *theta), strict=True):
            into.copy_(torch.where(is_in, part, into))
        self._rejected += ~is_in
        self._at += 1

    def _proxy(self, theta: DeviceTheta) -> Tensor:
        """Return S of the first stream's batch."""
        update, b = self.update, self.task.method.batch_size
        index = self._index[0].index_select(0, self._at)[0]
        x, weight = self._samples(index, is_mean=True)
        rows = self._responsibilities(x, theta)
        if self._anchor is not None:
            rows = rows - update.correction * self._responsibilities(x, self._anchor)
        elif update.reference == "memory":
            rows = rows - update.correction * self._memory.index_select(0, index).double()
        proxy = self._statistics(x, rows * (weight / b)[:, None])
        return proxy if update.centre == "zero" else update.correction * self._state[1] + proxy

    def _renew_memory(self, theta: DeviceTheta) -> None:
        """Renew the memory of a batch and the centre, its mean; a repeated sample counts once."""
        index = self._index[-1].index_select(0, self._at)[0]
        is_first = self._first.index_select(0, self._at)[0]
        x, weight = self._samples(index, is_mean=False)
        rows = self._responsibilities(x, theta).to(self._memory.dtype)
        change = rows.double() - self._memory.index_select(0, index).double()
        self._state[1].add_(self._statistics(x, change * (weight * is_first)[:, None]))
        self._memory.index_copy_(0, torch.where(is_first, index, len(self._memory) - 1).long(), rows)

    def _samples(self, index: Tensor, *, is_mean: bool) -> tuple[Tensor, Tensor]:
        """Return centred samples (b, d), float64, and their weights (b,), times n/W or divided by W."""
        rows, factor = self._rows, self.scale if is_mean else self.share
        x = rows.y.index_select(0, index).double() - rows.centre
        if rows.weight is None or (is_mean and self.is_divided):
            return x, x.new_full((len(index),), factor)
        return x, rows.weight.index_select(0, index) * factor

    def _responsibilities(self, x: Tensor, theta: DeviceTheta) -> Tensor:
        """Return responsibilities (b, M) of samples (b, d)."""
        if x.numel() * len(theta.plain) > NUMBERS:
            logits = torch.addmm(theta.constant, features(x, self.bound.code), theta.phi)
        else:
            logits = whitened_logits(x, theta)
        return torch.softmax(logits, dim=1)

    def _statistics(self, x: Tensor, rows: Tensor) -> Tensor:
        """Return flat statistics (q,) of samples (b, d) and weighted rows (b, M)."""
        d, sums = x.shape[1], rows.T @ features(x, self.bound.code)
        squares = sums[:, d:]
        if self.bound.shares_products:
            row, column = torch.tril_indices(d, d, device=x.device)
            squares = (x.T @ (x * rows.sum(dim=1, keepdim=True)))[row, column]
        return torch.cat([rows.sum(dim=0), sums[:, :d].reshape(-1), squares.reshape(-1)])

    def store(self, now: Current) -> None:
        """Store s, θ = θ̄(s) and the method's state, the memory included."""
        super().store(now)
        if self._is_changed and self._host_memory is not None:
            torch.from_numpy(self._host_memory).copy_(self._memory[:-1])
            self._is_changed = False
