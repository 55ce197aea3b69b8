r"""Gaussian mixtures with full and tied covariances, for rows with missing cells.

A row y has observed cells o and missing cells u. The likelihood is that of :math:`y_o`, normal with
:math:`\mu_o` and :math:`\Sigma_{oo}`. In the E-step the missing cells are a second latent variable: given the
component, they are normal with

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
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.source import Batch
from swiftem.engine.reference import missing_cells as kernel
from swiftem.engine.reference.gaussian_components import lower_triangle
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.models.observed_gaussians import GaussiansWithHoles
from swiftem.models.rows import drawn_labels

__all__ = ["COMPLETED", "CompletedGaussians"]

COMPLETED = 7
"""Code of the E-steps, in addition to those of families and kinds of covariance."""


class CompletedGaussians(GaussiansWithHoles):
    """Kinds "full" and "tied"."""

    @property
    def code(self) -> int:
        """E-steps that complete rows."""
        return COMPLETED

    @property
    def row_length(self) -> int:
        """R: a row is its statistics, responsibilities first."""
        return self.size

    def covariances(self, theta: GaussianTheta) -> Array:
        """Return the covariances, (M, d, d) or (1, d, d)."""
        return theta.covariances.reshape(-1, self.d, self.d)

    def posterior(self, batch: Batch, theta: GaussianTheta) -> tuple[Array, Array]:
        """E-step: statistics (b, q), responsibilities first, and log-likelihood (b,)."""
        means = theta.means - self.centre
        return kernel.completed(self.centred(batch), theta.weights, means, self.covariances(theta))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        return np.asarray(weight @ rows)

    def start_rows(self, responsibilities: Array, batch: Batch | None = None) -> Array:
        """Return statistics whose missing cells have mean and variance of their column."""
        assert batch is not None, "its cells are in the statistics"
        z = self.centred(batch)
        missing = np.isnan(z)
        z[missing] = 0.0
        row, column = lower_triangle(self.d)
        products = z[:, row] * z[:, column]
        products[:, row == column] += missing * self._variances
        parts = [responsibilities, (responsibilities[:, :, None] * z[:, None]).reshape(len(z), -1)]
        if self.kind.name == "tied":
            parts.append(responsibilities.sum(axis=1)[:, None] * products)
        else:
            parts.append((responsibilities[:, :, None] * products[:, None]).reshape(len(z), -1))
        return np.hstack(parts)

    def imputed(
        self, y: NDArray[Any], rows: Array, theta: GaussianTheta, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Return rows with conditional means, or draws, in missing cells."""
        found, covariances = np.array(y, dtype=np.float64), self.covariances(theta)
        labels = None if rng is None else drawn_labels(rows, rng)
        noise = None if rng is None else rng.normal(size=y.shape)
        for pattern, here in kernel.patterns(~np.isnan(found)):
            if pattern.all():
                continue
            total = np.zeros((len(here), self.d))
            for m, mean in enumerate(theta.means):
                covariance = covariances[min(m, len(covariances) - 1)]
                _, expected, left = kernel.complete(found[here], pattern, mean, covariance)
                if labels is None or noise is None:
                    total += rows[here, m, None] * np.where(pattern, 0.0, expected)
                    continue
                mine = labels[here] == m
                total[mine] = expected[mine]
                u = np.flatnonzero(~pattern)
                lower = np.linalg.cholesky(left[np.ix_(u, u)])
                total[np.ix_(mine, u)] += noise[np.ix_(here[mine], u)] @ lower.T
            found[here] = np.where(pattern, found[here], total)
        return found.astype(y.dtype, copy=False)
