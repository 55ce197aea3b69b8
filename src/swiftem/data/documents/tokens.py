"""Tokens as samples: of a sparse matrix of counts, or pairs of a document and a word."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_integers, check_int, read_sample_weight
from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Samples, Source
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.data.documents.counts import Sparse, check_tokens, checked_counts, without_zeros

FEW_TOKENS, PER_ENTRY = 1 << 20, 8
"""Tokens are kept one by one if there are at most so many, or so many per entry on average."""
BYTES_PER_ENTRY = 96
"""Bytes of a run for each entry."""
BYTES_PER_TOKEN = 48
"""Bytes of a run for each token of a list."""


class CountSource(Source):
    """The tokens of a document-word matrix of counts, without expanding them.

    Token i is the i-th if rows are read in order, columns ascending within the row, each entry repeated by
    its count. If some counts are not whole numbers, each non-zero entry is one sample, with its count as
    weight: the objective is the same, and draws do not depend on the counts.

    Parameters
    ----------
    counts : scipy.sparse matrix or array, shape (D, V)
        Non-negative counts. Entries may be unsorted or duplicated (duplicates are summed). Not changed.
    sample_weight : array-like, shape (D,), optional
        Non-negative weights of the documents. Documents of weight zero are ignored.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CountSource
    >>> source = CountSource(sp.csr_array([[2, 0, 1], [0, 1, 0]]))
    >>> source.n
    4
    >>> source.take([0, 1, 2, 3]).y.tolist()
    [[0, 0], [0, 0], [0, 2], [1, 1]]
    """

    access: ClassVar[Access] = "random"
    samples: ClassVar[Samples] = "tokens"

    def __init__(self, counts: Sparse, sample_weight: ArrayLike | None = None) -> None:
        # In float64 before duplicates are summed: small integer types would overflow.
        matrix = without_zeros(checked_counts("data", counts, np.float64))
        self.n_documents, self.n_words = (int(length) for length in matrix.shape)
        document = np.repeat(np.arange(self.n_documents), np.diff(matrix.indptr))
        word, count = matrix.indices.astype(np.intp), matrix.data
        weight = read_sample_weight(sample_weight, self.n_documents, "document")
        if weight is not None:
            is_used = weight[document] > 0
            document, word, count = document[is_used], word[is_used], count[is_used]
            weight = weight[document]
        if not len(count):
            raise ValueError("data must have at least one token, got none.")
        check_tokens("data", count)
        self._document: Index = document
        self._word: Index = word
        is_whole = (count == np.floor(count)).all()
        self._last: Index | None = np.cumsum(count.astype(np.intp)) if is_whole else None
        self._weight: Array | None = weight
        if not is_whole:
            self._weight = count if weight is None else count * weight

    @property
    def n(self) -> int:
        """Number of tokens (of non-zero entries if counts are fractions)."""
        return len(self._word) if self._last is None else int(self._last[-1])

    @property
    def n_entries(self) -> int:
        """Number of non-zero entries."""
        return len(self._word)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights over the tokens."""
        if self._weight is None:
            return float(self.n)
        repeats = 1 if self._last is None else np.diff(self._last, prepend=0)
        return float((self._weight * repeats).sum())

    def entries(self) -> tuple[Index, Index, Index | None, Array | None]:
        """Return the non-zero entries in the order of their tokens; do not write to the arrays.

        Returns
        -------
        document, word : ndarray of int, shape (m,)
            Positions of the entries.
        count : ndarray of int, shape (m,), or None
            Number of tokens of each entry; None if counts are fractions and each entry is one sample.
        weight : ndarray, shape (m,), or None
            The weight of each token of the entry; None if all are one.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from swiftem.data import CountSource
        >>> CountSource(sp.csr_array([[2, 0, 1], [0, 1, 0]])).entries()[2]
        array([2, 1, 1])
        """
        count = None if self._last is None else np.diff(self._last, prepend=0)
        return self._document, self._word, count, self._weight

    def take(self, index: Index) -> Batch:
        """Return the tokens with these indices."""
        index = np.asarray(index)
        entry = index if self._last is None else np.searchsorted(self._last, index, side="right")
        tokens = np.stack([self._document[entry], self._word[entry]], axis=1)
        weight: Array = np.ones(len(index)) if self._weight is None else self._weight[entry]
        return Batch(tokens, weight, index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield all tokens in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            yield self.take(np.arange(start, min(start + rows, self.n)))

    @property
    def is_weighted(self) -> bool:
        """Whether tokens have weights: of their documents, or counts that are fractions."""
        return self._weight is not None

    @property
    def is_unrolled(self) -> bool:
        """Whether compiled code keeps tokens one by one; repeated ones of large counts are not."""
        return self.n <= max(FEW_TOKENS, PER_ENTRY * self.n_entries)

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes of the entries, and of the tokens if they are kept one by one."""
        return BYTES_PER_ENTRY * self.n_entries + (16 * self.n if self.is_unrolled else 0)

    def fingerprint(self) -> str:
        """Return a hash of the counts and weights."""
        kind = f"counts{self.n_documents},{self.n_words}"
        return fingerprint(kind, self._document, self._word, self._last, self._weight)


class TokenSource(ArraySource):
    """A list of tokens, each a document and a word.

    Parameters
    ----------
    documents, words : array-like of int, shape (n,)
        Document and word of each token, counted from 0.
    n_documents, n_words : int, optional
        D and V. By default one more than the largest number that occurs.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the tokens. Tokens of weight zero are ignored.

    Examples
    --------
    >>> from swiftem.data import TokenSource
    >>> source = TokenSource([0, 0, 1], [4, 2, 4])
    >>> source.n, source.n_documents, source.n_words
    (3, 2, 5)
    """

    samples: ClassVar[Samples] = "tokens"

    def __init__(
        self,
        documents: ArrayLike,
        words: ArrayLike,
        *,
        n_documents: int | None = None,
        n_words: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        document, word = _numbers("documents", documents), _numbers("words", words)
        if document.shape != word.shape:
            raise ValueError(f"words must have the length of documents, {len(document)}, got {len(word)}.")
        if not len(document):
            raise ValueError("data must have at least one token, got none.")
        self.n_documents = _size("n_documents", n_documents, document)
        self.n_words = _size("n_words", n_words, word)
        super().__init__(np.stack([document, word], axis=1), sample_weight)

    @property
    def rows_in_memory(self) -> None:
        """None: tokens are no rows."""
        return None

    def bytes_needed(self, streams: int) -> int:
        """Return the bytes of the tokens as compiled code reads them."""
        return BYTES_PER_TOKEN * self.n

    def fingerprint(self) -> str:
        """Return a hash of the tokens and weights."""
        return f"{self.n_documents},{self.n_words},{super().fingerprint()}"


def _numbers(name: str, values: ArrayLike) -> Index:
    """Return token numbers as a one-dimensional integer array without negative entries."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), one number per token, got {array.shape}.")
    if not len(array):
        return np.empty(0, dtype=np.intp)
    numbers = as_integers(name, array)
    if (numbers < 0).any():
        raise ValueError(f"{name} must count from 0, got {numbers.min()}.")
    return numbers


def _size(name: str, size: int | None, numbers: Index) -> int:
    """Return D or V, checked against the numbers that occur."""
    needed = int(numbers.max()) + 1
    if size is None:
        return needed
    if check_int(name, size, minimum=1) < needed:
        raise ValueError(f"{name} must exceed the largest number, {needed - 1}, got {size}.")
    return int(size)
