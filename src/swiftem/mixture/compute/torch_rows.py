"""Rows on a device of PyTorch: all of them at once, or block by block, copied there in every pass."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from swiftem.core.checks import MemoryLimitError
from swiftem.core.files import in_words
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.tensor import TensorSource
from swiftem.kernels.torch_device import LIVE, copied
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["DeviceRows", "DeviceTheta", "Rows", "Sums"]

log = logging.getLogger("swiftem")

NUMBERS = 1 << 22
"""Numbers converted to float64 at a time, on the device."""
BYTES, LEAST_ROWS = 1 << 28, 1 << 16
"""Size of a block that is copied, and its minimum number of rows."""
WORK, COPIES = 160 << 20, 6
"""Memory of temporary arrays, and vectors of statistics in memory at a time."""

Floats = NDArray[np.float32 | np.float64]


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
    """

    y: Tensor
    centre: Tensor
    weight: Tensor | None
    reach: Tensor

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


class Sums(NamedTuple):
    """Sums over rows: ``sums`` (M, 1 + p) of w·r ⊗ [1, T(y)], and Σ w log g without log h(y); float64."""

    sums: Tensor
    log_likelihood: Tensor


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
        self._is_registered = False
        #: Memory of parameters, sums and temporary arrays.
        self._work = WORK + COPIES * 8 * bound.size
        self._size = max(LEAST_ROWS, BYTES // (8 * len(bound.origin)))
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
        for here, (y, *weight) in copied(self._host_blocks(), self.device):
            yield here, Rows(y, self._centre, weight[0] if weight else None, self.reach)

    def fits(self, needed: int) -> bool:
        """Return whether as many bytes are free on the device, and within the limit."""
        if self._limit is not None and self._taken + needed + self._work > self._limit:
            return False
        return self.device.type != "cuda" or needed <= int(torch.cuda.mem_get_info(self.device)[0])

    def _all_rows(self) -> Rows | None:
        """Return all rows, before they are measured, or None if they do not fit with a copy."""
        source, device, width = self._source, self.device, len(self._bound.origin)
        is_given = isinstance(source, TensorSource) and isinstance(self._bound, BoundGaussians)
        # Their size there and in the form of kernels, which may have twice as many columns.
        needed = 8 * source.n * width * (1 if is_given else 2)
        self._taken = 0
        if not self.fits(needed):
            return None
        self._taken = needed
        if isinstance(source, TensorSource) and is_given:
            given = None if source.weight is None else torch.from_numpy(source.weight).to(device)
            return Rows(source.tensor.to(device), self._centre, given, self._centre)
        y: Tensor | None = None
        weights = torch.empty(source.n, dtype=torch.float64, device=device) if source.is_weighted else None
        for here, (features, *weight) in self._host_blocks():
            if y is None:
                y = torch.empty((source.n, width), dtype=features.dtype, device=device)
            y[here] = features.to(device)
            if weights is not None:
                weights[here] = weight[0].to(device)
        assert y is not None, "a source has at least one sample"
        return Rows(y, self._centre, weights, self._centre)

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
        self.reach, d = torch.zeros_like(self._centre), len(self._centre)
        self.norm, self.products = self.reach.new_zeros(()), self.reach.new_zeros((d, d))
        reach = self.reach.clone()
        for _, rows in self:
            for here in rows.slices(d, NUMBERS):
                x = rows.centred(here)
                reach = torch.maximum(reach, x.abs().amax(dim=0))
                self.norm = torch.maximum(self.norm, x.square().sum(dim=1).max())
                if self._bound.shares_products:
                    self.products += x.T @ (x if rows.weight is None else x * rows.weight[here][:, None])
        self.reach, self.norm = reach, self.norm.sqrt()
        if self.resident is not None:
            self.resident = replace(self.resident, reach=reach)

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
    def _plain(self) -> Floats | None:
        """The rows of an array, if they are the features as they are, else None."""
        rows = self._source.rows_in_memory
        if rows is None or not isinstance(self._bound, BoundGaussians) or rows.ndim != 2:
            return None
        is_float = rows.dtype in (np.float32, np.float64)
        return rows if is_float and rows.flags.c_contiguous and rows.flags.writeable else None
