"""How far a fit is from a stationary point, by one pass."""

from __future__ import annotations

from typing import Any

from swiftem._typing import Array, Theta
from swiftem.certificate import certificate
from swiftem.data.source import Source
from swiftem.engine.choose import choose_expectation

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
    return objective, certificate(bound, s, after)
