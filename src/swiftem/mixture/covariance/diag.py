r"""A variance for each component and feature.

T(y) = [1, y, y²]. With precisions :math:`p_{mj} = \sigma_{mj}^{-2}`, φ has :math:`p_{mj} \mu_{mj}` for
:math:`y_j` and :math:`-\frac12 p_{mj}` for :math:`y_j^2`; the constant is :math:`\log \omega_m + \frac12
\sum_j (\log p_{mj} - p_{mj} \mu_{mj}^2) - \frac d2 \log 2\pi`.

M-step: :math:`\sigma_{mj}^2 = (A_m)_{jj} / (N_m + \tilde\nu)`. The prior of a variance is what IW(Ψ, ν) is
for a single diagonal entry: inverse gamma of shape (ν − d + 1)/2 and scale :math:`\Psi_{jj}/2`, whose
density has :math:`(\sigma^2)^{-(\nu - d + 3)/2}`. The mean's has :math:`(\sigma^2)^{-1/2}`:
:math:`\tilde\nu = \nu - d + 3`, plus 1 if there is a prior on the means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.mixture.components import Coefficients
from swiftem.mixture.covariance.kind import ROUNDING, Covariance, deviations_of, is_positive
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics

__all__ = ["Diag"]


class Diag(Covariance):
    """Kind "diag"."""

    name = "diag"
    code = 2

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d)."""
        return (n_components, d)

    def no_scale(self, d: int) -> Array:
        """Return the diagonal (d,): nothing here grows with d²."""
        return np.zeros(d)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i rows_im z_i²."""
        return rows.T @ (z * z)

    def n_features(self, d: int) -> int:
        """Return 2d."""
        return 2 * d

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the squares."""
        np.multiply(samples, samples, out=out)

    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν − d + 3, and 1 for the means: for each feature."""
        return nu - d + 3 + on_means

    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step."""
        inverse = 1.0 / (s.weights + prior.degrees)[:, None]
        kappa = prior.mean_precision
        scatter = s.squares - (s.weights + kappa)[:, None] * means * means
        scatter += prior.scale + kappa * prior.mean**2
        return scatter * inverse + reg_covar, ROUNDING * np.abs(s.squares) * inverse

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return 1/σ, (M, d) or (M,)."""
        return 1.0 / np.sqrt(covariances) if is_positive(covariances, floor) else None

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        precision = factors * factors
        with np.errstate(divide="ignore"):
            plain = np.log(weights) + np.log(factors).sum(axis=1)
        plain -= 0.5 * d * np.log(2.0 * np.pi)
        constant = plain - 0.5 * (precision * means * means).sum(axis=1)
        phi = np.concatenate([precision * means, -0.5 * precision], axis=1)
        return Coefficients(np.ascontiguousarray(phi.T), constant, means, plain, np.empty((0, d, d)), factors)

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return Σ_mj of ν̃/2 log σ² + (Ψ_jj + κ (μ − m₀)²) / 2σ²."""
        log_det = -2.0 * np.log(factors).sum()
        above = prior.scale + prior.mean_precision * (means - prior.mean) ** 2
        return 0.5 * float(prior.degrees * log_det + (factors * factors * above).sum())

    def stacked(self, factors: Array) -> Array:
        """Return 1/σ, (M, d) or (M, 1)."""
        return factors.reshape(len(factors), -1)

    def coloured(self, noise: Array, factors: Array, labels: Index) -> Array:
        """Return noise·σ."""
        return np.asarray(noise / self.stacked(factors)[labels])

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the variances for each component."""
        return np.tile(variances, (n_components, 1))

    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return the deviations of the columns, and one over their squares."""
        deviations = deviations_of(s.squares.sum(axis=0))
        return deviations, 1.0 / deviations**2
