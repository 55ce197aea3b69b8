"""What is done about components that die or collapse."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array, Index, Theta
from swiftem.data.source import Source
from swiftem.models.components import BoundComponents

__all__ = ["ILL_DEFINED", "DegenerateComponentWarning", "dead", "mended", "reseed"]

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


def dead(bound: BoundComponents, n: int, s: Array) -> Index:
    """Return the components without rows; where a prior holds them, there are none."""
    if bound.is_held:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(bound.unpack(s).weights * n < DEAD)


def mended(bound: BoundComponents, s: Array, rows: Array, rng: np.random.Generator) -> Theta:
    """Return parameters of a start whose statistics are outside the domain.

    Parameters
    ----------
    bound : BoundComponents
        The model, for the data.
    s : ndarray, shape (q,)
        Statistics of the start.
    rows : ndarray, shape (k, d)
        Where to put the k components that have no rows at all.
    rng : Generator
        For what has to be drawn.
    """
    try:
        return bound.mended(s, rows, rng)
    except ValueError:
        raise ValueError(ILL_DEFINED) from None


def reseed(
    bound: BoundComponents, source: Source, theta: Theta, s: Array, gone: Index, rng: np.random.Generator
) -> Theta:
    """Set components of θ, whose statistics are ``s``, to rows that the others explain worst."""
    batch = source.take(rng.choice(source.n, min(source.n, CANDIDATES), replace=False))
    worst = np.resize(np.argsort(bound.posterior(batch, theta)[1])[: len(gone)], len(gone))
    rows = np.asarray(batch.y, dtype=np.float64).reshape(len(batch.index), -1)[worst]
    try:
        return bound.reset(theta, s, gone, rows, rng)
    except ValueError:
        raise ValueError(ILL_DEFINED) from None
