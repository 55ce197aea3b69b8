"""Gaussian mixtures: with unit variances, as in the paper (section 2.1), and with covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import (
    SIMPLEX_TOLERANCE,
    STRONGEST,
    as_floats,
    check_choice,
    check_int,
    check_real,
    check_simplex,
)
from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source
from swiftem.engine.reference import gaussian_mixture as kernel
from swiftem.models.completed_gaussians import CompletedGaussians
from swiftem.models.covariance import COVARIANCES
from swiftem.models.gaussian_components import BoundGaussians, check_covariances
from swiftem.models.gaussian_theta import GaussianStatistics, GaussianTheta
from swiftem.models.moments import columns_of
from swiftem.models.normal_inverse_wishart import BoundPrior, NormalInverseWishart
from swiftem.models.observed_gaussians import ObservedGaussians
from swiftem.models.rows import (
    LARGEST,
    check_rows,
    different_rows,
    has_missing,
    may_have_missing,
    mean_row,
    two_dimensional,
)

__all__ = ["GaussianMixtureModel", "GaussianMixtureStatistics", "GaussianMixtureTheta"]


class GaussianMixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,) and ``means`` (M, d)."""

    weights: Array
    means: Array


class GaussianMixtureStatistics(NamedTuple):
    """Statistics, means over samples: ``weights`` (M,) of r_m, ``sums`` (M, d) of r_m·y."""

    weights: Array
    sums: Array


@dataclass(frozen=True)
class GaussianMixtureModel:
    r"""Mixture of M Gaussians in any dimension; with unit variances as in the paper, equation (comp_like).

    With ``covariance="unit"`` the penalty is :math:`\frac{\delta}{2} \sum_m \|\mu_m\|^2 - \epsilon \sum_m
    \log \omega_m`. The statistics have all M components; the paper omits the last, which is one minus the
    others.

    With the other kinds the penalty is :math:`-\epsilon \sum_m \log \omega_m` plus that of the prior, if
    there is one; data are centred internally, and parameters are in the coordinates of the data.

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
        α ≥ 1 of a Dirichlet prior on the weights, instead of ``epsilon``, which then is (α − 1) / Σ w_i.
    reg_covar : float
        Added to the variances in the M-step, as in scikit-learn. It is not part of the penalty: EM may then
        increase the objective slightly once a variance approaches ``reg_covar``. With a prior it does not.
    prior : NormalInverseWishart, optional
        On means and covariances: the M-step then gives the maximum a posteriori estimate.
    missing : {"error", "ignore"}
        Whether NaN is an error, or a cell that is missing at random
        (:mod:`swiftem.models.observed_gaussians`, :mod:`swiftem.models.completed_gaussians`); not for "unit".
    has_holes : bool
        Whether the statistics are those of rows with missing cells; :meth:`bind` sets it if there are any.

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
        check_choice("covariance", self.covariance, ("unit", *COVARIANCES))
        unit = self.covariance == "unit"
        if self.concentration is not None and self.epsilon:  # zero after `replace`
            raise ValueError("concentration must be left out if epsilon is given.")
        for name in ("delta", "epsilon"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, 1e-3 if unit else 0.0)
            check_real(name, getattr(self, name), minimum=0.0, maximum=STRONGEST)
        check_real("reg_covar", self.reg_covar, minimum=0.0, maximum=LARGEST**2)
        if self.concentration is not None:
            check_real("concentration", self.concentration, minimum=1.0, maximum=STRONGEST)
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise TypeError(f"prior must be a NormalInverseWishart, got {type(self.prior).__name__}.")
        if not unit and self.delta:
            raise ValueError(
                f"delta must be left out for covariance={self.covariance!r}: give a prior instead."
            )
        for name in ("concentration", "reg_covar", "prior"):
            if unit and getattr(self, name):
                raise ValueError(f"{name} must be left out for covariance='unit'.")
        check_choice("missing", self.missing, ("error", "ignore"))
        if unit and self.missing != "error":
            raise ValueError("missing must be 'error' for covariance='unit'.")
        if self.known_weights is not None:
            known = as_floats("known_weights", self.known_weights, shape=(self.n_components,))
            check_simplex("known_weights", known)
            object.__setattr__(self, "known_weights", tuple(known.tolist()))

    @property
    def in_counts(self) -> bool:
        """Whether there is a prior in counts: its weight in the objective depends on the total weight."""
        return self.prior is not None or self.concentration is not None

    def width(self, d: int) -> int:
        """Return the length of the centre for rows of d columns."""
        return d

    def size(self, d: int) -> int:
        """Return q, the length of the statistics for rows of d columns."""
        if self.covariance == "unit":
            return self.n_components * (1 + d)
        if self.has_holes and self.covariance in ("diag", "spherical"):
            return self.n_components * (1 + 3 * d)
        return COVARIANCES[self.covariance].size(self.n_components, d)

    def with_holes(self) -> GaussianMixtureModel:
        """Return the model for rows with missing cells."""
        return replace(self, has_holes=True)

    def widened(self, s: Array, centre: Array) -> tuple[Array, Array]:
        """Return statistics and centre of complete rows as those of this model, which has holes."""
        if self.covariance in ("full", "tied") or not len(s):
            return s, centre
        parts = COVARIANCES[self.covariance].split(s, self.n_components, len(centre))
        squares = parts.squares
        if squares.ndim == 1:  # only their sum over the columns matters
            squares = np.repeat(squares[:, None] / len(centre), len(centre), axis=1)
        masses = np.repeat(parts.weights[:, None], len(centre), axis=1)
        return np.concatenate([parts.weights, np.hstack([parts.sums, squares, masses]).ravel()]), centre

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
        if weights is None:
            weights = self.known_weights or np.full(self.n_components, 1.0 / self.n_components)
        w, mu = self.check_weights_and_means(weights, means)
        if self.covariance == "unit":
            if covariances is not None:
                raise ValueError("covariances must be left out for covariance='unit'.")
            return GaussianMixtureTheta(w, mu)
        if covariances is None:
            raise ValueError(f"covariances must be given for covariance={self.covariance!r}.")
        kind = COVARIANCES[self.covariance]
        checked = check_covariances("covariances", covariances, kind, self.n_components, mu.shape[1])
        return GaussianTheta(w, mu, *checked)

    def check_weights_and_means(
        self, weights: ArrayLike, means: ArrayLike, prefix: str = ""
    ) -> tuple[Array, Array]:
        """Return copies of the parameters; errors use their names with ``prefix``."""
        w = as_floats(f"{prefix}weights", weights, shape=(self.n_components,)).copy()
        check_simplex(f"{prefix}weights", w)
        if self.known_weights is not None:
            if not np.allclose(w, self.known_weights, rtol=0, atol=SIMPLEX_TOLERANCE):
                raise ValueError(
                    f"{prefix}weights must be the known ones, {self.known_weights}, got {tuple(w.tolist())}."
                )
            w = np.array(self.known_weights)
        return w, as_floats(f"{prefix}means", means, shape=(self.n_components, None)).copy()

    def unpack(self, s: Array) -> GaussianMixtureStatistics | GaussianStatistics:
        """Return named views of flat statistics."""
        if self.covariance != "unit":
            kind = COVARIANCES[self.covariance]
            d = kind.dimension(np.size(s), self.n_components)
            if np.ndim(s) != 1 or d is None:
                raise ValueError(f"s must have the size of statistics of {self}, got shape {np.shape(s)}.")
            return kind.split(s, self.n_components, d)
        columns, rest = divmod(np.size(s), self.n_components)
        if np.ndim(s) != 1 or rest or columns < 2:
            raise ValueError(f"s must have shape (M + M·d,) with M = {self.n_components}, got {np.shape(s)}.")
        return GaussianMixtureStatistics(
            s[: self.n_components], s[self.n_components :].reshape(self.n_components, columns - 1)
        )

    def bind(self, source: Source, centre: ArrayLike | None = None) -> BoundGaussianMixture | BoundGaussians:
        """Return the model for these data: rows of shape (n,) or (n, d).

        ``centre`` (d,), by default the mean of the data, is the centre of statistics of kinds other than
        "unit": statistics of several sources can be added if they have the same centre. If it is given,
        there may be fewer rows than components.
        """
        if self.covariance != "unit":
            return _bind_gaussians(self, source, centre)
        return BoundGaussianMixture(self, source, check_rows(source, self.n_components))


@dataclass(frozen=True)
class BoundGaussianMixture:
    """A :class:`GaussianMixtureModel` for data of dimension ``d``."""

    model: GaussianMixtureModel
    source: Source
    d: int

    def initial_theta(self, rng: np.random.Generator) -> GaussianMixtureTheta:
        """Return equal (or known) weights and, as means, M distinct rows of the data."""
        means = different_rows(self.source, self.model.n_components, self.d, rng)
        return self.model.theta(means=means)  # type: ignore[no-any-return]

    def check_theta(self, theta: Any, name: str = "theta0") -> GaussianMixtureTheta:
        """Return ``theta``, checked against model and data."""
        if not isinstance(theta, GaussianMixtureTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, means=), got {type(theta).__name__}."
            )
        checked = GaussianMixtureTheta(
            *self.model.check_weights_and_means(theta.weights, theta.means, f"{name}.")
        )
        if checked.means.shape[1] != self.d:
            raise ValueError(
                f"{name}.means must have as many columns as data, {self.d}, got {checked.means.shape[1]}."
            )
        return checked

    def posterior(self, batch: Batch, theta: GaussianMixtureTheta) -> tuple[Array, Array]:
        """E-step: responsibilities (b, M) and log-likelihood (b,)."""
        return kernel.posterior(two_dimensional(batch.y), theta.weights, theta.means)

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, shape (M + M·d,)."""
        return kernel.statistics(two_dimensional(batch.y), rows, weight)

    def m_step(self, s: Array) -> GaussianMixtureTheta:
        """Equation (mstep_gmm0). The weights' sum is 1 + εM up to rounding and sample weights.

        With sample weights it fluctuates under sem; division by it keeps the M-step exact.
        """
        s1, s2 = s[: self.model.n_components], s[self.model.n_components :].reshape(-1, self.d)
        means = s2 / (s1 + self.model.delta)[:, None]
        if self.model.known_weights is not None:
            return GaussianMixtureTheta(np.array(self.model.known_weights), means)
        weights = s1 + self.model.epsilon
        return GaussianMixtureTheta(weights / weights.sum(), means)

    def penalty(self, theta: GaussianMixtureTheta) -> float:
        """Equation (regu), each weight counted once: δ/2 Σ‖μ_m‖² − ε Σ log ω_m."""
        value = 0.5 * self.model.delta * float((theta.means**2).sum())
        if self.model.known_weights is None and self.model.epsilon > 0:
            with np.errstate(divide="ignore"):
                value -= self.model.epsilon * float(np.log(theta.weights).sum())
        return value

    def in_domain(self, s: Array) -> bool:
        """Tell whether s¹_m + ε > 0 and s¹_m + δ > 0 for all m."""
        smallest = s[: self.model.n_components].min()
        return bool(smallest + self.model.epsilon > 0 and smallest + self.model.delta > 0)

    def unpack(self, s: Array) -> GaussianMixtureStatistics | GaussianStatistics:
        """Return named views of flat statistics of shape (M + M·d,)."""
        size = self.model.n_components * (1 + self.d)
        if np.shape(s) != (size,):
            raise ValueError(f"s must have shape ({size},), got {np.shape(s)}.")
        return self.model.unpack(s)


def _bind_gaussians(
    model: GaussianMixtureModel, source: Source, centre: ArrayLike | None = None
) -> BoundGaussians:
    """Return the model for these data; without a ``centre`` (d,) a pass computes the mean of the data."""
    d = check_rows(source, model.n_components if centre is None else 1)
    if model.missing == "ignore" and not model.has_holes:
        holes = has_missing(source) if centre is None else may_have_missing(source)
        model = replace(model, has_holes=holes)
    if centre is not None:
        middle = as_floats("centre", centre, shape=(d,)).copy()
    else:
        middle = columns_of(source).mean if model.has_holes else mean_row(source)
    kind, total = COVARIANCES[model.covariance], source.total_weight
    prior = BoundPrior(np.zeros(d), 0.0, 0.0, kind.no_scale(d))
    if model.prior is not None:
        counts = model.prior.bind(middle, has_matrices=prior.scale.ndim == 2)
        on_means = int(counts.mean_precision > 0.0)
        degrees = kind.degrees(counts.degrees, d, model.n_components, on_means)
        prior = BoundPrior(counts.mean, counts.mean_precision / total, degrees / total, counts.scale / total)
    epsilon = model.epsilon if model.concentration is None else (model.concentration - 1.0) / total
    bound = BoundGaussians
    if model.has_holes:
        bound = CompletedGaussians if model.covariance in ("full", "tied") else ObservedGaussians
    return bound(model, source, kind, middle, prior, epsilon)
