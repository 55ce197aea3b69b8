"""The mixture of rows (x, y) behind a mixture of linear regressions."""

from __future__ import annotations

from typing import cast

import numpy as np

from swiftem.core.source import Source
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.fit.validated import some_rows
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.model import MixtureTheta
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.newton_em import Units, best_start

__all__ = ["JointMixture"]


class JointMixture(Mixture):
    """A mixture whose family is :class:`GaussianRegression`; it starts from regressions of a few rows."""

    def _own_start(self, source: Source, random_state: np.random.RandomState) -> MixtureTheta:
        rng = np.random.default_rng(random_state.randint(2**31 - 1))
        given = cast("ArraySource | StoredSource", source)
        rows = given if isinstance(given, ArraySource) else some_rows(given, self.n_components, random_state)
        X, y = rows.y[:, :-1].astype(np.float64), rows.y[:, -1].astype(np.float64)
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        assert isinstance(self.family, GaussianRegression)
        units = Units.of("gaussian", X, y, weight, self.family.intercept)
        start = best_start(
            "gaussian",
            units.design(X),
            (y - units.shift) / units.unit,
            weight,
            self.n_components,
            self.smoothing,
            rng,
        )
        found = units.outside(start)
        return MixtureTheta(found.weights, {"coefficients": found.beta, "variances": found.variances})
