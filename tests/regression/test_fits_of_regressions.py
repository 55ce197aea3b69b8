"""``swiftem.RegressionMixture`` fits: checkpoints, batches, warm starts, progress and selections."""

import numpy as np
import pytest
from dying_fits import Death
from regression_data import counts, lines
from sklearn.base import clone
from surroundings import fit_within

import swiftem
from swiftem import RegressionMixture

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
    assert row.n_parameters == found.best.n_parameters_
    likelihoods = [row.log_likelihood for row in found.table]
    assert (np.diff(likelihoods) > -1e-9).all()
    assert f"{family} regression mixtures, 2 components" in repr(found)
    own = swiftem.select(
        X, [1, 2], y=y, family=family, criterion=lambda mixture, X, y, w: mixture.aic(X, y, w), random_state=0
    )
    assert own.ranking[0].value == pytest.approx(own.best.aic(X, y))


def test_a_component_more_is_never_worse():
    X, y = data("poisson", 300)
    from swiftem.regression.regression_mixture import regression_candidates

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
    # One component too many: em is slow.
    RegressionMixture(3, family=family, random_state=0, verbose=1, max_iter=2000).fit(X, y)
    said = capsys.readouterr().out
    assert said.startswith("Initialization 0\n  Iteration 10\n")
    assert said.endswith("Initialization converged.\n")
    swiftem.Mixture(1, family="poisson", verbose=1).fit(np.abs(X).round())
    assert "Initialization converged." in capsys.readouterr().out
