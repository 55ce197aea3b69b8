"""Documents as rows of counts, in memory, on a device or read in blocks, and E-steps over them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from copy import copy
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_weights, extent_of, read_sample_weight
from swiftem.core.files import fingerprint, release
from swiftem.core.source import Access, Batch, Layout, Samples, Source
from swiftem.core.types import Array, Index
from swiftem.data.documents.counts import (
    DocumentSource,
    FileDocuments,
    PathName,
    SpooledDocuments,
    checked_sparse,
    stacked,
)
from swiftem.data.stored import read_ahead
from swiftem.kernels.threads import in_order
from swiftem.topics.compute import numpy
from swiftem.topics.compute.numpy import Entries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from swiftem.data.documents.counts import Counts
    from swiftem.topics.compute.torch import TorchPasses

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
PARTS = 4
"""Maximum number of pieces of a block: each has sums of its own, which stay for the whole pass."""
BLOCK = 4096
"""Documents per block; the documents of a batch come from one block."""

Between = Callable[[], None]
"""Called between the pieces of a pass; if it raises, some documents are already updated."""
LeftOut = tuple[Array, Array]
"""Sums of counts and β over each topic's words (K,), and β."""
Work = Callable[[Array, int, int], float]
"""``work(sums, first, last)`` adds what a range of documents gives to padded sums of words (V, K), which may
be float32, and returns a value to be added up."""


def nothing() -> None:
    """Do nothing between the pieces of a pass."""


class Corpus(Source):
    """Documents whose E-steps are compiled, in one portion or in several that are read one after the other.

    Sums over documents are computed by pieces that depend only on the data, and the pieces are added in
    order: the number of threads changes no bit.

    Attributes
    ----------
    n, n_words, n_entries : int
        Documents, words, and non-zero counts.
    length, weight : ndarray, shape (D,)
        Tokens of the documents, and their weights.
    total, total_weight : float
        Weighted number of tokens, and the sum of the documents' weights.
    extent : (float, float)
        The smallest and the largest of all positive counts and weights.
    dtype : {float64, float32}
        What compiled loops compute sums over topics in. Topics of documents, sums of pieces and what is
        returned are float64. In float32 a pass takes about half as long, and results differ by about 1e-6 of
        themselves.
    doc_topic : ndarray, shape (D, K), or None
        Results of the documents' E-steps, from which the next ones begin; None: uniform.
    allocate : callable
        Allocates arrays of that shape.
    """

    samples: ClassVar[Samples] = "documents"
    n: int = 0
    total_weight: float = 0.0
    n_entries: int
    total: float
    length: Array
    weight: Array
    dtype: type = np.float64
    doc_topic: Array | None = None
    allocate: Callable[[tuple[int, int]], Array] = staticmethod(np.empty)  # type: ignore[assignment]
    most_spare: ClassVar[int] = 10
    """Padded arrays for tables and sums that later passes use again: new memory pages cost more than sums."""
    _spare: list[Array]

    @property
    def with_words(self) -> int:
        """Number of documents that have words and a positive weight."""
        return int((self.length * self.weight > 0).sum())

    @abstractmethod
    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, indices ascending, in memory, with all words."""

    @abstractmethod
    def portions(self) -> Iterator[tuple[slice, Documents]]:
        """Yield all documents in order, with their places among them."""

    @abstractmethod
    def _parts(self, n_topics: int, rounds: int) -> tuple[int, int]:
        """Return how many pieces of a portion have sums of their own, and the fewest entries of a piece."""

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all documents in order, at most ``rows`` at a time."""
        for part, block in self.portions():
            for start in range(0, block.n, rows):
                batch = block.take(np.arange(start, min(start + rows, block.n)))
                yield batch._replace(index=batch.index + part.start)

    def em_pass(
        self,
        doc_topic: Array,
        topics: Array,
        alpha: Array,
        left_out: LeftOut | None = None,
        between: Between = nothing,
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
        left_out : tuple, optional
            To leave each token out of the counts that explain it: the sums of counts and β over each topic's
            words (K,), and β, of shape (1, 1), (1, V) or (K, V).
        between : callable
            Called between the pieces of the pass.

        Returns
        -------
        by_topic : ndarray, shape (K, V)
            Expected counts of words in topics.
        log_likelihood : float
            Of all tokens, weighted, before the M-step.
        """
        from swiftem.topics.compute.passes_kernels import pass_over

        floor = topics[:0]
        if left_out is not None:
            totals, beta = left_out
            least = numpy.by_rows(beta, len(totals)) / np.where(totals > 0.0, totals, np.inf)
            floor = self._table(least, self.dtype)

        def work(block: Documents, places: Array, table: Array) -> Work:
            without = None if left_out is None else (block.shares_of_a_token(alpha), left_out[0], floor)
            return partial(pass_over, block.entries, places, table, alpha, without)

        by_word, value = self._over(work, doc_topic, topics.T, between, is_ratio=left_out is None)
        return by_word.T, value

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
        from swiftem.topics.compute.passes_kernels import fold_in

        def work(block: Documents, places: Array, table: Array) -> Work:
            return partial(fold_in, block.entries, table, alpha, max_iter, tol, places, np.empty(0))

        by_word, evaluations = self._over(work, doc_topic, word_topic, between, rounds=INNER)
        return by_word, int(evaluations)

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """Return the documents' topics for given words of topics (D, K), and their log-likelihoods (D,).

        Documents start uniform. Each stops when the total change of its topics is below ``tol``. Without
        ``likelihood``, log-likelihoods need not be computed.
        """
        from swiftem.topics.compute.passes_kernels import fold_in

        doc_topic = np.full((self.n, len(topics)), 1.0 / len(topics))
        log_likelihood = np.empty(self.n if likelihood else 0)
        table = self._table(topics.T, self.dtype if tol >= LEAST_CHANGE else np.float64)
        for rows, block in self.portions():
            given = (block.entries, table, alpha, max_iter, tol, doc_topic[rows], log_likelihood[rows])
            pieces = block.pieces(64, LEAST_ENTRIES // 8)
            for _ in in_order(fold_in, [(*given, table[:0], *piece) for piece in pieces]):
                pass
        return doc_topic, log_likelihood

    def _rows(self, rows: int, columns: int, dtype: type) -> Array:
        """Return an array of (rows, columns), rounded up to cache lines, with any numbers in it."""
        from swiftem.kernels.vector import padded, width

        for place, array in enumerate(self._spare):
            if array.shape == (rows, width(columns, dtype)) and array.dtype == dtype:
                return self._spare.pop(place)
        fresh: Array = padded(rows, columns, dtype)
        return fresh

    def _keep(self, array: Array) -> None:
        """Take back an array that is no longer needed."""
        self._spare = [array, *self._spare][: self.most_spare]

    def _table(self, word_topic: Array, dtype: type) -> Array:
        """Return words of topics (V, K) for compiled loops: padded, in their precision."""
        from swiftem.topics.compute.passes_kernels import write_table

        values = np.ascontiguousarray(word_topic)
        table = self._rows(len(values), values.shape[1], dtype)
        least = LEAST_SINGLE if dtype is np.float32 else 0.0
        _by_words(partial(write_table, values, least, table), len(values), values.size)
        return table

    def _over(
        self,
        work_of: Callable[[Documents, Array, Array], Work],
        doc_topic: Array,
        word_topic: Array,
        between: Between,
        *,
        rounds: int = 1,
        is_ratio: bool = True,
    ) -> tuple[Array, float]:
        """Return the sums over all documents and the sum of their values; ``work_of`` gets words of topics.

        If ``is_ratio``, sums are multiplied by words of topics (V, K). Piece i of a portion adds to part i of
        the sums. Parts are emptied into a total in float64 before they have more than :data:`MOST_ENTRIES`
        entries.
        """
        from swiftem.topics.compute.passes_kernels import add_parts

        def piece(work: Work, is_new: bool, sums: Array, first: int, last: int) -> float:
            if is_new:
                sums[:] = 0.0
            return work(sums, first, last)

        def empty(factor: Array) -> None:
            before = by_word if is_emptied else none
            add = partial(add_parts, parts, used, before, factor, by_word)
            _by_words(add, n_words, used * by_word.size)

        n_words, n_topics = self.n_words, doc_topic.shape[1]
        table, factor = self._table(word_topic, self.dtype), word_topic if is_ratio else word_topic[:0]
        by_word, none = np.empty((n_words, n_topics)), np.empty((0, n_topics))
        parts, used, entries, is_emptied, value = by_word[:0], 0, 0, False, 0.0
        count, least = self._parts(n_topics, rounds)
        for rows, block in self.portions():
            work = work_of(block, doc_topic[rows], table)
            pieces = block.pieces(max(count, -(-block.n_entries // MOST_ENTRIES)), least)
            if not len(parts):
                size = min(PIECES, max(count, len(pieces)))
                parts = self._rows(size * n_words, n_topics, self.dtype)
            for begin in range(0, len(pieces), size):
                group = pieces[begin : begin + size]
                longest = max(int(block.begin[last] - block.begin[first]) for first, last in group)
                if used and entries + longest > MOST_ENTRIES:
                    empty(none)
                    used, entries, is_emptied = 0, 0, True
                given = [
                    (work, i >= used, parts[i * n_words : (i + 1) * n_words], *ends)
                    for i, ends in enumerate(group)
                ]
                for one in in_order(piece, given):
                    between()
                    value += one
                used, entries = max(used, len(group)), entries + longest
            release(doc_topic[rows])
        empty(np.ascontiguousarray(factor))
        self._keep(parts)
        self._keep(table)
        return by_word, value


class Documents(Corpus):
    """A corpus of counts: a source whose samples are documents.

    Parameters
    ----------
    X : sparse array, shape (D, V)
        Non-negative counts, in CSR form.
    weight : ndarray, shape (D,), optional
        Weights of the documents.
    dtype : {float64, float32}
        As in :class:`Corpus`.

    Attributes
    ----------
    words : ndarray of int, shape (V,) or (0,)
        The words' numbers if the documents were taken from others, else empty.

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
    words: Index = np.empty(0, dtype=np.intp)

    def __init__(self, X: Counts, weight: Array | None = None, dtype: type = np.float64) -> None:
        self.dtype = dtype
        weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        begin, word = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
        self._read(Entries(begin, word, X.data.astype(np.float64, copy=False), weight), X.shape[1])

    def _read(self, entries: Entries, n_words: int) -> None:
        self.entries, self.n, self.n_words = entries, len(entries.weight), n_words
        self.begin, self.word, self.count, self.weight = entries
        sums = np.add.reduceat(np.append(self.count, 0.0), np.minimum(self.begin[:-1], len(self.count)))
        self.length = np.where(np.diff(self.begin) > 0, sums, 0.0)
        self.total, self.total_weight = float((self.weight * self.length).sum()), float(self.weight.sum())
        self.n_entries, self.layout = len(self.count), Layout(np.array([0, self.n]), 1, True)
        self._spare = []

    def fingerprint(self) -> str:
        """Return a text that changes if counts, weights or the number of words change."""
        return fingerprint(
            f"documents of {self.n_words} words", self.begin, self.word, self.count, self.weight
        )

    @property
    def extent(self) -> tuple[float, float]:
        """The smallest and the largest of all positive counts and weights."""
        return extent_of(self.count, self.weight)

    def matrix(self) -> csr_array:
        """Return the counts as a CSR array, shape (D, V)."""
        return self.entries.matrix(self.count, self.n_words)

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, with all words."""
        return self._with(self.entries.chosen(numbers), self.n_words)

    def _with(self, entries: Entries, n_words: int) -> Self:
        """Return documents of the same kind."""
        made = copy(self)
        made._read(entries, n_words)
        return made

    def take(self, index: Index) -> Batch:
        """Return the documents with these indices, as :class:`Documents` restricted to their words."""
        entries, is_there = self.entries.chosen(index), np.zeros(self.n_words, dtype=bool)
        is_there[entries.word] = True
        words = np.flatnonzero(is_there)
        number = np.empty(self.n_words, dtype=np.int32)
        number[words] = np.arange(len(words))
        taken = self._with(entries._replace(word=number[entries.word]), len(words))
        taken.words = words
        return Batch(taken, taken.weight, index)  # type: ignore[arg-type]

    def pieces(self, most: int = PIECES, least_entries: int = LEAST_ENTRIES) -> list[tuple[int, int]]:
        """Return at most this many ranges of documents, with about equally many entries."""
        entries = int(self.begin[-1])
        most = max(1, min(most, entries // least_entries))
        bounds = np.searchsorted(self.begin, np.linspace(0, entries, most + 1))
        bounds[0], bounds[-1] = 0, self.n
        unique = np.unique(bounds)
        return list(zip(unique[:-1].tolist(), unique[1:].tolist(), strict=True))

    def portions(self) -> Iterator[tuple[slice, Documents]]:
        """Yield all documents, as one portion."""
        yield slice(0, self.n), self

    def _parts(self, n_topics: int, rounds: int) -> tuple[int, int]:
        """Return pieces with their own sums: no more than fit into memory, or than are worth adding."""
        room = MOST_SUMS // max(1, self.n_words * n_topics)
        least = max(LEAST_ENTRIES, ENTRIES_PER_WORD * self.n_words) // rounds
        most = min(PIECES, room, self.n_entries // max(1, least))
        # A power of two: that many threads then have about equal work.
        return 1 << max(0, most.bit_length() - 1), 1

    def shares_of_a_token(self, alpha: Array) -> Array:
        """Return what a token adds to the topics of its document, shape (D,)."""
        tokens = self.length + np.cumsum(alpha)[-1]
        shares: Array = np.divide(1.0, tokens, out=np.zeros_like(tokens), where=tokens > 0.0)
        return shares


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

    def em_pass(
        self,
        doc_topic: Array,
        topics: Array,
        alpha: Array,
        left_out: LeftOut | None = None,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.em_pass`."""
        between()
        words, without = np.ascontiguousarray(topics.T), None
        if left_out is not None:
            totals, beta = left_out
            without = (self.shares_of_a_token(alpha), totals, numpy.by_rows(beta, len(alpha)))
        doc_topic[:], by_word, value = numpy.pass_over(self.entries, doc_topic, words, alpha, without)
        return by_word.T, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`Corpus.fold_in`."""
        start, words = np.full((self.n, len(topics)), 1.0 / len(topics)), np.ascontiguousarray(topics.T)
        doc_topic, p, _ = numpy.fold(self.entries, words, alpha, max_iter, tol, start, leaps=True)
        return doc_topic, numpy.log_likelihoods(self.entries, p)

    def sums(
        self,
        doc_topic: Array,
        word_topic: Array,
        alpha: Array,
        max_iter: int,
        tol: float,
        between: Between = nothing,
    ) -> tuple[Array, int]:
        """See :meth:`Corpus.sums`."""
        between()
        found, p, evaluations = numpy.fold(self.entries, word_topic, alpha, max_iter, tol, doc_topic)
        doc_topic[:] = found
        return numpy.counts_of_words(self.entries, p, found, word_topic), evaluations


class DeviceDocuments(Documents):
    """As :class:`Documents`, with passes and folding in on a device.

    In float32 they are computed by kernels in Triton, in float64 by PyTorch. sem and sem-vr are computed on
    the CPU.

    Parameters
    ----------
    X, weight
        As in :class:`Documents`.
    device : str
        PyTorch's name of the device.
    limit : int, optional
        Limit of the device's memory in bytes. Counts that do not fit are copied there in every pass.

    Examples
    --------
    >>> import pytest, scipy.sparse as sp
    >>> _ = pytest.importorskip("torch")
    >>> documents = DeviceDocuments(sp.csr_array([[2, 1, 0], [0, 1, 1]]), device="cpu")
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    def __init__(
        self,
        X: Counts,
        weight: Array | None = None,
        dtype: type = np.float64,
        *,
        device: str,
        limit: int | None = None,
    ) -> None:
        self.device, self.limit = device, limit
        super().__init__(X, weight, dtype)

    def _read(self, entries: Entries, n_words: int) -> None:
        super()._read(entries, n_words)
        self._passes: dict[type, TorchPasses] = {}

    def passes(self, alpha: Array, dtype: type | None = None) -> TorchPasses:
        """Return the passes over the documents, which are copied to the device once."""
        from swiftem.topics.compute.torch import passes_for

        dtype = self.dtype if dtype is None else dtype
        found = self._passes.get(dtype)
        if found is None or len(found.alpha) != len(alpha):
            self._passes.pop(dtype, None)
            found = passes_for(self, alpha, dtype)
        elif not np.array_equal(found.alpha, alpha):
            found = found.with_alpha(alpha)
        self._passes[dtype] = found
        return found

    def em_pass(
        self,
        doc_topic: Array,
        topics: Array,
        alpha: Array,
        left_out: LeftOut | None = None,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.em_pass`."""
        from swiftem.topics.compute.torch import left_out_of

        between()
        passes = self.passes(alpha)
        without = None
        if left_out is not None:
            totals, beta = left_out
            least = numpy.by_rows(beta, len(alpha))
            without = left_out_of(passes.on_device(totals), passes.on_device(least))
        found = passes.em(passes.shares(doc_topic), passes.on_device(topics.T), without)
        doc_topic[:] = passes.array(found.doc_topic)
        return found.by_word.cpu().numpy().T, float(found.log_likelihood)

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`Corpus.fold_in`."""
        passes = self.passes(alpha, self.dtype if tol >= LEAST_CHANGE else np.float64)
        start = passes.shares(np.full((self.n, len(topics)), 1.0 / len(topics)))
        doc_topic, log_likelihood = passes.fold(passes.on_device(topics.T), start, max_iter, tol)
        return passes.array(doc_topic), log_likelihood.cpu().numpy()


class StreamedDocuments(Corpus):
    """Documents that are read in blocks.

    Blocks come in the order of the source, and the next ones are read ahead. Sums over documents are sums of
    blocks, added in order. Batches are drawn from the blocks in order, shuffled within a block.

    Parameters
    ----------
    source : DocumentSource
        The documents; read once, to count them.
    weight : array-like, shape (D,), optional
        Weights of documents.
    scratch : path, optional
        Folder for the counts of a source that is text: it is parsed once, and later passes read
        the numbers from a temporary file. If the folder has no room for it, every pass parses the text.

    Attributes
    ----------
    largest : int
        Bytes of the largest block.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> from swiftem.topics.compute.corpus import StreamedDocuments
    >>> documents = StreamedDocuments(CsrDocuments(sp.csr_array([[2, 0], [0, 0], [1, 1]])))
    >>> documents.n, documents.n_entries, documents.total, documents.length
    (3, 3, 4.0, array([2., 0., 2.]))
    """

    access: ClassVar[Access] = "sequential"
    most_spare: ClassVar[int] = 0

    def __init__(
        self, source: DocumentSource, weight: ArrayLike | None = None, scratch: PathName | None = None
    ) -> None:
        is_text = isinstance(source, FileDocuments)
        self._source = SpooledDocuments(source, BLOCK, scratch) if is_text else source
        self.n_words = source.n_words
        lengths: list[Array] = []
        self.n_entries = self.largest = 0
        least, most = extent_of()
        for _, block in read_ahead(self._counts()):
            check_weights("X", block.data, "entry", "counts")
            lengths.append(np.asarray(block.sum(axis=1), dtype=np.float64).ravel())
            self.n_entries += block.nnz
            least, most = extent_of(block.data, np.array([least, most]))
            self.largest = max(self.largest, block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
        self.length = np.concatenate(lengths) if lengths else np.empty(0)
        self.n = len(self.length)
        if not self.n:
            raise ValueError("X must have at least one document, got none.")
        given = read_sample_weight(weight, self.n, "document")
        self.weight = np.ones(self.n) if given is None else given
        self.extent = extent_of(np.array([least, most]), self.weight)
        self.total = float((self.weight * self.length).sum())
        self.total_weight = float(self.weight.sum())
        self.layout = Layout(np.append(np.arange(0, self.n, BLOCK), self.n), 1, True)
        self._spare = []
        self._held: dict[int, Documents] = {}
        self._coming: Generator[tuple[slice, Documents], None, None] | None = None

    def _counts(self) -> Iterator[tuple[int, Counts]]:
        """Yield the validated blocks of the source, which may be user-defined."""
        for first, block in self._source.blocks(BLOCK):
            counts = checked_sparse(f"The block of X from document {first} on", block).tocsr()
            if counts.shape[1] != self.n_words:
                raise ValueError(
                    f"The block of X from document {first} on must have {self.n_words} words, as X says, "
                    f"got {counts.shape[1]}."
                )
            yield first, counts

    def portions(self) -> Generator[tuple[slice, Documents], None, None]:
        """Yield the blocks of a pass, in order."""
        for first, counts in read_ahead(self._counts()):
            part = slice(first, first + counts.shape[0])
            if part.stop > self.n:
                raise ValueError(f"X must stay the same from pass to pass, got more than {self.n} documents.")
            yield part, Documents(counts, self.weight[part], self.dtype)

    def _parts(self, n_topics: int, rounds: int) -> tuple[int, int]:
        """Return the number of pieces with sums of their own, which stay for the whole pass."""
        return max(1, min(PARTS, MOST_SUMS // (self.n_words * n_topics))), LEAST_ENTRIES

    def fingerprint(self) -> str:
        """Return a text that changes if counts, weights or the number of words change."""
        return fingerprint(
            f"streamed documents of {self.n_words} words, {self._source.fingerprint()}", self.weight
        )

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, indices ascending, in memory; costs one pass of reading."""
        rows = []
        for part, block in self.portions():
            low, high = np.searchsorted(numbers, [part.start, part.stop])
            rows.append(block.matrix()[numbers[low:high] - part.start])
        return Documents(stacked(rows), self.weight[numbers], self.dtype)

    def take(self, index: Index) -> Batch:
        """As :meth:`Documents.take`, from one block or two consecutive ones."""
        number = index // BLOCK
        order = np.argsort(number, kind="stable")
        self._hold(set(number.tolist()))
        if len(self._held) == 1:
            (block,) = self._held.values()
            return block.take(index % BLOCK)._replace(index=index)
        rows = [self._held[b].matrix()[index[number == b] % BLOCK] for b in sorted(self._held)]
        counts = stacked(rows)[np.argsort(order, kind="stable")]
        drawn = Documents(counts, self.weight[index], self.dtype)
        return drawn.take(np.arange(len(index)))._replace(index=index)

    def _hold(self, wanted: set[int]) -> None:
        """Keep these blocks, and no others, in memory; at the end of the source, reading starts again."""
        for number in set(self._held) - wanted:
            del self._held[number]
            if self.doc_topic is not None:
                release(self.doc_topic[number * BLOCK : (number + 1) * BLOCK])
        while wanted - set(self._held):
            if self._coming is None:
                self._coming = self.portions()
            part, block = next(self._coming, (slice(0), None))
            if block is None:
                self.close()
            elif part.start // BLOCK in wanted:
                self._held[part.start // BLOCK] = block

    def close(self) -> None:
        """Stop reading."""
        if self._coming is not None:
            self._coming.close()
            self._coming = None


def _by_words(work: Callable[[int, int], None], n_words: int, numbers: int) -> None:
    """Call ``work(first, last)`` for ranges of words; ``numbers`` are what it reads."""
    count = PIECES if numbers > LEAST_NUMBERS else 1
    for _ in in_order(work, list(pairwise(np.linspace(0, n_words, count + 1).astype(int).tolist()))):
        pass
