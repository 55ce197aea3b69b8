"""The section on growing samples: both verdicts of each claim, runs given up, what Ctrl-C leaves."""

from math import nan

import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import AUTHORS_LOG, SETTINGS, ReachRow, gmm_scaling
from paper.reports.gmm_scaling import scaling_section

SIZES = (1000, 10_000, 100_000)
AS_IN_THE_PAPER = {"em": 1.0, "iem": 1.0, "sem-vr": 2 / 3, "fiem": 2 / 3}


def rows(setting="known", exponents=AS_IN_THE_PAPER, sizes=SIZES, runs=2, given_up=()):
    """Return rows whose iterations grow with these powers of n; those of ``given_up`` (method, n) are NaN."""
    found = []
    for n in sizes:
        for run in range(runs):
            for method, exponent in exponents.items():
                stays = nan if (method, n) in given_up else (7 + run) * n**exponent
                found.append(ReachRow(setting, method, n, run, stays / 2, stays, 1 + stays / n, 1e-6 * stays))
    return found


def authors(factor=1.0, sizes=(1000, 51_000), **odd):
    """Return rows beside the authors' log, ``factor`` times theirs; ``odd`` are other factors by method."""
    found = []
    for n in sizes:
        for method in SETTINGS["authors"].methods:
            first = odd.get(method.replace("-", "_"), factor) * AUTHORS_LOG[n][method]
            found.append(ReachRow("authors", method, n, 0, first, 3 * first, 5.0, 0.1))
    return found


def section(*parts, interrupted=False):
    every = tuple(row for part in parts for row in part)
    return scaling_section(Experiment("gmm-scaling", {}, every, interrupted))


def verdicts(of):
    return [finding.verdict for finding in of.findings]


def test_what_the_paper_shows_agrees(check):
    found = check(section(rows(), rows("free"), authors()))
    assert verdicts(found) == ["agrees", "agrees", "agrees"]
    assert (
        "slopes 1.00 (EM), 1.00 (iEM) for n = 1,000 to 100,000; 0.9 to 1.1 expected"
        in found.findings[0].words
    )
    assert "slopes 0.67 (sEM-VR), 0.67 (fiEM)" in found.findings[1].words
    assert [picture.name for picture in found.pictures] == ["gmm-scaling-known", "gmm-scaling-free"]
    assert len(found.tables) == 3


@pytest.mark.parametrize(
    ("method", "exponent", "expected"),
    [
        ("em", 0.85, ["disagrees", "agrees"]),
        ("iem", 1.2, ["disagrees", "agrees"]),
        ("sem-vr", 0.5, ["agrees", "disagrees"]),
        ("fiem", 1.0, ["agrees", "disagrees"]),
        ("fiem", 0.79, ["agrees", "agrees"]),
    ],
)
def test_another_slope_disagrees(method, exponent, expected, check):
    assert verdicts(check(section(rows(exponents={**AS_IN_THE_PAPER, method: exponent})))) == expected


def test_one_size_has_no_slope_and_no_verdict(check):
    found = check(section(rows(sizes=[1000]), rows("free", sizes=[1000]), interrupted=True), draw=True)
    assert not found.findings
    assert len(found.pictures) == len(found.tables) == 2
    assert found.tables[0].rows[-1] == ["slope", *"––––"]


def test_sizes_that_were_given_up_are_told(check):
    given_up = [("fiem", 100_000)]
    found = check(section(rows(given_up=given_up), rows("free", given_up=given_up)), draw=True)
    assert verdicts(found) == ["agrees", "agrees"]
    assert "given up" not in found.findings[0].words
    assert "2 runs were given up" in found.findings[1].words
    assert found.tables[0].rows[2][-1] == "–"


def test_a_method_that_never_arrives_disagrees(check):
    found = check(section(rows(given_up=[("fiem", n) for n in SIZES])))
    assert verdicts(found) == ["agrees", "disagrees"]
    assert "none (fiEM)" in found.findings[1].words


def test_nobody_ever_arrives(check):
    found = check(section(rows(given_up=[(m, n) for m in AS_IN_THE_PAPER for n in SIZES])), draw=True)
    assert verdicts(found) == ["disagrees", "disagrees"]


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.49, "disagrees"), (0.51, "agrees"), (1.99, "agrees"), (2.01, "disagrees")]
)
def test_the_authors_log_agrees_within_a_factor_of_two(factor, verdict, check):
    (finding,) = check(section(authors(sem_vr=factor))).findings
    assert finding.verdict == verdict
    assert f"{factor:.2f}" in finding.words


def test_beside_the_log_a_run_that_was_given_up_disagrees(check):
    found = check(section(authors(fiem=nan)))
    assert verdicts(found) == ["disagrees"]
    assert "In 2 of 8 cases a run did not fall below it." in found.findings[0].words
    assert ["fiEM, n = 1,000", "642", "–", "–"] in found.tables[0].rows
    found = check(section(authors(nan)))
    assert verdicts(found) == ["disagrees"]
    assert found.findings[0].words == "None of our runs fell below 10⁻³."


def test_first_and_for_good_stand_beside_the_log(check):
    (table,) = check(section(authors(sizes=[1000]))).tables
    assert table.rows[0] == ["EM, n = 1,000", "7,000", "7,000", "21,000"]
    assert [row[0] for row in table.rows][1] == "iEM, cyclic, n = 1,000"


def test_means_are_over_the_runs(check):
    (table,) = check(section(rows(sizes=[1000, 10_000]))).tables
    assert table.rows[0][:2] == ["1,000", "7,500"]


def test_the_slopes_and_the_guides_are_drawn():
    from matplotlib.figure import Figure

    (picture,) = section(rows()).pictures
    iterations, passes, _ = picture.panels
    axes = Figure().subplots()
    iterations.draw(axes)
    texts = {text.get_text() for text in axes.texts}
    assert texts == {"EM  1.00", "iEM  1.00", "sEM-VR  0.67", "fiEM  0.67", "∝ n", "∝ n^(2/3)"}
    assert len(axes.lines) == 4 + 2
    assert len(axes.collections) == 4  # the range over the runs
    axes = Figure().subplots()
    passes.draw(axes)
    assert any("−0." in text.get_text() for text in axes.texts)
    assert len(axes.lines) == 4


def test_nothing_at_all(check):
    found = check(section(interrupted=True))
    assert (list(found.findings), list(found.pictures), list(found.tables)) == ([], [], [])


@pytest.mark.slow
def test_a_real_experiment(check, monkeypatch):
    monkeypatch.setattr("paper.experiments.gmm_scaling.AUTHORS_LOG", {30: AUTHORS_LOG[1000]})
    monkeypatch.setattr("paper.reports.gmm_scaling.AUTHORS_LOG", {30: AUTHORS_LOG[1000]})
    monkeypatch.setitem(SETTINGS, "free", SETTINGS["free"]._replace(most_epochs=12))
    result = gmm_scaling(sizes=[30, 60], runs=1)
    found = check(scaling_section(result), draw=True)
    assert len(found.findings) == 3
