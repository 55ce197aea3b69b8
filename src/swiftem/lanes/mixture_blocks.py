"""The E-step of the mixture with unit variances on blocks: two matrix products around a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.kernels.numba import softmax
from swiftem.models.gaussian_mixture import GaussianMixtureTheta

__all__ = ["Block", "Geometry"]

NUMBERS = 16_384
"""Responsibilities in a block: with the samples they fit into the second-level cache."""

FARTHEST = 2e4
"""Squared distance from the centre up to which an expanded square keeps eleven digits."""


NO_SAMPLES, NO_INDEX = np.empty((0, 0)), np.empty(0, dtype=np.intp)


class Geometry:
    """Where the samples lie: their centre, and whether they are near enough for expanded squares.

    Parameters
    ----------
    y : ndarray, shape (n, d)
        All samples.
    """

    def __init__(self, y: NDArray[Any]) -> None:
        lowest, highest = y.min(axis=0).astype(np.float64), y.max(axis=0).astype(np.float64)
        self.centre: Array = np.zeros(y.shape[1])
        if not self._is_near(lowest, highest):
            self.centre = 0.5 * (lowest + highest)
        self.near = self._is_near(lowest - self.centre, highest - self.centre)

    @staticmethod
    def _is_near(lowest: Array, highest: Array) -> bool:
        return bool(np.maximum(lowest**2, highest**2).sum() <= FARTHEST)


class Block:
    """Buffers for the E-step of up to ``rows`` samples; one thread's own.

    After :meth:`e_step`, ``y`` holds the samples (minus the centre), ``rows`` their responsibilities,
    ``largest`` and ``totals`` what the likelihood needs.
    """

    def __init__(self, geometry: Geometry, rows: int, n_components: int) -> None:
        d = len(geometry.centre)
        self.geometry = geometry
        self._y, self._rows = np.empty((rows, d)), np.empty((rows, n_components))
        self._largest, self._totals = np.empty(rows), np.empty(rows)
        self._means, self._transposed = np.empty((n_components, d)), np.empty((d, n_components))
        self._constant = np.empty(n_components)

    @staticmethod
    def rows_for(n_components: int) -> int:
        """Return how many samples a block should have."""
        return max(64, NUMBERS // n_components)

    def begin(self, theta: GaussianMixtureTheta, y: Array = NO_SAMPLES, index: Index = NO_INDEX) -> None:
        """Prepare for θ, whose weights need not sum to 1, and take samples ``index`` (b,) of ``y`` (n, d)."""
        self.y = self._y[: len(index)]
        softmax.begin(
            theta.weights, theta.means, self.geometry.centre, self.geometry.near,
            self._means, self._transposed, self._constant, y, index, self.y,
        )  # fmt: skip

    def take(self, samples: NDArray[Any]) -> None:
        """Take over samples, shape (b, d) of any number type."""
        self.y = self._y[: len(samples)]
        np.subtract(samples, self.geometry.centre, out=self.y)

    def e_step(self) -> Array:
        """Return the responsibilities (b, M) of the samples, in a buffer."""
        self._exponentials()
        softmax.normalise(self.rows, self.totals)
        return self.rows

    def weighted_e_step(self, weight: Array, factor: float, sums: Array) -> Array:
        """Return responsibilities times factor · weight ((b,), or (0,): ones), added to ``sums`` (M,) too."""
        self._exponentials()
        softmax.normalise_weighted(self.rows, self.totals, weight, factor, sums)
        return self.rows

    def _exponentials(self) -> None:
        b = len(self.y)
        self.rows, self.largest, self.totals = self._rows[:b], self._largest[:b], self._totals[:b]
        if self.geometry.near:
            np.dot(self.y, self._transposed, out=self.rows)
        else:
            softmax.log_joint(self.y, self._means, self.rows)
        softmax.shift(self.rows, self._constant, self.largest)
        np.exp(self.rows, out=self.rows)
