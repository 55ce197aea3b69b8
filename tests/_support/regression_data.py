"""Data of mixtures of two regressions."""

import numpy as np


def lines(n=2000, seed=0, offset=0.0):
    """Return rows (n, 2), responses of two planes, and their classes."""
    rng = np.random.default_rng(seed)
    kind = (rng.random(n) < 0.3).astype(int)
    X = rng.uniform(0, 10, size=(n, 2)) + offset
    beta = np.array([[1.0, -2.0], [3.0, 0.5]])
    y = np.array([20.0, 2.0])[kind] + np.einsum("ij,ij->i", X - offset, beta[kind])
    return X, y + rng.normal(size=n) * np.array([0.5, 1.5])[kind], kind


def counts(n=2000, seed=0):
    """Return rows (n, 1), counts of two Poisson regressions, and their classes."""
    rng = np.random.default_rng(seed)
    kind = (rng.random(n) < 0.4).astype(int)
    x = rng.uniform(-1, 1, size=(n, 1))
    return x, rng.poisson(np.exp(np.array([0.5, 3.0])[kind] + np.array([1.5, -0.5])[kind] * x[:, 0])), kind
