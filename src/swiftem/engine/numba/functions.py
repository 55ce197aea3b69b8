"""The loop over iterations for a user-defined model with compiled functions.

The functions are arguments whose type is their signature: the disk cache identifies them by type only, so one
compiled loop serves every model with the same types and never contains another model's code.
:func:`swiftem.engine.numba.compose.compose` combines loop and functions.
"""

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.coefficient import learn
from swiftem.engine.numba.compile import inlined, kernel
from swiftem.engine.numba.softmax import copy

__all__ = ["is_finite", "iterate"]

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
    """Copy the drawn samples to ``flat``: users may write to their arguments."""
    for a in range(len(index)):
        for c in range(y.shape[1]):
            flat[a, c] = y[index[a], c]


@inlined
def _check(rows, b, q):  # type: ignore[no-untyped-def]
    """Raise ValueError for statistics that the sums would read out of bounds."""
    if rows.shape[0] != b or rows.shape[1] != q:
        raise ValueError(WRONG_SHAPE)


@inlined
def _weight(weight, i):  # type: ignore[no-untyped-def]
    return weight[i] if len(weight) else 1.0


@inlined
def _renew(rows, index, weight, share, memory, change, centre):  # type: ignore[no-untyped-def]
    """Add the drawn samples' change of the memory's mean to ``centre``, and write them to the memory.

    A sample that is drawn again finds its new row: it adds no change.
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


@inlined
def _mean(rows, index, weight, mean, correction, reference, places, proxy):  # type: ignore[no-untyped-def]
    """Write the mean of ``rows``, minus ``correction`` times ``reference[places]``, into ``proxy``."""
    proxy[:] = 0.0
    for a in range(len(index)):
        w = mean * _weight(weight, index[a])
        for c in range(len(proxy)):
            taken = correction * np.float64(reference[places[a], c]) if correction > 0.0 else 0.0
            proxy[c] += w * (np.float64(rows[a, c]) - taken)


@inlined
def _learn(row, w, old, centre, moments):  # type: ignore[no-untyped-def]
    """Learn λ from a sample's statistics and memory, (q,) each, times ``w``."""
    covariance, variance = 0.0, 0.0
    for c in range(len(centre)):
        deviation = w * np.float64(old[c]) - centre[c]
        covariance += (w * np.float64(row[c]) - centre[c]) * deviation
        variance += deviation * deviation
    learn(moments, covariance, variance)


@kernel
def iterate(  # type: ignore[no-untyped-def]
    expected_statistics, m_step, in_domain, y, batch, flat, weight, divided, mean, share,
    at_anchor, in_memory, correction, moments, reads, renews, follows,
    gamma, index, other, s, theta, anchor, centre, memory,
):  # fmt: skip
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    expected_statistics, m_step, in_domain : functions
        (y, θ) → (rows (b, q), log-likelihood (b,)); s → θ; s → bool.
    y : ndarray, shape (n, d)
        The samples, in any layout.
    batch, flat : ndarray, shape (b,) or (b, d), and (b, d)
        The same memory twice, for drawn samples: in the shape for the user's functions, and as rows.
    weight : ndarray, shape (n,), or (0,) if all are one
        Sample weights.
    divided, correction, moments, reads, renews, follows
        As in :func:`swiftem.engine.numba.gaussian_batches.batches`.
    mean, share : float
        n / (W·b), or 1 / b if ``divided``, and 1 / W: factors of the weights in a mean over the batch, and
        over all samples.
    at_anchor, in_memory : bool
        Which reference is used; none if both are False.
    gamma : ndarray, shape (K,)
        Step sizes; K is the number of iterations.
    index, other : ndarray of int, shape (K, b)
        Sample indices.
    s, theta, anchor : ndarray of shape (q,), and parameters
        Initial values; not written to.
    centre, memory : ndarray, shapes (q,) and (n, q)
        As in the method's state; written to if the method renews them.

    Returns
    -------
    s, theta, anchor
        Their values after the iterations.
    before : ndarray, shape (q,)
        If the anchor follows: the ŝ of which it is θ̄.
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.

    M-steps may return views of ``s``: the two buffers are swapped only if a step is accepted, so that θ is
    never overwritten, and the previous θ only after its last use.
    """
    b, q = index.shape[1], len(s)
    s, new, proxy = s.copy(), np.empty(q), np.empty(q)
    before, order, rejected, moved = s, np.arange(b), 0, 0
    own_weight = weight[:0] if divided else weight
    for k in range(len(gamma)):
        moved = k - rejected
        if len(moments):
            correction = moments[2]
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (renews if renew else reads):
                continue
            here = other[k] if renew else index[k]
            _gather(y, here, flat)
            rows = expected_statistics(batch, theta)[0]
            _check(rows, b, q)
            if renew:
                _renew(rows, here, weight, share, memory, new, centre)
                continue
            if at_anchor:
                reference = expected_statistics(batch, anchor)[0]
                _check(reference, b, q)
                _mean(rows, here, own_weight, mean, correction, reference, order, proxy)
            elif in_memory:
                _mean(rows, here, own_weight, mean, correction, memory, here, proxy)
                if len(moments):
                    w = mean * b * _weight(own_weight, here[0])
                    _learn(rows[0], w, memory[here[0]], centre, moments)
            else:
                _mean(rows, here, own_weight, mean, 0.0, rows, order, proxy)
            for c in range(q):
                proxy[c] += correction * centre[c]
        if not reads:
            copy(centre, proxy)
        if follows:
            copy(proxy, centre)
            before, anchor = s, theta
        for c in range(q):
            new[c] = s[c] + gamma[k] * (proxy[c] - s[c]) if gamma[k] < 1.0 else proxy[c]  # (sestep)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, anchor, before, rejected, moved
