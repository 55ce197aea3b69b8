"""Word counts of documents: of a whole corpus with its names, and in blocks; checks of sparse matrices."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from swiftem.core.checks import check_int, check_weights
from swiftem.core.files import file_hash, fingerprint, in_brackets
from swiftem.core.types import Index
from swiftem.data.stored import read_ahead

if TYPE_CHECKING:
    import scipy.sparse as sp

    Counts = sp.csr_array[Any, tuple[int, int]]
    Coordinates = sp.coo_array[Any, tuple[int, int]]

PathName = str | os.PathLike[str]
Sparse = Any
"""A sparse matrix of SciPy, in any form."""
Entries = NDArray[np.int64]
"""Document, word and count of non-zero counts, shape (m, 3), from 0."""
MOST_TOKENS = 2.0**53
"""Larger numbers of tokens are not exact in float64."""
UNPACKED, FREE = 100, 8 << 20
"""Limits of an unpacked file: this factor, plus this number of bytes. Text grows three to twenty times, a
file made to fill the memory a thousand times."""
MOST_EMPTY = 10**6
"""Maximum number of documents without words in a file, which cost a few bytes each."""
SHORTEST_LINE = len("0\n")
"""Bytes of a document in a file."""
SMALL = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class CorpusCounts:
    """Counts of words in documents, with the names of both.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of int or float, shape (D, V)
        A row per document; every one has at least one word.
    words : tuple of str, length V, or None
        The words; None if the file had only their numbers.
    names : tuple of str, length D
        Titles of the documents, names of their files, or their positions in the file.
    texts : tuple of str, length D, or None
        The beginning of each document, in one line; None if only counts are known.
    format : str
        Format of the input, such as ``"folder"``.
    notes : tuple of str
        Sentences on what was left out.
    labels : tuple of str, length D, or None
        A value per document, such as a date or a group; an empty text is a missing one.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CorpusCounts
    >>> CorpusCounts(sp.csr_array([[1, 2], [0, 3]]), ("fish", "rice"), ("a.txt", "b.txt"))
    CorpusCounts of 2 documents, 2 words and 6 tokens
    """

    counts: Counts
    words: tuple[str, ...] | None
    names: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    format: str = ""
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n_documents, n_words = self.counts.shape
        lengths = {"words": n_words} | dict.fromkeys(("names", "texts", "labels"), n_documents)
        for name, length in lengths.items():
            given = getattr(self, name)
            if given is not None and len(given) != length:
                raise ValueError(f"{name} must have {length} entries, as counts have, got {len(given)}.")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        # The default representation would print every text.
        n_documents, n_words = self.counts.shape
        return (
            f"CorpusCounts of {n_documents:,} documents, {n_words:,} words and {self.n_tokens:,.10g} tokens"
        )

    @property
    def n_tokens(self) -> float:
        """Sum of all counts."""
        return float(self.counts.sum())

    def word_names(self) -> tuple[str, ...]:
        """Return the words; if they are unknown ``word 0``, ``word 1``, ...

        >>> import scipy.sparse as sp
        >>> CorpusCounts(sp.csr_array([[1, 2]]), None, ("0",)).word_names()
        ('word 0', 'word 1')
        """
        if self.words is not None:
            return self.words
        return tuple(f"word {number}" for number in range(self.counts.shape[1]))


class Texts(NamedTuple):
    """Documents, their names, and notes on the input.

    Attributes
    ----------
    texts, names : lists of str, length D
        The documents; names of their files, titles, or their positions in the file.
    notes : list of str
        Sentences on what was left out.
    labels : list of str, length D, or None
        Their values in a column, or their subfolders.
    """

    texts: list[str]
    names: list[str]
    notes: list[str]
    labels: list[str] | None = None


def counted_documents(
    counts: Coordinates, words: Sequence[str] | None, name: Callable[[int], str], source: str, format: str
) -> CorpusCounts:
    """Return the corpus of a matrix of counts, without documents that have no words.

    The cost grows with the entries, not with the documents, of which a file may claim any number.

    Parameters
    ----------
    counts : sparse, shape (D, V)
        Non-negative, in COO form; duplicates are summed.
    words : sequence of str, length V, or None
        The words.
    name : callable
        Returns a document's name for its index from 0.
    source : str
        The file, for messages.
    format : str
        Its format.

    Raises
    ------
    ValueError
        If nothing was counted, or more than 2^53 tokens.
    """
    import scipy.sparse as sp

    check_tokens(source, counts.data)
    n_documents = counts.shape[0]
    numbers: Index = np.arange(min(n_documents, counts.nnz))
    if n_documents > counts.nnz:
        numbers, row = np.unique(counts.row.astype(np.intp), return_inverse=True)
        counts = sp.coo_array((counts.data, (row, counts.col)), shape=(len(numbers), counts.shape[1]))
    matrix = without_zeros(counts)
    has_words = np.diff(matrix.indptr) > 0
    if not has_words.any():
        raise ValueError(f"{source} must have at least one document with a word in it, got none.")
    empty = n_documents - np.count_nonzero(has_words)
    notes = (f"{empty:,} of {n_documents:,} documents have no words and were left out.",) if empty else ()
    return CorpusCounts(
        matrix if has_words.all() else matrix[has_words],
        None if words is None else tuple(words),
        tuple(map(name, numbers[has_words].tolist())),
        None,
        format,
        notes,
    )


def without_zeros(matrix: Sparse) -> Counts:
    """Return a copy of a sparse matrix in CSR form, its duplicate entries summed and its zeros removed."""
    from scipy.sparse import csr_array

    counts: Counts = csr_array(matrix, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def stacked(blocks: Iterable[Sparse]) -> Counts:
    """Return blocks of counts, one below the other, as a CSR array."""
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(block) for block in blocks], format="csr"))


def canonical(name: str, counts: Sparse | NDArray[Any]) -> Counts:
    """Return valid counts as a CSR array of float64, without zeros and duplicates."""
    from scipy.sparse import csr_array

    matrix: Counts = csr_array(counts, dtype=np.float64)
    if np.isnan(matrix.data).any():
        raise ValueError(
            f"{name} must be counts, got NaN: put 0 where a document does not have a word, or leave the "
            "document out."
        )
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = without_zeros(matrix)
    check_weights(name, matrix.data, "entry", "counts")
    return matrix


def check_tokens(source: str, counts: NDArray[Any]) -> None:
    """Raise ValueError for more tokens than float64 counts exactly; sums of integers would overflow.

    >>> check_tokens("toy.dat", np.array([2**62, 2**62]))
    Traceback (most recent call last):
    ...
    ValueError: toy.dat must have at most 2^53 tokens, got 9.22e+18.
    """
    with np.errstate(over="ignore"):
        total = float(counts.sum(dtype=np.float64))
    if total > MOST_TOKENS:
        raise ValueError(f"{source} must have at most 2^53 tokens, got {total:.3g}.")


def is_sparse(data: object) -> bool:
    """Return whether ``data`` is a sparse matrix, of SciPy or a similar library.

    >>> import scipy.sparse as sp
    >>> is_sparse(sp.coo_array([[1]])), is_sparse([[1]])
    (True, False)
    """
    # Only the type is checked: the number of entries of an invalid matrix cannot be read.
    return hasattr(type(data), "tocsr") and hasattr(type(data), "nnz")


def checked_counts(name: str, counts: Sparse, dtype: DTypeLike | None = None) -> Sparse:
    """Return a matrix of counts as :func:`checked_sparse` does, or raise an error for the first wrong entry.

    It is converted to ``dtype``, if given, and bools to integers.
    """
    if not is_sparse(counts):
        raise TypeError(f"{name} must be a SciPy sparse matrix of counts, got {type(counts).__name__}.")
    kind = np.dtype(counts.dtype).kind
    if kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {counts.dtype}.")
    matrix = checked_sparse(name, counts)
    if 0 in matrix.shape:
        raise ValueError(f"{name} must have at least one document and one word, got shape {matrix.shape}.")
    if kind == "b" or dtype is not None:
        matrix = matrix.astype(dtype or np.int64)
    if not (np.isfinite(matrix.data) & (matrix.data >= 0)).all():
        entries = matrix.tocoo()
        place = np.argmin(np.isfinite(entries.data) & (entries.data >= 0))
        raise ValueError(
            f"{name} must hold finite counts of at least 0, got {entries.data[place]:g} in row "
            f"{entries.row[place]}, column {entries.col[place]} (from 0)."
        )
    return matrix


def checked_sparse(name: str, matrix: Sparse) -> Any:
    """Return a sparse matrix with a valid structure, or raise an error.

    An index out of range, or a decreasing ``indptr``, would be read and written out of bounds. The cost of
    checking each index is small compared with any use of them.

    Parameters
    ----------
    name : str
        Its name in the message.
    matrix : sparse, shape (D, V)
        In any form. Not changed.

    Returns
    -------
    sparse
        The matrix in CSR, CSC or BSR form if it has one of these, without spare entries; otherwise in COO
        form.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> matrix = sp.csr_array([[1, 0], [0, 2]])
    >>> matrix.indices[1] = 7
    >>> checked_sparse("data", matrix)
    Traceback (most recent call last):
    ...
    ValueError: data must be a valid sparse matrix, got an invalid one (indices must be < 2).
    """
    import scipy.sparse as sp

    if not sp.issparse(matrix):  # another library's, which can be converted to SciPy's
        matrix = matrix.tocsr()
        if not sp.issparse(matrix):
            raise TypeError(f"{name} must be a SciPy sparse matrix, got {type(matrix).__name__}.")
    try:
        return _checked(matrix)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a valid sparse matrix, got an invalid one ({in_brackets(error)})."
        ) from None


def _checked(matrix: Sparse) -> Sparse:
    import scipy.sparse as sp

    if matrix.ndim != 2:
        raise ValueError(f"its shape is {matrix.shape}, not (D, V)")
    for part in ("indptr", "indices", "row", "col", "offsets"):
        if np.asarray(getattr(matrix, part, 0)).dtype.kind not in "iu":
            raise ValueError(f"{part} must be whole numbers")
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy does not look at indices if the last number is negative.
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("indptr must not decrease")
        matrix = copy(matrix)  # the check removes spare entries
        matrix.check_format(full_check=True)
        return matrix
    if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
        raise ValueError("each row must have as many values as columns")
    if matrix.format == "dia":
        matrix = type(matrix)((matrix.data, matrix.offsets), shape=matrix.shape)
    entries = matrix.tocoo()
    return sp.coo_array((entries.data, (entries.row, entries.col)), shape=matrix.shape)


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

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
        """Yield the index of the first document, and the counts of ``rows`` documents, fewer at the end.

        Counts are CSR arrays (., V) without duplicates or zeros, words ascending in a row.
        """

    def fingerprint(self) -> str:
        """Return a text that changes if the counts change."""


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


@dataclass(eq=False, repr=False)
class FileDocuments:
    """Documents in a text file, which are parsed in every pass; memory does not grow with the file.

    Parameters
    ----------
    file : Path
        The file.
    format : str
        Its format.
    read : callable
        Yields, for each piece of the file, the number of documents up to its end, and its entries.
    n_words : int
        V.
    words : tuple of str, optional
        The vocabulary, if it is known.
    n_documents : int, optional
        D; by default it is known after the first pass.
    """

    file: Path
    format: str
    read: Callable[[], Iterator[tuple[int, Entries]]]
    n_words: int
    words: tuple[str, ...] | None = None
    n_documents: int | None = None

    def blocks(self, rows: int) -> Iterator[tuple[int, Counts]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        most = MOST_EMPTY + most_bytes(self.file.stat().st_size) // SHORTEST_LINE
        check_documents(self.file, self.n_documents or 0, most)
        n_documents, first, last, waiting = 0, 0, 0, list[Entries]()
        for end, table in read_ahead(self.read()):
            n_documents = end
            if (np.diff(table[:, 0], prepend=last) < 0).any():
                raise ValueError(
                    f"{self.file} must be ordered by document, got another order: use read_corpus."
                )
            last = int(table[-1, 0]) if len(table) else last
            while last >= first + rows:
                cut = int(np.searchsorted(table[:, 0], first + rows))
                yield first, self._counts([*waiting, table[:cut]], first, rows)
                waiting, table, first = [], table[cut:], first + rows
            waiting.append(table)
        if not n_documents:
            raise ValueError(f"{self.file} must have at least one document, got none.")
        self.n_documents = n_documents
        for start in range(first, n_documents, rows):
            yield start, self._counts(waiting, start, min(rows, n_documents - start))
            waiting = []

    def load(self, name: Callable[[int], str]) -> CorpusCounts:
        """Return the documents that have words; ``name`` returns a document's name for its index from 0."""
        pieces = list(self.read())
        counts = self._matrix([table for _, table in pieces], max((n for n, _ in pieces), default=0))
        return counted_documents(counts, self.words, name, str(self.file), self.format)

    def _counts(self, tables: list[Entries], first: int, rows: int) -> Counts:
        """Return the counts of ``rows`` documents from ``first`` on."""
        counts = self._matrix(tables, rows, first)
        check_tokens(str(self.file), counts.data)
        return without_zeros(counts)

    def _matrix(self, tables: list[Entries], rows: int, first: int = 0) -> Coordinates:
        import scipy.sparse as sp

        document, word, count = np.concatenate([np.empty((0, 3), dtype=np.int64), *tables]).T
        return sp.coo_array((count, (document - first, word)), shape=(rows, self.n_words))

    def fingerprint(self) -> str:
        """Return a hash of the file and the number of words; it reads the whole file."""
        return file_hash(f"{self.format}{self.n_words}", [self.file])


def most_bytes(packed_size: int) -> int:
    """Return the maximum number of bytes of a file of this size, unpacked if it is compressed."""
    return UNPACKED * packed_size + FREE


def check_documents(file: Path, n_documents: int, most: int) -> None:
    """Raise ValueError for a file that claims many more documents than entries fit into it."""
    if n_documents > most:
        raise ValueError(
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
        is_small = (counts.data <= SMALL).all() and (counts.data == np.floor(counts.data)).all()
        start = self._file.tell()
        pickle.dump(counts.astype(np.uint16 if is_small else np.float64), self._file)
        self._file.flush()
        return first, start, self._file.tell() - start

    def _load(self, block: tuple[int, int, int]) -> tuple[int, Counts]:
        first, start, length = block
        # Without the position of the file, so that several threads may read.
        counts: Counts = pickle.loads(os.pread(self._file.fileno(), length, start))
        return first, counts.astype(np.float64)

    def fingerprint(self) -> str:
        """Return the fingerprint of the source."""
        return self._source.fingerprint()
