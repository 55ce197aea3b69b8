r"""Compiled recursions of hidden Markov models; the definition is :mod:`swiftem.hmm.compute.numpy`.

Densities are divided by the largest of their step, and α is normalised at every step, so that loops have no
logarithm. What is lost then is below 1e-250 of a step's probability. It stays negligible if every transition
has a probability: what follows is at most as much likelier from another state. Otherwise, or if a step has
hardly any probability, nothing that can be reached may become that small: the sequence is then done in
logarithms.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from math import inf

import numpy as np

from swiftem.hmm.compute import numpy
from swiftem.kernels.compile import helper, kernel

LEAST, LEAST_STEP, DENSE = 1e-250, 1e-200, 1e-30
"""Least probability of a state that can be reached, and of a step; least probability of transitions for which
the first does not matter."""

in_logs = kernel(numpy.forward_backward)
most_likely = kernel(numpy.viterbi)


@helper
def _forward(b, predicted, transitions, ahead, scale):
    """Write α (t, K) and its normalisers (t,) for densities (t, K); return whether nothing was lost.

    ``predicted`` (K,) has the probabilities of the states at the first step, and then after the last one.
    """
    k, least = len(predicted), 0.0
    if transitions.min() < DENSE:
        positive = inf
        for p in transitions.ravel():
            positive = min(positive, p if p > 0.0 else inf)
        least = LEAST if positive >= DENSE else inf
    for t in range(len(b)):
        total = 0.0
        for j in range(k):
            ahead[t, j] = predicted[j] * b[t, j]
            total += ahead[t, j]
        scale[t], inverse = total, 1.0 / total
        if not total >= LEAST_STEP:
            return False
        for j in range(k):
            ahead[t, j] *= inverse
        if least > 0.0:
            for j in range(k):
                if predicted[j] > 0.0 and ahead[t, j] < least:
                    return False
        for j in range(k):
            predicted[j] = 0.0
        for i in range(k):
            value = ahead[t, i]
            for j in range(k):
                predicted[j] += value * transitions[i, j]
    return True


@kernel
def forward(b, predicted, transitions):
    """Return whether nothing was lost; ``predicted`` then predicts the step after the last one."""
    return _forward(b, predicted, transitions, np.empty(b.shape), np.empty(len(b)))


@kernel
def smooth(b, begin, start, transitions, counts, scale, weighted, follows):
    """Write γ in place of densities (t, K), the normalisers (t,), and add counts of transitions (n, K, K).

    Return the first sequence that must be done in logarithms, or n; those before it are done. If
    ``follows``, a piece of one sequence is followed by another one: ``weighted`` (K,) has b β / c of the
    step after the last one, and then of the first.
    """
    k, flipped = len(start), transitions.T.copy()
    ahead, beta = np.empty((np.diff(begin).max(), k)), np.empty(k)
    pairs = np.empty((k, k))
    for number in range(len(begin) - 1):
        first, stop = begin[number], begin[number + 1]
        here, terms = b[first:stop], scale[first:stop]
        if not _forward(here, start.copy(), transitions, ahead, terms):
            return number
        pairs[:] = 0.0
        for t in range(len(here) - 1, -1, -1):
            if follows or t < len(here) - 1:
                for i in range(k):
                    value = ahead[t, i]
                    for j in range(k):
                        pairs[i, j] += value * weighted[j]
                for i in range(k):
                    beta[i] = 0.0
                for j in range(k):
                    value = weighted[j]
                    for i in range(k):
                        beta[i] += flipped[j, i] * value
            else:
                for i in range(k):
                    beta[i] = 1.0
            inverse = 1.0 / terms[t]
            for j in range(k):  # states that cannot be reached count for nothing, and their β may overflow
                weighted[j] = here[t, j] * beta[j] * inverse if ahead[t, j] > 0.0 else 0.0
                here[t, j] = ahead[t, j] * beta[j]
        counts[number] += pairs * transitions
    return len(begin) - 1


@kernel
def divide_by_largest(logs, largest):
    """Subtract the largest number of each row (t, K), if it is finite, and write it to (t,)."""
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
