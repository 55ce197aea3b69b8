"""What one would write by hand for a mixture in d dimensions and batches: two matrix products and a softmax.

An observation is T(y) = [1, y], shape (1 + d,); statistics are arrays of shape (M, 1 + d), parameters
φ = [log ω − |μ|²/2, μ] of the same shape. Each loop goes on from ``start``, a result of :func:`swiftem.run`,
with given draws of shape (n_iter, b), and returns weights and means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DELTA = EPSILON = 1e-3
BLOCK = 512
"""Rows of a full pass at once: what fits into the cache."""


def posterior(t, phi):
    """Responsibilities, shape (b, M)."""
    r = t @ phi.T
    r -= r.max(axis=1, keepdims=True)
    np.exp(r, out=r)
    r /= r.sum(axis=1, keepdims=True)
    return r


def full_pass(t, phi):
    """Mean statistics of all observations, shape (M, 1 + d)."""
    blocks = (t[at : at + BLOCK] for at in range(0, len(t), BLOCK))
    return sum(posterior(block, phi).T @ block for block in blocks) / len(t)


def natural(weights, means):
    return np.column_stack([np.log(weights) - 0.5 * (means * means).sum(axis=1), means])


def m_step(s):
    """The next φ."""
    weights = s[:, 0] + EPSILON
    return natural(weights / weights.sum(), s[:, 1:] / (s[:, :1] + DELTA))


def parameters(phi):
    means = phi[:, 1:]
    return np.exp(phi[:, 0] + 0.5 * (means * means).sum(axis=1)), means


def statistics(flat, like):
    """swiftem's flat statistics as an array of shape (M, 1 + d)."""
    m = len(like)
    return np.column_stack([flat[:m], flat[m:].reshape(m, -1)])


def begin(y, start):
    """T(y) (n, 1 + d), φ and statistics (M, 1 + d) to go on from."""
    phi = natural(*start.theta)
    return np.column_stack([np.ones(len(y)), y]), phi, statistics(start.s, phi)


def distinct(index):
    return np.unique(index, return_index=True)[1]


def em(y, start, n_iter):
    t, phi, _ = begin(y, start)
    for _ in range(n_iter):
        phi = m_step(full_pass(t, phi))
    return parameters(phi)


def sem(y, start, i):
    t, phi, s = begin(y, start)
    for k, index in enumerate(i, start.n_iter):
        batch = t[index]
        s += 3 / (k + 11) * (posterior(batch, phi).T @ batch / len(index) - s)
        phi = m_step(s)
    return parameters(phi)


def iem(y, start, i):
    t, phi, s = begin(y, start)
    memory = start.state.method.memory.copy()
    for index in i:
        index = index[distinct(index)]
        batch = t[index]
        r = posterior(batch, phi)
        s += (r - memory[index]).T @ batch / len(t)
        memory[index] = r
        phi = m_step(s)
    return parameters(phi)


def sem_vr(y, start, i, gamma=0.003):
    t, phi, s = begin(y, start)
    anchor, centre = natural(*start.state.method.anchor), statistics(start.state.method.centre, phi)
    epoch = -(-len(t) // i.shape[1])
    for k, index in enumerate(i, start.n_iter):
        if k % epoch == 0:
            anchor, centre = phi, full_pass(t, phi)
        batch = t[index]
        change = posterior(batch, phi) - posterior(batch, anchor)
        s += gamma * (centre + change.T @ batch / len(index) - s)
        phi = m_step(s)
    return parameters(phi)


def fiem(y, start, i, j, gamma=0.003):
    t, phi, s = begin(y, start)
    centre, memory = statistics(start.state.method.centre, phi), start.state.method.memory.copy()
    for first, second in zip(i, j, strict=True):
        second = second[distinct(second)]
        batch_i, batch_j = t[first], t[second]
        r_i, r_j = posterior(batch_i, phi), posterior(batch_j, phi)
        s += gamma * (centre + (r_i - memory[first]).T @ batch_i / len(first) - s)
        centre += (r_j - memory[second]).T @ batch_j / len(t)
        memory[second] = r_j
        phi = m_step(s)
    return parameters(phi)


LOOPS: dict[str, Callable[..., Any]] = {"em": em, "sem": sem, "iem": iem, "sem-vr": sem_vr, "fiem": fiem}
