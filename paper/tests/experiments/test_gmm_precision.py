"""The left panel of the Gaussian figure: rows, the paper's finding, seeds, Ctrl-C."""

import signal

import numpy as np
import pytest

import swiftem
from paper.experiments import gmm
from paper.experiments import gmm_precision as module
from paper.experiments.gmm_precision import MODEL, gmm_precision
from swiftem import methods

METHODS = ["em", "sem", "iem", "sem-vr", "fiem", "fiem-shuffled"]


def without_seconds(experiment):
    return [row._replace(seconds=0.0) for row in experiment.rows]


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
    cost = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2, "fiem-shuffled": 2}
    for row in small.rows:
        assert row.passes == 1 + cost[row.method] * row.epoch


def test_all_methods_of_a_run_start_alike_and_runs_differ(small):
    starts = [{row.squared_error for row in small.rows if (row.run, row.epoch) == (run, 0)} for run in (0, 1)]
    assert [len(values) for values in starts] == [1, 1]
    assert starts[0] != starts[1]  # another sample, another μ*


def test_seconds_never_go_back(small):
    for run in (0, 1):
        for name in METHODS:
            seconds = [row.seconds for row in small.rows if (row.run, row.method) == (run, name)]
            assert seconds == sorted(seconds)


@pytest.mark.usefixtures("rough")
def test_same_seed_same_rows_and_more_runs_change_none():
    two, one, other = (
        gmm_precision(n=60, epochs=2, runs=runs, seed=s) for runs, s in ((2, 7), (1, 7), (1, 8))
    )
    assert without_seconds(two)[: len(one.rows)] == without_seconds(one)
    assert not {row.squared_error for row in two.rows} & {row.squared_error for row in other.rows}


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
    y = gmm.gmm_data(100, np.random.default_rng(seed))
    start = MODEL.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
    limit = gmm.batch_em_limit(MODEL, y, start)
    result = swiftem.run(MODEL, y, method, theta0=start, n_iter=200, seed=seed)
    rows = gmm_precision(n=100, epochs=2, runs=1, seed=5).rows
    (row,) = [row for row in rows if (row.method, row.epoch) == (name, 2)]
    assert row.squared_error == float(((result.theta.means - limit.theta.means) ** 2).sum())


@pytest.mark.usefixtures("rough")
def test_progress_names_every_job_and_ends_at_one():
    told = []
    gmm_precision(n=50, epochs=2, runs=2, progress=lambda doing, share: told.append((doing, share)))
    assert {doing for doing, _ in told} == {"compiling", "EM until convergence", *METHODS}
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, pytest.approx(1.0))


@pytest.mark.usefixtures("rough")
def test_ctrl_c_keeps_complete_curves_only(ctrl_c):
    experiment = gmm_precision(n=80, epochs=4, runs=3, progress=ctrl_c("iem", times=2))
    assert experiment.interrupted
    assert [(row.run, row.method, row.epoch) for row in experiment.rows] == [
        (run, name, epoch)
        for run, names in enumerate((METHODS, ["em", "sem"]))
        for name in names
        for epoch in range(5)
    ]


@pytest.mark.parametrize("where", ["reference", "compiling"])
def test_ctrl_c_before_the_first_curve_leaves_no_rows(where, monkeypatch, ctrl_c):
    if where == "compiling":
        monkeypatch.setattr(module, "warm_up", lambda *args: signal.raise_signal(signal.SIGINT))
    experiment = gmm_precision(n=80, epochs=4, runs=1, progress=ctrl_c("EM until convergence"))
    assert (experiment.interrupted, experiment.rows) == (True, ())
    assert "samples" in experiment.settings


def test_a_reference_that_still_moves_is_mentioned(monkeypatch):
    assert "caution" not in gmm_precision(n=40, epochs=1, runs=1).settings
    monkeypatch.setattr(gmm, "MOST_PASSES", 3)
    settings = gmm_precision(n=40, epochs=1, runs=1).settings
    assert settings["caution"] == "EM had not converged in 3 passes: errors are not exact"
    assert settings["passes of EM to convergence"] == "3"


def test_settings_tell_what_was_set():
    settings = gmm_precision(n=1234, epochs=1, runs=2, seed=17).settings
    assert "n = 1,234" in settings["samples"]
    assert settings["runs"].startswith("2, ")
    assert "seed 17" in settings["runs"]
    assert " to " in settings["passes of EM to convergence"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_finding_at_its_size(seed):
    """After 100 epochs at n = 10,000 sEM-VR and fiEM have converged; nothing else has."""
    errors = last_errors(gmm_precision(seed=seed))
    for name in ("sem-vr", "fiem", "fiem-shuffled"):
        assert (errors[name] < 1e-15).all()
    for name in ("em", "sem", "iem"):
        assert np.median(errors[name]) > 1e-4
