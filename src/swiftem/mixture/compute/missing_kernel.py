r"""Full and tied covariances of rows with missing cells: the completed statistics of single rows.

A batch has nearly as many patterns of missing cells as rows, and a row misses few cells. So a row is
completed by the precision P: that takes a factorisation of its missing cells u, not of the observed cells o,

.. math:: \hat z_u = \mu_u - P_{uu}^{-1} P_{uo} (z_o - \mu_o), \qquad C_{uu} = P_{uu}^{-1}, \qquad
   |\Sigma_{oo}|^{-1} = |P| / |P_{uu}|,

and the square of the whitened observed cells equals the completed row's, as :math:`\hat z_u` is where it is
smallest. The definition is :func:`swiftem.mixture.compute.conditionals.completed`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.kernels.compile import helper
from swiftem.kernels.vector import matrix, piece
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.covariance_kernel import cholesky, gram, invert
from swiftem.mixture.compute.loops import fill, softmax_rows

BLOCK = 16
"""Rows per block: their statistics stay in cache."""


class Completion(NamedTuple):
    """Buffers for a row; K is M, or 1 for "tied".

    Attributes
    ----------
    precision : ndarray, shape (K, d, d)
        P.
    left : ndarray, shape (K, d·d)
        C of the k missing cells, (k, k), upper triangle.
    sample, linear, floor : ndarray, shape (d,)
        The row, numbers of its missing cells, and zeros.
    missing : ndarray of int, shape (d,)
        u, its first entries.
    block, inverse : ndarray, size d·d
        For factorisations of missing cells.
    expected : ndarray, shape (M, d)
        The row, completed by each component.
    logits : ndarray, shape (M,)
        Logits, then responsibilities.
    """

    precision: Array
    left: Array
    sample: Array
    linear: Array
    floor: Array
    missing: Index
    block: Array
    inverse: Array
    expected: Array
    logits: Array


def make_completion(matrices: int, n_components: int, d: int) -> Completion:
    """Return buffers for M components with K = ``matrices`` covariances.

    >>> make_completion(1, 3, 2).precision.shape
    (1, 2, 2)
    """
    sample, linear = np.empty((2, d))
    block, inverse = np.empty((2, d * d))
    return Completion(
        np.empty((matrices, d, d)),
        np.empty((matrices, d * d)),
        sample,
        linear,
        np.zeros(d),
        np.empty(d, dtype=np.intp),
        block,
        inverse,
        np.empty((n_components, d)),
        np.empty(n_components),
    )


@helper
def _given_others(k: int, number: int, on: Completion) -> float:
    """Write C of the ``k`` missing cells, by the covariance of this number; return log|P_uu| / 2.

    NaN if P is not positive definite.
    """
    block, inverse, precision = matrix(on.block, k, k), matrix(on.inverse, k, k), on.precision[number]
    for a in range(k):
        for e in range(a, k):
            block[a, e] = precision[on.missing[a], on.missing[e]]
    if not cholesky(block, on.floor):
        return math.nan
    half = 0.0
    for a in range(k):
        half += math.log(block[a, a])
    invert(block, inverse)
    gram(inverse, matrix(on.left[number], k, k))
    return half


@helper
def _fill(k: int, number: int, away: Array, on: Completion) -> None:
    """Write conditional means minus μ into the missing cells of ``away`` (d,), which are zero."""
    precision, left = on.precision[number], matrix(on.left[number], k, k)
    for a in range(k):
        total, line = 0.0, precision[on.missing[a]]
        for c in range(len(line)):
            total += line[c] * away[c]
        on.linear[a] = total
    for a in range(k):
        total = 0.0
        for e in range(k):
            total -= left[min(a, e), max(a, e)] * on.linear[e]
        away[on.missing[a]] = total


@helper
def _distance(whiten: Array, away: Array) -> float:
    """Return the squared length of ``whiten`` (d, d), lower triangular, times ``away`` (d,)."""
    total = 0.0
    for i in range(len(away)):
        value, line = 0.0, piece(whiten, i, 0, i + 1)
        for j in range(len(line)):
            value += line[j] * away[j]
        total += value * value
    return total


@helper
def _add_products(row: Array, first: int, r: float, m: int, number: int, k: int, on: Completion) -> None:
    """Add r·(ẑẑᵀ + C), lower triangle, to ``row`` from ``first`` on."""
    expected, left, place = on.expected[m], matrix(on.left[number], k, k), first
    for i in range(len(expected)):
        factor = r * expected[i]
        for j in range(i + 1):
            row[place + j] += factor * expected[j]
        place += i + 1
    for a in range(k):
        i = on.missing[a]
        for e in range(a + 1):
            row[first + i * (i + 1) // 2 + on.missing[e]] += r * left[e, a]


@helper
def _complete(theta: Coefficients, on: Completion, row: Array) -> None:
    """Write the statistics of the row ``on.sample`` (d,), in which NaN is missing, into ``row`` (q,)."""
    n_components, d = theta.means.shape
    last, k, half = len(theta.whiten) - 1, 0, 0.0
    for c in range(d):
        if math.isnan(on.sample[c]):
            on.missing[k] = c
            k += 1
    for m in range(n_components):
        number, mean, away = min(m, last), theta.means[m], on.expected[m]
        for c in range(d):
            away[c] = 0.0 if math.isnan(on.sample[c]) else on.sample[c] - mean[c]
        if k and number == m:
            half = _given_others(k, number, on)
        if k:
            _fill(k, number, away, on)
        value = 0.5 * (k * math.log(2.0 * math.pi) - _distance(theta.whiten[number], away)) - half
        if math.isnan(value):  # the step is then rejected
            fill(row, math.nan)
            return
        on.logits[m] = value
        for c in range(d):
            away[c] = away[c] + mean[c] if math.isnan(on.sample[c]) else on.sample[c]
    logits = matrix(on.logits, 1, n_components)
    softmax_rows(logits, theta.plain, on.linear, on.linear)
    fill(row, 0.0)
    size, end = d * (d + 1) // 2, n_components * (1 + d)
    for m in range(n_components):
        r, number = on.logits[m], min(m, last)
        if r > 0.0:
            row[m] = r
            for c in range(d):
                row[n_components + m * d + c] = r * on.expected[m, c]
            _add_products(row, end + number * size, r, m, number, k, on)


@helper
def complete_rows(samples: Array, theta: Coefficients, on: Completion, rows: Array) -> None:
    """Write the statistics of centred ``samples`` (d, b), in which NaN is missing, into ``rows`` (b, q)."""
    d, b = samples.shape
    for number in range(len(theta.whiten)):
        precision = on.precision[number]
        gram(theta.whiten[number], precision)
        for i in range(d):
            for j in range(i):
                precision[i, j] = precision[j, i]
    for t in range(b):
        for c in range(d):
            on.sample[c] = samples[c, t]
        _complete(theta, on, rows[t])
