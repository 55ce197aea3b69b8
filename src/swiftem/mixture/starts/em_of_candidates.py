"""Accelerated em of several candidates on the same rows, and a look beyond plateaus.

See :mod:`swiftem.methods.accelerated` for the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.compute import Compute
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Theta
from swiftem.methods.accelerated import ParallelSquarem
from swiftem.mixture.compute.batched import BatchedCompute, m_steps
from swiftem.mixture.starts.collapsed_components import find_spurious

CALM_PASSES = 3
"""Passes of small gains after which em has converged."""
MOST_ROWS = 5000
"""Rows up to which a fit looks ahead."""
AHEAD, MOST_WORK, LEAST = 100, 2 * 10**8, 10
"""Passes by which a fit of few rows looks ahead, at most and at least, and the maximum of passes times rows
times statistics. With too many for the minimum, it does not look."""
CALM = 1e-4
"""Gain per pass at which it stops looking, in units of ``tol``."""


class Improved(NamedTuple):
    """Parameters after em, None if there was no M-step, and the number of passes."""

    theta: Theta | None
    passes: int


def evaluate(e_step: Compute, thetas: Sequence[Theta], batched: BatchedCompute | None) -> tuple[Array, Array]:
    """Return the statistics (K, q) and objectives (K,) of candidates."""
    if batched is not None:
        return batched.passes(thetas)
    each = [(e_step.full(theta), float(e_step.objective(theta))) for theta in thetas]
    return np.array([s for s, _ in each]), np.array([objective for _, objective in each])


def em_of_candidates(
    problem: Problem,
    thetas: Sequence[Theta],
    passes: int,
    tol: float,
    check: Callable[[], None] = lambda: None,
    batched: BatchedCompute | None = None,
) -> list[Improved]:
    """Return candidates after at most ``passes`` passes, or after three that gain less than ``tol`` each.

    Parameters
    ----------
    problem : Problem
        Model and rows.
    thetas : sequence of NamedTuple
        Initial parameters, (K,).
    passes : int
        Maximum number of passes over the rows.
    tol : float
        Gain of the objective per pass.
    check : callable
        Called between the blocks of a pass; it may raise.
    batched : BatchedCompute, optional
        Computes the passes of all candidates at once; it raises ValueError if rows are too far away for that.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem import models
    >>> from swiftem.data.as_source import read_problem
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> theta0 = model.theta(means=[[0.0], [0.1]], covariances=[[[1.0]], [[1.0]]])
    >>> theta, passes = em_of_candidates(read_problem(model, y), [theta0], 100, 1e-9)[0]
    >>> np.abs(theta.means).round(1).ravel()
    array([0., 3.])
    """
    ends = [Improved(theta, 0) for theta in thetas]
    if not (passes and ends):
        return ends
    bound, live, points = problem.bound, np.arange(len(ends)), list(thetas)
    last, calm = np.full(len(ends), inf), np.zeros(len(ends), dtype=int)
    steps: ParallelSquarem | None = None

    def solve(s: Array) -> list[Any]:
        return [bound.solve(one) for one in s] if batched is None else m_steps(bound, s)

    with problem.compute.checked_by(check) as e_step:
        for number in range(1, passes + 1):
            s, objectives = evaluate(e_step, points, batched)
            with np.errstate(invalid="ignore"):  # none so far: ∞ − ∞ is not small
                calm = np.where(np.abs(last - objectives) < tol, calm + 1, 0)
            last = objectives
            if steps is None:
                steps, scale = ParallelSquarem(s), bound.unit_factors(s[0])
            steps.advance(s, objectives, scale)
            ended = (calm >= CALM_PASSES) | (number == passes)
            for k, theta in zip(np.flatnonzero(ended).tolist(), solve(steps.kept[ended]), strict=True):
                ends[live[k]] = Improved(theta, number)
            if ended.any():
                live, last, calm = live[~ended], last[~ended], calm[~ended]
                steps.keep(~ended)
            if not len(live):
                break
            points = solve(steps.point)
            outside = np.flatnonzero([theta is None for theta in points])
            steps.accept(outside)
            if len(outside):
                for k, theta in zip(outside.tolist(), solve(steps.point[outside]), strict=True):
                    points[k] = theta
                    if theta is None:
                        ends[live[k]] = Improved(None, number)
                stay = np.array([theta is not None for theta in points])
                live, last, calm = live[stay], last[stay], calm[stay]
                steps.keep(stay)
                points = [theta for theta in points if theta is not None]
                if not len(live):
                    break
    return ends


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
        found, done = em_of_candidates(problem, [theta], passes, CALM * tol, check)[0]
    except ValueError:  # it leads to a component without coefficients
        return None
    if found is None or not problem.compute.objective(theta) - problem.compute.objective(found) > most:
        return None
    collapses = len(find_spurious(problem, found)) > len(find_spurious(problem, theta))
    return None if collapses else (found, done)
