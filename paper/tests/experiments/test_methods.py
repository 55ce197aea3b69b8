"""All methods on five problems and growing samples: rows, winners, both verdicts of each claim, styles."""

from math import nan

import numpy as np
import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import precision_methods
from paper.experiments.gmm_scaling import SETTINGS
from paper.experiments.methods import CASES, MethodRow, compare_methods, methods_for, methods_section
from paper.experiments.methods import RECURSIVE as SPIDER
from swiftem import methods
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.show.numbers import OTHER, STYLES, style_of

SIZES = (1000, 10_000, 100_000)
COMPARED = [*methods.METHODS, *(f"em+{name}" for name in ACCELERATIONS)]


@pytest.fixture(scope="module")
def paper():
    return compare_methods(runs=2, quick=True, sizes=(200, 400), cases=["paper"])


def test_all_methods_of_the_registry_and_accelerated_em(paper):
    assert {row.method for row in paper.rows if row.part == "curve"} == set(COMPARED)
    assert {row.method for row in paper.rows if row.part == "scaling"} == set(methods.METHODS)
    assert SPIDER in methods.METHODS
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


def curve(method, rate, problem="paper", steps=40, per_pass=1.0, run=0):
    """Return a run whose gap falls by ``rate`` per pass."""
    return [
        MethodRow("curve", problem, method, 1000, run, 1.0 + k, 0.01 * k, k * per_pass, 0.5 * rate**k)
        for k in range(steps)
    ]


def scaling(exponents, sizes=SIZES):
    """Return costs whose M-steps and evaluations grow with these powers of n."""
    return [
        MethodRow(
            "scaling", "paper", method, n, run, 9.0, 0.1, (5 + run) * n**m_steps, (3 + run) * n**evaluations
        )
        for n in sizes
        for run in (0, 1)
        for method, (m_steps, evaluations) in exponents.items()
    ]


def section(*rows, interrupted=False):
    return methods_section(Experiment("methods", {}, tuple(rows), interrupted))


def verdict(found, words):
    (finding,) = (finding for finding in found.findings if words in finding.claim)
    return finding.verdict


def test_the_winners():
    found = section(*curve("em", 0.7), *curve("sem-vr", 0.3, per_pass=30.0), *curve("iem", 0.9))
    (table,) = found.tables
    assert table.title.startswith("Winners")
    (row,) = table.known()[1:]
    assert row[1] == "sEM-VR, 7"  # 0.5 · 0.3^6 is below 1e-3
    assert row[3] == "EM, 18"  # by M-steps


def test_no_winner_if_no_run_gets_there():
    found = section(*curve("em", 0.99, steps=5))
    assert "Winners" not in " ".join(table.title for table in found.all_tables())


@pytest.mark.parametrize(("power", "expected"), [(0.0, "agrees"), (0.5, "disagrees")])
def test_m_steps_that_do_not_depend_on_n(power, expected):
    found = section(*scaling({SPIDER: (power, 0.9), "em": (0.0, 1.0)}))
    assert verdict(found, "do not depend on n") == expected


@pytest.mark.parametrize(("power", "expected"), [(0.8, "agrees"), (1.5, "disagrees")])
def test_evaluations_at_most_linear(power, expected):
    found = section(*scaling({SPIDER: (0.0, power), "em": (0.0, 1.0)}))
    assert verdict(found, "of the order of n") == expected


def test_two_sizes_are_too_few_for_a_verdict():
    assert not section(*scaling({SPIDER: (0.0, 1.0)}, sizes=(1000, 2000))).findings


def test_m_steps_by_precision():
    found = section(*curve("em", 0.7), *curve(SPIDER, 0.7))
    assert verdict(found, "O(1/ε)") == "agrees"
    slow = [
        MethodRow("curve", "paper", SPIDER, 1000, 0, 1.0, 1.0, k, 1.0 / k**0.5)
        for k in (1, 10**4, 10**6, 10**8)
    ]
    assert verdict(section(*curve("em", 0.7), *slow), "O(1/ε)") == "disagrees"


@pytest.mark.parametrize(("ratio", "expected"), [(0.6, "agrees"), (1.2, "disagrees")])
def test_variance_of_the_proxy(ratio, expected):
    rows = [MethodRow("variance", "paper", "x", 100, 0, p, nan, 10, ratio) for p in (2.0, 3.0)]
    assert verdict(section(*rows), "variance of opt-FIEM") == expected


def test_every_picture_can_be_drawn(check):
    rows = [*curve("em", 0.7), *curve("em", 0.6, run=1), *scaling({SPIDER: (0.0, 1.0), "sem": (0.5, nan)})]
    found = check(section(*rows), draw=True)
    assert [picture.name for picture in found.pictures] == ["methods-paper", "methods-scaling"]


def test_all_methods_of_the_experiments_have_a_style():
    shown = {
        *precision_methods(),
        *(name for setting in SETTINGS.values() for name in setting.methods()),
        *(f"em+{name}" for name in ACCELERATIONS),
    }
    assert shown == set(STYLES)
    assert OTHER not in {style_of(name).colour for name in methods.METHODS}


def test_those_that_are_drawn_together_differ():
    for names in (list(precision_methods()), COMPARED, *(setting.methods() for setting in SETTINGS.values())):
        assert len({style_of(name).label for name in names}) == len(names)
        assert len({style_of(name).colour for name in names}) == len(names)


def test_a_method_that_is_not_the_papers_keeps_its_name():
    assert style_of("mine").label == "mine"
    assert style_of("mine").colour == OTHER
    assert OTHER not in {style.colour for style in STYLES.values()}
