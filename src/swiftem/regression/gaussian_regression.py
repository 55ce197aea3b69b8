r"""Components that are linear regressions with normal noise, as a family: rows are (x, y), y last.

With v and u for the standardised x and y, x̃ = (1, v), b and s² for coefficients and noise in these units, and
ŷ = bᵀx̃, log f(y | x) = −(u − bᵀx̃)² / 2s² − ½ log 2πσ²: T(x, y) has the products of (1, v, u). M-step:
b = E[x̃x̃ᵀ]⁻¹ E[x̃u] and s² = E[u²] − bᵀE[x̃u], over the rows of a component. The density of x is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_real
from swiftem.core.types import Array
from swiftem.mixture.families import Columns, Family, Params
from swiftem.mixture.families.gaussian import Standardised, standard
from swiftem.regression.newton_em import Units

NEGATIVE = -1e-8
"""Eigenvalues of E[x̃x̃ᵀ] below this are noise of a stochastic method: the step is rejected."""
SINGULAR = 1e-11
"""Eigenvalues below this, relative to the largest, are zero: coefficients are then those of least norm."""


@dataclass(frozen=True)
class GaussianRegression(Standardised):
    """Rows (x, y); ``params_`` has ``coefficients`` (M, d), the intercept first, and ``variances`` (M,).

    Parameters
    ----------
    intercept : bool
        Whether there is an intercept; otherwise it is zero.
    floor : float
        Smallest variance of the noise, relative to the variance of y in all data.
    centre, scale : tuple of float, optional
        Of the columns; by default mean and standard deviation of the data.
    """

    name = "gaussian-regression"

    intercept: bool = True
    floor: float = 1e-6
    centre: tuple[float, ...] | None = field(default=None, repr=False)
    scale: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_real("floor", self.floor, minimum=0.0)

    def learn(self, columns: Columns) -> Family:
        """Set centre and scale from the data; without an intercept the centre is zero."""
        if self.intercept:
            return super().learn(columns)
        about_zero = columns.variance + np.square(columns.mean)
        _, scale = standard(columns._replace(variance=about_zero))
        return replace(self, centre=(0.0,) * len(scale), scale=scale)

    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of coefficients and variances."""
        return {"coefficients": (n_components, d), "variances": (n_components,)}

    def features(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return (v, u) and the products of their columns."""
        z = self.for_start(y)
        i, j = np.tril_indices(z.shape[1])
        return np.concatenate([z, z[:, i] * z[:, j]], axis=1)

    def _units(self, d: int) -> Units:
        """Return the units of d columns, the last of which is the response."""
        centre, scale = self.unit(d)
        return Units(True, centre[:-1], scale[:-1], centre[-1], scale[-1])

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ and c: minus half of the products of (−b, 1), divided by s²."""
        beta, d = params["coefficients"], params["coefficients"].shape[1]
        b, noise = self._units(d).inside(beta, params["variances"])
        full = np.concatenate([b, -np.ones((len(b), 1))], axis=1)  # u − bᵀx̃ is −fullᵀ(1, v, u)
        i, j = np.tril_indices(d)
        products = full[:, 1 + i] * full[:, 1 + j] * np.where(i == j, 0.5, 1.0)
        phi = -np.concatenate([full[:, :1] * full[:, 1:], products], axis=1) / noise[:, None]
        return phi, -0.5 * (b[:, 0] ** 2 / noise + np.log(2.0 * np.pi * params["variances"]))

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return coefficients and variances; None if the moments are not those of any rows."""
        moments = _moments(means)
        d = moments.shape[1] - 1
        first = 0 if self.intercept else 1
        gram, cross = moments[:, first:-1, first:-1], moments[:, first:-1, -1]
        values, vectors = np.linalg.eigh(gram)
        if values.size and values.min() < NEGATIVE:
            return None
        keep = values > SINGULAR * values[:, -1:]
        inverse = np.where(keep, 1.0 / np.where(keep, values, 1.0), 0.0)
        along = np.einsum("mij,mi->mj", vectors, cross)
        b = np.zeros((len(means), d))
        b[:, first:] = np.einsum("mij,mj->mi", vectors, inverse * along)
        noise = moments[:, -1, -1] - (inverse * along * along).sum(axis=1)
        beta, variances = self._units(d).outside(b, np.maximum(noise, self.floor))
        return {"coefficients": beta, "variances": variances} if (variances > 0.0).all() else None

    def draw(self, params: Params, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Raise TypeError: the density of x is not part of the model."""
        raise TypeError("a mixture of regressions has no distribution of x: draw y with sample(X).")

    def redraw(self, params: Params, means: Array, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return rows with normal x of the means and covariances in the statistics, and y given x."""
        moments = _moments(means)
        d = moments.shape[1] - 1
        centre, scale = self.unit(d)
        v = np.empty((len(labels), d - 1))
        for m in np.unique(labels):
            here, mean = labels == m, moments[m, 0, 1:-1]
            values, vectors = np.linalg.eigh(moments[m, 1:-1, 1:-1] - np.outer(mean, mean))
            spread = vectors * np.sqrt(np.maximum(values, 0.0))
            v[here] = mean + rng.normal(size=(int(here.sum()), d - 1)) @ spread.T
        x, beta = centre[:-1] + scale[:-1] * v, params["coefficients"][labels]
        y = beta[:, 0] + np.einsum("ij,ij->i", beta[:, 1:], x)
        return np.column_stack([x, rng.normal(y, np.sqrt(params["variances"])[labels])])

    def check_params(self, params: Params) -> None:
        """Raise ValueError for variances that are not positive."""
        if not (params["variances"] > 0).all():
            raise ValueError("variances must be positive.")


def _moments(means: Array) -> Array:
    """Return the means of the products of (1, v, u), (M, d + 1, d + 1), from those of the features.

    >>> _moments(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))[0]
    array([[1., 1., 2.],
           [1., 3., 4.],
           [2., 4., 5.]])
    """
    d = int((np.sqrt(9 + 8 * means.shape[1]) - 3) / 2 + 0.5)
    i, j = np.tril_indices(d)
    moments = np.empty((len(means), d + 1, d + 1))
    moments[:, 0, 0] = 1.0
    moments[:, 0, 1:] = moments[:, 1:, 0] = means[:, :d]
    moments[:, 1 + i, 1 + j] = moments[:, 1 + j, 1 + i] = means[:, d:]
    return moments
