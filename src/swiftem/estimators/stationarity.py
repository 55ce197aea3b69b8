"""How far a fit is from a stationary point, by one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.source import Source
from swiftem.lanes.choose import choose_expectation

__all__ = ["stationarity"]


def stationarity(bound: Any, source: Source, s: Array, theta: Theta) -> tuple[float, float]:
    r"""Return the objective at :math:`\theta = \bar\theta(s)` and :math:`\|s - \bar s(\theta)\| / \|s\|`.

    Both norms are of statistics of rows that are scaled to unit variance, so that the quotient has no unit.

    Parameters
    ----------
    bound : BoundGaussians
        The model, for ``source``.
    source : Source
        The data.
    s : ndarray, shape (q,)
        Statistics.
    theta : GaussianTheta
        Their M-step.
    """
    e_step = choose_expectation("auto", bound, source)
    after = e_step.full(theta)
    objective = e_step.objective(theta)
    scale = _scale(bound, after)
    return objective, float(np.linalg.norm((s - after) * scale) / np.linalg.norm(s * scale))


def _scale(bound: Any, s: Array) -> Array:
    """Return what each statistic is multiplied by when the rows are scaled to unit variance."""
    d = bound.d
    one = np.ones_like(s)
    parts, factors = bound.unpack(s), bound.unpack(one)
    squares = parts.squares
    kind = bound.kind.name
    if kind == "spherical":
        variance = np.full(d, squares.sum() / d)
    elif kind == "diag":
        variance = squares.sum(axis=0)
    else:
        row, column = np.tril_indices(d)
        total = squares if kind == "tied" else squares.sum(axis=0)
        variance = total[row == column]
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    factors.sums[...] = 1.0 / deviation
    if kind == "spherical":
        factors.squares[...] = 1.0 / deviation[0] ** 2
    elif kind == "diag":
        factors.squares[...] = 1.0 / deviation**2
    else:
        factors.squares[...] = 1.0 / (deviation[row] * deviation[column])
    return one
