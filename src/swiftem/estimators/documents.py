"""Documents as rows of counts, cut into pieces that threads work on, and E-steps over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.kernels.threads import in_order

__all__ = ["Documents"]

PIECES = 8
LEAST_ENTRIES = 20_000
"""A piece with fewer entries is not worth a thread."""
MOST_SUMS = 1 << 26
"""Numbers that the pieces' own sums over words may take together."""


class Documents:
    """A corpus of counts.

    What is summed up over documents is summed by pieces that depend on the data alone, and the pieces are
    added in order: the number of threads changes no bit.

    Parameters
    ----------
    X : sparse array, shape (D, V)
        Counts, in CSR form, not negative.
    weight : ndarray, shape (D,), optional
        Weights of the documents.

    Attributes
    ----------
    total : float
        Tokens, weighted.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from swiftem.estimators.documents import Documents
    >>> documents = Documents(sp.csr_array([[2, 1, 0], [0, 1, 1]]))
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    def __init__(self, X: Any, weight: Array | None = None) -> None:
        self.n, self.n_words = X.shape
        self.begin = X.indptr.astype(np.int64)
        self.word: NDArray[np.int32] = X.indices.astype(np.int32)
        self.count = X.data.astype(np.float64)
        self.weight = np.ones(self.n) if weight is None else np.asarray(weight, dtype=np.float64)
        sums = np.add.reduceat(np.append(self.count, 0.0), np.minimum(self.begin[:-1], len(self.count)))
        self.length: Array = np.where(np.diff(self.begin) > 0, sums, 0.0)
        self.total = float(self.weight @ self.length)

    def matrix(self) -> Any:
        """Return the counts as a CSR array, shape (D, V)."""
        from scipy.sparse import csr_array

        return csr_array((self.count, self.word, self.begin), shape=(self.n, self.n_words))

    def take(self, numbers: Index) -> Documents:
        """Return some of the documents."""
        return Documents(self.matrix()[numbers], self.weight[numbers])

    def pieces(self, n_topics: int) -> list[tuple[int, int]]:
        """Return ranges of documents with about as many entries each."""
        entries = int(self.begin[-1])
        most = max(1, min(PIECES, entries // LEAST_ENTRIES, MOST_SUMS // (self.n_words * n_topics)))
        bounds = np.searchsorted(self.begin, np.linspace(0, entries, most + 1))
        bounds[0], bounds[-1] = 0, self.n
        unique = np.unique(bounds)
        return list(zip(unique[:-1].tolist(), unique[1:].tolist(), strict=True))

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """One E-step of all documents, and the M-step of their topics in place.

        Parameters
        ----------
        doc_topic : ndarray, shape (D, K)
            Topics of the documents, replaced.
        topics : ndarray, shape (K, V)
            Words of the topics.
        alpha : ndarray, shape (K,)
            Added to the documents' counts of topics.
        between : callable
            Called between pieces; it may raise, and documents are then partly ahead.

        Returns
        -------
        by_topic : ndarray, shape (K, V)
            Expected counts of words in topics.
        log_likelihood : float
            Of all tokens, weighted, before the M-step.
        """
        from swiftem.kernels.numba.plsa_documents import pass_over

        word_topic = np.ascontiguousarray(topics.T)

        def piece(first: int, last: int) -> tuple[Array, float]:
            by_word = np.zeros(word_topic.shape)
            value = pass_over(
                self.begin, self.word, self.count, self.weight, doc_topic, word_topic, alpha, by_word, first, last
            )  # fmt: skip
            return by_word, value

        return _added(in_order(piece, self.pieces(len(alpha))), between)

    def fold_in(
        self,
        topics: Array,
        alpha: Array,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        doc_topic: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the documents' topics for given words of topics (D, K), and their log-likelihoods (D,).

        Each document stops when its topics change by less than ``tol`` in all.
        """
        from swiftem.kernels.numba.plsa_documents import fold_in

        n_topics = len(topics)
        found = np.full((self.n, n_topics), 1.0 / n_topics) if doc_topic is None else doc_topic
        log_likelihood = np.empty(self.n)
        word_topic = np.ascontiguousarray(topics.T)
        work = [
            (
                self.begin,
                self.word,
                self.count,
                word_topic,
                alpha,
                max_iter,
                tol,
                found,
                log_likelihood,
                *piece,
            )
            for piece in self.pieces(n_topics)
        ]
        for _ in in_order(fold_in, work):
            pass
        return found, log_likelihood

    def batch_sums(
        self, numbers: Index, topics: Array, alpha: Array, max_iter: int, tol: float
    ) -> tuple[Array, Array]:
        """Fold a batch of documents in and return expected counts (K, V) and their topics (b, K)."""
        from swiftem.kernels.numba.plsa_documents import sums_of

        word_topic = np.ascontiguousarray(topics.T)
        found = np.empty((len(numbers), len(topics)))
        half = (len(numbers) + 1) // 2

        def piece(first: int, last: int) -> tuple[Array, float]:
            by_word = np.zeros(word_topic.shape)
            value = sums_of(
                numbers, self.begin, self.word, self.count, self.weight, word_topic, alpha, max_iter, tol, by_word,
                found, first, last,
            )  # fmt: skip
            return by_word, value

        halves = [(0, half), (half, len(numbers))] if len(numbers) > 1 else [(0, 1)]
        return _added(in_order(piece, halves), lambda: None)[0], found


def _added(parts: Any, between: Callable[[], None]) -> tuple[Array, float]:
    """Return the sum over pieces, as (K, V), and of their values."""
    by_word: Array | None = None
    total = 0.0
    for part, value in parts:
        between()
        by_word = part if by_word is None else by_word.__iadd__(part)
        total += value
    assert by_word is not None, "there is at least one document"
    return np.ascontiguousarray(by_word.T), total
