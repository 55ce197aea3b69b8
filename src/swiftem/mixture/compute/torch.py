"""E-steps of mixtures in PyTorch: the rows are on a device, θ goes in, statistics come out.

Logits are T(y)·φ + c, statistics r ⊗ T(y), as in :class:`swiftem.mixture.components.BoundComponents`. Rows
may be float32; everything that is computed is float64. If expanded squares would lose digits, logits come
from whitened differences. Passes over float32 rows are faster by the kernels in ``triton.py``. Rows that do
not fit into the device's memory are copied there in every pass, block by block.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log as logarithm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from swiftem.core.algorithm import Algorithm1, Loop, Task
from swiftem.core.checks import MemoryLimitError
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.files import in_words
from swiftem.core.method import declared
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.as_source import DEVICE_KERNELS
from swiftem.data.tensor import TensorSource
from swiftem.kernels.torch_device import LIVE, copied
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute.numpy import COMPLETED, FARTHEST, LINEAR
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.model import BoundMixture

if TYPE_CHECKING:
    from swiftem.mixture.compute.torch_loop import DeviceEM
    from swiftem.mixture.compute.triton import KernelRows

log = logging.getLogger("swiftem")

NUMBERS = 3 << 21
"""Numbers computed at a time: features, logits and differences of a block of rows."""
DIFFERENCES = 1 << 22
"""Differences of k-means++ computed at a time."""
BYTES, LEAST_ROWS = 1 << 28, 1 << 16
"""Size of a block that is copied, and its minimum number of rows."""
WORK, COPIES = 160 << 20, 6
"""Memory of temporary arrays, and vectors of statistics in memory at a time."""

Sums = tuple[Tensor, Tensor]
"""Sums over rows, float64: of w·r ⊗ [1, T(y)], shape (M, 1 + p), and of w log g without log h(y)."""
Extents = tuple[float, float]
"""How far rows are at a θ, which decides how a pass is computed: the largest squared distance of rows and
means from the centre, in standard deviations, or 0 if only φ is used; and a bound on the largest term of
expanded squares."""


@dataclass(frozen=True)
class Rows:
    """Rows on a device.

    Attributes
    ----------
    y : tensor, shape (n, d)
        Features, float32 or float64. For Gaussians these are the samples.
    centre : tensor, shape (d,)
        Subtracted from the features, float64.
    weight : tensor, shape (n,), or None
        Weights, float64; None if all are one.
    reach : tensor, shape (d,)
        Largest absolute differences from the centre.
    code : int
        The kind of T(y).
    """

    y: Tensor
    centre: Tensor
    weight: Tensor | None
    reach: Tensor
    code: int

    def __len__(self) -> int:
        return len(self.y)

    def slices(self, width: int, numbers: int) -> Iterator[slice]:
        """Yield consecutive rows that need at most so many numbers, if each needs ``width``."""
        size = max(1, numbers // width)
        for first in range(0, len(self), size):
            yield slice(first, min(first + size, len(self)))

    def centred(self, here: slice) -> Tensor:
        """Return features minus the centre (b, d), float64."""
        return self.y[here] - self.centre  # of float64: no copy of the rows in between


class DeviceTheta(NamedTuple):
    """φ(θ) on a device, float64; see :class:`swiftem.mixture.components.Coefficients`."""

    phi: Tensor
    constant: Tensor
    means: Tensor
    plain: Tensor
    whiten: Tensor
    scales: Tensor


def on_device(theta: Coefficients, device: torch.device) -> DeviceTheta:
    """Return coefficients as tensors on a device."""
    return DeviceTheta(*(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in theta))


def features(x: Tensor, code: int) -> Tensor:
    """Return T(y) (b, p) of centred samples (b, d), without its first entry, 1."""
    if code == FULL:
        row, column = torch.tril_indices(x.shape[1], x.shape[1], device=x.device)
        squares = x[:, row] * x[:, column]
    elif code == DIAG:
        squares = x.square()
    elif code == SPHERICAL:
        squares = x.square().sum(dim=1, keepdim=True)
    else:
        return x
    return torch.cat([x, squares], dim=1)


def whitened_logits(x: Tensor, theta: DeviceTheta) -> Tensor:
    """Return the logits (b, M) of centred samples (b, d), from squares of whitened differences."""
    away = x - theta.means[:, None]
    away = away @ theta.whiten.transpose(1, 2) if len(theta.whiten) else away * theta.scales[:, None]
    return theta.plain - 0.5 * away.square_().sum(dim=2).T


def e_steps(
    rows: Rows, theta: DeviceTheta, extents: Extents
) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield slice, T(y) (b, p), responsibilities (b, M) and log g without log h(y) (b,) of each block."""
    p, n_components = theta.phi.shape
    is_near = extents[0] <= FARTHEST  # expanded squares keep enough digits
    for here in rows.slices(p + n_components * (1 if is_near else rows.y.shape[1]), NUMBERS):
        x = rows.centred(here)
        powers = features(x, rows.code)
        if is_near:
            logits = torch.addmm(theta.constant, powers, theta.phi)
        else:
            logits = whitened_logits(x, theta)
        log_likelihood = torch.logsumexp(logits, dim=1)
        responsibilities = logits.sub_(log_likelihood[:, None]).exp_()
        if is_near and rows.code == TIED:  # its expanded squares lack the common part
            log_likelihood -= 0.5 * (x @ theta.whiten[0].T).square().sum(dim=1)
        yield here, powers, responsibilities, log_likelihood


def sums(rows: Rows, theta: DeviceTheta, extents: Extents, memory: Array | None = None) -> Sums:
    """Return the sums of a full pass over the rows.

    ``memory`` (n, M) gets the responsibilities, which are then summed as they are rounded there.
    """
    total = torch.zeros((), dtype=torch.float64, device=rows.y.device)
    log_likelihood = total.clone()
    for here, powers, responsibilities, of_rows in e_steps(rows, theta, extents):
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
    return total, log_likelihood


def check_on_device(model: BoundComponents) -> None:
    """Raise ValueError for a mixture that has no passes on a device."""
    if model.code == COMPLETED or (isinstance(model, BoundGaussians) and model.kind.has_masses):
        raise ValueError("device must be 'cpu' if cells are missing: passes on a GPU need complete rows.")
    if model.code not in (FULL, TIED, DIAG, SPHERICAL, LINEAR):
        what = model.family.name if isinstance(model, BoundMixture) else "this model"
        raise ValueError(f"device must be 'cpu' for {what}: there are no passes on a GPU for it.")


class DeviceRows:
    """The features of a source on a device.

    Parameters
    ----------
    bound : BoundComponents
        The model.
    source : Source
        The samples.
    device : str
        Name of the device.
    between : callable
        Called between blocks that are read; it may raise.
    limit : int, optional
        Limit of the device's memory in bytes, without data given there.

    Attributes
    ----------
    device : torch.device
        The device.
    resident : Rows or None
        All rows, if they stay on the device.
    base : ndarray, shape (n,), or None
        log h(y) of all rows, or None if it is zero.
    reach : tensor, shape (d,)
        As in :class:`Rows`.
    norm : tensor, shape ()
        Largest Euclidean norm of a row minus the centre.
    products : tensor, shape (d, d)
        Σ w yyᵀ of rows minus the centre if the model shares them, else zero.
    """

    def __init__(
        self,
        bound: BoundComponents,
        source: Source,
        device: str,
        between: Callable[[], None],
        limit: int | None = None,
    ) -> None:
        self._bound, self._source, self._between, self._limit = bound, source, between, limit
        self.device = torch.device(device)
        self._centre = torch.from_numpy(bound.origin).to(self.device)
        self.reach, d = torch.zeros_like(self._centre), len(bound.origin)
        self.norm, self.products = self.reach.new_zeros(()), self.reach.new_zeros((d, d))
        self._is_registered = False
        #: Memory of parameters, sums and temporary arrays.
        self._work = WORK + COPIES * 8 * bound.size
        self._size = max(LEAST_ROWS, BYTES // (8 * d))
        self.base: Array | None = None
        self._base_of_blocks: dict[int, float] = {}
        self.resident = self._all_rows()
        if self.resident is None and limit is not None:
            self._size = self._rows_within(limit)
        elif self.resident is None:
            log.info("rows are copied to %s in every pass", device)
        self._measure()

    @property
    def total_base(self) -> float:
        """The weighted sum of log h(y), noted when rows were read."""
        return sum(self._base_of_blocks.values())

    def __iter__(self) -> Iterator[tuple[slice, Rows]]:
        """Yield all rows in order, as slices and blocks on the device; a block is valid until the next."""
        if self.resident is not None:
            yield slice(0, len(self.resident)), self.resident
            return
        rows = self._plain
        if rows is not None and self.device.type == "cuda" and not self._is_registered:
            # Pinned once, and copied without another copy on the CPU; if it fails, block by block.
            self._is_registered, cuda = True, torch.cuda.cudart()
            if int(cuda.cudaHostRegister(rows.ctypes.data, rows.nbytes, 0)) == 0:
                weakref.finalize(self, cuda.cudaHostUnregister, rows.ctypes.data)
        for here, parts in copied(self._host_blocks(), self.device):
            yield here, self._rows(*parts)

    def fits(self, needed: int) -> bool:
        """Return whether as many bytes are free on the device, and within the limit."""
        if self._limit is not None and self._taken + needed + self._work > self._limit:
            return False
        return self.device.type != "cuda" or needed <= int(torch.cuda.mem_get_info(self.device)[0])

    def _all_rows(self) -> Rows | None:
        """Return all rows, before they are measured, or None if they do not fit with a copy."""
        source, is_gaussian = self._source, isinstance(self._bound, BoundGaussians)
        tensor = source.tensor if isinstance(source, TensorSource) and is_gaussian else None
        # Their size there and in the form of kernels, which may have twice as many columns.
        needed = 8 * source.n * len(self._bound.origin) * (2 if tensor is None else 1)
        self._taken = 0
        if not self.fits(needed):
            return None
        self._taken = needed
        if tensor is not None:
            weight = [] if source.weight is None else [torch.from_numpy(source.weight).to(self.device)]
            return self._rows(tensor.to(self.device), *weight)
        room: list[Tensor] = []
        for here, parts in self._host_blocks():
            if not room:
                room = [part.new_empty((source.n, *part.shape[1:]), device=self.device) for part in parts]
            for into, part in zip(room, parts, strict=True):
                into[here].copy_(part)
        return self._rows(*room)

    def _rows(self, y: Tensor, weight: Tensor | None = None) -> Rows:
        return Rows(y, self._centre, weight, self.reach, self._bound.code)

    def _rows_within(self, limit: int) -> int:
        """Return the rows of a block within the limit; raise MemoryLimitError if there are too few."""
        bytes_per_row = 8 * len(self._bound.origin) * (LIVE + 2)  # copied, prepared, and as float64
        size = (limit - self._work) // bytes_per_row
        least = min(LEAST_ROWS, self._source.n)
        if size < least:
            needed = self._work + least * bytes_per_row
            raise MemoryLimitError(
                f"device_memory_limit must be at least {in_words(needed)} for these data and this model, "
                f"got {in_words(limit)}."
            )
        log.info("rows do not fit into device_memory_limit: they are copied in every pass")
        return min(self._size, int(size))

    def _measure(self) -> None:
        """Read all rows once, for their reach, norm and products."""
        for _, rows in self:
            for here in rows.slices(len(self._centre), NUMBERS):
                x = rows.centred(here)
                self.reach = torch.maximum(self.reach, x.abs().amax(dim=0))
                self.norm = torch.maximum(self.norm, x.square().sum(dim=1).max())
                if self._bound.shares_products:
                    self.products += x.T @ (x if rows.weight is None else x * rows.weight[here][:, None])
        self.norm = self.norm.sqrt()
        if self.resident is not None:
            self.resident = replace(self.resident, reach=self.reach)

    def _host_blocks(self) -> Iterator[tuple[slice, list[Tensor]]]:
        """Yield slices, and features, float32 or float64, and weights, if there are any; note log h(y)."""
        bound, source, rows = self._bound, self._source, self._plain
        if rows is not None:
            arrays = [rows] if source.weight is None else [rows, source.weight]
            for first in range(0, source.n, self._size):
                self._between()
                here = slice(first, min(first + self._size, source.n))
                yield here, [torch.from_numpy(part[here]) for part in arrays]
            return
        for batch in source.blocks(self._size):
            self._between()
            first, y = int(batch.index[0]), batch.y if batch.y.ndim > 1 else batch.y[:, None]
            here = slice(first, first + len(y))
            features = np.asarray(bound.features(y))
            if features.dtype != np.float32:
                features = features.astype(np.float64, copy=False)
            base = bound.log_base(y, first)
            if base is not None:
                if self.base is None:
                    self.base = np.zeros(source.n)
                self.base[here] = base
                self._base_of_blocks[first] = float(batch.weight @ base)
            parts = [features, batch.weight] if source.is_weighted else [features]
            yield here, [torch.from_numpy(np.require(part, requirements=["C", "W"])) for part in parts]

    @property
    def _plain(self) -> NDArray[np.float32 | np.float64] | None:
        """The rows of an array, if they are the features as they are, else None."""
        rows = self._source.rows_in_memory
        if rows is None or not isinstance(self._bound, BoundGaussians) or rows.ndim != 2:
            return None
        is_float = rows.dtype in (np.float32, np.float64)
        return rows if is_float and rows.flags.c_contiguous and rows.flags.writeable else None


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
        self._kernel_rows: KernelRows | None = None
        self._most_rows = -1

    @cached_property
    def device_rows(self) -> DeviceRows:
        """The rows on the device; the first call copies them there."""
        device = self.placement.device.removeprefix(DEVICE_KERNELS)
        return DeviceRows(self.bound, self._source, device, self._between_blocks, self.placement.memory_limit)

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
        total, log_likelihood = self.total(*self.given(theta), memory)
        self.evaluations += self.n
        self._passed = theta, -float(log_likelihood) - self.device_rows.total_base
        return self.flat(total).cpu().numpy() / self.total_weight, memory

    def given(self, theta: Theta) -> tuple[DeviceTheta, Extents]:
        """Return θ on the device, and how far rows are there."""
        at = on_device(self.bound.coefficients(theta), self.device_rows.device)
        reach, logit = self.extents(at).tolist()
        return at, (reach, logit)

    def total(self, theta: DeviceTheta, extents: Extents, memory: Array | None = None) -> Sums:
        """Return the sums of a full pass, whose responsibilities are written into ``memory`` (n, M)."""
        total: Sums | None = None
        for block, rows in self.device_rows:
            kernels = self.kernels(rows, extents) if memory is None else None
            if kernels is None:
                part = sums(rows, theta, extents, None if memory is None else memory[block])
            else:
                part = kernels.sums(theta)
            total = part if total is None else (total[0] + part[0], total[1] + part[1])
        assert total is not None, "a source has at least one sample"
        return total if kernels is None else self.completed(total, theta)

    def kernels(self, rows: Rows, extents: Extents) -> KernelRows | None:
        """Return rows in the form of kernels, or None if there are none, or if float32 is not enough."""
        if len(rows) > self._most_rows:
            self._kernel_rows, self._most_rows = _kernel_rows(rows, self.bound.n_components), len(rows)
        elif self._kernel_rows is not None and rows is not self.device_rows.resident:
            self._kernel_rows.fill(rows)  # in the memory of the block before
        kernels = self._kernel_rows
        return kernels if kernels is not None and kernels.is_accurate(*extents) else None

    def completed(self, total: Sums, theta: DeviceTheta) -> Sums:
        """Return the sums of kernels over all rows with −½ yᵀPy of "tied", common to all components."""
        if not self.bound.omits_square:
            return total
        common = ((theta.whiten[0] @ self.device_rows.products) * theta.whiten[0]).sum()
        return total[0], total[1] - 0.5 * common

    def flat(self, total: Tensor) -> Tensor:
        """Return the model's statistics (q,) for sums (M, 1 + p), on the device."""
        d = len(self.bound.origin)
        squares = total[:, 1 + d :]
        if self.bound.shares_products:
            row, column = torch.tril_indices(d, d, device=total.device)
            squares = self.device_rows.products[row, column]
        return torch.cat([total[:, 0], total[:, 1 : 1 + d].reshape(-1), squares.reshape(-1)])

    def extents(self, theta: DeviceTheta) -> Tensor:
        """Return the entries of :data:`Extents`, a tensor (2,) on the device."""
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
        like = torch.empty(0, dtype=self._source.tensor.dtype, device=self.device_rows.device)
        room = Evaluation(
            like.new_empty(self.n),
            like.new_empty((self.n, self.bound.n_components)) if responsibilities else None,
            like.new_empty(self.n, dtype=torch.int64) if labels else None,
        )
        self._evaluate(theta, room)
        return room

    def _evaluate(self, theta: Theta, room: Sequence[Tensor | None]) -> None:
        """Write log-likelihoods, responsibilities and labels into tensors, on the CPU or on the device."""
        self._between_blocks()
        given, base = self.given(theta), self.device_rows.base
        for block, rows in self.device_rows:
            for within, _, posterior, log_likelihood in e_steps(rows, *given):
                here = slice(block.start + within.start, block.start + within.stop)
                if base is not None:
                    log_likelihood += torch.from_numpy(base[here]).to(log_likelihood.device)
                labels = None if room[2] is None else posterior.argmax(dim=1)
                for into, values in zip(room, (log_likelihood, posterior, labels), strict=True):
                    if into is not None and values is not None:
                        into[here].copy_(values)


def _kernel_rows(rows: Rows, n_components: int) -> KernelRows | None:
    """Return rows in the form of the kernels in Triton, or None without them."""
    if rows.y.device.type != "cuda":
        return None
    try:
        from swiftem.mixture.compute.triton import kernel_rows
    except ImportError:  # Triton is for Linux
        return None
    return kernel_rows(rows, n_components)


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
    n, trials = len(rows), 2 + int(logarithm(count))
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
    """Return squared distances (k, n) of all rows from the rows ``index``."""
    squares = torch.empty((len(index), len(rows)), dtype=torch.float64, device=rows.y.device)
    points = rows.y[torch.tensor(index, device=rows.y.device)].double()
    for here in rows.slices(rows.y.shape[1], DIFFERENCES):
        for into, point in zip(squares, points, strict=True):
            into[here] = (rows.y[here] - point).square_().sum(dim=1)
    return squares
