"""Data given to an estimator: checked, or, if they are a Dask collection, used chunk by chunk."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from swiftem._checks import refuse_masked, shown, unmasked
from swiftem._typing import Array
from swiftem.data.sample_weight import check_weights
from swiftem.data.units.collections import parts_of
from swiftem.estimators.sklearn_parts import _check_sample_weight

__all__ = ["allows_missing", "chunk_by_chunk", "read_weights", "say_spent", "validated"]


def allows_missing(estimator: Any) -> bool:
    """Tell whether an estimator takes NaN for missing cells."""
    return getattr(estimator, "missing", "error") == "ignore"


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Call :func:`sklearn.utils.validation.validate_data`; reject masked entries, suppress its warnings.

    If the estimator's ``missing`` is "ignore", cells that are masked, None, NaN or pandas' NA become NaN.

    Parameters
    ----------
    estimator : estimator
        The estimator whose columns are set or compared.
    X : array-like or sparse, shape (n, d)
        The data.
    **options
        For ``validate_data``.
    """
    if allows_missing(estimator):
        X, options = unmasked(X), options | {"ensure_all_finite": "allow-nan"}
    refuse_masked("X", X)
    if callable(X) or isinstance(X, Iterator):
        raise TypeError(f"X must be an array, a data frame or a sparse matrix here, got {shown(X)}.")
    with np.errstate(invalid="ignore"):  # it sums the data to look for infinities
        try:
            return validate_data(estimator, X, **options)
        except ValueError as error:
            if not hasattr(estimator, "missing") or not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                f"Input X contains NaN: give {type(estimator).__name__} missing='ignore' if cells are "
                "missing at random, or fill in or leave out such rows."
            ) from None


def read_weights(sample_weight: ArrayLike | None, X: Any) -> Array | None:
    """Return the validated weights (n,) of the rows of ``X``, or None if there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights("sample_weight", weight)
    return weight


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
