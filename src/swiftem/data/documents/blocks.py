"""Documents as blocks of word counts: the contract, a matrix, text files, and parsed text on disk."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.files import file_hash, fingerprint
from swiftem.data.documents.counts import (
    CorpusCounts,
    Entries,
    check_tokens,
    counted_documents,
    matrix_of,
    without_zeros,
)
from swiftem.data.documents.lines import PathName, most_bytes
from swiftem.data.documents.sparse import Sparse, checked_counts
from swiftem.data.stored import read_ahead

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts

__all__ = [
    "MOST_EMPTY",
    "CsrDocuments",
    "DocumentSource",
    "FileDocuments",
    "SpooledDocuments",
    "too_many_documents",
]

MOST_EMPTY = 10**6
"""Maximum number of documents without words in a file, which cost a few bytes each."""
SHORTEST_LINE = len("0\n")
"""Bytes of a document in a file."""
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

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
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

    def __init__(self, counts: Sparse) -> None:
        self._counts = without_zeros(checked_counts("data", counts))
        self.n_documents, self.n_words = (int(length) for length in self._counts.shape)

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        for first in range(0, self.n_documents, rows):
            yield first, self._counts[first : first + rows]

    def fingerprint(self) -> str:
        """Return a hash of the counts."""
        counts = self._counts
        return fingerprint(f"documents{counts.shape}", counts.indptr, counts.indices, counts.data)


class FileDocuments(ABC):
    """Base class of documents in a text file, which are parsed in every pass.

    Parameters
    ----------
    file : Path
        The file.
    words : tuple of str, or None
        The vocabulary, if it is known.
    n_words : int
        V.
    n_documents : int, optional
        D; by default it is known after the first pass.
    """

    def __init__(
        self, file: Path, words: tuple[str, ...] | None, n_words: int, n_documents: int | None = None
    ) -> None:
        self.file, self.words, self.n_words, self.n_documents = file, words, n_words, n_documents

    @abstractmethod
    def entries(self) -> Iterator[Entries]:
        """Yield the entries of each piece of the file, and set ``n_documents`` at the end."""

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        most = MOST_EMPTY + most_bytes(self.file) // SHORTEST_LINE
        if self.n_documents is not None and self.n_documents > most:
            raise too_many_documents(self.file, most, self.n_documents)
        first, last, waiting = 0, 0, list[Entries]()
        for table in filter(len, read_ahead(self.entries())):
            if table[0, 0] < last or (np.diff(table[:, 0]) < 0).any():
                raise ValueError(
                    f"{self.file} must be ordered by document, got another order: use read_corpus."
                )
            last = int(table[-1, 0])
            while last >= first + rows:
                cut = int(np.searchsorted(table[:, 0], first + rows))
                yield first, self._counts([*waiting, table[:cut]], first, rows)
                waiting, table, first = [], table[cut:], first + rows
            waiting.append(table)
        if not self.n_documents:
            raise ValueError(f"{self.file} must have at least one document, got none.")
        for start in range(first, self.n_documents, rows):
            yield start, self._counts(waiting, start, min(rows, self.n_documents - start))
            waiting = []

    def load(self, name: Callable[[int], str], format: str) -> CorpusCounts:
        """Return the documents that have words; ``name`` returns a document's name for its index from 0."""
        tables = list(self.entries())
        counts = matrix_of(tables, (self.n_documents or 0, self.n_words))
        return counted_documents(counts, self.words, name, str(self.file), format)

    def _counts(self, tables: list[Entries], first: int, rows: int) -> Counts:
        counts = matrix_of(tables, (rows, self.n_words), first)
        check_tokens(str(self.file), counts.data)
        return without_zeros(counts)

    def fingerprint(self) -> str:
        """Return a hash of the file and the number of words; it reads the whole file."""
        return file_hash(f"{type(self).__name__}{self.n_words}", [self.file])


def too_many_documents(file: Path, most: int, n_documents: int) -> ValueError:
    """Return the error for a file with many more documents than entries fit into it."""
    return ValueError(
        f"{file} must have at most {most:,} documents to be read in blocks, got {n_documents:,}: load it "
        "with read_corpus, which leaves out those without words."
    )


class SpooledDocuments:
    """Documents whose text is parsed once: the first pass writes their counts to a temporary file.

    The file has no name, and is gone when the object is deleted or the process ends. If the disk is full,
    every pass reads the source.

    Parameters
    ----------
    source : DocumentSource
        The documents.
    rows : int
        Documents per block of the file; blocks of another size are read from the source.
    folder : path, optional
        Folder of the file; by default the system's folder for temporary files.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> documents = SpooledDocuments(CsrDocuments(sp.csr_array([[0, 2, 0], [1, 0, 1]])), 1)
    >>> for _ in range(2):
    ...     [(first, block.toarray().tolist()) for first, block in documents.blocks(1)]
    [(0, [[0, 2, 0]]), (1, [[1, 0, 1]])]
    [(0, [[0.0, 2.0, 0.0]]), (1, [[1.0, 0.0, 1.0]])]
    """

    def __init__(self, source: DocumentSource, rows: int, folder: PathName | None = None) -> None:
        self._source, self._rows, self.n_words = source, rows, source.n_words
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._stored: list[tuple[int, int, int]] | None = None

    @property
    def n_documents(self) -> int | None:
        """Number of documents."""
        return self._source.n_documents

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        if rows != self._rows:
            yield from self._source.blocks(rows)
        elif self._stored is not None:
            yield from map(self._load, self._stored)
        else:
            stored: list[tuple[int, int, int]] | None = []
            self._file.seek(0)
            for first, counts in self._source.blocks(rows):
                if stored is not None:
                    try:
                        stored.append(self._store(first, counts))
                    except OSError:  # the disk is full
                        stored = None
                yield first, counts
            self._stored = stored

    def _store(self, first: int, counts: Counts) -> tuple[int, int, int]:
        """Append a block; whole numbers that are not large take two bytes."""
        from scipy.sparse import save_npz

        is_small = (counts.data <= SMALL).all() and (counts.data == np.floor(counts.data)).all()
        content = io.BytesIO()
        save_npz(content, counts.astype(np.uint16 if is_small else np.float64), compressed=False)
        start = self._file.tell()
        self._file.write(content.getbuffer())
        self._file.flush()
        return first, start, self._file.tell() - start

    def _load(self, block: tuple[int, int, int]) -> tuple[int, Counts]:
        from scipy.sparse import load_npz

        first, start, length = block
        # Without the position of the file, so that several threads may read.
        content = os.pread(self._file.fileno(), length, start)
        counts: Sparse = load_npz(io.BytesIO(content))
        return first, counts.astype(np.float64)

    def fingerprint(self) -> str:
        """Return the fingerprint of the source."""
        return self._source.fingerprint()
