"""``swiftem.GaussianMixture``: scikit-learn's estimator, fitted by any method of the paper.

It derives from scikit-learn's class for its conventions: validation, messages, tags, cloning, metadata, and
the private methods that scikit-learn's own tests call. All computations are replaced.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.mixture import GaussianMixture as TheirMixture  # a name that swiftem.accel leaves alone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import as_floats, check_int, check_real, shown, torch_of
from swiftem.core.files import in_words
from swiftem.core.types import Array, Index, Theta
from swiftem.data.as_source import DEVICE_KERNELS, kernels_of
from swiftem.fit.model_file import ModelContent
from swiftem.fit.parameters import ARRAY, NONE, NOT_NEGATIVE, Allowed, instance_of, one_of
from swiftem.methods import Method
from swiftem.mixture.covariance import COVARIANCES, GaussianTheta
from swiftem.mixture.estimator import MixtureEstimator
from swiftem.mixture.file import FITTED, read_gaussians
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.prior import NormalInverseWishart
from swiftem.mixture.tables.profile import chosen_places, component_table, spread_text
from swiftem.show.numbers import counted
from swiftem.show.table import Table

HOW = ("n_features_in_", "feature_names_in_", "converged_", "n_iter_", "lower_bound_", "lower_bounds_")
"""Further attributes of scikit-learn's class."""

WITH_MATRICES = ("full", "tied")
"""Kinds whose covariances are matrices."""

COPIES = 32
"""Arrays of the size of the statistics in memory at a time, for many columns (measured)."""


@dataclass(eq=False, repr=False)
class GaussianMixture(MixtureEstimator, TheirMixture):  # type: ignore[misc]
    """Gaussian mixture with the interface of :class:`sklearn.mixture.GaussianMixture`, and faster.

    All parameters and attributes of scikit-learn's class have the same meaning: only the import changes.
    There are also sample weights, stochastic methods, ``partial_fit``, priors, and a certificate of
    convergence.

    Parameters
    ----------
    n_components : int
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Kind of the covariances.
    tol : float
        A fit has converged if em gains less than this in the mean log-likelihood per pass, and all further
        passes together would gain less than eight times this, by extrapolation: see
        :class:`swiftem.fit.stopping.Remaining`. Stochastic methods end with passes
        of em that decide it.
    reg_covar : float
        Added to the variances in the M-step.
    max_iter : int
        Maximum number of passes over the data: E-step evaluations divided by n. Evaluations of the objective
        and the final pass that certifies convergence are not counted.
    n_init : int
        With ``init_params="race"`` each one beyond the first adds candidates to the race. Otherwise the
        number of fits; the best is kept. They run in parallel threads.
    init_params : {"race", "kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts. "race": from the best of several candidates of different kinds, compared on a sample
        (:mod:`swiftem.mixture.starts.race`); with fewer than 1,000 rows from the best of eight
        k-means, compared on all rows (:mod:`swiftem.mixture.starts.race`). It is "kmeans" for
        fewer than 10 rows per component, for few rows with a prior or "tied" covariances, or if a part of
        the start is given. The other names are scikit-learn's; "kmeans" uses
        mini-batches from 100,000 rows. A callable gets (X, n_components, random_state), with the rows of
        positive weight, and returns labels (n,) or responsibilities (n, M); an array holds one of these.
    weights_init, means_init, precisions_init : array-like, optional
        Initial values, as in scikit-learn.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` starts from the last result; ``partial_fit`` always does.
    verbose, verbose_interval : int
        Whether to show progress: a bar in a terminal, scikit-learn's lines otherwise.
    method : str or Method
        How to fit: a name in ``swiftem.methods.METHODS``, "em" or "fiem" for example. "auto" is
        em for small n, or after a race of starts, and sem-vr otherwise; see
        :mod:`swiftem.mixture.resolve` for the rule. Or a method object: fields of it that are left out are
        chosen for the data, as for its name. ``methods.FastIncrementalEM(batch_size=256)`` is fiem with
        batches of 256 rows, ``methods.Accelerated(methods.EM(), "squarem")`` em with fewer passes.
    missing : {"error", "ignore"}
        Missing cells (NaN, None, masked, pandas' NA). "error", as in scikit-learn: they raise ValueError.
        "ignore": they are missing at random; the likelihood is of the observed cells, and all methods of
        this class take them. With full and tied covariances iem and fiem then remember the statistics of
        each row.
    device : str
        Where passes are computed: "cpu", "cuda" or "cuda:1"; "auto" is the GPU if X is an array there, else
        the CPU. float32 rows are fastest on a GPU. See ``docs/gpu.md``.
    prior : NormalInverseWishart, optional
        Prior on weights, means and covariances: the fit is then the maximum a posteriori.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_, converged_, n_iter_, lower_bound_, \
lower_bounds_, n_features_in_, feature_names_in_
        As in scikit-learn; ``n_iter_`` counts passes. With a prior, the bounds are minus the penalised
        objective. For em they are the values before each M-step. For other methods ``lower_bounds_`` are
        evaluated on a sample from 20,000 rows, and ``lower_bound_`` on all rows with the final model.
    method_ : str
        The method that was used.
    history_ : History
        Passes, seconds, objective, step size and rejected steps at each evaluation; ``history_.moves`` is the
        number of split-and-merge moves accepted before.
    stationarity_ : float
        Relative distance of the statistics from the next E-step's, without a unit: 0 at a stationary
        point. Computed by one pass at the end of the fit.
    log_likelihood_ : float
        Mean log-likelihood of the rows, without a prior, from the same pass: the value of ``score`` for them,
        up to rounding. NaN if the fit was interrupted.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.array([[0.9, 2], [1, 4], [1.1, 0], [9.9, 2], [10, 4], [10.1, 0]])
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

    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **MixtureEstimator._allowed,
        "covariance_type": [one_of(["full", "tied", "diag", "spherical"])],
        "reg_covar": [NOT_NEGATIVE],
        "means_init": [NONE, ARRAY],
        "precisions_init": [NONE, ARRAY],
        "prior": [NONE, instance_of(NormalInverseWishart)],
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: str = "full"
    tol: float = 1e-3
    reg_covar: float = 1e-6
    max_iter: int = 100
    n_init: int = 1
    init_params: Any = "race"
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    precisions_init: ArrayLike | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    verbose_interval: int = 10
    method: str | Method = "auto"
    missing: str = "error"
    device: str = "auto"
    prior: NormalInverseWishart | None = None

    def __sklearn_tags__(self) -> Any:
        # Not as in scikit-learn's class, which compares init_params with names: here it may be an array.
        tags = super(TheirMixture, self).__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_missing
        return tags

    def _check_parameters(self, X: Any, xp: Any = np) -> None:
        self._given_start(None, X.shape[1])
        self._check_memory(X.shape[1])

    def _check_memory(self, d: int) -> None:
        """Raise ValueError if matrices of d columns would not fit into the memory of the machine."""
        if self.covariance_type not in ("full", "tied") or not hasattr(os, "sysconf"):
            return
        needed = 8 * COPIES * self._model().size(d)
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > there:
            raise ValueError(
                f"covariance_type must be 'diag' or 'spherical' for {d} columns, got "
                f"{self.covariance_type!r}: a fit with its matrices needs about {in_words(needed)}, and this "
                f"machine has {in_words(there)}."
            )

    def _model(self) -> GaussianMixtureModel:
        return GaussianMixtureModel(
            self.n_components,
            covariance=self.covariance_type,
            reg_covar=check_real("reg_covar", self.reg_covar, minimum=0.0),
            prior=self.prior,
            missing=self.missing,
        )

    def _given_start(self, model: Any, d: int) -> dict[str, Any]:
        given: dict[str, Array] = {}
        if self.weights_init is not None:
            given["weights"] = read_weights_init(self.weights_init, self.n_components)
        if self.means_init is not None:
            given["means"] = read_start("means", self.means_init, (self.n_components, d))
        if self.precisions_init is not None:
            kind = COVARIANCES[self.covariance_type]
            shape = kind.shape(self.n_components, d)
            given["precisions_cholesky"] = read_precisions_init(self.precisions_init, kind.name, shape)
            given["covariances"] = covariances_of(given["precisions_cholesky"], kind.name)
        return given

    def _middle(self) -> Array:
        middle: Array = np.asarray(self.weights_, dtype=float) @ np.asarray(self.means_, dtype=float)
        return middle

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(getattr(self, name)) for name in FITTED}

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        self._set_arrays(*read_gaussians(content, self._model(), d))
        self._check_parameters(np.empty((0, d)), xp=np)
        if self.prior is not None and self.prior.is_on_components:
            self.prior.bind(np.zeros(d), has_matrices=False)

    def _set_theta(self, theta: Theta, dtype: Any, model: Any) -> None:
        with np.errstate(over="ignore", under="ignore"):
            parts = type(theta)(*(np.asarray(part, dtype=dtype) for part in theta))
            precisions = np.square(parts.precisions_cholesky)
        if not all(np.isfinite(part).all() for part in (*parts, precisions)) or not precisions.any():
            raise ValueError(
                f"X must have a scale at which {np.dtype(dtype).name} can hold covariances and their "
                "inverses: scale the columns, or pass float64."
            )
        self._set_arrays(*parts)

    def _set_arrays(self, weights: Array, means: Array, covariances: Array, factors: Array) -> None:
        """Set the fitted attributes."""
        self.weights_, self.means_, self.covariances_ = weights, means, covariances
        self.precisions_cholesky_ = factors
        self.precisions_ = precisions_of(factors, self.covariance_type)

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        covariance_type: str = "full",
        **parameters: Any,
    ) -> Self:
        """Return a fitted mixture with these parameters.

        Parameters
        ----------
        weights : array-like, shape (M,)
            Mixing weights, summing to 1.
        means : array-like, shape (M, d)
            Means.
        covariances : array-like
            Their shape depends on ``covariance_type``.
        covariance_type : str
            Kind of the covariances.
        **parameters
            Other parameters of the estimator.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([0.5, 0.5], [[0.0], [4.0]], [[[1.0]], [[1.0]]])
        >>> mixture.predict([[1.0], [3.0]])
        array([0, 1])
        """
        n_components = len(as_floats("weights", weights, shape=(None,)))
        model = GaussianMixtureModel(n_components, covariance=covariance_type)
        theta = model.theta(weights=weights, means=means, covariances=covariances)
        made = cls(n_components, covariance_type=covariance_type, **parameters)
        made._become(theta, theta.means.shape[1], made._model())
        return made

    def _theta(self, d: int | None = None) -> GaussianTheta:
        """Return the current parameters for ``d`` columns: a user may have set them."""
        weights, means, factors = (
            np.asarray(getattr(self, name), dtype=np.float64)
            for name in ("weights_", "means_", "precisions_cholesky_")
        )
        kind = COVARIANCES[self.covariance_type]
        if hasattr(self, "covariances_"):
            covariances = np.asarray(self.covariances_, dtype=np.float64)
        else:
            covariances = covariances_of(factors, kind.name)
        d = means.shape[-1] if d is None else d
        shape = kind.shape(self.n_components, d)
        if (weights.shape, means.shape) != ((self.n_components,), (self.n_components, d)) or (
            {covariances.shape, factors.shape} != {shape}
        ):
            raise ValueError(
                f"The fitted parameters must be of {self.n_components} components of covariance_type="
                f"{self.covariance_type!r} and {d} columns, but are not: fit again, without warm_start."
            )
        return GaussianTheta(weights, means, covariances, factors)

    def attributes_of(self, theta: Theta) -> dict[str, NDArray[Any]]:
        """Return the attributes for ``theta``, for callbacks."""
        made = type(self)(**self.get_params(deep=False))
        made._set_arrays(*theta)
        return {name: getattr(made, name) for name in (*FITTED, "precisions_")}

    def to_sklearn(self) -> Any:
        """Return scikit-learn's mixture with the same parameters.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([1.0], [[0.0]], [[[1.0]]])
        >>> type(mixture.to_sklearn()).__module__
        'sklearn.mixture._gaussian_mixture'
        """
        check_is_fitted(self)
        theirs = TheirMixture()
        known = theirs.get_params()
        values = {name: value for name, value in self.get_params(deep=False).items() if name in known}
        if not isinstance(values["init_params"], str) or values["init_params"] == "race":
            values["init_params"] = "kmeans"
        theirs.set_params(**values)
        for name in (*FITTED, "precisions_", *HOW):
            if hasattr(self, name):
                setattr(theirs, name, deepcopy(getattr(self, name)))
        return theirs

    def full_covariances(self) -> Array:
        """Return the covariances as matrices, shape (M, d, d), for all covariance types."""
        check_is_fitted(self)
        covariances = np.asarray(self.covariances_, dtype=np.float64)
        return full_covariances(covariances, self.covariance_type, *self.means_.shape)

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return random rows (n_samples, d) and the components (n_samples,) that they come from.

        If ``device`` is a GPU both are tensors there, drawn there: other rows than the CPU's.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        """
        check_is_fitted(self)
        check_int("n_samples", n_samples, minimum=-1)  # scikit-learn raises an error below 1
        kernels = kernels_of(self.device)
        if kernels is not None and n_samples > 0:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            return sample_on_device(  # type: ignore[no-any-return]
                self._theta(), self.covariance_type, n_samples, kernels, seed, self.means_.dtype
            )
        rows, labels = super().sample(n_samples)
        return rows, labels

    def marginal(self, columns: Sequence[int] | Sequence[str]) -> Self:
        """Return the marginal mixture of some columns; the covariance type is the same.

        Parameters
        ----------
        columns : sequence of int or of str
            The columns, in the order of the result: numbers, or names if the fit had names.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([1.0], [[1.0, 2.0]], [[[1.0, 0.5], [0.5, 2.0]]])
        >>> mixture.marginal([1]).covariances_
        array([[[2.]]])
        """
        index = self._columns(columns)
        theta = self._theta()
        covariances = block_of(theta.covariances, self.covariance_type, index)
        return self._like(index, theta.weights, theta.means[:, index], covariances)

    def condition(self, columns: Sequence[int] | Sequence[str], values: ArrayLike) -> Self:
        r"""Return the mixture of the other columns, given values of some; the covariance type is the same.

        Weights become :math:`\omega_m N(x; \mu_m^a, \Sigma_m^{aa})`, normalised; means and covariances come
        from the regression of the other columns on the given ones.

        Parameters
        ----------
        columns : sequence of int or of str
            The given columns: numbers, or names if the fit had names.
        values : array-like, shape (len(columns),)
            Their values.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
        >>> given = mixture.condition([0], [2.0])
        >>> given.means_, given.covariances_
        (array([[1.]]), array([[[0.75]]]))
        """
        given = self._columns(columns)
        rest = np.setdiff1d(np.arange(self.means_.shape[1]), given)
        if not len(rest):
            raise ValueError("columns must leave at least one column, got all of them.")
        x = as_floats("values", values, shape=(len(given),))
        return self._like(rest, *conditional(self._theta(), self.covariance_type, given, x, rest))

    def _like(self, index: Index, weights: Array, means: Array, covariances: Array) -> Self:
        """Return a mixture of the columns ``index``, with the same covariance type, precision and names."""
        made = type(self).from_parameters(
            weights, means, covariances, covariance_type=self.covariance_type, random_state=self.random_state
        )
        made._set_arrays(*(np.asarray(part, dtype=self.means_.dtype) for part in made._theta()))
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_[index]
        return made

    def _columns(self, columns: Sequence[Any]) -> Index:
        index = np.array(chosen_places(columns, self._names()), dtype=np.intp)
        if not len(index) or len(np.unique(index)) != len(index):
            raise ValueError(f"columns must be different columns, at least one, got {shown(columns)}.")
        return index

    def summary(self) -> Table:
        """Return a table to print: mean ± standard deviation of each column by component.

        Examples
        --------
        >>> import swiftem
        >>> given = [1.0], [[2.0, -1.0]], [[[4.0, 0.0], [0.0, 1.0]]]
        >>> swiftem.GaussianMixture.from_parameters(*given).summary()
        Mixture of 1 component, Gaussian with full covariances
        <BLANKLINE>
        column    component 0
        weight          100 %
        column 0        2 ± 2
        column 1       -1 ± 1
        """
        check_is_fitted(self)
        kind = COVARIANCES[self.covariance_type]
        variances = kind.variances(np.asarray(self.covariances_, dtype=np.float64))
        variances = variances[:, None] if kind.name == "spherical" else variances
        deviations = np.sqrt(np.broadcast_to(variances, self.means_.shape))
        rows = [
            (name, *map(spread_text, means.tolist(), spreads.tolist()))
            for name, means, spreads in zip(self._names(), self.means_.T, deviations.T, strict=True)
        ]
        count = counted(self.n_components, "component")
        title = f"Mixture of {count}, Gaussian with {self.covariance_type} covariances"
        return component_table(title, ("column",), self.weights_, rows)

    def plot(self, X: ArrayLike | None = None, axes: Any = None) -> Any:
        """Plot the components of a mixture of two columns as ellipses, over ``X``; return the axes."""
        from swiftem.mixture.plots import draw_mixture

        if self.means_.shape[1] != 2:
            raise ValueError(
                f"plot needs a mixture of two columns, got {self.means_.shape[1]}: "
                "call marginal([i, j]) first."
            )
        return draw_mixture(self.weights_, self.means_, self.full_covariances(), self._names(), X, axes)


def covariances_of(factors: Array, kind: str) -> Array:
    """Return covariances from ``precisions_cholesky``."""
    if kind not in WITH_MATRICES:
        return np.asarray(1.0 / factors**2)
    upper = np.linalg.inv(factors)
    return np.asarray(np.swapaxes(upper, -1, -2) @ upper)


def precisions_of(factors: Array, kind: str) -> Array:
    """Return precisions from ``precisions_cholesky``."""
    if kind not in WITH_MATRICES:
        return np.asarray(factors**2)
    matrices = factors.reshape(-1, *factors.shape[-2:])
    return np.array([one @ one.T for one in matrices]).reshape(factors.shape)


def full_covariances(covariances: Array, kind: str, n_components: int, d: int) -> Array:
    """Return covariances of any kind as matrices (M, d, d)."""
    if kind in WITH_MATRICES:
        return np.broadcast_to(covariances, (n_components, d, d)).copy()
    variances = covariances if kind == "diag" else np.repeat(covariances[:, None], d, axis=1)
    return np.asarray(variances[:, :, None] * np.eye(d))


def block_of(covariances: Array, kind: str, index: Index) -> Array:
    """Return the covariances of some columns, of the same kind."""
    if kind in WITH_MATRICES:
        return covariances[..., index[:, None], index]
    return covariances[:, index] if kind == "diag" else covariances.copy()


def conditional(
    theta: GaussianTheta, kind: str, given: Index, x: Array, rest: Index
) -> tuple[Array, Array, Array]:
    """Return weights, means and covariances of the columns ``rest``, given values of the others."""
    n_components, d = theta.means.shape
    sigma = full_covariances(theta.covariances, kind, n_components, d)
    inner = np.linalg.cholesky(sigma[:, given[:, None], given])
    difference = np.linalg.solve(inner, (x - theta.means[:, given])[:, :, None])[:, :, 0]
    cross = np.linalg.solve(inner, sigma[:, given[:, None], rest])
    with np.errstate(divide="ignore"):
        log_weight = np.log(theta.weights) - np.log(np.einsum("mjj->mj", inner)).sum(axis=1)
    log_weight -= 0.5 * (difference**2).sum(axis=1)
    weights = np.exp(log_weight - log_weight.max())
    covariances = block_of(theta.covariances, kind, rest)
    if kind == "full":
        covariances -= np.einsum("mgr,mgs->mrs", cross, cross)
    elif kind == "tied":
        covariances -= cross[0].T @ cross[0]
    means = theta.means[:, rest] + np.einsum("mgr,mg->mr", cross, difference)
    return weights / weights.sum(), means, covariances


def read_start(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return initial values of this shape; the errors of a start have scikit-learn's words."""
    given = as_floats(name, values)
    if given.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {given.shape}.")
    return given


def read_weights_init(weights: ArrayLike, n_components: int) -> Array:
    """Return initial weights."""
    given = read_start("weights", weights, (n_components,))
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ValueError(
            f"The parameter 'weights' should be in the range [0, 1], but got max value {given.min():.5f}, "
            f"min value {given.max():.5f}"
        )
    if abs(given.sum() - 1.0) > (1e-6 if getattr(weights, "dtype", None) == np.float32 else 1e-8):
        raise ValueError(
            f"The parameter 'weights' should be normalized, but got sum(weights) = {given.sum():.5f}"
        )
    return given


def read_precisions_init(precisions: ArrayLike, kind: str, shape: tuple[int, ...]) -> Array:
    """Return ``precisions_cholesky`` of initial precisions."""
    given = read_start(f"{kind} precision", precisions, shape)
    if kind not in WITH_MATRICES:
        if not (given > 0.0).all():
            raise ValueError(f"'{kind} precision' should be positive")
        return np.sqrt(given)
    is_symmetric = np.allclose(given, np.swapaxes(given, -1, -2))
    if not is_symmetric or not (np.linalg.eigvalsh(given) > 0.0).all():
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
    # With rows and columns in reverse order the lower factor becomes the upper one.
    return np.asarray(np.linalg.cholesky(given[..., ::-1, ::-1])[..., ::-1, ::-1], dtype=np.float64)


def sample_on_device(theta: Any, kind: str, count: int, kernels: str, seed: int, dtype: Any) -> Any:
    """Return random rows (count, d) of a Gaussian mixture and their components (count,), tensors.

    Parameters
    ----------
    theta : GaussianTheta
        The parameters.
    kind : str
        The kind of covariance.
    count : int
        Number of rows.
    kernels : str
        The device, as given by :func:`swiftem.data.as_source.kernels_of`.
    seed : int
        Of the draws, which differ from the CPU's.
    dtype : dtype
        Precision of the rows.
    """
    torch, device = torch_of("a sample"), kernels.removeprefix(DEVICE_KERNELS)
    rng = torch.Generator(device=device).manual_seed(seed)
    weights, means, factors = (
        torch.from_numpy(np.array(part, dtype=np.float64, order="C")).to(device)  # factors may be flipped
        for part in (theta.weights, theta.means, theta.precisions_cholesky)
    )
    labels = torch.multinomial(weights, count, replacement=True, generator=rng).sort().values
    rows = torch.randn((count, means.shape[1]), dtype=torch.float64, device=device, generator=rng)
    if kind == "full":  # U z = x
        for m in range(len(means)):
            here = labels == m
            rows[here] = torch.linalg.solve_triangular(factors[m], rows[here], upper=True, left=False)
    elif kind == "tied":
        rows = torch.linalg.solve_triangular(factors, rows, upper=True, left=False)
    else:
        rows = rows / factors[labels].reshape(count, -1)
    return (rows + means[labels]).to(getattr(torch, np.dtype(dtype).name)), labels
