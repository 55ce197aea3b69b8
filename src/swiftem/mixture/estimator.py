"""Fits of mixtures as estimators: ``fit`` and ``partial_fit``, for all kinds of components."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem.core.checks import check_real
from swiftem.core.compute import Placement
from swiftem.core.messages import warn
from swiftem.core.problem import Problem, check_access
from swiftem.core.schedules import Schedule, resolve
from swiftem.core.types import Theta
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned
from swiftem.fit.checkpoint import FitCheckpoint, place_of
from swiftem.fit.config import budget, device_memory_limit, get_config
from swiftem.fit.history import History
from swiftem.fit.interrupted import InterruptedWarning
from swiftem.fit.model_content import ModelContent
from swiftem.fit.parameters import CallbackSupportMixin, with_callbacks
from swiftem.fit.stopping import MOST_PASSES, MULTIPLE
from swiftem.fit.validated import allows_missing, blocks_of, is_stored
from swiftem.fit.watch import StartWatch, Watcher
from swiftem.methods import EM, Accelerated, OnlineEM
from swiftem.mixture.base import Past, Read, rows_of
from swiftem.mixture.file import mixture_from_file, mixture_to_file
from swiftem.mixture.fit import Fit, Fitting
from swiftem.mixture.online import OnlineMixture
from swiftem.mixture.plan import kernels_for, make_plan
from swiftem.mixture.scores import MixtureScores
from swiftem.mixture.starts.components import starts_of
from swiftem.mixture.starts.find import find_starts, kind_of_start
from swiftem.mixture.starts.initial import DegenerateComponentWarning
from swiftem.mixture.starts.sample import MOST
from swiftem.mixture.starts.spurious import SpuriousComponentWarning, find_spurious, sentence
from swiftem.mixture.starts.start import Start, StartInterrupted, StartSettings, check_start

__all__ = ["MixtureEstimator"]

NOT_CONVERGED = (
    "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
    "tol, or check for degenerate data."
)
REFIT_PASSES = 50
"""Settings of the fits to a sample."""
AFTER_SAMPLE = 1.0
"""As ``MULTIPLE``, after a race on a sample of the rows: its optimum is close to that of all rows, first
passes gain little, and further ones with larger steps are cheaper than a stochastic method."""


class MixtureEstimator(MixtureScores, CallbackSupportMixin):  # type: ignore[misc]
    """``fit``, ``partial_fit``, ``save`` and ``load`` of all mixtures."""

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
        kept = None
        place = place_of(self)
        if place is not None:
            warm = self._theta(read.X.shape[1]) if self._goes_on() else None
            kept = FitCheckpoint(place, type(self).__name__, self.get_params(deep=False), read.source, warm)
        with kept or nullcontext():
            fitting, starts, seeds = self._prepare(read, kept)
            looks = None if fitting.plan.method else self.max_iter
            stored = not len(read.X)
            rows = X if stored else read.X
            at_once = not (stored or read.kernels)
            with Watcher(self, len(starts), rows, y, read.weight, looks, at_once=at_once) as watcher:
                best = self._best(fitting, starts, seeds, watcher, kept)
                self._keep(best, fitting, read)
                watcher.is_fitted = True
        return self

    def _prepare(
        self, read: Read, kept: FitCheckpoint | None = None, model: Any = None
    ) -> tuple[Fitting, list[Start], list[int]]:
        """Return the shared data of the fits, their starts and their seeds, from the checkpoint if saved.

        The default ``model`` is given by the parameters; for a warm start it is the fitted one.
        """
        source = read.source
        if model is None:
            model = self._fitted_model() if self._goes_on() else self._model()
        model = self._learnt(model, source)
        there, limits = device_memory_limit(), budget()
        size = model.size(read.X.shape[1])
        kernels = read.kernels or kernels_for(rows_of(source), size)
        starting = problem = Problem(model, source, placement=Placement.named(kernels, there), budget=limits)
        settings = self._start_settings(problem, read)
        kind = kind_of_start(problem, settings)
        # A race ends close to an optimum: few passes of em are left, with larger steps if it was on a sample.
        is_open = isinstance(self.method, str) and self.method == "auto"
        raced = is_open and kind == "race" and not self._goes_on()
        after_sample = raced and rows_of(source) > MOST and not read.kernels
        method = self.method
        if after_sample:
            method = Accelerated(EM(), "squarem")
        elif raced or (is_open and read.kernels):
            method = "em"
        plan = make_plan(
            method,
            n=source.n,
            n_components=self.n_components,
            size=size,
            per_sample=rows_of(source) / source.n,
        )
        check_access(plan.for_run, source)
        reserved = limits.reserve(source, plan.for_run, statistics=size, starts=True)
        if kept is not None:
            kept.allocate = reserved.make_memory
        if plan.method is not None:
            problem = Problem(
                model,
                source,
                bound=starting.bound,
                placement=Placement.named(read.kernels or "auto", there),
                budget=limits,
            )

        def make() -> tuple[list[Start], list[int]]:
            random_state = check_random_state(self.random_state)
            if self._goes_on():
                starts = [Start(self._theta(problem.bound.d), None, 0)]
            else:
                starts = find_starts(starting, settings, random_state)
            seeds = [0] * len(starts)
            if plan.method is not None:
                seeds = random_state.randint(np.iinfo(np.int32).max, size=len(starts)).tolist()
            return starts, seeds

        def check(made: Any) -> None:
            found, seeds_of = made
            alone = kind in ("race", "few") or self._goes_on()
            if len(found) != len(seeds_of) or len(found) != (1 if alone else self.n_init):
                raise ValueError("there are more starts, or fewer")
            for start, seed in zip(found, seeds_of, strict=True):
                check_start(problem.bound, start.theta, start.s)
                np.random.default_rng(seed)

        interrupted = False
        try:
            starts, seeds = make() if kept is None else kept.starts(make, check)
        except StartInterrupted as pressed:
            starts, seeds, interrupted = [pressed.start], [0], True
        passes = min(int(self.max_iter), MOST_PASSES)
        tol = check_real("tol", self.tol, minimum=0.0)
        multiple = AFTER_SAMPLE if after_sample else MULTIPLE
        return Fitting(problem, plan, passes, tol, settings.is_default, multiple, interrupted), starts, seeds

    def _start_settings(self, problem: Problem, read: Read) -> StartSettings:
        """Return what the starts depend on beside the problem."""
        return StartSettings(
            self.init_params,
            self.n_init,
            float(self.tol),
            given=self._given_start(problem.bound.model, problem.bound.d),
            kept=read.kept,
        )

    def _best(
        self,
        fitting: Fitting,
        starts: list[Start],
        seeds: list[int],
        watcher: Watcher,
        kept: FitCheckpoint | None = None,
    ) -> Fit:
        """Return the best fit; a failed fit is ignored unless all fail."""
        if fitting.interrupted:
            return Fit(*starts[0][:2], reseeded=starts[0].empty, moves=starts[0].moves, interrupted=True)
        # em's last bound is that of the parameters before its last M-step. Another method's is that of this
        # start itself: the first pass would gain nothing, as if it had converged.
        after_em = self._goes_on() and getattr(self, "method_", "em") == "em"
        last = (self.lower_bound_, *self.__dict__.get("_last_steps", (inf, inf))) if after_em else None
        failures: list[ValueError] = []

        def one(number: int, watch: StartWatch) -> Fit:
            try:
                return fitting.fit(
                    starts[number],
                    seeds[number],
                    watch,
                    last=last,
                    keeper=None if kept is None else kept.of_start(number),
                )
            except ValueError as error:
                failures.append(error)
                return Fit(starts[number].theta, None)

        fits = watcher.map(one)
        if failures and len(failures) == len(fits):
            raise failures[0]
        if self.max_iter == 0:
            return fits[-1]  # as in scikit-learn, if there is nothing to compare
        return max(fits, key=lambda fit: fit.bound if np.isfinite(fit.bound) else -inf)

    def _keep(self, fit: Fit, fitting: Fitting, read: Read) -> None:
        """Set the attributes and issue the warnings."""
        self.converged_ = fit.converged
        self.n_iter_ = int(np.ceil(fit.passes - 1e-9))
        self.lower_bound_, self.lower_bounds_ = fit.bound, list(fit.bounds)
        self.method_, self.history_ = fitting.plan.name, History(fit.moments, fit.moves)
        self._set_theta(fit.theta, read.X.dtype, fitting.problem.bound.model)
        self._last_steps = fit.last[1:]
        self.__dict__.pop("_online", None)
        self._past = Past(fit.s, starts_of(fitting.problem.bound).about, read.total_weight)
        if fitting.plan.method is None:
            try:
                fitting.certify(fit)
            except KeyboardInterrupt:
                fit.interrupted = True
        self.stationarity_ = fit.stationarity
        self.log_likelihood_ = float(fitting.problem.bound.penalty(fit.theta) - fit.objective)
        found = find_spurious(fitting.problem, fit.theta) if self.max_iter > 0 and not fit.interrupted else []
        if found:
            warn(sentence(found, getattr(self, "feature_names_in_", None)), SpuriousComponentWarning)
        if fit.reseeded:
            warn(
                f"Components lost all rows or collapsed and were re-initialised, {fit.reseeded} "
                f"times in all: {starts_of(fitting.problem.bound).REMEDY} would prevent this.",
                DegenerateComponentWarning,
            )
        if fit.interrupted:
            warn(
                f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then.",
                InterruptedWarning,
            )
        elif not fit.converged and self.max_iter > 0:
            warn(NOT_CONVERGED, ConvergenceWarning)

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

        After ``fit``, also if the model was saved and loaded, every row counts once, those of the fit
        included: the result is close to that of a fit to all rows, and does not follow data that change.
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
            for rows, weights in blocks_of(X, sample_weight, allow_missing=allows_missing(self)):
                if hasattr(self, "weights_") or weights is None or np.any(weights):
                    self.partial_fit(rows, sample_weight=weights)
            if not hasattr(self, "weights_"):
                raise ValueError("sample_weight must have a positive entry, got only zeros.")
            return self
        is_first = not hasattr(self, "weights_")
        read = self._read(X, sample_weight, reset=is_first, least=1, in_batches=True)
        source = read.source
        assert isinstance(source, ArraySource)
        if not source.n:  # all weights are zero
            return self
        model = self._streamed(self._model() if is_first else self._fitted_model(), source)
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
                d = read.X.shape[1]
                sizes = len(past.centre), model.size(d) if past.s is None else len(past.s)
                if sizes != (model.width(d), model.size(d)):
                    model = model.with_holes()
                online = OnlineMixture.go_on(model, theta, d, past.centre, past.s, past.weight, rng)
            model = model.with_holes() if online.model.has_holes else model
            step = self._own_step(source.n)
            online, theta = replace(online, model=model).add(source, theta, self._fit_rows, step)
        self._online = online
        self.__dict__.pop("_past", None)
        self._set_theta(theta, read.X.dtype, online.model)
        self.converged_, self.method_, self.n_iter_ = False, "sem", online.n_batches
        self.lower_bound_, self.lower_bounds_ = online.bound, []
        self.history_ = History([])
        self.stationarity_ = self.log_likelihood_ = np.nan
        return self

    def _own_step(self, n: int) -> Schedule | None:
        """Return the steps that the user gives for a stream, of batches of n rows, or None."""
        method = self.method
        if not isinstance(method, OnlineEM) or "step_size" in method.left_out:
            return None
        return resolve(method.step_size, n, n)

    def _fit_first(self, model: Any, source: ArraySource, theta: Theta | None) -> Theta:
        """Return θ of a fit to the first batch: like ``fit``, without warnings."""
        parameters = self.get_params(deep=False) | {"warm_start": False, "verbose": 0}
        if self._own_step(source.n) is not None:  # it is that of the stream
            parameters["method"] = "auto"
        return self._quietly(model, source, parameters, None)

    def _fit_rows(self, source: ArraySource, theta: Theta | None) -> Theta:
        """Return θ after a few passes of em on a sample: from a new start, or from given parameters."""
        parameters = self.get_params(deep=False)
        parameters |= {
            "method": "em",
            "max_iter": REFIT_PASSES,
            "warm_start": theta is not None,
            "verbose": 0,
        }
        if not (isinstance(self.init_params, str) or callable(self.init_params)):
            parameters["init_params"] = "kmeans"  # a given array is for other rows
        return self._quietly(self._fitted_model(), source, parameters, theta)

    def _quietly(
        self, model: Any, source: ArraySource, parameters: dict[str, Any], theta: Theta | None
    ) -> Theta:
        made = type(self)(**parameters)
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        if theta is not None:
            made._become(theta, source.y.reshape(source.n, -1).shape[1], model)
        fitting, starts, seeds = made._prepare(Read(source.y, source.weight, None, source), model=model)
        fit = made._best(fitting, starts, seeds, Watcher(made, len(starts), source.y))
        if fit.interrupted:
            raise KeyboardInterrupt
        return fit.theta

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return mixture_to_file(self)

    @classmethod
    def _from_file(cls, content: ModelContent) -> Self:
        made: Self = mixture_from_file(cls, content)
        return made
