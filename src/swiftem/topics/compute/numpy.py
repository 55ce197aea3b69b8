r"""pLSA in NumPy: the definition of what compiled loops compute, and all that small data need.

**Tokens.** :func:`posterior` and :func:`statistics`.

**Documents.** A document has topics :math:`a_k`, an entry of it the count n and the word's probabilities
:math:`b_k`. With :math:`p = \max(\sum_k a_k b_k, \epsilon)`, its responsibilities, equation (condexp_plsa),
are :math:`r_k = a_k b_k / p`: a word that no topic of the document has is uninformative. It adds n·r_k to the
counts of its document and of its word. With R the sparse matrix of n / p, documents get a·(R b) and words
b·(Rᵀ a): two sparse products, after one product by entries. The document's M-step, equation (mstep_plsa), is
:math:`a_k \leftarrow (\sum_e n_e r_{ek} + \alpha_k) / \sum_k (\cdot)`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index

__all__ = [
    "LEAST_LEAP",
    "LONGEST_LEAP",
    "SMALLEST",
    "TINY",
    "Entries",
    "Folded",
    "by_rows",
    "fold",
    "leave_one_out_pass",
    "pass_over",
    "posterior",
    "select",
    "statistics",
]

SMALLEST = 1e-150
"""Smaller probabilities are replaced by this: no division by zero, and no subnormal numbers."""
TINY = 1e-60
"""Smaller shares of a topic are zero, for the same reason."""
LEAST_LEAP = 1e-6
"""Topics that change by less in total are not extrapolated: the direction would be rounding errors."""
LONGEST_LEAP = 8.0
"""Approximate limit of an extrapolation, in rounds: errors grow with its square."""


def posterior(tokens: Index, doc_topic: Array, topic_word: Array, topic_scale: Array) -> tuple[Array, Array]:
    r"""E-step, equation (condexp_plsa): :math:`r_k \propto \theta_{dk}\, \theta_{kv}\, c_k`.

    Parameters
    ----------
    tokens : ndarray of int, shape (b, 2)
        Document and word of each token.
    doc_topic : ndarray, shape (D, K)
        Topics of the documents.
    topic_word : ndarray, shape (K, V)
        Words of the topics.
    topic_scale : ndarray, shape (K,)
        c_k converts the reported topics to the working ones; 1 if no statistic is negative.

    Returns
    -------
    rows : ndarray, shape (b, K)
        Responsibilities, rows sum to 1; uniform for a token that has probability zero.
    loglik : ndarray, shape (b,)
        log g of the reported parameters, without c.
    """
    joint = doc_topic[tokens[:, 0]] * topic_word[:, tokens[:, 1]].T
    with np.errstate(divide="ignore"):
        loglik = np.log(joint.sum(axis=1))
    joint *= topic_scale
    total = joint.sum(axis=1, keepdims=True)
    rows = np.full_like(joint, 1.0 / joint.shape[1])
    np.divide(joint, total, out=rows, where=total > 0)
    return rows, loglik


def statistics(tokens: Index, rows: Array, weight: Array, n_documents: int, n_words: int) -> Array:
    r"""Weighted sum of equation (condexp_plsa): :math:`\sum_i w_i r_{ik}` by document and by word.

    Parameters
    ----------
    tokens : ndarray of int, shape (b, 2)
        Document and word of each token.
    rows : ndarray, shape (b, K)
        Responsibilities or differences of them: the result is linear in them.
    weight : ndarray, shape (b,)
        Factor of each token.
    n_documents, n_words : int
        D and V.

    Returns
    -------
    ndarray, shape (D·K + K·V,)
        First documents by topics, then topics by words, each row by row.
    """
    weighted = rows * weight[:, None]
    n_topics = rows.shape[1]
    flat = np.zeros((n_documents + n_words) * n_topics)
    by_document = flat[: n_documents * n_topics].reshape(n_documents, n_topics)
    by_word = flat[n_documents * n_topics :].reshape(n_topics, n_words)
    np.add.at(by_document, tokens[:, 0], weighted)
    np.add.at(by_word.T, tokens[:, 1], weighted)
    return flat


class Entries(NamedTuple):
    """The entries of D documents, in CSR order.

    Attributes
    ----------
    begin : ndarray of int, shape (D + 1,)
        Where documents begin.
    row, word : ndarray of int, shape (m,)
        Document and word of each.
    count : ndarray, shape (m,)
        How often it is there.
    """

    begin: Index
    row: Index
    word: NDArray[Any]
    count: Array  # type: ignore[assignment]  # hides tuple.count

    @classmethod
    def of(cls, begin: Index, word: NDArray[Any], count: Array) -> Entries:
        """Return the entries of a CSR matrix."""
        return cls(begin, np.repeat(np.arange(len(begin) - 1), np.diff(begin)), word, count)

    def matrix(self, values: Array, n_words: int) -> Any:
        """Return a sparse matrix (D, V) with these values."""
        from scipy.sparse import csr_array

        return csr_array((values, self.word, self.begin), shape=(len(self.begin) - 1, n_words))

    def by_document(self, values: Array) -> Array:
        """Return the sums of ``values`` (m,) or (m, K) over each document's entries."""
        from scipy.sparse import csr_array

        places, shape = np.arange(len(self.row)), (len(self.begin) - 1, len(self.row))
        return np.asarray(csr_array((np.ones(len(places)), places, self.begin), shape=shape) @ values)


def select(begin: Index, index: Index) -> tuple[Index, Index]:
    """Return where some documents begin if they are copied, and which entries are theirs."""
    sizes = begin[index + 1] - begin[index]
    copied = np.concatenate([[0], np.cumsum(sizes)])
    return copied, np.arange(copied[-1]) + np.repeat(begin[index] - copied[:-1], sizes)


def _probabilities(entries: Entries, a: Array, b: Array) -> Array:
    """Return p (m,); a (D, K) are the documents' topics, b (V, K) the words'."""
    found: Array = np.maximum(np.einsum("ek,ek->e", a[entries.row], b[entries.word]), SMALLEST)
    return found


def _m_step(counts: Array, alpha: Array) -> Array:
    """Return topics of documents (D, K) from their counts; uniform if there are no counts."""
    counts = counts + alpha
    total = counts.sum(axis=1, keepdims=True)
    found: Array = np.divide(counts, total, out=np.full_like(counts, 1.0 / len(alpha)), where=total > 0.0)
    found[found <= TINY] = 0.0
    return found


def _log_likelihood(entries: Entries, weight: Array, p: Array) -> float:
    """Return Σ w n log p; the last bit of a product by BLAS would depend on its threads."""
    return float((weight[entries.row] * (entries.count * np.log(p))).sum())


def pass_over(
    entries: Entries, weight: Array, doc_topic: Array, word_topic: Array, alpha: Array
) -> tuple[Array, Array, float]:
    """One iteration of EM, without the topics' M-step.

    Parameters
    ----------
    entries : Entries
        The counts.
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

    Examples
    --------
    >>> entries = Entries.of(np.array([0, 1, 2]), np.array([0, 1]), np.array([2.0, 1.0]))
    >>> start, words = np.full((2, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> pass_over(entries, np.ones(2), start, words, np.zeros(2))[0]
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    p = _probabilities(entries, doc_topic, word_topic)
    ratio = entries.matrix(entries.count / p, len(word_topic))
    by_word = word_topic * (ratio.T @ (doc_topic * weight[:, None]))
    value = _log_likelihood(entries, weight, p)
    return _m_step(doc_topic * (ratio @ word_topic), alpha), by_word, value


def leave_one_out_pass(
    entries: Entries,
    weight: Array,
    doc_topic: Array,
    word_topic: Array,
    alpha: Array,
    own: Array,
    totals: Array,
    beta: Array,
) -> tuple[Array, Array, float]:
    """As :func:`pass_over`, but each token is left out of the counts that explain it.

    CVB0 subtracts what a token added when it was last seen, and stores K numbers for each entry. Here that
    part is recomputed from the parameters, which is the same at convergence: two products of K instead of
    one, no memory, and sums of the same form.

    Parameters
    ----------
    own : ndarray, shape (D,)
        What a token adds to the topics of its document.
    totals : ndarray, shape (K,)
        Sums of counts and β over each topic's words.
    beta : ndarray, shape (1, K) or (V, K)
        Added to the topics' counts of words.
    """
    row, word, count = entries.row, entries.word, entries.count
    a, b = doc_topic[row], word_topic[word]
    joint = a * b
    p = np.maximum(joint.sum(axis=1), SMALLEST)
    inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    one = np.minimum(count, 1.0) / p  # a fraction of a token has added no more than itself
    a -= (one * own[row])[:, None] * joint
    np.maximum(a, (own[:, None] * alpha)[row], out=a)
    b -= (one * np.minimum(weight, 1.0)[row])[:, None] * joint * inverse
    np.maximum(b, beta[word if len(beta) > 1 else np.zeros(1, dtype=np.intp)] * inverse, out=b)
    a *= b
    without = a.sum(axis=1)
    nothing = without <= SMALLEST  # is left without the token: it is explained with it
    a[nothing], without[nothing] = joint[nothing], p[nothing]
    a *= (count / without)[:, None]
    by_word = np.empty_like(word_topic)
    for k, values in enumerate(np.ascontiguousarray((a * weight[row][:, None]).T)):
        by_word[:, k] = np.bincount(word, weights=values, minlength=len(word_topic))
    return _m_step(entries.by_document(a), alpha), by_word, _log_likelihood(entries, weight, p)


class Folded(NamedTuple):
    """Documents that were folded in.

    Attributes
    ----------
    doc_topic : ndarray, shape (D, K)
        The topics found.
    log_likelihood : ndarray, shape (D,)
        Σ n log p of each document.
    evaluations : int
        E-steps of entries.
    ratio : ndarray, shape (m,)
        n / p of the entries.
    """

    doc_topic: Array
    log_likelihood: Array
    evaluations: int
    ratio: Array

    def rows(self, entries: Entries, word_topic: Array) -> Array:
        """Return n·r_k of the entries, shape (m, K)."""
        rows: Array = self.ratio[:, None] * self.doc_topic[entries.row] * word_topic[entries.word]
        return rows

    def by_word(self, entries: Entries, word_topic: Array, weight: Array) -> Array:
        """Return Σ n·r_k of the words, weighted, shape (V, K)."""
        ratio = entries.matrix(self.ratio, len(word_topic))
        return np.asarray(word_topic * (ratio.T @ (self.doc_topic * weight[:, None])))


def fold(
    entries: Entries,
    word_topic: Array,
    alpha: Array,
    max_iter: int,
    tol: float,
    doc_topic: Array,
    *,
    leaps: bool = False,
) -> Folded:
    """Find documents' topics for given words of topics, from ``doc_topic`` (D, K) on; each stops by itself.

    With ``leaps`` every third iterate is extrapolated (SQUAREM), which takes 14 instead of 30 rounds to a
    change below 1e-4. A document's topics maximise a concave function, so that extrapolation is safe. A share
    decreases at most to a tenth, which keeps the map continuous: a rule that accepts or rejects an
    extrapolation would depend on rounding errors.
    """
    found, rounds = doc_topic.copy(), np.zeros(len(doc_topic), dtype=np.int64)
    left, here, a = np.arange(len(doc_topic)), entries, found.copy()
    zeroth: Array | None = None
    for count in range(1, max_iter + 1):
        if not len(left):
            break
        ratio = here.matrix(here.count / _probabilities(here, a, word_topic), len(word_topic))
        after = _m_step(a * (ratio @ word_topic), alpha)
        change = np.abs(after - a).sum(axis=1)
        first, a = a, after
        rounds[left] = count
        found[left] = a
        if leaps and zeroth is not None:
            jumps = (change >= tol) & (change > LEAST_LEAP) & (count < max_iter)
            a = np.where(jumps[:, None], _leap(zeroth, first, a), a)
            zeroth = None
        else:
            zeroth = first
        goes_on = change >= tol
        if not goes_on.all():
            left, a = left[goes_on], a[goes_on]
            zeroth = None if zeroth is None else zeroth[goes_on]
            begin, places = select(entries.begin, left)
            here = Entries.of(begin, entries.word[places], entries.count[places])
    p = _probabilities(entries, found, word_topic)
    value, evaluations = entries.by_document(entries.count * np.log(p)), (rounds + 1) * np.diff(entries.begin)
    return Folded(found, value, int(evaluations.sum()), entries.count / p)


def _leap(zeroth: Array, first: Array, second: Array) -> Array:
    """Extrapolate three iterates (D, K), document by document (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = (step * step).sum(axis=1), (bend * bend).sum(axis=1)
    length = np.sqrt(np.divide(squares, bends, out=np.ones_like(squares), where=bends > 0.0))
    length = np.clip(length, 1.0, LONGEST_LEAP)[:, None]
    found = np.maximum(zeroth + 2.0 * length * step + length**2 * bend, 0.1 * second)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def by_rows(beta: Array, n_topics: int) -> Array:
    """Return β for loops over words, shape (1, K) or (V, K), from (1, 1), (1, V) or (K, V)."""
    return np.ascontiguousarray(np.broadcast_to(beta.T, (beta.shape[1], n_topics)))
