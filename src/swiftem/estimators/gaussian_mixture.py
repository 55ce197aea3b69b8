"""``swiftem.GaussianMixture``: scikit-learn's estimator, fitted by any method of the paper."""

from __future__ import annotations

import warnings
from math import inf, log
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import mixture
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky_from_precisions
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from swiftem._typing import Array, Theta
from swiftem.data.array_source import ArraySource
from swiftem.estimators.fit_mixture import ILL_DEFINED, Fit, Fitting
from swiftem.estimators.history import History
from swiftem.estimators.initial import share_largest, start_statistics, with_given
from swiftem.estimators.mixture_queries import MixtureQueries
from swiftem.estimators.online import OnlineMixture
from swiftem.estimators.persistence import Persistent
from swiftem.estimators.plan import METHOD_NAMES, make_plan
from swiftem.estimators.stationarity import stationarity
from swiftem.estimators.watch import Watcher
from swiftem.expectation import Evaluation
from swiftem.lanes.choose import choose_expectation
from swiftem.models import GaussianMixtureModel, NormalInverseWishart
from swiftem.models.covariance import COVARIANCES
from swiftem.models.gaussian_theta import GaussianTheta

__all__ = ["GaussianMixture"]

NOT_CONVERGED = (
    "Best performing initialization did not converge. Try different init parameters, or increase max_iter, tol, or "
    "check for degenerate data."
)


class GaussianMixture(Persistent, MixtureQueries, CallbackSupportMixin, mixture.GaussianMixture):  # type: ignore[misc]
    """Gaussian mixture with the interface of :class:`sklearn.mixture.GaussianMixture`, and faster.

    Everything that scikit-learn's class has is here with the same meaning: change the import, keep the code.
    Beyond it there are sample weights, stochastic methods, ``partial_fit``, priors, and a certificate of
    convergence.

    Parameters
    ----------
    n_components : int
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Kind of the covariances.
    tol : float
        A fit ends when a pass gains less in the mean log-likelihood. For stochastic methods the gain is
        taken over the passes of an epoch, on rows that stay the same, twice in a row.
    reg_covar : float
        Added to the variances in the M-step.
    max_iter : int
        Most passes over the data: E-step evaluations divided by n.
    n_init : int
        Starts; the best fit is kept. They run in parallel threads.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts. A callable is given (X, n_components, random_state) and returns labels (n,) or
        responsibilities (n, M); an array holds one of these. "kmeans" is by mini-batches from 100,000 rows on.
    weights_init, means_init, precisions_init : array-like, optional
        Given starting values, as in scikit-learn.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` begins where the last one ended.
    verbose, verbose_interval : int
        Whether to show progress: a bar in a terminal, scikit-learn's lines elsewhere.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem"}
        How to fit. "auto" is em where n is small and sem-vr where it is large; see
        :mod:`swiftem.estimators.plan` for the rule.
    batch_size : int or "auto"
        Rows that a stochastic method draws an iteration.
    step_size : float, callable or "auto"
        Step γ of a stochastic method, or a schedule of :mod:`swiftem.schedules`.
    concentration : float, optional
        α ≥ 1 of a symmetric Dirichlet prior on the weights.
    prior : NormalInverseWishart, optional
        Prior on means and covariances: the fit is then the maximum a posteriori.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_, converged_, n_iter_, lower_bound_, \
lower_bounds_, n_features_in_, feature_names_in_
        As in scikit-learn; ``n_iter_`` counts passes. With a prior, the bounds are minus the penalised objective.
    method_ : str
        The method that was used.
    history_ : History
        Passes, seconds, objective, step and rejected steps, look by look.
    stationarity_ : float
        Distance of the statistics from those of a further E-step, over their size, without a unit: 0 at a
        stationary point. From one pass at the end of the fit.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> mixture = swiftem.GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.means_.round(6)
    array([[10.,  2.],
           [ 1.,  2.]])
    >>> mixture.predict([[0, 0], [12, 3]])
    array([1, 0])
    >>> heavy = mixture.fit(X, sample_weight=[1, 1, 1, 3, 3, 3])
    >>> heavy.weights_.round(2)
    array([0.75, 0.25])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **mixture.GaussianMixture._parameter_constraints,
        "init_params": [
            StrOptions({"kmeans", "random", "random_from_data", "k-means++"}), callable, "array-like",
        ],
        "method": [StrOptions(set(METHOD_NAMES))],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "step_size": [StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="right"), callable, object],
        "concentration": [None, Interval(Real, 1.0, None, closed="left")],
        "prior": [None, NormalInverseWishart],
    }  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: Any = "kmeans",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        method: str = "auto",
        batch_size: int | str = "auto",
        step_size: Any = "auto",
        concentration: float | None = None,
        prior: NormalInverseWishart | None = None,
    ) -> None:
        super().__init__(
            n_components=n_components, covariance_type=covariance_type, tol=tol, reg_covar=reg_covar,
            max_iter=max_iter, n_init=n_init, init_params=init_params, weights_init=weights_init,
            means_init=means_init, precisions_init=precisions_init, random_state=random_state,
            warm_start=warm_start, verbose=verbose, verbose_interval=verbose_interval,
        )  # fmt: skip
        self.method = method
        self.batch_size = batch_size
        self.step_size = step_size
        self.concentration = concentration
        self.prior = prior

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianMixture:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows; float32 stays float32.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; a row of weight zero is as if absent.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning.
        """
        X, source = self._read(X, sample_weight, reset=True)
        self._check_parameters(X, xp=np)
        model = self._model()
        bound = model.bind(source)
        plan = make_plan(
            self.method, self.batch_size, self.step_size, n=source.n, d=X.shape[1],
            n_components=self.n_components, covariance=self.covariance_type,
        )  # fmt: skip
        fitting = Fitting(model, bound, source, plan, self.max_iter, self.tol)
        random_state = check_random_state(self.random_state)
        begin_anew = not (self.warm_start and hasattr(self, "converged_"))
        starts: list[tuple[Theta, Array | None, float]] = []
        for _ in range(self.n_init if begin_anew else 1):
            starts.append(
                (*self._start(bound, source, random_state), -inf)
                if begin_anew
                else (self._theta(), None, self.lower_bound_)
            )
        seeds = (
            random_state.randint(np.iinfo(np.int32).max, size=len(starts))
            if plan.method
            else [0] * len(starts)
        )
        with Watcher(self, len(starts), X) as watcher:
            fits = watcher.map(
                lambda number: fitting.fit(*starts[number], int(seeds[number]), watcher.watch(number)),
                len(starts),
            )
        best = max(fits, key=lambda fit: fit.bound if np.isfinite(fit.bound) else -inf)
        self._keep(best, fitting, X.dtype)
        return self

    def _read(
        self, X: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool, least: int = 2
    ) -> tuple[NDArray[Any], ArraySource]:
        """Return the rows that have weight, checked, as an array and as a source."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset, ensure_min_samples=least)
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight must have a positive entry, got only zeros.")
            X, weight = X[weight > 0], weight[weight > 0]
            # Weights that are all the same change nothing, and the loops without weights are faster.
            source = ArraySource(X, None if (weight == 1).all() else weight)
        else:
            source = ArraySource(X)
        if reset and len(X) < self.n_components:
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.n_components}, n_samples = {len(X)}"
            )
        return X, source

    def _model(self) -> GaussianMixtureModel:
        return GaussianMixtureModel(
            self.n_components, covariance=self.covariance_type, reg_covar=float(self.reg_covar),
            concentration=self.concentration, prior=self.prior,
        )  # fmt: skip

    def _start(
        self, bound: Any, source: ArraySource, random_state: np.random.RandomState
    ) -> tuple[Theta, Array | None]:
        """Return where a fit begins: θ, and the statistics that it is the M-step of, where it is one."""
        given = None
        if self.precisions_init is not None:
            factors = np.asarray(
                _compute_precision_cholesky_from_precisions(
                    self.precisions_init, self.covariance_type, xp=np
                ),
                dtype=float,
            )
            given = _covariances(factors, self.covariance_type), factors
        if given is not None and self.means_init is not None and self.weights_init is not None:
            theta = GaussianTheta(
                np.asarray(self.weights_init, float), np.asarray(self.means_init, float), *given
            )
            return theta, None
        s = start_statistics(self.init_params, bound, source, random_state)
        empty = share_largest(bound, s)
        if not bound.in_domain(s):
            raise ValueError(ILL_DEFINED)
        theta = bound.m_step(s)
        if len(empty):
            means = theta.means.copy()
            means[empty] = source.take(random_state.choice(source.n, len(empty), replace=False)).y
            return with_given(
                theta, self.weights_init, means if self.means_init is None else self.means_init, given
            ), None
        if given is None and self.means_init is None and self.weights_init is None:
            return theta, s
        return with_given(theta, self.weights_init, self.means_init, given), None

    def _keep(self, fit: Fit, fitting: Fitting, dtype: Any) -> None:
        """Set the attributes, say what there is to say, and certify by one more pass."""
        self.converged_ = fit.converged
        self.n_iter_ = int(np.ceil(fit.passes - 1e-9))
        self.lower_bounds_ = list(fit.bounds)
        self.method_ = fitting.plan.name
        self.history_ = History(fit.moments)
        self._set_theta(fit.theta, dtype)
        self.lower_bound_, self.stationarity_ = fit.bound, np.nan
        self.__dict__.pop("_online", None)
        if fit.interrupted:
            warnings.warn(
                f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return
        if self.max_iter > 0 and len(fit.s):
            objective, self.stationarity_ = stationarity(fitting.bound, fitting.source, fit.s, fit.theta)
            if fitting.plan.method is not None:
                self.lower_bound_ = -objective
        if not fit.converged and self.max_iter > 0:
            warnings.warn(NOT_CONVERGED, ConvergenceWarning, stacklevel=4)

    def _set_theta(self, theta: Theta, dtype: Any) -> None:
        self._set_parameters(tuple(np.asarray(part, dtype=dtype) for part in theta))

    def _theta(self) -> GaussianTheta:
        """Return the parameters as they are now: a user may have set them."""
        parts = (self.weights_, self.means_, self.covariances_, self.precisions_cholesky_)
        return GaussianTheta(*(np.asarray(part, dtype=np.float64) for part in parts))

    def fit_predict(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit, and return the likeliest component of each row, shape (n,)."""
        return self.fit(X, y, sample_weight).predict(X)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> GaussianMixture:
        """Go on fitting with more rows, by online EM; what is kept does not grow with the data.

        The first call starts from its rows. One pass depends on the order of the rows; after several passes
        sorted rows do about as well as shuffled ones. See :class:`swiftem.estimators.online.OnlineMixture`.

        Parameters
        ----------
        X : array-like, shape (n, d)
            New rows; fewer than ``n_components`` are enough after the first call.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        online: OnlineMixture | None = getattr(self, "_online", None)
        first = online is None
        if first and self.warm_start and hasattr(self, "means_"):
            first = False
        X, source = self._read(X, sample_weight, reset=not hasattr(self, "means_"), least=1)
        if online is None:
            self._check_parameters(X, xp=np)
            online = OnlineMixture(self._model(), check_random_state(self.random_state).randint(2**31 - 1))
        theta = online.add(source, self, None if first else self._theta())
        self._online = online
        self._set_theta(theta, X.dtype)
        self.converged_, self.method_ = False, "sem"
        self.n_iter_ = online.n_batches
        self.lower_bound_ = online.bound
        return self

    def _fit_sample(self, X: Array, weight: Array, passes: int) -> Theta:
        """Return θ of a batch fit to a few rows, for ``partial_fit``."""
        rows = type(self)(**self.get_params(deep=False)).set_params(
            method="em", max_iter=passes, warm_start=False, verbose=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return rows.fit(X, sample_weight=weight)._theta()

    def _evaluate(self, X: ArrayLike, **wanted: bool) -> tuple[Evaluation, NDArray[Any]]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        source = ArraySource(X)
        bound = self._model().bind(source, centre=self._centre())
        return choose_expectation("auto", bound, source).evaluate(self._theta(), **wanted), X

    def _centre(self) -> Array:
        return np.asarray(self.weights_, dtype=np.float64) @ np.asarray(self.means_, dtype=np.float64)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return the log-likelihood of each row, shape (n,)."""
        found, X = self._evaluate(X)
        return found.log_likelihood.astype(X.dtype, copy=False)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the rows, weighted where weights are given."""
        if sample_weight is None:
            return float(np.mean(self.score_samples(X)))
        found, X = self._evaluate(X)
        return float(np.average(found.log_likelihood, weights=self._weights(sample_weight, X)))

    def _weights(self, sample_weight: ArrayLike | None, X: NDArray[Any]) -> Array | None:
        if sample_weight is None:
            return None
        weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight must have a positive entry, got only zeros.")
        return weight

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest component of each row, shape (n,)."""
        found, _ = self._evaluate(X, labels=True)
        assert found.labels is not None
        return found.labels

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the responsibilities, shape (n, M)."""
        found, X = self._evaluate(X, responsibilities=True)
        assert found.responsibilities is not None
        return found.responsibilities.astype(X.dtype, copy=False)

    def _criterion(
        self, X: ArrayLike, sample_weight: ArrayLike | None, responsibilities: bool
    ) -> tuple[float, ...]:
        """Return Σ w log g, Σ w, and the entropy Σ w Σ_m −r log r of the responsibilities."""
        found, X = self._evaluate(X, responsibilities=responsibilities)
        weight = self._weights(sample_weight, X)
        weight = np.ones(len(X)) if weight is None else weight
        entropy = 0.0
        if found.responsibilities is not None:
            r = found.responsibilities
            entropy = -float(weight @ (r * np.log(np.where(r > 0, r, 1.0))).sum(axis=1))
        return float(weight @ found.log_likelihood), float(weight.sum()), entropy

    def bic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion, −2 Σ w log g + p log Σ w: the lower the better."""
        total, weight, _ = self._criterion(X, sample_weight, responsibilities=False)
        return -2.0 * total + self._n_parameters() * log(weight)

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion, −2 Σ w log g + 2p: the lower the better."""
        return (
            -2.0 * self._criterion(X, sample_weight, responsibilities=False)[0] + 2.0 * self._n_parameters()
        )

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood criterion, BIC + 2·entropy: the lower the better.

        The entropy of the responsibilities makes it prefer components that are apart (Biernacki, Celeux and
        Govaert, 2000).
        """
        total, weight, entropy = self._criterion(X, sample_weight, responsibilities=True)
        return -2.0 * total + self._n_parameters() * log(weight) + 2.0 * entropy


def _covariances(factors: Array, covariance_type: str) -> Array:
    """Return covariances from ``precisions_cholesky``."""
    if covariance_type not in COVARIANCES or covariance_type in ("diag", "spherical"):
        return 1.0 / factors**2
    lower = np.linalg.inv(factors)
    return np.swapaxes(lower, -1, -2) @ lower
