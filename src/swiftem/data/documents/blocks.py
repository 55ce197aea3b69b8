"""Documents as blocks of word counts: the contract, a matrix, and parsed text in a temporary file."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.files import file_hash, fingerprint
from swiftem.data.documents.counts import without_zeros
from swiftem.data.documents.sparse import checked_counts

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["CsrDocuments", "DocumentSource", "ParsedDocuments", "Spool", "SpooledDocuments"]

SMALL = np.iinfo(np.uint16).max


@runtime_checkable
class DocumentSource(Protocol):
    """Documents 0, 1, ... as rows of counts, in order; they can be read repeatedly.

    A document without words is a row without entries: documents keep their numbers in the file.

    Attributes
    ----------
    n_documents : int or None
        D; None before the first complete pass if only a pass can tell.
    n_words : int
        V.
    """

    @property
    def n_documents(self) -> int | None:
        """Number of documents, None if it is unknown before a pass."""
        ...

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        ...

    def blocks(self, rows: int) -> Iterator[tuple[int, sp.csr_array[Any, tuple[int, int]]]]:
        """Yield the index of the first document, and the counts of ``rows`` documents, fewer at the end.

        Counts are CSR arrays (., V) without duplicates or zeros, words ascending in a row.
        """
        ...

    def fingerprint(self) -> str:
        """Return a text that changes if the counts change."""
        ...


class CsrDocuments:
    """The rows of a sparse matrix of counts.

    Parameters
    ----------
    counts : sparse, shape (D, V)
        Non-negative; duplicates are summed. Not changed.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> documents = CsrDocuments(sp.csr_array([[2, 0], [0, 0], [1, 1]]))
    >>> [(first, block.toarray().tolist()) for first, block in documents.blocks(2)]
    [(0, [[2, 0], [0, 0]]), (2, [[1, 1]])]
    """

    def __init__(self, counts: Any) -> None:
        self._counts = without_zeros(checked_counts(counts))
        self.n_documents, self.n_words = (int(length) for length in self._counts.shape)

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        for first in range(0, self.n_documents, rows):
            yield first, self._counts[first : first + rows]

    def fingerprint(self) -> str:
        """Return a hash of the counts."""
        counts = self._counts
        return fingerprint(f"documents{counts.shape}", counts.indptr, counts.indices, counts.data)


class ParsedDocuments:
    """Base class of documents in a text file, which is slow to parse: its counts are worth storing.

    Parameters
    ----------
    path : path
        The file.
    """

    n_words: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path)

    def fingerprint(self) -> str:
        """Return a hash of the file and the number of words; it reads the whole file."""
        return file_hash(f"{type(self).__name__}{self.n_words}", [self._file])


class _Block(NamedTuple):
    """Where a block is in the file: its first document, documents, entries, and the type of its counts."""

    first: int
    rows: int
    entries: int
    dtype: Any
    place: int


class Spool:
    """CSR blocks in a file without a name, which is gone when the object is deleted or the process ends.

    Parameters
    ----------
    n_words : int
        V.
    folder : path, optional
        Folder of the file; by default the system's folder for temporary files.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> spool = Spool(3)
    >>> spool.add(0, sp.csr_array([[0, 2, 0], [1, 0, 0.5]]))
    >>> [(first, block.toarray().tolist()) for first, block in spool.blocks()]
    [(0, [[0.0, 2.0, 0.0], [1.0, 0.0, 0.5]])]
    """

    def __init__(self, n_words: int, folder: str | os.PathLike[str] | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._n_words, self._blocks, self._end = n_words, list[_Block](), 0

    def add(self, first: int, counts: Any) -> None:
        """Append a block: whole numbers that are not large take two bytes, indices four."""
        is_small = bool((counts.data <= SMALL).all() and (counts.data == np.floor(counts.data)).all())
        dtype = np.uint16 if is_small else np.float64
        self._blocks.append(_Block(first, counts.shape[0], counts.nnz, dtype, self._end))
        for part, kind in ((counts.indptr, np.int64), (counts.indices, np.int32), (counts.data, dtype)):
            self._end += self._file.write(np.ascontiguousarray(part, dtype=kind).tobytes())

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document, and the counts, of each block."""
        from scipy.sparse import csr_array

        self._file.flush()
        for block in self._blocks:
            place, parts = block.place, []
            kinds = ((block.rows + 1, np.int64), (block.entries, np.int32), (block.entries, block.dtype))
            for size, kind in kinds:
                length = size * np.dtype(kind).itemsize
                parts.append(np.frombuffer(_read(self._file.fileno(), length, place), dtype=kind))
                place += length
            begin, indices, data = parts
            counts = (data.astype(np.float64), indices, begin)
            yield block.first, csr_array(counts, shape=(block.rows, self._n_words))


def _read(file: int, length: int, place: int) -> bytes:
    """Return bytes of a file; its position is not used, so that several threads may read."""
    found = b""
    while len(found) < length:
        more = os.pread(file, length - len(found), place + len(found))
        if not more:
            raise OSError("the temporary file of counts has become shorter.")
        found = more if not found else found + more
    return found


class SpooledDocuments:
    """A source whose blocks were added to a spool while it was read: a text is not parsed again.

    Parameters
    ----------
    source : DocumentSource
        The documents, which blocks of another size are read from.
    spool : Spool
        Their blocks.
    rows : int
        Documents per block of the spool.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> source, spool = CsrDocuments(sp.csr_array([[0, 2, 0], [1, 0, 1]])), Spool(3)
    >>> for first, block in source.blocks(1):
    ...     spool.add(first, block)
    >>> [first for first, _ in SpooledDocuments(source, spool, 1).blocks(1)]
    [0, 1]
    """

    def __init__(self, source: DocumentSource, spool: Spool, rows: int) -> None:
        self._source, self._spool, self._rows = source, spool, rows

    @property
    def n_documents(self) -> int | None:
        """Number of documents."""
        return self._source.n_documents

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self._source.n_words

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        return self._spool.blocks() if rows == self._rows else self._source.blocks(rows)

    def fingerprint(self) -> str:
        """Return the fingerprint of the source."""
        return self._source.fingerprint()
