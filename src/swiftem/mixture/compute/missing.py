r"""Full and tied covariances of rows with missing cells: compiled full passes over rows grouped by pattern.

Rows of a pattern, with zeros in missing cells, have logits T(z)·φ with coefficients of the pattern, so that
the compiled pass over full covariances gives their sums :math:`S_0 = \sum r`, :math:`S_1 = \sum r z` and
:math:`S_2 = \sum r z z^T`. As :math:`\hat z = G z + c`, c = μ − Gμ, the completed statistics of all rows of a
pattern are

.. math:: \sum r \hat z = G S_1 + S_0 c, \qquad
   \sum r (\hat z \hat z^T + C) = G S_2 G^T + G S_1 c^T + c (G S_1)^T + S_0 (c c^T + C).

The definition is :func:`swiftem.mixture.compute.conditionals.completed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Loop, Task
from swiftem.core.compute import Evaluation
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.kernels.threads import NONE, Part, parts, read_only
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.conditionals import Conditionals, conditionals, numbered
from swiftem.mixture.compute.numpy import MixtureCompute, lower_triangle
from swiftem.mixture.compute.passes import NOT_GIVEN, make_work, mixture_loop, outputs_at, twin
from swiftem.mixture.compute.passes_kernel import Outputs, Samples, Work, blocks
from swiftem.mixture.covariance import FULL, GaussianTheta
from swiftem.mixture.gaussians import BoundGaussians

ROWS, PATTERNS = 8192, 64
"""Rows and patterns of a piece of a pass: a thread's work."""

T = TypeVar("T")


class Piece(NamedTuple):
    """Rows in the order of their patterns, divided into runs of the same pattern: a thread's work.

    Attributes
    ----------
    z : ndarray, shape (n, d)
        Centred rows, with zeros in missing cells.
    weight : ndarray, shape (n,) or (0,)
        Their weights; none for ones.
    order : ndarray of int, shape (n,)
        Their positions in the data.
    reach : ndarray, shape (d,)
        At least the distance of the cells from the centre.
    patterns : ndarray of bool, shape (runs, d)
        The observed cells of each run.
    edges : ndarray of int, shape (runs + 1,)
        Run k has the rows from ``edges[k]`` to ``edges[k + 1]``.
    """

    z: Array
    weight: Array
    order: Index
    reach: Array
    patterns: NDArray[np.bool_]
    edges: Index


def pieces_of(part: Part, centre: Array) -> list[Piece]:
    """Return rows, in which NaN is missing, in the order of their patterns."""
    first, y, weight = part
    seen = ~np.isnan(y)
    patterns, number = numbered(seen)
    order = np.argsort(number, kind="stable")
    z = np.subtract(y[order], centre, dtype=np.float64, order="C")
    np.copyto(z, 0.0, where=~seen[order])
    z, weight, reach = (
        read_only(z),
        read_only(weight[order] if len(weight) else weight),
        np.abs(z).max(axis=0),
    )
    edges = np.union1d(np.cumsum(np.bincount(number)), np.arange(0, len(y), ROWS))
    begins = edges[:-1]
    firsts = [*np.flatnonzero(np.diff(begins // ROWS, prepend=-1)), len(begins)]
    pieces = []
    for begin, end in pairwise(firsts):
        for start in range(begin, end, PATTERNS):
            own = edges[start : min(start + PATTERNS, end) + 1]
            here = slice(own[0], own[-1])
            runs = patterns[number[order[own[:-1]]]]
            pieces.append(Piece(z[here], weight[here], first + order[here], reach, runs, own - own[0]))
    return pieces


def coefficients_of(given: Conditionals, means: Array) -> list[Coefficients]:
    """Return φ of each pattern, for rows with zeros in missing cells: as for full covariances."""
    n_components, d = means.shape
    row, column = lower_triangle(d)
    precision = np.swapaxes(given.whiten, -1, -2) @ given.whiten
    linear = (precision @ means[:, :, None])[..., 0]
    products = precision[..., row, column] * np.where(row == column, -0.5, -1.0)
    products = np.broadcast_to(products, (len(linear), n_components, len(row)))
    phi = np.ascontiguousarray(np.swapaxes(np.concatenate([linear, products], axis=2), 1, 2))
    constant = given.plain - 0.5 * (linear * means).sum(axis=2)
    whiten = np.ascontiguousarray(np.broadcast_to(given.whiten, (len(linear), n_components, d, d)))
    none = np.empty((0, d))
    return [
        Coefficients(phi[k], constant[k], means, given.plain[k], whiten[k], none) for k in range(len(phi))
    ]


class CompletedCompute(MixtureCompute):
    """E-steps that complete rows; a full pass factorises the covariances once for each pattern."""

    bound: BoundGaussians
    _array: list[Piece] | None = None

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for declared methods, else single iterations."""
        return mixture_loop(task)

    def _pieces(self) -> Iterable[list[Piece]]:
        """Return all rows: the rows of an array are kept, others are grouped part by part."""
        source, centre = self._source, self.bound.centre
        if not isinstance(source, ArraySource):
            return (pieces_of(part, centre) for part in parts(source, 1))
        if self._array is None:
            weight = NONE if source.weight is None else source.weight
            self._array = pieces_of(Part(0, source.y.reshape(source.n, -1), weight), centre)
        return [self._array]

    def _over_pieces(self, function: Callable[..., T], *common: object) -> Iterator[T]:
        """Yield ``function(piece, *common)`` of all pieces."""
        for pieces in self._pieces():
            yield from self._in_order(function, [(piece, *common) for piece in pieces])

    def _given(self, piece: Piece, theta: GaussianTheta) -> tuple[Array, Conditionals]:
        """Return the means minus the centre, and θ given each pattern of a piece."""
        means = theta.means - self.bound.centre
        covariances = self.bound.matrices(theta)
        return means, conditionals(piece.patterns, theta.weights, means, covariances)

    def _runs(
        self, piece: Piece, means: Array, given: Conditionals
    ) -> Iterator[tuple[slice, Samples, Coefficients, Work]]:
        """Yield the place of each run of a piece, its samples, φ and buffers."""
        n_components, d = means.shape
        work = make_work(d + d * (d + 1) // 2, n_components, d)
        for run, theta in zip(pairwise(piece.edges), coefficients_of(given, means), strict=True):
            here = slice(*run)
            data = Samples(twin(piece.z[here]), piece.weight[here], FULL, np.zeros(d), piece.reach)
            yield here, data, theta, work

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        if remember:
            return super()._pass(theta, remember)
        total, log_likelihood = np.zeros(self.bound.size), 0.0
        for s, value in self._over_pieces(self._sums, theta):
            total += s
            log_likelihood += value
        self.evaluations += self.n
        self._passed = theta, -log_likelihood
        return total / self._source.total_weight, None

    def _sums(self, piece: Piece, theta: GaussianTheta) -> tuple[Array, float]:
        """Return the completed statistics of a piece, and its log-likelihood."""
        means, given = self._given(piece, theta)
        (n_components, d), count = means.shape, len(given.plain)
        sums1, sums2 = np.zeros((count, n_components)), np.zeros((count, d + d * (d + 1) // 2, n_components))
        logs = np.zeros(3)
        for k, (_, samples, phi, work) in enumerate(self._runs(piece, means, given)):
            out = Outputs(logs, sums1[k], sums2[k], reach=np.zeros(d))
            blocks(samples, phi, None, NOT_GIVEN, work, out)
        return self._flat(sums1, np.swapaxes(sums2, 1, 2), means, given), float(logs[0])

    def _flat(self, sums1: Array, sums2: Array, means: Array, given: Conditionals) -> Array:
        """Return completed statistics from sums (P, M) and (P, M, p) of rows with zeros."""
        d = means.shape[1]
        row, column = lower_triangle(d)
        products = np.empty((*sums2.shape[:2], d, d))
        products[..., row, column] = products[..., column, row] = sums2[..., d:]
        away = means - (given.gain @ means[:, :, None])[..., 0]
        first = (given.gain @ sums2[..., :d, None])[..., 0]
        cross = first[..., :, None] * away[..., None, :]
        second = given.gain @ products @ np.swapaxes(given.gain, -1, -2) + cross + np.swapaxes(cross, -1, -2)
        second += sums1[..., None, None] * (away[..., :, None] * away[..., None, :] + given.left)
        squares = second.sum(axis=0)[:, row, column]
        if self.bound.shares_products:
            squares = squares.sum(axis=0)
        sums = (first + sums1[..., None] * away).sum(axis=0)
        return np.concatenate([sums1.sum(axis=0), sums.ravel(), squares.ravel()])

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        results = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for _ in self._over_pieces(self._evaluate, theta, results):
            pass
        return results

    def _evaluate(self, piece: Piece, theta: GaussianTheta, results: Evaluation) -> None:
        """Fill in the results of a piece."""
        wanted = [values is not None for values in results[1:]]
        piece_results = Evaluation.room(len(piece.z), self.bound.n_components, *wanted)
        for here, samples, phi, work in self._runs(piece, *self._given(piece, theta)):
            blocks(samples, phi, None, NOT_GIVEN, work, outputs_at(piece_results, here))
        for values, piece_values in zip(results, piece_results, strict=True):
            if values is not None and piece_values is not None:
                values[piece.order] = piece_values
