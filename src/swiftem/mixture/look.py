"""Convergence of a stochastic method within a fit."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from swiftem.core.draws import spread_rows
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.validated import in_memory, rows_of

__all__ = ["Look"]

LOOKED_AT = 20_000
"""Rows on which the objective is evaluated: always the same, so that changes are exact for them."""
SURE = 2.0
"""Standard errors within which a gain cannot be distinguished from zero."""
ALLOWED = 2.0
"""Noise up to this multiple of ``tol`` is accepted without an evaluation on all rows."""
APART = 1.25
"""Evaluations on all rows are rarer by this factor: each costs a pass."""


class Look:
    r"""Evaluates the objective of a fit on a fixed set of rows, and decides whether the fit has converged.

    From one evaluation to the next, the mean log-likelihood of these rows gains g. Its standard error ε is
    from the rows' own changes: other rows would have gained g ± ε (ε = 0 if all rows are evaluated). A
    fit has converged if the gain per pass is below ``tol``, or is less than 2ε. If 2ε is more than twice
    what ``tol`` allows, the objective is evaluated on all rows instead, less often, and the gain per pass
    between two such evaluations decides.

    Parameters
    ----------
    problem : Problem
        The model bound to its data.
    tol : float
        Gain per pass.
    looks : int
        Consecutive evaluations that must find convergence: more than one if the noise does not vanish.
    looked_at : Problem, optional
        The model on the samples to evaluate, if these are no rows; exact if it is ``problem``.
    """

    def __init__(
        self, problem: Problem, tol: float, looks: int = 1, looked_at: Problem | None = None
    ) -> None:
        self._problem, self._tol, self._looks = problem, tol, looks
        self._looked_at = self._some_rows(problem) if looked_at is None else looked_at
        self.is_exact = rows_of(problem.source) <= LOOKED_AT if looked_at is None else looked_at is problem
        samples = self._looked_at.source
        self._weight = np.ones(samples.n) if samples.weight is None else samples.weight
        self._total = samples.total_weight
        self._last: Array | None = None
        self._last_passes, self._calm = 0.0, 0
        self._last_of_all: tuple[float, float] | None = None
        self.objective = inf

    @staticmethod
    def _some_rows(problem: Problem) -> Problem:
        """Return the model on a fixed set of rows."""
        source: Any = problem.source
        if isinstance(source, UnitSource):
            source = source.some
        if isinstance(source, StoredSource):
            rows = in_memory(source, spread_rows(source.n, LOOKED_AT, np.random.default_rng(0)))
        elif rows_of(problem.source) <= LOOKED_AT:
            rows = source
        else:
            index = np.sort(np.random.default_rng(0).choice(source.n, LOOKED_AT, replace=False))
            weight = None if source.weight is None else source.weight[index]
            rows = ArraySource(source.take(index).y, weight, allow_missing=source.allow_missing)
        return problem.on(rows)

    def state(self) -> tuple[Any, ...]:
        """Return the state that the next evaluation depends on."""
        return self._last, self._last_passes, self._calm, self._last_of_all, self.objective

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore the state returned by :meth:`state`."""
        if state[0] is not None and np.shape(state[0]) != self._weight.shape:
            raise ValueError("the objective was evaluated on other rows")
        self._last, self._last_passes, self._calm, self._last_of_all, self.objective = state

    def at(self, theta: Theta, passes: float) -> bool:
        """Evaluate the objective at ``theta``; return whether the fit has converged."""
        found = self._looked_at.compute.evaluate(theta).log_likelihood
        total = self._total
        objective = self._problem.bound.penalty(theta) - float(self._weight @ found) / total
        calm = False
        if self._last is not None and self._tol > 0.0:
            change = found - self._last
            mean = float(self._weight @ change) / total
            error = 0.0 if self.is_exact else sqrt(float(self._weight**2 @ (change - mean) ** 2)) / total
            allowed = self._tol * (passes - self._last_passes)
            calm = abs(self.objective - objective) < max(allowed, SURE * error)
            if calm and SURE * error > ALLOWED * allowed:
                calm = self._calm_on_all_rows(theta, passes)
                self._calm = self._looks  # this evaluation has no noise: one is enough
        self._calm = self._calm + 1 if calm else 0
        self._last, self._last_passes, self.objective = found, passes, objective
        return self._calm >= self._looks

    def _calm_on_all_rows(self, theta: Theta, passes: float) -> bool:
        if self._last_of_all is not None and passes < APART * self._last_of_all[0]:
            return False
        objective = self._problem.compute.objective(theta)
        before, self._last_of_all = self._last_of_all, (passes, objective)
        return before is not None and abs(before[1] - objective) < self._tol * (passes - before[0])
