r"""Counts: independent Poisson columns, with a rate for each component and column.

T(y) = y, φ = log λ, c = −Σ_j λ_j and log h(y) = −Σ_j log y_j!. M-step: λ is the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Family, Params

LEAST = 1e-300
"""A rate of zero is replaced by this one, whose logarithm is finite."""
TABLE = 1 << 16
"""Logarithms of factorials of smaller counts are looked up in a table."""


@dataclass(frozen=True)
class Poisson(Family):
    """Counts 0, 1, 2, ...; ``params_["rates"]`` has shape (M, d).

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.where(rng.random((1000, 1)) < 0.3, [[2.0, 9.0]], [[8.0, 1.0]]))
    >>> mixture = swiftem.Mixture(2, family="poisson", random_state=0).fit(X)
    >>> mixture.params_["rates"].round()
    array([[8., 1.],
           [2., 9.]])
    """

    name = "poisson"
    bounds = (0.0, inf)
    parameters = (("rates", "at least 0"),)

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for values that are not counts."""
        bad = (y < 0) | (y != np.floor(y))
        if bad.any():
            raise ValueError(f"must be counts (0, 1, 2, ...), got {y[bad][0]:g}")

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return log λ and −Σ λ."""
        rates = params["rates"]
        return np.log(np.maximum(rates, LEAST)), -rates.sum(axis=1)

    def constants(self, params: Params) -> Array:
        """Return −λ."""
        return np.asarray(-params["rates"])

    def expected(self, params: Params) -> Array:
        """Return λ."""
        return np.asarray(params["rates"])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the means."""
        return {"rates": means.copy()} if (means >= 0).all() else None

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return counts."""
        return np.asarray(rng.poisson(params["rates"][labels]), dtype=np.float64)

    def log_bases(self, y: Rows) -> Array | None:
        """Return −log y!."""
        from scipy.special import gammaln

        if not y.size or y.max() >= TABLE:
            return -np.asarray(gammaln(y.astype(np.float64) + 1.0))
        table = gammaln(np.arange(int(y.max()) + 1.0) + 1.0)
        return -np.asarray(table[y.astype(np.intp)])
