"""S_0 of two Gaussians, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.types import Array

__all__ = ["AFFINE_TOLERANCE", "Polygon"]

AFFINE_TOLERANCE = 1e-9
"""Rounding tolerance for statistics in the affine hull of S_0."""


class Polygon:
    r"""S_0 of two Gaussians: the points :math:`(n^{-1} \sum r_i, n^{-1} \sum r_i y_i)` with r_i from 0 to 1.

    It lies between the concave curve of the largest samples first and the convex one of the smallest first.

    Parameters
    ----------
    y : ndarray, shape (n,)
        The samples.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.theory.polygon import Polygon
    >>> polygon = Polygon(np.array([-1.0, 1.0]))
    >>> polygon.holds(np.array([0.5, 0.75, 0.0]), 0.2), polygon.holds(np.array([0.5, 0.75, 0.0]), 0.3)
    (False, True)
    """

    def __init__(self, y: Array) -> None:
        ordered, n = np.sort(y), len(y)
        self.mean = float(y.mean())
        self.share = np.arange(n + 1) / n
        self.upper = np.concatenate([[0.0], np.cumsum(ordered[::-1]) / n])
        self.lower = np.concatenate([[0.0], np.cumsum(ordered) / n])
        self.top = float(self.share[np.argmax(self.upper)])
        self.bottom = float(self.share[np.argmin(self.lower)])

    def highest(self, low: Any, high: Any) -> Any:
        """Return the largest second coordinate for a first one between ``low`` and ``high``."""
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.interp(np.clip(self.top, low, high), self.share, self.upper)

    def lowest(self, low: Any, high: Any) -> Any:
        """Return the smallest second coordinate for a first one between ``low`` and ``high``."""
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.interp(np.clip(self.bottom, low, high), self.share, self.lower)

    def holds(self, s: Array, rho: float) -> bool:
        """Tell whether s = (s¹, s², s³) is within ρ: whether a square around it meets the polygon."""
        if abs(s[2] - self.mean) > AFFINE_TOLERANCE * max(1.0, abs(self.mean)):
            return False
        if not -rho <= s[0] <= 1.0 + rho:
            return False
        # The part of the polygon in a strip is convex, so it has every height between its lowest and highest.
        low, high = s[0] - rho, s[0] + rho
        return bool(self.lowest(low, high) - rho <= s[1] <= self.highest(low, high) + rho)

    def distance(self, s: Array) -> float:
        """Return the distance in max-norm, by bisection."""
        if self.holds(s, 0.0):
            return 0.0
        far = 1.0
        while not self.holds(s, far):
            far *= 2.0
            if far > 1e12:
                return np.inf
        near = 0.0
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (near, middle) if self.holds(s, middle) else (middle, far)
        return far
