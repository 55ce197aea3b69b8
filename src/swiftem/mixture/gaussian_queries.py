"""Methods of a fitted Gaussian mixture that need no rows: marginals, conditionals, conversions, plots."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import as_floats, check_int, shown
from swiftem.core.types import Array, Index, Theta
from swiftem.data.as_source import kernels_of
from swiftem.mixture.content import FITTED
from swiftem.mixture.covariance import COVARIANCES, GaussianTheta
from swiftem.mixture.device import sample_on_device
from swiftem.mixture.estimator import MixtureEstimator
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.tables.profile import component_table, spread_text
from swiftem.show.numbers import counted
from swiftem.show.table import Table

if TYPE_CHECKING:
    import sklearn.mixture

__all__ = ["GaussianQueries", "covariances_of"]

HOW = ("n_features_in_", "feature_names_in_", "converged_", "n_iter_", "lower_bound_", "lower_bounds_")
"""Further attributes of scikit-learn's class."""


def covariances_of(factors: Array, kind: str) -> Array:
    """Return covariances from ``precisions_cholesky``."""
    if kind in ("diag", "spherical"):
        return np.asarray(1.0 / factors**2)
    upper = np.linalg.inv(factors)
    return np.asarray(np.swapaxes(upper, -1, -2) @ upper)


class GaussianQueries(MixtureEstimator):
    """Methods of :class:`swiftem.GaussianMixture` that need a fitted model and no data."""

    covariance_type: str
    means_: NDArray[Any]
    covariances_: NDArray[Any]
    precisions_cholesky_: NDArray[Any]

    def _set_arrays(self, weights: Array, means: Array, covariances: Array, factors: Array) -> None:
        """Set the fitted attributes."""
        self.weights_, self.means_, self.covariances_ = weights, means, covariances
        self.precisions_cholesky_ = factors
        if self.covariance_type in ("full", "tied"):
            d = means.shape[1]
            self.precisions_ = np.array([one @ one.T for one in factors.reshape(-1, d, d)]).reshape(
                factors.shape
            )
        else:
            self.precisions_ = factors**2

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

        check_is_fitted(self)
        theirs = mixture.GaussianMixture()
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
        d = self.means_.shape[1]
        covariances = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type == "full":
            return covariances.copy()
        if self.covariance_type == "tied":
            return np.broadcast_to(covariances, (self.n_components, d, d)).copy()
        rows = covariances if self.covariance_type == "diag" else np.repeat(covariances[:, None], d, axis=1)
        return np.asarray(rows[:, :, None] * np.eye(d))

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return random rows (n_samples, d) and the components (n_samples,) that they come from.

        If ``device`` is a GPU both are tensors there, drawn there: other rows than those of the CPU.

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
        return self._like(theta.weights, theta.means[:, index], self._block(index), index)

    def condition(self, columns: Sequence[int] | Sequence[str], values: ArrayLike) -> Self:
        r"""Return the mixture of the other columns, given values of some; the covariance type is the same.

        Weights become :math:`\omega_m N(x; \mu_m^a, \Sigma_m^{aa})`, normalised; means and covariances are
        those of the regression of the other columns on the given ones.

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
        theta, sigma = self._theta(), self.full_covariances()
        inner = np.linalg.cholesky(sigma[:, given[:, None], given])
        difference = np.linalg.solve(inner, (x - theta.means[:, given])[:, :, None])[:, :, 0]
        cross = np.linalg.solve(inner, sigma[:, given[:, None], rest])
        with np.errstate(divide="ignore"):
            log_weight = np.log(theta.weights) - np.log(np.einsum("mjj->mj", inner)).sum(axis=1)
        log_weight -= 0.5 * (difference**2).sum(axis=1)
        weights = np.exp(log_weight - log_weight.max())
        covariances = self._block(rest)
        if self.covariance_type == "full":
            covariances -= np.einsum("mgr,mgs->mrs", cross, cross)
        elif self.covariance_type == "tied":
            covariances -= cross[0].T @ cross[0]
        means = theta.means[:, rest] + np.einsum("mgr,mg->mr", cross, difference)
        return self._like(weights / weights.sum(), means, covariances, rest)

    def _block(self, index: Index) -> Array:
        """Return the covariances of some columns, of the mixture's covariance type."""
        covariances = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type in ("full", "tied"):
            return covariances[..., index[:, None], index]
        return covariances[:, index] if self.covariance_type == "diag" else covariances.copy()

    def _like(self, weights: Array, means: Array, covariances: Array, index: Index) -> Self:
        """Return a mixture of the columns ``index``, with the same covariance type, precision and names."""
        made = type(self).from_parameters(
            weights, means, covariances, covariance_type=self.covariance_type, random_state=self.random_state
        )
        made._set_arrays(*(np.asarray(part, dtype=self.means_.dtype) for part in made._theta()))
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_[index]
        return made

    def _columns(self, columns: Sequence[Any]) -> Index:
        check_is_fitted(self)
        d = self.means_.shape[1]
        index = np.asarray(columns)
        if index.dtype.kind in "OU" and hasattr(self, "feature_names_in_"):
            known = {name: place for place, name in enumerate(self.feature_names_in_)}
            unknown = [name for name in columns if name not in known]
            if unknown:
                raise ValueError(f"columns must be names of columns in the fit, got {shown(unknown[0])}.")
            index = np.array([known[name] for name in columns])
        if index.ndim != 1 or not len(index) or index.dtype.kind not in "iu":
            raise ValueError(f"columns must be column numbers, at least one, got {shown(columns)}.")
        if index.min() < -d or index.max() >= d or len(np.unique(index % d)) != len(index):
            raise ValueError(f"columns must be different numbers from 0 to {d - 1}, got {shown(columns)}.")
        return np.asarray(index % d, dtype=np.intp)

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
        variances = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type in ("full", "tied"):
            variances = np.diagonal(variances, axis1=-2, axis2=-1)
        elif self.covariance_type == "spherical":
            variances = variances[:, None]
        deviations = np.sqrt(np.broadcast_to(variances, self.means_.shape))
        names = getattr(self, "feature_names_in_", [f"column {j}" for j in range(self.means_.shape[1])])
        rows = [
            (str(name), *map(spread_text, means.tolist(), spreads.tolist()))
            for name, means, spreads in zip(names, self.means_.T, deviations.T, strict=True)
        ]
        count = counted(self.n_components, "component")
        title = f"Mixture of {count}, Gaussian with {self.covariance_type} covariances"
        return component_table(title, ("column",), self.weights_, rows)

    def plot(self, X: ArrayLike | None = None, axes: Any = None) -> Any:
        """Plot the components of a mixture of two columns as ellipses, over ``X``; return the axes."""
        from swiftem.report.mixture import draw_mixture

        if self.means_.shape[1] != 2:
            raise ValueError(
                f"plot needs a mixture of two columns, got {self.means_.shape[1]}: "
                "call marginal([i, j]) first."
            )
        names = getattr(self, "feature_names_in_", None)
        return draw_mixture(self.weights_, self.means_, self.full_covariances(), X, axes, names)
