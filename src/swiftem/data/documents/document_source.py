"""The contract of a source of documents: counts of words, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["DocumentSource"]


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
