"""The section on all methods: winners, both verdicts of each claim, what Ctrl-C leaves."""

from math import nan

import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.methods import RECURSIVE, MethodRow
from paper.reports.methods import methods_section

SPIDER = RECURSIVE
SIZES = (1000, 10_000, 100_000)


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
    table = found.tables[0]
    assert table.title.startswith("Winners")
    assert table.rows[0][1] == "sEM-VR, 7"  # 0.5 · 0.3^6 is below 1e-3
    assert table.rows[0][3] == "EM, 18"  # by M-steps


def test_no_winner_if_no_run_gets_there():
    found = section(*curve("em", 0.99, steps=5))
    assert set(found.tables[0].rows[0][1:]) == {"–"}


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


def test_every_picture_can_be_drawn():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    rows = [*curve("em", 0.7), *curve("em", 0.6, run=1), *scaling({SPIDER: (0.0, 1.0), "sem": (0.5, nan)})]
    for picture in section(*rows).pictures:
        for panel in picture.panels:
            axes.clear()
            panel.draw(axes)
            assert axes.lines


def test_nothing_after_an_early_ctrl_c():
    found = section(interrupted=True)
    assert (found.findings, found.pictures, found.tables) == ([], [], [])
