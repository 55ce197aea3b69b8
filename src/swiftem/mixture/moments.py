"""One pass over the data for the needs of families: a summary of the columns, and the mean of T(y)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from swiftem.core.source import Source
from swiftem.core.types import Array, Rows
from swiftem.data.array import ArraySource
from swiftem.data.units.source import UnitSource
from swiftem.data.units.unit import Place, read_unit
from swiftem.mixture.families import Columns, Family
from swiftem.mixture.families.categorical import MOST as MOST_CODES
from swiftem.mixture.rows import BLOCK, check_seen, check_size, has_missing, two_dimensional

__all__ = ["columns_of", "moments_of", "width_of"]


def columns_of(source: Source, coded: tuple[int, ...] = ()) -> Columns:
    """Return the summary of the columns, by one pass; a stored source caches it.

    Codes are those of the columns ``coded``.

    >>> from swiftem.data import ArraySource
    >>> found = columns_of(ArraySource([[1.0, 2.0], [3.0, 6.0]]))
    >>> found.highest, found.mean, found.variance
    (array([3., 6.]), array([2., 4.]), array([1., 4.]))
    """
    if isinstance(source, UnitSource):
        parts: list[Any] = source.pool.map(_columns_of_unit, coded, source.work, name="columns-of")
        masses = source.weight
        if source.masses is not None:
            check_seen(source.masses > 0.0)
            masses = np.array([mass for _, mass in parts])
        return _together([columns for columns, _ in parts], masses)
    found, key = source.facts, f"columns {coded}"
    if key not in found:
        if has_missing(source):
            seen, mass = _of_observed(source, coded)
            check_seen(mass > 0.0)
            found[key] = seen
            return seen
        origin: Array | None = None
        lowest, highest, total, squares = (np.zeros(1) for _ in range(4))
        codes = _no_codes(width_of(source), coded)
        for batch in source.blocks(BLOCK):
            y = two_dimensional(batch.y)
            if not isinstance(source, ArraySource):
                check_size(y, int(batch.index[0]))
            if origin is None:  # differences do not lose digits to an offset of the data
                origin = y[0].astype(np.float64)
            away = np.subtract(y, origin, order="C", dtype=np.float64)
            lowest = np.minimum(lowest, away.min(axis=0))
            highest = np.maximum(highest, away.max(axis=0))
            total, squares = total + batch.weight @ away, squares + batch.weight @ (away * away)
            _mark(codes, y, coded)
        assert origin is not None, "a source has at least one sample"
        mean = total / source.total_weight
        variance = np.maximum(squares / source.total_weight - mean * mean, 0.0)
        found[key] = Columns(origin + lowest, origin + highest, origin + mean, variance, codes)
    columns: Columns = found[key]
    return columns


def _no_codes(d: int, coded: tuple[int, ...]) -> Rows:
    """Return a boolean array without entries for each column of codes, (d,) with None for the others."""
    codes = np.full(d, None)
    for column in coded:
        codes[column] = np.zeros(0, dtype=bool)
    return codes


def _mark(codes: Rows, y: Rows, coded: tuple[int, ...]) -> None:
    """Set the entries of the codes in rows (b, d), for each column of codes; other values are ignored."""
    for column in coded:
        values = y[:, column]
        valid = values[(values >= 0) & (values < MOST_CODES) & (values == np.floor(values))].astype(np.intp)
        most = int(valid.max(initial=-1)) + 1
        codes[column] = np.pad(codes[column], (0, max(0, most - len(codes[column]))))
        codes[column][valid] = True


def _of_observed(source: Source, coded: tuple[int, ...] = ()) -> tuple[Columns, Array]:
    """Return the summary of the observed cells of the columns, and their weights (d,), which may be zero."""
    d = width_of(source)
    origin, seen = np.zeros(d), np.zeros(d, dtype=bool)
    lowest, highest = np.full(d, np.inf), np.full(d, -np.inf)
    mass, total, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    codes = _no_codes(d, coded)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        known = ~np.isnan(y)
        new = known.any(axis=0) & ~seen  # differences from the first value of each column
        origin[new] = y[np.argmax(known, axis=0), np.arange(d)][new]
        seen |= new
        away = np.where(known, y - origin, 0.0)
        lowest = np.minimum(lowest, np.where(known, y, np.inf).min(axis=0))
        highest = np.maximum(highest, np.where(known, y, -np.inf).max(axis=0))
        mass, total = mass + batch.weight @ known, total + batch.weight @ away
        squares = squares + batch.weight @ (away * away)
        _mark(codes, y, coded)
    below = np.where(mass > 0.0, mass, 1.0)
    mean = total / below
    variance = np.maximum(squares / below - mean * mean, 0.0)
    return Columns(lowest, highest, origin + mean, variance, codes), mass


def _columns_of_unit(coded: tuple[int, ...], unit: Any, weight: Any, where: Place) -> tuple[Columns, Array]:
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows were left out"
    if has_missing(source):
        return _of_observed(source, coded)
    found = columns_of(source, coded)
    return found, np.full(len(found.mean), source.total_weight)


def _together(parts: list[Columns], weight: Array) -> Columns:
    """Return the summary of all rows, from those of parts with a weight each, (k,), or by column, (k, d).

    >>> one = Columns(*(np.array([value]) for value in (0.0, 2.0, 1.0, 1.0)))
    >>> [float(part[0]) for part in _together([one, one._replace(mean=one.mean + 2.0)], np.ones(2))[:4]]
    [0.0, 2.0, 2.0, 2.0]
    """
    share = weight / weight.sum(axis=0)
    means, own = (np.array([part[place] for part in parts]) for place in (2, 3))
    if share.ndim == 1:
        mean = share @ means
        variance = share @ (own + (means - mean) ** 2)
    else:
        mean = (share * means).sum(axis=0)
        variance = (share * (own + (means - mean) ** 2)).sum(axis=0)
    lowest = np.min([part.lowest for part in parts], axis=0)
    highest = np.max([part.highest for part in parts], axis=0)
    return Columns(lowest, highest, mean, variance, _all_codes([part.codes for part in parts]))


def _all_codes(parts: list[Any]) -> Rows | None:
    """Return the codes of all rows, from those of parts."""
    if parts[0] is None:
        return None
    codes = np.full(len(parts[0]), None)
    for column in [place for place, bits in enumerate(parts[0]) if bits is not None]:
        codes[column] = np.zeros(max(len(part[column]) for part in parts), dtype=bool)
        for part in parts:
            codes[column][: len(part[column])] |= part[column]
    return codes


def width_of(source: Source) -> int:
    """Return the number of columns."""
    if isinstance(source, UnitSource):
        return int(source.tail[0])
    return int(two_dimensional(next(source.blocks(1)).y).shape[1])


def moments_of(family: Family, source: Source, *, is_part: bool = False) -> tuple[Array, Array]:
    """Return mean and root mean square of the features, (p,) each; a stored source caches them.

    Rows are checked, and that each column has an observed cell, unless they are a part of the rows. Features
    of further channels are multiplied by the factors of the prior's rows.
    """
    found, key = source.facts, f"features of {_key(family)}"
    if key not in found:
        total, squares = np.zeros(1), np.zeros(1)
        levels = np.zeros(family.n_codes)
        allow_missing, seen = source.allow_missing, np.zeros(1, dtype=bool)
        for batch in source.blocks(BLOCK):
            y = two_dimensional(batch.y)
            if allow_missing:
                seen = seen | ~np.isnan(y).all(axis=0)
            features = family.checked(y, int(batch.index[0])).astype(np.float64)
            total = total + batch.weight @ features
            squares = squares + batch.weight @ (features * features)
            if len(levels):
                codes = family.codes(y)
                weight = np.repeat(batch.weight, codes.shape[1])
                levels += np.bincount(codes.ravel(), weight, minlength=len(levels))
        d = y.shape[1]
        if allow_missing and not is_part:
            check_seen(seen)
        factors = np.repeat([1.0, *family.channels], family.widths(d))
        sums = np.concatenate([total * factors, levels]), np.concatenate([squares, levels])
        found[key] = sums[0] / source.total_weight, np.sqrt(sums[1] / source.total_weight)
    mean, spread = found[key]
    return np.array(mean), np.array(spread)


def _key(value: Any) -> Any:
    """Return a text that differs for families with different fields."""
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, Family) and is_dataclass(value):
        return type(value), *(_key(getattr(value, part.name)) for part in fields(value))
    return repr(value)
