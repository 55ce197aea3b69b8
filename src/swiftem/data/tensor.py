"""The rows of a tensor as samples: they stay on their device, copied on demand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_dense, read_sample_weight, torch_of
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource

NUMBERS = 1 << 21
"""Numbers converted to float64 at a time."""


class TensorSource(ArraySource):
    """The rows of a tensor on any device; the tensor is not copied.

    Parameters
    ----------
    tensor : tensor of PyTorch, or anything with DLPack, shape (n, d)
        Real numbers, finite; other types than float32 become float64.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights. Rows of weight zero are ignored: the others are numbered without them.
    """

    def __init__(self, tensor: Any, sample_weight: ArrayLike | None = None) -> None:
        torch = torch_of("a tensor")
        check_dense(tensor)
        rows = tensor.detach() if isinstance(tensor, torch.Tensor) else torch.from_dlpack(tensor)
        if rows.ndim != 2 or not rows.numel():
            raise ValueError(
                f"data must have shape (n, d) with at least one row and one column, got {tuple(rows.shape)}."
            )
        if rows.is_complex():
            raise ValueError("data must be real numbers, got complex ones.")
        if rows.dtype not in (torch.float32, torch.float64):
            rows = rows.to(torch.float64)
        weight = read_sample_weight(sample_weight, len(rows), self.samples.removesuffix("s"))
        self._all = rows
        if weight is not None and not weight.all():
            rows, weight = rows[torch.from_numpy(weight > 0.0).to(rows.device)], weight[weight > 0.0]
        #: The rows, on their device.
        self.tensor = rows.contiguous()
        self._weight, self.allow_missing = weight, False
        largest = max(abs(float(end)) for end in torch.aminmax(self.tensor))
        if not np.isfinite(largest):
            is_bad = ~torch.isfinite(self.tensor).all(dim=1)
            row = int(is_bad.to(torch.uint8).argmax())
            raise ValueError(
                f"data must be finite, got NaN or infinity in row {row}: leave out or fill in such rows, or "
                "use missing='ignore' with device='cpu' if cells are missing."
            )
        #: The largest absolute value.
        self.largest = largest

    def unweighted(self) -> ArraySource:
        """Return a source of all rows, also of weight zero, without weights."""
        return self if self._weight is None else TensorSource(self._all)

    @property
    def tail(self) -> tuple[int, ...]:
        """Shape of a row."""
        return tuple(self.tensor.shape[1:])

    @property
    def dtype(self) -> np.dtype:
        """Precision of the rows."""
        return np.dtype(str(self.tensor.dtype).removeprefix("torch."))

    @cached_property
    def y(self) -> np.ndarray:  # type: ignore[override]
        """All rows, copied to the CPU's memory."""
        return self._rows(slice(None))

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.tensor)

    def _rows(self, which: Index | slice) -> np.ndarray:
        """Return a copy of some rows."""
        if isinstance(which, np.ndarray):
            which = torch_of("a tensor").from_numpy(np.ascontiguousarray(which)).to(self.tensor.device)
        copied: np.ndarray = self.tensor[which].cpu().numpy()
        return copied

    def bytes_needed(self, streams: int) -> int:
        """Return 0: the rows stay on their device."""
        return 0

    def mean_row(self) -> Array:
        """Return the weighted mean of the rows, shape (d,), computed on the device."""
        origin = self.tensor[0].double()
        total = origin.new_zeros(len(origin))
        for away, weight in self._differences(origin):
            total += away.sum(dim=0) if weight is None else weight @ away
        mean: Array = (origin + total / self.total_weight).cpu().numpy()
        return mean

    def mean_products(self, centre: Array) -> Array:
        """Return the weighted mean of yyᵀ, of rows minus a centre, (d, d), computed on the device."""
        origin = torch_of("a tensor").from_numpy(centre).to(self.tensor.device)
        total = origin.new_zeros((len(origin), len(origin)))
        for away, weight in self._differences(origin):
            total += away.T @ (away if weight is None else away * weight[:, None])
        products: Array = (total / self.total_weight).cpu().numpy()
        return products

    def _differences(self, origin: Any) -> Iterator[tuple[Any, Any]]:
        """Yield blocks of rows minus ``origin``, float64, with their weights, or None."""
        weights = None if self._weight is None else torch_of("a tensor").from_numpy(self._weight)
        rows = max(1, NUMBERS // len(origin))
        for start in range(0, self.n, rows):
            here = None if weights is None else weights[start : start + rows].to(origin.device)
            yield self.tensor[start : start + rows] - origin, here
