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

__all__ = ["Categorical", "projected"]

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
    found = np.zeros((len(codes), k), dtype=np.float32)
    for column in codes.T:
        found += table[column]
    return found


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
    array([0.7, 0.3])
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

    levels: tuple[int, ...] | None = None
    categories: tuple[tuple[int, ...], ...] | None = None
    seen: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        for count in self.levels or ():
            check_int("levels", count, minimum=1, maximum=MOST)
        if self.categories is not None:
            for codes in self.categories:
                _check_codes("categories", codes)
            counts = tuple(map(len, self.categories))
            if self.levels not in (None, counts):
                raise ValueError(f"levels must be the numbers of categories, {counts}, got {self.levels}.")
            object.__setattr__(self, "levels", counts)
        for codes in self.seen or ():
            _check_codes("seen", codes)

    @property
    def filler(self) -> Any:  # type: ignore[override]
        """A code of each column."""
        return 0.0 if self.categories is None else np.array([codes[0] for codes in self.categories], float)

    @property
    def needs_data(self) -> bool:
        """Whether levels must be counted."""
        return self.levels is None

    def learn(self, columns: Columns) -> Family:
        """Take the codes in the data as levels."""
        found = self._found(columns)
        counts = tuple(map(len, found))
        if all(codes[-1] == count - 1 for codes, count in zip(found, counts, strict=True)):
            return replace(self, levels=counts)  # 0, 1, ... without gaps
        return replace(self, categories=found)

    def streamed(self, columns: Columns) -> Family:
        """Take codes up to the largest of the first rows as levels, and remember which were seen."""
        if self.levels is None:
            found = self._found(columns)
            return replace(self, levels=tuple(codes[-1] + 1 for codes in found), seen=found)
        if self.seen is None:
            return self
        pairs = zip(self.seen, self._found(columns), self.levels, strict=True)
        merged = tuple(tuple(c for c in sorted({*old, *new}) if c < count) for old, new, count in pairs)
        return replace(self, seen=merged)

    def _found(self, columns: Columns) -> tuple[tuple[int, ...], ...]:
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
        known = y < np.array(levels) if self.categories is None else self._places(y) >= 0
        bad = (y < 0) | (y != np.floor(y)) | ~known
        if bad.any():
            column = int(np.argmax(bad.any(axis=0)))
            value = y[:, column][bad[:, column]][0]
            got = f"got {value:g}"
            if self.categories is not None and (value < 0 or value != np.floor(value)):
                raise ValueError(f"must be codes, whole numbers from 0 on, in column {column}, {got}")
            if self.categories is not None:
                codes = shortened([str(code) for code in self.categories[column]])
                raise ValueError(
                    f"must have categories of the fit in column {column} ({codes}), as levels= was not "
                    f"given, {got}"
                )
            count = levels[column]
            why = "" if self.seen is None else ", from the first rows: give Categorical(levels=...) for more"
            raise ValueError(
                f"must be codes from 0 to {count - 1} in column {column} (levels={count}{why}), {got}"
            )

    @cached_property
    def _tables(self) -> list[NDArray[np.int32]]:
        """Levels by code, −1 for a code without one, and for all codes beyond the table at its end."""
        assert self.categories is not None
        found = []
        for codes in self.categories:
            table = np.full(codes[-1] + 2, -1, dtype=np.int32)
            table[list(codes)] = np.arange(len(codes))
            found.append(table)
        return found

    def _places(self, y: Rows) -> NDArray[np.int32]:
        """Return the levels (b, d) of codes, −1 for other values."""
        found = np.empty(y.shape, dtype=np.int32, order="F")  # kernels read a column contiguously
        with np.errstate(invalid="ignore"):  # numbers too large for an integer
            codes = y.astype(np.int64, order="F").view(np.uint64)
        for column, table in enumerate(self._tables):
            np.take(table, np.minimum(codes[:, column], len(table) - 1).astype(np.intp), out=found[:, column])
        return found

    def codes(self, y: Rows, first: int = 0) -> NDArray[np.int32]:
        """Return which indicators are one, shape (b, d)."""
        if self.categories is None:
            return super().codes(y, first)
        found = self._places(y)
        if len(found) and found.min() < 0:
            self.checked(y, first)
            raise ValueError(f"data must have categories of the fit (family {self.name!r}).")
        found += np.concatenate([[0], np.cumsum(self._levels())[:-1]]).astype(np.int32)
        return found

    def level_codes(self) -> list[tuple[int, ...]]:
        """Return the categories, or the codes up to each number of levels."""
        return super().level_codes() if self.categories is None else list(self.categories)

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
        found = params["probabilities"][:, self._inside()]
        return np.log(np.maximum(found, LEAST)), np.zeros(len(found))

    def constants(self, params: Params) -> Array:
        """Return zeros."""
        return np.zeros(params["probabilities"].shape[:2])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the means divided by their sums, which are one up to noise."""
        inside = self._inside()
        found = np.zeros((len(means), *inside.shape))
        found[:, inside] = np.maximum(means, 0.0)
        sums = found.sum(axis=2, keepdims=True)
        return {"probabilities": found / sums} if (sums > 0.0).all() else None

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
        found = params["probabilities"]
        if (found < 0).any() or not np.allclose(found.sum(axis=2), 1.0, rtol=0.0, atol=TOLERANCE):
            raise ValueError("probabilities must not be negative, and sum to 1 over the levels.")
        if self.levels is not None and found[:, ~self._inside()].any():
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
