"""``swiftem.RegressionMixture``: estimates, densities, methods, weights, files, bad input."""

import warnings

import numpy as np
import pytest
from regression_data import counts, lines
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from swiftem import RegressionMixture, methods, models
from swiftem.regression import newton_em
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.newton_em import Regressions, one_pass
from swiftem.testing import check_model


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


@pytest.mark.parametrize("intercept", [True, False])
def test_the_family_is_a_model(intercept):
    X, y, _ = lines(60)
    rows = np.column_stack([X, y])
    family = GaussianRegression(intercept=intercept)
    check_model(models.MixtureModel(2, family, smoothing=0.5), rows)
    learnt = models.MixtureModel(2, family).bind(_source(rows)).model.kind
    params = {
        "coefficients": np.array([[2.0 * intercept, 1.0, -1.0], [0.0, 3.0, 0.5]]),
        "variances": np.array([4.0, 0.3]),
    }
    logs = learnt.e_step(rows, params)[0]
    for m in range(2):
        mean = params["coefficients"][m, 0] + X @ params["coefficients"][m, 1:]
        expected = stats.norm.logpdf(y, mean, np.sqrt(params["variances"][m]))
        assert np.allclose(logs[:, m], expected, rtol=1e-10, atol=1e-10)


def _source(rows):
    from swiftem.data import ArraySource

    return ArraySource(rows)


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
def test_files_samples_and_clones(tmp_path, family):
    X, y, _ = counts() if family == "poisson" else lines()
    found = RegressionMixture(2, family=family, random_state=3).fit(X, y)
    found.save(tmp_path / "a.model")
    loaded = RegressionMixture.load(tmp_path / "a.model")
    assert np.array_equal(loaded.predict_proba(X, y), found.predict_proba(X, y))
    assert loaded.get_params() == found.get_params()
    assert loaded.aic(X, y) == found.aic(X, y)
    values, labels = loaded.sample(X)
    again = clone(found).fit(X, values)
    assert np.allclose(np.sort(again.coef_[:, 0]), np.sort(found.coef_[:, 0]), atol=0.3)
    assert labels.shape == values.shape == y.shape
    (tmp_path / "b.model").write_bytes((tmp_path / "a.model").read_bytes()[:-300])
    with pytest.raises(ValueError, match="damaged"):
        RegressionMixture.load(tmp_path / "b.model")


def test_fewer_parameters_by_bic():
    X, y, _ = lines()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [RegressionMixture(m, random_state=0).fit(X, y).bic(X, y) for m in (1, 2, 3)]
    assert int(np.argmin(values)) == 1
    one = RegressionMixture(1).fit(X, y)
    free = (one.bic(X, y) - one.aic(X, y)) / (np.log(len(y)) - 2)
    assert free == pytest.approx(4.0)


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    X, y, _ = lines()
    frame = pd.DataFrame(X, columns=["size", "age"])
    found = RegressionMixture(2, random_state=0).fit(frame, pd.Series(y))
    assert list(found.feature_names_in_) == ["size", "age"]
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[["age", "size"]])


@pytest.mark.parametrize(
    ("given", "rows", "values", "sentence"),
    [
        (
            {"family": "poisson", "method": "sem"}, [[0.0], [1.0]], [1, 2],
            "method must be 'em' or 'auto' for family='poisson', which has no finite statistics, got 'sem'",
        ),
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


def test_not_converged_is_a_warning():
    x, y, _ = counts()
    with pytest.warns(UserWarning, match="did not converge"):
        RegressionMixture(2, family="poisson", max_iter=1, random_state=0).fit(x, y)


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


def test_a_pass_over_counts_that_loses_is_undone(monkeypatch):
    X, y, _ = counts(300)
    values, seen = iter([-3.0, -2.0, -2.5]), []

    def losing(family, design, responses, weight, now, ridge, floor):
        later, value = one_pass(family, design, responses, weight, now, ridge, floor)
        if seen or (design.shape[0] == 300 and started):
            seen.append(now)
            value = next(values)
        return later, value

    started = []
    begin = newton_em.best_start
    monkeypatch.setattr(newton_em, "best_start", lambda *given: (begin(*given), started.append(True))[0])
    monkeypatch.setattr(newton_em, "one_pass", losing)
    found = RegressionMixture(2, family="poisson", random_state=0).fit(X, y)
    assert found.converged_
    assert found.n_iter_ == 3
    assert found.lower_bound_ == -2.0
    assert found.lower_bounds_ == [-3.0, -2.0, -2.5]
    best = newton_em.Units.of("poisson", X, np.asarray(y, float), np.ones(300), True).outside(seen[1])
    assert np.array_equal(found.coef_, best.beta[:, 1:])
    assert np.array_equal(found.weights_, best.weights)
