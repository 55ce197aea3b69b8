"""Counts in the format of Blei's lda-c."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from swiftem.data.documents.corpus_counts import CorpusCounts, counted_documents
from swiftem.data.documents.formats.lines import filled_lines
from swiftem.data.documents.formats.whole_numbers import shortened_number, whole_number
from swiftem.data.documents.vocabulary import check_unnamed_words, find_vocabulary, read_vocabulary

__all__ = ["WHAT", "document_in", "read_lda_c"]

WHAT = "a corpus in lda-c's format"
DOCUMENT = re.compile(r"\s*+[0-9]++(?:\s++[0-9]++:[0-9]++)*+\s*+", flags=re.ASCII)
PAIR = re.compile(r"([+-]?[0-9]+):([+-]?[0-9]+)", flags=re.ASCII)


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
        The words, one a line. By default one that lies beside the file, such as ``ap.vocab`` or ``vocab.txt``
        for ``ap.dat``; without any, words are known by their numbers.

    Returns
    -------
    CorpusCounts
        Its documents are called by their lines.

    Raises
    ------
    FileNotFoundError, ValueError
        Where a file is missing, or something in it is wrong: the sentence names the line.

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
    import scipy.sparse as sp

    file = Path(path)
    found = Path(vocabulary) if vocabulary is not None else None
    documents: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    names: list[str] = []
    highest, highest_line = -1, 0
    for number, line in filled_lines(file, WHAT):
        pairs = document_in(file, number, line)
        if len(pairs) and (largest := int(pairs[::2].max())) > highest:
            highest, highest_line = largest, number
        documents.append(pairs)
        names.append(f"line {number}")
    if highest < 0:
        raise ValueError(f"{file} must have at least one document with a word in it, got none.")
    found = found or find_vocabulary(file)
    words = None if found is None else read_vocabulary(found)
    if words is not None and highest >= len(words):
        raise ValueError(
            f"{file} must have words from 0 to {len(words) - 1}, as many as {found} has, got {highest} "
            f"in line {highest_line}."
        )
    if words is None:
        check_unnamed_words(file, highest + 1, f" in line {highest_line}")
    pairs = np.concatenate(documents)
    rows = np.concatenate([[0], np.cumsum([len(document) // 2 for document in documents])])
    shape = (len(documents), highest + 1 if words is None else len(words))
    counts = sp.csr_array((pairs[1::2], pairs[::2], rows), shape=shape)
    return counted_documents(counts, words, names.__getitem__, str(file), "lda-c")


def document_in(file: Path, number: int, line: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return words and counts of a line, alternating, shape (2m,), or say what is wrong with it."""
    if not DOCUMENT.fullmatch(line):
        raise _fault(file, number, line)
    try:
        numbers = np.array(line.replace(":", " ").split(), dtype=np.int64)
    except (OverflowError, ValueError):  # the latter where there are thousands of digits
        raise _fault(file, number, line) from None
    if len(numbers) - 1 != 2 * int(numbers[0]):
        raise ValueError(
            f"{file} must have as many pairs in a line as its first number says, got {numbers[0]} and "
            f"{len(numbers) // 2} pairs in line {number}."
        )
    return numbers[1:]


def _fault(file: Path, number: int, line: str) -> ValueError:
    """Return a sentence on what is wrong in a line."""
    first, *pairs = line.split()
    if not (first.isascii() and first.isdigit()):
        return ValueError(
            f"{file} must have the number of pairs at the beginning of each line, got {first[:40]!r} "
            f"in line {number}."
        )
    for pair in pairs:
        cells = PAIR.fullmatch(pair)
        if cells is None:
            return ValueError(f"{file} must have pairs such as 17:2, got {pair[:40]!r} in line {number}.")
        if not 0 <= whole_number(cells[1]) < 2**31:
            got = shortened_number(cells[1])
            return ValueError(f"{file} must have words from 0 to 2^31 - 1, got {got} in line {number}.")
        if not 0 <= whole_number(cells[2]) < 2**63:
            got = shortened_number(cells[2])
            return ValueError(f"{file} must have counts of at least 0, got {got} in line {number}.")
    return ValueError(
        f"{file} must have a line N word:count ... for each document, got another in line {number}."
    )
