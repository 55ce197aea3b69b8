"""Counts in files of matrices: MatrixMarket, and SciPy's ``.npz``."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.data.corpus_counts import CorpusCounts, counted_documents
from swiftem.data.lines import existing_file, read_bytes
from swiftem.data.vocabulary import find_vocabulary, read_vocabulary

__all__ = ["read_count_matrix"]

MARKET = "a matrix of counts in MatrixMarket's format"
NPZ = "a sparse matrix of counts, as scipy.sparse.save_npz writes it"
AT_LINE = re.compile(r"Line (\d+): (.*)", flags=re.DOTALL)


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
        The words, one a line. By default one of the right length that lies beside the file, such as
        ``news.vocab`` or ``vocab.txt`` for ``news.mtx``; without any, words are known by their numbers.

    Returns
    -------
    CorpusCounts
        Its documents are called by their rows, from 0.

    Raises
    ------
    FileNotFoundError, ValueError
        Where a file is missing, damaged, or holds what is no count.

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
    with_zip = zipfile.is_zipfile(file) if file.is_file() else file.suffix == ".npz"
    counts = _npz(file) if with_zip or file.suffix == ".npz" else _matrix_market(file)
    _check_counts(file, counts)
    names = tuple(f"row {number}" for number in range(counts.shape[0]))
    words = _words(file, vocabulary, counts.shape[1])
    return counted_documents(counts, words, names, str(file), "npz" if with_zip else "matrixmarket")


def _npz(file: Path) -> Any:
    import scipy.sparse as sp
    from scipy.sparse import load_npz

    existing_file(file, NPZ)
    try:
        return sp.coo_array(load_npz(file))
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        if isinstance(error, PermissionError):
            raise
        reason = (str(error).strip("'\"").rstrip(".") or type(error).__name__).partition("\n")[0]
        raise ValueError(f"{file} must be {NPZ}, got another or a damaged file ({reason}).") from None


def _matrix_market(file: Path) -> Any:
    import io

    import scipy.sparse as sp
    from scipy.io import mmread

    content = read_bytes(file, MARKET)
    banner, _, rest = content.partition(b"\n")
    if b"complex" in banner.lower() or b"hermitian" in banner.lower():
        raise ValueError(f"{file} must hold real numbers, got complex ones in line 1.")
    if b"integer" in banner.lower():
        # The reader would take 1 for 1.5.
        fraction = re.search(rb"^[^%\n]*\.", rest, flags=re.MULTILINE)
        if fraction is not None:
            line = 2 + rest.count(b"\n", 0, fraction.start())
            raise ValueError(
                f"{file} must hold whole numbers, as its line 1 says, got another in line {line}."
            )
    try:
        found = mmread(io.BytesIO(content), spmatrix=False)
    except (ValueError, OverflowError) as error:
        at = AT_LINE.fullmatch(str(error))
        what = at[2] if at else str(error)
        where = f" in line {at[1]}" if at else ""
        raise ValueError(f"{file} must be {MARKET}, got something else{where} ({_lower(what)}).") from None
    return sp.coo_array(found)


def _lower(sentence: str) -> str:
    """Return a sentence as part of another.

    >>> _lower("Row index out of bounds.")
    'row index out of bounds'
    """
    return sentence[:1].lower() + sentence[1:].strip().rstrip(".")


def _check_counts(file: Path, counts: Any) -> None:
    """Refuse what is no count, naming the first place."""
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
    if vocabulary is None:  # somebody else's
        return None
    raise ValueError(
        f"{found} must have {n_words:,} words, one for each column of {file}, got {len(words):,}."
    )
