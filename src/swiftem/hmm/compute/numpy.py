r"""Forward-backward and Viterbi recursions in logarithms: the definition, which Numba also compiles.

With :math:`b_t` the densities of step t, :math:`\alpha_1 = \pi b_1`,
:math:`\alpha_{t+1} = (\alpha_t A) b_{t+1}` and :math:`\beta_t = A (b_{t+1} \beta_{t+1})`,
:math:`\beta_T = 1`, each state of step t has the probability :math:`\gamma_t \propto \alpha_t \beta_t`, and
each pair of states :math:`\xi_t \propto \alpha_t A\, (b_{t+1} \beta_{t+1})`. The likelihood is
:math:`\sum \alpha_T`. Here α is normalised at every step, and β divided by the same numbers.
"""

from __future__ import annotations

from math import inf

import numpy as np

from swiftem.core.types import Array, Index


def forward_backward(logs: Array, start: Array, transitions: Array) -> tuple[Array, Array, Array]:
    """E-step of a sequence.

    Parameters
    ----------
    logs : ndarray, shape (t, K)
        Log-densities of its steps.
    start, transitions : ndarray, shapes (K,) and (K, K)
        log π and log A.

    Returns
    -------
    gamma : ndarray, shape (t, K)
        Probabilities of the states, given all steps.
    counts : ndarray, shape (K, K)
        Expected numbers of transitions.
    terms : ndarray, shape (t,)
        log p(y_t | y_1, ..., y_{t−1}), whose sum is the log-likelihood: −∞ from a step on that is impossible.
    """

    def log_sum(values: Array) -> float:
        largest = values.max()
        sums = np.log(np.exp(values - largest).sum()) if largest > -inf else 0.0
        return largest + sums  # type: ignore[no-any-return]

    n, k = logs.shape
    ahead, gamma, back, counts = np.empty((n, k)), np.zeros((n, k)), np.zeros(k), np.zeros((k, k))
    predicted, terms = start.copy(), np.full(n, -inf)
    for t in range(n):
        ahead[t] = predicted + logs[t]
        terms[t] = log_sum(ahead[t])
        if terms[t] == -inf:
            return gamma, counts, terms
        ahead[t] -= terms[t]
        for j in range(k):
            predicted[j] = log_sum(ahead[t] + transitions[:, j])
    for t in range(n - 1, -1, -1):
        gamma[t] = np.exp(ahead[t] + back)
        if t:
            follows = logs[t] + back - terms[t]
            for i in range(k):
                ways = transitions[i] + follows
                counts[i] += np.exp(ahead[t - 1, i] + ways)
                back[i] = log_sum(ways)
    return gamma, counts, terms


def viterbi(logs: Array, start: Array, transitions: Array) -> tuple[Index, float]:
    """Return the most likely states (t,) of a sequence, and the log joint density of both.

    Arguments are as in :func:`forward_backward`.

    >>> chain = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.1, 0.9]])
    >>> viterbi(np.log([[0.9, 0.1], [0.4, 0.6]]), *chain)[0]
    array([0, 0])
    """
    n, k = logs.shape
    before, states = np.zeros((n, k), dtype=np.int64), np.zeros(n, dtype=np.int64)
    value = start + logs[0]
    for t in range(1, n):
        best = np.empty(k)
        for j in range(k):
            ways = value + transitions[:, j]
            before[t, j] = ways.argmax()
            best[j] = ways[before[t, j]] + logs[t, j]
        value = best
    states[n - 1] = value.argmax()
    for t in range(n - 1, 0, -1):
        states[t - 1] = before[t, states[t]]
    return states, value.max()
