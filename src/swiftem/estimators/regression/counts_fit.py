"""Fits of Poisson responses: starts, checkpoints, and the attributes of the estimator."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem._warn import warn
from swiftem.checkpoints.run_checkpoint import check_form
from swiftem.estimators.fit_checkpoint import FitCheckpoint
from swiftem.estimators.regression.newton_em import NewtonFit, Regressions, Units, best_start, newton_fit
from swiftem.estimators.regression.responses import Observed
from swiftem.estimators.watch import History, StartWatch, Watcher, keeps_checkpoints

__all__ = ["fit_counts"]

NOT_CONVERGED = "The fit did not converge: increase max_iter or tol."


def fit_counts(estimator: Any, read: Observed, goes_on: bool) -> None:
    """Fit by em, with Newton steps, from new starts or from the estimator's parameters, and set these."""
    rows, values, n_components = read.rows, read.values, int(estimator.n_components)
    weight = np.ones(len(rows)) if read.weight is None else read.weight
    units = Units.of("poisson", rows, values, weight, bool(estimator.fit_intercept))
    design = units.design(rows)

    def make() -> list[Regressions]:
        if goes_on:
            return [units.inside(estimator._now()._replace(variances=np.ones(n_components)))]
        random_state = check_random_state(estimator.random_state)
        return [
            best_start(
                "poisson", design, values, weight, n_components, float(estimator.smoothing),
                np.random.default_rng(random_state.randint(2**31 - 1)),
            )
            for _ in range(estimator.n_init)
        ]  # fmt: skip

    def check(made: Any) -> None:
        if len(made) != (1 if goes_on else estimator.n_init):
            raise ValueError("there are more starts, or fewer")
        one = np.empty(n_components)
        for start in made:
            check_form("start", start, Regressions(one, np.empty((n_components, design.shape[1])), one))

    kept = None
    if keeps_checkpoints(estimator):
        kept = FitCheckpoint(estimator, read.source, estimator._now() if goes_on else None)
    with kept or nullcontext():
        starts = make() if kept is None else kept.starts(make, check)

        def one(number: int, watch: StartWatch) -> NewtonFit:
            return newton_fit(
                design, values, weight, starts[number], tol=float(estimator.tol),
                max_iter=int(estimator.max_iter), ridge=float(estimator.smoothing), watch=watch,
                keeper=None if kept is None else kept.of_start(number),
            )  # fmt: skip

        with Watcher(estimator._new_joint(), len(starts), rows, most_looks=estimator.max_iter) as watcher:
            fit = max(watcher.map(one), key=lambda found: found.bound)
    found = units.outside(fit.now)
    estimator._set(found._replace(variances=np.full(n_components, np.nan)))
    estimator.n_iter_, estimator.converged_, estimator.method_ = fit.passes, fit.converged, "em"
    estimator.history_, estimator.lower_bound_ = History(fit.moments), fit.bound
    estimator.lower_bounds_ = [-moment.objective for moment in fit.moments]
    estimator.stationarity_ = np.nan
    if fit.interrupted:
        said = f"The fit was interrupted after {fit.passes} passes; the model is as it was then."
        warn(said, ConvergenceWarning)
    elif not fit.converged:
        warn(NOT_CONVERGED, ConvergenceWarning)
