"""Tables in ``.npy`` files, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.rows.finite_rows import first_bad_cell, what_it_is
from swiftem.data.rows.npy_header import read_npy_header
from swiftem.data.rows.table_columns import Column, Columns, choose_columns

__all__ = ["as_doubles", "open_npy", "read_npy"]

MOST_AXES = 10
"""Sentences show no longer shapes."""


def read_npy(
    file: Path, columns: Sequence[Column] | None, weights: Column | None
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns]:
    """Return rows (n, d), weights (n,) and the choice of columns.

    Rows that are float32 or float64 and taken whole stay in the file.
    """
    array = open_npy(file)
    if array.ndim == 1:
        array = array[:, None]
    chosen = choose_columns(file, (), [""] * array.shape[1], columns, weights)
    whole = chosen.data == tuple(range(array.shape[1]))
    values = _native(array if whole else array[:, chosen.data])
    weight = None if chosen.weights is None else as_doubles(array[:, chosen.weights])
    for part, numbers in ((values, chosen.data), (weight, (chosen.weights,))):
        bad = None if part is None else first_bad_cell(part.reshape(len(part), -1))
        if part is not None and bad is not None:
            what = what_it_is(part.reshape(len(part), -1)[bad])
            raise ValueError(
                f"{file} must hold finite numbers, got {what} in row {bad[0]}, column {numbers[bad[1]]} "
                "(both from 0): remove or replace such rows."
            )
    return values, weight, chosen


def open_npy(file: Path) -> NDArray[Any]:
    """Return the array (n,) or (n, d) of numbers in a file, memory-mapped, or say why there is none."""
    with file.open("rb") as stream:
        header = read_npy_header(stream, file)
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in "biuf":
        what = "named fields" if dtype.names else f"dtype {dtype}"
        raise ValueError(f"{file} must hold real numbers, got {what}.")
    if len(shape) not in (1, 2):
        got = shape if len(shape) < MOST_AXES else f"{len(shape)} axes"
        raise ValueError(f"{file} must hold an array of shape (n,) or (n, d), got {got}.")
    if 0 in shape:
        raise ValueError(f"{file} must have at least one row and one column, got shape {shape}.")
    there = file.stat().st_size - header.offset
    if header.n_bytes > there:
        raise ValueError(
            f"{file} must have {header.n_bytes:,} bytes of numbers, as many as its shape {shape} needs, got "
            f"{max(0, there):,}: it is damaged."
        )
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.memmap(file, dtype, mode="r", offset=header.offset, shape=shape, order=order)


def as_doubles(array: NDArray[Any]) -> Array:
    """Return numbers in float64; what is too large for it becomes infinite, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Return float32 and float64 as they are, in this machine's byte order, and others as one of them."""
    kind = np.float32 if array.dtype in (np.dtype("f2"), np.dtype(">f4"), np.dtype("<f4")) else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # of long doubles: what is not finite then is named
        return np.asarray(array, dtype=kind)
