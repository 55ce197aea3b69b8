"""Access to rows for models of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Rows
from swiftem.data.array import ArraySource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource

__all__ = [
    "check_extent",
    "check_rows",
    "check_seen",
    "check_units",
    "different_rows",
    "drawn_labels",
    "has_missing",
    "may_have_missing",
    "mean_row",
    "spread_rows",
    "two_dimensional",
]

BLOCK = 4096
LARGEST, LARGEST_FLOAT32 = 1e140, 1e15
"""Largest magnitude of numbers in rows: sums of their squares, in k-means of float32, must be finite."""


def two_dimensional(y: Rows) -> Rows:
    """Return samples of shape (b,) as (b, 1)."""
    return y[:, None] if y.ndim == 1 else y


def check_rows(source: Source, least: int) -> int:
    """Return the number of columns; raise an error if the data are not rows or fewer than ``least``."""
    if source.samples != "rows":
        raise TypeError("data must be rows of numbers for a mixture, got word counts or tokens.")
    if source.n < least:
        raise ValueError(f"data must have at least n_components={least} rows, got {source.n}.")
    if isinstance(source, TensorSource):
        check_extent(source.largest, source.dtype)
    elif isinstance(source, ArraySource):
        check_size(source.y)
    return int(two_dimensional(next(source.blocks(1)).y).shape[1])


def check_size(y: Rows, start: int = 0) -> None:
    """Raise ValueError if squares of rows (b, ...) are not finite; ``start`` is the first row's index."""
    most = LARGEST_FLOAT32 if y.dtype == np.float32 else LARGEST
    if not y.size or (y.dtype.kind != "f") or (y.max() <= most and y.min() >= -most):
        return
    far = np.abs(two_dimensional(y)) > most
    if not far.any():  # cells are missing
        return
    row = int(np.argmax(far.any(axis=1)))
    value = two_dimensional(y)[row][np.argmax(far[row])]
    raise ValueError(
        f"data must lie between {-most:g} and {most:g} if they are {y.dtype}, got {value:g} in row "
        f"{start + row}: use another unit."
    )


def check_extent(largest: float, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if the square of the largest absolute value is not finite."""
    most = LARGEST_FLOAT32 if dtype == np.float32 else LARGEST
    if largest > most:
        raise ValueError(
            f"data must lie between {-most:g} and {most:g} if they are {dtype}, got {largest:g}: use "
            "another unit."
        )


def different_rows(source: Source, count: int, d: int, rng: np.random.Generator) -> Array:
    """Return ``count`` distinct rows, shape (count, d), also from a source that is read in order only."""
    if source.layout is not None:  # the indices of all rows might not fit into memory
        rows = rng.permutation(spread_rows(source.n, count, rng))
        return two_dimensional(source.take(rows).y).astype(np.float64)
    rows = rng.choice(source.n, count, replace=False)
    if source.access == "random":
        return two_dimensional(source.take(rows).y).astype(np.float64)
    found = np.empty((count, d))
    for batch in source.blocks(BLOCK):
        here = np.flatnonzero((rows >= batch.index[0]) & (rows <= batch.index[-1]))
        found[here] = two_dimensional(batch.y)[rows[here] - batch.index[0]]
    return found


def has_missing(source: Source) -> bool:
    """Return whether a cell is missing.

    >>> from swiftem.data import ArraySource
    >>> has_missing(ArraySource([[1.0, np.nan], [3.0, 6.0]], allow_missing=True))
    True
    """
    return source.has_missing


def may_have_missing(source: Source) -> bool:
    """Return whether cells may be missing: without a pass over stored rows, if that is allowed."""
    return source.has_missing if source.layout is None else source.allow_missing


def check_units(units: UnitSource) -> None:
    """Raise ValueError for rows in units that are too large, or a column without an observed cell."""
    check_extent(units.largest, units.dtype)
    if units.masses is not None:
        check_seen(units.masses > 0.0)


def check_seen(seen: NDArray[np.bool_]) -> None:
    """Raise ValueError for a column (d,) without an observed cell."""
    if not seen.all():
        column = int(np.argmin(seen))
        raise ValueError(
            f"data must have a value in every column, got none in column {column}: leave it out."
        )


def drawn_labels(rows: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a random component (b,) of each row, by its responsibilities (b, M).

    >>> drawn_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    ends = np.cumsum(rows, axis=1)
    at = rng.random((len(rows), 1)) * ends[:, -1:]
    return np.asarray(np.minimum((ends <= at).sum(axis=1), rows.shape[1] - 1))


def mean_row(source: Source) -> Array:
    """Return the weighted mean of the rows, shape (d,), by one pass; the source caches it.

    >>> from swiftem.data import ArraySource
    >>> mean_row(ArraySource([[1.0, 2.0], [3.0, 6.0]], sample_weight=[3.0, 1.0]))
    array([1.5, 3. ])
    """
    found = source.facts
    if "mean" in found:
        return np.array(found["mean"])
    if isinstance(source, TensorSource):
        found["mean"] = source.mean_row()
        return np.array(found["mean"])
    origin: Array | None = None
    total = np.zeros(1)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        if origin is None:  # sums of differences do not lose digits to an offset of the data
            origin = y[0].astype(np.float64)
        # In one memory order, as sums depend on it in rounding.
        total = total + batch.weight @ np.subtract(y, origin, order="C")
    assert origin is not None, "a source has at least one sample"
    found["mean"] = origin + total / source.total_weight
    return np.array(found["mean"])


def spread_rows(n: int, count: int, rng: np.random.Generator) -> Index:
    """Return ``count`` distinct sample indices in order, one at random from each of as many equal parts.

    Memory is that of the result, whatever n is, and sorted data are covered evenly.

    >>> (spread_rows(6, 3, np.random.default_rng(0)) // 2).tolist()
    [0, 1, 2]
    """
    if count >= n:
        return np.arange(n)
    edges = n * np.arange(count + 1) // count
    return edges[:-1] + np.floor(rng.random(count) * np.diff(edges)).astype(np.intp)
