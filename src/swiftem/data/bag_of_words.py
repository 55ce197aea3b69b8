"""Counts in the format of the UCI "Bag of Words" data."""

from __future__ import annotations

import os
import re
from pathlib import Path

from swiftem.data.corpus_counts import CorpusCounts, counted_documents
from swiftem.data.lines import read_bytes
from swiftem.data.vocabulary import find_vocabulary, read_vocabulary

__all__ = ["ENTRIES", "first_fault", "miscounted", "read_bag_of_words", "read_head", "words_for"]

WHAT = "a bag of words in UCI's format"
HEAD = ("the number of documents", "the number of words", "the number of entries")
# Possessive, so that nothing is remembered for going back: files have up to 10^8 lines.
LINE = rb"[ \t]*+(?:[0-9]++[ \t]++[0-9]++[ \t]++[0-9]++)?+[ \t\r]*+"
ENTRIES = re.compile(rb"(?:" + LINE + rb"\n)*+" + LINE)
INTEGER = re.compile(r"[+-]?[0-9]+")


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
    import io

    from scipy.io import mmread

    file = Path(path)
    content = read_bytes(file, WHAT)
    n_documents, n_words, n_entries, start = read_head(file, content)
    words = words_for(file, vocabulary, n_words)
    # The rest is that of a MatrixMarket file, whose reader is compiled. It takes 1.5 for 1, and more than
    # three numbers a line, so that the lines are looked at first.
    if not ENTRIES.fullmatch(content, start):
        raise _fault(file, content, start, n_documents, n_words, n_entries)
    head = f"%%MatrixMarket matrix coordinate integer general\n{n_documents} {n_words} {n_entries}\n"
    try:
        counts = mmread(io.BytesIO(head.encode() + content[start:]), spmatrix=False)
    except (ValueError, OverflowError):
        raise _fault(file, content, start, n_documents, n_words, n_entries) from None
    names = tuple(f"document {number}" for number in range(1, n_documents + 1))
    return counted_documents(counts, words, names, str(file), "uci")


def read_head(file: Path, content: bytes) -> tuple[int, int, int, int]:
    """Return the three numbers of the head, and where the entries begin."""
    numbers = []
    start = 0
    for place, what in enumerate(HEAD, start=1):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        text = content[start:end].decode("utf-8", "replace").strip()
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"{file} must have {what} in line {place}, got {text[:40]!r}.")
        numbers.append(int(text))
        start = end + 1
    return numbers[0], numbers[1], numbers[2], start


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


def _fault(
    file: Path, content: bytes, start: int, n_documents: int, n_words: int, n_entries: int
) -> ValueError:
    """Return a sentence on the first line that is wrong, or on their number."""
    fault, seen = first_fault(file, content[start:], 4, n_documents, n_words)
    return fault or miscounted(file, n_entries, seen)


def miscounted(file: Path, n_entries: int, seen: int) -> ValueError:
    """Return the sentence on a wrong number of entries."""
    return ValueError(f"{file} must have {n_entries:,} entries, as its line 3 says, got {seen:,}.")


def first_fault(
    file: Path, content: bytes, first_line: int, n_documents: int, n_words: int
) -> tuple[ValueError | None, int]:
    """Return a sentence on the first line that is wrong, if there is one, and the number of entries.

    ``content`` are lines of the file from number ``first_line`` on.
    """
    seen = 0
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=first_line):
        if not line.strip():
            continue
        seen += 1
        cells = line.split()
        if len(cells) != 3 or not all(INTEGER.fullmatch(cell) for cell in cells):
            wanted = "a document, a word and a count, three whole numbers,"
            sentence = f"{file} must have {wanted} in each line, got {line[:40]!r} in line {number}."
            return ValueError(sentence), seen
        document, word, count = map(int, cells)
        for what, value, least, most in (
            ("documents", document, 1, n_documents), ("words", word, 1, n_words),
        ):  # fmt: skip
            if not least <= value <= most:
                sentence = f"{file} must have {what} from 1 to {most}, got {value} in line {number}."
                return ValueError(sentence), seen
        if not 0 <= count < 2**63:
            sentence = f"{file} must have counts of at least 0, got {count} in line {number}."
            return ValueError(sentence), seen
    return None, seen
