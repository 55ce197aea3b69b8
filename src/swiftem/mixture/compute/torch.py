"""E-steps of mixtures in PyTorch: the rows are on a device, θ goes in, statistics come out.

Logits are T(y)·φ + c, statistics r ⊗ T(y), as in :class:`swiftem.mixture.components.BoundComponents`. A pass
has several forms, and θ decides which (:meth:`TorchCompute.form`). Two are float64, and define what is
correct: expanded squares, and whitened differences if the former would lose digits. Two are for float32 rows:
the kernels in ``triton.py``, which are products of matrices, and forms that keep their digits at any θ.
Rows that do not fit into the device's memory are copied there in every pass, block by block.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from swiftem.core.algorithm import Algorithm1, Loop, Task
from swiftem.core.checks import MemoryLimitError
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.files import in_words
from swiftem.core.method import declared
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
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
    from swiftem.mixture.compute.torch_starts import DeviceStarts

log = logging.getLogger("swiftem")

NUMBERS = 3 << 21
"""Numbers computed at a time: features, logits and differences of a block of rows."""
SINGLE_NUMBERS = 1 << 25
"""The same in float32."""
BYTES, LEAST_ROWS = 1 << 28, 1 << 16
"""Size of a block that is copied, and its minimum number of rows."""
WORK, COPIES = 160 << 20, 6
"""Memory of temporary arrays, and vectors of statistics in memory at a time."""

Sums = tuple[Tensor, Tensor]
"""Sums over rows, float64: of w·r ⊗ [1, T(y)], shape (M, 1 + p), and of w log g without log h(y)."""
PRODUCTS, EXACT, EXPANDED, DIFFERENCES = range(4)
"""Forms of a pass, the fastest first: float32 by products of matrices; float32 at any θ; float64 by expanded
squares; float64 by differences."""
GROUP = 1 << 10
"""Rows whose products are added in float32."""
LEAST_SINGLE_ROWS = 1 << 16
"""With fewer rows the passes in float64 take no longer than the preparation."""
LARGEST_LOGIT, FARTHEST_SINGLE = 1024.0, 512.0
"""Bounds of products in float32, for each component: logits that are sums of larger numbers lose digits, and
variances that are differences of squares so many times as large."""
MOST_PARTS, SPLITS = 1 << 29, 4
"""Bytes of sums that programs write, and programs that divide rows to sum components beyond the bounds."""


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
    norm : tensor, shape ()
        Largest Euclidean norm of a row minus the centre.
    code : int
        The kind of T(y).
    """

    y: Tensor
    centre: Tensor
    weight: Tensor | None
    reach: Tensor
    norm: Tensor
    code: int

    def __len__(self) -> int:
        return len(self.y)

    def part(self, here: slice) -> Rows:
        """Return some of the rows; nothing is copied."""
        return replace(self, y=self.y[here], weight=None if self.weight is None else self.weight[here])

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
    parts = (np.array(part, order="C") for part in theta)  # one column may have a negative stride
    return DeviceTheta(*(torch.from_numpy(part).to(device) for part in parts))


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


def e_steps(rows: Rows, theta: DeviceTheta, is_near: bool) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield slice, T(y) (b, p), responsibilities (b, M) and log g without log h(y) (b,) of each block.

    ``is_near`` tells that expanded squares keep enough digits.
    """
    p, n_components = theta.phi.shape
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


def sums(rows: Rows, theta: DeviceTheta, is_near: bool, memory: Array | None = None) -> Sums:
    """Return the sums of a full pass over the rows, in float64.

    ``memory`` (n, M) gets the responsibilities, which are then summed as they are rounded there.
    """
    total = torch.zeros((), dtype=torch.float64, device=rows.y.device)
    log_likelihood = total.clone()
    for here, powers, responsibilities, of_rows in e_steps(rows, theta, is_near):
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


def extents(rows: Rows, theta: DeviceTheta) -> tuple[Tensor, Tensor]:
    """Return two bounds of each component (M,), which decide about the form of a pass.

    They are the squared distance of the farthest row or mean from the centre, in standard deviations, 0 if
    only φ is used; and the largest term of expanded squares, 0 for "full", whose passes do not expand them.
    """
    phi, d = theta.phi, len(rows.reach)
    squared = phi.new_zeros(phi.shape[1])
    if len(theta.whiten) or len(theta.scales):
        extent = torch.maximum(rows.reach, theta.means.abs().amax(dim=0))
        if len(theta.whiten):  # rounding errors of a row of products are independent of each other
            squared = squared + (theta.whiten.square() @ extent.square()).sum(dim=1)
        else:
            squared = squared + (theta.scales * extent).square().sum(dim=1)
    if rows.code == FULL:
        return squared, torch.zeros_like(squared)
    logit, squares = rows.norm * torch.linalg.vector_norm(phi[:d], dim=0), phi[d:]
    if rows.code == SPHERICAL:  # |x|² times the mean coefficient is common to all
        squares = squares - squares.mean()
    return squared, logit + rows.norm**2 * squares.abs().amax(dim=0) if len(squares) else logit


def most_beyond(d: int) -> int:
    """Return how many components beyond the bounds of products there may be: their sums are float64."""
    return MOST_PARTS // (24 * SPLITS * d)


def is_beyond(squared: Tensor, logit: Tensor, d: int) -> Tensor:
    """Return the components (M,) that products in float32 are not accurate enough for, by their extents."""
    return (squared > FARTHEST_SINGLE * d) | (logit > LARGEST_LOGIT)


def about_centre(counts: Tensor, sums: Tensor, products: Tensor, means: Tensor) -> Tensor:
    """Return sums (M, 1 + p) of "full" about the centre, from counts (M, 1) and sums about the means."""
    products = products + sums[:, :, None] * means[:, None, :]
    products += means[:, :, None] * (sums + counts * means)[:, None, :]
    row, column = torch.tril_indices(means.shape[1], means.shape[1], device=means.device)
    return torch.cat([counts, sums + counts * means, products[:, row, column]], dim=1)


class SingleRows(Protocol):
    """float32 rows in a form for passes; ``can_be_captured``: whether a CUDA graph can replay them."""

    can_be_captured: bool

    def fill(self, rows: Rows) -> None:
        """Use these rows: at most as many as the first ones, with the same reach."""
        ...

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass at θ; log-likelihoods of "tied" lack −½ yᵀPy, common to all."""
        ...


class WhitenedRows:
    """Passes in float32 for full covariances, by differences from the means: no digits cancel at any θ.

    Chosen if there is no kernel for so many columns, and where products of matrices lose digits. Differences
    are whitened, and statistics about the means are summed, by products of many matrices at a time.
    """

    can_be_captured = True

    def __init__(self, rows: Rows, n_components: int) -> None:
        self.fill(rows)

    def fill(self, rows: Rows) -> None:
        """Use these rows."""
        self._rows = rows

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass."""
        rows, (count, d) = self._rows, theta.means.shape
        exact = theta.means + rows.centre
        mean = exact.float()
        rest, whiten = (exact - mean).float(), theta.whiten.float().transpose(1, 2)
        total, products = exact.new_zeros((count, 1 + d)), exact.new_zeros((count, d, d))
        log_likelihood = exact.new_zeros(())
        for here in rows.slices(count * d, SINGLE_NUMBERS):
            away = (rows.y[here] - mean[:, None]) - rest[:, None]
            logits = theta.plain[:, None] - 0.5 * torch.bmm(away, whiten).square_().sum(dim=2)
            logs = torch.logsumexp(logits, dim=0)
            weight = logits.sub_(logs).exp_()
            if rows.weight is not None:
                weight, logs = weight * rows.weight[here], logs * rows.weight[here]
            log_likelihood += logs.sum()
            weighted = away * weight.float()[:, :, None]
            linear = weighted.sum(dim=1, dtype=torch.float64)
            total += torch.cat([weight.sum(dim=1)[:, None], linear], dim=1)
            few = [
                pad(part, (0, 0, 0, -away.shape[1] % GROUP)).view(-1, GROUP, d) for part in (weighted, away)
            ]
            parts = torch.bmm(few[0].transpose(1, 2), few[1]).view(count, -1, d, d)
            products += parts.sum(dim=1, dtype=torch.float64)
        return about_centre(total[:, :1], total[:, 1:], products, theta.means), log_likelihood


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
    is_whole : bool
        Whether there is memory for a copy of all rows in the form of kernels, too.
    base : ndarray, shape (n,), or None
        log h(y) of all rows, or None if it is zero.
    bounds : Rows
        No rows, with the reach and the norm of all of them.
    largest : tuple
        Number of rows of the largest block, and their dtype.
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
        centre, d = torch.from_numpy(bound.origin).to(self.device), len(bound.origin)
        none = centre.new_zeros(d)
        self.bounds = Rows(centre.new_empty((0, d)), centre, None, none, none.sum(), bound.code)
        self.products, self.largest = centre.new_zeros((d, d)), (0, torch.float64)
        self._is_registered, self.is_whole = False, True
        #: Memory of parameters, sums and temporary arrays.
        self._work = WORK + COPIES * 8 * bound.size
        self._size = max(LEAST_ROWS, BYTES // (8 * d))
        self.base: Array | None = None
        self._base_of_blocks: dict[int, float] = {}
        self.resident = self._all_rows()
        if not self.is_whole and limit is not None:
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
            size = len(self.resident) if self.is_whole else self._size
            for here in self.resident.slices(1, size):
                yield here, self.resident if self.is_whole else self.resident.part(here)
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
        self.is_whole = self.fits(needed)
        self._taken = needed if self.is_whole else 0
        if tensor is not None:
            weight = [] if source.weight is None else [torch.from_numpy(source.weight).to(self.device)]
            return self._rows(tensor.to(self.device), *weight)
        if not self.is_whole:
            return None
        room: list[Tensor] = []
        for here, parts in self._host_blocks():
            if not room:
                room = [part.new_empty((source.n, *part.shape[1:]), device=self.device) for part in parts]
            for into, part in zip(room, parts, strict=True):
                into[here].copy_(part)
        return self._rows(*room)

    def _rows(self, y: Tensor, weight: Tensor | None = None) -> Rows:
        return replace(self.bounds, y=y, weight=weight)

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
        reach, norm = self.bounds.reach, self.bounds.norm
        for _, rows in self:
            self.largest = max(self.largest[0], len(rows)), rows.y.dtype
            for here in rows.slices(len(reach), NUMBERS):
                x = rows.centred(here)
                reach = torch.maximum(reach, x.abs().amax(dim=0))
                norm = torch.maximum(norm, x.square().sum(dim=1).max())
                if self._bound.shares_products:
                    self.products += x.T @ (x if rows.weight is None else x * rows.weight[here][:, None])
        self.bounds = replace(self.bounds, reach=reach, norm=norm.sqrt())
        if self.resident is not None:
            self.resident = replace(self.resident, reach=reach, norm=self.bounds.norm)

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
        self._prepared: tuple[int, int, SingleRows] | None = None

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

    def em(self, tol: float, small: float, least: float) -> DeviceEM | None:
        """Return passes of em on the device, or None if the M-step or the penalty is the CPU's.

        The arguments are those of :class:`swiftem.mixture.compute.torch_loop.DeviceEM`.
        """
        from swiftem.mixture.compute.torch_loop import DeviceEM

        bound = self.bound
        if not isinstance(bound, BoundGaussians) or bound.model.prior is not None:
            return None
        has_penalty = bound.model.known_weights is None and bound.epsilon > 0
        return None if has_penalty else DeviceEM(self, bound, tol, small, least)

    def starts(self) -> DeviceStarts | None:
        """Return starts computed on the device, or None if the rows do not stay there or are no samples."""
        from swiftem.mixture.compute.torch_starts import DeviceStarts

        rows = self.device_rows.resident if isinstance(self.bound, BoundGaussians) else None
        return None if rows is None else DeviceStarts(rows, self.bound.n_components, self.flat)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        self._between_blocks()
        memory = None
        if remember:
            memory = self.allocate((self.n, self.bound.n_components), self.memory_dtype)
        total, log_likelihood = self.total(*self.given(theta, is_single=not remember), memory)
        self.evaluations += self.n
        self._passed = theta, -float(log_likelihood) - self.device_rows.total_base
        return self.flat(total).cpu().numpy() / self.total_weight, memory

    def given(self, theta: Theta, *, is_single: bool = True) -> tuple[DeviceTheta, int]:
        """Return θ on the device, and the form of a pass at it, by default of float32 if possible."""
        at = on_device(self.bound.coefficients(theta), self.device_rows.device)
        return at, int(self.form(at, is_single=is_single))

    def total(self, theta: DeviceTheta, form: int, memory: Array | None = None) -> Sums:
        """Return the sums of a full pass, whose responsibilities are written into ``memory`` (n, M)."""
        total: Sums | None = None
        for block, rows in self.device_rows:
            if form in (PRODUCTS, EXACT):
                part = self.prepared(rows, form).sums(theta)
            else:
                part = sums(rows, theta, form == EXPANDED, None if memory is None else memory[block])
            total = part if total is None else (total[0] + part[0], total[1] + part[1])
        assert total is not None, "a source has at least one sample"
        if form in (PRODUCTS, EXACT) and self.bound.omits_square:
            common = ((theta.whiten[0] @ self.device_rows.products) * theta.whiten[0]).sum()
            return total[0], total[1] - 0.5 * common
        return total

    def prepared(self, rows: Rows, form: int) -> SingleRows:
        """Return float32 rows in a form for passes; only one such copy is in memory at a time."""
        before = self._prepared
        if before is None or before[0] != form or before[1] < len(rows):
            self._prepared = before = None
            made = self._kinds[form](rows, self.bound.n_components)
            self._prepared = form, len(rows), made
            return made
        if rows is not self.device_rows.resident:
            before[2].fill(rows)  # in the memory of the block before
        return before[2]

    @cached_property
    def _kinds(self) -> dict[int, Callable[[Rows, int], SingleRows]]:
        """What makes the forms in float32 that there are for these rows."""
        (n, dtype), d = self.device_rows.largest, len(self.bound.origin)
        if n < LEAST_SINGLE_ROWS or dtype != torch.float32 or self.bound.code == LINEAR:
            return {}
        try:
            from swiftem.mixture.compute.triton import kinds_for
        except ImportError:  # Triton is for Linux
            return {EXACT: WhitenedRows} if self.bound.code == FULL else {}
        return kinds_for(d, self.bound.code, self.bound.n_components, self.device_rows.device)

    @cached_property
    def _limits(self) -> Tensor:
        """Largest extents of each form, (4, 2): squared distance, and components beyond the bounds."""
        limits = np.full((4, 2), -1.0)
        if PRODUCTS in self._kinds:
            limits[PRODUCTS] = [inf, 0.0]
        if EXACT in self._kinds:
            limits[EXACT] = [inf, inf if self.bound.code == FULL else most_beyond(len(self.bound.origin))]
        limits[EXPANDED] = [FARTHEST, inf]
        return torch.from_numpy(limits).to(self.device_rows.device)

    def form(self, theta: DeviceTheta, *, is_single: bool = True) -> Tensor:
        """Return the fastest form that is accurate at θ, a tensor, by default also of float32."""
        squared, logit = extents(self.device_rows.bounds, theta)
        beyond = is_beyond(squared, logit, len(self.bound.origin)).sum()
        is_allowed = (torch.stack([squared.max(), beyond.double()]) <= self._limits).all(dim=1)
        is_allowed[:EXPANDED] &= is_single
        ranks = torch.arange(DIFFERENCES, -1, -1, device=squared.device)
        return DIFFERENCES - (ranks * is_allowed).max()

    def flat(self, total: Tensor) -> Tensor:
        """Return the model's statistics (q,) for sums (M, 1 + p), on the device."""
        d = len(self.bound.origin)
        squares = total[:, 1 + d :]
        if self.bound.shares_products:
            row, column = torch.tril_indices(d, d, device=total.device)
            squares = self.device_rows.products[row, column]
        return torch.cat([total[:, 0], total[:, 1 : 1 + d].reshape(-1), squares.reshape(-1)])

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        assert self._passed is not None
        return self._model.penalty(theta) + self._passed[1] / self.total_weight

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
        (at, form), base = self.given(theta, is_single=False), self.device_rows.base
        for block, rows in self.device_rows:
            for within, _, posterior, log_likelihood in e_steps(rows, at, form == EXPANDED):
                here = slice(block.start + within.start, block.start + within.stop)
                if base is not None:
                    log_likelihood += torch.from_numpy(base[here]).to(log_likelihood.device)
                labels = None if room[2] is None else posterior.argmax(dim=1)
                for into, values in zip(room, (log_likelihood, posterior, labels), strict=True):
                    if into is not None and values is not None:
                        into[here].copy_(values)
