"""``swiftem.RegressionMixture``: regressions whose coefficients depend on a class that nobody recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checkpoint import check_form
from swiftem.core.checks import as_floats, check_simplex, in_numpy, read_sample_weight, shown
from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.fit.checkpoint import Place, kept_apart
from swiftem.fit.driver import Phase, StartWatch, drive
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.model_file import ModelContent
from swiftem.fit.parameters import AT_LEAST_ONE, BOOLEAN, COMMON, NOT_NEGATIVE, Allowed, instance_of, one_of
from swiftem.fit.validated import Read, some_rows
from swiftem.methods import EM, Method
from swiftem.mixture.candidates import Candidates
from swiftem.mixture.estimator import NUMBERS, criteria
from swiftem.mixture.file import file_types
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.model import MixtureTheta
from swiftem.mixture.resolve import METHOD_NAMES
from swiftem.mixture.starts.settings import StartSettings
from swiftem.mixture.tables.profile import chosen_places, component_table
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.newton_em import (
    NewtonFit,
    NewtonPass,
    Regressions,
    Units,
    best_start,
    log_densities,
    mean_of,
    normalised,
)
from swiftem.regression.responses import Observed, check_counts, check_in_memory, name_of, read_responses
from swiftem.show.numbers import counted, number_text
from swiftem.show.table import Table

NOT_CONVERGED = "The fit did not converge: increase max_iter or tol."
INTERCEPT, NOISE = "(intercept)", "(noise)"
"""Names of these parameters beside those of the columns."""
POINTS = 100
"""Points of a curve in a plot."""
MOST = 1e15
"""Largest mean of a Poisson draw: above it the normal distribution has the same digits."""

NO_X = (
    "X must have no missing values in a mixture of regressions, which has no distribution of X, got NaN: "
    "leave out such rows, or fill them in, for example by impute of a GaussianMixture with missing='ignore'."
)

OF_FIT = ("converged_", "n_iter_", "method_", "lower_bound_", "lower_bounds_", "history_", "stationarity_")
"""Attributes of the mixture of rows (x, y) that are those of the regressions."""


class JointMixture(Mixture):
    """A mixture whose family is :class:`GaussianRegression`; it starts from regressions of a few rows."""

    def _start_settings(self, problem: Problem, read: Read) -> StartSettings:
        assert isinstance(self.family, GaussianRegression)
        own = partial(
            start_of_regressions,
            n_components=self.n_components,
            smoothing=self.smoothing,
            intercept=self.family.intercept,
        )
        return replace(super()._start_settings(problem, read), own=own)


@dataclass(eq=False, repr=False)
class RegressionMixture(Estimator):
    r"""Mixture of linear or Poisson regressions of y on X, fitted by EM.

    A row is of class m with probability :math:`\omega_m`; given the class, y is normal with mean
    :math:`a_m + b_m^T x` and variance :math:`\sigma_m^2`, or Poisson with mean :math:`\exp(a_m + b_m^T x)`.
    The distribution of x is not modelled: X must have no missing values. A response may be missing (NaN,
    None): it adds nothing to the likelihood, and the responsibilities of its row are the weights.

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
        Number of fits, of which the best is kept. Each starts from the best of ten candidates, which are
        compared on a sample of 2,000 rows.
    random_state, warm_start, verbose
        As in :class:`swiftem.Mixture`.
    method : str or Method
        How to fit normal responses, as in :class:`swiftem.Mixture`; Poisson responses need em.

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
    response_name_ : str or None
        Name of y, if it is a series of pandas or polars.
    converged_, n_iter_, lower_bound_, lower_bounds_, method_, history_, log_likelihood_
        As in :class:`swiftem.Mixture`.
    stationarity_ : float
        As in :class:`swiftem.Mixture`; NaN for Poisson responses.
    n_features_in_, feature_names_in_
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

    _results: ClassVar[Mapping[str, type]] = Estimator._results | {"response_name_": str}  # type: ignore[operator]
    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **COMMON,
        "family": [one_of(["gaussian", "poisson"])],
        "fit_intercept": [BOOLEAN],
        "smoothing": [NOT_NEGATIVE],
        "max_iter": [AT_LEAST_ONE],
        "n_init": [AT_LEAST_ONE],
        "method": [one_of(METHOD_NAMES), instance_of(Method)],
    }

    n_components: int = 2
    _: KW_ONLY
    family: str = "gaussian"
    fit_intercept: bool = True
    tol: float = 1e-6
    smoothing: float = 1e-3
    max_iter: int = 200
    n_init: int = 1
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    method: str | Method = "auto"

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        coef: ArrayLike,
        intercept: ArrayLike | None = None,
        variances: ArrayLike | None = None,
        *,
        family: str = "gaussian",
        **parameters: Any,
    ) -> Self:
        """Return a fitted mixture with these parameters.

        Parameters
        ----------
        weights : array-like, shape (M,)
            Mixing weights, summing to 1.
        coef : array-like, shape (M, d)
            Coefficients.
        intercept : array-like, shape (M,), optional
            Intercepts; by default there are none.
        variances : array-like, shape (M,), optional
            Variances of the noise; required for normal responses, and for these only.
        family : {"gaussian", "poisson"}
            Distribution of y given x.
        **parameters
            Other parameters of the estimator.

        Examples
        --------
        >>> import swiftem
        >>> share, slopes = [0.5, 0.5], [[2.0], [-2.0]]
        >>> lines = swiftem.RegressionMixture.from_parameters(share, slopes, [0.0, 1.0], [1.0, 1.0])
        >>> lines.predict_components([[3.0]])
        array([[ 6., -5.]])
        """
        share = as_floats("weights", weights, shape=(None,))
        check_simplex("weights", share)
        made = cls(len(share), family=family, fit_intercept=intercept is not None, **parameters)
        made._validate_params()
        if (variances is None) == (family == "gaussian"):
            what = "must be given" if variances is None else "must be left out"
            raise ValueError(f"variances {what} for family={family!r}.")
        noise = np.full(len(share), np.nan)
        if variances is not None:
            noise = as_floats("variances", variances, shape=(len(share),))
            if not (noise > 0.0).all():
                raise ValueError(f"variances must be positive, got {noise.min():g}.")
        slopes = as_floats("coef", coef, shape=(len(share), None))
        first = (
            np.zeros(len(share))
            if intercept is None
            else as_floats("intercept", intercept, shape=(len(share),))
        )
        made._set(Regressions(share.copy(), np.column_stack([first, slopes]), noise.copy()))
        made.n_features_in_, made.response_name_ = slopes.shape[1], None
        made.converged_, made.n_iter_, made.method_ = True, 0, "given"
        made.lower_bound_, made.lower_bounds_, made.history_ = -np.inf, [], History()
        made.stationarity_ = made.log_likelihood_ = np.nan
        return made

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        y : array-like, shape (n,)
            The responses; counts for Poisson responses. Rows with a missing one (NaN) add nothing.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; rows of weight zero are ignored.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning.
        """
        self._validate_params()
        self._check_method("fit")
        goes_on = self.warm_start and hasattr(self, "weights_")
        read = self._read_for_fit(X, y, sample_weight, reset=True, least=self.n_components)
        if goes_on and len(self.coef_[0]) != read.rows.shape[1]:
            raise ValueError(
                f"X must have the {len(self.coef_[0])} columns of the fitted parameters, got "
                f"{read.rows.shape[1]}: fit again, without warm_start."
            )
        self.response_name_ = name_of(y)
        if self.family == "gaussian":
            mixture = self._joint(is_new=not goes_on)
            mixture.fit(read.source.y, sample_weight=read.weight)
            self._take(mixture)
        else:
            self._fit_counts(read, goes_on)
        weight = np.ones(len(read.rows)) if read.weight is None else read.weight
        total, of_all, _ = self._totals(read.rows, read.values, weight)
        self.log_likelihood_ = total / of_all
        return self

    def _fit_counts(self, read: Observed, goes_on: bool) -> None:
        """Fit Poisson regressions, from new starts or from the current parameters."""
        rows, values, smoothing = read.rows, read.values, float(self.smoothing)
        weight = np.ones(len(rows)) if read.weight is None else read.weight
        units = Units.of("poisson", rows, values, weight, bool(self.fit_intercept))
        design, one = units.design(rows), np.ones(self.n_components)

        def make() -> list[Regressions]:
            if goes_on:
                return [Regressions(self.weights_, *units.inside(self._now().beta, one))]
            random_state = check_random_state(self.random_state)
            seeds = (random_state.randint(2**31 - 1) for _ in range(self.n_init))
            made = ("poisson", design, values, weight, self.n_components, smoothing)
            return [best_start(*made, np.random.default_rng(seed)) for seed in seeds]

        def check(made: Any) -> None:
            if len(made) != (1 if goes_on else self.n_init):
                raise ValueError("there are more starts, or fewer")
            like = Regressions(one, np.empty((self.n_components, design.shape[1])), one)
            for start in made:
                check_form("start", start, like)

        with self._checkpoint_of(read.source, self._now() if goes_on else None) as kept:
            starts = kept.starts(make, check)

            def fitted(number: int, watch: StartWatch) -> NewtonFit:
                fit = NewtonFit(now=starts[number])
                newton = NewtonPass(fit, design, values, weight, smoothing, float(self.tol))
                keeper = kept.of_start(number)
                drive(fit, [Phase(newton)], max_passes=int(self.max_iter), watch=watch, keeper=keeper)
                return fit

            with self._watcher(len(starts)) as watcher:
                fit = max(watcher.map(fitted), key=lambda found: found.bound)
        beta, variances = units.outside(fit.now.beta, np.full(self.n_components, np.nan))
        self._set(Regressions(fit.now.weights / fit.now.weights.sum(), beta, variances))
        self.n_iter_, self.converged_, self.method_ = int(fit.passes), fit.converged, "em"
        self.history_, self.lower_bound_ = History(fit.moments), fit.bound
        self.lower_bounds_ = [-moment.objective for moment in fit.moments]
        self.stationarity_ = np.nan
        self._warn_of_end(fit, NOT_CONVERGED)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with more rows, by online EM, as :meth:`swiftem.Mixture.partial_fit`.

        For normal responses: Poisson responses have no statistics to be updated.

        Parameters
        ----------
        X : array-like, shape (n, d)
            New rows; after the first call fewer than ``n_components`` are enough.
        y : array-like, shape (n,)
            Their responses; rows with a missing one add nothing.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        self._validate_params()
        self._check_method("partial_fit")
        is_first = not hasattr(self, "weights_")
        read = self._read_for_fit(
            X, y, sample_weight, reset=is_first, least=self.n_components if is_first else 0
        )
        if is_first:
            self.response_name_ = name_of(y)
        if len(read.rows):
            mixture = self._joint(is_new=is_first)
            self._take(mixture.partial_fit(read.source.y, sample_weight=read.weight))
            self.log_likelihood_ = np.nan
        return self

    def _check_method(self, name: str) -> None:
        """Raise ValueError for what Poisson responses cannot have."""
        if self.family != "poisson":
            return
        if name == "partial_fit":
            raise ValueError(
                "family must be 'gaussian' for partial_fit, got 'poisson', which has no finite statistics: "
                "fit all rows, with warm_start=True to continue from the last result."
            )
        if not (isinstance(self.method, EM) or self.method in ("auto", "em")):
            raise ValueError(
                f"method must be 'em' or 'auto' for family='poisson', which has no finite statistics, "
                f"got {shown(self.method)}."
            )

    def _rows(self, X: Any, *, reset: bool = False, **options: Any) -> Any:
        """Return validated rows (n, d), and responses if ``options`` have them."""
        check_in_memory("X", X)
        try:
            return self._validated(in_numpy(X), dtype=np.float64, reset=reset, **options)
        except ValueError as error:
            if str(error).startswith("Input X contains NaN"):
                raise ValueError(NO_X) from None
            raise

    def _rows_and_responses(self, X: Any, y: Any, *, reset: bool = False) -> tuple[Array, Array]:
        """Return validated rows (n, d) and responses (n,), NaN for missing ones."""
        values, seen = read_responses(y)
        rows, found = self._rows(X, reset=reset, y=values, y_numeric=True)
        values = np.asarray(found, dtype=np.float64) if seen is None else np.where(seen, found, np.nan)
        if self.family == "poisson":
            check_counts(values)
        return rows, values

    def _read_for_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool, least: int
    ) -> Observed:
        """Return the rows of positive weight with an observed response, of which there are ``least``."""
        rows, values = self._rows_and_responses(X, y, reset=reset)
        weight = read_sample_weight(sample_weight, len(rows), may_be_zero=least == 0)
        kept = ~np.isnan(values)
        kept = kept if weight is None else kept & (weight > 0.0)
        if kept.sum() < least:
            having = "" if kept.all() else " with a positive weight and an observed y"
            raise ValueError(
                f"X must have at least as many rows{having} as components, {least}, got {kept.sum()}."
            )
        if kept.all():
            return Observed(rows, values, weight)
        return Observed(rows[kept], values[kept], None if weight is None else weight[kept])

    def _joint(self, *, is_new: bool = False) -> JointMixture:
        """Return the mixture of rows (x, y), fitted unless ``is_new``, with the parameters of today."""
        mixture: JointMixture | None = self.__dict__.get("_mixture")
        family = GaussianRegression(intercept=bool(self.fit_intercept))
        if is_new:
            mixture = JointMixture(family=family)
        elif mixture is None or mixture.n_components != self.n_components:
            mixture = JointMixture.from_parameters(*self._now().for_mixture(), family=family)
        shared = mixture.get_params(deep=False).keys() & self.get_params(deep=False).keys() - {"family"}
        mixture.set_params(init_params="random_from_data", **{name: getattr(self, name) for name in shared})
        place: Place | None = vars(self).get("_checkpoint")
        return mixture if place is None else kept_apart(mixture, place)

    def _take(self, mixture: JointMixture) -> None:
        """Set the attributes from the mixture of rows (x, y)."""
        params = mixture.params_
        self._set(Regressions(mixture.weights_, params["coefficients"], params["variances"]))
        for name in OF_FIT:
            setattr(self, name, getattr(mixture, name))
        self._mixture = mixture

    def _set(self, now: Regressions) -> None:
        """Set the parameters."""
        self.weights_, self.variances_ = now.weights, now.variances
        self.intercept_, self.coef_ = now.beta[:, 0].copy(), now.beta[:, 1:].copy()

    def _read(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[Array, Array, Array]:
        """Return rows, responses, NaN for missing ones, and weights."""
        check_is_fitted(self)
        rows, values = self._rows_and_responses(X, y)
        weight = read_sample_weight(in_numpy(sample_weight), len(rows))
        return rows, values, np.ones(len(rows)) if weight is None else weight

    def _now(self) -> Regressions:
        return Regressions(self.weights_, np.column_stack([self.intercept_, self.coef_]), self.variances_)

    def _blocks(self, rows: Array, values: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield places of rows, responsibilities (., M) and log-likelihoods (.,), 0 for a missing y."""
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
            r, log_likelihood = normalised(logs)
            yield here, r, np.where(missing, 0.0, log_likelihood)

    def _totals(self, rows: Array, values: Array, weight: Array) -> tuple[float, float, float]:
        """Return Σ w log g, Σ w and the entropy of the responsibilities, of rows with an observed y."""
        weight = np.where(np.isnan(values), 0.0, weight)
        total = entropy = 0.0
        for here, r, log_likelihood in self._blocks(rows, values):
            total += float(weight[here] @ log_likelihood)
            entropy -= float(weight[here] @ (r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1))
        if not weight.sum() > 0.0:
            raise ValueError("y must have an observed value of positive weight, got none.")
        return total, float(weight.sum()), entropy

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, as in AIC and BIC."""
        check_is_fitted(self)
        per_component = self.n_features_in_ + bool(self.fit_intercept) + (self.family == "gaussian")
        return int(self.n_components * (per_component + 1) - 1)

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
        return self._means(self._rows(X))

    def _means(self, rows: Array) -> Array:
        eta = rows @ self.coef_.T + self.intercept_
        return mean_of(eta) if self.family == "poisson" else np.asarray(eta)

    def predict(self, X: ArrayLike) -> Array:
        """Return the mean of y for each row, shape (n,): over the components, with their weights.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        """
        return np.asarray(self.predict_components(X) @ self.weights_)

    def predict_proba(self, X: ArrayLike, y: ArrayLike | None = None) -> Array:
        """Return the probability of each component given x and y, shape (n, M): the weights for a missing y.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The regressors.
        y : array-like, shape (n,), optional
            The responses; NaN is a missing one. By default all are missing.
        """
        if y is None:
            check_is_fitted(self)
            return np.repeat(self.weights_[None], len(self._rows(X)), axis=0)
        rows, values, _ = self._read(X, y)
        return np.concatenate([r for _, r, _ in self._blocks(rows, values)])

    def predict_class(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
        """Return the most likely component given x and y, shape (n,).

        Parameters
        ----------
        X, y
            As in :meth:`predict_proba`.
        """
        return np.asarray(self.predict_proba(X, y).argmax(axis=1))

    def log_likelihoods(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the log-likelihood of y given x for each row, shape (n,): zero for a missing y.

        Parameters
        ----------
        X, y
            As in :meth:`predict_proba`.
        """
        rows, values, _ = self._read(X, y)
        return np.concatenate([log_likelihood for _, _, log_likelihood in self._blocks(rows, values)])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of y given X, over the rows with an observed y.

        Parameters
        ----------
        X, y
            As in :meth:`predict_proba`.
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
        return criteria(total, weight, self.n_parameters_, entropy)

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
            As in :meth:`predict_proba`.
        random_state : int, RandomState or None
            None: the mean of y given x. Otherwise random draws, given x.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> lines = swiftem.RegressionMixture.from_parameters([1.0], [[2.0]], [1.0], [0.5])
        >>> lines.impute([[1.0], [2.0]], [3.5, np.nan])
        array([3.5, 5. ])
        """
        _, values, _ = self._read(X, y)
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
                if what == "variance":
                    what, values = "standard deviation", np.sqrt(values)
                rows.append((name, what, *(number_text(float(value)) for value in values)))
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
        from swiftem.mixture.plots import Curves, draw_curves

        check_is_fitted(self)
        rows = self._rows(X)
        names = self._names()
        labels = None if y is None else self.predict_class(X, y)
        values = None if y is None else self._read(X, y)[1]
        panels = []
        for place in chosen_places(columns, names):
            grid = np.linspace(rows[:, place].min(), rows[:, place].max(), POINTS)
            at = np.repeat(rows.mean(axis=0)[None], POINTS, axis=0)
            at[:, place] = grid
            panels.append(Curves(names[place], grid, self._means(at).T, rows[:, place], values, labels))
        return draw_curves(panels, self.weights_, self.response_name_ or "y", axes)

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("weights_", "intercept_", "coef_", "variances_")}

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        self.weights_, self.intercept_, self.variances_ = (
            content.array(
                name, (self.n_components,), finite=name != "variances_" or self.family == "gaussian"
            )
            for name in ("weights_", "intercept_", "variances_")
        )
        self.coef_ = content.array("coef_", (self.n_components, d))
        check_simplex("weights_", self.weights_)
        if self.family == "gaussian" and not (self.variances_ > 0.0).all():
            raise ValueError("variances_ must be positive")

    @classmethod
    def _file_types(cls) -> Mapping[str, type[Any]]:
        return file_types()

    def _state_to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        mixture: JointMixture | None = self.__dict__.get("_mixture")
        return ({}, {}) if mixture is None else mixture._state_to_file()

    def _read_state(self, content: ModelContent, d: int) -> None:
        """Set the mixture of rows (x, y), with the state of ``partial_fit``."""
        if "family_" not in content.header or self.family != "gaussian":
            return
        family = content.value(content.header["family_"])
        if not isinstance(family, GaussianRegression) or family.centre is None or family.scale is None:
            raise ValueError("family_ must be a regression with centres and scales")
        if len(family.centre) != d + 1 or len(family.scale) != d + 1:
            raise ValueError(f"family_ must be a regression on {d} columns")
        if not (np.isfinite([*family.centre, *family.scale]).all() and min(family.scale) > 0.0):
            raise ValueError("family_ must have finite centres and positive scales")
        self._mixture = JointMixture.from_parameters(*self._now().for_mixture(), family=family)
        self._mixture._read_state(content, d + 1)


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
    weights = start.weights / start.weights.sum()
    return MixtureTheta(*Regressions(weights, *units.outside(start.beta, start.variances)).for_mixture())


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
