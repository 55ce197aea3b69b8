"""The contract tests of a family of components."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from swiftem._run import run
from swiftem.core.types import Array
from swiftem.data.as_source import as_source
from swiftem.methods import EM
from swiftem.mixture.families import Family, Params
from swiftem.mixture.model import MixtureModel
from swiftem.testing.check_model import assert_pickles, check_model, require

TRIED = (-1.0, 0.0, 0.5, 1e6)
"""Values that many families refuse: what is not refused must have features."""


def check_family(family: Family, y: ArrayLike, *, seed: int = 0) -> None:
    """Run the contract tests on a family of components; an AssertionError says what is broken.

    Parameters
    ----------
    family : Family
        The family.
    y : array-like, shape (n, d)
        Rows that it may have produced, a few dozen to a few thousand.
    seed : int
        For initial parameters, weights and draws.

    Notes
    -----
    The requirements: all of :func:`check_model` on a mixture of the family; shapes with the components'
    axis first; rows that are either refused by a sentence or have finite features within the bounds; an
    M-step of the largest likelihood; random rows that are valid and follow the density, which integrates to
    one in one column; and if columns are independent, that parts of the density and means belong to
    columns. The M-step of a family with ``channels`` is checked by :func:`check_model` alone.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.families import Poisson
    >>> from swiftem.testing import check_family
    >>> check_family(Poisson(), np.random.default_rng(0).poisson([2.0, 5.0, 1.0], size=(50, 3)))
    """
    rows = np.asarray(y, dtype=np.float64)
    require(rows.ndim == 2, f"y must have shape (n, d), got {rows.shape}.")
    d, rng = rows.shape[1], np.random.default_rng(seed)
    components = 3 if d == 2 else 2  # d and M differ
    try:
        MixtureModel(components, family).width(d)
    except ValueError:
        pass  # which says what has to be given
    except Exception as error:
        raise AssertionError(
            "features must work, or raise ValueError, before learn is called, as for parameters without "
            f"data, but raised {type(error).__name__}: {error}"
        ) from error
    model = MixtureModel(components, family).learnt(as_source(rows))
    learnt = model.kind
    assert_pickles(learnt, "the family")
    _check_rows(learnt, rows)
    if not learnt.channels:
        _check_m_step(learnt, rows, components, rng)
        if not learnt.is_coded:
            _check_zeros(learnt, components, d)
    check_model(MixtureModel(2, family), rows, seed=seed)
    params = run(model, rows, EM(), n_iter=10, seed=seed).theta.params
    _check_shapes(learnt, params, components, d)
    drawn = _check_draws(learnt, params, components, d, rng)
    _check_density(family, rows[:, :1], rng)
    if learnt.takes_missing and not (learnt.is_coded or learnt.channels):
        _check_columns(learnt, rows, params)
        _check_expected(learnt, params, drawn)


def _check_shapes(family: Family, params: Params, components: int, d: int) -> None:
    """Parameters have the components' axis first; the second axis of the first has the columns."""
    shapes = family.shapes(components, d)
    for name, shape in shapes.items():
        require(shape[0] == components, f"{name} must have shape (M, ...), got {shape} for M = {components}.")
        require(len(params[name]) == components, f"m_step must return {name} of shape {shape}.")
    first = next(iter(shapes.values()))
    require(len(first) > 1 and first[1] == d, f"the first parameter must have shape (M, d), got {first}.")
    family.check_params(params)
    phi, constant = family.natural(params)
    require(
        phi.ndim == 2 and len(phi) == components and constant.shape == (components,),
        f"natural must return (M, p) and (M,), got {phi.shape} and {constant.shape} for M = {components}.",
    )
    require(np.isfinite(phi).all() and np.isfinite(constant).all(), "natural must return finite numbers.")


def _check_rows(family: Family, rows: np.ndarray) -> None:
    """What is not refused has finite features, within the bounds."""
    family.check_rows(rows)
    valid = [rows]
    for value in TRIED:
        row = np.full((1, rows.shape[1]), value)
        try:
            family.check_rows(row)
            valid.append(row)
        except ValueError as error:
            require(
                str(error).startswith("must"),
                f"the message of check_rows must follow the word data: 'must be ..., got ...', got {error}",
            )
    for part in valid if not family.is_coded else []:
        with np.errstate(all="ignore"):
            features, base = family.features(part), family.log_base(part)
        require(
            np.isfinite(features).all() and (base is None or np.isfinite(base).all()),
            f"features and log_base must be finite, or check_rows refuse the row, got {part[0, 0]:g}.",
        )
        low, high = family.bounds
        is_inside = (features >= low).all() and (features <= high).all()
        require(is_inside, f"features must be within the bounds {family.bounds}.")


def _check_zeros(family: Family, components: int, d: int) -> None:
    """A component whose rows are all zero has finite coefficients, or no M-step."""
    zeros = np.zeros((components, d))
    try:
        family.check_rows(zeros)
    except ValueError:
        return
    params = family.m_step(np.full(components, 1.0 / components), family.features(zeros))
    with np.errstate(all="ignore"):
        natural = () if params is None else family.natural(params)
    require(
        all(np.isfinite(part).all() for part in natural),
        "natural must return finite numbers for a component whose rows are all 0, or m_step None: "
        "limit the parameters from below, before a logarithm or a division.",
    )


def _features(family: Family, rows: np.ndarray) -> Array:
    """Return T(y), (n, p), with indicators if the columns are codes."""
    dense = family.features(rows)
    indicators = np.zeros((len(rows), family.n_codes))
    np.put_along_axis(indicators, family.codes(rows).astype(np.intp), 1.0, axis=1)
    return np.hstack([dense, indicators])


def _check_m_step(family: Family, rows: np.ndarray, components: int, rng: np.random.Generator) -> None:
    """No parameters of other rows have a larger likelihood."""
    features = _features(family, rows)
    counts = np.full(components, 1.0 / components)

    def mean() -> Array:
        weight = rng.exponential(size=(components, len(rows))) ** 3  # a few rows have most of it
        return np.asarray(weight @ features / weight.sum(axis=1, keepdims=True))

    def value(means: Array, other: Array) -> float:
        params = family.m_step(counts, other)
        if params is None:
            raise AssertionError("m_step must not return None for means of rows.")
        phi, constant = family.natural(params)
        return float(((phi * means).sum(axis=1) + constant).sum())

    for _ in range(4):
        means, elsewhere = mean(), mean()
        best = value(means, means)
        for step in (1e-3, 1e-2, 0.1, 1.0):
            other = value(means, (1.0 - step) * means + step * elsewhere)
            require(
                other <= best + 1e-9 * max(1.0, abs(best)),
                f"m_step must return the maximum likelihood parameters, {best:.10g}, but others have "
                f"{other:.10g}: natural and m_step do not belong to one family.",
            )


def _log_density(family: Family, rows: np.ndarray, params: Params) -> Array:
    """Return log f, (b, M)."""
    base = family.log_base(rows)
    return np.asarray(family.e_step(rows, params)[0] + (0.0 if base is None else base[:, None]))


def _fitted(family: Family, rows: np.ndarray) -> Params:
    """Return parameters of one component."""
    n_iter = 200 if family.channels else 1
    params: Params = run(
        MixtureModel(1, family, smoothing=0.0), rows, EM(), n_iter=n_iter, seed=0
    ).theta.params
    return params


def _check_draws(
    family: Family, params: Params, components: int, d: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Random rows are valid, and their most likely parameters are not far from the given ones."""
    count = 4000
    rows = family.draw(params, np.repeat(np.arange(components), count), rng)
    require(rows.shape == (components * count, d), f"draw must return (count, d), got shape {rows.shape}.")
    try:
        family.check_rows(rows)
    except ValueError as error:
        raise AssertionError(f"draw must return valid rows, but data {error}.") from error
    parts = np.split(rows, components)
    free = family.n_free(1, d)
    for number, part in enumerate(parts):
        here = _log_density(family, part, params)[:, number]
        gain = 2.0 * (_log_density(family, part, _fitted(family, part))[:, 0] - here).sum()
        # Wilks: chi-squared with as many degrees of freedom as there are parameters.
        require(
            gain <= free + 8.0 * np.sqrt(2.0 * free) + 20.0,
            f"draw must follow the density, but other parameters are more likely by {gain / 2:.3g} for "
            f"{count} rows: draw and natural do not belong to one family.",
        )
    return parts


def _check_density(family: Family, column: np.ndarray, rng: np.random.Generator) -> None:
    """In one column the density sums to one over integers, or integrates to 0.96 between two quantiles."""
    try:
        model = MixtureModel(1, family).learnt(as_source(column))
        model.kind.check_rows(column)
        params = _fitted(model.kind, column)
    except ValueError:
        return  # it does not take one column
    values = np.sort(model.kind.draw(params, np.zeros(40_000, dtype=np.intp), rng)[:, 0])
    whole = bool((values == np.floor(values)).all())
    grid = np.unique(values if whole else np.quantile(values, np.linspace(0.02, 0.98, 4001)))
    density = np.exp(_log_density(model.kind, grid[:, None], params)[:, 0])
    found = density.sum() if whole else np.trapezoid(density, grid)
    expected = 1.0 if whole else 0.96
    require(
        abs(found - expected) < 0.02,
        f"the density must integrate to one, but where {expected:.0%} of the draws are it has {found:.3g}: "
        "check c, constants and log_base.",
    )


def _check_columns(family: Family, rows: np.ndarray, params: Params) -> None:
    """Constants, bases and features belong to columns, kind after kind."""
    d = rows.shape[1]
    phi, constant = family.natural(params)
    width = family.kinds * d
    require(phi.shape[1] == width, f"features must be kinds·d = {width}, got {phi.shape[1]}.")
    parts = family.constants(params)
    require(
        parts.shape == (len(constant), d) and np.allclose(parts.sum(axis=1), constant, rtol=1e-9),
        "constants must be (M, d), and their sums over columns c.",
    )
    bases, base = family.log_bases(rows), family.log_base(rows)
    is_same = bases is base if bases is None or base is None else np.allclose(bases.sum(axis=1), base)
    require(is_same, "log_bases must be (b, d), and their sums over columns log_base.")
    before = family.features(rows)
    for column in range(d):
        other = rows.copy()
        other[:, column] = np.roll(rows[:, column], 1)
        changed = np.flatnonzero((family.features(other) != before).any(axis=0))
        require(
            (changed % d == column).all(),
            f"features must be of all columns, kind after kind, but column {column} changes "
            f"features {changed.tolist()} of {before.shape[1]}.",
        )
    family.check_rows(np.full((1, d), family.filler))


def _check_expected(family: Family, params: Params, drawn: list[np.ndarray]) -> None:
    """The expected mean of a column agrees with random rows."""
    if type(family).expected is Family.expected:
        return
    for mean, rows in zip(family.expected(params), drawn, strict=True):
        error = 8.0 * rows.std(axis=0) / np.sqrt(len(rows)) + 1e-9 * np.abs(rows).max(axis=0)
        drawn_mean = rows.mean(axis=0)
        require(
            mean.shape == drawn_mean.shape and (np.abs(drawn_mean - mean) <= error).all(),
            f"expected must return the means (M, d), got {mean} where random rows have {drawn_mean}.",
        )
