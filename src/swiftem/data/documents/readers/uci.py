"""Counts in the format of the UCI "Bag of Words" data, read on demand or at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_int
from swiftem.data.documents.blocks import ParsedDocuments
from swiftem.data.documents.counts import CorpusCounts, check_tokens, counted_documents, without_zeros
from swiftem.data.documents.readers.entries import EntryLines
from swiftem.data.documents.readers.lines import (
    MOST_EMPTY,
    filled_lines,
    find_vocabulary,
    most_bytes,
    read_pieces,
    read_vocabulary,
    whole_number,
)
from swiftem.data.reading import read_ahead

__all__ = ["UciDocuments", "read_bag_of_words"]

WHAT = "a bag of words in UCI's format"
HEAD = ("the number of documents", "the number of words", "the number of entries")
FIRST_LINE = 1 + len(HEAD)
MOST = 2**63 - 1
"""Largest number in the first three lines."""
BYTES = 1 << 20
"""Bytes of text read at a time."""
SHORTEST_LINE = len("1 1 1\n")
Table = NDArray[np.int64]
"""Documents, words and counts of entries, shape (3, .)."""


class UciDocuments(ParsedDocuments):
    r"""The documents of a file such as ``docword.pubmed.txt.gz``; memory does not grow with the file.

    Parameters
    ----------
    path : path
        As for :func:`swiftem.data.read_bag_of_words`. Its lines must be ordered by document, as UCI's are; at
        most a million documents may be without words.
    vocabulary : path, optional
        The words, one per line; by default ``vocab.pubmed.txt`` next to ``docword.pubmed.txt``.

    Attributes
    ----------
    words : tuple of str
        The vocabulary.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import UciDocuments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "docword.toy.txt")
    ...     _ = file.write_text("3\n2\n3\n1 1 1\n1 2 1\n3 2 2\n")
    ...     _ = pathlib.Path(folder, "vocab.toy.txt").write_text("fish\nrice\n")
    ...     [(first, block.toarray().tolist()) for first, block in UciDocuments(file).blocks(2)]
    [(0, [[1, 1], [0, 0]]), (2, [[0, 2]])]
    """

    def __init__(
        self, path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(path)
        self._lines = read_head(self._file)
        self.n_documents, self.n_words = self._lines.shape
        most = MOST_EMPTY + most_bytes(self._file) // SHORTEST_LINE
        if self.n_documents > most:
            raise ValueError(
                f"{self._file} must have at most {most:,} documents to be read in blocks, one per entry that "
                f"fits into the file and {MOST_EMPTY:,} without words, got {self.n_documents:,} in line 1: "
                "load it with read_bag_of_words, which leaves out those without words."
            )
        self.words = words_for(self._file, vocabulary, self.n_words)

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
        check_int("rows", rows, minimum=1)
        first = 0
        tables: list[Table] = []
        for table in read_ahead(self._in_order()):
            rest = table
            while rest.size and rest[0, -1] >= first + rows:
                cut = int(np.searchsorted(rest[0], first + rows))
                yield first, self._counts([*tables, rest[:, :cut]], first, rows)
                tables, rest, first = [], rest[:, cut:], first + rows
            tables.append(rest)
        while first < self.n_documents:
            yield first, self._counts(tables, first, min(rows, self.n_documents - first))
            tables, first = [], first + rows

    def _counts(self, tables: list[Table], first: int, rows: int) -> Any:
        import scipy.sparse as sp

        document, word, count = joined(tables)
        check_tokens(str(self._file), count)
        counts = sp.coo_array((count, (document - first, word)), shape=(rows, self.n_words))
        return without_zeros(counts.tocsr())

    def _in_order(self) -> Iterator[Table]:
        """Yield the entries of each piece of the file; raise ValueError if documents are not in order."""
        seen = last = 0
        for table in entries_of(self._file, self._lines):
            steps = np.diff(table[0], prepend=last)
            if (steps < 0).any():
                place = int(np.argmax(steps < 0))
                number, _ = next(islice(filled_lines(self._file), len(HEAD) + seen + place, None))
                document = table[0, place] + 1
                raise ValueError(
                    f"{self._file} must be ordered by document to be read in blocks, got document "
                    f"{document} after {document - steps[place]} in line {number}: sort it, or load it with "
                    "read_bag_of_words."
                )
            seen, last = seen + len(steps), table[0, -1] if len(steps) else last
            yield table


def read_bag_of_words(
    path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
) -> CorpusCounts:
    r"""Return the counts of a file such as ``docword.nips.txt``, compressed with gzip or not.

    Its first three lines are the numbers of documents, words and entries; then there is one entry per line:
    document, word and count. Documents and words are counted from 1.

    Parameters
    ----------
    path : str or path
        The file.
    vocabulary : str or path, optional
        The words, one per line; by default ``vocab.nips.txt`` next to ``docword.nips.txt``.

    Returns
    -------
    CorpusCounts
        Its documents are named by their numbers in the file; errors name the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_bag_of_words
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "docword.toy.txt")
    ...     _ = file.write_text("2\n2\n3\n1 1 1\n1 2 1\n2 2 2\n")
    ...     _ = pathlib.Path(folder, "vocab.toy.txt").write_text("fish\nrice\n")
    ...     corpus = read_bag_of_words(file)
    >>> corpus.counts.toarray().tolist(), corpus.words
    ([[1, 1], [0, 2]], ('fish', 'rice'))
    """
    import scipy.sparse as sp

    file = Path(path)
    lines = read_head(file)
    words = words_for(file, vocabulary, lines.shape[1])
    document, word, count = joined(list(entries_of(file, lines)))
    counts = sp.coo_array((count, (document, word)), shape=lines.shape)
    return counted_documents(counts, words, lambda row: f"document {row + 1}", str(file), "uci")


def read_head(file: Path) -> EntryLines:
    """Return what the first three lines say about the others."""
    content = next(read_pieces(file, WHAT, BYTES), b"")
    cells = [*content.split(b"\n", len(HEAD))[: len(HEAD)], b"", b"", b""]
    numbers = []
    for number, (what, cell) in enumerate(zip(HEAD, cells, strict=False), start=1):
        text = cell.decode("utf-8", "replace").strip()
        if not text.isascii() or not text.isdigit() or not 1 <= whole_number(text) <= MOST:
            raise ValueError(f"{file} must have {what} in line {number}, got {text[:40]!r}.")
        numbers.append(whole_number(text))
    n_documents, n_words, n_entries = numbers
    return EntryLines(file, (n_documents, n_words), n_entries, 3, rows="documents", columns="words")


def entries_of(file: Path, lines: EntryLines) -> Iterator[Table]:
    """Yield document, word (both from 0) and count of the entries of each piece of the file."""
    pieces = read_pieces(file, WHAT, BYTES)
    rest = next(pieces).split(b"\n", len(HEAD))[len(HEAD) :]
    for entries in lines.read(chain(rest, pieces), FIRST_LINE):
        yield np.stack((entries.row, entries.col, entries.data)).astype(np.int64, copy=False)


def joined(tables: list[Table]) -> Table:
    """Return the entries of all tables."""
    return np.concatenate([*tables, np.empty((3, 0), dtype=np.int64)], axis=1)


def words_for(file: Path, vocabulary: str | os.PathLike[str] | None, n_words: int) -> tuple[str, ...]:
    """Return the words of a file of counts, from a given vocabulary or from one next to the file."""
    found = find_vocabulary(file, vocabulary)
    if found is None:
        name = "vocab." + file.name.removesuffix(".gz").removeprefix("docword.")
        raise FileNotFoundError(
            f"{file} must have a vocabulary next to it, one word per line, but {file.with_name(name)} does "
            "not exist: name another file with vocabulary (--vocabulary on the command line)."
        )
    words = read_vocabulary(found)
    if len(words) != n_words:
        raise ValueError(
            f"{found} must have {n_words:,} words, as line 2 of {file} says, got {len(words):,}."
        )
    return words
