"""Documents as rows of counts, divided into pieces for threads, and E-steps over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Layout, Samples, Source
from swiftem.core.types import Array, Index
from swiftem.data.weights import extent_of
from swiftem.kernels.threads import in_order
from swiftem.topics.compute import numpy

__all__ = ["Corpus", "Documents", "FoldingCorpus", "Rows", "SmallDocuments", "Spare", "table_of"]

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

Between = Callable[[], None]
"""Called between the pieces of a pass; if it raises, some documents are already updated."""
Work = Callable[[Any, int, int], Any]
"""``work(sums, first, last)`` adds what a range of documents gives to padded sums of words (V, K), which may
be float32, and returns a value to be added up."""


def nothing() -> None:
    """Do nothing between the pieces of a pass."""


class Corpus(Protocol):
    """Documents, wherever they are: in memory (compiled or NumPy), in a file, on a device, in units.

    Attributes
    ----------
    n, n_words, n_entries : int
        Samples, words, and non-zero counts.
    total, total_weight : float
        Weighted number of tokens, and the sum of the documents' weights.
    doc_topic : ndarray, shape (D, K), or None
        Results of the documents' E-steps, from which the next ones begin; None: uniform.
    """

    n: int
    n_words: int
    n_entries: int
    total: float
    total_weight: float
    doc_topic: Array | None

    def allocate(self, shape: tuple[int, int]) -> Array:
        """Return memory for topics of documents; without rows if their topics are not kept."""
        ...

    def fingerprint(self) -> str:
        """Return a text that changes if counts, weights or the number of words change."""
        ...

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Between = nothing
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

        Returns
        -------
        by_topic : ndarray, shape (K, V)
            Expected counts of words in topics.
        log_likelihood : float
            Of all tokens, weighted, before the M-step.
        """
        ...

    def leave_one_out_pass(
        self,
        doc_topic: Array,
        topics: Array,
        totals: Array,
        alpha: Array,
        beta: Array,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """As :meth:`em_pass`, but each token is left out of the counts that explain it.

        Parameters
        ----------
        totals : ndarray, shape (K,)
            Sums of counts and β over each topic's words.
        beta : ndarray, shape (1, 1), (1, V) or (K, V)
            Added to the topics' counts of words.
        """
        ...


class FoldingCorpus(Corpus, Protocol):
    """A corpus whose documents can be folded in one by one; not those in units."""

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, indices ascending, in memory, with all words."""
        ...

    def take(self, index: Index) -> Batch:
        """Return the documents with these indices, as :class:`Documents` restricted to their words."""
        ...

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """Return the documents' topics for given words of topics (D, K), and their log-likelihoods (D,).

        Documents start uniform. Each stops when the total change of its topics is below ``tol``. Without
        ``likelihood``, log-likelihoods need not be computed.
        """
        ...

    def sums(
        self,
        doc_topic: Array,
        word_topic: Array,
        alpha: Array,
        max_iter: int,
        tol: float,
        between: Between = nothing,
    ) -> tuple[Array, int]:
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
        ...


class Rows(NamedTuple):
    """The arrays of a CSR array; constructing a real one takes as long as a batch."""

    indptr: Index
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]


class Documents(Source):
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
    >>> from swiftem.topics.compute.corpus import Documents
    >>> documents = Documents(sp.csr_array([[2, 1, 0], [0, 1, 1]]))
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    access: ClassVar[Access] = "random"
    samples: ClassVar[Samples] = "documents"
    n: int = 0
    weight: Array
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
    def extent(self) -> tuple[float, float]:
        """The smallest and the largest of all positive counts and weights."""
        return extent_of(self.count, self.weight)

    @property
    def total_weight(self) -> float:
        """Sum of the documents' weights."""
        return float(self.weight.sum())

    @property
    def layout(self) -> Layout:  # type: ignore[override]
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
        from swiftem.topics.compute.folding_kernels import gather

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
    def _entries(self) -> Any:
        from swiftem.topics.compute.passes_kernels import Entries

        return Entries(self.begin, self.word, self.count[None, :], self.weight)

    def _over(
        self, work: Work, factor: Array, between: Between, tables: list[Any], rounds: int = 1
    ) -> tuple[Array, Any]:
        """Return the sums over pieces times ``factor`` (V, K), and the sum of their values.

        A factor of no rows is 1. The tables are no longer needed then.
        """
        from swiftem.topics.compute.passes_kernels import add_parts

        def piece(sums: Any, first: int, last: int) -> Any:
            sums[:] = 0.0
            return work(sums, first, last)

        n_words, n_topics = self.n_words, factor.shape[1]
        found, total, none = np.empty((n_words, n_topics)), 0, np.empty((0, n_topics))
        pieces = self._summed(n_topics, rounds)
        parts = self._spare.rows(min(PIECES, len(pieces)) * n_words, n_topics, self.dtype)
        for first in range(0, len(pieces), PIECES):
            group = pieces[first : first + PIECES]
            each = [(parts[i * n_words : (i + 1) * n_words], *ends) for i, ends in enumerate(group)]
            for value in in_order(piece, each):
                between()
                total += value
            before, times = found if first else none, factor if first + PIECES >= len(pieces) else none
            add = partial(add_parts, parts, len(group), before, times, found)
            _by_words(add, n_words, len(group) * found.size)
        self._spare.keep([parts, *tables])
        return found, total

    def em_work(self, doc_topic: Array, table: Any, alpha: Array) -> Work:
        """Return the work of :meth:`em_pass`; its sums are to be multiplied by the words of topics."""
        from swiftem.topics.compute.passes_kernels import pass_over

        return partial(pass_over, self._entries, doc_topic, table, alpha)

    def leave_one_out_work(
        self, doc_topic: Array, table: Any, floor: Any, totals: Array, alpha: Array
    ) -> Work:
        """Return the work of :meth:`leave_one_out_pass`."""
        from swiftem.topics.compute.passes_kernels import leave_one_out_pass

        tokens = self.length + np.cumsum(alpha)[-1]
        own = np.divide(1.0, tokens, out=np.zeros_like(tokens), where=tokens > 0.0)
        return partial(leave_one_out_pass, self._entries, own, doc_topic, table, totals, alpha, floor)

    def fold_work(self, doc_topic: Array, table: Any, alpha: Array, max_iter: int, tol: float) -> Work:
        """Return the work of :meth:`sums`; its sums are to be multiplied by the words of topics."""
        from swiftem.topics.compute.folding_kernels import fold_in

        return partial(fold_in, self._entries, table, alpha, max_iter, tol, doc_topic, np.empty(0))

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Between = nothing
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.em_pass`."""
        table = table_of(topics.T, self.dtype, self._spare)
        work = self.em_work(doc_topic, table, alpha)
        by_word, value = self._over(work, np.ascontiguousarray(topics.T), between, [table])
        return by_word.T, value

    def leave_one_out_pass(
        self,
        doc_topic: Array,
        topics: Array,
        totals: Array,
        alpha: Array,
        beta: Array,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.leave_one_out_pass`."""
        table = table_of(topics.T, self.dtype, self._spare)
        floor = table_of(floor_of(beta, totals), self.dtype, self._spare)
        work = self.leave_one_out_work(doc_topic, table, floor, totals, alpha)
        by_word, value = self._over(work, np.empty((0, len(alpha))), between, [table])
        return by_word.T, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`FoldingCorpus.fold_in`."""
        from swiftem.topics.compute.folding_kernels import fold_in

        found = np.full((self.n, len(topics)), 1.0 / len(topics))
        log_likelihood = np.empty(self.n if likelihood else 0)
        table = table_of(topics.T, self.dtype if tol >= LEAST_CHANGE else np.float64, self._spare)
        given = (self._entries, table, alpha, max_iter, tol, found, log_likelihood, table[:0])
        for _ in in_order(fold_in, [(*given, *piece) for piece in self.pieces(64, LEAST_ENTRIES // 8)]):
            pass
        return found, log_likelihood

    def sums(
        self,
        doc_topic: Array,
        word_topic: Array,
        alpha: Array,
        max_iter: int,
        tol: float,
        between: Between = nothing,
    ) -> tuple[Array, int]:
        """See :meth:`FoldingCorpus.sums`."""
        table = table_of(word_topic, self.dtype, self._spare)
        work = self.fold_work(doc_topic, table, alpha, max_iter, tol)
        by_word, evaluations = self._over(work, np.ascontiguousarray(word_topic), between, [table], INNER)
        return by_word, int(evaluations)


class SmallDocuments(Documents):
    """As :class:`Documents`, in NumPy and float64: nothing is compiled.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> documents = SmallDocuments(sp.csr_array([[2, 1, 0], [0, 1, 1]]))
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    @cached_property
    def entries(self) -> numpy.Entries:
        """The entries, with the document of each."""
        return numpy.Entries.of(self.begin, self.word, self.count)

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
        self, doc_topic: Array, topics: Array, alpha: Array, between: Between = nothing
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.em_pass`."""
        between()
        given = self.entries, self.weight, doc_topic, np.ascontiguousarray(topics.T), alpha
        doc_topic[:], by_word, value = numpy.pass_over(*given)
        return by_word.T, value

    def leave_one_out_pass(
        self,
        doc_topic: Array,
        topics: Array,
        totals: Array,
        alpha: Array,
        beta: Array,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.leave_one_out_pass`."""
        between()
        doc_topic[:], by_word, value = numpy.leave_one_out_pass(
            self.entries,
            self.weight,
            self.length,
            doc_topic,
            np.ascontiguousarray(topics.T),
            totals,
            alpha,
            numpy.by_rows(beta, len(alpha)),
        )
        return by_word.T, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`FoldingCorpus.fold_in`."""
        start, words = np.full((self.n, len(topics)), 1.0 / len(topics)), np.ascontiguousarray(topics.T)
        found = numpy.fold(self.entries, words, alpha, max_iter, tol, start, leaps=True)
        return found.doc_topic, found.log_likelihood

    def sums(
        self,
        doc_topic: Array,
        word_topic: Array,
        alpha: Array,
        max_iter: int,
        tol: float,
        between: Between = nothing,
    ) -> tuple[Array, int]:
        """See :meth:`FoldingCorpus.sums`."""
        between()
        found = numpy.fold(self.entries, word_topic, alpha, max_iter, tol, doc_topic)
        doc_topic[:] = found.doc_topic
        return found.by_word(self.entries, word_topic, self.weight), found.evaluations


class Spare:
    """Padded arrays for tables and sums, reused in the next pass: new memory pages cost more than sums."""

    def __init__(self, most: int = 10) -> None:
        self._arrays: list[Any] = []
        self._most = most

    def rows(self, rows: int, columns: int, dtype: type) -> Any:
        """Return an array of (rows, columns), rounded up to cache lines, with any numbers in it."""
        from swiftem.kernels.vector import padded, width

        for place, array in enumerate(self._arrays):
            if array.shape == (rows, width(columns, dtype)) and array.dtype == dtype:
                return self._arrays.pop(place)
        return padded(rows, columns, dtype)

    def keep(self, arrays: list[Any]) -> None:
        """Take back arrays that are no longer needed; of those of earlier shapes, few are kept."""
        self._arrays = [*arrays, *self._arrays][: self._most]


def table_of(word_topic: Array, dtype: type, spare: Spare) -> Any:
    """Return words of topics (V, K) for compiled loops: padded, in their precision."""
    from swiftem.topics.compute.passes_kernels import write_table

    values = np.ascontiguousarray(word_topic)
    table = spare.rows(len(values), values.shape[1], dtype)
    least = LEAST_SINGLE if dtype is np.float32 else 0.0
    _by_words(partial(write_table, values, least, table), len(values), values.size)
    return table


def floor_of(beta: Array, totals: Array) -> Array:
    """Return the least probabilities of words, β over the topics' totals (K,), shape (1, K) or (V, K)."""
    return numpy.by_rows(beta, len(totals)) / np.where(totals > 0.0, totals, np.inf)


def _by_words(work: Callable[[int, int], None], n_words: int, numbers: int) -> None:
    """Call ``work(first, last)`` for ranges of words; ``numbers`` are what it reads."""
    count = PIECES if numbers > LEAST_NUMBERS else 1
    for _ in in_order(work, list(pairwise(np.linspace(0, n_words, count + 1).astype(int).tolist()))):
        pass
