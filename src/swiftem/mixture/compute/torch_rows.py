"""Rows on a device of PyTorch: all of them at once, or block by block, copied there in every pass."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from swiftem.core.checks import MemoryLimitError
from swiftem.core.scratch import in_words
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.tensor import TensorSource
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.compute.numpy import FARTHEST
from swiftem.mixture.covariance import TIED
from swiftem.mixture.gaussians import BoundGaussians

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DeviceRows", "Extents", "Rows", "Sums"]

log = logging.getLogger("swiftem")

NUMBERS = 1 << 22
"""Numbers converted to float64 at a time, on the device."""
BYTES, LEAST_ROWS = 1 << 28, 1 << 16
"""Size of a block that is copied, and its minimum number of rows."""
WORK, COPIES = 160 << 20, 6
"""Memory of temporary arrays, and vectors of statistics in memory at a time."""
SLOTS = 3
"""Blocks under way: one is read, one is copied, one is computed."""


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
    norm : float
        Largest Euclidean norm of a row minus the centre.
    """

    y: Tensor
    centre: Tensor
    weight: Tensor | None
    reach: Tensor
    norm: float

    def __len__(self) -> int:
        return len(self.y)

    def centred(self, here: slice) -> Tensor:
        """Return features minus the centre (b, d), float64."""
        return self.y[here] - self.centre  # of float64: no copy of the rows in between


class Sums(NamedTuple):
    """Sums over rows: ``sums`` (M, 1 + p) of w·r ⊗ [1, T(y)], and Σ w log g without log h(y); float64."""

    sums: Tensor
    log_likelihood: Tensor


class Extents(NamedTuple):
    """How far rows are at some θ, which decides how a pass is computed.

    Attributes
    ----------
    squared_reach : float
        The largest squared distance of rows and means from the centre, in standard deviations; 0 if only φ
        is used.
    logit : float
        A bound on the largest term of expanded squares.
    """

    squared_reach: float
    logit: float

    @property
    def is_near(self) -> bool:
        """Whether expanded squares keep enough digits in float64."""
        return self.squared_reach <= FARTHEST


class _Slot:
    """Memory of a block on both sides, and when it may be overwritten."""

    def __init__(self, shape: tuple[int, int], dtype: Any, device: Any) -> None:
        shapes = ((shape, dtype), (shape[:1], torch.float64))
        self._pinned: list[Any] = [None, None]
        self.parts = [torch.empty(shape, dtype=kind, device=device) for shape, kind in shapes]
        self.copied, self.used = torch.cuda.Event(), torch.cuda.Event()

    def send(self, copying: Any, y: NDArray[Any], weight: Array | None, *, is_pinned: bool) -> None:
        """Begin to copy features and weights; pinned features go without a copy in between."""
        self.copied.synchronize()
        given = [torch.from_numpy(y) if is_pinned else self._pin(0, y)]
        if weight is not None:
            given.append(self._pin(1, weight))
        with torch.cuda.stream(copying):
            copying.wait_event(self.used)
            for into, part in zip(self.parts, given, strict=False):
                into[: len(part)].copy_(part, non_blocking=True)
            self.copied.record(copying)

    def _pin(self, number: int, part: NDArray[Any]) -> Tensor:
        """Return a copy in pinned memory."""
        if self._pinned[number] is None:
            like = self.parts[number]
            self._pinned[number] = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        pinned = self._pinned[number][: len(part)]
        np.copyto(pinned.numpy(), part)
        return pinned


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
    reach, norm
        As in :class:`Rows`.
    products : tensor, shape (d, d)
        Σ w yyᵀ of rows minus the centre if the kind is "tied", else zero.
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
        self._is_registered: bool | None = None
        self._slots: list[_Slot] = []
        self._copying: Any = None
        self._is_weighted = getattr(source, "weight", None) is not None
        if isinstance(source, StoredSource):
            self._is_weighted = source.is_weighted
        #: Memory of parameters, sums and temporary arrays.
        self._work = WORK + COPIES * 8 * (bound.size or 0)
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
        for here, y, weight in self._copies():
            yield here, Rows(y, self._centre, weight, self.reach, self.norm)

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
        unknown = self._centre, 0.0
        if isinstance(source, TensorSource) and is_given:
            weight = None if source.weight is None else torch.from_numpy(source.weight).to(device)
            return Rows(source.tensor.to(device), self._centre, weight, *unknown)
        y: Any = None
        weights = np.empty(source.n)
        for here, features, weight in self._read_blocks():
            if y is None:
                y = torch.empty((source.n, width), dtype=getattr(torch, features.dtype.name), device=device)
            y[here] = torch.from_numpy(features).to(device)
            if weight is not None:
                weights[here] = weight
        weight = torch.from_numpy(weights).to(device) if self._is_weighted else None
        return Rows(y, self._centre, weight, *unknown)

    def _rows_within(self, limit: int) -> int:
        """Return the rows of a block within the limit; raise MemoryLimitError if there are too few."""
        bytes_per_row = 8 * len(self._bound.origin) * (SLOTS + 2)  # in slots, prepared, and as float64
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
        centre = self._centre
        reach, norm = torch.zeros_like(centre), centre.new_zeros(())
        products = centre.new_zeros((len(centre), len(centre)))
        for y, weight in self._parts():
            x = y - centre
            reach = torch.maximum(reach, x.abs().amax(dim=0))
            norm = torch.maximum(norm, x.square().sum(dim=1).max())
            if self._bound.code == TIED:
                products += x.T @ (x if weight is None else x * weight[:, None])
        self.reach, self.norm, self.products = reach, float(norm) ** 0.5, products
        if self.resident is not None:
            self.resident = replace(self.resident, reach=self.reach, norm=self.norm)

    def _parts(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield features and weights of parts of the rows."""
        if self.resident is None:
            yield from ((y, weight) for _, y, weight in self._copies())
            return
        y, weight = self.resident.y, self.resident.weight
        size = max(1, NUMBERS // y.shape[1])
        for start in range(0, len(y), size):
            yield y[start : start + size], None if weight is None else weight[start : start + size]

    def _read_blocks(self) -> Iterator[tuple[slice, NDArray[Any], Array | None]]:
        """Yield slices, features, float32 or float64, and weights, if there are any; note log h(y)."""
        bound, source = self._bound, self._source
        if self._is_plain:
            assert isinstance(source, ArraySource)
            for first in range(0, source.n, self._size):
                self._between()
                here = slice(first, min(first + self._size, source.n))
                yield here, source.y[here], None if source.weight is None else source.weight[here]
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
            features = np.require(features, requirements=["C", "W"])
            yield here, features, batch.weight if self._is_weighted else None

    @property
    def _is_plain(self) -> bool:
        """Whether the rows of an array are the features as they are."""
        source = self._source
        if type(source) is not ArraySource or not isinstance(self._bound, BoundGaussians):
            return False
        flags = source.y.flags
        is_float = source.y.dtype in (np.float32, np.float64)
        return is_float and source.y.ndim == 2 and bool(flags.c_contiguous and flags.writeable)

    def _copies(self) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Yield slices, features and weights on the device; the next block is copied meanwhile."""
        if self.device.type != "cuda":
            for here, y, weight in self._read_blocks():
                yield here, torch.from_numpy(y), None if weight is None else torch.from_numpy(weight)
            return
        if self._copying is None:
            self._copying = torch.cuda.Stream(self.device)
        slots, ready, is_pinned = self._slots, None, self._pin()
        for number, (here, y, weight) in enumerate(self._read_blocks()):
            if number == len(slots) < SLOTS:
                shape = (self._size, y.shape[1])
                slots.append(_Slot(shape, getattr(torch, y.dtype.name), self.device))
            slot = slots[number % SLOTS]
            slot.send(self._copying, y, weight, is_pinned=is_pinned)
            if ready is not None:
                yield from self._copied(*ready)
            ready = slot, here
        if ready is not None:
            yield from self._copied(*ready)

    def _copied(self, slot: _Slot, here: slice) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Yield a block whose copy is under way; it may be overwritten after that."""
        now = torch.cuda.current_stream(self.device)
        now.wait_event(slot.copied)
        y, weight = (part[: here.stop - here.start] for part in slot.parts)
        yield here, y, weight if self._is_weighted else None
        slot.used.record(now)

    def _pin(self) -> bool:
        """Pin an array in memory, once; return whether its rows are the features, so that none is copied."""
        if not self._is_plain:
            return False
        if self._is_registered is None:
            y = self._source.y  # type: ignore[attr-defined]  # of an array
            cuda = torch.cuda.cudart()
            self._is_registered = int(cuda.cudaHostRegister(y.ctypes.data, y.nbytes, 0)) == 0
            if self._is_registered:
                weakref.finalize(self, cuda.cudaHostUnregister, y.ctypes.data)
        return bool(self._is_registered)
