"""The section on precision: both verdicts of each claim, odd numbers, what Ctrl-C leaves."""

import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import PrecisionRow, gmm_precision
from paper.reports.gmm_precision import precision_section

COST = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2, "fiem-shuffled": 2}
AS_IN_THE_PAPER = {
    "em": 1e-3,
    "sem": 1e-2,
    "iem": 1e-3,
    "sem-vr": 1e-20,
    "fiem": 1e-21,
    "fiem-shuffled": 1e-22,
}


def curve(method, end, run=0, epochs=30):
    """Return rows whose error goes from 0.5 to ``end``, by the same factor each epoch."""
    return [
        PrecisionRow(
            method, run, k, 1.0 + COST[method] * k, 0.01 * COST[method] * k,
            0.5 * (end / 0.5) ** (k / epochs) if end or k < epochs else 0.0,
        )
        for k in range(epochs + 1)
    ]  # fmt: skip


def experiment(*runs, interrupted=False, epochs=30):
    """Return an experiment whose runs end with these errors by method."""
    rows = [
        row for run, ends in enumerate(runs) for m, end in ends.items() for row in curve(m, end, run, epochs)
    ]
    return Experiment("gmm-precision", {"runs": str(len(runs))}, tuple(rows), interrupted)


def verdicts(section):
    return [finding.verdict for finding in section.findings]


def test_what_the_paper_shows_agrees(check):
    section = check(precision_section(experiment(AS_IN_THE_PAPER, AS_IN_THE_PAPER)))
    assert verdicts(section) == ["agrees", "agrees"]
    by_epochs = section.findings[0]
    assert (
        "After 30 epochs the median error over the runs is 1.0·10⁻²⁰ (sEM-VR), 1.0·10⁻²¹ (fiEM)"
        in by_epochs.words
    )
    assert by_epochs.words.endswith("In none of 2 runs one of the others is as close as sEM-VR or fiEM.")


@pytest.mark.parametrize("late", ["sem-vr", "fiem"])
def test_one_run_in_which_one_method_is_behind_disagrees(late, check):
    section = check(precision_section(experiment(AS_IN_THE_PAPER, {**AS_IN_THE_PAPER, late: 0.1})))
    assert verdicts(section)[:2] == ["disagrees", "disagrees"]
    assert section.findings[0].words.endswith(
        "In 1 of 2 runs one of the others is as close as sEM-VR or fiEM."
    )


def test_runs_are_compared_each_with_itself(check):
    """In one run everything is smaller than anything in the other: that says nothing of the methods."""
    easy = {m: 1e-9 * end for m, end in AS_IN_THE_PAPER.items()}
    hard = {**AS_IN_THE_PAPER, "sem-vr": 1e-6, "fiem": 1e-6}
    assert verdicts(check(precision_section(experiment(easy, hard))))[0] == "agrees"


def test_by_passes_is_judged_on_its_own(check):
    """As good as EM in an epoch, three times as dear."""
    ends = {**AS_IN_THE_PAPER, "sem-vr": 0.9e-3, "fiem": 1e-20}
    assert verdicts(check(precision_section(experiment(ends))))[:2] == ["agrees", "disagrees"]


def test_errors_of_exactly_zero(check):
    ends = {**AS_IN_THE_PAPER, "sem-vr": 0.0, "fiem": 0.0}
    section = check(precision_section(experiment(ends)), draw=True)
    assert verdicts(section)[0] == "agrees"
    section = check(precision_section(experiment(dict.fromkeys(AS_IN_THE_PAPER, 0.0))), draw=True)
    assert verdicts(section)[0] == "disagrees"


def test_the_table_has_medians_and_the_last_epoch(check):
    runs = [{**AS_IN_THE_PAPER, "em": end} for end in (1e-3, 2e-3, 9e-3)]
    (table,) = check(precision_section(experiment(*runs))).tables
    assert [row[0] for row in table.rows] == [
        "0",
        "1",
        "2",
        "5",
        "10",
        "20",
        "30",
        "total passes",
        "total seconds",
    ]
    assert table.rows[-3][:2] == ["30", "2.0·10⁻³"]
    assert table.rows[-2] == ["total passes", "31", "31", "31", "91", "61", "61"]


def test_an_incomplete_last_run_is_left_out(check):
    part = {m: AS_IN_THE_PAPER[m] for m in ("em", "sem")}
    section = check(precision_section(experiment(AS_IN_THE_PAPER, part, interrupted=True)))
    assert verdicts(section)[:2] == ["agrees", "agrees"]
    assert "In none of 1 run " in section.findings[0].words


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_first_run_that_is_not_complete_is_shown_without_findings(count, check):
    part = dict(list(AS_IN_THE_PAPER.items())[:count])
    section = check(precision_section(experiment(part, interrupted=True)), draw=True)
    assert not section.findings
    assert len(section.tables[0].head) == 1 + count
    assert section.pictures[0].title.endswith("after 30 epochs")


def test_nothing_at_all(check):
    section = check(precision_section(Experiment("gmm-precision", {}, (), True)))
    assert (len(section.findings), len(section.pictures), len(section.tables)) == (0, 0, 0)


def test_a_real_experiment(check):
    result = gmm_precision(n=40, epochs=1, runs=2)
    section = check(precision_section(result), draw=True)
    assert len(section.findings) == 2
    assert section.pictures[0].title.endswith("after 1 epoch")
