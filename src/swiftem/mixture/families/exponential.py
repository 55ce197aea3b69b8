r"""Waiting times: independent exponential columns, with a rate for each component and column.

T(y) = y, φ = −λ, c = Σ_j log λ_j and h(y) = 1. M-step: λ is one over the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params


@dataclass(frozen=True)
class Exponential(Family):
    """Amounts of at least zero; ``params_["rates"]`` has shape (M, d): one over the means.

    Parameters
    ----------
    scale : tuple of float, optional
        Means of the columns, for starts; by default from the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(np.where(rng.random((5000, 1)) < 0.3, [[1.0, 50.0]], [[20.0, 2.0]]))
    >>> mixture = swiftem.Mixture(2, family="exponential", random_state=0).fit(X)
    >>> (1 / mixture.params_["rates"]).round()
    array([[20.,  2.],
           [ 1., 49.]])
    """

    name = "exponential"
    bounds = (0.0, inf)
    learnt = ("scale",)
    parameters = (("rates", "positive"),)

    scale: tuple[float, ...] | None = field(default=None, repr=False)

    def learn(self, columns: Columns) -> Family:
        """Set the scale from the data; raise ValueError for a column of zeros, which has no rate."""
        if ((columns.lowest == 0.0) & (columns.highest == 0.0)).any():
            raise ValueError(
                "data must have positive values in every column, got only zeros in one "
                f"(family {self.name!r}): leave it out."
            )
        return replace(self, scale=tuple(np.where(columns.mean > 0.0, columns.mean, 1.0).tolist()))

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for negative amounts."""
        if (y < 0).any():
            raise ValueError(f"must not be negative, got {y[y < 0][0]:g}")

    def for_start(self, y: Rows) -> Rows:
        """Return the cube roots of amounts without a unit, which are nearly normal."""
        return np.asarray(np.cbrt(y / np.array(self.scale or 1.0)))

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return −λ and Σ log λ."""
        return -params["rates"], self.constants(params).sum(axis=1)

    def constants(self, params: Params) -> Array:
        """Return log λ."""
        return np.asarray(np.log(params["rates"]))

    def expected(self, params: Params) -> Array:
        """Return 1 / λ."""
        return np.asarray(1.0 / params["rates"])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return one over the means; None if a mean is zero."""
        return {"rates": 1.0 / means} if (means > 0).all() else None

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return waiting times."""
        return np.asarray(rng.exponential(1.0 / params["rates"][labels]))
