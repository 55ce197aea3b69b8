r"""Starts of fits to few rows: the best of several by k-means, compared on all rows.

There are no rows to hold out, and candidates are compared by the objective that is fitted. It has no bound if
components collapse onto few rows: a candidate with more collapsed components than the first one, and than
half of the candidates, does not count. The first start is that of scikit-learn with the same seed. It is kept
unless another one is better by more than :data:`MARGIN`: where all starts agree, so do the fits.

The others are short runs of k-means on rows with columns of unit variance, or on whitened ones, in turn.

Kinds, numbers and the rule on collapsed components were chosen on iris and 150 to 900 rows of magic,
satellite, digits and a generated mixture (``CHOOSING`` in ``benchmarks/optima_data.py``), with diagonal
covariances. By resampled candidates of 28 problems, the tenth percentile of the fits was below scikit-learn's
mean in four of them with eight k-means of scikit-learn, and in none with these; without the rule on collapsed
components held-out rows gain as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index
from swiftem.kernels.threads import in_order, one_thread
from swiftem.mixture.starts.components import starts_of
from swiftem.mixture.starts.initial import make_start
from swiftem.mixture.starts.kinds import SHORT, of_labels, run_k_means, scaled_rows
from swiftem.mixture.starts.sample import is_scarce, pass_time
from swiftem.mixture.starts.spurious import at_floor
from swiftem.mixture.starts.start import Start, StartInterrupted, StartSettings
from swiftem.mixture.starts.together import Together

__all__ = ["best_of_few", "candidates", "compares_few"]

LEAST, MOST, WORK = 16, 49, 400_000
"""Minimum and maximum number of candidates, and their number times the time of a pass, in logits."""
LAST, ONE_IN = 4, 8
"""Minimum number of candidates that continue, and one in how many."""
PASSES, MORE_PASSES, TOL = 6, 25, 1e-4
"""Passes of em before and after that, and the gain per pass below which em has converged."""
MARGIN = 1e-3
"""Gain per row for which the first start is given up."""
ROWS = 1000
"""Fewer rows are few: from there on there are enough of them to hold some out, unless they are scarce."""


def compares_few(problem: Problem) -> bool:
    """Return whether candidates are compared on all rows, as there are too few to hold some out."""
    return (
        problem.bound.n_components > 1
        and (problem.source.n < ROWS or is_scarce(problem))
        and Together.serves_problem(problem)
    )


def best_of_few(problem: Problem, settings: StartSettings, random_state: np.random.RandomState) -> Start:
    """Return the best start; later draws of ``random_state`` are those after the first start alone.

    Each ``n_init`` beyond the first adds a candidate. They are compared after the others: more are no worse.
    After Ctrl-C, :class:`swiftem.mixture.starts.start.StartInterrupted` has the best one so far.
    """
    found: list[Any] = []
    values = np.empty(0)

    def best() -> Start:
        place = int(values.argmax()) if found else 0
        is_better = found and values[place] > values[0] + MARGIN
        return Start(found[place], None, 0, True) if is_better else first

    with one_thread(), DeferredInterrupt() as interrupt:
        first = make_start(problem, settings, random_state)
        others = np.random.RandomState()
        others.set_state(random_state.get_state())
        try:
            rows = Together(problem, interrupt.check)
            for count in (candidates(problem) - 1, settings.n_init - 1):
                rng = np.random.default_rng(others.randint(2**31 - 1))
                starts = _starts(problem, count, rng)
                ends = _improved(problem, rows, [first.theta, *starts]) if starts else []
                values = np.append(values, _values(problem, rows, ends) if ends else [])
                found += ends
            interrupt.check()
        except KeyboardInterrupt:
            raise StartInterrupted(best()) from None
    return best()


def candidates(problem: Problem) -> int:
    """Return the number of candidates: the fewer, the longer a pass takes."""
    return int(min(max(LEAST, WORK // pass_time(problem)), MOST))


def _starts(problem: Problem, count: int, rng: np.random.Generator) -> list[Any]:
    """Return starts by short k-means that have an M-step, on scaled and on whitened rows in turn."""
    rows = problem.source.take(np.arange(problem.source.n))
    y, names, runs = starts_of(problem.bound).for_start(rows.y), ("scaled", "white"), range(count)

    def of_name(name: str, number: int, rng: np.random.Generator) -> Index:
        z = scaled_rows(y, name)
        return run_k_means(z, rows.weight, problem.bound.n_components, number, SHORT, rng)

    work = [
        (name, len(runs[place::2]), own)
        for place, (name, own) in enumerate(zip(names, rng.spawn(2), strict=True))
    ]
    of_names = list(in_order(of_name, work))
    labels = [of_names[k % 2][k // 2] for k in runs]
    found = []
    for one in labels:
        try:
            found.append(of_labels(problem, one))
        except ValueError:  # it has no M-step
            continue
    return found


def _improved(problem: Problem, rows: Together, thetas: list[Any]) -> list[Any]:
    """Return the first candidate and the best others after all passes; none if the first has no M-step."""
    found = _after(rows, thetas, PASSES)
    if not found:
        return []
    values, last = _values(problem, rows, found), max(LAST, len(found) // ONE_IN)
    order = [0, *(1 + np.argsort(-values[1:], kind="stable")[: last - 1]).tolist()]
    return _after(rows, [found[k] for k in order], MORE_PASSES)


def _after(rows: Together, thetas: list[Any], passes: int) -> list[Any]:
    """Return candidates after some passes, without those that have no M-step then; none without the first."""

    def alone(theta: Any) -> Any:
        try:
            return rows.improve([theta], passes, TOL)[0][0]
        except ValueError:
            return None

    try:
        return [theta for theta, _ in rows.improve(thetas, passes, TOL)]
    except ValueError:
        found = [alone(theta) for theta in thetas]
    return [] if found[0] is None else [theta for theta in found if theta is not None]


def _values(problem: Problem, rows: Together, thetas: list[Any]) -> Array:
    """Return minus the objective of each candidate; −∞ if more components collapsed than usually."""
    bound: Any = problem.bound
    spread = np.asarray(problem.source.take(np.arange(problem.source.n)).y, dtype=np.float64)
    spread = spread.reshape(len(spread), -1).var(axis=0)
    collapsed = np.array([at_floor(bound, theta, spread).any(axis=1).sum() for theta in thetas])
    usual = max(collapsed[0], np.median(collapsed))
    return np.where(collapsed > usual, -np.inf, -rows.objectives(thetas))
