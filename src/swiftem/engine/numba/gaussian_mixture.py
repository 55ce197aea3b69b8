"""Gaussian mixture with unit variances: stretches of iterations, a few samples each, for any method.

One loop implements all declarations :class:`swiftem.methods.Update`. It is compiled for the types of its
arguments: code for None is left out, as every nanosecond counts here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.coefficient import learn, products
from swiftem.engine.numba.compile import helper, inlined, kernel
from swiftem.engine.numba.mixture_batches import add_centre, advance_to, copy

__all__ = ["few_samples"]

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
    """Tell whether a sum of densities has lost its digits; for relative ones only if it is NaN."""
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
    y: Any, i: Any, change: Any, factor: Any, most: Any, gamma: Any, correction: Any, centre1: Any,
    centre2: Any, s1: Any, s2: Any, delta: Any, epsilon: Any, known: Any, weights: Any, means: Any, low: Any,
    low_centre: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step for S = correction · centre + factor · change ⊗ (1, y_i).

    Return the minimum of the new ``s1``, or −∞ if the step is rejected. ``low`` and ``low_centre``, the
    minima of ``s1`` and ``centre1``, mostly show without checking the new ones that they are in the domain:
    the change decreases them by at most ``most``.
    """
    n_components, d = means.shape
    if not low + gamma * (correction * low_centre - low - most) > 0.0:
        lowest = math.inf
        for m in range(n_components):
            lowest = min(lowest, s1[m] + gamma * (correction * centre1[m] - s1[m] + factor * change[m]))
        if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
            return -math.inf
    lowest = math.inf
    for m in range(n_components):
        r = factor * change[m]
        s = s1[m] + gamma * (correction * centre1[m] - s1[m] + r)  # (sestep)
        s1[m] = s
        lowest = min(lowest, s)
        if not known:
            weights[m] = s + epsilon  # (mstep_gmm0)
        for c in range(d):
            t = s2[m, c] + gamma * (correction * centre2[m, c] - s2[m, c] + r * y[i, c])
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return lowest


@inlined
def _advance_following(
    y: Any, i: Any, change: Any, factor: Any, most: Any, gamma: Any, correction: Any, anchor_weights: Any,
    anchor_means: Any, before1: Any, before2: Any, centre1: Any, centre2: Any, s1: Any, s2: Any, delta: Any,
    epsilon: Any, known: Any, weights: Any, means: Any, low: Any, low_centre: Any,
) -> Any:  # fmt: skip
    """As ``_advance``; centre and anchor become S and the old θ. Return the minimum of ``centre1`` too."""
    n_components, d = means.shape
    inside = low + gamma * (correction * low_centre - low - most) > 0.0
    if not inside:
        lowest = math.inf
        for m in range(n_components):
            lowest = min(lowest, s1[m] + gamma * (correction * centre1[m] - s1[m] + factor * change[m]))
        inside = lowest + epsilon > 0.0 and lowest + delta > 0.0
    lowest = lowest_centre = math.inf
    for m in range(n_components):
        r = factor * change[m]
        old, centre = s1[m], correction * centre1[m]
        before1[m] = old
        anchor_weights[m] = weights[m]
        centre1[m] = centre + r
        lowest_centre = min(lowest_centre, centre + r)
        s = old + gamma * (centre - old + r)  # (sestep)
        lowest = min(lowest, s)
        if inside:
            s1[m] = s
            if not known:
                weights[m] = s + epsilon  # (mstep_gmm0)
        for c in range(d):
            old, centre, ry = s2[m, c], correction * centre2[m, c], r * y[i, c]
            before2[m, c] = old
            anchor_means[m, c] = means[m, c]
            centre2[m, c] = centre + ry
            if inside:
                t = old + gamma * (centre - old + ry)
                s2[m, c] = t
                means[m, c] = t / (s + delta)
    return lowest if inside else -math.inf, lowest_centre


@inlined
def _add(y: Any, i: Any, change: Any, factor: Any, first: Any, sum1: Any, sum2: Any) -> None:
    """Add factor · (change_m, change_m · y_i) to ``sum1`` (M,), ``sum2`` (M, d), which ``first`` writes."""
    n_components, d = sum2.shape
    for m in range(n_components):
        r = factor * change[m]
        sum1[m] = r if first else sum1[m] + r
        for c in range(d):
            sum2[m, c] = r * y[i, c] if first else sum2[m, c] + r * y[i, c]


@inlined
def _remember(
    y: Any, i: Any, new: Any, total: Any, factor: Any, memory: Any, centre1: Any, centre2: Any
) -> Any:
    """Write ``new`` (M,) / total into the memory of sample i; add factor times the change to the centre.

    Return the minimum of the new ``centre1``. If a sample is repeated in a batch, it changes nothing from the
    second time on.
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


@helper
def _advance_by(
    sum1: Any, sum2: Any, gamma: Any, correction: Any, anchor_weights: Any, anchor_means: Any,
    before1: Any, before2: Any, centre1: Any, centre2: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
) -> Any:  # fmt: skip
    """As :func:`advance_to` for S = correction · centre + (sum1, sum2); centre and anchor may follow."""
    add_centre(correction, centre1, centre2, sum1, sum2)
    if before1 is not None:
        copy(sum1, sum2, centre1, centre2)
        copy(s1, s2, before1, before2)
        copy(weights, means, anchor_weights, anchor_means)
    return advance_to(sum1, sum2, gamma, s1, s2, delta, epsilon, known, weights, means)


@kernel
def few_samples(
    y: Any, sample_weight: Any, divided: Any, scale: Any, share: Any, correction: Any, moments: Any,
    steps: Any, index: Any, other: Any, memory: Any, anchor_weights: Any, anchor_means: Any,
    before1: Any, before2: Any, centre1: Any, centre2: Any, s1: Any, s2: Any, delta: Any, epsilon: Any,
    known: Any, weights: Any, means: Any, far: Any,
) -> Any:  # fmt: skip
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    It ends early, with nothing of the iteration done, if densities vanish.

    Parameters
    ----------
    y : ndarray, shape (n, d)
        Samples. If data are on disk, these, weights and memory are only those of the samples of the stretch.
    sample_weight : ndarray, shape (n,), or (0,) for ones
    divided : bool
        Whether the samples I are drawn in proportion to their weights: these are then left out.
    scale, share : float
        n / W, or 1 if ``divided``, and 1 / W, W the sum of weights.
    correction : float
        λ, unless it is learned.
    moments : ndarray, shape (3,), or None
        What λ is learned from, and λ, changed in place; None if λ is fixed.
    steps : ndarray, shape (iterations,)
        γ.
    index, other : ndarray, shape (iterations, b), or None
        The samples I; None if S is the renewed centre. Those whose memory is renewed; None if there are none.
    memory : ndarray, shape (n, M), or None
        Responsibilities when last drawn; float64, or float32: the rounded values are used.
    anchor_weights, anchor_means : ndarray, shapes (M,) and (M, d), or None
        If the reference is an anchor.
    before1, before2 : ndarray, shapes (M,) and (M, d), or None
        If centre and anchor follow S and θ: the ŝ of which the anchor is θ̄.
    centre1, centre2, s1, s2 : ndarray, shapes (M,) and (M, d)
        C, zeros if there is none, and ŝ, changed in place.
    delta, epsilon, known : float, float and bool
        Penalty; whether the weights are known and constant.
    weights, means : ndarray, shapes (M,) and (M, d)
        θ, changed in place. Weights need not sum to 1: the E-step does not require it, and it saves a
        division in the chain of dependent operations.
    far : None or anything
        Not None if samples may be so far from all means that densities vanish: a third slower.

    Returns
    -------
    done, rejected, moved : int
        Number of iterations done, of rejected steps, and of accepted ones before the last.
    """
    n_components, d = means.shape
    own_weight = sample_weight[:0] if divided else sample_weight
    b = 0
    if index is not None:  # only "is not None" removes code without types
        b = index.shape[1]
    if other is not None:
        b = other.shape[1]
    rows, new, news = np.empty(n_components), np.empty(n_components), np.empty((b, n_components))
    sum1, sum2 = np.empty(n_components), np.empty((n_components, d))
    rejected, moved, low, low_centre = 0, 0, _lowest(s1), _lowest(centre1)
    if moments is not None:
        correction, covariance, variance = moments[2], 0.0, 0.0
    for k in range(len(steps)):
        moved = k - rejected
        for place in range(b):  # first all E-steps of the batch, at the same θ
            if other is not None:
                j = other[k, place]
            if index is not None:
                i = index[k, place]
                if anchor_weights is not None:
                    total, total_new = _two_densities(
                        y, i, weights, means, rows, i, anchor_weights, anchor_means, new, far
                    )
                    least = min(total, total_new)
                elif other is not None:
                    total, total_new = _two_densities(y, i, weights, means, rows, j, weights, means, new, far)
                    least = min(total, total_new)
                else:
                    total = least = _density(y, i, weights, means, rows, far)
            elif other is not None:
                total_new = least = _density(y, j, weights, means, new, far)
            if _vanished(least, far):
                return k, rejected, moved
            if index is not None:
                factor = scale * _weight(own_weight, i)
                most = SLACK * factor
                if anchor_weights is None and memory is None:
                    factor /= total if b == 1 else b * total
                    most = 0.0
                elif b > 1:
                    factor /= b
                if moments is not None:
                    if place == 0:
                        weight = scale * _weight(own_weight, i)
                        covariance, variance = products(
                            y, i, rows, total, memory[i], weight, centre1, centre2
                        )
                    most *= max(1.0, correction)
                if anchor_weights is not None:
                    for m in range(n_components):
                        rows[m] = rows[m] / total - correction * (new[m] / total_new)
                elif memory is not None:
                    for m in range(n_components):
                        rows[m] = rows[m] / total - correction * memory[i, m]
                if b > 1:
                    _add(y, i, rows, factor, place == 0, sum1, sum2)
            if other is not None and b > 1:
                for m in range(n_components):
                    news[place, m] = new[m] / total_new
        if index is not None and b == 1:
            if before1 is not None:
                lowest, low_centre = _advance_following(
                    y, i, rows, factor, most, steps[k], correction, anchor_weights, anchor_means,
                    before1, before2, centre1, centre2, s1, s2, delta, epsilon, known, weights, means,
                    low, low_centre,
                )  # fmt: skip
            else:
                lowest = _advance(
                    y, i, rows, factor, most, steps[k], correction,
                    centre1, centre2, s1, s2, delta, epsilon, known, weights, means, low, low_centre,
                )  # fmt: skip
            if lowest > -math.inf:
                low = lowest
            else:
                rejected += 1
        elif index is not None:
            rejected += _advance_by(
                sum1, sum2, steps[k], correction, anchor_weights, anchor_means, before1, before2,
                centre1, centre2, s1, s2, delta, epsilon, known, weights, means,
            )  # fmt: skip
        if other is not None and b == 1:
            low_centre = _remember(
                y, j, new, total_new, share * _weight(sample_weight, j), memory, centre1, centre2
            )
        elif other is not None:
            for place in range(b):
                j = other[k, place]
                for m in range(n_components):
                    new[m] = news[place, m]
                _remember(y, j, new, 1.0, share * _weight(sample_weight, j), memory, centre1, centre2)
        if moments is not None:
            correction = learn(moments, covariance, variance)
        if index is None and steps[k] < 1.0:
            rejected += advance_to(centre1, centre2, steps[k], s1, s2, delta, epsilon, known, weights, means)
        elif index is None:  # γ as a constant is not in the chain of operations
            rejected += advance_to(centre1, centre2, 1.0, s1, s2, delta, epsilon, known, weights, means)
    return len(steps), rejected, moved
