"""Base class of the mixture estimators: the interface for kinds of components, and the input of data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin

from swiftem.core.checks import as_floats, check_not_lazy, in_numpy, is_tensor
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned, kernels_of
from swiftem.data.npy import NpySource
from swiftem.data.stored import StoredSource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource, units_of
from swiftem.fit.config import get_config
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.model_content import ModelContent
from swiftem.fit.parameters import (
    ARRAY,
    AT_LEAST_ONE,
    CALLABLE,
    COMMON,
    NONE,
    Allowed,
    instance_of,
    integer,
    one_of,
)
from swiftem.fit.validated import allows_missing, is_stored, open_rows, read_weights, validated
from swiftem.methods import Method
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.plan import METHOD_NAMES
from swiftem.mixture.starts.components import starts_of

__all__ = ["MixtureBase", "Past", "Read", "check_columns", "no_weights_beside"]


class Read(NamedTuple):
    """Validated data: rows and weights as given, the indices of rows with positive weight, and their source.

    For stored rows and tensors, ``X`` has the columns and the dtype, but no rows. ``kernels`` are those of a
    device, or None.
    """

    X: NDArray[Any]
    weight: Array | None
    kept: NDArray[np.bool_] | None
    source: ArraySource | StoredSource | UnitSource
    kernels: str | None = None

    @property
    def total_weight(self) -> float:
        """Sum of the weights as given: the source has no weights if all are equal."""
        return self.source.total_weight if self.weight is None else float(self.weight.sum())


class Past(NamedTuple):
    """What ``fit`` stores for a later ``partial_fit``: statistics, their centre, and the rows' weight."""

    s: Array | None
    centre: Array
    weight: float


def no_weights_beside(sample_weight: ArrayLike | None) -> None:
    """Raise ValueError if weights are given for stored rows: these have their own."""
    if sample_weight is not None:
        raise ValueError("sample_weight must be given to the source, not as a separate argument.")


def rows_of(source: Source) -> int:
    """Return the number of rows, those of units included."""
    return source.rows if isinstance(source, UnitSource) else source.n


def check_columns(estimator: Any, source: StoredSource | UnitSource | TensorSource, *, reset: bool) -> None:
    """Set the estimator's column names, or compare those of new rows with them.

    The same rules as scikit-learn's for arrays and data frames.
    """
    (d,) = source.tail
    if reset:
        estimator.n_features_in_ = d
        estimator.__dict__.pop("feature_names_in_", None)
        if source.names:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
    elif d != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {d} features, but {name} is expecting {estimator.n_features_in_} features as input."
        )
    elif source.names and tuple(getattr(estimator, "feature_names_in_", source.names)) != source.names:
        raise ValueError(
            "The columns of X must be those of the fit, in the same order: "
            f"{', '.join(estimator.feature_names_in_)}, got {', '.join(source.names)}."
        )


class MixtureBase(DensityMixin, Estimator):  # type: ignore[misc]
    """Parameters of all mixtures, and the methods that each kind of mixture implements.

    Everything else uses the model's :class:`swiftem.mixture.components.BoundComponents`.
    """

    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **COMMON,
        "max_iter": [integer(0)],
        "n_init": [AT_LEAST_ONE],
        "init_params": [
            one_of(["race", "kmeans", "random", "random_from_data", "k-means++"]),
            CALLABLE,
            ARRAY,
        ],
        "weights_init": [NONE, ARRAY],
        "method": [one_of(METHOD_NAMES), instance_of(Method)],
        "missing": [one_of(["error", "ignore"])],
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
    def _model(self) -> Any:
        """Return the model given by the parameters."""

    def _learnt(self, model: Any, source: Source) -> Any:
        """Return a model with what it has to know of the data before their statistics have a size."""
        return model

    def _streamed(self, model: Any, source: Source) -> Any:
        """Return a model with what it has to know of the rows of a ``partial_fit``."""
        return model

    def _fitted_model(self) -> Any:
        """Return the model as fitted, with what it has learnt of the data."""
        return self._model()

    @abstractmethod
    def _check_parameters(self, X: Any, xp: Any = np) -> None:
        """Raise ValueError if the parameters do not match the rows ``X`` (n, d)."""

    @abstractmethod
    def _given_start(self, model: Any, d: int) -> dict[str, Any]:
        """Return the initial values given by the user for a model of ``d`` columns, by name."""

    @abstractmethod
    def _theta(self, d: int | None = None) -> Any:
        """Return the current parameters for ``d`` columns: a user may have set them."""

    @abstractmethod
    def _set_theta(self, theta: Any, dtype: Any, model: Any) -> None:
        """Set the fitted attributes from parameters of a fitted model, in the precision of the rows."""

    @abstractmethod
    def _middle(self) -> Array:
        """Return an approximate centre of the data, which saves the pass that would compute it."""

    @abstractmethod
    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted parameters by their names in attributes and files."""

    @abstractmethod
    def _read_fitted(self, content: ModelContent, d: int) -> None:
        """Set the fitted parameters from a file, after checks."""

    def _become(self, theta: Theta, d: int, model: Any) -> None:
        """Set parameters of a model of ``d`` columns as the fitted ones."""
        self._set_theta(theta, np.float64, model)
        self.n_features_in_ = d
        self.converged_, self.n_iter_, self.lower_bound_ = True, 0, -inf
        self.lower_bounds_ = []
        self.method_, self.history_ = "given", History([])
        self.stationarity_ = self.log_likelihood_ = np.nan

    def _bind(self, source: Source) -> BoundComponents:
        """Return the model for rows outside a fit."""
        bound: BoundComponents = self._fitted_model().bind(source, centre=self._middle())
        return bound

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

    def _goes_on(self) -> bool:
        return bool(self.warm_start and hasattr(self, "converged_"))

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        return starts_of(self._bind(ArraySource(np.zeros((1, self.n_features_in_))))).n_free

    def _read(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        least: int = 2,
        in_batches: bool = False,
    ) -> Read:
        """Return the validated rows, and those with positive weight as a source.

        The scale of the weights matters if there is a prior in counts, or if rows come ``in_batches``.
        """
        kernels = kernels_of(self.device, X)
        if kernels is not None:
            read = self._read_on(X, sample_weight, reset=reset, least=least, in_batches=in_batches)
            return read._replace(kernels=kernels)
        return self._read_on(in_numpy(X), sample_weight, reset=reset, least=least, in_batches=in_batches)

    def _read_on(
        self, X: Any, sample_weight: ArrayLike | None, *, reset: bool, least: int, in_batches: bool
    ) -> Read:
        if is_planned(X) or isinstance(X, UnitSource) or (is_tensor(X) and not in_batches):
            return self._read_stored(X, sample_weight, reset=reset, least=least)
        X = in_numpy(X)
        check_not_lazy("X", X)
        limited = get_config()["memory_limit"] is not None
        if is_stored(X) or (limited and isinstance(X, np.memmap)):
            return self._read_stored(X, sample_weight, reset=reset, least=least)
        given: ArraySource | None = None
        if type(X) is ArraySource:
            no_weights_beside(sample_weight)
            given = X
            X, sample_weight = given.y, given.weight
        rows: NDArray[Any] = validated(
            self, X, dtype=[np.float64, np.float32], reset=reset, ensure_min_samples=least
        )
        weight = read_weights(sample_weight, rows, may_be_zero=in_batches and not reset)
        if weight is not None and not weight.any():
            return Read(rows, weight, None, ArraySource.checked(rows[:0]))
        kept = None if weight is None or weight.all() else weight > 0.0
        some, of_some = (rows, weight) if kept is None or weight is None else (rows[kept], weight[kept])
        unit_counts = in_batches or self._model().in_counts
        if of_some is not None and not unit_counts and (of_some == of_some[0]).all():
            of_some = None  # equal weights change nothing, and the loops without weights are faster
        if len(some) < least:
            raise ValueError(f"sample_weight must have at least {least} positive entries, got {len(some)}.")
        if reset:
            self._check_enough(len(some))
        if limited and not in_batches:  # a copy of the array would exceed the limit
            source = NpySource(rows, sample_weight=weight, allow_missing=allows_missing(self))
            return Read(rows, weight, kept, source)
        if given is not None and some is given.y and (of_some is None) == (given.weight is None):
            return Read(rows, weight, kept, given)  # its mean may be known
        return Read(rows, weight, kept, ArraySource(some, of_some, allow_missing=allows_missing(self)))

    def _check_enough(self, n: int, least: int = 0) -> None:
        """Raise ValueError for fewer rows than components, in scikit-learn's words."""
        if n < max(self.n_components, least):
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.n_components}, n_samples = {n}"
            )

    def _check_allowed(self, source: Source) -> None:
        """Raise ValueError for a source with missing cells if the estimator takes none."""
        if source.allow_missing and not allows_missing(self):
            raise ValueError("missing must be 'ignore' for rows with allow_missing=True, got 'error'.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_missing(self)
        return tags

    def _read_stored(self, X: Any, sample_weight: ArrayLike | None, *, reset: bool, least: int) -> Read:
        """Return stored rows as a source; they are not loaded."""
        source: StoredSource | UnitSource | TensorSource
        kept = None
        if isinstance(X, UnitSource):
            no_weights_beside(sample_weight)
            source = X
            self._check_allowed(source)
        elif is_tensor(X):
            source = TensorSource(X, sample_weight)
            if sample_weight is not None and source.n < len(X):
                kept = as_floats("sample_weight", sample_weight) > 0.0
        else:
            source = (
                units_of(X, sample_weight, allow_missing=allows_missing(self))
                if is_planned(X)
                else open_rows(X, sample_weight, allow_missing=allows_missing(self))
            )
            self._check_allowed(source)
        (d,) = source.tail
        check_columns(self, source, reset=reset)
        if reset:
            self._check_enough(rows_of(source), least)
        return Read(np.empty((0, d), dtype=source.dtype), None, kept, source)
