"""The base class of mixtures: fits, and what a fitted mixture says of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, log
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core import schedules
from swiftem.core.checks import as_floats, in_numpy, read_sample_weight
from swiftem.core.compute import Evaluation, Placement
from swiftem.core.messages import warn
from swiftem.core.problem import Problem, check_access
from swiftem.core.schedules import Schedule
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned, kernels_of, like, no_weights_beside
from swiftem.data.npy import NpySource
from swiftem.data.stored import StoredSource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource
from swiftem.fit import parameters as allow
from swiftem.fit.checkpoint import FitCheckpoint
from swiftem.fit.config import budget, device_memory_limit, get_config
from swiftem.fit.driver import StartWatch, Watcher
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.model_file import ModelContent
from swiftem.fit.parameters import CallbackSupportMixin, with_callbacks
from swiftem.fit.validated import (
    Read,
    RowSource,
    blocks_of,
    chunk_by_chunk,
    is_stored,
    rows_of,
    stored_source,
)
from swiftem.methods import Method, OnlineEM
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.file import file_types, read_online, read_past, state_to_file
from swiftem.mixture.fit import MixtureFit, Prepared, certified, fit_from, new_fit
from swiftem.mixture.online import AnyMixtureModel, OnlineMixture, Past
from swiftem.mixture.resolve import METHOD_NAMES, Facts, kernels_for, resolve
from swiftem.mixture.starts.collapsed_components import SpuriousComponentWarning, find_spurious, sentence
from swiftem.mixture.starts.find_starts import find_starts, kind_of_start
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning
from swiftem.mixture.starts.settings import Start, StartInterrupted, StartSettings, check_start

NOT_CONVERGED = (
    "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
    "tol, or check for degenerate data."
)
REFIT_PASSES = 50
"""Passes of the fits to a sample."""
NUMBERS = 1 << 22
"""Responsibilities computed at a time if they are not the result."""


class MixtureEstimator(DensityMixin, Estimator, CallbackSupportMixin):  # type: ignore[misc]
    """Fits, scores and queries of all mixtures; subclasses have the parameters and the model."""

    _allowed: ClassVar[dict[str, Sequence[allow.Allowed]]] = {
        **allow.COMMON,
        "max_iter": [allow.integer(0)],
        "n_init": [allow.AT_LEAST_ONE],
        "init_params": [
            allow.one_of(["race", "kmeans", "random", "random_from_data", "k-means++"]),
            allow.CALLABLE,
            allow.ARRAY,
        ],
        "weights_init": [allow.NONE, allow.ARRAY],
        "method": [allow.one_of(METHOD_NAMES), allow.instance_of(Method)],
        "missing": [allow.one_of(["error", "ignore"])],
    }

    n_components: int
    tol: float
    max_iter: int
    n_init: int
    init_params: Any
    random_state: Any
    warm_start: bool
    method: str | Method
    device: str
    missing: str

    weights_: NDArray[Any]
    converged_: bool
    n_iter_: int
    lower_bound_: float
    lower_bounds_: list[float]
    method_: str
    history_: History
    stationarity_: float
    log_likelihood_: float
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @abstractmethod
    def _model(self) -> AnyMixtureModel:
        """Return the model given by the parameters."""

    def _fitted_model(self) -> AnyMixtureModel:
        """Return the model as fitted, with what it has learnt of the data."""
        return self._model()

    @abstractmethod
    def _check_parameters(self, X: Any, xp: Any = np) -> None:
        """Raise ValueError if the parameters do not match the rows ``X`` (n, d)."""

    @abstractmethod
    def _given_start(self, model: Any, d: int) -> dict[str, Any]:
        """Return the initial values given by the user for a model of ``d`` columns, by name."""

    @abstractmethod
    def _theta(self, d: int | None = None) -> Theta:
        """Return the current parameters for ``d`` columns: a user may have set them."""

    @abstractmethod
    def _set_theta(self, theta: Theta, dtype: Any, model: Any) -> None:
        """Set the fitted attributes from parameters of a fitted model, in the precision of the rows."""

    @abstractmethod
    def _middle(self) -> Array:
        """Return an approximate centre of the data, which saves the pass that would compute it."""

    def _encoded(self, X: Any, sample_weight: ArrayLike | None = None, *, reset: bool) -> Any:
        """Return rows with numbers in place of categories; ``reset`` finds the categories of a fit."""
        return X

    def _goes_on(self) -> bool:
        return bool(self.warm_start and hasattr(self, "converged_"))

    def _become(self, theta: Theta, d: int, model: AnyMixtureModel) -> None:
        """Set parameters of a model of ``d`` columns as the fitted ones."""
        self._set_theta(theta, np.float64, model)
        self.n_features_in_ = d
        self._set_results("given", 0, -inf, converged=True)

    def _set_results(self, method: str, n_iter: int, bound: float, *, converged: bool) -> None:
        """Set the results of parameters that no fit has found."""
        self.method_, self.n_iter_, self.converged_ = method, n_iter, converged
        self.lower_bound_, self.lower_bounds_, self.history_ = bound, [], History()
        self.stationarity_ = self.log_likelihood_ = np.nan

    def _fitted(self) -> FittedMixture:
        check_is_fitted(self)
        return FittedMixture(self._fitted_model(), self._theta(), self._middle(), self.device)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, as in AIC and BIC."""
        return self._fitted().bind(ArraySource(np.zeros((1, self.n_features_in_)))).n_free

    @property
    def _allows_missing(self) -> bool:
        return self.missing == "ignore"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_missing
        return tags

    def to(self, device: str) -> Self:
        """Set the device of later calls, and return the model: its parameters are arrays of the CPU.

        Parameters
        ----------
        device : str
            "auto", "cpu", "cuda" or "cuda:1".

        Examples
        --------
        >>> import swiftem
        >>> swiftem.GaussianMixture(2, device="cuda").to("cpu").device
        'cpu'
        """
        kernels_of(device)
        self.device = device
        return self

    def _stored(
        self, X: Any, sample_weight: ArrayLike | None, *, on_device: bool, reset: bool
    ) -> RowSource | None:
        """Return rows that are not in an array as a source, or None; set or compare their columns.

        These are compared as scikit-learn does.
        """
        allow_missing = self._allows_missing
        source = stored_source(X, sample_weight, on_device=on_device, allow_missing=allow_missing)
        if source is None:
            return None
        if source.allow_missing and not self._allows_missing:
            raise ValueError("missing must be 'ignore' for rows with allow_missing=True, got 'error'.")
        (d,) = source.tail
        if reset:
            self.n_features_in_ = d
            self.__dict__.pop("feature_names_in_", None)
            if source.names:
                self.feature_names_in_ = np.array(source.names, dtype=object)
        elif d != self.n_features_in_:
            raise ValueError(
                f"X has {d} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        elif source.names and tuple(getattr(self, "feature_names_in_", source.names)) != source.names:
            raise ValueError(
                "The columns of X must be those of the fit, in the same order: "
                f"{', '.join(self.feature_names_in_)}, got {', '.join(source.names)}."
            )
        return source

    def _read(
        self, X: Any, sample_weight: ArrayLike | None, *, reset: bool, in_batches: bool = False
    ) -> Read:
        """Return the validated rows, and those with positive weight as a source.

        The scale of the weights matters if there is a prior in counts, or if rows come ``in_batches``.
        """
        least = 1 if in_batches else 2
        X = self._encoded(X, sample_weight, reset=reset)
        kernels = kernels_of(self.device, X)
        on_device = kernels is not None and not in_batches
        source = self._stored(X, sample_weight, on_device=on_device, reset=reset)
        if source is not None:
            left_out = isinstance(source, TensorSource) and sample_weight is not None and source.n < len(X)
            kept = as_floats("sample_weight", sample_weight) > 0.0 if left_out else None  # type: ignore[arg-type]
            n = rows_of(source)
            read = Read(np.empty((0, *source.tail), dtype=dtype_of(source)), None, kept, source, kernels)
        else:
            read, n = self._read_array(X, sample_weight, reset=reset, least=least, in_batches=in_batches)
        if reset and n < max(self.n_components, least):  # in scikit-learn's words
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.n_components}, n_samples = {n}"
            )
        return read._replace(kernels=kernels)

    def _read_array(
        self, X: Any, sample_weight: ArrayLike | None, *, reset: bool, least: int, in_batches: bool
    ) -> tuple[Read, int]:
        """Return the validated rows in memory, and how many have a positive weight."""
        rows, weight = self._array(X, sample_weight, reset=reset, least=least, in_batches=in_batches)
        if weight is not None and not weight.any():
            return Read(rows, weight, None, ArraySource.checked(rows[:0])), 0
        kept = None if weight is None or weight.all() else weight > 0.0
        some, of_some = (rows, weight) if kept is None or weight is None else (rows[kept], weight[kept])
        if of_some is not None and not (in_batches or self._model().in_counts):
            # Equal weights change nothing, and the loops without weights are faster.
            of_some = None if (of_some == of_some[0]).all() else of_some
        if len(some) < least:
            raise ValueError(f"sample_weight must have at least {least} positive entries, got {len(some)}.")
        source: RowSource
        if get_config()["memory_limit"] is not None and not in_batches:  # a copy would exceed the limit
            source = NpySource(rows, sample_weight=weight, allow_missing=self._allows_missing)
        elif type(X) is ArraySource and some is X.y and (of_some is None) == (X.weight is None):
            source = X  # its mean may be known
        else:
            source = ArraySource(some, of_some, allow_missing=self._allows_missing)
        return Read(rows, weight, kept, source), len(some)

    def _array(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        least: int = 1,
        in_batches: bool = False,
    ) -> tuple[NDArray[Any], Array | None]:
        """Return rows in memory as an array, and their weights."""
        if type(X) is ArraySource:
            no_weights_beside(sample_weight)
            X, sample_weight = X.y, X.weight
        floats = [np.float64, np.float32]
        rows: NDArray[Any] = self._validated(X, dtype=floats, reset=reset, ensure_min_samples=least)
        return rows, read_sample_weight(sample_weight, len(rows), may_be_zero=in_batches and not reset)

    def _source(self, X: Any, sample_weight: ArrayLike | None = None) -> RowSource:
        """Return rows of positive weight for a fitted mixture."""
        check_is_fitted(self)
        X = self._encoded(X, reset=False)
        on_device = kernels_of(self.device, X) is not None
        source = self._stored(X, sample_weight, on_device=on_device, reset=False)
        if source is not None:
            return source
        return ArraySource(*self._array(X, sample_weight, reset=False), allow_missing=self._allows_missing)

    def _all_rows(self, X: Any) -> ArraySource | StoredSource:
        """Return all rows for a fitted mixture, also rows of weight zero of a source."""
        is_units = isinstance(X, UnitSource)
        if is_units or is_planned(X):
            got = "units" if is_units else "a Dask collection"
            raise TypeError(
                f"X must be an array, a table or a file for values of each row, got {got}: give its parts, "
                "for example with map_blocks or map_partitions."
            )
        source = self._source(X.unweighted() if isinstance(X, ArraySource | StoredSource) else X)
        assert not isinstance(source, UnitSource)
        return source

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like of shape (n, d), path, list of paths, source, Dask collection, or function of blocks
            The rows; float32 stays float32. Files are read on demand by
            :func:`swiftem.data.open_source`; so are memory maps if there is a ``memory_limit``
            (:func:`swiftem.config_context`). Chunks of a Dask array or data frame are read by the workers of
            the current client.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; rows of weight zero are ignored. For files, the weights are a column:
            ``fit(open_source(path, weight="w"))``.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning; while starts race, the best one so far.
        """
        self._validate_params()
        read = self._read(X, sample_weight, reset=True)
        self._check_parameters(read.X, xp=np)
        warm = self._theta(read.X.shape[1]) if self._goes_on() else None
        with self._checkpoint_of(read.source, warm) as kept:
            prepared = self._prepare(read, kept)
            has_array = len(read.X) > 0
            most_passes = None if prepared.spec.method else self.max_iter
            arguments = read.X if has_array else X, y, read.weight
            at_once = has_array and not read.kernels
            with self._watcher(
                len(prepared.starts), *arguments, most_passes=most_passes, at_once=at_once
            ) as watcher:
                self._keep(self._best(prepared, watcher, kept), prepared, read)
                watcher.is_fitted = True
        return self

    def _prepare(self, read: Read, kept: FitCheckpoint, model: AnyMixtureModel | None = None) -> Prepared:
        """Return what the fits share, their starts and their seeds, from the checkpoint if saved.

        The default ``model`` is given by the parameters; for a warm start it is the fitted one.
        """
        source, is_warm = read.source, self._goes_on()
        if model is None:
            model = self._fitted_model() if is_warm else self._model()
        model = model.learnt(source)
        size, rows, limits = model.size(read.X.shape[1]), rows_of(source), budget()
        placed = partial(Placement.named, memory_limit=device_memory_limit())
        kernels = read.kernels or kernels_for(rows, size)
        starting = problem = Problem(model, source, placement=placed(kernels), budget=limits)
        settings = self._start_settings(problem, read)
        kind = "warm" if is_warm else kind_of_start(problem, settings)
        facts = Facts(source.n, rows, size, kind, settings.is_default, read.kernels)
        spec = resolve(self.get_params(deep=False), facts)
        check_access(spec.for_run, source)
        kept.allocate = limits.reserve(source, spec.for_run, statistics=size, starts=True).make_memory
        if spec.method is not None:
            at = placed(spec.kernels)
            problem = Problem(model, source, bound=starting.bound, placement=at, budget=limits)

        def make() -> tuple[list[Start], list[int]]:
            random_state = check_random_state(self.random_state)
            if is_warm:
                starts = [Start(self._theta(problem.bound.d), None, 0)]
            else:
                starts = find_starts(starting, settings, random_state, is_for_em=spec.method is None)
            seeds = [0] * len(starts)
            if spec.method is not None:
                seeds = random_state.randint(np.iinfo(np.int32).max, size=len(starts)).tolist()
            return starts, seeds

        def check(made: Any) -> None:
            starts, seeds = made
            alone = kind in ("race", "few", "warm")
            if len(starts) != len(seeds) or len(starts) != (1 if alone else self.n_init):
                raise ValueError("there are more starts, or fewer")
            for start, seed in zip(starts, seeds, strict=True):
                check_start(problem.bound, start.theta, start.s)
                np.random.default_rng(seed)

        try:
            starts, seeds = kept.starts(make, check)
        except StartInterrupted as pressed:
            return Prepared(problem, spec, [pressed.start], [0], is_interrupted=True)
        return Prepared(problem, spec, starts, seeds)

    def _start_settings(self, problem: Problem, read: Read) -> StartSettings:
        """Return what the starts depend on beside the problem."""
        return StartSettings(
            self.init_params,
            self.n_init,
            float(self.tol),
            given=self._given_start(problem.bound.model, problem.bound.d),
            kept=read.kept,
        )

    def _best(self, prepared: Prepared, watcher: Watcher, kept: FitCheckpoint) -> MixtureFit:
        """Return the best fit; a failed fit is ignored unless all fail."""
        problem, spec, starts, seeds, is_interrupted = prepared
        if is_interrupted:
            return replace(new_fit(starts[0]), interrupted=True)
        # em's last bound is of the parameters before its last M-step. Another method's is of this
        # start itself: the first pass would gain nothing, as if it had converged.
        after_em = self._goes_on() and getattr(self, "method_", "em") == "em"
        last = (self.lower_bound_, *self.__dict__.get("_last_steps", (inf, inf))) if after_em else None
        failures: list[ValueError] = []

        def one(number: int, watch: StartWatch) -> MixtureFit:
            keeper = kept.of_start(number)
            try:
                return fit_from(starts[number], problem, spec, seeds[number], watch, keeper, last)
            except ValueError as error:
                failures.append(error)
                return new_fit(starts[number])

        fits = watcher.map(one)
        if failures and len(failures) == len(fits):
            raise failures[0]
        if self.max_iter == 0:
            return fits[-1]  # as in scikit-learn, if there is nothing to compare
        return max(fits, key=lambda fit: fit.bound if np.isfinite(fit.bound) else -inf)

    def _keep(self, fit: MixtureFit, prepared: Prepared, read: Read) -> None:
        """Set the attributes and issue the warnings."""
        problem, spec = prepared.problem, prepared.spec
        bound = cast(BoundComponents, problem.bound)
        self.converged_ = fit.converged
        self.n_iter_ = int(np.ceil(fit.passes - 1e-9))
        self.lower_bound_, self.lower_bounds_ = fit.bound, [-moment.objective for moment in fit.moments]
        self.method_, self.history_ = spec.name, History(fit.moments, fit.moves)
        self._set_theta(fit.theta, read.X.dtype, bound.model)
        self._last_steps = fit.last[1:]
        self.__dict__.pop("_online", None)
        self._past = Past(fit.s, bound.about, read.total_weight)
        if spec.method is None:
            certified(fit, problem, spec)
        self.stationarity_ = fit.stationarity
        self.log_likelihood_ = float(bound.penalty(fit.theta) - fit.objective)
        found = find_spurious(problem, fit.theta) if self.max_iter > 0 and not fit.interrupted else []
        if found:
            warn(sentence(found, getattr(self, "feature_names_in_", None)), SpuriousComponentWarning)
        if fit.reseeded:
            warn(
                f"Components lost all rows or collapsed and were re-initialised, {fit.reseeded} "
                f"times in all: {bound.REMEDY} would prevent this.",
                DegenerateComponentWarning,
            )
        if fit.interrupted or self.max_iter > 0:
            self._warn_of_end(fit, NOT_CONVERGED)

    def fit_predict(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit, and return the most likely component of each row, also for rows of weight zero.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        ndarray of int, shape (n,)
            Indices of components.
        """
        labels: NDArray[Any] = self.fit(X, y, sample_weight).predict(X)
        return labels

    def partial_fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with more rows, by online EM; memory use does not grow with the data.

        The first call fits its rows, or continues from a fitted model. After one pass the result depends on
        the order of the rows; after several passes sorted rows do about as well as shuffled ones. See
        :class:`swiftem.mixture.online.OnlineMixture`. Ctrl-C leaves the model as it was.

        After ``fit``, also if the model was saved and loaded, every row counts once, also
        each row of the fit: the result is close to a fit to all rows, and does not follow data that change.
        A stream that begins with ``partial_fit`` forgets its first rows, as their parameters were poor.
        For data that change, give the share of each call yourself:
        ``method=methods.OnlineEM(step_size=0.05)``.

        Parameters
        ----------
        X : array-like of shape (n, d), path, source, or generator of blocks
            New rows; after the first call fewer than ``n_components`` are enough. Files, sources and blocks
            are read block by block, in one pass, as if in separate calls. A generator, which cannot be read
            twice, is allowed.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights; rows of weight zero add nothing.
        """
        self._validate_params()
        is_mapped = get_config()["memory_limit"] is not None and isinstance(X, np.memmap)
        if is_stored(X) or is_planned(X) or is_mapped:
            for rows, weights in blocks_of(X, sample_weight, allow_missing=self._allows_missing):
                if hasattr(self, "weights_") or weights is None or np.any(weights):
                    self.partial_fit(rows, sample_weight=weights)
            if not hasattr(self, "weights_"):
                raise ValueError("sample_weight must have a positive entry, got only zeros.")
            return self
        is_first = not hasattr(self, "weights_")
        read = self._read(X, sample_weight, reset=is_first, in_batches=True)
        source = read.source
        assert isinstance(source, ArraySource)
        if not source.n:  # all weights are zero
            return self
        model = (self._model() if is_first else self._fitted_model()).streamed(source)
        online: OnlineMixture | None = self.__dict__.get("_online")
        if online is None:
            self._check_parameters(read.X, xp=np)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if is_first:
            online, theta = OnlineMixture.begin(model, source, partial(self._fit_first, model), rng)
        else:
            theta = self._theta(read.X.shape[1])
            if online is None:
                past = getattr(self, "_past", Past(None, self._middle(), 0.0))
                online = OnlineMixture.go_on(model, theta, read.X.shape[1], past, rng)
            model = model.with_holes() if online.model.has_holes else model
            step = self._own_step(source.n)
            online, theta = replace(online, model=model).add(source, theta, self._fit_rows, step)
        self._online = online
        self.__dict__.pop("_past", None)
        self._set_theta(theta, read.X.dtype, online.model)
        self._set_results("sem", online.n_batches, online.bound, converged=False)
        return self

    def _own_step(self, n: int) -> Schedule | None:
        """Return the steps that the user gives for a stream, of batches of n rows, or None."""
        method = self.method
        if not isinstance(method, OnlineEM) or "step_size" in method.left_out:
            return None
        return schedules.resolve(method.step_size, n, n)

    def _fit_first(self, model: AnyMixtureModel, source: ArraySource, theta: Theta | None) -> Theta:
        """Return θ of a fit to the first batch: like ``fit``, without warnings."""
        # A step size is for the stream.
        method = self.method if self._own_step(source.n) is None else "auto"
        return self._quietly(model, source, None, method=method)

    def _fit_rows(self, source: ArraySource, theta: Theta | None) -> Theta:
        """Return θ after a few passes of em on a sample: from a new start, or from given parameters."""
        is_array = not (isinstance(self.init_params, str) or callable(self.init_params))
        init = "kmeans" if is_array else self.init_params  # a given array is for other rows
        settings = {"method": "em", "max_iter": REFIT_PASSES, "init_params": init}
        return self._quietly(self._fitted_model(), source, theta, **settings)

    def _quietly(
        self, model: AnyMixtureModel, source: ArraySource, theta: Theta | None, **settings: Any
    ) -> Theta:
        """Return θ of a fit with other settings, from a new start, or from given parameters."""
        made = type(self)(**self.get_params(deep=False) | settings | {"warm_start": theta is not None})
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        if theta is not None:
            made._become(theta, source.y.shape[1], model)
        prepared = made._prepare(Read(source.y, source.weight, None, source), FitCheckpoint(), model)
        fit = made._best(prepared, Watcher(len(prepared.starts)), FitCheckpoint())
        if fit.interrupted:
            raise KeyboardInterrupt
        return fit.theta

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X
            As in :meth:`predict`.

        Returns
        -------
        ndarray, shape (n,)
            float32 for rows of float32.
        """
        if is_planned(X):
            return chunk_by_chunk(self.score_samples, X)
        return like(X, self._fitted().log_likelihoods(self._all_rows(X)))  # type: ignore[no-any-return]

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the rows, weighted if weights are given.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        source, fitted = self._source(X, sample_weight), self._fitted()
        if isinstance(source, ArraySource) and source.weight is None:
            return float(fitted.log_likelihoods(source).mean())
        totals = fitted.totals(source)
        return totals.log_likelihood / totals.weight

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely component of each row.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.

        Returns
        -------
        ndarray of int, shape (n,)
            Indices of components.
        """
        if is_planned(X):
            return chunk_by_chunk(self.predict, X, dtype=np.intp)
        return like(X, self._fitted().evaluate(self._all_rows(X), labels=True).labels)  # type: ignore[no-any-return]

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the responsibilities: the probability that each row comes from each component.

        Parameters
        ----------
        X
            As in :meth:`predict`.

        Returns
        -------
        ndarray, shape (n, M)
            Rows sum to 1; float32 for rows of float32.
        """
        if is_planned(X):
            return chunk_by_chunk(self.predict_proba, X, columns=self.n_components)
        return like(X, self._fitted().responsibilities(self._all_rows(X)))  # type: ignore[no-any-return]

    def impute(self, X: ArrayLike, random_state: Any = None) -> Any:
        """Return the rows with missing cells filled in.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        random_state : int, RandomState or None
            None: cells have their mean given the observed ones. Otherwise they are random draws, given the
            observed ones.

        Returns
        -------
        ndarray, shape (n, d)
            float32 for rows of float32.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> covariances = [[[4.0, 2.0], [2.0, 3.0]]]
        >>> mixture = swiftem.GaussianMixture.from_parameters(
        ...     [1.0], [[1.0, 2.0]], covariances, missing="ignore"
        ... )
        >>> mixture.impute([[3.0, np.nan], [np.nan, np.nan]])
        array([[3., 3.],
               [1., 2.]])
        """
        rows = self._all_rows(X)
        if isinstance(rows, TensorSource):
            raise TypeError(
                "X must be an array, a table or a file for impute, got rows on another device: copy them to "
                "this process first."
            )
        rng = None
        if random_state is not None:
            rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return self._fitted().imputed(rows, rng)

    def bic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion, −2 Σ w log g + p log Σ w; lower is better.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        return self._criteria(X, sample_weight)["bic"]

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion, −2 Σ w log g + 2p; lower is better.

        Parameters
        ----------
        X, sample_weight
            As in :meth:`bic`.
        """
        return self._criteria(X, sample_weight)["aic"]

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood criterion, BIC + 2·entropy; lower is better.

        The entropy of the responsibilities, −Σ w Σ_m r_m log r_m, favours well-separated components
        (Biernacki, Celeux and Govaert, 2000).

        Parameters
        ----------
        X, sample_weight
            As in :meth:`bic`.
        """
        return self._criteria(X, sample_weight, entropy=True)["icl"]

    def _criteria(
        self, X: ArrayLike, sample_weight: ArrayLike | None, *, entropy: bool = False
    ) -> dict[str, float]:
        source = self._source(X, sample_weight)
        if entropy and isinstance(source, UnitSource):
            raise TypeError("X must be an array or a file for icl, got units of a cluster: use bic or aic.")
        totals = self._fitted().totals(source, entropy=entropy)
        return criteria(totals.log_likelihood, totals.weight, self.n_parameters_, totals.entropy)

    @classmethod
    def _file_types(cls) -> Mapping[str, type[Any]]:
        return file_types()

    def _state_to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return state_to_file(self.__dict__.get("_past"), self.__dict__.get("_online"))

    def _read_state(self, content: ModelContent, d: int) -> None:
        model = self._fitted_model()
        past, online = read_past(content, model, d), read_online(content, model, d)
        if past is not None:
            self._past = past
        if online is not None:
            self._online = online


class Totals(NamedTuple):
    """Sums over rows: Σ w log g, Σ w, and −Σ w Σ_m r_m log r_m."""

    log_likelihood: float
    weight: float
    entropy: float = 0.0


def criteria(total: float, weight: float, n_parameters: int, entropy: float = 0.0) -> dict[str, float]:
    """Return AIC, BIC and ICL, from Σ w log g, Σ w, free parameters and the entropy of responsibilities.

    >>> criteria(-100.0, 50.0, 3)["aic"]
    206.0
    """
    bic = -2.0 * total + n_parameters * log(weight)
    return {"bic": bic, "aic": -2.0 * total + 2.0 * n_parameters, "icl": bic + 2.0 * entropy}


class FittedMixture(NamedTuple):
    """The parameters of a mixture, for E-steps of other rows than the fit's.

    Attributes
    ----------
    model : GaussianMixtureModel or MixtureModel
        The model.
    theta : NamedTuple
        Its parameters.
    centre : ndarray
        About the mean of the data, which saves the pass that would compute it.
    device : str
        Where passes are computed, as in :func:`swiftem.data.as_source.kernels_of`.
    """

    model: AnyMixtureModel
    theta: Theta
    centre: Array
    device: str

    def bind(self, source: RowSource) -> BoundComponents:
        """Return the model for these rows."""
        return self.model.bind(source, centre=self.centre)

    def problem(self, source: RowSource) -> Problem:
        """Return the model bound to these rows, with the place of its passes."""
        bound = self.bind(source)
        tensor = source.tensor if isinstance(source, TensorSource) else None
        kernels = kernels_of(self.device, tensor) or kernels_for(rows_of(source), bound.size)
        placement = Placement.named(kernels, device_memory_limit())
        return Problem(bound.model, source, bound=bound, placement=placement)

    def evaluate(self, source: RowSource, **wanted: bool) -> Evaluation:
        """Return the E-step of all rows; for a tensor, in tensors on its device."""
        compute: Any = self.problem(source).compute
        on_device = isinstance(source, TensorSource) and compute.is_on_device
        found: Evaluation = (compute.evaluate_there if on_device else compute.evaluate)(self.theta, **wanted)
        return found

    def log_likelihoods(self, source: RowSource) -> Any:
        """Return the log-likelihoods (n,), in the precision of the rows; for a tensor, a tensor."""
        found: Any = self.evaluate(source).log_likelihood
        return found.astype(dtype_of(source), copy=False) if isinstance(found, np.ndarray) else found

    def responsibilities(self, source: RowSource) -> Any:
        """Return the responsibilities (n, M), in the precision of the rows; for a tensor, a tensor."""
        if isinstance(source, TensorSource):
            return self.evaluate(source, responsibilities=True).responsibilities
        found = np.empty((source.n, self.model.n_components), dtype=dtype_of(source))
        for here, part in self._parts(source):
            found[here] = self.evaluate(part, responsibilities=True).responsibilities
        return found

    def totals(self, source: RowSource, *, entropy: bool = False) -> Totals:
        """Return the sums over the rows, with the entropy of the responsibilities if it is wanted."""
        if not entropy:
            problem, weight = self.problem(source), source.total_weight
            loss = problem.compute.objective(self.theta) - problem.bound.penalty(self.theta)
            return Totals(-weight * loss, weight)
        found = Totals(0.0, 0.0, 0.0)
        for _, part in self._parts(source):
            evaluation = self.evaluate(part, responsibilities=True)
            r, log_likelihood = (
                np.asarray(in_numpy(values), dtype=np.float64)
                for values in (evaluation.responsibilities, evaluation.log_likelihood)
            )
            w = np.ones(part.n) if part.weight is None else part.weight
            disorder = -(r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1)
            more = w @ log_likelihood, w.sum(), w @ disorder
            found = Totals(*(float(old + new) for old, new in zip(found, more, strict=True)))
        return found

    def imputed(self, source: RowSource, rng: np.random.Generator | None) -> NDArray[Any]:
        """Return the rows (n, d) with missing cells filled in: by means, or draws of a generator."""
        found = np.empty((source.n, *source.tail), dtype=dtype_of(source))
        for here, part in self._parts(source):
            r = self.evaluate(part, responsibilities=True).responsibilities
            assert r is not None
            found[here] = self.bind(part).imputed(part.y, r, self.theta, rng)
        return found

    def _parts(self, source: RowSource) -> Iterator[tuple[slice, ArraySource]]:
        """Yield the places of rows, and these rows, few enough for their responsibilities."""
        size = max(NUMBERS // self.model.n_components, 1)
        if isinstance(source, ArraySource) and source.n <= size:
            yield slice(None), source
            return
        if isinstance(source, TensorSource):
            for start in range(0, source.n, size):
                here = slice(start, start + size)
                weight = None if source.weight is None else source.weight[here]
                yield here, TensorSource(source.tensor[here], weight)
            return
        for batch in source.blocks(size if isinstance(source, ArraySource) else min(size, source.chunk_rows)):
            here = slice(int(batch.index[0]), int(batch.index[-1]) + 1)
            yield here, ArraySource.checked(batch.y, batch.weight, source.allow_missing)


def dtype_of(source: RowSource) -> np.dtype:
    """Return the precision of the rows."""
    return source.y.dtype if type(source) is ArraySource else source.dtype  # type: ignore[union-attr]
