"""The right panel of the Gaussian figure: what reaching means, slopes, settings, Ctrl-C."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest

import swiftem
from paper.experiments import gmm
from paper.experiments import gmm_scaling as module
from paper.experiments.gmm_scaling import AUTHORS_LOG, SETTINGS, WEIGHTS, fit_slope, gmm_scaling
from swiftem import methods
from swiftem.core.schedules import sample_size
from swiftem.models import GaussianMixtureModel

N = 100


def watch_errors(monkeypatch, error_at):
    """Have the error at the k-th look of a run be ``error_at(k)``; with n = 100 a look is an iteration."""
    seen = {}
    real_run = module.run

    def run(*args, **options):
        seen["looks"] = 0
        return real_run(*args, **options)

    def squared_error(theta, limit):
        seen["looks"] += 1
        return error_at(seen["looks"] - 1)

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "squared_error", squared_error)


def rows_of(**options):
    experiment = gmm_scaling(**{"sizes": [N], "runs": 1, "settings": ["known"], **options})
    return {row.method: row for row in experiment.rows}


def without_seconds(experiment):
    return [row._replace(seconds=0.0) for row in experiment.rows]


def test_first_and_for_good_are_told_apart(monkeypatch):
    """Below at 30, above again from 45, below for good from 60."""
    watch_errors(monkeypatch, lambda k: 1e-4 if 30 <= k < 45 or k >= 60 else 1.0)
    row = rows_of()["sem-vr"]
    assert (row.first, row.stays) == (30, 60)
    assert row.passes == 2 + 2 * 60 / N  # the first pass, the anchor, two evaluations an iteration
    assert row.seconds > 0


def test_an_iteration_of_em_counts_as_n(monkeypatch):
    watch_errors(monkeypatch, lambda k: 1e-4 if 2 <= k < 4 or k >= 6 else 1.0)
    row = rows_of()["em"]
    assert (row.first, row.stays, row.passes) == (2 * N, 6 * N, 7.0)


def test_a_run_goes_on_for_as_long_again_before_it_is_said_to_stay(monkeypatch):
    """Above for the last time at 900: below at 901, but watched to 1,800, and not less than ten epochs."""
    looks = []

    def error_at(k):
        looks.append(k)
        return 1.0 if k <= 900 else 1e-4

    watch_errors(monkeypatch, error_at)
    monkeypatch.setitem(SETTINGS, "known", SETTINGS["known"]._replace(methods=("iem",)))
    assert rows_of()["iem"].stays == 901
    assert max(looks) == 1800
    looks.clear()
    watch_errors(monkeypatch, lambda k: (looks.append(k), 1e-4 if k > 3 else 1.0)[1])
    assert rows_of()["iem"].stays == 4
    assert max(looks) == 10 * N


@pytest.mark.parametrize("visits", [True, False], ids=["below once in a while", "never below"])
def test_a_run_that_is_given_up_is_nan(monkeypatch, visits):
    watch_errors(monkeypatch, lambda k: 1e-4 if visits and k % 50 == 7 else 1.0)
    row = rows_of()["fiem"]
    assert row.first == 7 if visits else isnan(row.first)
    assert all(isnan(value) for value in (row.stays, row.passes, row.seconds))


def test_a_start_that_is_below_counts_as_zero():
    for row in rows_of(precision=100.0).values():
        assert (row.first, row.stays, row.passes) == (0, 0, 1.0)


def test_iem_cyclic_takes_the_samples_in_their_order(monkeypatch):
    """Counted by hand: a run with draws 0, 1, ..., n − 1, 0, 1, ..., looked at after each iteration."""
    monkeypatch.setattr(module, "AUTHORS_LOG", {N: AUTHORS_LOG[1000]})
    row = rows_of(settings=["authors"], seed=3)["iem-cyclic"]
    model = GaussianMixtureModel(n_components=2, known_weights=WEIGHTS)
    y = gmm.gmm_data(N, np.random.default_rng(np.random.SeedSequence([3, N, 0])), first_weight=0.2)
    start = model.theta(weights=WEIGHTS, means=[[1.0], [-1.0]])
    limit = gmm.batch_em_limit(model, y, start)
    result = swiftem.run(
        model, y, methods.IncrementalEM(), theta0=start, n_iter=20 * N, draws=np.tile(np.arange(N), 20),
        record_every=1, record=lambda iterate: gmm.squared_error(iterate.theta, limit),
    )  # fmt: skip
    errors = np.array(result.path)
    assert row.first == np.flatnonzero(errors <= 1e-3)[0]
    assert row.stays == np.flatnonzero(errors > 1e-3)[-1] + 1


@pytest.mark.parametrize(
    ("setting", "c", "known"), [("known", 0.3, True), ("free", 0.3, False), ("authors", 1.0, True)]
)
def test_settings_are_those_of_the_paper_page(setting, c, known):
    chosen = SETTINGS[setting]
    assert (chosen.step, chosen.known_weights) == (c, known)
    for name, kind in (("sem-vr", methods.VarianceReducedEM), ("fiem", methods.FastIncrementalEM)):
        method, order = module._method(name, chosen.step, 1000)
        assert (method, order) == (kind(step_size=sample_size(c)), None)  # c·n^(−2/3)
    assert module._model(chosen).known_weights == ((0.2, 0.8) if known else None)


def give_up_after(monkeypatch, epochs):
    for name, setting in SETTINGS.items():
        monkeypatch.setitem(SETTINGS, name, setting._replace(most_epochs=epochs))


def test_weights_are_kept_or_estimated(monkeypatch):
    give_up_after(monkeypatch, 3)
    seen = {}
    real = module.squared_error

    def squared_error(theta, limit):
        seen.setdefault(setting, set()).add(tuple(theta.weights))
        return real(theta, limit)

    monkeypatch.setattr(module, "squared_error", squared_error)
    for setting in ("known", "free"):
        rows_of(settings=[setting])
    assert seen["known"] == {(0.2, 0.8)}
    assert len(seen["free"]) > 100


@pytest.mark.parametrize(("largest", "sizes"), [(999, []), (1000, [1000]), (60_000, [1000, 51_000])])
def test_the_authors_sizes_are_limited_by_the_largest(monkeypatch, largest, sizes):
    asked = []

    def no_data(name, settings, jobs, progress):
        asked.extend(job.doing for job in jobs[1:])

    monkeypatch.setattr(module, "collect", no_data)
    gmm_scaling(sizes=[500, largest], runs=1, settings=["known", "authors"])
    known = [f"known weights, n = {n:,}" for n in (500, largest)]
    assert asked == [*known, *(f"the authors' runs, n = {n:,}" for n in sizes)]


def test_rows_of_each_setting_size_run_and_method(monkeypatch):
    give_up_after(monkeypatch, 11)
    experiment = gmm_scaling(sizes=[30, 60], runs=2, settings=["free", "known"], seed=1)
    assert [(row.setting, row.n, row.run, row.method) for row in experiment.rows] == [
        (setting, n, run, method)
        for setting in ("free", "known")
        for n in (30, 60)
        for run in (0, 1)
        for method in ("em", "iem", "sem-vr", "fiem")
    ]
    assert (experiment.name, experiment.interrupted) == ("gmm-scaling", False)
    assert "caution" not in experiment.settings


def test_same_seed_same_rows():
    first, again, other = (gmm_scaling(sizes=[60], runs=2, settings=["known"], seed=s) for s in (4, 4, 5))
    assert without_seconds(first) == without_seconds(again)
    assert without_seconds(first) != without_seconds(other)
    assert len({row.stays for row in first.rows if row.method == "fiem"}) == 2  # another sample


def test_slopes_on_small_samples():
    """The paper's finding with a tenth of its sizes; the slow test has all of them."""
    slopes = measured_slopes(gmm_scaling(sizes=[1000, 10_000], runs=1, settings=["known"]))
    assert 0.85 < slopes["em"] < 1.15
    assert 0.85 < slopes["iem"] < 1.15
    assert 0.5 < slopes["sem-vr"] < 0.85
    assert 0.5 < slopes["fiem"] < 0.85


def measured_slopes(experiment):
    rows = experiment.rows
    sizes = sorted({row.n for row in rows})
    return {
        method: fit_slope(
            sizes, [np.mean([row.stays for row in rows if (row.method, row.n) == (method, n)]) for n in sizes]
        )
        for method in dict.fromkeys(row.method for row in rows)
    }


def test_the_slope_is_that_of_least_squares():
    sizes, iterations = [1000, 4000, 9000, 50_000], [70.0, 300.0, 500.0, 4000.0]
    expected = np.polyfit(np.log(sizes), np.log(iterations), 1)[0]
    assert fit_slope(sizes, iterations) == pytest.approx(expected)


def test_sizes_without_a_value_are_left_out_of_the_slope():
    assert fit_slope([10, 100, 1000], [1.0, nan, 100.0]) == pytest.approx(1.0)
    assert fit_slope([10, 100, 1000], [nan, 10.0, 100.0]) == pytest.approx(1.0)
    assert isnan(fit_slope([10, 100], [1.0, nan]))
    assert isnan(fit_slope([10], [1.0]))
    assert isnan(fit_slope([], []))


def test_ctrl_c_keeps_complete_samples_only(ctrl_c):
    experiment = gmm_scaling(
        sizes=[60, 120], runs=2, settings=["known"], progress=ctrl_c("known weights, n = 120")
    )
    assert experiment.interrupted
    assert [(row.n, row.run) for row in experiment.rows] == [(60, 0)] * 4 + [(60, 1)] * 4


def test_ctrl_c_within_a_run_ends_the_experiment(monkeypatch):
    def interrupted(*args, **options):
        return replace(swiftem.run(*args, **options), status="interrupted")

    monkeypatch.setattr(module, "run", interrupted)
    experiment = gmm_scaling(sizes=[60], runs=1, settings=["known"])
    assert (experiment.interrupted, experiment.rows) == (True, ())


def test_progress_ends_at_one():
    told = []
    gmm_scaling(sizes=[60], runs=2, settings=["known"], progress=lambda doing, share: told.append(share))
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, pytest.approx(1.0))


def test_a_reference_that_still_moves_is_mentioned(monkeypatch):
    monkeypatch.setattr(gmm, "MOST_PASSES", 3)
    settings = gmm_scaling(sizes=[60], runs=2, settings=["known"]).settings
    assert settings["caution"] == "EM had not converged in 2 samples: μ* is inexact there"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_slopes_at_its_sizes(seed):
    slopes = measured_slopes(gmm_scaling(settings=["known"], seed=seed))
    for name in ("em", "iem"):
        assert 0.9 <= slopes[name] <= 1.1
    for name in ("sem-vr", "fiem"):
        assert 0.55 <= slopes[name] <= 0.8
