"""A mixture's Compute offers log-densities and statistics apart; its E-step is their composition."""

import numpy as np
import pytest
from scipy.special import softmax

from swiftem import models
from swiftem.core.compute import Placement
from swiftem.data import ArraySource

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(60, 2)) + RNG.choice([0.0, 4.0], size=(60, 1))
HOLES = np.where(RNG.random(POINTS.shape) < 0.2, np.nan, POINTS)
COUNTS = RNG.poisson(3.0, size=(60, 2)).astype(float)
CASES = {
    **{kind: (models.GaussianMixtureModel(2, covariance=kind), POINTS) for kind in ("unit", "full", "tied")},
    "missing": (models.GaussianMixtureModel(2, covariance="full", reg_covar=0.1, missing="ignore"), HOLES),
    "poisson": (models.MixtureModel(2, "poisson"), COUNTS),
    "categorical": (models.MixtureModel(2, "categorical", smoothing=1.0), np.minimum(COUNTS, 3.0)),
    "student-t": (models.MixtureModel(2, "student-t"), POINTS),
}


@pytest.mark.parametrize("form", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_e_step_is_softmax_of_log_densities_then_statistics(name, form):
    model, y = CASES[name]
    source = ArraySource(y, allow_missing=name == "missing")
    bound = model.bind(source)
    compute, theta = bound.compute(source, Placement(form=form)), bound.initial_theta(RNG)
    batch = compute.take(np.arange(len(y)))
    rows = compute.rows(batch, theta)
    logits = compute.log_densities(batch, theta) + np.log(theta.weights)
    np.testing.assert_allclose(rows[:, :2], softmax(logits, axis=1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(compute.statistics(batch, rows) / len(y), compute.full(theta), rtol=1e-9)
