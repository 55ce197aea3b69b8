"""Gaussian mixtures with covariances of any kind; "unit" is the paper's mixture (section 2.1).

Statistics are sums of r, r·y and r·yyᵀ of samples minus the mean of the data, which ``bind`` computes in one
pass. Sums are additive, so that every method works, and an offset of the data costs no digits. The spread
does: if clusters are 10⁶ standard deviations apart, covariances have four digits, and if only rounding is
left of a variance, the statistics are outside the domain. E-steps lose no digits: a block whose samples are
too far for expanded squares is computed from whitened differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import (
    SIMPLEX_TOLERANCE,
    STRONGEST,
    as_floats,
    check_choice,
    check_int,
    check_real,
    check_simplex,
)
from swiftem.core.model import Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Rows, Theta
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource
from swiftem.mixture.components import (
    BLOCK,
    LARGEST,
    BoundComponents,
    Coefficients,
    check_rows,
    check_units,
    columns_of,
    different_rows,
    drawn_labels,
    may_have_missing,
    mean_row,
    share_largest,
    two_dimensional,
)
from swiftem.mixture.compute.conditionals import completed, filled_cells, log_densities
from swiftem.mixture.compute.numpy import COMPLETED, LINEAR, log_joint, lower_triangle, softmax
from swiftem.mixture.covariance import COVARIANCES, OBSERVED, Covariance, GaussianTheta, widened
from swiftem.mixture.prior import BoundPrior, NormalInverseWishart


@dataclass(frozen=True)
class GaussianMixtureModel(Model):
    r"""Mixture of M Gaussians in any dimension; with unit variances as in the paper, equation (comp_like).

    With ``covariance="unit"`` the penalty is :math:`\frac{\delta}{2} \sum_m \|\mu_m\|^2 - \epsilon \sum_m
    \log \omega_m`. The statistics have all M components; the paper omits the last, which is one minus the
    others.

    With the other kinds the penalty is :math:`-\epsilon \sum_m \log \omega_m` plus the penalty of the prior,
    if there is one; data are centred internally, and parameters are in the coordinates of the data.

    Parameters
    ----------
    n_components : int
        M.
    covariance : {"unit", "full", "tied", "diag", "spherical"}
        Kind of the covariances.
    delta : float
        Strength of the penalty on means, for "unit" only: 1e-3 by default; zero switches it off.
    epsilon : float
        Strength of the penalty on weights, by default 1e-3 for "unit" and 0 for the others.
    known_weights : sequence of float, shape (M,), optional
        Fixed weights, which are not estimated; the penalty on them is then a constant and omitted.
    concentration : float, optional
        α ≥ 1 of a Dirichlet prior on the weights, instead of ``epsilon``, which then is (α − 1) / Σ w_i; by
        default as in ``prior``.
    reg_covar : float
        Added to the variances in the M-step, as in scikit-learn. It is not part of the penalty: EM may then
        increase the objective slightly once a variance approaches ``reg_covar``. With a prior it does not.
    prior : NormalInverseWishart, optional
        On means and covariances: the M-step then gives the maximum a posteriori estimate.
    missing : {"error", "ignore"}
        Whether NaN is an error, or a cell that is missing at random
        (:mod:`swiftem.mixture.covariance`); not for "unit".
    has_holes : bool
        Whether the statistics are for rows with missing cells; :meth:`bind` sets it if there are any.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500) + np.where(rng.random(500) < 0.5, 2.0, -2.0)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> theta0 = model.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
    >>> result = swiftem.run(model, y, methods.EM(), theta0=theta0, n_iter=50)
    >>> result.theta.means.round(1)
    array([[ 2.],
           [-2.]])
    >>> full = models.GaussianMixtureModel(n_components=2, covariance="full")
    >>> theta0 = full.theta(means=[[1.0], [-1.0]], covariances=[[[1.0]], [[1.0]]])
    >>> swiftem.run(full, y, methods.EM(), theta0=theta0, n_iter=50).theta.covariances.round(1).ravel()
    array([1. , 0.9])
    >>> holes = np.column_stack([y, np.where(rng.random(500) < 0.5, np.nan, 2.0 * y)])
    >>> full = models.GaussianMixtureModel(1, covariance="full", reg_covar=1e-6, missing="ignore")
    >>> theta = swiftem.run(full, holes, methods.EM(), n_iter=50, seed=0).theta
    >>> round(float(theta.means[0, 1] / theta.means[0, 0]), 2)
    2.0
    """

    n_components: int
    covariance: str = "unit"
    delta: float = None  # type: ignore[assignment]  # a number from here on, which the kind decides
    epsilon: float = None  # type: ignore[assignment]
    known_weights: tuple[float, ...] | None = None
    concentration: float | None = None
    reg_covar: float = 0.0
    prior: NormalInverseWishart | None = None
    missing: str = "error"
    has_holes: bool = False

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, minimum=1)
        check_choice("covariance", self.covariance, tuple(COVARIANCES))
        is_estimated = COVARIANCES[self.covariance].is_estimated
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise TypeError(f"prior must be a NormalInverseWishart, got {type(self.prior).__name__}.")
        if self.prior is not None and self.prior.concentration is not None:
            self._split_prior(self.prior)
        if self.concentration is not None and self.epsilon:  # zero after `replace`
            raise ValueError("concentration must be left out if epsilon is given.")
        for name in ("delta", "epsilon"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, 0.0 if is_estimated else 1e-3)
            check_real(name, getattr(self, name), minimum=0.0, maximum=STRONGEST)
        check_real("reg_covar", self.reg_covar, minimum=0.0, maximum=LARGEST**2)
        if self.concentration is not None:
            check_real("concentration", self.concentration, minimum=1.0, maximum=STRONGEST)
        if is_estimated and self.delta:
            raise ValueError(
                f"delta must be left out for covariance={self.covariance!r}: give a prior instead."
            )
        for name in ("concentration", "reg_covar", "prior"):
            if not is_estimated and getattr(self, name):
                raise ValueError(f"{name} must be left out for covariance={self.covariance!r}.")
        check_choice("missing", self.missing, ("error", "ignore"))
        if not is_estimated and self.missing != "error":
            raise ValueError(f"missing must be 'error' for covariance={self.covariance!r}.")
        if self.known_weights is not None:
            known = as_floats("known_weights", self.known_weights, shape=(self.n_components,))
            check_simplex("known_weights", known)
            object.__setattr__(self, "known_weights", tuple(known.tolist()))

    def _split_prior(self, prior: NormalInverseWishart) -> None:
        """Move the concentration of a prior into the model's own field."""
        if self.concentration is not None:
            raise ValueError("concentration must be left out if the prior has one.")
        object.__setattr__(self, "concentration", prior.concentration)
        rest = replace(prior, concentration=None) if prior.is_on_components else None
        object.__setattr__(self, "prior", rest)

    @property
    def in_counts(self) -> bool:  # type: ignore[override]
        """Whether there is a prior in counts: its weight in the objective depends on the total weight."""
        return self.prior is not None or self.concentration is not None

    def width(self, d: int) -> int:
        """Return the length of the centre for rows of d columns."""
        return d

    @property
    def kind(self) -> Covariance:
        """The kind of covariance; another one with the same parameters if cells are missing."""
        return (OBSERVED if self.has_holes else COVARIANCES)[self.covariance]

    def size(self, d: int) -> int:
        """Return q, the length of the statistics for rows of d columns."""
        return self.kind.size(self.n_components, d)

    def learnt(self, source: Source) -> GaussianMixtureModel:
        """Return the model itself: its statistics have a size without the data."""
        return self

    streamed = learnt

    def with_holes(self) -> GaussianMixtureModel:
        """Return the model for rows with missing cells."""
        return replace(self, has_holes=True)

    def widened(self, s: Array, centre: Array) -> tuple[Array, Array]:
        """Return statistics and centre of complete rows in the form of this model, which has holes."""
        if self.kind.has_masses and len(s):
            s = widened(COVARIANCES[self.covariance].split(s, self.n_components, len(centre)))
        return s, centre

    def theta(
        self, *, weights: ArrayLike | None = None, means: ArrayLike, covariances: ArrayLike | None = None
    ) -> Theta:
        """Return validated parameters for this model.

        Parameters
        ----------
        weights : array-like, shape (M,), optional
            Mixing weights, by default the known ones or all equal.
        means : array-like, shape (M, d)
            Means.
        covariances : array-like
            (M, d, d) for "full", (d, d) for "tied", (M, d) for "diag", (M,) for "spherical"; none for "unit".

        Returns
        -------
        GaussianMixtureTheta or GaussianTheta
            The latter if there are covariances.
        """
        is_estimated = self.kind.is_estimated
        if (covariances is None) == is_estimated:
            what = "given" if is_estimated else "left out"
            raise ValueError(f"covariances must be {what} for covariance={self.covariance!r}.")
        weights = self.initial_weights() if weights is None else weights
        return self.check_theta(weights, means, covariances)

    def initial_weights(self) -> Array:
        """Return the known weights, or equal ones."""
        return np.array(self.known_weights or np.full(self.n_components, 1.0 / self.n_components))

    def check_theta(
        self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike | None, prefix: str = ""
    ) -> Theta:
        """Return parameters in new arrays; errors use their names with ``prefix``."""
        w = as_floats(f"{prefix}weights", weights, shape=(self.n_components,)).copy()
        check_simplex(f"{prefix}weights", w)
        if self.known_weights is not None:
            if not np.allclose(w, self.known_weights, rtol=0, atol=SIMPLEX_TOLERANCE):
                raise ValueError(
                    f"{prefix}weights must be the known ones, {self.known_weights}, got {tuple(w.tolist())}."
                )
            w = np.array(self.known_weights)
        mu = as_floats(f"{prefix}means", means, shape=(self.n_components, None)).copy()
        d, kind, name = mu.shape[1], self.kind, f"{prefix}covariances"
        if covariances is None:
            covariances = kind.diagonal(np.ones(d), self.n_components)
        checked = as_floats(name, covariances, shape=kind.shape(self.n_components, d)).copy()
        if kind.has_matrices:
            size = np.sqrt(np.abs(kind.variances(checked)))
            allowed = 1e-8 * size[..., :, None] * size[..., None, :]
            if (np.abs(checked - np.swapaxes(checked, -1, -2)) > allowed).any():
                raise ValueError(f"{name} must be symmetric.")
        factors = kind.factor(checked)
        if factors is None:
            raise ValueError(f"{name} must be positive{' definite' if kind.has_matrices else ''}.")
        if np.abs(factors).max() > LARGEST:  # their squares are the precisions
            raise ValueError(f"{name} must have variances of at least {LARGEST**-2:g}: use another unit.")
        return kind.parameters(w, mu, checked, factors)

    def unpack(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        d = 1
        while self.size(d) < np.size(s):
            d += 1
        if np.shape(s) != (self.size(d),):
            raise ValueError(f"s must have shape (q,), the statistics of {self}, got {np.shape(s)}.")
        return self.kind.split(s, self.n_components, d)

    def bind(self, source: Source, centre: ArrayLike | None = None) -> BoundGaussians:
        """Return the model for these data: rows of shape (n,) or (n, d).

        ``centre`` (d,), by default the mean of the data, is the centre of statistics of kinds other than
        "unit": statistics of several sources can be added if they have the same centre. If it is given,
        there may be fewer rows than components.
        """
        d = check_rows(source, self.n_components if centre is None else 1)
        model = self
        if self.missing == "ignore" and not self.has_holes:
            has_holes = source.has_missing if centre is None else may_have_missing(source)
            model = replace(self, has_holes=has_holes)
        if not model.kind.is_estimated:
            middle = np.zeros(d)
        elif centre is not None:
            middle = as_floats("centre", centre, shape=(d,)).copy()
        else:
            middle = columns_of(source).mean if model.has_holes else mean_row(source)
        total = source.total_weight
        epsilon = self.epsilon if self.concentration is None else (self.concentration - 1.0) / total
        return BoundGaussians(model, source, d, middle, epsilon, model._bound_prior(middle, total))

    def bind_units(self, units: UnitSource) -> BoundGaussians:
        """Return the model about the mean of all rows, with a sample of them for starts."""
        check_units(units)
        model = self if units.masses is None else self.with_holes()
        return model.bind(units.scaled_sample(), centre=units.mean)

    def bind_near(self, source: Source, theta: Theta) -> BoundGaussians:
        """Return the model about the middle of the components, which saves the pass for the data's mean."""
        if not self.kind.is_estimated or not isinstance(theta, GaussianTheta):
            return self.bind(source)
        columns, d = theta.means.shape[1], check_rows(source, 1)
        if columns != d:
            raise ValueError(f"theta.means must have as many columns as data, {d}, got {columns}.")
        return self.bind(source, theta.weights @ theta.means)

    def _bound_prior(self, centre: Array, total: float) -> BoundPrior:
        """Return the prior for centred data of this total weight; the penalty δ is one on the means."""
        kind, d = self.kind, len(centre)
        if self.prior is None:
            nothing = np.zeros((d, d) if kind.has_matrices else d)
            return BoundPrior(np.zeros(d), self.delta, self.delta, nothing)
        prior = self.prior.bind(centre, has_matrices=kind.has_matrices)
        on_means = int(prior.mean_precision > 0.0)
        degrees = kind.degrees(prior.degrees, d, self.n_components, on_means)
        return BoundPrior(prior.mean, prior.mean_precision / total, degrees / total, prior.scale / total)


@dataclass(frozen=True, eq=False)
class BoundGaussians(BoundComponents):
    """A :class:`swiftem.models.GaussianMixtureModel` for its data.

    Attributes
    ----------
    prior : BoundPrior
        The prior, for means of samples; zeros if there is none.
    """

    ILL_DEFINED = (
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
        "instance caused by singleton or collapsed samples). Try to decrease the number of components, "
        "increase reg_covar, or scale the input data."
    )
    REMEDY = "fewer components, a larger reg_covar or a prior"
    model: GaussianMixtureModel
    prior: BoundPrior

    @cached_property
    def kind(self) -> Covariance:  # type: ignore[override]
        """The kind of covariance."""
        return self.model.kind

    @property
    def code(self) -> int:
        """How E-steps compute T(y): by the kind of covariance, or otherwise if cells are missing."""
        return COMPLETED if self.kind.completes else LINEAR if self.kind.has_masses else self.kind.code

    @property
    def origin(self) -> Array:
        """The centre; zeros if there are features of centred rows."""
        return np.zeros(3 * self.d) if self.kind.has_masses else self.centre

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R: a row is its responsibilities; if rows are completed, its statistics, responsibilities first."""
        return self.size if self.kind.completes else self.n_components

    @cached_property
    def column_variances(self) -> Array:
        """Variances of the observed cells of the columns, (d,)."""
        return columns_of(self.source).variance

    def filled(self, y: Rows) -> Rows:
        """Return rows (b, d) with the mean of their column in missing cells."""
        return np.where(np.isnan(y), self.centre.astype(y.dtype), y) if self.model.has_holes else y

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return equal (or known) weights, M distinct rows as means, and the covariance of all data."""
        n_components, d, kind = self.model.n_components, self.d, self.kind
        weights = self.model.initial_weights()
        means = self.filled(different_rows(self.source, n_components, d, rng))
        if kind.is_estimated and not self.model.has_holes:
            return self._pooled()._replace(weights=weights, means=means)
        variances = self.column_variances + self.model.reg_covar if kind.is_estimated else np.ones(d)
        covariances = kind.diagonal(variances, n_components)
        factors = kind.factor(covariances)
        if factors is None:
            raise ValueError(
                f"data must have columns that vary for covariance={kind.name!r}: leave out columns that "
                "are constant, or give reg_covar or a prior."
            )
        return kind.parameters(weights, means, covariances, factors)

    def _pooled(self) -> Theta:
        """Return the M-step of equal responsibilities: every covariance is the one of all data."""
        n_components, kind = self.model.n_components, self.kind
        s = np.zeros(self.size)
        parts = self.split(s)
        for alone in self._statistics_of_one():
            one = kind.split(alone, 1, self.d)
            parts.weights[:] += one.weights / n_components
            parts.sums[:] += one.sums / n_components
            parts.squares[...] += one.squares if kind.is_shared else one.squares / n_components
        theta = self.solve(s)
        if theta is None:
            raise ValueError(
                f"data must have a positive definite covariance for covariance={kind.name!r}: "
                "leave out columns that are constant or depend on others, or give reg_covar or a prior."
            )
        return theta

    def _statistics_of_one(self) -> Iterator[Array]:
        """Yield the parts of the statistics of a single component."""
        source, kind = self.source, self.kind
        if isinstance(source, TensorSource):  # the same squares as of the rows, which stay where they are
            values, vectors = np.linalg.eigh(source.mean_products(self.centre))
            few = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
            squares = kind.squares(few, np.ones((self.d, 1)))
            yield np.concatenate([[1.0], source.mean_row() - self.centre, squares.ravel()])
            return
        for batch in source.blocks(BLOCK):
            rows = np.ones((len(batch.index), 1))
            yield kind.statistics(self.centred(batch), rows, batch.weight) / source.total_weight

    def check_theta(self, theta: Theta, name: str = "theta0") -> Theta:
        """Return ``theta``, checked against model and data."""
        like = self.like()
        if type(theta) is not type(like):
            given = [part for part in like._fields if part != "precisions_cholesky"]
            raise TypeError(
                f"{name} must be made by model.theta({'=, '.join(given)}=), got {type(theta).__name__}."
            )
        columns = np.atleast_1d(theta.means).shape[-1]
        if columns != self.d:
            raise ValueError(f"{name}.means must have as many columns as data, {self.d}, got {columns}.")
        covariances = theta.covariances if self.kind.is_estimated else None
        return self.model.check_theta(theta.weights, theta.means, covariances, f"{name}.")

    def like(self) -> Theta:
        """Return parameters with arrays of the right shapes."""
        n_components = self.model.n_components
        shape = self.kind.shape(n_components, self.d)
        shapes = ((n_components,), (n_components, self.d), shape, shape)
        return self.kind.parameters(*map(np.empty, shapes))

    def matrices(self, theta: GaussianTheta) -> Array:
        """Return the covariance matrices (M, d, d), or (1, d, d) if they share one."""
        return theta.covariances.reshape(-1, self.d, self.d)

    def centred(self, batch: Batch) -> Array:
        """Return the samples minus the centre, float64 (b, d)."""
        # In one memory order, as sums depend on it in rounding.
        centred: Array = np.subtract(two_dimensional(batch.y), self.centre, order="C", dtype=np.float64)
        return centred

    def features(self, y: Rows) -> Rows:
        """Return the rows, or features of centred rows if cells are missing."""
        if not self.kind.has_masses:
            return y
        return self.kind.features(np.subtract(y, self.centre, order="C", dtype=np.float64))

    def coefficients(self, theta: Theta) -> Coefficients:
        """Return φ(θ), for centred samples."""
        # A mean far from all samples has a constant of −∞.
        with np.errstate(over="ignore", invalid="ignore"):
            means = theta.means - self.centre
            coefficients = self.kind.coefficients(theta.weights, means, self.kind.factors_of(theta))
        if not np.isfinite(coefficients.phi).all() or np.isnan(coefficients.constant).any():
            raise ValueError(
                "data must have a spread whose inverse square is finite in every component: scale the "
                "columns, or give reg_covar or a prior."
            )
        return coefficients

    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return log g_m(y), of the observed cells, (b, M)."""
        if self.kind.completes:
            return log_densities(self.centred(batch), theta.means - self.centre, self.matrices(theta))
        alone = theta._replace(weights=np.ones(self.n_components))
        return log_joint(self.kind.features(self.centred(batch)), self.coefficients(alone))

    def posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        r"""E-step: rows (b, R), responsibilities first, and log-likelihood (b,).

        :math:`r_m(y) \propto \omega_m |U_m| \exp(-\|U_m^T (y - \mu_m)\|^2 / 2)`, for unit variances equation
        (cexp).
        """
        if self.kind.completes:
            means = theta.means - self.centre
            return completed(self.centred(batch), theta.weights, means, self.matrices(theta))
        with np.errstate(divide="ignore"):
            return softmax(self.log_densities(batch, theta) + np.log(theta.weights))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        if self.kind.completes:
            return np.asarray(weight @ rows)
        return self.kind.statistics(self.centred(batch), rows, weight)

    def solve(self, s: Array) -> Theta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.split(s)
        least = self.kind.counts(parts).min()
        if not (
            parts.weights.min() + self.epsilon > 0.0
            and least + self.prior.mean_precision > 0.0
            and least + self.prior.degrees > 0.0
        ):
            return None
        means, covariances, floor = self.kind.moments(parts, self.prior, float(self.model.reg_covar))
        factors = self.kind.factor(covariances, floor)
        if factors is None:
            return None
        weights = parts.weights + self.epsilon
        known = self.model.known_weights
        weights = weights / weights.sum() if known is None else np.array(known)
        return self.kind.parameters(weights, means + self.centre, covariances, factors)

    def penalty(self, theta: Theta) -> float:
        """Return −ε Σ log ω_m and the prior's penalty; ``reg_covar`` has none."""
        value = super().penalty(theta) if self.model.known_weights is None else 0.0
        if self.prior.mean_precision > 0.0 or self.prior.degrees > 0.0:
            value += self.kind.penalty(theta.means - self.centre, self.kind.factors_of(theta), self.prior)
        return value

    def split(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        return self.kind.split(s, self.model.n_components, self.d)

    def unit_factors(self, s: Array) -> Array:
        """Return the factors of each statistic if the rows are scaled to unit variance."""
        one = np.ones_like(s)
        factors = self.unpack(one)
        deviations, of_squares = self.kind.unit_factors(self.unpack(s))
        factors.sums[...] = 1.0 / deviations
        if len(of_squares):
            factors.squares[...] = of_squares
        return one

    @property
    def is_held(self) -> bool:
        """Whether a prior in counts keeps components without rows."""
        return self.model.in_counts

    @property
    def n_free(self) -> int:
        """Number of free parameters: the length of the statistics of complete rows, but for one weight."""
        return replace(self.model, has_holes=False).size(self.d) - 1

    def with_share(self, share: float) -> BoundGaussians:
        """Return the bound model with a prior in counts that has this share of its weight."""
        if not self.model.in_counts:
            return self
        scaled = self.prior._replace(
            mean_precision=self.prior.mean_precision * share,
            degrees=self.prior.degrees * share,
            scale=self.prior.scale * share,
        )
        epsilon = self.epsilon if self.model.concentration is None else self.epsilon * share
        return replace(self, prior=scaled, epsilon=epsilon)

    def for_start(self, y: Rows) -> Rows:
        """Return the rows (b, d) for k-means, with the mean of their column in missing cells."""
        return self.filled(two_dimensional(y)) if self.model.has_holes else y

    def start_rows(self, responsibilities: Array, batch: Batch) -> Array:
        """Return posterior rows (b, R) of responsibilities (b, M) of a start.

        If rows are completed, their missing cells have mean and variance of their column.
        """
        if not self.kind.completes:
            return responsibilities
        r, z = responsibilities[:, :, None], self.centred(batch)
        missing = np.isnan(z)
        z[missing] = 0.0
        row, column = lower_triangle(self.d)
        products = z[:, row] * z[:, column]
        products[:, row == column] += missing * self.column_variances
        squares = (r.sum(axis=1, keepdims=True) if self.kind.is_shared else r) * products[:, None]
        parts = responsibilities, r * z[:, None], squares
        return np.hstack([part.reshape(len(z), -1) for part in parts])

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> GaussianTheta:
        """Return the M-step of a start outside the domain; failing components get the covariance of all data.

        Components without rows share weight and covariance of the largest, and are centred at ``rows``
        (k, d): k-means may find fewer clusters than requested if rows repeat, and a wide component next to
        narrow ones would lose its rows at once.
        """
        filled = s.copy()
        parts = self.unpack(filled)
        empty = share_largest(parts.weights, parts[:2] if self.kind.is_shared else parts)
        theta = self.solve(filled)
        if theta is None:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                means, covariances, _ = self.kind.moments(parts, self.prior, float(self.model.reg_covar))
            whole = self.initial_theta(rng).covariances
            covariances = self._replaced(covariances, self.collapsed(filled), whole)
            factors = self.kind.factor(covariances)
            if factors is None:
                raise ValueError(self.ILL_DEFINED)
            means = np.where(np.isfinite(means), means, 0.0) + self.centre
            theta = GaussianTheta(parts.weights / parts.weights.sum(), means, covariances, factors)
        means = theta.means.copy()
        means[empty] = self.filled(rows)
        made: GaussianTheta = theta._replace(means=means)
        return made

    def reset(
        self, theta: Theta, s: Array, gone: Index, rows: Array, rng: np.random.Generator
    ) -> GaussianTheta:
        """Return θ with some components at ``rows`` (k, d), with the covariance of all data."""
        whole = self.initial_theta(rng)
        means, weights = theta.means.copy(), theta.weights.copy()
        means[gone] = self.filled(rows)
        weights[gone] = 1.0 / len(weights)
        covariances = self._replaced(theta.covariances, gone, whole.covariances)
        factors = self._replaced(theta.precisions_cholesky, gone, whole.precisions_cholesky)
        return GaussianTheta(weights / weights.sum(), means, covariances, factors)

    def _replaced(self, values: Array, gone: Index, whole: Array) -> Array:
        """Return covariances, or their factors, with ``whole`` for the components ``gone``."""
        if self.kind.is_shared:
            return whole if len(gone) else values
        values = values.copy()
        values[gone] = whole[gone]
        return values

    def draw(self, theta: Theta, labels: Index, rng: np.random.Generator, s: Array | None = None) -> Array:
        """Return random rows (b, d) of the components ``labels`` (b,)."""
        noise = rng.normal(size=(len(labels), self.d))
        return np.asarray(
            theta.means[labels] + self.kind.coloured(noise, self.kind.factors_of(theta), labels)
        )

    def imputed(self, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None) -> Rows:
        """Return rows (b, d) with conditional means, or draws, in missing cells."""
        if not self.model.has_holes:
            return y
        labels = None if rng is None else drawn_labels(rows, rng)
        if self.kind.completes:
            drawn = None if rng is None or labels is None else (labels, rng.normal(size=y.shape))
            return filled_cells(y, rows, theta.weights, theta.means, self.matrices(theta), drawn)
        if rng is None or labels is None:
            return np.where(np.isnan(y), rows @ theta.means, y)
        return np.where(np.isnan(y), self.draw(theta, labels, rng), y)
