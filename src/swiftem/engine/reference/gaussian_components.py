"""Gaussian mixtures with covariances: E-step and statistics, of centred samples.

The E-step takes differences first and whitens them: no digits are lost, whatever the positions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array

__all__ = [
    "lower_triangle",
    "posterior",
    "softmax",
    "squares_diag",
    "squares_full",
    "squares_spherical",
    "squares_tied",
    "statistics",
]


def posterior(y: Array, weights: Array, means: Array, factors: Array) -> tuple[Array, Array]:
    r"""E-step: :math:`r_m(y) \propto \omega_m |U_m| \exp(-\|(y - \mu_m) U_m\|^2 / 2)`.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Observations.
    weights : ndarray, shape (M,)
        Mixing weights; a zero is allowed.
    means : ndarray, shape (M, d)
        Means.
    factors : ndarray, shape (M or 1, d, d) or (M, d) or (M, 1)
        :math:`U_m`, with :math:`U_m U_m^T` the inverse covariance; or its diagonal.

    Returns
    -------
    rows : ndarray, shape (b, M)
        Responsibilities, rows sum to 1.
    loglik : ndarray, shape (b,)
        log g(y_i).
    """
    d = y.shape[1]
    log_joint = np.empty((len(y), len(weights)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    for m in range(len(weights)):
        factor = factors[min(m, len(factors) - 1)]
        if factor.ndim == 2:
            whitened, log_det = (y - means[m]) @ factor, np.log(np.diag(factor)).sum()
        else:
            whitened, log_det = (y - means[m]) * factor, np.log(np.broadcast_to(factor, d)).sum()
        with np.errstate(over="ignore"):  # a sample that far away has density zero
            square = (whitened * whitened).sum(axis=1)
        log_joint[:, m] = log_weights[m] + log_det - 0.5 * square
    rows, loglik = softmax(log_joint)
    return rows, loglik - 0.5 * d * np.log(2.0 * np.pi)


def softmax(log_joint: Array) -> tuple[Array, Array]:
    """Return responsibilities (b, M) and log-likelihood (b,) of log joint densities (b, M).

    >>> rows, loglik = softmax(np.log([[1.0, 3.0]]))
    >>> rows, np.exp(loglik)
    (array([[0.25, 0.75]]), array([4.]))
    """
    largest = log_joint.max(axis=1, keepdims=True)
    rows: Array = np.exp(log_joint - largest)
    total = rows.sum(axis=1, keepdims=True)
    rows /= total
    return rows, (largest + np.log(total))[:, 0]


def statistics(y: Array, rows: Array, weight: Array, squares: Any) -> Array:
    r"""Weighted sum of :math:`r_i \otimes T(y_i)`: first those of r and r·y, component by component.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Observations.
    rows : ndarray, shape (b, M)
        Responsibilities or differences of them: the result is linear in them.
    weight : ndarray, shape (b,)
        Factor of each sample.
    squares : callable
        One of the functions below.

    Returns
    -------
    ndarray, shape (q,)
        Sums of r (M,), of r·y (M, d), and of squares, flat.
    """
    weighted = rows * weight[:, None]
    return np.concatenate([weighted.sum(axis=0), (weighted.T @ y).ravel(), squares(y, weighted).ravel()])


@lru_cache(maxsize=32)
def lower_triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column of each entry of the lower triangle of a d×d matrix, row by row.

    >>> lower_triangle(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    row, column = np.tril_indices(d)
    row.flags.writeable = column.flags.writeable = False
    return row, column


def squares_full(y: Array, rows: Array) -> Array:
    """Return Σ_i rows_im vech(y_i y_iᵀ), shape (M, d(d+1)/2): the lower triangle, row by row."""
    lower = lower_triangle(y.shape[1])
    return np.stack([((y * row[:, None]).T @ y)[lower] for row in rows.T])


def squares_tied(y: Array, rows: Array) -> Array:
    """Return Σ_i Σ_m rows_im vech(y_i y_iᵀ), shape (d(d+1)/2,)."""
    scatter: NDArray[Any] = (y * rows.sum(axis=1)[:, None]).T @ y
    return np.asarray(scatter[lower_triangle(y.shape[1])])


def squares_diag(y: Array, rows: Array) -> Array:
    """Return Σ_i rows_im y_i², shape (M, d)."""
    return rows.T @ (y * y)


def squares_spherical(y: Array, rows: Array) -> Array:
    """Return Σ_i rows_im ‖y_i‖², shape (M,)."""
    return np.asarray(rows.T @ (y * y).sum(axis=1))
