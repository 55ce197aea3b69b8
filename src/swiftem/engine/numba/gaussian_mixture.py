"""Gaussian mixture with unit variances: whole stretches of iterations, a few samples each.

Arrays that all loops share:

- y (n, d): samples, C-contiguous, maybe read-only.
- sample_weight (n,), or (0,) when all samples count alike; weight_scale = n / W, W the sum of the weights;
  share = 1 / W. Where data are on disk, y, weights and memory are of the samples of the stretch alone.
- steps (K,): γ of each iteration. index (K, b): sample numbers of each iteration.
- s1 (M,), s2 (M, d): the running statistics; they change in place.
- weights (M,), means (M, d): the working parameters; they change in place. Weights need not sum to 1: the
  E-step does not ask for it, and a division less in the chain of dependent operations is time.
- centre1 (M,), centre2 (M, d): mean of what is remembered, or the anchor's statistics.
- memory (n, M): responsibilities when last drawn; float64, or float32: what is stored is what counts.
- known: whether the weights are known and stay.
- far: None, or anything where samples may lie so far from all means that densities vanish. It costs a
  third of the speed, and is decided when a kernel is compiled.

Every loop returns how many iterations it did and how many steps of them were rejected. It ends early, with
nothing of the iteration done, where densities vanish all the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.compile import inlined, kernel

__all__ = ["fast_incremental_em", "incremental_em", "online_em", "variance_reduced_em"]

SLACK = 1.000001

VANISHED = 1e-200
"""A sum of densities that is not above this has lost digits."""


@inlined
def _density(y: Any, i: Any, weights: Any, means: Any, rows: Any, far: Any) -> Any:
    """Write weight times density of sample i into ``rows`` (M,), up to a factor; return the sum. (cexp)."""
    n_components, d = means.shape
    total = 0.0
    if far is None:
        for m in range(n_components):
            square = 0.0
            for c in range(d):
                difference = y[i, c] - means[m, c]
                square += difference * difference
            density = weights[m] * math.exp(-0.5 * square)
            rows[m] = density
            total += density
        return total
    nearest = np.inf
    for m in range(n_components):
        square = 0.0
        for c in range(d):
            difference = y[i, c] - means[m, c]
            square += difference * difference
        rows[m] = square
        if weights[m] > 0.0:
            nearest = min(nearest, square)
    for m in range(n_components):
        density = weights[m] * math.exp(0.5 * (nearest - rows[m])) if weights[m] > 0.0 else 0.0
        rows[m] = density
        total += density
    return total


@inlined
def _two_densities(
    y: Any, i: Any, weights: Any, means: Any, rows: Any,
    i_too: Any, weights_too: Any, means_too: Any, rows_too: Any, far: Any,
) -> Any:  # fmt: skip
    """As ``_density`` twice; side by side, so that the processor overlaps the two."""
    n_components, d = means.shape
    if far is not None:
        return (
            _density(y, i, weights, means, rows, far),
            _density(y, i_too, weights_too, means_too, rows_too, far),
        )
    total = total_too = 0.0
    for m in range(n_components):
        square = square_too = 0.0
        for c in range(d):
            difference = y[i, c] - means[m, c]
            difference_too = y[i_too, c] - means_too[m, c]
            square += difference * difference
            square_too += difference_too * difference_too
        density = weights[m] * math.exp(-0.5 * square)
        density_too = weights_too[m] * math.exp(-0.5 * square_too)
        rows[m] = density
        rows_too[m] = density_too
        total += density
        total_too += density_too
    return total, total_too


@inlined
def _vanished(total: Any, far: Any) -> Any:
    """Tell whether a sum of densities has lost its digits; of relative ones only NaN has."""
    if far is None:
        return not total > VANISHED
    return not total > 0.0


@inlined
def _lowest(values: Any) -> Any:
    lowest = math.inf
    for m in range(len(values)):
        lowest = min(lowest, values[m])
    return lowest


@inlined
def _advance(
    y: Any, i: Any, change: Any, factor: Any, gamma: Any, centre1: Any, centre2: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, low: Any, low_centre: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step for S = centre + factor · change ⊗ (1, y_i).

    Return the lowest of the new ``s1``, or −∞ where the step is rejected. ``low`` and ``low_centre``, the
    lowest of ``s1`` and ``centre1``, mostly tell without a look at the new ones that they are in the domain:
    no change is below −1, but for rounding.
    """
    n_components, d = means.shape
    if not low + gamma * (low_centre - low - SLACK * factor) > 0.0:
        lowest = math.inf
        for m in range(n_components):
            lowest = min(lowest, s1[m] + gamma * (centre1[m] - s1[m] + factor * change[m]))
        if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
            return -math.inf
    lowest = math.inf
    for m in range(n_components):
        r = factor * change[m]
        s = s1[m] + gamma * (centre1[m] - s1[m] + r)  # (sestep)
        s1[m] = s
        lowest = min(lowest, s)
        if not known:
            weights[m] = s + epsilon  # (mstep_gmm0)
        for c in range(d):
            t = s2[m, c] + gamma * (centre2[m, c] - s2[m, c] + r * y[i, c])
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return lowest


@inlined
def _advance_by(
    sum1: Any, sum2: Any, gamma: Any, centre1: Any, centre2: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step for S = centre + (sum1, sum2); return 1 where it is rejected, else 0."""
    n_components, d = means.shape
    lowest = np.inf
    for m in range(n_components):
        lowest = min(lowest, s1[m] + gamma * (centre1[m] - s1[m] + sum1[m]))
    if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
        return 1
    for m in range(n_components):
        s = s1[m] + gamma * (centre1[m] - s1[m] + sum1[m])
        s1[m] = s
        if not known:
            weights[m] = s + epsilon
        for c in range(d):
            t = s2[m, c] + gamma * (centre2[m, c] - s2[m, c] + sum2[m, c])
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return 0


@inlined
def _add(y: Any, i: Any, change: Any, factor: Any, sum1: Any, sum2: Any) -> None:
    """Add factor · (change_m, change_m · y_i) to the statistics ``sum1`` (M,), ``sum2`` (M, d)."""
    n_components, d = sum2.shape
    for m in range(n_components):
        r = factor * change[m]
        sum1[m] += r
        for c in range(d):
            sum2[m, c] += r * y[i, c]


@inlined
def _remember(
    y: Any, i: Any, new: Any, total: Any, factor: Any, memory: Any, centre1: Any, centre2: Any
) -> Any:
    """Write ``new`` (M,) / total into the memory of sample i; add factor times the change to the centre.

    Return the lowest of the new ``centre1``.
    """
    n_components, d = centre2.shape
    lowest = math.inf
    for m in range(n_components):
        old = np.float64(memory[i, m])
        memory[i, m] = new[m] / total
        r = factor * (np.float64(memory[i, m]) - old)
        centre1[m] += r
        lowest = min(lowest, centre1[m])
        for c in range(d):
            centre2[m, c] += r * y[i, c]
    return lowest


@inlined
def _weight(sample_weight: Any, i: Any) -> Any:
    return sample_weight[i] if len(sample_weight) else 1.0


@inlined
def _is_first(index: Any, k: Any, place: Any) -> Any:
    """Tell whether the sample at ``place`` of batch k does not stand before in it."""
    for before in range(place):
        if index[k, before] == index[k, place]:
            return False
    return True


@kernel
def online_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, far: Any,
) -> Any:  # fmt: skip
    """sem, equation (oem): S is the mean over the batch."""
    n_components, d = means.shape
    b = index.shape[1]
    rows, zero1, zero2 = np.empty(n_components), np.zeros(n_components), np.zeros((n_components, d))
    sum1, sum2 = np.empty(n_components), np.empty((n_components, d))
    rejected, low = 0, _lowest(s1)
    for k in range(len(steps)):
        if b == 1:
            i = index[k, 0]
            total = _density(y, i, weights, means, rows, far)
            if _vanished(total, far):
                return k, rejected
            factor = weight_scale * _weight(sample_weight, i) / total
            lowest = _advance(
                y, i, rows, factor, steps[k],
                # No change is below 0 here.
                zero1, zero2, s1, s2, delta, epsilon, known, weights, means, low, SLACK * factor,
            )  # fmt: skip
            if lowest > -math.inf:
                low = lowest
            else:
                rejected += 1
            continue
        sum1[:] = 0.0
        sum2[:] = 0.0
        for place in range(b):
            i = index[k, place]
            total = _density(y, i, weights, means, rows, far)
            if _vanished(total, far):
                return k, rejected
            _add(y, i, rows, weight_scale * _weight(sample_weight, i) / (b * total), sum1, sum2)
        rejected += _advance_by(
            sum1, sum2, steps[k], zero1, zero2, s1, s2, delta, epsilon, known, weights, means
        )
    return len(steps), rejected


@kernel
def incremental_em(
    y: Any, sample_weight: Any, share: Any, index: Any, memory: Any, s1: Any, s2: Any,
    centre1: Any, centre2: Any, delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, far: Any,
) -> Any:  # fmt: skip
    """iem, equation (iem): the centre is the proxy, and γ = 1."""
    n_components, d = means.shape
    b = index.shape[1]
    rows, news = np.empty(n_components), np.empty((b, n_components))
    rejected = 0
    for k in range(len(index)):
        for place in range(b):  # first all E-steps of the batch, at the same θ
            total = _density(y, index[k, place], weights, means, rows, far)
            if _vanished(total, far):
                return k, rejected
            for m in range(n_components):
                news[place, m] = rows[m] / total
        for place in range(b):
            if b == 1 or _is_first(index, k, place):
                i = index[k, place]
                for m in range(n_components):
                    rows[m] = news[place, m]
                _remember(y, i, rows, 1.0, share * _weight(sample_weight, i), memory, centre1, centre2)
        lowest = np.inf
        for m in range(n_components):
            lowest = min(lowest, centre1[m])
        if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
            rejected += 1
            continue
        for m in range(n_components):
            s = centre1[m]
            s1[m] = s
            if not known:
                weights[m] = s + epsilon
            for c in range(d):
                s2[m, c] = centre2[m, c]
                means[m, c] = centre2[m, c] / (s + delta)
    return len(index), rejected


@kernel
def variance_reduced_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, anchor_weights: Any,
    anchor_means: Any, s1: Any, s2: Any, centre1: Any, centre2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, far: Any,
) -> Any:  # fmt: skip
    """sem-vr, equation (svrgem), between two renewals of the anchor."""
    n_components, d = means.shape
    b = index.shape[1]
    rows, olds = np.empty(n_components), np.empty(n_components)
    sum1, sum2 = np.empty(n_components), np.empty((n_components, d))
    rejected, low, low_centre = 0, _lowest(s1), _lowest(centre1)
    for k in range(len(steps)):
        if b > 1:
            sum1[:] = 0.0
            sum2[:] = 0.0
        for place in range(b):
            i = index[k, place]
            total, total_old = _two_densities(
                y, i, weights, means, rows, i, anchor_weights, anchor_means, olds, far
            )
            if _vanished(min(total, total_old), far):
                return k, rejected
            for m in range(n_components):
                rows[m] = rows[m] / total - olds[m] / total_old
            factor = weight_scale * _weight(sample_weight, i)
            if b == 1:
                lowest = _advance(
                    y, i, rows, factor, steps[k],
                    centre1, centre2, s1, s2, delta, epsilon, known, weights, means, low, low_centre,
                )  # fmt: skip
                if lowest > -math.inf:
                    low = lowest
                else:
                    rejected += 1
            else:
                _add(y, i, rows, factor / b, sum1, sum2)
        if b > 1:
            rejected += _advance_by(
                sum1, sum2, steps[k], centre1, centre2, s1, s2, delta, epsilon, known, weights, means
            )
    return len(steps), rejected


@kernel
def fast_incremental_em(
    y: Any, sample_weight: Any, weight_scale: Any, share: Any, steps: Any, index_i: Any, index_j: Any,
    memory: Any,
    s1: Any, s2: Any, centre1: Any, centre2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, far: Any,
) -> Any:  # fmt: skip
    """fiem, equation (sagaem): i moves s; j renews memory and centre, after it."""
    n_components, d = means.shape
    b = index_i.shape[1]
    rows, new, news = np.empty(n_components), np.empty(n_components), np.empty((b, n_components))
    sum1, sum2 = np.empty(n_components), np.empty((n_components, d))
    rejected, low, low_centre = 0, _lowest(s1), _lowest(centre1)
    for k in range(len(steps)):
        if b > 1:
            sum1[:] = 0.0
            sum2[:] = 0.0
        for place in range(b):
            i, j = index_i[k, place], index_j[k, place]
            total, total_new = _two_densities(y, i, weights, means, rows, j, weights, means, new, far)
            if _vanished(min(total, total_new), far):
                return k, rejected
            for m in range(n_components):
                rows[m] = rows[m] / total - memory[i, m]
            factor = weight_scale * _weight(sample_weight, i)
            if b == 1:
                lowest = _advance(
                    y, i, rows, factor, steps[k],
                    centre1, centre2, s1, s2, delta, epsilon, known, weights, means, low, low_centre,
                )  # fmt: skip
                if lowest > -math.inf:
                    low = lowest
                else:
                    rejected += 1
                low_centre = _remember(
                    y, j, new, total_new, share * _weight(sample_weight, j), memory, centre1, centre2
                )
            else:
                _add(y, i, rows, factor / b, sum1, sum2)
                for m in range(n_components):
                    news[place, m] = new[m] / total_new
        if b == 1:
            continue
        rejected += _advance_by(
            sum1, sum2, steps[k], centre1, centre2, s1, s2, delta, epsilon, known, weights, means
        )
        for place in range(b):
            if _is_first(index_j, k, place):
                j = index_j[k, place]
                for m in range(n_components):
                    new[m] = news[place, m]
                _remember(y, j, new, 1.0, share * _weight(sample_weight, j), memory, centre1, centre2)
    return len(steps), rejected
