"""When a stochastic method is at rest."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.draws import spread_rows
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.units.unit_source import UnitSource
from swiftem.estimators.mixture.base import rows_of
from swiftem.estimators.mixture.stored_rows import in_memory
from swiftem.problem import Problem

__all__ = ["Look"]

LOOKED_AT = 20_000
"""Rows on which the objective is followed: always the same, so that changes are exact for them."""
SURE = 2.0
"""Standard errors within which a gain is not to be told from nothing."""
ALLOWED = 2.0
"""Noise of so many times ``tol`` is let pass without a look at all rows."""
APART = 1.25
"""Looks at all rows are so many times more passes apart: they cost a pass each."""


class Look:
    r"""Follows the objective of a fit on rows that stay the same, and says when it is at rest.

    From one look to the next, the mean log-likelihood of the rows looked at gains g, and g has a standard
    error ε, that of the rows' own changes: other rows would have gained about as much, give or take ε (ε = 0
    where all rows are looked at). A fit is at rest when the gain in a pass is below ``tol``, or within 2ε of
    nothing. Where 2ε is more than twice what ``tol`` allows, all rows are looked at instead, seldom, and the
    gain in a pass between two such looks decides.

    Parameters
    ----------
    problem : Problem
        The model, for its data.
    tol : float
        Gain in a pass.
    looks : int
        Looks in a row that must find the fit at rest: more than one for a method whose noise does not end.
    """

    def __init__(self, problem: Problem, tol: float, looks: int = 1) -> None:
        source: Any = problem.source
        if isinstance(source, UnitSource):
            source = source.some
        self.is_exact = rows_of(problem.source) <= LOOKED_AT
        if isinstance(source, StoredSource):
            rows = in_memory(source, spread_rows(source.n, LOOKED_AT, np.random.default_rng(0)))
        elif self.is_exact:
            rows = source
        else:
            index = np.sort(np.random.default_rng(0).choice(source.n, LOOKED_AT, replace=False))
            weight = None if source.weight is None else source.weight[index]
            rows = ArraySource(source.y[index], weight)
        self._problem, self._tol, self._looks = problem, tol, looks
        self._looked_at = problem.on(rows)
        self._weight = np.ones(rows.n) if rows.weight is None else rows.weight
        self._last: Array | None = None
        self._last_passes, self._calm = 0.0, 0
        self._last_of_all: tuple[float, float] | None = None
        self.objective = inf

    def state(self) -> tuple[Any, ...]:
        """Return what the next look depends on."""
        return self._last, self._last_passes, self._calm, self._last_of_all, self.objective

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on from where :meth:`state` was taken."""
        if state[0] is not None and np.shape(state[0]) != self._weight.shape:
            raise ValueError("other rows were looked at")
        self._last, self._last_passes, self._calm, self._last_of_all, self.objective = state

    def at(self, theta: Theta, passes: float) -> bool:
        """Look at ``theta``; return whether the fit is at rest."""
        found = self._looked_at.e_step.evaluate(theta).log_likelihood
        total = float(self._weight.sum())
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
                self._calm = self._looks  # that look has no noise: one will do
        self._calm = self._calm + 1 if calm else 0
        self._last, self._last_passes, self.objective = found, passes, objective
        return self._calm >= self._looks

    def _calm_on_all_rows(self, theta: Theta, passes: float) -> bool:
        if self._last_of_all is not None and passes < APART * self._last_of_all[0]:
            return False
        objective = self._problem.e_step.objective(theta)
        before, self._last_of_all = self._last_of_all, (passes, objective)
        return before is not None and abs(before[1] - objective) < self._tol * (passes - before[0])
