r"""A variance for each component, the same for all its features.

T(y) = [1, y, ‖y‖²]. With :math:`p_m = \sigma_m^{-2}`, φ has :math:`p_m \mu_m` for y and :math:`-\frac12
p_m` for the square; the constant is :math:`\log \omega_m + \frac12 (d \log p_m - p_m \|\mu_m\|^2) - \frac
d2 \log 2\pi`.

M-step: :math:`\sigma_m^2 = \mathrm{tr}\, A_m / (d (N_m + \tilde\nu))`, the mean of those of "diag". The
prior is that of "diag" for equal variances, :math:`\prod_j p(\sigma^2 \mid \Psi_{jj})`, so that a sample in
the prior counts like one in the data: :math:`\tilde\nu = \nu - d + 3` for each feature, plus 1 if there is a
prior on the means.
"""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array
from swiftem.engine.reference import gaussian_components as kernel
from swiftem.models.components import Coefficients
from swiftem.models.covariance.diag import Diag
from swiftem.models.covariance.kind import ROUNDING
from swiftem.models.gaussian_theta import GaussianStatistics
from swiftem.models.normal_inverse_wishart import BoundPrior

__all__ = ["Spherical"]


class Spherical(Diag):
    """Kind "spherical": as diagonal, with one variance per component."""

    name = "spherical"
    code = 3

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M,)."""
        return (n_components,)

    def squares(self, y: Array, rows: Array) -> Array:
        """Return the statistics of squares."""
        return kernel.squares_spherical(y, rows)

    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step."""
        inverse = 1.0 / (means.shape[1] * (s.weights + prior.degrees))
        kappa = prior.mean_precision
        scatter = s.squares - (s.weights + kappa) * (means * means).sum(axis=1)
        scatter += prior.scale.sum() + kappa * float(prior.mean @ prior.mean)
        return scatter * inverse + reg_covar, ROUNDING * np.abs(s.squares) * inverse

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        precision = factors * factors
        with np.errstate(divide="ignore"):
            plain = np.log(weights) + d * np.log(factors)
        plain -= 0.5 * d * np.log(2.0 * np.pi)
        constant = plain - 0.5 * precision * (means * means).sum(axis=1)
        phi = np.concatenate([precision[:, None] * means, -0.5 * precision[:, None]], axis=1)
        scales = np.repeat(factors[:, None], d, axis=1)
        return Coefficients(np.ascontiguousarray(phi.T), constant, means, plain, np.empty((0, d, d)), scales)

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return Σ_m of d·ν̃/2 log σ² + (tr Ψ + κ ‖μ − m₀‖²) / 2σ²."""
        log_det = -2.0 * means.shape[1] * np.log(factors).sum()
        distance = ((means - prior.mean) ** 2).sum(axis=1)
        above = prior.scale.sum() + prior.mean_precision * distance
        return 0.5 * float(prior.degrees * log_det + (factors * factors * above).sum())

    def stacked(self, factors: Array) -> Array:
        """Return 1/σ as (M, 1)."""
        return factors[:, None]
