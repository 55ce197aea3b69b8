"""``partial_fit`` of a mixture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.estimators.history import History
from swiftem.estimators.mixture.content import Past
from swiftem.estimators.mixture.fit import Fit, Fitting
from swiftem.estimators.mixture.initial import Start
from swiftem.estimators.mixture.online import OnlineMixture
from swiftem.estimators.mixture.stored_rows import blocks_of, is_stored
from swiftem.estimators.watch import Watcher
from swiftem.models import GaussianMixtureModel
from swiftem.models.gaussian_theta import GaussianTheta

__all__ = ["MixtureStream", "Read"]

REFIT_PASSES = 50
"""Of the fits to a sample."""


class Read(NamedTuple):
    """Data as they were read: rows and weights as given, which rows have weight, and these as a source.

    Of rows that are stored, ``X`` has the columns and the type, but no row.
    """

    X: NDArray[Any]
    weight: Array | None
    kept: NDArray[np.bool_] | None
    source: ArraySource | StoredSource

    @property
    def total_weight(self) -> float:
        """Sum of the weights as given: the source has none where all are equal."""
        return self.source.total_weight if self.weight is None else float(self.weight.sum())


class MixtureStream:
    """Adds ``partial_fit`` to :class:`swiftem.GaussianMixture`."""

    if TYPE_CHECKING:  # what the estimator has
        init_params: Any
        random_state: Any
        lower_bounds_: list[float]

        def __init__(self, **parameters: Any) -> None: ...
        def _read(
            self, X: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool, least: int = 2,
            in_batches: bool = False,
        ) -> Read: ...  # fmt: skip
        def _check_parameters(self, X: Any, xp: Any) -> None: ...
        def _model(self) -> GaussianMixtureModel: ...
        def _theta(self, d: int | None = None) -> GaussianTheta: ...
        def _set_theta(self, theta: Theta, dtype: Any) -> None: ...
        def _become(self, theta: Theta) -> None: ...
        def _prepare(self, read: Read) -> tuple[Fitting, list[Start], list[int]]: ...
        def _best(self, fitting: Fitting, starts: list[Start], seeds: list[int], watcher: Watcher) -> Fit: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on fitting with more rows, by online EM; what is kept does not grow with the data.

        The first call fits its rows, unless the model has been fitted: then it goes on from there. One pass
        depends on the order of the rows; after several passes sorted rows do about as well as shuffled
        ones. See :class:`swiftem.estimators.mixture.online.OnlineMixture`. Where Ctrl-C ends it, the model is
        as before.

        Parameters
        ----------
        X : array-like of shape (n, d), path, source, or generator of blocks
            New rows; fewer than ``n_components`` are enough after the first call. Files, sources and blocks
            are taken block by block, in one pass, as if in as many calls: this is what a generator, which
            cannot be read again, is good for.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        if is_stored(X):
            for rows, weights in blocks_of(X, sample_weight):
                self.partial_fit(rows, sample_weight=weights)
            return self
        is_first = not hasattr(self, "means_")
        read = self._read(X, sample_weight, reset=is_first, least=1, in_batches=True)
        model, source = self._model(), read.source
        assert isinstance(source, ArraySource)
        online: OnlineMixture | None = self.__dict__.get("_online")
        if online is None:
            self._check_parameters(read.X, xp=np)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if is_first:
            online, theta = OnlineMixture.begin(model, source, self._fit_first, rng)
        else:
            theta = self._theta(read.X.shape[1])
            if online is None:
                past = getattr(self, "_past", Past(None, theta.weights @ theta.means, 0.0))
                online = OnlineMixture.go_on(model, theta, past.centre, past.s, past.weight, rng)
            online, theta = replace(online, model=model).add(source, theta, self._fit_rows)
        self._online = online
        self.__dict__.pop("_past", None)
        self._set_theta(theta, read.X.dtype)
        self.converged_, self.method_, self.n_iter_ = False, "sem", online.n_batches
        self.lower_bound_, self.lower_bounds_ = online.bound, []
        self.history_, self.stationarity_ = History([]), np.nan
        return self

    def _fit_first(self, source: ArraySource, theta: GaussianTheta | None) -> GaussianTheta:
        """Return θ of a fit to a first batch: as ``fit`` would, without a word."""
        return self._quietly(source, self.get_params(deep=False) | {"warm_start": False, "verbose": 0}, None)

    def _fit_rows(self, source: ArraySource, theta: GaussianTheta | None) -> GaussianTheta:
        """Return θ of a few passes of em on a sample: afresh, or from given parameters."""
        parameters = self.get_params(deep=False)
        parameters |= {
            "method": "em",
            "max_iter": REFIT_PASSES,
            "warm_start": theta is not None,
            "verbose": 0,
        }
        if not (isinstance(self.init_params, str) or callable(self.init_params)):
            parameters["init_params"] = "kmeans"  # what was given is for other rows
        return self._quietly(source, parameters, theta)

    def _quietly(
        self, source: ArraySource, parameters: dict[str, Any], theta: GaussianTheta | None
    ) -> GaussianTheta:
        made = type(self)(**parameters)
        if theta is not None:
            made._become(theta)
        fitting, starts, seeds = made._prepare(Read(source.y, source.weight, None, source))
        fit = made._best(fitting, starts, seeds, Watcher(made, len(starts), source.y))
        if fit.interrupted:
            raise KeyboardInterrupt
        found: GaussianTheta = fit.theta
        return found
