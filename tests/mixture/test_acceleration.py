"""Estimators with accelerated em: the same optimum in fewer passes, checkpoints, files, bad arguments."""

import numpy as np
import pytest
from mixture_data import fitted

import swiftem
from swiftem import methods
from swiftem.methods.accelerated import ACCELERATIONS


def by(name):
    """Return accelerated em."""
    return methods.Accelerated(methods.EM(), name)


both = pytest.mark.parametrize("name", ACCELERATIONS)


def rows(n=3000, seed=0):
    """Rows of two overlapping clusters, on which em is slow."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [2.2, 0.8]])[rng.integers(2, size=n)]


def gaussian(**options):
    start = {"means_init": [[0.5, 0.5], [1.5, 0.5]], "weights_init": [0.5, 0.5], "max_iter": 5000}
    start |= {"n_components": 2, "method": "em", "tol": 1e-9, "random_state": 0}
    return swiftem.GaussianMixture(**start | options)


def poisson(**options):
    start = {"weights_init": [0.3, 0.7], "params_init": {"rates": [[1.0], [2.5]]}, "max_iter": 5000}
    return swiftem.Mixture(
        2,
        family="poisson",
        **{"method": "em", "smoothing": 0.0, "tol": 1e-11, "init_params": "random"} | start | options,
    )


def deaths():
    days = [162, 267, 271, 185, 111, 61, 27, 8, 3, 1]
    return np.repeat(np.arange(10), days)[:, None]


@both
def test_gaussians_reach_the_same_optimum_in_fewer_passes(name):
    y = rows()
    plain, quick = gaussian().fit(y), gaussian(method=by(name)).fit(y)
    assert plain.converged_
    assert quick.converged_
    assert quick.n_iter_ < plain.n_iter_ / 3
    assert quick.log_likelihood_ > plain.log_likelihood_ - 1e-8
    np.testing.assert_allclose(quick.means_, plain.means_, atol=5e-3)
    assert quick.method_ == "em"
    assert np.diff(quick.lower_bounds_).min() >= -1e-11
    np.testing.assert_allclose(quick.history_.passes, np.arange(1, quick.n_iter_ + 1))


@both
def test_deaths_of_women_over_80(name):
    quick = poisson(method=by(name)).fit(deaths())
    assert quick.converged_
    assert quick.n_iter_ < 200
    np.testing.assert_allclose(quick.weights_[0], 0.3599, atol=2e-3)
    np.testing.assert_allclose(quick.params_["rates"].ravel(), [1.256, 2.663], atol=5e-3)


@both
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_a_fit_ends_where_little_is_left_to_gain(name, tol):
    """Also after a leap: only em's own steps say how much it still gains."""
    y = rows()
    quick = gaussian(method=by(name), tol=tol).fit(y)
    assert quick.converged_
    rest = gaussian(
        tol=1e-12, means_init=quick.means_, weights_init=quick.weights_, precisions_init=quick.precisions_
    )
    assert fitted(rest, y).log_likelihood_ - quick.log_likelihood_ < 8.5 * tol


@both
@pytest.mark.filterwarnings("ignore")
def test_degenerate_components_are_mended(name):
    y = np.concatenate([np.random.default_rng(0).normal(size=(200, 1)), np.full((3, 1), 40.0)])
    mixture = gaussian(n_components=3, method=by(name), means_init=[[0.0], [40.0], [90.0]], weights_init=None)
    assert np.isfinite(mixture.fit(y).means_).all()
