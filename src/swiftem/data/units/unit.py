"""A unit: a fixed part of the rows, as read by a task, and its summary."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import as_numbers, check_finite
from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.open_source import open_source
from swiftem.data.sample_weight import check_weights

__all__ = ["FileBlock", "Looked", "Prepared", "aligned", "look", "prepare", "read_unit", "sample"]

BLOCK = 4096


class FileBlock(NamedTuple):
    """A block of a file, such as a row group of Parquet: its name is sent, and the worker reads it.

    Attributes
    ----------
    files : tuple of str
        All files of the source.
    columns, weight : tuple or None, and name, number or None
        As in :func:`swiftem.data.open_source`.
    number : int
        Index of the block.
    rows : tuple of int, optional
        First row and end of the block, if the file has no row groups.
    """

    files: tuple[str, ...]
    columns: tuple[Any, ...] | None
    weight: Any
    number: int
    rows: tuple[int, int] | None = None


class Prepared(NamedTuple):
    """A unit as passes need it: read and checked once, kept where it is, and made again if it is lost.

    Attributes
    ----------
    y : ndarray, shape (b, d)
        Rows of positive weight, float32 or float64.
    weight : ndarray, shape (b,), or None
        Their weights, if they have any.
    names : tuple of str
        Names of the columns, if there are any.
    """

    y: NDArray[Any]
    weight: Array | None
    names: tuple[str, ...]


class Looked(NamedTuple):
    """Summary of a unit by a first pass.

    Attributes
    ----------
    rows, weight : int and float
        Number of rows with positive weight, and the sum of their weights.
    mean : ndarray, shape (d,), or None
        Weighted mean of the rows; None if there is no row.
    largest : float
        Largest absolute value.
    names : tuple of str
        Names of the columns, if there are any.
    dtype : str
        Type of the rows.
    """

    rows: int
    weight: float
    mean: Array | None
    largest: float
    names: tuple[str, ...]
    dtype: str


@lru_cache(maxsize=8)
def _opened(files: tuple[str, ...], columns: tuple[Any, ...] | None, weight: Any) -> Any:
    """Return the source of files; a process opens it once."""
    return open_source(list(files), columns, weight)


def prepare(unit: Any, weight: Any, where: str) -> Prepared:
    """Return the rows of a unit in aligned arrays; invalid rows raise ValueError.

    Parameters
    ----------
    unit : FileBlock, ndarray (b, d), data frame or Prepared
        The rows.
    weight : ndarray (b,), column of a data frame, or None
        Their weights.
    where : str
        Name of the unit in errors.
    """
    if isinstance(unit, Prepared):
        return Prepared(aligned(unit.y), aligned(unit.weight), unit.names)
    names: tuple[str, ...] = ()
    if isinstance(unit, FileBlock):
        source = _opened(*unit[:3])
        if unit.rows is None:
            rows, of_rows = source.block(unit.number)
        else:
            batch = source.take(np.arange(*unit.rows))
            rows, of_rows = batch.y, batch.weight if source.is_weighted else None
        check_finite(where, rows)
    else:
        names = tuple(map(str, getattr(unit, "columns", ())))
        rows = _numbers(unit, where)
        of_rows = None if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)
    rows = aligned(rows)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{where} must have rows and columns, got an array of shape {rows.shape}.")
    if of_rows is not None:
        if len(of_rows) != len(rows):
            raise ValueError(f"sample_weight must be chunked like the rows: {len(rows)} rows and "
                             f"{len(of_rows)} weights in {where}.")  # fmt: skip
        of_rows = aligned(np.asarray(of_rows, np.float64))
        check_weights(f"sample_weight of {where}", of_rows, "row")
        if not of_rows.all():
            rows, of_rows = rows[of_rows > 0.0], of_rows[of_rows > 0.0]
    return Prepared(rows, of_rows, names)


def aligned(array: Any) -> Any:
    """Return an array whose sums have the same bits everywhere: those from the network may not be aligned."""
    return None if array is None else np.require(array, requirements=["C", "A", "W"])


def read_unit(unit: Any, weight: Any = None, where: str = "data") -> ArraySource | None:
    """Return the rows of a unit, or None if no row has weight; arguments as of :func:`prepare`."""
    rows, of_rows, _ = prepare(unit, weight, where)
    return ArraySource.checked(rows, of_rows) if len(rows) else None


def _numbers(table: Any, where: str) -> NDArray[Any]:
    """Return a block as floating-point numbers; errors name the row."""
    values = table.to_numpy() if hasattr(table, "to_numpy") else table
    found = as_numbers(where, values)
    rows = found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    bad = ~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
    if bad.any():
        raise ValueError(f"{where} must have finite numbers, got NaN or infinity in its row "
                         f"{int(np.argmax(bad))}.")  # fmt: skip
    return np.asarray(rows)


def look(common: None, unit: Any, weight: Any, where: str) -> Looked:
    """Return the summary of a unit; invalid rows raise ValueError."""
    unit = prepare(unit, weight, where)
    names, source = unit.names, read_unit(unit)
    if source is None:
        return Looked(0, 0.0, None, 0.0, names, "")
    origin = source.y[0].astype(np.float64)  # sums of differences do not lose digits to an offset
    total = np.zeros(len(origin))
    for batch in source.blocks(BLOCK):
        total += batch.weight @ np.subtract(batch.y, origin, order="C")
    mean, largest = origin + total / source.total_weight, float(np.abs(source.y).max())
    return Looked(source.n, source.total_weight, mean, largest, names, source.y.dtype.str)


def sample(seed: tuple[int, ...], unit: Any, weight: Any, where: str, count: int) -> tuple[Any, Any]:
    """Return ``count`` distinct rows of a unit, drawn at random, and their weights or None."""
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows are not sampled"
    index = np.sort(np.random.default_rng(seed).choice(source.n, count, replace=False))
    return source.y[index], None if source.weight is None else source.weight[index]
