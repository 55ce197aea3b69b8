"""The tokens of a sparse matrix of counts as samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem._typing import Array, Index
from swiftem.data.documents.corpus_counts import check_tokens
from swiftem.data.documents.sparse_structure import checked_counts
from swiftem.data.sample_weight import read_sample_weight
from swiftem.data.source import Access, Batch
from swiftem.files.durable import fingerprint

__all__ = ["CountSource"]


class CountSource:
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

    def __init__(self, counts: Any, sample_weight: ArrayLike | None = None) -> None:
        # In float64 before duplicates are summed: small integer types would overflow.
        matrix = checked_counts(counts, np.float64)
        self.n_documents, self.n_words = (int(length) for length in matrix.shape)
        of_document = read_sample_weight(sample_weight, self.n_documents, "document")

        document = np.repeat(np.arange(self.n_documents), np.diff(matrix.indptr))
        kept = matrix.data > 0
        if of_document is not None:
            kept &= of_document[document] > 0
        if not kept.any():
            raise ValueError("data must have at least one token, got none.")
        self._document: Index = document[kept]
        self._word: Index = matrix.indices[kept].astype(np.intp)
        count: Array = matrix.data[kept]
        check_tokens("data", count)
        if (count == np.floor(count)).all():
            self._last: Index | None = np.cumsum(count.astype(np.intp))
            self._weight = None if of_document is None else of_document[self._document]
        else:
            self._last = None
            self._weight = count if of_document is None else count * of_document[self._document]

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

    def fingerprint(self) -> str:
        """Return a hash of the counts and weights."""
        kind = f"counts{self.n_documents},{self.n_words}"
        return fingerprint(kind, self._document, self._word, self._last, self._weight)
