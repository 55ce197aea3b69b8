"""Compiled E-steps of mixtures: full passes on all cores, and batches.

Logits are T(y)·φ + c, statistics r ⊗ T(y): see :class:`swiftem.mixture.components.BoundComponents`. The data
are divided into parts, which depend only on the source, and threads compute the sums of a part each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from swiftem.core.algorithm import Algorithm1, Loop, Task
from swiftem.core.compute import Evaluation, Placement
from swiftem.core.method import declared
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta
from swiftem.kernels.threads import NONE, Part, chunks, one_thread_blas, parts, plain, read_only
from swiftem.mixture.components import BoundComponents, Coefficients, two_dimensional
from swiftem.mixture.compute.numpy import CHANNELS, CODES, COMPLETED, LINEAR, MixtureCompute, lower_triangle
from swiftem.mixture.compute.passes_kernel import NO_ROWS, Outputs, Samples, Twin, Work, blocks
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.model import BoundMixture, CodeCoefficients

WORK = 1 << 21
"""Minimum number of operations for a thread."""
PLAIN = 64
"""Samples per block of E-steps in NumPy; a chunk has as many blocks."""
NUMBERS = 49_152
"""Numbers per block that go through the second-level cache."""
BLOCK, LARGE_BLOCK = 16_384, 65_536
"""Responsibilities per block of samples with codes, for small and for large tables: both fit into a cache."""
LARGE_TABLE = 32_768
"""Number of entries from which a table of codes is large."""
PRODUCT = 1_000_000
"""Up to this many multiplications OpenBLAS copies no arguments: 57 instead of 42 GFlop/s (measured)."""

NO_THETA = Coefficients(*(np.empty((0,) * ndim) for ndim in (2, 1, 2, 1, 3, 2)))
NO_CODED = CodeCoefficients(NO_ROWS, np.empty(0), NO_ROWS)
NOT_GIVEN = read_only(NO_ROWS)

T = TypeVar("T")


def passes(model: BoundComponents, source: Source, placement: Placement) -> MixtureCompute:
    """Return compiled E-steps for this kind of T(y)."""
    if model.code == COMPLETED:
        from swiftem.mixture.compute.missing import CompletedCompute

        return CompletedCompute(model, source, placement)
    return (ChannelCompute if model.code == CHANNELS else PassesCompute)(model, source, placement)


def mixture_loop(task: Task) -> Loop:
    """Return compiled stretches for Gaussians and declared methods, else single iterations.

    These have one thread of BLAS: for batches, more threads cost more than they gain.
    """
    update, model, y = declared(task.method), task.model, task.source.rows_in_memory
    if update is None or not isinstance(model, BoundGaussians):
        return Algorithm1(task, one_thread_blas)
    if not model.kind.is_estimated and task.method.batch_size == 1:
        from swiftem.mixture.compute.one_sample import OneSampleLoop

        return OneSampleLoop(task, update)
    if y is not None and (not y.flags.c_contiguous or y.dtype not in (np.float32, np.float64)):
        # Each kind of array would be four more kernels to compile, and a copy would double the memory.
        return Algorithm1(task, one_thread_blas)
    from swiftem.mixture.compute.steps import StepsLoop

    return StepsLoop(task, update)


def make_work(p: int, n_components: int, d: int, with_products: bool = False, levels: int = 0) -> Work:
    """Return buffers for blocks of a size suitable for p entries of T(y), or for codes of ``levels`` levels.

    ``with_products``: components share a sum of products yyᵀ.

    >>> len(make_work(152, n_components=20, d=16).largest)
    248
    """
    # Rows of a power of two of bytes would map to the same cache sets.
    b = min(max(NUMBERS // (min(p, 192) + 2 * n_components) // 64 * 64, 128), 512) - 8
    if levels:
        b = max(64, (LARGE_BLOCK if levels * n_components > LARGE_TABLE else BLOCK) // n_components)
    parts = max(1, -(-p // max(PRODUCT // (n_components * b), 64)))
    k, products, rows = -(-p // parts), d if with_products else 0, n_components * b
    sums = n_components, (p, n_components), (products, products)
    shapes = d * b, k * b, rows, rows, rows, d * b, d * b, b, b, d, *sums
    return Work(*(np.empty(shape) for shape in shapes))


def twin(array: Array) -> Twin:
    """Return an array (n, d) as float64 and as float32: the one that it is not has no rows.

    >>> [part.shape for part in twin(np.ones((3, 2), dtype=np.float32))]
    [(0, 2), (3, 2)]
    """
    is_double = array.dtype == np.float64
    empty = np.empty((0, array.shape[1]), dtype=np.float32 if is_double else np.float64)
    empty.flags.writeable = array.flags.writeable
    return (array, empty) if is_double else (empty, array)


def outputs_at(results: Evaluation, places: slice) -> Outputs:
    """Return some places of the results as the kernel fills them."""
    log_likelihood, responsibilities, labels = results
    out = Outputs(np.zeros(3), log_likelihood=log_likelihood[places])
    if responsibilities is not None:
        out = out._replace(responsibilities=responsibilities[places])
    return out if labels is None else out._replace(labels=labels[places])


class _OfThread(threading.local):
    """The buffers of a thread, made when it first needs them."""

    work: Work | None = None


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
        self._thread = _OfThread()
        self._coefficients: list[tuple[Theta, Coefficients]] = []
        self._products: Array | None = None
        #: Σ w·log h(y), the same for every θ; the first full pass computes it.
        self._base: float | None = None

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for Gaussians and declared methods, else single iterations."""
        return mixture_loop(task)

    @property
    def _work(self) -> Work:
        """The buffers of this thread."""
        if self._thread.work is None:
            p, n_components, d = self.bound.n_features, self.bound.n_components, len(self.bound.origin)
            self._thread.work = make_work(p, n_components, d, self.bound.shares_products, self._levels)
        return self._thread.work

    @property
    def _block(self) -> int:
        """Samples per block."""
        return len(self._work.largest)

    def _zeros(self, with_products: bool) -> Outputs:
        """Return the sums of no rows."""
        n_components, d = self.bound.n_components, len(self.bound.origin)
        further = (self._levels, n_components) if self._levels else (d, d) if with_products else (0, 0)
        features = np.zeros((self.bound.n_features, n_components))
        return Outputs(np.zeros(3), np.zeros(n_components), features, np.zeros(further), np.zeros(d))

    def _over_rows(
        self,
        y: Array,
        first: int,
        weight: Array,
        theta: Coefficients | CodeCoefficients | None,
        out: Outputs,
        given: Array = NOT_GIVEN,
    ) -> None:
        """E-step of rows, from sample number ``first`` on, unless posterior rows (n, R) are ``given``.

        Responsibilities of ``out`` may have R columns.
        """
        bound, rows = self.bound, two_dimensional(y)
        features = bound.features(rows)
        if not self._levels:
            data = Samples(twin(plain(features)), weight, bound.code, bound.origin, self.reach)
            blocks(data, NO_THETA if theta is None else theta, None, given, self._work, out)
            return
        assert isinstance(bound, BoundMixture)
        codes = read_only(np.ascontiguousarray(bound.codes(rows, first).T))
        features = plain(features.astype(np.float64, copy=False))
        data = Samples(twin(features), weight, bound.code, bound.origin, self.reach)
        blocks(data, None, (codes, NO_CODED if theta is None else theta), given, self._work, out)

    def _flat(self, totals: Outputs) -> Array:
        """Return the model's statistics for these sums."""
        _, weights, features, further, *_ = totals
        if self._levels:
            return np.concatenate([weights, np.concatenate([features, further]).T.ravel()])
        d = len(self.bound.origin)
        squares = further[lower_triangle(d)] if self.bound.shares_products else features[d:].T
        return np.concatenate([weights, features[:d].T.ravel(), squares.ravel()])

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        rows = np.empty((len(batch.index), self.bound.row_length))
        out = Outputs(np.zeros(3), responsibilities=rows)
        self._over_rows(batch.y, 0, NONE, self._prepared(theta), out)
        return rows, np.empty(0)

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        if rows.shape[1:] != (self.bound.row_length,):  # compiled code would not notice
            raise ValueError(f"rows must have {self.bound.row_length} columns, got shape {rows.shape}.")
        totals = self._zeros(self.bound.shares_products)
        self._over_rows(batch.y, 0, read_only(weight), None, totals, read_only(rows))
        return self._flat(totals)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        memory = self.allocate((self.n, self.bound.row_length), self.memory_dtype) if remember else None
        # Without a memory, the products of a shared covariance are the same for every θ.
        with_products = self.bound.shares_products and (remember or self._products is None)
        totals = self._zeros(with_products)
        for sums in self._over_parts(self._sums, self._prepared(theta), memory, with_products):
            for total, part in zip(totals[:4], sums[:4], strict=True):
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
        """Return ``function(*common, part)`` of the parts of a pass, computed by several threads."""
        all_parts = parts(self._source, self._least_rows)
        work = ((*common, part) for part in all_parts)
        return self._in_order(function, list(work) if isinstance(all_parts, list) else work)

    def _sums(self, theta: Coefficients, memory: Array | None, with_products: bool, part: Part) -> Outputs:
        """Return the sums of a part of the rows; Σ w·log h(y) only if it is unknown."""
        totals = self._zeros(with_products)
        for here in chunks(len(part.y), self._block):
            first, y, weight = part.first + here.start, part.y[here], part.weight[here]
            base = self.bound.log_base(y, first) if self._base is None else None
            if base is not None:
                totals.logs[2] += base @ weight if len(weight) else base.sum()
            out = totals if memory is None else totals._replace(memory=twin(memory[part.here][here]))
            self._over_rows(y, first, weight, theta, out)
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
        for here in chunks(len(part.y), self._block):
            first = part.first + here.start
            out = outputs_at(results, slice(first - offset, first - offset + here.stop - here.start))
            self._over_rows(part.y[here], first, NONE, theta, out)
            base = self.bound.log_base(part.y[here], first)
            if base is not None:
                out.log_likelihood[:] += base

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

    def _zeros(self, with_products: bool) -> Outputs:
        return Outputs(np.zeros(3), np.zeros(self.bound.size))

    def _over_rows(
        self, y: Array, first: int, weight: Array, theta: Theta, out: Outputs, given: Array = NOT_GIVEN
    ) -> None:
        rows, log_likelihood = self.bound.e_step(two_dimensional(y), theta)
        for memory in out.memory:
            if len(memory):
                memory[:] = rows
                rows = memory.astype(np.float64)
        if len(out.weights):
            weight = weight if len(weight) else np.ones(len(y))
            out.weights[:] += self.bound.statistics(Batch(y, weight, np.arange(len(y))), rows, weight)
            out.logs[0] += log_likelihood @ weight
        if len(out.log_likelihood):
            out.log_likelihood[:] = log_likelihood
        if len(out.responsibilities):
            out.responsibilities[:] = rows[:, : out.responsibilities.shape[1]]
        if len(out.labels):
            out.labels[:] = rows[:, : self.bound.n_components].argmax(axis=1)

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return self.bound.statistics(batch, rows, weight)

    def _flat(self, totals: Outputs) -> Array:
        return totals.weights
