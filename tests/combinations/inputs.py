"""Kinds of input: the same rows as arrays of every layout and type, tables, tensors, files, blocks and units.

Each kind makes its input of float64 rows (n, d), in which NaN is a missing cell, and of weights (n,) or None.
``Kind.values`` first rounds rows to what the kind can hold: fits of the kind and of these values in a plain
array must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from combinations.pairs import installed

from swiftem.data import ArraySource, NpySource, open_source


class Input(NamedTuple):
    """What is given to ``fit``: the rows, and the weights unless the rows hold them."""

    X: Any
    weight: Any = None


class Kind(NamedTuple):
    """A kind of input.

    ``values`` rounds rows, ``holes`` says whether there may be missing cells, ``precision`` the relative
    error allowed, ``whole`` whether the kind is one table in memory, ``once`` whether it can be read once.
    """

    make: Callable[[np.ndarray, np.ndarray | None, Path], Input]
    values: Callable[[np.ndarray], np.ndarray] = np.copy
    holes: bool = True
    precision: float = 1e-9
    stored: bool = False
    once: bool = False


def rounded(dtype: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that gives rows the values of a type: whole numbers of whole types."""

    def values(rows: np.ndarray) -> np.ndarray:
        if np.dtype(dtype).kind == "b":
            return (rows > np.nanmedian(rows, axis=0)).astype(float)
        if np.dtype(dtype).kind in "iu":
            return np.clip(np.rint(rows), 0, 100)
        return rows.astype(dtype).astype(np.float64)

    return values


def array(change: Callable[[np.ndarray], Any], **options: Any) -> Kind:
    """Return a kind made by a function of the array; the weights are an array."""
    return Kind(lambda rows, weight, folder: Input(change(rows), weight), **options)


def typed(dtype: Any, **options: Any) -> Kind:
    return array(lambda rows: rows.astype(dtype), values=rounded(dtype), **options)


def strided(rows: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(rows), 2 * rows.shape[1]), np.nan)
    wide[::2, ::2] = rows
    return wide[::2, ::2]


def read_only(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def names(rows: np.ndarray) -> list[str]:
    return [f"c{j}" for j in range(rows.shape[1])]


def columns(rows: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(names(rows), rows.T, strict=True))


def with_nulls(rows: np.ndarray) -> dict[str, list[float | None]]:
    return {name: [None if np.isnan(v) else v for v in column] for name, column in columns(rows).items()}


class HasArray:
    """An object of another library that can become an array."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.shape = rows, rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype)


def memory_map(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    np.save(folder / "map.npy", rows)
    return Input(np.load(folder / "map.npy", mmap_mode="r"), weight)


def pandas(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    import pandas as pd

    index = np.arange(len(rows))[::-1] + 5  # an index that is no position
    weights = None if weight is None else pd.Series(weight, index=index)
    return Input(pd.DataFrame(columns(rows), index=index), weights)


def pandas_typed(dtype: str) -> Callable[[np.ndarray], Any]:
    def make(rows: np.ndarray) -> Any:
        import pandas as pd

        return pd.DataFrame(columns(rows)).convert_dtypes().astype(dtype)

    return make


def polars(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    import polars as pl

    return Input(pl.DataFrame(with_nulls(rows)), None if weight is None else pl.Series(weight))


def arrow(rows: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.table(with_nulls(rows))


def tensor(dtype: str, **options: Any) -> Callable[[np.ndarray], Any]:
    def make(rows: np.ndarray) -> Any:
        import torch

        return torch.tensor(rows, dtype=getattr(torch, dtype), **options)

    return make


def sparse(rows: np.ndarray) -> Any:
    import scipy.sparse

    return scipy.sparse.csr_array(rows)


def as_table(rows: np.ndarray, weight: np.ndarray | None) -> dict[str, Any]:
    return columns(rows) if weight is None else columns(rows) | {"w": weight}


def opened(path: Any, weight: np.ndarray | None, holes: bool) -> Input:
    """Return the path itself if there are no weights: these are a column of the file."""
    return Input(path if weight is None else open_source(path, weight="w", allow_missing=holes))


def npy(order: str) -> Callable[[np.ndarray, np.ndarray | None, Path], Input]:
    def make(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
        path = folder / f"rows-{order}.npy"
        np.save(path, np.asarray(rows, order=order))
        holes = bool(np.isnan(rows).any())
        return Input(
            str(path) if weight is None else NpySource(path, sample_weight=weight, allow_missing=holes)
        )

    return make


def write_parquet(path: Path, rows: np.ndarray, weight: np.ndarray | None) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(v, from_pandas=True) for name, v in as_table(rows, weight).items()})
    pq.write_table(table, path, row_group_size=max(len(rows) // 3, 1))
    return path


def parquet(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    path = write_parquet(folder / "rows.parquet", rows, weight)
    return opened(path, weight, bool(np.isnan(rows).any()))


def two_files(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    cut = len(rows) // 3
    parts = [
        write_parquet(folder / f"{k}.parquet", rows[here], None if weight is None else weight[here])
        for k, here in enumerate((slice(cut), slice(cut, None)))
    ]
    return opened([str(part) for part in parts], weight, bool(np.isnan(rows).any()))


def text(ending: str, separator: str) -> Callable[[np.ndarray, np.ndarray | None, Path], Input]:
    def make(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
        path, table = folder / f"rows.{ending}", as_table(rows, weight)
        lines = [separator.join(table)]
        empty = "" if len(table) > 1 else "NA"  # an empty line is no row
        for cells in zip(*table.values(), strict=True):
            lines.append(separator.join(empty if np.isnan(cell) else repr(float(cell)) for cell in cells))
        path.write_text("\n".join(lines) + "\n")
        return opened(path, weight, bool(np.isnan(rows).any()))

    return make


def pieces(rows: np.ndarray, weight: np.ndarray | None) -> list[Any]:
    cuts = [0, len(rows) // 4, len(rows) // 4, len(rows) // 2, len(rows)]  # one is empty
    places = [slice(a, b) for a, b in pairwise(cuts)]
    return [rows[p] if weight is None else (rows[p], weight[p]) for p in places]


def dask_array(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    import dask.array as da

    chunk = max(len(rows) // 3, 1)
    made = da.from_array(rows, chunks=(chunk, rows.shape[1]))
    return Input(made, None if weight is None else da.from_array(weight, chunks=chunk))


def dask_frame(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    import dask.dataframe as dd
    import pandas as pd

    made = dd.from_pandas(pd.DataFrame(columns(rows)), npartitions=3)
    return Input(made, None if weight is None else dd.from_pandas(pd.Series(weight), npartitions=3))


def delayed(rows: np.ndarray, weight: np.ndarray | None, folder: Path) -> Input:
    import dask

    def split(values: np.ndarray) -> list[Any]:
        return [dask.delayed(part) for part in np.array_split(values, 3)]

    return Input(split(rows), None if weight is None else split(weight))


KINDS: dict[str, Kind] = {
    "array": array(np.ascontiguousarray),
    "Fortran": array(np.asfortranarray),
    "reversed": array(lambda rows: rows[::-1].copy()[::-1]),
    "transposed": array(lambda rows: rows.T.copy().T),
    "strided": array(strided),
    "read-only": array(read_only),
    "memory map": Kind(memory_map),
    "big-endian": array(lambda rows: rows.astype(">f8")),
    "float32": typed(np.float32, precision=1e-5),
    "float32 Fortran": array(
        lambda rows: np.asfortranarray(rows.astype(np.float32)), values=rounded(np.float32), precision=1e-5
    ),
    "float16": typed(np.float16, precision=1e-5),
    "longdouble": typed(np.longdouble),
    "int8": typed(np.int8, holes=False),
    "int64": typed(np.int64, holes=False),
    "uint16": typed(np.uint16, holes=False),
    "bool": typed(bool, holes=False),
    "objects": array(lambda rows: np.where(np.isnan(rows), None, rows.astype(object))),
    "lists": array(lambda rows: rows.tolist()),
    "tuples": array(lambda rows: tuple(map(tuple, rows.tolist()))),
    "has array": array(HasArray),
    "masked": array(lambda rows: np.ma.MaskedArray(np.nan_to_num(rows), np.isnan(rows))),
    "pandas": Kind(pandas),
    "pandas Float64": array(pandas_typed("Float64")),
    "pandas Int64": array(pandas_typed("Int64"), values=rounded(np.int64)),
    "pandas float32": array(pandas_typed("float32"), values=rounded(np.float32), precision=1e-5),
    "polars": Kind(polars),
    "arrow": array(arrow),
    "sparse": array(sparse, holes=False),
    "tensor": array(tensor("float64")),
    "tensor float32": array(tensor("float32"), values=rounded(np.float32), precision=1e-5),
    "tensor with gradient": array(tensor("float64", requires_grad=True)),
    "npy": Kind(npy("C"), stored=True),
    "npy Fortran": Kind(npy("F"), stored=True),
    "Parquet": Kind(parquet, stored=True),
    "two Parquet files": Kind(two_files, stored=True),
    "CSV": Kind(text("csv", ","), stored=True),
    "TSV": Kind(text("tsv", "\t"), stored=True),
    "blocks": Kind(lambda rows, weight, folder: Input(lambda: iter(pieces(rows, weight))), stored=True),
    "generator": Kind(
        lambda rows, weight, folder: Input(part for part in pieces(rows, weight)), stored=True, once=True
    ),
    "ArraySource": Kind(
        lambda rows, weight, folder: Input(
            ArraySource(rows, weight, allow_missing=bool(np.isnan(rows).any()))
        )
    ),
    "Dask array": Kind(dask_array, stored=True),
    "Dask frame": Kind(dask_frame, stored=True),
    "delayed": Kind(delayed, stored=True),
}
KINDS = {name: KINDS[name] for name in installed(KINDS)}
"""All kinds by name; a kind for a device is one more line here."""

DASK = ("Dask array", "Dask frame", "delayed")
