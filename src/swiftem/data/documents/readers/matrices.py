"""Counts in files of matrices: MatrixMarket, and SciPy's ``.npz``."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from swiftem.core.files import damage_named
from swiftem.data.documents.counts import CorpusCounts, check_tokens, counted_documents
from swiftem.data.documents.readers.entries import EntryLines, Field
from swiftem.data.documents.readers.lines import (
    MOST_EMPTY,
    check_unnamed_words,
    existing_file,
    find_vocabulary,
    read_bytes,
    read_vocabulary,
    whole_number,
)
from swiftem.data.documents.sparse import checked_sparse
from swiftem.data.npy import read_npy_header

__all__ = ["all_documents", "read_count_matrix"]

MARKET = "a matrix of counts in MatrixMarket's format"
NPZ = "a sparse matrix of counts, as scipy.sparse.save_npz writes it"
BANNER = re.compile(
    rb"%%?MatrixMarket\s+matrix\s+(coordinate|array)\s+"
    rb"(integer|unsigned-integer|real|double|pattern|complex)\s+"
    rb"(general|symmetric|skew-symmetric|hermitian)",
    flags=re.IGNORECASE,
)
FIELDS: dict[str, Field] = {
    "integer": "integer",
    "unsigned-integer": "integer",
    "real": "real",
    "double": "real",
    "pattern": "pattern",
}
COMMENTS = re.compile(rb"(?:(?:%[^\n]*+|[ \t\r]*+)\n)*+")
SIZE = re.compile(rb"[ \t]*+[0-9]++(?:[ \t]++[0-9]++)++[ \t\r]*+\n?+")
MOST = 2**63 - 1
"""Largest number of a size."""
UNPACKED, FREE = 50, 16 << 20
"""Limits of an unpacked archive: this factor, plus this number of bytes. Counts that are all ones grow a
thousand times, but not their positions."""
ENTRY = 16
"""Bytes of an entry and its position in memory, whatever they take in the file."""


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

    is_archive = zipfile.is_zipfile(file) if file.is_file() else file.suffix == ".npz"
    counts = _read_npz(file) if is_archive or file.suffix == ".npz" else _read_market(file)
    counts = sp.coo_array(counts)  # its size depends on the entries only, not on the shape
    _check_counts(file, counts)
    words = _words(file, vocabulary, counts.shape[1])
    if words is None:
        check_unnamed_words(file, counts.shape[1])
    return counts, words, "npz" if is_archive else "matrixmarket"


def _read_market(file: Path) -> Any:
    """Return the matrix: sparse, or an array if the file has one."""
    content = read_bytes(file, MARKET)
    end = content.find(b"\n") + 1 or len(content)
    layout, field, symmetry = _banner(file, content[:end])
    comments = COMMENTS.match(content, end)
    start = end if comments is None else comments.end()
    number = 2 + content.count(b"\n", end, start)
    end = content.find(b"\n", start) + 1 or len(content)
    wanted = 3 if layout == "coordinate" else 2
    line = content[start:end]
    size = [whole_number(cell) for cell in line.decode("ascii").split()] if SIZE.fullmatch(line) else []
    if len(size) != wanted or max(size) > MOST:
        got = line[:40].decode("utf-8", "replace").strip()
        raise ValueError(f"{file} must have {wanted} whole numbers, its size, in line {number}, got {got!r}.")
    rows, columns = shape = (size[0], size[1])
    if 0 in shape:  # SciPy's reader divides by them
        raise ValueError(
            f"{file} must have at least one of its rows and columns, got shape {shape} in line {number}."
        )
    if symmetry == "symmetric" and rows != columns:
        raise ValueError(
            f"{file} must have as many rows as columns, being symmetric, got {rows} and {columns} "
            f"in line {number}."
        )
    dense = rows * (rows + 1) // 2 if symmetry == "symmetric" else rows * columns
    entries = size[2] if layout == "coordinate" else dense
    lines = EntryLines(file, shape, entries, number, field=FIELDS[field], layout=layout, symmetry=symmetry)
    (matrix,) = lines.read([content[end:]], number + 1)
    return matrix


def _banner(file: Path, line: bytes) -> tuple[Any, str, str]:
    """Return layout, field and symmetry from the first line."""
    banner = BANNER.fullmatch(line.strip())
    if banner is None:
        got = line[:40].decode("utf-8", "replace").strip()
        raise ValueError(
            f"{file} must be {MARKET}, got something else in line 1 ({got!r}, not %%MatrixMarket matrix ...)."
        )
    layout, field, symmetry = (part.decode("ascii").lower() for part in banner.groups())
    if field == "complex" or symmetry == "hermitian":
        raise ValueError(f"{file} must hold real numbers, got complex ones in line 1.")
    if symmetry == "skew-symmetric":
        raise ValueError(f"{file} must hold counts, got a skew-symmetric matrix in line 1.")
    if layout == "array" and field == "pattern":
        raise ValueError(f"{file} must have numbers for all entries of an array, got a pattern in line 1.")
    return layout, field, symmetry


def _read_npz(file: Path) -> Any:
    """Return the sparse matrix in an archive, its structure validated; nothing pickled is read."""
    import scipy.sparse as sp

    existing_file(file, NPZ)
    with damage_named(file, NPZ):
        _check_archive(file)
        matrix: Any = sp.load_npz(file)
        _check_unpacked(file, ENTRY * matrix.data.size)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{file} must hold real numbers, got {matrix.dtype}.")
        matrix.data = matrix.data.astype(matrix.dtype.newbyteorder("="), copy=False)
        return checked_sparse(f"{file}", matrix)


def _check_archive(file: Path) -> None:
    """Raise ValueError if the sizes in an archive differ from its own: memory is allocated by them."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise ValueError("it has two members of one name")
        # If members share bytes, so that a small file becomes a large one, their sum exceeds the file.
        if sum(member.compress_size for member in members) > file.stat().st_size:
            raise ValueError("its parts overlap")
        _check_unpacked(file, sum(member.file_size for member in members))
        for member in members:
            with archive.open(member) as stream:
                header = read_npy_header(cast(BinaryIO, stream), file, NPZ)
            if header.offset + header.n_bytes != member.file_size:
                raise ValueError(f"{member.filename} has another size than it says")


def _check_unpacked(file: Path, size: int) -> None:
    """Raise ValueError if that much memory is needed for a much smaller file."""
    if size > UNPACKED * file.stat().st_size + FREE:
        raise ValueError(
            f"{file} must be at most {UNPACKED} times as large when unpacked, got more: save it with "
            "compressed=False if this is intended."
        )


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
    found = find_vocabulary(file, vocabulary)
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
