"""Counts in the format of the UCI "Bag of Words" data."""

from __future__ import annotations

import os
from pathlib import Path

from swiftem.data.documents.corpus_counts import CorpusCounts, counted_documents
from swiftem.data.documents.formats.entry_lines import EntryLines
from swiftem.data.documents.formats.lines import read_bytes
from swiftem.data.documents.formats.whole_numbers import whole_number
from swiftem.data.documents.vocabulary import find_vocabulary, read_vocabulary

__all__ = ["FIRST_LINE", "WHAT", "read_bag_of_words", "read_head", "words_for"]

WHAT = "a bag of words in UCI's format"
HEAD = ("the number of documents", "the number of words", "the number of entries")
FIRST_LINE = 1 + len(HEAD)
MOST = 2**63 - 1
"""Largest number of a head."""


def read_bag_of_words(
    path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
) -> CorpusCounts:
    r"""Return the counts of a file such as ``docword.nips.txt``, compressed with gzip or not.

    Its first three lines are the numbers of documents, words and entries; then there is one entry a line:
    document, word and count. Documents and words are counted from 1.

    Parameters
    ----------
    path : str or path
        The file.
    vocabulary : str or path, optional
        The words, one a line; by default ``vocab.nips.txt`` beside ``docword.nips.txt``.

    Returns
    -------
    CorpusCounts
        Its documents are called by their numbers in the file.

    Raises
    ------
    FileNotFoundError, ValueError
        Where a file is missing, or something in it is wrong: the sentence names the line.

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
    """Return what the three numbers of the head say about the lines below, and where these begin."""
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
    """Return the words of a file of counts, from a vocabulary that is given or lies beside it."""
    found = Path(vocabulary) if vocabulary is not None else find_vocabulary(file)
    if found is None:
        name = "vocab." + file.name.removesuffix(".gz").removeprefix("docword.")
        raise FileNotFoundError(
            f"{file} must have a vocabulary beside it, one word a line, but {file.with_name(name)} does not "
            "exist: name another file with vocabulary (--vocabulary on the command line)."
        )
    words = read_vocabulary(found)
    if len(words) != n_words:
        raise ValueError(
            f"{found} must have {n_words:,} words, as line 2 of {file} says, got {len(words):,}."
        )
    return words
