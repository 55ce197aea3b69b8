"""A Gaussian mixture bound to its data: the parts common to all kinds of covariance.

Statistics are sums of r, r·y and r·yyᵀ of samples minus the mean of the data, which ``bind`` computes in one
pass. Sums are additive, so that every method works, and an offset of the data costs no digits. The spread
does: if clusters are 10⁶ standard deviations apart, covariances have four digits, and if only rounding is
left of a variance, the statistics are outside the domain. E-steps lose no digits: a block whose samples are
too far for expanded squares is computed from whitened differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_floats
from swiftem.core.source import Batch
from swiftem.core.types import Array, Rows, Theta
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute import LINEAR
from swiftem.mixture.compute.numpy import log_joint, softmax
from swiftem.mixture.covariance import Covariance
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.rows import BLOCK, LARGEST, columns_of, different_rows, two_dimensional

if TYPE_CHECKING:
    from swiftem.mixture.gaussian_model import GaussianMixtureModel

__all__ = ["BoundGaussians", "check_covariances"]


def check_covariances(
    name: str, covariances: ArrayLike, kind: Covariance, n_components: int, d: int
) -> tuple[Array, Array]:
    """Return covariances and their ``precisions_cholesky``; errors use ``name``."""
    checked = as_floats(name, covariances, shape=kind.shape(n_components, d)).copy()
    if kind.has_matrices:
        size = np.sqrt(np.abs(np.diagonal(checked, axis1=-2, axis2=-1)))
        allowed = 1e-8 * size[..., :, None] * size[..., None, :]
        if (np.abs(checked - np.swapaxes(checked, -1, -2)) > allowed).any():
            raise ValueError(f"{name} must be symmetric.")
    factors = kind.factor(checked)
    if factors is None:
        raise ValueError(f"{name} must be positive{' definite' if kind.has_matrices else ''}.")
    if np.abs(factors).max() > LARGEST:  # their squares are the precisions
        raise ValueError(f"{name} must have variances of at least {LARGEST**-2:g}: use another unit.")
    return checked, factors


@dataclass(frozen=True, eq=False)
class BoundGaussians(BoundComponents):
    """A :class:`swiftem.models.GaussianMixtureModel` for its data.

    Attributes
    ----------
    prior : BoundPrior
        The prior, for means of samples; zeros if there is none.
    """

    model: GaussianMixtureModel
    prior: BoundPrior

    @cached_property
    def kind(self) -> Covariance:
        """The kind of covariance."""
        return self.model.kind

    @property
    def code(self) -> int:
        """Features of the kind of covariance."""
        return LINEAR if self.kind.has_masses else self.kind.code

    @property
    def origin(self) -> Array:
        """The centre; zeros if there are features of centred rows."""
        return np.zeros(3 * self.d) if self.kind.has_masses else self.centre

    @property
    def n_features(self) -> int:
        """Number of entries of T(y)."""
        return self.kind.n_features(self.d)

    @property
    def omits_square(self) -> bool:
        """Whether φ omits a square that is common to all components."""
        return self.kind.omits_square

    @property
    def shares_products(self) -> bool:
        """Whether one sum of products is estimated for all components."""
        return self.kind.is_shared

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the entries of T(y) after y."""
        self.kind.write_squares(samples, out)

    @cached_property
    def column_variances(self) -> Array:
        """Variances of the observed cells of the columns, (d,)."""
        return columns_of(self.source).variance

    def filled(self, y: Rows) -> Rows:
        """Return rows (b, d) with the mean of their column in missing cells."""
        return np.where(np.isnan(y), self.centre.astype(y.dtype), y) if self.model.has_holes else y

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return equal (or known) weights, M distinct rows as means, and the covariance of all data."""
        n_components, d, kind = self.model.n_components, self.d, self.kind
        weights = self.model.initial_weights()
        means = self.filled(different_rows(self.source, n_components, d, rng))
        if not kind.is_estimated:
            covariances = kind.diagonal(np.ones(d), n_components)
            return kind.parameters(weights, means, covariances, covariances)
        if not self.model.has_holes:
            return self._pooled()._replace(weights=weights, means=means)
        covariances = kind.diagonal(self.column_variances + self.model.reg_covar, n_components)
        factors = kind.factor(covariances)
        if factors is None:
            raise ValueError(
                f"data must have columns that vary for covariance={kind.name!r}: leave out columns that "
                "are constant, or give reg_covar or a prior."
            )
        return kind.parameters(weights, means, covariances, factors)

    def _pooled(self) -> Any:
        """Return the M-step of equal responsibilities: every covariance is the one of all data."""
        n_components, kind = self.model.n_components, self.kind
        s = np.zeros(self.size)
        parts = self.split(s)
        for batch in self.source.blocks(BLOCK):
            # One component is enough: all have the same covariance.
            alone = kind.statistics(self.centred(batch), np.ones((len(batch.index), 1)), batch.weight)
            one = kind.split(alone / self.source.total_weight, 1, self.d)
            parts.weights[:] += one.weights / n_components
            parts.sums[:] += one.sums / n_components
            parts.squares[...] += one.squares if kind.is_shared else one.squares / n_components
        theta = self.solve(s)
        if theta is None:
            raise ValueError(
                f"data must have a positive definite covariance for covariance={kind.name!r}: "
                "leave out columns that are constant or depend on others, or give reg_covar or a prior."
            )
        return theta

    def check_theta(self, theta: Theta, name: str = "theta0") -> Theta:
        """Return ``theta``, checked against model and data."""
        like = self.like()
        if type(theta) is not type(like):
            given = [part for part in like._fields if part != "precisions_cholesky"]
            raise TypeError(
                f"{name} must be made by model.theta({'=, '.join(given)}=), got {type(theta).__name__}."
            )
        columns = np.atleast_1d(theta.means).shape[-1]
        if columns != self.d:
            raise ValueError(f"{name}.means must have as many columns as data, {self.d}, got {columns}.")
        covariances = theta.covariances if self.kind.is_estimated else None
        return self.model.check_theta(theta.weights, theta.means, covariances, f"{name}.")

    def like(self) -> Any:
        """Return parameters with arrays of the right shapes."""
        n_components = self.model.n_components
        shape = self.kind.shape(n_components, self.d)
        shapes = ((n_components,), (n_components, self.d), shape, shape)
        return self.kind.parameters(*map(np.empty, shapes))

    def centred(self, batch: Batch) -> Array:
        """Return the samples minus the centre, float64 (b, d)."""
        # In one memory order, as sums depend on it in rounding.
        centred: Array = np.subtract(two_dimensional(batch.y), self.centre, order="C", dtype=np.float64)
        return centred

    def features(self, y: Rows) -> Rows:
        """Return the rows, or features of centred rows if cells are missing."""
        if not self.kind.has_masses:
            return y
        return self.kind.features(np.subtract(y, self.centre, order="C", dtype=np.float64))

    def coefficients(self, theta: Theta) -> Coefficients:
        """Return φ(θ), for centred samples."""
        # A mean far from all samples has a constant of −∞.
        with np.errstate(over="ignore", invalid="ignore"):
            means = theta.means - self.centre
            coefficients = self.kind.coefficients(theta.weights, means, self.kind.factors_of(theta))
        if not np.isfinite(coefficients.phi).all() or np.isnan(coefficients.constant).any():
            raise ValueError(
                "data must have a spread whose inverse square is finite in every component: scale the "
                "columns, or give reg_covar or a prior."
            )
        return coefficients

    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return log g_m(y), (b, M)."""
        alone = theta._replace(weights=np.ones(self.n_components))
        return log_joint(self.kind.features(self.centred(batch)), self.coefficients(alone))

    def posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        r"""E-step: responsibilities (b, M) and log-likelihood (b,).

        :math:`r_m(y) \propto \omega_m |U_m| \exp(-\|U_m^T (y - \mu_m)\|^2 / 2)`, for unit variances equation
        (cexp).
        """
        with np.errstate(divide="ignore"):
            return softmax(self.log_densities(batch, theta) + np.log(theta.weights))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        return self.kind.statistics(self.centred(batch), rows, weight)

    def solve(self, s: Array) -> Theta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.split(s)
        least = self.kind.least_count(parts).min()
        if not (
            parts.weights.min() + self.epsilon > 0.0
            and least + self.prior.mean_precision > 0.0
            and least + self.prior.degrees > 0.0
        ):
            return None
        means, covariances, floor = self.kind.moments(parts, self.prior, float(self.model.reg_covar))
        factors = self.kind.factor(covariances, floor)
        if factors is None:
            return None
        weights = parts.weights + self.epsilon
        known = self.model.known_weights
        weights = weights / weights.sum() if known is None else np.array(known)
        return self.kind.parameters(weights, means + self.centre, covariances, factors)

    def penalty(self, theta: Theta) -> float:
        """Return −ε Σ log ω_m and the prior's penalty; ``reg_covar`` has none."""
        value = super().penalty(theta) if self.model.known_weights is None else 0.0
        if self.prior.mean_precision > 0.0 or self.prior.degrees > 0.0:
            value += self.kind.penalty(theta.means - self.centre, self.kind.factors_of(theta), self.prior)
        return value

    def split(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        return self.kind.split(s, self.model.n_components, self.d)

    def unit_factors(self, s: Array) -> Array:
        """Return the factors of each statistic if the rows are scaled to unit variance."""
        one = np.ones_like(s)
        factors = self.unpack(one)
        deviations, of_squares = self.kind.unit_factors(self.unpack(s))
        factors.sums[...] = 1.0 / deviations
        if len(of_squares):
            factors.squares[...] = of_squares
        return one
