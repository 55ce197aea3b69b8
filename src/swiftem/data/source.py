"""The contract of a source of samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from swiftem._typing import Array, Index

__all__ = ["Access", "Batch", "Source"]

Access = Literal["sequential", "random"]


class Batch(NamedTuple):
    """A batch of samples, as passed to a model.

    Attributes
    ----------
    y : ndarray, shape (b,) or (b, d)
        The observations; for tokens an integer array (b, 2) of document and word.
    weight : ndarray, shape (b,)
        Their weights, as given; ones if there are none.
    index : ndarray, shape (b,)
        Their indices.
    """

    y: NDArray[Any]
    weight: Array
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


@runtime_checkable
class Source(Protocol):
    """Samples 0, ..., n − 1 with positive weights, by index or in order."""

    @property
    def n(self) -> int:
        """Number of samples, without those of weight zero."""
        ...

    @property
    def total_weight(self) -> float:
        """Sum of the weights: n if none were given."""
        ...

    @property
    def access(self) -> Access:
        """``"random"`` if :meth:`take` works, ``"sequential"`` if only :meth:`blocks` does."""
        ...

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, shape (b,), which may repeat."""
        ...

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all samples in order, at most ``rows`` at a time."""
        ...

    def fingerprint(self) -> str:
        """Return a text that changes if the samples or their weights change."""
        ...
