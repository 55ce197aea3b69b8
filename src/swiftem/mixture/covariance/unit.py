r"""Variances of one, as in the paper's section 2.1: nothing but weights and means is estimated.

T(y) = [1, y], as :math:`-\frac12 \|y\|^2` is common to all components; φ has :math:`\mu_m` for y, and the
constant is :math:`\log \omega_m - \frac12 \|\mu_m\|^2 - \frac d2 \log 2\pi`. Statistics are not centred: they
are the paper's, and the penalty :math:`\frac\delta2 \sum_m \|\mu_m\|^2` is that of a prior on the means with
:math:`m_0 = 0` and κ = δ.

M-step: :math:`\mu_m = s^2_m / (s^1_m + \delta)`, equation (mstep_gmm0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.types import Array, Theta
from swiftem.mixture.components import Coefficients
from swiftem.mixture.covariance.spherical import Spherical
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianMixtureStatistics, GaussianMixtureTheta, GaussianStatistics

__all__ = ["Unit"]


class Unit(Spherical):
    """Kind "unit": as spherical, with a variance of one that is not a parameter."""

    name = "unit"
    code = 4
    is_estimated = False
    omits_square = True

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (0,): there are none."""
        return (0,)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return nothing."""
        return np.empty(0)

    def n_features(self, d: int) -> int:
        """Return d."""
        return d

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write nothing."""

    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """Return ones."""
        return np.ones(len(means)), np.zeros(len(means))

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        with np.errstate(divide="ignore"):
            plain = np.log(weights) - 0.5 * d * np.log(2.0 * np.pi)
        constant = plain - 0.5 * (means * means).sum(axis=1)
        phi = np.ascontiguousarray(means.T)
        return Coefficients(phi, constant, means, plain, np.empty((0, d, d)), np.ones_like(means))

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return Σ_m κ/2 ‖μ − m₀‖², equation (regu) without the weights."""
        return 0.5 * prior.mean_precision * float(((means - prior.mean) ** 2).sum())

    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return ones: the standard deviation is the unit."""
        return np.ones(s.sums.shape[1]), np.empty(0)

    def parameters(self, weights: Array, means: Array, covariances: Array, factors: Array) -> Any:
        """Return θ, without covariances."""
        return GaussianMixtureTheta(weights, means)

    def factors_of(self, theta: Theta) -> Array:
        """Return ones."""
        return np.ones(len(theta.weights))

    def split(self, s: Array, n_components: int, d: int) -> Any:
        """Return named views of flat statistics."""
        return GaussianMixtureStatistics(s[:n_components], s[n_components:].reshape(n_components, d))
