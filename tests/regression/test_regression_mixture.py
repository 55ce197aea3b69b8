"""``swiftem.RegressionMixture``: estimates, densities, missing responses, tables, files, bad input."""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from regression_data import counts, lines
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from swiftem import RegressionMixture, methods, models
from swiftem.data import ArraySource
from swiftem.fit.driver import Phase, drive
from swiftem.fit.history import Moment
from swiftem.regression import newton_em
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.newton_em import Regressions, one_pass
from swiftem.testing import check_model

matplotlib.use("Agg")


def data(family, n=600):
    return counts(n)[:2] if family == "poisson" else lines(n)[:2]


@pytest.mark.parametrize("method", ["auto", *methods.METHODS])
def test_every_method_finds_the_lines(method):
    X, y, kind = lines()
    # A stochastic method's last passes of em may stop before a gain of 1e-6.
    found = RegressionMixture(2, method=method, random_state=0, tol=1e-4).fit(X, y)
    order = np.argsort(found.coef_[:, 0])
    assert np.allclose(found.coef_[order], [[1.0, -2.0], [3.0, 0.5]], atol=0.1)
    assert np.allclose(found.intercept_[order], [20.0, 2.0], atol=0.6)
    assert np.allclose(np.sqrt(found.variances_[order]), [0.5, 1.5], atol=0.1)
    assert np.allclose(found.weights_[order], [0.7, 0.3], atol=0.03)
    assert np.mean(order[kind] == found.predict_class(X, y)) > 0.96
    assert found.method_ == ("em" if method == "auto" else method)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_component_is_least_squares(fit_intercept):
    X, y, _ = lines(offset=1e4)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    found = RegressionMixture(1, fit_intercept=fit_intercept, smoothing=0.0).fit(X, y, sample_weight=weight)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    assert np.allclose(found.coef_[0], theirs.coef_, rtol=1e-6)
    assert found.intercept_[0] == pytest.approx(theirs.intercept_, rel=1e-6)
    assert np.allclose(found.predict(X), theirs.predict(X), rtol=1e-7)
    noise = np.average((y - theirs.predict(X)) ** 2, weights=weight)
    assert found.variances_[0] == pytest.approx(noise, rel=1e-6)
    free = (found.bic(X, y) - found.aic(X, y)) / (np.log(len(y)) - 2)
    assert free == pytest.approx(3.0 + fit_intercept)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_family_is_a_model(intercept):
    X, y, _ = lines(60)
    rows = np.column_stack([X, y])
    family = GaussianRegression(intercept=intercept)
    check_model(models.MixtureModel(2, family, smoothing=0.5), rows)
    learnt = models.MixtureModel(2, family).bind(ArraySource(rows)).model.kind
    params = {
        "coefficients": np.array([[2.0 * intercept, 1.0, -1.0], [0.0, 3.0, 0.5]]),
        "variances": np.array([4.0, 0.3]),
    }
    logs = learnt.e_step(rows, params)[0]
    for m in range(2):
        mean = params["coefficients"][m, 0] + X @ params["coefficients"][m, 1:]
        expected = stats.norm.logpdf(y, mean, np.sqrt(params["variances"][m]))
        assert np.allclose(logs[:, m], expected, rtol=1e-10, atol=1e-10)


def test_rows_drawn_again_have_the_moments_of_the_data():
    X, y, _ = lines(20_000, offset=5.0)
    rows = np.column_stack([X, y])
    found = RegressionMixture(2, random_state=0).fit(X, y)
    family = models.MixtureModel(2, GaussianRegression()).bind(ArraySource(rows)).model.kind
    params = {"coefficients": np.column_stack([found.intercept_, found.coef_]), "variances": found.variances_}
    r = found.predict_proba(X, y)
    means = (r.T @ family.features(rows)) / r.sum(axis=0)[:, None]
    rng = np.random.default_rng(0)
    drawn = family.redraw(params, means, rng.choice(2, len(X), p=found.weights_), rng)
    assert np.allclose(drawn.mean(axis=0), rows.mean(axis=0), rtol=0.05)
    assert np.allclose(np.cov(drawn.T), np.cov(rows.T), rtol=0.1, atol=0.8)
    again = RegressionMixture(2, random_state=0).fit(drawn[:, :2], drawn[:, 2])
    assert np.allclose(np.sort(again.coef_, axis=0), np.sort(found.coef_, axis=0), atol=0.05)


def test_columns_that_depend_on_each_other():
    X, y, _ = lines()
    double = np.column_stack([X, X[:, 0], np.ones(len(X))])
    plain, found = (RegressionMixture(2, random_state=0).fit(rows, y) for rows in (X, double))
    assert found.score(double, y) == pytest.approx(plain.score(X, y), abs=1e-4)
    assert np.abs(found.coef_).max() < 10.0


def test_counts():
    x, y, kind = counts()
    found = RegressionMixture(2, family="poisson", random_state=0).fit(x, y)
    order = np.argsort(found.intercept_)
    assert np.allclose(found.intercept_[order], [0.5, 3.0], atol=0.1)
    assert np.allclose(found.coef_[order, 0], [1.5, -0.5], atol=0.15)
    assert np.mean(order[kind] == found.predict_class(x, y)) > 0.95
    assert found.converged_
    mean = found.predict_components(x)
    expected = np.log(np.exp(stats.poisson.logpmf(y[:, None], mean)) @ found.weights_).mean()
    assert found.score(x, y) == pytest.approx(expected, rel=1e-10)
    assert np.isnan(found.variances_).all()


def test_one_component_of_counts_is_the_largest_likelihood():
    x, y, _ = counts()
    found = RegressionMixture(1, family="poisson", smoothing=0.0, tol=1e-13).fit(x, y)
    design = np.column_stack([np.ones(len(x)), x])
    best = optimize.minimize(
        lambda b: np.mean(np.exp(design @ b) - y * (design @ b)), np.zeros(2), method="BFGS"
    )
    assert np.allclose([found.intercept_[0], found.coef_[0, 0]], best.x, atol=1e-4)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_passes_in_numpy_never_lose(family):
    x, y, _ = counts() if family == "poisson" else (*lines()[:2], None)
    rng = np.random.default_rng(0)
    design, weight = (
        np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)]),
        rng.uniform(0, 2, len(x)),
    )
    beta = rng.normal(size=(3, design.shape[1]))
    beta[:, 0] -= 4.0  # means of counts far too small: whole Newton steps would go too far
    now = Regressions(np.full(3, 1 / 3), beta, np.full(3, float(y.var())))
    values = []
    for _ in range(40):
        now, value = one_pass(family, design, y * 1.0, weight, now, 1e-3, 1e-6)
        values.append(value)
    assert (np.diff(values) > -1e-9).all()


def test_a_start_is_the_best_of_its_candidates():
    """Single candidates find the best optimum for one seed in eight."""
    X, y, _ = lines(300)
    units = newton_em.Units.of("gaussian", X, y, np.ones(300), True)
    problem = "gaussian", units.design(X), (y - units.shift) / units.unit, np.ones(300)
    starts = [newton_em.best_start(*problem, 3, 1e-3, np.random.default_rng(seed)) for seed in range(8)]
    values = np.array([one_pass(*problem, start, 1e-3, 1e-6)[1] for start in starts])
    assert (values > values.max() - 2e-3).sum() >= 5


def test_units_change_nothing():
    X, y, _ = lines()
    here = RegressionMixture(2, random_state=0).fit(X, y)
    there = RegressionMixture(2, random_state=0).fit(X * [1e6, 1e-6] + 3.0, y * 1e3)
    assert np.allclose(there.coef_, here.coef_ * 1e3 / [1e6, 1e-6], rtol=1e-4)
    assert there.score(X * [1e6, 1e-6] + 3.0, y * 1e3) == pytest.approx(
        here.score(X, y) - np.log(1e3), abs=1e-6
    )


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_weights_are_copies(family):
    X, y, _ = counts(600) if family == "poisson" else lines(600)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    start = {"family": family, "random_state": 0, "tol": 1e-10, "max_iter": 2000}
    once = RegressionMixture(2, **start).fit(X, y, sample_weight=weight)
    copies = RegressionMixture(2, **start).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    rows, values = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    assert once.score(rows, values) == pytest.approx(copies.score(rows, values), abs=1e-5)
    assert once.score(X, y, sample_weight=weight) == pytest.approx(once.score(rows, values), rel=1e-10)
    assert once.bic(X, y, sample_weight=weight) == pytest.approx(once.bic(rows, values), rel=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_file_has_everything(tmp_path, family):
    pd = pytest.importorskip("pandas")
    X, y = data(family, 2000)
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    found = RegressionMixture(2, family=family, random_state=3, tol=1e-3)
    found.fit(frame, pd.Series(y, name="price"))
    found.save(tmp_path / "a.model")
    loaded = RegressionMixture.load(tmp_path / "a.model")
    assert loaded.get_params() == found.get_params()
    results = ("weights_", "coef_", "intercept_", "variances_", "lower_bounds_", "n_iter_", "method_",
               "converged_", "stationarity_", "log_likelihood_", "response_name_", "history_")  # fmt: skip
    for name in results:
        np.testing.assert_equal(getattr(loaded, name), getattr(found, name), err_msg=name)
    assert repr(loaded.summary()) == repr(found.summary())
    assert np.array_equal(loaded.predict_proba(frame, y), found.predict_proba(frame, y))
    values, labels = loaded.sample(frame)
    assert labels.shape == values.shape == y.shape
    again = clone(found).fit(frame, values)
    assert np.allclose(np.sort(again.coef_[:, 0]), np.sort(found.coef_[:, 0]), atol=0.3)
    (tmp_path / "b.model").write_bytes((tmp_path / "a.model").read_bytes()[:-300])
    with pytest.raises(ValueError, match="damaged"):
        RegressionMixture.load(tmp_path / "b.model")


def test_names_tables_and_plots():
    pd = pytest.importorskip("pandas")
    X, y = data("gaussian", 2000)
    frame = pd.DataFrame(X, columns=["size", "age"])
    found = RegressionMixture(2, random_state=0).fit(frame, pd.Series(y, name="price"))
    assert list(found.feature_names_in_) == ["size", "age"]
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[["age", "size"]])
    assert list(found.profile_) == ["(intercept)", "size", "age", "(noise)"]
    assert np.array_equal(found.profile_["age"]["coefficient"], found.coef_[:, 1])
    text = repr(found.summary())
    assert text.startswith("Mixture of 2 regressions, gaussian, of price\n")
    assert f"{found.coef_[0, 0]:.4g}" in text
    axes = found.plot(frame, y)
    assert [ax.get_title() for ax in axes] == ["size", "age"]
    line = axes[0].lines[1]
    at = np.repeat(X.mean(axis=0)[None], len(line.get_xdata()), axis=0)
    at[:, 0] = line.get_xdata()
    assert np.allclose(line.get_ydata(), found.intercept_[1] + at @ found.coef_[1])
    assert sum(len(part.get_offsets()) for part in axes[0].collections) == len(y)
    assert len(found.plot(frame, columns=["age"])) == 1
    with pytest.raises(ValueError, match="columns must be numbers below 2, or names"):
        found.plot(frame, columns=["price"])
    without = RegressionMixture(1, family="poisson", fit_intercept=False)
    assert list(without.fit(X[:, :1] / 10, np.round(np.abs(y))).profile_) == ["column 0"]
    matplotlib.pyplot.close("all")


LEAPS = methods.Accelerated(methods.EM(), "squarem")
NEWTON = "method must be 'em' or 'auto' for family='poisson', which has no finite statistics"


@pytest.mark.parametrize(
    ("given", "rows", "values", "sentence"),
    [
        ({"family": "poisson", "method": "sem"}, [[0.0], [1.0]], [1, 2], f"{NEWTON}, got 'sem'"),
        ({"family": "poisson", "method": LEAPS}, [[0.0], [1.0]], [1, 2], NEWTON),
        (
            {"family": "poisson"}, [[0.0], [1.0]], [1, -2],
            r"y must be counts \(0, 1, 2, ...\) for family='poisson', got -2",
        ),
        ({"family": "poisson"}, [[0.0], [1.0]], [1, 0.5], "got 0.5"),
        ({"family": "gamma"}, [[0.0], [1.0]], [1, 2], "family"),
        ({"n_components": 3}, [[0.0], [1.0]], [1, 2], "as many rows as components, 3, got 2"),
        ({}, [[0.0], [np.nan]], [1, 2], "NaN"),
        ({}, [[0.0], [1.0]], [1, np.inf], "infinity"),
        ({}, [[0.0], [1.0]], [1, 2, 3], "inconsistent numbers of samples"),
        ({"method": "newton"}, [[0.0], [1.0]], [1, 2], "method"),
    ],
)  # fmt: skip
def test_bad_input(given, rows, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        RegressionMixture(**given).fit(rows, values)


def test_counts_cannot_be_added():
    found = RegressionMixture(1, family="poisson").fit(*data("poisson", 50))
    with pytest.raises(ValueError, match="family must be 'gaussian' for partial_fit, got 'poisson'"):
        found.partial_fit(*data("poisson", 50))


def test_scikit_learns_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(RegressionMixture(1), on_fail=None, on_skip=None)
    failed = {check["check_name"]: check["exception"] for check in found if check["status"] == "failed"}
    assert failed == {}


@pytest.mark.parametrize("far", [40.0, 80.0, 150.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_far_row_of_counts_leaves_a_finite_model(far, fit_intercept):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3))
        y = rng.poisson(np.exp(np.minimum(np.where(rng.random(300) < 0.5, 1.0, -1.0) * 2.0 * X[:, 0], 8.0)))
        X[0, 0] = far
        for n_components in (1, 2):
            found = RegressionMixture(
                n_components, family="poisson", fit_intercept=fit_intercept, random_state=seed
            ).fit(X, y)
            assert found.converged_
            assert np.isfinite(found.coef_).all()
            assert np.allclose(found.predict_proba(X, y).sum(axis=1), 1.0, atol=1e-12)
            assert np.isfinite(found.predict(X)).all()
            assert np.isfinite(found.score(X, y))
            assert (np.diff(found.lower_bounds_) > -1e-9).all()


def test_means_of_counts_beyond_all_numbers():
    steep = RegressionMixture.from_parameters(
        [0.5, 0.5], [[500.0], [400.0]], family="poisson", random_state=0
    )
    r = steep.predict_proba([[10.0], [0.0]], [3.0, 1.0])
    assert np.allclose(r, [[0.0, 1.0], [0.5, 0.5]])
    both = RegressionMixture.from_parameters([0.5, 0.5], [[500.0], [500.0]], family="poisson")
    assert np.allclose(both.predict_proba([[10.0]], [3.0]), 0.5)
    assert np.allclose(np.log(steep.predict_components([[10.0], [0.1]])), [[300.0, 300.0], [50.0, 40.0]])
    assert np.isfinite(steep.predict([[10.0]])).all()
    drawn, _ = steep.sample(np.full((1000, 1), 0.1))  # means of e^50 and e^40
    assert set(np.round(np.log(drawn))) == {50.0, 40.0}


def test_a_pass_over_counts_that_loses_is_undone():
    X, y, _ = counts(300)
    one = np.ones(2)
    now, before = (Regressions(one / 2, np.full((2, 1), value), one) for value in (1.0, 2.0))
    best = Moment(1.0, 0.0, -1e9, 1.0, 0, "em")  # no pass is as good
    fit = newton_em.NewtonFit(now=now, before=before, passes=1.0, moments=[best])
    drive(fit, [Phase(newton_em.NewtonPass(fit, X, y, np.ones(300), 1e-3, 1e-6))], max_passes=9)
    assert fit.converged
    assert fit.passes == 2.0
    assert fit.bound == 1e9
    assert fit.now is before


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("missing", [np.nan, None, "masked", "pandas"])
def test_a_missing_response_adds_nothing(family, missing):
    X, y = data(family, 500)
    gone = np.random.default_rng(0).random(len(y)) < 0.2
    if missing == "masked":
        values = np.ma.masked_array(y, gone)
    elif missing == "pandas":
        pd = pytest.importorskip("pandas")
        values = pd.Series(y, dtype="Float64" if family == "gaussian" else "Int64").mask(gone)
    else:
        values = [missing if is_gone else value for value, is_gone in zip(y.tolist(), gone, strict=True)]
    found = RegressionMixture(2, family=family, random_state=0).fit(X, values)
    observed = RegressionMixture(2, family=family, random_state=0).fit(X[~gone], y[~gone])
    assert np.array_equal(found.coef_, observed.coef_)
    shares = found.predict_proba(X, values)
    assert np.allclose(shares[gone], found.weights_)
    assert np.array_equal(shares[~gone], observed.predict_proba(X[~gone], y[~gone]))
    assert found.score(X, values) == pytest.approx(observed.score(X[~gone], y[~gone]), rel=1e-12)
    assert found.icl(X, values) == pytest.approx(observed.icl(X[~gone], y[~gone]), rel=1e-12)
    assert not found.log_likelihoods(X, values)[gone].any()
    filled = found.impute(X, values)
    assert np.array_equal(filled[~gone], y[~gone])
    assert np.array_equal(filled[gone], found.predict(X[gone]))
    drawn = found.impute(X, values, random_state=0)
    assert np.array_equal(drawn[~gone], y[~gone])
    assert not np.allclose(drawn[gone], filled[gone])
    assert np.array_equal(drawn, found.impute(X, values, random_state=0))
    if family == "gaussian":
        before = clone(found).partial_fit(X, values)
        assert np.array_equal(before.coef_, clone(found).partial_fit(X[~gone], y[~gone]).coef_)
        after = found.partial_fit(X[gone], np.full(gone.sum(), np.nan))  # nothing to learn from
        assert np.array_equal(after.coef_, observed.coef_)


def test_missing_regressors_have_a_sentence():
    X, y = data("gaussian", 50)
    found = RegressionMixture(1).fit(X, y)
    X[3, 1] = np.nan
    sentence = (
        "X must have no missing values in a mixture of regressions, which has no distribution of X, got NaN"
    )
    for call in (
        lambda: RegressionMixture(1).fit(X, y), lambda: found.partial_fit(X, y), lambda: found.predict(X),
        lambda: found.predict_proba(X, y), lambda: found.sample(X),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            call()
    for values in (np.full(50, np.nan), [None] * 50):
        with pytest.raises(
            ValueError, match="with a positive weight and an observed y as components, 1, got 0"
        ):
            RegressionMixture(1).fit(X[:, :1], values)
        with pytest.raises(ValueError, match="y must have an observed value of positive weight, got none"):
            found.score(np.nan_to_num(X), values)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (([0.5, 0.6], [[1.0], [2.0]], None, [1.0, 1.0]), "weights must sum to 1"),
        (([0.5, 0.5], [[1.0]], None, [1.0, 1.0]), "coef must have shape"),
        (([1.0], [[1.0]]), "variances must be given for family='gaussian'"),
        (([1.0], [[1.0]], None, [-1.0]), "variances must be positive, got -1"),
        (([1.0], [[1.0]], [np.nan], [1.0]), "intercept must be finite"),
    ],
)
def test_parameters_that_cannot_be(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        RegressionMixture.from_parameters(*given)
    with pytest.raises(ValueError, match="variances must be left out for family='poisson'"):
        RegressionMixture.from_parameters([1.0], [[1.0]], None, [1.0], family="poisson")


def test_tensors_with_gradients():
    torch = pytest.importorskip("torch")
    X, y, _ = lines(300)
    weight = np.ones(300)
    plain = RegressionMixture(2, random_state=0).fit(X, y, sample_weight=weight)
    given = [torch.tensor(part, requires_grad=True) for part in (X, y, weight)]
    found = RegressionMixture(2, random_state=0).fit(given[0], given[1], sample_weight=given[2])
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    np.testing.assert_array_equal(found.predict(given[0]), plain.predict(X))
    assert found.score(*given[:2], sample_weight=given[2]) == plain.score(X, y)


@pytest.mark.parametrize("of", ["X", "y"])
@pytest.mark.parametrize("what", ["rows.npy", Path("rows.npy"), ArraySource(np.zeros((3, 1)))])
def test_rows_that_are_not_in_memory_are_refused(of, what):
    given = {"X": np.zeros((3, 1)), "y": np.zeros(3)} | {of: what}
    with pytest.raises(TypeError, match=rf"^{of} must be an array or a data frame in memory .*--response"):
        RegressionMixture(2).fit(**given)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_draws_of_missing_responses_follow_the_mixture(family):
    noise = {} if family == "poisson" else {"variances": [0.25, 1.0]}
    model = RegressionMixture.from_parameters([0.3, 0.7], [[1.0], [2.0]], [0.0, 3.0], family=family, **noise)
    X, y = np.full((4000, 1), 0.5), np.full(4000, np.nan)
    y[0] = 7.0
    drawn = model.impute(X, y, random_state=1)
    assert drawn[0] == 7.0
    np.testing.assert_array_equal(drawn, model.impute(X, y, random_state=1))
    assert (drawn != model.impute(X, y, random_state=2)).any()
    means = model.predict_components(X[:1])[0]
    within = means if family == "poisson" else np.array([0.25, 1.0])
    mean = model.weights_ @ means
    variance = model.weights_ @ (within + (means - mean) ** 2)
    assert drawn[1:].mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 4000))
    assert drawn[1:].var() == pytest.approx(variance, rel=0.1)
    assert model.impute(X, y)[1:] == pytest.approx(mean)
