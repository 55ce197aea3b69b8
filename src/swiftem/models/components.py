"""The interface of a mixture bound to its data, for compiled E-steps and estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index, Theta
from swiftem.data.source import Batch, Source

__all__ = ["DEAD", "BoundComponents", "Coefficients", "share_largest"]

DEAD = 1e-6
"""A component with fewer rows, counted by responsibilities and by weights of mean 1, is dead."""


class Coefficients(NamedTuple):
    r"""θ in the form of compiled E-steps, for features minus the centre.

    Attributes
    ----------
    phi : ndarray, shape (p, M)
        Coefficients of T(y) without its first entry, 1. For Gaussians those of y, then those of the squares;
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


def share_largest(weights: Array, parts: Sequence[Array]) -> Index:
    """Give components without weight an equal share of the largest one's statistics, in place.

    Parameters
    ----------
    weights : ndarray, shape (M,)
        Weights of the components; they may be one of the parts.
    parts : sequence of ndarray, shapes (M, ...)
        Statistics by component.

    Returns
    -------
    ndarray of int
        The components that had none.
    """
    empty, largest = np.flatnonzero(weights <= 0.0), int(weights.argmax())
    sharing = np.append(empty, largest)
    for part in parts:
        part[sharing] = part[largest] / len(sharing)
    return empty


class BoundComponents(ABC):
    """A mixture for its data. Its statistics begin with the means of r_m, and their M-step gives θ.

    Attributes
    ----------
    model : Model
        With ``n_components``, and ``in_counts``: whether a prior depends on the total weight.
    source : Source
        The data.
    centre : ndarray, shape (p,)
        Subtracted from the features before their statistics are computed, unless ``origin`` replaces it.
    ILL_DEFINED, REMEDY : str
        The error for data that do not allow such components, and a remedy for components that lose all rows.
    """

    ILL_DEFINED: ClassVar[str]
    REMEDY: ClassVar[str]
    model: Any
    source: Source
    centre: Array

    @property
    @abstractmethod
    def code(self) -> int:
        """How compiled code computes the features, see :mod:`swiftem.engine.numba.gaussian_blocks`."""

    @property
    def origin(self) -> Array:
        """Subtracted from the features by compiled code, (p,); by default the centre."""
        return self.centre

    @property
    @abstractmethod
    def is_held(self) -> bool:
        """Whether a prior keeps components without rows."""

    @property
    def n_components(self) -> int:
        """M."""
        return int(self.model.n_components)

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of columns of the data."""

    @property
    @abstractmethod
    def size(self) -> int:
        """q, the length of the statistics."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters."""

    @property
    def row_length(self) -> int:
        """R, the length of a posterior row; its first M numbers are responsibilities."""
        return self.n_components

    def for_start(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the rows (b, k) that k-means gets for a start, made of rows (b, d)."""
        return y

    def start_rows(self, responsibilities: Array, batch: Batch | None = None) -> Array:
        """Return posterior rows (b, R) of responsibilities (b, M) of a start.

        The samples are needed if the statistics are not linear in the responsibilities.
        """
        return responsibilities

    @abstractmethod
    def like(self) -> Theta:
        """Return arrays of the parameters' shapes."""

    @property
    @abstractmethod
    def about(self) -> Array:
        """Argument ``centre`` of ``model.bind`` for other rows, so that their statistics can be added."""

    @abstractmethod
    def with_share(self, share: float) -> Self:
        """Return the same with a prior in counts that has this share of its weight."""

    def features(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the input of compiled code for rows (b, d), (b, p)."""
        return y

    def log_base(self, y: NDArray[Any], first: int) -> Array | None:
        """Return the part (b,) of the log-likelihood without θ; ``first`` is the index of the first row."""
        return None

    @abstractmethod
    def coefficients(self, theta: Any) -> Any:
        """Return φ(θ) as E-steps need it."""

    @abstractmethod
    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return random initial parameters."""

    @abstractmethod
    def check_theta(self, theta: Any, name: str = "theta0") -> Theta:
        """Return ``theta``, checked against model and data."""

    @abstractmethod
    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""

    @abstractmethod
    def posterior(self, batch: Batch, theta: Any) -> tuple[Array, Array]:
        """E-step: rows (b, R), the first M of them responsibilities, and log-likelihood (b,)."""

    @abstractmethod
    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists at ``s``."""

    @abstractmethod
    def m_step(self, s: Array) -> Any:
        """Return θ̄(s)."""

    @abstractmethod
    def penalty(self, theta: Any) -> float:
        """Return Pen(θ)."""

    @abstractmethod
    def unpack(self, s: Array) -> Any:
        """Return named views of the flat statistics; ``weights`` (M,) and ``sums`` are the first."""

    def dead(self, s: Array, n: int) -> Index:
        """Return the components without rows, of n; none if a prior keeps them."""
        if self.is_held:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self.unpack(s).weights * n < DEAD)

    @abstractmethod
    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step of their own."""

    @abstractmethod
    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> Theta:
        """Return parameters for statistics of a start that are outside the domain.

        The components without rows share those of the largest one, around the given ``rows`` (k, d).
        """

    @abstractmethod
    def reset(self, theta: Any, s: Array, gone: Index, rows: Array, rng: np.random.Generator) -> Theta:
        """Return θ, whose statistics are ``s``, with some components moved to ``rows`` (k, d)."""

    @abstractmethod
    def draw(self, theta: Any, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return random rows (count, d) of the components ``labels`` (count,)."""

    def redraw(self, theta: Any, s: Array, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return random rows (count, d) like those of the statistics ``s``; by default those of θ."""
        return self.draw(theta, labels, rng)

    @abstractmethod
    def imputed(
        self, y: NDArray[Any], rows: Array, theta: Any, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Return rows (b, d) with missing cells filled in, given responsibilities (b, M).

        They have their conditional means, or random draws if there is a generator.
        """

    @abstractmethod
    def without_unit(self, s: Array) -> Array:
        """Return factors that make each statistic free of units."""
