"""Full passes that are cut into several pieces, with weights: each piece has its own rows of everything."""

import numpy as np
import pytest

import swiftem
from swiftem import methods, models, posterior

D, M = 8, 64
SEVERAL = 3301
"""Rows that are worth several threads, for a model of so many components; not as many in each."""
BLOCKS = {"unit": 4 * 256, "full": 2 * 248, "tied": 2 * 312, "diag": 2 * 312, "spherical": 2 * 312}
"""Rows of whole blocks."""


def problem(kind, N, seed=0):
    """Return a model, rows in order of size, parameters, and weights."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(N, D)) + np.sort(rng.normal(scale=3.0, size=N))[:, None]
    model = models.GaussianMixtureModel(M, covariance=kind)
    means = y[rng.choice(N, M, replace=False)]
    shapes = {"full": np.stack([np.eye(D)] * M), "tied": np.eye(D), "diag": np.ones((M, D))}
    covariances = None if kind == "unit" else 2.0 * shapes.get(kind, np.ones(M))
    return model, y, model.theta(means=means, covariances=covariances), np.sort(rng.exponential(size=N)) + 0.1


@pytest.mark.parametrize("kind", ["unit", "full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(
    ("more", "dtype"),
    [(None, "float64"), (None, "float32"), (0, "float64"), (1, "float64")],
    ids=["pieces", "float32", "whole blocks", "one more row"],
)
def test_statistics_memory_and_likelihood(kind, more, dtype):
    model, y, theta, weight = problem(kind, SEVERAL if more is None else BLOCKS[kind] + more)
    variance = 1.0 if kind == "unit" else 2.0
    log_joint = -0.5 * ((y[:, None] - theta.means) ** 2).sum(axis=2) / variance
    log_joint -= np.log(M) + 0.5 * D * np.log(2.0 * np.pi * variance)
    log_likelihood = np.logaddexp.reduce(log_joint, axis=1)
    r = np.exp(log_joint - log_likelihood[:, None])
    method = methods.IncrementalEM(memory_dtype=dtype)
    first = swiftem.run(model, y, method, theta0=theta, n_iter=0, sample_weight=weight)
    memory = first.state.method.memory
    assert memory.dtype == dtype
    np.testing.assert_allclose(memory, r, atol=1e-9 if dtype == "float64" else 1e-7)
    share = weight / weight.sum()
    np.testing.assert_allclose(first.s[:M], share @ memory.astype(np.float64), rtol=1e-12)
    once = swiftem.run(model, y, methods.EM(), theta0=theta, n_iter=1, sample_weight=weight)
    np.testing.assert_allclose(once.s[:M], share @ r, rtol=1e-9)
    np.testing.assert_allclose(first.s, once.s, rtol=1e-6, atol=1e-6)
    found = swiftem.objective(model, y, theta, sample_weight=weight)
    penalty = found + share @ log_likelihood
    assert swiftem.objective(model, y, theta) == pytest.approx(penalty - log_likelihood.mean(), rel=1e-9)
    if kind != "unit":
        assert penalty == pytest.approx(0.0, abs=1e-9)
        evaluated = posterior(model, y, theta, responsibilities=True, labels=True)
        np.testing.assert_allclose(evaluated.log_likelihood, log_likelihood, rtol=1e-9)
        np.testing.assert_allclose(evaluated.responsibilities, r, atol=1e-9)
        np.testing.assert_array_equal(evaluated.labels, r.argmax(axis=1))
