"""One fit of a selection among mixtures of regressions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from swiftem.mixture.candidate_fits import FIT, CandidateFits, Criterion, Fitted
from swiftem.regression.regression_mixture import RegressionMixture

__all__ = ["RegressionFits"]


class RegressionFits(CandidateFits):
    """Data shared by all fits: rows (x, y) with an observed y, whose last column is y."""

    @classmethod
    def prepare_responses(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        criterion: Criterion,
        n_init: int,
        random_state: Any,
        parameters: dict[str, Any],
        family: str,
        label: str,
    ) -> Self:
        """Validate the data as a fit would, once for all fits."""
        reader = RegressionMixture(1, family=family)
        source = reader._read_for_fit(X, y, sample_weight, reset=True, least=2).source
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        names = getattr(reader, "feature_names_in_", None)
        return cls(
            family,
            label,
            None,
            (X, y, sample_weight),
            source,
            names,
            {},
            source.y,
            source.weight,
            criterion,
            n_init,
            seed,
            parameters,
        )

    def _parts(self) -> tuple[Any, Any, Any]:
        return self.source.y[:, :-1], self.source.y[:, -1], self.source.weight

    def _fit(self, mixture: Any) -> None:
        mixture.fit(*self._parts())

    def _new(self, kind: str, count: int, **more: Any) -> Any:
        return RegressionMixture(count, family=self.family, **more, **self.parameters)

    def _n_parameters(self, kind: str, count: int) -> int:
        made = self._new(kind, count)
        made.n_features_in_ = self.source.y.shape[1] - 1
        return int(made._n_parameters())

    def _log_likelihood(self, mixture: Any) -> float:
        found = float(mixture.score(*self._parts()))
        return found if np.isfinite(found) else -np.inf

    def _entropy(self, mixture: Any) -> tuple[float, float]:
        rows, values, weight = self._parts()
        _, total, entropy = mixture._totals(rows, values, np.ones(len(rows)) if weight is None else weight)
        return total, entropy

    def _doubled(self, before: Fitted, count: int, seed: int) -> Any:
        """Return an earlier mixture with its largest component doubled, until it has as many as wanted."""
        mixture: Any = before.mixture
        while mixture.n_components < count:
            now = mixture._now()
            largest = int(now.weights.argmax())
            index = np.append(np.arange(mixture.n_components), largest)
            weights = now.weights[index] / np.where(index == largest, 2.0, 1.0)
            is_linear = self.family == "gaussian"
            mixture = RegressionMixture.from_parameters(
                weights,
                now.beta[index, 1:],
                now.beta[index, 0] if mixture.fit_intercept else None,
                now.variances[index] if is_linear else None,
                family=self.family,
                random_state=seed,
                **{name: value for name, value in self.parameters.items() if name != "fit_intercept"},
            )
        for name in FIT:
            setattr(mixture, name, getattr(before.mixture, name))
        return mixture
