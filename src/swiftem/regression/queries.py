"""Methods of a fitted mixture of regressions: predictions, components, criteria, draws, tables and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import in_numpy
from swiftem.core.types import Array
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.validated import read_weights
from swiftem.mixture.scores import NUMBERS, criteria
from swiftem.mixture.tables.profile import component_table
from swiftem.mixture.tables.tabular import chosen_places
from swiftem.regression.newton_em import Regressions, log_densities, mean_of, normalised
from swiftem.regression.responses import read_responses, read_rows
from swiftem.show.numbers import counted, number_text
from swiftem.show.table import Table

__all__ = ["RegressionQueries"]

INTERCEPT, NOISE = "(intercept)", "(noise)"
"""Names of these parameters beside those of the columns."""
POINTS = 100
"""Points of a curve in a plot."""
MOST = 1e15
"""Largest mean of a Poisson draw: above it the normal distribution has the same digits."""


class RegressionQueries(Estimator):
    """Methods that need fitted parameters."""

    n_components: int
    family: str
    fit_intercept: bool
    random_state: Any
    weights_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    variances_: NDArray[Any]
    response_name_: str | None
    converged_: bool
    n_iter_: int
    method_: str
    lower_bound_: float
    lower_bounds_: list[float]
    history_: History
    stationarity_: float
    log_likelihood_: float
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def _read(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Return rows, responses, NaN for missing ones, and weights."""
        check_is_fitted(self)
        rows, values, seen = read_responses(self, X, y, reset=False)
        weight = read_weights(in_numpy(sample_weight), rows)
        return rows, np.where(seen, values, np.nan), np.ones(len(rows)) if weight is None else weight

    def _now(self) -> Regressions:
        return Regressions(self.weights_, np.column_stack([self.intercept_, self.coef_]), self.variances_)

    def _logs(self, rows: Array, values: Array) -> Iterator[tuple[slice, Array]]:
        """Yield places of rows, and log ω_m + log f(y | x; θ_m), (., M): log ω_m if y is missing."""
        from scipy.special import gammaln

        now, size = self._now(), max(NUMBERS // self.n_components, 1)
        for start in range(0, len(rows), size):
            here = slice(start, min(start + size, len(rows)))
            y, missing = np.nan_to_num(values[here]), np.isnan(values[here])
            logs = log_densities(self.family, np.column_stack([np.ones(len(y)), rows[here]]), y, now)
            if self.family == "poisson":
                logs -= gammaln(y + 1.0)[:, None]
            with np.errstate(divide="ignore"):
                logs[missing] = np.log(now.weights)
            yield here, logs

    def _totals(self, rows: Array, values: Array, weight: Array) -> tuple[float, float, float]:
        """Return Σ w log g, Σ w and the entropy of the responsibilities, of rows with an observed y."""
        weight = np.where(np.isnan(values), 0.0, weight)
        total = entropy = 0.0
        for here, logs in self._logs(rows, values):
            r, found = normalised(logs)
            total += float(weight[here] @ found)
            entropy -= float(weight[here] @ (r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1))
        if not weight.sum() > 0.0:
            raise ValueError("y must have an observed value of positive weight, got none.")
        return total, float(weight.sum()), entropy

    def _n_parameters(self) -> int:
        per_component = self.n_features_in_ + bool(self.fit_intercept) + (self.family == "gaussian")
        return self.n_components * per_component + self.n_components - 1

    def predict_components(self, X: ArrayLike) -> Array:
        """Return the mean of y for each row and component, shape (n, M).

        Means of Poisson responses are at most e^300: far from the rows of the fit they may exceed all
        numbers.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        """
        check_is_fitted(self)
        found = read_rows(self, X) @ self.coef_.T + self.intercept_
        return np.asarray(mean_of(found) if self.family == "poisson" else found)

    def predict(self, X: ArrayLike) -> Array:
        """Return the mean of y for each row, shape (n,): over the components, with their weights.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        """
        return np.asarray(self.predict_components(X) @ self.weights_)

    def responsibilities(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the probability of each component given x and y, shape (n, M): the weights for a missing y.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        y : array-like, shape (n,)
            The responses; NaN is a missing one.
        """
        rows, values, _ = self._read(X, y, None)
        found = np.empty((len(rows), self.n_components))
        for here, logs in self._logs(rows, values):
            found[here] = normalised(logs)[0]
        return found

    def labels(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
        """Return the most likely component given x and y, shape (n,).

        Parameters
        ----------
        X, y
            As in :meth:`responsibilities`.
        """
        return np.asarray(self.responsibilities(X, y).argmax(axis=1))

    def log_likelihoods(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the log-likelihood of y given x for each row, shape (n,): zero for a missing y.

        Parameters
        ----------
        X, y
            As in :meth:`responsibilities`.
        """
        rows, values, _ = self._read(X, y, None)
        found = np.empty(len(rows))
        for here, logs in self._logs(rows, values):
            found[here] = normalised(logs)[1]
        found[np.isnan(values)] = 0.0
        return found

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of y given X, over the rows with an observed y.

        Parameters
        ----------
        X, y
            As in :meth:`responsibilities`.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        total, weight, _ = self._totals(*self._read(X, y, sample_weight))
        return total / weight

    def bic(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion; lower is better.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`score`.
        """
        return self._criteria(X, y, sample_weight)["bic"]

    def aic(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion; lower is better.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`score`.
        """
        return self._criteria(X, y, sample_weight)["aic"]

    def icl(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood criterion, BIC + 2·entropy; lower is better.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`score`.
        """
        return self._criteria(X, y, sample_weight)["icl"]

    def _criteria(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> dict[str, float]:
        total, weight, entropy = self._totals(*self._read(X, y, sample_weight))
        return criteria(total, weight, self._n_parameters(), entropy)

    def sample(self, X: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        """Return random responses (n,) of rows (n, d), and the components (n,) that they come from.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        """
        return self._drawn(X, self.random_state)

    def _drawn(self, X: ArrayLike, random_state: Any) -> tuple[Array, NDArray[np.intp]]:
        means = self.predict_components(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        labels = rng.choice(self.n_components, size=len(means), p=self.weights_ / self.weights_.sum())
        chosen = means[np.arange(len(means)), labels]
        if self.family == "poisson":
            drawn = rng.poisson(np.minimum(chosen, MOST)).astype(np.float64)
            far = np.flatnonzero(chosen > MOST)
            drawn[far] = np.rint(rng.normal(chosen[far], np.sqrt(chosen[far])))
            return drawn, labels
        return rng.normal(chosen, np.sqrt(self.variances_)[labels]), labels

    def impute(self, X: ArrayLike, y: ArrayLike, random_state: Any = None) -> Array:
        """Return the responses (n,) with missing ones filled in.

        Parameters
        ----------
        X, y
            As in :meth:`responsibilities`.
        random_state : int, RandomState or None
            None: the mean of y given x. Otherwise random draws, given x.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> lines = swiftem.RegressionMixture.from_parameters([1.0], [[2.0]], [1.0], [0.5])
        >>> lines.impute([[1.0], [2.0]], [3.5, np.nan])
        array([3.5, 5. ])
        """
        _, values, _ = self._read(X, y, None)
        filled = self.predict(X) if random_state is None else self._drawn(X, random_state)[0]
        return np.where(np.isnan(values), filled, values)

    def _names(self) -> list[str]:
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        return names or [f"column {j}" for j in range(self.n_features_in_)]

    @property
    def profile_(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Parameters by name of the column and of the parameter, arrays (M,) over the components.

        Examples
        --------
        >>> import swiftem
        >>> given = [0.5, 0.5], [[2.0], [3.0]], [1.0, 0.0], [1.0, 4.0]
        >>> lines = swiftem.RegressionMixture.from_parameters(*given)
        >>> lines.profile_["column 0"], lines.profile_["(noise)"]
        ({'coefficient': array([2., 3.])}, {'variance': array([1., 4.])})
        """
        check_is_fitted(self)
        found = {INTERCEPT: {"coefficient": self.intercept_.copy()}} if self.fit_intercept else {}
        found |= {name: {"coefficient": self.coef_[:, j].copy()} for j, name in enumerate(self._names())}
        return found | ({NOISE: {"variance": self.variances_.copy()}} if self.family == "gaussian" else {})

    def summary(self) -> Table:
        """Return a table to print: a row for each coefficient and the noise, a column for each component.

        Coefficients of Poisson responses are those of the logarithm of the mean.

        Examples
        --------
        >>> import swiftem
        >>> given = [0.25, 0.75], [[2.0], [3.0]], [1.0, 0.0], [1.0, 4.0]
        >>> swiftem.RegressionMixture.from_parameters(*given).summary()
        Mixture of 2 regressions, gaussian, of y
        <BLANKLINE>
        column       parameter           component 0  component 1
        weight                                  25 %         75 %
        (intercept)  coefficient                   1            0
        column 0     coefficient                   2            3
        (noise)      standard deviation            1            2
        """
        rows = []
        for name, parts in self.profile_.items():
            for what, values in parts.items():
                is_noise = what == "variance"
                shown = np.sqrt(values) if is_noise else values
                cells = (number_text(float(value)) for value in shown)
                rows.append((name, "standard deviation" if is_noise else what, *cells))
        count = counted(self.n_components, "regression")
        title = f"Mixture of {count}, {self.family}, of {self.response_name_ or 'y'}"
        return component_table(title, ("column", "parameter"), self.weights_, rows)

    def plot(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        columns: Sequence[int | str] | None = None,
        axes: Any = None,
    ) -> NDArray[Any]:
        """Draw one panel per column: the mean of y by component, the other columns at their means.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Rows, for the ranges and the means of the columns.
        y : array-like, shape (n,), optional
            Their responses, drawn as points in the colour of their most likely component.
        columns, axes
            As in :meth:`swiftem.Mixture.plot`, which returns the same.

        Examples
        --------
        >>> import swiftem
        >>> given = [0.5, 0.5], [[2.0], [3.0]], [1.0, 0.0], [1.0, 4.0]
        >>> lines = swiftem.RegressionMixture.from_parameters(*given)
        >>> [axes.get_title() for axes in lines.plot([[0.0], [1.0]], [1.0, 3.0])]
        ['column 0']
        """
        from swiftem.report.columns import Curves, draw_curves

        check_is_fitted(self)
        rows = read_rows(self, X)
        names = self._names()
        labels = None if y is None else self.labels(X, y)
        values = None if y is None else self._read(X, y, None)[1]
        panels = []
        for place in chosen_places(columns, names):
            grid = np.linspace(rows[:, place].min(), rows[:, place].max(), POINTS)
            at = np.repeat(rows.mean(axis=0)[None], POINTS, axis=0)
            at[:, place] = grid
            means = at @ self.coef_.T + self.intercept_
            heights = (mean_of(means) if self.family == "poisson" else means).T
            panels.append(Curves(names[place], grid, heights, rows[:, place], values, labels))
        return draw_curves(panels, self.weights_, self.response_name_ or "y", axes)
