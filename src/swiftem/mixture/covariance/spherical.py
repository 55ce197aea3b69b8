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

from typing import Any

import numpy as np

from swiftem.core.types import Array
from swiftem.mixture.components import Coefficients
from swiftem.mixture.covariance.diag import Diag
from swiftem.mixture.covariance.kind import ROUNDING, deviations_of
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics

__all__ = ["Spherical"]


class Spherical(Diag):
    """Kind "spherical": as diagonal, with one variance per component."""

    name = "spherical"
    code = 3

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M,)."""
        return (n_components,)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i rows_im ‖z_i‖²."""
        return np.asarray(rows.T @ (z * z).sum(axis=1))

    def n_features(self, d: int) -> int:
        """Return d + 1."""
        return d + 1

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the sum of squares."""
        np.einsum("ct,ct->t", samples, samples, out=out[0])

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

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the mean of the variances for each component."""
        return np.full(n_components, variances.mean())

    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return one deviation for all columns, and one over its square."""
        d = s.sums.shape[1]
        deviations = deviations_of(np.full(d, s.squares.sum() / d))
        return deviations, np.full(len(s.squares), 1.0 / deviations[0] ** 2)
