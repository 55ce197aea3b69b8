"""Documents that are read block by block, in every pass, and are never in memory as a whole."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_weights, extent_of, read_sample_weight
from swiftem.core.files import fingerprint, release
from swiftem.core.source import Access, Batch, Layout
from swiftem.core.types import Array, Index
from swiftem.data.documents.counts import (
    DocumentSource,
    FileDocuments,
    PathName,
    SpooledDocuments,
    checked_sparse,
)
from swiftem.data.stored import read_ahead
from swiftem.topics.compute.corpus import LEAST_ENTRIES, MOST_SUMS, Corpus, Documents

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts

PARTS = 4
"""Maximum number of pieces of a block: each has sums of its own, which stay for the whole pass."""
BLOCK = 4096
"""Documents per block; the documents of a batch come from one block."""


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
    >>> from swiftem.topics.compute.streamed import StreamedDocuments
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
        import scipy.sparse as sp

        rows = []
        for part, block in self.portions():
            low, high = np.searchsorted(numbers, [part.start, part.stop])
            rows.append(block.matrix()[numbers[low:high] - part.start])
        return Documents(sp.csr_array(sp.vstack(rows, format="csr")), self.weight[numbers], self.dtype)

    def take(self, index: Index) -> Batch:
        """As :meth:`Documents.take`, from one block or two consecutive ones."""
        import scipy.sparse as sp

        number = index // BLOCK
        order = np.argsort(number, kind="stable")
        self._hold(set(number.tolist()))
        if len(self._held) == 1:
            (block,) = self._held.values()
            return block.take(index % BLOCK)._replace(index=index)
        rows = [self._held[b].matrix()[index[number == b] % BLOCK] for b in sorted(self._held)]
        counts = sp.csr_array(sp.vstack(rows, format="csr"))[np.argsort(order, kind="stable")]
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
