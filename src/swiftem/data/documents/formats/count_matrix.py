"""Counts in files of matrices: MatrixMarket, and SciPy's ``.npz``."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.data.documents.corpus_counts import CorpusCounts, check_tokens, counted_documents
from swiftem.data.documents.formats.entry_lines import EntryLines
from swiftem.data.documents.formats.lines import MOST_EMPTY, read_bytes, whole_number
from swiftem.data.documents.formats.npz_matrix import read_npz_matrix
from swiftem.data.documents.vocabulary import check_unnamed_words, find_vocabulary, read_vocabulary

__all__ = ["all_documents", "read_count_matrix"]

MARKET = "a matrix of counts in MatrixMarket's format"
BANNER = re.compile(
    rb"%%?MatrixMarket\s+matrix\s+(coordinate|array)\s+"
    rb"(integer|unsigned-integer|real|double|pattern|complex)\s+"
    rb"(general|symmetric|skew-symmetric|hermitian)",
    flags=re.IGNORECASE,
)
COMMENTS = re.compile(rb"(?:(?:%[^\n]*+|[ \t\r]*+)\n)*+")
SIZE = re.compile(rb"[ \t]*+[0-9]++(?:[ \t]++[0-9]++)++[ \t\r]*+\n?+")
DIGITS = re.compile(r"[0-9]+")
MOST = 2**63 - 1
"""Largest number of a size."""


def read_count_matrix(
    path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None
) -> CorpusCounts:
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
    counts, words, kind = _read(Path(path), vocabulary)
    return counted_documents(counts, words, lambda row: f"row {row}", str(path), kind)


def all_documents(path: Path, vocabulary: str | os.PathLike[str] | None = None) -> Any:
    """Return the counts of a matrix in a file as a CSR array (D, V), with a row for every document.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`read_count_matrix`, and for a file that claims many more documents than it has entries.
    """
    counts, _, _ = _read(path, vocabulary)
    check_tokens(str(path), counts.data)
    most = MOST_EMPTY + counts.nnz
    if counts.shape[0] > most:
        raise ValueError(
            f"{path} must have at most {most:,} documents, one per entry and {MOST_EMPTY:,} without words, "
            f"got {counts.shape[0]:,}: load it with read_count_matrix, which leaves out those without words."
        )
    return counts.tocsr()


def _read(file: Path, vocabulary: str | os.PathLike[str] | None) -> tuple[Any, tuple[str, ...] | None, str]:
    """Return the counts in COO form, the words if they are known, and the format."""
    import scipy.sparse as sp

    with_zip = zipfile.is_zipfile(file) if file.is_file() else file.suffix == ".npz"
    counts = read_npz_matrix(file) if with_zip or file.suffix == ".npz" else _matrix_market(file)
    counts = sp.coo_array(counts)  # its size depends on the entries only, not on the shape
    _check_counts(file, counts)
    words = _words(file, vocabulary, counts.shape[1])
    if words is None:
        check_unnamed_words(file, counts.shape[1])
    return counts, words, "npz" if with_zip else "matrixmarket"


def _matrix_market(file: Path) -> Any:
    """Return the matrix: sparse, or an array if the file has one."""
    content = read_bytes(file, MARKET)
    end = content.find(b"\n") + 1 or len(content)
    banner = BANNER.fullmatch(content[:end].strip())
    if banner is None:
        got = content[: min(end, 40)].decode("utf-8", "replace").strip()
        raise ValueError(
            f"{file} must be {MARKET}, got something else in line 1 ({got!r}, not %%MatrixMarket matrix ...)."
        )
    layout, field, symmetry = (part.decode("ascii").lower() for part in banner.groups())
    if field == "complex" or symmetry == "hermitian":
        raise ValueError(f"{file} must hold real numbers, got complex ones in line 1.")
    if layout == "array" and field == "pattern":
        raise ValueError(f"{file} must have numbers for all entries of an array, got a pattern in line 1.")
    value: Any = {"unsigned-integer": "integer", "double": "real"}.get(field, field)
    comments = COMMENTS.match(content, end)
    start = end if comments is None else comments.end()
    number = 2 + content.count(b"\n", end, start)
    end = content.find(b"\n", start) + 1 or len(content)
    size = [whole_number(cell) for cell in DIGITS.findall(content[start:end].decode("utf-8", "replace"))]
    wanted = 3 if layout == "coordinate" else 2
    if len(size) != wanted or not SIZE.fullmatch(content, start, end) or max(size) > MOST:
        got = content[start : min(end, start + 40)].decode("utf-8", "replace").strip()
        raise ValueError(f"{file} must have {wanted} whole numbers, its size, in line {number}, got {got!r}.")
    rows, columns = size[:2]
    if symmetry != "general" and rows != columns:
        raise ValueError(
            f"{file} must have as many rows as columns, being {symmetry}, got {rows} and {columns} "
            f"in line {number}."
        )
    entries = size[2] if layout == "coordinate" else rows * columns
    if layout == "array" and symmetry != "general":
        off_diagonal = rows * (rows - 1) // 2
        entries = off_diagonal if symmetry == "skew-symmetric" else off_diagonal + rows
    form: Any = layout
    lines = EntryLines(file, (rows, columns), entries, number, field=value, layout=form, symmetry=symmetry)
    return lines.read(content, end, number + 1)


def _check_counts(file: Path, counts: Any) -> None:
    """Raise ValueError for the first entry that is not a count."""
    values = np.asarray(counts.data)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{file} must hold real numbers, got {values.dtype}.")
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        place = int(bad[0])
        row, column = int(counts.row[place]), int(counts.col[place])
        raise ValueError(
            f"{file} must hold finite counts of at least 0, got {values[place]:g} in row {row}, "
            f"column {column} (from 0)."
        )
    if values.dtype.kind == "b":
        counts.data = values.astype(np.int64)


def _words(file: Path, vocabulary: str | os.PathLike[str] | None, n_words: int) -> tuple[str, ...] | None:
    found = Path(vocabulary) if vocabulary is not None else find_vocabulary(file)
    if found is None:
        return None
    words = read_vocabulary(found)
    if len(words) == n_words:
        return words
    if vocabulary is None:  # it belongs to another file
        return None
    raise ValueError(
        f"{found} must have {n_words:,} words, one for each column of {file}, got {len(words):,}."
    )
