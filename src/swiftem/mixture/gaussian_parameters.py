"""Parameters of Gaussian mixtures: conversions, marginals, conditionals, and the values of a start."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_floats
from swiftem.core.types import Array, Index
from swiftem.mixture.covariance import GaussianTheta

WITH_MATRICES = ("full", "tied")
"""Kinds whose covariances are matrices."""


def covariances_of(factors: Array, kind: str) -> Array:
    """Return covariances from ``precisions_cholesky``."""
    if kind not in WITH_MATRICES:
        return np.asarray(1.0 / factors**2)
    upper = np.linalg.inv(factors)
    return np.asarray(np.swapaxes(upper, -1, -2) @ upper)


def precisions_of(factors: Array, kind: str) -> Array:
    """Return precisions from ``precisions_cholesky``."""
    if kind not in WITH_MATRICES:
        return np.asarray(factors**2)
    matrices = factors.reshape(-1, *factors.shape[-2:])
    return np.array([one @ one.T for one in matrices]).reshape(factors.shape)


def full_covariances(covariances: Array, kind: str, n_components: int, d: int) -> Array:
    """Return covariances of any kind as matrices (M, d, d)."""
    if kind in WITH_MATRICES:
        return np.broadcast_to(covariances, (n_components, d, d)).copy()
    variances = covariances if kind == "diag" else np.repeat(covariances[:, None], d, axis=1)
    return np.asarray(variances[:, :, None] * np.eye(d))


def block_of(covariances: Array, kind: str, index: Index) -> Array:
    """Return the covariances of some columns, of the same kind."""
    if kind in WITH_MATRICES:
        return covariances[..., index[:, None], index]
    return covariances[:, index] if kind == "diag" else covariances.copy()


def conditional(
    theta: GaussianTheta, kind: str, given: Index, x: Array, rest: Index
) -> tuple[Array, Array, Array]:
    """Return weights, means and covariances of the columns ``rest``, given values of the others."""
    n_components, d = theta.means.shape
    sigma = full_covariances(theta.covariances, kind, n_components, d)
    inner = np.linalg.cholesky(sigma[:, given[:, None], given])
    difference = np.linalg.solve(inner, (x - theta.means[:, given])[:, :, None])[:, :, 0]
    cross = np.linalg.solve(inner, sigma[:, given[:, None], rest])
    with np.errstate(divide="ignore"):
        log_weight = np.log(theta.weights) - np.log(np.einsum("mjj->mj", inner)).sum(axis=1)
    log_weight -= 0.5 * (difference**2).sum(axis=1)
    weights = np.exp(log_weight - log_weight.max())
    covariances = block_of(theta.covariances, kind, rest)
    if kind == "full":
        covariances -= np.einsum("mgr,mgs->mrs", cross, cross)
    elif kind == "tied":
        covariances -= cross[0].T @ cross[0]
    means = theta.means[:, rest] + np.einsum("mgr,mg->mr", cross, difference)
    return weights / weights.sum(), means, covariances


def read_start(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return initial values of this shape; the errors of a start have scikit-learn's words."""
    given = as_floats(name, values)
    if given.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {given.shape}.")
    return given


def read_weights_init(weights: ArrayLike, n_components: int) -> Array:
    """Return initial weights."""
    given = read_start("weights", weights, (n_components,))
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ValueError(
            f"The parameter 'weights' should be in the range [0, 1], but got max value {given.min():.5f}, "
            f"min value {given.max():.5f}"
        )
    if abs(given.sum() - 1.0) > (1e-6 if getattr(weights, "dtype", None) == np.float32 else 1e-8):
        raise ValueError(
            f"The parameter 'weights' should be normalized, but got sum(weights) = {given.sum():.5f}"
        )
    return given


def read_precisions_init(precisions: ArrayLike, kind: str, shape: tuple[int, ...]) -> Array:
    """Return ``precisions_cholesky`` of initial precisions."""
    given = read_start(f"{kind} precision", precisions, shape)
    if kind not in WITH_MATRICES:
        if not (given > 0.0).all():
            raise ValueError(f"'{kind} precision' should be positive")
        return np.sqrt(given)
    is_symmetric = np.allclose(given, np.swapaxes(given, -1, -2))
    if not is_symmetric or not (np.linalg.eigvalsh(given) > 0.0).all():
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
    # With rows and columns in reverse order the lower factor becomes the upper one.
    return np.asarray(np.linalg.cholesky(given[..., ::-1, ::-1])[..., ::-1, ::-1], dtype=np.float64)
