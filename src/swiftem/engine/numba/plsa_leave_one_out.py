r"""A pass of pLSA in which each token is left out of the counts that explain it.

With the arrays of ``plsa_documents.py``, topics of documents :math:`a_k = (n_{dk} + \alpha_k) / A` and words
of topics :math:`b_k = (n_{kv} + \beta_{kv}) / B_k`, an entry has responsibilities
:math:`r_k \propto a_k b_k`. One of its tokens has added :math:`r_k` to either count, so that without it

.. math::  a'_k = \max(a_k - r_k / A, \alpha_k / A),  b'_k = \max(b_k - r_k / B_k, \beta_{kv} / B_k),

and :math:`r'_k \propto a'_k b'_k` is used. This is the update of CVB0 (Asuncion, Welling, Smyth and Teh,
2009), with the token's own part recomputed instead of stored: no array of entries times topics.
``engine/reference/plsa_documents.py`` has the same in plain NumPy.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import reordered
from swiftem.engine.numba.memory import part, room

__all__ = ["leave_one_out_pass"]

SMALLEST = 1e-150
TINY = 1e-60


@reordered
def leave_one_out_pass(
    begin, word, count, weight, length, doc_topic, word_topic, totals, alpha, beta, by_word, first, last
):
    """One iteration for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Parameters
    ----------
    begin, word, count, weight
        As in ``plsa_documents.py``.
    length : ndarray, shape (D,)
        Tokens of the documents, not weighted.
    doc_topic : ndarray, shape (D, K)
        Topics of documents: input of the E-step, replaced by the result of the M-step.
    word_topic : ndarray, shape (V, K)
        Words of topics.
    totals : ndarray, shape (K,)
        B_k, the sums of counts and β over each topic's words.
    alpha : ndarray, shape (K,)
        Added to the documents' counts of topics.
    beta : ndarray, shape (1, K) or (V, K)
        Added to the topics' counts of words.
    by_word : ndarray, shape (V, K)
        Σ n·r'_k of the words is added to it.

    Returns
    -------
    float
        Σ n log p of the entries with all tokens, before the M-step.
    """
    n_topics = word_topic.shape[1]
    scratch = room(4, n_topics)
    acc, r = part(scratch, 0, n_topics), part(scratch, 1, n_topics)
    least, inverse = part(scratch, 2, n_topics), part(scratch, 3, n_topics)
    prior = 0.0
    for k in range(n_topics):
        inverse[k] = 1.0 / totals[k] if totals[k] > 0.0 else 0.0
        prior += alpha[k]
    value = 0.0
    for d in range(first, last):
        a = doc_topic[d]
        own = 1.0 / (length[d] + prior) if length[d] + prior > 0.0 else 0.0
        for k in range(n_topics):
            acc[k] = 0.0
            least[k] = alpha[k] * own
        product, of_document = 1.0, 0.0
        for e in range(begin[d], begin[d + 1]):
            b, q = word_topic[word[e]], by_word[word[e]]
            floor = beta[word[e] if beta.shape[0] > 1 else 0]
            total = 0.0
            for k in range(n_topics):
                r[k] = a[k] * b[k]
                total += r[k]
            total = total if total > SMALLEST else SMALLEST
            # A fraction of a token has added no more than itself; a document of weight 2 counts twice.
            of_a = min(count[e], 1.0) * own / total
            of_b = min(count[e], 1.0) * min(weight[d], 1.0) / total
            without = 0.0
            for k in range(n_topics):
                # As a condition, which is one instruction for eight numbers; max() is not.
                left_a = a[k] - of_a * r[k]
                left_a = left_a if left_a > least[k] else least[k]
                left_b = b[k] - of_b * inverse[k] * r[k]
                floor_b = floor[k] * inverse[k]
                left_b = left_b if left_b > floor_b else floor_b
                r[k] = left_a * left_b
                without += r[k]
            if without <= SMALLEST:  # nothing is left without the token: it is included
                without = total
                for k in range(n_topics):
                    r[k] = a[k] * b[k]
            ratio = count[e] / without
            for k in range(n_topics):
                change = r[k] * ratio
                acc[k] += change
                q[k] += weight[d] * change
            if count[e] == 1.0:
                product *= total
                if product < SMALLEST:
                    of_document += np.log(product)
                    product = 1.0
            else:
                of_document += count[e] * np.log(total)
        value += weight[d] * (of_document + np.log(product))
        total = 0.0
        for k in range(n_topics):
            acc[k] += alpha[k]
            total += acc[k]
        for k in range(n_topics):
            new = acc[k] / total if total > 0.0 else 1.0 / n_topics
            a[k] = new if new > TINY else 0.0
    return value
