"""The coefficient λ of opt-FIEM in compiled loops, as in :func:`swiftem.methods.method.learn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.compile import inlined

__all__ = ["LARGEST", "RATE", "learn", "products"]

RATE, LARGEST = 0.01, 2.0
"""As in :mod:`swiftem.methods.method`, which kernels cannot import."""


@inlined
def learn(moments: Any, covariance: Any, variance: Any) -> Any:
    """Update the running averages ``moments`` (3,) by the products of one sample; return the new λ."""
    moments[0] += RATE * (covariance - moments[0])
    moments[1] += RATE * (variance - moments[1])
    if moments[1] > 0.0:
        moments[2] = min(max(moments[0] / moments[1], 0.0), LARGEST)
    return moments[2]


@inlined
def products(y: Any, i: Any, rows: Any, total: Any, old: Any, weight: Any, centre1: Any, centre2: Any) -> Any:
    """Return ⟨x − C, m − C⟩ and ‖m − C‖² of sample i of a mixture with unit variances.

    x is that of ``rows`` (M,) / total, m that of ``old`` (M,), both times ``weight``; C is the centre, (M,)
    and (M, d).
    """
    n_components, d = centre2.shape
    covariance = variance = 0.0
    for m in range(n_components):
        r, o = weight * (rows[m] / total), weight * np.float64(old[m])
        deviation = o - centre1[m]
        covariance += (r - centre1[m]) * deviation
        variance += deviation * deviation
        for c in range(d):
            deviation = o * y[i, c] - centre2[m, c]
            covariance += (r * y[i, c] - centre2[m, c]) * deviation
            variance += deviation * deviation
    return covariance, variance
