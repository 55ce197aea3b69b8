"""The section on the theorems: both verdicts of each claim, runs outside the set, what Ctrl-C leaves."""

from math import nan

import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.theory import LOCAL_STEPS, TheoryRow
from paper.reports.theory import theory_section

SIZES = (100, 1000, 10_000)


def rows(sizes=SIZES, runs=2, measured=0.01, right=10.0, growth=0.0, inside=True, kind="bound", rate=-1.0):
    """Return rows of an experiment in which everything is as the paper says, unless told otherwise."""
    found = []
    for n in sizes:
        size = (n / sizes[0]) ** growth
        for method in ("sem-vr", "fiem"):
            found.append(TheoryRow("step", method, n, 0, 1e-14 / n, 0, nan, nan, nan, "bound", False))
            if n <= 1000:
                found.append(TheoryRow("step", method, n, 0, 1e-9 / n, 0, nan, nan, nan, "estimate", False))
        for run in range(runs):
            for method in ("iem", "sem-vr", "fiem"):
                gamma = 1.0 if method == "iem" else 1e-5 * n ** (-2 / 3)
                values = (gamma, 1000 * n, 0.02, measured * size, right * size, kind, inside)
                found.append(TheoryRow("theorem", method, n, run, *values))
            for method in ("sem-vr", "fiem"):
                found.append(
                    TheoryRow("practice", method, n, run, n ** (-2 / 3), 20 * n, 0.02, 1e-20, nan, "", True)
                )
            for name in LOCAL_STEPS:
                proposed = 0.1 / n if name == "fiem proposition" else nan
                gamma = 0.1 * n**rate / 2 if name == "fiem proposition" else 1 / n
                found.append(
                    TheoryRow("local", name, n, run, gamma, 10 * n, nan, n**rate, proposed, "", inside)
                )
    return found


def section(found, interrupted=False):
    return theory_section(Experiment("theory", {}, tuple(found), interrupted))


def verdicts(of):
    return [finding.verdict for finding in of.findings]


def test_what_the_paper_says_agrees(check):
    found = check(section(rows()), draw=True)
    assert verdicts(found) == ["agrees", "agrees", "agrees"]
    assert "All runs were checked" in found.findings[1].words
    assert found.findings[2].brief.startswith("slopes of δ on n: −1.00 (")
    assert [picture.name for picture in found.pictures] == ["theory"]
    assert len(found.tables) == 3


@pytest.mark.parametrize(
    ("options", "place", "verdict"),
    [
        ({"measured": 11.0}, 0, "disagrees"),
        ({"measured": 11.0}, 1, "disagrees"),
        ({"rate": -2 / 3}, 2, "disagrees"),
        ({"rate": -1.3}, 2, "disagrees"),
        ({"inside": False}, 0, "open"),
        ({"inside": False}, 1, "open"),
        ({"inside": False}, 2, "open"),
    ],
)
def test_verdicts(options, place, verdict, check):
    assert verdicts(check(section(rows(**options))))[place] == verdict


def test_a_rate_below_the_propositions_disagrees():
    found = [
        row._replace(right_side=3.0 / row.n) if row.method == "fiem proposition" else row for row in rows()
    ]
    assert verdicts(section(found))[2] == "disagrees"


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "agrees"), (1.3, "disagrees"), (0.5, "disagrees")])
def test_the_propositions_rate_goes_with_its_step(power, verdict):
    """The step may fall faster than 1/n, as L_s grows; δ must fall as the step does."""
    found = [
        row._replace(gamma=0.05 * row.n**-1.3, measured=row.n ** (-1.3 * power), right_side=1e-9)
        if row.method == "fiem proposition"
        else row
        for row in rows()
    ]
    assert verdicts(section(found))[2] == verdict


def test_nothing_is_asserted_of_runs_that_left(check):
    found = check(section(rows(inside=False)))
    assert "6 runs may have left the theorem's set" in found.findings[0].words


def test_one_size_has_no_slopes(check):
    found = check(section(rows(sizes=(1000,)), interrupted=True), draw=True)
    assert verdicts(found) == ["agrees", "agrees"]


def test_nothing(check):
    found = check(section([], interrupted=True))
    assert (len(found.findings), len(found.tables)) == (0, 0)
