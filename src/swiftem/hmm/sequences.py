"""Sequences of steps as samples: consecutive rows of an array or of files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Layout, Reader, Source
from swiftem.core.types import Array, Index, Rows
from swiftem.data.array import ArraySource
from swiftem.data.blocks import BlockSource
from swiftem.data.stored import StoredSource
from swiftem.kernels.threads import get_threads

STEPS = 4096
"""Approximate number of steps of a part of a pass, unless one sequence is longer."""


class Steps(NamedTuple):
    """Steps of b sequences, one after the other.

    Attributes
    ----------
    rows : ndarray, shape (t, d)
        The steps.
    begin : ndarray of int, shape (b + 1,)
        Sequence i has rows begin[i] to begin[i + 1] − 1.
    """

    rows: Rows
    begin: Index

    @property
    def lengths(self) -> Index:
        """Number of steps of each sequence, (b,)."""
        return np.diff(self.begin)

    def piece(self, place: slice) -> Steps:
        """Return some of the steps, as one sequence."""
        return Steps(self.rows[place], np.array([0, place.stop - place.start]))

    def batch(self, first: int = 0) -> Batch:
        """Return the steps as a batch of rows, numbered from ``first``, as emissions take them."""
        n = len(self.rows)
        return Batch(self.rows, np.ones(n), np.arange(first, first + n))


def steps_of(batch: Batch) -> Steps:
    """Return the steps of a batch of sequences."""
    assert isinstance(batch.y, Steps)
    return batch.y


def parts_of(edges: Index, most: int = 1 << 62) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of the sequences of each part: about a page of steps, at most ``most`` sequences.

    ``edges`` (n + 1,) are the first steps of the sequences, and the number of steps.

    >>> list(parts_of(STEPS * np.array([0, 1, 3, 4]) // 2))
    [(0, 1), (1, 2), (2, 3)]
    """
    start = 0
    while start < len(edges) - 1:
        stop = int(np.searchsorted(edges, edges[start] + STEPS, side="right")) - 1
        stop = min(max(stop, start + 1), start + most)
        yield start, stop
        start = stop


class SequenceSource(Source):
    """Sequences: consecutive rows of another source.

    Weights are of sequences; the total weight is of the steps, so that objectives are means per step.

    Parameters
    ----------
    rows : ArraySource or StoredSource
        The steps, without weights.
    lengths : ndarray of int, shape (n,)
        Number of steps of each sequence, positive; their sum is the number of rows.
    weight : ndarray, shape (n,), optional
        Weights of the sequences; sequences of weight zero are left out.

    Examples
    --------
    >>> source = SequenceSource(ArraySource(np.arange(5.0)[:, None]), np.array([2, 3]))
    >>> source.n, source.total_weight, source.take(np.array([1])).y.rows.ravel()
    (2, 5.0, array([2., 3., 4.]))
    """

    samples: ClassVar[Any] = "sequences"

    def __init__(self, rows: ArraySource | StoredSource, lengths: Index, weight: Array | None = None) -> None:
        self.rows, self.lengths, self.weight = rows, np.asarray(lengths, dtype=np.intp), weight
        self.first: Index = np.cumsum(self.lengths) - self.lengths
        if weight is not None and not weight.all():
            kept = weight > 0.0
            self.lengths, self.first, self.weight = self.lengths[kept], self.first[kept], weight[kept]
        self.names, self.allow_missing = rows.names, rows.allow_missing
        if rows.layout is not None:
            edges = np.unique(np.searchsorted(self.first, rows.layout.edges))
            self.layout = Layout(edges, rows.layout.per_window, rows.layout.in_order)
            self.row_bytes = int(np.ceil(self.lengths.mean())) * rows.row_bytes

    @property
    def access(self) -> Access:  # type: ignore[override]
        """As of the rows."""
        return self.rows.access

    @property
    def n(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    @cached_property
    def total_weight(self) -> float:
        """Weighted number of steps."""
        return float(self.lengths.sum() if self.weight is None else self.weight @ self.lengths)

    @cached_property
    def has_missing(self) -> bool:
        """Whether a cell is missing."""
        return self.rows.has_missing

    @cached_property
    def steps(self) -> ArraySource | StoredSource:
        """All steps as rows, with the weights of their sequences."""
        if self.weight is None and self.lengths.sum() == self.rows.n:
            return self.rows
        if isinstance(self.rows, ArraySource):
            batch = self.take(np.arange(self.n))
            return ArraySource(steps_of(batch).rows, self._of_steps(batch), allow_missing=self.allow_missing)
        return BlockSource(
            lambda: ((steps_of(batch).rows, self._of_steps(batch)) for batch in self.blocks(self.n)),
            allow_missing=self.allow_missing,
        )

    def some(self, steps: int) -> SequenceSource:
        """Return random sequences of about so many steps, always the same, or all if they are few."""
        order = np.random.default_rng(0).permutation(self.n)
        enough = int(np.searchsorted(np.cumsum(self.lengths[order]), steps)) + 1
        if enough >= self.n:
            return self
        batch = self.take(np.sort(order[: max(enough, 2)]))
        rows = ArraySource(steps_of(batch).rows, allow_missing=self.allow_missing)
        return SequenceSource(rows, steps_of(batch).lengths, None if self.weight is None else batch.weight)

    def _of_steps(self, batch: Batch) -> Array | None:
        return None if self.weight is None else np.repeat(batch.weight, steps_of(batch).lengths)

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes of the rows that passes and draws hold, a few for each thread."""
        held = max(STEPS, int(self.lengths.max())) * self.rows.row_bytes
        return self.rows.bytes_needed(streams) + 16 * self.n + 2 * (get_threads() + 4) * held

    def reader(self) -> Reader:
        """Return a reader with buffers of its own, if rows are not in memory."""
        return self if isinstance(self.rows, ArraySource) else SequenceReader(self)

    def take(self, index: Index) -> Batch:
        """Return the sequences with these indices."""
        return self.taken(index, self.rows)

    def taken(self, index: Index, rows: Reader) -> Batch:
        """Return the sequences with these indices, whose steps are taken from ``rows``."""
        index = np.asarray(index, dtype=np.intp)
        at, begin = self._rows_of(index)
        first, last = (int(at[0]), int(at[-1])) if len(at) else (0, -1)
        if isinstance(rows, ArraySource) and len(at) == last - first + 1 and (np.diff(index) == 1).all():
            y = rows.y[first : last + 1]  # no copy
        else:
            y = rows.take(at).y
        return Batch(Steps(y, begin), self._weights(index), index)  # type: ignore[arg-type]

    def _rows_of(self, index: Index) -> tuple[Index, Index]:
        """Return the rows of sequences, and where each of these begins among them."""
        lengths = self.lengths[index]
        begin = np.concatenate([[0], np.cumsum(lengths)])
        return np.arange(begin[-1]) + np.repeat(self.first[index] - begin[:-1], lengths), begin

    def _weights(self, index: Index) -> Array:
        return np.ones(len(index)) if self.weight is None else self.weight[index]

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all sequences in order, at most ``rows`` at a time, and few steps unless one has many."""
        held, at = steps_of(self.take(np.arange(0))).rows, 0
        given = (batch.y for batch in self.rows.blocks(max(self.rows.chunk_rows, STEPS)))
        for start, stop in parts_of(np.append(0, np.cumsum(self.lengths)), rows):
            index = np.arange(start, stop)
            if isinstance(self.rows, ArraySource):
                yield self.take(index)
                continue
            which, begin = self._rows_of(index)
            low, parts, have = int(which[0]), [held], at + len(held)
            while have <= which[-1]:
                parts.append(next(given))
                have += len(parts[-1])
            held, at = (np.concatenate(parts) if len(parts) > 1 else held)[low - at :], low
            yield Batch(Steps(held[which - low], begin), self._weights(index), index)  # type: ignore[arg-type]

    def fingerprint(self) -> str:
        """Return a hash of the rows, the lengths and the weights."""
        return fingerprint(f"sequences{self.rows.fingerprint()}", self.lengths, self.first, self.weight)


class SequenceReader:
    """Reads sequences by index, and keeps blocks of their rows.

    Parameters
    ----------
    source : SequenceSource
        The sequences.
    """

    def __init__(self, source: SequenceSource) -> None:
        self._source, self._rows = source, source.rows.reader()

    def serve(self, streams: int) -> None:
        """Prepare for this number of streams of draws: a sequence may end in the next block."""
        self._rows.serve(streams + 1)

    def take(self, index: Index) -> Batch:
        """Return the sequences with these indices."""
        return self._source.taken(index, self._rows)
