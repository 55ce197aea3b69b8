"""Files of counts: UCI's bags of words, lda-c, MatrixMarket, and SciPy's ``.npz``.

One pattern validates all lines of a piece of text, and NumPy then converts the numbers at once.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.files import damage_named
from swiftem.core.types import Index
from swiftem.data.documents.counts import (
    MOST_EMPTY,
    CorpusCounts,
    CsrDocuments,
    Entries,
    FileDocuments,
    PathName,
    Sparse,
    check_documents,
    check_tokens,
    checked_counts,
    counted_documents,
    most_bytes,
)
from swiftem.data.documents.text_files import (
    check_unpacked,
    existing_file,
    filled_lines,
    read_pieces,
    vocabulary_beside,
)

UCI, LDA_C = "a bag of words in UCI's format", "a corpus in lda-c's format"
MARKET = "a matrix of counts in MatrixMarket's format"
NPZ = "a sparse matrix of counts, as scipy.sparse.save_npz writes it"
BANNER = re.compile(
    rb"%%?MatrixMarket\s+matrix\s+(?!array\s+pattern)"
    rb"(coordinate|array)\s+(pattern|(?:unsigned-)?integer|real|double)\s+general[ \t\r]*",
    flags=re.IGNORECASE,
)
SIZE = re.compile(
    rb"\n(?:(?:%[^\n]*+|[ \t\r]*+)\n)*+[ \t]*+([0-9]{1,15}(?:[ \t]++[0-9]{1,15}){1,2})[ \t\r]*+(?:\n|\Z)"
)
"""Comments, and the line with the numbers of rows, columns and, for coordinates, entries."""
UNNAMED = 1 << 24
"""Maximum number of words without names for a small file; hashed words have such numbers."""
ENTRY = 16
"""Bytes of an entry and its position in memory, whatever they take in the file."""
INTEGER = rb"[0-9]++"
REAL = rb"[+-]?+(?:(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+|(?i:nan|inf(?:inity)?+))"
PAIRS = INTEGER + rb"(?:[ \t]++" + INTEGER + rb":" + INTEGER + rb")*+"
"""A line of lda-c."""
UCI_SIZE = re.compile(rb"0{0,9}[1-9][0-9]{0,17}")
MOST_COUNT, MOST_WORDS = 2**53, 2**31 - 1
"""Larger counts are not exact in float64, and more words cannot be topics'."""
Numbers = NDArray[np.int64 | np.float64]


class Piece(NamedTuple):
    """Lines of a file, and the number of the first of them, from 1. Lines of white space have no numbers."""

    file: Path
    content: bytes
    first_line: int

    def numbers(self, line: bytes, wanted: str, is_real: bool = False) -> Numbers:
        """Return the numbers of all lines, in order, or raise ValueError that names the first wrong line.

        Parameters
        ----------
        line : bytes
            The regular expression of a line. It must be possessive, so that there is no backtracking: files
            have up to 10^8 lines.
        wanted : str
            What a line must have, for messages.
        is_real : bool
            Whether they are real numbers; otherwise integers, at most 2^63 - 1.
        """
        valid = re.match(rb"\s*+(?:" + line + rb"[ \t\r]*+(?:\n\s*+|\Z))*+", self.content)
        end = 0 if valid is None else valid.end()
        if end < len(self.content):
            number = self.first_line + self.content.count(b"\n", 0, end)
            got = self.content[end : end + 40].partition(b"\n")[0].decode("utf-8", "replace")
            raise ValueError(f"{self.file} must have {wanted} in each line, got {got!r} in line {number}.")
        text = self.content.replace(b":", b" ").strip()
        return np.fromstring(text, dtype=np.float64 if is_real else np.int64, sep=" ")

    def check_range(self, what: str, values: Numbers, limits: tuple[int, int], row: Index) -> None:
        """Raise ValueError for a value out of range; ``row`` has indices of their lines."""
        least, most = limits
        wrong = np.flatnonzero((values < least) | (values > most))
        if len(wrong):
            self.fail(f"{what} from {least} to {most}", f"{int(values[wrong[0]])}", row[wrong[0]])

    def fail(self, wanted: str, got: str, row: int) -> None:
        """Raise ValueError for a line, given by its index among those with numbers."""
        lines = enumerate(self.content.split(b"\n"), start=self.first_line)
        number = [number for number, line in lines if line.strip()][row]
        raise ValueError(f"{self.file} must have {wanted}, got {got} in line {number}.")


def numbered(file: Path, contents: Iterable[bytes], first_line: int = 1) -> Iterator[Piece]:
    """Yield consecutive lines with their numbers."""
    for content in contents:
        yield Piece(file, content, first_line)
        first_line += content.count(b"\n")


def read_entries(
    file: Path,
    contents: Iterable[bytes],
    first_line: int,
    n_entries: int,
    limits: Mapping[str, tuple[int, int] | None],
) -> Iterator[Numbers]:
    """Yield the entries in some lines, a row for each line that is not empty.

    Parameters
    ----------
    file : Path
        For messages.
    contents : iterable of bytes
        Whole lines.
    first_line : int
        Number of the first of them in the file; the line before says how many entries there are.
    n_entries : int
        Number of entries.
    limits : mapping of str to pair of int, or to None
        For each number of a line its name, and the smallest and the largest one; None for a real number.

    Raises
    ------
    ValueError
        With the number of the first wrong line, or for a wrong number of entries.
    """
    is_real = None in limits.values()
    line = rb"[ \t]++".join(REAL if limit is None else INTEGER for limit in limits.values())
    wanted = ", ".join(limits) + ("" if is_real else " (whole numbers from 0)")
    seen = 0
    for piece in numbered(file, contents, first_line):
        table = piece.numbers(line, wanted, is_real).reshape(-1, len(limits))
        for column, (what, limit) in enumerate(limits.items()):
            if limit is not None:
                piece.check_range(f"{what}s", table[:, column], limit, np.arange(len(table)))
        seen += len(table)
        if seen > n_entries:
            break
        yield table
    if seen != n_entries:
        raise ValueError(
            f"{file} must have {n_entries:,} entries, as its line {first_line - 1} says, got {seen:,}"
            f"{' or more' if seen > n_entries else ''}."
        )


def open_uci(path: PathName, vocabulary: PathName | None = None) -> FileDocuments:
    """Return the documents of a file such as ``docword.pubmed.txt.gz``.

    Parameters
    ----------
    path : path
        As for :func:`read_bag_of_words`. Its lines must be ordered by document to be read in blocks, as UCI's
        are; at most a million documents may be without words.
    vocabulary : path, optional
        The words, one per line; by default ``vocab.pubmed.txt`` next to ``docword.pubmed.txt``.
    """
    file = Path(path)
    lines = [line.strip() for line in (next(read_pieces(file, UCI), b"") + b"\n\n\n").split(b"\n", 3)]
    for number, what in enumerate(("documents", "words", "entries")):
        if not UCI_SIZE.fullmatch(lines[number]):
            got = lines[number][:40].decode("utf-8", "replace")
            raise ValueError(f"{file} must have the number of {what} in line {number + 1}, got {got!r}.")
    n_documents, n_words, n_entries = map(int, lines[:3])
    words = vocabulary_beside(file, vocabulary, n_words)
    if words is None:
        name = "vocab." + file.name.removesuffix(".gz").removeprefix("docword.")
        raise FileNotFoundError(
            f"{file} must have a vocabulary next to it, one word per line, but {file.with_name(name)} "
            "does not exist: name another file with vocabulary (--words on the command line)."
        )
    limits = {"document": (1, n_documents), "word": (1, n_words), "count": (0, MOST_COUNT)}

    def read() -> Iterator[tuple[int, Entries]]:
        pieces = read_pieces(file, UCI)
        entries = chain(next(pieces).split(b"\n", 3)[3:], pieces)
        for table in read_entries(file, entries, 4, n_entries, limits):
            yield n_documents, table.astype(np.int64, copy=False) - (1, 1, 0)

    return FileDocuments(file, "uci", read, n_words, words, n_documents)


def read_bag_of_words(path: PathName, vocabulary: PathName | None = None) -> CorpusCounts:
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
    return open_uci(path, vocabulary).load(lambda row: f"document {row + 1}")


def open_lda_c(path: PathName, vocabulary: PathName | None = None) -> FileDocuments:
    """Return the documents of a file in lda-c's format.

    Parameters
    ----------
    path : path
        As for :func:`read_lda_c`.
    vocabulary : path, optional
        The words, one per line; by default a file next to it. Without any, a pass finds V.
    """
    file = Path(path)
    words = vocabulary_beside(file, vocabulary)
    if words is None:
        tables = (table for _, table in _lda_c_entries(file, MOST_WORDS))
        n_words = max((int(table[:, 1].max(initial=-1)) for table in tables), default=-1) + 1
        _check_unnamed_words(file, n_words)
    else:
        n_words = len(words)
    if not n_words:
        raise ValueError(f"{file} must have at least one document with a word in it, got none.")
    return FileDocuments(file, "lda-c", partial(_lda_c_entries, file, n_words), n_words, words)


def _lda_c_entries(file: Path, n_words: int) -> Iterator[tuple[int, Entries]]:
    """Yield the number of documents up to the end of each piece of the file, and its entries."""
    first = 0
    for piece in numbered(file, read_pieces(file, LDA_C)):
        n_pairs = np.array([line.count(b":") for line in piece.content.split(b"\n") if line.strip()], int)
        numbers = piece.numbers(PAIRS, "the number of pairs, and pairs such as 17:2,")
        begin = np.cumsum(1 + 2 * n_pairs) - 1 - 2 * n_pairs
        row = np.arange(len(n_pairs))
        wrong = np.flatnonzero(numbers[begin] != n_pairs)
        if len(wrong):
            got = f"{numbers[begin][wrong[0]]} and {n_pairs[wrong[0]]} pairs"
            piece.fail("as many pairs in a line as its first number says", got, wrong[0])
        word, count = np.delete(numbers, begin).reshape(-1, 2).T
        row = np.repeat(row, n_pairs)
        piece.check_range("words", word, (0, n_words - 1), row)
        piece.check_range("counts", count, (0, MOST_COUNT), row)
        first += len(n_pairs)
        yield first, np.stack([first - len(n_pairs) + row, word, count], axis=1)


def read_lda_c(path: PathName, vocabulary: PathName | None = None) -> CorpusCounts:
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
    documents = open_lda_c(path, vocabulary)
    numbers = [number for number, _ in filled_lines(documents.file, LDA_C)]
    return documents.load(lambda row: f"line {numbers[row]}")


def read_count_matrix(path: PathName, vocabulary: PathName | None = None) -> CorpusCounts:
    """Return the counts of a matrix in a file: a row per document, a column per word.

    Parameters
    ----------
    path : str or path
        A MatrixMarket file (``.mtx``, ``.mtx.gz``), or an ``.npz`` of :func:`scipy.sparse.save_npz`, read
        without pickle. Counts may be floats.
    vocabulary : str or path, optional
        The words, one per line. By default a file of the right length next to it, such as ``news.vocab`` or
        ``vocab.txt`` for ``news.mtx``; without any, words are known by their numbers.

    Returns
    -------
    CorpusCounts
        Its documents are named by their rows, from 0.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file is missing, damaged, or contains something else than counts.

    Examples
    --------
    >>> import pathlib, scipy.sparse as sp, tempfile
    >>> from swiftem.data import read_count_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.npz")
    ...     sp.save_npz(file, sp.csr_array([[1, 1], [0, 2]]))
    ...     corpus = read_count_matrix(file)
    >>> corpus.counts.toarray().tolist(), corpus.names
    ([[1, 1], [0, 2]], ('row 0', 'row 1'))
    """
    file = Path(path)
    counts, words, format = _read(file, vocabulary)
    return counted_documents(counts, words, lambda row: f"row {row}", str(file), format)


def open_matrix(file: Path, vocabulary: PathName | None = None) -> CsrDocuments:
    """Return the counts of a matrix in a file as documents, with a row for every one.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`read_count_matrix`, and for a file that claims many more documents than it has entries.
    """
    counts, _, _ = _read(file, vocabulary)
    check_tokens(str(file), counts.data)
    check_documents(file, counts.shape[0], MOST_EMPTY + counts.nnz)
    return CsrDocuments(counts)


def _read(file: Path, vocabulary: PathName | None) -> tuple[Sparse, tuple[str, ...] | None, str]:
    """Return the counts in COO form, the words if they are known, and the format."""
    is_archive = file.suffix == ".npz" or (file.is_file() and zipfile.is_zipfile(file))
    matrix = _read_npz(file) if is_archive else _read_market(file)
    counts = checked_counts(str(file), matrix).tocoo()  # its size depends on the entries, not on the shape
    words = vocabulary_beside(file, vocabulary, counts.shape[1])
    if words is None:
        _check_unnamed_words(file, counts.shape[1])
    return counts, words, "npz" if is_archive else "matrixmarket"


def _read_market(file: Path) -> Sparse:
    """Return the matrix of a MatrixMarket file in COO form."""
    import scipy.sparse as sp

    content = b"".join(read_pieces(file, MARKET))
    banner = BANNER.match(content)
    if banner is None:
        got = content[:100].partition(b"\n")[0].decode("utf-8", "replace")
        raise ValueError(f"{file} must be {MARKET}, got something else in line 1 ({got!r}).")
    layout, field = (part.lower() for part in banner.groups())
    is_dense, has_values = layout == b"array", field != b"pattern"
    size = SIZE.match(content, banner.end())
    numbers = [] if size is None else list(map(int, size[1].split()))
    if size is None or len(numbers) != (2 if is_dense else 3):
        wanted = f"rows{' and columns' if is_dense else ', columns and entries'}"
        raise ValueError(f"{file} must have the numbers of {wanted} below line 1, got others.")
    rows, columns = numbers[:2]
    n_entries = rows * columns if is_dense else numbers[2]
    limits: dict[str, tuple[int, int] | None] = {}
    if not is_dense:
        limits |= {"row": (1, rows), "column": (1, columns)}
    if has_values:
        limits |= {"count": (0, MOST_COUNT)} if field.endswith(b"integer") else {"number": None}
    first_line = content.count(b"\n", 0, size.start(1)) + 2
    (table,) = read_entries(file, [content[size.end() :]], first_line, n_entries, limits)
    if is_dense:  # its columns one after the other
        return sp.coo_array(table.reshape(columns, rows).T)
    row, column = table[:, :2].T.astype(np.intp) - 1
    value = table[:, -1] if has_values else np.ones_like(row)
    return sp.coo_array((value, (row, column)), shape=(rows, columns))


def _read_npz(file: Path) -> Sparse:
    """Return the sparse matrix in an archive; nothing pickled is read."""
    import scipy.sparse as sp

    existing_file(file, NPZ)
    with damage_named(file, NPZ):
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
        check_unpacked(file, size, file.stat().st_size)
        matrix: Sparse = sp.load_npz(file)
        if matrix.format == "dia" or matrix.dtype.kind not in "biuf":
            raise ValueError(f"it is a {matrix.format} matrix of {matrix.dtype}")
        check_unpacked(file, ENTRY * matrix.data.size, file.stat().st_size)
        # Compiled loops need the byte order of the machine.
        matrix.data = matrix.data.astype(matrix.dtype.newbyteorder("="), copy=False)
        return matrix


def _check_unnamed_words(file: Path, n_words: int) -> None:
    """Raise ValueError for too many words if only their numbers are known: topics have all of them."""
    most = min(max(UNNAMED, most_bytes(file.stat().st_size)), MOST_WORDS)
    if n_words > most:
        raise ValueError(f"{file} must have a vocabulary if it has over {most:,} words, got {n_words:,}.")
