"""E-steps of Gaussian mixtures for rows with missing cells, which are centred."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.engine.reference.gaussian_components import lower_triangle, softmax

__all__ = ["complete", "completed", "patterns", "posterior"]


def posterior(
    z: Array, seen: NDArray[np.bool_], weights: Array, means: Array, factors: Array
) -> tuple[Array, Array]:
    """E-step of independent columns: responsibilities by the densities of the observed cells.

    Parameters
    ----------
    z, seen : ndarray, shape (b, d)
        Cells, and which of them are observed.
    weights : ndarray, shape (M,)
        Mixing weights; a zero is allowed.
    means, factors : ndarray, shape (M, d)
        Means and 1/σ.

    Returns
    -------
    rows : ndarray, shape (b, M)
        Responsibilities.
    loglik : ndarray, shape (b,)
        log g of the observed cells.
    """
    log_joint = np.empty((len(z), len(weights)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    for m in range(len(weights)):
        away = (z - means[m]) * factors[m]
        cells = np.log(factors[m]) - 0.5 * (away * away + np.log(2.0 * np.pi))
        log_joint[:, m] = log_weights[m] + np.where(seen, cells, 0.0).sum(axis=1)
    return softmax(log_joint)


def patterns(seen: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], Index]]:
    """Yield each pattern of observed cells (d,) of rows (b, d), and the indices of its rows."""
    found, place = np.unique(seen, axis=0, return_inverse=True)
    for number, pattern in enumerate(found):
        yield pattern, np.flatnonzero(place.ravel() == number)


def complete(
    z: Array, pattern: NDArray[np.bool_], mean: Array, covariance: Array
) -> tuple[Array, Array, Array]:
    r"""Log-density of the observed cells o of a normal row, and mean and covariance of the row given them.

    :math:`z_u | z_o \sim N(\mu_u + \Sigma_{uo} \Sigma_{oo}^{-1} (z_o - \mu_o), \Sigma_{uu} - \Sigma_{uo}
    \Sigma_{oo}^{-1} \Sigma_{ou})`.

    Parameters
    ----------
    z : ndarray, shape (b, d)
        Rows of one pattern.
    pattern : ndarray of bool, shape (d,)
        Which cells are observed.
    mean, covariance : ndarray, shapes (d,) and (d, d)
        Parameters.

    Returns
    -------
    log_density, mean, covariance : ndarray, shapes (b,), (b, d) and (d, d)
        Observed cells are their own means, and have no covariance.
    """
    o, u = np.flatnonzero(pattern), np.flatnonzero(~pattern)
    away = z[:, o] - mean[o]
    lower = np.linalg.cholesky(covariance[np.ix_(o, o)])
    whitened = np.linalg.solve(lower, away.T)
    with np.errstate(over="ignore"):  # a sample that far away has density zero
        square = (whitened * whitened).sum(axis=0)
    log_density = -0.5 * (square + len(o) * np.log(2.0 * np.pi)) - np.log(np.diag(lower)).sum()
    of_missing = np.linalg.solve(lower, covariance[np.ix_(o, u)])
    expected, left = z.copy(), np.zeros_like(covariance)
    expected[:, u] = mean[u] + whitened.T @ of_missing
    left[np.ix_(u, u)] = covariance[np.ix_(u, u)] - of_missing.T @ of_missing
    return log_density, expected, left


def completed(z: Array, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    r"""E-step of rows with missing cells: :math:`r_m \otimes (1, \hat z_m, vech(\hat z_m \hat z_m^T + C_m))`.

    Parameters
    ----------
    z : ndarray, shape (b, d)
        Rows; missing cells are NaN.
    weights : ndarray, shape (M,)
        Mixing weights; a zero is allowed.
    means : ndarray, shape (M, d)
        Means.
    covariances : ndarray, shape (M or 1, d, d)
        Covariances; one for all components ("tied").

    Returns
    -------
    rows : ndarray, shape (b, q)
        Statistics of each row: r (M,), r·ẑ (M, d), and the products, (M, d(d+1)/2), or their sum over the
        components if there is one covariance, (d(d+1)/2,).
    loglik : ndarray, shape (b,)
        log g of the observed cells.
    """
    b, (n_components, d) = len(z), means.shape
    row, column = lower_triangle(d)
    log_joint, expected = np.empty((b, n_components)), np.empty((b, n_components, d))
    products = np.empty((b, n_components, len(row)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    for pattern, here in patterns(~np.isnan(z)):
        for m in range(n_components):
            covariance = covariances[min(m, len(covariances) - 1)]
            log_density, mean, left = complete(z[here], pattern, means[m], covariance)
            log_joint[here, m], expected[here, m] = log_weights[m] + log_density, mean
            products[here, m] = mean[:, row] * mean[:, column] + left[row, column]
    r, loglik = softmax(log_joint)
    products *= r[:, :, None]
    of_products = products.sum(axis=1) if len(covariances) < n_components else products.reshape(b, -1)
    return np.hstack([r, (expected * r[:, :, None]).reshape(b, -1), of_products]), loglik
