"""Documents of a file or a matrix, in any format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from swiftem._checks import check_int
from swiftem.data.documents.document_source import DocumentSource
from swiftem.data.documents.formats.count_matrix import all_documents
from swiftem.data.documents.formats.line_documents import LdaCDocuments, TextDocuments
from swiftem.data.documents.formats.lines import existing_file
from swiftem.data.documents.formats.no_text import recognise
from swiftem.data.documents.formats.uci_documents import UciDocuments
from swiftem.data.documents.sparse_structure import checked_counts, is_sparse
from swiftem.files.durable import fingerprint

__all__ = ["CsrDocuments", "open_documents"]


def open_documents(data: Any, vocabulary: Any = None, format: str | None = None) -> DocumentSource:
    r"""Return documents as a source of blocks of counts.

    Parameters
    ----------
    data : path, sparse matrix (D, V), or DocumentSource
        A file: UCI bag-of-words, lda-c and texts (one document per line) are read on demand; MatrixMarket and
        ``.npz``, whose entries may be in any order, are loaded.
    vocabulary : path or sequence of str, optional
        The words. For texts they are required; for counts a file next to it is used by default.
    format : {"uci", "lda-c", "text", "matrixmarket", "npz"}, optional
        By default it is recognised.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import open_documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.dat")
    ...     _ = file.write_text("2 0:1 1:1\n1 1:2\n")
    ...     open_documents(file).n_words
    2
    """
    if isinstance(data, DocumentSource):
        return data
    if is_sparse(data):
        return CsrDocuments(data)
    if not isinstance(data, str | os.PathLike):
        raise TypeError(f"data must be a file, a sparse matrix or a source, got {type(data).__name__}.")
    file = existing_file(Path(data), "a corpus of counts or texts")
    kind = format or recognise(file)
    if kind == "uci":
        return UciDocuments(file, vocabulary)
    if kind == "lda-c":
        return LdaCDocuments(file, vocabulary)
    if kind in ("matrixmarket", "npz"):
        return CsrDocuments(all_documents(file, vocabulary))
    if kind == "text":
        if vocabulary is None:
            raise ValueError(
                f"{file} is text, whose words must be known before it is read in blocks: give vocabulary, or "
                "load it with read_corpus."
            )
        return TextDocuments(file, vocabulary)
    raise ValueError(
        f"{file} is in the format {kind}, which is not read in blocks: load it with read_corpus."
    )


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
