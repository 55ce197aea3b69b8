"""A mixture of any family, bound to its data: the plain equations, the reference of fast E-steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swiftem.core.source import Batch
from swiftem.core.types import Array, Rows, Theta
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute import CHANNELS, CODES, LINEAR
from swiftem.mixture.compute.numpy import softmax
from swiftem.mixture.families import Family, Params
from swiftem.mixture.rows import different_rows, two_dimensional

if TYPE_CHECKING:
    from swiftem.mixture.model import MixtureModel

__all__ = ["BoundMixture", "CodeCoefficients", "MixtureStatistics", "MixtureTheta"]


class MixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,), and ``params``, arrays by the family's names.

    For several blocks, ``params`` is a dict of such dicts, by family.
    """

    weights: Array
    params: Params


class MixtureStatistics(NamedTuple):
    """Statistics, means over samples: ``weights`` (M,) of r_m, ``sums`` (M, p) of r_m·T(y)."""

    weights: Array
    sums: Array


class CodeCoefficients(NamedTuple):
    """θ in the form of E-steps with codes: ``phi`` (p, M), ``constant`` (M,) with log ω, ``table`` (L, M)."""

    phi: Array
    constant: Array
    table: Array


@dataclass(frozen=True, eq=False)
class BoundMixture(BoundComponents):
    """A :class:`swiftem.models.MixtureModel` for its data.

    The family of its ``model`` has all fields that depend on the data.

    Attributes
    ----------
    mean, spread : ndarray, shape (p,)
        Mean and root mean square of the features of the data, in rows of the prior.
    kappa : float
        Strength of the prior on the parameters, for means of samples.
    """

    model: MixtureModel
    mean: Array
    spread: Array
    kappa: float

    @property
    def family(self) -> Family:
        """The family."""
        return self.model.kind

    @property
    def code(self) -> int:
        """Features as given, with codes, or with the family's own channels."""
        return CHANNELS if self.family.channels else CODES if self.family.n_codes else LINEAR

    @property
    def size(self) -> int:  # type: ignore[override]
        """Length of the statistics."""
        return self.n_components * (1 + len(self.mean))

    def like(self) -> MixtureTheta:
        """Return arrays of the parameters' shapes."""
        return MixtureTheta(
            np.empty(self.n_components), _empty(self.family.shapes(self.n_components, self.d))
        )

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R: responsibilities, and as many numbers for each further channel."""
        return self.n_components * (1 + len(self.family.channels))

    def start_rows(self, responsibilities: Array) -> Array:
        """Return rows (b, R) with the factors of channels at a start."""
        return np.hstack([responsibilities, *(value * responsibilities for value in self.family.channels)])

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return equal weights, and components half-way between distinct rows and the mean of all."""
        rows = different_rows(self.source, self.n_components, self.d, rng)
        s = np.empty(self.size)
        parts = self.unpack(s)
        parts.weights[:] = 1.0 / self.n_components
        parts.sums[:] = self.features_around(rows) / self.n_components
        return self.m_step(s)

    def features_around(self, rows: Array) -> Array:
        """Return features half-way between those of rows (k, d), k ≤ M, and their mean over all data."""
        k = len(rows)
        batch = Batch(rows, np.ones(k), np.arange(k))
        alone = self.start_rows(np.eye(k, self.n_components))
        found = self.unpack(self.statistics(batch, alone, batch.weight)).sums[:k]
        return np.asarray(0.5 * (found + self.mean))

    def check_theta(self, theta: Theta, name: str = "theta0") -> MixtureTheta:
        """Return ``theta``, checked against model and data."""
        names = tuple(self.family.shapes(1, 1))
        if not isinstance(theta, MixtureTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, {'=, '.join(names)}=), "
                f"got {type(theta).__name__}."
            )
        found: MixtureTheta = self.model.check_theta(theta.weights, theta.params, self.d, f"{name}.")
        return found

    def features(self, y: Rows) -> Rows:
        """Return T(y)."""
        return self.family.features(y)

    def log_base(self, y: Rows, first: int) -> Array | None:
        """Return log h(y) of rows, which are checked."""
        self.family.checked(y, first)
        return self.family.log_base(y)

    def codes(self, y: Rows, first: int = 0) -> Rows:
        """Return which indicators are one, for rows whose first has index ``first``."""
        return self.family.codes(y, first)

    def coefficients(self, theta: MixtureTheta) -> Any:
        """Return φ(θ); θ itself if the family computes its own E-steps."""
        if self.family.channels:
            return theta
        phi, constant = self.family.natural(theta.params)
        with np.errstate(divide="ignore"):
            constant = constant + np.log(theta.weights)
        if not np.isfinite(phi).all() or np.isnan(constant).any():
            raise ValueError("data must have a scale at which natural parameters are finite: scale columns.")
        if self.code == CODES:
            parts = np.split(phi.T, [len(self.centre)])
            return CodeCoefficients(np.ascontiguousarray(parts[0]), constant, np.ascontiguousarray(parts[1]))
        return Coefficients.linear(phi, constant)

    def posterior(self, batch: Batch, theta: MixtureTheta) -> tuple[Array, Array]:
        """E-step: rows (b, R), responsibilities first, and log-likelihood (b,)."""
        rows, log_likelihood = self.e_step(two_dimensional(batch.y), theta)
        base = self.log_base(two_dimensional(batch.y), int(batch.index[0]))
        return rows, log_likelihood if base is None else log_likelihood + base

    def log_densities(self, batch: Batch, theta: MixtureTheta) -> Array:
        """Return log f(y; θ_m), (b, M)."""
        y = two_dimensional(batch.y)
        logits, _ = self.family.e_step(y, theta.params)
        base = self.log_base(y, int(batch.index[0]))
        return logits if base is None else logits + base[:, None]

    def e_step(self, y: Rows, theta: MixtureTheta) -> tuple[Array, Array]:
        """Return rows (b, R) of samples (b, d), and their log-likelihood without log h(y), (b,)."""
        logits, factors = self.family.e_step(y, theta.params)
        with np.errstate(divide="ignore"):
            logits = logits + np.log(theta.weights)
        rows, log_likelihood = softmax(logits)
        return np.hstack([rows, *(rows * factor for factor in factors)]), log_likelihood

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        family, y, weighted = self.family, two_dimensional(batch.y), rows * weight[:, None]
        n_components, features, first = self.n_components, family.features(y), 0
        sums = []
        for channel, width in enumerate(family.widths(self.d)):
            of_channel = weighted[:, channel * n_components : (channel + 1) * n_components]
            sums.append(of_channel.T @ features[:, first : first + width])
            first += width
        if family.n_codes:
            table = np.zeros((family.n_codes, n_components))
            np.add.at(table, family.codes(y), weighted[:, None, :n_components])
            sums.append(table.T)
        return np.concatenate([weighted[:, :n_components].sum(axis=0), np.hstack(sums).ravel()])

    def solve(self, s: Array) -> MixtureTheta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.split(s)
        least = parts.weights.min()
        if not (least + self.epsilon > 0.0 and least + self.kappa > 0.0 and np.isfinite(s).all()):
            return None
        counts, means = self.means_of(parts)
        params = self.family.m_step(counts, means)
        weights = parts.weights + self.epsilon
        return None if params is None else MixtureTheta(weights / weights.sum(), params)

    def means_of(self, parts: MixtureStatistics) -> tuple[Array, Array]:
        """Return counts (M,) and means of the features (M, p), with the prior added."""
        counts = parts.weights[:, None]
        sums = self.family.clipped(counts, parts.sums)
        counts = counts + self.kappa
        return counts[:, 0], (sums + self.kappa * self.mean) / counts

    def penalty(self, theta: MixtureTheta) -> float:
        """Return the priors' part of the objective."""
        value = super().penalty(theta)
        if self.kappa > 0.0:
            phi, constant = self.family.natural(theta.params)
            value -= self.kappa * float((phi @ self.mean).sum() + constant.sum())
        return value

    def split(self, s: Array) -> MixtureStatistics:
        """Return named views of flat statistics."""
        n_components = self.n_components
        return MixtureStatistics(s[:n_components], s[n_components:].reshape(n_components, -1))

    def unit_factors(self, s: Array) -> Array:
        """Return factors that scale the features to a mean square of one."""
        one = np.ones_like(s)
        self.unpack(one).sums[:] = 1.0 / np.where(self.spread > 0.0, self.spread, 1.0)
        return one


def _empty(shapes: Mapping[str, Any]) -> Params:
    """Return arrays of these shapes, in dicts like ``shapes``."""
    return {
        name: _empty(shape) if isinstance(shape, dict) else np.empty(shape) for name, shape in shapes.items()
    }
