"""Gaussian mixture with unit variances: E-step and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array

__all__ = ["posterior", "statistics"]


def posterior(y: NDArray[Any], weights: Array, means: Array) -> tuple[Array, Array]:
    r"""E-step, equation (cexp): :math:`\tilde\omega_m(y) \propto \omega_m \exp(-\|y - \mu_m\|^2 / 2)`.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Observations.
    weights : ndarray, shape (M,)
        Mixing weights; a zero is allowed.
    means : ndarray, shape (M, d)
        Means.

    Returns
    -------
    rows : ndarray, shape (b, M)
        Responsibilities, rows sum to 1.
    loglik : ndarray, shape (b,)
        log g(y_i).
    """
    # Differences first: the expanded square loses all digits if data are far from the origin.
    difference = y[:, None, :] - means
    with np.errstate(divide="ignore"):
        log_joint = np.log(weights) - 0.5 * (difference * difference).sum(axis=2)
    largest = log_joint.max(axis=1, keepdims=True)
    rows = np.exp(log_joint - largest)
    total = rows.sum(axis=1, keepdims=True)
    rows /= total
    loglik = (largest + np.log(total))[:, 0] - 0.5 * means.shape[1] * np.log(2.0 * np.pi)
    return rows, loglik


def statistics(y: NDArray[Any], rows: Array, weight: Array) -> Array:
    r"""Weighted sum of equation (condexp_gmm): :math:`\sum_i w_i (r_{im},\, r_{im} y_i)`, all M components.

    Parameters
    ----------
    y : ndarray, shape (b, d)
        Observations.
    rows : ndarray, shape (b, M)
        Responsibilities or differences of them: the result is linear in them.
    weight : ndarray, shape (b,)
        Factor of each sample.

    Returns
    -------
    ndarray, shape (M + M·d,)
        First the sums of responsibilities, then the sums of responsibility times observation, row by row.
    """
    weighted = rows * weight[:, None]
    return np.concatenate([weighted.sum(axis=0), (weighted.T @ y).ravel()])
