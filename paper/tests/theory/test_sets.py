"""S_0 and S_ρ: membership in closed form against linear programs, and samples that lie inside."""

import numpy as np
import pytest
from scipy.optimize import linprog

from paper import theory
from paper.tests.theory_problems import CASES, random_s
from paper.theory.family import family_of
from paper.theory.sets import Polygon, sample_S0, sample_S_rho
from swiftem import models

CASE = CASES["two"]
FAMILY, SOURCE = family_of(CASE.model, CASE.data)


def test_samples_lie_inside():
    rng = np.random.default_rng(0)
    rho = theory.radius(CASE.model)
    for _ in range(10):
        inside = sample_S0(FAMILY, SOURCE, rng)
        assert theory.distance_to_S0(CASE.model, CASE.data, inside) < 1e-9
        around = sample_S_rho(FAMILY, SOURCE, rho, rng)
        assert theory.distance_to_S0(CASE.model, CASE.data, around) <= rho + 1e-9


def test_samples_leave_S0():
    rng = np.random.default_rng(0)
    points = [sample_S_rho(FAMILY, SOURCE, 0.1, rng) for _ in range(50)]
    assert max(theory.distance_to_S0(CASE.model, CASE.data, s) for s in points) > 0.09


def by_linear_program(y, s):
    """Return the smallest η such that r_i from 0 to 1 exist whose means differ from s by at most η."""
    n = len(y)
    A = np.stack([np.ones(n), y]) / n
    size = np.ones((2, 1))
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.block([[A, -size], [-A, -size]]),
        b_ub=np.concatenate([s[:2], -s[:2]]),
        bounds=[(0.0, 1.0)] * n + [(0.0, None)],
    )
    return found.fun


def test_polygon_is_the_linear_program():
    rng = np.random.default_rng(1)
    y = np.asarray(CASE.data)
    for _ in range(20):
        s = np.array([rng.uniform(-0.5, 1.5), rng.normal(), np.mean(y)])
        assert Polygon(y).distance(s) == pytest.approx(by_linear_program(y, s), abs=1e-7)


def test_outside_the_affine_hull():
    s = random_s(CASE, 0)
    s[-1] += 0.01
    assert theory.distance_to_S0(CASE.model, CASE.data, s) == np.inf


def test_radius():
    assert theory.radius(models.GaussianMixtureModel(2, delta=0.1, epsilon=0.04)) == 0.02
    with pytest.raises(TypeError, match=r"^model must be"):
        theory.radius(object())
