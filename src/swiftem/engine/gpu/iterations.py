"""Iterations of declared methods on a device: batches of rows that are there, in PyTorch and float64.

They define what :mod:`swiftem.engine.gpu.fast.iterations` computes faster. Nothing is copied to the CPU
between iterations, so that a CUDA graph replays them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakMethod

import numpy as np

from swiftem._typing import Array, Index
from swiftem.engine.gpu.graphs import graph_of
from swiftem.engine.gpu.m_step import DeviceMStep
from swiftem.engine.gpu.passes import Rows, features, there
from swiftem.engine.small_expectation import FULL, TIED
from swiftem.methods.method import LARGEST, RATE, Update
from swiftem.models.components import Coefficients
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["Done", "DrawnRows", "Graphs", "Iterations", "Read", "Setting"]

NUMBERS = 1 << 27
"""Most whitened differences of a batch; with more, logits are those of expanded squares."""
BLOCK = 1 << 24
"""Whitened differences computed at a time, of all rows."""
INDICES = 1 << 24
"""Most indices of a stretch."""


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
    is_all : bool
        Whether a batch has all rows, as in em: nothing is drawn.
    """

    rows: Rows
    bound: BoundGaussians
    update: Update
    batch_size: int
    scale: float
    share: float
    is_divided: bool
    is_all: bool = False


class Done(NamedTuple):
    """Number of iterations, ``rejected`` steps, and steps accepted before the last iteration, ``moved``."""

    iterations: int
    rejected: int
    moved: int


class Read(NamedTuple):
    """Copies of ``s``, ``centre`` and ``before`` (q,), and of ``moments`` (3,)."""

    s: Array
    centre: Array
    before: Array
    moments: Array


class Graphs:
    """An iteration, repeated: on a GPU as a graph, made when it has been done once.

    Parameters
    ----------
    iteration : bound method
        Does one iteration, without waiting for it. Its object is not kept alive: it frees its memory at once.
    at_once : int
        Iterations of a graph.
    is_cuda : bool
        Whether it is done on a GPU.
    """

    def __init__(self, iteration: Callable[[], None], at_once: int, is_cuda: bool) -> None:
        self._method, self._at_once, self._is_cuda = WeakMethod(iteration), at_once, is_cuda
        self._made: dict[int, Any] = {}

    def run(self, count: int) -> None:
        """Begin as many iterations."""
        iteration = self._method()
        assert iteration is not None, "whoever runs it has its object"
        if not self._is_cuda:
            for _ in range(count):
                iteration()
            return
        if not self._made:
            iteration()  # kernels are compiled, and libraries allocate what they need
            count -= 1
            self._made = {size: self._captured(iteration, size) for size in (1, self._at_once)}
        for size in (self._at_once, 1):
            while count >= size:
                self._made[size].replay()
                count -= size

    @staticmethod
    def _captured(iteration: Callable[[], None], size: int) -> Any:
        def iterations() -> None:
            for _ in range(size):
                iteration()

        return graph_of(iterations)[0]


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
        import torch

        n, b, update = len(setting.rows), setting.batch_size, setting.update
        streams = 0 if setting.is_all else 1 + (update.renewed_by == "other")
        self.most = 1 << 13 if setting.is_all else max(1, min(1 << 13, INDICES // (b * streams)))
        dtype, device = torch.int32 if n < 2**31 else torch.int64, setting.rows.y.device
        pinned = device.type == "cuda"
        self.index = [torch.zeros((self.most, b), dtype=dtype, device=device) for _ in range(streams)]
        self._host = torch.zeros((2, streams, self.most, b), dtype=dtype, pin_memory=pinned)
        self.rooms = [list(room.numpy()) for room in self._host]
        self.steps = torch.zeros(self.most, dtype=torch.float64, device=device)
        self.first: Any = None
        if update.renewed_by != "none":
            self.first = torch.zeros((self.most, b), dtype=torch.bool, device=device)

    def send(self, index: tuple[Index, ...], steps: Array) -> None:
        """Copy the draws and steps of a stretch to the device."""
        import torch

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
    moments : tensor, shape (3,)
        What λ is learned from, and λ.
    """

    AT_ONCE = 16
    """Iterations of a graph."""

    def __init__(self, setting: Setting, drawn: DrawnRows, memory: Any) -> None:
        import torch

        self._setting, self._drawn, self._memory = setting, drawn, memory
        device = setting.rows.y.device
        self._m_step = DeviceMStep(setting.bound, device)
        self.s, self.centre, self.before = torch.zeros(
            (3, setting.bound.size), dtype=torch.float64, device=device
        ).unbind()
        self.moments = torch.tensor([0.0, 0.0, setting.update.fixed], dtype=torch.float64, device=device)
        self._at, self._rejected, self._rejected_before = torch.zeros(
            (3, 1), dtype=torch.int64, device=device
        ).unbind()
        self._theta: Any = None
        self._anchor: Any = None
        self._count, self._graphs = 0, Graphs(self._iteration, self.AT_ONCE, device.type == "cuda")
        row, column = np.tril_indices(setting.bound.d if setting.bound.code == TIED else 0)
        self._lower = torch.from_numpy(row).to(device), torch.from_numpy(column).to(device)

    def load(self, s: Array, centre: Array, moments: Array) -> None:
        """Set ŝ, the centre and what λ is learned from; ``moments`` is empty if λ is fixed."""
        import torch

        for into, values in ((self.s, s), (self.centre, centre), (self.moments, moments)):
            if len(values):
                into.copy_(torch.from_numpy(values))

    def load_theta(self, theta: Coefficients | None) -> None:
        """Set θ; None is θ̄(s)."""
        self._theta = self._loaded(self._theta, theta, self.s)

    def load_anchor(self, anchor: Coefficients | None, before: Array) -> None:
        """Set the anchor; None is θ̄(before)."""
        import torch

        self.before.copy_(torch.from_numpy(before))
        self._anchor = self._loaded(self._anchor, anchor, self.before)

    def _loaded(self, held: Any, theta: Coefficients | None, s: Any) -> Coefficients:
        """Return coefficients in arrays that graphs read: those of ``held`` if it is not None."""
        import torch

        parts: Any = self._m_step(s)[1] if theta is None else there(theta, s.device)
        if held is None:
            return Coefficients(*(part.clone(memory_format=torch.contiguous_format) for part in parts))
        for into, part in zip(held, parts, strict=True):
            into.copy_(part)
        return held  # type: ignore[no-any-return]

    def read(self) -> Read:
        """Return statistics, centre, the statistics before the last iteration, and moments."""
        return Read(*(part.cpu().numpy() for part in (self.s, self.centre, self.before, self.moments)))

    def start(self, count: int) -> None:
        """Begin as many iterations of the draws, the first of :class:`DrawnRows` first."""
        self._at.zero_()
        self._rejected.zero_()
        self._count = count
        self._graphs.run(count)

    def finish(self) -> Done:
        """Wait for the iterations, and return what they did."""
        import torch

        rejected, before = torch.cat([self._rejected, self._rejected_before]).tolist()
        return Done(self._count, rejected, self._count - 1 - before)

    def _iteration(self) -> None:
        """Do one iteration: the declaration, term by term."""
        import torch

        update, b = self._setting.update, self._setting.batch_size
        self._rejected_before.copy_(self._rejected)
        step = self._drawn.steps.index_select(0, self._at)
        correction = self.moments[2].clone() if update.is_optimal else update.fixed
        candidate: Any = None
        if self._setting.is_all:
            candidate = self._of_all()
        elif update.renewed_by != "drawn":
            index = self._drawn.index[0].index_select(0, self._at)[0]
            x, weight = self._samples(index, is_mean=True)
            rows = self._responsibilities(x, self._theta)
            old: Any = None
            if update.reference in ("anchor", "previous"):
                old = self._responsibilities(x, self._anchor)
            elif update.reference == "memory":
                old = self._memory.index_select(0, index).double()
            if update.is_optimal:
                self._learn(x[:1], rows[:1], old[:1], weight[:1])
            if old is not None:
                rows = rows - correction * old
            candidate = self._statistics(x, rows * (weight / b)[:, None])
            if update.centre != "zero":
                candidate = correction * self.centre + candidate
        if update.renewed_by != "none":
            self._renew()
        if update.renewed_by == "drawn":
            candidate = self.centre
        if update.reference == "previous":
            self.centre.copy_(candidate)
            self.before.copy_(self.s)
            for into, part in zip(self._anchor, self._theta, strict=True):
                into.copy_(part)
        candidate = torch.where(step < 1.0, self.s + step * (candidate - self.s), candidate)  # (sestep)
        is_in, theta = self._m_step(candidate)  # (mstep)
        for into, part in zip((self.s, *self._theta), (candidate, *theta), strict=True):
            into.copy_(torch.where(is_in, part, into))
        self._rejected += ~is_in
        self._at += 1

    def _of_all(self) -> Any:
        """Return the mean of all rows' statistics at θ."""
        import torch

        rows, found = self._setting.rows, torch.zeros_like(self.s)
        size = max(1, BLOCK // (len(self._theta.plain) * rows.y.shape[1]))
        for start in range(0, len(rows), size):
            index = torch.arange(start, min(start + size, len(rows)), device=rows.y.device)
            x, weight = self._samples(index, is_mean=False)
            found += self._statistics(x, self._responsibilities(x, self._theta) * weight[:, None])
        return found

    def _samples(self, index: Any, *, is_mean: bool) -> tuple[Any, Any]:
        """Return centred samples (b, d), float64, and their weights (b,), times n/W or divided by W."""
        import torch

        setting = self._setting
        x = setting.rows.y.index_select(0, index).double() - setting.rows.centre
        factor = setting.scale if is_mean else setting.share
        if setting.rows.weight is None or (is_mean and setting.is_divided):
            return x, torch.full((len(index),), factor, dtype=torch.float64, device=x.device)
        return x, setting.rows.weight.index_select(0, index) * factor

    def _renew(self) -> None:
        """Renew the memory of a batch and the centre, its mean; a repeated sample counts once."""
        import torch

        index = self._drawn.index[-1].index_select(0, self._at)[0]
        is_first = self._drawn.first.index_select(0, self._at)[0]
        x, weight = self._samples(index, is_mean=False)
        rows = self._responsibilities(x, self._theta).to(self._memory.dtype)
        change = rows.double() - self._memory.index_select(0, index).double()
        self.centre += self._statistics(x, change * (weight * is_first)[:, None])
        self._memory.index_copy_(0, torch.where(is_first, index, len(self._memory) - 1).long(), rows)

    def _responsibilities(self, x: Any, theta: Coefficients) -> Any:
        """Return responsibilities (b, M) of samples (b, d)."""
        import torch

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

    def _statistics(self, x: Any, rows: Any) -> Any:
        """Return flat statistics (q,) of samples (b, d) and weighted rows (b, M)."""
        import torch

        code, d = self._setting.bound.code, x.shape[1]
        powers = features(x, code)
        sums = rows.T @ powers
        squares = sums[:, d:]
        if code == TIED:
            squares = (x.T @ (x * rows.sum(dim=1, keepdim=True)))[self._lower]
        return torch.cat([rows.sum(dim=0), sums[:, :d].reshape(-1), squares.reshape(-1)])

    def _learn(self, x: Any, row: Any, old: Any, weight: Any) -> None:
        """Learn λ from one sample: :func:`swiftem.methods.method.learn`."""
        import torch

        new, kept = (self._statistics(x, rows * weight[:, None]) - self.centre for rows in (row, old))
        averages = self.moments[:2] + RATE * (torch.stack([new @ kept, kept @ kept]) - self.moments[:2])
        learned = (averages[0] / averages[1]).clamp(0.0, LARGEST)
        self.moments[2] = torch.where(averages[1] > 0.0, learned, self.moments[2])
        self.moments[:2] = averages
