"""``swiftem.GaussianMixture``: scikit-learn's estimator, fitted by any method of the paper."""

from __future__ import annotations

import os
from contextlib import nullcontext
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import mixture
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from swiftem._checks import check_real
from swiftem._typing import Theta
from swiftem._warn import warn
from swiftem.budget import Budget, read_memory_limit
from swiftem.data.rows.stored_source import StoredSource
from swiftem.estimators.fit_checkpoint import FitCheckpoint
from swiftem.estimators.history import History
from swiftem.estimators.mixture.content import Past
from swiftem.estimators.mixture.file import MixtureFile
from swiftem.estimators.mixture.fit import Fit, Fitting
from swiftem.estimators.mixture.initial import Start, check_start, make_start
from swiftem.estimators.mixture.input import MixtureInput
from swiftem.estimators.mixture.plan import METHOD_NAMES, MOST_PASSES, make_plan
from swiftem.estimators.mixture.queries import MixtureQueries
from swiftem.estimators.mixture.reseed import DegenerateComponentWarning
from swiftem.estimators.mixture.scores import MixtureScores
from swiftem.estimators.mixture.stream import MixtureStream, Read
from swiftem.estimators.persistence import Persistent
from swiftem.estimators.watch import StartWatch, Watcher
from swiftem.methods import EM
from swiftem.models import NormalInverseWishart
from swiftem.models.covariance import COVARIANCES
from swiftem.problem import Problem, check_access

__all__ = ["GaussianMixture"]

NOT_CONVERGED = (
    "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
    "tol, or check for degenerate data."
)


class GaussianMixture(
    MixtureInput,
    MixtureStream,
    MixtureFile,
    MixtureScores,
    MixtureQueries,
    Persistent,
    CallbackSupportMixin,  # type: ignore[misc]
    mixture.GaussianMixture,  # type: ignore[misc]
):
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
        A fit ends when a pass gains less in the mean log-likelihood. For stochastic methods that is the gain
        over the passes of an epoch, told from its noise: see :class:`swiftem.estimators.mixture.look.Look`.
    reg_covar : float
        Added to the variances in the M-step.
    max_iter : int
        Most passes over the data: E-step evaluations divided by n. Looks at the objective and the pass that
        certifies the end are not counted.
    n_init : int
        Starts; the best fit is kept. They run in parallel threads.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts. A callable is given (X, n_components, random_state), with the rows that have weight,
        and returns labels (n,) or responsibilities (n, M); an array holds one of these. "kmeans" is by
        mini-batches from 100,000 rows on.
    weights_init, means_init, precisions_init : array-like, optional
        Given starting values, as in scikit-learn.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` begins where the last one ended; ``partial_fit`` always does.
    verbose, verbose_interval : int
        Whether to show progress: a bar in a terminal, scikit-learn's lines elsewhere.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem"}
        How to fit. "auto" is em where n is small and sem-vr where it is large; see
        :mod:`swiftem.estimators.mixture.plan` for the rule.
    batch_size : int or "auto"
        Rows that a stochastic method draws an iteration.
    step_size : float, callable or "auto"
        Step γ of a stochastic method, or a schedule of :mod:`swiftem.schedules`.
    concentration : float, optional
        α ≥ 1 of a symmetric Dirichlet prior on the weights.
    prior : NormalInverseWishart, optional
        Prior on means and covariances: the fit is then the maximum a posteriori.
    memory_limit : int, str or None
        Memory that ``fit`` may take for itself, in bytes or as a text such as "500MB": see
        :func:`swiftem.run`. Rows that are given as an array are there already and do not count; they are
        treated as those of a file.
    scratch : str or None
        Folder for the memory of iem and fiem where it does not fit into ``memory_limit``; by default the
        system's folder for temporary files.
    checkpoint : str or Path, optional
        Folder in which ``fit`` keeps where it stands: a fit that was killed goes on from there, and its model
        is that of a fit that was not, to the last bit. See ``docs/checkpoints.md``.
    checkpoint_every : int, optional
        Looks at the objective (passes of em, epochs of other methods) between checkpoints. By default one,
        and seldom enough to take little time.
    resume : bool or "auto"
        Whether ``fit`` goes on from the folder: True, it must have a fit; False, it must have none; "auto",
        go on where there is one, else begin.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_, converged_, n_iter_, lower_bound_, \
lower_bounds_, n_features_in_, feature_names_in_
        As in scikit-learn; ``n_iter_`` counts passes. With a prior, the bounds are minus the penalised
        objective. Under em they are those before each M-step; under other methods ``lower_bounds_`` are
        looks, from 20,000 rows on at some rows, and ``lower_bound_`` is that of the model and all rows.
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
        "step_size": [
            StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="right"), callable, HasMethods("resolve"),
        ],
        "concentration": [None, Interval(Real, 1.0, None, closed="left")],
        "prior": [None, NormalInverseWishart],
        "memory_limit": [None, str, Interval(Integral, 1, None, closed="left")],
        "scratch": [None, str],
        "checkpoint": [None, str, os.PathLike],
        "checkpoint_every": [None, Interval(Integral, 1, None, closed="left")],
        "resume": ["boolean", StrOptions({"auto"})],
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
        memory_limit: int | str | None = None,
        scratch: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool | Literal["auto"] = False,
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
        self.memory_limit = memory_limit
        self.scratch = scratch
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume

    def __sklearn_tags__(self) -> Any:
        # Not that of scikit-learn's class, which compares init_params with names: it may be an array here.
        return super(mixture.GaussianMixture, self).__sklearn_tags__()

    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianMixture:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like of shape (n, d), path, list of paths, source, or function that returns blocks
            The rows; float32 stays float32. Files are read as they are needed, by
            :func:`swiftem.data.open_source`; with a ``memory_limit``, so are memory maps.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; a row of weight zero is as if absent. Those of files are a column of
            theirs: ``fit(open_source(path, weight="w"))``.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning.
        """
        read = self._read(X, sample_weight, reset=True)
        self._check_parameters(read.X, xp=np)
        kept = self._open_checkpoint(read)
        with kept or nullcontext():
            fitting, starts, seeds = self._prepare(read, kept)
            looks = None if fitting.plan.method else self.max_iter
            stored = isinstance(read.source, StoredSource)
            rows = X if stored else read.X
            with Watcher(self, len(starts), rows, y, read.weight, looks, at_once=not stored) as watcher:
                best = self._best(fitting, starts, seeds, watcher, kept)
                self._keep(best, fitting, read)
                watcher.is_fitted = True
        return self

    def _prepare(
        self, read: Read, kept: FitCheckpoint | None = None
    ) -> tuple[Fitting, list[Start], list[int]]:
        """Return what the fits share, where they start, and their seeds: as ``kept`` has them, if it does."""
        source = read.source
        model = self._model()
        budget = Budget(read_memory_limit(self.memory_limit), self.scratch)
        plan = make_plan(
            self.method, self.batch_size, self.step_size, n=source.n, d=read.X.shape[1],
            n_components=self.n_components, covariance=self.covariance_type,
        )  # fmt: skip
        method = EM() if plan.method is None else plan.method
        check_access(method, source)
        size = COVARIANCES[self.covariance_type].size(self.n_components, read.X.shape[1])
        reserved = budget.reserve(source, method, statistics=size, starts=True)
        if kept is not None:
            kept.allocate = reserved.make_memory
        problem = Problem(model, source, budget=budget)

        def make() -> tuple[list[Start], list[int]]:
            random_state = check_random_state(self.random_state)
            if self._goes_on():
                starts = [Start(self._theta(problem.bound.d), None, 0)]
            else:
                starts = [make_start(self, problem, random_state, read.kept) for _ in range(self.n_init)]
            seeds = [0] * len(starts)
            if plan.method is not None:
                seeds = random_state.randint(np.iinfo(np.int32).max, size=len(starts)).tolist()
            return starts, seeds

        def check(made: Any) -> None:
            found, seeds_of = made
            if len(found) != len(seeds_of) or len(found) != (1 if self._goes_on() else self.n_init):
                raise ValueError("there are more starts, or fewer")
            for start, seed in zip(found, seeds_of, strict=True):
                check_start(problem.bound, start.theta, start.s)
                np.random.default_rng(seed)

        starts, seeds = make() if kept is None else kept.starts(make, check)
        passes = min(int(self.max_iter), MOST_PASSES)
        tol = check_real("tol", self.tol, minimum=0.0)
        return Fitting(problem, plan, passes, tol), starts, seeds

    def _goes_on(self) -> bool:
        return bool(self.warm_start and hasattr(self, "converged_"))

    def _best(
        self, fitting: Fitting, starts: list[Start], seeds: list[int], watcher: Watcher,
        kept: FitCheckpoint | None = None,
    ) -> Fit:  # fmt: skip
        """Return the best of the fits; one that fails counts only where all do."""
        # That of em is of the parameters before its last M-step; another method's is of the very start, from
        # which the first pass gains nothing that could be told from rest.
        after_em = self._goes_on() and getattr(self, "method_", "em") == "em"
        last_bound = self.lower_bound_ if after_em else None
        failures: list[ValueError] = []

        def one(number: int, watch: StartWatch) -> Fit:
            try:
                return fitting.fit(
                    starts[number], seeds[number], watch, last_bound=last_bound,
                    keeper=None if kept is None else kept.of_start(number),
                )  # fmt: skip
            except ValueError as error:
                failures.append(error)
                return Fit(starts[number].theta, None)

        fits = watcher.map(one)
        if failures and len(failures) == len(fits):
            raise failures[0]
        if self.max_iter == 0:
            return fits[-1]  # as scikit-learn does, where there is nothing to compare
        return max(fits, key=lambda fit: fit.bound if np.isfinite(fit.bound) else -inf)

    def _keep(self, fit: Fit, fitting: Fitting, read: Read) -> None:
        """Set the attributes, and say what there is to say."""
        self.converged_ = fit.converged
        self.n_iter_ = int(np.ceil(fit.passes - 1e-9))
        self.lower_bound_, self.lower_bounds_ = fit.bound, list(fit.bounds)
        self.method_, self.history_ = fitting.plan.name, History(fit.moments)
        self._set_theta(fit.theta, read.X.dtype)
        self.__dict__.pop("_online", None)
        self._past = Past(fit.s, fitting.problem.bound.centre, read.total_weight)
        if fitting.plan.method is None:
            try:
                fitting.certify(fit)
            except KeyboardInterrupt:
                fit.interrupted = True
        self.stationarity_ = fit.stationarity
        if fit.reseeded:
            warn(
                f"Components died, collapsed or had no rows, and were set to other rows, {fit.reseeded} "
                "times in all: fewer components, a larger reg_covar or a prior would hold them.",
                DegenerateComponentWarning,
            )
        if fit.interrupted:
            warn(
                f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then.",
                ConvergenceWarning,
            )
        elif not fit.converged and self.max_iter > 0:
            warn(NOT_CONVERGED, ConvergenceWarning)

    def _set_theta(self, theta: Theta, dtype: Any) -> None:
        with np.errstate(over="ignore", under="ignore"):
            parts = type(theta)(*(np.asarray(part, dtype=dtype) for part in theta))
            precisions = np.square(parts.precisions_cholesky)
        if not all(np.isfinite(part).all() for part in (*parts, precisions)) or not precisions.any():
            raise ValueError(
                f"X must have a scale at which {np.dtype(dtype).name} can hold covariances and their "
                "inverses: scale the columns, or pass float64."
            )
        self._set_parameters(parts)

    def fit_predict(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit, and return the likeliest component of each row, those of weight zero included.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        ndarray of int, shape (n,)
            Numbers of components.
        """
        labels: NDArray[Any] = self.fit(X, y, sample_weight).predict(X)
        return labels
