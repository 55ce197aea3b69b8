"""Rows of a source for mixtures: checks, draws, and what one pass tells about columns and features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Rows
from swiftem.data.array import ArraySource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource
from swiftem.mixture.families import Columns, Family
from swiftem.mixture.families.categorical import MOST as MOST_CODES

__all__ = [
    "check_rows",
    "check_units",
    "columns_of",
    "different_rows",
    "drawn_labels",
    "may_have_missing",
    "mean_row",
    "moments_of",
    "spread_rows",
    "two_dimensional",
    "width_of",
]

BLOCK = 4096
LARGEST, LARGEST_FLOAT32 = 1e140, 1e15
"""Largest magnitude of numbers in rows: sums of their squares, in k-means of float32, must be finite."""


def two_dimensional(y: Rows) -> Rows:
    """Return samples of shape (b,) as (b, 1)."""
    return y[:, None] if y.ndim == 1 else y


def check_rows(source: Source, least: int) -> int:
    """Return the number of columns; raise an error if the data are not rows or fewer than ``least``."""
    if source.samples != "rows":
        raise TypeError("data must be rows of numbers for a mixture, got word counts or tokens.")
    if source.n < least:
        raise ValueError(f"data must have at least n_components={least} rows, got {source.n}.")
    if isinstance(source, TensorSource):
        check_extent(source.largest, source.dtype)
    elif isinstance(source, ArraySource):
        check_size(source.y)
    return width_of(source)


def width_of(source: Source) -> int:
    """Return the number of columns."""
    if isinstance(source, UnitSource):
        return int(source.tail[0])
    return int(two_dimensional(next(source.blocks(1)).y).shape[1])


def check_size(y: Rows, start: int = 0) -> None:
    """Raise ValueError if squares of rows (b, ...) are not finite; ``start`` is the first row's index."""
    most = _limit(y.dtype)
    if not y.size or (y.dtype.kind != "f") or (y.max() <= most and y.min() >= -most):
        return
    far = np.abs(two_dimensional(y)) > most
    if far.any():  # otherwise cells are missing
        row = int(np.argmax(far.any(axis=1)))
        value = float(two_dimensional(y)[row][np.argmax(far[row])])
        check_extent(value, y.dtype, f" in row {start + row}")


def check_extent(value: float, dtype: np.dtype[Any], where: str = "") -> None:
    """Raise ValueError if the square of a value is not finite; ``where`` follows it in the message."""
    most = _limit(dtype)
    if abs(value) > most:
        raise ValueError(
            f"data must lie between {-most:g} and {most:g} if they are {dtype}, got {value:g}{where}: use "
            "another unit."
        )


def _limit(dtype: np.dtype[Any]) -> float:
    return LARGEST_FLOAT32 if dtype == np.float32 else LARGEST


def different_rows(source: Source, count: int, d: int, rng: np.random.Generator) -> Array:
    """Return ``count`` distinct rows, shape (count, d), also from a source that is read in order only."""
    if source.layout is not None:  # the indices of all rows might not fit into memory
        rows = rng.permutation(spread_rows(source.n, count, rng))
        return two_dimensional(source.take(rows).y).astype(np.float64)
    rows = rng.choice(source.n, count, replace=False)
    if source.access == "random":
        return two_dimensional(source.take(rows).y).astype(np.float64)
    chosen = np.empty((count, d))
    for batch in source.blocks(BLOCK):
        here = np.flatnonzero((rows >= batch.index[0]) & (rows <= batch.index[-1]))
        chosen[here] = two_dimensional(batch.y)[rows[here] - batch.index[0]]
    return chosen


def may_have_missing(source: Source) -> bool:
    """Return whether cells may be missing: without a pass over stored rows, if that is allowed."""
    return source.has_missing if source.layout is None else source.allow_missing


def check_units(units: UnitSource) -> None:
    """Raise ValueError for rows in units that are too large, or a column without an observed cell."""
    check_extent(units.largest, units.dtype)
    if units.masses is not None:
        check_seen(units.masses > 0.0)


def check_seen(seen: Rows) -> None:
    """Raise ValueError for a column (d,) without an observed cell."""
    if not seen.all():
        column = int(np.argmin(seen))
        raise ValueError(
            f"data must have a value in every column, got none in column {column}: leave it out."
        )


def drawn_labels(rows: Array, rng: np.random.Generator) -> Index:
    """Return a random component (b,) of each row, by its responsibilities (b, M).

    >>> drawn_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    ends = np.cumsum(rows, axis=1)
    at = rng.random((len(rows), 1)) * ends[:, -1:]
    return np.asarray(np.minimum((ends <= at).sum(axis=1), rows.shape[1] - 1))


def mean_row(source: Source) -> Array:
    """Return the weighted mean of the rows, shape (d,), by one pass; the source caches it.

    >>> from swiftem.data import ArraySource
    >>> mean_row(ArraySource([[1.0, 2.0], [3.0, 6.0]], sample_weight=[3.0, 1.0]))
    array([1.5, 3. ])
    """
    facts = source.facts
    if "mean" in facts:
        return np.array(facts["mean"])
    if isinstance(source, TensorSource):
        facts["mean"] = source.mean_row()
        return np.array(facts["mean"])
    origin: Array | None = None
    total = np.zeros(1)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        if origin is None:  # sums of differences do not lose digits to an offset of the data
            origin = y[0].astype(np.float64)
        # In one memory order, as sums depend on it in rounding.
        total = total + batch.weight @ np.subtract(y, origin, order="C")
    assert origin is not None, "a source has at least one sample"
    facts["mean"] = origin + total / source.total_weight
    return np.array(facts["mean"])


def spread_rows(n: int, count: int, rng: np.random.Generator) -> Index:
    """Return ``count`` distinct sample indices in order, one at random from each of as many equal parts.

    Memory does not depend on n, and sorted data are covered evenly.

    >>> (spread_rows(6, 3, np.random.default_rng(0)) // 2).tolist()
    [0, 1, 2]
    """
    if count >= n:
        return np.arange(n)
    edges = n * np.arange(count + 1) // count
    return edges[:-1] + np.floor(rng.random(count) * np.diff(edges)).astype(np.intp)


def columns_of(source: Source, coded: Sequence[int] = ()) -> Columns:
    """Return the summary of the observed cells of the columns, by one pass; the source caches it.

    It has the codes of the columns ``coded``.

    >>> from swiftem.data import ArraySource
    >>> summary = columns_of(ArraySource([[1.0, 2.0], [3.0, 6.0]]))
    >>> summary.highest, summary.mean, summary.variance
    (array([3., 6.]), array([2., 4.]), array([1., 4.]))
    """
    if isinstance(source, UnitSource):
        parts = source.units.map(partial(_summary, coded=coded))
        if source.masses is not None:
            check_seen(source.masses > 0.0)
        summaries, masses = zip(*parts, strict=True)
        return _together(summaries, np.array(masses), coded)
    facts, key = source.facts, f"columns {coded}"
    if key not in facts:
        summary, mass = _summary(source, coded)
        check_seen(mass > 0.0)
        facts[key] = summary
    columns: Columns = facts[key]
    return columns


def _summary(source: Source, coded: Sequence[int]) -> tuple[Columns, Array]:
    """Return the summary of the observed cells of the columns, and their weights (d,), which may be zero."""
    d = width_of(source)
    origin, has_origin = np.zeros(d), np.zeros(d, dtype=bool)
    lowest, highest = np.full(d, np.inf), np.full(d, -np.inf)
    mass, total, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    codes = np.full(d, None)
    for column in coded:
        codes[column] = np.zeros(0, dtype=bool)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        seen = ~np.isnan(y)
        new = seen.any(axis=0) & ~has_origin  # differences do not lose digits to an offset of the data
        origin[new] = y[np.argmax(seen, axis=0), np.arange(d)][new]
        has_origin |= new
        away = np.subtract(y, origin, order="C", dtype=np.float64)
        away[~seen] = 0.0
        lowest, highest = np.fmin(lowest, np.fmin.reduce(y)), np.fmax(highest, np.fmax.reduce(y))
        mass, total = mass + batch.weight @ seen, total + batch.weight @ away
        squares = squares + batch.weight @ (away * away)
        for column in coded:
            codes[column] = _either(codes[column], _codes_in(y[:, column]))
    if not source.has_missing:
        mass = np.full(d, source.total_weight)
    below = np.where(mass > 0.0, mass, 1.0)
    mean = total / below
    variance = np.maximum(squares / below - mean * mean, 0.0)
    return Columns(lowest, highest, origin + mean, variance, codes), mass


def _codes_in(values: Rows) -> Rows:
    """Return a boolean array that is True at the codes among values (b,); other values are ignored."""
    codes = values[(values >= 0) & (values < MOST_CODES) & (values == np.floor(values))]
    return np.bincount(codes.astype(np.intp)) > 0


def _either(one: Rows, other: Rows) -> Rows:
    """Return the codes in one or the other of two boolean arrays, whose lengths may differ."""
    shorter, longer = sorted((one, other), key=len)
    both = longer.copy()
    both[: len(shorter)] |= shorter
    return both


def _together(parts: Sequence[Columns], masses: Array, coded: Sequence[int]) -> Columns:
    """Return the summary of all rows, from summaries of parts and the weights of their cells, (k, d).

    >>> one = Columns(*(np.array([value]) for value in (0.0, 2.0, 1.0, 1.0)))
    >>> both = _together([one, one._replace(mean=one.mean + 2.0)], np.ones((2, 1)), ())
    >>> both.lowest, both.highest, both.mean, both.variance
    (array([0.]), array([2.]), array([2.]), array([2.]))
    """
    lowest, highest, means, variances = (np.array([part[place] for part in parts]) for place in range(4))
    share = masses / masses.sum(axis=0)
    mean = (share * means).sum(axis=0)
    variance = (share * (variances + (means - mean) ** 2)).sum(axis=0)
    codes = np.full(len(mean), None)
    for column in coded:
        codes[column] = reduce(_either, [part.codes[column] for part in parts])
    return Columns(lowest.min(axis=0), highest.max(axis=0), mean, variance, codes)


def moments_of(family: Family, source: Source, *, is_part: bool = False) -> tuple[Array, Array]:
    """Return mean and root mean square of the features, (p,) each; a stored source caches them.

    Rows are checked, and that each column has an observed cell, unless they are a part of the rows. Features
    of further channels are multiplied by the factors of the prior's rows.
    """
    known: list[tuple[Family, Array, Array]] = source.facts.setdefault("features", [])
    for other, mean, spread in known:
        if other == family:
            return mean.copy(), spread.copy()
    total, squares, levels = np.zeros(1), np.zeros(1), np.zeros(family.n_codes)
    seen = np.zeros(1, dtype=bool)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if source.allow_missing:
            seen = seen | ~np.isnan(y).all(axis=0)
        features = family.checked(y, int(batch.index[0])).astype(np.float64)
        total = total + batch.weight @ features
        squares = squares + batch.weight @ (features * features)
        if len(levels):
            codes = family.codes(y)
            weight = np.repeat(batch.weight, codes.shape[1])
            levels += np.bincount(codes.ravel(), weight, minlength=len(levels))
    if source.allow_missing and not is_part:
        check_seen(seen)
    factors = np.repeat([1.0, *family.channels], family.widths(y.shape[1]))
    mean = np.concatenate([total * factors, levels]) / source.total_weight
    spread = np.sqrt(np.concatenate([squares, levels]) / source.total_weight)
    known.append((family, mean, spread))
    return mean.copy(), spread.copy()
