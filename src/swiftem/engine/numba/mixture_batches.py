"""Gaussian mixture with unit variances: whole stretches of iterations on mini-batches.

Arrays as in :mod:`swiftem.engine.numba.gaussian_mixture`; ``work`` and ``work_too`` are two
:class:`swiftem.engine.numba.softmax.Work`, ``offset`` (d,) is the centre that samples are taken relative to.
Every loop returns the number of rejected steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.compile import helper, inlined, kernel
from swiftem.engine.numba.softmax import add_statistics, begin, e_step, normalise, weigh

__all__ = ["fast_incremental_em", "incremental_em", "online_em", "variance_reduced_em"]


@helper
def _take(y: Any, index: Any, offset: Any, samples: Any) -> None:
    """Write samples ``index`` (b,) of ``y`` (n, d), minus the offset, into ``samples`` (b, d)."""
    for t in range(len(index)):
        i = np.uintp(index[t])
        for c in range(y.shape[1]):
            samples[t, c] = y[i, c] - offset[c]


@inlined
def _responsibilities(
    y: Any, index: Any, weights: Any, means: Any, offset: Any, expanded: Any, work: Any
) -> None:
    """Write the responsibilities of samples ``index`` into ``work.rows``."""
    begin(weights, means, offset, expanded, work)
    _take(y, index, offset, work.samples)
    e_step(work.samples, work.rows, expanded, work)
    normalise(work.rows, work.totals)


@helper
def _take_off(rows: Any, index: Any, memory: Any) -> None:
    """Subtract rows ``index`` (b,) of the memory (n, M) from ``rows`` (b, M)."""
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            rows[t, m] -= memory[i, m]


@helper
def _swap(rows: Any, index: Any, memory: Any) -> None:
    """Write ``rows`` (b, M) into the memory (n, M) and replace them by the change of what is stored.

    A sample that is repeated changes nothing from the second time on, without a search.
    """
    for t in range(len(rows)):
        i = np.uintp(index[t])  # without a sign there is no look at it, and the loop vectorises
        for m in range(rows.shape[1]):
            old = np.float64(memory[i, m])
            memory[i, m] = rows[t, m]
            rows[t, m] = np.float64(memory[i, m]) - old


@inlined
def _renew_centre(
    index: Any,
    sample_weight: Any,
    share: Any,
    memory: Any,
    offset: Any,
    work: Any,
    centre1: Any,
    centre2: Any,
) -> None:
    """Write ``work.rows`` into the memory, and add the change to the centre."""
    _swap(work.rows, index, memory)
    weigh(work.rows, sample_weight, index, share)
    add_statistics(work.samples, work.rows, work.sums1, work.sums2)
    for m in range(len(centre1)):
        centre1[m] += work.sums1[m]
        for c in range(len(offset)):
            centre2[m, c] += work.sums2[m, c] + work.sums1[m] * offset[c]


@inlined
def _advance(
    centre1: Any, centre2: Any, work: Any, offset: Any, gamma: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step for S = centre + the statistics in ``work``; return 1 where rejected, else 0."""
    n_components, d = means.shape
    lowest = math.inf
    for m in range(n_components):
        lowest = min(lowest, s1[m] + gamma * (centre1[m] - s1[m] + work.sums1[m]))
    if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
        return 1
    for m in range(n_components):
        s = s1[m] + gamma * (centre1[m] - s1[m] + work.sums1[m])  # (sestep)
        s1[m] = s
        if not known:
            weights[m] = s + epsilon  # (mstep_gmm0), up to the sum, which no E-step needs
        for c in range(d):
            change = work.sums2[m, c] + work.sums1[m] * offset[c]
            t = s2[m, c] + gamma * (centre2[m, c] - s2[m, c] + change)
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return 0


@kernel
def online_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, offset: Any, expanded: Any, work: Any,
) -> Any:  # fmt: skip
    """sem, equation (oem)."""
    zero1, zero2 = np.zeros(s1.shape), np.zeros(s2.shape)
    rejected = 0
    for k in range(len(steps)):
        _responsibilities(y, index[k], weights, means, offset, expanded, work)
        weigh(work.rows, sample_weight, index[k], weight_scale / index.shape[1])
        add_statistics(work.samples, work.rows, work.sums1, work.sums2)
        rejected += _advance(
            zero1, zero2, work, offset, steps[k], s1, s2, delta, epsilon, known, weights, means
        )
    return rejected


@kernel
def incremental_em(
    y: Any, sample_weight: Any, share: Any, index: Any, memory: Any, s1: Any, s2: Any,
    centre1: Any, centre2: Any, delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
    offset: Any, expanded: Any, work: Any,
) -> Any:  # fmt: skip
    """iem, equation (iem): the centre is the proxy, and γ = 1."""
    rejected = 0
    for k in range(len(index)):
        _responsibilities(y, index[k], weights, means, offset, expanded, work)
        _renew_centre(index[k], sample_weight, share, memory, offset, work, centre1, centre2)
        work.sums1[:] = 0.0
        work.sums2[:] = 0.0
        rejected += _advance(
            centre1, centre2, work, offset, 1.0, s1, s2, delta, epsilon, known, weights, means
        )
    return rejected


@kernel
def variance_reduced_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, anchor_weights: Any,
    anchor_means: Any, s1: Any, s2: Any, centre1: Any, centre2: Any, delta: Any, epsilon: Any, known: Any,
    weights: Any, means: Any, offset: Any, expanded: Any, work: Any, work_too: Any,
) -> Any:  # fmt: skip
    """sem-vr, equation (svrgem), between two renewals of the anchor."""
    rejected, every = 0, np.arange(index.shape[1])
    begin(anchor_weights, anchor_means, offset, expanded, work_too)
    for k in range(len(steps)):
        _responsibilities(y, index[k], weights, means, offset, expanded, work)
        e_step(work.samples, work_too.rows, expanded, work_too)
        normalise(work_too.rows, work_too.totals)
        _take_off(work.rows, every, work_too.rows)
        weigh(work.rows, sample_weight, index[k], weight_scale / index.shape[1])
        add_statistics(work.samples, work.rows, work.sums1, work.sums2)
        rejected += _advance(
            centre1, centre2, work, offset, steps[k], s1, s2, delta, epsilon, known, weights, means
        )
    return rejected


@kernel
def fast_incremental_em(
    y: Any, sample_weight: Any, weight_scale: Any, share: Any, steps: Any, index_i: Any, index_j: Any,
    memory: Any,
    s1: Any, s2: Any, centre1: Any, centre2: Any, delta: Any, epsilon: Any, known: Any,
    weights: Any, means: Any, offset: Any, expanded: Any, work: Any, work_too: Any,
) -> Any:  # fmt: skip
    """fiem, equation (sagaem): i moves s; j renews memory and centre, after it."""
    rejected = 0
    for k in range(len(steps)):
        i, j = index_i[k], index_j[k]
        _responsibilities(y, j, weights, means, offset, expanded, work_too)
        _responsibilities(y, i, weights, means, offset, expanded, work)
        _take_off(work.rows, i, memory)
        weigh(work.rows, sample_weight, i, weight_scale / len(i))
        add_statistics(work.samples, work.rows, work.sums1, work.sums2)
        rejected += _advance(
            centre1, centre2, work, offset, steps[k], s1, s2, delta, epsilon, known, weights, means
        )
        _renew_centre(j, sample_weight, share, memory, offset, work_too, centre1, centre2)
    return rejected
