"""em, from the same start, is scikit-learn's fit to rounding, pass by pass; its checks of any estimator."""

import warnings

import numpy as np
import pytest
from mixture_data import ARRAYS, KINDS, blobs, fitted, given_start
from sklearn import mixture
from sklearn.utils.estimator_checks import check_estimator

import swiftem
from swiftem.mixture.resolve import METHOD_NAMES

X, _ = blobs(500, 3, 3, apart=1.5, seed=4)
NEW = np.random.default_rng(5).normal(size=(50, 3)) * 3


def both(data=X, **parameters):
    """Return scikit-learn's fit, with as many passes as ours, and ours."""
    ours = fitted(swiftem.GaussianMixture(method="em", **{"init_params": "kmeans", **parameters}), data)
    passes = {"tol": 0.0, "max_iter": ours.n_iter_}
    return fitted(mixture.GaussianMixture(**{**parameters, **passes}), data), ours


def assert_alike(theirs, ours, *, first=0, rtol=1e-7):
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=rtol, atol=1e-9, err_msg=name
        )
    np.testing.assert_allclose(ours.lower_bounds_[first:], theirs.lower_bounds_[first:], rtol=1e-9)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-9)
    assert ours.n_iter_ == theirs.n_iter_
    for data in (X, NEW):
        assert ours.score(data) == pytest.approx(theirs.score(data), rel=1e-9)
        assert ours.bic(data) == pytest.approx(theirs.bic(data), rel=1e-9)
        assert ours.aic(data) == pytest.approx(theirs.aic(data), rel=1e-9)
        np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))
        np.testing.assert_allclose(ours.predict_proba(data), theirs.predict_proba(data), atol=1e-7)
        np.testing.assert_allclose(ours.score_samples(data), theirs.score_samples(data), rtol=1e-7)
    for mine, other in zip(ours.sample(20), theirs.sample(20), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_from_given_parameters(kind):
    start = given_start(X, 3, kind)
    assert_alike(*both(n_components=3, covariance_type=kind, random_state=0, max_iter=200, **start))


@pytest.mark.parametrize("kind", KINDS)
def test_from_kmeans(kind):
    assert_alike(*both(n_components=4, covariance_type=kind, random_state=3, reg_covar=1e-3))


@pytest.mark.parametrize("init_params", ["k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_start(init_params, seed):
    # Where each component starts from one row, scikit-learn's weights sum to M/n, and its first bound is off.
    first = 0 if init_params == "random" else 1
    assert_alike(*both(n_components=3, init_params=init_params, random_state=seed, max_iter=30), first=first)


@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_starts_themselves(init_params):
    theirs, ours = both(n_components=3, init_params=init_params, random_state=1, max_iter=0, n_init=2)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, err_msg=name)
    assert (ours.n_iter_, ours.lower_bound_, ours.lower_bounds_) == (0, -np.inf, [])
    assert ours.converged_ is False


def test_a_random_state_is_used_up_alike():
    used = [np.random.RandomState(7) for _ in range(2)]
    shared = {"init_params": "random", "n_init": 2, "max_iter": 20, "tol": 0.0}
    a = fitted(mixture.GaussianMixture(3, random_state=used[0], **shared), X)
    b = fitted(swiftem.GaussianMixture(3, random_state=used[1], method="em", **shared), X)
    assert a.lower_bound_ == pytest.approx(b.lower_bound_, rel=1e-9)
    assert used[0].randint(1 << 30) == used[1].randint(1 << 30)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_best_of_several_starts(kind):
    options = {"n_components": 4, "n_init": 5, "init_params": "random_from_data", "max_iter": 40}
    assert_alike(*both(covariance_type=kind, random_state=2, tol=0.0, **options), first=1)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start(kind):
    parameters = dict(
        n_components=3, covariance_type=kind, warm_start=True, random_state=0, max_iter=3, tol=0.0
    )
    theirs, ours = both(**parameters)
    for _ in range(4):
        assert_alike(fitted(theirs, X), fitted(ours, X))


@pytest.mark.parametrize("given", [("weights_init",), ("means_init",), ("precisions_init",),
                                   ("weights_init", "precisions_init")])  # fmt: skip
def test_partly_given_starts(given):
    start = {name: value for name, value in given_start(X, 3, "full").items() if name in given}
    theirs, ours = both(n_components=3, random_state=0, **start)
    # Given weights, scikit-learn takes them for the first E-step; both then forget them.
    assert_alike(theirs, ours, rtol=1e-6)


def test_lists_and_other_orders_of_memory():
    for data in (X.tolist(), np.asfortranarray(X), X[::-1][::-1], X.astype(object)):
        theirs, ours = both(data, n_components=2, random_state=0)
        np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-7)
        np.testing.assert_array_equal(ours.predict(data), theirs.predict(X))
    whole = np.round(X * 10).astype(int)
    theirs, ours = both(whole, n_components=2, random_state=0)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-7)
    assert ours.means_.dtype == np.float64


def test_private_names_that_scikit_learn_has():
    ours = swiftem.GaussianMixture(2, random_state=0).fit(X)
    assert ours._n_parameters() == mixture.GaussianMixture(2, random_state=0).fit(X)._n_parameters()
    copy = swiftem.GaussianMixture(2)
    copy._set_parameters(ours._get_parameters())
    np.testing.assert_array_equal(copy.precisions_, ours.precisions_)


def test_attributes_that_are_set_count():
    ours = swiftem.GaussianMixture(2, random_state=0).fit(X)
    theirs = ours.to_sklearn()
    for one in (ours, theirs):
        one.means_ = one.means_[::-1].copy()
        one.weights_ = np.array([0.25, 0.75])
        del one.covariances_
    np.testing.assert_allclose(ours.score_samples(NEW), theirs.score_samples(NEW), rtol=1e-9)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_check_estimator(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(swiftem.GaussianMixture(method=method), on_fail=None, on_skip=None)
    failed = [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"]
    assert failed == []
    assert sum(check["status"] == "passed" for check in found) >= 40
