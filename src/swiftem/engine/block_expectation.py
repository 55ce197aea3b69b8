"""E-steps of mixtures, compiled: full passes by all cores, and batches.

Logits are T(y)·φ + c, statistics r ⊗ T(y): see :class:`swiftem.models.components.BoundComponents`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source
from swiftem.engine.expectation import Evaluation, Expectation
from swiftem.engine.numba import gaussian_blocks as blocks
from swiftem.engine.numba import gaussian_passes as kernels
from swiftem.engine.numba.gaussian_blocks import twin
from swiftem.engine.parts import Part, chunks, is_served, parts, plain
from swiftem.engine.threads import in_order, one_thread_blas
from swiftem.models.components import BoundComponents, Coefficients

__all__ = ["BlockExpectation"]

WORK = 1 << 21
"""Operations below which a piece is not worth a thread."""


class BlockExpectation(Expectation):
    """As :class:`Expectation`, with compiled E-steps that give the same at any number of threads."""

    def __init__(self, model: BoundComponents, source: Source, between_blocks: Any) -> None:
        super().__init__(model, source, between_blocks)
        self.bound = model
        self._sizes = model.code, model.n_components, len(model.centre)
        per_sample = 4 * self._sizes[1] * (blocks.columns(self._sizes[0], self._sizes[2]) + 8)
        self._least_rows = max(512, WORK // per_sample)
        self._local = threading.local()
        self._coefficients: list[tuple[Theta, Coefficients]] = []
        self._products: Array | None = None
        #: How far samples are from the centre, in each direction; the first full pass finds it.
        self.reach = np.full(self._sizes[2], np.inf)
        self._last: tuple[Theta, float] | None = None
        self._base: float | None = None

    @classmethod
    def of(cls, model: Any, source: Source, between_blocks: Any) -> BlockExpectation | None:
        """Return one where model and source are of the kinds that this is for."""
        if isinstance(model, BoundComponents) and is_served(source):
            return cls(model, source, between_blocks)
        return None

    def _features(self, y: NDArray[Any]) -> NDArray[Any]:
        return plain(self.bound.features(y if y.ndim > 1 else y[:, None]))

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        n_components, none = self._sizes[1], np.empty(0)
        rows = np.empty((len(batch.index), n_components))
        kernels.evaluate(
            twin(self._features(batch.y)), self.bound.centre, self.reach, self._sizes[0],
            self._prepared(theta), self._work(), none, rows, none.astype(np.intp),
        )  # fmt: skip
        return rows, none

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        if rows.shape[1:] != (self._sizes[1],):  # compiled code would not notice
            raise ValueError(f"rows must have {self._sizes[1]} columns, got shape {rows.shape}.")
        totals = self._totals()
        kernels.statistics(
            twin(self._features(batch.y)),
            self.bound.centre,
            self._sizes[0],
            rows,
            weight,
            self._work(),
            *totals,
        )
        return self._flat(*totals)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        code, n_components, _ = self._sizes
        memory = self.allocate((self.n, n_components), self.memory_dtype) if remember else None
        # Without a memory, what "tied" has of products is the same for every θ.
        tied = code == blocks.TIED
        with_products = tied and (remember or self._products is None)
        prepared, totals, loss, near = self._prepared(theta), self._totals(), 0.0, True
        work = self._work_on(prepared, memory, with_products)
        reach = np.zeros(self._sizes[2])
        with one_thread_blas(), closing(in_order(self._piece, work)) as done:
            for sums, log_likelihood, all_near, found in done:
                self._between_blocks()
                for total, part in zip(totals, sums, strict=True):
                    total += part
                loss -= log_likelihood
                near &= all_near
                np.maximum(reach, found, out=reach)
        if np.isinf(self.reach).all():  # every block was looked at
            self.reach = reach
        if tied and with_products and not remember:
            self._products = totals[2]
        elif tied and not with_products:
            assert self._products is not None
            totals = (*totals[:2], self._products)
        self.evaluations += self.n
        self._last = None
        if not tied:
            self._last = theta, loss / self._source.total_weight
        elif near:  # Σ yᵀPy = tr P Σ yyᵀ
            factor = theta.precisions_cholesky
            loss += 0.5 * float((factor * (totals[2] @ factor)).sum())
            self._last = theta, loss / self._source.total_weight
        return self._flat(*totals) / self._source.total_weight, memory

    def _work_on(self, *common: Any) -> Iterable[tuple[Any, ...]]:
        """Return the parts of a pass, each with what all of them need."""
        found = parts(self._source, self._least_rows)
        if isinstance(found, list):
            return [(*common, part) for part in found]
        return ((*common, part) for part in found)

    def _piece(
        self, prepared: Coefficients, memory: Array | None, with_products: bool, part: Part
    ) -> tuple[tuple[Array, Array, Array], float, bool, Array]:
        code, n_components, d = self._sizes
        found = np.zeros(d)
        totals, work, loss, near = self._totals(), self._work(), 0.0, True
        remembered = np.empty((0, n_components)) if memory is None else memory[part.here]
        for here in chunks(len(part.y), len(work.largest)):
            log_likelihood, all_near = kernels.full_pass(
                twin(self._features(part.y[here])), part.weight[here], self.bound.centre, self.reach, code,
                prepared, twin(remembered[here]), with_products, work, found, *totals,
            )  # fmt: skip
            loss += log_likelihood
            near &= all_near
        return totals, loss, near, found

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free where the last full pass was at this θ."""
        if self._last is not None and self._last[0] is theta:
            return self._model.penalty(theta) + self._last[1] - self._mean_base()
        total, prepared = 0.0, self._prepared(theta)
        with one_thread_blas(), closing(in_order(self._log_likelihood, self._work_on(prepared))) as done:
            for log_likelihood in done:
                self._between_blocks()
                total += log_likelihood
        return self._model.penalty(theta) - total / self._source.total_weight

    def _mean_base(self) -> float:
        """Return the weighted mean of log h(y): the same for every θ, and found once."""
        if self._base is None:
            with closing(in_order(self._base_of, self._work_on())) as done:
                self._base = sum(done) / self._source.total_weight
        return self._base

    def _base_of(self, part: Part) -> float:
        total = 0.0
        for here in chunks(len(part.y), len(self._work().largest)):
            base = self.bound.log_base(part.y[here], part.first + here.start)
            if base is None:
                return 0.0
            total += float(base @ part.weight[here] if len(part.weight) else base.sum())
        return total

    def _log_likelihood(self, prepared: Coefficients, part: Part) -> float:
        """Return Σ weight · log g(y) over the samples of a part."""
        found = Evaluation(np.empty(len(part.y)), None, None)
        self._evaluate_piece(prepared, found, 0, part)
        return float(found.log_likelihood @ part.weight if len(part.weight) else found.log_likelihood.sum())

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; on request responsibilities or likeliest components."""
        n_components = self._sizes[1]
        found = Evaluation(
            np.empty(self.n),
            np.empty((self.n, n_components)) if responsibilities else None,
            np.empty(self.n, dtype=np.intp) if labels else None,
        )
        prepared = self._prepared(theta)
        work = ((prepared, found, item[0].first, *item) for item in self._work_on())
        with one_thread_blas(), closing(in_order(self._evaluate_piece, work)) as done:
            for _ in done:
                self._between_blocks()
        return found

    def _evaluate_piece(self, prepared: Coefficients, found: Evaluation, first: int, part: Part) -> None:
        """Fill ``found`` from place ``first`` on."""
        work = self._work()
        for here in chunks(len(part.y), len(work.largest)):
            there = slice(first + here.start, first + here.stop)
            rows = found.responsibilities
            kernels.evaluate(
                twin(self._features(part.y[here])), self.bound.centre, self.reach, self._sizes[0], prepared,
                work, found.log_likelihood[there],
                np.empty((0, self._sizes[1])) if rows is None else rows[there],
                np.empty(0, dtype=np.intp) if found.labels is None else found.labels[there],
            )  # fmt: skip
            base = self.bound.log_base(part.y[here], part.first + here.start)
            if base is not None:
                found.log_likelihood[there] += base

    def _prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ); of the last two θ it is kept: a method's current one and its anchor."""
        for known, coefficients in self._coefficients:
            if known is theta:
                return coefficients
        coefficients = self.bound.coefficients(theta)
        self._coefficients = [(theta, coefficients), *self._coefficients[:1]]
        return coefficients

    def _totals(self) -> tuple[Array, Array, Array]:
        code, n_components, d = self._sizes
        return (
            np.zeros(n_components),
            np.zeros((blocks.columns(code, d), n_components)),
            np.zeros((d, d) if code == blocks.TIED else (0, 0)),
        )

    def _flat(self, sums1: Array, sums2: Array, products: Array) -> Array:
        """Return statistics as the model has them."""
        d = self._sizes[2]
        squares = products[np.tril_indices(d)] if len(products) else sums2[d:].T
        return np.concatenate([sums1, sums2[:d].T.ravel(), squares.ravel()])

    def _work(self) -> blocks.Work:
        """Return the buffers of this thread."""
        found: blocks.Work | None = getattr(self._local, "work", None)
        if found is None:
            found = self._local.work = blocks.make_work(*self._sizes)
        return found
