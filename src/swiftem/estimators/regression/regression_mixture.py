"""``swiftem.RegressionMixture``: regressions whose coefficients depend on a class that nobody recorded."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem._checks import check_simplex
from swiftem._typing import Array
from swiftem._warn import warn
from swiftem.estimators.mixture.mixture import Mixture
from swiftem.estimators.mixture.plan import METHOD_NAMES
from swiftem.estimators.mixture.scores import criteria
from swiftem.estimators.model_content import ModelContent
from swiftem.estimators.persistence import Persistent, plain
from swiftem.estimators.regression.gaussian_regression import GaussianRegression
from swiftem.estimators.regression.newton_em import Regressions, best_start, log_densities, poisson_fit
from swiftem.estimators.sklearn_parts import Interval, StrOptions, _fit_context
from swiftem.estimators.validated import read_weights, validated

__all__ = ["RegressionMixture"]

NOT_CONVERGED = "The fit did not converge: increase max_iter or tol."
FLOOR = 1e-6
RESULTS = {
    "converged_": bool,
    "n_iter_": int,
    "method_": str,
    "log_likelihood_": float,
    "n_features_in_": int,
}
ARRAYS = ("weights_", "intercept_", "variances_")


class RegressionMixture(Persistent, BaseEstimator):  # type: ignore[misc]
    r"""Mixture of linear or Poisson regressions of y on X, fitted by EM.

    A row is of class m with probability :math:`\omega_m`; given the class, y is normal with mean
    :math:`a_m + b_m^T x` and variance :math:`\sigma_m^2`, or Poisson with mean :math:`\exp(a_m + b_m^T x)`.

    Parameters
    ----------
    n_components : int
        Number of components.
    family : {"gaussian", "poisson"}
        Distribution of y given x. Poisson responses have no finite statistics: they are fitted by em, with
        one Newton step per pass.
    fit_intercept : bool
        Whether components have an intercept.
    tol : float
        Gain in the mean log-likelihood per pass below which a fit has converged.
    smoothing : float
        Size of the prior, in rows per component: of rows like the mean of all data for normal responses, of a
        normal prior on the coefficients of standardised columns for Poisson responses.
    max_iter : int
        Maximum number of passes over the data.
    n_init : int
        Ten starts for each are compared on a sample of 2,000 rows.
    random_state : int, RandomState or None
        For starts and draws.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem", "spider"}
        How to fit normal responses, as in :class:`swiftem.Mixture`; Poisson responses need em.
    batch_size, step_size
        As in :class:`swiftem.Mixture`, for normal responses.

    Attributes
    ----------
    weights_ : ndarray, shape (M,)
        Mixing weights.
    coef_ : ndarray, shape (M, d)
        Coefficients.
    intercept_ : ndarray, shape (M,)
        Intercepts.
    variances_ : ndarray, shape (M,)
        Variances of the noise; NaN for Poisson responses.
    converged_, n_iter_, method_, log_likelihood_, n_features_in_, feature_names_in_
        As in :class:`swiftem.Mixture`.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=(1000, 1))
    >>> y = np.where(rng.random(1000) < 0.3, 3 * x[:, 0], 20 - x[:, 0]) + rng.normal(size=1000)
    >>> lines = swiftem.RegressionMixture(2, random_state=0).fit(x, y)
    >>> order = np.argsort(lines.coef_[:, 0])
    >>> lines.coef_[order].round(1), lines.weights_[order].round(1)
    (array([[-1.],
           [ 3.]]), array([0.7, 0.3]))
    """

    weights_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    variances_: NDArray[Any]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "family": [StrOptions({"gaussian", "poisson"})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "smoothing": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "method": [StrOptions(set(METHOD_NAMES))],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "step_size": [StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        family: str = "gaussian",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        smoothing: float = 1e-3,
        max_iter: int = 200,
        n_init: int = 1,
        random_state: Any = None,
        method: str = "auto",
        batch_size: int | str = "auto",
        step_size: float | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.method = method
        self.batch_size = batch_size
        self.step_size = step_size

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        y : array-like, shape (n,)
            The responses; counts for Poisson responses.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; rows of weight zero are ignored.
        """
        if self.family == "poisson" and self.method not in ("auto", "em"):
            raise ValueError(
                f"method must be 'em' or 'auto' for family='poisson', which has no finite statistics, "
                f"got {self.method!r}."
            )
        rows, values, weight = self._read(X, y, sample_weight, reset=True)
        if len(rows) < self.n_components:
            raise ValueError(
                f"X must have at least as many rows as components, {self.n_components}, got {len(rows)}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        centre, scale = self._unit(rows, weight)
        design = self._design((rows - centre) / scale)
        shift, unit = 0.0, 1.0
        if self.family == "gaussian":
            shift = float(np.average(values, weights=weight)) if self.fit_intercept else 0.0
            unit = float(np.sqrt(np.average((values - shift) ** 2, weights=weight))) or 1.0
        start = best_start(
            self.family, design, (values - shift) / unit, weight, self.n_components, self.n_init,
            self.smoothing, FLOOR, rng,
        )  # fmt: skip
        if self.family == "poisson":
            found, self.n_iter_, self.converged_ = poisson_fit(
                design, values, weight, start, self.tol, self.max_iter, self.smoothing
            )
            self.method_ = "em"
            self._set(found, centre, scale, shift, unit)
            if not self.converged_:
                warn(NOT_CONVERGED, ConvergenceWarning)
        else:
            self._set(start, centre, scale, shift, unit)
            self._fit_gaussian(rows, values, weight, int(rng.integers(2**31 - 1)))
        self.log_likelihood_ = self._mean(rows, values, weight)
        return self

    def _fit_gaussian(self, rows: Array, values: Array, weight: Array, seed: int) -> None:
        """Fit by any method: the rows (x, y) of a family with closed-form statistics."""
        mixture = Mixture(
            self.n_components, family=GaussianRegression(intercept=self.fit_intercept), tol=self.tol,
            smoothing=self.smoothing, max_iter=self.max_iter, method=self.method,
            batch_size=self.batch_size, step_size=self.step_size, random_state=seed,
            weights_init=self.weights_,
            params_init={
                "coefficients": np.column_stack([self.intercept_, self.coef_]), "variances": self.variances_,
            },
        )  # fmt: skip
        mixture.fit(np.column_stack([rows, values]), sample_weight=weight)
        coefficients = mixture.params_["coefficients"]
        self.weights_, self.variances_ = mixture.weights_, mixture.params_["variances"]
        self.intercept_, self.coef_ = coefficients[:, 0].copy(), coefficients[:, 1:].copy()
        self.converged_, self.n_iter_, self.method_ = mixture.converged_, mixture.n_iter_, mixture.method_

    def _unit(self, rows: Array, weight: Array) -> tuple[Array, Array]:
        """Return centre and scale of the columns; without an intercept the centre is zero."""
        centre = np.average(rows, axis=0, weights=weight) if self.fit_intercept else np.zeros(rows.shape[1])
        scale = np.sqrt(np.average(np.square(rows - centre), axis=0, weights=weight))
        return centre, np.where(scale > 0.0, scale, 1.0)

    def _design(self, rows: Array) -> Array:
        return np.column_stack([np.ones(len(rows)), rows]) if self.fit_intercept else rows

    def _set(self, now: Regressions, centre: Array, scale: Array, shift: float, unit: float) -> None:
        """Set the attributes from parameters of standardised rows."""
        slopes = now.beta[:, 1:] if self.fit_intercept else now.beta
        constant = now.beta[:, 0] if self.fit_intercept else np.zeros(len(slopes))
        self.weights_, self.coef_ = now.weights / now.weights.sum(), unit * slopes / scale
        self.intercept_ = shift + unit * constant - self.coef_ @ centre
        self.variances_ = (
            now.variances * unit**2 if self.family == "gaussian" else np.full(len(slopes), np.nan)
        )

    def _read(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Array, Array, Array]:
        """Return rows, responses and weights, those of weight zero left out after checks."""
        rows, values = validated(self, X, y=y, dtype=np.float64, y_numeric=True, reset=reset)
        values = np.asarray(values, dtype=np.float64)
        if self.family == "poisson":
            bad = (values < 0) | (values != np.floor(values))
            if bad.any():
                raise ValueError(
                    f"y must be counts (0, 1, 2, ...) for family='poisson', got {values[bad][0]:g}."
                )
        weight = read_weights(sample_weight, rows)
        weight = np.ones(len(rows)) if weight is None else weight
        if not reset or (weight > 0.0).all():
            return rows, values, weight
        kept = weight > 0.0
        return rows[kept], values[kept], weight[kept]

    def _now(self) -> Regressions:
        return Regressions(self.weights_, np.column_stack([self.intercept_, self.coef_]), self.variances_)

    def _logs(self, rows: Array, values: Array) -> Array:
        """Return log ω_m + log f(y | x; θ_m), (n, M)."""
        from scipy.special import gammaln

        logs = log_densities(self.family, np.column_stack([np.ones(len(rows)), rows]), values, self._now())
        return logs - gammaln(values + 1.0)[:, None] if self.family == "poisson" else logs

    def _mean(self, rows: Array, values: Array, weight: Array) -> float:
        return float(np.average(np.logaddexp.reduce(self._logs(rows, values), axis=1), weights=weight))

    def predict_components(self, X: ArrayLike) -> Array:
        """Return the mean of y for each row and component, shape (n, M)."""
        check_is_fitted(self)
        found = validated(self, X, dtype=np.float64, reset=False) @ self.coef_.T + self.intercept_
        return np.asarray(np.exp(found) if self.family == "poisson" else found)

    def predict(self, X: ArrayLike) -> Array:
        """Return the mean of y for each row, shape (n,): over the components, with their weights."""
        return np.asarray(self.predict_components(X) @ self.weights_)

    def predict_proba(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the probability of each component given x and y, shape (n, M)."""
        check_is_fitted(self)
        rows, values, _ = self._read(X, y, None, reset=False)
        logs = self._logs(rows, values)
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)))

    def predict_labels(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
        """Return the most likely component given x and y, shape (n,)."""
        return np.asarray(self.predict_proba(X, y).argmax(axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of y given X, weighted if weights are given."""
        check_is_fitted(self)
        return self._mean(*self._read(X, y, sample_weight, reset=False))

    def bic(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion; lower is better."""
        return self._criteria(X, y, sample_weight)["bic"]

    def aic(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion; lower is better."""
        return self._criteria(X, y, sample_weight)["aic"]

    def _criteria(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> dict[str, float]:
        check_is_fitted(self)
        rows, values, weight = self._read(X, y, sample_weight, reset=False)
        per_component = self.n_features_in_ + bool(self.fit_intercept) + (self.family == "gaussian")
        free = self.n_components * per_component + self.n_components - 1
        total = float(weight.sum())
        return criteria(total * self._mean(rows, values, weight), total, free)

    def sample(self, X: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        """Return random responses (n,) of rows (n, d), and the components that they come from."""
        means = self.predict_components(X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        labels = rng.choice(self.n_components, size=len(means), p=self.weights_ / self.weights_.sum())
        chosen = means[np.arange(len(means)), labels]
        if self.family == "poisson":
            return rng.poisson(chosen).astype(np.float64), labels
        return rng.normal(chosen, np.sqrt(self.variances_)[labels]), labels

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_is_fitted(self)
        given = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        if not isinstance(given["random_state"], int | None):
            given["random_state"] = None
        header: dict[str, Any] = {"parameters": given} | {
            name: plain(getattr(self, name)) for name in RESULTS
        }
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        return header, {name: getattr(self, name) for name in (*ARRAYS, "coef_")}

    @classmethod
    def _from_file(cls, content: ModelContent) -> Self:
        made = cls(**content.parameters())
        made._validate_params()
        d = content.integer("n_features_in_", 1)
        for name in ARRAYS:
            is_free = name == "variances_" and made.family == "poisson"
            setattr(made, name, content.array(name, (made.n_components,), finite=not is_free))
        made.coef_ = content.array("coef_", (made.n_components, d))
        check_simplex("weights_", made.weights_)
        if made.family == "gaussian" and not (made.variances_ > 0.0).all():
            raise ValueError("variances_ must be positive")
        for name, kind in RESULTS.items():
            setattr(made, name, content.result(name, kind))
        names = content.names(d)
        if names is not None:
            made.feature_names_in_ = names
        return made
