r"""The interface of a kind of covariance.

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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index, Theta
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics, GaussianTheta

__all__ = ["Covariance", "MatrixCovariance", "from_vech", "is_positive", "vech_size"]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""A variance below this share of the second moment it is computed from is only rounding."""


class Covariance(ABC):
    """A kind of covariance; it has no state. To add one, define a subclass and list it in ``COVARIANCES``."""

    name: ClassVar[str]
    code: ClassVar[int]
    """Number of the kind in compiled code, from 0 on."""
    is_estimated: ClassVar[bool] = True
    """Whether there are covariances to estimate; their centre is then the mean of the data, else zero."""
    has_matrices: ClassVar[bool] = False
    """Whether covariances are matrices (..., d, d)."""
    is_shared: ClassVar[bool] = False
    """Whether one covariance, with one sum of products, is estimated for all components."""
    omits_square: ClassVar[bool] = False
    """Whether φ omits −½‖Uᵀy‖², which is common to all components."""
    has_masses: ClassVar[bool] = False
    """Whether the statistics have the masses of observed cells (M, d): some cells are missing."""

    @abstractmethod
    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances."""

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the statistics of squares: by default that of the covariances."""
        return self.shape(n_components, d)

    @abstractmethod
    def no_scale(self, d: int) -> Array:
        """Return the scale of a prior that adds nothing: zeros (d,) or (d, d)."""

    @abstractmethod
    def squares(self, z: Array, rows: Array) -> Array:
        """Return the statistics of squares, of centred samples (b, d) and weighted rows (b, M)."""

    def n_features(self, d: int) -> int:
        """Return the number of entries of T(y) without 1: by default y alone."""
        return d

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the entries of T(y) after y, of centred samples (d, b), into ``out`` (p − d, b)."""
        return

    @abstractmethod
    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν̃ in counts; ``on_means`` is 1 if there is a prior on the means, else 0."""

    @abstractmethod
    def covariances(
        self, s: GaussianStatistics, means: Array, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array]:
        """M-step: return the covariances, and for each variance its rounding error."""

    @abstractmethod
    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return ``precisions_cholesky``, or None if a covariance is not positive (above ``floor``)."""

    @abstractmethod
    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ), of means minus the centre and ``precisions_cholesky``."""

    @abstractmethod
    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return the prior's penalty, of means minus the centre and ``precisions_cholesky``."""

    @abstractmethod
    def stacked(self, factors: Array) -> Array:
        """Return ``precisions_cholesky`` with a first axis for components (or one for all)."""

    @abstractmethod
    def coloured(self, noise: Array, factors: Array, labels: Index) -> Array:
        """Return standard normal rows (b, d) with the covariances of the components ``labels`` (b,)."""

    @abstractmethod
    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the covariances of components whose columns have these variances (d,)."""

    @abstractmethod
    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return deviations (d,) of the columns, and the factors that free the squares of units.

        ``s`` are the statistics in parts.
        """

    def features(self, z: Array) -> Array:
        """Return the input of compiled code for centred rows (b, d): by default the rows."""
        return z

    def parameters(self, weights: Array, means: Array, covariances: Array, factors: Array) -> Any:
        """Return θ."""
        return GaussianTheta(weights, means, covariances, factors)

    def factors_of(self, theta: Theta) -> Array:
        """Return ``precisions_cholesky`` of θ."""
        return np.asarray(theta.precisions_cholesky)

    def statistics(self, z: Array, rows: Array, weight: Array) -> Array:
        """Return the weighted sums of r, r·y and the squares, flat, of centred samples (b, d).

        Rows (b, M) are responsibilities or differences of them: the result is linear in them.
        """
        weighted = rows * weight[:, None]
        squares = self.squares(z, weighted)
        return np.concatenate([weighted.sum(axis=0), (weighted.T @ z).ravel(), squares.ravel()])

    def least_count(self, s: Any) -> Array:
        """Return the smallest count (M,) that a parameter of each component is estimated from."""
        return np.asarray(s.weights)

    def moments(self, s: Any, prior: BoundPrior, reg_covar: float) -> tuple[Array, Array, Array]:
        """M-step: return means minus the centre, covariances, and for each variance its rounding error."""
        kappa = prior.mean_precision
        means = (s.sums + kappa * prior.mean) / (s.weights + kappa)[:, None]
        return means, *self.covariances(s, means, prior, reg_covar)

    def size(self, n_components: int, d: int) -> int:
        """Return the length of the statistics."""
        return n_components * (1 + d) + int(np.prod(self.squares_shape(n_components, d)))

    def dimension(self, size: int, n_components: int) -> int | None:
        """Return the d of statistics of this size, or None if there is none."""
        d = 1
        while self.size(n_components, d) < size:
            d += 1
        return d if self.size(n_components, d) == size else None

    def split(self, s: Array, n_components: int, d: int) -> Any:
        """Return named views of flat statistics."""
        end = n_components * (1 + d)
        return GaussianStatistics(
            s[:n_components],
            s[n_components:end].reshape(n_components, d),
            s[end:].reshape(self.squares_shape(n_components, d)),
        )


class MatrixCovariance(Covariance):
    """The part common to the kinds with matrices: statistics have their lower triangles, row by row."""

    has_matrices = True

    def no_scale(self, d: int) -> Array:
        """Return zeros (d, d)."""
        return np.zeros((d, d))

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return U, upper triangular with U·Uᵀ the inverse, of matrices (..., d, d), or None."""
        try:
            lower = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            return None
        pivots = np.diagonal(lower, axis1=-2, axis2=-1)
        if not is_positive(pivots * pivots, floor):
            return None
        return np.ascontiguousarray(np.triu(np.swapaxes(np.linalg.inv(lower), -1, -2)))

    def stacked(self, factors: Array) -> Array:
        """Return U as (K, d, d)."""
        return factors.reshape(-1, *factors.shape[-2:])

    def coloured(self, noise: Array, factors: Array, labels: Index) -> Array:
        """Return noise·U⁻¹."""
        inverse = np.linalg.inv(self.stacked(factors))
        if self.is_shared:
            return np.asarray(noise @ inverse[0])
        return np.asarray(np.einsum("ij,ijk->ik", noise, inverse[labels]))

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return diagonal matrices."""
        shape = self.shape(n_components, len(variances))
        return np.broadcast_to(np.diag(variances), shape).copy()

    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return the deviations from the diagonal, and one over the products of two."""
        row, column = lower_triangle(s.sums.shape[1])
        total = s.squares if self.is_shared else s.squares.sum(axis=0)
        deviations = deviations_of(total[row == column])
        return deviations, 1.0 / (deviations[row] * deviations[column])


LEAST_VARIANCE = 1e-280
"""Smallest spread of a column: with less, its inverse would not be finite."""


def deviations_of(variances: Array) -> Array:
    """Return standard deviations, one for columns without spread."""
    return np.asarray(np.sqrt(np.where(variances > LEAST_VARIANCE, variances, 1.0)))


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
    """Return whether all are finite and above ``floor`` and zero; False for NaN."""
    return bool((variances > np.maximum(floor, 0.0)).all() and np.isfinite(variances).all())
