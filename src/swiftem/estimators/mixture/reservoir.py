"""A sample of bounded size of rows that come one after another, with weights that make it unbiased."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array

__all__ = ["Reservoir"]


@dataclass(frozen=True)
class Reservoir:
    r"""Of all rows seen, those of the smallest ranks :math:`e_i / w_i`, :math:`e_i \sim \mathrm{Exp}(1)`.

    Let τ be the smallest rank that was left out, ∞ while all rows are kept. Given the other rows' ranks, row
    i is kept with probability :math:`1 - e^{-w_i \tau}`: counted with weight :math:`w_i / (1 - e^{-w_i
    \tau})`, the sample's sums are those of all rows in expectation (Cohen and Kaplan, 2007). Heavy rows,
    which are sure to be kept, then count by their own weight, and light ones all alike.

    Attributes
    ----------
    size : int
        Most rows that are kept.
    rows : ndarray, shape (k, d)
        The sample.
    weight, rank : ndarray, shape (k,)
        Of its rows.
    threshold : float
        τ.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sample = Reservoir.empty(2, d=1).add(np.array([[1.0], [2.0]]), np.array([1.0, 3.0]), rng)
    >>> sample.weights()
    array([1., 3.])
    >>> sample = sample.add(np.arange(98.0)[:, None], np.ones(98), rng)
    >>> sample.rows.shape
    (2, 1)
    """

    size: int
    rows: Array
    weight: Array
    rank: Array
    threshold: float = inf

    @classmethod
    def empty(cls, size: int, d: int) -> Reservoir:
        """Return a sample of no rows yet."""
        return cls(size, np.empty((0, d)), np.empty(0), np.empty(0))

    def add(self, rows: NDArray[Any], weight: Array, rng: np.random.Generator) -> Reservoir:
        """Return the sample of what was seen and rows (b, d) of positive weights (b,), in new arrays."""
        rank = rng.exponential(size=len(rows)) / weight
        enters = rank < self.threshold
        left_out = float(rank[~enters].min(initial=inf))
        threshold = min(self.threshold, left_out)
        if not enters.any():
            return self
        all_rows = np.concatenate([self.rows, np.asarray(rows[enters], dtype=np.float64)])
        all_weight = np.concatenate([self.weight, weight[enters]])
        all_rank = np.concatenate([self.rank, rank[enters]])
        if len(all_rank) > self.size:
            order = np.argpartition(all_rank, self.size)
            threshold = min(threshold, float(all_rank[order[self.size]]))
            kept = np.sort(order[: self.size])
            all_rows, all_weight, all_rank = all_rows[kept], all_weight[kept], all_rank[kept]
        return replace(self, rows=all_rows, weight=all_weight, rank=all_rank, threshold=threshold)

    def weights(self) -> Array:
        """Return the weights (k,) by which the rows stand for all that were seen."""
        if self.threshold == inf:
            return self.weight
        return self.weight / -np.expm1(-self.weight * self.threshold)
