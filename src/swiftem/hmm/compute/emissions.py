"""Densities and statistics of steps at given parameters: T(y) is computed once for both if it is a matrix."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.hmm.compute import recursions
from swiftem.hmm.model import BoundMarkov, MarkovTheta
from swiftem.hmm.sequences import Steps
from swiftem.mixture.components import two_dimensional
from swiftem.mixture.compute.numpy import (
    FARTHEST,
    LINEAR,
    lower_triangle,
    squared_reach,
    whitened_squares,
)


class Emissions:
    """Densities and statistics of the steps at θ.

    Parameters
    ----------
    model : BoundMarkov
        The model.
    theta : MarkovTheta
        θ.
    """

    def __init__(self, model: BoundMarkov, theta: MarkovTheta) -> None:
        self.model, self.theta, self.bound = model, theta, model.emissions
        k = model.n_components
        self._is_matrix = self.bound.code >= LINEAR and self.bound.row_length == k
        self._d = len(self.bound.origin)
        if self._is_matrix:
            self._given = self.bound.coefficients(theta.emissions._replace(weights=np.ones(k)))
            self._phi = np.concatenate([self._given.constant[None], self._given.phi])

    def densities(self, steps: Steps, first: int = 0) -> tuple[Array, Array | None]:
        """Return log-densities (t, K), and T(y) with its first entry 1, (1 + p, t), if that is a matrix.

        Far from the centre the mixture's own form is used, which loses no digits there.
        """
        if not self._is_matrix:
            return self.model.log_densities(steps, self.theta, first), None
        bound, y, end = self.bound, two_dimensional(steps.rows), 1 + self._d
        features = np.empty((1 + bound.n_features, len(y)))
        features[0] = 1.0
        samples = features[1:end]
        np.subtract(bound.features(y).T, bound.origin[:, None], out=samples)
        bound.write_squares(samples, features[end:])
        if squared_reach(self._given, np.abs(samples).max(axis=1)) > FARTHEST:
            return self.model.log_densities(steps, self.theta, first), features
        logs = features.T @ self._phi
        if bound.omits_square:
            logs -= 0.5 * whitened_squares(samples, self._given)[:, None]
        base = bound.log_base(y, first)
        return logs if base is None else logs + base[:, None], features

    def sums(self, steps: Steps, features: Array | None, gamma: Array, weight: Array | None) -> Array:
        """Return the mixture's statistics of steps without counts, weighted by (t,) or ones."""
        if features is None:
            one = np.ones(len(gamma)) if weight is None else weight
            return self.model.of_emissions(steps, self.theta, gamma, one)
        weighted = gamma if weight is None else gamma * weight[:, None]
        products, samples = None, features[1 : 1 + self._d]
        if self.bound.shares_products:
            products = (samples if weight is None else samples * weight) @ samples.T
        return np.asarray(self._flat((features @ weighted).T[None], products)[0])

    def _flat(self, sums: Array, products: Array | None) -> Array:
        """Return sums of γ ⊗ T(y) (n, K, 1 + p) as the mixture has them; Σ yyᵀ if that is shared."""
        n, end = len(sums), 1 + self._d
        squares = sums[:, :, end:] if products is None else products[None][:, *lower_triangle(self._d)]
        return np.hstack([sums[:, :, 1:end].reshape(n, -1), squares.reshape(n, -1)])

    def by_sequence(self, steps: Steps, features: Array | None, gamma: Array) -> Array:
        """Return the statistics of each sequence (n, ...), as :meth:`sums`."""
        n, begin = len(steps.begin) - 1, steps.begin
        if features is not None and not self.bound.shares_products:
            sums = np.zeros((n, gamma.shape[1], len(features)))
            recursions.sums_by_sequence(gamma, np.ascontiguousarray(features.T), begin, sums)
            return self._flat(sums, None)
        parts = []
        for first, stop in pairwise(begin.tolist()):
            own, rows = Steps(steps.rows[first:stop], _alone(stop - first)), slice(first, stop)
            parts.append(self.sums(own, None if features is None else features[:, rows], gamma[rows], None))
        return np.array(parts)


def _alone(length: int) -> Index:
    return np.array([0, length])
