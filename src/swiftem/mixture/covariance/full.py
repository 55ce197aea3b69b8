r"""A covariance matrix for each component.

T(y) = [1, y, vech(yyᵀ)]. With :math:`P_m = \Sigma_m^{-1}`, φ has :math:`P_m \mu_m` for y, and for the
products :math:`-\frac12 P_{ii}` and, as each pair occurs once, :math:`-P_{ij}`; the constant is
:math:`\log \omega_m + \frac12 \log|P_m| - \frac12 \mu_m^T P_m \mu_m - \frac d2 \log 2\pi`.

M-step: :math:`\Sigma_m = A_m / (N_m + \tilde\nu)`. The inverse-Wishart density has
:math:`|\Sigma|^{-(\nu + d + 1)/2}`, that of the mean :math:`|\Sigma|^{-1/2}`: :math:`\tilde\nu = \nu + d
+ 1`, plus 1 if there is a prior on the means.
"""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.covariance.kind import ROUNDING, MatrixCovariance, from_vech, vech_size
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics

__all__ = ["Full"]


class Full(MatrixCovariance):
    """Kind "full"."""

    name = "full"
    code = 0

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d, d)."""
        return (n_components, d, d)

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d(d+1)/2)."""
        return (n_components, vech_size(d))

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i rows_im vech(z_i z_iᵀ)."""
        lower = lower_triangle(z.shape[1])
        return np.stack([((z * row[:, None]).T @ z)[lower] for row in rows.T])

    def n_features(self, d: int) -> int:
        """Return d + d(d+1)/2."""
        return d + vech_size(d)

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write all products of two columns."""
        row, column = lower_triangle(len(samples))
        np.multiply(samples[row], samples[column], out=out)

    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν + d + 1, and 1 for the means."""
        return nu + d + 1 + on_means

    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step."""
        d = means.shape[1]
        inverse = 1.0 / (s.weights + prior.degrees)
        kappa = prior.mean_precision
        moments = from_vech(s.squares, d)
        # The product of two means first: it has the same rounding on both sides of the diagonal.
        scatter = moments - (s.weights + kappa)[:, None, None] * (means[:, :, None] * means[:, None, :])
        scatter += prior.scale + kappa * np.outer(prior.mean, prior.mean)
        scatter *= inverse[:, None, None]
        np.einsum("mjj->mj", scatter)[:] += reg_covar
        return scatter, ROUNDING * np.abs(np.einsum("mjj->mj", moments)) * inverse[:, None]

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        transposed = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
        whitened = (transposed @ means[:, :, None])[:, :, 0]
        row, column = lower_triangle(d)
        precision = factors @ transposed
        products = precision[:, row, column] * np.where(row == column, -0.5, -1.0)
        phi = np.concatenate([(factors @ whitened[:, :, None])[:, :, 0], products], axis=1)
        with np.errstate(divide="ignore"):
            plain = np.log(weights) + np.log(np.einsum("mjj->mj", factors)).sum(axis=1)
        plain -= 0.5 * d * np.log(2.0 * np.pi)
        constant = plain - 0.5 * (whitened * whitened).sum(axis=1)
        return Coefficients(np.ascontiguousarray(phi.T), constant, means, plain, transposed, np.empty((0, d)))

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return Σ_m of ν̃/2 log|Σ| + ½ tr Σ⁻¹Ψ + κ/2 (μ − m₀)ᵀ Σ⁻¹ (μ − m₀)."""
        log_det = -2.0 * np.log(np.einsum("mjj->mj", factors)).sum()
        trace = (factors * (prior.scale @ factors)).sum()
        whitened = ((means - prior.mean)[:, None, :] @ factors)[:, 0]
        quadratic = prior.mean_precision * (whitened * whitened).sum()
        return 0.5 * float(prior.degrees * log_det + trace + quadratic)
