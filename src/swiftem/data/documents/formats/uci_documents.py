"""Counts in the format of the UCI "Bag of Words" data, read on demand or at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import check_int
from swiftem.data.documents.corpus_counts import CorpusCounts, check_tokens, counted_documents
from swiftem.data.documents.formats.entry_lines import EntryLines, whole_numbers
from swiftem.data.documents.formats.lines import MOST_EMPTY, most_bytes, read_bytes, read_pieces, whole_number
from swiftem.data.documents.vocabulary import find_vocabulary, read_vocabulary
from swiftem.data.rows.row_reader import read_ahead
from swiftem.files.durable import file_hash

__all__ = ["UciDocuments", "read_bag_of_words"]

WHAT = "a bag of words in UCI's format"
HEAD = ("the number of documents", "the number of words", "the number of entries")
FIRST_LINE = 1 + len(HEAD)
MOST = 2**63 - 1
"""Largest number in the first three lines."""

BYTES = 1 << 20
"""Bytes of text read at a time."""
SHORTEST_LINE = len("1 1 1\n")
Triples = NDArray[np.int64]


class UciDocuments:
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

    is_text: ClassVar[bool] = True

    def __init__(
        self, path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
    ) -> None:
        self._file = Path(path)
        first = next(read_pieces(self._file, WHAT, BYTES), b"")
        self._lines, self._start = read_head(self._file, first)
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
        held: list[Triples] = []
        first = 0
        for found in chain(read_ahead(self._triples()), [None]):
            while found is None or (len(found) and found[-1, 0] >= first + rows):
                if found is not None:
                    cut = int(np.searchsorted(found[:, 0], first + rows))
                    held.append(found[:cut])
                    found = found[cut:]
                yield first, self._counts(held, first, min(rows, self.n_documents - first))
                held, first = [], first + rows
                if found is None and first >= self.n_documents:
                    return
            held.append(found)

    def _counts(self, held: list[Triples], first: int, rows: int) -> Any:
        import scipy.sparse as sp

        entries = np.concatenate([*held, np.empty((0, 3), dtype=np.int64)])
        check_tokens(str(self._file), entries[:, 2])
        place = (entries[:, 0] - first, entries[:, 1])
        matrix = sp.csr_array(sp.coo_array((entries[:, 2], place), shape=(rows, self.n_words)))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    def _triples(self) -> Iterator[Triples]:
        """Yield documents, words (both from 0) and counts of the entries, shape (., 3), in order."""
        line, seen, last = 1, 0, 0
        for piece in read_pieces(self._file, WHAT, BYTES):
            content = piece
            if line == 1:
                content, line = piece[self._start :], FIRST_LINE
            if not content:
                continue
            found = self._parsed(content, line)
            if len(found):
                document = found[:, 0]
                step = np.flatnonzero(np.diff(document, prepend=last) < 0)
                if len(step):
                    raise self._disorder(content, line, int(step[0]), last, document)
                last = int(document[-1])
                found -= (1, 1, 0)
            seen += len(found)
            line += content.count(b"\n")
            yield found
        if seen != self._lines.n_entries:
            raise self._lines.miscounted(seen)

    def _parsed(self, content: bytes, line: int) -> Triples:
        found = None
        if self._lines.are_lines(content):
            # As floats, which do not overflow; counts are exact to 2^53.
            found = whole_numbers(content).reshape(-1, 3)
            most = (self.n_documents, self.n_words, 2.0**53)
            if not ((found >= (1, 1, 0)) & (found <= most)).all():
                found = None
        if found is None:
            raise self._lines.first_fault(content, line) or ValueError(
                f"{self._file} must have counts below 2^53, got more after line {line}."
            )
        return found.astype(np.int64)

    def _disorder(self, content: bytes, line: int, entry: int, last: int, document: Triples) -> ValueError:
        """Return the error for the first entry whose document is before that of the previous entry."""
        numbers = [number for number, text in enumerate(content.splitlines(), line) if text.strip()]
        before = last if entry == 0 else int(document[entry - 1])
        return ValueError(
            f"{self._file} must be ordered by document to be read in blocks, got document {document[entry]} "
            f"after {before} in line {numbers[entry]}: sort it, or load it with read_bag_of_words."
        )

    def fingerprint(self) -> str:
        """Return a hash of the file; it reads the whole file."""
        return file_hash("uci", [self._file])


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
    file = Path(path)
    content = read_bytes(file, WHAT)
    lines, start = read_head(file, content)
    words = words_for(file, vocabulary, lines.shape[1])
    counts = lines.read(content, start, FIRST_LINE)
    return counted_documents(counts, words, lambda row: f"document {row + 1}", str(file), "uci")


def read_head(file: Path, content: bytes) -> tuple[EntryLines, int]:
    """Return the description of the lines from the first three, and where the entries begin."""
    numbers = []
    start = 0
    for place, what in enumerate(HEAD, start=1):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        text = content[start:end].decode("utf-8", "replace").strip()
        if not text.isascii() or not text.isdigit() or not 1 <= whole_number(text) <= MOST:
            raise ValueError(f"{file} must have {what} in line {place}, got {text[:40]!r}.")
        numbers.append(whole_number(text))
        start = end + 1
    n_documents, n_words, n_entries = numbers
    lines = EntryLines(file, (n_documents, n_words), n_entries, 3, rows="documents", columns="words")
    return lines, start


def words_for(file: Path, vocabulary: str | os.PathLike[str] | None, n_words: int) -> tuple[str, ...]:
    """Return the words of a file of counts, from a given vocabulary or from one next to the file."""
    found = Path(vocabulary) if vocabulary is not None else find_vocabulary(file)
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
