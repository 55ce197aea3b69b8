"""Compiled E-steps of mixtures: full passes on all cores, and batches.

Logits are T(y)·φ + c, statistics r ⊗ T(y): see :class:`swiftem.mixture.components.BoundComponents`. The three
ways to compute them on consecutive rows are :class:`DensePasses`, :class:`CodePasses` and
:class:`ChannelPasses`; :class:`PassesCompute` divides the data between threads.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Loop, Task
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta
from swiftem.data.parts import NONE, Part, chunks, parts, plain, read_only
from swiftem.kernels.threads import in_order, one_thread_blas
from swiftem.mixture.components import BoundComponents, Coefficients
from swiftem.mixture.compute import CHANNELS, CODES
from swiftem.mixture.compute import codes_kernel as coded
from swiftem.mixture.compute import passes_kernel as dense
from swiftem.mixture.compute.blocks_kernel import make_work, twin
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.compute.steps import mixture_loop
from swiftem.mixture.model import BoundMixture
from swiftem.mixture.rows import two_dimensional

__all__ = ["PassesCompute"]

WORK = 1 << 21
"""Minimum number of operations for a thread."""
PLAIN = 64
"""Samples per block of E-steps in NumPy; a chunk has as many blocks."""

NO_THETA = Coefficients(*(np.empty((0,) * ndim) for ndim in (2, 1, 2, 1, 3, 2)))
"""For kernels that take θ where it is not read."""


@dataclass
class Sums:
    """Sums over rows; the sums of two parts add up to the sums of both.

    Attributes
    ----------
    totals : tuple of ndarray
        Statistics, in the form of the passes.
    log_likelihood : float
        Σ w·log g, without log h(y), and for "tied" without −½ yᵀPy if rows are near.
    near : bool
        Whether all rows were near enough for expanded squares.
    reach : ndarray, shape (d,)
        Distance from the centre, in each direction, of the rows that were checked.
    """

    totals: tuple[Array, ...]
    reach: Array
    log_likelihood: float = 0.0
    near: bool = True

    def add(self, other: Sums) -> None:
        """Add the sums of other rows."""
        for total, part in zip(self.totals, other.totals, strict=True):
            total += part
        self.log_likelihood += other.log_likelihood
        self.near &= other.near
        np.maximum(self.reach, other.reach, out=self.reach)


class Passes(ABC):
    """E-steps of consecutive rows at φ(θ), for one kind of T(y).

    Attributes
    ----------
    reach : ndarray, shape (p,)
        Distance of the data from the centre, in each direction; infinite until it is known.
    """

    def __init__(self, bound: BoundComponents) -> None:
        self.bound = bound
        self.reach = np.full(len(bound.origin), np.inf)
        self._of_thread = threading.local()

    @property
    @abstractmethod
    def width(self) -> int:
        """Operations of a row and a component in addition to an exponential."""

    @property
    def least_rows(self) -> int:
        """Fewest rows of a part, whatever the work."""
        return 512

    @property
    def block(self) -> int:
        """Samples per block."""
        return len(self.work.largest)

    @property
    def work(self) -> Any:
        """The buffers of this thread."""
        if not hasattr(self._of_thread, "work"):
            self._of_thread.work = self._make_work()
        return self._of_thread.work

    def _make_work(self) -> Any:
        """Return buffers for one thread."""
        raise NotImplementedError

    @abstractmethod
    def zeros(self) -> Sums:
        """Return the sums of no rows."""

    @abstractmethod
    def add(self, y: NDArray[Any], first: int, weight: Array, theta: Any, memory: Array, sums: Sums) -> None:
        """Add the statistics of rows to the sums; ``first`` is the index of the first one.

        Posterior rows go to the memory (b, R), unless it is (0, R); its rounded values are used.
        """

    def begin(self, remember: bool) -> None:
        """Prepare for a full pass, which writes posterior rows to a memory or not."""
        return

    def end(self, theta: Any, sums: Sums, remember: bool) -> float | None:
        """Complete the sums over all rows; return minus their log-likelihood, None if it is not known."""
        return -sums.log_likelihood

    @abstractmethod
    def evaluate(self, y: NDArray[Any], first: int, theta: Any, results: dense.Results) -> None:
        """Fill the results of rows; responsibilities may have R columns."""

    @abstractmethod
    def statistics(self, y: NDArray[Any], rows: Array, weight: Array) -> Array:
        """Return Σ weight_i S(rows_i, y_i), flat."""

    @abstractmethod
    def flat(self, totals: tuple[Array, ...]) -> Array:
        """Return Σ w·s(y), flat, in the model's form."""


class DensePasses(Passes):
    """T(y) as a matrix: all kinds of covariance, and families without codes."""

    def __init__(self, bound: BoundComponents) -> None:
        super().__init__(bound)
        self._with_products = bound.shares_products
        self._products: Array | None = None

    @property
    def width(self) -> int:
        return self.bound.n_features

    def _make_work(self) -> Any:
        bound = self.bound
        return make_work(bound.n_features, bound.n_components, len(bound.origin), bound.shares_products)

    @property
    def _space(self) -> dense.Space:
        return dense.Space(self.bound.code, self.bound.origin, self.reach)

    def _samples(self, y: NDArray[Any], weight: Array) -> dense.Samples:
        return dense.Samples(twin(plain(self.bound.features(two_dimensional(y)))), weight)

    def zeros(self) -> Sums:
        n_components, d = self.bound.n_components, len(self.bound.origin)
        products = np.zeros((d, d) if self.bound.shares_products else (0, 0))
        features = np.zeros((self.bound.n_features, n_components))
        return Sums((np.zeros(n_components), features, products), np.zeros(d))

    @staticmethod
    def _totals(sums: Sums) -> dense.Totals:
        weights, features, products = sums.totals
        return dense.Totals(weights, features, products, sums.reach)

    def begin(self, remember: bool) -> None:
        """Without a memory, the products of "tied" are the same for every θ."""
        self._with_products = self.bound.shares_products and (remember or self._products is None)

    def add(self, y: NDArray[Any], first: int, weight: Array, theta: Any, memory: Array, sums: Sums) -> None:
        samples, totals = self._samples(y, weight), self._totals(sums)
        log_likelihood, near = dense.full_pass(
            samples, self._space, theta, twin(memory), self._with_products, self.work, totals
        )
        sums.log_likelihood += log_likelihood
        sums.near &= near

    def end(self, theta: Any, sums: Sums, remember: bool) -> float | None:
        """Keep the reach, and the products of "tied", which then give the log-likelihood."""
        if np.isinf(self.reach).all():  # every block was checked
            self.reach = sums.reach
        if not self.bound.shares_products:
            return -sums.log_likelihood
        if not self._with_products:
            assert self._products is not None
            sums.totals = (*sums.totals[:2], self._products)
        elif not remember:
            self._products = sums.totals[2]
        if not sums.near:
            return None
        factor = theta.precisions_cholesky  # Σ yᵀPy = tr P Σ yyᵀ
        return -sums.log_likelihood + 0.5 * float((factor * (sums.totals[2] @ factor)).sum())

    def evaluate(self, y: NDArray[Any], first: int, theta: Any, results: dense.Results) -> None:
        dense.evaluate(self._samples(y, NONE).y, self._space, theta, self.work, results)

    def statistics(self, y: NDArray[Any], rows: Array, weight: Array) -> Array:
        sums = self.zeros()
        samples, totals = self._samples(y, read_only(weight)), self._totals(sums)
        dense.statistics(samples, self._space, NO_THETA, read_only(rows), self.work, totals)
        return self.flat(sums.totals)

    def flat(self, totals: tuple[Array, ...]) -> Array:
        weights, features, products = totals
        d = len(self.bound.origin)
        squares = products[lower_triangle(d)] if len(products) else features[d:].T
        return np.concatenate([weights, features[:d].T.ravel(), squares.ravel()])


class CodePasses(Passes):
    """Features, and codes whose indicators are never formed."""

    bound: BoundMixture

    @property
    def width(self) -> int:
        return len(self.bound.origin) + self.bound.d

    @property
    def levels(self) -> int:
        """Number of features that are indicators."""
        return self.bound.size // self.bound.n_components - 1 - len(self.bound.origin)

    @property
    def least_rows(self) -> int:
        # A part begins with a table of zeros, which is added to the others.
        return max(512, 2 * self.levels)

    def _make_work(self) -> Any:
        return coded.make_work(self.bound.n_components, len(self.bound.origin), self.levels)

    def _samples(self, y: NDArray[Any], first: int, weight: Array) -> coded.CodedSamples:
        y = two_dimensional(y)
        features = plain(self.bound.features(y).astype(np.float64, copy=False))
        codes = read_only(np.ascontiguousarray(self.bound.codes(y, first).T))
        return coded.CodedSamples(features, codes, weight)

    def zeros(self) -> Sums:
        n_components, p = self.bound.n_components, len(self.bound.origin)
        table = np.zeros((self.levels, n_components))
        return Sums((np.zeros(n_components), np.zeros((p, n_components)), table), np.empty(0))

    def add(self, y: NDArray[Any], first: int, weight: Array, theta: Any, memory: Array, sums: Sums) -> None:
        samples, totals = self._samples(y, first, weight), coded.CodedTotals(*sums.totals)
        sums.log_likelihood += coded.full_pass(samples, theta, twin(memory), self.work, totals)

    def evaluate(self, y: NDArray[Any], first: int, theta: Any, results: dense.Results) -> None:
        coded.evaluate(self._samples(y, first, NONE), theta, self.work, results)

    def statistics(self, y: NDArray[Any], rows: Array, weight: Array) -> Array:
        totals = coded.CodedTotals(*self.zeros().totals)
        coded.statistics(self._samples(y, 0, read_only(weight)), read_only(rows), self.work, totals)
        return self.flat(totals)

    def flat(self, totals: tuple[Array, ...]) -> Array:
        weights, features, table = totals
        return np.concatenate([weights, np.concatenate([features, table]).T.ravel()])


class ChannelPasses(Passes):
    """The family's own E-steps, in NumPy."""

    bound: BoundMixture
    block = PLAIN

    @property
    def width(self) -> int:
        return len(self.bound.origin) + self.bound.d

    def zeros(self) -> Sums:
        return Sums((np.zeros(self.bound.size),), np.empty(0))

    def add(self, y: NDArray[Any], first: int, weight: Array, theta: Any, memory: Array, sums: Sums) -> None:
        rows, log_likelihood = self.bound.e_step(y, theta)
        if len(memory):
            memory[:] = rows
            rows = memory.astype(np.float64)
        weight = weight if len(weight) else np.ones(len(y))
        sums.totals[0][:] += self.statistics(y, rows, weight)
        sums.log_likelihood += float(log_likelihood @ weight)

    def evaluate(self, y: NDArray[Any], first: int, theta: Any, results: dense.Results) -> None:
        rows, log_likelihood = self.bound.e_step(two_dimensional(y), theta)
        results.log_likelihood[:] = log_likelihood[: len(results.log_likelihood)]
        if len(results.responsibilities):
            results.responsibilities[:] = rows[:, : results.responsibilities.shape[1]]
        if len(results.labels):
            results.labels[:] = rows[:, : self.bound.n_components].argmax(axis=1)

    def statistics(self, y: NDArray[Any], rows: Array, weight: Array) -> Array:
        return self.bound.statistics(Batch(y, weight, np.arange(len(y))), rows, weight)

    def flat(self, totals: tuple[Array, ...]) -> Array:
        return totals[0].copy()


class PassesCompute(Compute):
    """As :class:`Compute`, with compiled E-steps whose results do not depend on the number of threads."""

    def __init__(self, model: BoundComponents, source: Source, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        self.bound = model
        self.passes: Passes = {CODES: CodePasses, CHANNELS: ChannelPasses}.get(model.code, DensePasses)(model)
        per_sample = 4 * model.n_components * (self.passes.width + 8)
        self._least_rows = max(self.passes.least_rows, WORK // per_sample)
        self._coefficients: list[tuple[Theta, Any]] = []
        self._last: tuple[Theta, float] | None = None
        #: Weighted mean of log h(y), the same for every θ; the first objective computes it.
        self.base: float | None = None

    @property
    def reach(self) -> Array:
        """Distance of samples from the centre, in each direction; the first full pass computes it."""
        return self.passes.reach

    @reach.setter
    def reach(self, reach: Array) -> None:
        self.passes.reach = reach

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for Gaussians and declared methods, else single iterations."""
        return mixture_loop(task)

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        rows = np.empty((len(batch.index), self.bound.row_length))
        results = dense.Results(np.empty(0), rows, np.empty(0, dtype=np.intp))
        self.passes.evaluate(batch.y, 0, self._prepared(theta), results)
        return rows, results.log_likelihood

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        if rows.shape[1:] != (self.bound.row_length,):  # compiled code would not notice
            raise ValueError(f"rows must have {self.bound.row_length} columns, got shape {rows.shape}.")
        return self.passes.statistics(batch.y, rows, weight)

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        passes, total_weight = self.passes, self._source.total_weight
        memory = self.allocate((self.n, self.bound.row_length), self.memory_dtype) if remember else None
        passes.begin(remember)
        sums = passes.zeros()
        work = self._work_on(self._prepared(theta), memory)
        with one_thread_blas(), closing(in_order(self._sums, work)) as done:
            for part in done:
                self._between_blocks()
                sums.add(part)
        self.evaluations += self.n
        loss = passes.end(theta, sums, remember)
        self._last = None if loss is None else (theta, loss / total_weight)
        return passes.flat(sums.totals) / total_weight, memory

    def _work_on(self, *common: Any) -> Iterable[tuple[Any, ...]]:
        """Return the parts of a pass, each with the common arguments."""
        found = parts(self._source, self._least_rows)
        if isinstance(found, list):
            return [(*common, part) for part in found]
        return ((*common, part) for part in found)

    def _sums(self, prepared: Any, memory: Array | None, part: Part) -> Sums:
        """Return the sums of a part of the rows."""
        sums = self.passes.zeros()
        remembered = np.empty((0, self.bound.row_length)) if memory is None else memory[part.here]
        for here in chunks(len(part.y), self.passes.block):
            first = part.first + here.start
            self.passes.add(part.y[here], first, part.weight[here], prepared, remembered[here], sums)
        return sums

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._last is not None and self._last[0] is theta:
            return self._model.penalty(theta) + self._last[1] - self.mean_base()
        total, prepared = 0.0, self._prepared(theta)
        with one_thread_blas(), closing(in_order(self._log_likelihood, self._work_on(prepared))) as done:
            for log_likelihood in done:
                self._between_blocks()
                total += log_likelihood
        return self._model.penalty(theta) - total / self._source.total_weight

    def extent(self) -> tuple[Array, float]:
        """Return the reach of the features (p,), and the mean of log h(y)."""
        return self.reach, self.mean_base()

    def set_extent(self, reach: Array, base: float) -> None:
        """Set the reach of the features, and the mean of log h(y)."""
        self.reach, self.base = reach, base

    def mean_base(self) -> float:
        """Return the weighted mean of log h(y): the same for every θ, and computed once."""
        if self.base is None:
            with closing(in_order(self._base_of, self._work_on())) as done:
                self.base = sum(done) / self._source.total_weight
        return self.base

    def _base_of(self, part: Part) -> float:
        total = 0.0
        for here in chunks(len(part.y), self.passes.block):
            base = self.bound.log_base(part.y[here], part.first + here.start)
            if base is None:
                return 0.0
            total += float(base @ part.weight[here] if len(part.weight) else base.sum())
        return total

    def _log_likelihood(self, prepared: Any, part: Part) -> float:
        """Return Σ weight · log g(y) over the samples of a part."""
        found = Evaluation(np.empty(len(part.y)), None, None)
        self._evaluate_piece(prepared, found, 0, part)
        return float(found.log_likelihood @ part.weight if len(part.weight) else found.log_likelihood.sum())

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        found = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        prepared = self._prepared(theta)
        work = ((prepared, found, part.first, part) for (part,) in self._work_on())
        with one_thread_blas(), closing(in_order(self._evaluate_piece, work)) as done:
            for _ in done:
                self._between_blocks()
        return found

    def _evaluate_piece(self, prepared: Any, found: Evaluation, first: int, part: Part) -> None:
        """Fill ``found`` from index ``first`` on."""
        rows, labels = found.responsibilities, found.labels
        for here in chunks(len(part.y), self.passes.block):
            there = slice(first + here.start, first + here.stop)
            base = self.bound.log_base(part.y[here], part.first + here.start)
            results = dense.Results(
                found.log_likelihood[there],
                np.empty((0, self.bound.n_components)) if rows is None else rows[there],
                np.empty(0, dtype=np.intp) if labels is None else labels[there],
            )
            self.passes.evaluate(part.y[here], part.first + here.start, prepared, results)
            if base is not None:
                found.log_likelihood[there] += base

    def _prepared(self, theta: Theta) -> Any:
        """Return φ(θ), cached for the last two θ: a method's current one and its anchor."""
        for known, coefficients in self._coefficients:
            if known is theta:
                return coefficients
        coefficients = self.bound.coefficients(theta)
        self._coefficients = [(theta, coefficients), *self._coefficients[:1]]
        return coefficients
