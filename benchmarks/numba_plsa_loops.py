"""Hand-written Numba loops for pLSA token by token: the reference for the compiled lane.

One loop per method, for this model only: one token per iteration, no weights, no rejected steps. The
statistics are centre + scale·u by documents (D, K) and by words (V, K), so that an iteration costs O(K);
``total`` (K,) are their sums over words. Scale is not folded into u: it does not underflow in a benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy", nogil=True)
def sem_loop(document, word, i, first, u_document, u_word, total, alpha, beta, r):
    prior, scale = beta * len(u_word), 1.0
    for t in range(len(i)):
        d, v = document[i[t]], word[i[t]]
        sum_r = 0.0
        for k in range(len(r)):
            r[k] = (scale * u_document[d, k] + alpha) * (scale * u_word[v, k] + beta) / (total[k] + prior)
            sum_r += r[k]
        gamma = 1.0 / (first + t + 11)
        scale *= 1.0 - gamma
        factor = gamma / sum_r
        for k in range(len(r)):
            change = factor * r[k]
            total[k] = (1.0 - gamma) * total[k] + change
            u_document[d, k] += change / scale
            u_word[v, k] += change / scale
    return scale


@numba.njit(cache=True, error_model="numpy", nogil=True)
def iem_loop(document, word, i, s_document, s_word, total, memory, alpha, beta, r):
    prior, n = beta * len(s_word), len(document)
    for t in range(len(i)):
        d, v = document[i[t]], word[i[t]]
        sum_r = 0.0
        for k in range(len(r)):
            r[k] = (s_document[d, k] + alpha) * (s_word[v, k] + beta) / (total[k] + prior)
            sum_r += r[k]
        for k in range(len(r)):
            new = r[k] / sum_r
            change = (new - memory[i[t], k]) / n
            memory[i[t], k] = new
            total[k] += change
            s_document[d, k] += change
            s_word[v, k] += change


@numba.njit(cache=True, error_model="numpy", nogil=True)
def sem_vr_loop(
    document, word, i, gamma, c_document, c_word, c_total, u_document, u_word, total,
    a_document, a_word, alpha, beta, r, at_anchor,
):  # fmt: skip
    prior, scale = beta * len(u_word), 1.0
    for t in range(len(i)):
        d, v = document[i[t]], word[i[t]]
        sum_r = sum_anchor = 0.0
        for k in range(len(r)):
            of_document = max(c_document[d, k] + scale * u_document[d, k], 0.0) + alpha
            of_word = max(c_word[v, k] + scale * u_word[v, k], 0.0) + beta
            r[k] = of_document * of_word / (total[k] + prior)
            at_anchor[k] = a_document[d, k] * a_word[v, k]
            sum_r += r[k]
            sum_anchor += at_anchor[k]
        scale *= 1.0 - gamma
        for k in range(len(r)):
            change = gamma * (r[k] / sum_r - at_anchor[k] / sum_anchor)
            total[k] += gamma * (c_total[k] - total[k]) + change
            u_document[d, k] += change / scale
            u_word[v, k] += change / scale
    return scale


@numba.njit(cache=True, error_model="numpy", nogil=True)
def fiem_loop(
    document, word, i, j, gamma, c_document, c_word, c_total, u_document, u_word, total, memory,
    alpha, beta, r_i, r_j,
):  # fmt: skip
    prior, scale, n = beta * len(u_word), 1.0, len(document)
    for t in range(len(i)):
        d, v = document[i[t]], word[i[t]]
        d_j, v_j = document[j[t]], word[j[t]]
        sum_i = sum_j = 0.0
        for k in range(len(r_i)):
            norm = 1.0 / (total[k] + prior)
            of_document = max(c_document[d, k] + scale * u_document[d, k], 0.0) + alpha
            of_word = max(c_word[v, k] + scale * u_word[v, k], 0.0) + beta
            r_i[k] = of_document * of_word * norm
            sum_i += r_i[k]
            of_document = max(c_document[d_j, k] + scale * u_document[d_j, k], 0.0) + alpha
            of_word = max(c_word[v_j, k] + scale * u_word[v_j, k], 0.0) + beta
            r_j[k] = of_document * of_word * norm
            sum_j += r_j[k]
        scale *= 1.0 - gamma
        for k in range(len(r_i)):
            change = gamma * (r_i[k] / sum_i - memory[i[t], k])
            new = r_j[k] / sum_j
            drift = (new - memory[j[t], k]) / n
            memory[j[t], k] = new
            total[k] += gamma * (c_total[k] - total[k]) + change
            c_total[k] += drift
            u_document[d, k] += change / scale
            u_word[v, k] += change / scale
            u_document[d_j, k] -= drift / scale
            u_word[v_j, k] -= drift / scale
            c_document[d_j, k] += drift
            c_word[v_j, k] += drift
    return scale


def split(model, flat, n_words):
    by_document, by_word = model.unpack(flat, n_words=n_words)
    return by_document.copy(), by_word.T.copy()


def parameters(model, document, word):
    """doc_topic (D, K) and topic_word (K, V) of statistics."""
    document, word = np.maximum(document, 0.0) + model.alpha, np.maximum(word, 0.0) + model.beta
    return document / document.sum(axis=1, keepdims=True), (word / word.sum(axis=0)).T


def sem(document, word, model, n_words, start, i):
    by_document, by_word = split(model, start.s, n_words)
    scale = sem_loop(
        document, word, i, start.n_iter, by_document, by_word, by_word.sum(axis=0),
        model.alpha, model.beta, np.empty(model.n_topics),
    )  # fmt: skip
    return parameters(model, scale * by_document, scale * by_word)


def iem(document, word, model, n_words, start, i):
    by_document, by_word = split(model, start.s, n_words)
    iem_loop(
        document, word, i, by_document, by_word, by_word.sum(axis=0), start.state.method.memory.copy(),
        model.alpha, model.beta, np.empty(model.n_topics),
    )  # fmt: skip
    return parameters(model, by_document, by_word)


def sem_vr(document, word, model, n_words, start, i, gamma):
    """Between two renewals of the anchor: its pass is not part of this loop."""
    anchor, flat = start.state.method
    c_document, c_word = split(model, flat, n_words)
    u_document, u_word = split(model, start.s - flat, n_words)
    c_total = c_word.sum(axis=0)
    scale = sem_vr_loop(
        document, word, i, gamma, c_document, c_word, c_total, u_document, u_word,
        c_total + u_word.sum(axis=0), anchor.doc_topic,
        (anchor.topic_word * anchor.topic_scale[:, None]).T.copy(),
        model.alpha, model.beta, *np.empty((2, model.n_topics)),
    )  # fmt: skip
    return parameters(model, c_document + scale * u_document, c_word + scale * u_word)


def fiem(document, word, model, n_words, start, i, j, gamma):
    flat, memory = start.state.method.centre, start.state.method.memory.copy()
    c_document, c_word = split(model, flat, n_words)
    u_document, u_word = split(model, start.s - flat, n_words)
    c_total = c_word.sum(axis=0)
    scale = fiem_loop(
        document, word, i, j, gamma, c_document, c_word, c_total, u_document, u_word,
        c_total + u_word.sum(axis=0), memory, model.alpha, model.beta, *np.empty((2, model.n_topics)),
    )  # fmt: skip
    return parameters(model, c_document + scale * u_document, c_word + scale * u_word)


LOOPS: dict[str, Callable[..., Any]] = {"sem": sem, "iem": iem, "sem-vr": sem_vr, "fiem": fiem}
