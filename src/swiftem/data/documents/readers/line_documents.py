"""Files with one document per line, read on demand or at once: lda-c's counts, and texts."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_int
from swiftem.data.documents.blocks import ParsedDocuments
from swiftem.data.documents.counts import CorpusCounts, check_tokens, counted_documents, without_zeros
from swiftem.data.documents.readers.lines import (
    check_unnamed_words,
    filled_lines,
    find_vocabulary,
    read_vocabulary,
    shortened_number,
    whole_number,
)
from swiftem.data.documents.words import count_known_words
from swiftem.data.reading import read_ahead

__all__ = ["LdaCDocuments", "TextDocuments", "document_lines", "read_documents", "read_lda_c"]

LDA_C, TEXT = "a corpus in lda-c's format", "a text file, one document per line"
DOCUMENT = re.compile(r"\s*+[0-9]++(?:\s++[0-9]++:[0-9]++)*+\s*+", flags=re.ASCII)
PAIR = re.compile(r"([+-]?[0-9]+):([+-]?[0-9]+)", flags=re.ASCII)
Pairs = NDArray[np.int64]


class LineDocuments(ParsedDocuments, ABC):
    """Documents in lines; empty lines are no documents, and the first complete pass counts the others."""

    n_documents: int | None = None
    what: str

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Yield the index of the first document and the counts of ``rows`` documents."""
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


class LdaCDocuments(LineDocuments):
    r"""The documents of a file in lda-c's format; memory does not grow with the file.

    Parameters
    ----------
    path : path
        As for :func:`swiftem.data.read_lda_c`.
    vocabulary : path, optional
        The words, one per line; by default a file next to it. Without any, a pass finds V.

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

    what = LDA_C

    def __init__(
        self, path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(path)
        self._vocabulary = find_vocabulary(self._file, vocabulary)
        self.words = None if self._vocabulary is None else read_vocabulary(self._vocabulary)
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
        found = [document_in(self._file, number, line) for number, line in lines]
        numbers = [number for number, _ in lines]
        matrix = _matrix(self._file, numbers, found, self.n_words, self._vocabulary)
        check_tokens(str(self._file), matrix.data)
        return without_zeros(matrix)


def read_lda_c(
    path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
) -> CorpusCounts:
    r"""Return the counts of a file with a line ``N word:count word:count ...`` for each document.

    N is the number of pairs in the line; words are numbers from 0. The file may be compressed with gzip.

    Parameters
    ----------
    path : str or path
        The file.
    vocabulary : str or path, optional
        The words, one per line. By default a file next to it, such as ``ap.vocab`` or ``vocab.txt`` for
        ``ap.dat``; without any, words are known by their numbers.

    Returns
    -------
    CorpusCounts
        Its documents are named by their lines; errors name the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_lda_c
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.dat")
    ...     _ = file.write_text("2 0:1 1:1\n1 1:2\n")
    ...     corpus = read_lda_c(file)
    >>> corpus.counts.toarray().tolist(), corpus.names, corpus.words
    ([[1, 1], [0, 2]], ('line 1', 'line 2'), None)
    """
    file = Path(path)
    numbers, found = [], []
    for number, line in filled_lines(file, LDA_C):
        numbers.append(number)
        found.append(document_in(file, number, line))
    highest = [int(pairs[::2].max(initial=-1)) for pairs in found]
    n_words = max(highest, default=-1) + 1
    if not n_words:
        raise ValueError(f"{file} must have at least one document with a word in it, got none.")
    beside = find_vocabulary(file, vocabulary)
    words = None if beside is None else read_vocabulary(beside)
    if words is None:
        check_unnamed_words(file, n_words, f" in line {numbers[highest.index(n_words - 1)]}")
    counts = _matrix(file, numbers, found, n_words if words is None else len(words), beside)
    return counted_documents(counts, words, lambda row: f"line {numbers[row]}", str(file), "lda-c")


def _matrix(file: Path, numbers: list[int], found: list[Pairs], n_words: int, vocabulary: Path | None) -> Any:
    """Return the counts (len(found), V) of the words of numbered lines, or raise an error with the line."""
    import scipy.sparse as sp

    for number, pairs in zip(numbers, found, strict=True):
        if len(pairs) and pairs[::2].max() >= n_words:
            raise ValueError(
                f"{file} must have words from 0 to {n_words - 1}, as many as {vocabulary} has, got "
                f"{pairs[::2].max()} in line {number}."
            )
    ends = np.concatenate([[0], np.cumsum([len(pairs) // 2 for pairs in found])])
    pairs = np.concatenate(found)
    return sp.csr_array((pairs[1::2], pairs[::2], ends), shape=(len(found), n_words))


def document_in(file: Path, number: int, line: str) -> Pairs:
    """Return words and counts of a line, alternating, shape (2m,), or raise an error."""
    if not DOCUMENT.fullmatch(line):
        raise _fault(file, number, line)
    try:
        numbers = np.array(line.replace(":", " ").split(), dtype=np.int64)
    except (OverflowError, ValueError):  # the latter for thousands of digits
        raise _fault(file, number, line) from None
    if len(numbers) - 1 != 2 * int(numbers[0]):
        raise ValueError(
            f"{file} must have as many pairs in a line as its first number says, got {numbers[0]} and "
            f"{len(numbers) // 2} pairs in line {number}."
        )
    return numbers[1:]


def _fault(file: Path, number: int, line: str) -> ValueError:
    """Return an error for a wrong line."""
    first, *pairs = line.split()
    if not (first.isascii() and first.isdigit()):
        wanted, got = "the number of pairs at the beginning of each line", repr(first[:40])
    else:
        faults = filter(None, map(_wrong_pair, pairs))
        wanted, got = next(faults, ("a line N word:count ... for each document", "another"))
    return ValueError(f"{file} must have {wanted}, got {got} in line {number}.")


def _wrong_pair(pair: str) -> tuple[str, str] | None:
    """Return what a pair must be, and what it is; None if nothing is wrong."""
    cells = PAIR.fullmatch(pair)
    if cells is None:
        return "pairs such as 17:2", repr(pair[:40])
    if not 0 <= whole_number(cells[1]) < 2**31:
        return "words from 0 to 2^31 - 1", shortened_number(cells[1])
    if not 0 <= whole_number(cells[2]) <= 2**53:
        return "counts from 0 to 2^53", shortened_number(cells[2])
    return None


class TextDocuments(LineDocuments):
    r"""The texts of a file, one per line, counted in given words; memory does not grow with the file.

    Parameters
    ----------
    path : path
        A UTF-8 file, compressed with gzip or not.
    words : sequence of str, or path
        The vocabulary, or a file with one word per line. :func:`swiftem.data.count_words` defines words.

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

    what = TEXT

    def __init__(self, path: str | os.PathLike[str], words: Sequence[str] | str | os.PathLike[str]) -> None:
        super().__init__(path)
        given = read_vocabulary(words) if isinstance(words, str | os.PathLike) else tuple(words)
        if not given:
            raise ValueError("words must have at least one word, got none.")
        self.words, self.n_words = given, len(given)

    def _counts(self, lines: list[tuple[int, str]]) -> Any:
        import scipy.sparse as sp

        counts, kept, _ = count_known_words([line for _, line in lines], self.words, None)
        lengths = np.zeros(len(lines), dtype=np.int64)
        lengths[kept] = np.diff(counts.indptr)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return sp.csr_array((counts.data, counts.indices, ends), shape=(len(lines), self.n_words))


def read_documents(path: str | os.PathLike[str]) -> list[str]:
    r"""Return the documents of a UTF-8 text file, one per line.

    Lines of only white space are skipped. Lines may end in LF or CRLF, and the file may begin with a
    byte order mark.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    list of str, length D
        The lines in order, without their ends.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file, or it is a folder.
    ValueError
        If it has no document, or is not UTF-8 text; the message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.txt")
    ...     _ = file.write_bytes(b"Rice and maize.\r\n\r\nFish ponds.\r\n")
    ...     read_documents(file)
    ['Rice and maize.', 'Fish ponds.']
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {path!r}.")
    return [line for _, line in document_lines(Path(path))]


def document_lines(file: Path) -> list[tuple[int, str]]:
    """Return numbers and texts of the lines that are documents, at least one."""
    found = list(filled_lines(file, TEXT))
    if not found:
        what = "only white space" if file.stat().st_size else "an empty file"
        raise ValueError(f"{file} must have at least one document, got {what}.")
    return found
