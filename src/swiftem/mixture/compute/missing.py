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
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Loop, Task
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.data.parts import NONE, parts, read_only
from swiftem.kernels.threads import in_order, one_thread_blas
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute import passes_kernel as dense
from swiftem.mixture.compute.blocks_kernel import make_work, twin
from swiftem.mixture.compute.conditionals import Conditionals, conditionals, numbered
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.compute.steps import mixture_loop
from swiftem.mixture.covariance import FULL

__all__ = ["CompletedCompute"]

ROWS, PATTERNS = 8192, 64
"""Rows and patterns of a piece of a pass: a thread's work."""


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


class CompletedCompute(Compute):
    """As :class:`Compute`; a full pass factorises the covariances once for each pattern."""

    def __init__(self, model: Any, source: Source, placement: Placement) -> None:
        super().__init__(model, source, placement)
        self.bound = model
        self._kept: Grouped | None = None

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for declared methods, else single iterations."""
        return mixture_loop(task)

    def _grouped(self) -> Iterable[Grouped]:
        """Return all rows: the rows of an array are kept, others are grouped part by part."""
        source, centre = self._source, self.bound.centre
        if not isinstance(source, ArraySource):
            return (grouped(part.y, part.weight, centre) for part in parts(source, 1))
        if self._kept is None:
            weight = NONE if source.weight is None else source.weight
            self._kept = grouped(source.y.reshape(source.n, -1), weight, centre)
        return [self._kept]

    def _in_pieces(self, do: Callable[..., Any], *common: Any) -> Iterator[Any]:
        """Yield ``do(rows, piece, first, *common)`` of all pieces; ``first`` is the first row's index."""
        first = 0
        for rows in self._grouped():
            work = [(rows, piece, first, *common) for piece in rows.pieces]
            with one_thread_blas(), closing(in_order(do, work)) as done:
                for found in done:
                    self._between_blocks()
                    yield found
            first += len(rows.order)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        if remember:
            return super()._pass(theta, remember)
        total, log_likelihood = np.zeros(self.bound.size), 0.0
        for s, value in self._in_pieces(self._sums, theta):
            total += s
            log_likelihood += value
        self.evaluations += self.n
        self._passed = theta, -log_likelihood
        return total / self._source.total_weight, None

    def _patterns(self, theta: Any, piece: Piece) -> tuple[Array, Conditionals, list[Coefficients]]:
        """Return the means minus the centre, θ given each pattern, and its coefficients."""
        means = theta.means - self.bound.centre
        given = conditionals(piece.patterns, theta.weights, means, self.bound.covariances(theta))
        return means, given, coefficients_of(given, means)

    def _sums(self, rows: Grouped, piece: Piece, first: int, theta: Theta) -> tuple[Array, float]:
        """Return the completed statistics of a piece, and its log-likelihood."""
        n_components, d = self.bound.n_components, self.bound.d
        means, given, coefficients = self._patterns(theta, piece)
        count, p = len(coefficients), d + d * (d + 1) // 2
        sums1, sums2 = np.zeros((count, n_components)), np.zeros((count, p, n_components))
        space, work = dense.Space(FULL, np.zeros(d), rows.reach), make_work(p, n_components, d)
        memory, log_likelihood = twin(np.empty((0, n_components))), 0.0
        for k, theta_k in enumerate(coefficients):
            here = slice(piece.edges[k], piece.edges[k + 1])
            samples = dense.Samples(twin(read_only(rows.z[here])), rows.weight[here])
            totals = dense.Totals(sums1[k], sums2[k], np.zeros((0, 0)), np.zeros(d))
            log_likelihood += dense.full_pass(samples, space, theta_k, memory, False, work, totals)[0]
        return self._flat(sums1, np.swapaxes(sums2, 1, 2), means, given), log_likelihood

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

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        return super().objective(theta)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        found = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for _ in self._in_pieces(self._evaluate, theta, found):
            pass
        return found

    def _evaluate(self, rows: Grouped, piece: Piece, first: int, theta: Theta, found: Evaluation) -> None:
        """Fill in the results of a piece."""
        n_components, d = self.bound.n_components, self.bound.d
        _, _, coefficients = self._patterns(theta, piece)
        space = dense.Space(FULL, np.zeros(d), rows.reach)
        work = make_work(d + d * (d + 1) // 2, n_components, d)
        for k, theta_k in enumerate(coefficients):
            here = slice(piece.edges[k], piece.edges[k + 1])
            count = here.stop - here.start
            results = dense.Results(
                np.empty(count),
                np.empty((0 if found.responsibilities is None else count, n_components)),
                np.empty(0 if found.labels is None else count, dtype=np.intp),
            )
            dense.evaluate(twin(read_only(rows.z[here])), space, theta_k, work, results)
            for all_rows, values in zip(found, results, strict=True):
                if all_rows is not None:
                    all_rows[first + rows.order[here]] = values
