"""em with larger steps, in fits and for their starts: see :mod:`swiftem.methods.acceleration`."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.checkpoints.run_checkpoint import check_form
from swiftem.methods.acceleration import Acceleration, Space, Squarem
from swiftem.methods.anderson import Anderson
from swiftem.problem import Problem

__all__ = ["Leaps", "accelerated"]


class Leaps:
    """The state of an acceleration within a fit.

    Parameters
    ----------
    acceleration : Acceleration
        SQUAREM or Anderson's.
    """

    def __init__(self, acceleration: Acceleration) -> None:
        self._acceleration = acceleration
        self.state: Any = None

    @property
    def rate(self) -> float:
        """Rate of em in the last pass, infinite if that was not one of em: see :class:`Acceleration`."""
        return inf if self.state is None else float(self.state.rate)

    @property
    def point(self) -> Array | None:
        """The statistics of the next pass, or None if it is at the current parameters."""
        return self.state.point if self.state is not None and self.state.leaps else None

    def take(self, s: Array, objective: float, space: Space, is_calm: bool = False) -> Array:
        """Return em's step from the last accepted point: ``s``, unless the pass was at a worse leap.

        Whether em has converged only its own steps tell. SQUAREM makes one before each leap, Anderson's
        acceleration only if ``is_calm``, which tells that the last pass has gained little.
        """
        before = self._acceleration.begin(s) if self.state is None else self.state
        plain = is_calm and before.leaps and isinstance(self._acceleration, Anderson)
        self.state = self._acceleration.advance(before, s, objective, space, plain=plain)
        kept: Array = self.state.kept
        return kept

    @property
    def objective(self) -> float:
        """The objective at the last accepted point."""
        return float(self.state.objective)

    def restore(self, state: Any, size: int) -> None:
        """Restore a state for ``size`` statistics; raise TypeError if it has another form."""
        if state is not None:
            check_form("steps", state, self._acceleration.begin(np.zeros(size)))
        self.state = state

    def restart(self) -> None:
        """Forget all passes: parameters have changed."""
        self.state = None


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
    last, calm, done, steps = inf, 0, 0, Leaps(Squarem())
    with problem.e_step.checked_by(check) as e_step:
        while done < passes:
            done += 1
            s = e_step.full(theta)
            objective = float(e_step.objective(theta))
            calm = calm + 1 if abs(last - objective) < tol else 0
            last = objective
            s = steps.take(s, objective, e_step)
            if calm == 3:
                break
            theta = e_step.m_step(s if steps.point is None else steps.point)
    return (problem.bound.m_step(s) if passes > 0 else theta), done
