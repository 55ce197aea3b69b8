"""Documents of files with one document a line, read as they are needed: lda-c's counts, and texts."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from swiftem._checks import check_int
from swiftem.data.documents.corpus_counts import check_tokens
from swiftem.data.documents.formats.lda_c import WHAT, document_in
from swiftem.data.documents.formats.lines import filled_lines
from swiftem.data.documents.known_words import count_known_words
from swiftem.data.documents.vocabulary import check_unnamed_words, find_vocabulary, read_vocabulary
from swiftem.data.rows.read_ahead import read_ahead
from swiftem.files.file_hash import file_hash

__all__ = ["LdaCDocuments", "TextDocuments"]


class _LineDocuments(ABC):
    """What both have: lines, in blocks; the first whole pass counts them. Empty lines are no documents."""

    n_documents: int | None = None
    n_words: int
    what: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path)

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        first = 0
        for lines in read_ahead(self._in_blocks(rows)):
            yield first, self._counts(lines)
            first += len(lines)
        if not first:
            raise ValueError(f"{self._file} must have at least one document, got none.")
        self.n_documents = first

    def _in_blocks(self, rows: int) -> Iterator[list[tuple[int, str]]]:
        lines = filled_lines(self._file, self.what)
        while block := list(islice(lines, rows)):
            yield block

    @abstractmethod
    def _counts(self, lines: list[tuple[int, str]]) -> Any:
        """Return the counts of numbered lines, shape (len(lines), V)."""

    def fingerprint(self) -> str:
        """Return a hash of the file and the number of words; it reads all of it."""
        return file_hash(f"{type(self).__name__}{self.n_words}", [self._file])


class LdaCDocuments(_LineDocuments):
    r"""The documents of a file in lda-c's format; memory does not grow with the file.

    Parameters
    ----------
    path : path
        As for :func:`swiftem.data.read_lda_c`.
    vocabulary : path, optional
        The words, one a line; by default one that lies beside the file. Without any, a pass finds V.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import LdaCDocuments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.dat")
    ...     _ = file.write_text("2 0:1 1:1\n1 1:2\n")
    ...     documents = LdaCDocuments(file)
    ...     [(first, block.toarray().tolist()) for first, block in documents.blocks(5)], documents.n_documents
    ([(0, [[1, 1], [0, 2]])], 2)
    """

    what = WHAT

    def __init__(
        self, path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(path)
        found = Path(vocabulary) if vocabulary is not None else find_vocabulary(self._file)
        self.words = None if found is None else read_vocabulary(found)
        self._vocabulary = found
        if self.words is not None:
            self.n_words = len(self.words)
            return
        highest, count = -1, 0
        for number, line in filled_lines(self._file, self.what):
            count += 1
            highest = max(highest, *document_in(self._file, number, line)[::2].tolist(), -1)
        if highest < 0:
            raise ValueError(f"{self._file} must have at least one document with a word in it, got none.")
        check_unnamed_words(self._file, highest + 1)
        self.n_words, self.n_documents = highest + 1, count

    def _counts(self, lines: list[tuple[int, str]]) -> Any:
        import scipy.sparse as sp

        found = [document_in(self._file, number, line) for number, line in lines]
        for (number, _), pairs in zip(lines, found, strict=True):
            if len(pairs) and pairs[::2].max() >= self.n_words:
                raise ValueError(
                    f"{self._file} must have words from 0 to {self.n_words - 1}, as many as "
                    f"{self._vocabulary} has, got {pairs[::2].max()} in line {number}."
                )
        ends = np.concatenate([[0], np.cumsum([len(pairs) // 2 for pairs in found])])
        pairs = np.concatenate(found)
        check_tokens(str(self._file), pairs[1::2])
        matrix = sp.csr_array((pairs[1::2], pairs[::2], ends), shape=(len(lines), self.n_words))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix


class TextDocuments(_LineDocuments):
    r"""The texts of a file, one a line, counted in given words; memory does not grow with the file.

    Parameters
    ----------
    path : path
        A UTF-8 file, compressed with gzip or not.
    words : sequence of str, or path
        The vocabulary, or a file with one word a line. What a word is, :func:`swiftem.data.count_words` says.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import TextDocuments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.txt")
    ...     _ = file.write_text("Fish and rice.\nNothing of it.\n")
    ...     [block.toarray().tolist() for _, block in TextDocuments(file, ["fish", "rice"]).blocks(2)]
    [[[1, 1], [0, 0]]]
    """

    what = "a text file, one document a line"

    def __init__(self, path: str | os.PathLike[str], words: Sequence[str] | str | os.PathLike[str]) -> None:
        super().__init__(path)
        given = read_vocabulary(words) if isinstance(words, str | os.PathLike) else tuple(words)
        if not given:
            raise ValueError("words must be at least one, got none.")
        self.words, self.n_words = given, len(given)

    def _counts(self, lines: list[tuple[int, str]]) -> Any:
        import scipy.sparse as sp

        nobody: Literal["english"] | None = None
        counts, kept, _ = count_known_words([line for _, line in lines], self.words, nobody)
        lengths = np.zeros(len(lines), dtype=np.int64)
        lengths[kept] = np.diff(counts.indptr)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return sp.csr_array((counts.data, counts.indices, ends), shape=(len(lines), self.n_words))
