"""Rows grouped by their pattern of missing cells, and normal densities given a pattern."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.engine.expectation import read_only
from swiftem.engine.reference.gaussian_components import lower_triangle
from swiftem.models.components import Coefficients

__all__ = ["Conditionals", "Grouped", "Piece", "conditionals", "grouped", "numbered"]

ROWS, PATTERNS = 8192, 64
"""Rows and patterns of a piece of a pass: a thread's work."""


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


class Piece(NamedTuple):
    """Consecutive rows of some patterns: ``rows`` of pattern ``patterns[k]`` are ``edges[k] : edges[k + 1]``.

    Edges are positions among all rows in the order of patterns.
    """

    patterns: NDArray[np.bool_]
    edges: Index


class Grouped(NamedTuple):
    """Rows in the order of their patterns.

    Attributes
    ----------
    z : ndarray, shape (n, d)
        Centred rows, with zeros in missing cells.
    weight : ndarray, shape (n,) or (0,)
        Their weights; none for ones.
    order : ndarray of int, shape (n,)
        Their positions in the data.
    pieces : list of Piece
        The work of a pass.
    reach : ndarray, shape (d,)
        Distance of the cells from the centre.
    """

    z: Array
    weight: Array
    order: Index
    pieces: list[Piece]
    reach: Array


def grouped(y: NDArray[Any], weight: Array, centre: Array) -> Grouped:
    """Return rows (n, d), in which NaN is missing, in the order of their patterns."""
    seen = ~np.isnan(y)
    patterns, number = numbered(seen)
    order = np.argsort(number, kind="stable")
    z = np.subtract(y[order], centre, dtype=np.float64, order="C")
    np.copyto(z, 0.0, where=~seen[order])
    ends = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(patterns)))])
    pieces: list[Piece] = []
    held, edges = [], [0]
    for pattern, end in zip(patterns, ends[1:], strict=True):
        while edges[-1] < end:
            held.append(pattern)
            edges.append(min(int(end), edges[0] + ROWS))
            if len(held) == PATTERNS or edges[-1] - edges[0] == ROWS:
                pieces.append(Piece(np.array(held), np.array(edges)))
                held, edges = [], [edges[-1]]
    if held:
        pieces.append(Piece(np.array(held), np.array(edges)))
    weight = read_only(weight[order] if len(weight) else weight)
    return Grouped(z, weight, order, pieces, np.abs(z).max(axis=0))


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

    def coefficients(self, means: Array) -> list[Coefficients]:
        """Return φ of each pattern, for rows with zeros in missing cells: as for full covariances."""
        n_components, d = means.shape
        row, column = lower_triangle(d)
        precision = np.swapaxes(self.whiten, -1, -2) @ self.whiten
        linear = (precision @ means[:, :, None])[..., 0]
        products = precision[..., row, column] * np.where(row == column, -0.5, -1.0)
        products = np.broadcast_to(products, (len(linear), n_components, len(row)))
        phi = np.ascontiguousarray(np.swapaxes(np.concatenate([linear, products], axis=2), 1, 2))
        constant = self.plain - 0.5 * (linear * means).sum(axis=2)
        whiten = np.ascontiguousarray(np.broadcast_to(self.whiten, (len(linear), n_components, d, d)))
        none = np.empty((0, d))
        return [
            Coefficients(phi[k], constant[k], means, self.plain[k], whiten[k], none) for k in range(len(phi))
        ]


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
