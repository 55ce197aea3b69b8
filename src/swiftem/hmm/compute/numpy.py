r"""Forward-backward and Viterbi recursions in logarithms: the definition that compiled code is compared with.

With :math:`b_t` the densities of step t, :math:`\alpha_1 = \pi b_1`, :math:`\alpha_{t+1} = (\alpha_t A) b_{t+1}`
and :math:`\beta_t = A (b_{t+1} \beta_{t+1})`, :math:`\beta_T = 1`, each state of step t has the probability
:math:`\gamma_t \propto \alpha_t \beta_t`, and each pair of states :math:`\xi_t \propto \alpha_t A\,
(b_{t+1} \beta_{t+1})`. The likelihood is :math:`\sum \alpha_T`. Here α is normalised
at every step, and β divided by the same numbers.
"""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array, Index


def log_sums(logs: Array, axis: int) -> Array:
    """Return log Σ exp along an axis, −∞ for no terms that are not zero.

    >>> log_sums(np.array([[0.0, -np.inf], [-np.inf, -np.inf]]), axis=1)
    array([  0., -inf])
    """
    largest = logs.max(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(logs - np.where(np.isfinite(largest), largest, 0.0)).sum(axis=axis))
    return np.asarray(sums + np.where(np.isfinite(largest), largest, 0.0).squeeze(axis))


def _logs(start: Array, transitions: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore"):
        return np.log(start), np.log(transitions)


def forward_backward(logs: Array, start: Array, transitions: Array) -> tuple[Array, Array, Array]:
    """E-step of a sequence.

    Parameters
    ----------
    logs : ndarray, shape (t, K)
        Log-densities of its steps.
    start, transitions : ndarray, shapes (K,) and (K, K)
        π and A.

    Returns
    -------
    gamma : ndarray, shape (t, K)
        Probabilities of the states, given all steps.
    transitions : ndarray, shape (K, K)
        Expected numbers of transitions.
    terms : ndarray, shape (t,)
        log p(y_t | y_1, ..., y_{t−1}), whose sum is the log-likelihood.

    Raises
    ------
    ValueError
        If the sequence has probability zero.
    """
    first, then = _logs(start, transitions)
    ahead, back, terms = np.empty_like(logs), np.zeros_like(logs), np.empty(len(logs))
    for t, log in enumerate(logs):
        ahead[t] = log + (first if t == 0 else log_sums(ahead[t - 1][:, None] + then, axis=0))
        terms[t] = log_sums(ahead[t], axis=0)
        if terms[t] == -np.inf:
            raise ValueError(IMPOSSIBLE)
        ahead[t] -= terms[t]
    for t in range(len(logs) - 1, 0, -1):
        back[t - 1] = log_sums(then + logs[t] + back[t], axis=1) - terms[t]
    pairs = ahead[:-1, :, None] + then + (logs + back - terms[:, None])[1:, None]
    return np.exp(ahead + back), np.exp(pairs).sum(axis=0), terms


IMPOSSIBLE = (
    "data must have a positive probability under the model, got a sequence without: a transition or a value "
    "has probability zero in every state; give more states, priors or smoothing."
)


def viterbi(logs: Array, start: Array, transitions: Array) -> tuple[Index, float]:
    """Return the most likely states (t,) of a sequence, and the log joint density of both.

    >>> viterbi(np.log([[0.9, 0.1], [0.4, 0.6]]), np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]))[0]
    array([0, 0])
    """
    value, then = _logs(start, transitions)
    before = np.zeros(logs.shape, dtype=np.intp)
    for t, log in enumerate(logs):
        if t:
            ways = value[:, None] + then
            before[t] = ways.argmax(axis=0)
            value = ways.max(axis=0)
        value = value + log
    states = np.empty(len(logs), dtype=np.intp)
    states[-1] = value.argmax()
    for t in range(len(logs) - 1, 0, -1):
        states[t - 1] = before[t, states[t]]
    return states, float(value.max())
