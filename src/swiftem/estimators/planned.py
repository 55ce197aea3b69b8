"""Methods of an estimator for a Dask collection: lazy, chunk by chunk."""

from __future__ import annotations

import logging
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.data.units.collections import parts_of

__all__ = ["chunk_by_chunk", "say_spent"]

log = logging.getLogger(__name__)


def chunk_by_chunk(
    estimator: Any, method: str, X: Any, *, columns: int = 0, dtype: Any = None
) -> NDArray[Any]:
    """Return a lazy Dask array of the results of ``method`` for the rows of each chunk.

    Parameters
    ----------
    estimator : object
        A fitted estimator; it is sent to the workers.
    method : str
        Name of a method of rows.
    X : Dask collection
        As in :func:`swiftem.data.units.collections.units_of`.
    columns : int
        Columns of the result; zero for one number per row.
    dtype : dtype, optional
        Type of the result; by default that of the rows, or float64.
    """
    import dask.array as da
    from dask import delayed

    kind = np.dtype(dtype or getattr(X, "dtype", np.float64))
    kind = kind if dtype or kind in (np.float32, np.float64) else np.dtype(np.float64)
    parts, tail = parts_of("X", X), (columns,) if columns else ()
    lengths = X.chunks[0] if hasattr(X, "chunks") else [nan] * len(parts)
    sent = delayed(estimator)
    found: NDArray[Any] = da.concatenate(
        [
            da.from_delayed(delayed(_call)(sent, method, part, columns, kind), (length, *tail), kind)
            for part, length in zip(parts, lengths, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )
    return found


def say_spent(estimator: Any, source: Any) -> None:
    """Print or log how the workers spent their time in a fit, if there are any."""
    line = source.pool.spent() if hasattr(source, "pool") else ""
    if line and estimator.verbose:
        print(line)
    elif line:
        log.info(line)


def _call(estimator: Any, method: str, rows: Any, columns: int, dtype: Any) -> Any:
    if not len(rows):  # estimators need at least one row, and chunks may be empty
        return np.empty((0, columns) if columns else 0, dtype)
    return getattr(estimator, method)(rows).astype(dtype, copy=False)
