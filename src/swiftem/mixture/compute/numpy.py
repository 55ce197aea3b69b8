r"""The E-steps of mixtures in NumPy: the definition that compiled code is compared with, and the small path.

A component's log-density is :math:`\langle T(y), \phi_m \rangle + c_m`, and responsibilities are its softmax.
For Gaussians there are two forms of it. The *expanded* one is a matrix product T(Y)·φ with T(y) = [y, squares
of y]; it loses digits if samples are far from the centre. The *whitened* one takes differences first,
:math:`-\frac12 \|U_m^T (y - \mu_m)\|^2`, and loses none. :func:`squared_reach` tells which of them to use.

:data:`MIXTURE` lists every technology, the fastest first. :class:`MixtureCompute` is the definition.
:class:`NumpyCompute` is for small data: without compilation and
without threads. T(y), with its first entry 1, is computed once and kept, (1 + p, n): the rule for small
problems bounds its size (:mod:`swiftem.mixture.resolve`). A pass is two matrix products with a
softmax in between, on blocks that stay in the second-level cache. Up to about 100,000 responsibilities it
is as fast as compiled code, which calls the same products and saves only the return to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from swiftem.core.compute import BLOCK, Compute, Evaluation, Placement, Technology
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta
from swiftem.kernels.threads import in_order, is_served, one_thread_blas

if TYPE_CHECKING:
    from swiftem.core.model import BoundModel
    from swiftem.mixture.components import BoundComponents, Coefficients

T = TypeVar("T")

LINEAR, CODES, CHANNELS, COMPLETED = -1, -2, -3, -4
"""How E-steps compute T(y), in addition to the kinds of covariance, which count from 0.

LINEAR: features as they are given. CODES: features, and codes of categories. CHANNELS: the family computes
its own E-steps. COMPLETED: rows with missing cells are completed."""

FARTHEST = 2.5e5
"""Squared distance, in standard deviations, up to which expanded squares keep ten digits of a logit."""

NUMBERS = 65_536
"""Numbers per block: entries of T(y), and logits."""

LOWEST = -46.0
"""A logit that is less, the largest being 0, has a responsibility of zero: below 1e-20 it counts for nothing,
and subnormal numbers slow matrix products down."""

FAST = -700.0
"""NumPy's vectorised exponential is several times slower for smaller numbers, −∞ included."""

GROUP = 64
"""Number of sums of exponentials that are multiplied before the logarithm; each is from 1 to M."""


@lru_cache(maxsize=32)
def lower_triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column of each entry of the lower triangle of a d×d matrix, row by row.

    >>> lower_triangle(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    row, column = np.tril_indices(d)
    row.flags.writeable = column.flags.writeable = False
    return row, column


def squared_reach(theta: Coefficients, reach: Array) -> float:
    """Return the largest squared distance of samples and means from the centre, in standard deviations.

    ``reach`` (d,) is the distance of the samples in each direction. Up to :data:`FARTHEST`, expanded squares
    keep enough digits.
    """
    if not len(theta.whiten) and not len(theta.scales):
        return 0.0
    extent = np.maximum(reach, np.abs(theta.means).max(axis=0))
    far = np.abs(theta.whiten) @ extent if len(theta.whiten) else theta.scales * extent
    return float(np.einsum("mi,mi->m", far, far).max())


def whitened_squares(samples: Array, theta: Coefficients) -> Array:
    """Return ‖U₁ᵀy‖² (b,) of centred samples (d, b): what φ omits if it is common to all components."""
    whitened = theta.whiten[0] @ samples if len(theta.whiten) else theta.scales[0][:, None] * samples
    return np.asarray(np.einsum("ct,ct->t", whitened, whitened))


def whitened_logits(samples: Array, theta: Coefficients, out: Array | None = None) -> Array:
    """Return the log joint densities (M, b) of centred samples (d, b), from whitened differences."""
    logits = np.empty((len(theta.means), samples.shape[1])) if out is None else out
    for m, mean in enumerate(theta.means):
        away = samples - mean[:, None]
        if len(theta.whiten):
            away = theta.whiten[min(m, len(theta.whiten) - 1)] @ away
        else:
            away *= theta.scales[m][:, None]
        with np.errstate(over="ignore"):  # a sample that far away has density zero
            np.einsum("ct,ct->t", away, away, out=logits[m])
    logits *= -0.5
    logits += theta.plain[:, None]
    return logits


def log_joint(z: Array, theta: Coefficients) -> Array:
    """Return log ω_m g_m(y), (b, M), of centred samples (b, d), or of features if φ is of these alone."""
    if len(theta.whiten) or len(theta.scales):
        return whitened_logits(z.T, theta).T
    return np.asarray(z @ theta.phi + theta.constant)


def softmax(log_joint: Array) -> tuple[Array, Array]:
    """Return responsibilities (b, M) and log-likelihood (b,) of log joint densities (b, M).

    >>> rows, loglik = softmax(np.log([[1.0, 3.0]]))
    >>> rows, np.exp(loglik)
    (array([[0.25, 0.75]]), array([4.]))
    """
    largest = log_joint.max(axis=1, keepdims=True)
    rows: Array = np.exp(log_joint - largest)
    total = rows.sum(axis=1, keepdims=True)
    rows /= total
    return rows, (largest + np.log(total))[:, 0]


def _not_on_device(model: BoundModel, source: Source, placement: Placement) -> str | None:
    return "the device is the CPU" if placement.device == "cpu" else None


def _not_compiled(model: BoundModel, source: Source, placement: Placement) -> str | None:
    if placement.form != "auto":
        return "plain NumPy is asked for"
    return None if is_served(source) else "rows are neither in an array nor in a file"


def _not_small(model: BoundComponents, source: Source, placement: Placement) -> str | None:
    if placement.form != "numpy":
        return "there is a faster form or a plainer one"
    return "T(y) is no matrix" if model.code < LINEAR else None


MIXTURE = (
    Technology("PyTorch", _not_on_device, "swiftem.mixture.compute.torch:TorchCompute"),
    Technology("compiled passes", _not_compiled, "swiftem.mixture.compute.passes:passes"),
    Technology("NumPy", _not_small, "swiftem.mixture.compute.numpy:NumpyCompute"),
    Technology("NumPy, block by block", lambda *_: None, "swiftem.mixture.compute.numpy:MixtureCompute"),
)


class MixtureCompute(Compute):
    """E-steps of a mixture in plain NumPy, block by block; the base class of the faster ones.

    BLAS has one thread, so that results do not depend on the number of threads.

    Attributes
    ----------
    reach : ndarray, shape (p,)
        Distance of the samples from the centre, in each direction; infinite as long as it is unknown.
    """

    def __init__(self, model: BoundComponents, source: Source, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        self.bound, self.reach = model, np.full(len(model.origin), np.inf)

    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return the log-densities of samples under each component, (b, M)."""
        return self.bound.log_densities(batch, theta)

    def statistics(self, batch: Batch, rows: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat, for posterior rows (b, R)."""
        return self._statistics(batch, rows, batch.weight)

    def _in_order(self, function: Callable[..., T], work: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield ``function(*item)`` for the items of ``work`` in their order, computed by several threads."""
        with one_thread_blas(), closing(in_order(function, work)) as done:
            for result in done:
                self._between_blocks()
                yield result

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        with one_thread_blas():
            return super()._pass(theta, remember)

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        return super().objective(theta)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        with one_thread_blas():
            return super().evaluate(theta, responsibilities=responsibilities, labels=labels)


class NumpyCompute(MixtureCompute):
    """E-steps of few samples: T(y), n·(1 + p) numbers, is computed once."""

    def __init__(self, model: BoundComponents, source: Source, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        self._rows: tuple[Array, Array, Array] | None = None
        self._products: Array | None = None
        self._base = np.zeros(source.n)

    def _features(self) -> tuple[Array, Array, Array]:
        """Return T(y) (1 + p, n), the weights (n,), or (0,) for ones, and the reach of the features, (p,)."""
        if self._rows is None:
            bound, d = self.bound, len(self.bound.origin)
            powers, weight = np.ones((1 + bound.n_features, self.n)), np.empty(self.n)
            for batch in self._source.blocks(BLOCK):
                here = slice(int(batch.index[0]), int(batch.index[-1]) + 1)
                y = batch.y if batch.y.ndim > 1 else batch.y[:, None]
                features = np.asarray(bound.features(y)).T
                np.subtract(features, bound.origin[:, None], out=powers[1 : 1 + d, here])
                weight[here] = batch.weight
                base = bound.log_base(y, here.start)
                self._base[here] = 0.0 if base is None else base
            samples = powers[1 : 1 + d]
            bound.write_squares(samples, powers[1 + d :])
            if bound.shares_products:
                self._products = np.asarray((samples * weight) @ samples.T)
            weight = weight[:0] if (weight == 1.0).all() else weight
            self._rows = powers, weight, np.abs(samples).max(axis=1)
        return self._rows

    def _blocks(self, theta: Theta) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
        """Yield slice, T(y) (1 + p, b), responsibilities (M, b), largest logits and sums of each block."""
        powers, _, reach = self._features()
        prepared = self.bound.coefficients(theta)
        n_components, d = self.bound.n_components, len(self.bound.origin)
        near = squared_reach(prepared, reach) <= FARTHEST
        phi = np.concatenate([prepared.constant[:, None], prepared.phi.T], axis=1)
        size = max(NUMBERS // (len(powers) + n_components) // GROUP, 4) * GROUP
        room, largest, totals = np.empty((n_components, size)), np.empty(size), np.empty(size)
        for first in range(0, self.n, size):
            here = slice(first, min(first + size, self.n))
            b = here.stop - first
            features, rows = powers[:, here], room[:, :b]
            if near:
                np.matmul(phi, features, out=rows)
            else:
                whitened_logits(features[1 : 1 + d], prepared, rows)
            high, total = largest[:b], totals[:b]
            (_softmax_of_two if n_components == 2 else _softmax)(rows, high, total)
            if near and self.bound.omits_square:
                high -= 0.5 * whitened_squares(features[1 : 1 + d], prepared)
            yield here, features, rows, high, total

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        if remember:
            return super()._pass(theta, remember)
        self._between_blocks()
        powers, weight, _ = self._features()
        sums, log_likelihood = np.zeros((self.bound.n_components, len(powers))), 0.0
        with one_thread_blas():
            for here, features, rows, largest, totals in self._blocks(theta):
                if len(weight):
                    log_likelihood += float(weight[here] @ (largest + np.log(totals)))
                    rows *= weight[here]
                else:
                    log_likelihood += float(largest.sum()) + _sum_of_logarithms(totals)
                sums += rows @ features.T
        self.evaluations += self.n
        base = float(weight @ self._base) if len(weight) else float(self._base.sum())
        self._passed = theta, -log_likelihood - base
        return self._flat(sums, self._products) / self._source.total_weight, None

    def _flat(self, sums: Array, products: Array | None) -> Array:
        """Return the model's statistics for Σ r ⊗ T(y) (M, 1 + p), and Σ w yyᵀ if components share it."""
        d = len(self.bound.origin)
        squares = sums[:, 1 + d :] if products is None else products[lower_triangle(d)]
        return np.concatenate([sums[:, 0], sums[:, 1 : 1 + d].ravel(), squares.ravel()])

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        self._between_blocks()
        results = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        with one_thread_blas():
            for here, _, rows, largest, totals in self._blocks(theta):
                np.add(largest, np.log(totals), out=results.log_likelihood[here])
                if results.responsibilities is not None:
                    results.responsibilities[here] = rows.T
                if results.labels is not None:
                    results.labels[here] = rows.argmax(axis=0)
        results.log_likelihood[:] += self._base
        return results


def _softmax(rows: Array, largest: Array, totals: Array) -> None:
    """Replace logits (M, b) by responsibilities; write the largest logits, and sums of exponentials, (b,)."""
    np.maximum.reduce(rows, axis=0, out=largest)
    rows -= largest
    exponentials(rows)
    np.add.reduce(rows, axis=0, out=totals)
    rows /= totals


def exponentials(logits: Array) -> None:
    """Replace logits by their exponentials, or by zero below :data:`LOWEST`.

    >>> logits = np.array([0.0, -50.0, -np.inf])
    >>> exponentials(logits)
    >>> logits
    array([1., 0., 0.])
    """
    counts = logits >= LOWEST
    np.maximum(logits, FAST, out=logits)
    np.exp(logits, out=logits)
    logits *= counts


def _softmax_of_two(rows: Array, largest: Array, totals: Array) -> None:
    """As :func:`_softmax` for M = 2, with half the exponentials: the other one is exp(0)."""
    one, other = rows
    np.maximum(one, other, out=largest)
    one -= other
    is_swapped = one < 0.0
    np.abs(one, out=other)
    np.negative(other, out=other)
    exponentials(other)
    np.add(other, 1.0, out=totals)
    other /= totals
    np.subtract(1.0, other, out=one)
    kept = np.where(is_swapped, other, one)
    np.copyto(other, one, where=is_swapped)
    one[:] = kept


def _sum_of_logarithms(totals: Array) -> float:
    """Return Σ log of numbers from 1 to M, with few logarithms.

    >>> round(_sum_of_logarithms(np.full(130, 2.0)) / 130, 12) == round(float(np.log(2.0)), 12)
    True
    """
    whole = len(totals) - len(totals) % GROUP
    products = np.multiply.reduce(totals[:whole].reshape(GROUP, -1), axis=0)
    return float(np.log(products).sum() + np.log(totals[whole:]).sum())
