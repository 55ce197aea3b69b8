"""Profiles of components: the parameters of each column, as numbers, as a table of text, and as panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import sqrt
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import shown
from swiftem.core.types import Array
from swiftem.mixture.families import Blocks, Family, Params
from swiftem.show.numbers import number_text
from swiftem.show.table import WIDTH, Table

LEVELS = 3
"""Levels of a category in a cell of a summary; fewer if the table is then no wider than a line."""
BARS = 12
"""Values of a column up to which a panel has bars."""
POINTS = 400
"""Points of a curve, and random rows per component that determine its range."""


MOST_PANELS = 24
"""Panels of a plot, by default."""


class ColumnOf(NamedTuple):
    """A column of a mixture: its ``name``, its ``family`` and ``params`` with this column alone, ``levels``.

    ``levels`` are names of codes, or None. ``is_alone`` is False if the column has no distribution of its
    own in this form; ``params`` then has the parameters of the column in the family of all.
    """

    name: str
    family: Family
    params: Params
    levels: tuple[str, ...] | None
    is_alone: bool = True


class Panel(NamedTuple):
    """What to draw of a column: ``heights`` (M, k) over ``x`` (k,), or for each of ``labels``."""

    name: str
    what: str
    x: Array | None
    labels: tuple[str, ...] | None
    heights: Array


def columns_of(
    family: Family, params: Params, names: Sequence[str], categories: Mapping[Any, tuple[Any, ...]]
) -> list[ColumnOf]:
    """Return the columns of a fitted mixture, in the order of the data."""
    parts = [(family, params, tuple(range(len(names))))]
    if isinstance(family, Blocks):
        parts = [
            (part, params[part.name], tuple(int(column) for column in columns))
            for part, columns in zip(family.families, family.columns, strict=True)
        ]
    found: dict[int, ColumnOf] = {}
    for part, its, columns in parts:
        for j, column in enumerate(columns):
            alone, of_column = _alone(part, its, j, len(columns))
            levels = None
            if part.is_coded:
                count = alone.n_codes
                given = categories.get(names[column], categories.get(column, range(count)))
                levels = tuple(str(level) for level in given)[:count]
            valid = True
            try:
                alone.check_params(of_column)
            except ValueError:  # directions, for example: their columns are not independent
                valid = False
            found[column] = ColumnOf(names[column], alone, of_column, levels, valid)
    return [found[column] for column in sorted(found)]


def _alone(family: Family, params: Params, j: int, d: int) -> tuple[Family, Params]:
    """Return family and parameters of column ``j`` of ``d``."""
    if is_dataclass(family):
        short = {
            part.name: (getattr(family, part.name)[j],)
            for part in fields(family)
            if isinstance(getattr(family, part.name), tuple) and len(getattr(family, part.name)) == d
        }
        family = replace(family, **short)
    found = {}
    for name, value in params.items():
        part = np.asarray(value)
        if part.ndim > 1 and part.shape[1] == d:
            part = part[:, j : j + 1]
            part = part[:, :, j : j + 1] if part.ndim == 3 and not family.is_coded else part
        if family.is_coded and part.ndim == 3:
            part = part[:, :, : family.n_codes]
        found[name] = part
    return family, found


def profile_of(column: ColumnOf) -> dict[str, NDArray[Any]]:
    """Return the parameters of a column by name, or the probabilities of its levels, (M,) each."""
    if column.levels is not None:
        (chances,) = column.params.values()
        return {level: chances[:, 0, code].copy() for code, level in enumerate(column.levels)}
    return {_singular(name): part.reshape(len(part), -1)[:, 0].copy() for name, part in column.params.items()}


def _singular(name: str) -> str:
    """Return the name of one parameter.

    >>> [_singular(name) for name in ("rates", "probabilities", "degrees_of_freedom")]
    ['rate', 'probability', 'degrees_of_freedom']
    """
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") else name


def _cell(profile: Mapping[str, NDArray[Any]], levels: int, m: int) -> str:
    """Return a column of a component in a few words, with at most so many ``levels``; 0 if it has none."""
    values = {name: float(part[m]) for name, part in profile.items()}
    if levels:
        best = sorted(values, key=lambda level: -values[level])[:levels]
        more = ", ..." if len(values) > levels else ""
        return ", ".join(f"{level}: {percent_text(values[level])}" for level in best) + more
    if "probability" in values:
        return percent_text(values["probability"])
    if "mean" in values and ("variance" in values or "scale" in values):
        spread = sqrt(values["variance"] if "variance" in values else values["scale"])
        freedom = values.get("degrees_of_freedom")
        tail = "" if freedom is None else f" ({number_text(freedom, 2)} degrees of freedom)"
        return f"{spread_text(values['mean'], spread)}{tail}"
    if "shape" in values and "rate" in values:
        return (
            f"mean {number_text(values['shape'] / values['rate'])}, shape {number_text(values['shape'], 3)}"
        )
    return ", ".join(f"{name.replace('_', ' ')} {number_text(value)}" for name, value in values.items())


def percent_text(share: float) -> str:
    """Return a share in percent.

    >>> percent_text(0.254), percent_text(0.004), percent_text(0.0)
    ('25 %', '0.4 %', '0 %')
    """
    return f"{100 * share:.1f} %" if 0.0005 <= share < 0.01 else f"{100 * share:.0f} %"


def component_table(
    title: str, heads: Sequence[str], weights: NDArray[Any], rows: Sequence[Sequence[str]]
) -> Table:
    """Return a table with a column for each component, below its weight; ``heads`` are the columns before."""
    columns = [*heads, *(f"component {m}" for m in range(len(weights)))]
    first = ["weight", *[""] * (len(heads) - 1), *(percent_text(float(weight)) for weight in weights)]
    return Table(title, columns, [first, *rows], n_index=len(heads))


def spread_text(mean: float, deviation: float) -> str:
    """Return a mean and a standard deviation.

    >>> spread_text(12.345, 0.5678)
    '12.35 ± 0.57'
    >>> spread_text(-2.2e-16, 0.001)  # rounding of a mean of zero
    '0 ± 0.001'
    """
    mean = 0.0 if abs(mean) < 1e-9 * deviation else mean
    return f"{number_text(mean)} ± {number_text(deviation, 2)}"


def summary_of(weights: NDArray[Any], columns: Sequence[ColumnOf], title: str) -> Table:
    """Return the table of a mixture."""
    profiles = [profile_of(column) for column in columns]
    for most in range(LEVELS, 0, -1):
        rows: list[tuple[str, ...]] = [("column", "family", *(f"component {m}" for m in range(len(weights))))]
        for column, profile in zip(columns, profiles, strict=True):
            levels = 0 if column.levels is None else most
            cells = (_cell(profile, levels, m) for m in range(len(weights)))
            rows.append((column.name, column.family.name, *cells))
        if sum(max(map(len, cells)) + 2 for cells in zip(*rows, strict=True)) <= WIDTH + 2:
            break
    return component_table(title, ("column", "family"), weights, rows[1:])


def panel_of(column: ColumnOf) -> Panel:
    """Return what to draw of a column: probabilities of few values, else the densities of the components."""
    profile = profile_of(column)
    if column.levels is not None or not column.is_alone:
        heights = np.array(list(profile.values()))
        if not column.is_alone:
            name, first = next(iter(profile.items()))
            return Panel(column.name, name, None, ("",), first[:, None])
        keep = np.sort(np.argsort(-heights.max(axis=1), kind="stable")[:BARS])
        labels = tuple(column.levels[place] for place in keep) if column.levels else ()
        return Panel(column.name, "probability", None, labels, heights[keep].T)
    n_components = len(next(iter(column.params.values())))
    labels_of = np.repeat(np.arange(n_components), POINTS)
    drawn = column.family.draw(column.params, labels_of, np.random.default_rng(0))[:, 0]
    is_count = bool((drawn == np.floor(drawn)).all())
    low, first, middle, third, high = np.quantile(
        drawn.reshape(n_components, -1), [0.002, 0.25, 0.5, 0.75, 0.998], axis=1
    )
    lowest = float(np.maximum(low, middle - 6.0 * (middle - first)).min())
    highest = float(np.minimum(high, middle + 6.0 * (third - middle)).max())  # tails may be long
    if is_count:
        lowest, highest = float(drawn.min()), max(float(drawn.max()), lowest + 1.0)
        x = np.arange(lowest, highest + 1.0, max(1.0, np.ceil((highest - lowest) / POINTS)))
        if highest <= 1.0:
            x = np.arange(2.0)
    else:
        highest = highest if highest > lowest else lowest + 1.0
        x = np.linspace(lowest, highest, POINTS)
    heights = density(column, x)
    if is_count and len(x) <= BARS:
        return Panel(column.name, "probability", None, tuple(f"{value:.0f}" for value in x), heights)
    return Panel(column.name, "probability" if is_count else "density", x, None, heights)


def density(column: ColumnOf, x: Array) -> Array:
    """Return the densities (M, k) of the components at values (k,)."""
    rows = x[:, None]
    base = column.family.log_base(rows)
    logs = column.family.e_step(rows, column.params)[0]
    return np.asarray(np.exp(logs if base is None else logs + base[:, None]).T)


def chosen_places(columns: Sequence[int | str] | None, names: list[str]) -> list[int]:
    """Return the numbers of the columns to draw: by default the first ones."""
    if columns is None:
        return list(range(min(len(names), MOST_PANELS)))
    return [place_of(part, names) for part in columns]


def place_of(column: Any, names: list[str]) -> int:
    """Return the number of a column given by name or number, negative ones counted from the end.

    >>> place_of("b", ["a", "b"]), place_of(-2, ["a", "b"])
    (1, 0)
    """
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, Integral) and -len(names) <= int(column) < len(names):
        return int(column) % len(names)
    raise ValueError(f"columns must be numbers below {len(names)}, or names of columns, got {shown(column)}.")
