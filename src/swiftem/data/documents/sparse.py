"""Validation of sparse matrices: SciPy's compiled loops trust their index arrays."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from swiftem.core.files import in_brackets

__all__ = ["Sparse", "checked_counts", "checked_sparse", "is_sparse"]

Sparse = Any
"""A sparse matrix of SciPy, in any form."""


def is_sparse(data: object) -> bool:
    """Return whether ``data`` is a sparse matrix, of SciPy or a similar library.

    >>> import scipy.sparse as sp
    >>> is_sparse(sp.coo_array([[1]])), is_sparse([[1]])
    (True, False)
    """
    # Only the type is checked: the number of entries of an invalid matrix cannot be read.
    return hasattr(type(data), "tocsr") and hasattr(type(data), "nnz")


def checked_counts(name: str, counts: Sparse, dtype: DTypeLike | None = None) -> Sparse:
    """Return a matrix of counts as :func:`checked_sparse` does, or raise an error for the first wrong entry.

    It is converted to ``dtype``, if given, and bools to integers.
    """
    if not is_sparse(counts):
        raise TypeError(f"{name} must be a SciPy sparse matrix of counts, got {type(counts).__name__}.")
    kind = np.dtype(counts.dtype).kind
    if kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {counts.dtype}.")
    matrix = checked_sparse(name, counts)
    if 0 in matrix.shape:
        raise ValueError(f"{name} must have at least one document and one word, got shape {matrix.shape}.")
    if kind == "b" or dtype is not None:
        matrix = matrix.astype(dtype or np.int64)
    if not (np.isfinite(matrix.data) & (matrix.data >= 0)).all():
        entries = matrix.tocoo()
        place = np.argmin(np.isfinite(entries.data) & (entries.data >= 0))
        raise ValueError(
            f"{name} must hold finite counts of at least 0, got {entries.data[place]:g} in row "
            f"{entries.row[place]}, column {entries.col[place]} (from 0)."
        )
    return matrix


def checked_sparse(name: str, matrix: Sparse) -> Any:
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
        The matrix in CSR, CSC or BSR form if it has one of these, without spare entries; otherwise in COO
        form.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> matrix = sp.csr_array([[1, 0], [0, 2]])
    >>> matrix.indices[1] = 7
    >>> checked_sparse("data", matrix)
    Traceback (most recent call last):
    ...
    ValueError: data must be a valid sparse matrix, got an invalid one (indices must be < 2).
    """
    import scipy.sparse as sp

    if not sp.issparse(matrix):  # another library's, which can be converted to SciPy's
        matrix = matrix.tocsr()
        if not sp.issparse(matrix):
            raise TypeError(f"{name} must be a SciPy sparse matrix, got {type(matrix).__name__}.")
    try:
        return _checked(matrix)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a valid sparse matrix, got an invalid one ({in_brackets(error)})."
        ) from None


def _checked(matrix: Sparse) -> Sparse:
    import scipy.sparse as sp

    if matrix.ndim != 2:
        raise ValueError(f"its shape is {matrix.shape}, not (D, V)")
    for part in ("indptr", "indices", "row", "col", "offsets"):
        if np.asarray(getattr(matrix, part, 0)).dtype.kind not in "iu":
            raise ValueError(f"{part} must be whole numbers")
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy does not look at indices if the last number is negative.
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("indptr must not decrease")
        matrix = copy(matrix)  # the check removes spare entries
        matrix.check_format(full_check=True)
        return matrix
    if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
        raise ValueError("each row must have as many values as columns")
    if matrix.format == "dia":
        matrix = type(matrix)((matrix.data, matrix.offsets), shape=matrix.shape)
    entries = matrix.tocoo()
    return sp.coo_array((entries.data, (entries.row, entries.col)), shape=matrix.shape)
