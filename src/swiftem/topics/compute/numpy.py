r"""pLSA in NumPy: the definition of what compiled loops compute, and all that small data need.

**Tokens.** :func:`posterior` and :func:`statistics`.

**Documents.** A document has topics :math:`a_k`, an entry of it the count n and the word's probabilities
:math:`b_k`. With :math:`p = \max(\sum_k a_k b_k, \epsilon)`, its responsibilities, equation (condexp_plsa),
are :math:`r_k = a_k b_k / p`: a word that no topic of the document has is uninformative. It adds n·r_k to the
counts of its document and of its word. With R the sparse matrix of n / p, documents get a·(R b) and words
b·(Rᵀ a): two sparse products, after one product by entries. The document's M-step, equation (mstep_plsa), is
:math:`a_k \leftarrow (\sum_e n_e r_{ek} + \alpha_k) / \sum_k (\cdot)`.

**Topics that differ.** Words that are common to all documents of a corpus are likely in every topic of it,
and hide what a topic is about. There are two remedies:

- *background*: topic 0 starts at the frequencies of words in the whole corpus. It is a topic like the others,
  but does not take part in the decorrelation: words that are common to many topics move to it.
- *decorrelation*: after each pass, a topic's expected counts of a word are divided by
  :math:`1 + \tau \bar\theta_v`, where :math:`\bar\theta_v` is the mean probability of the word in the other
  topics, without the background. This is the decorrelation of Tan and Ou (2010) and Vorontsov and Potapenko
  (2015), as a division, which never makes a word impossible, instead of a difference.

Neither climbs the likelihood: predictions become a little worse, and topics easier to tell apart. How the
default was chosen is in ``benchmarks/DECISIONS.md``. Both functions take arrays and tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Table = TypeVar("Table", bound=Any)
"""An array or a tensor."""
SMALLEST = 1e-150
"""Smaller probabilities are replaced by this: no division by zero, and no subnormal numbers."""
TINY = 1e-60
"""Smaller shares of a topic are zero, for the same reason."""
LEAST_LEAP = 1e-6
"""Topics that change by less in total are not extrapolated: the direction would be rounding errors."""
LONGEST_LEAP = 8.0
"""Approximate limit of an extrapolation, in rounds: errors grow with its square."""
SHARE = 0.3
"""Share of the background in each document when it is added."""
LEAST = 0.1
"""With momentum no number falls below this share of em's own step: em could not leave zero."""


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
    begin : ndarray of int64, shape (D + 1,)
        Entries of document d are begin[d] to begin[d + 1] − 1.
    word : ndarray of int32, shape (m,)
        Their words.
    count : ndarray, shape (m,)
        How often they occur.
    weight : ndarray, shape (D,)
        Weights of documents, factors of their parts of sums.
    """

    begin: Index
    word: NDArray[np.int32]
    count: Array  # type: ignore[assignment]  # hides tuple.count
    weight: Array

    @property
    def row(self) -> Index:
        """Document of each entry, shape (m,)."""
        return np.repeat(np.arange(len(self.weight)), np.diff(self.begin))

    def matrix(self, values: Array, n_words: int) -> csr_array:
        """Return a sparse matrix (D, V) with these values (m,)."""
        from scipy.sparse import csr_array

        return csr_array((values, self.word, self.begin), shape=(len(self.weight), n_words))

    def chosen(self, index: Index) -> Entries:
        """Return a copy of the entries of some documents."""
        sizes = self.begin[index + 1] - self.begin[index]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(begin[-1]) + np.repeat(self.begin[index] - begin[:-1], sizes)
        return Entries(begin, self.word[places], self.count[places], self.weight[index])


def _sums(index: NDArray[np.integer], values: Array, size: int) -> Array:
    """Return the sums of ``values`` (m,) or (m, K) by their index (m,)."""
    from scipy.sparse import csr_array

    places = np.arange(len(index) + 1)
    return np.asarray(csr_array((np.ones(len(index)), index, places), shape=(len(index), size)).T @ values)


def _probabilities(a: Array, b: Array) -> Array:
    """Return p (m,) of entries; a (m, K) are their documents' topics, b (m, K) their words'."""
    p: Array = np.maximum(np.einsum("ek,ek->e", a, b), SMALLEST)
    return p


def _m_step(counts: Array, alpha: Array) -> Array:
    """Return topics of documents (D, K) from their counts; uniform if there are no counts."""
    counts = counts + alpha
    total = counts.sum(axis=1, keepdims=True)
    topics: Array = np.divide(counts, total, out=np.full_like(counts, 1.0 / len(alpha)), where=total > 0.0)
    topics[topics <= TINY] = 0.0
    return topics


def responsibilities(entries: Entries, p: Array, doc_topic: Array, word_topic: Array) -> Array:
    """Return n·r_k of the entries, shape (m, K)."""
    rows: Array = (entries.count / p)[:, None] * doc_topic[entries.row] * word_topic[entries.word]
    return rows


def counts_of_words(entries: Entries, p: Array, doc_topic: Array, word_topic: Array) -> Array:
    """Return Σ n·r_k of the words, weighted, shape (V, K)."""
    ratio = entries.matrix(entries.count / p, len(word_topic))
    return np.asarray(word_topic * (ratio.T @ (doc_topic * entries.weight[:, None])))


def log_likelihoods(entries: Entries, p: Array) -> Array:
    """Return Σ n log p of the documents, shape (D,)."""
    return _sums(entries.row, entries.count * np.log(p), len(entries.weight))


def pass_over(
    entries: Entries,
    doc_topic: Array,
    word_topic: Array,
    alpha: Array,
    left_out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, float]:
    """One iteration of EM, without the topics' M-step.

    Parameters
    ----------
    entries : Entries
        The counts.
    doc_topic : ndarray, shape (D, K)
        Topics of documents.
    word_topic : ndarray, shape (V, K)
        Words of topics.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    left_out : tuple, optional
        To leave each token out of the counts that explain it: what a token adds to the topics of its document
        (D,); the sums of counts and β over each topic's words (K,); and β, shape (1, K) or (V, K).

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
    >>> entries = Entries(np.array([0, 1, 2]), np.array([0, 1]), np.array([2.0, 1.0]), np.ones(2))
    >>> start, words = np.full((2, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> pass_over(entries, start, words, np.zeros(2))[0]
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    row, word = entries.row, entries.word
    weight, a, b = entries.weight[row], doc_topic[row], word_topic[word]
    p = _probabilities(a, b)
    # The last bit of a product by BLAS would depend on its threads.
    value = float((weight * (entries.count * np.log(p))).sum())
    if left_out is None:
        of_documents = doc_topic * (entries.matrix(entries.count / p, len(word_topic)) @ word_topic)
        by_word = counts_of_words(entries, p, doc_topic, word_topic)
    else:
        rows = _without_own(entries, row, p, a, b, alpha, left_out)
        of_documents = _sums(row, rows, len(doc_topic))
        by_word = _sums(word, rows * weight[:, None], len(word_topic))
    return _m_step(of_documents, alpha), by_word, value


def _without_own(
    entries: Entries,
    row: Index,
    p: Array,
    a: Array,
    b: Array,
    alpha: Array,
    left_out: tuple[Array, Array, Array],
) -> Array:
    """Return n·r_k of the entries (m, K), where each token is left out of the counts that explain it.

    CVB0 subtracts what a token added when it was last seen, and stores K numbers for each entry. Here that
    part is recomputed from the parameters, which is the same at convergence; a and b (m, K) are overwritten.
    """
    own, totals, beta = left_out
    joint = a * b
    inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    one = np.minimum(entries.count, 1.0) / p  # a fraction of a token has added no more than itself
    a -= (one * own[row])[:, None] * joint
    np.maximum(a, (own[:, None] * alpha)[row], out=a)
    b -= (one * np.minimum(entries.weight, 1.0)[row])[:, None] * joint * inverse
    np.maximum(b, beta[entries.word if len(beta) > 1 else np.zeros(1, dtype=np.intp)] * inverse, out=b)
    a *= b
    without = a.sum(axis=1)
    nothing = without <= SMALLEST  # is left without the token: it is explained with it
    a[nothing], without[nothing] = joint[nothing], p[nothing]
    a *= (entries.count / without)[:, None]
    return a


def fold(
    entries: Entries,
    word_topic: Array,
    alpha: Array,
    max_iter: int,
    tol: float,
    doc_topic: Array,
    *,
    leaps: bool = False,
) -> tuple[Array, Array, int]:
    """Find documents' topics for given words of topics, from ``doc_topic`` (D, K) on; each stops by itself.

    With ``leaps`` every third iterate is extrapolated (SQUAREM), which takes 14 instead of 30 rounds to a
    change below 1e-4. A document's topics maximise a concave function, so that extrapolation is safe. A share
    decreases at most to a tenth, which keeps the map continuous: a rule that accepts or rejects an
    extrapolation would depend on rounding errors.

    Returns
    -------
    doc_topic : ndarray, shape (D, K)
        The topics found.
    p : ndarray, shape (m,)
        Probabilities of the entries at these topics.
    evaluations : int
        E-steps of entries.
    """
    found, rounds = doc_topic.copy(), np.zeros(len(doc_topic), dtype=np.int64)
    left, here, row, a = np.arange(len(doc_topic)), entries, entries.row, found.copy()
    zeroth: Array | None = None
    for count in range(1, max_iter + 1):
        if not len(left):
            break
        p = _probabilities(a[row], word_topic[here.word])
        after = _m_step(a * (here.matrix(here.count / p, len(word_topic)) @ word_topic), alpha)
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
            here = entries.chosen(left)
            row = here.row
    evaluations = int(((rounds + 1) * np.diff(entries.begin)).sum())
    return found, _probabilities(found[entries.row], word_topic[entries.word]), evaluations


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


def decorrelated(counts: Table, topics: Table, strength: float, background: bool) -> Table:
    """Return expected counts (K, V) over 1 + ``strength`` times the word's mean share in the other topics.

    Parameters
    ----------
    counts, topics : ndarray or tensor, shape (K, V)
        Expected counts of words in topics, and the words of topics that are their M-step.
    strength : float
        τ; 0 returns the counts themselves.
    background : bool
        Whether topic 0 does not take part.

    Examples
    --------
    >>> counts = np.array([[8.0, 2.0], [0.0, 5.0]])
    >>> decorrelated(counts, counts / counts.sum(axis=1, keepdims=True), 5.0, False).round(2)
    array([[8.  , 0.33],
           [0.  , 2.5 ]])
    """
    first = int(background)
    if strength == 0.0 or len(counts) - first < 2:
        return counts
    others = topics[first:].sum(axis=0) - topics[first:]
    others *= strength / (len(counts) - first - 1)
    others += 1.0
    found: Table = counts * 1.0
    found[first:] /= others
    return found


def with_background(counts: Table) -> tuple[Table, int]:
    """Return counts (K, V) with the corpus in place of topic 0, and the index that topic 0 has then.

    The smallest topic is given up for it.

    >>> with_background(np.array([[4.0, 0.0], [0.0, 4.0], [1.0, 1.0]]))[0].round(2)
    array([[1.5, 1.5],
           [0. , 2.8],
           [2.8, 0. ]])
    """
    smallest = int(counts.sum(axis=1).argmin())
    found = counts * (1.0 - SHARE)
    found[smallest] = found[0]
    found[0] = SHARE * counts.sum(axis=0)
    return found, smallest


def make_room(doc_topic: Table, place: int) -> None:
    """Give the background its share of documents (D, K), in place; topic 0 moves to ``place``.

    >>> shares = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> make_room(shares, 2)
    >>> shares.round(2)
    array([[0.3 , 0.35, 0.35],
           [1.  , 0.  , 0.  ]])
    """
    doc_topic[:, place] = doc_topic[:, 0]
    doc_topic[:, 0] = 0.0
    totals = doc_topic.sum(axis=1)[:, None]
    totals += totals == 0.0
    doc_topic /= totals / (1.0 - SHARE)
    doc_topic[:, 0] = 1.0 - doc_topic.sum(axis=1)
