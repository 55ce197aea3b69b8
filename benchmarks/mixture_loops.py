"""What one would write by hand for the paper's mixture: one dimension, one sample an iteration, plain NumPy.

Statistics are arrays of shape (2, M): sums of responsibilities and of responsibility times observation. Each
loop goes on from ``start``, a result of :func:`swiftem.run`, with given draws, and returns weights and means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DELTA = EPSILON = 1e-3


def posterior(y, weights, means):
    """Responsibilities of one observation, shape (M,)."""
    difference = y - means
    joint = weights * np.exp(-0.5 * difference * difference)
    return joint / joint.sum()


def full_pass(y, weights, means):
    """Mean statistics of all observations, shape (2, M)."""
    difference = y[:, None] - means
    joint = weights * np.exp(-0.5 * difference * difference)
    joint /= joint.sum(axis=1, keepdims=True)
    return np.stack([joint.mean(axis=0), y @ joint / len(y)])


def m_step(s):
    weights = s[0] + EPSILON
    return weights / weights.sum(), s[1] / (s[0] + DELTA)


def begin(start):
    """Weights (M,), means (M,) and statistics (2, M) to go on from."""
    return start.theta.weights, start.theta.means[:, 0], start.s.reshape(2, -1).copy()


def em(y, start, n_iter):
    weights, means, _ = begin(start)
    for _ in range(n_iter):
        weights, means = m_step(full_pass(y, weights, means))
    return weights, means


def sem(y, start, i):
    weights, means, s = begin(start)
    observed = np.stack([np.ones_like(y), y], axis=1)[:, :, None]
    for k, index in enumerate(i.tolist(), start.n_iter):
        r = posterior(y[index], weights, means)
        s += 3 / (k + 11) * (observed[index] * r - s)
        weights, means = m_step(s)
    return weights, means


def iem(y, start, i):
    weights, means, s = begin(start)
    observed = np.stack([np.ones_like(y), y], axis=1)[:, :, None] / len(y)
    memory = start.state.method.memory.copy()
    for index in i.tolist():
        r = posterior(y[index], weights, means)
        s += observed[index] * (r - memory[index])
        memory[index] = r
        weights, means = m_step(s)
    return weights, means


def sem_vr(y, start, i, gamma=0.003):
    weights, means, s = begin(start)
    observed = np.stack([np.ones_like(y), y], axis=1)[:, :, None]
    anchor, centre = start.state.method
    anchor_weights, anchor_means, centre = anchor.weights, anchor.means[:, 0], centre.reshape(2, -1)
    for k, index in enumerate(i.tolist(), start.n_iter):
        if k % len(y) == 0:
            anchor_weights, anchor_means, centre = weights, means, full_pass(y, weights, means)
        change = posterior(y[index], weights, means) - posterior(y[index], anchor_weights, anchor_means)
        s += gamma * (centre + observed[index] * change - s)
        weights, means = m_step(s)
    return weights, means


def fiem(y, start, i, j, gamma=0.003):
    weights, means, s = begin(start)
    observed = np.stack([np.ones_like(y), y], axis=1)[:, :, None]
    centre, memory = start.state.method.centre.reshape(2, -1).copy(), start.state.method.memory.copy()
    for first, second in zip(i.tolist(), j.tolist(), strict=True):
        r_i, r_j = posterior(y[first], weights, means), posterior(y[second], weights, means)
        s += gamma * (centre + observed[first] * (r_i - memory[first]) - s)
        centre += observed[second] * (r_j - memory[second]) / len(y)
        memory[second] = r_j
        weights, means = m_step(s)
    return weights, means


LOOPS: dict[str, Callable[..., Any]] = {"em": em, "sem": sem, "iem": iem, "sem-vr": sem_vr, "fiem": fiem}
