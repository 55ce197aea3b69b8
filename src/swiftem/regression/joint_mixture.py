"""The mixture of rows (x, y) behind a mixture of linear regressions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.fit.validated import Read, some_rows
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.model import MixtureTheta
from swiftem.mixture.starts.settings import StartSettings
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.newton_em import Units, best_start

__all__ = ["JointMixture"]


class JointMixture(Mixture):
    """A mixture whose family is :class:`GaussianRegression`; it starts from regressions of a few rows."""

    def _start_settings(self, problem: Problem, read: Read) -> StartSettings:
        assert isinstance(self.family, GaussianRegression)
        own = partial(
            start_of_regressions,
            n_components=self.n_components,
            smoothing=float(problem.bound.model.smoothing),
            intercept=self.family.intercept,
        )
        return replace(super()._start_settings(problem, read), own=own)


def start_of_regressions(
    source: Source,
    random_state: np.random.RandomState,
    *,
    n_components: int,
    smoothing: float,
    intercept: bool,
) -> MixtureTheta:
    """Return the best of several starts whose components are regressions of a few rows (x, y)."""
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    given = cast("ArraySource | StoredSource", source)
    rows = given if isinstance(given, ArraySource) else some_rows(given, n_components, random_state)
    X, y = rows.y[:, :-1].astype(np.float64), rows.y[:, -1].astype(np.float64)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    units = Units.of("gaussian", X, y, weight, intercept)
    scaled = (y - units.shift) / units.unit
    start = best_start("gaussian", units.design(X), scaled, weight, n_components, smoothing, rng)
    found = units.outside(start)
    return MixtureTheta(found.weights, {"coefficients": found.beta, "variances": found.variances})
