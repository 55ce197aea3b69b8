"""Figure 1, right: what reaching means, slopes, settings, Ctrl-C; both verdicts of each claim."""

from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest

import swiftem
from paper.experiments import gmm_precision
from paper.experiments import gmm_scaling as module
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import batch_em_limit, gmm_data, squared_error
from paper.experiments.gmm_scaling import (
    AUTHORS_LOG,
    SETTINGS,
    WEIGHTS,
    ReachRow,
    gmm_scaling,
    scaling_section,
)
from paper.report.runs import fit_slope
from swiftem import methods
from swiftem.core.schedules import sample_size
from swiftem.models import GaussianMixtureModel

N = 100
SIZES = (1000, 10_000, 100_000)
AS_IN_THE_PAPER = {"em": 1.0, "iem": 1.0, "sem-vr": 2 / 3, "fiem": 2 / 3}


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
    monkeypatch.setattr(module.Setting, "methods", lambda setting: {"iem": methods.IncrementalEM()})
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


def test_a_start_that_is_below_counts_as_zero(monkeypatch):
    monkeypatch.setattr(module, "PRECISION", 100.0)
    for row in rows_of().values():
        assert (row.first, row.stays, row.passes) == (0, 0, 1.0)


def test_iem_cyclic_takes_the_samples_in_their_order(monkeypatch):
    """Counted by hand: a run with draws 0, 1, ..., n − 1, 0, 1, ..., looked at after each iteration."""
    monkeypatch.setattr(module, "AUTHORS_LOG", {N: AUTHORS_LOG[1000]})
    row = rows_of(settings=["authors"], seed=3)["iem-cyclic"]
    model = GaussianMixtureModel(n_components=2, known_weights=WEIGHTS)
    y = gmm_data(N, np.random.default_rng(np.random.SeedSequence([3, N, 0])), first_weight=0.2)
    start = model.theta(weights=WEIGHTS, means=[[1.0], [-1.0]])
    limit = batch_em_limit(model, y, start)
    result = swiftem.run(
        model, y, methods.IncrementalEM(), theta0=start, n_iter=20 * N, draws=np.tile(np.arange(N), 20),
        record_every=1, record=lambda iterate: squared_error(iterate.theta, limit),
    )  # fmt: skip
    errors = np.array(result.path)
    assert row.first == np.flatnonzero(errors <= 1e-3)[0]
    assert row.stays == np.flatnonzero(errors > 1e-3)[-1] + 1


@pytest.mark.parametrize(
    ("setting", "c", "known"), [("known", 0.3, True), ("free", 0.3, False), ("authors", 1.0, True)]
)
def test_settings_are_those_of_the_paper_page(setting, c, known):
    chosen = SETTINGS[setting]
    assert chosen.model.known_weights == ((0.2, 0.8) if known else None)
    for name, kind in (("sem-vr", methods.VarianceReducedEM), ("fiem", methods.FastIncrementalEM)):
        assert chosen.methods()[name] == kind(step_size=sample_size(c))  # c·n^(−2/3)


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
    monkeypatch.setattr(module, "sample", lambda *args: (None, gmm_precision.Limit(None, 1, True)))
    monkeypatch.setattr(module, "reach", lambda *args: (nan, nan, nan, nan))
    for row in gmm_scaling(sizes=[500, largest], runs=1, settings=["known", "authors"]).rows:
        asked += [(row.setting, row.n)] * (row.method == "em")
    assert asked == [("known", 500), ("known", largest), *(("authors", n) for n in sizes)]


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


def test_ctrl_c_within_a_run_ends_the_experiment(monkeypatch):
    def interrupted(*args, **options):
        return replace(swiftem.run(*args, **options), status="interrupted")

    monkeypatch.setattr(module, "run", interrupted)
    experiment = gmm_scaling(sizes=[60], runs=1, settings=["known"])
    assert (experiment.interrupted, experiment.rows) == (True, ())


def test_a_reference_that_still_moves_is_mentioned(monkeypatch):
    monkeypatch.setattr(gmm_precision, "MOST_PASSES", 3)
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
        for method in AUTHORS_LOG[n]:
            first = odd.get(method.replace("-", "_"), factor) * AUTHORS_LOG[n][method]
            found.append(ReachRow("authors", method, n, 0, first, 3 * first, 5.0, 0.1))
    return found


def section(*parts, interrupted=False):
    every = tuple(row for part in parts for row in part)
    return scaling_section(Experiment("gmm-scaling", {}, every, interrupted))


def test_what_the_paper_shows_agrees(check, verdicts):
    found = check(section(rows(), rows("free"), authors()))
    assert verdicts(found) == ["agrees", "agrees", "agrees"]
    assert found.findings[0].measured == "slopes 1.00 (EM), 1.00 (iEM); expected 0.9 to 1.1"
    assert "n = 1,000 to 100,000" in found.findings[0].note
    assert "slopes 0.67 (sEM-VR), 0.67 (fiEM)" in found.findings[1].measured
    assert [picture.name for picture in found.pictures] == ["gmm-scaling-known", "gmm-scaling-free"]
    assert len([*found.all_tables()]) == 3


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
def test_another_slope_disagrees(method, exponent, expected, check, verdicts):
    assert verdicts(check(section(rows(exponents={**AS_IN_THE_PAPER, method: exponent})))) == expected


def test_one_size_has_no_slope_and_no_verdict(check, verdicts):
    found = check(section(rows(sizes=[1000]), rows("free", sizes=[1000]), interrupted=True), draw=True)
    assert not found.findings
    assert len(found.pictures) == len([*found.all_tables()]) == 2


def test_sizes_that_were_given_up_are_told(check, verdicts):
    given_up = [("fiem", 100_000)]
    found = check(section(rows(given_up=given_up), rows("free", given_up=given_up)), draw=True)
    assert verdicts(found) == ["agrees", "agrees"]
    assert "given up" not in found.findings[0].note
    assert "2 runs were given up" in found.findings[1].note
    assert next(found.all_tables()).known()[3][4] == "–"


def test_a_method_that_never_arrives_disagrees(check, verdicts):
    found = check(section(rows(given_up=[("fiem", n) for n in SIZES])))
    assert verdicts(found) == ["agrees", "disagrees"]
    assert "none (fiEM)" in found.findings[1].measured


def test_nobody_ever_arrives(check, verdicts):
    found = check(section(rows(given_up=[(m, n) for m in AS_IN_THE_PAPER for n in SIZES])), draw=True)
    assert verdicts(found) == ["disagrees", "disagrees"]


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.49, "disagrees"), (0.51, "agrees"), (1.99, "agrees"), (2.01, "disagrees")]
)
def test_the_authors_log_agrees_within_a_factor_of_two(factor, verdict, check, verdicts):
    (finding,) = check(section(authors(sem_vr=factor))).findings
    assert finding.verdict == verdict
    assert f"{factor:.2f}" in finding.measured


def test_beside_the_log_a_run_that_was_given_up_disagrees(check, verdicts):
    found = check(section(authors(fiem=nan)))
    assert verdicts(found) == ["disagrees"]
    assert "In 2 of 8 cases a run did not fall below it." in found.findings[0].note
    assert ("fiEM, n = 1,000", "642", "–", "–") in found.tables[0].known()
    found = check(section(authors(nan)))
    assert verdicts(found) == ["disagrees"]
    assert found.findings[0].measured == "none of our runs fell below 10⁻³"


def test_first_and_for_good_stand_beside_the_log(check, verdicts):
    (table,) = check(section(authors(sizes=[1000]))).tables
    assert table.known()[1] == ("EM, n = 1,000", "7,000", "7,000", "21,000")
    assert table.known()[2][0] == "iEM, cyclic, n = 1,000"


def test_means_are_over_the_runs(check, verdicts):
    (table,) = check(section(rows(sizes=[1000, 10_000]))).all_tables()
    assert table.known()[1][:2] == ("1,000", "7,500")


def test_the_slopes_and_the_guides_are_drawn():
    (picture,) = section(rows()).pictures
    iterations, passes, _ = picture.panels
    shown = {f"{line.style.label} {line.note}".strip() for line in iterations.lines}
    assert shown == {"EM 1.00", "iEM 1.00", "sEM-VR 0.67", "fiEM 0.67", "∝ n", "∝ n^(2/3)"}
    assert any("−0." in line.note for line in passes.lines)
    assert len(passes.lines) == 4


@pytest.mark.slow
def test_a_real_experiment(check, monkeypatch):
    monkeypatch.setattr(module, "AUTHORS_LOG", {30: AUTHORS_LOG[1000]})
    monkeypatch.setitem(SETTINGS, "free", SETTINGS["free"]._replace(most_epochs=12))
    result = gmm_scaling(sizes=[30, 60], runs=1)
    found = check(scaling_section(result), draw=True)
    assert len(found.findings) == 3
