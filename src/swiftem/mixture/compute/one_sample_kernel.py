"""Mixtures with unit variances: iterations of one sample each, as fast as loops written for one method.

There is one loop for each reference of :class:`swiftem.methods.Update`. Weights of θ need not sum to 1: the
E-step does not require it, and it saves a division in the chain of dependent operations.

Loops compute plain densities, and end, with nothing of the iteration done, if all of them vanish. They are
compiled again, with ``far`` not None, with densities relative to the largest: a third slower.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import inlined, kernel

__all__ = ["Draw", "Rule", "Stats", "Theta", "anchored", "incremental", "online", "remembered"]

VANISHED = 1e-200
"""A sum of densities that is not above this has lost digits."""


class Theta(NamedTuple):
    """``weights`` (M,), up to a factor, and ``means`` (M, d), changed in place."""

    weights: Any
    means: Any


class Stats(NamedTuple):
    """Statistics in parts, changed in place: ``weights`` (M,) and ``sums`` (M, d)."""

    weights: Any
    sums: Any


class Draw(NamedTuple):
    """Samples drawn one after the other.

    Attributes
    ----------
    y : ndarray, shape (n, d)
        Samples. If data are on disk, these, weights and memory are only of the samples of the stretch.
    weight : ndarray, shape (n,), or (0,) for ones
        Their weights.
    index : ndarray of int, shape (iterations,)
        The sample of each iteration.
    factor : float
        Multiplies the weights: n / W for a mean over draws, 1 / W for a share of the sum.
    """

    y: Any
    weight: Any
    index: Any
    factor: Any


class Rule(NamedTuple):
    """``correction``: λ; ``delta`` and ``epsilon``: the penalty; ``known``: whether weights are constant."""

    correction: Any
    delta: Any
    epsilon: Any
    known: Any


@inlined
def _densities(y: Any, i: Any, theta: Any, row: Any, far: Any) -> Any:
    """Write weight times density of sample i into ``row`` (M,), up to a factor; return the sum. (cexp)."""
    n_components, d = theta.means.shape
    nearest, total = np.inf, 0.0
    for m in range(n_components):
        square = 0.0
        for c in range(d):
            difference = y[i, c] - theta.means[m, c]
            square += difference * difference
        if far is None:
            density = theta.weights[m] * math.exp(-0.5 * square)
            row[m] = density
            total += density
        else:
            row[m] = square
            if theta.weights[m] > 0.0:
                nearest = min(nearest, square)
    if far is not None:
        for m in range(n_components):
            density = 0.0
            if theta.weights[m] > 0.0:
                density = theta.weights[m] * math.exp(0.5 * (nearest - row[m]))
            row[m] = density
            total += density
    return total


@inlined
def _vanished(total: Any, far: Any) -> Any:
    """Return whether a sum of densities has lost its digits; for relative ones only if it is NaN."""
    if far is None:
        return not total > VANISHED
    return not total > 0.0


@inlined
def _factor(draw: Any, i: Any) -> Any:
    return draw.factor * draw.weight[i] if len(draw.weight) else draw.factor


@inlined
def _in_domain(lowest: Any, rule: Any) -> Any:
    return lowest + rule.epsilon > 0.0 and lowest + rule.delta > 0.0


@inlined
def _m_step(m: Any, s: Any, rule: Any, theta: Any) -> None:
    """Write weight and mean of component m. (mstep_gmm0)."""
    if not rule.known:
        theta.weights[m] = s.weights[m] + rule.epsilon
    for c in range(theta.means.shape[1]):
        theta.means[m, c] = s.sums[m, c] / (s.weights[m] + rule.delta)


@inlined
def _advance(
    y: Any, i: Any, row: Any, factor: Any, gamma: Any, centre: Any, rule: Any, s: Any, theta: Any
) -> Any:
    """sE-step and M-step for S = λ·centre + factor·row ⊗ (1, y_i); return 1 if it is rejected, else 0."""
    n_components, d = theta.means.shape
    lowest = math.inf
    for m in range(n_components):
        proxy = rule.correction * centre.weights[m] + factor * row[m]
        lowest = min(lowest, s.weights[m] + gamma * (proxy - s.weights[m]))
    if not _in_domain(lowest, rule):
        return 1
    for m in range(n_components):
        r = factor * row[m]
        s.weights[m] += gamma * (rule.correction * centre.weights[m] - s.weights[m] + r)  # (sestep)
        for c in range(d):
            s.sums[m, c] += gamma * (rule.correction * centre.sums[m, c] - s.sums[m, c] + r * y[i, c])
        _m_step(m, s, rule, theta)
    return 0


@inlined
def _advance_to(proxy: Any, gamma: Any, rule: Any, s: Any, theta: Any) -> Any:
    """sE-step and M-step for S = proxy; return 1 if it is rejected, else 0."""
    n_components, d = theta.means.shape
    lowest = math.inf
    for m in range(n_components):
        lowest = min(lowest, s.weights[m] + gamma * (proxy.weights[m] - s.weights[m]))
    if not _in_domain(lowest, rule):
        return 1
    for m in range(n_components):
        s.weights[m] += gamma * (proxy.weights[m] - s.weights[m])  # (sestep)
        for c in range(d):
            s.sums[m, c] += gamma * (proxy.sums[m, c] - s.sums[m, c])
        _m_step(m, s, rule, theta)
    return 0


@inlined
def _remember(y: Any, i: Any, row: Any, total: Any, factor: Any, memory: Any, centre: Any) -> None:
    """Write ``row`` (M,) / total into the memory of sample i; add factor times the change to the centre."""
    n_components, d = centre.sums.shape
    for m in range(n_components):
        old = np.float64(memory[i, m])
        memory[i, m] = row[m] / total
        r = factor * (np.float64(memory[i, m]) - old)
        centre.weights[m] += r
        for c in range(d):
            centre.sums[m, c] += r * y[i, c]


@kernel
def online(draw: Any, steps: Any, centre: Any, rule: Any, s: Any, theta: Any, far: Any) -> Any:
    """Do iterations without a reference; the centre is zero.

    Return the numbers of iterations done, of rejected steps, and of accepted ones before the last iteration.
    """
    row, rejected, moved = np.empty(len(theta.weights)), 0, 0
    for k in range(len(steps)):
        moved = k - rejected
        i = draw.index[k]
        total = _densities(draw.y, i, theta, row, far)
        if _vanished(total, far):
            return k, rejected, moved
        rejected += _advance(draw.y, i, row, _factor(draw, i) / total, steps[k], centre, rule, s, theta)
    return len(steps), rejected, moved


@kernel
def anchored(
    draw: Any, steps: Any, anchor: Any, before: Any, centre: Any, rule: Any, s: Any, theta: Any, far: Any
) -> Any:
    """Do iterations whose reference is the sample's statistics at an anchor.

    If ``before`` is not None, centre and anchor follow S and θ, and ``before`` is the ŝ of which the
    anchor is θ̄. Return as :func:`online`.
    """
    n_components, d = theta.means.shape
    row, old, rejected, moved = np.empty(n_components), np.empty(n_components), 0, 0
    for k in range(len(steps)):
        moved = k - rejected
        i = draw.index[k]
        total = _densities(draw.y, i, theta, row, far)
        total_old = _densities(draw.y, i, anchor, old, far)
        if _vanished(min(total, total_old), far):
            return k, rejected, moved
        for m in range(n_components):
            row[m] = row[m] / total - rule.correction * (old[m] / total_old)
        factor = _factor(draw, i)
        if before is None:
            rejected += _advance(draw.y, i, row, factor, steps[k], centre, rule, s, theta)
        else:
            for m in range(n_components):
                before.weights[m], anchor.weights[m] = s.weights[m], theta.weights[m]
                centre.weights[m] = rule.correction * centre.weights[m] + factor * row[m]
                for c in range(d):
                    before.sums[m, c], anchor.means[m, c] = s.sums[m, c], theta.means[m, c]
                    change = factor * row[m] * draw.y[i, c]
                    centre.sums[m, c] = rule.correction * centre.sums[m, c] + change
            rejected += _advance_to(centre, steps[k], rule, s, theta)
    return len(steps), rejected, moved


@kernel
def incremental(
    draw: Any, steps: Any, memory: Any, centre: Any, rule: Any, s: Any, theta: Any, far: Any
) -> Any:
    """Do iterations that renew the memory (n, M) of the sample before S = C is read.

    The memory is float64, or float32: the rounded values are used. Return as :func:`online`.
    """
    row, rejected, moved = np.empty(len(theta.weights)), 0, 0
    for k in range(len(steps)):
        moved = k - rejected
        i = draw.index[k]
        total = _densities(draw.y, i, theta, row, far)
        if _vanished(total, far):
            return k, rejected, moved
        _remember(draw.y, i, row, total, _factor(draw, i), memory, centre)
        rejected += _advance_to(centre, steps[k], rule, s, theta)
    return len(steps), rejected, moved


@kernel
def remembered(
    draw: Any, other: Any, steps: Any, memory: Any, centre: Any, rule: Any, s: Any, theta: Any, far: Any
) -> Any:
    """Do iterations whose reference is the memory (n, M), renewed for the ``other`` samples unless None.

    Return as :func:`online`.
    """
    n_components = len(theta.weights)
    row, new, rejected, moved = np.empty(n_components), np.empty(n_components), 0, 0
    for k in range(len(steps)):
        moved = k - rejected
        i = draw.index[k]
        total = least = _densities(draw.y, i, theta, row, far)
        if other is not None:
            j = other.index[k]
            total_new = _densities(draw.y, j, theta, new, far)
            least = min(total, total_new)
        if _vanished(least, far):
            return k, rejected, moved
        for m in range(n_components):
            row[m] = row[m] / total - rule.correction * memory[i, m]
        rejected += _advance(draw.y, i, row, _factor(draw, i), steps[k], centre, rule, s, theta)
        if other is not None:
            _remember(draw.y, j, new, total_new, _factor(other, j), memory, centre)
    return len(steps), rejected, moved
