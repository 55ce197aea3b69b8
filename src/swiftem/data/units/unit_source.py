r"""Units as samples: stochastic methods draw them, and store the statistics of each.

A unit u of rows with weights w has the mean statistics :math:`\bar s_u(\theta) = W_u^{-1} \sum_i w_i
s_i(\theta)` and the weight :math:`W_u = \sum_i w_i`. Their weighted mean is that of all rows, so that em is
exact, and iem, sem-vr and fiem run on Algorithm 1 with n = number of units: their memory is P × q numbers,
however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.source import Access, Batch
from swiftem.data.units.pool import LocalPool, Pool
from swiftem.data.units.unit import Looked, Place, look, prepare, sample

__all__ = ["UnitSamples", "UnitSource"]


class UnitSamples:
    """Units as samples of a source: batches have their indices, as the content is not moved."""

    n: int
    weight: Array

    def take(self, index: Index) -> Batch:
        """Return units by index: ``y`` has the indices."""
        index = np.asarray(index)
        return Batch(index, self.weight[index], index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield the indices of all units in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            yield self.take(np.arange(start, min(start + rows, self.n)))


class UnitSource(UnitSamples):
    """Units of rows; their order is part of the data.

    Use :func:`swiftem.data.open_units` for files, or pass a Dask collection as data.

    Parameters
    ----------
    units : sequence
        Arrays (b, d), data frames, lazy ones (Delayed), or blocks of files.
    weights : sequence, optional
        Weights of the rows of each unit, divided like them.
    pool : Pool, optional
        Executor that reads the units; by default this process.
    token : str
        Identifies the data: it changes if they change.
    size : float, optional
        Bytes of all rows, if known before they are read.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    notes : tuple of str
        Remarks on how files were read.

    Attributes
    ----------
    n : int
        Number of units that have rows of positive weight.
    rows : int
        Number of such rows.
    total_weight : float
        Sum of their weights.
    masses : ndarray, shape (d,), or None
        Weight of the observed cells of each column; None if no cell is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.data.units.unit_source import UnitSource
    >>> source = UnitSource([np.zeros((3, 2)), np.ones((1, 2))])
    >>> source.n, source.rows, source.mean
    (2, 4, array([0.25, 0.25]))
    """

    access: ClassVar[Access] = "random"

    def __init__(
        self, units: Sequence[Any], weights: Sequence[Any] | None = None, *, pool: Pool | None = None,
        token: str = "", where: Sequence[str] | None = None, names: Sequence[str] = (),
        size: float | None = None, allow_missing: bool = False, notes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.allow_missing, self.notes = allow_missing, notes
        self.pool: Pool = pool or LocalPool()
        self._token = token
        said = where or [f"unit {number} of data" for number in range(len(units))]
        places = [Place(name, allow_missing) for name in said]
        all_weights = [None] * len(units) if weights is None else list(weights)
        if len(all_weights) != len(units):
            raise ValueError(
                f"sample_weight must be chunked like the rows, in {len(units)} units, got {len(all_weights)}."
            )
        self.is_weighted = weights is not None
        #: Arguments of a task for each unit: the unit, its weights, and its place.
        self.work = list(zip(units, all_weights, places, strict=True))
        if size is not None:
            self.work = self.pool.hold(prepare, self.work, size)
        self._looks(names)
        if size is None:
            self.work = self.pool.hold(prepare, self.work, self.rows * self.tail[0] * self.dtype.itemsize)

    def _looks(self, names: Sequence[str]) -> None:
        """Make the first pass: lengths, weights, means."""
        found: list[Looked] = self.pool.map(look, None, self.work, name="look-at")
        kept = [number for number, one in enumerate(found) if one.rows]
        if not kept:
            raise ValueError("data must have at least one row of positive weight, got none.")
        for number in kept:
            if _columns(found[number]) != _columns(found[kept[0]]):
                raise ValueError(
                    f"data must have the same columns in all units, got {_columns(found[number])} in "
                    f"{self.work[number][2]} and {_columns(found[kept[0]])} before."
                )
        self.work, self.looks = [self.work[k] for k in kept], [found[k] for k in kept]
        self.n = len(kept)
        self.rows = sum(one.rows for one in self.looks)
        self.lengths = np.array([one.rows for one in self.looks])
        self.weight: Array = np.array([one.weight for one in self.looks])
        self.total_weight = float(self.weight.sum())
        means = np.array([one.mean for one in self.looks])
        self.mean: Array = self.weight @ means / self.total_weight
        self.masses: Array | None = None
        if any(one.masses is not None for one in self.looks):
            all_seen = np.ones(means.shape[1])
            of_units = [one.weight * all_seen if one.masses is None else one.masses for one in self.looks]
            self.masses = np.sum(of_units, axis=0)
            self.mean = (np.array(of_units) * means).sum(axis=0) / np.where(self.masses > 0, self.masses, 1.0)
        self.largest = max(one.largest for one in self.looks)
        self.tail = self.mean.shape
        self.names = tuple(names) or self.looks[0].names
        self.dtype: np.dtype[Any] = np.result_type(*{np.dtype(one.dtype) for one in self.looks})

    def fingerprint(self) -> str:
        """Return a text that changes if the division, lengths, weights or means of the units change."""
        digest = blake2b(self._token.encode(), digest_size=16)
        masses = [one.masses for one in self.looks if one.masses is not None]
        for part in (self.lengths, self.weight, np.array([one.mean for one in self.looks]), *masses):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def sample(self, most: int, seed: int) -> ArraySource:
        """Return at most about ``most`` rows, a random share of each unit, as an array.

        The same seed gives the same rows, wherever they are read.
        """
        wanted = np.minimum(self.lengths, np.ceil(most * (self.lengths / self.rows)).astype(int))
        work = [(seed, number, *self.work[number], int(wanted[number])) for number in range(self.n)]
        found = self.pool.map(_sample, None, work, name="sample-of")
        weights: NDArray[Any] | None = None
        if found[0][1] is not None:
            weights = np.concatenate([weight for _, weight in found])
        rows = np.concatenate([y for y, _ in found])
        return ArraySource(rows, weights, allow_missing=self.masses is not None)

    @cached_property
    def some(self) -> ArraySource:
        """Rows for starts, for evaluations of a fit and for re-initialised components."""
        return self.sample(SAMPLE, 0)


SAMPLE = 50_000
"""Approximate maximum number of rows kept at the client."""


def _sample(common: None, seed: int, number: int, unit: Any, weight: Any, where: Place, count: int) -> Any:
    return sample((seed, number), unit, weight, where, count)


def _columns(found: Looked) -> str:
    return f"{0 if found.mean is None else len(found.mean)} columns"
