"""Compiled E-steps of mixtures: full passes on all cores, and batches.

Logits are T(y)·φ + c, statistics r ⊗ T(y): see :class:`swiftem.mixture.components.BoundComponents`. The data
are divided into parts, which depend only on the source, and threads compute the sums of a part each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import numpy as np

from swiftem.core.algorithm import Loop, Task
from swiftem.core.compute import Evaluation, Placement
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.samples import NONE, Part, chunks, parts, plain, read_only
from swiftem.kernels.threads import in_order, one_thread_blas
from swiftem.mixture.components import BoundComponents, Coefficients, two_dimensional
from swiftem.mixture.compute import CHANNELS, CODES, COMPLETED, LINEAR
from swiftem.mixture.compute import passes_kernel as dense
from swiftem.mixture.compute.numpy import MixtureCompute, lower_triangle
from swiftem.mixture.compute.steps import mixture_loop
from swiftem.mixture.model import BoundMixture

__all__ = ["ChannelCompute", "PassesCompute", "passes"]

WORK = 1 << 21
"""Minimum number of operations for a thread."""
PLAIN = 64
"""Samples per block of E-steps in NumPy; a chunk has as many blocks."""


T = TypeVar("T")


def passes(model: BoundComponents, source: Source, placement: Placement) -> MixtureCompute:
    """Return compiled E-steps for this kind of T(y)."""
    if model.code == COMPLETED:
        from swiftem.mixture.compute.missing import CompletedCompute

        return CompletedCompute(model, source, placement)
    return (ChannelCompute if model.code == CHANNELS else PassesCompute)(model, source, placement)


class PassesCompute(MixtureCompute):
    """Compiled E-steps, whose results do not depend on the number of threads."""

    def __init__(self, model: BoundComponents, source: Source, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        n_components, width, self._levels = model.n_components, model.n_features, 0
        if model.code < LINEAR:
            width = len(model.origin) + model.d
        if model.code == CODES:
            self._levels = model.size // n_components - 1 - len(model.origin)
        # A part of rows with codes begins with a table of zeros, which is added to the others.
        self._least_rows = max(512, 2 * self._levels, WORK // (4 * n_components * (width + 8)))
        self._thread = threading.local()
        self._coefficients: list[tuple[Theta, Coefficients]] = []
        self._products: Array | None = None
        #: Σ w·log h(y), the same for every θ; the first full pass computes it.
        self._base: float | None = None

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for Gaussians and declared methods, else single iterations."""
        return mixture_loop(task)

    @property
    def _work(self) -> dense.Work:
        """The buffers of this thread."""
        if not hasattr(self._thread, "work"):
            p, n_components, d = self.bound.n_features, self.bound.n_components, len(self.bound.origin)
            self._thread.work = dense.make_work(p, n_components, d, self.bound.shares_products, self._levels)
        work: dense.Work = self._thread.work
        return work

    @property
    def _block(self) -> int:
        """Samples per block."""
        return len(self._work.largest)

    def _samples(self, y: Array, first: int, weight: Array) -> tuple[dense.Samples, Index | None]:
        """Return rows in the form of the kernel, and their codes; ``first`` is the index of the first one."""
        bound, rows = self.bound, two_dimensional(y)
        features, codes = bound.features(rows), None
        if self._levels:
            assert isinstance(bound, BoundMixture)
            codes = read_only(np.ascontiguousarray(bound.codes(rows, first).T))
            features = features.astype(np.float64, copy=False)
        return dense.Samples(dense.twin(plain(features)), weight, bound.code, bound.origin, self.reach), codes

    def _zeros(self, with_products: bool) -> dense.Totals:
        """Return the sums of no rows."""
        n_components, d = self.bound.n_components, len(self.bound.origin)
        further = (self._levels, n_components) if self._levels else (d, d) if with_products else (0, 0)
        features = np.zeros((self.bound.n_features, n_components))
        return dense.Totals(np.zeros(n_components), features, np.zeros(further), np.zeros(3), np.zeros(d))

    def _add(
        self, y: Array, first: int, weight: Array, theta: Coefficients, memory: Array, totals: dense.Totals
    ) -> None:
        """Add the statistics of rows to the totals; ``first`` is the index of the first one.

        Posterior rows go to the memory (b, R), unless it is (0, R); its rounded values are used.
        """
        samples, codes = self._samples(y, first, weight)
        dense.over_blocks(samples, codes, theta, self._work, memory=memory, totals=totals)

    def _fill(self, y: Array, first: int, theta: Coefficients, results: dense.Results) -> None:
        """Fill the results of rows; responsibilities may have R columns."""
        samples, codes = self._samples(y, first, NONE)
        dense.over_blocks(samples, codes, theta, self._work, results=results)

    def _flat(self, totals: dense.Totals) -> Array:
        """Return the model's statistics for these sums."""
        weights, features, further, *_ = totals
        if self._levels:
            return np.concatenate([weights, np.concatenate([features, further]).T.ravel()])
        d = len(self.bound.origin)
        squares = further[lower_triangle(d)] if self.bound.shares_products else features[d:].T
        return np.concatenate([weights, features[:d].T.ravel(), squares.ravel()])

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        rows = np.empty((len(batch.index), self.bound.row_length))
        results = dense.Results(np.empty(0), rows, np.empty(0, dtype=np.intp))
        self._fill(batch.y, 0, self._prepared(theta), results)
        return rows, results.log_likelihood

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        if rows.shape[1:] != (self.bound.row_length,):  # compiled code would not notice
            raise ValueError(f"rows must have {self.bound.row_length} columns, got shape {rows.shape}.")
        totals = self._zeros(self.bound.shares_products)
        samples, codes = self._samples(batch.y, 0, read_only(weight))
        no_theta = dense.NO_THETA if codes is None else dense.NO_CODED
        dense.over_blocks(samples, codes, no_theta, self._work, given=read_only(rows), totals=totals)
        return self._flat(totals)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        memory = self.allocate((self.n, self.bound.row_length), self.memory_dtype) if remember else None
        # Without a memory, the products of a shared covariance are the same for every θ.
        with_products = self.bound.shares_products and (remember or self._products is None)
        totals = self._zeros(with_products)
        for sums in self._over_parts(self._sums, self._prepared(theta), memory, with_products):
            for total, part in zip(totals[:-1], sums[:-1], strict=True):
                total += part
            np.maximum(totals.reach, sums.reach, out=totals.reach)
        log_likelihood, far_blocks, log_base = totals.logs.tolist()
        self.evaluations += self.n
        if self.bound.code >= LINEAR and np.isinf(self.reach).all():  # every block was checked
            self.reach = totals.reach
        if self.bound.shares_products:
            if self._products is not None and not remember:
                totals = totals._replace(further=self._products)
            elif not remember:
                self._products = totals.further
            factor = theta.precisions_cholesky  # Σ yᵀPy = tr P Σ yyᵀ
            log_likelihood -= 0.5 * float((factor * (totals.further @ factor)).sum())
        self._base = log_base if self._base is None else self._base
        loss = -log_likelihood - self._base
        self._passed = None if far_blocks and self.bound.shares_products else (theta, loss)
        return self._flat(totals) / self._source.total_weight, memory

    def _over_parts(self, function: Callable[..., T], *common: object) -> Iterator[T]:
        """Yield ``function(*common, part)`` of the parts of a pass, computed by several threads."""
        all_parts = parts(self._source, self._least_rows)
        work = ((*common, part) for part in all_parts)
        with (
            one_thread_blas(),
            closing(in_order(function, list(work) if isinstance(all_parts, list) else work)) as done,
        ):
            for result in done:
                self._between_blocks()
                yield result

    def _sums(
        self, theta: Coefficients, memory: Array | None, with_products: bool, part: Part
    ) -> dense.Totals:
        """Return the sums of a part of the rows; Σ w·log h(y) only if it is unknown."""
        totals = self._zeros(with_products)
        remembered = np.empty((0, self.bound.row_length)) if memory is None else memory[part.here]
        for here in chunks(len(part.y), self._block):
            first, y, weight = part.first + here.start, part.y[here], part.weight[here]
            base = self.bound.log_base(y, first) if self._base is None else None
            if base is not None:
                totals.logs[2] += base @ weight if len(weight) else base.sum()
            self._add(y, first, weight, theta, remembered[here], totals)
        return totals

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is not None and self._passed[0] is theta:
            return super().objective(theta)
        log_likelihood = sum(self._over_parts(self._log_likelihood, self._prepared(theta)))
        return self._model.penalty(theta) - log_likelihood / self._source.total_weight

    def extent(self) -> tuple[Array, float]:
        """Return the reach of the features (p,), and the mean of log h(y)."""
        return self.reach, 0.0 if self._base is None else self._base / self._source.total_weight

    def set_extent(self, reach: Array, base: float) -> None:
        """Set the reach of the features, and the mean of log h(y)."""
        self.reach, self._base = reach, base * self._source.total_weight

    def _log_likelihood(self, theta: Coefficients, part: Part) -> float:
        """Return Σ weight · log g(y) over the samples of a part."""
        results = Evaluation(np.empty(len(part.y)), None, None)
        self._evaluate_part(theta, results, part.first, part)
        values = results.log_likelihood
        return float(values @ part.weight if len(part.weight) else values.sum())

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        results = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for _ in self._over_parts(self._evaluate_part, self._prepared(theta), results, 0):
            pass
        return results

    def _evaluate_part(self, theta: Coefficients, results: Evaluation, offset: int, part: Part) -> None:
        """Fill in the results of a part; the first of them belongs to sample number ``offset``."""
        rows, labels = results.responsibilities, results.labels
        for here in chunks(len(part.y), self._block):
            first = part.first + here.start
            places = slice(first - offset, first - offset + here.stop - here.start)
            values = results.log_likelihood[places]
            wanted = dense.Results(
                values,
                np.empty((0, self.bound.n_components)) if rows is None else rows[places],
                np.empty(0, dtype=np.intp) if labels is None else labels[places],
            )
            base = self.bound.log_base(part.y[here], first)
            self._fill(part.y[here], first, theta, wanted)
            if base is not None:
                values += base

    def _prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ), cached for the last two θ: a method's current one and its anchor."""
        for known, found in self._coefficients:
            if known is theta:
                return found
        coefficients: Coefficients = self.bound.coefficients(theta)
        self._coefficients = [(theta, coefficients), *self._coefficients[:1]]
        return coefficients


class ChannelCompute(PassesCompute):
    """The family's own E-steps, in NumPy, on all cores."""

    bound: BoundMixture
    _block = PLAIN

    def _zeros(self, with_products: bool) -> dense.Totals:
        none = np.empty((0, 0))
        return dense.Totals(np.zeros(self.bound.size), none, none, np.zeros(3), np.empty(0))

    def _add(
        self, y: Array, first: int, weight: Array, theta: Theta, memory: Array, totals: dense.Totals
    ) -> None:
        rows, log_likelihood = self.bound.e_step(y, theta)
        if len(memory):
            memory[:] = rows
            rows = memory.astype(np.float64)
        weight = weight if len(weight) else np.ones(len(y))
        totals.weights[:] += self.bound.statistics(Batch(y, weight, np.arange(len(y))), rows, weight)
        totals.logs[0] += log_likelihood @ weight

    def _fill(self, y: Array, first: int, theta: Theta, results: dense.Results) -> None:
        rows, log_likelihood = self.bound.e_step(two_dimensional(y), theta)
        results.log_likelihood[:] = log_likelihood[: len(results.log_likelihood)]
        if len(results.responsibilities):
            results.responsibilities[:] = rows[:, : results.responsibilities.shape[1]]
        if len(results.labels):
            results.labels[:] = rows[:, : self.bound.n_components].argmax(axis=1)

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return self.bound.statistics(batch, rows, weight)

    def _flat(self, totals: dense.Totals) -> Array:
        return totals.weights
