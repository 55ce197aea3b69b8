"""Units of rows: how a task reads and summarises them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import as_numbers, check_finite, refuse_columns
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.data.columns import Column
from swiftem.data.tables import open_source
from swiftem.data.units.tasks import aligned, unit_weights

__all__ = ["FileBlock", "RowSummary", "read_rows", "rows_at", "summarise_rows"]

BLOCK = 4096


class FileBlock(NamedTuple):
    """A block of a file, such as a row group of Parquet: its name is sent, and the worker reads it.

    Attributes
    ----------
    files : tuple of str
        All files of the source.
    columns, weight : tuple or None, and name, number or None
        As in :func:`swiftem.data.open_source`.
    version : str
        Changes if a file is written again: a worker then opens it again.
    number : int
        Index of the block.
    rows : tuple of int, optional
        First row and end of the block, if the file has no row groups.
    """

    files: tuple[str, ...]
    columns: tuple[Column, ...] | None
    weight: Column | None
    version: str
    number: int
    rows: tuple[int, int] | None = None


class RowSummary(NamedTuple):
    """Summary of a unit by a first pass.

    Attributes
    ----------
    n : int
        Number of rows with positive weight.
    columns : int
        Number of columns.
    weight : float
        Sum of the weights.
    names : tuple of str
        Names of the columns, if there are any.
    dtype : str
        Type of the rows.
    mean : ndarray, shape (d,)
        Weighted mean of the rows, zero for a column without an observed cell.
    largest : float
        Largest absolute value.
    masses : ndarray, shape (d,), or None
        Weight of the observed cells of each column; None if no cell is missing.
    """

    n: int
    columns: int
    weight: float
    names: tuple[str, ...]
    dtype: str
    mean: Array
    largest: float
    masses: Array | None


@lru_cache(maxsize=8)
def _opened(
    files: tuple[str, ...],
    columns: tuple[Column, ...] | None,
    weight: Column | None,
    version: str,  # a process opens each version of the files once
    allow_missing: bool,
) -> Any:
    return open_source(list(files), columns, weight, allow_missing=allow_missing)


def read_rows(unit: Any, weight: object, where: str, *, allow_missing: bool = False) -> ArraySource:
    """Return the rows of a unit with positive weight in aligned arrays; invalid rows raise ValueError.

    Parameters
    ----------
    unit : FileBlock, ndarray (b, d), data frame, or ArraySource
        The rows; a source is the result of an earlier call.
    weight : ndarray (b,), column of a data frame, or None
        Their weights.
    where : str
        Name of the unit in errors.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    """
    if isinstance(unit, ArraySource):
        return _source(aligned(unit.y), aligned(unit.weight), unit.names, allow_missing)
    if isinstance(unit, FileBlock):
        rows, weight = _rows_of_block(unit, allow_missing)
        check_finite(where, rows, allow_missing)
        names: tuple[str, ...] = ()
    else:
        rows, names = _numbers(unit, where, allow_missing), tuple(map(str, getattr(unit, "columns", ())))
    rows = aligned(rows)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{where} must have rows and columns, got an array of shape {rows.shape}.")
    if weight is None:
        return _source(rows, None, names, allow_missing)
    weights = unit_weights(weight, len(rows), "rows", where)
    if not weights.all():
        rows, weights = rows[weights > 0.0], weights[weights > 0.0]
    return _source(rows, weights, names, allow_missing)


def _source(
    rows: NDArray[Any], weight: Array | None, names: tuple[str, ...], allow_missing: bool
) -> ArraySource:
    source = ArraySource.checked(rows, weight, allow_missing)
    source.names = names
    return source


def _rows_of_block(unit: FileBlock, allow_missing: bool) -> tuple[NDArray[Any], Array | None]:
    source = _opened(*unit[:4], allow_missing)
    if unit.rows is None:
        rows, weight = source.block(unit.number)
        return rows, weight
    batch = source.take(np.arange(*unit.rows))
    return batch.y, batch.weight if source.is_weighted else None


def _numbers(table: Any, where: str, allow_missing: bool) -> NDArray[Any]:
    """Return a block as floating-point numbers; errors name the row."""
    refuse_columns(where, table)
    values = table.to_numpy() if hasattr(table, "to_numpy") else table
    if allow_missing and values.dtype.kind == "O":  # pandas' NA
        values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    rows = as_numbers(where, values, allow_missing)
    rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    is_valid = ~np.isinf(rows) if allow_missing else np.isfinite(rows)
    is_invalid = ~is_valid.all(axis=tuple(range(1, rows.ndim)))
    if is_invalid.any():
        what = "infinity" if allow_missing else "NaN or infinity"
        row = int(np.argmax(is_invalid))
        raise ValueError(f"{where} must have finite numbers, got {what} in its row {row}.")
    return np.asarray(rows)


def summarise_rows(source: ArraySource) -> RowSummary:
    """Return the summary of a unit."""
    y, d = source.y, source.y.shape[1]
    seen: NDArray[np.bool_] = ~np.isnan(y)
    has_missing = not seen.all()
    # Sums of differences from the first value of each column do not lose digits to an offset.
    origin, total, masses = np.zeros(d), np.zeros(d), np.zeros(d)
    if len(y):
        first = y[np.argmax(seen, axis=0), np.arange(d)]
        origin = np.where(seen.any(axis=0), first, 0.0).astype(np.float64)
    for batch in source.blocks(BLOCK):
        away = np.subtract(batch.y, origin, order="C")
        if has_missing:
            known = ~np.isnan(batch.y)
            away = np.where(known, away, 0.0)
            masses += batch.weight @ known
        total += batch.weight @ away
    divisor = np.where(masses > 0.0, masses, 1.0) if has_missing else source.total_weight or 1.0
    return RowSummary(
        source.n,
        d,
        source.total_weight,
        source.names,
        y.dtype.str,
        origin + total / divisor,
        float(np.abs(y[seen]).max(initial=0.0)) if has_missing else float(np.abs(y).max(initial=0.0)),
        masses if has_missing else None,
    )


def rows_at(source: ArraySource, index: Index) -> tuple[NDArray[Any], Array | None]:
    """Return some rows of a unit, and their weights if they have any."""
    return source.y[index], None if source.weight is None else source.weight[index]
