"""All methods on five problems: which methods, what the rows are, and growing samples."""

import numpy as np
import pytest

from paper.experiments.methods import CASES, RECURSIVE, compare_methods, methods_for
from swiftem import methods


@pytest.fixture(scope="module")
def paper():
    return compare_methods(runs=2, quick=True, sizes=(200, 400), cases=["paper"])


def test_all_methods_of_the_registry_and_accelerated_em(paper):
    every = {*methods.METHODS, "em+squarem", "em+anderson"}
    assert {row.method for row in paper.rows if row.part == "curve"} == every
    assert {row.method for row in paper.rows if row.part == "scaling"} == set(methods.METHODS)
    assert RECURSIVE in every
    assert {row.method for row in paper.rows if row.part == "variance"} == {"opt-fiem"}


def test_the_best_run_is_the_optimum(paper):
    values = [row.value for row in paper.rows if row.part == "curve"]
    assert min(values) >= 0.0
    first = {(row.method, row.run): row.value for row in reversed(paper.rows) if row.part == "curve"}
    for number in (0, 1):
        starts = {value for (_, run), value in first.items() if run == number}
        assert len({round(value, 12) for value in starts}) == 1  # all methods have one start


def test_passes_and_m_steps_of_em(paper):
    points = [row for row in paper.rows if (row.part, row.method, row.run) == ("curve", "em", 0)]
    assert [row.passes for row in points] == list(np.arange(1.0, 14.0))
    assert [row.m_steps for row in points] == list(range(13))


def test_evaluations_are_passes_times_n(paper):
    found = [row for row in paper.rows if row.part == "scaling" and np.isfinite(row.value)]
    assert found
    assert all(row.value == row.passes * row.n for row in found)


@pytest.mark.parametrize("name", CASES)
def test_every_problem_can_be_made(name):
    made = CASES[name].make(30 if name == "topics" else 150, np.random.default_rng(0))
    made_methods = methods_for(made)
    assert made_methods["sem-vr"].batch_size == int(np.ceil(np.sqrt(made.source.n)))
    assert 0.0 < made_methods["fiem"].step_size <= 0.3
    made.model.bind(made.source).check_theta(made.theta0)


def test_the_same_seed_gives_the_same_values():
    options = {"runs": 1, "quick": True, "sizes": (), "cases": ["poisson"]}
    first, second = (compare_methods(seed=3, **options) for _ in range(2))
    assert [row.value for row in first.rows] == [row.value for row in second.rows]
