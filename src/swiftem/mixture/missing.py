r"""Gaussian mixtures of rows with missing cells, which are missing at random.

*Diagonal and spherical covariances.* Columns are independent given the component, so that a missing cell
counts for nothing. With o = 1 for an observed cell, else 0, z for cells minus the centre and p for
precisions, the logits are

.. math:: \log \omega_m + \sum_j \big( o_j z_j \, p_{mj} \mu_{mj} - \tfrac12 o_j z_j^2 \, p_{mj}
   + \tfrac12 o_j (\log p_{mj} - p_{mj} \mu_{mj}^2 - \log 2\pi) \big),

linear in the features (o·z, o·z², o). Statistics are r ⊗ (1, o·z, o·z², o): they have the masses of observed
cells, :math:`N_{mj} = \sum_i r_{im} o_{ij}`, and do not depend on θ otherwise, so that every method works.
M-step, with the prior of :mod:`swiftem.mixture.covariance`: :math:`\mu_{mj} = (s^2_{mj} + \kappa m_{0j})
/ (N_{mj} + \kappa)`; :math:`A_{mj} = s^3_{mj} + \kappa m_{0j}^2 - (N_{mj} + \kappa) \mu_{mj}^2 + \Psi_{jj}`;
the variances are :math:`A_{mj} / (N_{mj} + \tilde\nu)`, or for "spherical" :math:`\sum_j A_{mj} / \sum_j
(N_{mj} + \tilde\nu)`.

*Full and tied covariances.* A row y has observed cells o and missing cells u. The likelihood is that of
:math:`y_o`, normal with :math:`\mu_o` and :math:`\Sigma_{oo}`. In the E-step the missing cells are a second
latent variable: given the component, they are normal with

.. math:: \hat y_u = \mu_u + \Sigma_{uo} \Sigma_{oo}^{-1} (y_o - \mu_o), \qquad
   C_{uu} = \Sigma_{uu} - \Sigma_{uo} \Sigma_{oo}^{-1} \Sigma_{ou},

so that the statistics of a row are :math:`r_m \otimes (1, \hat y_m, vech(\hat y_m \hat y_m^T + C_m))`. They
are those of complete rows if nothing is missing, and the M-step is the same. They depend on θ: a posterior
row is the statistics themselves, and methods that remember rows (iem, fiem, opt-fiem) remember q numbers of
each, within ``memory_limit`` or in a scratch file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.source import Batch
from swiftem.core.types import Array
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute import COMPLETED
from swiftem.mixture.compute.conditionals import completed, log_densities
from swiftem.mixture.covariance import LEAST_VARIANCE, ROUNDING, Diag, Spherical, deviations_of
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.theta import GaussianStatistics, GaussianTheta, ObservedStatistics

__all__ = ["OBSERVED", "CompletedGaussians"]


class ObservedDiag(Diag):
    """Kind "diag" of rows with missing cells: statistics have the masses of observed cells."""

    has_masses = True

    def n_features(self, d: int) -> int:
        """Return 3d."""
        return 3 * d

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write nothing: the features are complete."""

    def features(self, z: Array) -> Array:
        """Return o·z, o·z² and o, (b, 3d), of centred rows in which NaN is missing."""
        seen = ~np.isnan(z)
        cells = np.where(seen, z, 0.0)
        return np.concatenate([cells, cells * cells, seen], axis=1)

    def statistics(self, z: Array, rows: Array, weight: Array) -> Array:
        """Return the weighted sums of r and r ⊗ features, flat."""
        weighted = rows * weight[:, None]
        return np.concatenate([weighted.sum(axis=0), (weighted.T @ self.features(z)).ravel()])

    def size(self, n_components: int, d: int) -> int:
        """Return the length of the statistics."""
        return n_components * (1 + 3 * d)

    def split(self, s: Array, n_components: int, d: int) -> ObservedStatistics:
        """Return named views of flat statistics."""
        parts = s[n_components:].reshape(n_components, 3, d)
        return ObservedStatistics(s[:n_components], parts[:, 0], parts[:, 1], parts[:, 2])

    def widened(self, s: GaussianStatistics) -> Array:
        """Return statistics of complete rows as those of this kind, flat."""
        d = s.sums.shape[1]
        # Of "spherical", only the sum over the columns matters.
        squares = s.squares if s.squares.ndim > 1 else np.repeat(s.squares[:, None] / d, d, axis=1)
        masses = np.repeat(s.weights[:, None], d, axis=1)
        return np.concatenate([s.weights, np.hstack([s.sums, squares, masses]).ravel()])

    def least_count(self, s: ObservedStatistics) -> Array:
        """Return the smallest mass of a column (M,)."""
        return np.asarray(s.masses.min(axis=1))

    def moments(self, s: Any, prior: BoundPrior, reg_covar: float) -> tuple[Array, Array, Array]:
        """M-step: return means minus the centre, covariances, and for each variance its rounding error."""
        counts = s.masses + prior.mean_precision
        means = (s.sums + prior.mean_precision * prior.mean) / counts
        scatter = s.squares - counts * means * means
        scatter += prior.scale + prior.mean_precision * prior.mean**2
        below = self._over_columns(s.masses + prior.degrees)
        covariances = self._over_columns(scatter) / below + reg_covar
        return means, covariances, ROUNDING * self._over_columns(np.abs(s.squares)) / below

    def _over_columns(self, values: Array) -> Array:
        """Return values (M, d) as they are, or their sums (M,) if the variance is the same in all columns."""
        return values

    def coefficients(self, weights: Array, means: Array, factors: Array) -> Coefficients:
        """Return φ(θ) of the features."""
        scales = np.broadcast_to(self.stacked(factors), means.shape)
        precision = scales * scales
        own = np.log(scales) - 0.5 * (precision * means * means + np.log(2.0 * np.pi))
        phi = np.concatenate([precision * means, -0.5 * precision, own], axis=1)
        with np.errstate(divide="ignore"):
            return Coefficients.linear(phi, np.log(weights))

    def unit_factors(self, s: Any) -> tuple[Array, Array]:
        """Return the deviations of the observed cells, and one over their squares."""
        masses = np.maximum(s.masses.sum(axis=0), LEAST_VARIANCE)
        deviations = deviations_of(s.squares.sum(axis=0) / masses)
        return deviations, 1.0 / deviations**2


class ObservedSpherical(ObservedDiag, Spherical):
    """Kind "spherical" of rows with missing cells."""

    def _over_columns(self, values: Array) -> Array:
        """Return the sums (M,)."""
        return np.asarray(values.sum(axis=1))


OBSERVED: dict[str, ObservedDiag] = {"diag": ObservedDiag(), "spherical": ObservedSpherical()}
"""The kinds with independent columns, for rows with missing cells; those with matrices stay the same."""


class CompletedGaussians(BoundGaussians):
    """Full and tied covariances of rows with missing cells."""

    @property
    def code(self) -> int:
        """E-steps that complete rows."""
        return COMPLETED

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R: a row is its statistics, responsibilities first."""
        return self.size

    def covariances(self, theta: GaussianTheta) -> Array:
        """Return the covariances, (M, d, d) or (1, d, d)."""
        return theta.covariances.reshape(-1, self.d, self.d)

    def log_densities(self, batch: Batch, theta: GaussianTheta) -> Array:
        """Return log g_m of the observed cells, (b, M)."""
        return log_densities(self.centred(batch), theta.means - self.centre, self.covariances(theta))

    def posterior(self, batch: Batch, theta: GaussianTheta) -> tuple[Array, Array]:
        """E-step: statistics (b, q), responsibilities first, and log-likelihood (b,)."""
        means = theta.means - self.centre
        return completed(self.centred(batch), theta.weights, means, self.covariances(theta))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        return np.asarray(weight @ rows)
