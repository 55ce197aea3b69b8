"""E-steps of mixtures, compiled: full passes by all cores, and batches.

Logits are T(y)·φ + c, statistics r ⊗ T(y): see :class:`swiftem.models.components.BoundComponents`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

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

__all__ = ["BlockExpectation", "Pass", "Sums", "sums"]

WORK = 1 << 21
"""Operations below which a piece is not worth a thread."""


_local = threading.local()


class Pass(NamedTuple):
    """What all parts of a pass need; it can be pickled and sent to where the rows are.

    Attributes
    ----------
    bound : BoundComponents
        The model; its data are not needed.
    theta : Coefficients
        φ(θ).
    reach : ndarray, shape (p,)
        How far features are from the centre; infinite where that is not known.
    with_products : bool
        Whether the products of "tied" are wanted.
    """

    bound: BoundComponents
    theta: Coefficients
    reach: Array
    with_products: bool = True


@dataclass
class Sums:
    """Sums over rows; those of two parts add up to those of both.

    Attributes
    ----------
    totals : tuple of ndarray, shapes (M,), (p, M) and (d, d) or (0, 0)
        Σ w·r, Σ w·r·T(y), and the products of "tied".
    log_likelihood : float
        Σ w·log g, without log h(y), and of "tied" without −½ yᵀPy where rows are near.
    near : bool
        Whether all rows were near enough for expanded squares.
    reach : ndarray, shape (p,)
        How far the features are from the centre, as far as that was looked at.
    """

    totals: tuple[Array, Array, Array]
    log_likelihood: float
    near: bool
    reach: Array

    def __iadd__(self, other: Sums) -> Sums:
        for total, part in zip(self.totals, other.totals, strict=True):
            total += part
        self.log_likelihood += other.log_likelihood
        self.near &= other.near
        np.maximum(self.reach, other.reach, out=self.reach)
        return self

    def statistics(self) -> Array:
        """Return Σ w·s(y), flat, as the model has it."""
        sums1, sums2, products = self.totals
        d = len(self.reach)
        squares = products[np.tril_indices(d)] if len(products) else sums2[d:].T
        return np.concatenate([sums1, sums2[:d].T.ravel(), squares.ravel()])


def _sizes(bound: BoundComponents) -> tuple[int, int, int]:
    return bound.code, bound.n_components, len(bound.centre)


def _zeros(bound: BoundComponents) -> Sums:
    code, n_components, d = _sizes(bound)
    products = np.zeros((d, d) if code == blocks.TIED else (0, 0))
    totals = np.zeros(n_components), np.zeros((blocks.columns(code, d), n_components)), products
    return Sums(totals, 0.0, True, np.zeros(d))


def _work(bound: BoundComponents) -> blocks.Work:
    """Return the buffers of this thread."""
    sizes = _sizes(bound)
    if getattr(_local, "sizes", None) != sizes:
        _local.sizes, _local.work = sizes, blocks.make_work(*sizes)
    found: blocks.Work = _local.work
    return found


def _features(bound: BoundComponents, y: NDArray[Any]) -> Any:
    return twin(plain(bound.features(y if y.ndim > 1 else y[:, None])))


def sums(given: Pass, part: Part, memory: Array | None = None) -> Sums:
    """Return the sums of a part of the rows at θ: by a thread, or on another machine.

    Parameters
    ----------
    given : Pass
        Model and parameters.
    part : Part
        The rows and their weights.
    memory : ndarray, shape (n, M), optional
        Where responsibilities are remembered, at the part's place; what it can hold is what counts.
    """
    bound, found, work = given.bound, _zeros(given.bound), _work(given.bound)
    remembered = np.empty((0, bound.n_components)) if memory is None else memory[part.here]
    for here in chunks(len(part.y), len(work.largest)):
        log_likelihood, near = kernels.full_pass(
            _features(bound, part.y[here]), part.weight[here], bound.centre, given.reach, bound.code,
            given.theta, twin(remembered[here]), given.with_products, work, found.reach, *found.totals,
        )  # fmt: skip
        found.log_likelihood += log_likelihood
        found.near &= near
    return found


class BlockExpectation(Expectation):
    """As :class:`Expectation`, with compiled E-steps that give the same at any number of threads."""

    def __init__(self, model: BoundComponents, source: Source, between_blocks: Any) -> None:
        super().__init__(model, source, between_blocks)
        self.bound = model
        per_sample = 4 * model.n_components * (blocks.columns(model.code, len(model.centre)) + 8)
        self._least_rows = max(512, WORK // per_sample)
        self._coefficients: list[tuple[Theta, Coefficients]] = []
        self._products: Array | None = None
        #: How far samples are from the centre, in each direction; the first full pass finds it.
        self.reach = np.full(len(model.centre), np.inf)
        self._last: tuple[Theta, float] | None = None
        self._base: float | None = None

    @classmethod
    def of(cls, model: Any, source: Source, between_blocks: Any) -> BlockExpectation | None:
        """Return one where model and source are of the kinds that this is for."""
        if isinstance(model, BoundComponents) and is_served(source):
            return cls(model, source, between_blocks)
        return None

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        bound, none = self.bound, np.empty(0)
        rows = np.empty((len(batch.index), bound.n_components))
        kernels.evaluate(
            _features(bound, batch.y), bound.centre, self.reach, bound.code, self._prepared(theta),
            _work(bound), none, rows, none.astype(np.intp),
        )  # fmt: skip
        return rows, none

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        bound = self.bound
        if rows.shape[1:] != (bound.n_components,):  # compiled code would not notice
            raise ValueError(f"rows must have {bound.n_components} columns, got shape {rows.shape}.")
        found = _zeros(bound)
        kernels.statistics(
            _features(bound, batch.y), bound.centre, bound.code, rows, weight, _work(bound), *found.totals
        )
        return found.statistics()

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        bound, total_weight = self.bound, self._source.total_weight
        memory = self.allocate((self.n, bound.n_components), self.memory_dtype) if remember else None
        # Without a memory, what "tied" has of products is the same for every θ.
        tied = bound.code == blocks.TIED
        with_products = tied and (remember or self._products is None)
        given, found = Pass(bound, self._prepared(theta), self.reach, with_products), _zeros(bound)
        work = self._work_on(given, after=(memory,))
        with one_thread_blas(), closing(in_order(sums, work)) as done:
            for part in done:
                self._between_blocks()
                found += part
        if np.isinf(self.reach).all():  # every block was looked at
            self.reach = found.reach
        if tied and with_products and not remember:
            self._products = found.totals[2]
        elif tied and not with_products:
            assert self._products is not None
            found.totals = (*found.totals[:2], self._products)
        self.evaluations += self.n
        self._last, loss = None, -found.log_likelihood
        if not tied:
            self._last = theta, loss / total_weight
        elif found.near:  # Σ yᵀPy = tr P Σ yyᵀ
            factor = theta.precisions_cholesky
            loss += 0.5 * float((factor * (found.totals[2] @ factor)).sum())
            self._last = theta, loss / total_weight
        return found.statistics() / total_weight, memory

    def _work_on(self, *before: Any, after: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
        """Return the parts of a pass, each with what all of them need before and after it."""
        found = parts(self._source, self._least_rows)
        if isinstance(found, list):
            return [(*before, part, *after) for part in found]
        return ((*before, part, *after) for part in found)

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
        for here in chunks(len(part.y), len(_work(self.bound).largest)):
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
        n_components = self.bound.n_components
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
        bound, work = self.bound, _work(self.bound)
        for here in chunks(len(part.y), len(work.largest)):
            there = slice(first + here.start, first + here.stop)
            rows = found.responsibilities
            kernels.evaluate(
                _features(bound, part.y[here]), bound.centre, self.reach, bound.code, prepared, work,
                found.log_likelihood[there],
                np.empty((0, bound.n_components)) if rows is None else rows[there],
                np.empty(0, dtype=np.intp) if found.labels is None else found.labels[there],
            )  # fmt: skip
            base = self.bound.log_base(part.y[here], part.first + here.start)
            if base is not None:
                found.log_likelihood[there] += base

    def _prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ); of the last two θ it is kept: a method's current one and its anchor."""
        for known, found in self._coefficients:
            if known is theta:
                return found
        coefficients: Coefficients = self.bound.coefficients(theta)
        self._coefficients = [(theta, coefficients), *self._coefficients[:1]]
        return coefficients
