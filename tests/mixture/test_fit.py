"""Data that leave components without rows or without a covariance."""

import warnings

import numpy as np
import pytest
from mixture_data import ARRAYS, KINDS, METHODS, STOCHASTIC, blobs
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.estimators import DegenerateComponentWarning, SpuriousComponentWarning
from swiftem.methods import METHODS as KINDS_OF_METHODS
from swiftem.methods import OnlineEM, make_method
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.models import NormalInverseWishart

X, _ = blobs(200, 2, 2, seed=3)
FAR_START = {
    "weights_init": [0.5, 0.5],
    "means_init": [[X[:, 0].mean(), X[:, 1].mean()], [1e5, 1e5]],
    "precisions_init": [np.eye(2)] * 2,
}


def fit(data, n_components, **parameters):
    """Return a fit, and whether it said that components were set anew."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mixture = swiftem.GaussianMixture(n_components, random_state=0, **parameters).fit(data)
    kinds = {warning.category for warning in found}
    allowed = {ConvergenceWarning, DegenerateComponentWarning, SpuriousComponentWarning}
    assert kinds <= allowed, [str(w.message) for w in found]
    assert_sound(mixture, data)
    return mixture, DegenerateComponentWarning in kinds


def assert_sound(mixture, data):
    for name in ARRAYS:
        assert np.isfinite(getattr(mixture, name)).all(), name
    assert (mixture.weights_ >= 0).all()
    assert mixture.weights_.sum() == pytest.approx(1.0)
    assert np.isfinite(mixture.score(data))
    assert np.isfinite(mixture.lower_bound_) or mixture.max_iter == 0
    np.testing.assert_allclose(mixture.predict_proba(data).sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite([mixture.bic(data), mixture.aic(data), mixture.icl(data)]).all()


SAME = np.full((30, 2), 3.0)
ODD = {
    "a constant column": (np.column_stack([X, np.full(len(X), 7.0)]), {"n_components": 2}),
    "as many components as rows": (X[:6], {"n_components": 6}),
    "one column": (X[:, :1], {"n_components": 3}),
    "no regularisation": (X, {"n_components": 2, "reg_covar": 0.0}),
    "all rows the same": (SAME, {"n_components": 2}),
    "two rows": (np.array([[0.0, 1.0], [4.0, 2.0]]), {"n_components": 2}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_data_with_little_in_them(name, kind, method):
    data, options = ODD[name]
    mixture, _ = fit(data, method=method, covariance_type=kind, max_iter=10, **options)
    is_constant = np.ptp(data, axis=0) == 0.0
    np.testing.assert_allclose(
        mixture.means_[:, is_constant], np.tile(data[0, is_constant], (len(mixture.means_), 1))
    )


@pytest.mark.parametrize("method", STOCHASTIC)
@pytest.mark.parametrize("batch_size", [1, 199, 200, 1000])
def test_odd_batches(method, batch_size):
    fit(X, 3, method=KINDS_OF_METHODS[method](batch_size=batch_size), max_iter=6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_more_components_than_distinct_rows(method, kind):
    data = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 20, axis=0)
    mixture, said = fit(data, 5, method=method, covariance_type=kind, max_iter=20)
    assert said
    for row in ([0.0, 0.0], [1.0, 5.0], [9.0, 2.0]):
        assert np.abs(mixture.means_ - row).sum(axis=1).min() < 0.1


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        swiftem.GaussianMixture(1).fit([[1.0, 2.0]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_component_on_repeated_rows(method, kind):
    """Without regularisation its covariance vanishes, and with it the M-step."""
    data = np.vstack([X, np.repeat([[50.0, 50.0]], 5, axis=0)])
    labels = np.r_[(X[:, 0] > np.median(X[:, 0])).astype(int), np.full(5, 2)]
    parameters = dict(method=method, covariance_type=kind, reg_covar=0.0, max_iter=12)
    refused = ""
    try:
        mixture, said = fit(data, 3, init_params=labels, **parameters)
    except ValueError as error:  # it may find no other place than these rows
        refused = str(error)
    assert refused in ("", BoundGaussians.ILL_DEFINED)
    if not refused:
        assert said or method != "em"  # others may not have come so far
        assert mixture.score(data) > swiftem.GaussianMixture(1).fit(data).score(data)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_mended_is_refused(method, kind):
    data = np.vstack([np.ones((5, 3)), np.zeros((5, 3))])
    refused = ""
    try:
        _, said = fit(data, 4, reg_covar=0.0, covariance_type=kind, method=method)
    except ValueError as error:
        refused = str(error)
    assert refused in ("", BoundGaussians.ILL_DEFINED)
    if not refused:  # a wide component for all rows is a stationary point, too
        assert said
        assert kind in ("diag", "spherical")  # all rows together have no covariance matrix


@pytest.mark.parametrize("init_params", ["k-means++", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_starts_from_single_rows_without_regularisation(init_params, kind):
    """scikit-learn refuses these; the covariance of all rows serves."""
    mixture, _ = fit(X, 3, init_params=init_params, reg_covar=0.0, covariance_type=kind)
    reference, _ = fit(X, 3, covariance_type=kind)
    assert mixture.score(X) > reference.score(X) - 0.3


@pytest.mark.parametrize("method", METHODS)
def test_a_component_far_from_all_rows_comes_to_life(method):
    mixture, said = fit(X, 2, method=method, max_iter=60, tol=1e-6, **FAR_START)
    assert said
    assert mixture.weights_.min() > 0.01
    assert mixture.score(X) > swiftem.GaussianMixture(1).fit(X).score(X) + 0.01


def test_an_empty_label_is_said():
    mixture, said = fit(X, 3, init_params=(X[:, 0] > 0).astype(int), method="em")
    assert said
    assert mixture.weights_.min() > 0.0


@pytest.mark.parametrize("method", STOCHASTIC)
def test_steps_that_leave_the_domain_are_rejected_and_counted(method):
    """A long step on small batches: what noise makes of the statistics need not be positive definite."""
    data, _ = blobs(400, 4, 4, apart=1.0, seed=0)
    by = make_method(method, batch_size=8, step_size=1.0)
    mixture, _ = fit(data, 4, method=by, max_iter=8, init_params="random")
    if method in ("sem-vr", "fiem"):
        assert mixture.history_.rejected[-1] > 0
    assert (np.diff(mixture.history_.rejected) >= 0).all()


def test_one_bad_start_among_several_does_not_count():
    def sometimes(data, n_components, random_state):
        labels = (data[:, 0] > np.median(data[:, 0])).astype(int)
        calls.append(1)
        if len(calls) == 1:
            return np.where(np.arange(len(data)) < len(data) - 5, 0, 1)
        return labels

    calls = []
    data = np.vstack([X, np.repeat([[50.0, 50.0]], 5, axis=0)])
    mixture, _ = fit(data, 2, init_params=sometimes, n_init=2, reg_covar=0.0)
    assert len(calls) == 2
    assert np.isfinite(mixture.lower_bound_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prior_holds_components_where_maximum_likelihood_collapses(kind):
    data = np.vstack([X, np.repeat([[50.0, 50.0]], 5, axis=0)])
    labels = np.r_[(X[:, 0] > np.median(X[:, 0])).astype(int), np.full(5, 2)]
    prior = NormalInverseWishart(degrees_of_freedom=4.0, scale=1.0)
    mixture, said = fit(
        data, 3, init_params=labels, reg_covar=0.0, prior=prior, covariance_type=kind, max_iter=200
    )
    assert not said
    assert np.linalg.eigvalsh(mixture.full_covariances()).min() > 1e-3
    assert (np.diff(mixture.lower_bounds_) > -1e-9).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_concentration_holds_weights(method):
    data, _ = blobs(100, 2, 1, seed=0)
    held, _ = fit(
        data, 4, prior=NormalInverseWishart(4.0, 1.0, concentration=20.0), method=method, max_iter=40
    )
    assert held.weights_.min() > 0.1


def test_far_rows_are_no_trouble():
    mixture, _ = fit(X, 2)
    far = np.array([[1e8, -1e8], [1e15, 1e15]])
    assert np.isfinite(mixture.score_samples(far)).all()
    np.testing.assert_allclose(mixture.predict_proba(far).sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["em", "iem", "sem-vr", "fiem"])
def test_equal_rows_far_from_the_centre_have_symmetric_covariances(method):
    """What rounding leaves of a scatter of 2,500 is the same on both sides only if it is computed so."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 2)), np.full((200, 2), 50.0), np.full((3, 2), -90.0)])
    mixture = swiftem.GaussianMixture(
        8, method=method, init_params="random_from_data", max_iter=20, tol=1e-6, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(mixture.covariances_, np.swapaxes(mixture.covariances_, 1, 2))


@pytest.mark.parametrize("method", ["sem-vr", "fiem"])
def test_a_method_goes_on_after_a_repair_and_counts_on(method):
    """A component that died is set anew by em; then the method has a second run."""
    by = KINDS_OF_METHODS[method](step_size=1.0, batch_size=8)
    mixture, said = fit(X, 2, method=by, tol=1e-6, max_iter=40, reg_covar=0.0, **FAR_START)
    steps = len(X) // 8
    methods, rejected = mixture.history_.method.tolist(), mixture.history_.rejected
    assert said
    assert methods[:3] == [method, "em", method]
    assert rejected[0] == rejected[1] == steps  # the dead component allowed for none
    assert steps < rejected[2] < 2 * steps
    assert (np.diff(rejected) >= 0).all()
    assert mixture.converged_


def test_em_takes_over_where_every_step_is_rejected():
    """Of three rows in four columns no covariance can be made."""
    data, _ = blobs(400, 4, 4, apart=1.0, seed=0)
    parameters = dict(n_components=4, reg_covar=0.0)
    mixture, _ = fit(data, method=OnlineEM(step_size=1.0, batch_size=3), **parameters)
    methods = mixture.history_.method.tolist()
    assert methods == ["sem"] + ["em"] * (len(methods) - 1)
    assert mixture.history_.rejected.tolist() == [134] * len(methods)
    assert mixture.converged_
    assert mixture.score(data) == pytest.approx(fit(data, method="em", **parameters)[0].score(data), abs=0.01)


def test_the_last_pass_leaves_parameters_that_are_a_fit():
    """A component that collapses in the last pass is not set anew: what was set anew would be no fit."""
    data = np.vstack([X, np.repeat([[50.0, 50.0]], 5, axis=0)])
    labels = np.r_[(X[:, 0] > np.median(X[:, 0])).astype(int), np.full(5, 2)]
    parameters = dict(n_components=3, init_params=labels, reg_covar=0.0, method="em", tol=0.0)
    before, set_anew = fit(data, max_iter=1, **parameters)
    assert not set_anew
    for max_iter in range(2, 30):
        now, set_anew = fit(data, max_iter=max_iter, **parameters)
        if set_anew:
            break
        before = now
    assert set_anew
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(now, name), getattr(before, name), err_msg=name)
    further, _ = fit(data, max_iter=max_iter + 1, **parameters)
    assert np.abs(further.means_ - now.means_).max() > 1.0


@pytest.mark.parametrize("method", METHODS)
def test_a_component_without_rows_stays_where_the_prior_holds_it(method):
    prior = NormalInverseWishart(5.0, 2.0, mean_precision=3.0, mean=[300.0, -300.0], concentration=2.0)
    mixture, said = fit(X, 2, method=method, prior=prior, max_iter=3, **FAR_START)
    assert not said
    np.testing.assert_allclose(mixture.means_[1], [300.0, -300.0], atol=0.1)
