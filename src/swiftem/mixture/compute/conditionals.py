r"""The E-step of full and tied covariances for rows with missing cells, in NumPy.

Rows with the same cells missing have the same *pattern*, and share one factorisation of each covariance. All
patterns of a block of rows are factorised at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.compute.numpy import lower_triangle, softmax

NUMBERS = 1 << 20
"""Numbers of the matrices of a block of rows."""


class Conditionals(NamedTuple):
    r"""θ for patterns of observed cells o and missing cells u; K is M, or 1 for "tied".

    Attributes
    ----------
    whiten : ndarray, shape (P, K, d, d)
        W with WᵀW = :math:`\Sigma_{oo}^{-1}`; zero in rows and columns of missing cells.
    plain : ndarray, shape (P, M)
        :math:`\log \omega_m - \frac12 \log|2 \pi \Sigma_{oo}|`.
    gain : ndarray, shape (P, K, d, d)
        G with :math:`\hat z - \mu = G (z - \mu)`: one for observed cells, :math:`\Sigma_{uo}
        \Sigma_{oo}^{-1}` for missing ones; its columns of missing cells are zero.
    left : ndarray, shape (P, K, d, d)
        Covariances of missing cells given the others.
    """

    whiten: Array
    plain: Array
    gain: Array
    left: Array


def numbered(seen: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Index]:
    """Return the patterns (P, d) of rows (b, d), and the number (b,) of each row's pattern.

    >>> found, number = numbered(np.array([[True, False], [True, True], [True, False]]))
    >>> found.astype(int).tolist(), number.tolist()
    ([[1, 0], [1, 1]], [0, 1, 0])
    """
    packed = np.packbits(seen, axis=1)
    wide = np.zeros((len(seen), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    keys = wide.view(">u8")
    flat = keys[:, 0].astype(np.uint64) if keys.shape[1] == 1 else wide.view(f"V{wide.shape[1]}")[:, 0]
    _, first, number = np.unique(flat, return_index=True, return_inverse=True)
    return seen[first], number


def conditionals(
    patterns: NDArray[np.bool_], weights: Array, means: Array, covariances: Array
) -> Conditionals:
    """Return θ for patterns (P, d), with covariances (K, d, d): one factorisation for each of both."""
    d = means.shape[1]
    both = (patterns[:, :, None] & patterns[:, None, :])[:, None]
    # The observed block, with ones in the diagonal of the others, which the factorisation leaves alone.
    block = np.where(both, covariances, np.eye(d))
    lower = np.linalg.cholesky(block)
    whiten = np.where(both, np.linalg.inv(lower), 0.0)
    halves = np.log(np.einsum("pkjj->pkj", lower)).sum(axis=2)
    with np.errstate(divide="ignore"):
        plain = np.log(weights) - halves - 0.5 * np.log(2.0 * np.pi) * patterns.sum(axis=1)[:, None]
    across = covariances @ np.swapaxes(whiten, -1, -2)  # of all cells with whitened observed ones
    is_missing = ~patterns[:, None, :, None]
    gain = np.where(is_missing, across @ whiten, np.eye(d) * patterns[:, None, None, :])
    left = covariances - across @ np.swapaxes(across, -1, -2)
    left = np.where(is_missing & np.swapaxes(is_missing, -1, -2), left, 0.0)
    return Conditionals(whiten, plain, gain, left)


def blocks_of(count: int, n_components: int, d: int) -> list[slice]:
    """Return slices of rows whose matrices (M, d, d) are not too many at a time."""
    size = max(1, NUMBERS // (n_components * d * d))
    return [slice(start, start + size) for start in range(0, count, size)]


def expected_rows(z: Array, means: Array, given: Conditionals, number: Index) -> tuple[Array, Array]:
    """Return rows (b, M, d) completed by each component, and their observed cells minus the means.

    ``z`` (b, d) has NaN in missing cells, ``number`` (b,) the pattern of each row.
    """
    away = np.where(np.isnan(z)[:, None], 0.0, z[:, None] - means)
    return means + (given.gain[number] @ away[..., None])[..., 0], away


def _logits(away: Array, given: Conditionals, number: Index) -> Array:
    """Return log joint densities (b, M), from observed cells minus the means (b, M, d)."""
    whitened = (given.whiten[number] @ away[..., None])[..., 0]
    with np.errstate(over="ignore"):  # a sample that far away has density zero
        return np.asarray(given.plain[number] - 0.5 * (whitened * whitened).sum(axis=2))


def log_densities(z: Array, means: Array, covariances: Array) -> Array:
    """Return the log-densities (b, M) of the observed cells of centred rows (b, d)."""
    found = np.empty((len(z), len(means)))
    for here in blocks_of(len(z), *means.shape):
        patterns, number = numbered(~np.isnan(z[here]))
        given = conditionals(patterns, np.ones(len(means)), means, covariances)
        found[here] = _logits(expected_rows(z[here], means, given, number)[1], given, number)
    return found


def completed(z: Array, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    r"""E-step of rows with missing cells: :math:`r_m \otimes (1, \hat z_m, vech(\hat z_m \hat z_m^T + C_m))`.

    Parameters
    ----------
    z : ndarray, shape (b, d)
        Centred rows; missing cells are NaN.
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
    log_likelihood : ndarray, shape (b,)
        log g of the observed cells.
    """
    n_components, d = means.shape
    pieces = [_completed(z[here], weights, means, covariances) for here in blocks_of(len(z), n_components, d)]
    return np.concatenate([rows for rows, _ in pieces]), np.concatenate([values for _, values in pieces])


def _completed(z: Array, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    b, (n_components, d) = len(z), means.shape
    patterns, number = numbered(~np.isnan(z))
    given = conditionals(patterns, weights, means, covariances)
    expected, away = expected_rows(z, means, given, number)
    r, log_likelihood = softmax(_logits(away, given, number))
    row, column = lower_triangle(d)
    products = expected[..., row] * expected[..., column] + given.left[..., row, column][number]
    products *= r[..., None]
    squares = products.sum(axis=1) if len(covariances) < n_components else products.reshape(b, -1)
    return np.hstack([r, (expected * r[..., None]).reshape(b, -1), squares]), log_likelihood


def filled_cells(
    y: Rows,
    rows: Array,
    weights: Array,
    means: Array,
    covariances: Array,
    labels: Index | None,
    noise: Array | None,
) -> Rows:
    """Return rows with values in missing cells, which depend on the observed ones.

    These are conditional means by responsibilities ``rows`` (b, M), or draws from the components ``labels``
    (b,) by standard normal ``noise`` (b, d).
    """
    filled, (n_components, d) = np.array(y, dtype=np.float64), means.shape
    for here in blocks_of(len(y), n_components, d):
        z = filled[here]
        missing = np.isnan(z)
        patterns, number = numbered(~missing)
        given = conditionals(patterns, weights, means, covariances)
        expected, _ = expected_rows(z, means, given, number)
        if labels is None or noise is None:
            values = np.einsum("bm,bmd->bd", rows[here], expected)
        else:
            # Ones in the diagonal of observed cells: the factorisation leaves these alone.
            lower = np.linalg.cholesky(given.left + np.eye(d) * patterns[:, None, :, None])
            own = labels[here]
            factors = lower[number, np.minimum(own, lower.shape[1] - 1)]
            values = expected[np.arange(len(z)), own]
            values += np.einsum("bij,bj->bi", factors, np.where(missing, noise[here], 0.0))
        filled[here] = np.where(missing, values, z)
    return filled.astype(y.dtype, copy=False)
