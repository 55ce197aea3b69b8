"""Model choice: the truth is found, more components never fit worse, and threads change nothing."""

import _thread
import re
import time

import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.mixture import candidates
from swiftem.models import NormalInverseWishart

KINDS = ("full", "tied", "diag", "spherical")
SHAPES = {  # of three covariances, for which no simpler kind will do
    "full": [[[1.0, 0.8], [0.8, 1.0]], [[1.0, -0.8], [-0.8, 1.0]], [[0.2, 0.0], [0.0, 2.0]]],
    "tied": [[[1.0, 0.8], [0.8, 1.0]]] * 3,
    "diag": [[[1.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 0.2]]],
    "spherical": [[[1.0, 0.0], [0.0, 1.0]], [[0.1, 0.0], [0.0, 0.1]], [[3.0, 0.0], [0.0, 3.0]]],
}


def rows_of(kind, n=300, seed=0):
    rng = np.random.default_rng(seed)
    centres = [[0.0, 0.0], [8.0, 0.0], [4.0, 9.0]]
    return np.concatenate(
        [rng.multivariate_normal(m, c, size=n) for m, c in zip(centres, SHAPES[kind], strict=True)]
    )


def doubled_parts(mixture):
    """Return the parameters with the first component doubled, at half its weight: the same density."""
    weights, means, covariances = (
        np.array(getattr(mixture, f"{name}_")) for name in ("weights", "means", "covariances")
    )
    weights[0] /= 2.0
    if mixture.covariance_type != "tied":
        covariances = np.concatenate([covariances, covariances[:1]])
    return np.append(weights, weights[0]), np.concatenate([means, means[:1]]), covariances


def without_time(selection):
    return [row._replace(seconds=0.0) for row in selection.table]


@pytest.fixture(scope="module")
def found():
    return swiftem.select(rows_of("full"), range(1, 7), random_state=0)


def test_all_fits_share_one_source_with_its_mean(monkeypatch):
    X, bind, sources = rows_of("full"), swiftem.models.GaussianMixtureModel.bind, []

    def noted(model, source, centre=None):
        sources.extend([source] if source.n == len(X) and centre is None else [])
        return bind(model, source, centre)

    monkeypatch.setattr(swiftem.models.GaussianMixtureModel, "bind", noted)
    swiftem.select(X, range(1, 4), random_state=0)
    assert len(sources) >= 12
    assert len(set(map(id, sources))) == 1
    np.testing.assert_allclose(sources[0].facts["mean"], X.mean(axis=0), rtol=1e-12)


# --- the choice ---


@pytest.mark.parametrize("kind", KINDS)
def test_bic_finds_the_number_of_components_and_the_kind(kind):
    best = swiftem.select(rows_of(kind, n=150), range(1, 5), random_state=0).best
    assert (best.covariance_type, best.n_components) == (kind, 3)


def test_the_table_has_every_fit_with_its_criteria(found):
    X = rows_of("full")
    assert [row.key for row in found.table] == [(kind, count) for kind in KINDS for count in range(1, 7)]
    values = [row.value for row in found.ranking]
    assert values == sorted(values)
    assert set(found.ranking) == set(found.table)
    assert found.table[0].start == "fresh"
    assert found.best is found.models[found.ranking[0].key]
    for row in found.table:
        mixture = found.models[row.key]
        assert (mixture.covariance_type, mixture.n_components) == row.key
        assert row.n_parameters == mixture.n_parameters_
        assert row.bic == row.value == pytest.approx(mixture.bic(X), rel=1e-12)
        assert row.aic == pytest.approx(mixture.aic(X), rel=1e-12)
        assert row.icl == pytest.approx(mixture.icl(X), rel=1e-10)
        assert row.log_likelihood == pytest.approx(mixture.score(X), rel=1e-12)
        assert not mixture.warm_start


def test_criteria_by_name_and_by_function():
    X, weight = rows_of("full", n=60), np.linspace(0.5, 1.5, 180)
    options = {"n_components": range(1, 4), "covariance_types": "full", "random_state": 0}
    for name in ("aic", "icl"):
        by_name = swiftem.select(X, criterion=name, sample_weight=weight, **options)
        assert [row.value for row in by_name.table] == [getattr(row, name) for row in by_name.table]
        assert by_name.criterion == name.upper()
        method = getattr(swiftem.GaussianMixture, name)
        by_method = swiftem.select(X, criterion=method, sample_weight=weight, **options)
        values = [[row.value for row in found.table] for found in (by_name, by_method)]
        np.testing.assert_allclose(*values, rtol=1e-10)
        assert by_method.criterion == name
    held_out = rows_of("full", seed=1)
    found = swiftem.select(X, criterion=lambda mixture, X, w: -mixture.score(held_out), **options)
    assert found.best.n_components == 3
    assert found.criterion == "criterion"


# --- warm starts ---


def assert_never_falls(found, tolerance=1e-9):
    for kind in {row.covariance_type for row in found.table}:
        values = [row.log_likelihood for row in found.table if row.covariance_type == kind]
        assert (np.diff(values) >= -tolerance).all(), (kind, np.diff(values).min())


@pytest.mark.parametrize("data", ["one normal", "uniform", "heavy tails", "six places"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_log_likelihood_never_falls_with_components(data, seed):
    rng = np.random.default_rng(seed)
    X = {
        "one normal": lambda: rng.normal(size=(300, 2)),
        "uniform": lambda: rng.uniform(size=(300, 1)),
        "heavy tails": lambda: rng.standard_t(2.5, size=(300, 2)),
        "six places": lambda: rng.normal(size=(300, 8)) + np.tile(3 * rng.normal(size=(6, 8)), (50, 1)),
    }[data]()
    assert_never_falls(swiftem.select(X, range(1, 7), random_state=seed))


def test_it_never_falls_with_a_stochastic_method_or_over_gaps():
    options = {"covariance_types": ("full", "diag"), "random_state": 0}
    assert_never_falls(swiftem.select(rows_of("full"), range(1, 6), method="sem", **options))
    found = swiftem.select(rows_of("diag"), [8, 1, 3, 3], **options)
    assert [row.n_components for row in found.table] == [1, 3, 8] * 2
    assert_never_falls(found)


def test_splits_find_what_fresh_starts_miss():
    """A start that k-means would not make: warm starts alone get from one component to the truth."""
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(centre, 0.3, size=(200, 2)) for centre in ([0, 0], [1, 8], [9, 3], [7, 9])]
    )
    found = swiftem.select(
        X, range(1, 6), "full", random_state=0,
        init_params=lambda X, count, random_state: np.arange(len(X)) % count, max_iter=20, tol=1e-4,
    )  # fmt: skip
    assert found.best.n_components == 4
    assert {row.start for row in found.table[1:4]} == {"split"}


def test_where_nothing_is_better_a_component_is_doubled(monkeypatch):
    def far_apart(mixture, X, weight):
        parts = doubled_parts(mixture)
        parts[1][-1] += 50.0
        return parts

    monkeypatch.setattr(candidates, "split_component", far_apart)
    X = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.warns(ConvergenceWarning, match="1 component, did not converge"):
        found = swiftem.select(
            X, [1, 2, 4], random_state=0, method="em", max_iter=1,
            init_params=lambda X, count, random_state: np.minimum(X[:, 0] > 0, count - 1).astype(int),
        )  # fmt: skip
    doubled = [row for row in found.table if row.start == "doubled"]
    assert {row.covariance_type for row in doubled} == set(KINDS)
    for row in doubled:
        before = found.models[row.covariance_type, row.n_components // 2]
        np.testing.assert_allclose(found.models[row.key].score_samples(X), before.score_samples(X), rtol=1e-9)
        assert row.converged == before.converged_
        assert row.bic > found.table[0].bic


# --- weights, kinds of data ---


def test_rows_of_weight_zero_are_as_if_absent():
    X = rows_of("full", n=80)
    weight = np.ones(len(X))
    weight[::7] = 0
    given = swiftem.select(X, range(1, 5), sample_weight=weight, random_state=0)
    kept = swiftem.select(X[weight > 0], range(1, 5), random_state=0)
    assert without_time(given) == without_time(kept)


def test_weights_decide_also_by_a_sample():
    X = rows_of("full", n=900)  # splits are chosen by 2,000 rows
    heavy = np.where(np.arange(len(X)) < 1800, 1.0, 1e-9)  # the third component hardly counts
    for weight, count in (
        (None, 3),
        (np.random.default_rng(0).uniform(0.5, 2.0, size=len(X)), 3),
        (heavy, 2),
    ):
        best = swiftem.select(X, range(1, 5), "full", sample_weight=weight, random_state=0).best
        assert best.n_components == count


def test_float32_stays_and_gives_the_same_choice(found):
    single = swiftem.select(rows_of("full").astype(np.float32), range(1, 7), random_state=0)
    assert single.ranking[0].key == found.ranking[0].key
    assert single.best.means_.dtype == np.float32
    assert_never_falls(single, 1e-6)


def test_names_of_columns_and_parameters_are_those_of_the_mixtures():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows_of("diag", n=60), columns=["length", "width"])
    found = swiftem.select(frame, [1, 2], "diag", random_state=0, reg_covar=0.5, method="em", n_init=3)
    assert found.best.covariances_.min() >= 0.5
    for mixture in found.models.values():
        assert (mixture.reg_covar, mixture.method, mixture.n_init) == (0.5, "em", 3)
        assert list(mixture.feature_names_in_) == ["length", "width"]
        mixture.predict(frame)


def test_with_a_prior_the_better_posterior_is_kept():
    found = swiftem.select(
        rows_of("full", n=60), range(1, 5), random_state=0, method="em",
        prior=NormalInverseWishart(degrees_of_freedom=5.0, scale=1.0),
    )  # fmt: skip
    assert found.best.n_components == 3
    assert all(row.start != "doubled" for row in found.table)


# --- threads and seeds ---


def test_threads_and_other_kinds_change_nothing():
    X = rows_of("full", n=100)
    one, two, every = (swiftem.select(X, range(1, 6), random_state=0, n_jobs=jobs) for jobs in (1, 2, -1))
    assert without_time(one) == without_time(two) == without_time(every)
    np.testing.assert_array_equal(one.best.means_, two.best.means_)
    alone = swiftem.select(X, range(1, 6), "tied", random_state=0)
    assert without_time(alone) == without_time(one)[5:10]
    other = swiftem.select(X, [4], "full", random_state=4)
    assert other.table[0].bic != one.table[3].bic


# --- what fails ---


def test_a_fit_that_fails_is_listed_with_its_reason():
    X = rows_of("full", n=2)  # six rows
    found = swiftem.select(X, [1, 2, 8], "spherical", random_state=0)
    assert [bool(row.failed) for row in found.table] == [False, False, True]
    last = found.ranking[-1]
    assert last.key == ("spherical", 8)
    assert np.isnan(last.value)
    assert last.key not in found.models
    assert "(3 fits, 1 of them failed)" in found.reason
    assert "Failed: spherical 8. Expected n_samples >= n_components" in repr(found)
    with pytest.raises(ValueError, match=r"None of the 2 fits succeeded\. Expected n_samples"):
        swiftem.select(X, [7, 8], "full", random_state=0)
    found = swiftem.select(X, [1, 2], "full", lambda m, X, w: np.nan if m.n_components == 1 else 0.0)
    assert found.table[0].failed == "The criterion is nan."
    assert found.best.n_components == 2


def test_kinds_that_fail_leave_the_others():
    x = np.random.default_rng(0).normal(size=(90, 1))  # two equal columns have no covariance matrix
    found = swiftem.select(np.hstack([x, x]), [1, 2], ("full", "diag"), random_state=0, reg_covar=0.0)
    assert [bool(row.failed) for row in found.table] == [True, True, False, False]
    assert found.best.covariance_type == "diag"
    assert found.plot().get_legend_handles_labels()[1] == ["diag"]


def test_a_best_fit_that_did_not_converge_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="The best fit, .* did not converge") as caught:
        swiftem.select(rows_of("full"), [2, 3], "full", random_state=0, max_iter=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_ctrl_c_returns_what_is_done():
    calls = []

    def criterion(mixture, X, weight):
        calls.append(mixture.n_components)
        if len(calls) == 3:
            _thread.interrupt_main()
            time.sleep(0.3)
        return mixture.bic(X, weight)

    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ of 40 fits"):
        found = swiftem.select(
            rows_of("full", n=30), range(1, 11), criterion=criterion, n_jobs=1, random_state=0
        )
    assert found.interrupted
    assert 3 <= len(found.table) < 40
    assert "interrupted" in repr(found)
    assert found.best.predict([[0.0, 0.0]]).shape == (1,)


def test_ctrl_c_before_anything_is_done_is_raised():
    pressed = []

    def start(X, n_components, random_state):
        if not pressed:  # a second one would meet a later test
            pressed.append(n_components)
            _thread.interrupt_main()
        time.sleep(0.3)
        raise ValueError("never fitted")

    with pytest.raises(KeyboardInterrupt):
        swiftem.select(rows_of("full", n=30), [1, 2], "full", n_jobs=1, init_params=start)


def test_errors_of_the_criterion_are_raised():
    def criterion(mixture, X, weight):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        swiftem.select(rows_of("full", n=30), criterion=criterion)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"n_components": []}, ValueError, "n_components must have at least one"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1, got 0"),
        ({"n_components": [1, 2.5]}, TypeError, "n_components must be an integer, got 2.5"),
        ({"n_components": "full"}, TypeError, "n_components must be an integer"),
        ({"covariance_types": []}, ValueError, "covariance_types must have at least one type"),
        ({"covariance_types": ["round"]}, ValueError, "covariance_types must be 'full', '"),
        ({"family": []}, ValueError, "family must have at least one family, got none."),
        ({"criterion": "dic"}, ValueError, "criterion must be 'bic', 'aic' or 'icl', got 'dic'"),
        ({"criterion": lambda m, X, w: "low"}, TypeError, "criterion must return a number, got 'low'"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a number of threads"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
        ({"covariance_type": "full"}, TypeError, "give covariance_types instead"),
        ({"means_init": [[0.0, 0.0]]}, TypeError, "select cannot take means_init"),
        ({"init_params": np.zeros((6, 2))}, TypeError, "select cannot take init_params as an array"),
        ({"warm_start": True}, TypeError, "select cannot take warm_start"),
        ({"colour": "blue"}, TypeError, "select has no parameter 'colour'"),
        ({"tol": -1.0}, ValueError, "tol must be a number of at least 0"),
        ({"sample_weight": np.zeros(6)}, ValueError, "sample_weight must have a positive entry"),
        ({"sample_weight": np.ones(5)}, ValueError, "sample_weight"),
        ({"sample_weight": -np.ones(6)}, ValueError, "sample_weight"),
        ({"X": np.full((6, 2), np.nan)}, ValueError, "NaN"),
        ({"X": np.zeros(6)}, ValueError, "2D array"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, error, words):
    given = {"X": rows_of("full", n=2), "n_components": [1, 2], **arguments}
    with pytest.raises(error, match=re.escape(words)):
        swiftem.select(**given)


# --- how it looks ---


def test_the_ten_best_are_shown(found, tmp_path):
    lines = repr(found).splitlines()
    assert lines[0] == found.reason == "BIC is lowest for full covariances, 3 components (24 fits)"
    assert lines[2].split()[:3] == ["covariances", "components", "BIC"]
    first = found.ranking[0]
    assert lines[3].split()[:5] == ["full", "3", f"{first.value:.2f}", "0.00", f"{first.log_likelihood:.6f}"]
    assert lines[-1] == "... and 14 more fits."
    assert len(lines) == 14
    assert found._repr_html_().count("<tr") == 11
    with (console := Console(width=200)).capture() as printed:
        console.print(found)
    assert printed.get().split() == repr(found).split()
    frame = found.to_pandas()
    assert frame["bic"].tolist() == [row.bic for row in found.table]
    axes = found.plot()
    assert axes.get_legend_handles_labels()[1] == list(KINDS)
    assert axes.texts[0].get_text() == "best: full, 3"
    axes.figure.savefig(tmp_path / "selection.png")


def test_a_selection_says_when_more_components_may_be_better():
    found = swiftem.select(rows_of("full", n=100), [1, 2], "full", random_state=0)
    assert "more may be better" in repr(found)
    assert "more may be better" not in repr(swiftem.select(rows_of("full", n=100), 2, "full", random_state=0))


def test_verbose_prints_a_line_for_each_fit(capsys):
    swiftem.select(rows_of("full", n=2), [1, 2, 7], "tied", random_state=0)
    assert capsys.readouterr().out == ""
    told = []
    swiftem.select(rows_of("full", n=2), [1, 2, 7], "tied", random_state=0, verbose=True)
    swiftem.select(rows_of("full", n=2), [1, 2, 7], "tied", random_state=0, verbose=told.append)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(told) == 3
    assert lines[0].startswith("tied, 1 component: BIC ")
    assert lines[2] == told[2] != ""
    assert lines[2].startswith("tied, 7 components: failed. Expected n_samples")


def test_fits_to_a_small_survey_end_later():
    answers = np.random.default_rng(0).random((400, 6)) < np.repeat([0.3, 0.7], 200)[:, None]
    found = swiftem.select(answers.astype(float), [2, 3], family="bernoulli", random_state=0)
    assert found.best.tol == pytest.approx(0.1 / 400)
    assert all(row.converged for row in found.ranking)
    coarse = swiftem.select(answers.astype(float), [2], family="bernoulli", random_state=0, tol=1e-3)
    assert coarse.best.tol == 1e-3
    assert swiftem.select(answers[:40].astype(float), [1], family="bernoulli").best.tol == 1e-3


@pytest.mark.parametrize("y", [None, np.zeros(30)], ids=["mixtures", "regressions"])
def test_stored_rows_are_refused_with_a_sentence(y, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 2)))
    for X in (tmp_path / "x.npy", str(tmp_path / "x.npy"), swiftem.data.open_source(tmp_path / "x.npy")):
        with pytest.raises(TypeError, match=r"^X must be an array.* read (the rows|it) first"):
            swiftem.select(X, [1, 2], y=y)
