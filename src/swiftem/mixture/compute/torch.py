"""E-steps of mixtures in PyTorch: the rows are on a device, θ goes in, statistics come out.

Logits are T(y)·φ + c, statistics r ⊗ T(y), as in :class:`swiftem.mixture.components.BoundComponents`. Rows
may be float32; everything that is computed is float64. If expanded squares would lose digits, logits come
from whitened differences. Passes over float32 rows are faster by the kernels in ``triton.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from swiftem.core.algorithm import Algorithm1, Loop, Task
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.method import declared
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.foreign import DEVICE_KERNELS
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute import COMPLETED, LINEAR
from swiftem.mixture.compute.torch_rows import DeviceRows, Extents, Rows, Sums
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED
from swiftem.mixture.gaussians import BoundGaussians

if TYPE_CHECKING:
    from torch import Tensor

    from swiftem.mixture.compute.torch_loop import DeviceEM
    from swiftem.mixture.compute.triton import KernelRows

__all__ = [
    "Given",
    "TorchCompute",
    "check_on_device",
    "e_steps",
    "features",
    "on_device",
    "plus_plus",
    "sums",
]

NUMBERS = 3 << 21
"""Numbers computed at a time: features and logits of a block of rows."""
DIFFERENCES = 1 << 22
"""Differences of k-means++ computed at a time."""


class Given(NamedTuple):
    """θ on a device, float64.

    Attributes
    ----------
    code : int
        The kind of features.
    theta : Coefficients
        θ, as tensors.
    extents : Extents
        How far rows are at θ.
    """

    code: int
    theta: Coefficients
    extents: Extents


def on_device(theta: Coefficients, device: Any) -> Coefficients:
    """Return coefficients as tensors on a device."""
    return Coefficients(*(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in theta))


def features(x: Tensor, code: int) -> Tensor:
    """Return T(y) (b, p) of centred samples (b, d), without its first entry, 1."""
    if code == FULL:
        row, column = torch.tril_indices(x.shape[1], x.shape[1], device=x.device)
        return torch.cat([x, x[:, row] * x[:, column]], dim=1)
    if code == DIAG:
        return torch.cat([x, x * x], dim=1)
    if code == SPHERICAL:
        return torch.cat([x, (x * x).sum(dim=1, keepdim=True)], dim=1)
    return x


def e_steps(rows: Rows, given: Given) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield slice, T(y) (b, p), responsibilities (b, M) and log g without log h(y) (b,) of each block."""
    theta: Any = given.theta
    d, n_components = rows.y.shape[1], len(theta.constant)
    p = {FULL: d + d * (d + 1) // 2, DIAG: 2 * d, SPHERICAL: d + 1}.get(given.code, d)
    size = max(1, NUMBERS // (n_components + p))
    for first in range(0, len(rows), size):
        here = slice(first, min(first + size, len(rows)))
        x = rows.centred(here)
        powers = features(x, given.code)
        if given.extents.is_near:
            logits = torch.addmm(theta.constant, powers, theta.phi)
        else:
            logits = _differences(x, theta)
        log_likelihood = torch.logsumexp(logits, dim=1)
        responsibilities = logits.sub_(log_likelihood[:, None]).exp_()
        if given.extents.is_near and given.code == TIED:  # its expanded squares lack the common part
            log_likelihood -= 0.5 * (x @ theta.whiten[0].T).square().sum(dim=1)
        yield here, powers, responsibilities, log_likelihood


def _differences(x: Tensor, theta: Any) -> Tensor:
    """Return the logits (b, M) of samples, from squares of whitened differences."""
    logits = x.new_empty((len(x), len(theta.plain)))
    for m, mean in enumerate(theta.means):
        away = x - mean
        if len(theta.whiten):
            away = away @ theta.whiten[min(m, len(theta.whiten) - 1)].T
        else:
            away = away * theta.scales[m]
        torch.sum(away.square_(), dim=1, out=logits[:, m])
    return logits.mul_(-0.5).add_(theta.plain)


def sums(rows: Rows, given: Given, keep: Callable[[slice, Tensor], Tensor] | None = None) -> Sums:
    """Return the sums of a full pass over the rows.

    ``keep`` gets the slice of each block and its responsibilities (b, M), and returns those to be summed.
    """
    total, log_likelihood = None, torch.zeros((), dtype=torch.float64, device=rows.y.device)
    for here, powers, responsibilities, of_rows in e_steps(rows, given):
        if keep is not None:
            responsibilities = keep(here, responsibilities)
        if rows.weight is not None:
            responsibilities = responsibilities * rows.weight[here][:, None]
            of_rows *= rows.weight[here]
        part = torch.cat([responsibilities.sum(dim=0)[:, None], responsibilities.T @ powers], dim=1)
        total = part if total is None else total + part
        log_likelihood += of_rows.sum()
    return Sums(total, log_likelihood)


def check_on_device(model: BoundComponents) -> None:
    """Raise ValueError for a mixture that has no passes on a device."""
    if model.code == COMPLETED or (isinstance(model, BoundGaussians) and model.kind.has_masses):
        raise ValueError("device must be 'cpu' if cells are missing: passes on a GPU need complete rows.")
    if model.code not in (FULL, TIED, DIAG, SPHERICAL, LINEAR):
        kind: Any = model
        what = "this model" if isinstance(model, BoundGaussians) else kind.kind.name
        raise ValueError(f"device must be 'cpu' for {what}: there are no passes on a GPU for it.")


class TorchCompute(Compute):
    """E-steps of a mixture with full passes on a device, and iterations of Gaussians there.

    float32 rows are computed by kernels in Triton with the accuracy of float32, if there are some for the
    model and if that is accurate enough at θ. Everything else is float64. Rows that do not fit into the
    device's memory are copied in every pass.

    Parameters
    ----------
    model, source, placement
        As in :class:`swiftem.core.compute.Compute`; the device is one of PyTorch.
    """

    is_on_device = True

    def __init__(self, model: Any, source: Source, placement: Placement) -> None:
        check_on_device(model)
        super().__init__(model, source, placement)
        self.bound = model
        self.total_weight = source.total_weight
        self._device_rows: DeviceRows | None = None
        self._kernel_rows: KernelRows | None = None
        self._most_rows = -1

    @property
    def device_rows(self) -> DeviceRows:
        """The rows on the device; the first call copies them there."""
        if self._device_rows is None:
            device = self.placement.device.removeprefix(DEVICE_KERNELS)
            self._device_rows = DeviceRows(
                self.bound, self._source, device, self._between_blocks, self.placement.memory_limit
            )
        return self._device_rows

    def loop(self, task: Task) -> Loop:
        """Return iterations on the device for declared methods of Gaussians, if the rows stay there."""
        from swiftem.mixture.compute.torch_loop import TorchLoop

        update = declared(task.method)
        if update is None or not isinstance(self.bound, BoundGaussians) or self.device_rows.resident is None:
            return Algorithm1(task)
        return TorchLoop(task, update, self.device_rows)

    def em(self) -> DeviceEM | None:
        """Return iterations of em on the device, or None if the M-step or the penalty is the CPU's."""
        from swiftem.mixture.compute.torch_loop import DeviceEM

        bound = self.bound
        if not isinstance(bound, BoundGaussians) or bound.model.prior is not None:
            return None
        has_penalty = bound.model.known_weights is None and bound.epsilon > 0
        return None if has_penalty else DeviceEM(self)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        self._between_blocks()
        given, memory = self._given(theta), None
        if remember:
            memory = self.allocate((self.n, self.bound.n_components), self.memory_dtype)
            total = self._remembered(given, memory)
        else:
            total = self.total(given)
        self.evaluations += self.n
        self._passed = theta, -float(total.log_likelihood) - self.device_rows.total_base
        return self.flat(total.sums).cpu().numpy() / self.total_weight, memory

    def _given(self, theta: Theta) -> Given:
        """Return θ on the device."""
        at = on_device(self.bound.coefficients(theta), self.device_rows.device)
        return Given(self.bound.code, at, Extents(*self.extents(at).tolist()))

    def _remembered(self, given: Given, memory: Array) -> Sums:
        """Return the sums of a pass whose responsibilities are stored, and summed as they were rounded."""
        total, dtype = None, getattr(torch, self.memory_dtype.name)
        for block, rows in self.device_rows:

            def keep(here: slice, responsibilities: Tensor, first: int = block.start) -> Tensor:
                rounded = responsibilities.to(dtype)
                memory[first + here.start : first + here.stop] = rounded.cpu().numpy()
                return rounded.double()

            total = _added(total, sums(rows, given, keep))
        assert total is not None
        return total

    def total(self, given: Given) -> Sums:
        """Return the sums of a full pass, tensors; the extents at θ decide how they are computed."""
        total = kernels = None
        for _, rows in self.device_rows:
            kernels = self.kernels(rows, given.extents)
            total = _added(total, sums(rows, given) if kernels is None else kernels.sums(given.theta))
        assert total is not None
        return total if kernels is None else self.completed(total, given.theta)

    def kernels(self, rows: Rows, at: Extents) -> KernelRows | None:
        """Return rows in the form of kernels, or None if there are none, or if float32 is not enough."""
        if len(rows) > self._most_rows:
            self._kernel_rows, self._most_rows = _kernel_rows(rows, self.bound), len(rows)
        elif self._kernel_rows is not None and rows is not self.device_rows.resident:
            self._kernel_rows.fill(rows)  # in the memory of the block before
        kernels = self._kernel_rows
        return kernels if kernels is not None and kernels.is_accurate(at) else None

    def completed(self, total: Sums, theta: Any) -> Sums:
        """Return the sums of kernels over all rows with −½ yᵀPy of "tied", common to all components."""
        if self.bound.code != TIED:
            return total
        common = ((theta.whiten[0] @ self.device_rows.products) * theta.whiten[0]).sum()
        return total._replace(log_likelihood=total.log_likelihood - 0.5 * common)

    def flat(self, total: Tensor) -> Tensor:
        """Return the model's statistics (q,) for sums (M, 1 + p), on the device."""
        d = len(self.bound.origin)
        squares = total[:, 1 + d :]
        if self.bound.code == TIED:
            row, column = torch.tril_indices(d, d, device=total.device)
            squares = self.device_rows.products[row, column]
        return torch.cat([total[:, 0], total[:, 1 : 1 + d].reshape(-1), squares.reshape(-1)])

    def extents(self, theta: Any) -> Tensor:
        """Return :class:`Extents` at θ, tensors, as a tensor (2,): nothing is copied to the CPU."""
        rows, d, phi, code = self.device_rows, len(self.bound.origin), theta.phi, self.bound.code
        squared = torch.zeros((), dtype=torch.float64, device=phi.device)
        if len(theta.whiten) or len(theta.scales):
            extent = torch.maximum(rows.reach, theta.means.abs().amax(dim=0))
            far = theta.whiten.abs() @ extent if len(theta.whiten) else theta.scales * extent
            squared = far.square().sum(dim=1).max()
        logit = rows.norm * torch.linalg.vector_norm(phi[:d], dim=0)
        if code == DIAG:
            logit = logit + rows.norm**2 * phi[d:].abs().amax(dim=0)
        elif code == SPHERICAL:
            logit = logit + rows.norm**2 * (phi[d] - phi[d].mean()).abs()
        return torch.stack([squared, logit.max()])

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        assert self._passed is not None
        return self._model.penalty(theta) + self._passed[1] / self.total_weight

    def plus_plus(self, random_state: np.random.RandomState) -> Index | None:
        """Return the rows (M,) that k-means++ chooses, on the device; None if the rows do not stay there.

        It uses scikit-learn's draws and therefore chooses the same rows, but for rounding of distances.
        """
        rows = self.device_rows.resident if isinstance(self.bound, BoundGaussians) else None
        return None if rows is None else plus_plus(rows, self.bound.n_components, random_state)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        room = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for here, part in self._evaluations(theta, responsibilities=responsibilities, labels=labels):
            for into, values in zip(room, part, strict=True):
                if into is not None:
                    into[here] = values.cpu().numpy()
        return room

    def evaluate_there(
        self, theta: Theta, *, responsibilities: bool = False, labels: bool = False
    ) -> Evaluation:
        """As :meth:`evaluate`, in tensors on the device; float32 for rows of float32."""
        dtype = getattr(torch, np.dtype(cast(Any, self._source).dtype).name)

        def room(values: Any) -> Any:
            shape, kind = (self.n, *values.shape[1:]), dtype if values.is_floating_point() else values.dtype
            return torch.empty(shape, dtype=kind, device=values.device)

        found: Any = None
        for here, part in self._evaluations(theta, responsibilities=responsibilities, labels=labels):
            if found is None:
                found = Evaluation._make(None if values is None else room(values) for values in part)
            for into, values in zip(found, part, strict=True):
                if into is not None:
                    into[here] = values.to(into.dtype)
        return cast(Evaluation, found)

    def _evaluations(
        self, theta: Theta, *, responsibilities: bool, labels: bool
    ) -> Iterator[tuple[slice, Any]]:
        """Yield places of rows, and their evaluation in tensors."""
        self._between_blocks()
        given, base = self._given(theta), self.device_rows.base
        for block, rows in self.device_rows:
            for within, _, posterior, log_likelihood in e_steps(rows, given):
                here = slice(block.start + within.start, block.start + within.stop)
                if base is not None:
                    log_likelihood += torch.from_numpy(base[here]).to(log_likelihood.device)
                found = Evaluation(
                    log_likelihood,
                    posterior if responsibilities else None,
                    posterior.argmax(dim=1) if labels else None,
                )
                yield here, found


def _added(total: Sums | None, part: Sums) -> Sums:
    """Return the sums of two blocks of rows; of one, if there is only one so far."""
    return part if total is None else Sums(total.sums + part.sums, total.log_likelihood + part.log_likelihood)


def _kernel_rows(rows: Rows, bound: BoundComponents) -> KernelRows | None:
    """Return rows in the form of the kernels in Triton, or None without them."""
    if rows.y.device.type != "cuda":
        return None
    try:
        from swiftem.mixture.compute.triton import kernel_rows
    except ImportError:  # Triton is for Linux
        return None
    return kernel_rows(rows, bound.code, bound.n_components)


def plus_plus(rows: Rows, count: int, random_state: np.random.RandomState) -> Index:
    """Return the indices (count,) of rows that are far from each other, as k-means++ draws them.

    Parameters
    ----------
    rows : Rows
        All rows, on the device.
    count : int
        Number of indices.
    random_state : RandomState
        Used as in scikit-learn's ``kmeans_plusplus``: the same draws, of which the best of several is taken.
    """
    n, trials = len(rows), 2 + int(log(count))
    weight = None if rows.weight is None else rows.weight.cpu().numpy()
    chosen = [int(random_state.choice(n, p=np.full(n, 1.0 / n) if weight is None else weight / weight.sum()))]
    closest = _squares(rows, chosen, None)[0]
    potential = _total(closest, rows.weight)
    for _ in range(1, count):
        drawn = torch.from_numpy(random_state.uniform(size=trials)).to(closest.device) * potential
        cumulative = torch.cumsum(closest if rows.weight is None else closest * rows.weight, 0)
        tried = torch.searchsorted(cumulative, drawn).clamp_(max=n - 1)
        squares = _squares(rows, tried.tolist(), closest)
        potentials = torch.stack([_total(each, rows.weight) for each in squares])
        best = int(potentials.argmin())
        closest, potential = squares[best], potentials[best]
        chosen.append(int(tried[best]))
    return np.array(chosen)


def _total(squares: Tensor, weight: Tensor | None) -> Tensor:
    """Return the weighted sum of squares (n,)."""
    return squares.sum() if weight is None else squares @ weight


def _squares(rows: Rows, index: list[int], closest: Tensor | None) -> Tensor:
    """Return squared distances (k, n) of all rows from those of ``index``; at most ``closest`` (n,)."""
    squares = torch.empty((len(index), len(rows)), dtype=torch.float64, device=rows.y.device)
    points = rows.y[torch.tensor(index, device=rows.y.device)].double()
    size = max(1, DIFFERENCES // rows.y.shape[1])
    for start in range(0, len(rows), size):
        here = slice(start, start + size)
        for into, point in zip(squares, points, strict=True):
            into[here] = (rows.y[here] - point).square_().sum(dim=1)
    return squares if closest is None else torch.minimum(squares, closest)
