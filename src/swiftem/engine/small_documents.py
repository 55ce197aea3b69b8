"""Documents of corpora with few entries: nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from swiftem._typing import Array, Index
from swiftem.data.source import Batch
from swiftem.engine.documents import Documents, Rows
from swiftem.engine.reference import plsa_entries
from swiftem.engine.reference.plsa_entries import Entries
from swiftem.models.documents import by_rows

__all__ = ["SmallDocuments"]


class SmallDocuments(Documents):
    """As :class:`Documents`, in NumPy and float64: see :mod:`plsa_entries`.

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
        doc_topic[:], by_word, value = plsa_entries.pass_over(*given)
        return by_word.T, value

    def leave_one_out_pass(
        self, doc_topic: Array, topics: Array, totals: Array, alpha: Array, beta: Array,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, float]:  # fmt: skip
        """As :meth:`Documents.leave_one_out_pass`."""
        between()
        doc_topic[:], by_word, value = plsa_entries.leave_one_out_pass(
            self.entries, self.weight, self.length, doc_topic, np.ascontiguousarray(topics.T), totals, alpha,
            by_rows(beta, len(alpha)),
        )  # fmt: skip
        return by_word.T, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """As :meth:`Documents.fold_in`."""
        start, words = np.full((self.n, len(topics)), 1.0 / len(topics)), np.ascontiguousarray(topics.T)
        return plsa_entries.fold(self.entries, words, alpha, max_iter, tol, start, leaps=True)[:2]

    def sums(
        self, doc_topic: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, int]:  # fmt: skip
        """As :meth:`Documents.sums`."""
        between()
        given = self.entries, self.weight, word_topic, alpha, max_iter, tol, doc_topic
        doc_topic[:], by_word, evaluations = plsa_entries.sums_of(*given)
        return by_word, evaluations
