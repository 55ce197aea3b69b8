"""The rows of an array as samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_numbers, check_finite, read_sample_weight
from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Source
from swiftem.core.types import Array, Index


class ArraySource(Source):
    """The rows of an array, in memory or memory-mapped; the array is not copied.

    Parameters
    ----------
    y : array-like, shape (n,) or (n, d)
        Real numbers, finite.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights. Rows of weight zero are ignored: the others are numbered without them.
    allow_missing : bool
        Whether NaN is a missing cell, for models that take them, instead of an error.

    Examples
    --------
    >>> from swiftem.data import ArraySource
    >>> source = ArraySource([[1.0], [2.0], [3.0]], sample_weight=[1.0, 0.0, 3.0])
    >>> source.n, source.total_weight
    (2, 4.0)
    >>> source.take([1]).y
    array([[3.]])
    """

    access: ClassVar[Access] = "random"

    def __init__(
        self, y: ArrayLike, sample_weight: ArrayLike | None = None, *, allow_missing: bool = False
    ) -> None:
        array = as_numbers("data", y, allow_missing)
        if array.ndim not in (1, 2):
            raise ValueError(f"data must have shape (n,) or (n, d), got {array.shape}.")
        if array.size == 0:
            raise ValueError(f"data must have at least one row and one column, got shape {array.shape}.")
        if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
        weight = None
        if sample_weight is not None:
            weight = read_sample_weight(sample_weight, len(array), self.samples.removesuffix("s"))
        self._all = array
        if weight is not None and not weight.all():
            array, weight = array[weight > 0], weight[weight > 0]
        check_finite("data", array, allow_missing)
        self.y = array
        self._weight, self.allow_missing = weight, allow_missing

    @classmethod
    def checked(cls, y: np.ndarray, weight: Array | None = None, allow_missing: bool = False) -> ArraySource:
        """Return the source of arrays that were checked before: finite, and without weights of zero."""
        source = cls.__new__(cls)
        source.y, source._weight, source.allow_missing, source._all = y, weight, allow_missing, y
        return source

    def like(self, y: np.ndarray, weight: Array | None = None) -> ArraySource:
        """Return a source of other rows, in which cells may be missing if they may be here."""
        return ArraySource(y, weight, allow_missing=self.allow_missing)

    def unweighted(self) -> ArraySource:
        """Return a source of all rows, also of weight zero, without weights."""
        return self if self._weight is None else ArraySource(self._all, allow_missing=self.allow_missing)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self._weight is None else float(self._weight.sum())

    def take(self, index: Index) -> Batch:
        """Return the rows with these indices."""
        index = np.asarray(index)
        return Batch(self._rows(index), self._weights(index), index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            index = np.arange(start, min(start + rows, self.n))
            yield Batch(self._rows(slice(start, start + rows)), self._weights(index), index)

    def _rows(self, which: Index | slice) -> np.ndarray:
        return self.y[which]

    @property
    def weight(self) -> Array | None:  # type: ignore[override]
        """Weights of all samples, shape (n,), or None if all are one."""
        return self._weight

    @property
    def tail(self) -> tuple[int, ...]:
        """Shape of a row."""
        return self.y.shape[1:]

    @property
    def rows_in_memory(self) -> np.ndarray | None:
        """All rows; None for a subclass, which may read them in another way."""
        return self.y if type(self) is ArraySource else None

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes of a copy that some loops make of other numbers than float64."""
        is_usable = self.y.dtype == np.float64 and self.y.flags.c_contiguous
        return 0 if is_usable else 8 * self.y.size

    def fingerprint(self) -> str:
        """Return a hash of the rows and weights."""
        return fingerprint("array", self.y, self._weight)

    def _weights(self, index: Index) -> Array:
        return np.ones(len(index)) if self._weight is None else self._weight[index]
