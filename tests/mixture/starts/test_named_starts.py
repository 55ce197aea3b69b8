"""Where fits start."""

import warnings

import numpy as np
import pytest
from mixture_data import KINDS, METHODS, blobs, given_start
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.gaussian_mixture import covariances_of
from swiftem.mixture.starts import named_starts
from swiftem.mixture.starts.named_starts import make_start
from swiftem.mixture.starts.settings import StartSettings
from swiftem.models import GaussianMixtureModel

X, LABELS = blobs(300, 2, 3, seed=5)
ONES = np.eye(3)[LABELS]


def started(**parameters):
    """Return the model that a fit would start from."""
    return swiftem.GaussianMixture(3, max_iter=0, random_state=0, **parameters).fit(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "given",
    [LABELS, LABELS.tolist(), ONES, ONES.tolist(), 7 * ONES, ONES.astype(bool),
     lambda data, n_components, random_state: LABELS, lambda data, n_components, random_state: ONES],
    ids=["labels", "list of labels", "responsibilities", "list", "scaled", "bool", "to labels", "to rows"],
)  # fmt: skip
def test_labels_and_responsibilities(kind, given):
    start = started(init_params=given, covariance_type=kind)
    np.testing.assert_allclose(start.means_, [X[m == LABELS].mean(axis=0) for m in range(3)], rtol=1e-9)
    np.testing.assert_allclose(start.weights_, np.bincount(LABELS) / len(X))
    np.testing.assert_allclose(
        start.full_covariances()[0].trace() if kind != "tied" else 1.0,
        np.cov(X[LABELS == 0].T, bias=True).trace() + 2e-6 if kind != "tied" else 1.0,
        rtol=1e-9,
    )


def test_soft_responsibilities():
    soft = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))
    start = started(init_params=soft)
    np.testing.assert_allclose(start.means_, soft.T @ X / soft.sum(axis=0)[:, None], rtol=1e-9)


def test_a_callable_is_given_rows_components_and_randomness():
    def init(data, n_components, random_state):
        seen.append((data.shape, n_components, type(random_state)))
        return random_state.randint(n_components, size=len(data))

    seen = []
    one, other = (
        swiftem.GaussianMixture(3, init_params=init, random_state=seed, max_iter=0, n_init=2).fit(X)
        for seed in (0, 0)
    )
    assert seen == [((300, 2), 3, np.random.RandomState)] * 4
    np.testing.assert_array_equal(one.means_, other.means_)


def test_arrays_are_for_all_rows_also_those_of_weight_zero():
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    start = swiftem.GaussianMixture(3, init_params=LABELS, max_iter=0).fit(X, sample_weight=weight)
    kept = weight > 0
    np.testing.assert_allclose(start.means_[1], X[kept & (LABELS == 1)].mean(axis=0))


BAD = {
    "too few labels": (LABELS[:-1], "must give integer labels of shape"),
    "a label too high": (LABELS + 1, "must give labels from 0 to 2, got 1 to 3"),
    "a negative label": (LABELS - 1, "must give labels from 0 to 2, got -1 to 1"),
    "labels of no integers": (LABELS.astype(float), "must give integer labels"),
    "too many columns": (np.ones((300, 4)), r"or responsibilities of shape \(300, 3\)"),
    "negative": (ONES - 0.5, "not negative"),
    "NaN": (ONES * np.nan, "finite"),
    "a row of zeros": (ONES * (np.arange(300) > 0)[:, None], "not all zero in a row"),
    "words": (np.full((300, 3), "a"), "must give integer labels"),
}


@pytest.mark.parametrize(("given", "message"), list(BAD.values()), ids=list(BAD))
def test_bad_ones_get_one_sentence(given, message):
    for init_params in (given, lambda data, n_components, random_state: given):
        with pytest.raises(ValueError, match=message) as error:
            started(init_params=init_params)
        assert str(error.value).startswith("init_params must give ")
        assert str(error.value).endswith(".")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", [LABELS, given_start(X, 3, "full")], ids=["labels", "parameters"])
def test_every_method_starts_from_what_is_given(method, given):
    parameters = given if isinstance(given, dict) else {"init_params": given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = swiftem.GaussianMixture(3, method=method, max_iter=20, random_state=0, **parameters).fit(X)
    assert mixture.score(X) > started(**parameters).score(X) - 1e-9


def test_what_is_given_takes_the_place_of_what_is_found():
    given = given_start(X, 3, "full")
    plain = started()
    mixed = started(means_init=given["means_init"])
    np.testing.assert_array_equal(mixed.means_, given["means_init"])
    np.testing.assert_array_equal(mixed.weights_, plain.weights_)
    np.testing.assert_array_equal(mixed.covariances_, plain.covariances_)
    mixed = started(precisions_init=given["precisions_init"])
    np.testing.assert_allclose(mixed.precisions_, given["precisions_init"], rtol=1e-9)
    np.testing.assert_allclose(mixed.covariances_, np.linalg.inv(given["precisions_init"]), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_of_their_factors(kind):
    mixture = swiftem.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    np.testing.assert_allclose(
        covariances_of(mixture.precisions_cholesky_, kind), mixture.covariances_, rtol=1e-9, atol=1e-12
    )


def test_statistics_are_given_where_the_start_is_their_m_step():
    problem = Problem(GaussianMixtureModel(3, covariance="full"), ArraySource(X))
    state = np.random.RandomState(0)
    found = make_start(problem, StartSettings(), state)
    np.testing.assert_array_equal(problem.bound.m_step(found.s).means, found.theta.means)
    assert make_start(problem, StartSettings(given={"means": X[:3]}), state).s is None


def test_mini_batches_from_many_rows_on(monkeypatch):
    exact = started()
    monkeypatch.setattr(named_starts, "LARGE", 100)
    quick = started()
    assert not np.array_equal(exact.means_, quick.means_)
    order = [np.abs(quick.means_ - mean).sum(axis=1).argmin() for mean in exact.means_]
    np.testing.assert_allclose(quick.means_[order], exact.means_, atol=0.5)
    np.testing.assert_array_equal(quick.means_, started().means_)


@pytest.mark.filterwarnings("ignore:Best performing")
def test_starts_use_no_global_randomness():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    swiftem.GaussianMixture(3, random_state=1, method="fiem", max_iter=9, init_params="random", tol=1).fit(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
