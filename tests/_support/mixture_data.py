"""Data and mixtures that the tests of the estimators share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

KINDS = ("full", "tied", "diag", "spherical")
METHODS = ("em", "sem", "iem", "sem-vr", "fiem")
STOCHASTIC = METHODS[1:]
ARRAYS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


def blobs(
    n: int = 600, d: int = 2, components: int = 3, *, apart: float = 3.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, d) of a mixture with full covariances, and their components (n,)."""
    rng = np.random.default_rng(seed)
    means = apart * rng.normal(size=(components, d))
    shapes = np.eye(d) + 0.3 * rng.normal(size=(components, d, d))
    labels = rng.choice(components, n, p=rng.dirichlet(np.full(components, 5.0)))
    y = np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))
    return y + means[labels], labels


def given_start(X: np.ndarray, components: int, kind: str, seed: int = 0) -> dict[str, Any]:
    """Return ``weights_init``, ``means_init`` and ``precisions_init``: a start that needs nothing else."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    variance = X.var(axis=0)
    precisions = {
        "full": np.array([np.diag(1 / variance)] * components),
        "tied": np.diag(1 / variance),
        "diag": np.tile(1 / variance, (components, 1)),
        "spherical": np.full(components, d / variance.sum()),
    }
    return {
        "weights_init": np.full(components, 1 / components),
        "means_init": X[rng.choice(len(X), components, replace=False)].astype(float),
        "precisions_init": precisions[kind],
    }


def fitted(estimator: Any, X: Any, sample_weight: Any = None) -> Any:
    """Return the estimator after a fit, which need not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X) if sample_weight is None else estimator.fit(X, sample_weight=sample_weight)


def assert_same_model(a: Any, b: Any) -> None:
    """Check that all fitted arrays are equal to the last bit."""
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.lower_bound_ == b.lower_bound_
    assert a.n_iter_ == b.n_iter_
