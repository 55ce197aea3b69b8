"""The constants observed at sampled points: lower limits of the bounds."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from paper.theory.constants import Constant, Constants, constants
from paper.theory.family import family_of, full_pass
from paper.theory.sets import sample_S_rho
from swiftem.core.checks import check_int
from swiftem.core.model import Model

NEAR = 1e-4
"""Distance from a point to its neighbour, as a share of that to another point of the set."""
MOST_SAMPLES = 500
"""Maximum number of samples whose own statistics are evaluated, evenly spaced."""


class Smoothness(NamedTuple):
    """L_e of Lemma lips_theta, L_s and L_V of Lemma smooth: the smallest that the observations allow."""

    L_e: Constant
    L_s: Constant
    L_V: Constant


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
    model, data
        As in :func:`paper.theory.constants`.
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
    proven = constants(model, data)
    seen = _largest(model, data, proven.rho, n_points, rng)
    how = f"largest of {n_points} points"
    names = ("C_S", "C_S_residual", "C_phi", "L_phi", "L_p", "L_theta", "L_B", "upsilon_max")
    smallest = Constant(-seen["-upsilon_min"], "estimate", f"smallest of {n_points} points")
    return Constants.composed(
        n=proven.n,
        rho=proven.rho,
        C_S_sample=proven.C_S_sample,
        C_Z=proven.C_Z,
        box=proven.box,
        upsilon_min=smallest if proven.upsilon_min.value else proven.upsilon_min,
        **{name: Constant(seen[name], "estimate", how) for name in names},
    )


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
    seen = _largest(model, data, constants(model, data).rho, n_points, rng)
    how = f"largest of {n_points} points"
    return Smoothness(*(Constant(seen[f"{name} itself"], "estimate", how) for name in Smoothness._fields))


def _largest(
    model: Model, data: Any, rho: float, n_points: int, rng: np.random.Generator | None
) -> dict[str, float]:
    """Return the largest value of each constant at points and their neighbours on the way to the next."""
    check_int("n_points", n_points, minimum=1)
    family, source = family_of(model, data)
    batch = source.take(np.unique(np.linspace(0, source.n - 1, MOST_SAMPLES).astype(np.intp)))
    rng = np.random.default_rng(0) if rng is None else rng
    seen: dict[str, float] = defaultdict(lambda: -np.inf)
    for s, other in pairwise([sample_S_rho(family, source, rho, rng) for _ in range(n_points + 1)]):
        near = s + NEAR * (other - s)
        step = float(np.linalg.norm(near - s))
        if step == 0.0:
            continue
        B, B_near = family.B(s), family.B(near)
        thetas = [family.theta(x) for x in (s, near, other)]
        moved = float(np.linalg.norm(family.vector(thetas[1]) - family.vector(thetas[0])))
        J, J_near = (family.jacobian_phi(theta) for theta in thetas[:2])
        rows = [family.bound.posterior(batch, theta)[0] for theta in thetas]
        each = [family.each_statistics(batch, row) for row in rows]
        h, h_near = (
            x - full_pass(family, source, theta).s for x, theta in zip((s, near), thetas[:2], strict=True)
        )
        # The gradient of e_i, which has the opposite sign in the paper (line 509).
        gap, gap_near = (each[0] - each[2]) @ J, (each[1] - each[2]) @ J_near
        for name, value in {
            "C_S": np.linalg.norm(other - s),
            "C_S_residual": np.linalg.norm(h),
            "C_phi": np.linalg.norm(J, 2),
            "L_phi": np.linalg.norm(J_near - J, 2) / moved,
            "L_p": np.abs(rows[1] - rows[0]).max() / moved,
            "L_theta": moved / step,
            "L_B": np.linalg.norm(B_near - B, 2) / step,
            "upsilon_max": np.linalg.norm(B, 2),
            "-upsilon_min": -np.linalg.eigvalsh(B)[0],
            "L_e itself": np.linalg.norm(gap_near - gap, axis=1).max() / moved,
            "L_s itself": np.linalg.norm(each[1] - each[0], axis=1).max() / step,
            "L_V itself": np.linalg.norm(family.times_B(near, h_near) - family.times_B(s, h)) / step,
        }.items():
            seen[name] = max(seen[name], float(value))
    return seen
