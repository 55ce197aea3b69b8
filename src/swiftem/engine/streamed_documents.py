"""Documents that are read block by block, in every pass, and are never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem._typing import Array, Index
from swiftem.data.documents.document_source import DocumentSource
from swiftem.data.documents.sparse_structure import checked_sparse
from swiftem.data.documents.spool import Spool
from swiftem.data.rows.row_reader import read_ahead
from swiftem.data.rows.stored_source import Layout
from swiftem.data.sample_weight import check_weights, extent_of, read_sample_weight
from swiftem.data.source import Access, Batch
from swiftem.engine.documents import LEAST_ENTRIES, MOST_ENTRIES, MOST_SUMS, Documents
from swiftem.files.durable import fingerprint
from swiftem.files.scratch import release

__all__ = ["BLOCK", "StreamedDocuments"]

PARTS = 4
"""Maximum number of pieces of a block: each has sums of its own, which stay for the whole pass."""
BLOCK = 4096
"""Documents per block; the documents of a batch come from one block."""


class StreamedDocuments:
    """The interface of :class:`~swiftem.engine.documents.Documents`, over blocks of a source.

    Blocks come in the order of the source, and the next ones are read ahead. Sums over documents are those of
    the blocks, added in order. Batches are drawn from the blocks in order, shuffled within a block.

    Parameters
    ----------
    source : DocumentSource
        The documents; read once, to count them.
    weight : array-like, shape (D,), optional
        Weights of documents.
    scratch : path, optional
        Folder for the counts of a source that is text (``is_text``): it is parsed once, and later passes read
        the numbers from a temporary file. If the folder has no room for it, every pass parses the text.

    Attributes
    ----------
    n, n_words, n_entries : int
        Documents, words, and non-zero counts.
    length, weight : ndarray, shape (D,)
        Tokens of the documents, and their weights.
    total : float
        Weighted number of tokens.
    largest : int
        Bytes of the largest block.
    extent : (float, float)
        The smallest and the largest of all positive counts and weights.
    dtype, doc_topic, allocate
        As in :class:`~swiftem.engine.documents.Documents`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> from swiftem.engine.streamed_documents import StreamedDocuments
    >>> documents = StreamedDocuments(CsrDocuments(sp.csr_array([[2, 0], [0, 0], [1, 1]])))
    >>> documents.n, documents.n_entries, documents.total, documents.length
    (3, 3, 4.0, array([2., 0., 2.]))
    """

    access: ClassVar[Access] = "sequential"
    dtype: type = np.float64
    doc_topic: Array | None = None
    allocate: Callable[[tuple[int, int]], Array] = staticmethod(np.empty)  # type: ignore[assignment]

    def __init__(self, source: DocumentSource, weight: ArrayLike | None = None, scratch: Any = None) -> None:
        self._source, self.n_words = source, source.n_words
        self._spool: Spool | None = None
        spool = Spool(self.n_words, scratch) if getattr(source, "is_text", False) else None
        lengths: list[Array] = []
        self.n_entries = self.largest = 0
        least, most = extent_of()
        for first, block in self._read():
            check_weights("X", block.data, "entry", "counts")
            lengths.append(np.asarray(block.sum(axis=1), dtype=np.float64).ravel())
            self.n_entries += block.nnz
            least, most = extent_of(block.data, np.array([least, most]))
            self.largest = max(self.largest, block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
            if spool is not None:
                try:
                    spool.add(first, block)
                except OSError:  # the disk is full
                    spool = None
        self._spool = spool
        self.length = np.concatenate(lengths) if lengths else np.empty(0)
        self.n = len(self.length)
        if not self.n:
            raise ValueError("X must have at least one document, got none.")
        given = read_sample_weight(weight, self.n, "document")
        self.weight: Array = np.ones(self.n) if given is None else given
        self.extent = extent_of(np.array([least, most]), self.weight)
        self.total = float((self.weight * self.length).sum())
        self.total_weight = float(self.weight.sum())
        self._held: dict[int, Documents] = {}
        self._coming: Generator[tuple[int, Any], None, None] | None = None

    def _read(self) -> Generator[tuple[int, Any], None, None]:
        return read_ahead(self._checked() if self._spool is None else self._spool.blocks())

    def _checked(self) -> Iterator[tuple[int, Any]]:
        """Yield the validated blocks of the source, which may be user-defined."""
        for first, block in self._source.blocks(BLOCK):
            counts = checked_sparse(f"The block of X from document {first} on", block).tocsr()
            if counts.shape[1] != self.n_words:
                raise ValueError(
                    f"The block of X from document {first} on must have {self.n_words} words, as X says, "
                    f"got {counts.shape[1]}."
                )
            yield first, counts

    def _in_memory(self, counts: Any, weight: Array | None = None) -> Documents:
        return Documents(counts, weight, self.dtype)

    def _blocks(self) -> Iterator[tuple[slice, Documents]]:
        for first, counts in self._read():
            part = slice(first, first + counts.shape[0])
            if part.stop > self.n:
                raise ValueError(f"X must stay the same from pass to pass, got more than {self.n} documents.")
            yield part, self._in_memory(counts, self.weight[part])

    def fingerprint(self) -> str:
        """Return a text that changes if counts, weights or the number of words change."""
        return fingerprint(
            f"streamed documents of {self.n_words} words, {self._source.fingerprint()}", self.weight
        )

    @property
    def layout(self) -> Layout:
        """How documents are drawn: shuffled within blocks that come in order."""
        return Layout(np.append(np.arange(0, self.n, BLOCK), self.n), 1, True)

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, indices ascending, in memory; costs one pass of reading."""
        import scipy.sparse as sp

        rows = []
        for part, block in self._blocks():
            low, high = np.searchsorted(numbers, [part.start, part.stop])
            if high > low:
                rows.append(block.matrix()[numbers[low:high] - part.start])
        return self._in_memory(sp.csr_array(sp.vstack(rows, format="csr")), self.weight[numbers])

    def take(self, index: Index) -> Batch:
        """As :meth:`Documents.take`, from one block or two consecutive ones."""
        import scipy.sparse as sp

        of = index // BLOCK
        order = np.argsort(of, kind="stable")
        self._hold(set(of.tolist()))
        if len(self._held) == 1:
            (block,) = self._held.values()
            return block.take(index % BLOCK)._replace(index=index)
        rows = [self._held[b].matrix()[index[of == b] % BLOCK] for b in sorted(self._held)]
        counts = sp.csr_array(sp.vstack(rows, format="csr"))[np.argsort(order, kind="stable")]
        found = self._in_memory(counts, self.weight[index]).take(np.arange(len(index)))
        return found._replace(index=index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all documents in order, a block of the source at a time."""
        for part, block in self._blocks():
            found = block.take(np.arange(block.n))
            yield found._replace(index=found.index + part.start)

    def _hold(self, wanted: set[int]) -> None:
        """Keep these blocks, and no others, in memory; at the end of the source, reading starts again."""
        for number in set(self._held) - wanted:
            self._drop(number)
        while wanted - set(self._held):
            if self._coming is None:
                self._coming = self._read()
            following = next(self._coming, None)
            if following is None:
                self.close()
            elif following[0] // BLOCK in wanted:
                weight = self.weight[following[0] : following[0] + following[1].shape[0]]
                self._held[following[0] // BLOCK] = self._in_memory(following[1], weight)

    def _drop(self, number: int) -> None:
        """Forget a block, and release the places of its documents."""
        del self._held[number]
        if self.doc_topic is not None:
            release(self.doc_topic[number * BLOCK : (number + 1) * BLOCK])

    def close(self) -> None:
        """Stop reading."""
        if self._coming is not None:
            self._coming.close()
            self._coming = None

    def em_pass(self, doc_topic: Array, topics: Array, *given: Any) -> tuple[Array, float]:
        """As :meth:`Documents.em_pass`."""
        counts, value = self._summed(Documents.em_pass, doc_topic, (topics, *given), len(topics))
        counts *= topics.T
        return counts.T, value

    def leave_one_out_pass(self, doc_topic: Array, topics: Array, *given: Any) -> tuple[Array, float]:
        """As :meth:`Documents.leave_one_out_pass`."""
        counts, value = self._summed(Documents.leave_one_out_pass, doc_topic, (topics, *given), len(topics))
        return counts.T, value

    def sums(self, doc_topic: Array, word_topic: Array, *given: Any) -> tuple[Array, int]:
        """As :meth:`Documents.sums`."""
        given = (word_topic, *given)
        counts, evaluations = self._summed(Documents.sums, doc_topic, given, word_topic.shape[1])
        counts *= word_topic
        return counts, evaluations

    def _summed(
        self, work: Callable[..., tuple[Array, Any]], doc_topic: Array, given: tuple[Any, ...], n_topics: int
    ) -> tuple[Array, Any]:
        """Return the sum of ``work`` over the blocks, (V, K), and of its values."""
        from swiftem.engine.numba.memory import Shared

        parts = max(1, min(PARTS, MOST_SUMS // (self.n_words * n_topics)))
        shared, value = Shared(self.n_words, n_topics, self.dtype, parts), 0
        for part, block in self._blocks():
            block.shared = shared
            value += work(block, doc_topic[part], *given)[1]
            release(doc_topic[part])
            begin = block.begin
            pieces = block.pieces(parts, LEAST_ENTRIES)
            shared.add(max(int(begin[last] - begin[first]) for first, last in pieces), MOST_ENTRIES)
        return shared.total(), value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """As :meth:`Documents.fold_in`."""
        found = [
            block.fold_in(topics, alpha, max_iter=max_iter, tol=tol, likelihood=likelihood)
            for _, block in self._blocks()
        ]
        return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
