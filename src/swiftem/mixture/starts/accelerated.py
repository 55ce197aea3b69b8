"""em with larger steps, as starts use it, and a look beyond plateaus.

See :mod:`swiftem.methods.accelerated` for the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from swiftem.core.problem import Problem
from swiftem.core.types import Theta
from swiftem.fit.stopping import Leaps
from swiftem.methods.accelerated import Squarem
from swiftem.mixture.starts.spurious import find_spurious

__all__ = ["accelerated", "beyond_plateau"]

MOST_ROWS = 5000
"""Rows up to which a fit looks ahead."""
AHEAD, MOST_WORK, LEAST = 100, 2 * 10**8, 10
"""Passes by which a fit of few rows looks ahead, at most and at least, and the maximum of passes times rows
times statistics: some 0.2 s, of which a tenth is usual. With too many for the minimum, it does not look."""
CALM = 1e-4
"""Gain per pass at which it stops looking, in units of ``tol``."""


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
    >>> from swiftem.data.as_source import read_problem
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> theta0 = model.theta(means=[[0.0], [0.1]], covariances=[[[1.0]], [[1.0]]])
    >>> theta, passes = accelerated(read_problem(model, y), theta0, 100, 1e-9)
    >>> np.abs(theta.means).round(1).ravel()
    array([0., 3.])
    """
    last, calm, done, steps = inf, 0, 0, Leaps(Squarem())
    with problem.compute.checked_by(check) as e_step:
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


def beyond_plateau(
    problem: Problem, theta: Theta, tol: float, most: float, check: Callable[[], None]
) -> tuple[Theta, int] | None:
    """Return where em leads and how many passes that takes, or None if it would gain at most ``most``.

    On few rows gains fall far below ``tol`` before a row changes its component, and rise again. No rate of
    the last passes foretells that, but passes are cheap. What leads to further collapsed components is no
    gain.
    """
    passes = min(AHEAD, MOST_WORK // (problem.source.n * int(problem.bound.size)))
    if problem.source.n > MOST_ROWS or passes < LEAST or not tol:
        return None
    try:
        found, done = accelerated(problem, theta, passes, CALM * tol, check)
    except ValueError:  # it leads to a component without an M-step
        return None
    if not problem.compute.objective(theta) - problem.compute.objective(found) > most:
        return None
    collapses = len(find_spurious(problem, found)) > len(find_spurious(problem, theta))
    return None if collapses else (found, done)
