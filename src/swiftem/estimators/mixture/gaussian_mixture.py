"""``swiftem.GaussianMixture``: scikit-learn's estimator, fitted by any method of the paper.

It derives from scikit-learn's class for its conventions: validation, messages, tags, cloning, metadata, and
private methods that scikit-learn's own tests call, which run on it. Everything that computes is replaced.
"""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import mixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky_from_precisions
from sklearn.utils._param_validation import Interval, StrOptions

from swiftem._checks import check_real
from swiftem._typing import Array, Theta
from swiftem.estimators.mixture.base import MixtureBase
from swiftem.estimators.mixture.content import FITTED, read_gaussians
from swiftem.estimators.mixture.gaussian_queries import GaussianQueries, covariances_of
from swiftem.estimators.model_content import ModelContent
from swiftem.methods import Method
from swiftem.models import GaussianMixtureModel, NormalInverseWishart

__all__ = ["GaussianMixture"]


class GaussianMixture(GaussianQueries, mixture.GaussianMixture):  # type: ignore[misc]
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
        A fit converged if a pass of em gains less in the mean log-likelihood, and all further passes
        together less than eight times ``tol``, by extrapolation: see
        :mod:`swiftem.estimators.mixture.optima.remaining`. Stochastic methods end with passes of em that
        decide it.
    reg_covar : float
        Added to the variances in the M-step.
    max_iter : int
        Most passes over the data: E-step evaluations divided by n. Looks at the objective and the pass that
        certifies the end are not counted.
    n_init : int
        With ``init_params="race"`` each one beyond the first adds candidates to the race. Otherwise fits; the
        best is kept. They run in parallel threads.
    init_params : {"race", "kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts. "race": from the best of several candidates of different kinds, compared on a sample
        (:mod:`swiftem.estimators.mixture.optima.race`); with fewer than 1,000 rows, or 10 per component, or
        if a part of the start is given, it is "kmeans". The other names are scikit-learn's; "kmeans" is by
        mini-batches from 100,000 rows on. A callable is given (X, n_components, random_state), with the rows
        that have weight, and returns labels (n,) or responsibilities (n, M); an array holds one of these.
    weights_init, means_init, precisions_init : array-like, optional
        Given starting values, as in scikit-learn.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` begins where the last one ended; ``partial_fit`` always does.
    verbose, verbose_interval : int
        Whether to show progress: a bar in a terminal, scikit-learn's lines elsewhere.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem", "spider"} or Method
        How to fit. "auto" is em where n is small and sem-vr where it is large; see
        :mod:`swiftem.estimators.mixture.plan` for the rule. A method of :mod:`swiftem.methods`, or one of
        your own, has its batch and its step itself.
    batch_size : int or "auto"
        Rows that a stochastic method draws an iteration.
    step_size : float, callable or "auto"
        Step γ of a stochastic method, or a schedule of :mod:`swiftem.schedules`.
    moves : int or "auto"
        Split-and-merge moves that a race may accept at its end, on the sample
        (:mod:`swiftem.estimators.mixture.optima.moves`): by default 8; 0 is none. They are counted in
        ``history_.moves``.
    dither : {"auto"} or None
        "auto" adds uniform noise of one unit to the columns of X that are multiples of a unit, such as
        integers: a component that sits on one value of such a column gains any likelihood. The noise is the
        same in every fit. For arrays alone.
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
        Passes, seconds, objective, step and rejected steps, look by look; ``history_.moves`` is how many
        split-and-merge moves were accepted before.
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
        **MixtureBase._shared_constraints,
        "moves": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "dither": [None, StrOptions({"auto"})],
        "prior": [None, NormalInverseWishart],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: Any = "race",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        method: str | Method = "auto",
        batch_size: int | str = "auto",
        step_size: Any = "auto",
        moves: int | str = "auto",
        dither: str | None = None,
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
        self.moves = moves
        self.dither = dither
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

    _check_parameters = mixture.GaussianMixture._check_parameters
    _set_parameters = mixture.GaussianMixture._set_parameters

    def _model(self) -> GaussianMixtureModel:
        return GaussianMixtureModel(
            self.n_components, covariance=self.covariance_type,
            reg_covar=check_real("reg_covar", self.reg_covar, minimum=0.0),
            concentration=self.concentration, prior=self.prior,
        )  # fmt: skip

    def _given_start(self, d: int) -> dict[str, Any]:
        given: dict[str, Array] = {}
        for name in ("weights", "means"):
            value = getattr(self, f"{name}_init")
            if value is not None:
                given[name] = np.asarray(value, dtype=np.float64)
        if self.precisions_init is not None:
            kind = self.covariance_type
            factors = _compute_precision_cholesky_from_precisions(self.precisions_init, kind, xp=np)
            given["precisions_cholesky"] = np.asarray(factors, dtype=np.float64)
            given["covariances"] = covariances_of(given["precisions_cholesky"], kind)
        return given

    def _middle(self) -> Array:
        middle: Array = np.asarray(self.weights_, dtype=float) @ np.asarray(self.means_, dtype=float)
        return middle

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(getattr(self, name)) for name in FITTED}

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        self._set_parameters(read_gaussians(content, self._model(), d))
        self._check_parameters(np.empty((0, d)), xp=np)
        if self.prior is not None:
            self.prior.bind(np.zeros(d))

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
