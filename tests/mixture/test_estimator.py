"""``swiftem.GaussianMixture``: bad arguments, warm starts, marginals, conditionals, scikit-learn's form."""

import numpy as np
import pandas as pd
import pytest
from mixture_data import blobs

import swiftem

X, _ = blobs(50, 2, 2)

DATA = {
    "NaN": (np.where(np.arange(100).reshape(50, 2) == 7, np.nan, X), "Input X contains NaN"),
    "words": ([["a", "b"], ["c", "d"]], "must have numbers in every column, got text in columns 0, 1"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous|setting an array element"),
}


@pytest.mark.parametrize(("data", "message"), list(DATA.values()), ids=list(DATA))
def test_data(data, message):
    fitted = swiftem.GaussianMixture(2, random_state=0).fit(X)
    for ask in (
        swiftem.GaussianMixture(2).fit,
        swiftem.GaussianMixture(2, method="fiem").fit,
        swiftem.GaussianMixture(2).partial_fit,
        fitted.predict,
        fitted.score_samples,
        fitted.bic,
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask(data)


PARAMETERS = {
    "n_components": 0,
    "covariance_type": "round",
    "tol": -1.0,
    "reg_covar": -1.0,
    "max_iter": -1,
    "n_init": 0,
    "init_params": "best",
    "method": "gradient",
    "prior": "wide",
    "verbose_interval": 0,
}


@pytest.mark.parametrize(("name", "value"), list(PARAMETERS.items()))
def test_parameters(name, value):
    for ask in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"^{name} must be .*, got"):
            getattr(swiftem.GaussianMixture(**{name: value}), ask)(X)


def test_a_schedule_that_leaves_its_range():
    method = swiftem.methods.OnlineEM(step_size=lambda k: 2.0)
    with pytest.raises(ValueError, match=r"step_size must lie in \(0, 1\]"):
        swiftem.GaussianMixture(2, method=method, random_state=0).fit(X)


@pytest.mark.parametrize("changed", [{"n_components": 3}, {"covariance_type": "diag"}])
def test_parameters_that_no_longer_fit_the_model(changed):
    fitted = swiftem.GaussianMixture(2, random_state=0).fit(X).set_params(**changed)
    for ask in (fitted.predict, fitted.partial_fit, fitted.set_params(warm_start=True).fit):
        with pytest.raises(ValueError, match="The fitted parameters must be of"):
            ask(X)
    fitted.set_params(warm_start=False).fit(X).predict(X)


def test_a_warm_start_with_other_columns():
    fitted = swiftem.GaussianMixture(2, random_state=0, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="and 3 columns, but are not: fit again, without warm_start"):
        fitted.fit(np.column_stack([X, X[:, 0]]))


def test_nothing_fitted():
    from sklearn.exceptions import NotFittedError

    mixture = swiftem.GaussianMixture(2)
    calls = {"predict": [X], "icl": [X], "sample": [], "marginal": [[0]], "condition": [[0], [0.0]]}
    calls |= {"to_sklearn": [], "full_covariances": [], "save": ["nowhere"], "summary": []}
    for name, arguments in calls.items():
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(mixture, name)(*arguments)


def test_em_goes_on_where_a_stochastic_fit_ended():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(1500, 2)), rng.normal(1.5, 1.2, size=(1500, 2))])
    mixture = swiftem.GaussianMixture(2, method="sem-vr", tol=1e-2, random_state=0, warm_start=True).fit(X)
    mixture.set_params(method="em", tol=1e-9, max_iter=2000).fit(X)
    assert mixture.n_iter_ > 2
    assert mixture.stationarity_ < 1e-3


def test_one_component_is_fitted_by_em():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    mixture = swiftem.GaussianMixture(1).fit(X)
    assert mixture.method_ == "em"
    np.testing.assert_allclose(mixture.means_[0], X.mean(axis=0), atol=1e-12)


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 3)) @ RNG.normal(size=(3, 3)) + 3.0 * RNG.integers(2, size=(400, 1))


@pytest.fixture(scope="module", params=["full", "tied", "diag", "spherical"])
def mixture(request):
    return swiftem.GaussianMixture(2, covariance_type=request.param, random_state=0, tol=1e-2).fit(ROWS)


def test_marginal_is_the_integral_of_the_joint(mixture):
    grid = np.linspace(-60.0, 60.0, 20_001)
    point = np.column_stack([np.full_like(grid, 0.3), np.full_like(grid, -0.4), grid])
    integral = np.exp(mixture.score_samples(point)).sum() * (grid[1] - grid[0])
    found = np.exp(mixture.marginal([0, 1]).score_samples([[0.3, -0.4]]))[0]
    assert found == pytest.approx(integral, rel=1e-6)


def test_conditional_is_joint_over_marginal(mixture):
    given = mixture.condition([2, 0], [0.5, -0.2])
    joint = mixture.score_samples([[-0.2, 1.1, 0.5]])[0]
    marginal = mixture.marginal([0, 2]).score_samples([[-0.2, 0.5]])[0]
    assert given.score_samples([[1.1]])[0] == pytest.approx(joint - marginal, rel=1e-9)


def test_scikit_learns_form_predicts_the_same(mixture):
    theirs = mixture.to_sklearn()
    np.testing.assert_allclose(theirs.score_samples(ROWS), mixture.score_samples(ROWS), rtol=1e-9)
    np.testing.assert_array_equal(theirs.predict(ROWS), mixture.predict(ROWS))


@pytest.mark.parametrize("columns", [[], [3], [0, 0], [0.5], "a"])
def test_columns_that_are_none(mixture, columns):
    with pytest.raises(ValueError, match="columns"):
        mixture.marginal(columns)


def test_columns_by_name_and_from_the_end(mixture):
    named = swiftem.GaussianMixture(2, covariance_type=mixture.covariance_type, random_state=0, tol=1e-2).fit(
        pd.DataFrame(ROWS, columns=["a", "b", "c"])
    )
    for columns in (["c", "a"], [-1, -3], [2, -3]):
        marginal = named.marginal(columns)
        assert list(marginal.feature_names_in_) == ["c", "a"]
        assert np.array_equal(marginal.means_, named.means_[:, [2, 0]])
        given = named.condition(columns, [0.5, -0.2])
        assert list(given.feature_names_in_) == ["b"]
        assert np.array_equal(given.means_, named.condition([2, 0], [0.5, -0.2]).means_)
    for columns in (["a", "d"], [-4], [0, -3]):
        with pytest.raises(ValueError, match="columns must be"):
            named.marginal(columns)
        with pytest.raises(ValueError, match="columns must be"):
            named.condition(columns, np.zeros(len(columns)))
