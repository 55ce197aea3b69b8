"""The interface of a mixture bound to its data, for E-steps in every technology."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swiftem.core.compute import Compute, Placement, Technology, choose
from swiftem.core.model import BoundModel
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Rows, Theta
from swiftem.mixture.compute import MIXTURE

__all__ = ["BoundComponents", "Coefficients"]


class Coefficients(NamedTuple):
    r"""θ in the form of compiled E-steps, for features minus the centre.

    Attributes
    ----------
    phi : ndarray, shape (p, M)
        Coefficients of T(y) without its first entry, 1. For Gaussians first of y, then of the squares;
        "tied" omits the squares, which are common to all components.
    constant : ndarray, shape (M,)
        Coefficients of 1, log ω included.
    means : ndarray, shape (M, d)
        Means minus the centre.
    plain : ndarray, shape (M,)
        :math:`\log \omega_m + \log|U_m| - \frac d2 \log 2\pi`: the constant for squares of whitened
        differences.
    whiten : ndarray, shape (M, d, d), (1, d, d) or (0, d, d)
        :math:`U_m^T`; one for all components ("tied"); or none, if ``scales`` replaces it.
    scales : ndarray, shape (M, d) or (0, d)
        Diagonals of :math:`U_m`; empty, like ``whiten``, if only φ is used.
    """

    phi: Array
    constant: Array
    means: Array
    plain: Array
    whiten: Array
    scales: Array

    @classmethod
    def linear(cls, phi: Array, constant: Array) -> Coefficients:
        """Return coefficients (M, p) and (M,) of features that are used as they are."""
        p = phi.shape[1]
        none = np.empty((0, p, p)), np.empty((0, p))
        return cls(np.ascontiguousarray(phi.T), constant, np.zeros_like(phi), constant, *none)


@dataclass(frozen=True, eq=False)
class BoundComponents(BoundModel):
    """A mixture for its data. Its statistics begin with the means of r_m, and their M-step gives θ.

    Attributes
    ----------
    model : GaussianMixtureModel or MixtureModel
        With ``n_components``, and ``in_counts``: whether a prior depends on the total weight.
    source : Source
        The data.
    d : int
        Number of columns of the data.
    centre : ndarray, shape (p,)
        Subtracted from the features before their statistics are computed, unless ``origin`` replaces it.
    epsilon : float
        Penalty on the weights, for means of samples.
    """

    technologies: ClassVar[tuple[Technology, ...]] = MIXTURE
    model: Any
    source: Source
    d: int
    centre: Array
    epsilon: float
    _solved: dict[str, tuple[Array, Theta] | None] = field(default_factory=dict, init=False, repr=False)

    @property
    @abstractmethod
    def code(self) -> int:
        """How E-steps compute T(y): the code of a kind of covariance, or one of those above."""

    @property
    def n_features(self) -> int:
        """p, the number of entries of T(y) without 1."""
        return len(self.origin)

    @property
    def omits_square(self) -> bool:
        """Whether φ omits −½‖Uᵀy‖², which is common to all components."""
        return False

    @property
    def shares_products(self) -> bool:
        """Whether the statistics end with one sum of products yyᵀ for all components."""
        return False

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the entries of T(y) after y, of centred samples (d, b), into ``out`` (p − d, b)."""
        return

    @property
    def origin(self) -> Array:
        """Subtracted from the features by compiled code, (p,); by default the centre."""
        return self.centre

    @property
    def n_components(self) -> int:
        """M."""
        return int(self.model.n_components)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """M: the first M entries of a row are responsibilities."""
        return self.n_components

    @cached_property
    def size(self) -> int:  # type: ignore[override]
        """q, the length of the statistics."""
        return int(self.model.size(self.d))

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R, the length of a posterior row; its first M numbers are responsibilities."""
        return self.n_components

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps in the first technology that can be used."""
        return choose(self.technologies, self, source, placement)

    def features(self, y: Rows) -> Rows:
        """Return the input of compiled code for rows (b, d), (b, p)."""
        return y

    def log_base(self, y: Rows, first: int) -> Array | None:
        """Return the part (b,) of the log-likelihood without θ; ``first`` is the index of the first row."""
        return None

    @abstractmethod
    def coefficients(self, theta: Theta) -> Any:
        """Return φ(θ) as E-steps need it."""

    @abstractmethod
    def like(self) -> Theta:
        """Return parameters with arrays of the right shapes."""

    @abstractmethod
    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return the log-densities of the samples under each component, (b, M)."""

    @abstractmethod
    def split(self, s: Array) -> Any:
        """Return named views of statistics; ``weights`` (M,) and ``sums`` are the first."""

    @abstractmethod
    def solve(self, s: Array) -> Theta | None:
        """Return the M-step of ``s``, or None outside the domain."""

    def unpack(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        return self.split(s)

    def in_domain(self, s: Array) -> bool:
        """Return whether the M-step exists; its result is cached for :meth:`m_step`."""
        theta = self.solve(s)
        self._solved["last"] = None if theta is None else (s.copy(), theta)
        return theta is not None

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep), in the coordinates of the data."""
        last = self._solved.pop("last", None)
        theta = last[1] if last is not None and np.array_equal(last[0], s) else self.solve(s)
        if theta is None:
            raise ValueError("s must lie in the model's domain, where the M-step exists.")
        return theta

    def penalty(self, theta: Theta) -> float:
        """Return −ε Σ log ω_m."""
        if self.epsilon == 0.0:
            return 0.0
        with np.errstate(divide="ignore"):
            return -self.epsilon * float(np.log(theta.weights).sum())
