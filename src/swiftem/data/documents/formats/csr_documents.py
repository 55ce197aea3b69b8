"""Documents whose counts are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from swiftem._checks import check_finite, check_int
from swiftem.data.documents.sparse_structure import checked_sparse, is_sparse
from swiftem.data.fingerprint import fingerprint

__all__ = ["CsrDocuments"]


class CsrDocuments:
    """The rows of a sparse matrix of counts.

    Parameters
    ----------
    counts : sparse, shape (D, V)
        Non-negative; duplicates add up. Not changed.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CsrDocuments
    >>> documents = CsrDocuments(sp.csr_array([[2, 0], [0, 0], [1, 1]]))
    >>> [(first, block.toarray().tolist()) for first, block in documents.blocks(2)]
    [(0, [[2, 0], [0, 0]]), (2, [[1, 1]])]
    """

    def __init__(self, counts: Any) -> None:
        import scipy.sparse as sp

        if not is_sparse(counts):
            raise TypeError(f"counts must be a SciPy sparse matrix, got {type(counts).__name__}.")
        if len(counts.shape) != 2 or 0 in counts.shape:
            raise ValueError(f"data must have at least one document and one word, got shape {counts.shape}.")
        matrix = sp.csr_array(checked_sparse("data", counts), copy=True)
        check_finite("data", matrix.data)
        if len(matrix.data) and matrix.data.min() < 0:
            raise ValueError(f"data must hold counts, which are not negative, got {matrix.data.min():g}.")
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._counts = matrix
        self.n_documents, self.n_words = (int(length) for length in matrix.shape)

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        for first in range(0, self.n_documents, rows):
            yield first, self._counts[first : first + rows]

    def fingerprint(self) -> str:
        """Return a hash of the counts."""
        parts = (np.asarray(part) for part in (self._counts.indptr, self._counts.indices, self._counts.data))
        return fingerprint(f"documents{self._counts.shape}", *parts)
