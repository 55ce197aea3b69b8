"""Documents whose counts are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from swiftem._checks import check_int
from swiftem.data.documents.sparse_structure import checked_counts
from swiftem.files.durable import fingerprint

__all__ = ["CsrDocuments"]


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
        matrix = checked_counts(counts)
        matrix.eliminate_zeros()
        self._counts = matrix
        self.n_documents, self.n_words = (int(length) for length in matrix.shape)

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        for first in range(0, self.n_documents, rows):
            yield first, self._counts[first : first + rows]

    def fingerprint(self) -> str:
        """Return a hash of the counts."""
        parts = (np.asarray(part) for part in (self._counts.indptr, self._counts.indices, self._counts.data))
        return fingerprint(f"documents{self._counts.shape}", *parts)
