r"""em with larger steps (SQUAREM, Varadhan and Roland 2008).

In the space of statistics em is the map :math:`G(s) = \bar s(\bar\theta(s))`. From s two passes give G(s) and
G(G(s)), and with r = G(s) − s and v = G(G(s)) − G(s) − r

.. math:: s' = s + 2 \alpha\, r + \alpha^2 v, \qquad \alpha = \|r\| / \|v\|,

is the limit of em if r kept shrinking as in the last pass; α = 1 is G(G(s)). It is kept if it is in the
domain and not worse than G(s). Plateaus that take em hundreds of passes then take tens.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.models.components import BoundComponents
from swiftem.problem import Problem

__all__ = ["Extrapolation", "accelerated"]

MOST_RATE = 0.999
"""Earlier rates count as at most this: growth may be over."""
FIRST, FACTOR = 4.0, 4.0
"""The initial largest α, and the factor by which it grows if it is reached; a worse step halves it."""


class Extrapolation:
    """Chooses the statistics for the next M-step.

    Parameters
    ----------
    bound : BoundComponents
        The model.
    """

    def __init__(self, bound: BoundComponents) -> None:
        self._bound, self._largest = bound, FIRST
        #: c, by which the last step of em was shorter than the one before: infinite after a larger step.
        self.rate, self._largest_rate = inf, 0.0
        self._chain: list[Array] = []
        self._plain: tuple[Array, float] | None = None

    def next(self, s: Array, objective: float) -> Array:
        """Return the statistics of the next step.

        Parameters
        ----------
        s : ndarray, shape (q,)
            Result of a pass, in the domain.
        objective : float
            At the parameters of that pass.
        """
        (plain, self._plain), self.rate = (self._plain, None), inf
        if plain is not None and not objective <= plain[1]:
            self._largest = max(1.0, self._largest / 2.0)
            self._chain = [plain[0]]
            return plain[0]
        self._chain.append(s)
        if len(self._chain) < 3:
            return s
        first, second, third = self._chain
        r = second - first
        v = third - second - r
        scale = self._bound.without_unit(third)
        length, bend = float(np.linalg.norm(r * scale)), float(np.linalg.norm(v * scale))
        if length > 0.0:
            # The last large step may hide a slow mode, of which an earlier rate knows.
            self.rate = 1.0 + float((v * scale) @ (r * scale)) / length**2
            self._largest_rate = self.rate = max(self.rate, min(self._largest_rate, MOST_RATE))
        else:
            self.rate = 0.0
        alpha = min(length / bend if bend > 0.0 else 1.0, self._largest)
        if alpha > 1.0:
            far = first + 2.0 * alpha * r + alpha**2 * v
            if self._bound.in_domain(far):
                self._largest *= FACTOR if alpha == self._largest else 1.0
                self._chain, self._plain = [far], (third, objective)
                return far
        self._chain = [second, third]
        return third

    def settled(self, s: Array) -> Array:
        """Return statistics that are known to be good: ``s``, or em's if no pass has evaluated ``s``."""
        return s if self._plain is None else self._plain[0]


def accelerated(
    problem: Problem, theta: Theta, passes: int, tol: float, check: Callable[[], None] = lambda: None
) -> tuple[Theta, int]:
    """Return parameters after at most ``passes`` passes, or after three that gain less than ``tol`` each.

    The second value is how many passes that were.

    Parameters
    ----------
    problem : Problem
        Model and rows.
    theta : NamedTuple
        Initial parameters.
    passes : int
        Maximum number of passes over the rows.
    tol : float
        Gain of the objective per pass.
    check : callable
        Called between the blocks of a pass; it may raise.

    Raises
    ------
    ValueError
        If there is no M-step.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem import models
    >>> from swiftem.problem import Problem
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> theta0 = model.theta(means=[[0.0], [0.1]], covariances=[[[1.0]], [[1.0]]])
    >>> theta, passes = accelerated(Problem.read(model, y), theta0, 100, 1e-9)
    >>> np.abs(theta.means).round(1).ravel()
    array([0., 3.])
    """
    bound, last, calm, done = problem.bound, inf, 0, 0
    steps = Extrapolation(bound)
    with problem.e_step.checked_by(check) as e_step:
        while done < passes:
            done += 1
            s = e_step.full(theta)
            objective = float(e_step.objective(theta))
            calm = calm + 1 if abs(last - objective) < tol else 0
            last = objective
            s = steps.next(s, objective)
            if calm == 3:
                break
            theta = bound.m_step(s)
    return (bound.m_step(steps.settled(s)) if passes > 0 else theta), done
