"""Documents as rows of counts, divided into pieces for threads, and E-steps over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.rows.stored_source import Layout
from swiftem.data.sample_weight import extent_of
from swiftem.data.source import Access, Batch
from swiftem.engine.threads import in_order
from swiftem.files.durable import fingerprint
from swiftem.models.documents import by_rows

__all__ = ["Documents", "Rows"]

PIECES = 8
LEAST_ENTRIES = 20_000
"""Minimum number of entries for a thread."""
INNER = 10
"""Approximate number of rounds to fold in a document."""
ENTRIES_PER_WORD = 16
"""Minimum number of entries per word of a piece that sums words: summing pieces must not cost more."""
LEAST_NUMBERS = 1 << 19
"""Minimum of numbers in a table for which other threads are woken up."""
MOST_SUMS = 1 << 25
"""Maximum number of numbers in the pieces' own sums over words, together."""
MOST_ENTRIES = 1 << 22
"""Maximum number of entries of such a piece, as sums in float32 would lose what is added to them."""
LEAST_SINGLE = 1e-25
"""Smaller probabilities are zero in float32: products must not be subnormal."""
LEAST_CHANGE = 1e-5
"""Smaller tolerances of topics that are folded in need float64."""


class Rows(NamedTuple):
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
    dtype : {float64, float32}
        What compiled loops compute sums over topics in. Topics of documents, sums of pieces and what is
        returned are float64. In float32 a pass takes about half as long, and results differ by about 1e-6 of
        themselves.

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

    def __init__(self, X: Any, weight: Array | None = None, dtype: type = np.float64) -> None:
        self.n, self.n_words = X.shape
        self.dtype = dtype
        self.begin = X.indptr.astype(np.int64, copy=False)
        self.word: NDArray[np.int32] = X.indices.astype(np.int32, copy=False)
        self.count = X.data.astype(np.float64, copy=False)
        self.weight = np.ones(self.n) if weight is None else np.asarray(weight, dtype=np.float64)
        sums = np.add.reduceat(np.append(self.count, 0.0), np.minimum(self.begin[:-1], len(self.count)))
        self.length: Array = np.where(np.diff(self.begin) > 0, sums, 0.0)
        self.total = float((self.weight * self.length).sum())
        self._place: NDArray[np.int32] | None = None
        self._spare: Any = None
        self.shared: Any = None  # tables and sums of a pass over several blocks, memory.Shared

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
    def extent(self) -> tuple[float, float]:
        """The smallest and the largest of all positive counts and weights."""
        return extent_of(self.count, self.weight)

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
        return Documents(self.matrix()[numbers], self.weight[numbers], self.dtype)

    def take(self, index: Index) -> Batch:
        """Return the documents with these indices, as :class:`Documents` restricted to their words."""
        from swiftem.engine.numba.plsa_documents import gather

        if self._place is None:
            self._place = np.full(self.n_words, -1, dtype=np.int32)
        entries = int((self.begin[index + 1] - self.begin[index]).sum())
        begin, word = np.empty(len(index) + 1, np.int64), np.empty(entries, np.int32)
        count, words = np.empty(entries), np.empty(min(entries, self.n_words), dtype=np.int64)
        found = gather(index, self.begin, self.word, self.count, self._place, begin, word, count, words)
        taken = Documents(Rows(begin, word, count, (len(index), found)), self.weight[index], self.dtype)
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
        enough = 1 << max(0, most.bit_length() - 1)
        return self.pieces(max(enough, -(-self.n_entries // MOST_ENTRIES)), 1)

    @property
    def _entries(self) -> tuple[Any, ...]:
        return self.begin, self.word, self.count, self.weight

    def _rows(self, rows: int, columns: int, dtype: type) -> Any:
        from swiftem.engine.numba.memory import Spare

        if self._spare is None:
            self._spare = Spare()
        return self._spare.rows(rows, columns, dtype)

    def _by_words(self, work: Callable[[int, int], None], numbers: int) -> None:
        """Call ``work(first, last)`` for ranges of words; ``numbers`` are what it reads."""
        count = PIECES if numbers > LEAST_NUMBERS else 1
        for _ in in_order(work, list(pairwise(np.linspace(0, self.n_words, count + 1).astype(int).tolist()))):
            pass

    def _table(self, word_topic: Array, dtype: type | None = None, name: str = "topics") -> Any:
        """Return words of topics (V, K) for compiled loops: padded, in their precision."""
        dtype = self.dtype if dtype is None else dtype
        if self.shared is not None and name in self.shared.tables:
            return self.shared.tables[name]
        from swiftem.engine.numba.lines.tables import write_table

        table, values = (
            self._rows(len(word_topic), word_topic.shape[1], dtype),
            np.ascontiguousarray(word_topic),
        )
        if self.shared is not None:
            self.shared.tables[name] = table
        least = LEAST_SINGLE if dtype is np.float32 else 0.0
        if len(values) == self.n_words:
            self._by_words(partial(write_table, values, least, table), values.size)
        else:
            write_table(values, least, table, 0, len(values))
        return table

    def _over(
        self, work: Callable[..., Any], factor: Array, between: Callable[[], None], rounds: int = 1
    ) -> tuple[Array, Any]:
        """Return the sums over pieces times ``factor`` (V, K), and the sum of their values.

        ``work(sums, first, last)`` adds those of a piece to ``sums``, which may be float32. A factor of no
        rows is 1.
        """
        if self.shared is not None:
            pieces = self.pieces(len(self.shared.parts), LEAST_ENTRIES)
            each = [(part, *piece) for part, piece in zip(self.shared.parts, pieces, strict=False)]
            values = 0
            for value in in_order(work, each):
                between()
                values += value
            return np.empty((0, factor.shape[1])), values
        from swiftem.engine.numba.lines.tables import add_parts

        def piece(sums: Any, first: int, last: int) -> Any:
            sums[:] = 0.0
            return work(sums, first, last)

        n_words, n_topics = self.n_words, factor.shape[1]
        found, total, none = np.empty((n_words, n_topics)), 0, np.empty((0, n_topics))
        pieces = self._summed(n_topics, rounds)
        parts = self._rows(min(PIECES, len(pieces)) * n_words, n_topics, self.dtype)
        for first in range(0, len(pieces), PIECES):
            group = pieces[first : first + PIECES]
            each = [(parts[i * n_words : (i + 1) * n_words], *ends) for i, ends in enumerate(group)]
            for value in in_order(piece, each):
                between()
                total += value
            before, times = found if first else none, factor if first + PIECES >= len(pieces) else none
            add = partial(add_parts, parts, len(group), before, times, found)
            self._by_words(add, len(group) * found.size)
        self._spare.keep([parts])
        return found, total

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
        from swiftem.engine.numba.plsa_document_passes import pass_over

        table = self._table(topics.T)

        def work(sums: Any, first: int, last: int) -> float:
            return float(pass_over(*self._entries, doc_topic, table, alpha, sums, first, last))

        by_word, value = self._over(work, np.ascontiguousarray(topics.T), between)
        if self.shared is None:
            self._spare.keep([table])
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
        from swiftem.engine.numba.plsa_document_passes import leave_one_out_pass

        table = self._table(topics.T)
        floor = self._table(by_rows(beta, len(alpha)) / np.where(totals > 0.0, totals, np.inf), name="floor")
        given = (*self._entries, self.length, doc_topic, table, totals, alpha, floor)

        def work(sums: Any, first: int, last: int) -> float:
            return float(leave_one_out_pass(*given, sums, first, last))

        by_word, value = self._over(work, np.empty((0, len(alpha))), between)
        if self.shared is None:
            self._spare.keep([table])
        return by_word.T, value

    def fold_in(
        self,
        topics: Array,
        alpha: Array,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        likelihood: bool = True,
    ) -> tuple[Array, Array]:
        """Return the documents' topics for given words of topics (D, K), and their log-likelihoods (D,).

        Documents start uniform. Each stops when the total change of its topics is below ``tol``. Without
        ``likelihood``, log-likelihoods are not computed.
        """
        from swiftem.engine.numba.plsa_documents import fold_in

        found = np.full((self.n, len(topics)), 1.0 / len(topics))
        log_likelihood = np.empty(self.n if likelihood else 0)
        table = self._table(topics.T, self.dtype if tol >= LEAST_CHANGE else np.float64)
        given = (*self._entries, table, alpha, max_iter, tol, found, log_likelihood, table[:0])
        work = [(*given, *piece) for piece in self.pieces(64, LEAST_ENTRIES // 8)]
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
        from swiftem.engine.numba.plsa_documents import fold_in

        table = self._table(word_topic)
        given = (*self._entries, table, alpha, max_iter, tol, doc_topic, np.empty(0))
        by_word, evaluations = self._over(
            lambda sums, *piece: fold_in(*given, sums, *piece),
            np.ascontiguousarray(word_topic),
            between,
            INNER,
        )
        if self.shared is None:
            self._spare.keep([table])
        return by_word, int(evaluations)
