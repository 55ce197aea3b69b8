"""Validates the structure of sparse matrices: SciPy's compiled loops trust their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._checks import check_finite

__all__ = ["checked_counts", "checked_sparse", "is_sparse"]


def is_sparse(data: Any) -> bool:
    """Tell whether ``data`` is a sparse matrix, of SciPy or a similar library.

    >>> import scipy.sparse as sp
    >>> is_sparse(sp.coo_array([[1]])), is_sparse([[1]])
    (True, False)
    """
    # Only the type is checked: the number of entries of an invalid matrix cannot be read.
    return hasattr(type(data), "tocsr") and hasattr(type(data), "nnz")


def checked_counts(counts: Any, dtype: Any = None) -> Any:
    """Return a copy of a matrix of counts in CSR form without duplicates, or raise an error.

    It is converted to ``dtype``, if given, before duplicates are summed.
    """
    if not is_sparse(counts):
        raise TypeError(f"counts must be a SciPy sparse matrix, got {type(counts).__name__}.")
    if len(counts.shape) != 2 or 0 in counts.shape:
        raise ValueError(f"data must have at least one document and one word, got shape {counts.shape}.")
    if np.dtype(counts.dtype).kind not in "biuf":
        raise TypeError(f"data must hold real numbers, got dtype {counts.dtype}.")
    counts = checked_sparse("data", counts)
    matrix = (counts if dtype is None else counts.astype(dtype)).tocsr(copy=True)
    check_finite("data", matrix.data)
    if (matrix.data < 0).any():
        raise ValueError(f"data must hold counts, which are not negative, got {matrix.data.min():g}.")
    matrix.sum_duplicates()
    return matrix


def checked_sparse(name: str, matrix: Any) -> Any:
    """Return a sparse matrix with a valid structure, or raise an error.

    An index out of range, or a decreasing ``indptr``, would be read and written out of bounds. The cost of
    checking each index is small compared with any use of them.

    Parameters
    ----------
    name : str
        Its name in the message.
    matrix : sparse, shape (D, V)
        In any form. Not changed.

    Returns
    -------
    sparse
        The same object if it is in CSR, CSC, BSR or COO form, without spare entries; otherwise a matrix in
        COO form.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> matrix = sp.csr_array([[1, 0], [0, 2]])
    >>> matrix.indices[1] = 7
    >>> checked_sparse("data", matrix)
    Traceback (most recent call last):
    ...
    ValueError: data must be a sparse matrix with columns from 0 to 1, got 7 in its indices.
    """
    if not _is_scipys(matrix):  # another library's, which can be converted to SciPy's
        matrix = matrix.tocsr()
        if not _is_scipys(matrix):
            raise TypeError(f"{name} must be a SciPy sparse matrix, got {type(matrix).__name__}.")
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a sparse matrix of shape (D, V), got shape {matrix.shape}.")
    if matrix.format == "lil":
        lengths = [[len(row) for row in part] for part in (matrix.rows, matrix.data)]
        if lengths[0] != lengths[1] or len(lengths[0]) != matrix.shape[0]:
            raise _unsound(name, "as many values as columns in each row", "others")
    if matrix.format == "dia":
        offsets, data = np.asarray(matrix.offsets), np.asarray(matrix.data)
        if offsets.ndim != 1 or data.ndim != 2 or len(offsets) != len(data) or offsets.dtype.kind not in "iu":
            raise _unsound(name, "a row of data for each of its offsets", f"{data.shape} and {offsets.shape}")
        return _without_diagonals(matrix.shape, offsets, data)
    if matrix.format in ("csr", "csc", "bsr"):
        return _checked_compressed(name, matrix)
    if matrix.format == "coo":
        return _checked_places(name, matrix)
    try:
        return _checked_places(name, matrix.tocoo())
    except (TypeError, ValueError, OverflowError) as error:
        raise _unsound(name, "entries within its shape", f"others ({error})") from None


def _is_scipys(matrix: Any) -> bool:
    import scipy.sparse as sp

    return bool(sp.issparse(matrix))


def _checked_compressed(name: str, matrix: Any) -> Any:
    begin, index, data = (np.asarray(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    block = data.shape[1:] if matrix.format == "bsr" else (1, 1)
    if (begin.ndim, index.ndim, data.ndim) != (1, 1, 3 if matrix.format == "bsr" else 1) or 0 in block:
        raise _unsound(name, "indptr, indices and data of one axis each", "others")
    if begin.dtype.kind not in "iu" or index.dtype.kind not in "iu":
        raise _unsound(name, "whole numbers in indptr and indices", f"{begin.dtype} and {index.dtype}")
    rows, columns = (length // size for length, size in zip(matrix.shape, block, strict=True))
    if any(length % size for length, size in zip(matrix.shape, block, strict=True)):
        raise _unsound(name, "whole blocks", f"blocks {block} in shape {matrix.shape}")
    across, along = ("columns", "rows") if matrix.format != "csc" else ("rows", "columns")
    major, minor = (rows, columns) if matrix.format != "csc" else (columns, rows)
    if len(begin) != major + 1:
        raise _unsound(name, f"an indptr of length {major + 1}, one more than its {along}", f"{len(begin)}")
    if begin[0] != 0 or (begin[1:] < begin[:-1]).any():
        raise _unsound(name, "an indptr that begins at 0 and does not decrease", "another")
    entries = int(begin[-1])
    if len(index) != len(data) or len(index) < entries:
        got = f"{len(index)} and {len(data)}"
        raise _unsound(name, f"indices and data of length {entries}, as its indptr says", got)
    _check_range(name, index[:entries], minor, across, "indices")
    if len(index) == entries:
        return matrix
    return type(matrix)((data[:entries], index[:entries], begin), shape=matrix.shape)


def _checked_places(name: str, matrix: Any) -> Any:
    row, column, data = (np.asarray(part) for part in (matrix.row, matrix.col, matrix.data))
    if not (row.shape == column.shape == data.shape == (len(data),)):
        raise _unsound(
            name, "a row and a column for each entry", f"{row.shape}, {column.shape}, {data.shape}"
        )
    if row.dtype.kind not in "iu" or column.dtype.kind not in "iu":
        raise _unsound(name, "whole numbers for rows and columns", f"{row.dtype} and {column.dtype}")
    _check_range(name, row, matrix.shape[0], "rows", "row")
    _check_range(name, column, matrix.shape[1], "columns", "col")
    return matrix


def _without_diagonals(shape: tuple[int, int], offsets: Any, data: Any) -> Any:
    """Return diagonals in COO form; SciPy's conversion allocates memory for each row, however many."""
    import scipy.sparse as sp

    values = data[:, : shape[1]]
    diagonal, column = np.nonzero(values)
    row = column - offsets[diagonal].astype(np.int64)
    inside = (row >= 0) & (row < shape[0])
    row, column, diagonal = row[inside], column[inside], diagonal[inside]
    return sp.coo_array((values[diagonal, column], (row, column)), shape=shape)


def _check_range(name: str, index: Any, length: int, what: str, where: str) -> None:
    if len(index):
        least, most = int(index.min()), int(index.max())
        if least < 0 or most >= length:
            got = least if least < 0 else most
            raise _unsound(name, f"{what} from 0 to {length - 1}", f"{got} in its {where}")


def _unsound(name: str, wanted: str, got: str) -> ValueError:
    return ValueError(f"{name} must be a sparse matrix with {wanted}, got {got}.")
