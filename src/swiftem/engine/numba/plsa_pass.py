"""pLSA: full passes over a piece of the data, without the GIL.

Common arrays of all loops:

- document, word (m,), uint32: positions of the m entries. An entry is a token, or all equal tokens of a
  document.
- factor (m,): the weight of an entry: its count times its weight.
- doc_topic (D, K), word_topic (V, K): θ, topics of documents and words of topics, both contiguous in K.
- start, stop: the piece, entries start to stop − 1.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import inlined, kernel

__all__ = ["log_likelihood", "remember", "statistics"]

FLUSH = 1e-100
"""Smaller responsibilities are read as zero: products with subnormal numbers are slow."""


@inlined
def _posterior(document, word, e, doc_topic, word_topic, row):
    """Write the responsibilities of entry e (condexp_plsa) into ``row`` (K,); uniform at probability zero."""
    d, v, n_topics = document[e], word[e], doc_topic.shape[1]
    total = 0.0
    for k in range(n_topics):
        joint = doc_topic[d, k] * word_topic[v, k]
        row[k] = joint
        total += joint
    if not total > 0.0:
        row[:] = 1.0
        total = float(n_topics)
    least = FLUSH * total
    for k in range(n_topics):
        row[k] = row[k] / total if row[k] > least else 0.0


@kernel
def statistics(document, word, factor, doc_topic, word_topic, start, stop):
    """Return Σ_e factor_e r_ek of the piece, by document and by word.

    Returns
    -------
    first : int
        The first document that occurs.
    by_document : ndarray, shape (documents from the first to the last that occurs, K)
    by_word : ndarray, shape (V, K)
    """
    first, last = _range(document, start, stop)
    row = np.empty(doc_topic.shape[1])
    by_document, by_word = np.zeros((last + 1 - first, row.shape[0])), np.zeros(word_topic.shape)
    for e in range(start, stop):
        _posterior(document, word, e, doc_topic, word_topic, row)
        d, v = document[e] - first, word[e]
        for k in range(row.shape[0]):
            change = factor[e] * row[k]
            by_document[d, k] += change
            by_word[v, k] += change
    return first, by_document, by_word


@kernel
def remember(
    document, word, factor, doc_topic, word_topic, begin, memory, start, stop
):  # fmt: skip
    """As ``statistics``, and write the responsibilities of the entries' tokens into ``memory`` (n, K).

    Entry e is tokens begin[e] to begin[e + 1] − 1, begin of shape (m + 1,); with begin of shape (0,) it is
    token e. The statistics are those of the memory's rounded values, also in float32.
    """
    first, last = _range(document, start, stop)
    row = np.empty(doc_topic.shape[1])
    by_document, by_word = np.zeros((last + 1 - first, row.shape[0])), np.zeros(word_topic.shape)
    for e in range(start, stop):
        _posterior(document, word, e, doc_topic, word_topic, row)
        head, end = (begin[e], begin[e + 1]) if begin.shape[0] > 0 else (e, e + 1)
        d, v = document[e] - first, word[e]
        for i in range(head, end):
            for k in range(row.shape[0]):
                memory[i, k] = row[k]
        for k in range(row.shape[0]):
            change = factor[e] * memory[head, k]
            by_document[d, k] += change
            by_word[v, k] += change
    return first, by_document, by_word


@kernel
def log_likelihood(document, word, factor, doc_topic, word_topic, start, stop):
    """Return Σ_e factor_e log Σ_k doc_topic_dk word_topic_vk of the piece."""
    value = 0.0
    for e in range(start, stop):
        d, v = document[e], word[e]
        total = 0.0
        for k in range(doc_topic.shape[1]):
            total += doc_topic[d, k] * word_topic[v, k]
        value += factor[e] * np.log(total)
    return value


@inlined
def _range(document, start, stop):
    """Return the first and the last document of the piece."""
    first = last = np.int64(document[start])
    for e in range(start, stop):
        first, last = min(first, np.int64(document[e])), max(last, np.int64(document[e]))
    return first, last
