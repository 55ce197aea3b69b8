r"""Compiled recursions of hidden Markov models; the definition is :mod:`swiftem.hmm.compute.numpy`.

Densities are divided by the largest of their step, and α is normalised at every step, so that the inner loops have no
logarithm. What is lost then is below 1e-300 of a step's probability. It stays negligible if every transition has a
probability: what follows is at most as much likelier from another state. Otherwise, or if a step has hardly any
probability, nothing that can be reached may become that small: the sequence is then repeated in logarithms.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from math import exp, inf, log

import numpy as np

from swiftem.kernels.compile import helper, kernel

LEAST, LEAST_STEP, DENSE = 1e-250, 1e-200, 1e-30
"""Smallest probability of a state that can be reached, and of a step; probability of a transition from which on the
first does not matter."""


@helper
def _lost(transitions):
    """Return the least probability that a state may have: 0 if none is too small, ∞ if all are."""
    least, positive = inf, inf
    for p in transitions.ravel():
        least = min(least, p)
        if p > 0.0:
            positive = min(positive, p)
    if least >= DENSE:
        return 0.0
    return LEAST if positive >= DENSE else inf


@helper
def _forward(b, predicted, transitions, ahead, scale, lost):
    """Write α (t, K) and its normalisers (t,) for densities (t, K); return whether nothing was lost.

    ``predicted`` (K,) has the probabilities of the states at the first step, and then after the last one.
    """
    k = len(predicted)
    for t in range(len(b)):
        total = 0.0
        for j in range(k):
            value = predicted[j] * b[t, j]
            ahead[t, j] = value
            total += value
        scale[t] = total
        if not total >= LEAST_STEP:
            return False
        inverse = 1.0 / total
        for j in range(k):
            ahead[t, j] *= inverse
        if lost > 0.0:
            for j in range(k):
                if predicted[j] > 0.0 and ahead[t, j] < lost:
                    return False
        for j in range(k):
            predicted[j] = 0.0
        for i in range(k):
            value = ahead[t, i]
            for j in range(k):
                predicted[j] += value * transitions[i, j]
    return True


@helper
def _backward(b, ahead, scale, flipped, follows, weighted, beta, counts):
    """Write γ in place of densities (t, K), and add Σ α_t (b β)_{t+1} / c_{t+1} to ``counts`` (K, K).

    ``follows``: whether ``weighted`` (K,) has b β / c of the step after the last one; it then has that of the first.
    """
    k = len(beta)
    for t in range(len(b) - 1, -1, -1):
        if follows or t < len(b) - 1:
            for i in range(k):
                value = ahead[t, i]
                for j in range(k):
                    counts[i, j] += value * weighted[j]
            for i in range(k):
                beta[i] = 0.0
            for j in range(k):
                value = weighted[j]
                for i in range(k):
                    beta[i] += flipped[j, i] * value
        else:
            for i in range(k):
                beta[i] = 1.0
        inverse = 1.0 / scale[t]
        for j in range(k):
            # States that cannot be reached count for nothing; their β may overflow.
            weighted[j] = b[t, j] * beta[j] * inverse if ahead[t, j] > 0.0 else 0.0
            b[t, j] = ahead[t, j] * beta[j]


@helper
def _log_sum(values):
    largest = -inf
    for value in values:
        largest = max(largest, value)
    if largest == -inf:
        return -inf
    total = 0.0
    for value in values:
        total += exp(value - largest)
    return largest + log(total)


@helper
def _forward_in_logs(b, predicted, transitions, ahead, scale):
    """As :func:`_forward`, in logarithms: of densities, ``predicted``, transitions, α and normalisers."""
    k = len(predicted)
    ways = np.empty(k)
    for t in range(len(b)):
        for j in range(k):
            ahead[t, j] = predicted[j] + b[t, j]
        scale[t] = _log_sum(ahead[t])
        if scale[t] == -inf:
            return False
        for j in range(k):
            ahead[t, j] -= scale[t]
        for j in range(k):
            for i in range(k):
                ways[i] = ahead[t, i] + transitions[i, j]
            predicted[j] = _log_sum(ways)
    return True


@helper
def _backward_in_logs(b, ahead, scale, transitions, follows, weighted, beta, counts):
    """As :func:`_backward`, in logarithms, but for γ and ``counts``, which then include the transitions."""
    k = len(beta)
    ways = np.empty(k)
    for t in range(len(b) - 1, -1, -1):
        for i in range(k):
            beta[i] = 0.0
            if follows or t < len(b) - 1:
                for j in range(k):
                    ways[j] = transitions[i, j] + weighted[j]
                    counts[i, j] += exp(ahead[t, i] + ways[j])
                beta[i] = _log_sum(ways)
        for j in range(k):
            weighted[j] = b[t, j] + beta[j] - scale[t]
            b[t, j] = exp(ahead[t, j] + beta[j])


@kernel
def forward(b, predicted, transitions, ahead, scale, in_logs):
    """Return whether the forward pass of a part of a sequence has lost nothing; see :func:`_forward`."""
    if in_logs:
        return _forward_in_logs(b, predicted, transitions, ahead, scale)
    return _forward(b, predicted, transitions, ahead, scale, _lost(transitions))


@kernel
def backward(b, ahead, scale, transitions, follows, weighted, counts, in_logs):
    """Do the backward pass of a part of a sequence; see :func:`_backward`."""
    beta = np.empty(len(weighted))
    if in_logs:
        _backward_in_logs(b, ahead, scale, transitions, follows, weighted, beta, counts)
    else:
        _backward(b, ahead, scale, transitions.T.copy(), follows, weighted, beta, counts)


@kernel
def smooth(b, begin, start, transitions, counts, scale):
    """Write γ in place of densities (t, K), counts of transitions (n, K, K), and the normalisers (t,).

    Return the first sequence that must be repeated in logarithms, or n; those before it are done.
    """
    k = len(start)
    flipped, lost = transitions.T.copy(), _lost(transitions)
    longest = 0
    for i in range(len(begin) - 1):
        longest = max(longest, begin[i + 1] - begin[i])
    ahead = np.empty((longest, k))
    predicted, weighted, beta = np.empty(k), np.empty(k), np.empty(k)
    for i in range(len(begin) - 1):
        here = b[begin[i] : begin[i + 1]]
        terms = scale[begin[i] : begin[i + 1]]
        for j in range(k):
            predicted[j] = start[j]
        if not _forward(here, predicted, transitions, ahead, terms, lost):
            return i
        counts[i] = 0.0
        _backward(here, ahead, terms, flipped, False, weighted, beta, counts[i])
        for one in range(k):
            for other in range(k):
                counts[i, one, other] *= transitions[one, other]
    return len(begin) - 1


@kernel
def most_likely(logs, start, transitions, states):
    """Write the most likely states (t,) for log-densities (t, K); return the log joint density."""
    n, k = logs.shape
    before = np.empty((n, k), dtype=np.int32)
    value, best = np.empty(k), np.empty(k)
    for t in range(n):
        for j in range(k):
            best[j] = -inf
            if t == 0:
                best[j] = start[j]
            else:
                before[t, j] = 0
                for i in range(k):
                    way = value[i] + transitions[i, j]
                    if way > best[j]:
                        best[j] = way
                        before[t, j] = i
        for j in range(k):
            value[j] = best[j] + logs[t, j]
    last = 0
    for j in range(k):
        if value[j] > value[last]:
            last = j
    states[n - 1] = last
    for t in range(n - 1, 0, -1):
        states[t - 1] = before[t, states[t]]
    return value[last]


@kernel
def divide_by_largest(logs, largest):
    """Subtract the largest number of each row of log-densities (t, K), if it is finite, and write it to (t,)."""
    for t in range(len(logs)):
        most = -inf
        for j in range(logs.shape[1]):
            most = max(most, logs[t, j])
        largest[t] = most if -inf < most < inf else 0.0
        for j in range(logs.shape[1]):
            logs[t, j] -= largest[t]


@kernel
def sums_by_sequence(gamma, features, begin, sums):
    """Add Σ_t γ_t ⊗ T(y_t) of each sequence to ``sums`` (n, K, p), for γ (t, K) and T(y) (t, p)."""
    for i in range(len(begin) - 1):
        own = sums[i]
        for t in range(begin[i], begin[i + 1]):
            for j in range(gamma.shape[1]):
                value = gamma[t, j]
                for c in range(features.shape[1]):
                    own[j, c] += value * features[t, c]
