r"""E-steps of full and tied covariances for rows with missing cells, fast.

Rows of a pattern, with zeros in missing cells, have logits T(z)·φ with coefficients of the pattern, so that
the compiled pass over full covariances gives their sums :math:`S_0 = \sum r`, :math:`S_1 = \sum r z` and
:math:`S_2 = \sum r z z^T`. As :math:`\hat z = G z + c`, c = μ − Gμ, the completed statistics of all rows of a
pattern are

.. math:: \sum r \hat z = G S_1 + S_0 c, \qquad
   \sum r (\hat z \hat z^T + C) = G S_2 G^T + G S_1 c^T + c (G S_1)^T + S_0 (c c^T + C).

The definition is :func:`swiftem.engine.reference.missing_cells.completed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.source import Source
from swiftem.engine.expectation import NONE, Evaluation, is_served, parts, read_only
from swiftem.engine.missing.completed_rows import CompletedRows
from swiftem.engine.missing.patterns import Grouped, Piece, conditionals, grouped
from swiftem.engine.numba import gaussian_blocks as blocks
from swiftem.engine.numba import gaussian_passes as kernels
from swiftem.engine.numba.gaussian_blocks import twin
from swiftem.engine.reference.gaussian_components import lower_triangle
from swiftem.engine.threads import in_order, one_thread_blas
from swiftem.models.completed_gaussians import CompletedGaussians

__all__ = ["CompletedExpectation"]


class CompletedExpectation(CompletedRows):
    """As :class:`Expectation`; a full pass factorises the covariances once for each pattern."""

    def __init__(self, model: CompletedGaussians, source: Source) -> None:
        super().__init__(model, source)
        self._kept: Grouped | None = None

    @classmethod
    def of(cls, model: Any, source: Source) -> CompletedExpectation | None:
        """Return one if the source is of a supported kind."""
        return cls(model, source) if is_served(source) else None

    def _grouped(self) -> Iterable[Grouped]:
        """Return all rows: those of an array are kept, others are grouped part by part."""
        source, centre = self._source, self.bound.centre
        if not isinstance(source, ArraySource):
            return (grouped(part.y, part.weight, centre) for part in parts(source, 1))
        if self._kept is None:
            weight = NONE if source.weight is None else source.weight
            self._kept = grouped(source.y.reshape(source.n, -1), weight, centre)
        return [self._kept]

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        if remember:
            return super()._pass(theta, remember)
        total, log_likelihood = np.zeros(self.bound.size), 0.0
        for rows in self._grouped():
            work = [(theta, rows, piece) for piece in rows.pieces]
            with one_thread_blas(), closing(in_order(self._sums, work)) as done:
                for s, value in done:
                    self._between_blocks()
                    total += s
                    log_likelihood += value
        self.evaluations += self.n
        self._passed = theta, -log_likelihood
        return total / self._source.total_weight, None

    def _sums(self, theta: Theta, rows: Grouped, piece: Piece) -> tuple[Array, float]:
        """Return the completed statistics of a piece, and its log-likelihood."""
        bound = self.bound
        means, d, n_components = theta.means - bound.centre, bound.d, bound.n_components
        given = conditionals(piece.patterns, theta.weights, means, bound.covariances(theta))
        count, p = len(piece.patterns), blocks.columns(blocks.FULL, d)
        sums1, sums2 = np.zeros((count, n_components)), np.zeros((count, p, n_components))
        work, none, log_likelihood = blocks.make_work(blocks.FULL, n_components, d), np.zeros((0, 0)), 0.0
        reach = np.zeros(d)
        for k, coefficients in enumerate(given.coefficients(means)):
            here = slice(piece.edges[k], piece.edges[k + 1])
            log_likelihood += kernels.full_pass(
                twin(read_only(rows.z[here])), rows.weight[here], np.zeros(d),
                rows.reach, blocks.FULL, coefficients, twin(np.empty((0, n_components))), False, work, reach,
                sums1[k], sums2[k], none,
            )[0]  # fmt: skip
        return self._flat(sums1, np.swapaxes(sums2, 1, 2), means, given), log_likelihood

    def _flat(self, sums1: Array, sums2: Array, means: Array, given: Any) -> Array:
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
        if self.bound.kind.name == "tied":
            squares = squares.sum(axis=0)
        sums = (first + sums1[..., None] * away).sum(axis=0)
        return np.concatenate([sums1.sum(axis=0), sums.ravel(), squares.ravel()])

    def _loss(self, theta: Theta) -> float:
        before = self.evaluations
        self._pass(theta, remember=False)
        self.evaluations = before
        assert self._passed is not None
        return self._passed[1]

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        found, first = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels), 0
        for rows in self._grouped():
            work = [(theta, rows, piece, found, first) for piece in rows.pieces]
            with one_thread_blas(), closing(in_order(self._evaluated, work)) as done:
                for _ in done:
                    self._between_blocks()
            first += len(rows.order)
        return found

    def _evaluated(self, theta: Theta, rows: Grouped, piece: Piece, found: Evaluation, first: int) -> None:
        """Fill in the results of a piece; ``first`` is the index of the first of these rows in the data."""
        bound = self.bound
        means, d, n_components = theta.means - bound.centre, bound.d, bound.n_components
        given = conditionals(piece.patterns, theta.weights, means, bound.covariances(theta))
        work = blocks.make_work(blocks.FULL, n_components, d)
        for k, coefficients in enumerate(given.coefficients(means)):
            here = slice(piece.edges[k], piece.edges[k + 1])
            there, count = first + rows.order[here], piece.edges[k + 1] - piece.edges[k]
            values = np.empty(count)
            r = np.empty((0 if found.responsibilities is None else count, n_components))
            best = np.empty(0 if found.labels is None else count, dtype=np.intp)
            kernels.evaluate(
                twin(read_only(rows.z[here])), np.zeros(d), rows.reach, blocks.FULL, coefficients, work,
                values, r, best,
            )  # fmt: skip
            found.log_likelihood[there] = values
            if found.responsibilities is not None:
                found.responsibilities[there] = r
            if found.labels is not None:
                found.labels[there] = best
