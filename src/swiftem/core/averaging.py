"""Averages of the statistics of a run (Polyak and Ruppert)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index, Theta


class Averages(NamedTuple):
    """``sums`` (2, q) and ``counts`` (2,) of points before and since the last restart.

    ``theta`` and ``s`` are the last iterate, from which a run is resumed: its result is the average.
    """

    sums: Array
    counts: Index
    theta: Theta
    s: Array

    @classmethod
    def empty(cls, theta: Theta, s: Array) -> Averages:
        """Return averages of no points."""
        return cls(np.zeros((2, len(s))), np.zeros(2, dtype=np.int64), theta, s)


@dataclass(frozen=True)
class Averaging:
    """The average of ŝ at every m-th iteration, from some point on; E-steps use ŝ itself.

    Two sums, of the points before and since the last restart, give an average over the last W to 2W
    iterations (restarts every W), or over their last half to three quarters (restarts at powers of two).

    Parameters
    ----------
    every : int
        Iterations between two points; 0 averages nothing.
    window : int or None
        Points between two restarts, or None: at powers of two.
    """

    every: int = 0
    window: int | None = None

    def add(self, averages: Averages, k: int, s: Array) -> Averages:
        """Return the averages with the statistics of iteration ``k``, if it is a point."""
        if k % self.every:
            return averages
        number, sums, counts = k // self.every, averages.sums.copy(), averages.counts.copy()
        if number % self.window == 0 if self.window else number & (number - 1) == 0:
            sums[0], counts[0], sums[1], counts[1] = sums[1], counts[1], 0.0, 0
        sums[1] += s
        counts[1] += 1
        return averages._replace(sums=sums, counts=counts)

    @staticmethod
    def mean(averages: Averages) -> Array | None:
        """Return the average, or None if there are no points yet."""
        count = averages.counts.sum()
        return averages.sums.sum(axis=0) / count if count else None
