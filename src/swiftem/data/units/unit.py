"""A unit: a fixed part of the rows, as read by a task, and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import as_numbers, check_finite, refuse_columns
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.open_source import open_source
from swiftem.data.weights import check_weights

__all__ = [
    "FileBlock",
    "Place",
    "Prepared",
    "UnitSummary",
    "aligned",
    "prepare",
    "read_unit",
    "sample",
    "summarise",
]

BLOCK = 4096


@dataclass(frozen=True)
class Place:
    """Where rows are, for errors, and whether cells may be missing there.

    >>> str(Place("unit 3 of data"))
    'unit 3 of data'
    """

    name: str
    allow_missing: bool = False

    def __str__(self) -> str:
        return self.name


DATA = Place("data")


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
    version : str
        Changes if a file is written again: a worker then opens it again.
    """

    files: tuple[str, ...]
    columns: tuple[Any, ...] | None
    weight: Any
    number: int
    rows: tuple[int, int] | None = None
    version: str = ""


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


class UnitSummary(NamedTuple):
    """Summary of a unit by a first pass.

    Attributes
    ----------
    rows, weight : int and float
        Number of rows with positive weight, and the sum of their weights.
    mean : ndarray, shape (d,), or None
        Weighted mean of the rows, zero for a column without an observed cell; None if there is no row.
    largest : float
        Largest absolute value.
    names : tuple of str
        Names of the columns, if there are any.
    dtype : str
        Type of the rows.
    masses : ndarray, shape (d,), or None
        Weight of the observed cells of each column; None if no cell is missing.
    """

    rows: int
    weight: float
    mean: Array | None
    largest: float
    names: tuple[str, ...]
    dtype: str
    masses: Array | None = None


@lru_cache(maxsize=8)
def _opened(
    files: tuple[str, ...], columns: tuple[Any, ...] | None, weight: Any, allow_missing: bool, version: str
) -> Any:
    """Return the source of files; a process opens each version of them once."""
    return open_source(list(files), columns, weight, allow_missing=allow_missing)


def prepare(unit: Any, weight: Any, where: Place) -> Prepared:
    """Return the rows of a unit in aligned arrays; invalid rows raise ValueError.

    Parameters
    ----------
    unit : FileBlock, ndarray (b, d), data frame or Prepared
        The rows.
    weight : ndarray (b,), column of a data frame, or None
        Their weights.
    where : Place
        Name of the unit in errors, and whether cells may be missing.
    """
    if isinstance(unit, Prepared):
        return Prepared(aligned(unit.y), aligned(unit.weight), unit.names)
    names: tuple[str, ...] = ()
    if isinstance(unit, FileBlock):
        source = _opened(*unit[:3], where.allow_missing, unit.version)
        if unit.rows is None:
            rows, of_rows = source.block(unit.number)
        else:
            batch = source.take(np.arange(*unit.rows))
            rows, of_rows = batch.y, batch.weight if source.is_weighted else None
        check_finite(where.name, rows, where.allow_missing)
    else:
        names = tuple(map(str, getattr(unit, "columns", ())))
        rows = _numbers(unit, where)
        of_rows = None if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)
    rows = aligned(rows)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{where} must have rows and columns, got an array of shape {rows.shape}.")
    if of_rows is not None:
        if len(of_rows) != len(rows):
            raise ValueError(
                f"sample_weight must be chunked like the rows: {len(rows)} rows and "
                f"{len(of_rows)} weights in {where}."
            )
        of_rows = aligned(np.asarray(of_rows, np.float64))
        check_weights(f"sample_weight of {where}", of_rows, "row")
        if not of_rows.all():
            rows, of_rows = rows[of_rows > 0.0], of_rows[of_rows > 0.0]
    return Prepared(rows, of_rows, names)


def aligned(array: Any) -> Any:
    """Return an array whose sums have the same bits everywhere: those from the network may not be aligned."""
    return None if array is None else np.require(array, requirements=["C", "A", "W"])


def read_unit(unit: Any, weight: Any = None, where: Place = DATA) -> ArraySource | None:
    """Return the rows of a unit, or None if no row has weight; arguments as of :func:`prepare`."""
    rows, of_rows, _ = prepare(unit, weight, where)
    return ArraySource.checked(rows, of_rows, where.allow_missing) if len(rows) else None


def _numbers(table: Any, where: Place) -> NDArray[Any]:
    """Return a block as floating-point numbers; errors name the row."""
    refuse_columns(where.name, table)
    values = table.to_numpy() if hasattr(table, "to_numpy") else table
    if where.allow_missing and values.dtype.kind == "O":  # pandas' NA
        values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    found = as_numbers(where.name, values, where.allow_missing)
    rows = found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    good = ~np.isinf(rows) if where.allow_missing else np.isfinite(rows)
    bad = ~good.all(axis=tuple(range(1, rows.ndim)))
    if bad.any():
        what = "infinity" if where.allow_missing else "NaN or infinity"
        raise ValueError(f"{where} must have finite numbers, got {what} in its row {int(np.argmax(bad))}.")
    return np.asarray(rows)


def summarise(common: None, unit: Any, weight: Any, where: Place) -> UnitSummary:
    """Return the summary of a unit; invalid rows raise ValueError."""
    unit = prepare(unit, weight, where)
    names, source = unit.names, read_unit(unit, None, where)
    if source is None:
        return UnitSummary(0, 0.0, None, 0.0, names, "")
    if where.allow_missing and np.isnan(source.y).any():
        return _summary_of_observed(source, names)
    origin = source.y[0].astype(np.float64)  # sums of differences do not lose digits to an offset
    total = np.zeros(len(origin))
    for batch in source.blocks(BLOCK):
        total += batch.weight @ np.subtract(batch.y, origin, order="C")
    mean, largest = origin + total / source.total_weight, float(np.abs(source.y).max())
    return UnitSummary(source.n, source.total_weight, mean, largest, names, source.y.dtype.str)


def _summary_of_observed(source: ArraySource, names: tuple[str, ...]) -> UnitSummary:
    """Return the summary of a unit with missing cells."""
    seen: NDArray[np.bool_] = ~np.isnan(source.y)
    first = source.y[np.argmax(seen, axis=0), np.arange(seen.shape[1])]
    origin = np.where(seen.any(axis=0), first, 0.0).astype(np.float64)
    total, masses = np.zeros(len(origin)), np.zeros(len(origin))
    for batch in source.blocks(BLOCK):
        known = ~np.isnan(batch.y)
        total += batch.weight @ np.where(known, np.subtract(batch.y, origin, order="C"), 0.0)
        masses += batch.weight @ known
    mean = origin + total / np.where(masses > 0.0, masses, 1.0)
    largest = float(np.abs(source.y[seen]).max(initial=0.0))
    return UnitSummary(source.n, source.total_weight, mean, largest, names, source.y.dtype.str, masses)


def sample(seed: int, unit: Any, weight: Any, where: Place, number: int, count: int) -> tuple[Any, Any]:
    """Return ``count`` distinct rows of unit ``number``, drawn at random, and their weights or None."""
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows are not sampled"
    index = np.sort(np.random.default_rng((seed, number)).choice(source.n, count, replace=False))
    return source.y[index], None if source.weight is None else source.weight[index]
