"""The paper's Gaussian mixture, section 2.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._checks import SIMPLEX_TOLERANCE, as_floats, check_choice, check_int, check_real, check_simplex
from swiftem._typing import Array
from swiftem.data.source import Batch, Source
from swiftem.kernels.reference import gaussian_mixture as kernel

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
    r"""Mixture of M Gaussians with unit variances in any dimension, equation (comp_like).

    The penalty is :math:`\frac{\delta}{2} \sum_m \|\mu_m\|^2 - \epsilon \sum_m \log \omega_m`. All M
    components are kept in the statistics; the paper leaves out the last, which is one minus the others.

    Parameters
    ----------
    n_components : int
        M.
    covariance : {"unit"}
        Kind of the covariances.
    delta, epsilon : float
        Strength of the penalty on means and weights; zero switches it off.
    known_weights : sequence of float, shape (M,), optional
        Weights that are known and not estimated; the penalty on them is then a constant and left out.

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
    """

    n_components: int
    covariance: str = "unit"
    delta: float = 1e-3
    epsilon: float = 1e-3
    known_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, minimum=1)
        check_choice("covariance", self.covariance, ("unit",))
        check_real("delta", self.delta, minimum=0.0)
        check_real("epsilon", self.epsilon, minimum=0.0)
        if self.known_weights is not None:
            known = as_floats("known_weights", self.known_weights, shape=(self.n_components,))
            check_simplex("known_weights", known)
            object.__setattr__(self, "known_weights", tuple(known.tolist()))

    def theta(self, *, weights: ArrayLike | None = None, means: ArrayLike) -> GaussianMixtureTheta:
        """Return parameters for this model, checked.

        Parameters
        ----------
        weights : array-like, shape (M,), optional
            Mixing weights, by default the known ones or all equal.
        means : array-like, shape (M, d)
            Means.
        """
        if weights is None:
            weights = self.known_weights or np.full(self.n_components, 1.0 / self.n_components)
        return self.checked(weights, means)

    def checked(self, weights: ArrayLike, means: ArrayLike, prefix: str = "") -> GaussianMixtureTheta:
        """Return parameters, or refuse them with the names that they have for the user."""
        w = as_floats(f"{prefix}weights", weights, shape=(self.n_components,)).copy()
        check_simplex(f"{prefix}weights", w)
        if self.known_weights is not None:
            if not np.allclose(w, self.known_weights, rtol=0, atol=SIMPLEX_TOLERANCE):
                raise ValueError(
                    f"{prefix}weights must be the known ones, {self.known_weights}, got {tuple(w.tolist())}."
                )
            w = np.array(self.known_weights)
        return GaussianMixtureTheta(
            w, as_floats(f"{prefix}means", means, shape=(self.n_components, None)).copy()
        )

    def unpack(self, s: Array) -> GaussianMixtureStatistics:
        """Return named views of flat statistics of shape (M + M·d,)."""
        columns, rest = divmod(np.size(s), self.n_components)
        if np.ndim(s) != 1 or rest or columns < 2:
            raise ValueError(f"s must have shape (M + M·d,) with M = {self.n_components}, got {np.shape(s)}.")
        return GaussianMixtureStatistics(
            s[: self.n_components], s[self.n_components :].reshape(self.n_components, columns - 1)
        )

    def bind(self, source: Source) -> BoundGaussianMixture:
        """Return the model for these data: rows of shape (n,) or (n, d)."""
        if hasattr(source, "n_words"):
            raise TypeError("data must be rows of numbers for a Gaussian mixture, got word counts or tokens.")
        if source.n < self.n_components:
            raise ValueError(
                f"data must have at least n_components={self.n_components} rows, got {source.n}."
            )
        y = next(source.blocks(1)).y
        return BoundGaussianMixture(self, source, 1 if y.ndim == 1 else y.shape[1])


@dataclass(frozen=True)
class BoundGaussianMixture:
    """A :class:`GaussianMixtureModel` for data of dimension ``d``."""

    model: GaussianMixtureModel
    source: Source
    d: int

    def initial_theta(self, rng: np.random.Generator) -> GaussianMixtureTheta:
        """Return equal (or the known) weights and, as means, M different rows of the data."""
        rows = rng.choice(self.source.n, self.model.n_components, replace=False)
        if self.source.access == "random":
            return self.model.theta(means=_two_dimensional(self.source.take(rows).y))
        means = np.empty((len(rows), self.d))
        for batch in self.source.blocks(4096):
            here = np.flatnonzero((rows >= batch.index[0]) & (rows <= batch.index[-1]))
            means[here] = _two_dimensional(batch.y)[rows[here] - batch.index[0]]
        return self.model.theta(means=means)

    def check_theta(self, theta: Any, name: str = "theta0") -> GaussianMixtureTheta:
        """Return ``theta``, checked against model and data."""
        if not isinstance(theta, GaussianMixtureTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, means=), got {type(theta).__name__}."
            )
        checked = self.model.checked(theta.weights, theta.means, f"{name}.")
        if checked.means.shape[1] != self.d:
            raise ValueError(
                f"{name}.means must have as many columns as data, {self.d}, got {checked.means.shape[1]}."
            )
        return checked

    def posterior(self, batch: Batch, theta: GaussianMixtureTheta) -> tuple[Array, Array]:
        """E-step: responsibilities (b, M) and log-likelihood (b,)."""
        return kernel.posterior(_two_dimensional(batch.y), theta.weights, theta.means)

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, shape (M + M·d,)."""
        return kernel.statistics(_two_dimensional(batch.y), rows, weight)

    def m_step(self, s: Array) -> GaussianMixtureTheta:
        """Equation (mstep_gmm0). The weights' sum is 1 + εM but for rounding and sample weights."""
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

    def unpack(self, s: Array) -> GaussianMixtureStatistics:
        """Return named views of flat statistics of shape (M + M·d,)."""
        size = self.model.n_components * (1 + self.d)
        if np.shape(s) != (size,):
            raise ValueError(f"s must have shape ({size},), got {np.shape(s)}.")
        return self.model.unpack(s)


def _two_dimensional(y: NDArray[Any]) -> NDArray[Any]:
    """Return samples of shape (b,) as (b, 1)."""
    return y[:, None] if y.ndim == 1 else y
