"""E-steps of mixtures in PyTorch: the rows are on a device, θ goes in, statistics come out.

Logits are T(y)·φ + c, statistics r ⊗ T(y), as in :class:`swiftem.mixture.components.BoundComponents`. Rows
may be float32; everything that is computed is float64. If expanded squares would lose digits, logits come
from whitened differences. Passes over float32 rows are faster by the kernels in ``triton.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from swiftem.core.algorithm import Algorithm1, Loop, Task
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.method import declared
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.as_source import DEVICE_KERNELS
from swiftem.data.tensor import TensorSource
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute import COMPLETED, LINEAR
from swiftem.mixture.compute.numpy import FARTHEST
from swiftem.mixture.compute.torch_rows import DeviceRows, DeviceTheta, Rows, Sums
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.model import BoundMixture

if TYPE_CHECKING:
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
    "whitened_logits",
]

NUMBERS = 3 << 21
"""Numbers computed at a time: features, logits and differences of a block of rows."""
DIFFERENCES = 1 << 22
"""Differences of k-means++ computed at a time."""


class Given(NamedTuple):
    """θ on a device, and how far rows are there, which decides how a pass is computed.

    Attributes
    ----------
    code : int
        The kind of features.
    theta : DeviceTheta
        θ.
    squared_reach : float
        The largest squared distance of rows and means from the centre, in standard deviations; 0 if only φ
        is used.
    logit : float
        A bound on the largest term of expanded squares.
    """

    code: int
    theta: DeviceTheta
    squared_reach: float
    logit: float

    @property
    def is_near(self) -> bool:
        """Whether expanded squares keep enough digits in float64."""
        return self.squared_reach <= FARTHEST


def on_device(theta: Coefficients, device: torch.device) -> DeviceTheta:
    """Return coefficients as tensors on a device."""
    return DeviceTheta(*(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in theta))


def _products(x: Tensor) -> Tensor:
    row, column = torch.tril_indices(x.shape[1], x.shape[1], device=x.device)
    return x[:, row] * x[:, column]


SQUARES: dict[int, Callable[[Tensor], Tensor]] = {
    FULL: _products,
    DIAG: torch.square,
    SPHERICAL: lambda x: x.square().sum(dim=1, keepdim=True),
}
"""The entries of T(y) after y, by kind of features; the others have none."""


def features(x: Tensor, code: int) -> Tensor:
    """Return T(y) (b, p) of centred samples (b, d), without its first entry, 1."""
    return torch.cat([x, SQUARES[code](x)], dim=1) if code in SQUARES else x


def whitened_logits(x: Tensor, theta: DeviceTheta) -> Tensor:
    """Return the logits (b, M) of centred samples (b, d), from squares of whitened differences."""
    away = x - theta.means[:, None]
    away = away @ theta.whiten.transpose(1, 2) if len(theta.whiten) else away * theta.scales[:, None]
    return theta.plain - 0.5 * away.square_().sum(dim=2).T


def e_steps(rows: Rows, given: Given) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield slice, T(y) (b, p), responsibilities (b, M) and log g without log h(y) (b,) of each block."""
    theta, (p, n_components) = given.theta, given.theta.phi.shape
    width = p + n_components * (1 if given.is_near else rows.y.shape[1])
    for here in rows.slices(width, NUMBERS):
        x = rows.centred(here)
        powers = features(x, given.code)
        if given.is_near:
            logits = torch.addmm(theta.constant, powers, theta.phi)
        else:
            logits = whitened_logits(x, theta)
        log_likelihood = torch.logsumexp(logits, dim=1)
        responsibilities = logits.sub_(log_likelihood[:, None]).exp_()
        if given.is_near and given.code == TIED:  # its expanded squares lack the common part
            log_likelihood -= 0.5 * (x @ theta.whiten[0].T).square().sum(dim=1)
        yield here, powers, responsibilities, log_likelihood


def sums(rows: Rows, given: Given, memory: Array | None = None) -> Sums:
    """Return the sums of a full pass over the rows.

    ``memory`` (n, M) gets the responsibilities, which are then summed as they are rounded there.
    """
    total = torch.zeros((), dtype=torch.float64, device=rows.y.device)
    log_likelihood = total.clone()
    for here, powers, responsibilities, of_rows in e_steps(rows, given):
        if memory is not None:
            rounded = responsibilities.to(getattr(torch, memory.dtype.name))
            memory[here] = rounded.cpu().numpy()
            responsibilities = rounded.double()
        if rows.weight is not None:
            responsibilities = responsibilities * rows.weight[here][:, None]
            of_rows *= rows.weight[here]
        part = torch.cat([responsibilities.sum(dim=0)[:, None], responsibilities.T @ powers], dim=1)
        total = part + total
        log_likelihood += of_rows.sum()
    return Sums(total, log_likelihood)


def check_on_device(model: BoundComponents) -> None:
    """Raise ValueError for a mixture that has no passes on a device."""
    if model.code == COMPLETED or (isinstance(model, BoundGaussians) and model.kind.has_masses):
        raise ValueError("device must be 'cpu' if cells are missing: passes on a GPU need complete rows.")
    if model.code not in (FULL, TIED, DIAG, SPHERICAL, LINEAR):
        what = model.family.name if isinstance(model, BoundMixture) else "this model"
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

    def __init__(self, model: BoundComponents, source: Source, placement: Placement) -> None:
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
        return None if has_penalty else DeviceEM(self, bound)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        self._between_blocks()
        memory = None
        if remember:
            memory = self.allocate((self.n, self.bound.n_components), self.memory_dtype)
        total = self.total(self.given(theta), memory)
        self.evaluations += self.n
        self._passed = theta, -float(total.log_likelihood) - self.device_rows.total_base
        return self.flat(total.sums).cpu().numpy() / self.total_weight, memory

    def given(self, theta: Theta) -> Given:
        """Return θ on the device."""
        at = on_device(self.bound.coefficients(theta), self.device_rows.device)
        return Given(self.bound.code, at, *self.extents(at).tolist())

    def total(self, given: Given, memory: Array | None = None) -> Sums:
        """Return the sums of a full pass, whose responsibilities are written into ``memory`` (n, M)."""
        total = kernels = None
        for block, rows in self.device_rows:
            if memory is None:
                kernels = self.kernels(rows, given)
            if kernels is None:
                part = sums(rows, given, None if memory is None else memory[block])
            else:
                part = kernels.sums(given.theta)
            total = part if total is None else Sums(*map(torch.add, total, part))
        assert total is not None, "a source has at least one sample"
        return total if kernels is None else self.completed(total, given.theta)

    def kernels(self, rows: Rows, given: Given) -> KernelRows | None:
        """Return rows in the form of kernels, or None if there are none, or if float32 is not enough."""
        if len(rows) > self._most_rows:
            self._kernel_rows, self._most_rows = _kernel_rows(rows, self.bound), len(rows)
        elif self._kernel_rows is not None and rows is not self.device_rows.resident:
            self._kernel_rows.fill(rows)  # in the memory of the block before
        kernels = self._kernel_rows
        return kernels if kernels is not None and kernels.is_accurate(given) else None

    def completed(self, total: Sums, theta: DeviceTheta) -> Sums:
        """Return the sums of kernels over all rows with −½ yᵀPy of "tied", common to all components."""
        if not self.bound.omits_square:
            return total
        common = ((theta.whiten[0] @ self.device_rows.products) * theta.whiten[0]).sum()
        return total._replace(log_likelihood=total.log_likelihood - 0.5 * common)

    def flat(self, total: Tensor) -> Tensor:
        """Return the model's statistics (q,) for sums (M, 1 + p), on the device."""
        d = len(self.bound.origin)
        squares = total[:, 1 + d :]
        if self.bound.shares_products:
            row, column = torch.tril_indices(d, d, device=total.device)
            squares = self.device_rows.products[row, column]
        return torch.cat([total[:, 0], total[:, 1 : 1 + d].reshape(-1), squares.reshape(-1)])

    def extents(self, theta: DeviceTheta) -> Tensor:
        """Return the squared reach and the largest logit of :class:`Given`, a tensor (2,) on the device."""
        rows, d, phi = self.device_rows, len(self.bound.origin), theta.phi
        squared = torch.zeros((), dtype=torch.float64, device=phi.device)
        if len(theta.whiten) or len(theta.scales):
            extent = torch.maximum(rows.reach, theta.means.abs().amax(dim=0))
            far = theta.whiten.abs() @ extent if len(theta.whiten) else theta.scales * extent
            squared = far.square().sum(dim=1).max()
        logit, squares = rows.norm * torch.linalg.vector_norm(phi[:d], dim=0), phi[d:]
        if self.bound.code == SPHERICAL:
            squares = squares - squares.mean()
        if len(squares):
            logit = logit + rows.norm**2 * squares.abs().amax(dim=0)
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
        self._evaluate(theta, [None if part is None else torch.from_numpy(part) for part in room])
        return room

    def evaluate_there(
        self, theta: Theta, *, responsibilities: bool = False, labels: bool = False
    ) -> Evaluation:
        """As :meth:`evaluate`, of a tensor, in tensors on the device; float32 for rows of float32."""
        assert isinstance(self._source, TensorSource)
        given, device = self._source.tensor.dtype, self.device_rows.device

        def room_like(part: NDArray[Any] | None) -> Tensor | None:
            if part is None:
                return None
            kind = given if part.dtype.kind == "f" else torch.int64
            return torch.empty((self.n, *part.shape[1:]), dtype=kind, device=device)

        room = [*map(room_like, Evaluation.room(1, self.bound.n_components, responsibilities, labels))]
        self._evaluate(theta, room)
        return Evaluation._make(room)

    def _evaluate(self, theta: Theta, room: Sequence[Tensor | None]) -> None:
        """Write log-likelihoods, responsibilities and labels into tensors, on the CPU or on the device."""
        self._between_blocks()
        given, base = self.given(theta), self.device_rows.base
        for block, rows in self.device_rows:
            for within, _, posterior, log_likelihood in e_steps(rows, given):
                here = slice(block.start + within.start, block.start + within.stop)
                if base is not None:
                    log_likelihood += torch.from_numpy(base[here]).to(log_likelihood.device)
                labels = None if room[2] is None else posterior.argmax(dim=1)
                for into, values in zip(room, (log_likelihood, posterior, labels), strict=True):
                    if into is not None and values is not None:
                        into[here].copy_(values)


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
    weight = np.ones(n) if rows.weight is None else rows.weight.cpu().numpy()
    chosen = [int(random_state.choice(n, p=weight / weight.sum()))]
    closest = _squares(rows, chosen)[0]
    potential = closest.sum() if rows.weight is None else closest @ rows.weight
    for _ in range(1, count):
        drawn = torch.from_numpy(random_state.uniform(size=trials)).to(closest.device) * potential
        cumulative = torch.cumsum(closest if rows.weight is None else closest * rows.weight, 0)
        tried = torch.searchsorted(cumulative, drawn).clamp_(max=n - 1)
        squares = torch.minimum(_squares(rows, tried.tolist()), closest)
        potentials = squares.sum(dim=1) if rows.weight is None else squares @ rows.weight
        best = int(potentials.argmin())
        closest, potential = squares[best], potentials[best]
        chosen.append(int(tried[best]))
    return np.array(chosen)


def _squares(rows: Rows, index: list[int]) -> Tensor:
    """Return squared distances (k, n) of all rows from those of ``index``."""
    squares = torch.empty((len(index), len(rows)), dtype=torch.float64, device=rows.y.device)
    points = rows.y[torch.tensor(index, device=rows.y.device)].double()
    for here in rows.slices(rows.y.shape[1], DIFFERENCES):
        for into, point in zip(squares, points, strict=True):
            into[here] = (rows.y[here] - point).square_().sum(dim=1)
    return squares
