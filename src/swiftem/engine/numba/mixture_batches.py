"""Gaussian mixture with unit variances: stretches of iterations on mini-batches, for any method.

One loop implements all declarations :class:`swiftem.methods.Update`, and is compiled once: rows and memory
are passed as two arrays each, float64 and float32, of which one is empty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.coefficient import learn, products
from swiftem.engine.numba.compile import helper, inlined, kernel
from swiftem.engine.numba.gaussian_batches import ANCHOR, NOTHING
from swiftem.engine.numba.lines.softmax_rows import change
from swiftem.engine.numba.memory import multiply, prefetch_row
from swiftem.engine.numba.softmax import begin, logits_of

__all__ = ["add_centre", "advance_to", "batches", "copy"]


@inlined
def _towards(s: Any, gamma: Any, proxy: Any) -> Any:
    return s + gamma * (proxy - s) if gamma < 1.0 else proxy  # (sestep)


@inlined
def advance_to(
    proxy1: Any, proxy2: Any, gamma: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step for S = (proxy1, proxy2); return 1 if it is rejected, else 0."""
    n_components, d = means.shape
    lowest = math.inf
    for m in range(n_components):
        lowest = min(lowest, _towards(s1[m], gamma, proxy1[m]))
    if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
        return 1
    for m in range(n_components):
        s = _towards(s1[m], gamma, proxy1[m])
        s1[m] = s
        if not known:
            weights[m] = s + epsilon  # (mstep_gmm0), up to the sum, which no E-step needs
        for c in range(d):
            t = _towards(s2[m, c], gamma, proxy2[m, c])
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return 0


@inlined
def add_centre(correction: Any, centre1: Any, centre2: Any, sum1: Any, sum2: Any) -> None:
    """Add correction · centre to ``sum1`` (M,) and ``sum2`` (M, d)."""
    n_components, d = sum2.shape
    for m in range(n_components):
        sum1[m] += correction * centre1[m]
        for c in range(d):
            sum2[m, c] += correction * centre2[m, c]


@inlined
def copy(vector: Any, matrix: Any, to_vector: Any, to_matrix: Any) -> None:
    """Copy both, (M,) and (M, d)."""
    n_components, d = matrix.shape
    for m in range(n_components):
        to_vector[m] = vector[m]
        for c in range(d):
            to_matrix[m, c] = matrix[m, c]


@helper
def _take(y: Any, index: Any, offset: Any, samples: Any) -> None:
    """Write samples ``index`` (b,) of ``y`` (n, d), minus the offset, into ``samples`` (b, d)."""
    for t in range(len(index)):
        i = np.uintp(index[t])  # unsigned, without a check of the sign, so that the loop vectorises
        for c in range(y.shape[1]):
            samples[t, c] = y[i, c] - offset[c]


@helper
def _ask_for(table: Any, index: Any) -> None:
    """Prefetch rows ``index`` (b,) of a table."""
    if len(table):
        for t in range(len(index)):
            prefetch_row(table, index[t])


@helper
def _responsibilities(rows: Any, constant: Any, index: Any, memory: Any, weight: Any, sums: Any) -> None:
    """Replace the logits ``rows`` (b, M) by their softmax; no entry of the other arrays is read."""
    change(rows, constant, rows, index, memory, NOTHING, False, 0.0, weight[:0], 1.0, sums)


@kernel
def batches(
    y: Any, sample_weight: Any, divided: Any, scale: Any, share: Any, reference: Any, correction: Any,
    moments: Any, reads: Any, renews: Any, follows: Any, steps: Any, index: Any, other: Any, memory: Any,
    anchor_weights: Any, anchor_means: Any, before1: Any, before2: Any, centre1: Any, centre2: Any,
    s1: Any, s2: Any, delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
    offset: Any, expanded: Any, proxy1: Any, proxy2: Any, work: Any, work_too: Any,
) -> Any:  # fmt: skip
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    y, memory : Twin, shapes (n, d) and (n, M) or (0, M)
    reference : int
        NOTHING, ANCHOR or MEMORY.
    reads, renews, follows : bool
        Whether S is computed from samples ``index`` (otherwise it is the renewed centre); whether the memory
        of samples ``other`` is renewed; whether centre and anchor follow S and θ.
    index, other : ndarray, shape (iterations, b)
        Samples.
    offset, expanded : ndarray, shape (d,), and bool
        Centre of the samples, and whether they are near enough for expanded squares.
    proxy1, proxy2 : ndarray, shapes (M,) and (M, d)
        Buffers for S.
    work, work_too : Work
        For θ, and for the anchor.
    others
        As in :func:`swiftem.engine.numba.gaussian_mixture.few_samples`.

    Returns
    -------
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.
    """
    rejected, moved, first, row = 0, 0, np.empty((1, len(offset))), np.empty((1, len(proxy1)))
    own_weight = sample_weight[:0] if divided else sample_weight
    samples, rows, sums1, sums2 = work.samples, work.rows, work.sums1, work.sums2
    for k in range(len(steps)):
        moved = k - rejected
        if len(moments):
            correction = moments[2]
        begin(weights, means, offset, expanded, work)
        if reference == ANCHOR and (follows or k == 0):
            begin(anchor_weights, anchor_means, offset, expanded, work_too)
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (renews if renew else reads):
                continue
            here = other[k] if renew else index[k]
            if len(y.double):
                _take(y.double, here, offset, samples)
            else:
                _take(y.single, here, offset, samples)
            if k + 1 < len(steps):
                _ask_for(y.double, (other if renew else index)[k + 1])
                _ask_for(y.single, (other if renew else index)[k + 1])
            logits_of(samples, rows, expanded, work)
            if reference == ANCHOR:
                logits_of(samples, work_too.rows, expanded, work_too)
                _responsibilities(
                    work_too.rows, work_too.constant, here, memory.double, sample_weight, work_too.sums1
                )
            factor = share if renew else scale / len(here)
            if len(moments) and not renew:
                weight = scale * (own_weight[here[0]] if len(own_weight) else 1.0)
                for c in range(len(offset)):
                    first[0, c] = samples[0, c] + offset[c]
                for m in range(len(sums1)):
                    row[0, m] = rows[0, m]
                _responsibilities(row, work.constant, here, memory.double, sample_weight, sums1)
                if len(memory.double):
                    found = products(first, 0, row[0], 1.0, memory.double[here[0]], weight, centre1, centre2)
                else:
                    found = products(first, 0, row[0], 1.0, memory.single[here[0]], weight, centre1, centre2)
                learn(moments, found[0], found[1])
            if len(memory.double):
                change(
                    rows, work.constant, work_too.rows, here, memory.double, reference, renew, correction,
                    sample_weight if renew else own_weight, factor, sums1,
                )  # fmt: skip
            else:
                change(
                    rows, work.constant, work_too.rows, here, memory.single, reference, renew, correction,
                    sample_weight if renew else own_weight, factor, sums1,
                )  # fmt: skip
            multiply(rows.T, samples, sums2)
            for m in range(len(sums1)):
                for c in range(len(offset)):
                    sums2[m, c] += sums1[m] * offset[c]
            if renew:
                add_centre(1.0, sums1, sums2, centre1, centre2)
            else:
                copy(sums1, sums2, proxy1, proxy2)
                add_centre(correction, centre1, centre2, proxy1, proxy2)
        if not reads:
            copy(centre1, centre2, proxy1, proxy2)
        if follows:
            copy(proxy1, proxy2, centre1, centre2)
            copy(s1, s2, before1, before2)
            copy(weights, means, anchor_weights, anchor_means)
        rejected += advance_to(proxy1, proxy2, steps[k], s1, s2, delta, epsilon, known, weights, means)
    return rejected, moved
