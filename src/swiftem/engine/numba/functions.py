"""Loops over iterations for a user's model that is given by compiled functions.

The functions are arguments whose type is their signature: the disk cache knows them by their types alone, so
one compiled loop serves every model with the same types and never holds another model's code.
:func:`swiftem.engine.numba.compose.compose` puts loops and functions together.

Arguments of all loops
----------------------
expected_statistics, m_step, in_domain : functions
    (y, θ) → (rows (b, q), log-likelihood (b,)); s → θ; s → bool.
y : ndarray, shape (n, d)
    The samples, in any layout.
batch, flat : ndarray, shape (b,) or (b, d), and (b, d)
    The same memory twice, for drawn samples: in the shape that the user's functions see, and as rows.
weight : ndarray, shape (n,), or (0,) when all are one
    Sample weights.
gamma : ndarray, shape (K,)
    Step sizes; K is the number of iterations to do.
i, j : ndarray of int, shape (K, b)
    Sample numbers.
mean, share : float
    n / (W·b) and 1 / W: what a weight is multiplied by in a mean over the batch, and over all samples.
s, theta : ndarray of shape (q,), and parameters
    Where to start; not written to.
centre, memory : ndarray, shapes (q,) and (n, q)
    As in the method's state; written to where the method renews them.

They return s, θ and the number of rejected steps. M-steps may return views of ``s``: the two buffers change
places only when a step is accepted, so a θ in use is never overwritten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.compile import inlined, kernel

__all__ = ["LOOPS", "fiem", "iem", "is_finite", "sem", "sem_vr"]

WRONG_SHAPE = "expected_statistics must return arrays of shape (b, q) and (b,) for b samples."


@kernel
def is_finite(s):  # type: ignore[no-untyped-def]
    """Tell whether no statistic is NaN or infinite."""
    finite = True
    for value in s:
        finite &= np.isfinite(value)
    return finite


@inlined
def _gather(y, index, flat):  # type: ignore[no-untyped-def]
    """Copy the drawn samples to ``flat``: users may write to what they are given."""
    for a in range(len(index)):
        for c in range(y.shape[1]):
            flat[a, c] = y[index[a], c]


@inlined
def _check(rows, b, q):  # type: ignore[no-untyped-def]
    """Refuse statistics that the sums would read past the end of."""
    if rows.shape[0] != b or rows.shape[1] != q:
        raise ValueError(WRONG_SHAPE)


@inlined
def _weight(weight, i):  # type: ignore[no-untyped-def]
    return weight[i] if len(weight) else 1.0


@inlined
def _blend(gamma, s, proxy, new):  # type: ignore[no-untyped-def]
    """(sestep)."""
    for c in range(len(s)):
        new[c] = s[c] + gamma * (proxy[c] - s[c]) if gamma < 1.0 else proxy[c]


@inlined
def _renew(rows, index, weight, share, memory, change, centre):  # type: ignore[no-untyped-def]
    """Add to ``centre`` what the drawn samples changed of the mean over the memory, and write them there.

    A sample that is drawn again finds its new row: it changes nothing twice.
    """
    change[:] = 0.0
    for a in range(len(index)):
        w = share * _weight(weight, index[a])
        for c in range(len(centre)):
            old = np.float64(memory[index[a], c])
            memory[index[a], c] = rows[a, c]
            change[c] += w * (np.float64(memory[index[a], c]) - old)
    for c in range(len(centre)):
        centre[c] += change[c]


@kernel
def sem(expected_statistics, m_step, in_domain, y, batch, flat, weight, gamma, s, theta, i, mean):  # type: ignore[no-untyped-def]
    """Online EM."""
    b, q = i.shape[1], len(s)
    s, new, proxy = s.copy(), np.empty(q), np.empty(q)
    rejected = 0
    for k in range(len(gamma)):
        _gather(y, i[k], flat)
        rows = expected_statistics(batch, theta)[0]
        _check(rows, b, q)
        proxy[:] = 0.0
        for a in range(b):  # (oem)
            w = mean * _weight(weight, i[k, a])
            for c in range(q):
                proxy[c] += w * np.float64(rows[a, c])
        _blend(gamma[k], s, proxy, new)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, rejected


@kernel
def iem(  # type: ignore[no-untyped-def]
    expected_statistics, m_step, in_domain, y, batch, flat, weight, gamma, s, theta, i, share, centre, memory
):
    """Incremental EM."""
    b, q = i.shape[1], len(s)
    s, new, change = s.copy(), np.empty(q), np.empty(q)
    rejected = 0
    for k in range(len(gamma)):
        _gather(y, i[k], flat)
        rows = expected_statistics(batch, theta)[0]
        _check(rows, b, q)
        _renew(rows, i[k], weight, share, memory, change, centre)  # (iem)
        _blend(gamma[k], s, centre, new)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, rejected


@kernel
def sem_vr(  # type: ignore[no-untyped-def]
    expected_statistics, m_step, in_domain, y, batch, flat, weight, gamma, s, theta, i, mean, anchor, centre
):
    """Variance-reduced EM between two renewals of the anchor."""
    b, q = i.shape[1], len(s)
    s, new, proxy = s.copy(), np.empty(q), np.empty(q)
    rejected = 0
    for k in range(len(gamma)):
        _gather(y, i[k], flat)
        rows = expected_statistics(batch, theta)[0]
        old = expected_statistics(batch, anchor)[0]
        _check(rows, b, q)
        _check(old, b, q)
        proxy[:] = 0.0
        for a in range(b):  # (svrgem)
            w = mean * _weight(weight, i[k, a])
            for c in range(q):
                proxy[c] += w * (np.float64(rows[a, c]) - np.float64(old[a, c]))
        for c in range(q):
            proxy[c] += centre[c]
        _blend(gamma[k], s, proxy, new)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, rejected


@kernel
def fiem(  # type: ignore[no-untyped-def]
    expected_statistics,
    m_step,
    in_domain,
    y,
    batch,
    flat,
    weight,
    gamma,
    s,
    theta,
    i,
    j,
    mean,
    share,
    centre,
    memory,
):
    """Fast incremental EM."""
    b, q = i.shape[1], len(s)
    s, new, proxy, change = s.copy(), np.empty(q), np.empty(q), np.empty(q)
    rejected = 0
    for k in range(len(gamma)):
        _gather(y, i[k], flat)
        rows = expected_statistics(batch, theta)[0]
        _check(rows, b, q)
        proxy[:] = 0.0
        for a in range(b):  # (sagaem), first half
            w = mean * _weight(weight, i[k, a])
            for c in range(q):
                proxy[c] += w * (np.float64(rows[a, c]) - np.float64(memory[i[k, a], c]))
        for c in range(q):
            proxy[c] += centre[c]
        _gather(y, j[k], flat)
        rows = expected_statistics(batch, theta)[0]
        _check(rows, b, q)
        _renew(rows, j[k], weight, share, memory, change, centre)  # (sagaem), second half
        _blend(gamma[k], s, proxy, new)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, rejected


LOOPS: dict[str, Any] = {"sem": sem, "iem": iem, "sem-vr": sem_vr, "fiem": fiem}
"""The loops by their method's name."""
