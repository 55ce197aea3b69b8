"""The sets of the constants: S_0, all possible statistics of two Gaussians, and S_ρ around it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paper.theory.family import Family, family_of
from swiftem.core.model import Model
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.mixture.gaussians import GaussianMixtureModel

AFFINE_TOLERANCE = 1e-9
"""Rounding tolerance for statistics in the affine hull of S_0."""


def radius(model: Model) -> float:
    """Return ρ: half of min(ε, δ), so that the M-step exists on all of S_ρ.

    >>> import swiftem
    >>> from paper import theory
    >>> theory.radius(swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=0.5))
    0.25
    """
    if not isinstance(model, GaussianMixtureModel) or (model.covariance, model.n_components) != ("unit", 2):
        raise TypeError(
            f"model must be the paper's GaussianMixtureModel(2, covariance='unit'), got {model!r}."
        )
    if min(model.delta, model.epsilon) <= 0:
        raise ValueError(
            f"delta and epsilon of the model must be positive, got {model.delta:g} and {model.epsilon:g}: "
            "without a penalty the constants of H2 to H5 are infinite."
        )
    return 0.5 * min(model.delta, model.epsilon)


def sample_S0(family: Family, source: Source, rng: np.random.Generator) -> Array:
    r"""Return a point (q,) of :math:`S_0 = \{n^{-1} \sum_i s_i : s_i \in \mathrm{conv}\, S(\cdot, y_i)\}`.

    Its posteriors are Dirichlet, from nearly uniform to nearly certain, or assign each sample to one
    component by a random linear score of its statistics, which gives an extreme point of S_0.
    """
    batch = source.take(np.arange(source.n))
    columns = family.columns
    if rng.random() < 0.5:
        scores = rng.normal(size=family.q)
        value = [
            family.each_statistics(batch, np.tile(unit, (source.n, 1))) @ scores for unit in np.eye(columns)
        ]
        rows = np.eye(columns)[np.argmax(value, axis=0)]
    else:
        rows = rng.dirichlet(rng.dirichlet(np.ones(columns)) * 10.0 ** rng.uniform(-1, 1.5), size=source.n)
    return family.statistics(batch, rows, batch.weight / source.total_weight)


def sample_S_rho(family: Family, source: Source, rho: float, rng: np.random.Generator) -> Array:
    r"""Return a point (q,) of :math:`S_\rho`: one of S_0, moved by up to ρ within the affine hull of S_0."""
    s, one, other = (sample_S0(family, source, rng) for _ in range(3))
    direction = one - other
    size = float(np.abs(direction).max())
    return s + rho * rng.choice([1.0, rng.random()]) / size * direction if size > 0 else s


def distance_to_S0(model: Model, data: Any, s: ArrayLike) -> float:
    r"""Return the distance in max-norm from s to S_0; infinite outside the affine hull of S_0.

    s lies in :math:`S_\rho` if this is at most ρ, :func:`radius`. Arguments are as in
    :func:`paper.theory.V`.

    Examples
    --------
    >>> import swiftem
    >>> from paper import theory
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> theory.distance_to_S0(model, [-1.0, 1.0], [0.5, 0.25, 0.0])
    0.0
    >>> theory.distance_to_S0(model, [-1.0, 1.0], [0.5, 0.75, 0.0])  # the second cannot exceed 1/2
    0.25
    """
    family, source = family_of(model, data)
    radius(model)  # for its check of the model
    return Polygon(source.take(np.arange(source.n)).y.ravel()).distance(family.coordinates(s))


class Polygon:
    r"""S_0 of two Gaussians: the points :math:`(n^{-1} \sum r_i, n^{-1} \sum r_i y_i)` with r_i from 0 to 1.

    It lies between the concave curve of the largest samples first and the convex one of the smallest first.

    Parameters
    ----------
    y : ndarray, shape (n,)
        The samples.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.theory.sets import Polygon
    >>> polygon = Polygon(np.array([-1.0, 1.0]))
    >>> polygon.holds(np.array([0.5, 0.75, 0.0]), 0.2), polygon.holds(np.array([0.5, 0.75, 0.0]), 0.3)
    (False, True)
    """

    def __init__(self, y: Array) -> None:
        ordered, n = np.sort(y), len(y)
        self.mean = float(y.mean())
        self.share = np.arange(n + 1) / n
        self.upper = np.concatenate([[0.0], np.cumsum(ordered[::-1]) / n])
        self.lower = np.concatenate([[0.0], np.cumsum(ordered) / n])
        self.top = float(self.share[np.argmax(self.upper)])
        self.bottom = float(self.share[np.argmin(self.lower)])

    def highest(self, low: Any, high: Any) -> Any:
        """Return the largest second coordinate for a first one between ``low`` and ``high``."""
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.interp(np.clip(self.top, low, high), self.share, self.upper)

    def lowest(self, low: Any, high: Any) -> Any:
        """Return the smallest second coordinate for a first one between ``low`` and ``high``."""
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return np.interp(np.clip(self.bottom, low, high), self.share, self.lower)

    def holds(self, s: Array, rho: float) -> bool:
        """Tell whether s = (s¹, s², s³) is within ρ: whether a square around it meets the polygon."""
        if abs(s[2] - self.mean) > AFFINE_TOLERANCE * max(1.0, abs(self.mean)):
            return False
        if not -rho <= s[0] <= 1.0 + rho:
            return False
        # The part of the polygon in a strip is convex, so it has every height between its lowest and highest.
        low, high = s[0] - rho, s[0] + rho
        return bool(self.lowest(low, high) - rho <= s[1] <= self.highest(low, high) + rho)

    def distance(self, s: Array) -> float:
        """Return the distance in max-norm, by bisection."""
        if self.holds(s, 0.0):
            return 0.0
        far = 1.0
        while not self.holds(s, far):
            far *= 2.0
            if far > 1e12:
                return np.inf
        near = 0.0
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (near, middle) if self.holds(s, middle) else (middle, far)
        return far
