r"""pLSA by documents, in plain NumPy: the definition of what ``engine/numba/plsa_documents.py`` computes.

A document has topics :math:`a_k`, an entry of it the count n and the word's probabilities :math:`b_k`. Its
responsibilities, equation (condexp_plsa), are :math:`r_k = a_k b_k / \max(\sum_k a_k b_k, \epsilon)`: a word
that no topic of the document has is uninformative. The document's M-step, equation (mstep_plsa), is
:math:`a_k \leftarrow (\sum_e n_e r_{ek} + \alpha_k) / \sum_k (\cdot)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem._typing import Array, Index

__all__ = ["SMALLEST", "TINY", "Folded", "fold", "leave_one_out_pass", "pass_over", "responsibilities"]

SMALLEST, TINY, LEAST_LEAP, LONGEST_LEAP = 1e-150, 1e-60, 1e-6, 8.0


def responsibilities(a: Array, b: Array) -> tuple[Array, Array]:
    """Return r (m, K) and p (m,) of entries; a (K,) are the document's topics, b (m, K) their words'."""
    joint = a * b
    p = np.maximum(joint.sum(axis=1), SMALLEST)
    return joint / p[:, None], p


def _m_step(counts: Array, alpha: Array) -> Array:
    """Return the topics (K,) of a document; uniform if all are zero."""
    total = (counts + alpha).sum()
    found = (counts + alpha) / total if total > 0 else np.full(len(alpha), 1.0 / len(alpha))
    return np.where(found > TINY, found, 0.0)


def pass_over(
    begin: Index, word: Index, count: Array, weight: Array, doc_topic: Array, word_topic: Array, alpha: Array
) -> tuple[Array, Array, float]:
    """One iteration of EM, without the topics' M-step.

    Parameters
    ----------
    begin, word, count : ndarray, shapes (D + 1,), (m,), (m,)
        Entries of the documents in CSR order.
    weight : ndarray, shape (D,)
        Weights of the documents.
    doc_topic : ndarray, shape (D, K)
        Topics of documents.
    word_topic : ndarray, shape (V, K)
        Words of topics.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.

    Returns
    -------
    doc_topic : ndarray, shape (D, K)
        After the M-step.
    by_word : ndarray, shape (V, K)
        Σ n·r_k of the words, weighted.
    value : float
        Σ n log p of the entries, weighted, before the M-step.
    """
    found, by_word, value = np.empty_like(doc_topic), np.zeros_like(word_topic), 0.0
    for d in range(len(doc_topic)):
        entries = slice(begin[d], begin[d + 1])
        r, p = responsibilities(doc_topic[d], word_topic[word[entries]])
        weighted = count[entries, None] * r
        np.add.at(by_word, word[entries], weight[d] * weighted)
        value += weight[d] * float(count[entries] @ np.log(p))
        found[d] = _m_step(weighted.sum(axis=0), alpha)
    return found, by_word, value


def leave_one_out_pass(
    begin: Index, word: Index, count: Array, weight: Array, doc_topic: Array, word_topic: Array,
    totals: Array, alpha: Array, beta: Array,
) -> tuple[Array, Array, float]:  # fmt: skip
    """As :func:`pass_over`, but each token is left out of the counts that explain it.

    CVB0 subtracts what a token added when it was last seen, and stores K numbers for each entry. Here that
    part is recomputed from the parameters, which is the same at convergence: two products of K instead of
    one, no memory, and sums of the same form.

    Parameters
    ----------
    totals : ndarray, shape (K,)
        Sums of counts and β over each topic's words.
    beta : ndarray, shape (V, K)
        Added to the topics' counts of words.
    """
    found, by_word, value = np.empty_like(doc_topic), np.zeros_like(word_topic), 0.0
    for d in range(len(doc_topic)):
        entries = slice(begin[d], begin[d + 1])
        n, a, b = count[entries, None], doc_topic[d], word_topic[word[entries]]
        r, p = responsibilities(a, b)
        of_document = n.sum() + alpha.sum()
        left_a = np.maximum(a - np.minimum(n, 1.0) * r / of_document, alpha / of_document)
        own = np.minimum(n, 1.0) * min(weight[d], 1.0)
        left_b = np.maximum(b - own * r / totals, beta[word[entries]] / totals)
        joint = left_a * left_b
        without = joint.sum(axis=1, keepdims=True)
        r = np.where(without > SMALLEST, joint / np.maximum(without, SMALLEST), r)
        np.add.at(by_word, word[entries], weight[d] * n * r)
        value += weight[d] * float(count[entries] @ np.log(p))
        found[d] = _m_step((n * r).sum(axis=0), alpha)
    return found, by_word, value


def _rounds(
    b: Array, count: Array, a: Array, alpha: Array, max_iter: int, tol: float, leaps: bool
) -> tuple[Array, int]:
    """Iterate a document's topics until they change by less than ``tol``; return them and the iterations."""

    def image(a: Array) -> Array:
        return _m_step(count @ responsibilities(a, b)[0], alpha)

    before: list[Array] = []
    for rounds in range(1, max_iter + 1):
        after = image(a)
        before.append(a)
        change, a = np.abs(after - a).sum(), after
        if change < tol:
            return a, rounds
        if leaps and len(before) == 2:
            before, (zeroth, first) = [], before
            if change <= LEAST_LEAP or rounds == max_iter:
                continue
            step = first - zeroth
            bend = a - first - step
            length = np.sqrt((step @ step) / (bend @ bend)) if bend.any() else 1.0
            length = min(max(length, 1.0), LONGEST_LEAP)
            a = np.maximum(zeroth + 2.0 * length * step + length**2 * bend, 0.1 * a)
            a = a / a.sum()
    return a, max_iter


class Folded(NamedTuple):
    """Results for documents after a few rounds.

    Attributes
    ----------
    rows : ndarray, shape (m, K)
        n·r_k of the entries.
    doc_topic : ndarray, shape (D, K)
        The topics found.
    log_likelihood : ndarray, shape (D,)
        Σ n log p.
    evaluations : int
        E-steps of entries.
    """

    rows: Array
    doc_topic: Array
    log_likelihood: Array
    evaluations: int


def fold(
    begin: Index, word: Index, count: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
    doc_topic: Array, *, leaps: bool = False,
) -> Folded:  # fmt: skip
    """Find documents' topics for given words of topics, starting at ``doc_topic``; each stops by itself.

    Arrays are as in :func:`pass_over`; ``leaps`` is whether every third iterate is extrapolated (SQUAREM),
    which takes 14 instead of 30 rounds to a change below 1e-4. A document's topics maximise a concave
    function, so that extrapolation is safe. A share decreases at most to a tenth, which keeps the map
    continuous: a rule that accepts or rejects an extrapolation would depend on rounding errors.
    """
    rows, found, evaluations = np.empty((len(word), len(alpha))), np.empty_like(doc_topic), 0
    log_likelihood = np.empty(len(doc_topic))
    for d in range(len(doc_topic)):
        entries = slice(begin[d], begin[d + 1])
        b = word_topic[word[entries]]
        found[d], rounds = _rounds(b, count[entries], doc_topic[d], alpha, max_iter, tol, leaps)
        r, p = responsibilities(found[d], b)
        rows[entries], log_likelihood[d] = count[entries, None] * r, count[entries] @ np.log(p)
        evaluations += (rounds + 1) * len(b)
    return Folded(rows, found, log_likelihood, evaluations)
