"""Which fits race, how much a race takes, the sample that it compares on, and columns of whole units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from swiftem.core.draws import spread_rows
from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.validated import SAMPLE_BYTES, in_memory
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.rows import rows_of
from swiftem.mixture.starts.noise import with_noise
from swiftem.mixture.starts.together import Together

__all__ = [
    "MOST_WORK",
    "MOVE_ROWS",
    "Plan",
    "Sample",
    "draw_sample",
    "has_rows_to_race",
    "is_scarce",
    "on_rows",
    "pass_time",
    "plan_race",
    "units",
]

MOST = 26_000
"""Rows of the sample."""
HELD, MOST_HELD = 0.25, 6000
"""Share of the sample that candidates are compared on, and how many rows at most; they see the others."""
TOO_FEW, LEAST_ROWS = 10, 1000
"""Minimum number of rows per component, and in total, to hold some of them out."""
SCARCE, MOST_SCARCE, LONGEST = 3, 5000, 110_000
"""With fewer rows than that per estimated number and than that in total, and quick passes in
:func:`pass_time`, there is no race."""
MOST_WORK, WORK = 5_000_000, 250
"""Maximum number of E-step evaluations of a race, in total and per row."""
FEW_WORK, MANY_NUMBERS, LEAST_WORK = 200, 1000, 80
"""Maximum per row for fewer than ``MOST_SCARCE`` rows, and for these with more estimated numbers than
``MANY_NUMBERS``: each evaluation takes long."""
PER_NUMBER, FIRST_ROWS = 3, 1000
"""Rows in the first round per estimated number, and their minimum."""
MOVE_PER_NUMBER, MOVE_ROWS, MOVE_SHARE, MOVE_MOST = 6, 4000, 8, 40
"""Rows on which moves are tried: per estimated number, their minimum, and one in how many of all rows, up to
this many per estimated number."""
FINALISTS, LEAST_LAST, LAST, LAST_SHARE = 2, 15, 30, 8
"""Number of candidates in the last round, and their passes, at least and at most: one in so many of all
evaluations."""
FULL_FINALISTS, FULL_LAST, FULL_SHARE = 4, 50, 3
"""The same with full covariances, if that is at most one in so many of all evaluations. On 1,000 rows, or
after 12 passes, the order of candidates says nothing about their ends."""
AGAIN, AGAIN_ROWS, NUMBERS, MANY_ROWS = 8, 3, 20, 100_000
"""Candidates of a second heat with full covariances, this many times the rows of moves, and so many numbers
per component or so many rows. Otherwise a fit of scikit-learn takes too little time."""
REPEATS = 2.0
"""A column is treated as multiples of a unit only if its values occur this many times on average."""
FIRST, FIRST_REPEATS = 1000, 5
"""Rows among which values of such a column repeat so often, in any sample of up to 26,000."""
LEAST = 50
"""Minimum number of rows to detect units."""


def is_scarce(problem: Problem) -> bool:
    """Tell whether rows held out of so few say little, and passes are quick enough to compare on all rows."""
    return (
        isinstance(problem.source, ArraySource)
        and problem.source.n < min(MOST_SCARCE, SCARCE * problem.bound.size)
        and Together.serves_problem(problem)
        and pass_time(problem) <= LONGEST
    )


def pass_time(problem: Problem) -> float:
    """Return a measure of the time of a pass: logits, and products with features, 50 of which are one."""
    return float(problem.source.n * (problem.bound.n_components + problem.bound.size / 50))


def has_rows_to_race(problem: Problem) -> bool:
    """Return whether starts differ and there are enough rows to hold some out."""
    count = int(problem.bound.n_components)
    return count > 1 and rows_of(problem.source) >= max(TOO_FEW * count, LEAST_ROWS)


class Plan(NamedTuple):
    """The sizes of a race.

    Attributes
    ----------
    rows, many : int
        Number of rows of the first round, and of moves.
    finalists, passes : int
        Number of candidates in the last round, and of their passes.
    again : int
        Number of further candidates if these end in different places and no move gains; 0 for none.
    work : int
        Maximum number of evaluations.
    """

    rows: int
    many: int
    finalists: int
    passes: int
    again: int
    work: int


def plan_race(problem: Problem, seen: int) -> Plan:
    """Return the sizes of a race with ``seen`` rows that candidates are fitted to."""
    bound, n = problem.bound, rows_of(problem.source)
    size = int(bound.size)
    many = min(seen, max(MOVE_ROWS, MOVE_PER_NUMBER * size, min(n // MOVE_SHARE, MOVE_MOST * size)))
    is_full = isinstance(bound, BoundGaussians) and bound.kind.name == "full"
    per_row = WORK if n >= MOST_SCARCE else LEAST_WORK if size > MANY_NUMBERS else FEW_WORK
    rows, work = min(seen, max(FIRST_ROWS, PER_NUMBER * size)), min(MOST_WORK, n * per_row)
    at_last = min(many, max(2 * rows, MOVE_ROWS))
    if not is_full or FULL_SHARE * FULL_FINALISTS * FULL_LAST * at_last > work:
        passes = min(max(work // (LAST_SHARE * FINALISTS * at_last), LEAST_LAST), LAST)
        return Plan(rows, many, FINALISTS, passes, 0, work)
    is_slow = n >= AGAIN_ROWS * many and (size >= NUMBERS * bound.n_components or n >= MANY_ROWS)
    return Plan(rows, many, FULL_FINALISTS, FULL_LAST, AGAIN if is_slow else 0, work)


class Sample(NamedTuple):
    """Rows in random order: candidates are fitted to the first rows of ``seen``, and compared on ``held``."""

    seen: ArraySource
    held: ArraySource

    def whole(self) -> ArraySource:
        """Return all rows."""
        seen, held = self
        weight = None if seen.weight is None or held.weight is None else np.append(seen.weight, held.weight)
        return seen.like(np.concatenate([seen.y, held.y]), weight)

    def first(self, rows: int) -> ArraySource:
        """Return the first rows of ``seen``."""
        if rows >= self.seen.n:
            return self.seen
        weight = self.seen.weight
        return self.seen.like(self.seen.y[:rows], None if weight is None else weight[:rows])


def draw_sample(source: Source, rng: np.random.Generator, *, dither: bool) -> Sample:
    """Return a sample of the rows, in random order.

    Parameters
    ----------
    source : ArraySource, StoredSource or UnitSource
        The data.
    rng : Generator
        Source of randomness.
    dither : bool
        Whether columns that are multiples of a unit get uniform noise of that unit: a component could
        otherwise gain an unbounded likelihood on a single value of such a column.
    """
    if isinstance(source, StoredSource):
        most = max(1000, min(MOST, SAMPLE_BYTES // source.row_bytes))
        taken = in_memory(source, spread_rows(source.n, most, np.random.default_rng(rng.integers(2**63))))
    else:
        taken = source.some if isinstance(source, UnitSource) else cast(ArraySource, source)
        rng.integers(2**63)  # the same number of draws: few rows give the same start, stored or not
    order = rng.choice(taken.n, min(taken.n, MOST), replace=False, shuffle=True)
    y, weight = taken.take(order).y, taken.weight
    y = y.reshape(len(y), -1)
    if dither and (unit := units(y, shuffled=True)).any():
        y = with_noise(y, unit, order)
    seen = len(y) - min(MOST_HELD, round(HELD * len(y)))
    parts = slice(0, seen), slice(seen, None)
    given = None if weight is None or (weight == weight[0]).all() else weight[order]
    return Sample(*(taken.like(y[part], None if given is None else given[part]) for part in parts))


def units(y: NDArray[Any], *, shuffled: bool = False) -> Array:
    """Return for each column the unit that its values are multiples of, up to an offset; 0 if there is none.

    The unit is the smallest gap between two values. A column has one if its values repeat and all gaps are
    multiples of the smallest. If rows are ``shuffled``, the first :data:`FIRST` tell whether values repeat:
    of 26,000 rows with every value twice, 19 pairs are among them in the mean.

    >>> import numpy as np
    >>> counts = np.random.default_rng(0).integers(0, 9, size=(100, 1))
    >>> units(np.hstack([0.5 * counts, np.random.default_rng(1).normal(size=(100, 1))]))
    array([0.5, 0. ])
    """
    found = np.zeros(y.shape[1])
    if len(y) < LEAST:
        return found
    for j, column in enumerate(y.T):
        column = column[~np.isnan(column)]
        if shuffled and len(column) > FIRST and len(np.unique(column[:FIRST])) > FIRST - FIRST_REPEATS:
            continue
        values = np.unique(column).astype(np.float64)
        if len(values) < 2 or len(values) * REPEATS > len(column):
            continue
        size = float(np.abs(values).max())
        rounding = 8.0 * float(np.finfo(y.dtype if y.dtype.kind == "f" else np.float64).eps) * size
        gaps = np.diff(values)
        unit = float(gaps.min())
        if unit <= rounding:
            continue
        steps = np.round(gaps / unit)
        unit = float(gaps.sum() / steps.sum())
        if (np.abs(gaps - steps * unit) <= rounding + 1e-3 * unit).all():
            found[j] = unit
    return found


def on_rows(problem: Problem, rows: Source) -> Problem:
    """Return the problem on some of its rows; the others are not read."""
    found = problem.on(rows)
    if found is not problem:
        found.bound = replace(found.bound, source=rows)
    return found
