r"""Columns of numbers: independent normal columns, with a mean for each component and column.

With z = (y − centre) / scale, m = (μ − centre) / scale and v = σ² / scale², T(y) = (z, z²),
φ = (m / v, −1 / 2v), c = −½ Σ_j (m_j² / v_j + log 2πσ_j²) and h(y) = 1. Centre and scale come from the
data, so that neither an offset nor a unit costs digits. M-step: m is the mean of z, v the mean of z² minus
m², and at least ``floor``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swiftem.core.checks import check_real
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params


def standard(columns: Columns) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return centres and scales of columns: means and standard deviations, or one for constant columns.

    >>> one = np.ones(2)
    >>> standard(Columns(0 * one, one, np.array([2.0, 3.0]), np.array([4.0, 0.0])))
    ((2.0, 3.0), (2.0, 1.0))
    """
    scale = np.sqrt(columns.variance)
    return tuple(columns.mean.tolist()), tuple(np.where(scale > 0.0, scale, 1.0).tolist())


class Standardised(Family):
    """Columns of numbers z = (y − centre) / scale; data may set ``centre`` and ``scale``."""

    learnt = ("centre", "scale")
    centre: tuple[float, ...] | None
    scale: tuple[float, ...] | None

    def learn(self, columns: Columns) -> Family:
        """Set centre and scale from the data."""
        centre, scale = standard(columns)
        changed: Any = self
        found: Family = replace(changed, centre=self.centre or centre, scale=self.scale or scale)
        return found

    def unit(self, d: int) -> tuple[Array, Array]:
        """Return centre and scale, (d,) each."""
        return np.array(self.centre or (0.0,) * d), np.array(self.scale or (1.0,) * d)

    def check_rows(self, y: Rows) -> None:
        """Accept all numbers."""

    def for_start(self, y: Rows) -> Rows:
        """Return z."""
        centre, scale = self.unit(y.shape[1])
        return np.asarray((y - centre) / scale)


@dataclass(frozen=True)
class Gaussian(Standardised):
    """Numbers; ``params_["means"]`` has shape (M, d), ``params_["variances"]`` (M, d), or (M,) if spherical.

    Parameters
    ----------
    covariance : {"diag", "spherical"}
        One variance per column, or one for all columns of the family. For full or tied covariances
        see :class:`swiftem.GaussianMixture`.
    floor : float
        Smallest variance, relative to the variance of the column in all data.
    centre, scale : tuple of float, optional
        Of the columns; by default mean and standard deviation of the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = np.where(rng.random((1000, 1)) < 0.3, [[1e6, 9.0]], [[1e6 + 8, 1.0]]) + rng.normal(size=(1000, 2))
    >>> mixture = swiftem.Mixture(2, family="gaussian", random_state=0).fit(X)
    >>> mixture.params_["means"].round()
    array([[1.000000e+06, 9.000000e+00],
           [1.000008e+06, 1.000000e+00]])
    """

    name = "gaussian"
    kinds = 2
    smoothing = 1e-6  # with more, small components have wider variances than the floor leaves them
    parameters = (("means", "finite"), ("variances", "positive"))

    covariance: str = "diag"
    floor: float = 1e-6
    centre: tuple[float, ...] | None = field(default=None, repr=False)
    scale: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.covariance not in ("diag", "spherical"):
            raise ValueError(
                f"covariance must be 'diag' or 'spherical' in a family of columns, got {self.covariance!r}: "
                "full and tied covariances are in swiftem.GaussianMixture."
            )
        check_real("floor", self.floor, minimum=0.0)

    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of means and variances."""
        shapes = super().shapes(n_components, d)
        return shapes if self.covariance == "diag" else shapes | {"variances": (n_components,)}

    def features(self, y: Rows) -> Rows:
        """Return z and z²."""
        z = self.for_start(y)
        return np.concatenate([z, z * z], axis=1)

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return (m / v, −1 / 2v), and the constant."""
        centre, scale = self.unit(params["means"].shape[1])
        m = (params["means"] - centre) / scale
        variances = self._of_columns(params)
        v = variances / np.square(scale)
        constant = -0.5 * (m * m / v + np.log(2.0 * np.pi * variances)).sum(axis=1)
        return np.concatenate([m / v, -0.5 / v], axis=1), constant

    def constants(self, params: Params) -> Array:
        """Return −½ (m² / v + log 2πσ²)."""
        variances, away = self._of_columns(params), params["means"] - self.unit(params["means"].shape[1])[0]
        return np.asarray(-0.5 * (away * away / variances + np.log(2.0 * np.pi * variances)))

    def expected(self, params: Params) -> Array:
        """Return the means."""
        return np.asarray(params["means"])

    def _of_columns(self, params: Params) -> Array:
        """Return the variances (M, d)."""
        found = np.asarray(params["variances"])
        return found if found.ndim > 1 else np.repeat(found[:, None], params["means"].shape[1], axis=1)

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return means and variances; None if a variance is zero.

        One variance for all columns is their mean, weighted by ``counts`` if cells are missing.
        """
        m, squares = np.split(means, 2, axis=1)
        centre, scale = self.unit(m.shape[1])
        v = squares - m * m
        if self.covariance == "spherical":
            square = np.broadcast_to(np.square(scale), v.shape)
            weights = None if counts.ndim == 1 else counts
            pooled = np.average(v * square, axis=1, weights=weights)
            variances = np.maximum(pooled, self.floor * square.mean(axis=1))
        else:
            variances = np.maximum(v, self.floor) * np.square(scale)
        return {"means": centre + scale * m, "variances": variances} if (variances > 0.0).all() else None

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return normal rows."""
        return np.asarray(rng.normal(params["means"][labels], np.sqrt(self._of_columns(params))[labels]))
