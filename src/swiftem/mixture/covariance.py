r"""The kinds of covariance of a Gaussian mixture.

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

**Missing cells** are missing at random. *Diagonal and spherical covariances:* columns are independent given
the component, so that a missing cell counts for nothing. With o = 1 for an observed cell, else 0, z for cells
minus the centre and p for precisions, the logits are

.. math:: \log \omega_m + \sum_j \big( o_j z_j \, p_{mj} \mu_{mj} - \tfrac12 o_j z_j^2 \, p_{mj}
   + \tfrac12 o_j (\log p_{mj} - p_{mj} \mu_{mj}^2 - \log 2\pi) \big),

linear in the features (o·z, o·z², o). Statistics are r ⊗ (1, o·z, o·z², o): they have the masses of observed
cells, :math:`N_{mj} = \sum_i r_{im} o_{ij}`, and do not depend on θ otherwise, so that every method works.
M-step, with the prior above: :math:`\mu_{mj} = (s^2_{mj} + \kappa m_{0j}) / (N_{mj} + \kappa)`;
:math:`A_{mj} = s^3_{mj} + \kappa m_{0j}^2 - (N_{mj} + \kappa) \mu_{mj}^2 + \Psi_{jj}`; the variances are
:math:`A_{mj} / (N_{mj} + \tilde\nu)`, or for "spherical" :math:`\sum_j A_{mj} / \sum_j (N_{mj} + \tilde\nu)`.

*Full and tied covariances:* a row y has observed cells o and missing cells u. The likelihood is the one of
:math:`y_o`, normal with :math:`\mu_o` and :math:`\Sigma_{oo}`. In the E-step the missing cells are a second
latent variable: given the component, they are normal with

.. math:: \hat y_u = \mu_u + \Sigma_{uo} \Sigma_{oo}^{-1} (y_o - \mu_o), \qquad
   C_{uu} = \Sigma_{uu} - \Sigma_{uo} \Sigma_{oo}^{-1} \Sigma_{ou},

so that the statistics of a row are :math:`r_m \otimes (1, \hat y_m, vech(\hat y_m \hat y_m^T + C_m))`. They
are the usual ones if nothing is missing, and the M-step is the same. They depend on θ: a posterior
row is the statistics themselves, and methods that remember rows (iem, fiem, opt-fiem) remember q numbers of
each, within ``memory_limit`` or in a scratch file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swiftem.core.types import Array, Index, Theta
from swiftem.mixture.components import Coefficients, MixtureStatistics
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.prior import BoundPrior

ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
"""A variance below this share of the second moment it is computed from is only rounding, also of a sum."""
LEAST_VARIANCE = 1e-280
"""Smallest spread of a column: with less, its inverse would not be finite."""


class GaussianMixtureTheta(NamedTuple):
    """Parameters with unit variances: ``weights`` (M,) and ``means`` (M, d)."""

    weights: Array
    means: Array


class GaussianTheta(NamedTuple):
    """Parameters, in the coordinates of the data; shapes are scikit-learn's.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Mixing weights.
    means : ndarray, shape (M, d)
        Means.
    covariances : ndarray
        (M, d, d) for "full", (d, d) for "tied", (M, d) for "diag", (M,) for "spherical".
    precisions_cholesky : ndarray
        Derived from the covariances, with the same shape: U, upper triangular, with U·Uᵀ the inverse of the
        covariance; for "diag" and "spherical" one over the standard deviations.
    """

    weights: Array
    means: Array
    covariances: Array
    precisions_cholesky: Array


class GaussianStatistics(NamedTuple):
    """Statistics, means over samples, of centred data: y means y minus ``bound.centre``.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Means of r_m.
    sums : ndarray, shape (M, d)
        Means of r_m·y.
    squares : ndarray
        "full": (M, d(d+1)/2), of r_m·vech(yyᵀ), lower triangle row by row; "tied": (d(d+1)/2,), the same
        summed over m; "diag": (M, d), of r_m·y²; "spherical": (M,), of r_m·‖y‖².
    masses : ndarray, shape (M, d), or None
        For "diag" and "spherical" if cells are missing: means of r_m·o, where o is 1 for an observed cell,
        else 0. ``sums`` are then of r_m·o·y, and ``squares`` (M, d) of r_m·o·y².
    """

    weights: Array
    sums: Array
    squares: Array
    masses: Array | None = None


class Covariance:
    r"""A kind of covariance, without a state: this one is "full", a matrix for each component.

    The other kinds derive from it, and say what is different; :data:`KINDS` lists them.

    T(y) = [1, y, vech(yyᵀ)]. With :math:`P_m = \Sigma_m^{-1}`, φ has :math:`P_m \mu_m` for y, and for the
    products :math:`-\frac12 P_{ii}` and, as each pair occurs once, :math:`-P_{ij}`; the constant is
    :math:`\log \omega_m + \frac12 \log|P_m| - \frac12 \mu_m^T P_m \mu_m - \frac d2 \log 2\pi`.

    M-step: :math:`\Sigma_m = A_m / (N_m + \tilde\nu)`. The inverse-Wishart density has
    :math:`|\Sigma|^{-(\nu + d + 1)/2}`, the density of the mean :math:`|\Sigma|^{-1/2}`:
    :math:`\tilde\nu = \nu + d + 1`, plus 1 if there is a prior on the means.

    Parameters
    ----------
    has_holes : bool
        Whether rows have missing cells.

    Attributes
    ----------
    completes : bool
        Whether E-steps complete rows: with matrices, if cells are missing. The statistics then depend on θ.
    has_masses : bool
        Whether statistics have the masses of observed cells: without matrices, if cells are missing.
    """

    name: ClassVar[str] = "full"
    code: ClassVar[int] = 0
    """Number of the kind in compiled code, from 0 on."""
    is_estimated: ClassVar[bool] = True
    """Whether there are covariances to estimate; their centre is then the mean of the data, else zero."""
    has_matrices: ClassVar[bool] = True
    """Whether covariances are matrices (..., d, d)."""
    is_shared: ClassVar[bool] = False
    """Whether one covariance, with one sum of products, is estimated for all components."""
    omits_square: ClassVar[bool] = False
    """Whether φ omits −½‖Uᵀy‖², which is common to all components."""

    def __init__(self, has_holes: bool = False) -> None:
        self.completes = has_holes and self.has_matrices
        self.has_masses = has_holes and not self.has_matrices

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances: (M, d, d), or (d, d) if the matrix is shared."""
        return (d, d) if self.is_shared else (n_components, d, d)

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the statistics of squares: of matrices the lower triangles, row by row."""
        return (*self.shape(n_components, d)[:-2], vech_size(d))

    def squares(self, z: Array, rows: Array) -> Array:
        """Return the statistics of squares, of centred samples (b, d) and weighted rows (b, M)."""
        lower = lower_triangle(z.shape[1])
        return np.stack([((z * row[:, None]).T @ z)[lower] for row in rows.T])

    def n_features(self, d: int) -> int:
        """Return the number of entries of T(y) without 1: here d + d(d+1)/2."""
        return d + vech_size(d)

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the entries of T(y) after y, of centred samples (d, b), into ``out`` (p − d, b), if p > d."""
        row, column = lower_triangle(len(samples))
        np.multiply(samples[row], samples[column], out=out)

    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν̃ in counts; ``on_means`` is 1 if there is a prior on the means, else 0."""
        return nu + d + 1 + on_means * (n_components if self.is_shared else 1)

    def covariances(self, s: GaussianStatistics, means: Array, prior: BoundPrior) -> tuple[Array, Array]:
        """M-step: return the covariances, and for each variance its rounding error."""
        d = means.shape[1]
        inverse = 1.0 / (s.weights + prior.degrees)
        kappa = prior.mean_precision
        moments = from_vech(s.squares, d)
        # The product of two means first: it has the same rounding on both sides of the diagonal.
        scatter = moments - (s.weights + kappa)[:, None, None] * (means[:, :, None] * means[:, None, :])
        scatter += prior.scale + kappa * np.outer(prior.mean, prior.mean)
        scatter *= inverse[:, None, None]
        return scatter, ROUNDING * np.abs(self.variances(moments)) * inverse[:, None]

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return ``precisions_cholesky``, or None if a covariance is not positive (above ``floor``).

        Of matrices (..., d, d) it is U, upper triangular with U·Uᵀ the inverse.
        """
        try:
            lower = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            return None
        pivots = np.diagonal(lower, axis1=-2, axis2=-1)
        if not is_positive(pivots * pivots, floor):
            return None
        return np.ascontiguousarray(np.triu(np.swapaxes(np.linalg.inv(lower), -1, -2)))

    def log_det(self, factors: Array, d: int) -> Array | float:
        """Return log|U_m|, (M,) or one number, of ``precisions_cholesky``."""
        return np.asarray(np.log(self.variances(factors)).sum(axis=-1))

    def natural(self, means: Array, factors: Array) -> tuple[Array, Array, Array, Array]:
        """Return φ without its constant, (p, M), the squares ‖Uᵀμ‖² (M,), ``whiten`` and ``scales``."""
        d = means.shape[1]
        transposed = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
        whitened = (transposed @ means[:, :, None])[:, :, 0]
        row, column = lower_triangle(d)
        precision = factors @ transposed
        products = precision[:, row, column] * np.where(row == column, -0.5, -1.0)
        phi = np.concatenate([(factors @ whitened[:, :, None])[:, :, 0], products], axis=1)
        return np.ascontiguousarray(phi.T), (whitened * whitened).sum(axis=1), transposed, np.empty((0, d))

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ), of means minus the centre and ``precisions_cholesky``."""
        d = means.shape[1]
        with np.errstate(divide="ignore"):
            plain = np.log(weights) + self.log_det(factors, d)
        plain -= 0.5 * d * np.log(2.0 * np.pi)
        phi, squares, whiten, scales = self.natural(means, factors)
        return Coefficients(phi, plain - 0.5 * squares, means, plain, whiten, scales)

    def distance(self, away: Array, factors: Array, prior: BoundPrior) -> float:
        """Return the sum of tr Σ⁻¹Ψ and κ ‖Uᵀ(μ − m₀)‖², of ``away`` = μ − m₀; the trace once per Σ."""
        trace = (factors * (prior.scale @ factors)).sum()
        whitened = away[:, None, :] @ factors
        return float(trace + prior.mean_precision * (whitened * whitened).sum())

    def penalty(self, means: Array, factors: Array, prior: BoundPrior) -> float:
        """Return the prior's penalty, of means minus the centre and ``precisions_cholesky``."""
        log_det = -2.0 * np.sum(self.log_det(factors, means.shape[1]))
        return 0.5 * float(prior.degrees * log_det + self.distance(means - prior.mean, factors, prior))

    def stacked(self, factors: Array) -> Array:
        """Return ``precisions_cholesky`` with a first axis for components (or one for all)."""
        return factors.reshape(-1, *factors.shape[-2:])

    def coloured(self, noise: Array, factors: Array, labels: Index) -> Array:
        """Return standard normal rows (b, d) with the covariances of the components ``labels`` (b,)."""
        inverse = np.linalg.inv(self.stacked(factors))
        if self.is_shared:
            return np.asarray(noise @ inverse[0])
        return np.asarray(np.einsum("ij,ijk->ik", noise, inverse[labels]))

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the covariances of components whose columns have these variances (d,)."""
        shape = self.shape(n_components, len(variances))
        return np.broadcast_to(np.diag(variances), shape).copy()

    def unit_factors(self, s: GaussianStatistics) -> tuple[Array, Array]:
        """Return deviations (d,) of the columns, and the factors that free the squares of units.

        ``s`` are the statistics in parts.
        """
        row, column = lower_triangle(s.sums.shape[1])
        total = s.squares if self.is_shared else s.squares.sum(axis=0)
        deviations = deviations_of(total[row == column])
        return deviations, 1.0 / (deviations[row] * deviations[column])

    def features(self, z: Array) -> Array:
        """Return the input of compiled code for centred rows (b, d): by default the rows."""
        return z

    def parameters(self, weights: Array, means: Array, covariances: Array, factors: Array) -> Theta:
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

    def counts(self, s: Any) -> Array:
        """Return the counts that parameters are estimated from: (M, 1), or the masses of columns (M, d)."""
        return np.asarray(s.masses if self.has_masses else s.weights[:, None])

    def moments(
        self, s: GaussianStatistics, prior: BoundPrior, reg_covar: float
    ) -> tuple[Array, Array, Array]:
        """M-step: return means minus the centre, covariances, and for each variance its rounding error."""
        kappa = prior.mean_precision
        means = (s.sums + kappa * prior.mean) / (self.counts(s) + kappa)
        covariances, rounding = self.covariances(s, means, prior)
        self.variances(covariances)[...] += reg_covar
        return means, covariances, rounding

    def variances(self, covariances: Array) -> Array:
        """Return a view of the variances in covariances."""
        return np.einsum("...jj->...j", covariances) if self.has_matrices else covariances

    def size(self, n_components: int, d: int) -> int:
        """Return the length of the statistics."""
        return n_components * (1 + d) + int(np.prod(self.squares_shape(n_components, d)))

    def split(self, s: Array, n_components: int, d: int) -> Any:
        """Return named views of flat statistics."""
        end = n_components * (1 + d)
        return GaussianStatistics(
            s[:n_components],
            s[n_components:end].reshape(n_components, d),
            s[end:].reshape(self.squares_shape(n_components, d)),
        )


class Tied(Covariance):
    r"""Kind "tied": one covariance matrix for all components.

    T(y) = [1, y, vech(yyᵀ)], but :math:`-\frac12 y^T P y` is the same for all components and cancels in the
    softmax: φ needs only :math:`P \mu_m` for y and the constant :math:`\log \omega_m + \frac12 \log|P| -
    \frac12 \mu_m^T P \mu_m - \frac d2 \log 2\pi`. In the statistics the products are needed once, summed over
    the components: :math:`\sum_i w_i y_i y_i^T` is the same for every θ, and full passes compute it once.

    M-step: the sum over m of the loss above with one Ψ gives :math:`\Sigma = (s^3 + \sum_m [\kappa m_0 m_0^T
    - (N_m + \kappa) \mu_m \mu_m^T] + \Psi) / (\sum_m N_m + \tilde\nu)`. The prior on Σ occurs once, the ones
    on the M means have :math:`|\Sigma|^{-1/2}` each: :math:`\tilde\nu = \nu + d + 1`, plus M if there is a
    prior on the means.
    """

    name = "tied"
    code = 1
    is_shared = True
    omits_square = True

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i Σ_m rows_im vech(z_i z_iᵀ)."""
        scatter: Array = (z * rows.sum(axis=1)[:, None]).T @ z
        return np.asarray(scatter[lower_triangle(z.shape[1])])

    def n_features(self, d: int) -> int:
        """Return d."""
        return d

    def covariances(self, s: GaussianStatistics, means: Array, prior: BoundPrior) -> tuple[Array, Array]:
        """M-step."""
        n_components, d = means.shape
        inverse = 1.0 / (s.weights.sum() + prior.degrees)
        kappa = prior.mean_precision
        moments = from_vech(s.squares, d)
        between = ((s.weights + kappa)[:, None] * means).T @ means
        scatter = moments - 0.5 * (between + between.T)  # matrix products round differently
        scatter += prior.scale + n_components * kappa * np.outer(prior.mean, prior.mean)
        scatter *= inverse
        return scatter, ROUNDING * np.abs(self.variances(moments)) * inverse

    def natural(self, means: Array, factors: Array) -> tuple[Array, Array, Array, Array]:
        """Return Pμ."""
        whitened = means @ factors
        transposed = np.ascontiguousarray(factors.T)[None]
        squares = (whitened * whitened).sum(axis=1)
        return factors @ whitened.T, squares, transposed, np.empty((0, means.shape[1]))


class Diag(Covariance):
    r"""Kind "diag": a variance for each component and feature.

    T(y) = [1, y, y²]. With precisions :math:`p_{mj} = \sigma_{mj}^{-2}`, φ has :math:`p_{mj} \mu_{mj}` for
    :math:`y_j` and :math:`-\frac12 p_{mj}` for :math:`y_j^2`; the constant is :math:`\log \omega_m + \frac12
    \sum_j (\log p_{mj} - p_{mj} \mu_{mj}^2) - \frac d2 \log 2\pi`.

    M-step: :math:`\sigma_{mj}^2 = (A_m)_{jj} / (N_m + \tilde\nu)`. The prior of a variance is what IW(Ψ, ν)
    is for a single diagonal entry: inverse gamma of shape (ν − d + 1)/2 and scale :math:`\Psi_{jj}/2`, whose
    density has :math:`(\sigma^2)^{-(\nu - d + 3)/2}`. The mean's has :math:`(\sigma^2)^{-1/2}`:
    :math:`\tilde\nu = \nu - d + 3`, plus 1 if there is a prior on the means.
    """

    name = "diag"
    code = 2
    has_matrices = False

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M, d)."""
        return (n_components, d)

    def squares_shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return the shape of the covariances."""
        return self.shape(n_components, d)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i rows_im z_i²."""
        return rows.T @ (z * z)

    def n_features(self, d: int) -> int:
        """Return 2d, or 3d with the masses."""
        return 3 * d if self.has_masses else 2 * d

    def features(self, z: Array) -> Array:
        """Return the rows; if cells are missing, o·z, o·z² and o, (b, 3d)."""
        if not self.has_masses:
            return z
        seen = ~np.isnan(z)
        cells = np.where(seen, z, 0.0)
        return np.concatenate([cells, cells * cells, seen], axis=1)

    def statistics(self, z: Array, rows: Array, weight: Array) -> Array:
        """Return the weighted sums of r, r·y and the squares, or of r and r ⊗ features, flat."""
        if not self.has_masses:
            return super().statistics(z, rows, weight)
        weighted = rows * weight[:, None]
        return np.concatenate([weighted.sum(axis=0), (weighted.T @ self.features(z)).ravel()])

    def size(self, n_components: int, d: int) -> int:
        """Return the length of the statistics."""
        return n_components * (1 + 3 * d) if self.has_masses else super().size(n_components, d)

    def split(self, s: Array, n_components: int, d: int) -> Any:
        """Return named views of flat statistics."""
        if not self.has_masses:
            return super().split(s, n_components, d)
        parts = s[n_components:].reshape(n_components, 3, d)
        return GaussianStatistics(s[:n_components], parts[:, 0], parts[:, 1], parts[:, 2])

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the squares."""
        np.multiply(samples, samples, out=out)

    def degrees(self, nu: float, d: int, n_components: int, on_means: int) -> float:
        """Return ν − d + 3, and 1 for the means: for each feature."""
        return nu - d + 3 + on_means

    def covariances(self, s: GaussianStatistics, means: Array, prior: BoundPrior) -> tuple[Array, Array]:
        """M-step."""
        counts, kappa = self.counts(s), prior.mean_precision
        inverse = 1.0 / (counts + prior.degrees)
        scatter = s.squares - (counts + kappa) * means * means
        scatter += prior.scale + kappa * prior.mean**2
        return scatter * inverse, ROUNDING * np.abs(s.squares) * inverse

    def factor(self, covariances: Array, floor: Array | float = 0.0) -> Array | None:
        """Return 1/σ, (M, d) or (M,)."""
        return 1.0 / np.sqrt(covariances) if is_positive(covariances, floor) else None

    def log_det(self, factors: Array, d: int) -> Array | float:
        """Return −Σ_j log σ_mj."""
        return np.asarray(np.log(factors).sum(axis=1))

    def natural(self, means: Array, factors: Array) -> tuple[Array, Array, Array, Array]:
        """Return pμ and −½p."""
        scales, d = self.stacked(factors), means.shape[1]
        precision = scales * scales
        phi = np.concatenate([precision * means, -0.5 * precision], axis=1)
        squares = (precision * means * means).sum(axis=1)
        scales = np.broadcast_to(scales, means.shape).copy()
        return np.ascontiguousarray(phi.T), squares, np.empty((0, d, d)), scales

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ), of T(y) or of the features if cells are missing."""
        if not self.has_masses:
            return super().coefficients(weights, means, factors)
        scales = np.broadcast_to(self.stacked(factors), means.shape)
        precision = scales * scales
        own = np.log(scales) - 0.5 * (precision * means * means + np.log(2.0 * np.pi))
        phi = np.concatenate([precision * means, -0.5 * precision, own], axis=1)
        with np.errstate(divide="ignore"):
            return Coefficients.linear(phi, np.log(weights))

    def distance(self, away: Array, factors: Array, prior: BoundPrior) -> float:
        """Return Σ_mj of (Ψ_jj + κ (μ − m₀)²) / σ²."""
        precision = self.stacked(factors) ** 2
        return float((precision * (prior.scale + prior.mean_precision * away**2)).sum())

    def stacked(self, factors: Array) -> Array:
        """Return 1/σ, (M, d) or (M, 1)."""
        return factors.reshape(len(factors), -1)

    def coloured(self, noise: Array, factors: Array, labels: Index) -> Array:
        """Return noise·σ."""
        return np.asarray(noise / self.stacked(factors)[labels])

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the variances for each component."""
        return np.tile(variances, (n_components, 1))

    def unit_factors(self, s: GaussianStatistics) -> tuple[Array, Array]:
        """Return the deviations of the columns, and one over their squares."""
        total = s.squares.sum(axis=0)
        if s.masses is not None:
            total = total / np.maximum(s.masses.sum(axis=0), LEAST_VARIANCE)
        deviations = deviations_of(total)
        return deviations, 1.0 / deviations**2


class Spherical(Diag):
    r"""Kind "spherical": a variance for each component, the same for all its features.

    T(y) = [1, y, ‖y‖²]. With :math:`p_m = \sigma_m^{-2}`, φ has :math:`p_m \mu_m` for y and :math:`-\frac12
    p_m` for the square; the constant is :math:`\log \omega_m + \frac12 (d \log p_m - p_m \|\mu_m\|^2) - \frac
    d2 \log 2\pi`.

    M-step: :math:`\sigma_m^2 = \mathrm{tr}\, A_m / (d (N_m + \tilde\nu))`, the mean over columns of "diag".
    The prior is the one of "diag" for equal variances, :math:`\prod_j p(\sigma^2 \mid \Psi_{jj})`, so that a
    sample in the prior counts like one in the data: :math:`\tilde\nu = \nu - d + 3` for each feature, plus 1
    if there is a prior on the means.
    """

    name = "spherical"
    code = 3

    def shape(self, n_components: int, d: int) -> tuple[int, ...]:
        """Return (M,)."""
        return (n_components,)

    def squares(self, z: Array, rows: Array) -> Array:
        """Return Σ_i rows_im ‖z_i‖²."""
        return np.asarray(rows.T @ (z * z).sum(axis=1))

    def n_features(self, d: int) -> int:
        """Return d + 1, or 3d with the masses."""
        return 3 * d if self.has_masses else d + 1

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the sum of squares."""
        np.einsum("ct,ct->t", samples, samples, out=out[0])

    def covariances(self, s: GaussianStatistics, means: Array, prior: BoundPrior) -> tuple[Array, Array]:
        """M-step."""
        counts, kappa = np.broadcast_to(self.counts(s), means.shape), prior.mean_precision
        squares = s.squares.sum(axis=1) if self.has_masses else s.squares
        scatter = squares - ((counts + kappa) * means * means).sum(axis=1)
        scatter += (prior.scale + kappa * prior.mean**2).sum()
        inverse = 1.0 / (counts + prior.degrees).sum(axis=1)
        return scatter * inverse, ROUNDING * np.abs(squares) * inverse

    def log_det(self, factors: Array, d: int) -> Array | float:
        """Return −d log σ_m."""
        return np.asarray(d * np.log(factors))

    def diagonal(self, variances: Array, n_components: int) -> Array:
        """Return the mean of the variances for each component."""
        return np.full(n_components, variances.mean())

    def unit_factors(self, s: GaussianStatistics) -> tuple[Array, Array]:
        """Return one deviation for all columns, and one over its square; as for "diag" with masses."""
        if s.masses is not None:
            return super().unit_factors(s)
        d = s.sums.shape[1]
        deviations = deviations_of(np.full(d, s.squares.sum() / d))
        return deviations, np.full(len(s.squares), 1.0 / deviations[0] ** 2)


class Unit(Spherical):
    r"""Kind "unit": variances of one, which are no parameters, as in the paper's section 2.1.

    T(y) = [1, y], as :math:`-\frac12 \|y\|^2` is common to all components; φ has :math:`\mu_m` for y, and the
    constant is :math:`\log \omega_m - \frac12 \|\mu_m\|^2 - \frac d2 \log 2\pi`. Statistics are not centred:
    they are the paper's, and the penalty :math:`\frac\delta2 \sum_m \|\mu_m\|^2` is the one of a prior on
    the means with :math:`m_0 = 0` and κ = δ.

    M-step: :math:`\mu_m = s^2_m / (s^1_m + \delta)`, equation (mstep_gmm0).
    """

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

    def covariances(self, s: GaussianStatistics, means: Array, prior: BoundPrior) -> tuple[Array, Array]:
        """Return ones."""
        return np.ones(len(means)), np.zeros(len(means))

    def log_det(self, factors: Array, d: int) -> Array | float:
        """Return zero."""
        return 0.0

    def natural(self, means: Array, factors: Array) -> tuple[Array, Array, Array, Array]:
        """Return μ."""
        d, squares = means.shape[1], (means * means).sum(axis=1)
        return np.ascontiguousarray(means.T), squares, np.empty((0, d, d)), np.ones_like(means)

    def unit_factors(self, s: GaussianStatistics) -> tuple[Array, Array]:
        """Return ones: the standard deviation is the unit."""
        return np.ones(s.sums.shape[1]), np.empty(0)

    def parameters(self, weights: Array, means: Array, covariances: Array, factors: Array) -> Theta:
        """Return θ, without covariances."""
        return GaussianMixtureTheta(weights, means)

    def factors_of(self, theta: Theta) -> Array:
        """Return ones."""
        return np.ones(len(theta.weights))

    def split(self, s: Array, n_components: int, d: int) -> Any:
        """Return named views of flat statistics."""
        return MixtureStatistics(s[:n_components], s[n_components:].reshape(n_components, d))


def widened(s: GaussianStatistics) -> Array:
    """Return statistics of complete rows of "diag" or "spherical", flat in the form with masses."""
    d = s.sums.shape[1]
    # Of "spherical", only the sum over the columns matters.
    squares = s.squares if s.squares.ndim > 1 else np.repeat(s.squares[:, None] / d, d, axis=1)
    masses = np.repeat(s.weights[:, None], d, axis=1)
    return np.concatenate([s.weights, np.hstack([s.sums, squares, masses]).ravel()])


def deviations_of(variances: Array) -> Array:
    """Return standard deviations, one for columns without spread."""
    return np.asarray(np.sqrt(np.where(variances > LEAST_VARIANCE, variances, 1.0)))


def vech_size(d: int) -> int:
    """Return the number of entries of the lower triangle of a d×d matrix."""
    return d * (d + 1) // 2


@lru_cache(maxsize=32)
def _places(d: int) -> Index:
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


KINDS: tuple[type[Covariance], ...] = (Unit, Covariance, Tied, Diag, Spherical)
"""The classes of all kinds."""

COVARIANCES = {kind.name: kind() for kind in KINDS}
"""The kinds by name."""

OBSERVED = {kind.name: kind(has_holes=kind.is_estimated) for kind in KINDS}
"""The kinds by name, for rows with missing cells."""

ESTIMATED = tuple(name for name, kind in COVARIANCES.items() if kind.is_estimated)
"""Names of the kinds whose covariances are estimated: those that estimators offer."""

FULL, TIED, DIAG, SPHERICAL, UNIT = (
    COVARIANCES[name].code for name in ("full", "tied", "diag", "spherical", "unit")
)
"""Their codes, for compiled code and devices."""
