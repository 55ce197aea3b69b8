r"""The interface of a kind of covariance, and the kind "full".

A Gaussian mixture is an exponential-family mixture: :math:`\log \omega_m g_m(y) = \langle T(y),
\phi_m(\theta)\rangle` with T(y) = [1, y, squares of y]. An E-step is a softmax of T(Y)·φᵀ, and statistics are
Rᵀ·T(Y). The kinds differ in the squares, in φ(θ) and in the M-step θ̄(s). Everything is in centred
coordinates.

The penalty of a prior adds terms of the same form as a component's loss,

.. math:: \tfrac12 (N_m + \tilde\nu) \log|\Sigma|
   + \tfrac12 \mathrm{tr}\, \Sigma^{-1} \big( \textstyle\sum_i r_{im} (y_i - \mu_m)(y_i - \mu_m)^T + \kappa
   (\mu_m - m_0)(\mu_m - m_0)^T + \Psi \big),

with everything divided by the total weight, :math:`N_m` the mean of :math:`r_m`, and :math:`\tilde\nu` the
``degrees`` of the kind. It is minimal at :math:`\mu_m = (s^2_m + \kappa m_0) / (N_m + \kappa)` for every Σ;
there, the bracket is :math:`A_m = s^3_m + \kappa m_0 m_0^T - (N_m + \kappa) \mu_m \mu_m^T + \Psi`, which
determines Σ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.engine.reference.gaussian_components import lower_triangle, squares_full
from swiftem.models.components import Coefficients
from swiftem.models.gaussian_theta import GaussianStatistics
from swiftem.models.normal_inverse_wishart import BoundPrior

__all__ = ["Covariance", "Full", "from_vech", "is_positive", "matrix_factor", "vech_size"]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""A variance below this share of the second moment it is computed from is only rounding."""


class Covariance(ABC):
    """A kind of covariance; it has no state."""

    name: ClassVar[str]
    code: ClassVar[int]
    """Number of the kind in compiled code."""

    @abstractmethod
    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances."""

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the statistics of squares: by default that of the covariances."""
        return self.shape(n_components, d)

    def no_scale(self, d: int) -> Array:
        """Return the scale of a prior that adds nothing: by default a matrix (d, d)."""
        return np.zeros((d, d))

    @abstractmethod
    def squares(self, y: Array, rows: Array) -> Array:
        """Return the statistics of squares, of samples (b, d) and weighted responsibilities (b, M)."""

    @abstractmethod
    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν̃ in counts; ``on_means`` is 1 if there is a prior on the means, else 0."""

    @abstractmethod
    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step: return the covariances, and for each variance its rounding error."""

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return ``precisions_cholesky``, or None if a covariance is not positive (above ``floor``).

        By default covariances are matrices, and the result is U: see :func:`matrix_factor`.
        """
        return matrix_factor(covariances, floor)

    @abstractmethod
    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ), of means minus the centre and ``precisions_cholesky``."""

    @abstractmethod
    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return the prior's penalty, of means minus the centre and ``precisions_cholesky``."""

    def stacked(self, factors: Array) -> Array:
        """Return ``precisions_cholesky`` with a first axis for components (or one for all)."""
        return factors

    def size(self, n_components: int, d: int) -> int:
        """Return the length of the statistics."""
        return n_components * (1 + d) + int(np.prod(self.squares_shape(n_components, d)))

    def dimension(self, size: int, n_components: int) -> int | None:
        """Return the d of statistics of this size, or None if there is none."""
        d = 1
        while self.size(n_components, d) < size:
            d += 1
        return d if self.size(n_components, d) == size else None

    def split(self, s: Array, n_components: int, d: int) -> GaussianStatistics:
        """Return named views of flat statistics."""
        end = n_components * (1 + d)
        return GaussianStatistics(
            s[:n_components],
            s[n_components:end].reshape(n_components, d),
            s[end:].reshape(self.squares_shape(n_components, d)),
        )


def vech_size(d: int) -> int:
    """Return the number of entries of the lower triangle of a d×d matrix."""
    return d * (d + 1) // 2


@lru_cache(maxsize=32)
def _places(d: int) -> NDArray[np.intp]:
    """Return, for each entry of a symmetric d×d matrix, its index in the lower triangle, row by row."""
    places = np.empty((d, d), dtype=np.intp)
    row, column = lower_triangle(d)
    places[row, column] = places[column, row] = np.arange(len(row))
    return places


def from_vech(squares: Array, d: int) -> Array:
    """Return symmetric matrices (..., d, d) from their lower triangles (..., d(d+1)/2).

    >>> from_vech(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    return np.take(squares, _places(d), axis=-1)


def is_positive(variances: Array, floor: Array | float) -> bool:
    """Tell whether all are finite and above ``floor`` and zero; False for NaN."""
    return bool((variances > np.maximum(floor, 0.0)).all() and np.isfinite(variances).all())


def matrix_factor(covariances: Array, floor: Array | float) -> Array | None:
    """Return U, upper triangular with U·Uᵀ the inverse, of matrices (..., d, d), or None."""
    try:
        lower = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diagonal(lower, axis1=-2, axis2=-1)
    if not is_positive(pivots * pivots, floor):
        return None
    return np.ascontiguousarray(np.triu(np.swapaxes(np.linalg.inv(lower), -1, -2)))


class Full(Covariance):
    r"""Kind "full": a covariance matrix for each component.

    T(y) = [1, y, vech(yyᵀ)]. With :math:`P_m = \Sigma_m^{-1}`, φ has :math:`P_m \mu_m` for y, and for the
    products :math:`-\frac12 P_{ii}` and, as each pair occurs once, :math:`-P_{ij}`; the constant is
    :math:`\log \omega_m + \frac12 \log|P_m| - \frac12 \mu_m^T P_m \mu_m - \frac d2 \log 2\pi`.

    M-step: :math:`\Sigma_m = A_m / (N_m + \tilde\nu)`. The inverse-Wishart density has
    :math:`|\Sigma|^{-(\nu + d + 1)/2}`, that of the mean :math:`|\Sigma|^{-1/2}`: :math:`\tilde\nu = \nu + d
    + 1`, plus 1 if there is a prior on the means.
    """

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
        return squares_full(y, rows)

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
