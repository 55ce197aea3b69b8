"""Averages of the statistics of a run (Polyak and Ruppert)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index, Theta


class Averages(NamedTuple):
    """The average of ŝ at every m-th iteration, from some point on; E-steps use ŝ itself.

    Two sums, of the points before and since the last restart, give an average over the last W to 2W
    iterations (restarts every W), or over their last half to three quarters (restarts at powers of two).

    Attributes
    ----------
    every : int
        Iterations between two points.
    window : int
        Points between two restarts, or 0: at powers of two.
    sums, counts : ndarray, shapes (2, q) and (2,)
        Of points before and since the last restart.
    theta, s
        The last iterate, from which a run is resumed: its result is the average.
    """

    every: int
    window: int
    sums: Array
    counts: Index
    theta: Theta
    s: Array

    @classmethod
    def empty(cls, every: int, window: int, theta: Theta, s: Array) -> Averages:
        """Return averages of no points."""
        return cls(every, window, np.zeros((2, len(s))), np.zeros(2, dtype=np.int64), theta, s)

    def add(self, k: int, s: Array) -> Averages:
        """Return the averages with the statistics of iteration ``k``, if it is a point."""
        if k % self.every:
            return self
        number, sums, counts = k // self.every, self.sums.copy(), self.counts.copy()
        if number % self.window == 0 if self.window else number & (number - 1) == 0:
            sums[0], counts[0], sums[1], counts[1] = sums[1], counts[1], 0.0, 0
        sums[1] += s
        counts[1] += 1
        return self._replace(sums=sums, counts=counts)

    def mean(self) -> Array | None:
        """Return the average, or None if there are no points yet."""
        count = self.counts.sum()
        return self.sums.sum(axis=0) / count if count else None
