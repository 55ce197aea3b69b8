"""The contract of a source: where samples come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from swiftem._typing import Array, Index

__all__ = ["Access", "Batch", "Source"]

Access = Literal["sequential", "random"]


class Batch(NamedTuple):
    """Some samples: what a model sees of the data.

    Attributes
    ----------
    y : ndarray, shape (b,) or (b, d)
        The observations; for tokens an integer array (b, 2) of document and word.
    weight : ndarray, shape (b,)
        Their weights, as given; ones when none were.
    index : ndarray, shape (b,)
        Their sample numbers.
    """

    y: NDArray[Any]
    weight: Array
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


@runtime_checkable
class Source(Protocol):
    """Samples 0, ..., n − 1 with positive weights, by number or in order."""

    @property
    def n(self) -> int:
        """Number of samples; those of weight zero are not there."""
        ...

    @property
    def total_weight(self) -> float:
        """Sum of the weights: n when none were given."""
        ...

    @property
    def access(self) -> Access:
        """``"random"`` when :meth:`take` works, ``"sequential"`` when only :meth:`blocks` does."""
        ...

    def take(self, index: Index) -> Batch:
        """Return the samples with these numbers, shape (b,), repeated where a number is."""
        ...

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all samples in order, at most ``rows`` at a time."""
        ...

    def fingerprint(self) -> str:
        """Return a text that changes when the samples or their weights do."""
        ...
