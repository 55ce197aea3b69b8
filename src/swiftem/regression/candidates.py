"""Mixtures of regressions that a selection compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from swiftem.mixture.candidates import Candidates, doubled
from swiftem.regression.regression_mixture import RegressionMixture


@dataclass(frozen=True, kw_only=True)
class RegressionCandidates(Candidates[RegressionMixture]):
    """Mixtures of regressions with responses of a family."""

    family: str

    def new(self, n_components: int, **parameters: Any) -> RegressionMixture:
        """Return an unfitted mixture."""
        return RegressionMixture(n_components, family=self.family, **self.parameters, **parameters)

    def doubled(self, mixture: RegressionMixture, n_components: int) -> RegressionMixture:
        """Return a mixture with more components and the same density."""
        given = {"coef": mixture.coef_}
        if mixture.fit_intercept:
            given["intercept"] = mixture.intercept_
        if self.family == "gaussian":
            given["variances"] = mixture.variances_
        weights, params = doubled(mixture.weights_, given, n_components)
        others = {name: value for name, value in self.parameters.items() if name != "fit_intercept"}
        return RegressionMixture.from_parameters(weights, **params, family=self.family, **others)


def regression_candidates(
    family: str, X: Any, y: Any, sample_weight: ArrayLike | None, parameters: Mapping[str, Any]
) -> RegressionCandidates:
    """Return mixtures of regressions on the rows with positive weight and an observed y."""
    reader = RegressionMixture(1, family=family)
    read = reader._read_for_fit(X, y, sample_weight, reset=True, least=2)
    names = vars(reader).get("feature_names_in_")
    return RegressionCandidates(
        kind=f"{family} regression",
        data=(read.rows, read.values, read.weight),
        total_weight=float(len(read.rows) if read.weight is None else read.weight.sum()),
        columns={} if names is None else {"feature_names_in_": names},
        parameters=parameters,
        family=family,
    )
