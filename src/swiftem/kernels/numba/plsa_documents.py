"""pLSA by documents: passes that update documents and sum up words, and the folding in of documents.

Arrays that all loops share:

- begin (D + 1,), word (m,), count (m,): the entries of the documents in CSR order; entries of document d are
  begin[d] to begin[d + 1] − 1. Counts are float64.
- weight (D,): of documents; what they add to sums over documents is multiplied by it.
- word_topic (V, K): θ, words of topics, contiguous in K, float64.
- alpha (K,): what is added to a document's counts of topics.

With :math:`a_k = \\theta_{dk}` and :math:`b_k = \\theta_{kv}`, an entry of count n has responsibilities
:math:`r_k = a_k b_k / \\sum a b`, equation (condexp_plsa). It adds n·r_k to the counts of its document and of
its word. As a is the same for all entries of a document, its counts are a_k times a sum of n·b_k / Σ ab.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.kernels.numba.compile import inlined, reordered

__all__ = ["fold_in", "pass_over", "sums_of"]

SMALLEST = 1e-150
"""A probability below this is read as this: nothing is divided by zero, and nothing is subnormal."""
TINY = 1e-60
"""A share of a topic below this is read as zero, for the same reason."""


@inlined
def _normalised(a, acc, alpha):
    """Write a_k·acc_k + α_k, normalised, into a (K,); return Σ_k |change|. Uniform where all are zero."""
    total = 0.0
    for k in range(a.shape[0]):
        acc[k] = a[k] * acc[k] + alpha[k]
        total += acc[k]
    change = 0.0
    for k in range(a.shape[0]):
        new = acc[k] / total if total > 0.0 else 1.0 / a.shape[0]
        new = new if new > TINY else 0.0
        change += abs(new - a[k])
        a[k] = new
    return change


@reordered
def pass_over(begin, word, count, weight, doc_topic, word_topic, alpha, by_word, first, last):
    """One iteration of EM for the documents ``first`` to ``last`` − 1, all of it but the topics' M-step.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Topics of documents: those of the E-step at first, those of the M-step afterwards.
    by_word : ndarray, shape (V, K)
        Σ n·r_k of the words is added to it.

    Returns
    -------
    float
        Σ n log p of the entries, before the M-step.
    """
    n_topics = word_topic.shape[1]
    acc = np.empty(n_topics)
    value = 0.0
    for d in range(first, last):
        a = doc_topic[d]
        for k in range(n_topics):
            acc[k] = 0.0
        product, of_document = 1.0, 0.0
        for e in range(begin[d], begin[d + 1]):
            b, q = word_topic[word[e]], by_word[word[e]]
            total = 0.0
            for k in range(n_topics):
                total += a[k] * b[k]
            total = total if total > SMALLEST else SMALLEST
            ratio = count[e] / total
            for k in range(n_topics):
                part = b[k] * ratio
                acc[k] += part
                q[k] += a[k] * part * weight[d]
            # A logarithm costs as much as all of the above: one for many entries.
            if count[e] == 1.0:
                product *= total
                if product < SMALLEST:
                    of_document += np.log(product)
                    product = 1.0
            else:
                of_document += count[e] * np.log(total)
        value += weight[d] * (of_document + np.log(product))
        _normalised(a, acc, alpha)
    return value


@inlined
def _fold_in_one(begin, word, count, word_topic, alpha, max_iter, tol, d, a, acc):
    """Find the topics a (K,) of document d, starting from what a holds; return Σ n log p at the last E-step."""
    n_topics = word_topic.shape[1]
    value = 0.0
    for iteration in range(max_iter):
        for k in range(n_topics):
            acc[k] = 0.0
        for e in range(begin[d], begin[d + 1]):
            b = word_topic[word[e]]
            total = 0.0
            for k in range(n_topics):
                total += a[k] * b[k]
            ratio = count[e] / (total if total > SMALLEST else SMALLEST)
            for k in range(n_topics):
                acc[k] += b[k] * ratio
        if _normalised(a, acc, alpha) < tol:
            break
    for e in range(begin[d], begin[d + 1]):
        b = word_topic[word[e]]
        total = 0.0
        for k in range(n_topics):
            total += a[k] * b[k]
        value += count[e] * np.log(total if total > SMALLEST else SMALLEST)
    return value


@reordered
def fold_in(begin, word, count, word_topic, alpha, max_iter, tol, doc_topic, log_likelihood, first, last):
    """Find the topics of documents for given words of topics, each until they change by less than ``tol``.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Where to start, and the result.
    log_likelihood : ndarray, shape (D,)
        Σ n log p of each document, written.
    """
    acc = np.empty(word_topic.shape[1])
    for d in range(first, last):
        log_likelihood[d] = _fold_in_one(
            begin, word, count, word_topic, alpha, max_iter, tol, d, doc_topic[d], acc
        )


@reordered
def sums_of(
    documents, begin, word, count, weight, word_topic, alpha, max_iter, tol, by_word, doc_topic, first, last
):  # fmt: skip
    """Fold documents in from uniform topics and sum their words up: the E-step of a batch.

    Parameters
    ----------
    documents : ndarray of int, shape (b,)
        Their numbers; ``first`` to ``last`` − 1 of them are done.
    by_word : ndarray, shape (V, K)
        Σ n·r_k of the words is added to it.
    doc_topic : ndarray, shape (b, K)
        The topics found, written.

    Returns
    -------
    float
        Σ n log p.
    """
    n_topics = word_topic.shape[1]
    acc = np.empty(n_topics)
    value = 0.0
    for i in range(first, last):
        d, a = documents[i], doc_topic[i]
        for k in range(n_topics):
            a[k] = 1.0 / n_topics
        value += weight[d] * _fold_in_one(begin, word, count, word_topic, alpha, max_iter, tol, d, a, acc)
        for e in range(begin[d], begin[d + 1]):
            b, q = word_topic[word[e]], by_word[word[e]]
            total = 0.0
            for k in range(n_topics):
                total += a[k] * b[k]
            ratio = weight[d] * count[e] / (total if total > SMALLEST else SMALLEST)
            for k in range(n_topics):
                q[k] += a[k] * b[k] * ratio
    return value
