"""``swiftem.GaussianMixture``: scikit-learn's estimator, fitted by any method of the paper.

It derives from scikit-learn's class for its conventions: validation, messages, tags, cloning, metadata, and
the private methods that scikit-learn's own tests call. All computations are replaced.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import mixture

from swiftem.core.checks import as_floats, check_real
from swiftem.core.files import in_words
from swiftem.core.types import Array, Theta
from swiftem.fit.model_content import ModelContent
from swiftem.fit.parameters import ARRAY, NONE, NOT_NEGATIVE, Allowed, instance_of, one_of
from swiftem.fit.validated import allows_missing
from swiftem.methods import Method
from swiftem.mixture.base import MixtureBase
from swiftem.mixture.content import FITTED, read_gaussians
from swiftem.mixture.covariance import COVARIANCES
from swiftem.mixture.gaussian_queries import GaussianQueries, covariances_of
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.prior import NormalInverseWishart

__all__ = ["GaussianMixture"]

COPIES = 32
"""Arrays of the size of the statistics in memory at a time, for many columns (measured)."""


@dataclass(eq=False, repr=False)
class GaussianMixture(GaussianQueries, mixture.GaussianMixture):  # type: ignore[misc]
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
        k-means, compared on all rows (:mod:`swiftem.mixture.starts.few`). It is "kmeans" for
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
        :mod:`swiftem.mixture.plan` for the rule. Or a method object: fields of it that are left out are
        chosen for the data, as for its name. ``methods.FastIncrementalEM(batch_size=256)`` is fiem with
        batches of 256 rows, ``methods.Accelerated(methods.EM(), "squarem")`` em with fewer passes.
    missing : {"error", "ignore"}
        Missing cells (NaN, None, masked, pandas' NA). "error", as in scikit-learn: they raise ValueError.
        "ignore": they are missing at random; the likelihood is that of the observed cells, and all methods of
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
        Relative distance of the statistics from those of one more E-step, without a unit: 0 at a stationary
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
        **MixtureBase._allowed,
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
        # Not that of scikit-learn's class, which compares init_params with names: here it may be an array.
        tags = super(mixture.GaussianMixture, self).__sklearn_tags__()
        tags.input_tags.allow_nan = allows_missing(self)
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
            given["means"] = _as_start("means", self.means_init, (self.n_components, d))
        if self.precisions_init is not None:
            kind = COVARIANCES[self.covariance_type]
            shape = kind.shape(self.n_components, d)
            given["precisions_cholesky"] = factors_of_precisions(self.precisions_init, kind.name, shape)
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


def read_weights_init(weights: ArrayLike, n_components: int) -> Array:
    """Return the weights of a start; errors have scikit-learn's words."""
    given = _as_start("weights", weights, (n_components,))
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


def factors_of_precisions(precisions: ArrayLike, kind: str, shape: tuple[int, ...]) -> Array:
    """Return ``precisions_cholesky`` of the precisions of a start; errors have scikit-learn's words."""
    given = _as_start(f"{kind} precision", precisions, shape)
    if kind in ("diag", "spherical"):
        if not (given > 0.0).all():
            raise ValueError(f"'{kind} precision' should be positive")
        return np.sqrt(given)
    is_symmetric = np.allclose(given, np.swapaxes(given, -1, -2))
    if not is_symmetric or not (np.linalg.eigvalsh(given) > 0.0).all():
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
    # With rows and columns in reverse order the lower factor becomes the upper one.
    return np.asarray(np.linalg.cholesky(given[..., ::-1, ::-1])[..., ::-1, ::-1], dtype=np.float64)


def _as_start(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    given = as_floats(name, values)
    if given.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {given.shape}")
    return given
