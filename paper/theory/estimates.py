"""The constants observed at sampled points: lower limits of the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from paper.theory.constants import Constant, Constants, check_unweighted, constants
from paper.theory.family import Family, family_of, full_pass
from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.plsa import PLSAFamily
from paper.theory.sets import radius, sample_S_rho
from swiftem.core.checks import check_int
from swiftem.core.model import Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array

__all__ = ["Smoothness", "directions", "estimate_constants", "estimate_smoothness"]

NEAR = 1e-4
"""Distance from a point to its neighbour, as a share of that to another point of the set."""
MOST_SAMPLES = 500
"""Maximum number of samples whose own statistics are evaluated."""


class Largest:
    """The largest observed value of each name.

    >>> seen = Largest()
    >>> seen.see("C_S", 1.0)
    >>> seen.see("C_S", 0.5)
    >>> seen.values
    {'C_S': 1.0}
    """

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def see(self, name: str, value: SupportsFloat) -> None:
        """Store ``value`` if it is larger than all before."""
        self.values[name] = max(self.values.get(name, -np.inf), float(value))


def _looks(
    model: Model, data: Any, n_points: int, rng: np.random.Generator | None
) -> tuple[Family, Source, Batch, Iterator[tuple[Array, Array]]]:
    """Return family, source, up to 500 evenly spaced samples, and pairs of points of S_ρ, validated.

    They are always the same if ``rng`` is None.
    """
    check_int("n_points", n_points, minimum=1)
    rho = radius(model)
    family, source = family_of(model, data)
    check_unweighted(source)
    batch = source.take(np.unique(np.linspace(0, source.n - 1, MOST_SAMPLES).astype(np.intp)))
    rng = np.random.default_rng(0) if rng is None else rng
    points = (sample_S_rho(family, source, rho, rng) for _ in range(n_points + 1))
    return family, source, batch, pairwise(points)


def directions(family: Family) -> Array:
    r"""Return an orthonormal basis (q, ·) of the space on which υ_min is the smallest eigenvalue.

    All directions for the mixture; :math:`\{\sum_k x_{dk} = 0, \sum_v x_{kv} = \sum_d x_{dk}\}` for pLSA.

    >>> import swiftem
    >>> from paper.theory.family import family_of
    >>> family, _ = family_of(swiftem.models.PLSAModel(n_topics=2), ([0, 0, 1], [0, 1, 2]))
    >>> directions(family).shape  # K(D + V) − D − K
    (10, 6)
    """
    if not isinstance(family, PLSAFamily):
        return np.eye(family.q)
    K, D, V = family.K, family.D, family.V
    constraints = np.zeros((D + K, family.q))
    for d in range(D):
        constraints[d, d * K : (d + 1) * K] = 1.0
    for k in range(K):
        constraints[D + k, k : D * K : K] = -1.0
        constraints[D + k, D * K + k * V : D * K + (k + 1) * V] = 1.0
    _, _, rows = np.linalg.svd(constraints)
    return np.asarray(rows[D + K :].T)


def estimate_constants(
    model: Model, data: Any, *, n_points: int = 200, rng: np.random.Generator | None = None
) -> Constants:
    r"""Return each of the paper's constants as observed at sampled points of S_ρ, labelled an estimate.

    Those of H1 to H5 are the largest (υ_min: smallest) observed value, or quotient of a change and the
    distance of two near points. The true one may be larger: numbers computed from these are estimates, not
    bounds. L_e, L_s and L_V are composed from them as in the lemmas; their own observed values, which are far
    smaller, are in :func:`paper.theory.estimate_smoothness`. C_Z and C_S of a sample are exact and those
    of :func:`paper.theory.constants`.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model, with a penalty.
    data
        As in :func:`paper.theory.constants`. For pLSA matrices of K(D + V) columns are made: use small
        data.
    n_points : int
        Number of points of S_ρ, each with a neighbour.
    rng : numpy.random.Generator, optional
        Generator of the points; by default they are always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> seen, bound = theory.estimate_constants(model, y, n_points=20), theory.constants(model, y)
    >>> seen.L_V.kind, bool(seen.L_V.value < bound.L_V.value)
    ('estimate', True)
    """
    family, source, batch, points = _looks(model, data, n_points, rng)
    basis, seen = directions(family), Largest()
    for s, other in points:
        _look(family, source, batch, basis, seen, s, other)
    proven = constants(model, data)
    known = isinstance(family, MixtureFamily) and family.known is not None
    how = f"largest of {n_points} points"
    names = ("C_S", "C_S_residual", "C_phi", "L_phi", "L_p", "L_theta", "L_B", "upsilon_max")
    found = {name: Constant(seen.values[name], "estimate", how) for name in names}
    smallest = Constant(-seen.values["-upsilon_min"], "estimate", f"smallest of {n_points} points")
    return Constants.composed(
        n=source.n,
        rho=proven.rho,
        C_S_sample=proven.C_S_sample,
        C_Z=proven.C_Z,
        box=proven.box,
        upsilon_min=proven.upsilon_min if known else smallest,
        **found,
    )


def _look(
    family: Family, source: Source, batch: Batch, basis: Array, seen: Largest, s: Array, other: Array
) -> None:
    """Evaluate all constants between s and a neighbour, in the direction of another point of the set."""
    near = s + NEAR * (other - s)
    way = float(np.linalg.norm(near - s))
    if way == 0.0:
        return
    B, B_near = family.B(s), family.B(near)
    theta, theta_near = family.theta(s), family.theta(near)
    moved = float(np.linalg.norm(family.vector(theta_near) - family.vector(theta)))
    J, J_near = family.jacobian_phi(theta), family.jacobian_phi(theta_near)
    rows, rows_near = (family.bound.posterior(batch, at)[0] for at in (theta, theta_near))
    seen.see("C_S", np.linalg.norm(other - s))
    seen.see("C_S_residual", np.linalg.norm(s - full_pass(family, source, theta).s))
    seen.see("C_phi", np.linalg.norm(J, 2))
    seen.see("L_phi", np.linalg.norm(J_near - J, 2) / moved)
    seen.see("L_p", np.abs(rows_near - rows).max() / moved)
    seen.see("L_theta", moved / way)
    seen.see("L_B", np.linalg.norm(B_near - B, 2) / way)
    seen.see("upsilon_max", np.linalg.norm(B, 2))
    seen.see("-upsilon_min", -np.linalg.eigvalsh(basis.T @ B @ basis)[0])


class Smoothness(NamedTuple):
    """L_e of Lemma lips_theta, L_s and L_V of Lemma smooth: the smallest that the observations allow."""

    L_e: Constant
    L_s: Constant
    L_V: Constant


def estimate_smoothness(
    model: Model, data: Any, *, n_points: int = 200, rng: np.random.Generator | None = None
) -> Smoothness:
    r"""Return the largest observed change of gradients and statistics between near points of S_ρ.

    The lemmas bound each by a product of worst cases that do not occur together; these values show how much
    is lost by that. With ``dataclasses.replace(constants, **smoothness._asdict())`` the theorems use them.

    Parameters
    ----------
    model, data, n_points, rng
        As in :func:`paper.theory.estimate_constants`.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> seen = theory.estimate_smoothness(model, y, n_points=20)
    >>> seen.L_V.kind, bool(10 * seen.L_V.value < theory.constants(model, y).L_V.value)
    ('estimate', True)
    """
    family, source, batch, points = _looks(model, data, n_points, rng)
    seen = Largest()
    for s, other in points:
        _look_smoothness(family, source, batch, seen, s, other)
    how = f"largest of {n_points} points"
    return Smoothness(*(Constant(seen.values[name], "estimate", how) for name in Smoothness._fields))


def _look_smoothness(
    family: Family, source: Source, batch: Batch, seen: Largest, s: Array, other: Array
) -> None:
    """Evaluate the changes between s and a neighbour, in the direction of another point of the set."""
    near = s + NEAR * (other - s)
    way = float(np.linalg.norm(near - s))
    if way == 0.0:
        return
    theta, theta_near, theta_far = family.theta(s), family.theta(near), family.theta(other)
    moved = float(np.linalg.norm(family.vector(theta_near) - family.vector(theta)))
    each, each_near, each_far = (
        family.each_statistics(batch, family.bound.posterior(batch, at)[0])
        for at in (theta, theta_near, theta_far)
    )
    gradient, gradient_near = (
        family.times_B(x, x - full_pass(family, source, at).s) for x, at in ((s, theta), (near, theta_near))
    )
    # The gradient of e_i, which has the opposite sign in the paper (line 509).
    gap = (each - each_far) @ family.jacobian_phi(theta)
    gap_near = (each_near - each_far) @ family.jacobian_phi(theta_near)
    seen.see("L_e", np.linalg.norm(gap_near - gap, axis=1).max() / moved)
    seen.see("L_s", np.linalg.norm(each_near - each, axis=1).max() / way)
    seen.see("L_V", np.linalg.norm(gradient_near - gradient) / way)
