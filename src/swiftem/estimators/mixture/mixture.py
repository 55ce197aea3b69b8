"""``swiftem.Mixture``: mixtures of counts, of binary answers, or of a user-defined family."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem._checks import as_floats, check_int, check_simplex, shown
from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.estimators.mixture.base import MixtureBase
from swiftem.estimators.mixture.estimator import MixtureEstimator
from swiftem.estimators.model_content import ModelContent
from swiftem.estimators.sklearn_parts import Interval
from swiftem.methods import Method
from swiftem.models.families import Family, read_family
from swiftem.models.mixture import MixtureModel, MixtureTheta

__all__ = ["Mixture"]


class Mixture(MixtureEstimator, DensityMixin):  # type: ignore[misc]
    """Mixture of one family of components, with the interface of :class:`swiftem.GaussianMixture`.

    Parameters
    ----------
    n_components : int
        Number of components.
    family : {"bernoulli", "poisson"} or Family
        Distribution of the components: a name, or a family object (see :mod:`swiftem.models.families`).
    tol : float
        A fit converged if a pass of em gains less in the mean log-likelihood, and all further passes together
        less than eight times ``tol``: see :class:`swiftem.GaussianMixture`.
    smoothing : float
        Size of a conjugate prior, in rows per component; its features are the mean of all data. Zero gives
        the maximum likelihood estimate.
    max_iter : int
        Maximum number of passes over the data: E-step evaluations divided by n.
    n_init : int
        Candidates in the race, or fits, as in :class:`swiftem.GaussianMixture`.
    init_params : {"race", "kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts, as in :class:`swiftem.GaussianMixture`.
    weights_init : array-like, shape (M,), optional
        Weights to start from.
    params_init : dict of array-like, optional
        Parameters to start from, by name.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` starts from the last result; ``partial_fit`` always does.
    verbose, verbose_interval : int
        Whether to show progress: a bar in a terminal, lines otherwise.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem", "spider"} or Method
        How to fit, as in :class:`swiftem.GaussianMixture`.
    batch_size : int or "auto"
        Rows that a stochastic method draws per iteration.
    step_size : float, callable or "auto"
        Step γ of a stochastic method, or a schedule of :mod:`swiftem.schedules`.
    concentration : float, optional
        α ≥ 1 of a symmetric Dirichlet prior on the weights.
    memory_limit, scratch, checkpoint, checkpoint_every, resume
        As in :class:`swiftem.GaussianMixture`.

    Attributes
    ----------
    weights_ : ndarray, shape (M,)
        Mixing weights.
    params_ : dict of ndarray
        Parameters of the components by name: ``rates`` (M, d) for "poisson", ``probabilities`` (M, d) for
        "bernoulli".
    family_ : Family
        The family.
    converged_, n_iter_, lower_bound_, lower_bounds_, method_, history_, stationarity_, log_likelihood_, \
n_features_in_, feature_names_in_
        As in :class:`swiftem.GaussianMixture`; the bounds are minus the penalised objective.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.array([[0, 7], [1, 9], [0, 8], [6, 1], [5, 0], [7, 2]])
    >>> mixture = swiftem.Mixture(2, family="poisson", random_state=0).fit(X)
    >>> few, many = np.argsort(mixture.params_["rates"][:, 0])
    >>> mixture.params_["rates"][[few, many]].round(1)
    array([[0.3, 8. ],
           [6. , 1. ]])
    >>> bool((mixture.predict([[0, 5], [9, 1]]) == [few, many]).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MixtureBase._shared_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "family": [str, Family],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "smoothing": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "weights_init": ["array-like", None],
        "params_init": [dict, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        family: str | Family = "poisson",
        tol: float = 1e-3,
        smoothing: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: Any = "race",
        weights_init: ArrayLike | None = None,
        params_init: Mapping[str, ArrayLike] | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        method: str | Method = "auto",
        batch_size: int | str = "auto",
        step_size: Any = "auto",
        concentration: float | None = None,
        memory_limit: int | str | None = None,
        scratch: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool | Literal["auto"] = False,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.tol = tol
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.params_init = params_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.method = method
        self.batch_size = batch_size
        self.step_size = step_size
        self.concentration = concentration
        self.memory_limit = memory_limit
        self.scratch = scratch
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume

    @classmethod
    def from_parameters(
        cls, weights: ArrayLike, params: Mapping[str, ArrayLike], *, family: str | Family, **parameters: Any
    ) -> Self:
        """Return a fitted mixture with these parameters.

        Parameters
        ----------
        weights : array-like, shape (M,)
            Mixing weights, summing to 1.
        params : dict of array-like
            Parameters of the components, by name.
        family : str or Family
            The family.
        **parameters
            Other parameters of the estimator.

        Examples
        --------
        >>> import swiftem
        >>> given = {"rates": [[1.0, 9.0], [9.0, 1.0]]}
        >>> swiftem.Mixture.from_parameters([0.5, 0.5], given, family="poisson").predict([[0, 3]])
        array([0])
        """
        made = cls(len(as_floats("weights", weights, shape=(None,))), family=family, **parameters)
        theta = made._model().theta(weights=weights, **params)
        made._become(theta, np.shape(next(iter(theta.params.values())))[-1])
        return made

    def _model(self) -> MixtureModel:
        return MixtureModel(
            self.n_components, self.family, smoothing=self.smoothing, concentration=self.concentration
        )

    def _check_parameters(self, X: Any, xp: Any = np) -> None:
        self._given_start(X.shape[1])

    def _given_start(self, d: int) -> dict[str, Any]:
        given: dict[str, Any] = {}
        if self.weights_init is not None:
            given["weights"] = as_floats("weights_init", self.weights_init, shape=(self.n_components,)).copy()
            check_simplex("weights_init", given["weights"])
        if self.params_init is not None:
            model = self._model()
            names = set(model.kind.shapes(1, 1))
            if set(self.params_init) != names:
                raise ValueError(
                    f"params_init must have {', '.join(sorted(names))}, got {shown(list(self.params_init))}."
                )
            even = np.full(self.n_components, 1.0 / self.n_components)
            given["params"] = model.check_theta(even, self.params_init, d, "params_init: ").params
        return given

    def _middle(self) -> Array:
        return np.zeros(self._model().width(self.n_features_in_))

    def _theta(self, d: int | None = None) -> MixtureTheta:
        model, d = self._model(), self.n_features_in_ if d is None else d
        try:
            params = {name: np.asarray(part, dtype=np.float64) for name, part in self.params_.items()}
            return model.check_theta(np.asarray(self.weights_, dtype=np.float64), params, d, "")
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"The fitted parameters must be of {self.n_components} components of family "
                f"{model.kind.name!r} and {d} columns, but are not: fit again, without warm_start ({error})."
            ) from None

    def _set_theta(self, theta: Theta, dtype: Any) -> None:
        with np.errstate(over="ignore", under="ignore"):
            weights = np.asarray(theta.weights, dtype=dtype)
            params = {name: np.asarray(part, dtype=dtype) for name, part in theta.params.items()}
        if not all(np.isfinite(part).all() for part in (weights, *params.values())):
            raise ValueError(
                f"X must have a scale at which {np.dtype(dtype).name} can hold the parameters: scale the "
                "columns, or pass float64."
            )
        self.weights_, self.params_, self.family_ = weights, params, read_family(self.family)

    def attributes_of(self, theta: Theta) -> dict[str, Any]:
        """Return the attributes for ``theta``, for callbacks."""
        return {"weights_": theta.weights, "params_": theta.params}

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[Any]]:
        """Return random rows (n_samples, d) and the components (n_samples,) that they come from.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        """
        check_is_fitted(self)
        check_int("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        theta = self._theta()
        labels = np.sort(rng.choice(self.n_components, size=n_samples, p=theta.weights / theta.weights.sum()))
        bound = self._bind(ArraySource(np.zeros((1, self.n_features_in_))))
        return bound.draw(theta, labels, rng), labels

    def plot_convergence(self, axes: Any = None) -> Any:
        """Plot the objective against passes, and return the matplotlib axes."""
        from swiftem.report.mixture import draw_history

        return draw_history(self.history_, axes)

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights_": self.weights_} | {f"params_{name}": part for name, part in self.params_.items()}

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        model = self._model()
        weights = content.array("weights_", (self.n_components,), single=True)
        params = {
            name: content.array(f"params_{name}", shape, single=True)
            for name, shape in model.kind.shapes(self.n_components, d).items()
        }
        check_simplex("weights_", weights)
        model.kind.check_params({name: part.astype(np.float64) for name, part in params.items()})
        self.weights_, self.params_, self.family_ = weights, params, model.kind
        self._given_start(d)
