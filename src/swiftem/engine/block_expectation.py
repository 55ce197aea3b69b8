"""Compiled E-steps of mixtures: full passes on all cores, and batches.

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
from swiftem.engine.expectation import (
    Evaluation,
    Expectation,
    Part,
    chunks,
    is_served,
    parts,
    plain,
    read_only,
)
from swiftem.engine.numba import code_passes as coded
from swiftem.engine.numba import gaussian_blocks as blocks
from swiftem.engine.numba import gaussian_passes as kernels
from swiftem.engine.numba.gaussian_blocks import twin
from swiftem.engine.threads import in_order, one_thread_blas
from swiftem.models.bound_mixture import CHANNELS, CODES
from swiftem.models.components import BoundComponents, Coefficients

__all__ = ["BlockExpectation", "Pass", "Sums", "sums"]

WORK = 1 << 21
"""Minimum number of operations for a thread."""
PLAIN = 64
"""Samples per block of E-steps in NumPy; a chunk has as many blocks."""


NO_THETA = Coefficients(*(np.empty((0,) * ndim) for ndim in (2, 1, 2, 1, 3, 2)))
"""For kernels that take θ where it is not read."""

_local = threading.local()


class Pass(NamedTuple):
    """Common arguments of all parts of a pass; it can be pickled and sent to where the rows are.

    Attributes
    ----------
    bound : BoundComponents
        The model; its data are not needed.
    theta : Coefficients
        φ(θ), as ``bound.coefficients`` returns it.
    reach : ndarray, shape (p,)
        Distance of the features from the centre; infinite if unknown.
    with_products : bool
        Whether the products of "tied" are computed.
    """

    bound: BoundComponents
    theta: Any
    reach: Array
    with_products: bool = True


@dataclass
class Sums:
    """Sums over rows; those of two parts add up to those of both.

    Attributes
    ----------
    code : int
        Code of the E-steps.
    totals : tuple of ndarray, shapes (M,), (p, M) and (d, d), (L, M) or (0, 0)
        Σ w·r, Σ w·r·T(y), and the products of "tied" or the sums of L indicators. If the family computes its
        own E-steps, only flat statistics, (q,).
    log_likelihood : float
        Σ w·log g, without log h(y), and for "tied" without −½ yᵀPy if rows are near.
    near : bool
        Whether all rows were near enough for expanded squares.
    reach : ndarray, shape (p,)
        Distance of the features from the centre, for the rows that were checked.
    """

    code: int
    totals: tuple[Array, ...]
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
        """Return Σ w·s(y), flat, in the model's form."""
        if self.code == CHANNELS:
            return self.totals[0].copy()
        sums1, sums2, more = self.totals
        if self.code == CODES:
            return np.concatenate([sums1, np.concatenate([sums2, more]).T.ravel()])
        d = len(self.reach)
        squares = more[np.tril_indices(d)] if len(more) else sums2[d:].T
        return np.concatenate([sums1, sums2[:d].T.ravel(), squares.ravel()])


def _sizes(bound: BoundComponents) -> tuple[int, int, int]:
    return bound.code, bound.n_components, len(bound.origin)


def _levels(bound: BoundComponents) -> int:
    """Return the number of features that are indicators."""
    return bound.size // bound.n_components - 1 - len(bound.origin)


def _zeros(bound: BoundComponents) -> Sums:
    code, n_components, d = _sizes(bound)
    totals: tuple[Array, ...] = (np.zeros(bound.size),)
    if code == CODES:
        totals = np.zeros(n_components), np.zeros((d, n_components)), np.zeros((_levels(bound), n_components))
    elif code != CHANNELS:
        products = np.zeros((d, d) if code == blocks.TIED else (0, 0))
        totals = np.zeros(n_components), np.zeros((blocks.columns(code, d), n_components)), products
    return Sums(code, totals, 0.0, True, np.zeros(d))


def _work(bound: BoundComponents) -> Any:
    """Return the buffers of this thread."""
    sizes = _sizes(bound)
    if getattr(_local, "sizes", None) != (*sizes, bound.size):
        code, n_components, p = sizes
        if code == CODES:
            made: Any = coded.make_work(n_components, p, _levels(bound))
        else:
            made = blocks.make_work(*sizes)
        _local.sizes, _local.work = (*sizes, bound.size), made
    return _local.work


def _block(bound: BoundComponents) -> int:
    """Return the samples of a block."""
    return PLAIN if bound.code == CHANNELS else len(_work(bound).largest)


def _features(bound: BoundComponents, y: NDArray[Any]) -> Any:
    return twin(plain(bound.features(y if y.ndim > 1 else y[:, None])))


def _with_codes(bound: Any, y: NDArray[Any], first: int) -> tuple[Any, Any]:
    """Return dense features (b, p) and which indicators are one (k, b), in the kernels' form."""
    y = y if y.ndim > 1 else y[:, None]
    features = plain(bound.features(y).astype(np.float64, copy=False))
    return features, read_only(np.ascontiguousarray(bound.codes(y, first).T))


def _evaluate(
    bound: Any, theta: Any, reach: Array, y: NDArray[Any], first: int, log_likelihood: Array, rows: Array,
    labels: Any,
) -> None:  # fmt: skip
    """E-step of samples whose first has index ``first``: fill each of the last three that is not empty.

    ``rows`` may have R columns or M, for responsibilities alone.
    """
    if bound.code == CHANNELS:
        found, values = bound.e_step(y if y.ndim > 1 else y[:, None], theta)
        log_likelihood[:] = values[: len(log_likelihood)]
        if len(rows):
            rows[:] = found[:, : rows.shape[1]]
        if len(labels):
            labels[:] = found[:, : bound.n_components].argmax(axis=1)
    elif bound.code == CODES:
        samples = _with_codes(bound, y, first)
        coded.evaluate(*samples, theta, _work(bound), log_likelihood, rows, labels)
    else:
        kernels.evaluate(
            _features(bound, y), bound.origin, reach, bound.code, theta, _work(bound), log_likelihood, rows,
            labels,
        )  # fmt: skip


def sums(given: Pass, part: Part, memory: Array | None = None) -> Sums:
    """Return the sums of a part of the rows at θ: by a thread, or on another machine.

    Parameters
    ----------
    given : Pass
        Model and parameters.
    part : Part
        The rows and their weights.
    memory : ndarray, shape (n, R), optional
        Memory of posterior rows, at the part's position; the rounded values are used.
    """
    bound, found = given.bound, _zeros(given.bound)
    remembered = np.empty((0, bound.row_length)) if memory is None else memory[part.here]
    for here in chunks(len(part.y), _block(bound)):
        log_likelihood, near = _add(
            given, part.y[here], part.first + here.start, part.weight[here], remembered[here], found
        )
        found.log_likelihood += log_likelihood
        found.near &= near
    return found


def _add(
    given: Pass, y: NDArray[Any], first: int, weight: Array, memory: Array, found: Sums
) -> tuple[float, bool]:
    """Add the sums of some samples to the totals; the default weights are one."""
    bound: Any = given.bound
    if bound.code == CHANNELS:
        rows, values = bound.e_step(y, given.theta)
        if len(memory):
            memory[:] = rows
            rows = memory.astype(np.float64)
        of = weight if len(weight) else np.ones(len(y))
        found.totals[0][:] += bound.statistics(Batch(y, of, np.arange(len(y))), rows, of)
        return float(values @ of), True
    if bound.code == CODES:
        samples = _with_codes(bound, y, first)
        return coded.full_pass(*samples, weight, given.theta, twin(memory), _work(bound), *found.totals), True
    return kernels.full_pass(  # type: ignore[no-any-return]
        _features(bound, y), weight, bound.origin, given.reach, bound.code, given.theta, twin(memory),
        given.with_products, _work(bound), found.reach, *found.totals,
    )  # fmt: skip


class BlockExpectation(Expectation):
    """As :class:`Expectation`, with compiled E-steps whose results do not depend on the number of threads."""

    def __init__(self, model: BoundComponents, source: Source) -> None:
        super().__init__(model, source)
        self.bound = model
        p = len(model.origin)
        width = blocks.columns(model.code, p) if model.code < CODES else p + model.d
        per_sample = 4 * model.n_components * (width + 8)
        self._least_rows = max(512, WORK // per_sample)
        if model.code == CODES:  # a part begins with a table of zeros, which is added to the others
            self._least_rows = max(self._least_rows, 2 * _levels(model))
        self._coefficients: list[tuple[Theta, Any]] = []
        self._products: Array | None = None
        #: Distance of samples from the centre, in each direction; the first full pass computes it.
        self.reach = np.full(len(model.origin), np.inf)
        self._last: tuple[Theta, float] | None = None
        #: Weighted mean of log h(y), the same for every θ; the first objective computes it.
        self.base: float | None = None

    @classmethod
    def of(cls, model: Any, source: Source) -> BlockExpectation | None:
        """Return one if model and source are of the supported kinds."""
        if isinstance(model, BoundComponents) and is_served(source):
            return cls(model, source)
        return None

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        bound, none = self.bound, np.empty(0)
        rows = np.empty((len(batch.index), bound.row_length))
        _evaluate(bound, self._prepared(theta), self.reach, batch.y, 0, none, rows, none.astype(np.intp))
        return rows, none

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        bound = self.bound
        if rows.shape[1:] != (bound.row_length,):  # compiled code would not notice
            raise ValueError(f"rows must have {bound.row_length} columns, got shape {rows.shape}.")
        if bound.code == CHANNELS:
            return bound.statistics(batch, rows, weight)
        found = _zeros(bound)
        if bound.code == CODES:
            coded.statistics(*_with_codes(bound, batch.y, 0), rows, weight, _work(bound), *found.totals)
        else:
            kernels.statistics(
                _features(bound, batch.y), read_only(weight), bound.origin, bound.code, NO_THETA,
                read_only(rows), _work(bound), *found.totals,
            )  # fmt: skip
        return found.statistics()

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        bound, total_weight = self.bound, self._source.total_weight
        memory = self.allocate((self.n, bound.row_length), self.memory_dtype) if remember else None
        # Without a memory, the products of "tied" are the same for every θ.
        tied = bound.code == blocks.TIED
        with_products = tied and (remember or self._products is None)
        given, found = Pass(bound, self._prepared(theta), self.reach, with_products), _zeros(bound)
        work = self._work_on(given, after=(memory,))
        with one_thread_blas(), closing(in_order(sums, work)) as done:
            for part in done:
                self._between_blocks()
                found += part
        if np.isinf(self.reach).all():  # every block was checked
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
        """Return the parts of a pass, each with the common arguments before and after it."""
        found = parts(self._source, self._least_rows)
        if isinstance(found, list):
            return [(*before, part, *after) for part in found]
        return ((*before, part, *after) for part in found)

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

    def mean_base(self) -> float:
        """Return the weighted mean of log h(y): the same for every θ, and computed once."""
        if self.base is None:
            with closing(in_order(self._base_of, self._work_on())) as done:
                self.base = sum(done) / self._source.total_weight
        return self.base

    def _base_of(self, part: Part) -> float:
        total = 0.0
        for here in chunks(len(part.y), _block(self.bound)):
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
        work = ((prepared, found, item[0].first, *item) for item in self._work_on())
        with one_thread_blas(), closing(in_order(self._evaluate_piece, work)) as done:
            for _ in done:
                self._between_blocks()
        return found

    def _evaluate_piece(self, prepared: Any, found: Evaluation, first: int, part: Part) -> None:
        """Fill ``found`` from index ``first`` on."""
        bound, rows = self.bound, found.responsibilities
        for here in chunks(len(part.y), _block(bound)):
            there = slice(first + here.start, first + here.stop)
            base = bound.log_base(part.y[here], part.first + here.start)
            _evaluate(
                bound, prepared, self.reach, part.y[here], part.first + here.start,
                found.log_likelihood[there],
                np.empty((0, bound.n_components)) if rows is None else rows[there],
                np.empty(0, dtype=np.intp) if found.labels is None else found.labels[there],
            )  # fmt: skip
            if base is not None:
                found.log_likelihood[there] += base

    def _prepared(self, theta: Theta) -> Any:
        """Return φ(θ), cached for the last two θ: a method's current one and its anchor."""
        for known, found in self._coefficients:
            if known is theta:
                return found
        coefficients = self.bound.coefficients(theta)
        self._coefficients = [(theta, coefficients), *self._coefficients[:1]]
        return coefficients
