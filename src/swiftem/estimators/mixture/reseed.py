"""What is done about components that die or collapse."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array, Index
from swiftem.data.source import Source
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.gaussian_theta import GaussianTheta

__all__ = ["ILL_DEFINED", "DegenerateComponentWarning", "collapsed", "dead", "mended", "reseed"]

DEAD = 1e-6
"""A component with fewer rows, counted by responsibilities and by weights of mean 1, is dead."""
CANDIDATES = 1000
"""Rows among which those are looked for that are explained worst."""

ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
    "instance caused by singleton or collapsed samples). Try to decrease the number of components, increase "
    "reg_covar, or scale the input data."
)


class DegenerateComponentWarning(UserWarning):
    """A component had no rows, or collapsed onto too few of them, and was set to another place."""


def dead(bound: BoundGaussians, n: int, s: Array) -> Index:
    """Return the components without rows; where a prior in counts holds them, there are none."""
    if bound.model.in_counts:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(bound.unpack(s).weights * n < DEAD)


def collapsed(bound: BoundGaussians, s: Array) -> Index:
    """Return the components that have no M-step of their own, none of "tied" where one covariance has one."""
    parts = bound.unpack(s)
    kappa, counts = bound.prior.mean_precision, parts.weights
    bad = (counts + kappa <= 0.0) | (counts + bound.prior.degrees <= 0.0) | (counts + bound.epsilon <= 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means = (parts.sums + kappa * bound.prior.mean) / (counts + kappa)[:, None]
        means[bad] = 0.0
        covariances, floor = bound.kind.covariances(parts, means, bound.prior, bound.model.reg_covar)
        if bound.kind.name == "tied":
            bad |= bound.kind.factor(covariances, floor) is None
        else:
            for m in np.flatnonzero(~bad):
                here = slice(m, m + 1)
                bad[m] = bound.kind.factor(covariances[here], np.asarray(floor)[here]) is None
    return np.flatnonzero(bad)


def mended(bound: BoundGaussians, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
    """Return the M-step of a start, where components without one get the covariance of all data.

    Components without rows share weight and covariance of the largest: k-means finds fewer clusters than it
    is asked for where rows repeat, and next to narrow components a wide one would die at once.

    Parameters
    ----------
    bound : BoundGaussians
        The model, for the data.
    s : ndarray, shape (q,)
        Statistics of the start, outside the domain.
    rows : ndarray, shape (k, d)
        Means of the k components that have no rows at all.
    rng : Generator
        For what has to be drawn.
    """
    filled = s.copy()
    parts = bound.unpack(filled)
    empty, largest = np.flatnonzero(parts.weights <= 0.0), int(parts.weights.argmax())
    sharing = np.append(empty, largest)
    for part in parts[:2] if bound.kind.name == "tied" else parts:
        part[sharing] = part[largest] / len(sharing)
    if bound.in_domain(filled):
        theta = bound.m_step(filled)
    else:
        theta, gone = _pooled(bound, rng), collapsed(bound, filled)
        means = parts.sums / parts.weights[:, None]
        kept = np.setdiff1d(np.arange(len(means)), gone)
        covariances, factors = theta.covariances.copy(), theta.precisions_cholesky.copy()
        if len(kept):
            found, _ = bound.kind.covariances(parts, means, bound.prior, bound.model.reg_covar)
            own = bound.kind.factor(found[kept])
            assert own is not None, "each of them has been looked at"
            covariances[kept], factors[kept] = found[kept], own
        weights = parts.weights / parts.weights.sum()
        theta = GaussianTheta(weights, means + bound.centre, covariances, factors)
    means = theta.means.copy()
    means[empty] = rows
    return theta._replace(means=means)


def reseed(
    bound: BoundGaussians, source: Source, theta: GaussianTheta, gone: Index, rng: np.random.Generator
) -> GaussianTheta:
    """Set components to rows that the others explain worst, with the covariance of all data."""
    whole = _pooled(bound, rng)
    batch = source.take(rng.choice(source.n, min(source.n, CANDIDATES), replace=False))
    worst = np.resize(np.argsort(bound.posterior(batch, theta)[1])[: len(gone)], len(gone))
    means, weights = theta.means.copy(), theta.weights.copy()
    means[gone] = np.asarray(batch.y, dtype=np.float64).reshape(len(batch.index), -1)[worst]
    weights[gone] = 1.0 / len(weights)
    if bound.kind.name == "tied":
        return GaussianTheta(weights / weights.sum(), means, whole.covariances, whole.precisions_cholesky)
    covariances, factors = theta.covariances.copy(), theta.precisions_cholesky.copy()
    covariances[gone], factors[gone] = whole.covariances[gone], whole.precisions_cholesky[gone]
    return GaussianTheta(weights / weights.sum(), means, covariances, factors)


def _pooled(bound: BoundGaussians, rng: np.random.Generator) -> GaussianTheta:
    """Return parameters whose covariances are those of all data."""
    try:
        return bound.initial_theta(rng)
    except ValueError:
        raise ValueError(ILL_DEFINED) from None
