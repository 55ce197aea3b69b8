"""Units of documents: blocks of counts, as read by a task, and their summaries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import as_numbers
from swiftem._typing import Array, Index
from swiftem.data.documents.sparse_structure import checked_sparse, is_sparse
from swiftem.data.sample_weight import check_weights
from swiftem.data.units.unit import aligned

__all__ = ["Counted", "Counts", "look_at_counts", "prepare_counts", "sample_counts"]


class Counts(NamedTuple):
    """Documents of positive weight in CSR form.

    Attributes
    ----------
    indptr, indices, data : ndarray
        Rows, words and positive counts of the entries, as in SciPy.
    shape : tuple of int
        (D, V).
    weight : ndarray, shape (D,)
        Weights of the documents.
    names : tuple of str
        Names of the words, if there are any.
    """

    indptr: Index
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]
    weight: Array
    names: tuple[str, ...]


class Counted(NamedTuple):
    """Summary of a unit: documents, words, entries, tokens (weighted), weights of documents, and names."""

    documents: int
    words: int
    entries: int
    tokens: float
    weight: float
    names: tuple[str, ...]


def prepare_counts(unit: Any, weight: Any, where: str) -> Counts:
    """Return the documents of a unit; invalid counts raise ValueError.

    Parameters
    ----------
    unit : array-like or sparse, shape (D, V), or Counts
        Counts.
    weight : array-like, shape (D,), or None
        Weights of the documents.
    where : str
        Name of the unit in errors.
    """
    from scipy.sparse import csr_array

    if isinstance(unit, Counts):
        return unit._replace(**{
            name: aligned(getattr(unit, name)) for name in ("indptr", "indices", "data", "weight")
        })  # fmt: skip
    names = tuple(map(str, getattr(unit, "columns", ())))
    if is_sparse(unit):
        found = checked_sparse(where, unit)
    else:
        found = as_numbers(where, unit.to_numpy() if hasattr(unit, "to_numpy") else unit)
    if len(found.shape) != 2 or not found.shape[1]:
        raise ValueError(f"{where} must have documents and words, got an array of shape {found.shape}.")
    matrix = csr_array(found, dtype=np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    check_weights(where, matrix.data, "entry", "counts")
    of = np.ones(matrix.shape[0])
    if weight is not None:
        of = aligned(np.asarray(weight, dtype=np.float64).reshape(-1))
        if len(of) != matrix.shape[0]:
            raise ValueError(f"sample_weight must be chunked like the documents: {matrix.shape[0]} documents "
                             f"and {len(of)} weights in {where}.")  # fmt: skip
        check_weights(f"sample_weight of {where}", of, "document")
        if not of.all():
            matrix, of = matrix[of > 0.0], of[of > 0.0]
    indices = aligned(matrix.indices.astype(np.int32, copy=False))
    begin = aligned(matrix.indptr.astype(np.int64, copy=False))
    return Counts(begin, indices, aligned(matrix.data), matrix.shape, of, names)


def look_at_counts(common: None, unit: Any, weight: Any, where: str) -> Counted:
    """Return the summary of a unit."""
    found = prepare_counts(unit, weight, where)
    by_document = np.repeat(found.weight, np.diff(found.indptr))
    return Counted(
        found.shape[0], found.shape[1], len(found.data), float((by_document * found.data).sum()),
        float(found.weight.sum()), found.names,
    )  # fmt: skip


def sample_counts(seed: int, unit: Any, weight: Any, where: str, number: int, count: int) -> Counts:
    """Return ``count`` distinct documents of a unit, drawn at random."""
    from scipy.sparse import csr_array

    found = prepare_counts(unit, weight, where)
    index = np.sort(np.random.default_rng((seed, number)).choice(found.shape[0], count, replace=False))
    some = csr_array((found.data, found.indices, found.indptr), shape=found.shape)[index]
    return Counts(
        some.indptr.astype(np.int64), some.indices, some.data, some.shape, found.weight[index], found.names
    )
