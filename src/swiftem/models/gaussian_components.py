"""Gaussian mixtures with estimated covariances: the parts common to all kinds.

Statistics are sums of r, r·y and r·yyᵀ of samples minus the mean of the data, which ``bind`` computes in one
pass. Sums are additive, so that every method works, and an offset of the data costs no digits. The spread
does: if clusters are 10⁶ standard deviations apart, covariances have four digits, and if only rounding is
left of a variance, the statistics are outside the domain. E-steps lose no digits: a block whose samples are
too far for expanded squares is computed from whitened differences.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._checks import as_floats
from swiftem._typing import Array, Index
from swiftem.data.source import Batch, Source
from swiftem.engine.reference import gaussian_components as kernel
from swiftem.models.components import BoundComponents, Coefficients, share_largest
from swiftem.models.covariance import Covariance
from swiftem.models.gaussian_theta import GaussianStatistics, GaussianTheta
from swiftem.models.normal_inverse_wishart import BoundPrior
from swiftem.models.rows import BLOCK, LARGEST, different_rows, two_dimensional

if TYPE_CHECKING:
    from swiftem.models.gaussian_mixture import GaussianMixtureModel

__all__ = ["BoundGaussians", "check_covariances"]

LEAST_VARIANCE = 1e-280
"""Smallest spread of a column: with less, its inverse would not be finite."""


def check_covariances(
    name: str, covariances: ArrayLike, kind: Covariance, n_components: int, d: int
) -> tuple[Array, Array]:
    """Return covariances and their ``precisions_cholesky``; errors use ``name``."""
    shape = kind.shape(n_components, d)
    found = as_floats(name, covariances, shape=shape).copy()
    if len(shape) > 1 and shape[-2:] == (d, d) and kind.name in ("full", "tied"):
        size = np.sqrt(np.abs(np.diagonal(found, axis1=-2, axis2=-1)))
        allowed = 1e-8 * size[..., :, None] * size[..., None, :]
        if (np.abs(found - np.swapaxes(found, -1, -2)) > allowed).any():
            raise ValueError(f"{name} must be symmetric.")
    factors = kind.factor(found)
    if factors is None:
        what = "positive definite" if kind.name in ("full", "tied") else "positive"
        raise ValueError(f"{name} must be {what}.")
    if np.abs(factors).max() > LARGEST:  # their squares are the precisions
        raise ValueError(f"{name} must have variances of at least {LARGEST**-2:g}: use another unit.")
    return found, factors


@dataclass(frozen=True, eq=False)
class BoundGaussians(BoundComponents):
    """A :class:`GaussianMixtureModel` with covariances, for data of given dimension.

    Attributes
    ----------
    kind : Covariance
        The kind of covariance.
    centre : ndarray, shape (d,)
        Subtracted from samples before their statistics are computed.
    prior : BoundPrior
        The prior, for means of samples; zeros if there is none.
    epsilon : float
        Penalty on the weights, for means of samples.
    """

    ILL_DEFINED: ClassVar[str] = (
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
        "instance caused by singleton or collapsed samples). Try to decrease the number of components, "
        "increase reg_covar, or scale the input data."
    )
    REMEDY: ClassVar[str] = "fewer components, a larger reg_covar or a prior"

    model: GaussianMixtureModel
    source: Source
    kind: Covariance
    centre: Array
    prior: BoundPrior
    epsilon: float
    _solved: Any = field(default_factory=threading.local, repr=False)

    @property
    def d(self) -> int:
        """Number of columns of the data."""
        return len(self.centre)

    @property
    def code(self) -> int:
        """Features of the kind of covariance."""
        return self.kind.code

    @property
    def size(self) -> int:
        """Length of the statistics."""
        return self.kind.size(self.model.n_components, self.d)

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return self.size - 1

    @property
    def is_held(self) -> bool:
        """Whether a prior in counts keeps components without rows."""
        return self.model.in_counts

    def like(self) -> GaussianTheta:
        """Return arrays of the parameters' shapes."""
        n_components, shape = self.model.n_components, self.kind.shape(self.model.n_components, self.d)
        return GaussianTheta(*map(np.empty, ((n_components,), (n_components, self.d), shape, shape)))

    @property
    def about(self) -> Array:
        """The centre."""
        return self.centre

    def with_share(self, share: float) -> BoundGaussians:
        """Return the same with a weaker prior."""
        if not self.model.in_counts:
            return self
        prior = self.prior
        scaled = BoundPrior(
            prior.mean, prior.mean_precision * share, prior.degrees * share, prior.scale * share
        )
        epsilon = self.epsilon if self.model.concentration is None else self.epsilon * share
        return replace(self, prior=scaled, epsilon=epsilon)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_solved"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _solved=threading.local())

    def initial_theta(self, rng: np.random.Generator) -> GaussianTheta:
        """Return equal (or known) weights, M distinct rows as means, and the covariance of all data."""
        n_components = self.model.n_components
        means = different_rows(self.source, n_components, self.d, rng)
        s = np.zeros(self.kind.size(n_components, self.d))
        for batch in self.source.blocks(BLOCK):
            # One component is enough: all have the same covariance.
            s1 = kernel.statistics(
                self.centred(batch), np.ones((len(batch.index), 1)), batch.weight, self.kind.squares
            )
            one = self.kind.split(s1 / self.source.total_weight, 1, self.d)
            parts = self.kind.split(s, n_components, self.d)
            parts.weights[:] += one.weights / n_components
            parts.sums[:] += one.sums / n_components
            parts.squares[...] += one.squares if self.kind.name == "tied" else one.squares / n_components
        pooled = self._solve(s)
        if pooled is None:
            raise ValueError(
                f"data must have a positive definite covariance for covariance={self.kind.name!r}: "
                "leave out columns that are constant or depend on others, or give reg_covar or a prior."
            )
        weights = self.model.known_weights or np.full(n_components, 1.0 / n_components)
        return pooled._replace(weights=np.array(weights), means=means)

    def check_theta(self, theta: Any, name: str = "theta0") -> GaussianTheta:
        """Return ``theta``, checked against model and data."""
        if not isinstance(theta, GaussianTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, means=, covariances=), "
                f"got {type(theta).__name__}."
            )
        weights, means = self.model.check_weights_and_means(theta.weights, theta.means, f"{name}.")
        if means.shape[1] != self.d:
            raise ValueError(
                f"{name}.means must have as many columns as data, {self.d}, got {means.shape[1]}."
            )
        return GaussianTheta(
            weights,
            means,
            *check_covariances(
                f"{name}.covariances", theta.covariances, self.kind, self.model.n_components, self.d
            ),
        )

    def centred(self, batch: Batch) -> Array:
        """Return the samples minus the centre, float64 (b, d)."""
        # In one memory order, as sums depend on it in rounding.
        centred: Array = np.subtract(two_dimensional(batch.y), self.centre, order="C")
        return centred

    def coefficients(self, theta: GaussianTheta) -> Coefficients:
        """Return φ(θ), for centred samples."""
        # A mean far from all samples has a constant of −∞.
        with np.errstate(over="ignore", invalid="ignore"):
            means = theta.means - self.centre
            found = self.kind.coefficients(theta.weights, means, theta.precisions_cholesky)
        if not np.isfinite(found.phi).all() or np.isnan(found.constant).any():
            raise ValueError(
                "data must have a spread whose inverse square is finite in every component: scale the "
                "columns, or give reg_covar or a prior."
            )
        return found

    def posterior(self, batch: Batch, theta: GaussianTheta) -> tuple[Array, Array]:
        """E-step: responsibilities (b, M) and log-likelihood (b,)."""
        factors = self.kind.stacked(theta.precisions_cholesky)
        return kernel.posterior(self.centred(batch), theta.weights, theta.means - self.centre, factors)

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        return kernel.statistics(self.centred(batch), rows, weight, self.kind.squares)

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step gives positive weights and positive definite covariances.

        This computes the M-step: its result is cached per thread for :meth:`m_step`.
        """
        theta = self._solve(s)
        self._solved.last = None if theta is None else (s.copy(), theta)
        return theta is not None

    def m_step(self, s: Array) -> GaussianTheta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep), in the coordinates of the data."""
        known, theta = getattr(self._solved, "last", None) or (None, None)
        self._solved.last = None
        if theta is None or known is None or not np.array_equal(known, s):
            theta = self._solve(s)
        if theta is None:
            raise ValueError("s must lie in the model's domain, where the M-step exists.")
        return theta

    def _solve(self, s: Array) -> GaussianTheta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.kind.split(s, self.model.n_components, self.d)
        kappa, counts = self.prior.mean_precision, parts.weights
        least = counts.min()
        if not (least + self.epsilon > 0.0 and least + kappa > 0.0 and least + self.prior.degrees > 0.0):
            return None
        means = (parts.sums + kappa * self.prior.mean) / (counts + kappa)[:, None]
        covariances, floor = self.kind.covariances(parts, means, self.prior, float(self.model.reg_covar))
        factors = self.kind.factor(covariances, floor)
        if factors is None:
            return None
        if self.model.known_weights is not None:
            weights = np.array(self.model.known_weights)
        else:
            weights = counts + self.epsilon
            weights /= weights.sum()
        return GaussianTheta(weights, means + self.centre, covariances, factors)

    def penalty(self, theta: GaussianTheta) -> float:
        """Return −ε Σ log ω_m and the prior's penalty; ``reg_covar`` has none."""
        value = 0.0
        if self.model.known_weights is None and self.epsilon > 0:
            with np.errstate(divide="ignore"):
                value -= self.epsilon * float(np.log(theta.weights).sum())
        if self.model.prior is not None:
            value += self.kind.penalty(theta.means - self.centre, theta.precisions_cholesky, self.prior)
        return value

    def unpack(self, s: Array) -> GaussianStatistics:
        """Return named views of flat statistics."""
        size = self.kind.size(self.model.n_components, self.d)
        if np.shape(s) != (size,):
            raise ValueError(f"s must have shape ({size},), got {np.shape(s)}.")
        return self.kind.split(s, self.model.n_components, self.d)

    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step; for "tied", none if the shared covariance has one."""
        parts = self.unpack(s)
        kappa, counts = self.prior.mean_precision, parts.weights
        bad = (counts + kappa <= 0.0) | (counts + self.prior.degrees <= 0.0) | (counts + self.epsilon <= 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            means = (parts.sums + kappa * self.prior.mean) / (counts + kappa)[:, None]
            means[bad] = 0.0
            covariances, floor = self.kind.covariances(parts, means, self.prior, self.model.reg_covar)
            if self.kind.name == "tied":
                bad |= self.kind.factor(covariances, floor) is None
            else:
                for m in np.flatnonzero(~bad):
                    here = slice(m, m + 1)
                    bad[m] = self.kind.factor(covariances[here], np.asarray(floor)[here]) is None
        return np.flatnonzero(bad)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
        """Return the M-step of a start; components without one get the covariance of all data.

        Components without rows share weight and covariance of the largest: k-means may find fewer clusters
        than requested if rows repeat, and a wide component next to narrow ones would lose its rows at once.
        """
        filled = s.copy()
        parts = self.unpack(filled)
        empty = share_largest(parts.weights, parts[:2] if self.kind.name == "tied" else parts)
        if self.in_domain(filled):
            theta = self.m_step(filled)
        else:
            theta, gone = self.initial_theta(rng), self.collapsed(filled)
            means = parts.sums / parts.weights[:, None]
            kept = np.setdiff1d(np.arange(len(means)), gone)
            covariances, factors = theta.covariances.copy(), theta.precisions_cholesky.copy()
            if len(kept):
                found, _ = self.kind.covariances(parts, means, self.prior, self.model.reg_covar)
                own = self.kind.factor(found[kept])
                assert own is not None, "each of them has been checked"
                covariances[kept], factors[kept] = found[kept], own
            weights = parts.weights / parts.weights.sum()
            theta = GaussianTheta(weights, means + self.centre, covariances, factors)
        means = theta.means.copy()
        means[empty] = rows
        return theta._replace(means=means)

    def reset(
        self, theta: GaussianTheta, s: Array, gone: Index, rows: Array, rng: np.random.Generator
    ) -> GaussianTheta:
        """Return θ with some components at ``rows`` (k, d), with the covariance of all data."""
        whole = self.initial_theta(rng)
        means, weights = theta.means.copy(), theta.weights.copy()
        means[gone] = rows
        weights[gone] = 1.0 / len(weights)
        if self.kind.name == "tied":
            return GaussianTheta(weights / weights.sum(), means, whole.covariances, whole.precisions_cholesky)
        covariances, factors = theta.covariances.copy(), theta.precisions_cholesky.copy()
        covariances[gone], factors[gone] = whole.covariances[gone], whole.precisions_cholesky[gone]
        return GaussianTheta(weights / weights.sum(), means, covariances, factors)

    def draw(self, theta: GaussianTheta, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return random rows of components."""
        z, factors = rng.normal(size=(len(labels), self.d)), theta.precisions_cholesky
        if self.kind.name == "full":
            z = np.einsum("ij,ijk->ik", z, np.linalg.inv(factors)[labels])
        elif self.kind.name == "tied":
            z = z @ np.linalg.inv(factors)
        else:
            z = z / factors[labels].reshape(len(labels), -1)
        return np.asarray(theta.means[labels] + z)

    def imputed(
        self, y: NDArray[Any], rows: Array, theta: GaussianTheta, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Return the rows, which are complete."""
        return y

    def without_unit(self, s: Array) -> Array:
        """Return the factors of each statistic if the rows are scaled to unit variance."""
        one = np.ones_like(s)
        parts, factors = self.unpack(s), self.unpack(one)
        squares, kind = parts.squares, self.kind.name
        if kind == "spherical":
            variance = np.full(self.d, squares.sum() / self.d)
        elif kind == "diag":
            variance = squares.sum(axis=0)
        else:
            row, column = kernel.lower_triangle(self.d)
            total = squares if kind == "tied" else squares.sum(axis=0)
            variance = total[row == column]
        deviation = np.sqrt(np.where(variance > LEAST_VARIANCE, variance, 1.0))
        factors.sums[...] = 1.0 / deviation
        if kind == "spherical":
            factors.squares[...] = 1.0 / deviation[0] ** 2
        elif kind == "diag":
            factors.squares[...] = 1.0 / deviation**2
        else:
            factors.squares[...] = 1.0 / (deviation[row] * deviation[column])
        return one
