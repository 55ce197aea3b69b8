"""The sample of rows that a race compares candidates on."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from swiftem.core.draws import spread_rows
from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.validated import SAMPLE_BYTES, in_memory
from swiftem.mixture.starts.column_units import units, with_noise
from swiftem.mixture.starts.settings import RaceSettings


class Sample(NamedTuple):
    """Rows in random order: candidates are fitted to the first rows of ``seen``, and compared on ``held``."""

    seen: ArraySource
    held: ArraySource

    def first(self, rows: int) -> ArraySource:
        """Return the first rows of ``seen``, or all rows if that has fewer."""
        (y, weight), (more, other) = ((part.y, part.weight) for part in self)
        if rows <= len(y):
            return self.seen.like(y[:rows], None if weight is None else weight[:rows])
        return self.seen.like(
            np.concatenate([y, more]), None if weight is None or other is None else np.append(weight, other)
        )


def draw_sample(source: Source, settings: RaceSettings, rng: np.random.Generator, *, dither: bool) -> Sample:
    """Return a sample of the rows, in random order.

    Parameters
    ----------
    source : ArraySource, StoredSource or UnitSource
        The data.
    settings : RaceSettings
        Its sizes.
    rng : Generator
        Source of randomness.
    dither : bool
        Whether columns that are multiples of a unit get uniform noise of that unit: a component could
        otherwise gain an unbounded likelihood on a single value of such a column.
    """
    seed = rng.integers(2**63)  # also if it is not used: few rows give the same start, stored or not
    if isinstance(source, StoredSource):
        most = max(1000, min(settings.sample, SAMPLE_BYTES // source.row_bytes))
        taken = in_memory(source, spread_rows(source.n, most, np.random.default_rng(seed)))
    else:
        taken = source.some if isinstance(source, UnitSource) else cast(ArraySource, source)
    order = rng.choice(taken.n, min(taken.n, settings.sample), replace=False, shuffle=True)
    y, weight = taken.take(order).y, taken.weight
    y = y.reshape(len(y), -1)
    if dither and (unit := units(y, shuffled=True)).any():
        y = with_noise(y, unit, order)
    seen = len(y) - min(settings.held_rows, round(settings.held_share * len(y)))
    parts = slice(0, seen), slice(seen, None)
    given = None if weight is None or (weight == weight[0]).all() else weight[order]
    return Sample(*(taken.like(y[part], None if given is None else given[part]) for part in parts))


def on_rows(problem: Problem, rows: Source) -> Problem:
    """Return the problem on some of its rows; the others are not read."""
    found = problem.on(rows)
    if found is not problem:
        found.bound = replace(found.bound, source=rows)
    return found
