"""The constants of H1 to H5 and of the lemmas, each a proven bound or an estimate.

Bounds and estimates are two functions with one result type. Each constant has a label, so that they cannot be
confused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from paper.theory.family import family_of
from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.sets import radius
from swiftem.core.model import Model
from swiftem.core.source import Source
from swiftem.core.types import Array

__all__ = ["Box", "Constant", "Constants", "Kind", "check_unweighted", "constants", "weaker"]

Kind = Literal["bound", "estimate"]
"""Proven for every point of the set, or observed at sampled points."""


ROUNDING = 1e-12
"""S_ρ has corners, at which parameters are on the boundary of the box."""


class Constant(NamedTuple):
    """A number, whether it is a ``"bound"`` or an ``"estimate"``, and its origin, in words."""

    value: float
    kind: Kind
    how: str


def weaker(*parts: Constant) -> Kind:
    """Return the kind of a number computed from these: one estimate makes an estimate."""
    return "bound" if all(part.kind == "bound" for part in parts) else "estimate"


class Box(NamedTuple):
    r"""Bounds ``low`` and ``high`` (·,) of all parameters, with the last ones, that contain conv θ̄(S_ρ).

    Constants of parameters, C_φ, L_φ and L_p, are bounds on the whole box: it is convex, too.
    """

    low: Array
    high: Array

    def holds(self, theta: Any) -> bool:
        """Tell whether these parameters, weights and means or the two tables of pLSA, are inside."""
        values = np.concatenate([np.ravel(part) for part in theta[:2]])
        slack = ROUNDING * (1.0 + np.abs(values))
        return bool(((values >= self.low - slack) & (values <= self.high + slack)).all())


@dataclass(frozen=True)
class Constants:
    r"""The paper's constants for one model and data; see :func:`constants`.

    Attributes
    ----------
    n : int
        Samples.
    rho : float
        ρ of the set S_ρ.
    C_S : Constant
        Diameter of S_ρ.
    C_S_sample : Constant
        The meaning of C_S in L_e: the largest diameter of conv S(·, y_i).
    C_S_residual : Constant
        The meaning of C_S in L_V: the largest :math:`\|s - \bar s(\bar\theta(s))\|` on S_ρ.
    C_Z : Constant
        Largest :math:`\sum_z \|S(z, y_i)\|`.
    C_phi, L_phi : Constant
        Norm of the Jacobian of φ, and its Lipschitz constant, on conv θ̄(S_ρ).
    L_p : Constant
        Lipschitz constant of the posterior probabilities in θ, there.
    L_theta, L_B : Constant
        Lipschitz constants of θ̄(s) and of B(s) on S_ρ.
    upsilon_min, upsilon_max : Constant
        Smallest and largest eigenvalue of B(s) on S_ρ. For pLSA the smallest is that on
        :math:`\{\sum_k x_{dk} = 0, \sum_v x_{kv} = \sum_d x_{dk}\}`; it is zero on the rest.
    L_e : Constant
        :math:`C_\phi C_Z L_p + C_S L_\phi`, Lemma lips_theta.
    L_s, L_V : Constant
        :math:`C_Z L_p L_\theta` and :math:`\upsilon_{\max}(1 + L_s) + L_B C_S`, Lemma smooth.
    box : Box
        Parameters for which C_φ, L_φ and L_p hold.
    """

    n: int
    rho: float
    C_S: Constant
    C_S_sample: Constant
    C_S_residual: Constant
    C_Z: Constant
    C_phi: Constant
    L_phi: Constant
    L_p: Constant
    L_theta: Constant
    L_B: Constant
    upsilon_min: Constant
    upsilon_max: Constant
    L_e: Constant
    L_s: Constant
    L_V: Constant
    box: Box

    @classmethod
    def composed(cls, **found: Any) -> Constants:
        """Return the constants with L_e, L_s and L_V composed from the others, as in the lemmas."""
        C_Z, L_p, L_phi, C_phi = (found[name] for name in ("C_Z", "L_p", "L_phi", "C_phi"))
        upsilon, L_B, sample, residual = (
            found[name] for name in ("upsilon_max", "L_B", "C_S_sample", "C_S_residual")
        )
        e = C_phi.value * C_Z.value * L_p.value + sample.value * L_phi.value
        s = C_Z.value * L_p.value * found["L_theta"].value
        V = upsilon.value * (1.0 + s) + L_B.value * residual.value
        L_s = Constant(s, weaker(C_Z, L_p, found["L_theta"]), "C_Z·L_p·L_θ")
        return cls(
            L_e=Constant(e, weaker(C_phi, C_Z, L_p, sample, L_phi), "C_φ·C_Z·L_p + C_S·L_φ"),
            L_s=L_s,
            L_V=Constant(V, weaker(upsilon, L_s, L_B, residual), "υ_max·(1 + L_s) + L_B·C_S"),
            **found,
        )

    @property
    def L_v(self) -> Constant:
        r"""Return :math:`\overline L_v = \max(L_V, L_s)` of Theorem 2."""
        larger = max(self.L_V, self.L_s, key=lambda constant: constant.value)
        return Constant(larger.value, weaker(self.L_V, self.L_s), "max(L_V, L_s)")

    def named(self) -> dict[str, Constant]:
        """Return the constants by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Constant)}

    def __str__(self) -> str:
        lines = [f"n = {self.n}, ρ = {self.rho:g}"]
        for name, (value, kind, how) in self.named().items():
            lines.append(f"{name:<13} {value:<12.5g} {kind:<9} {how}")
        return "\n".join(lines)


def constants(model: Model, data: Any) -> Constants:
    r"""Return a proven bound for each of the paper's constants, on S_ρ and conv θ̄(S_ρ).

    S_0 is the set of all means of :math:`s_i \in \mathrm{conv}\, S(\cdot, y_i)`, and S_ρ the points of its
    affine hull that are at most ρ away from it in max-norm; ρ is :func:`paper.theory.radius`. Norms are
    Euclidean and spectral. The proofs are summarised in ``how`` and given in the functions of
    :mod:`paper.theory.mixture_bounds` and :mod:`paper.theory.plsa_bounds`. For how much smaller they
    could be see :func:`paper.theory.estimate_constants`.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model, with a penalty.
    data
        As in :func:`swiftem.run`: numbers (n,) for the mixture; without weights, as the theorems have none.

    Examples
    --------
    >>> from paper import theory
    >>> from swiftem import models
    >>> found = theory.constants(models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), range(9))
    >>> found.rho, found.upsilon_min.kind
    (0.5, 'bound')
    >>> bool(0 < found.upsilon_min.value < 0.25 < found.upsilon_max.value)
    True
    """
    from paper.theory.mixture_bounds import mixture_bounds
    from paper.theory.plsa_bounds import plsa_bounds

    rho = radius(model)
    family, source = family_of(model, data)
    check_unweighted(source)
    if isinstance(family, MixtureFamily):
        return mixture_bounds(family, source, rho)
    return plsa_bounds(family, source, rho)


def check_unweighted(source: Source) -> None:
    """Raise ValueError for weights other than one: the theorems are about uniformly drawn samples."""
    if any((batch.weight != 1.0).any() for batch in source.blocks(4096)):
        raise ValueError(
            "data must have no weights and whole counts for the constants of the theorems, got weights other "
            "than 1."
        )
