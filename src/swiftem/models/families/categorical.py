r"""Categories: independent columns of codes 0, 1, ..., L_j − 1, with a probability for each level.

T(y) has a one for the level of each column, φ = log p, c = 0 and h(y) = 1. M-step: p is the mean, a share of
the component's rows. Indicators are never formed, so that an E-step costs the same at any number of levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import check_int
from swiftem._typing import Array
from swiftem.models.families.family import Columns, Family, Params

__all__ = ["Categorical", "projected"]

LEAST = 1e-300
"""A probability of zero is replaced by this one, whose logarithm is finite."""
MOST = 1 << 20
"""Maximum number of levels of a column."""
PROJECTED = 16
"""Numbers per row for k-means of a start."""
TOLERANCE = 1e-6


def projected(codes: NDArray[Any], count: int) -> NDArray[Any]:
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
    """Codes 0, 1, 2, ...; ``params_["probabilities"]`` has shape (M, d, L).

    L is the largest number of levels of a column; probabilities beyond a column's levels are zero. A level
    without rows in a component has the prior's (``smoothing``) probability, from its frequency in all data.

    Parameters
    ----------
    levels : tuple of int, optional
        Number of levels of each column; by default the largest code in the data, plus one.

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
    ValueError: data must be codes from 0 to 2 in column 3, got 3 in row 0 (family 'categorical').
    """

    name = "categorical"
    bounds = (0.0, 1.0)
    is_coded = True
    filler = 0.0

    levels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for count in self.levels or ():
            check_int("levels", count, minimum=1, maximum=MOST)

    @property
    def needs_data(self) -> bool:
        """Whether levels must be counted."""
        return self.levels is None

    def learn(self, columns: Columns) -> Family:
        """Count levels: codes up to the largest."""
        most = float(columns.highest.max())
        if most >= MOST:
            raise ValueError(
                f"data must be codes below {MOST}, got {most:g} (family {self.name!r}): number the levels."
            )
        return replace(self, levels=tuple(int(code) + 1 for code in np.maximum(columns.highest, 0.0)))

    def shapes(self, n_components: int, d: int) -> dict[str, Any]:
        """Return the shape of the probabilities."""
        return {"probabilities": (n_components, d, max(self.levels) if self.levels else None)}

    def check_rows(self, y: NDArray[Any]) -> None:
        """Raise ValueError for values that are not codes, or codes that the data of the fit do not have."""
        levels = self._levels()
        if y.shape[1] != len(levels):
            raise ValueError(f"must have {len(levels)} columns, as levels has, got {y.shape[1]}")
        bad = (y < 0) | (y != np.floor(y)) | (y >= np.array(levels))
        if bad.any():
            column = int(np.argmax(bad.any(axis=0)))
            value = y[:, column][bad[:, column]][0]
            raise ValueError(
                f"must be codes from 0 to {levels[column] - 1} in column {column}, got {value:g}"
            )

    def for_start(self, y: NDArray[Any]) -> NDArray[Any]:
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

    def draw(self, params: Params, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return codes."""
        ends = np.cumsum(params["probabilities"], axis=2)
        rows = np.empty((len(labels), ends.shape[1]))
        at = rng.random(rows.shape)
        for m in np.unique(labels):
            here = labels == m
            for j, end in enumerate(ends[m]):
                last = int(np.searchsorted(end, end[-1]))
                rows[here, j] = np.minimum(np.searchsorted(end, at[here, j] * end[-1], side="right"), last)
        return rows

    def check_params(self, params: Params) -> None:
        """Raise ValueError for invalid probabilities of the levels."""
        found = params["probabilities"]
        if (found < 0).any() or not np.allclose(found.sum(axis=2), 1.0, rtol=0.0, atol=TOLERANCE):
            raise ValueError("probabilities must not be negative, and sum to 1 over the levels.")
        if self.levels is not None and found[:, ~self._inside()].any():
            raise ValueError("probabilities must be zero beyond the levels of a column.")

    def imputed(self, y: NDArray[Any], rows: Array, params: Params) -> Array:
        """Return rows (b, d) with the most likely level in missing cells."""
        likely = np.einsum("im,mjl->ijl", rows, params["probabilities"]).argmax(axis=2)
        return np.where(np.isnan(y), likely, y)

    def n_free(self, n_components: int, d: int) -> int:
        """Return the number of levels minus one, summed over columns."""
        return n_components * (self.n_codes - d)
