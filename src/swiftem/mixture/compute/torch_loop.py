"""What stays on a device of PyTorch: the M-step of Gaussian mixtures, em, and declared methods on batches.

Everything is float64, and nothing is copied to the CPU between iterations, so that CUDA graphs replay them:
whether statistics are in the domain is a tensor, too. Meanwhile the CPU draws later samples.
The M-step has the formulas of :mod:`swiftem.mixture.covariance`.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from math import inf
from types import SimpleNamespace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from swiftem.core.algorithm import Current, Task
from swiftem.core.draws import Draws
from swiftem.core.method import Update
from swiftem.core.types import Array, Index, Theta
from swiftem.fit.stopping import LEAST_RATE, UNKNOWN_RATE
from swiftem.fit.stopping import ROUNDING as NO_GAIN
from swiftem.kernels.loop import CompiledLoop, Drawn, Samples
from swiftem.kernels.torch_device import graph_of
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.compute.torch import (
    DIFFERENCES,
    EXACT,
    PRODUCTS,
    DeviceRows,
    DeviceTheta,
    Rows,
    TorchCompute,
    features,
    on_device,
    whitened_logits,
)
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED
from swiftem.mixture.covariance import ROUNDING as REFERENCE_ROUNDING
from swiftem.mixture.gaussians import BoundGaussians

log = logging.getLogger("swiftem")

ROUNDING = 2.0 * REFERENCE_ROUNDING
"""Twice what the reference allows, which then never refuses what was accepted here."""
NUMBERS = 1 << 27
"""Most whitened differences of a batch; with more, logits come from expanded squares."""
INDICES = 1 << 24
"""Most indices of a stretch."""
AT_ONCE = 16
"""Iterations of the larger CUDA graph."""
AHEAD = 4
"""Passes of em that begin before the CPU waits for their results."""


class DeviceMStep:
    """θ̄(s), from flat statistics on a device to the coefficients of E-steps there.

    Parameters
    ----------
    bound : BoundGaussians
        The model.
    device : device
        Where statistics are.
    """

    def __init__(self, bound: BoundGaussians, device: torch.device) -> None:
        def there(values: ArrayLike) -> Tensor:
            return torch.from_numpy(np.array(values)).to(device)

        self.code, self._count, self._d = bound.code, bound.n_components, bound.d
        prior, known = bound.prior, bound.model.known_weights
        self._kappa, self._degrees = float(prior.mean_precision), float(prior.degrees)
        self._mean, self._scale = there(prior.mean), there(prior.scale)
        has_matrices = self.code in (FULL, TIED)
        square = torch.outer(self._mean, self._mean) if has_matrices else self._mean.square()
        self._outer = square * self._kappa
        self._reg, self._epsilon = float(bound.model.reg_covar), float(bound.epsilon)
        self._known = None if known is None else there(known)
        if not has_matrices:
            return
        d, (row, column) = self._d, lower_triangle(self._d)
        places = np.empty((d, d), dtype=np.intp)
        places[row, column] = places[column, row] = np.arange(len(row))
        self._places, self._row, self._column = there(places), there(row), there(column)
        self._signs = there(np.where(row == column, -0.5, -1.0))
        self._eye = torch.eye(d, dtype=torch.float64, device=device)
        self._ranks = there(1.0 + 4.0 * np.arange(d))  # each column that is eliminated rounds

    def __call__(self, s: Tensor) -> tuple[Tensor, DeviceTheta]:
        """Return whether ``s`` (q,) is in the domain, a tensor, and φ(θ̄(s)), of any values if it is not."""
        count, d = self._count, self._d
        end = count * (1 + d)
        counts, sums, squares = s[:count], s[count:end].view(count, d), s[end:]
        least, kappa = counts.min(), self._kappa
        is_in = (least + self._epsilon > 0.0) & (least + kappa > 0.0) & (least + self._degrees > 0.0)
        means = (sums + kappa * self._mean) / (counts + kappa)[:, None]
        weights = counts + self._epsilon
        log_weights = torch.log(self._known if self._known is not None else weights / weights.sum())
        log_weights = log_weights - 0.5 * d * float(np.log(2.0 * np.pi))
        if self.code in (FULL, TIED):
            covariances, floor = self._matrices(counts, means, squares)
            lower, info = torch.linalg.cholesky_ex(covariances)
            pivots = lower.diagonal(dim1=1, dim2=2).square()
            is_in = is_in & (info == 0).all() & _is_positive(pivots, floor)
            whiten = torch.linalg.solve_triangular(lower, self._eye.expand_as(lower), upper=False)
            return is_in, self._of_matrices(means, whiten, log_weights)
        variances, floor = self._variances(counts, means, squares)
        is_in = is_in & _is_positive(variances, floor)
        precision = 1.0 / variances
        plain = log_weights + 0.5 * torch.log(precision).sum(dim=1)
        constant = plain - 0.5 * (precision * means * means).sum(dim=1)
        squared = -0.5 * (precision if self.code == DIAG else precision[:, :1])
        phi = torch.cat([precision * means, squared], dim=1).T
        none = means.new_empty((0, d, d))
        return is_in, DeviceTheta(phi, constant, means, plain, none, precision.sqrt())

    def _matrices(self, counts: Tensor, means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
        """Return covariances (M or 1, d, d), and the rounding errors of their diagonals."""
        kappa = self._kappa
        if self.code == FULL:
            inverse = (1.0 / (counts + self._degrees))[:, None, None]
            moments = squares.view(self._count, -1)[:, self._places]
            between = (counts + kappa)[:, None, None] * (means[:, :, None] * means[:, None, :])
            scatter = moments - between + (self._scale + self._outer)
        else:
            inverse = (1.0 / (counts.sum() + self._degrees)).view(1, 1, 1)
            moments = squares[self._places][None]
            between = (((counts + kappa)[:, None] * means).T @ means)[None]
            between = 0.5 * (between + between.transpose(1, 2))
            scatter = moments - between + (self._scale + self._count * self._outer)
        floor = ROUNDING * self._ranks * moments.diagonal(dim1=1, dim2=2).abs() * inverse[:, 0]
        return scatter * inverse + self._reg * self._eye, floor

    def _of_matrices(self, means: Tensor, whiten: Tensor, log_weights: Tensor) -> DeviceTheta:
        whitened = (whiten @ means[:, :, None])[:, :, 0]
        plain = log_weights + torch.log(whiten.diagonal(dim1=1, dim2=2)).sum(dim=1)
        constant = plain - 0.5 * whitened.square().sum(dim=1)
        transposed = whiten.transpose(1, 2)
        linear = (transposed @ whitened[:, :, None])[:, :, 0]
        if self.code == FULL:
            precision = transposed @ whiten
            linear = torch.cat([linear, precision[:, self._row, self._column] * self._signs], dim=1)
        return DeviceTheta(linear.T, constant, means, plain, whiten, means.new_empty((0, self._d)))

    def _variances(self, counts: Tensor, means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
        """Return variances (M, d), for "spherical" all of a row equal, and their rounding errors."""
        kappa, inverse = self._kappa, (1.0 / (counts + self._degrees))[:, None]
        scatter = self._scale + self._outer - (counts + kappa)[:, None] * means.square()
        raw = squares.view(self._count, -1)
        if self.code == SPHERICAL:
            scatter, inverse = scatter.sum(dim=1, keepdim=True), inverse / self._d
        variances = (scatter + raw) * inverse + self._reg
        return variances.expand(-1, self._d), ROUNDING * raw.abs() * inverse


def _is_positive(variances: Tensor, floor: Tensor) -> Tensor:
    """Return whether all are finite and above ``floor`` and zero; false for NaN."""
    return ((variances > floor) & (variances > 0.0) & torch.isfinite(variances)).all()


def _into(held: DeviceTheta | None, theta: DeviceTheta) -> DeviceTheta:
    """Return θ in tensors that graphs read: in ``held``, or new ones, which have the form of θ."""
    if held is None:
        return DeviceTheta(*(part.clone(memory_format=torch.contiguous_format) for part in theta))
    for into, part in zip(held, theta, strict=True):
        into.copy_(part)
    return held


class DeviceEM:
    """em, pass by pass: :meth:`load` sets θ, :meth:`advance` does a pass and the M-step after it.

    Statistics and parameters stay on the device, and the CPU reads the results of :data:`AHEAD` passes at a
    time. A flag on the device freezes θ and s where em converges, a component has lost its rows, there is no
    M-step, or the next pass needs another form: how often the CPU reads makes no difference. Passes that can
    be captured are CUDA graphs, from the second one of a form on.

    Parameters
    ----------
    compute : TorchCompute
        The E-steps.
    bound : BoundGaussians
        The model.
    tol, small : float
        When em has converged, as in :class:`swiftem.fit.stopping.Remaining`.
    least : float
        The least weight in s of a component that has rows.
    """

    def __init__(
        self, compute: TorchCompute, bound: BoundGaussians, tol: float, small: float, least: float
    ) -> None:
        self._compute, self._bound = compute, bound
        self._tol, self._small, self._least = tol, small, least
        self._m_step = DeviceMStep(bound, compute.device_rows.device)
        self._theta: DeviceTheta | None = None
        self._s, self._before = compute.device_rows.products.new_zeros((2, bound.size))
        #: Bound, gain and rate of the last pass.
        self._gains = self._s.new_zeros(3)
        self._records, self._at = self._s.new_zeros((AHEAD, 5)), self._s.new_zeros(1).long()
        self._goes_on, self._next_form = self._at[0].bool(), self._at[0].clone()
        self._form, self._form_done = DIFFERENCES, -1
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graphs_work = self._s.is_cuda
        #: Of passes that are done, but not returned yet.
        self.done: deque[tuple[float, bool, float]] = deque()

    def load(self, theta: Theta, gains: tuple[float, float, float]) -> None:
        """Set θ, and the bound, gain and rate of the pass before."""
        given, self._form = self._compute.given(theta)
        self._theta = _into(self._theta, given)
        self._gains.copy_(self._gains.new_tensor(gains))
        self._next_form.fill_(self._form)

    def advance(self, left: int) -> tuple[float, bool, float]:
        """Do a pass at θ, and the M-step that gives the next θ; up to ``left`` passes may be done at once.

        Return the objective at θ, whether s is in the domain (otherwise there is no next θ), and the least of
        the components' weights in s.
        """
        if not self.done:
            rows = self._compute.device_rows.resident
            is_first = self._form != self._form_done  # of this form: the next θ may need another one
            self._do(1 if rows is None or is_first else min(left, AHEAD), rows)
        return self.done.popleft()

    def _do(self, count: int, rows: Rows | None) -> None:
        """Begin as many passes, and wait for their results."""
        self._at.zero_()
        self._records.zero_()
        self._goes_on.fill_(True)
        for _ in range(count):
            self._begin(rows)
        for value, is_in, least, is_done, form in self._records.tolist():
            if is_done:
                self._compute.evaluations += self._compute.n
                self._form = int(form)
                self.done.append((value, bool(is_in), least))

    def _begin(self, rows: Rows | None) -> None:
        """Begin a pass: as a graph, if the form has been computed before, so that kernels are compiled."""
        compute, is_new = self._compute, self._form != self._form_done
        self._form_done, self._graph = self._form, None if is_new else self._graph
        is_fixed = self._graphs_work and compute.device_rows.is_whole and self._form in (PRODUCTS, EXACT)
        if is_new or rows is None or not is_fixed or not compute.prepared(rows, self._form).can_be_captured:
            self._pass()
            return
        if self._graph is None:
            try:
                self._graph = graph_of(self._pass)
            except RuntimeError as error:  # a form that some version of CUDA or PyTorch cannot capture
                log.info("Passes of em are not replayed as a CUDA graph: %s", error)
                self._graphs_work = False
                self._pass()
                return
        self._graph.replay()

    def _pass(self) -> None:
        """Do a pass; without effect if θ is frozen."""
        assert self._theta is not None, "load comes first"
        compute, goes_on = self._compute, self._goes_on
        sums, log_likelihood = compute.total(self._theta, self._form)
        s = compute.flat(sums) / compute.total_weight
        value = (-log_likelihood - compute.device_rows.total_base) / compute.total_weight
        is_in, theta = self._m_step(s)
        least = s[: len(sums)].min()
        gains, is_small = gains_after(self._gains, -value, self._tol, self._small)
        moves = goes_on & is_in & (least >= self._least) & ~is_small
        form = torch.where(moves, compute.form(theta), self._next_form)
        record = torch.stack([value, is_in.double(), least, goes_on.double(), form.double()])
        self._records.index_copy_(0, self._at, record[None])
        self._at += 1
        self._next_form.copy_(form)
        for into, part in (self._before, self._s), (self._s, s), (self._gains, gains):
            into.copy_(torch.where(goes_on, part, into))
        for into, part in zip(self._theta, theta, strict=True):
            into.copy_(torch.where(moves, part, into))
        goes_on.copy_(moves & (form == self._form))

    @property
    def s(self) -> Array:
        """The statistics of the last pass, a copy."""
        return np.array(self._s.cpu().numpy())

    @property
    def before(self) -> Array:
        """The statistics of the pass before, a copy."""
        return np.array(self._before.cpu().numpy())


def gains_after(gains: Tensor, bound: Tensor, tol: float, small: float) -> tuple[Tensor, Tensor]:
    """Return bound, gain and rate (3,) after one more pass, and whether em would gain little from there.

    The rule is that of :class:`swiftem.fit.stopping.Remaining`, with the same rounding.
    """
    last_bound, before, last_rate = gains
    gain = (bound - last_bound).abs()
    rate = torch.where((before > 0.0) & (before < inf), gain / before, inf)
    rise = torch.where(torch.isfinite(last_rate), rate - last_rate, 0.5 * (1.0 - rate)).clamp(min=0.0)
    expected = torch.where(torch.isfinite(before), rate + rise, UNKNOWN_RATE).clamp(min=LEAST_RATE)
    is_small = (expected < 1.0) & (gain * expected / (1.0 - expected) < small)
    is_small = (gain < tol) & (is_small | (gain <= NO_GAIN * bound.abs()))
    return torch.stack([bound, torch.where(torch.isfinite(gain), gain, inf), rate]), is_small


def _on_host(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return zeros in pinned memory, a tensor of the device: kernels read and write it over the bus."""
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype)
    host = torch.zeros(shape, dtype=dtype, pin_memory=True)
    interface = {"shape": shape, "typestr": f"<f{dtype.itemsize}", "version": 2}
    interface["data"] = host.data_ptr(), False
    # The tensor keeps this object, and with it the memory.
    return torch.as_tensor(SimpleNamespace(host=host, __cuda_array_interface__=interface), device=device)


class _DrawnAhead(Draws):
    """Draws whose next indices are drawn while the device is busy; ``stop`` is the end of the last block."""

    def __init__(self, draws: Draws) -> None:
        self._draws, self.stop = draws, 0
        self.draw_ahead(0, 0)

    def at(self, k: int) -> tuple[Index, ...]:
        return self._draws.at(k)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        self.stop = stop
        if start != self._start:
            self.draw_ahead(start, stop)
        missing = self._draws.block(start + len(self._made[0]), stop)
        made = zip(self._made, missing, strict=True)
        return tuple(np.concatenate(parts)[: stop - start] for parts in made)

    def draw_ahead(self, start: int, stop: int) -> None:
        """Draw the indices of iterations ``start`` to ``stop`` − 1."""
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
        self._ahead = _DrawnAhead(task.draws)
        only_indices = Samples(np.empty(0), np.empty(0), most_rows=most * b)
        super().__init__(task._replace(draws=self._ahead), update, only_indices)
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
        self._end = 0

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

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations on the device, and draw the samples of the next stretch meanwhile."""
        self._load(drawn.memory)
        self._send(drawn.index, steps)
        self._run(len(steps))
        last = self._ahead.stop
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
        rows, factor = self._rows, self.rule.scale if is_mean else self.rule.share
        x = rows.y.index_select(0, index).double() - rows.centre
        if rows.weight is None or (is_mean and self.rule.is_divided):
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
