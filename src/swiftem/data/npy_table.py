"""Tables in ``.npy`` files, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from swiftem.data.finite_rows import first_bad_cell, what_it_is
from swiftem.data.table_columns import Column, Columns, choose_columns

__all__ = ["open_npy", "read_npy"]


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
    weight = None if chosen.weights is None else array[:, chosen.weights].astype(np.float64)
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
    array = _open(file)
    if array.dtype.kind not in "biuf":
        what = "named fields" if array.dtype.names else f"dtype {array.dtype}"
        raise ValueError(f"{file} must hold real numbers, got {what}.")
    if array.ndim not in (1, 2):
        raise ValueError(f"{file} must hold an array of shape (n,) or (n, d), got {array.shape}.")
    if array.size == 0:
        raise ValueError(f"{file} must have at least one row and one column, got shape {array.shape}.")
    return array


def _open(file: Path) -> NDArray[Any]:
    """Return the array in the file, memory-mapped; never anything pickled."""
    try:
        with file.open("rb") as stream:
            version = npy.read_magic(stream)
            shape, _, dtype = _read_header(stream, version)
        if dtype.hasobject:
            raise ValueError(f"{file} must hold numbers, got Python objects, which are not read.")
        if 0 in shape:
            return np.empty(shape, dtype)  # nothing can be mapped
        return npy.open_memmap(file, mode="r")
    except ValueError as error:
        if str(error).startswith(str(file)):
            raise
        raise ValueError(
            f"{file} must be a file of numpy.save, got a damaged one or something else."
        ) from None


def _read_header(stream: Any, version: tuple[int, int]) -> Any:
    # NumPy has no public function for version 3, which differs from 2 by names of fields in UTF-8.
    return npy.read_array_header_1_0(stream) if version == (1, 0) else npy.read_array_header_2_0(stream)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Return float32 and float64 as they are, in this machine's byte order, and others as one of them."""
    kind = np.float32 if array.dtype in (np.dtype("f2"), np.dtype(">f4"), np.dtype("<f4")) else np.float64
    return np.asarray(array, dtype=kind)
