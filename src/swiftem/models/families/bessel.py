"""Modified Bessel functions of high orders and at large arguments."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array

__all__ = ["bessel_ratio", "log_bessel"]

LEAST = 1e-280
"""Below this value of exp(−κ)·I_v(κ) its power series is summed by logarithms: it may have no digits."""


def log_bessel(v: float, kappa: Array) -> Array:
    """Return log I_v(κ) − v log κ, which is finite at zero, for v ≥ −½ and κ ≥ 0 of shape (M,).

    >>> log_bessel(0.5, np.array([0.0, 2.0])).round(6)  # log sqrt(2 / π), and log(sinh(2) / 2) more
    array([-0.225791,  0.369429])
    """
    from scipy.special import ive

    with np.errstate(all="ignore"):
        scaled = ive(v, kappa)
        found = np.log(scaled) + kappa - v * np.log(kappa)
        few = ~(scaled > LEAST) | (kappa < 1e-8)
    if few.any():
        found[few] = [_series(v, float(value)) for value in kappa[few]]
    return np.asarray(found)


def bessel_ratio(v: float, kappa: Array) -> Array:
    """Return I_{v+1}(κ) / I_v(κ) of shape (M,), from 0 to 1.

    >>> bessel_ratio(0.5, np.array([0.0, 2.0])).round(6)  # coth κ − 1 / κ
    array([0.      , 0.537315])
    >>> bessel_ratio(63.0, np.array([1.28, 1e6])).round(6)  # 128 columns
    array([0.009999, 0.999937])
    """
    from scipy.special import ive

    with np.errstate(all="ignore"):
        below, above = ive(v, kappa), ive(v + 1.0, kappa)
        found = above / below
    few = ~(above > LEAST) | (kappa < 1e-8)
    if few.any():
        small = kappa[few]
        found[few] = small * np.exp(log_bessel(v + 1.0, small) - log_bessel(v, small))
    return np.asarray(found)


def _series(v: float, kappa: float) -> float:
    """Return the logarithm of Σ_k (κ/2)^2k / (k! Γ(v + k + 1)) / 2^v."""
    from scipy.special import gammaln, logsumexp

    peak = 0.5 * (np.hypot(v, kappa) - v)
    k = np.arange(int(peak + 40.0 * np.sqrt(peak + 1.0)) + 20.0)
    with np.errstate(divide="ignore"):
        powers = 2.0 * k[1:] * np.log(0.5 * kappa)
    terms = np.concatenate([[0.0], powers]) - gammaln(k + 1.0) - gammaln(v + k + 1.0)
    return float(logsumexp(terms) - v * np.log(2.0))
