"""Fits that go on from another method's, and the one component that needs no method."""

import numpy as np

import swiftem


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
