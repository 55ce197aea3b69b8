"""Rows on a device, block by block: one block that stays there, or as many as a pass has to copy."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import MemoryLimitError
from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.rows.tensor_source import TensorSource
from swiftem.data.source import Source
from swiftem.engine.gpu.passes import Extents, Given, Rows, extents, there
from swiftem.engine.small_expectation import TIED
from swiftem.files.scratch import in_words
from swiftem.models.components import BoundComponents, Coefficients
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["DeviceBlocks"]

log = logging.getLogger("swiftem")

NUMBERS = 1 << 22
"""Numbers converted to float64 at a time, on the device."""
BYTES, LEAST_ROWS = 1 << 28, 1 << 16
"""Size of a block that is copied, and its minimum number of rows."""
WORK, COPIES = 160 << 20, 6
"""Memory of temporary arrays, and vectors of statistics in memory at a time."""
SLOTS = 3
"""Blocks under way: one is read, one is copied, one is computed."""


class _Slot:
    """Memory of a block on both sides, and when they may be overwritten."""

    def __init__(self, torch: Any, shape: tuple[int, int], dtype: Any, device: Any) -> None:
        shapes = ((shape, dtype), (shape[:1], torch.float64))
        self._host: list[Any] = [None, None]
        self.there = [torch.empty(shape, dtype=kind, device=device) for shape, kind in shapes]
        self.copied, self.used = torch.cuda.Event(), torch.cuda.Event()

    def send(
        self, torch: Any, copying: Any, y: NDArray[Any], weight: Array | None, *, is_pinned: bool
    ) -> None:
        """Begin to copy features and weights; pinned features go without a copy in between."""
        self.copied.synchronize()
        given = [torch.from_numpy(y) if is_pinned else self._held(torch, 0, y)]
        if weight is not None:
            given.append(self._held(torch, 1, weight))
        with torch.cuda.stream(copying):
            copying.wait_event(self.used)
            for there, part in zip(self.there, given, strict=False):
                there[: len(part)].copy_(part, non_blocking=True)
            self.copied.record(copying)

    def _held(self, torch: Any, number: int, part: NDArray[Any]) -> Any:
        """Return a copy in pinned memory."""
        if self._host[number] is None:
            like = self.there[number]
            self._host[number] = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        held = self._host[number][: len(part)]
        np.copyto(held.numpy(), part)
        return held


class _Known(NamedTuple):
    """What one reading of all rows finds: reach, norm as in :class:`Rows`, and Σ w yyᵀ for "tied", else 0."""

    reach: Array
    norm: float
    products: Array


class DeviceBlocks:
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
    """

    def __init__(
        self, torch: Any, bound: BoundComponents, source: Source, device: str, between: Callable[[], None],
        limit: int | None = None,
    ) -> None:  # fmt: skip
        self._torch, self._bound, self._source, self._between = torch, bound, source, between
        self._device = torch.device(device)
        self._centre = torch.from_numpy(bound.origin).to(self._device)
        self._registered: bool | None = None
        self._slots: list[_Slot] = []
        self._copying: Any = None
        self._is_weighted = getattr(source, "weight", None) is not None
        if isinstance(source, StoredSource):
            self._is_weighted = source.is_weighted
        self._limit, width = limit, len(bound.origin)
        #: Memory of parameters, sums and temporary arrays.
        self._work = WORK + COPIES * 8 * bound.size
        self._size = max(LEAST_ROWS, BYTES // (8 * width))
        #: log h(y) of all rows, or None if it is zero.
        self.base: Array | None = None
        self._totals: dict[int, float] = {}
        self._kept = self._resident()
        if self._kept is None and limit is not None:
            self._size = self._limited(limit)
        elif self._kept is None:
            log.info("rows are copied to %s in every pass", device)
        known = self._read()
        self.products, self._known = known.products, known
        self._reach = torch.from_numpy(known.reach).to(self._device)
        if self._kept is not None:
            self._kept = replace(self._kept, reach=known.reach, norm=known.norm)

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    def given(self, theta: Coefficients) -> Given:
        """Return θ, arrays, on the device."""
        at = there(theta, self._device)
        return Given(self._bound.code, at, Extents(*self.extents(at).tolist()).is_near)

    def extents(self, theta: Coefficients) -> Any:
        """Return how far rows are at θ, tensors, as a tensor: see :class:`Extents`."""
        return extents(theta, self._bound.code, self._reach, self._known.norm)

    @property
    def total_base(self) -> float:
        """The weighted sum of log h(y), noted when rows were read."""
        return sum(self._totals.values())

    @property
    def kept(self) -> Rows | None:
        """All rows, if they stay on the device."""
        return self._kept

    def __iter__(self) -> Iterator[tuple[slice, Rows]]:
        """Yield all rows in order, as slices and blocks on the device; a block is valid until the next."""
        if self._kept is not None:
            yield slice(0, len(self._kept)), self._kept
            return
        for here, y, weight in self._copies():
            yield here, Rows(y, self._centre, weight, self._known.reach, self._known.norm)

    def _resident(self) -> Rows | None:
        """Return all rows, without what is known of them, or None if they do not fit with a copy."""
        source, torch, device, width = self._source, self._torch, self._device, len(self._bound.origin)
        given = isinstance(source, TensorSource) and isinstance(self._bound, BoundGaussians)
        # Their size there and in the form of kernels, which may have twice as many columns.
        needed = 8 * source.n * width * (1 if given else 2)
        self._taken = 0
        if not self.fits(needed):
            return None
        self._taken = needed
        unknown = np.empty(0), 0.0
        if isinstance(source, TensorSource) and given:
            weight = None if source.weight is None else torch.from_numpy(source.weight).to(device)
            return Rows(source.tensor.to(device), self._centre, weight, *unknown)
        y: Any = None
        weights = np.empty(source.n)
        for here, found, weight in self._read_blocks():
            if y is None:
                y = torch.empty((source.n, width), dtype=getattr(torch, found.dtype.name), device=device)
            y[here] = torch.from_numpy(found).to(device)
            if weight is not None:
                weights[here] = weight
        weight = torch.from_numpy(weights).to(device) if self._is_weighted else None
        return Rows(y, self._centre, weight, *unknown)

    def fits(self, needed: int) -> bool:
        """Tell whether as many bytes are free on the device, and within the limit."""
        if self._limit is not None and self._taken + needed + self._work > self._limit:
            return False
        return self._device.type != "cuda" or needed <= int(self._torch.cuda.mem_get_info(self._device)[0])

    def _limited(self, limit: int) -> int:
        """Return the rows of a block within the limit; raise MemoryLimitError if there are too few."""
        of_row = 8 * len(self._bound.origin) * (SLOTS + 2)  # in slots, prepared, and as float64
        size = (limit - self._work) // of_row
        least = min(LEAST_ROWS, self._source.n)
        if size < least:
            needed = self._work + least * of_row
            raise MemoryLimitError(
                f"device_memory_limit must be at least {in_words(needed)} for these data and this model, "
                f"got {in_words(limit)}."
            )
        log.info("rows do not fit into device_memory_limit: they are copied in every pass")
        return min(self._size, int(size))

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
            found = np.asarray(bound.features(y))
            if found.dtype != np.float32:
                found = found.astype(np.float64, copy=False)
            of_rows = bound.log_base(y, first)
            if of_rows is not None:
                if self.base is None:
                    self.base = np.zeros(source.n)
                self.base[here] = of_rows
                self._totals[first] = float(batch.weight @ of_rows)
            found = np.require(found, requirements=["C", "W"])
            yield here, found, batch.weight if self._is_weighted else None

    @property
    def _is_plain(self) -> bool:
        """Whether the rows of an array are the features as they are."""
        source = self._source
        if type(source) is not ArraySource or not isinstance(self._bound, BoundGaussians):
            return False
        flags = source.y.flags
        is_float = source.y.dtype in (np.float32, np.float64)
        return is_float and source.y.ndim == 2 and bool(flags.c_contiguous and flags.writeable)

    def _copies(self) -> Iterator[tuple[slice, Any, Any]]:
        """Yield slices, features and weights on the device; the next block is copied meanwhile."""
        torch, device = self._torch, self._device
        if device.type != "cuda":
            for here, found, weight in self._read_blocks():
                yield here, torch.from_numpy(found), None if weight is None else torch.from_numpy(weight)
            return
        if self._copying is None:
            self._copying = torch.cuda.Stream(device)
        slots, copying, ready, is_pinned = self._slots, self._copying, None, self._pinned()
        for number, (here, found, weight) in enumerate(self._read_blocks()):
            if number == len(slots) < SLOTS:
                shape = (self._size, found.shape[1])
                slots.append(_Slot(torch, shape, getattr(torch, found.dtype.name), device))
            slot = slots[number % SLOTS]
            slot.send(torch, copying, found, weight, is_pinned=is_pinned)
            if ready is not None:
                yield from self._copied(ready)
            ready = slot, here
        if ready is not None:
            yield from self._copied(ready)

    def _copied(self, ready: tuple[_Slot, slice]) -> Iterator[tuple[slice, Any, Any]]:
        """Yield a block whose copy is under way; it may be overwritten after that."""
        slot, here = ready
        now = self._torch.cuda.current_stream(self._device)
        now.wait_event(slot.copied)
        size = here.stop - here.start
        yield here, slot.there[0][:size], slot.there[1][:size] if self._is_weighted else None
        slot.used.record(now)

    def _pinned(self) -> bool:
        """Pin an array in memory, once, and return whether its rows are the features: no copy is needed."""
        if not self._is_plain:
            return False
        if self._registered is None:
            y = self._source.y  # type: ignore[attr-defined]  # of an array
            cuda = self._torch.cuda.cudart()
            self._registered = int(cuda.cudaHostRegister(y.ctypes.data, y.nbytes, 0)) == 0
            if self._registered:
                weakref.finalize(self, cuda.cudaHostUnregister, y.ctypes.data)
        return bool(self._registered)

    def _read(self) -> _Known:
        """Read all rows once."""
        torch, centre = self._torch, self._centre
        reach, norm = torch.zeros_like(centre), torch.zeros((), dtype=torch.float64, device=centre.device)
        products = torch.zeros((len(centre), len(centre)), dtype=torch.float64, device=centre.device)
        for y, weight in self._parts():
            x = y - centre
            reach = torch.maximum(reach, x.abs().amax(dim=0))
            norm = torch.maximum(norm, x.square().sum(dim=1).max())
            if self._bound.code == TIED:
                products += x.T @ (x if weight is None else x * weight[:, None])
        return _Known(reach.cpu().numpy(), float(norm) ** 0.5, products.cpu().numpy())

    def _parts(self) -> Iterator[tuple[Any, Any]]:
        if self._kept is None:
            yield from ((y, weight) for _, y, weight in self._copies())
            return
        y, weight = self._kept.y, self._kept.weight
        size = max(1, NUMBERS // y.shape[1])
        for start in range(0, len(y), size):
            yield y[start : start + size], None if weight is None else weight[start : start + size]
