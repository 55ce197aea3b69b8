"""Figure 1, left: data and limit, rows, the paper's finding, seeds, Ctrl-C; both verdicts of each claim."""

from dataclasses import replace

import numpy as np
import pytest

import swiftem
from paper.experiments import gmm_precision as module
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import MODEL, PrecisionRow, gmm_precision, precision_section
from swiftem import methods

START = MODEL.theta(means=module.START_MEANS)
METHODS = ["em", "sem", "iem", "sem-vr", "fiem", "fiem-shuffled"]
COST = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2, "fiem-shuffled": 2}
AS_IN_THE_PAPER = dict(zip(METHODS, (1e-3, 1e-2, 1e-3, 1e-20, 1e-21, 1e-22), strict=True))


@pytest.mark.parametrize(
    ("first_weight", "mean", "variance"), [(0.5, 0.0, 1.25), (0.2, -0.3, 1.16)], ids=["equal", "0.2 and 0.8"]
)
def test_data_have_the_papers_moments(first_weight, mean, variance):
    y = module.gmm_data(200_000, np.random.default_rng(1), first_weight)
    assert y.shape == (200_000,)
    assert y.mean() == pytest.approx(mean, abs=0.02)
    assert y.var() == pytest.approx(variance, abs=0.02)


def test_the_limit_is_a_fixed_point_of_em():
    y = module.gmm_data(500, np.random.default_rng(3))
    limit = module.batch_em_limit(MODEL, y, START)
    again = swiftem.run(MODEL, y, methods.EM(), theta0=limit.theta, n_iter=1)
    assert limit.converged
    np.testing.assert_allclose(again.theta.means, limit.theta.means, rtol=0, atol=2e-15)
    assert module.squared_error(limit.theta, limit) == 0


def test_a_larger_change_counts_as_rest_when_asked():
    y = module.gmm_data(500, np.random.default_rng(3))
    exact = module.batch_em_limit(MODEL, y, START)
    rough = module.batch_em_limit(MODEL, y, START, smallest_change=1e-6)
    assert rough.converged
    assert rough.n_iter < exact.n_iter
    assert 0 < module.squared_error(rough.theta, exact) < 1e-6


def test_a_limit_that_is_not_reached_is_said_so(monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSES", 3)
    limit = module.batch_em_limit(MODEL, module.gmm_data(50, np.random.default_rng(0)), START)
    assert (limit.n_iter, limit.converged) == (3, False)


def test_the_squared_error_is_summed_over_components():
    limit = module.Limit(MODEL.theta(means=[[0.5], [-0.5]]), 1, True)
    assert module.squared_error(START, limit) == 0.5


def test_ctrl_c_leaves_no_half_reference(monkeypatch):
    def interrupted(*args, **options):
        return replace(swiftem.run(*args, **options), status="interrupted")

    monkeypatch.setattr(module, "run", interrupted)
    y = module.gmm_data(500, np.random.default_rng(3))
    with pytest.raises(KeyboardInterrupt):
        module.batch_em_limit(MODEL, y, START)


def last_errors(experiment):
    """Return the errors after the last epoch by method, shape (runs,)."""
    last = max(row.epoch for row in experiment.rows)
    rows = [row for row in experiment.rows if row.epoch == last]
    return {name: np.array([row.squared_error for row in rows if row.method == name]) for name in METHODS}


@pytest.fixture(scope="module")
def small():
    return gmm_precision(n=2000, epochs=60, runs=2, seed=2)


def test_variance_reduction_is_far_ahead(small):
    errors = last_errors(small)
    for name in ("sem-vr", "fiem", "fiem-shuffled"):
        for other in ("em", "sem", "iem"):
            assert (errors[name] < errors[other] / 10).all(), (name, other)


def test_there_is_a_row_for_each_run_method_and_epoch(small):
    assert [(row.run, row.method, row.epoch) for row in small.rows] == [
        (run, name, epoch) for run in range(2) for name in METHODS for epoch in range(61)
    ]
    assert (small.name, small.interrupted) == ("gmm-precision", False)


def test_passes_are_what_each_method_costs(small):
    """The first pass, then: one an epoch; an anchor and two evaluations; two evaluations."""
    for row in small.rows:
        assert row.passes == 1 + COST[row.method] * row.epoch


def test_all_methods_of_a_run_start_alike_and_runs_differ(small):
    starts = [{row.squared_error for row in small.rows if (row.run, row.epoch) == (run, 0)} for run in (0, 1)]
    assert [len(values) for values in starts] == [1, 1]
    assert starts[0] != starts[1]  # another sample, another μ*


def test_seconds_never_go_back(small):
    for run in (0, 1):
        for name in METHODS:
            seconds = [row.seconds for row in small.rows if (row.run, row.method) == (run, name)]
            assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("sem", methods.OnlineEM(step_size=swiftem.schedules.inverse(3, 10))),
        ("fiem", methods.FastIncrementalEM(step_size=0.003)),
        ("fiem-shuffled", methods.FastIncrementalEM(step_size=0.003, memory_order="shuffled")),
    ],
)
def test_a_row_is_what_run_gives_with_the_papers_steps(name, method):
    seed = np.random.SeedSequence([5, 0])
    y = module.gmm_data(100, np.random.default_rng(seed))
    start = MODEL.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
    limit = module.batch_em_limit(MODEL, y, start)
    result = swiftem.run(MODEL, y, method, theta0=start, n_iter=200, seed=seed)
    rows = gmm_precision(n=100, epochs=2, runs=1, seed=5).rows
    (row,) = [row for row in rows if (row.method, row.epoch) == (name, 2)]
    assert row.squared_error == float(((result.theta.means - limit.theta.means) ** 2).sum())


def test_a_reference_that_still_moves_is_mentioned(monkeypatch):
    assert "caution" not in gmm_precision(n=40, epochs=1, runs=1).settings
    monkeypatch.setattr(module, "MOST_PASSES", 3)
    settings = gmm_precision(n=40, epochs=1, runs=1).settings
    assert settings["caution"] == "EM had not converged in 3 passes: errors are not exact"


def test_settings_tell_what_was_set():
    settings = gmm_precision(n=1234, epochs=1, runs=2, seed=17).settings
    assert settings["samples"] == "n = 1,234"
    assert settings["runs"] == "2, each with its own sample and draws; seed 17"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_finding_at_its_size(seed):
    """After 100 epochs at n = 10,000 sEM-VR and fiEM have converged; nothing else has."""
    errors = last_errors(gmm_precision(seed=seed))
    for name in ("sem-vr", "fiem", "fiem-shuffled"):
        assert (errors[name] < 1e-15).all()
    for name in ("em", "sem", "iem"):
        assert np.median(errors[name]) > 1e-4


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


def test_what_the_paper_shows_agrees(check, verdicts):
    section = check(precision_section(experiment(AS_IN_THE_PAPER, AS_IN_THE_PAPER)))
    assert verdicts(section) == ["agrees", "agrees"]
    median = "after 30 epochs the median error is 1.0·10⁻²⁰ (sEM-VR), 1.0·10⁻²¹ (fiEM)"
    assert section.findings[0].measured.startswith(median)
    assert section.findings[0].note == "In none of 2 runs one of the others is as close."


@pytest.mark.parametrize("late", ["sem-vr", "fiem"])
def test_one_run_in_which_one_method_is_behind_disagrees(late, check, verdicts):
    section = check(precision_section(experiment(AS_IN_THE_PAPER, {**AS_IN_THE_PAPER, late: 0.1})))
    assert verdicts(section)[:2] == ["disagrees", "disagrees"]
    assert section.findings[0].note == "In 1 of 2 runs one of the others is as close."


def test_runs_are_compared_each_with_itself(check, verdicts):
    """In one run everything is smaller than anything in the other: that says nothing of the methods."""
    easy = {m: 1e-9 * end for m, end in AS_IN_THE_PAPER.items()}
    hard = {**AS_IN_THE_PAPER, "sem-vr": 1e-6, "fiem": 1e-6}
    assert verdicts(check(precision_section(experiment(easy, hard))))[0] == "agrees"


def test_by_passes_is_judged_on_its_own(check, verdicts):
    """As good as EM in an epoch, three times as dear."""
    ends = {**AS_IN_THE_PAPER, "sem-vr": 0.9e-3, "fiem": 1e-20}
    assert verdicts(check(precision_section(experiment(ends))))[:2] == ["agrees", "disagrees"]


def test_errors_of_exactly_zero(check, verdicts):
    ends = {**AS_IN_THE_PAPER, "sem-vr": 0.0, "fiem": 0.0}
    section = check(precision_section(experiment(ends)), draw=True)
    assert verdicts(section)[0] == "agrees"
    section = check(precision_section(experiment(dict.fromkeys(AS_IN_THE_PAPER, 0.0))), draw=True)
    assert verdicts(section)[0] == "disagrees"


def test_the_table_has_medians_and_the_last_epoch(check):
    runs = [{**AS_IN_THE_PAPER, "em": end} for end in (1e-3, 2e-3, 9e-3)]
    (table,) = check(precision_section(experiment(*runs))).all_tables()
    head, *rows = table.known()
    assert head[:3] == ("epochs", "EM", "sEM")
    assert [row[0] for row in rows] == ["0", "1", "2", "5", "10", "20", "30"]
    assert rows[-1][:2] == ("30", "2.0·10⁻³")


def test_an_incomplete_last_run_is_left_out(check, verdicts):
    part = {m: AS_IN_THE_PAPER[m] for m in ("em", "sem")}
    section = check(precision_section(experiment(AS_IN_THE_PAPER, part, interrupted=True)))
    assert verdicts(section)[:2] == ["agrees", "agrees"]
    assert "In none of 1 run " in section.findings[0].note


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_first_run_that_is_not_complete_is_shown_without_findings(count, check, verdicts):
    part = dict(list(AS_IN_THE_PAPER.items())[:count])
    section = check(precision_section(experiment(part, interrupted=True)), draw=True)
    assert not section.findings
    assert len(next(section.all_tables()).columns) == 1 + count
    assert section.pictures[0].title.endswith("after 30 epochs")


def test_a_real_experiment(check, verdicts):
    result = gmm_precision(n=40, epochs=1, runs=2)
    section = check(precision_section(result), draw=True)
    assert len(section.findings) == 2
    assert section.pictures[0].title.endswith("after 1 epoch")
