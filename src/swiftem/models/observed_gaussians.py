r"""Gaussian mixtures with diagonal and spherical covariances, for rows with missing cells.

Columns are independent given the component, so that a missing cell counts for nothing. With o = 1 for an
observed cell, else 0, z for cells minus the centre and p for precisions, the logits are

.. math:: \log \omega_m + \sum_j \big( o_j z_j \, p_{mj} \mu_{mj} - \tfrac12 o_j z_j^2 \, p_{mj}
   + \tfrac12 o_j (\log p_{mj} - p_{mj} \mu_{mj}^2 - \log 2\pi) \big),

linear in the features (o·z, o·z², o). Statistics are r ⊗ (1, o·z, o·z², o): they have the masses of observed
cells, :math:`N_{mj} = \sum_i r_{im} o_{ij}`, and do not depend on θ otherwise, so that every method works.

M-step, with the prior of :mod:`swiftem.models.covariance.kind`: :math:`\mu_{mj} = (s^2_{mj} + \kappa m_{0j})
/ (N_{mj} + \kappa)`; :math:`A_{mj} = s^3_{mj} + \kappa m_{0j}^2 - (N_{mj} + \kappa) \mu_{mj}^2 + \Psi_{jj}`;
the variances are :math:`A_{mj} / (N_{mj} + \tilde\nu)`, or for "spherical" :math:`\sum_j A_{mj} / \sum_j
(N_{mj} + \tilde\nu)`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.source import Batch
from swiftem.engine.reference import missing_cells as kernel
from swiftem.models.bound_mixture import LINEAR
from swiftem.models.components import Coefficients, share_largest
from swiftem.models.covariance.kind import ROUNDING
from swiftem.models.gaussian_components import LEAST_VARIANCE, BoundGaussians
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.models.moments import columns_of
from swiftem.models.rows import different_rows, drawn_labels, two_dimensional

__all__ = ["GaussiansWithHoles", "ObservedGaussians", "ObservedStatistics"]


class ObservedStatistics(NamedTuple):
    """Statistics of rows with missing cells, means over samples.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Means of r_m.
    sums, squares, masses : ndarray, shape (M, d)
        Means of r_m·o·z, r_m·o·z² and r_m·o.
    """

    weights: Array
    sums: Array
    squares: Array
    masses: Array


class GaussiansWithHoles(BoundGaussians):
    """Starts for rows with missing cells: these are at the mean of their column."""

    @cached_property
    def _variances(self) -> Array:
        """Variances of the observed cells of the columns, (d,)."""
        return columns_of(self.source).variance

    def _filled(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.where(np.isnan(y), self.centre.astype(y.dtype), y)

    def for_start(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return rows for k-means, without missing cells."""
        return self._filled(two_dimensional(y))

    def initial_theta(self, rng: np.random.Generator) -> GaussianTheta:
        """Return equal (or known) weights, M distinct rows as means, and the variances of the columns."""
        n_components, d = self.model.n_components, self.d
        variances = self._variances + self.model.reg_covar
        covariances = np.empty(self.kind.shape(n_components, d))
        if self.kind.name in ("full", "tied"):
            covariances[...] = np.diag(variances)
        else:
            covariances[...] = variances if self.kind.name == "diag" else variances.mean()
        factors = self.kind.factor(covariances)
        if factors is None:
            raise ValueError(
                f"data must have columns that vary for covariance={self.kind.name!r}: leave out columns that "
                "are constant, or give reg_covar or a prior."
            )
        weights = np.array(self.model.known_weights or np.full(n_components, 1.0 / n_components))
        means = self._filled(different_rows(self.source, n_components, d, rng))
        return GaussianTheta(weights, means, covariances, factors)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
        """Return parameters of a start; see :class:`BoundGaussians`."""
        return super().mended(s, self._filled(rows), rng)

    def reset(
        self, theta: GaussianTheta, s: Array, gone: Index, rows: Array, rng: np.random.Generator
    ) -> GaussianTheta:
        """Return θ with some components at ``rows`` (k, d); see :class:`BoundGaussians`."""
        return super().reset(theta, s, gone, self._filled(rows), rng)


class ObservedGaussians(GaussiansWithHoles):
    """Kinds "diag" and "spherical"."""

    @property
    def code(self) -> int:
        """Features as given."""
        return LINEAR

    @property
    def origin(self) -> Array:
        """Zeros: features are those of centred rows."""
        return np.zeros(3 * self.d)

    @property
    def size(self) -> int:
        """Length of the statistics."""
        return self.model.size(self.d)

    @property
    def n_free(self) -> int:
        """Number of free parameters: that of the statistics of complete rows."""
        return self.kind.size(self.model.n_components, self.d) - 1

    def features(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return o·z, o·z² and o, (b, 3d)."""
        z, seen = self._cells(y)
        return np.concatenate([z, z * z, seen], axis=1)

    def _cells(self, y: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        """Return cells minus the centre, zero if missing, and which are observed."""
        z = np.subtract(two_dimensional(y), self.centre, order="C", dtype=np.float64)
        seen = ~np.isnan(z)
        z[~seen] = 0.0
        return z, seen

    def _factors(self, theta: GaussianTheta) -> Array:
        """Return 1/σ, (M, d)."""
        factors = theta.precisions_cholesky
        return np.broadcast_to(factors.reshape(len(factors), -1), theta.means.shape)

    def coefficients(self, theta: GaussianTheta) -> Coefficients:
        """Return φ(θ) of the features."""
        means, factors = theta.means - self.centre, self._factors(theta)
        precision = factors * factors
        own = np.log(factors) - 0.5 * (precision * means * means + np.log(2.0 * np.pi))
        phi = np.concatenate([precision * means, -0.5 * precision, own], axis=1)
        with np.errstate(divide="ignore"):
            constant = np.log(theta.weights)
        if not np.isfinite(phi).all():
            raise ValueError(
                "data must have a spread whose inverse square is finite in every component: scale the "
                "columns, or give reg_covar or a prior."
            )
        p = phi.shape[1]
        return Coefficients(
            np.ascontiguousarray(phi.T), constant, np.zeros_like(phi), constant, np.empty((0, p, p)),
            np.empty((0, p)),
        )  # fmt: skip

    def posterior(self, batch: Batch, theta: GaussianTheta) -> tuple[Array, Array]:
        """E-step: responsibilities (b, M) and log-likelihood (b,), of the observed cells."""
        z, seen = self._cells(batch.y)
        return kernel.posterior(z, seen, theta.weights, theta.means - self.centre, self._factors(theta))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        weighted = rows * weight[:, None]
        return np.concatenate([weighted.sum(axis=0), (weighted.T @ self.features(batch.y)).ravel()])

    def unpack(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        n_components = self.model.n_components
        parts = s[n_components:].reshape(n_components, 3, self.d)
        return ObservedStatistics(s[:n_components], parts[:, 0], parts[:, 1], parts[:, 2])

    def _moments(self, parts: ObservedStatistics) -> tuple[Array, Array, Array]:
        """Return means (M, d) minus the centre, covariances, and their rounding errors."""
        kappa, centre = self.prior.mean_precision, self.prior.mean
        above = parts.masses + kappa
        means = (parts.sums + kappa * centre) / above
        scatter = parts.squares - above * means * means
        scatter += self.prior.scale + kappa * centre**2
        below, size = parts.masses + self.prior.degrees, np.abs(parts.squares)
        if self.kind.name == "spherical":
            scatter, below, size = (part.sum(axis=1) for part in (scatter, below, size))
        return means, scatter / below + self.model.reg_covar, ROUNDING * size / below

    def _solve(self, s: Array) -> GaussianTheta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.unpack(s)
        least = parts.masses.min()
        if not (
            parts.weights.min() + self.epsilon > 0.0
            and least + self.prior.mean_precision > 0.0
            and least + self.prior.degrees > 0.0
        ):
            return None
        means, covariances, floor = self._moments(parts)
        factors = self.kind.factor(covariances, floor)
        if factors is None:
            return None
        weights = np.array(self.model.known_weights or parts.weights + self.epsilon)
        return GaussianTheta(weights / weights.sum(), means + self.centre, covariances, factors)

    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step."""
        parts = self.unpack(s)
        least = parts.masses.min(axis=1)
        bad = (least + self.prior.mean_precision <= 0.0) | (least + self.prior.degrees <= 0.0)
        bad |= parts.weights + self.epsilon <= 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            _, covariances, floor = self._moments(parts)
        for m in np.flatnonzero(~bad):
            bad[m] = self.kind.factor(covariances[m : m + 1], floor[m : m + 1]) is None
        return np.flatnonzero(bad)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
        """Return the M-step of a start; components without one get the variances of all data.

        Those without rows share the weight of the largest, and are at ``rows`` (k, d).
        """
        filled = s.copy()
        parts = self.unpack(filled)
        empty = share_largest(parts.weights, parts)
        theta, gone = self.initial_theta(rng), self.collapsed(filled)
        with np.errstate(divide="ignore", invalid="ignore"):
            means, covariances, _ = self._moments(parts)
        means = np.where(parts.masses > 0.0, means, 0.0) + self.centre
        covariances[gone] = theta.covariances[gone]
        means[empty] = self._filled(rows)
        factors = self.kind.factor(covariances)
        if factors is None:
            raise ValueError(self.ILL_DEFINED)
        return GaussianTheta(parts.weights / parts.weights.sum(), means, covariances, factors)

    def imputed(
        self, y: NDArray[Any], rows: Array, theta: GaussianTheta, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Return rows with conditional means, or draws, in missing cells."""
        if rng is None:
            return np.where(np.isnan(y), rows @ theta.means, y)
        return np.where(np.isnan(y), self.draw(theta, drawn_labels(rows, rng), rng), y)

    def without_unit(self, s: Array) -> Array:
        """Return the factors of each statistic if the cells are scaled to unit variance."""
        one = np.ones_like(s)
        parts, factors = self.unpack(s), self.unpack(one)
        variance = parts.squares.sum(axis=0) / np.maximum(parts.masses.sum(axis=0), LEAST_VARIANCE)
        deviation = np.sqrt(np.where(variance > LEAST_VARIANCE, variance, 1.0))
        factors.sums[...] = 1.0 / deviation
        factors.squares[...] = 1.0 / deviation**2
        return one
