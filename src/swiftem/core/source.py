"""The contract of a source of samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from swiftem.core.types import Array, Index

if TYPE_CHECKING:
    from swiftem.core.compute import Compute, Placement
    from swiftem.core.model import BoundModel, Model

BLOCK = 4096
"""Samples per block of a pass."""

Access = Literal["sequential", "random"]
Samples = Literal["rows", "tokens", "documents"]


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

    y: np.ndarray
    weight: Array
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


class Layout(NamedTuple):
    """The order of draws from samples that are read block by block.

    Attributes
    ----------
    edges : ndarray of int, shape (B + 1,)
        First indices of the B blocks, and n.
    per_window : int
        Number of consecutive blocks that are shuffled together.
    in_order : bool
        Whether blocks come in the order of the data, or in random order.
    """

    edges: Index
    per_window: int
    in_order: bool

    @property
    def window_rows(self) -> int:
        """Maximum number of rows of a window."""
        return int(np.sort(np.diff(self.edges))[-self.per_window :].sum())


class Reader(Protocol):
    """Reads samples by index for one run."""

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, shape (b,), which may repeat."""

    def serve(self, streams: int) -> None:
        """Prepare for this number of streams of draws."""


class Source(ABC):
    """Base class of sources: samples 0, ..., n − 1 with positive weights, by index or in order.

    A subclass defines ``n``, ``total_weight``, ``access``, :meth:`take`, :meth:`blocks` and
    :meth:`fingerprint`. Everything else that the library asks of a source has a default here.
    """

    access: ClassVar[Access]
    """``"random"`` if :meth:`take` works, ``"sequential"`` if only :meth:`blocks` does."""
    samples: ClassVar[Samples] = "rows"
    """What the samples are."""
    layout: Layout | None = None
    """How samples are drawn block by block, or None if they are drawn by index."""
    names: tuple[str, ...] = ()
    """Names of the columns; empty if they have none."""
    allow_missing: bool = False
    """Whether NaN is a missing cell, instead of an error."""
    weight: Array | None = None
    """Weights of all samples, shape (n,), if they are in memory; None if all are one."""
    n_words: int = 0
    """Number of different words, if samples are tokens or documents, else 0."""
    n_documents: int = 0
    """Number of documents, if samples are tokens, else 0."""
    chunk_rows: int = BLOCK
    """Samples per part of a full pass, if samples are read on demand."""
    row_bytes: int = 0
    """Size of a sample and its weight, if samples are read on demand."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of samples whose weight is not zero."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the weights: n if none were given."""

    @abstractmethod
    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, shape (b,), which may repeat."""

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all samples in order, at most ``rows`` at a time."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes if the samples or their weights change."""

    @property
    def is_weighted(self) -> bool:
        """Whether weights were given."""
        return self.weight is not None

    @property
    def rows_in_memory(self) -> np.ndarray | None:
        """All rows, (n,) or (n, d), if they are in an array that compiled code can read."""
        return None

    @cached_property
    def has_missing(self) -> bool:
        """Whether a cell is missing, found by one pass."""
        return self.allow_missing and any(_any_missing(batch.y) for batch in self.blocks(BLOCK))

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Results of passes, such as the mean of the rows, so that they are not computed twice."""
        return {}

    def reader(self) -> Reader:
        """Return a reader of samples by index: the source itself, if it needs no buffers for a run."""
        return self

    def serve(self, streams: int) -> None:  # noqa: B027  # nothing to prepare by default
        """Prepare for this number of streams of draws."""

    def bind(self, model: Model) -> BoundModel:
        """Return the model for these samples."""
        if model.missing == "error" and self.has_missing:
            raise ValueError("missing must be 'ignore' for rows with allow_missing=True, got 'error'.")
        return model.bind(self)

    def compute(self, bound: BoundModel, placement: Placement) -> Compute:
        """Return the E-steps of a bound model on these samples."""
        return bound.compute(self, placement)

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes that a run takes for the samples, in addition to the source itself.

        Parameters
        ----------
        streams : int
            Number of streams of draws by index; 0 if the method only makes full passes.
        """
        return 0


def _any_missing(y: np.ndarray) -> bool:
    # The sum needs no temporary array in the usual case, without NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        return y.dtype.kind == "f" and bool(np.isnan(y.sum(dtype=np.float64))) and bool(np.isnan(y).any())
