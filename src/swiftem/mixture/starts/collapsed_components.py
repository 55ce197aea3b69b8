r"""Components that are spurious optima, as they sit on few distinct values, and columns of such values.

The density of a component has no bound as its smallest variance goes to zero. On rows that repeat, or whose
column is multiples of a unit u, a component gains log-likelihood by shrinking onto one value, until
``reg_covar`` alone holds it; how much says nothing about the data. With the precision matrix P of a
component,

.. math:: v_j = 1 / P_{jj}

is the variance of column j given the others. A component is reported if some v_j is at the floor, at most
:data:`AT_FLOOR` times ``reg_covar`` while the column's variance is far above it, or if the column has a unit
u and v_j is below u² / :data:`WITHIN`: less than a third of the rounding error's own variance u² / 12.

With full covariances at the floor, the reason is the direction of smallest variance: a column, or a
combination of columns if the rows of the component lie in a plane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.draws import spread_rows
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.data.units.source import UnitSource
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.settings import NUMBERS

AT_FLOOR, ABOVE = 1.25, 1e3
"""A variance of so many times ``reg_covar`` is at the floor, if the column's is ``ABOVE`` times larger. The
narrowest of 6,400 components of generated mixtures (``overlapping`` in ``benchmarks/mixture_fit.py``) has
1.49 times: such a component is narrow, not collapsed."""
NEAR_FLOOR, OWN, ALIKE = 4.0, 4, 0.5
"""A component with a variance of up to ``NEAR_FLOOR`` times ``reg_covar`` has collapsed if it has fewer than
``OWN`` · (d + 1) rows, or if fewer than this share of its values in the column are different."""
WITHIN = 36.0
SHOWN, TERMS = 5, 3
"""Components that the warning names, and columns of a combination."""
MATTERS = 0.1
"""Share of the largest term of a combination from which on another one is named."""
PLACES = "that sit on few distinct values", "whose rows lie in a plane"
STEP, FIRST, SECOND = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Constants of SplitMix64 (Steele, Lea and Flood 2014)."""
REPEATS = 2.0
"""A column is treated as multiples of a unit only if its values occur this many times on average."""
FIRST_REPEATS = 5
"""How often values of such a column repeat among a thousand rows of a sample."""
LEAST = 50
"""Minimum number of rows to detect units."""


class SpuriousComponentWarning(UserWarning):
    """A component sits on few distinct values: its likelihood is bounded by ``reg_covar`` alone."""


class Spurious(NamedTuple):
    """Component and column, and the column's unit, 0 if it has none.

    ``terms`` are columns and coefficients of the combination that is constant, empty if it is the column.
    """

    component: int
    column: int
    unit: float
    terms: tuple[tuple[int, float], ...] = ()


def find_spurious(problem: Problem, theta: Any) -> list[Spurious]:
    """Return the components of a fit that are spurious, each with its narrowest column.

    Units are detected in rows that are in memory; those of files are not read again.
    """
    bound, source = problem.bound, problem.source
    if not isinstance(bound, BoundGaussians) or bound.kind.name == "tied" or bound.model.prior is not None:
        return []
    given, spread, unit = conditional_variances(bound, theta), _spread(bound, theta), np.zeros(bound.d)
    rows = source.some if isinstance(source, UnitSource) else source
    if isinstance(rows, ArraySource):
        some = spread_rows(rows.n, NUMBERS.scarce_rows, np.random.default_rng(0))
        unit = units(rows.take(some).y.reshape(len(some), -1))
    held = at_floor(bound, theta, spread)
    narrow = held | (given * WITHIN < unit**2)
    found = []
    for m in np.flatnonzero(narrow.any(axis=1)).tolist():
        column = int(np.where(narrow[m], given[m] / spread, np.inf).argmin())
        terms: tuple[tuple[int, float], ...] = ()
        if held[m].any() and bound.kind.name == "full":
            column, terms = _narrowest(theta.covariances[m], spread)
        found.append(Spurious(m, column, 0.0 if terms else float(unit[column]), terms))
    return found


def _narrowest(covariance: Array, spread: Array) -> tuple[int, tuple[tuple[int, float], ...]]:
    """Return the direction of smallest variance: its main column, and its terms if there are several.

    >>> x, y = np.random.default_rng(0).normal(size=(2, 100))
    >>> _narrowest(np.cov([x, y, x - 2.0 * y]), np.ones(3))
    (1, ((1, 1.0), (2, 0.5), (0, -0.5)))
    """
    vector = np.linalg.eigh(covariance)[1][:, 0]
    share = np.abs(vector) * np.sqrt(spread)
    order = np.argsort(-share, kind="stable")
    some = order[share[order] >= MATTERS * share[order[0]]]
    if len(some) == 1:
        return int(some[0]), ()
    scaled = vector / vector[some[0]]
    return int(some[0]), tuple((int(j), round(float(scaled[j]), 6)) for j in some)


def _spread(bound: BoundGaussians, theta: Any) -> Array:
    """Return the variances of the columns, (d,), of the mixture."""
    away = theta.means - theta.weights @ theta.means
    own = theta.covariances
    if bound.kind.name == "full":
        own = np.diagonal(own, axis1=1, axis2=2)
    own = np.broadcast_to(own.reshape(len(theta.weights), -1), theta.means.shape)
    return np.asarray(theta.weights @ (own + away**2))


def count_on_few_values(bound: BoundGaussians, theta: Any, spread: Array, rows: ArraySource, n: int) -> int:
    """Return how many components fitted to n rows sit on a few of them, or on repeated values.

    ``rows`` are some of the data, and ``spread`` (d,) are the variances of the columns. A component that is
    merely narrow has more rows, and all values differ.
    """
    narrow = at_floor(bound, theta, spread, NEAR_FLOOR)
    suspects = np.flatnonzero(narrow.any(axis=1))
    is_small = theta.weights[suspects] * n < OWN * (bound.d + 1)
    if is_small.all():
        return len(suspects)
    some = rows.take(np.arange(0, rows.n, -(-rows.n // NUMBERS.least_rows)))
    y, r = some.y.reshape(len(some.y), -1), bound.posterior(some, theta)[0]
    for place in np.flatnonzero(~is_small).tolist():
        m = suspects[place]
        own = y[r[:, m] > 0.5][:, narrow[m]]
        is_small[place] = any(len(np.unique(column)) < ALIKE * len(column) for column in own.T)
    return int(is_small.sum())


def at_floor(bound: BoundGaussians, theta: Any, spread: Array, times: float = AT_FLOOR) -> NDArray[np.bool_]:
    """Return which variances, (M, d), are at most ``times`` ``reg_covar``, which alone holds them.

    ``spread`` (d,) are the variances of the columns, which must be far above.
    """
    floor = times * float(bound.model.reg_covar)
    return np.asarray((conditional_variances(bound, theta) <= floor) & (spread > ABOVE * floor))


def conditional_variances(bound: BoundGaussians, theta: Any) -> Array:
    """Return the variance of each column given the others, (M, d)."""
    factors = theta.precisions_cholesky
    if bound.kind.name == "full":
        return np.asarray(1.0 / (factors**2).sum(axis=2))
    return np.broadcast_to(1.0 / factors.reshape(len(theta.weights), -1) ** 2, theta.means.shape)


def sentence(found: list[Spurious], names: Any = None) -> str:
    """Return the warning: which components, which columns or combinations of them, and what to do.

    >>> sentence([Spurious(2, 0, 1.0)])[-139:-62]
    '2 (column 0). Use uniform noise on that column, which has multiples of 1, a l'
    >>> sentence([Spurious(0, 1, 0.0, ((1, 1.0), (0, -0.5)))])[:93]
    'Components whose rows lie in a plane, whose likelihood is bounded by reg_covar alone: 0 (colu'
    """

    def name(column: int) -> str:
        return f"column {column if names is None else repr(str(names[column]))}"

    def shown(one: Spurious) -> str:
        parts = [name(one.column)]
        for column, value in one.terms[1:TERMS]:
            parts.append(f"{'−' if value < 0 else '+'} {abs(value):.2g}·{name(column)}")
        more = " + ..." if len(one.terms) > TERMS else ""
        constant = " is constant" if one.terms else ""
        return f"{one.component} ({' '.join(parts)}{more}{constant})"

    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    unit = next((one.unit for one in found if one.unit), 0.0)
    noise = f"uniform noise on that column, which has multiples of {unit:g}, " if unit else ""
    in_plane = {bool(one.terms) for one in found}
    places = [PLACES[has] for has in (False, True) if has in in_plane]
    columns = "fewer columns, as some are combinations of others, " if True in in_plane else ""
    return (
        f"Components {' or '.join(places)}, whose likelihood is bounded by reg_covar alone: "
        f"{', '.join(map(shown, found[:SHOWN]))}{more}. Use {noise}{columns}a larger reg_covar, a prior, "
        "fewer components, or another family."
    )


def units(y: NDArray[Any], *, shuffled: bool = False) -> Array:
    """Return for each column the unit that its values are multiples of, up to an offset; 0 if there is none.

    The unit is the smallest gap between two values. A column has one if its values repeat and all gaps are
    multiples of the smallest. If rows are ``shuffled``, values must repeat among the first thousand: of
    26,000 rows with every value twice, 19 pairs are among them in the mean.

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
        first = column[: NUMBERS.least_rows]
        if shuffled and len(column) > len(first) and len(np.unique(first)) > len(first) - FIRST_REPEATS:
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


def with_noise(y: np.ndarray, unit: Array, index: Index) -> np.ndarray:
    """Return rows plus uniform noise as wide as the unit of each column.

    The noise of a cell is a function of its row's index and its column alone, so that rows have the same
    noise whenever and in whatever order they are read.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Rows.
    unit : ndarray, shape (d,)
        Units of the columns; 0 adds nothing.
    index : ndarray of int, shape (b,)
        Indices of the rows.

    Examples
    --------
    >>> rows = with_noise(np.zeros((2, 2)), np.array([1.0, 0.0]), np.array([7, 7]))
    >>> rows[0, 0] == rows[1, 0], 0 < abs(rows[0, 0]) <= 0.5, rows[0, 1]
    (np.True_, np.True_, np.float64(0.0))
    """
    columns = np.flatnonzero(unit)
    if not len(columns):
        return y
    noisy = y.astype(y.dtype if y.dtype.kind == "f" else np.float64)
    with np.errstate(over="ignore"):  # words wrap around
        place = np.asarray(index).astype(np.uint64)[:, None] * np.uint64(len(unit)) + columns.astype(
            np.uint64
        )
        word = (place + np.uint64(1)) * STEP
        word = (word ^ (word >> np.uint64(30))) * FIRST
        word = (word ^ (word >> np.uint64(27))) * SECOND
        word ^= word >> np.uint64(31)
    noisy[:, columns] += unit[columns] * ((word >> np.uint64(11)) * 2.0**-53 - 0.5)
    return noisy
