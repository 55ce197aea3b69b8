r"""A covariance matrix for each component.

T(y) = [1, y, vech(yyᵀ)]. With :math:`P_m = \Sigma_m^{-1}`, φ has :math:`P_m \mu_m` for y, and for the
products :math:`-\frac12 P_{ii}` and, as each pair occurs once, :math:`-P_{ij}`; the constant is
:math:`\log \omega_m + \frac12 \log|P_m| - \frac12 \mu_m^T P_m \mu_m - \frac d2 \log 2\pi`.

M-step: :math:`\Sigma_m = A_m / (N_m + \tilde\nu)`. The inverse-Wishart density has :math:`|\Sigma|^{-(\nu +
d + 1)/2}`, that of the mean :math:`|\Sigma|^{-1/2}`: :math:`\tilde\nu = \nu + d + 1`, plus 1 if there is
a prior on the means.
"""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array
from swiftem.engine.reference import gaussian_components as kernel
from swiftem.models.components import Coefficients
from swiftem.models.covariance.kind import (
    ROUNDING,
    Covariance,
    from_vech,
    matrix_factor,
    vech_size,
)
from swiftem.models.gaussian_theta import GaussianStatistics
from swiftem.models.normal_inverse_wishart import BoundPrior

__all__ = ["Full"]


class Full(Covariance):
    """Kind "full"."""

    name = "full"
    code = 0

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d, d)."""
        return (n_components, d, d)

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d(d+1)/2)."""
        return (n_components, vech_size(d))

    def squares(self, y: Array, rows: Array) -> Array:
        """Return the statistics of squares."""
        return kernel.squares_full(y, rows)

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

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return U (M, d, d)."""
        return matrix_factor(covariances, floor)

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        transposed = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
        whitened = (transposed @ means[:, :, None])[:, :, 0]
        row, column = kernel.lower_triangle(d)
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
