"""Starts, repairs and draws of a mixture bound to its data: what estimators need beyond EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from swiftem.core.source import Batch
from swiftem.core.types import Array, Index, Rows, Theta
from swiftem.mixture.components import BoundComponents, two_dimensional
from swiftem.mixture.compute.conditionals import blocks_of, conditionals, expected_rows, numbered
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.covariance import GaussianStatistics, GaussianTheta
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.model import BoundMixture

DEAD = 1e-6
"""A component with fewer rows, counted by responsibilities and by weights of mean 1, is dead."""


class GaussianStarts:
    """Starts, repairs and draws of Gaussian mixtures.

    Attributes
    ----------
    ILL_DEFINED : str
        The error for data that do not allow such components.
    REMEDY : str
        What prevents that components lose all rows.
    """

    ILL_DEFINED = (
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
        "instance caused by singleton or collapsed samples). Try to decrease the number of components, "
        "increase reg_covar, or scale the input data."
    )
    REMEDY = "fewer components, a larger reg_covar or a prior"

    def __init__(self, bound: BoundGaussians) -> None:
        self.bound = bound

    @property
    def is_held(self) -> bool:
        """Whether a prior in counts keeps components without rows."""
        return self.bound.model.in_counts

    @property
    def n_free(self) -> int:
        """Number of free parameters: the length of the statistics of complete rows, but for one weight."""
        return replace(self.bound.model, has_holes=False).size(self.bound.d) - 1

    @property
    def about(self) -> Array:
        """Argument ``centre`` of ``model.bind`` for other rows, so that their statistics can be added."""
        return self.bound.centre

    def with_share(self, share: float) -> BoundGaussians:
        """Return the bound model with a prior in counts that has this share of its weight."""
        bound, prior = self.bound, self.bound.prior
        if not bound.model.in_counts:
            return bound
        scaled = prior._replace(
            mean_precision=prior.mean_precision * share,
            degrees=prior.degrees * share,
            scale=prior.scale * share,
        )
        epsilon = bound.epsilon if bound.model.concentration is None else bound.epsilon * share
        return replace(bound, prior=scaled, epsilon=epsilon)

    def for_start(self, y: Rows) -> Rows:
        """Return the rows (b, d) for k-means, with the mean of their column in missing cells."""
        return self.bound.filled(two_dimensional(y)) if self.bound.model.has_holes else y

    def start_rows(self, responsibilities: Array, batch: Batch) -> Array:
        """Return posterior rows (b, R) of responsibilities (b, M) of a start."""
        if self.bound.kind.completes:
            return _completed_rows(self.bound, responsibilities, batch)
        return responsibilities

    def dead(self, s: Array, n: int) -> Index:
        """Return the components without rows, of n; none if a prior keeps them."""
        return _dead(self.bound.unpack(s).weights * n, self.is_held)

    def _moments(self, parts: GaussianStatistics) -> tuple[Array, Array, Array]:
        """Return means minus the centre, covariances and rounding errors, also of components without rows."""
        bound = self.bound
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            means, covariances, floor = bound.kind.moments(parts, bound.prior, float(bound.model.reg_covar))
        return means, covariances, np.asarray(floor)

    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step; for "tied", all if the shared covariance has none."""
        bound, prior = self.bound, self.bound.prior
        parts = bound.unpack(s)
        least = bound.kind.counts(parts).min(axis=1)
        bad = (least + prior.mean_precision <= 0.0) | (least + prior.degrees <= 0.0)
        bad |= parts.weights + bound.epsilon <= 0.0
        _, covariances, floor = self._moments(parts)
        if bound.kind.is_shared:
            return np.flatnonzero(bad | (bound.kind.factor(covariances, floor) is None))
        for m in np.flatnonzero(~bad):
            bad[m] = bound.kind.factor(covariances[m : m + 1], floor[m : m + 1]) is None
        return np.flatnonzero(bad)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
        """Return the M-step of a start outside the domain; failing components get the covariance of all data.

        Components without rows share weight and covariance of the largest, and are centred at ``rows``
        (k, d): k-means may find fewer clusters than requested if rows repeat, and a wide component next to
        narrow ones would lose its rows at once.
        """
        bound, kind = self.bound, self.bound.kind
        filled = s.copy()
        parts = bound.unpack(filled)
        empty = _share_largest(parts.weights, parts[:2] if kind.is_shared else parts)
        if bound.in_domain(filled):
            theta: GaussianTheta = bound.m_step(filled)
        else:
            means, covariances, _ = self._moments(parts)
            whole = bound.initial_theta(rng)
            covariances = self._replaced(covariances, self.collapsed(filled), whole.covariances)
            factors = kind.factor(covariances)
            if factors is None:
                raise ValueError(self.ILL_DEFINED)
            means = np.where(np.isfinite(means), means, 0.0) + bound.centre
            theta = GaussianTheta(parts.weights / parts.weights.sum(), means, covariances, factors)
        means = theta.means.copy()
        means[empty] = bound.filled(rows)
        return theta._replace(means=means)

    def reset(
        self, theta: Theta, s: Array, gone: Index, rows: Array, rng: np.random.Generator
    ) -> GaussianTheta:
        """Return θ with some components at ``rows`` (k, d), with the covariance of all data."""
        whole = self.bound.initial_theta(rng)
        means, weights = theta.means.copy(), theta.weights.copy()
        means[gone] = self.bound.filled(rows)
        weights[gone] = 1.0 / len(weights)
        covariances = self._replaced(theta.covariances, gone, whole.covariances)
        factors = self._replaced(theta.precisions_cholesky, gone, whole.precisions_cholesky)
        return GaussianTheta(weights / weights.sum(), means, covariances, factors)

    def _replaced(self, values: Array, gone: Index, whole: Array) -> Array:
        """Return covariances, or their factors, with ``whole`` for the components ``gone``."""
        if self.bound.kind.is_shared:
            return whole if len(gone) else values
        values = values.copy()
        values[gone] = whole[gone]
        return values

    def draw(self, theta: Theta, labels: Index, rng: np.random.Generator, s: Array | None = None) -> Array:
        """Return random rows (count, d) of the components ``labels`` (count,)."""
        kind, noise = self.bound.kind, rng.normal(size=(len(labels), self.bound.d))
        return np.asarray(theta.means[labels] + kind.coloured(noise, kind.factors_of(theta), labels))

    def imputed(self, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None) -> Rows:
        """Return rows (b, d) with missing cells filled in, given responsibilities (b, M).

        They have their conditional means, or random draws if there is a generator.
        """
        if self.bound.kind.completes:
            return _completed_cells(self.bound, y, rows, theta, rng)
        if not self.bound.model.has_holes:
            return y
        if rng is None:
            return np.where(np.isnan(y), rows @ theta.means, y)
        return np.where(np.isnan(y), self.draw(theta, drawn_labels(rows, rng), rng), y)


class MixtureStarts:
    """Starts, repairs and draws of mixtures of families; methods as in :class:`GaussianStarts`."""

    ILL_DEFINED = (
        "Fitting the mixture failed because some components have no maximum likelihood parameters: use "
        "fewer components or more smoothing."
    )
    REMEDY = "fewer components or more smoothing"

    def __init__(self, bound: BoundMixture) -> None:
        self.bound = bound

    @property
    def is_held(self) -> bool:
        """Whether a prior of at least one row keeps components without rows."""
        return self.bound.model.smoothing >= 1.0 or self.bound.model.concentration is not None

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        n_components = self.bound.n_components
        return n_components - 1 + self.bound.family.n_free(n_components, self.bound.d)

    @property
    def about(self) -> Array:
        """The mean of the features, used by the prior."""
        return self.bound.mean

    def with_share(self, share: float) -> BoundMixture:
        """Return the bound model with a weaker prior."""
        return replace(self.bound, kappa=self.bound.kappa * share, epsilon=self.bound.epsilon * share)

    def for_start(self, y: Rows) -> Rows:
        """Return the family's rows for k-means."""
        return self.bound.family.for_start(two_dimensional(y))

    def start_rows(self, responsibilities: Array, batch: Batch) -> Array:
        """Return rows (b, R) with the factors of channels at a start."""
        return self.bound.start_rows(responsibilities)

    def dead(self, s: Array, n: int) -> Index:
        """Return the components without rows, of n; none if a prior keeps them."""
        return _dead(self.bound.unpack(s).weights * n, self.is_held)

    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step of their own."""
        bound = self.bound
        parts = bound.unpack(s)
        bad = (parts.weights + bound.kappa <= 0.0) | (parts.weights + bound.epsilon <= 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            counts, means = bound.means_of(parts)
        for m in np.flatnonzero(~bad):
            bad[m] = bound.family.m_step(counts[m : m + 1], means[m : m + 1]) is None
        return np.flatnonzero(bad)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> Theta:
        """Return parameters of a start: components without rows share the largest one's weight."""
        filled = s.copy()
        parts = self.bound.unpack(filled)
        empty = _share_largest(parts.weights, parts)
        parts.sums[empty] = self.bound.features_around(rows) * parts.weights[empty, None]
        other = self.collapsed(filled)
        parts.sums[other] = self.bound.mean * parts.weights[other, None]
        return self.bound.m_step(filled)

    def reset(self, theta: Theta, s: Array, gone: Index, rows: Array, rng: np.random.Generator) -> Theta:
        """Return θ with some components half-way between rows and the mean of all data."""
        filled = s.copy()
        parts = self.bound.unpack(filled)
        parts.weights[gone] = 1.0 / self.bound.n_components
        parts.sums[gone] = self.bound.features_around(rows) / self.bound.n_components
        return self.bound.m_step(filled)

    def draw(self, theta: Theta, labels: Index, rng: np.random.Generator, s: Array | None = None) -> Array:
        """Return random rows of components; a conditional family takes some columns from statistics ``s``."""
        if s is None:
            return self.bound.family.draw(theta.params, labels, rng)
        with np.errstate(divide="ignore", invalid="ignore"):  # components without rows have no labels
            _, means = self.bound.means_of(self.bound.unpack(s))
        return self.bound.family.redraw(theta.params, means, labels, rng)

    def imputed(self, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None) -> Rows:
        """Return rows with conditional means or likely levels, or draws, in missing cells."""
        family = self.bound.family
        if rng is None:
            return family.imputed(y, rows, theta.params) if np.isnan(y).any() else y
        return family.drawn(y, theta.params, drawn_labels(rows, rng), rng)


def starts_of(bound: BoundComponents) -> GaussianStarts | MixtureStarts:
    """Return starts, repairs and draws of a bound mixture."""
    if isinstance(bound, BoundGaussians):
        return GaussianStarts(bound)
    assert isinstance(bound, BoundMixture)
    return MixtureStarts(bound)


def _share_largest(weights: Array, parts: Sequence[Array | None]) -> Index:
    """Give components without weight an equal share of the largest one's statistics, in place.

    Parameters
    ----------
    weights : ndarray, shape (M,)
        Weights of the components; they may be one of the parts.
    parts : sequence of ndarray, shapes (M, ...), or None
        Statistics by component.

    Returns
    -------
    ndarray of int
        The components that had none.
    """
    empty, largest = np.flatnonzero(weights <= 0.0), int(weights.argmax())
    sharing = np.append(empty, largest)
    for part in parts:
        if part is not None:
            part[sharing] = part[largest] / len(sharing)
    return empty


def _dead(counts: Array, is_held: bool) -> Index:
    """Return the components with fewer rows than ``DEAD``; none if a prior keeps them."""
    return np.flatnonzero((counts < DEAD) & (not is_held))


def _completed_rows(bound: BoundGaussians, r: Array, batch: Batch) -> Array:
    """Return statistics (b, q) of a start, whose missing cells have mean and variance of their column."""
    z = bound.centred(batch)
    missing = np.isnan(z)
    z[missing] = 0.0
    row, column = lower_triangle(bound.d)
    products = z[:, row] * z[:, column]
    products[:, row == column] += missing * bound.column_variances
    if bound.kind.is_shared:
        squares = r.sum(axis=1)[:, None] * products
    else:
        squares = (r[:, :, None] * products[:, None]).reshape(len(z), -1)
    return np.hstack([r, (r[:, :, None] * z[:, None]).reshape(len(z), -1), squares])


def _completed_cells(
    bound: BoundGaussians, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None
) -> Rows:
    """Return rows with conditional means, or draws, in missing cells, which depend on the observed ones."""
    filled, (n_components, d) = np.array(y, dtype=np.float64), theta.means.shape
    labels = None if rng is None else drawn_labels(rows, rng)
    noise = None if rng is None else rng.normal(size=y.shape)
    for here in blocks_of(len(y), n_components, d):
        z = filled[here]
        missing = np.isnan(z)
        patterns, number = numbered(~missing)
        given = conditionals(patterns, theta.weights, theta.means, bound.matrices(theta))
        expected, _ = expected_rows(z, theta.means, given, number)
        if labels is None or noise is None:
            values = np.einsum("bm,bmd->bd", rows[here], expected)
        else:
            # Ones in the diagonal of observed cells: the factorisation leaves these alone.
            lower = np.linalg.cholesky(given.left + np.eye(d) * patterns[:, None, :, None])
            own = labels[here]
            factors = lower[number, np.minimum(own, lower.shape[1] - 1)]
            values = expected[np.arange(len(z)), own]
            values += np.einsum("bij,bj->bi", factors, np.where(missing, noise[here], 0.0))
        filled[here] = np.where(missing, values, z)
    return filled.astype(y.dtype, copy=False)


def drawn_labels(rows: Array, rng: np.random.Generator) -> Index:
    """Return a random component (b,) of each row, by its responsibilities (b, M).

    >>> drawn_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    ends = np.cumsum(rows, axis=1)
    at = rng.random((len(rows), 1)) * ends[:, -1:]
    return np.asarray(np.minimum((ends <= at).sum(axis=1), rows.shape[1] - 1))
