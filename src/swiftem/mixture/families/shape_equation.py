"""The equation of a gamma distribution's shape."""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array

__all__ = ["solve_shape"]

STEPS = 12
"""Newton steps: from the start used here five give full precision."""
LARGE = 50.0
"""From this shape on, series replace differences of close numbers."""


def solve_shape(target: Array) -> Array:
    """Return the shapes a > 0 with log a − ψ(a) = target > 0, by Newton's method.

    >>> solve_shape(np.array([0.5772156649015329, 5.000833333e-4])).round(6)
    array([   1., 1000.])
    """
    from scipy.special import polygamma, psi

    a = (3.0 - target + np.sqrt((target - 3.0) ** 2 + 24.0 * target)) / (12.0 * target)
    for _ in range(STEPS):
        i = 1.0 / np.maximum(a, LARGE)
        value = np.where(
            a < LARGE, np.log(a) - psi(a), i * (0.5 + i * (1 / 12 - i * i * (1 / 120 - i * i / 252)))
        )
        slope = np.where(
            a < LARGE,
            1.0 / a - polygamma(1, a),
            -i * i * (0.5 + i * (1 / 6 - i * i * (1 / 30 - i * i / 42))),
        )
        step = (value - target) / slope
        a = np.maximum(a - step, 0.5 * a)
    return a
