r"""Positive amounts: independent inverse Gaussian columns, each with a mean and a shape in every component.

log f(y) = ½ log λ − λ (y − μ)² / (2 μ² y) + log h(y), log h(y) = −½ log 2π − 1.5 log y.

Statistics are of y and 1 / y, about the mean a of the column, so that no digits cancel:
t = (y − a) / a and u = (y − a)² / (a y), since y = a (1 + t) and 1 / y = (1 + u − t) / a. With ρ = μ / a,

(y − μ)² / (μ² y) = ((1 − 1/ρ)² + (1/ρ² − 1) t + u) / a.

M-step: μ = a (1 + E t) and μ / λ = μ E[1/y] − 1 = (1 + E t) E u − (E t)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Params
from swiftem.mixture.families.gamma import Gamma

ROUNDING = 1e-12
"""A ratio μ / λ that is negative by less than this part of its two terms is zero."""

LARGEST_U = 1e200
"""Largest u, as smaller amounts have one without a finite square."""
LARGEST = 1e30
"""Largest λ / μ."""


@dataclass(frozen=True)
class InverseGaussian(Gamma):
    """Positive amounts with a long tail; ``params_`` has ``means`` and ``shapes`` (M, d).

    The variances are means³ / shapes.

    Parameters
    ----------
    floor : float
        Smallest 1 / shape, relative to variance / mean³ of the column in all data.
    scale, variation : tuple of float, optional
        Mean and squared coefficient of variation of each column; by default from the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.wald(np.where(rng.random((3000, 1)) < 0.3, 1.0, 9.0), 20.0)
    >>> mixture = swiftem.Mixture(2, family="inverse-gaussian", random_state=0).fit(X)
    >>> mixture.params_["means"][mixture.weights_.argsort()].round(1)
    array([[1.],
           [9.]])
    """

    name = "inverse-gaussian"
    bounds = (-1.0, np.inf)
    parameters = (("means", "positive"), ("shapes", "positive"))

    def features(self, y: Rows) -> Rows:
        """Return t and u, (b, 2 d)."""
        a, _ = self.unit(y.shape[1])
        t = (y - a) / a
        with np.errstate(over="ignore"):
            u = t * t * (a / y)  # 1 + t would be 0 for a small y
        return np.hstack([t, np.minimum(u, LARGEST_U)])

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return −λ/(2a) · (1/ρ² − 1, 1), and c."""
        half, change = self._scaled(params)
        return np.hstack([-half * change * (2.0 + change), -half]), self.constants(params).sum(axis=1)

    def constants(self, params: Params) -> Array:
        """Return ½ log λ − λ/(2a) · (1 − 1/ρ)²."""
        half, change = self._scaled(params)
        return np.asarray(0.5 * np.log(params["shapes"]) - half * change**2)

    def _scaled(self, params: Params) -> tuple[Array, Array]:
        """Return λ / 2a and 1/ρ − 1, (M, d) each."""
        a, _ = self.unit(params["means"].shape[1])
        return params["shapes"] / (2.0 * a), (a - params["means"]) / params["means"]

    def log_bases(self, y: Rows) -> Array:
        """Return −½ log 2π − 1.5 log y."""
        return np.asarray(-0.5 * np.log(2 * np.pi) - 1.5 * np.log(y.astype(np.float64)))

    def expected(self, params: Params) -> Array:
        """Return the means."""
        return np.asarray(params["means"])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return a (1 + E t), and λ from the floor up."""
        t, u = np.split(means, 2, axis=1)
        first, second = (1.0 + t) * u, t * t
        if not ((t > -1.0).all() and (first - second >= -ROUNDING * (first + second)).all()):
            return None
        a, variation = self.unit(t.shape[1])
        mean, ratio = a * (1.0 + t), np.maximum(first - second, 1.0 / LARGEST)
        return {"means": mean, "shapes": 1.0 / np.maximum(ratio / mean, self.floor * variation / a)}

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return amounts, at least the smallest positive number."""
        found = rng.wald(params["means"][labels], params["shapes"][labels])
        return np.asarray(np.maximum(found, np.finfo(np.float64).tiny))

    def for_start(self, y: Rows) -> Rows:
        """Return logarithms, in which k-means is not ruled by the largest amounts."""
        return np.asarray(np.log(y))
