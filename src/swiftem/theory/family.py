"""What the theory needs of a model: the curved exponential family in the paper's coordinates."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureModel
from swiftem.models.model import BoundModel, Model
from swiftem.models.plsa import BoundPLSA, PLSAModel
from swiftem.problem import Problem

__all__ = ["Family", "family_of"]


class Family(Protocol):
    r"""A model as equation (exp): :math:`\log f = \log h + \langle S, \phi(\theta)\rangle - \psi(\theta)`.

    Statistics have q coordinates and parameters p, as in the paper, where what the others determine is left
    out: the last weight, for example. ``vector`` and ``from_vector`` go from the library's θ to p numbers and
    back.
    """

    q: int
    p: int
    columns: int  # of a posterior: M or K

    @property
    def bound(self) -> BoundModel:
        """The model, for its data."""
        ...

    def coordinates(self, s: ArrayLike) -> Array:
        """Return statistics in the paper's coordinates (q,), checked: M-step and B must exist there."""
        ...

    def library_statistics(self, s: Array) -> Array:
        """Return statistics as ``swiftem.run`` has them, from the paper's coordinates (q,)."""
        ...

    def every_change(self, change: Array) -> Array:
        """Return a change of statistics (q,) with what the coordinates leave out."""
        ...

    def theta(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep)."""
        ...

    def vector(self, theta: Theta) -> Array:
        """Return parameters as p numbers."""
        ...

    def from_vector(self, vector: Array) -> Theta:
        """Return parameters from p numbers."""
        ...

    def phi(self, theta: Theta) -> Array:
        r"""Return :math:`\phi(\theta)`, shape (q,)."""
        ...

    def psi(self, theta: Theta) -> float:
        r"""Return :math:`\psi(\theta)`."""
        ...

    def log_h(self, batch: Batch) -> Array:
        """Return log h(y_i) of each sample, shape (b,)."""
        ...

    def jacobian_phi(self, theta: Theta) -> Array:
        r"""Return :math:`J_\phi(\theta)`, shape (q, p)."""
        ...

    def gradient_penalty_psi(self, theta: Theta) -> Array:
        r"""Return the gradient of :math:`\mathrm{Pen} + \psi`, shape (p,)."""
        ...

    def hessian(self, s: Array, theta: Theta) -> Array:
        r"""Return the Hessian in θ of :math:`L(s, \theta)`, shape (p, p)."""
        ...

    def B(self, s: Array) -> Array:
        """Return B(s), equation (Bss), shape (q, q)."""
        ...

    def times_B(self, s: Array, h: Array) -> Array:
        """Return B(s)·h, shape (q,), without the matrix."""
        ...

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics in the paper's coordinates, shape (q,)."""
        ...

    def each_statistics(self, batch: Batch, rows: Array) -> Array:
        """Return each sample's statistics in the paper's coordinates, shape (b, q)."""
        ...


def family_of(model: Model, data: Any, sample_weight: ArrayLike | None = None) -> tuple[Family, Source]:
    """Return the family of a model for its data, and the source.

    >>> import swiftem
    >>> from swiftem.theory.family import family_of
    >>> family, source = family_of(swiftem.models.GaussianMixtureModel(n_components=3), [0.0, 1.0, 2.0])
    >>> family.q, family.p, source.n
    (5, 5, 3)
    """
    from swiftem.theory.gaussian_mixture import MixtureFamily
    from swiftem.theory.plsa import PLSAFamily

    unit = isinstance(model, GaussianMixtureModel) and model.covariance == "unit"
    if not (unit or isinstance(model, PLSAModel)):
        raise TypeError(
            "model must be a GaussianMixtureModel with covariance='unit' or a PLSAModel, the two whose B(s) "
            f"is known in closed form, got {model!r}."
        )
    problem = Problem.read(model, data, sample_weight)
    bound, source = problem.bound, problem.source
    if isinstance(bound, BoundGaussianMixture):
        return MixtureFamily(bound), source
    assert isinstance(bound, BoundPLSA)
    return PLSAFamily(bound), source
