r"""Categories: independent columns of codes, whole numbers from 0 on, with a probability for each level.

T(y) has a one for the level of each column, φ = log p, c = 0 and h(y) = 1. M-step: p is the mean, a share of
the component's rows. Indicators are never formed, so that an E-step costs the same at any number of levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_int, shortened, shown
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params

LEAST = 1e-300
"""A probability of zero is replaced by this one, whose logarithm is finite."""
MOST = 1 << 20
"""Maximum number of levels of a column."""
PROJECTED = 16
"""Numbers per row for k-means of a start."""
TOLERANCE = 1e-6


def projected(codes: Rows, count: int) -> Rows:
    """Return a random projection of indicators, (b, k) of ``count``; a code of ``count`` has none."""
    k = min(count, PROJECTED)
    table = np.zeros((count + 1, k), dtype=np.float32)
    table[:count] = np.random.default_rng(0).normal(size=(count, k))
    rows = np.zeros((len(codes), k), dtype=np.float32)
    for column in codes.T:
        rows += table[column]
    return rows


@dataclass(frozen=True)
class Categorical(Family):
    """Codes, whole numbers from 0 on; ``params_["probabilities"]`` has shape (M, d, L).

    L is the largest number of levels of a column; probabilities beyond a column's levels are zero. A level
    without rows in a component has the prior's (``smoothing``) probability, from its frequency in all data.

    Parameters
    ----------
    levels : tuple of int, optional
        Number of levels of each column: codes are 0 to this number minus one, and all of them count as
        parameters. By default levels are the codes in the data of the fit.
    categories : tuple of tuple of int, optional
        The codes of each column, in increasing order, if they are not 0, 1, ...; a fit finds them.
    seen : tuple of tuple of int, optional
        The codes that ``partial_fit`` has seen, if it has found the levels itself: only they count as
        parameters.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> one, other = (rng.choice(3, (2000, 4), p=p) for p in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8]))
    >>> X = np.where(rng.random((2000, 1)) < 0.3, one, other)
    >>> mixture = swiftem.Mixture(2, family="categorical", random_state=0).fit(X)
    >>> mixture.family_.levels, mixture.params_["probabilities"].shape
    ((3, 3, 3, 3), (2, 4, 3))
    >>> mixture.weights_.round(1)
    array([0.3, 0.7])
    >>> mixture.predict([[0, 0, 0, 3]])
    Traceback (most recent call last):
    ValueError: data must be codes from 0 to 2 in column 3 (levels=3), got 3 in row 0 (family 'categorical').

    Codes may begin at one, or have gaps:

    >>> swiftem.Mixture(2, family="categorical", random_state=0).fit(2 * X + 1).categories_[0]
    (1, 3, 5)
    """

    name = "categorical"
    bounds = (0.0, 1.0)
    is_coded = True
    learnt = ("levels",)

    levels: tuple[int, ...] | None = None
    categories: tuple[tuple[int, ...], ...] | None = None
    seen: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        for count in self.levels or ():
            check_int("levels", count, minimum=1, maximum=MOST)
        for name in ("categories", "seen"):
            for codes in getattr(self, name) or ():
                _check_codes(name, codes)
        if self.categories is not None:
            counts = tuple(map(len, self.categories))
            if self.levels not in (None, counts):
                raise ValueError(f"levels must be the numbers of categories, {counts}, got {self.levels}.")
            object.__setattr__(self, "levels", counts)

    @property
    def filler(self) -> Any:  # type: ignore[override]
        """A code of each column."""
        return 0.0 if self.categories is None else np.array([codes[0] for codes in self.categories], float)

    def learn(self, columns: Columns) -> Family:
        """Take the codes in the data as levels."""
        codes = self._codes_of(columns)
        if all(part == tuple(range(len(part))) for part in codes):
            return replace(self, levels=tuple(map(len, codes)))
        return replace(self, categories=codes)

    def streamed(self, columns: Columns) -> Family:
        """Take codes up to the largest of the first rows as levels, and remember which were seen."""
        if self.levels is not None and self.seen is None:
            return self
        codes = self._codes_of(columns)
        levels = self.levels or tuple(part[-1] + 1 for part in codes)
        parts = zip(self.seen or codes, codes, levels, strict=True)
        merged = (sorted(code for code in {*old, *new} if code < count) for old, new, count in parts)
        return replace(self, levels=levels, seen=tuple(map(tuple, merged)))

    def _codes_of(self, columns: Columns) -> tuple[tuple[int, ...], ...]:
        """Return the codes in the data, (0,) for a column without any."""
        most = float(columns.highest.max())
        if most >= MOST:
            raise ValueError(
                f"data must be codes below {MOST}, got {most:g} (family {self.name!r}): number the levels."
            )
        return tuple(tuple(np.flatnonzero(bits).tolist()) or (0,) for bits in columns.codes)

    def shapes(self, n_components: int, d: int) -> dict[str, Any]:
        """Return the shape of the probabilities."""
        return {"probabilities": (n_components, d, max(self.levels) if self.levels else None)}

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for values that are not codes, or codes that the data of the fit do not have."""
        levels = self._levels()
        if y.shape[1] != len(levels):
            raise ValueError(f"must have {len(levels)} columns, as levels has, got {y.shape[1]}")
        places = self._places(y)
        bad = (y != np.floor(y)) | (places < 0) | (places >= np.array(levels))
        if not bad.any():
            return
        column = int(np.argmax(bad.any(axis=0)))
        value = y[:, column][bad[:, column]][0]
        if self.categories is None:
            count = levels[column]
            why = "" if self.seen is None else ", from the first rows: give Categorical(levels=...) for more"
            message = f"must be codes from 0 to {count - 1} in column {column} (levels={count}{why})"
        elif value < 0 or value != np.floor(value):
            message = f"must be codes, whole numbers from 0 on, in column {column}"
        else:
            codes = shortened([str(code) for code in self.categories[column]])
            message = (
                f"must have categories of the fit in column {column} ({codes}), as levels= was not given"
            )
        raise ValueError(f"{message}, got {value:g}")

    @cached_property
    def _tables(self) -> list[NDArray[np.int32]]:
        """Levels by code, −1 for a code without one, and for all codes beyond the table at its end."""
        tables = []
        for codes in self.categories or ():
            table = np.full(codes[-1] + 2, -1, dtype=np.int32)
            table[list(codes)] = np.arange(len(codes))
            tables.append(table)
        return tables

    def _places(self, y: Rows) -> NDArray[np.int32]:
        """Return the levels (b, d) of codes; for other values a number that is no level."""
        with np.errstate(invalid="ignore"):  # numbers too large for an integer
            places = y.astype(np.int32, order="F")  # kernels read the codes of a column contiguously
        for table, column in zip(self._tables, places.T, strict=False):
            column[:] = table[np.minimum(column.view(np.uint32), len(table) - 1)]
        return places

    def features(self, y: Rows) -> Rows:
        """Return no features but the indicators."""
        return y[:, :0]

    @property
    def n_codes(self) -> int:
        """Σ levels."""
        return sum(self._levels())

    def codes(self, y: Rows, first: int = 0) -> NDArray[np.int32]:
        """Return which indicators are one, shape (b, d)."""
        levels, places = np.array(self._levels()), self._places(y)
        if len(places) and ((places.max(axis=0) >= levels).any() or places.min() < 0):
            self.checked(y, first)  # which raises the error
        places += np.concatenate([[0], np.cumsum(levels)[:-1]]).astype(np.int32)
        return places

    def level_codes(self) -> list[tuple[int, ...]]:
        """Return the categories, or the codes up to each number of levels."""
        return list(self.categories or (tuple(range(count)) for count in self._levels()))

    def _levels(self) -> tuple[int, ...]:
        if self.levels is None:
            raise ValueError(
                "levels must be given if there are no data to count them in: Categorical(levels=(3, 2, ...)),"
                " one number per column."
            )
        return self.levels

    def _coded(self, places: Rows) -> Rows:
        """Return the codes of levels (b, d)."""
        if self.categories is None:
            return places
        columns = zip(self.categories, places.T, strict=True)
        return np.column_stack([np.array(codes)[part.astype(np.intp)] for codes, part in columns])

    def for_start(self, y: Rows) -> Rows:
        """Return a random projection of the indicators, which keeps their distances."""
        return projected(self.codes(y), self.n_codes)

    def _inside(self) -> NDArray[np.bool_]:
        """Return a mask of the valid levels in (d, L)."""
        levels = np.array(self._levels())
        return np.asarray(np.arange(levels.max()) < levels[:, None])

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return log p of all levels, column by column."""
        probabilities = params["probabilities"][:, self._inside()]
        return np.log(np.maximum(probabilities, LEAST)), np.zeros(len(probabilities))

    def constants(self, params: Params) -> Array:
        """Return zeros."""
        return np.zeros(params["probabilities"].shape[:2])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the means divided by their sums, which are one up to noise."""
        inside = self._inside()
        shares = np.zeros((len(means), *inside.shape))
        shares[:, inside] = np.maximum(means, 0.0)
        sums = shares.sum(axis=2, keepdims=True)
        return {"probabilities": shares / sums} if (sums > 0.0).all() else None

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return codes."""
        ends = np.cumsum(params["probabilities"], axis=2)
        rows = np.empty((len(labels), ends.shape[1]))
        at = rng.random(rows.shape)
        for m in np.unique(labels):
            here = labels == m
            for j, end in enumerate(ends[m]):
                last = int(np.searchsorted(end, end[-1]))
                rows[here, j] = np.minimum(np.searchsorted(end, at[here, j] * end[-1], side="right"), last)
        return np.asarray(self._coded(rows), dtype=np.float64)

    def check_params(self, params: Params) -> None:
        """Raise ValueError for invalid probabilities of the levels."""
        given = params["probabilities"]
        if (given < 0).any() or not np.allclose(given.sum(axis=2), 1.0, rtol=0.0, atol=TOLERANCE):
            raise ValueError("probabilities must not be negative, and sum to 1 over the levels.")
        if self.levels is not None and given[:, ~self._inside()].any():
            raise ValueError("probabilities must be zero beyond the levels of a column.")

    def imputed(self, y: Rows, rows: Array, params: Params) -> Array:
        """Return rows (b, d) with the most likely level in missing cells."""
        likely = np.einsum("im,mjl->ijl", rows, params["probabilities"]).argmax(axis=2)
        return np.where(np.isnan(y), self._coded(likely), y)

    def n_free(self, n_components: int, d: int) -> int:
        """Return the number of levels minus one, summed over columns."""
        count = self.n_codes if self.seen is None else sum(map(len, self.seen))
        return n_components * (count - d)


def _check_codes(name: str, codes: Any) -> None:
    """Raise ValueError unless codes are increasing integers."""
    array = np.asarray(codes)
    is_right = array.ndim == 1 and len(array) and array.dtype.kind in "iu" and array[0] >= 0
    if not is_right or array[-1] >= MOST or (np.diff(array) <= 0).any():
        raise ValueError(f"{name} must have increasing codes from 0 to {MOST - 1}, got {shown(codes)}.")
