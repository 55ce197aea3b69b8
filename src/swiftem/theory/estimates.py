"""The constants as they are seen at sampled points: what the bounds could at best be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from swiftem._checks import check_int
from swiftem._typing import Array
from swiftem.data.source import Batch, Source
from swiftem.models.model import Model
from swiftem.theory.compose import compose_L_e, compose_L_s, compose_L_V
from swiftem.theory.constants import Constant, Constants, check_unweighted, constants
from swiftem.theory.family import Family, family_of
from swiftem.theory.full_pass import full_pass
from swiftem.theory.gaussian_mixture import MixtureFamily
from swiftem.theory.plsa import PLSAFamily
from swiftem.theory.sampled import NEAR, Largest, sample_points, some_samples
from swiftem.theory.sets import radius

__all__ = ["directions", "estimate_constants"]


def directions(family: Family) -> Array:
    r"""Return an orthonormal basis (q, ·) of the space on which υ_min is the smallest eigenvalue.

    All directions for the mixture; :math:`\{\sum_k x_{dk} = 0, \sum_v x_{kv} = \sum_d x_{dk}\}` for pLSA.

    >>> import swiftem
    >>> from swiftem.theory.family import family_of
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
    r"""Return each of the paper's constants as it is seen at sampled points of S_ρ, labelled an estimate.

    Those of H1 to H5 are the largest (υ_min: smallest) value seen, or quotient of a change and the distance
    of the two near points that it was seen between. The true one may be larger: what is computed from these
    numbers is an estimate, not a bound. L_e, L_s and L_V are composed from them as the lemmas do; for what
    is seen of these themselves, which is far less, see :func:`swiftem.theory.estimate_smoothness`. C_Z and
    C_S of a sample are exact and those of :func:`swiftem.theory.constants`.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model, with a penalty.
    data
        As in :func:`swiftem.theory.constants`. Of pLSA matrices of K(D + V) columns are made: small ones.
    n_points : int
        Points of S_ρ, each with one near it.
    rng : numpy.random.Generator, optional
        Where the points come from; by default always the same.

    Returns
    -------
    Constants

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import theory
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> seen, bound = theory.estimate_constants(model, y, n_points=20), theory.constants(model, y)
    >>> seen.L_V.kind, bool(seen.L_V.value < bound.L_V.value)
    ('estimate', True)
    """
    check_int("n_points", n_points, minimum=1)
    rho = radius(model)
    family, source = family_of(model, data)
    check_unweighted(source)
    batch, basis, seen = some_samples(source), directions(family), Largest()
    for s, other in pairwise(sample_points(family, source, rho, n_points, rng)):
        _look(family, source, batch, basis, seen, s, other)
    proven = constants(model, data)
    known = isinstance(family, MixtureFamily) and family.known is not None
    how = f"largest of {n_points} points"
    names = ("C_S", "C_S_residual", "C_phi", "L_phi", "L_p", "L_theta", "L_B", "upsilon_max")
    found = {name: Constant(seen.values[name], "estimate", how) for name in names}
    smallest = Constant(-seen.values["-upsilon_min"], "estimate", f"smallest of {n_points} points")
    L_s = compose_L_s(proven.C_Z, found["L_p"], found["L_theta"])
    return Constants(
        n=source.n, rho=rho, C_S_sample=proven.C_S_sample, C_Z=proven.C_Z, box=proven.box,
        upsilon_min=proven.upsilon_min if known else smallest, L_s=L_s,
        L_e=compose_L_e(
            found["C_phi"], proven.C_Z, found["L_p"], proven.C_S_sample, found["L_phi"]
        ),
        L_V=compose_L_V(found["upsilon_max"], L_s, found["L_B"], found["C_S_residual"]), **found,
    )  # fmt: skip


def _look(
    family: Family, source: Source, batch: Batch, basis: Array, seen: Largest, s: Array, other: Array
) -> None:
    """See all constants between s and a point near it, on the way to another of the set."""
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
