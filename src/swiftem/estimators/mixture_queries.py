"""What can be asked of a fitted mixture besides predictions: marginals, conditionals, other forms, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._typing import Array, Theta
from swiftem.estimators.history import History, Moment
from swiftem.models import GaussianMixtureModel, NormalInverseWishart

if TYPE_CHECKING:
    import sklearn.mixture

__all__ = ["MixtureQueries"]

FITTED = ("weights_", "means_", "covariances_", "precisions_cholesky_")
PLAIN = (
    "n_components", "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "warm_start", "verbose",
    "verbose_interval", "method", "concentration",
)  # fmt: skip


class MixtureQueries:
    """Methods of :class:`swiftem.GaussianMixture` that need a fitted model and no data."""

    if TYPE_CHECKING:  # what the estimator has
        n_components: int
        covariance_type: str
        weights_: Array
        means_: Array
        covariances_: Array
        precisions_: Array
        precisions_cholesky_: Array
        n_features_in_: int
        history_: History
        random_state: Any

        def __init__(self, n_components: int = 1, **parameters: Any) -> None: ...
        def _set_parameters(self, parameters: Any) -> None: ...
        def _theta(self) -> Theta: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    @classmethod
    def from_parameters(
        cls, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike, *, covariance_type: str = "full",
        **parameters: Any,
    ) -> Self:  # fmt: skip
        """Return a fitted mixture with these parameters.

        Parameters
        ----------
        weights : array-like, shape (M,)
            Mixing weights, summing to 1.
        means : array-like, shape (M, d)
            Means.
        covariances : array-like
            Of the shape that ``covariance_type`` has.
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
        n_components = len(np.atleast_1d(np.asarray(weights)))
        model = GaussianMixtureModel(n_components, covariance=covariance_type)
        theta = model.theta(weights=weights, means=means, covariances=covariances)
        made = cls(n_components, covariance_type=covariance_type, **parameters)
        made._become(theta)
        return made

    def _become(self, theta: Theta) -> None:
        """Take parameters as if they had been fitted."""
        self._set_parameters(tuple(theta))
        self.n_features_in_ = theta.means.shape[1]
        self.converged_, self.n_iter_, self.lower_bound_, self.lower_bounds_ = True, 0, -np.inf, []
        self.method_, self.history_, self.stationarity_ = "given", History([]), np.nan

    def attributes_of(self, theta: Theta) -> dict[str, NDArray[Any]]:
        """Return the attributes that ``theta`` would be after a fit."""
        made = type(self)(**self.get_params(deep=False))
        made._set_parameters(tuple(theta))
        return {name: getattr(made, name) for name in (*FITTED, "precisions_")}

    def to_sklearn(self) -> sklearn.mixture.GaussianMixture:
        """Return scikit-learn's mixture with the same parameters.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([1.0], [[0.0]], [[[1.0]]])
        >>> type(mixture.to_sklearn()).__module__
        'sklearn.mixture._gaussian_mixture'
        """
        from sklearn import mixture

        theirs = mixture.GaussianMixture()
        known = theirs.get_params()
        values = {name: value for name, value in self.get_params(deep=False).items() if name in known}
        if not isinstance(values["init_params"], str):
            values["init_params"] = "kmeans"
        theirs.set_params(**values)
        theirs._set_parameters(tuple(getattr(self, name) for name in FITTED))
        for name in (
            "n_features_in_",
            "feature_names_in_",
            "converged_",
            "n_iter_",
            "lower_bound_",
            "lower_bounds_",
        ):
            if hasattr(self, name):
                setattr(theirs, name, getattr(self, name))
        return theirs

    def full_covariances(self) -> Array:
        """Return the covariances as matrices, shape (M, d, d), whatever their kind."""
        d = self.means_.shape[1]
        covariances = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type == "full":
            return covariances
        if self.covariance_type == "tied":
            return np.broadcast_to(covariances, (self.n_components, d, d)).copy()
        rows = covariances if self.covariance_type == "diag" else np.repeat(covariances[:, None], d, axis=1)
        return np.asarray(rows[:, :, None] * np.eye(d))

    def marginal(self, columns: Sequence[int]) -> Self:
        """Return the mixture of some columns, the others integrated out.

        Parameters
        ----------
        columns : sequence of int
            Which columns, in the order that they are to have.

        Examples
        --------
        >>> import swiftem
        >>> mixture = swiftem.GaussianMixture.from_parameters([1.0], [[1.0, 2.0]], [[[1.0, 0.5], [0.5, 2.0]]])
        >>> mixture.marginal([1]).covariances_
        array([[[2.]]])
        """
        index = self._columns("columns", columns)
        covariances = self.full_covariances()[:, index[:, None], index]
        return type(self).from_parameters(
            np.asarray(self.weights_, float), np.asarray(self.means_, float)[:, index], covariances,
            random_state=self.random_state,
        )  # fmt: skip

    def condition(self, columns: Sequence[int], values: ArrayLike) -> Self:
        r"""Return the mixture of the other columns, given values of some.

        Weights become :math:`\omega_m N(x; \mu_m^a, \Sigma_m^{aa})`, normalised; means and covariances are the
        regression of the others on the given.

        Parameters
        ----------
        columns : sequence of int
            Which columns are given.
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
        given = self._columns("columns", columns)
        rest = np.setdiff1d(np.arange(self.means_.shape[1]), given)
        if not len(rest):
            raise ValueError("columns must leave at least one column, got all of them.")
        x = np.asarray(values, dtype=np.float64)
        if x.shape != (len(given),) or not np.isfinite(x).all():
            raise ValueError(
                f"values must be {len(given)} finite numbers, one for each of columns, got {values!r}."
            )
        sigma, means = self.full_covariances(), np.asarray(self.means_, dtype=np.float64)
        inner = np.linalg.cholesky(sigma[:, given[:, None], given])
        difference = np.linalg.solve(inner, (x - means[:, given])[:, :, None])[:, :, 0]
        cross = np.linalg.solve(inner, sigma[:, given[:, None], rest])
        log_weight = (
            np.log(np.asarray(self.weights_, dtype=np.float64))
            - np.log(np.einsum("mjj->mj", inner)).sum(axis=1)
            - 0.5 * (difference**2).sum(axis=1)
        )
        weights = np.exp(log_weight - log_weight.max())
        return type(self).from_parameters(
            weights / weights.sum(),
            means[:, rest] + np.einsum("mgr,mg->mr", cross, difference),
            sigma[:, rest[:, None], rest] - np.einsum("mgr,mgs->mrs", cross, cross),
            random_state=self.random_state,
        )

    def _columns(self, name: str, columns: Sequence[int]) -> NDArray[np.intp]:
        d = self.means_.shape[1]
        index = np.asarray(columns)
        if index.ndim != 1 or not len(index) or index.dtype.kind not in "iu":
            raise ValueError(f"{name} must be column numbers, at least one, got {columns!r}.")
        if index.min() < -d or index.max() >= d or len(np.unique(index % d)) != len(index):
            raise ValueError(f"{name} must be different numbers from 0 to {d - 1}, got {columns!r}.")
        return np.asarray(index % d, dtype=np.intp)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        header: dict[str, Any] = {"parameters": {name: parameters[name] for name in PLAIN}}
        for name in ("batch_size", "step_size", "random_state", "init_params"):
            value = parameters[name]
            header["parameters"][name] = (
                value if isinstance(value, int | float | str | type(None)) else "auto"
            )
        for name in ("random_state", "init_params"):
            if header["parameters"][name] == "auto":
                header["parameters"].pop(name)
        if isinstance(parameters["prior"], NormalInverseWishart):
            prior = parameters["prior"]
            header["prior"] = [prior.degrees_of_freedom, prior.scale, prior.mean_precision, prior.mean]
        for name in ("converged_", "n_iter_", "lower_bound_", "stationarity_", "method_", "n_features_in_"):
            value = getattr(self, name, None)
            header[name] = value.item() if isinstance(value, np.generic) else value
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        header["history"] = [list(moment) for moment in getattr(self, "history_", [])]
        arrays = {name: np.asarray(getattr(self, name)) for name in FITTED}
        arrays["lower_bounds_"] = np.asarray(getattr(self, "lower_bounds_", []), dtype=np.float64)
        return header, arrays

    @classmethod
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        made = cls(**header["parameters"])
        if "prior" in header:
            degrees, scale, precision, mean = header["prior"]
            made.prior = NormalInverseWishart(degrees, scale, precision, mean)
        made._set_parameters(tuple(arrays[name] for name in FITTED))
        for name in ("converged_", "n_iter_", "lower_bound_", "stationarity_", "method_", "n_features_in_"):
            setattr(made, name, header[name])
        if "feature_names_in_" in header:
            made.feature_names_in_ = np.array(header["feature_names_in_"], dtype=object)
        made.lower_bounds_ = arrays["lower_bounds_"].tolist()
        made.history_ = History([Moment(*moment) for moment in header["history"]])
        return made

    def plot_convergence(self, axes: Any = None) -> Any:
        """Draw the objective against passes, and return the matplotlib axes."""
        from swiftem.report.mixture import draw_history

        return draw_history(self.history_, axes)

    def plot(self, X: ArrayLike | None = None, axes: Any = None) -> Any:
        """Draw the components of a mixture of two columns as ellipses, over ``X`` if given; return the axes."""
        from swiftem.report.mixture import draw_mixture

        if self.means_.shape[1] != 2:
            raise ValueError(
                f"plot needs a mixture of two columns, got {self.means_.shape[1]}: take marginal([i, j]) first."
            )
        return draw_mixture(self.weights_, self.means_, self.full_covariances(), X, axes)
