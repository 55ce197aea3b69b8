"""The Lipschitz constants that the lemmas prove, as they are seen directly at sampled points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from swiftem._checks import check_int
from swiftem._typing import Array
from swiftem.data.source import Batch, Source
from swiftem.models.model import Model
from swiftem.theory.constants import Constant, check_unweighted
from swiftem.theory.family import Family, family_of
from swiftem.theory.full_pass import full_pass
from swiftem.theory.sampled import NEAR, Largest, sample_points, some_samples
from swiftem.theory.sets import radius

__all__ = ["Smoothness", "estimate_smoothness"]


class Smoothness(NamedTuple):
    """L_e of Lemma lips_theta, L_s and L_V of Lemma smooth: the smallest that what was seen allows."""

    L_e: Constant
    L_s: Constant
    L_V: Constant


def estimate_smoothness(
    model: Model, data: Any, *, n_points: int = 200, rng: np.random.Generator | None = None
) -> Smoothness:
    r"""Return how much gradients and statistics change between near points of S_ρ, at most, as seen.

    The lemmas bound each by a product of worst cases that do not occur together; what is seen tells how much
    is lost by that. With ``dataclasses.replace(constants, **smoothness._asdict())`` the theorems take them.

    Parameters
    ----------
    model, data, n_points, rng
        As in :func:`swiftem.theory.estimate_constants`.

    Returns
    -------
    Smoothness

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import theory
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> seen = theory.estimate_smoothness(model, y, n_points=20)
    >>> seen.L_V.kind, bool(10 * seen.L_V.value < theory.constants(model, y).L_V.value)
    ('estimate', True)
    """
    check_int("n_points", n_points, minimum=1)
    family, source = family_of(model, data)
    check_unweighted(source)
    batch, seen = some_samples(source), Largest()
    for s, other in pairwise(sample_points(family, source, radius(model), n_points, rng)):
        _look(family, source, batch, seen, s, other)
    how = f"largest of {n_points} points"
    return Smoothness(*(Constant(seen.values[name], "estimate", how) for name in Smoothness._fields))


def _look(family: Family, source: Source, batch: Batch, seen: Largest, s: Array, other: Array) -> None:
    """See the changes between s and a point near it, on the way to another of the set."""
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
    # The gradient of e_i, whose sign in the paper (line 509) is the other one.
    gap = (each - each_far) @ family.jacobian_phi(theta)
    gap_near = (each_near - each_far) @ family.jacobian_phi(theta_near)
    seen.see("L_e", np.linalg.norm(gap_near - gap, axis=1).max() / moved)
    seen.see("L_s", np.linalg.norm(each_near - each, axis=1).max() / way)
    seen.see("L_V", np.linalg.norm(gradient_near - gradient) / way)
