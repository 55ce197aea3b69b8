r"""Waiting times: independent exponential columns, with a rate for each component and column.

T(y) = y, φ = −λ, c = Σ_j log λ_j and h(y) = 1. M-step: λ is one over the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.models.families.family import Family, Params

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential(Family):
    """Amounts of at least zero; ``params_["rates"]`` has shape (M, d): one over the means.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(np.where(rng.random((5000, 1)) < 0.3, [[1.0, 50.0]], [[20.0, 2.0]]))
    >>> mixture = swiftem.Mixture(2, family="exponential", random_state=0).fit(X)
    >>> (1 / mixture.params_["rates"]).round()
    array([[ 1., 49.],
           [20.,  2.]])
    """

    name = "exponential"
    bounds = (0.0, inf)

    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of the rates."""
        return {"rates": (n_components, d)}

    def check_rows(self, y: NDArray[Any]) -> None:
        """Raise ValueError for negative amounts."""
        if (y < 0).any():
            raise ValueError(f"must not be negative, got {y[y < 0][0]:g}")

    def for_start(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return cube roots, which are nearly normal, divided by their means."""
        roots = np.cbrt(y)
        means = roots.mean(axis=0)
        return np.asarray(roots / np.where(means > 0.0, means, 1.0))

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return −λ and Σ log λ."""
        return -params["rates"], np.log(params["rates"]).sum(axis=1)

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return one over the means; None if a mean is zero."""
        return {"rates": 1.0 / means} if (means > 0).all() else None

    def draw(self, params: Params, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return waiting times."""
        return np.asarray(rng.exponential(1.0 / params["rates"][labels]))

    def check_params(self, params: Params) -> None:
        """Raise ValueError for rates that are not positive."""
        if (params["rates"] <= 0).any():
            raise ValueError("rates must be positive.")
