"""What one would write by hand for pLSA token by token: K numbers of a document and of a word an iteration.

The statistics are centre + scale·u, so that the shrinking of all of them is one multiplication and the rest
touches one row of ``document`` (D, K) and one of ``word`` (V, K). ``total`` (K,) are the sums over words.
Scale is not folded into u: it does not underflow in the few thousand iterations of a benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Sums:
    """Statistics by document and by word, and their sums over words."""

    def __init__(self, document, word):
        self.document, self.word, self.total = document, word, word.sum(axis=0)

    def add(self, d, v, change):
        self.document[d] += change
        self.word[v] += change
        self.total += change


def sums(model, flat, n_words):
    by_document, by_word = model.unpack(flat, n_words=n_words)
    return Sums(by_document.copy(), by_word.T.copy())


def zeros(like):
    return Sums(np.zeros_like(like.document), np.zeros_like(like.word))


def normalised(joint):
    return joint / joint.sum()


def posterior(model, n_words, d, v, centre, u, scale):
    """Topic probabilities of one token at θ̄(centre + scale·u), shape (K,)."""
    document = np.maximum(centre.document[d] + scale * u.document[d], 0.0) + model.alpha
    word = np.maximum(centre.word[v] + scale * u.word[v], 0.0) + model.beta
    return normalised(document * word / (centre.total + scale * u.total + model.beta * n_words))


def parameters(model, centre, u, scale):
    """doc_topic (D, K) and topic_word (K, V)."""
    document = np.maximum(centre.document + scale * u.document, 0.0) + model.alpha
    word = np.maximum(centre.word + scale * u.word, 0.0) + model.beta
    return document / document.sum(axis=1, keepdims=True), (word / word.sum(axis=0)).T


def sem(tokens, model, n_words, start, i):
    s = sums(model, start.s, n_words)
    # No centre here, and a formula of its own: adding zeros would make this peer slower than need be.
    scale = 1.0
    for k, index in enumerate(i.tolist(), start.n_iter):
        d, v = tokens[index]
        document = scale * s.document[d] + model.alpha
        word = scale * s.word[v] + model.beta
        r = normalised(document * word / (scale * s.total + model.beta * n_words))
        gamma = 1 / (k + 11)
        scale *= 1 - gamma
        s.add(d, v, gamma / scale * r)
    return parameters(model, zeros(s), s, scale)


def iem(tokens, model, n_words, start, i):
    s, memory = sums(model, start.s, n_words), start.state.method.memory.copy()
    for index in i.tolist():
        d, v = tokens[index]
        joint = (s.document[d] + model.alpha) * (s.word[v] + model.beta) / (s.total + model.beta * n_words)
        r = normalised(joint)
        s.add(d, v, (r - memory[index]) / len(tokens))
        memory[index] = r
    return parameters(model, s, zeros(s), 0.0)


def sem_vr(tokens, model, n_words, start, i, gamma):
    """Between two renewals of the anchor: its pass is not part of this loop."""
    anchor, flat = start.state.method
    words_of_anchor = anchor.topic_word.T.copy()
    centre, u, scale = sums(model, flat, n_words), sums(model, start.s - flat, n_words), 1.0
    for index in i.tolist():
        d, v = tokens[index]
        r = posterior(model, n_words, d, v, centre, u, scale)
        r -= normalised(anchor.doc_topic[d] * words_of_anchor[v] * anchor.topic_scale)
        scale *= 1 - gamma
        u.add(d, v, gamma / scale * r)
    return parameters(model, centre, u, scale)


def fiem(tokens, model, n_words, start, i, j, gamma):
    flat, memory = start.state.method.centre, start.state.method.memory.copy()
    centre, u, scale = sums(model, flat, n_words), sums(model, start.s - flat, n_words), 1.0
    for first, second in zip(i.tolist(), j.tolist(), strict=True):
        (d, v), (d_j, v_j) = tokens[first], tokens[second]
        r_i = posterior(model, n_words, d, v, centre, u, scale)
        r_j = posterior(model, n_words, d_j, v_j, centre, u, scale)
        drift = (r_j - memory[second]) / len(tokens)
        scale *= 1 - gamma
        u.add(d, v, gamma / scale * (r_i - memory[first]))
        u.add(d_j, v_j, -drift / scale)
        centre.add(d_j, v_j, drift)
        memory[second] = r_j
    return parameters(model, centre, u, scale)


LOOPS: dict[str, Callable[..., Any]] = {"sem": sem, "iem": iem, "sem-vr": sem_vr, "fiem": fiem}
