"""The section on pLSA: both verdicts of each claim, names of corpora, what Ctrl-C leaves."""

import pytest

from paper.experiments.experiment import Experiment
from paper.experiments.plsa import STEPS, LikelihoodRow, plsa
from paper.reports.plsa import plsa_section

COST = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2}
PAIRS = [(steps, method) for steps, group in STEPS.items() for method in group]
EARLY = {
    ("", "em"): -5.2, ("", "iem"): -5.1,
    ("paper", "sem"): -5.0, ("paper", "sem-vr"): -4.8, ("paper", "fiem"): -4.85,
    ("recommended", "sem"): -4.78, ("recommended", "sem-vr"): -4.75, ("recommended", "fiem"): -4.8,
}  # fmt: skip
LATE = {
    ("", "em"): -4.75, ("", "iem"): -4.74,
    ("paper", "sem"): -4.9, ("paper", "sem-vr"): -4.72, ("paper", "fiem"): -4.8,
    ("recommended", "sem"): -4.72, ("recommended", "sem-vr"): -4.69, ("recommended", "fiem"): -4.7,
}  # fmt: skip
"""As measured: EM passes fiEM with the paper's steps, and neither with the recommended ones."""


def curve(corpus, pair, early, late, run=0, epochs=60):
    """Return rows that go from −6 to ``early`` in five epochs and to ``late`` in fifty."""
    steps, method = pair
    return [
        LikelihoodRow(
            corpus, steps, method, run, k, 1.0 + COST[method] * k, 0.01 * COST[method] * k,
            -6 + (early + 6) * k / 5 if k <= 5 else early + (late - early) * min(1, (k - 5) / 45),
        )
        for k in range(epochs + 1)
    ]  # fmt: skip


def experiment(corpora=("small",), pairs=PAIRS, early=EARLY, late=LATE, epochs=60, interrupted=False):
    rows = [
        row
        for corpus in corpora
        for pair in pairs
        for row in curve(corpus, pair, early[pair], late[pair], 0, epochs)
    ]
    return Experiment("plsa", {}, tuple(rows), interrupted)


def verdicts(section):
    return [finding.verdict for finding in section.findings]


def test_what_was_measured_with_both_kinds_of_steps(check):
    section = check(plsa_section(experiment()))
    assert verdicts(section) == ["agrees", "disagrees", "agrees", "agrees"]
    claims = [finding.claim for finding in section.findings]
    assert (
        claims[0] == "sEM-VR and fiEM converge faster than EM, sEM and iEM (small corpus, the paper's steps)."
    )
    assert claims[2] == "sEM-VR and fiEM converge faster than EM and iEM (small corpus, recommended steps)."
    words = [finding.words for finding in section.findings]
    assert words[0].endswith("the slower of the two is 0.15 ahead of the best of the others.")
    assert words[2].endswith("the slower of the two is 0.30 ahead of the best of the others.")
    assert "the slower of the two is 0.06 behind the best of the others." in words[1]
    assert "n^(−2/3) is too large" in words[1]


@pytest.mark.parametrize(
    ("pair", "value", "where"),
    [
        (("paper", "sem-vr"), -5.01, 0),
        (("paper", "fiem"), -5.3, 0),
        (("paper", "sem"), -4.7, 0),
        (("recommended", "fiem"), -5.15, 2),
        (("recommended", "sem-vr"), -5.15, 2),
    ],
)
def test_a_method_that_is_slower_disagrees(pair, value, where, check):
    section = check(plsa_section(experiment(early={**EARLY, pair: value})))
    expected = ["agrees", "disagrees", "agrees", "agrees"]
    expected[where] = "disagrees"
    assert verdicts(section) == expected
    assert "behind the best of the others" in section.findings[where].words


@pytest.mark.parametrize(("steps", "where"), [("paper", 1), ("recommended", 3)])
@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        (-4.5, "agrees", "0.24 ahead of the best of the others."),
        (-4.76, "agrees", "0.02 behind the best of the others."),
        (-4.9, "disagrees", "0.16 behind the best of the others."),
    ],
)
@pytest.mark.parametrize("slower", ["sem-vr", "fiem"])
def test_who_is_ahead_at_the_end(steps, where, value, verdict, words, slower, check):
    late = {**LATE, (steps, "sem-vr"): -4.4, (steps, "fiem"): -4.4, (steps, slower): value}
    finding = check(plsa_section(experiment(late=late))).findings[where]
    assert finding.claim.startswith("sEM-VR and fiEM do not fall behind EM and iEM later")
    assert finding.verdict == verdict
    assert words in finding.words
    # What is said of the paper's step must not be said of the recommended one.
    assert ("n^(−2/3)" in finding.words) == (value < -4.74 and steps == "paper")


def test_few_epochs_are_compared_once(check):
    section = check(plsa_section(experiment(epochs=4)))
    assert verdicts(section) == ["agrees", "agrees"]
    assert section.findings[0].words.startswith("After 4 epochs")
    assert plsa_section(experiment(epochs=15)).findings[1].words.startswith("After 15 epochs")


def test_medians_over_the_runs(check):
    rows = [
        row
        for run, shift in enumerate((0.0, 0.1, 5.0))
        for pair in PAIRS
        for row in curve("small", pair, EARLY[pair] - shift, LATE[pair], run)
    ]
    section = check(plsa_section(Experiment("plsa", {}, tuple(rows), False)))
    assert "−5.30 (EM)" in section.findings[0].words
    (table,) = section.tables
    assert table.rows[3][:2] == ["5", "−5.300"]


def test_columns_say_whose_steps(check):
    (table,) = check(plsa_section(experiment())).tables
    assert list(table.head) == [
        "epoch", "EM", "sEM, paper", "iEM", "sEM-VR, paper", "fiEM, paper",
        "sEM, recommended", "sEM-VR, recommended", "fiEM, recommended",
    ]  # fmt: skip
    assert [row[0] for row in table.rows][-3:] == ["60", "total passes", "total seconds"]


def test_each_corpus_has_its_figure(check):
    corpora = ["a b", "a-b", "../A b", "x/y.txt", "…"]
    section = check(plsa_section(experiment(corpora=corpora, epochs=6)))
    names = [picture.name for picture in section.pictures]
    assert names == ["plsa-1-a-b", "plsa-2-a-b", "plsa-3----A-b", "plsa-4-x-y-txt", "plsa-5--"]
    assert [len(picture.panels) for picture in section.pictures] == [6] * 5


@pytest.mark.parametrize("count", range(1, 9))
def test_what_ctrl_c_leaves_of_the_first_run(count, check):
    section = check(plsa_section(experiment(pairs=PAIRS[:count], interrupted=True)), draw=count in (1, 3, 6))
    (picture,), (table,) = section.pictures, section.tables
    assert verdicts(section) == (["agrees", "disagrees"] if count >= 5 else []) + (
        ["agrees", "agrees"] if count == 8 else []
    )
    assert len(picture.panels) == (6 if count > 5 else 3)
    assert len(table.head) == 1 + count


def test_an_incomplete_last_run_is_left_out(check):
    rows = [*experiment().rows, *(row for row in curve("small", ("", "em"), 9.0, 9.0, run=1))]
    section = check(plsa_section(Experiment("plsa", {}, tuple(rows), True)))
    assert "−5.20 (EM)" in section.findings[0].words


def test_nothing_at_all(check):
    section = check(plsa_section(Experiment("plsa", {}, (), True)))
    assert (list(section.findings), list(section.pictures), list(section.tables)) == ([], [], [])


def test_a_real_experiment(check):
    result = plsa({"toy": ["apple pear plum apple fig", "hammer saw chisel saw plane"] * 5}, epochs=1, runs=2)
    section = check(plsa_section(result), draw=True)
    assert len(section.findings) == 2
