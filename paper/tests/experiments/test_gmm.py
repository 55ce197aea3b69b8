"""What the Gaussian experiments share: the data's moments, and where batch EM ends."""

from dataclasses import replace

import numpy as np
import pytest

import swiftem
from paper.experiments import gmm
from swiftem import methods
from swiftem.models import GaussianMixtureModel

MODEL = GaussianMixtureModel(n_components=2)
START = MODEL.theta(means=gmm.START_MEANS)


@pytest.mark.parametrize(
    ("first_weight", "mean", "variance"), [(0.5, 0.0, 1.25), (0.2, -0.3, 1.16)], ids=["equal", "0.2 and 0.8"]
)
def test_data_have_the_papers_moments(first_weight, mean, variance):
    y = gmm.gmm_data(200_000, np.random.default_rng(1), first_weight)
    assert y.shape == (200_000,)
    assert y.mean() == pytest.approx(mean, abs=0.02)
    assert y.var() == pytest.approx(variance, abs=0.02)


def test_the_limit_is_a_fixed_point_of_em():
    y = gmm.gmm_data(500, np.random.default_rng(3))
    limit = gmm.batch_em_limit(MODEL, y, START)
    again = swiftem.run(MODEL, y, methods.EM(), theta0=limit.theta, n_iter=1)
    assert limit.converged
    np.testing.assert_allclose(again.theta.means, limit.theta.means, rtol=0, atol=2e-15)
    assert gmm.squared_error(limit.theta, limit) == 0


def test_a_larger_change_counts_as_rest_when_asked():
    y = gmm.gmm_data(500, np.random.default_rng(3))
    exact = gmm.batch_em_limit(MODEL, y, START)
    rough = gmm.batch_em_limit(MODEL, y, START, smallest_change=1e-6)
    assert rough.converged
    assert rough.n_iter < exact.n_iter
    assert 0 < gmm.squared_error(rough.theta, exact) < 1e-6


def test_a_limit_that_is_not_reached_is_said_so(monkeypatch):
    monkeypatch.setattr(gmm, "MOST_PASSES", 3)
    limit = gmm.batch_em_limit(MODEL, gmm.gmm_data(50, np.random.default_rng(0)), START)
    assert (limit.n_iter, limit.converged) == (3, False)


def test_the_squared_error_is_summed_over_components():
    limit = gmm.Limit(MODEL.theta(means=[[0.5], [-0.5]]), 1, True)
    assert gmm.squared_error(START, limit) == 0.5


def test_ctrl_c_leaves_no_half_reference(monkeypatch):
    def interrupted(*args, **options):
        return replace(swiftem.run(*args, **options), status="interrupted")

    monkeypatch.setattr(gmm, "run", interrupted)
    y = gmm.gmm_data(500, np.random.default_rng(3))
    with pytest.raises(KeyboardInterrupt):
        gmm.batch_em_limit(MODEL, y, START)
