"""Conversion of a user's data to a source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_not_lazy, shown
from swiftem.core.model import Model
from swiftem.core.problem import Problem, allows_missing, check_model
from swiftem.core.source import Source
from swiftem.data.array import ArraySource
from swiftem.data.blocks import BlockSource, is_one_shot
from swiftem.data.documents.counts import is_sparse
from swiftem.data.documents.tokens import CountSource, TokenSource
from swiftem.data.foreign import is_planned, is_tensor
from swiftem.data.open_source import are_paths, open_source
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource, open_units, units_of

__all__ = ["as_source", "is_blocks", "read_problem"]


def as_source(
    data: Any,
    sample_weight: ArrayLike | None = None,
    *,
    on_device: bool = False,
    allow_missing: bool = False,
    client: Any = None,
) -> Source:
    """Return ``data`` as a source.

    Parameters
    ----------
    data : array-like (n,) or (n, d), SciPy sparse matrix, tuple of two arrays, path, function, or Source
        Rows; document-word counts; (documents, words) of the tokens; a file, a folder or a list of files, as
        in :func:`swiftem.data.open_source`; a function that returns an iterator of blocks of rows, or another
        object that can be iterated repeatedly (:class:`swiftem.data.BlockSource`); or a source, which is
        returned unchanged.
    sample_weight : array-like, optional
        One weight per row, per document of a count matrix, or per token of a pair of arrays. Files and
        blocks contain their own weights.
    on_device : bool
        Whether the rows of a tensor stay on its device; by default they are copied to an array.
    allow_missing : bool
        Whether NaN in rows is a missing cell, instead of an error.
    client : distributed.Client, optional
        The client that computes the units of a Dask collection, or of files. By default collections use
        the current client, and files are read here.

    Examples
    --------
    >>> from swiftem.data import as_source
    >>> as_source([1.0, 2.5]).n
    2
    >>> as_source(([0, 0, 1], [3, 1, 3])).n_words
    4
    """
    if client is not None:
        return _units_on(client, data, sample_weight, allow_missing)
    if type(data) is np.ndarray:
        return ArraySource(data, sample_weight, allow_missing=allow_missing)
    if on_device and is_tensor(data):
        return TensorSource(data, sample_weight)
    if is_planned(data):
        return units_of(data, sample_weight, allow_missing=allow_missing)
    check_not_lazy("data", data)
    if isinstance(data, Source):
        if sample_weight is not None:
            raise ValueError("sample_weight must be given to the source, not as a separate argument.")
        return data
    if are_paths(data) or is_blocks(data):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be a column of the file, open_source(path, weight=...), or be given with "
                "each block as a pair (rows, weights)."
            )
        if are_paths(data):
            return open_source(data, allow_missing=allow_missing)
        return BlockSource(data, allow_missing=allow_missing)
    if is_sparse(data):
        return CountSource(data, sample_weight)
    if isinstance(data, tuple):
        if len(data) != 2 or not all(_is_one_dimensional(part) for part in data):
            raise ValueError(
                "data given as a tuple must be two one-dimensional arrays, (documents, words) of the tokens."
            )
        return TokenSource(*data, sample_weight=sample_weight)
    return ArraySource(data, sample_weight, allow_missing=allow_missing)


def read_problem(model: Model, data: Any, sample_weight: ArrayLike | None = None) -> Problem:
    """Return the problem of model and data as in :func:`swiftem.run`; data may already be one."""
    if isinstance(data, Problem):
        if data.model is not model or sample_weight is not None:
            raise ValueError("model and sample_weight must be those of the problem.")
        return data
    check_model(model)
    return Problem(model, as_source(data, sample_weight, allow_missing=allows_missing(model)))


def _units_on(client: Any, data: Any, sample_weight: ArrayLike | None, allow_missing: bool) -> Source:
    """Return data as units that a client computes."""
    if not hasattr(client, "scheduler_info"):
        raise TypeError(f"client must be a distributed.Client or None, got {shown(client)}.")
    if is_planned(data):
        return units_of(data, sample_weight, client=client, allow_missing=allow_missing)
    if sample_weight is not None:
        raise ValueError("sample_weight must be chunked like the rows of a Dask collection, or be a column.")
    if isinstance(data, UnitSource):
        if data.units.client is not client:
            raise ValueError("client must be that of the units: give it to open_units.")
        return data
    if are_paths(data):
        return open_units(data, client=client, allow_missing=allow_missing)
    raise ValueError(
        f"client must be None unless data are a Dask collection, units or files, got {type(data).__name__}."
    )


def is_blocks(data: object) -> bool:
    """Return whether ``data`` makes or holds blocks: functions, iterators, and iterables that are not arrays.

    >>> import numpy as np
    >>> is_blocks(lambda: iter([])), is_blocks(np.zeros(3)), is_blocks([[1.0]])
    (True, False, False)
    """
    if callable(data) or is_one_shot(data):
        return True
    # Arrays, tables and sparse matrices of every library can be converted, or have a length.
    is_array_like = any(hasattr(data, name) for name in ("__len__", "__array__", "tocsr"))
    return isinstance(data, Iterable) and not is_array_like


def _is_one_dimensional(values: ArrayLike) -> bool:
    try:
        return np.ndim(values) == 1
    except ValueError:  # rows of unequal length
        return False
