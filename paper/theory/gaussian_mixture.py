"""The paper's Gaussian mixture as a curved exponential family: φ, ψ, its Jacobian, and B(s)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import SIMPLEX_TOLERANCE, as_floats
from swiftem.core.source import Batch
from swiftem.core.types import Array, Theta
from swiftem.mixture.components import two_dimensional
from swiftem.mixture.covariance import GaussianMixtureTheta
from swiftem.mixture.gaussians import BoundGaussians


class MixtureFamily:
    r"""A mixture of M Gaussians of unit variance without its last component, equation (gmm_exp).

    Coordinates of statistics are :math:`s = (s^1_1, ..., s^1_{M-1}, s^2_1, ..., s^2_{M-1}, s^3)`: mean
    responsibilities, mean responsibility times observation, and the mean observation; q = 2M − 1 for numbers,
    (M − 1)(1 + d) + d in dimension d. Those of parameters are
    :math:`(\omega_1, ..., \omega_{M-1}, \mu_1, ..., \mu_M)`, or the means alone if weights are known.

    All formulas follow from those of all M components, which do not mix: their statistics are E·s plus a
    constant, where E adds :math:`s^1_M = 1 - \sum s^1_m` and :math:`s^2_M = s^3 - \sum s^2_m`. Runs have all
    M; there B is singular, and its eigenvalues would be meaningless.

    Parameters
    ----------
    bound : BoundGaussians
        The model bound to its data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper.theory.family import family_of
    >>> family, _ = family_of(swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), [0.0, 1.0])
    >>> family.q, family.p
    (3, 3)
    """

    def __init__(self, bound: BoundGaussians) -> None:
        self.bound = bound
        model = bound.model
        self.M, self.d = model.n_components, bound.d
        self.delta, self.epsilon = model.delta, model.epsilon
        self.known = None if model.known_weights is None else np.array(model.known_weights)
        self.q = (self.M - 1) * (1 + self.d) + self.d
        self.p = self.M * self.d + (self.M - 1 if self.known is None else 0)
        self.columns = self.M
        self.E = self._filling_in()

    def _filling_in(self) -> Array:
        """Return E (M(1 + d), q): the linear part of all M components' statistics, weights first."""
        unit = np.vstack([np.eye(self.M - 1), -np.ones(self.M - 1)])
        E = np.zeros((self.M * (1 + self.d), self.q))
        E[: self.M, : self.M - 1] = unit
        E[self.M :, self.M - 1 : -self.d] = np.kron(unit, np.eye(self.d))
        E[-self.d :, -self.d :] = np.eye(self.d)
        return E

    def coordinates(self, s: ArrayLike) -> Array:
        """Return statistics (q,), from these or from those of a run, which have all M components."""
        given = as_floats("s", s, shape=(None,))
        if given.shape == (self.q + 1,):
            if abs(given[: self.M].sum() - 1.0) > SIMPLEX_TOLERANCE:
                raise ValueError(
                    f"s must have weights that sum to 1, got a sum of {given[: self.M].sum():.9g}: "
                    "the paper's coordinates omit the last."
                )
            given = self._without_last(given)
        elif given.shape != (self.q,):
            raise ValueError(
                f"s must have shape ({self.q},), the paper's coordinates, or ({self.q + 1},), a run's, "
                f"got {given.shape}."
            )
        smallest = self.parts(given)[0].min()
        if smallest + self.delta <= 0 or (self.known is None and smallest + self.epsilon <= 0):
            raise ValueError(
                f"s must lie in the domain of the M-step, all weights above −min(ε, δ), got {smallest:g}."
            )
        return given

    def parts(self, s: Array) -> tuple[Array, Array]:
        """Return s¹ (M,) and s² (M, d) of all components."""
        full = self.library_statistics(s)
        return full[: self.M], full[self.M :].reshape(self.M, self.d)

    def library_statistics(self, s: Array) -> Array:
        """Return the statistics (M + M·d,) of all components."""
        full = self.E @ s
        full[self.M - 1] += 1.0
        return full

    def theta(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep_gmm), by the model's own M-step."""
        return self.bound.m_step(self.library_statistics(s))

    def vector(self, theta: GaussianMixtureTheta) -> Array:
        """Return (ω_1, ..., ω_(M−1), μ_1, ..., μ_M), shape (p,)."""
        free = theta.weights[:-1] if self.known is None else np.empty(0)
        return np.concatenate([free, theta.means.ravel()])

    def from_vector(self, vector: Array) -> GaussianMixtureTheta:
        """Return parameters from p numbers."""
        means = vector[self.p - self.M * self.d :].reshape(self.M, self.d)
        if self.known is not None:
            return GaussianMixtureTheta(self.known, means)
        free = vector[: self.M - 1]
        return GaussianMixtureTheta(np.append(free, 1.0 - free.sum()), means)

    def phi(self, theta: GaussianMixtureTheta) -> Array:
        """Return φ(θ), equation (gmm_exp), with φ² = μ_m − μ_M, where the paper has μ_m."""
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.log(theta.weights) - 0.5 * (theta.means**2).sum(axis=1)
            return np.asarray(self.E.T @ np.concatenate([first, theta.means.ravel()]))

    def psi(self, theta: GaussianMixtureTheta) -> float:
        """Return ψ(θ) = −log ω_M + ‖μ_M‖² / 2, before equation (cexp)."""
        return float(-np.log(theta.weights[-1]) + 0.5 * (theta.means[-1] ** 2).sum())

    def log_h(self, batch: Batch) -> Array:
        """Return log h(y) = −‖y‖² / 2 − (d / 2) log 2π, shape (b,)."""
        y = two_dimensional(batch.y)
        return np.asarray(-0.5 * (y**2).sum(axis=1) - 0.5 * self.d * np.log(2.0 * np.pi))

    def jacobian_phi(self, theta: GaussianMixtureTheta) -> Array:
        r"""Return :math:`J_\phi(\theta)`, equation (jacob), whose block (2, 3) is −1; the paper has 0."""
        M, d = self.M, self.d
        full = np.zeros((M * (1 + d), self.p))  # of φ of all components; Eᵀ takes differences to the last
        if self.known is None:
            full[: M - 1, : M - 1] = np.diag(1.0 / theta.weights[:-1])
            full[M - 1, : M - 1] = -1.0 / theta.weights[-1]
        means = self.p - M * d
        for m in range(M):
            full[m, means + m * d : means + (m + 1) * d] = -theta.means[m]
        full[M:, means:] = np.eye(M * d)
        return self.E.T @ full

    def gradient_penalty_psi(self, theta: GaussianMixtureTheta) -> Array:
        """Return the gradient of (regu), the last weight counted once, and of ψ."""
        means = self.delta * theta.means
        means[-1] += theta.means[-1]
        if self.known is not None:
            return means.ravel()
        weights = -self.epsilon / theta.weights[:-1] + (1.0 + self.epsilon) / theta.weights[-1]
        return np.concatenate([weights, means.ravel()])

    def hessian(self, s: Array, theta: GaussianMixtureTheta) -> Array:
        """Return the Hessian of L(s, ·), the equation after (jacob)."""
        s1, _ = self.parts(s)
        means = np.repeat(s1 + self.delta, self.d)
        if self.known is not None:
            return np.diag(means)
        curvature = (s1 + self.epsilon) / theta.weights**2
        hessian = np.zeros((self.p, self.p))
        hessian[: self.M - 1, : self.M - 1] = np.diag(curvature[:-1]) + curvature[-1]
        hessian[self.M - 1 :, self.M - 1 :] = np.diag(means)
        return hessian

    def times_B(self, s: Array, h: Array) -> Array:
        r"""Return B(s)·h in closed form.

        :math:`h^\top B h = \sum_{m=1}^{M} (h^1_m)^2 / (s^1_m + \epsilon) + \|h^2_m - \mu_m h^1_m\|^2 /
        (s^1_m + \delta)`, where :math:`h_M` is minus the sum of the others. With known weights the first part
        is missing: B then has rank M·d.
        """
        s1, s2 = self.parts(s)
        mu = s2 / (s1 + self.delta)[:, None]
        full = self.E @ h
        h1, h2 = full[: self.M], full[self.M :].reshape(self.M, self.d)
        slope = (h2 - mu * h1[:, None]) / (s1 + self.delta)[:, None]
        first = -(slope * mu).sum(axis=1)
        if self.known is None:
            first += h1 / (s1 + self.epsilon)
        return np.asarray(self.E.T @ np.concatenate([first, slope.ravel()]))

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of (condexp_gmm), shape (q,): s² stops at M − 1, then comes s³."""
        return self._without_last(self.bound.statistics(batch, rows, weight))

    def each_statistics(self, batch: Batch, rows: Array) -> Array:
        """Return (condexp_gmm) of each sample, shape (b, q)."""
        y = two_dimensional(batch.y)
        by_component = rows[:, :, None] * y[:, None, :]
        return self._without_last(np.column_stack([rows, by_component.reshape(len(y), -1)]))

    def _without_last(self, full: Array) -> Array:
        """Return statistics (..., q) from those of all M components."""
        weights, by_component = full[..., : self.M - 1], full[..., self.M :]
        parts = by_component.reshape(*full.shape[:-1], self.M, self.d)
        return np.concatenate([weights, by_component[..., : -self.d], parts.sum(axis=-2)], axis=-1)
