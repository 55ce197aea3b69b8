"""Gaussian mixture with unit variances: E-step and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.engine.reference.gaussian_components import softmax

__all__ = ["posterior", "statistics"]


def posterior(y: NDArray[Any], weights: Array, means: Array) -> tuple[Array, Array]:
    r"""E-step, equation (cexp): :math:`\tilde\omega_m(y) \propto \omega_m \exp(-\|y - \mu_m\|^2 / 2)`.

    Parameters
    ----------
    y, weights, means
        As in :func:`swiftem.engine.reference.gaussian_components.posterior`, which returns the same.
    """
    # Differences first: the expanded square loses all digits if data are far from the origin.
    difference = y[:, None, :] - means
    with np.errstate(divide="ignore"):
        log_joint = np.log(weights) - 0.5 * (difference * difference).sum(axis=2)
    rows, loglik = softmax(log_joint)
    return rows, loglik - 0.5 * means.shape[1] * np.log(2.0 * np.pi)


def statistics(y: NDArray[Any], rows: Array, weight: Array) -> Array:
    r"""Weighted sum of equation (condexp_gmm): :math:`\sum_i w_i (r_{im},\, r_{im} y_i)`, all M components.

    Parameters
    ----------
    y, rows, weight
        As in :func:`swiftem.engine.reference.gaussian_components.statistics`.

    Returns
    -------
    ndarray, shape (M + M·d,)
        First the sums of responsibilities, then the sums of responsibility times observation, row by row.
    """
    weighted = rows * weight[:, None]
    return np.concatenate([weighted.sum(axis=0), (weighted.T @ y).ravel()])
