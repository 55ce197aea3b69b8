"""``swiftem.RegressionMixture`` as a whole estimator: checkpoints, batches, missing y, selection, tables."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from dying_fits import Death
from regression_data import counts, lines
from sklearn.base import clone
from surroundings import fit_within

import swiftem
from swiftem import RegressionMixture, methods
from swiftem.data import ArraySource
from swiftem.mixture.starts.components import starts_of

matplotlib.use("Agg")
ATTRIBUTES = ("weights_", "coef_", "intercept_", "variances_", "lower_bounds_", "n_iter_", "method_")


def data(family, n=2000):
    """Return rows and responses; more counts, as starts are compared on 2,000 rows and already fit these."""
    return counts(3 * n)[:2] if family == "poisson" else lines(n)[:2]


def assert_same(one, two):
    for name in (*ATTRIBUTES, "converged_", "stationarity_", "log_likelihood_"):
        np.testing.assert_equal(getattr(one, name), getattr(two, name), err_msg=name)
    np.testing.assert_array_equal(one.history_.objective, two.history_.objective)


@pytest.mark.filterwarnings("ignore:Best performing")
@pytest.mark.parametrize("n_init", [1, 2])
@pytest.mark.parametrize(
    ("family", "method"),
    [("gaussian", "em"), ("gaussian", "sem-vr"), ("gaussian", "fiem"), ("poisson", "em")],
)
def test_a_fit_that_died_is_resumed_to_the_bit(tmp_path, deadly, family, method, n_init):
    X, y = data(family)
    options = {"family": family, "method": method, "n_init": n_init, "random_state": 0, "verbose": 0}
    options |= {"tol": 1e-9 if method == "em" else 1e-5}
    whole = RegressionMixture(2, **options).fit(X, y)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1}
    deadly(2)
    with pytest.raises(Death):
        fit_within(RegressionMixture, X, y, n_components=2, **options, **kept)
    # One look fewer would not do: a fit that begins again would die.
    deadly(len(whole.history_) - 2 if (family, n_init) == ("poisson", 1) else np.inf)
    again = fit_within(RegressionMixture, X, y, n_components=2, **options, **kept, resume=True)
    deadly(np.inf)
    assert_same(again, whole)
    assert_same(fit_within(RegressionMixture, X, y, n_components=2, **options, **kept, resume=True), whole)
    with pytest.raises(ValueError, match="resume"):
        fit_within(RegressionMixture, X, y, n_components=2, **options, **kept)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_fit_without_a_seed_is_resumed_with_its_starts(tmp_path, deadly, family):
    X, y = data(family)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1, "family": family, "tol": 1e-9}
    deadly(2)
    with pytest.raises(Death):
        fit_within(RegressionMixture, X, y, n_components=2, **kept)
    deadly(np.inf)
    first = fit_within(RegressionMixture, X, y, n_components=2, **kept, resume=True)
    assert_same(fit_within(RegressionMixture, X, y, n_components=2, **kept, resume=True), first)
    with pytest.raises(ValueError, match="belongs to another run"):
        fit_within(RegressionMixture, X, y[::-1], n_components=2, **kept, resume=True)


def test_clones_keep_their_checkpoints_apart(tmp_path):
    X, y = data("gaussian", 300)
    for family in ("gaussian", "poisson"):
        given = RegressionMixture(2, family=family, random_state=0)
        values = np.round(np.abs(y)) if family == "poisson" else y
        with swiftem.checkpoint(tmp_path, resume="auto"):
            for rows in (slice(0, 200), slice(100, 300)):
                clone(given).fit(X[rows], values[rows])
    assert len(list(tmp_path.glob("clone-*"))) == 4


def test_batches_find_the_lines():
    X, y, _ = lines(6000)
    found = RegressionMixture(2, random_state=0)
    for start in range(0, 6000, 500):
        found.partial_fit(X[start : start + 500], y[start : start + 500])
    order = np.argsort(found.coef_[:, 0])
    assert np.allclose(found.coef_[order], [[1.0, -2.0], [3.0, 0.5]], atol=0.1)
    whole = RegressionMixture(2, random_state=0).fit(X, y)
    assert found.score(X, y) > whole.score(X, y) - 0.01
    assert found.method_ == "sem"
    assert found.n_iter_ == 12


@pytest.mark.parametrize("is_saved", [False, True])
def test_batches_after_a_fit(tmp_path, is_saved):
    X, y, _ = lines(8000, offset=1e3)
    found = RegressionMixture(2, random_state=0).fit(X[:2000], y[:2000])
    before = found.score(X, y)
    for start in range(2000, 8000, 1000):
        if is_saved:  # also between batches
            found.save(tmp_path / "a.model")
            found = RegressionMixture.load(tmp_path / "a.model")
        found.partial_fit(X[start : start + 1000], y[start : start + 1000])
    assert found.score(X, y) > before
    best = RegressionMixture(2, random_state=0).fit(X, y).score(X, y)
    assert found.score(X, y) > best - 1e-3


def test_rows_drawn_again_have_the_moments_of_the_data():
    X, y, _ = lines(20_000, offset=5.0)
    found = RegressionMixture(2, random_state=0).fit(X, y)
    mixture = found._mixture
    bound, theta = mixture._bind(swiftem.data.ArraySource(np.zeros((1, 3)))), mixture._theta()
    rng = np.random.default_rng(0)
    labels = rng.choice(2, 20_000, p=theta.weights)
    drawn = starts_of(bound).draw(theta, labels, rng, mixture._past.s)
    rows = np.column_stack([X, y])
    assert np.allclose(drawn.mean(axis=0), rows.mean(axis=0), rtol=0.05)
    assert np.allclose(np.cov(drawn.T), np.cov(rows.T), rtol=0.1, atol=0.8)
    again = RegressionMixture(2, random_state=0).fit(drawn[:, :2], drawn[:, 2])
    order, other = np.argsort(found.coef_[:, 0]), np.argsort(again.coef_[:, 0])
    assert np.allclose(again.coef_[other], found.coef_[order], atol=0.05)


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


def test_what_counts_cannot_have():
    X, y = data("poisson", 50)
    found = RegressionMixture(1, family="poisson").fit(X, y)
    with pytest.raises(ValueError, match="family must be 'gaussian' for partial_fit, got 'poisson'"):
        found.partial_fit(X, y)
    with pytest.raises(ValueError, match="method must be 'em' or 'auto' for family='poisson'"):
        found.set_params(method=methods.Accelerated(methods.EM(), "squarem")).fit(X, y)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_warm_start_continues(family):
    X, y = data(family)
    options = {"family": family, "random_state": 0, "method": "em", "tol": 0.0}
    with pytest.warns(UserWarning, match="did not converge"):
        whole = RegressionMixture(2, max_iter=4, **options).fit(X, y)
    parts = RegressionMixture(2, max_iter=2, warm_start=True, **options)
    with pytest.warns(UserWarning, match="did not converge"):
        parts.fit(X, y).fit(X, y)
    assert np.allclose(parts.coef_, whole.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"X must have the \d columns of the fitted parameters"):
        parts.fit(np.column_stack([X, X]), y)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_selection_finds_the_number(family):
    X, y = data(family)
    y = y.astype(float)
    y[:50] = np.nan
    for criterion in ("bic", "icl"):
        found = swiftem.select(X, range(1, 4), y=y, family=family, criterion=criterion, random_state=0)
        assert found.best.n_components == 2
        assert isinstance(found.best, RegressionMixture)
    row = found.ranking[0]
    assert row.icl == pytest.approx(found.best.icl(X, y), rel=1e-9)
    assert row.bic == pytest.approx(found.best.bic(X, y), rel=1e-9)
    assert row.n_parameters == found.best._n_parameters()
    likelihoods = [row.log_likelihood for row in found.table]
    assert (np.diff(likelihoods) > -1e-9).all()
    assert f"{family} regression mixtures, 2 components" in repr(found)
    own = swiftem.select(
        X, [1, 2], y=y, family=family, criterion=lambda mixture, X, y, w: mixture.aic(X, y, w), random_state=0
    )
    assert own.ranking[0].value == pytest.approx(own.best.aic(X, y))


def test_a_component_more_is_never_worse():
    X, y = data("poisson", 300)
    from swiftem.regression.candidates import regression_candidates

    candidates = regression_candidates("poisson", X, y, None, {"fit_intercept": False})
    one = candidates.new(1).fit(X, y)
    twice = candidates.doubled(one, 3)
    assert twice.n_components == 3
    assert twice.score(X, y) == pytest.approx(one.score(X, y), rel=1e-12)
    assert not twice.fit_intercept


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"family": "gamma"}, ValueError, "family must be 'gaussian' or 'poisson', got 'gamma'"),
        ({"family": ["gaussian", "poisson"]}, ValueError, "family must be 'gaussian' or 'poisson'"),
        ({"covariance_types": "full"}, ValueError, "covariance_types must be left out"),
        ({"reg_covar": 1.0}, TypeError, "parameters of RegressionMixture are allowed"),
        ({"warm_start": True}, TypeError, "select cannot take warm_start"),
    ],
)
def test_selections_that_cannot_be(given, error, sentence):
    X, y = data("gaussian", 60)
    with pytest.raises(error, match=sentence):
        swiftem.select(X, [1, 2], y=y, **given)


def test_tables_and_plots():
    pd = pytest.importorskip("pandas")
    X, y = data("gaussian")
    frame = pd.DataFrame(X, columns=["size", "age"])
    found = RegressionMixture(2, random_state=0).fit(frame, pd.Series(y, name="price"))
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
    expected = found.intercept_[1] + at @ found.coef_[1]
    assert np.allclose(line.get_ydata(), expected)
    assert sum(len(part.get_offsets()) for part in axes[0].collections) == len(y)
    assert len(found.plot(frame, columns=["age"])) == 1
    with pytest.raises(ValueError, match="columns must be numbers below 2, or names"):
        found.plot(frame, columns=["price"])
    without = RegressionMixture(1, family="poisson", fit_intercept=False).fit(
        X[:, :1] / 10, np.round(np.abs(y))
    )
    assert list(without.profile_) == ["column 0"]
    matplotlib.pyplot.close("all")


def test_files_have_everything(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data("gaussian", 300)
    found = RegressionMixture(2, random_state=0, method="sem-vr", tol=1e-3)
    found.fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(y, name="c"))
    found.save(tmp_path / "a.model")
    loaded = RegressionMixture.load(tmp_path / "a.model")
    assert_same(loaded, found)
    assert loaded.response_name_ == "c"
    assert loaded.get_params() == found.get_params()
    assert repr(loaded.summary()) == repr(found.summary())


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


def test_given_parameters_are_a_start():
    X, y, _ = lines()
    given = RegressionMixture.from_parameters(
        [0.5, 0.5], [[1.0, -2.0], [3.0, 0.5]], [20.0, 2.0], [1.0, 1.0], warm_start=True
    )
    assert np.allclose(clone(given).fit(X, y).coef_.sum(), 2.5, atol=0.1)
    found = given.partial_fit(X[:1000], y[:1000])
    assert np.allclose(found.coef_, [[1.0, -2.0], [3.0, 0.5]], atol=0.15)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_progress_in_lines(capsys, family):
    X, y = data(family, 300)
    RegressionMixture(2, family=family, random_state=0, verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert said.startswith("Start 0\n  Pass 1\t gain of the mean log-likelihood")
    assert "Converged, mean log-likelihood" in said
    swiftem.Mixture(1, family="poisson", verbose=1).fit(np.abs(X).round())
    assert "mean log-likelihood" in capsys.readouterr().out


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
