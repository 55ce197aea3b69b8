"""S_0 and S_ρ: membership in closed form against linear programs, and samples that lie inside."""

import numpy as np
import pytest

from paper import theory
from paper.tests.theory_problems import CASES, random_s
from paper.theory.family import family_of
from paper.theory.polygon import Polygon
from paper.theory.sets import _by_linear_program, max_norm, sample_S0, sample_S_rho
from swiftem import models

NAMES = ["two", "three", "plane", "topics"]
cases = pytest.mark.parametrize("case", [CASES[name] for name in NAMES], ids=NAMES)


@cases
def test_samples_lie_inside(case):
    family, source = family_of(case.model, case.data)
    rng = np.random.default_rng(0)
    rho = theory.radius(case.model)
    for _ in range(10):
        inside = sample_S0(family, source, rng)
        assert theory.distance_to_S0(case.model, case.data, inside) < 1e-9
        around = sample_S_rho(family, source, rho, rng)
        assert theory.distance_to_S0(case.model, case.data, around) <= rho + 1e-9


def test_samples_leave_S0():
    case = CASES["two"]
    family, source = family_of(case.model, case.data)
    rng = np.random.default_rng(0)
    far = [
        theory.distance_to_S0(case.model, case.data, sample_S_rho(family, source, 0.1, rng))
        for _ in range(50)
    ]
    assert max(far) > 0.09


def test_polygon_is_the_linear_program():
    case = CASES["two"]
    family, source = family_of(case.model, case.data)
    rng = np.random.default_rng(1)
    polygon = Polygon(np.asarray(case.data))
    for _ in range(20):
        s = np.array([rng.uniform(-0.5, 1.5), rng.normal(), np.mean(case.data)])
        assert polygon.distance(s) == pytest.approx(_by_linear_program(family, source, s), abs=1e-7)


@cases
def test_outside_the_affine_hull(case):
    s = random_s(case, 0)
    s[-1] += 0.01
    assert theory.distance_to_S0(case.model, case.data, s) == np.inf


def test_the_last_component_counts():
    family, _ = family_of(CASES["three"].model, CASES["three"].data)
    assert max_norm(family, np.array([0.1, 0.1, 0.0, 0.0, 0.0])) == pytest.approx(0.2)


def test_radius():
    assert theory.radius(models.PLSAModel(2, alpha=0.1, beta=0.04)) == 0.02
    with pytest.raises(TypeError, match=r"^model must be"):
        theory.radius(object())
