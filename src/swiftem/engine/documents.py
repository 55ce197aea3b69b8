"""Documents as rows of counts, divided into pieces for threads, and E-steps over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.rows.stored_source import Layout
from swiftem.data.source import Access, Batch
from swiftem.engine.reference import plsa_entries
from swiftem.engine.reference.plsa_entries import Entries
from swiftem.engine.threads import in_order
from swiftem.files.durable import fingerprint
from swiftem.models.documents import by_rows

__all__ = ["Documents", "SmallDocuments"]

PIECES = 8
LEAST_ENTRIES = 20_000
"""Minimum number of entries for a thread."""
INNER = 10
"""Approximate number of rounds to fold in a document."""
ENTRIES_PER_WORD = 8
"""Minimum number of entries per word of a piece that sums words: summing pieces must not cost more."""
MOST_SUMS = 1 << 25
"""Maximum number of numbers in the pieces' own sums over words, together."""


class Spare:
    """Arrays for the sums of pieces, reused in the next pass: new memory pages cost more than sums."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Return an array of zeros; thread-safe."""
        try:
            array = self._arrays.pop()
        except IndexError:
            return np.zeros(shape)
        if array.shape != shape:
            return np.zeros(shape)
        array[:] = 0.0
        return array

    def keep(self, arrays: list[Array]) -> None:
        """Take back arrays that are no longer needed."""
        self._arrays = arrays


class _Rows(NamedTuple):
    """The arrays of a CSR array; constructing a real one takes as long as a batch."""

    indptr: Index
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]


class Documents:
    """A corpus of counts: a source whose samples are documents.

    Sums over documents are computed by pieces that depend only on the data, and the pieces are added in
    order: the number of threads changes no bit.

    Parameters
    ----------
    X : sparse array, shape (D, V)
        Non-negative counts, in CSR form.
    weight : ndarray, shape (D,), optional
        Weights of the documents.

    Attributes
    ----------
    total : float
        Weighted number of tokens.
    words : ndarray of int, shape (V,), or None
        The words' numbers if the documents were taken from others; None: they are 0, 1, ...
    doc_topic : ndarray, shape (D, K), or None
        Results of the documents' E-steps, from which the next ones begin; None: uniform.
    allocate : callable
        Allocates arrays of that shape.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from swiftem.engine.documents import Documents
    >>> documents = Documents(sp.csr_array([[2, 1, 0], [0, 1, 1]]))
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    access: ClassVar[Access] = "random"
    words: Index | None = None
    doc_topic: Array | None = None
    allocate: Callable[[tuple[int, int]], Array] = staticmethod(np.empty)  # type: ignore[assignment]

    def __init__(self, X: Any, weight: Array | None = None) -> None:
        self.n, self.n_words = X.shape
        self.begin = X.indptr.astype(np.int64, copy=False)
        self.word: NDArray[np.int32] = X.indices.astype(np.int32, copy=False)
        self.count = X.data.astype(np.float64, copy=False)
        self.weight = np.ones(self.n) if weight is None else np.asarray(weight, dtype=np.float64)
        sums = np.add.reduceat(np.append(self.count, 0.0), np.minimum(self.begin[:-1], len(self.count)))
        self.length: Array = np.where(np.diff(self.begin) > 0, sums, 0.0)
        self.total = float(self.weight @ self.length)
        self._place: NDArray[np.int32] | None = None
        self._spare = Spare()

    @property
    def n_entries(self) -> int:
        """Number of non-zero counts."""
        return len(self.count)

    def fingerprint(self) -> str:
        """Return a text that changes if counts, weights or the number of words change."""
        return fingerprint(
            f"documents of {self.n_words} words", self.begin, self.word, self.count, self.weight
        )

    @property
    def total_weight(self) -> float:
        """Sum of the documents' weights."""
        return float(self.weight.sum())

    @property
    def layout(self) -> Layout:
        """How documents are drawn: in random order, each once per epoch."""
        return Layout(np.array([0, self.n]), 1, True)

    def matrix(self) -> Any:
        """Return the counts as a CSR array, shape (D, V)."""
        from scipy.sparse import csr_array

        return csr_array((self.count, self.word, self.begin), shape=(self.n, self.n_words))

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, with all words."""
        return Documents(self.matrix()[numbers], self.weight[numbers])

    def take(self, index: Index) -> Batch:
        """Return the documents with these indices, as :class:`Documents` restricted to their words."""
        from swiftem.engine.numba.plsa_documents import gather

        if self._place is None:
            self._place = np.full(self.n_words, -1, dtype=np.int32)
        entries = int((self.begin[index + 1] - self.begin[index]).sum())
        begin, word = np.empty(len(index) + 1, np.int64), np.empty(entries, np.int32)
        count, words = np.empty(entries), np.empty(min(entries, self.n_words), dtype=np.int64)
        found = gather(index, self.begin, self.word, self.count, self._place, begin, word, count, words)
        taken = Documents(_Rows(begin, word, count, (len(index), found)), self.weight[index])
        taken.words = words[:found]
        return Batch(taken, taken.weight, index)  # type: ignore[arg-type]

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all documents in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            yield self.take(np.arange(start, min(start + rows, self.n)))

    def pieces(self, most: int = PIECES, least_entries: int = LEAST_ENTRIES) -> list[tuple[int, int]]:
        """Return at most this many ranges of documents, with about equally many entries."""
        entries = int(self.begin[-1])
        most = max(1, min(most, entries // least_entries))
        bounds = np.searchsorted(self.begin, np.linspace(0, entries, most + 1))
        bounds[0], bounds[-1] = 0, self.n
        unique = np.unique(bounds)
        return list(zip(unique[:-1].tolist(), unique[1:].tolist(), strict=True))

    def _summed(self, n_topics: int, rounds: int = 1) -> list[tuple[int, int]]:
        """Return pieces with their own sums: no more than fit into memory, or than are worth adding."""
        room = MOST_SUMS // max(1, self.n_words * n_topics)
        least = max(LEAST_ENTRIES, ENTRIES_PER_WORD * self.n_words) // rounds
        most = min(PIECES, room, self.n_entries // max(1, least))
        # A power of two: that many threads then have about equal work.
        return self.pieces(1 << max(0, most.bit_length() - 1), 1)

    @property
    def _entries(self) -> tuple[Any, ...]:
        return self.begin, self.word, self.count, self.weight

    def _over(
        self, work: Callable[..., float], shape: tuple[int, ...], between: Callable[[], None], rounds: int = 1
    ) -> tuple[Array, float]:
        """Return the sums over pieces, (V, K), and of their values; threads add ranges of words.

        ``work(sums, first, last)`` adds those of a piece to ``sums``.
        """

        def piece(first: int, last: int) -> tuple[Array, float]:
            by_word = self._spare.zeros(shape)
            return by_word, work(by_word, first, last)

        sums, total = [], 0.0
        for part, value in in_order(piece, self._summed(shape[1], rounds)):
            between()
            sums.append(part)
            total += value

        def add(first: int, last: int) -> None:
            for part in sums[1:]:
                sums[0][first:last] += part[first:last]

        ranges = [(0, len(sums[0]))]
        if len(sums) > 1 and sums[0].size > LEAST_ENTRIES:
            ranges = list(pairwise(np.linspace(0, len(sums[0]), PIECES + 1).astype(int).tolist()))
        for _ in in_order(add, ranges):
            pass
        self._spare.keep(sums[1:])
        return sums[0], total

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """One E-step of all documents, and the M-step of their topics in place.

        Parameters
        ----------
        doc_topic : ndarray, shape (D, K)
            Topics of the documents, overwritten.
        topics : ndarray, shape (K, V)
            Words of the topics.
        alpha : ndarray, shape (K,)
            Added to the documents' counts of topics.
        between : callable
            Called between pieces; if it raises, some documents are already updated.

        Returns
        -------
        by_topic : ndarray, shape (K, V)
            Expected counts of words in topics.
        log_likelihood : float
            Of all tokens, weighted, before the M-step.
        """
        from swiftem.engine.numba.plsa_documents import pass_over

        word_topic, entries = np.ascontiguousarray(topics.T), self._entries
        by_word, value = self._over(
            lambda sums, *piece: pass_over(*entries, doc_topic, word_topic, alpha, sums, *piece),
            word_topic.shape, between,
        )  # fmt: skip
        return by_word.T, value

    def leave_one_out_pass(
        self, doc_topic: Array, topics: Array, totals: Array, alpha: Array, beta: Array,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, float]:  # fmt: skip
        """As :meth:`em_pass`, but each token is left out of the counts that explain it.

        Parameters
        ----------
        totals : ndarray, shape (K,)
            Sums of counts and β over each topic's words.
        beta : ndarray, shape (1, 1), (1, V) or (K, V)
            Added to the topics' counts of words.
        """
        from swiftem.engine.numba.plsa_leave_one_out import leave_one_out_pass

        word_topic, floor = np.ascontiguousarray(topics.T), by_rows(beta, len(alpha))
        given = (*self._entries, self.length, doc_topic, word_topic, totals, alpha, floor)
        by_word, value = self._over(
            lambda sums, *piece: leave_one_out_pass(*given, sums, *piece), word_topic.shape, between
        )
        return by_word.T, value

    def fold_in(
        self,
        topics: Array,
        alpha: Array,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> tuple[Array, Array]:
        """Return the documents' topics for given words of topics (D, K), and their log-likelihoods (D,).

        Documents start uniform. Each stops when the total change of its topics is below ``tol``.
        """
        from swiftem.engine.numba.plsa_documents import fold_in

        found = np.full((self.n, len(topics)), 1.0 / len(topics))
        log_likelihood, word_topic = np.empty(self.n), np.ascontiguousarray(topics.T)
        entries = (self.begin, self.word, self.count)
        work = [
            (*entries, word_topic, alpha, max_iter, tol, found, log_likelihood, *piece)
            for piece in self.pieces(64, LEAST_ENTRIES // 8)
        ]
        for _ in in_order(fold_in, work):
            pass
        return found, log_likelihood

    def sums(
        self, doc_topic: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, int]:  # fmt: skip
        """Fold all documents in by plain iterations, and sum their words.

        Parameters
        ----------
        doc_topic : ndarray, shape (D, K)
            Initial topics, replaced by the result.
        word_topic : ndarray, shape (V, K)
            Words of the topics.
        alpha : ndarray, shape (K,)
            Added to the documents' counts of topics.
        max_iter, tol
            When the iterations of a document stop.

        Returns
        -------
        by_word : ndarray, shape (V, K)
            Expected counts of words in topics.
        evaluations : int
            E-steps of entries.
        """
        from swiftem.engine.numba.plsa_documents import sums_of

        given = (*self._entries, word_topic, alpha, max_iter, tol)
        by_word, evaluations = self._over(
            lambda sums, *piece: sums_of(*given, sums, doc_topic, *piece), word_topic.shape, between, INNER
        )
        return by_word, int(evaluations)


class SmallDocuments(Documents):
    """The same without compiled code, for corpora of few entries: see :mod:`plsa_entries`.

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
        rows = _Rows(some.begin, word.astype(np.int32), some.count, (len(index), len(words)))
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
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3
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
