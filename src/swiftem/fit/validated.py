"""Data given to an estimator: arrays are checked, Dask collections used chunk by chunk.

Rows may also be files, sources or streams of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import nan
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import (
    check_not_lazy,
    in_numpy,
    is_tensor,
    refuse_columns,
    refuse_masked,
    shown,
    unmasked,
)
from swiftem.core.draws import spread_rows
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.as_source import as_source, is_blocks, is_planned, no_weights_beside
from swiftem.data.blocks import BlockSource, is_one_shot
from swiftem.data.npy import NpySource
from swiftem.data.stored import StoredSource
from swiftem.data.tables import are_paths
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource, parts_of, units_of
from swiftem.fit.config import get_config

__all__ = [
    "Read",
    "RowSource",
    "as_table",
    "blocks_of",
    "chunk_by_chunk",
    "in_memory",
    "is_stored",
    "open_rows",
    "refuse_table",
    "rows_of",
    "some_rows",
    "stored_source",
]


RowSource: TypeAlias = ArraySource | StoredSource | UnitSource


class Read(NamedTuple):
    """Validated data: rows and weights as given, the indices of rows with positive weight, and their source.

    For stored rows and tensors, ``X`` has the columns and the dtype, but no rows. ``kernels`` belong to a
    device, or are None.
    """

    X: NDArray[Any]
    weight: Array | None
    kept: NDArray[np.bool_] | None
    source: RowSource
    kernels: str | None = None

    @property
    def total_weight(self) -> float:
        """Sum of the weights as given: the source has no weights if all are equal."""
        return self.source.total_weight if self.weight is None else float(self.weight.sum())


def rows_of(source: Source) -> int:
    """Return the number of rows, also of rows in units."""
    return source.rows if isinstance(source, UnitSource) else source.n


def stored_source(
    X: Any, sample_weight: ArrayLike | None, *, on_device: bool, allow_missing: bool
) -> StoredSource | UnitSource | TensorSource | None:
    """Return rows that are not in an array as a source, or None for arrays and tables in memory.

    Parameters
    ----------
    X : object
        The user's data.
    sample_weight : array-like, optional
        Weights of the rows.
    on_device : bool
        Whether a tensor stays on its device.
    allow_missing : bool
        Whether cells may be missing.
    """
    if isinstance(X, UnitSource):
        no_weights_beside(sample_weight)
        return X
    if is_planned(X):
        return units_of(X, sample_weight, allow_missing=allow_missing)
    if on_device and is_tensor(X):
        return TensorSource(X, sample_weight)
    check_not_lazy("X", X)
    is_mapped = isinstance(in_numpy(X), np.memmap) and get_config()["memory_limit"] is not None
    if is_mapped or is_stored(X):
        return open_rows(X, sample_weight, allow_missing=allow_missing)
    return None


def as_table(X: Any, *, allow_missing: bool = False, for_text: str = "") -> Any:
    """Return rows in memory for scikit-learn's validation; raise an error for what it would misread.

    Parameters
    ----------
    X : array-like or sparse, shape (n, d)
        The data.
    allow_missing : bool
        Whether cells that are masked, None, NaN or pandas' NA are missing, instead of an error.
    for_text : str
        Advice if columns are text.
    """
    X = unmasked(in_numpy(X)) if allow_missing else in_numpy(X)
    refuse_masked("X", X)
    if is_stored(X) or isinstance(X, Source) or callable(X) or isinstance(X, Iterator):
        got = type(X).__name__ if isinstance(X, Source) else shown(X)
        raise TypeError(
            f"X must be an array, a data frame or a sparse matrix here, got {got}: read the rows first, for "
            "example with read_table of swiftem.data."
        )
    refuse_table(X, for_text=for_text)
    return X


def refuse_table(X: Any, *, takes_text: bool = False, for_text: str = "") -> None:
    """Raise ValueError for columns that are no numbers, and for arrays that are complex or have no rows."""
    refuse_columns("X", X, takes_text=takes_text, for_text=for_text)
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X must have real numbers, got dtype {X.dtype}.")
    if isinstance(X, Number) or (isinstance(X, np.ndarray) and X.ndim == 0):
        raise ValueError("Expected 2D array, got scalar array instead: X must have rows and columns, (n, d).")


def chunk_by_chunk(
    function: Callable[[Any], Any], X: Any, *, columns: int = 0, dtype: Any = None
) -> NDArray[Any]:
    """Return a lazy Dask array of the results of a function of the rows of each chunk.

    Parameters
    ----------
    function : callable
        Gets rows and returns an array; it is sent to the workers.
    X : Dask collection
        As in :func:`swiftem.data.units.source.units_of`.
    columns : int
        Columns of the result; zero for one number per row.
    dtype : dtype, optional
        Type of the result; by default the type of the rows, or float64.
    """
    import dask.array as da
    from dask import delayed

    kind = np.dtype(dtype or getattr(X, "dtype", np.float64))
    kind = kind if dtype or kind in (np.float32, np.float64) else np.dtype(np.float64)
    parts, tail = parts_of("X", X), (columns,) if columns else ()
    lengths = X.chunks[0] if hasattr(X, "chunks") else [nan] * len(parts)
    call = delayed(partial(_call, function, tail, kind))
    results = [
        da.from_delayed(call(part), (length, *tail), kind)
        for part, length in zip(parts, lengths, strict=True)
    ]
    found: NDArray[Any] = da.concatenate(results, allow_unknown_chunksizes=True)
    return found


def _call(function: Callable[[Any], Any], tail: tuple[int, ...], dtype: Any, rows: Any) -> Any:
    if not np.shape(rows)[0]:  # estimators need at least one row, and chunks may be empty
        return np.empty((0, *tail), dtype)
    return function(rows).astype(dtype, copy=False)


SAMPLE = 50_000
"""Maximum number of rows used to find a start."""
SAMPLE_BYTES = 8 * 10**6
"""Maximum size of these rows, if that leaves enough rows for each component."""
PER_COMPONENT = 100
ROWS = 4096
"""Rows read at a time from a user-defined source."""


def is_stored(X: Any) -> bool:
    """Return whether ``X`` is read on demand: a path, a source or a function that returns blocks.

    >>> import numpy as np
    >>> is_stored("rows.npy"), is_stored(np.zeros((3, 2))), is_stored([[0.0], [1.0]])
    (True, False, False)
    """
    if isinstance(X, np.ndarray):
        return False
    if isinstance(X, Source):
        return type(X) is not ArraySource
    return are_paths(X) or is_blocks(X)


def open_rows(X: Any, sample_weight: ArrayLike | None = None, *, allow_missing: bool = False) -> StoredSource:
    """Return rows as a source; also a memory map with weights."""
    if isinstance(X, np.ndarray):
        return NpySource(X, sample_weight=sample_weight, allow_missing=allow_missing)
    source = as_source(X, sample_weight, allow_missing=allow_missing)
    if not isinstance(source, StoredSource):  # user-defined
        if source.samples != "rows":
            raise TypeError("data must be rows of numbers for a mixture, got word counts or tokens.")
        source = BlockSource(_Again(source), allow_missing=allow_missing)
    if not source.tail:
        raise ValueError("Expected 2D array, got 1D array instead: rows must have columns, (n, d).")
    return source


class _Again:
    """The blocks of a source, from the beginning each time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __iter__(self) -> Iterator[tuple[NDArray[Any], Array]]:
        return ((batch.y, batch.weight) for batch in self._source.blocks(ROWS))


def blocks_of(
    X: Any, sample_weight: ArrayLike | None, *, allow_missing: bool = False
) -> Iterator[tuple[NDArray[Any], Array | None]]:
    """Yield rows and weights block by block; blocks of a generator as they come, in one pass."""
    if is_planned(X):
        parts = parts_of("X", X)
        weights = [None] * len(parts) if sample_weight is None else parts_of("sample_weight", sample_weight)
        if len(weights) != len(parts):
            raise ValueError(f"sample_weight must be chunked like the rows, in {len(parts)} units.")
        for part, weight in zip(parts, weights, strict=True):
            rows, of_rows = part.compute(), None if weight is None else np.asarray(weight.compute())
            if len(rows):
                yield rows, of_rows
        return
    if not is_one_shot(X):
        source = open_rows(X, sample_weight, allow_missing=allow_missing)
        for batch in source.blocks(source.chunk_rows):
            yield batch.y, batch.weight if source.is_weighted else None
        return
    if sample_weight is not None:
        raise ValueError("sample_weight must be given with each block, as a pair (rows, weights).")
    count = 0
    for block in X:
        rows, weight = block if isinstance(block, tuple) and len(block) == 2 else (block, None)
        if len(rows):
            count += 1
            yield rows, weight
    if not count:
        raise ValueError("data must have at least one row, got blocks with none.")


def in_memory(source: Source, index: Any) -> ArraySource:
    """Return rows by number as an array, with their weights if there are any."""
    batch = source.take(index)
    weight = batch.weight if source.is_weighted else None
    return ArraySource(batch.y, weight, allow_missing=source.allow_missing)


def some_rows(
    source: StoredSource | UnitSource, n_components: int, random_state: np.random.RandomState
) -> ArraySource:
    """Return the rows used to find a start: all if they are few, else a sample.

    If all are used, ``random_state`` is not, and the start is an array's. Units have one sample.
    """
    if isinstance(source, UnitSource):
        return source.some
    most = max(PER_COMPONENT * n_components, min(SAMPLE, SAMPLE_BYTES // source.row_bytes))
    if source.n <= most:
        return in_memory(source, np.arange(source.n))
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    return in_memory(source, spread_rows(source.n, most, rng))
