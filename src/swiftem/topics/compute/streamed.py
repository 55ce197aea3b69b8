"""Documents that are read block by block, in every pass, and are never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.files import fingerprint
from swiftem.core.scratch import release
from swiftem.core.source import Access, Batch, Layout, Samples, Source
from swiftem.core.types import Array, Index
from swiftem.data.documents.blocks import DocumentSource, FileDocuments, SpooledDocuments
from swiftem.data.documents.sparse import checked_sparse
from swiftem.data.reading import read_ahead
from swiftem.data.weights import check_weights, extent_of, read_sample_weight
from swiftem.kernels.threads import in_order
from swiftem.topics.compute.corpus import (
    LEAST_ENTRIES,
    MOST_ENTRIES,
    MOST_SUMS,
    Between,
    Documents,
    Spare,
    Work,
    floor_of,
    nothing,
    table_of,
)

__all__ = ["BLOCK", "StreamedDocuments"]

PARTS = 4
"""Maximum number of pieces of a block: each has sums of its own, which stay for the whole pass."""
BLOCK = 4096
"""Documents per block; the documents of a batch come from one block."""


class StreamedDocuments(Source):
    """A :class:`~swiftem.topics.compute.corpus.FoldingCorpus` over blocks of a source.

    Blocks come in the order of the source, and the next ones are read ahead. Sums over documents are those of
    the blocks, added in order. Batches are drawn from the blocks in order, shuffled within a block.

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
        As in :class:`~swiftem.topics.compute.corpus.Documents`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> from swiftem.topics.compute.streamed import StreamedDocuments
    >>> documents = StreamedDocuments(CsrDocuments(sp.csr_array([[2, 0], [0, 0], [1, 1]])))
    >>> documents.n, documents.n_entries, documents.total, documents.length
    (3, 3, 4.0, array([2., 0., 2.]))
    """

    access: ClassVar[Access] = "sequential"
    samples: ClassVar[Samples] = "documents"
    n: int = 0
    total_weight: float = 0.0
    weight: Array
    dtype: type = np.float64
    doc_topic: Array | None = None
    allocate: Callable[[tuple[int, int]], Array] = staticmethod(np.empty)  # type: ignore[assignment]

    def __init__(self, source: DocumentSource, weight: ArrayLike | None = None, scratch: Any = None) -> None:
        is_text = isinstance(source, FileDocuments)
        self._source = SpooledDocuments(source, BLOCK, scratch) if is_text else source
        self.n_words = source.n_words
        lengths: list[Array] = []
        self.n_entries = self.largest = 0
        least, most = extent_of()
        for _, block in self._read():
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
        self.weight: Array = np.ones(self.n) if given is None else given
        self.extent = extent_of(np.array([least, most]), self.weight)
        self.total = float((self.weight * self.length).sum())
        self.total_weight = float(self.weight.sum())
        self._held: dict[int, Documents] = {}
        self._coming: Generator[tuple[int, Any], None, None] | None = None

    def _read(self) -> Generator[tuple[int, Any], None, None]:
        return read_ahead(self._checked())

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
    def layout(self) -> Layout:  # type: ignore[override]
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
        """Yield all documents in order, at most ``rows`` at a time."""
        for part, block in self._blocks():
            for start in range(0, block.n, rows):
                batch = block.take(np.arange(start, min(start + rows, block.n)))
                yield batch._replace(index=batch.index + part.start)

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

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Between = nothing
    ) -> tuple[Array, float]:
        """See :meth:`~swiftem.topics.compute.corpus.Corpus.em_pass`."""
        table = table_of(topics.T, self.dtype, Spare())
        counts, value = self._over(
            lambda block, places: block.em_work(places, table, alpha), doc_topic, between
        )
        counts *= topics.T
        return counts.T, value

    def leave_one_out_pass(
        self,
        doc_topic: Array,
        topics: Array,
        totals: Array,
        alpha: Array,
        beta: Array,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`~swiftem.topics.compute.corpus.Corpus.leave_one_out_pass`."""
        table, floor = (
            table_of(values, self.dtype, Spare()) for values in (topics.T, floor_of(beta, totals))
        )
        counts, value = self._over(
            lambda block, places: block.leave_one_out_work(places, table, floor, totals, alpha),
            doc_topic,
            between,
        )
        return counts.T, value

    def sums(
        self,
        doc_topic: Array,
        word_topic: Array,
        alpha: Array,
        max_iter: int,
        tol: float,
        between: Between = nothing,
    ) -> tuple[Array, int]:
        """See :meth:`~swiftem.topics.compute.corpus.FoldingCorpus.sums`."""
        table = table_of(word_topic, self.dtype, Spare())
        counts, evaluations = self._over(
            lambda block, places: block.fold_work(places, table, alpha, max_iter, tol), doc_topic, between
        )
        counts *= word_topic
        return counts, evaluations

    def _over(
        self, work_of: Callable[[Documents, Array], Work], doc_topic: Array, between: Between
    ) -> tuple[Array, Any]:
        """Return the sums over all blocks (V, K), and the sum of their values.

        Piece i of every block adds to part i. Parts are emptied into a total in float64 before they have more
        than :data:`MOST_ENTRIES` entries.
        """
        from swiftem.kernels.vector import padded

        n_topics, entries, value = doc_topic.shape[1], 0, 0
        count = max(1, min(PARTS, MOST_SUMS // (self.n_words * n_topics)))
        parts = [padded(self.n_words, n_topics, self.dtype) for _ in range(count)]
        total = np.zeros((self.n_words, n_topics))

        def empty() -> None:
            for part in parts:
                np.add(total, part[:, :n_topics], out=total)
                part[:] = 0.0

        for rows, block in self._blocks():
            work, pieces = work_of(block, doc_topic[rows]), block.pieces(count, LEAST_ENTRIES)
            for one in in_order(work, [(part, *ends) for part, ends in zip(parts, pieces, strict=False)]):
                between()
                value += one
            release(doc_topic[rows])
            entries += max(int(block.begin[last] - block.begin[first]) for first, last in pieces)
            if entries > MOST_ENTRIES:
                empty()
                entries = 0
        empty()
        return total, value

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`~swiftem.topics.compute.corpus.FoldingCorpus.fold_in`."""
        found = [
            block.fold_in(topics, alpha, max_iter=max_iter, tol=tol, likelihood=likelihood)
            for _, block in self._blocks()
        ]
        return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
