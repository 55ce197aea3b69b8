"""Starts of fits to few rows: the best of several by k-means, compared on all rows.

There are no rows to hold out, and candidates are compared by the objective that is fitted. It has no bound if
components collapse onto few rows: a candidate with more collapsed components than the first one does not
count. So the fit has no more of them than that from the first start alone, and its objective is no worse.
The first start is that of scikit-learn with the same seed. It is kept unless another one is better by more
than :data:`MARGIN`: where all starts agree, so do the fits.

Eight k-means were chosen among four plans on iris, diabetes, and 150 to 900 rows of magic, satellite, digits
and two of the generated mixtures (``CHOOSING`` in ``benchmarks/optima_data.py``). The rule on collapsed
components was not tried there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.threads import one_thread_blas
from swiftem.estimators.mixture.initial import Start, make_start
from swiftem.estimators.mixture.optima.spurious import at_floor
from swiftem.estimators.mixture.optima.together import Together
from swiftem.problem import Problem
from swiftem.process import DeferredInterrupt

__all__ = ["first_of_few", "is_few"]

CANDIDATES, LAST = 8, 3
"""Number of candidates, and of those that continue."""
PASSES, MORE_PASSES, TOL = 12, 25, 1e-4
"""Passes of em before and after that, and the gain per pass below which em has converged."""
MARGIN = 1e-3
"""Gain per row for which the first start is given up."""
ROWS = 1000
"""Fewer rows are few: from there on there are enough of them to hold some out."""


def is_few(estimator: Any, problem: Problem) -> bool:
    """Tell whether a fit starts from the best of several k-means, on all rows."""
    return (
        problem.bound.n_components > 1
        and problem.source.n < ROWS
        and Together.serves_problem(problem)
        and estimator._has_default_start(problem)
    )


def first_of_few(estimator: Any, problem: Problem, random_state: np.random.RandomState) -> Start:
    """Return the best start; later draws of ``random_state`` are those after the first start alone.

    Each ``n_init`` beyond the first adds a candidate. They are compared after the others: more are no worse.
    """
    first = make_start(estimator, problem, random_state)
    others = np.random.RandomState()
    others.set_state(random_state.get_state())
    found, values = [], np.empty(0)
    with one_thread_blas(), DeferredInterrupt() as interrupt:
        rows = Together(problem, interrupt.check)
        for count in (CANDIDATES - 1, estimator.n_init - 1):
            try:
                starts = [make_start(estimator, problem, others).theta for _ in range(count)]
                ends = _improved(problem, rows, [first.theta, *starts]) if starts else []
                found += ends
                values = np.append(values, _values(problem, rows, ends) if ends else [])
            except ValueError:  # some start has no M-step
                break
    best = int(values.argmax()) if found else 0
    return Start(found[best], None, 0, True) if found and values[best] > values[0] + MARGIN else first


def _improved(problem: Problem, rows: Together, thetas: list[Any]) -> list[Any]:
    """Return the first candidate and the best others after all passes."""
    found = [theta for theta, _ in rows.improve(thetas, PASSES, TOL)]
    values = _values(problem, rows, found)
    order = [0, *(1 + np.argsort(-values[1:], kind="stable")[: LAST - 1]).tolist()]
    return [theta for theta, _ in rows.improve([found[k] for k in order], MORE_PASSES, TOL)]


def _values(problem: Problem, rows: Together, thetas: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return minus the objective of each candidate; −∞ if it has more collapsed components than the first."""
    bound: Any = problem.bound
    spread = np.asarray(problem.source.take(np.arange(problem.source.n)).y, dtype=np.float64)
    spread = spread.reshape(len(spread), -1).var(axis=0)
    collapsed = [int(at_floor(bound, theta, spread).any(axis=1).sum()) for theta in thetas]
    values = -rows.objectives(thetas)
    return np.where(np.array(collapsed) > collapsed[0], -np.inf, values)
