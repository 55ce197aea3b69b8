"""Dask collections and files as units."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from hashlib import blake2b
from math import isfinite
from os import PathLike, stat
from pathlib import Path
from typing import Any

from swiftem._checks import refuse_columns, shown
from swiftem.data.foreign import is_planned
from swiftem.data.rows.open_source import are_paths, open_source
from swiftem.data.rows.parquet_source import ParquetSource
from swiftem.data.rows.table_columns import Column
from swiftem.data.units.pool import LocalPool, Pool
from swiftem.data.units.unit import FileBlock
from swiftem.data.units.unit_source import UnitSource

__all__ = ["NEEDS_DASK", "current_pool", "open_units", "parts_of", "token_of", "units_of"]

UNIT_BYTES = 16 * 2**20
"""Size of a unit of files without row groups."""
NEEDS_DASK = "Clusters need Dask: install it with pip install 'swiftem[dask]'."


def units_of(
    data: Any, sample_weight: Any = None, *, client: Any = None, allow_missing: bool = False
) -> UnitSource:
    """Return a Dask collection as units: one for each chunk or partition.

    Parameters
    ----------
    data : dask array (n, d), dask data frame, Delayed or list of them
        The columns must be in one chunk; lengths may be unknown, and chunks empty.
    sample_weight : dask array (n,) or series, or list of Delayed, optional
        Chunked like the rows.
    client : distributed.Client, optional
        The client that computes; by default the current client, or this process if there is none.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    """
    in_memory = ", or compute() the table and use Mixture(family='auto') for text"
    refuse_columns("data", getattr(data, "_meta", None), for_text=in_memory)
    pool = current_pool(client)
    names = tuple(map(str, getattr(data, "columns", ())))
    units = parts_of("data", data)
    weights = None if sample_weight is None else parts_of("sample_weight", sample_weight)
    size = data.nbytes if hasattr(data, "numblocks") else None
    return UnitSource(
        units, weights, pool=pool, token=token_of(data, sample_weight), names=names,
        size=size if size is not None and isfinite(size) else None,
        allow_missing=allow_missing,
    )  # fmt: skip


def token_of(*data: Any) -> str:
    """Return a text that changes if the graph of a collection changes."""
    from dask.base import tokenize

    return str(tokenize(*data))


def parts_of(name: str, data: Any) -> list[Any]:
    """Return the chunks of a collection as Delayed objects."""
    if not is_planned(data):
        raise TypeError(
            f"{name} must be a Dask collection that is chunked like the rows, got {type(data).__name__}."
        )
    if isinstance(data, list | tuple):
        return list(data)
    if hasattr(data, "numblocks"):
        if any(count != 1 for count in data.numblocks[1:]):
            raise ValueError(
                f"{name} must have all its columns in one chunk, got {data.numblocks[1]} chunks of columns: "
                f"give {name}.rechunk({{1: -1}})."
            )
        if name in ("data", "X") and data.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {data.ndim}D array instead: rows must have columns, (n, d)."
            )
        return list(data.to_delayed().ravel())
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    return [data]


def current_pool(client: Any = None) -> Pool:
    """Return the executor of the tasks: a given or the current client, else this process."""
    if client is None:
        try:
            from distributed import Client

            client = Client.current()
        except (ImportError, ValueError):
            return LocalPool()
    from swiftem.data.units.dask_pool import DaskPool

    return DaskPool(client)


def open_units(
    path: Any, columns: Sequence[Column] | None = None, weight: Column | None = None, *, client: Any = None,
    allow_missing: bool = False, leave_out: bool = False,
) -> UnitSource:  # fmt: skip
    """Return the rows of files as units, which workers read: only file names are sent.

    Parameters
    ----------
    path : path, pattern such as ``"part-*.parquet"``, or sequence of them
        Parquet files, with each row group a unit, or ``.npy`` files, with units of 16 MiB. Workers must find
        them by the same names.
    columns, weight
        As in :func:`swiftem.data.open_source`.
    client : distributed.Client, optional
        The client that reads; by default the current client, or this process if there is none.
    allow_missing : bool
        Whether missing values are NaN in the rows, for models that ignore them; by default they are errors.
    leave_out : bool
        Whether columns that are no numbers are left out, as in :func:`swiftem.data.open_source`.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.data import open_units
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(2):
    ...         np.save(pathlib.Path(folder, f"part-{number}.npy"), np.ones((5, 3)))
    ...     source = open_units(f"{folder}/part-*.npy")
    >>> source.n, source.rows
    (1, 10)
    """
    files: list[str] = []
    if not are_paths(path):
        raise TypeError(f"path must be the name of a file, a pattern or a list of them, got {shown(path)}.")
    for part in [path] if isinstance(path, str | PathLike) else path:
        found = sorted(glob(str(part))) if any(sign in str(part) for sign in "*?[") else [str(part)]
        if not found:
            raise FileNotFoundError(f"path must name files, got {shown(str(part))}, which matches none.")
        files += found
    names = tuple(str(Path(file).resolve()) for file in files)
    chosen = None if columns is None else tuple(columns)
    source = open_source(list(names), chosen, weight, allow_missing=allow_missing, leave_out=leave_out)
    chosen = tuple(source.names) or chosen  # for the workers
    if source.access != "random":
        raise ValueError("path must name Parquet or .npy files for units, got text: convert it to Parquet.")
    spans: list[tuple[int, int] | None] = [None] * (len(source.layout.edges) - 1)
    if not isinstance(source, ParquetSource):
        step = max(1, UNIT_BYTES // source.row_bytes)
        spans = [(start, min(start + step, source.n)) for start in range(0, source.n, step)]
    written = [(status.st_size, status.st_mtime_ns) for status in map(stat, names)]
    version = blake2b(repr(written).encode(), digest_size=8).hexdigest()
    units = [FileBlock(names, chosen, weight, number, span, version) for number, span in enumerate(spans)]
    where = [
        f"block {number} of {names[0] if len(names) == 1 else 'the files'}" for number in range(len(units))
    ]
    return UnitSource(units, pool=current_pool(client), token=repr((names, chosen, weight)),
                      where=where, names=source.names, size=source.n * source.row_bytes,
                      allow_missing=allow_missing, notes=source.notes)  # fmt: skip
