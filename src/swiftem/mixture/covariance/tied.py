r"""One covariance matrix for all components.

T(y) = [1, y, vech(yyᵀ)], but :math:`-\frac12 y^T P y` is the same for all components and cancels in the
softmax: φ needs only :math:`P \mu_m` for y and the constant :math:`\log \omega_m + \frac12 \log|P| -
\frac12 \mu_m^T P \mu_m - \frac d2 \log 2\pi`. In the statistics the products are needed once, summed over
the components: :math:`\sum_i w_i y_i y_i^T` is the same for every θ, and full passes compute it once.

M-step: the sum over m of the loss in :mod:`swiftem.mixture.covariance.kind` with one Ψ gives :math:`\Sigma =
(s^3 + \sum_m [\kappa m_0 m_0^T - (N_m + \kappa) \mu_m \mu_m^T] + \Psi) / (\sum_m N_m + \tilde\nu)`. The
prior on Σ occurs once, those of the M means have :math:`|\Sigma|^{-1/2}` each: :math:`\tilde\nu = \nu + d
+ 1`, plus M if there is a prior on the means.
"""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.covariance.kind import ROUNDING, MatrixCovariance, from_vech, vech_size
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics

__all__ = ["Tied"]


class Tied(MatrixCovariance):
    """Kind "tied"."""

    name = "tied"
    code = 1
    is_shared = True
    omits_square = True

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (d, d)."""
        return (d, d)

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (d(d+1)/2,)."""
        return (vech_size(d),)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i Σ_m rows_im vech(z_i z_iᵀ)."""
        scatter: Array = (z * rows.sum(axis=1)[:, None]).T @ z
        return np.asarray(scatter[lower_triangle(z.shape[1])])

    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν + d + 1, and M for the means."""
        return nu + d + 1 + on_means * n_components

    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step."""
        n_components, d = means.shape
        inverse = 1.0 / (s.weights.sum() + prior.degrees)
        kappa = prior.mean_precision
        moments = from_vech(s.squares, d)
        between = ((s.weights + kappa)[:, None] * means).T @ means
        between = 0.5 * (between + between.T)  # matrix products round differently
        scatter = moments - 0.5 * (between + between.T)
        scatter += prior.scale + n_components * kappa * np.outer(prior.mean, prior.mean)
        scatter *= inverse
        np.einsum("jj->j", scatter)[:] += reg_covar
        return scatter, ROUNDING * np.abs(np.diag(moments)) * inverse

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ)."""
        d = means.shape[1]
        whitened = means @ factors
        with np.errstate(divide="ignore"):
            plain = np.log(weights) + np.log(np.diag(factors)).sum()
        plain -= 0.5 * d * np.log(2.0 * np.pi)
        constant = plain - 0.5 * (whitened * whitened).sum(axis=1)
        transposed = np.ascontiguousarray(factors.T)
        return Coefficients(factors @ whitened.T, constant, means, plain, transposed[None], np.empty((0, d)))

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return ν̃/2 log|Σ| + ½ tr Σ⁻¹Ψ + Σ_m κ/2 (μ_m − m₀)ᵀ Σ⁻¹ (μ_m − m₀)."""
        log_det = -2.0 * np.log(np.diag(factors)).sum()
        trace = (factors * (prior.scale @ factors)).sum()
        whitened = (means - prior.mean) @ factors
        quadratic = prior.mean_precision * (whitened * whitened).sum()
        return 0.5 * float(prior.degrees * log_det + trace + quadratic)
