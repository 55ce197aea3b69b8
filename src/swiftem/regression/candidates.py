"""Mixtures of regressions that a selection compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from swiftem.mixture.candidates import Candidates
from swiftem.regression.regression_mixture import RegressionMixture


def regression_candidates(
    family: str, X: Any, y: Any, sample_weight: ArrayLike | None, parameters: Mapping[str, Any]
) -> Candidates:
    """Return mixtures of regressions on the rows with positive weight and an observed y."""
    reader = RegressionMixture(1, family=family)
    read = reader._read_for_fit(X, y, sample_weight, reset=True, least=2)
    names = vars(reader).get("feature_names_in_")
    return Candidates(
        kind=f"{family} regression",
        estimator=RegressionMixture,
        parameters={"family": family, **parameters},
        data=(read.rows, read.values, read.weight),
        total_weight=float(len(read.rows) if read.weight is None else read.weight.sum()),
        columns={} if names is None else {"feature_names_in_": names},
        arrays=("coef_", "intercept_", "variances_"),
    )
