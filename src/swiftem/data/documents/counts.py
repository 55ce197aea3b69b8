"""Texts, and word counts of a corpus with the names of documents and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Index
from swiftem.data.documents.sparse import Sparse

if TYPE_CHECKING:
    import scipy.sparse as sp

    Counts = sp.csr_array[Any, tuple[int, int]]
    Coordinates = sp.coo_array[Any, tuple[int, int]]

__all__ = [
    "CorpusCounts",
    "Entries",
    "Texts",
    "beginnings",
    "check_tokens",
    "counted_documents",
    "matrix_of",
    "without_zeros",
]

Entries = NDArray[np.int64]
"""Document, word and count of non-zero counts, shape (m, 3), from 0."""

SHOWN, MOST_SHOWN, SHOWN_BYTES = 200, 4000, 1 << 26
"""Characters of a document's text that are kept: at least, at most, and of all documents together."""
MOST_TOKENS = 2.0**53
"""Larger numbers of tokens are not exact in float64."""


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
        for name, given, wanted in (
            ("words", self.words, n_words),
            ("names", self.names, n_documents),
            ("texts", self.texts, n_documents),
            ("labels", self.labels, n_documents),
        ):
            if given is not None and len(given) != wanted:
                raise ValueError(f"{name} must have {wanted} entries, as counts have, got {len(given)}.")

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


def beginnings(texts: Sequence[str]) -> tuple[str, ...]:
    r"""Return the first characters of each text in one line: fewer of them, the more texts there are.

    >>> beginnings([" Rice\n  and maize. "])
    ('Rice and maize.',)
    >>> len(beginnings(["rice " * 1000])[0]), len(beginnings(["rice " * 1000] * 100_000)[0])
    (3999, 670)
    """
    length = max(SHOWN, min(MOST_SHOWN, SHOWN_BYTES // max(1, len(texts))))
    return tuple(_beginning(text, length) for text in texts)


def _beginning(text: str, length: int) -> str:
    # Only part of a long text is read: white space is rarely more than nine tenths of it.
    line = " ".join(text[: 10 * length].split())
    if len(line) <= length and len(text) <= 10 * length:
        return line
    return line[: length - 2].rstrip(" .,;:") + "…"


def matrix_of(tables: Iterable[Entries], shape: tuple[int, int], first: int = 0) -> Coordinates:
    """Return the entries of some tables as a matrix whose row 0 is document ``first``."""
    import scipy.sparse as sp

    document, word, count = np.concatenate([np.empty((0, 3), dtype=np.int64), *tables]).T
    return sp.coo_array((count, (document - first, word)), shape=shape)


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
