r"""Documents of corpora with few entries, in NumPy and SciPy, all entries at once: nothing is compiled.

It computes what :mod:`swiftem.engine.reference.plsa_documents` defines document by document, and what
``engine/numba/plsa_documents.py`` does in compiled loops. An entry of count n has :math:`p = \sum_k a_k b_k`,
a of its document and b of its word, and adds :math:`n a_k b_k / p` to both. With R the sparse matrix of
n / p, documents get a·(R b) and words b·(Rᵀ a): two sparse products, after one product by entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.source import Batch
from swiftem.engine.documents import Documents, Rows
from swiftem.engine.reference.plsa_documents import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY
from swiftem.models.documents import by_rows

__all__ = ["Entries", "SmallDocuments"]


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
    count: Array  # type: ignore[assignment]  # hides tuple.count, which nobody needs here

    @classmethod
    def of(cls, begin: Index, word: NDArray[Any], count: Array) -> Entries:
        """Return the entries of a CSR matrix."""
        return cls(begin, np.repeat(np.arange(len(begin) - 1), np.diff(begin)), word, count)

    def some(self, index: Index) -> tuple[Entries, Index]:
        """Return the entries of some documents, and their places among all."""
        sizes = np.diff(self.begin)[index]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(begin[-1]) + np.repeat(self.begin[index] - begin[:-1], sizes)
        return Entries.of(begin, self.word[places], self.count[places]), places

    def matrix(self, values: Array, n_words: int) -> Any:
        """Return a sparse matrix (D, V) with these values."""
        from scipy.sparse import csr_array

        return csr_array((values, self.word, self.begin), shape=(len(self.begin) - 1, n_words))

    def by_document(self, values: Array) -> Array:
        """Return the sums of ``values`` (m,) or (m, K) over each document's entries."""
        from scipy.sparse import csr_array

        places, shape = np.arange(len(self.row)), (len(self.begin) - 1, len(self.row))
        return np.asarray(csr_array((np.ones(len(places)), places, self.begin), shape=shape) @ values)


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
    """One iteration of EM; arguments and results as in the module that defines it.

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
    entries: Entries, weight: Array, length: Array, doc_topic: Array, word_topic: Array, totals: Array,
    alpha: Array, beta: Array,
) -> tuple[Array, Array, float]:  # fmt: skip
    """As :func:`pass_over`, but no token is explained by what it has itself added to the counts.

    ``beta`` is (1, K) or (V, K), ``length`` (D,) has the documents' tokens.
    """
    row, word, count = entries.row, entries.word, entries.count
    a, b = doc_topic[row], word_topic[word]
    joint = a * b
    p = np.maximum(joint.sum(axis=1), SMALLEST)
    tokens = length + alpha.sum()
    own = np.divide(1.0, tokens, out=np.zeros_like(tokens), where=tokens > 0.0)
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


def fold(
    entries: Entries, word_topic: Array, alpha: Array, max_iter: int, tol: float, doc_topic: Array,
    *, leaps: bool = False,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Find documents' topics for given words of topics, from ``doc_topic`` (D, K) on; each stops by itself.

    Returns
    -------
    doc_topic : ndarray, shape (D, K)
        The topics found.
    log_likelihood : ndarray, shape (D,)
        Σ n log p of each document.
    evaluations : int
        E-steps of entries.
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
            here, _ = entries.some(left)
    log_p = entries.count * np.log(_probabilities(entries, found, word_topic))
    sizes = np.diff(entries.begin)
    return found, entries.by_document(log_p), int(((rounds + 1) * sizes).sum())


def _leap(zeroth: Array, first: Array, second: Array) -> Array:
    """Extrapolate three iterates (D, K), document by document (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = (step * step).sum(axis=1), (bend * bend).sum(axis=1)
    length = np.sqrt(np.divide(squares, bends, out=np.ones_like(squares), where=bends > 0.0))
    length = np.clip(length, 1.0, LONGEST_LEAP)[:, None]
    found = np.maximum(zeroth + 2.0 * length * step + length**2 * bend, 0.1 * second)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def sums_of(
    entries: Entries, weight: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
    doc_topic: Array,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Fold documents in, and sum their words up: topics (D, K), Σ n·r (V, K), and E-steps of entries."""
    found, _, evaluations = fold(entries, word_topic, alpha, max_iter, tol, doc_topic)
    ratio = entries.matrix(entries.count / _probabilities(entries, found, word_topic), len(word_topic))
    return found, word_topic * (ratio.T @ (found * weight[:, None])), evaluations


class SmallDocuments(Documents):
    """As :class:`Documents`, in NumPy and float64.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> documents = SmallDocuments(sp.csr_array([[2, 1, 0], [0, 1, 1]]))
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    @cached_property
    def entries(self) -> Entries:
        """The entries, with the document of each."""
        return Entries.of(self.begin, self.word, self.count)

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, with all words."""
        return SmallDocuments(self.matrix()[numbers], self.weight[numbers])

    def take(self, index: Index) -> Batch:
        """Return the documents with these numbers, as documents of the words that they have."""
        some, _ = self.entries.some(index)
        words, word = np.unique(some.word, return_inverse=True)
        rows = Rows(some.begin, word.astype(np.int32), some.count, (len(index), len(words)))
        taken = SmallDocuments(rows, self.weight[index])
        taken.words = words.astype(np.int64)
        return Batch(taken, taken.weight, index)  # type: ignore[arg-type]

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """As :meth:`Documents.em_pass`."""
        between()
        given = self.entries, self.weight, doc_topic, np.ascontiguousarray(topics.T), alpha
        doc_topic[:], by_word, value = pass_over(*given)
        return by_word.T, value

    def leave_one_out_pass(
        self, doc_topic: Array, topics: Array, totals: Array, alpha: Array, beta: Array,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, float]:  # fmt: skip
        """As :meth:`Documents.leave_one_out_pass`."""
        between()
        doc_topic[:], by_word, value = leave_one_out_pass(
            self.entries, self.weight, self.length, doc_topic, np.ascontiguousarray(topics.T), totals, alpha,
            by_rows(beta, len(alpha)),
        )  # fmt: skip
        return by_word.T, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """As :meth:`Documents.fold_in`."""
        start, words = np.full((self.n, len(topics)), 1.0 / len(topics)), np.ascontiguousarray(topics.T)
        return fold(self.entries, words, alpha, max_iter, tol, start, leaps=True)[:2]

    def sums(
        self, doc_topic: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, int]:  # fmt: skip
        """As :meth:`Documents.sums`."""
        between()
        given = self.entries, self.weight, word_topic, alpha, max_iter, tol, doc_topic
        doc_topic[:], by_word, evaluations = sums_of(*given)
        return by_word, evaluations
