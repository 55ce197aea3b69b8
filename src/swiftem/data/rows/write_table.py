"""Tables of numbers to files: CSV, Parquet and ``.npy``, by their extension."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from swiftem.data.rows.parquet_source import NEEDS_PYARROW
from swiftem.files.durable import replacing

__all__ = ["WRITTEN", "write_csv", "write_table"]

WRITTEN = (".csv", ".tsv", ".parquet", ".npy")
ROWS = 10_000
"""Rows converted to text at a time."""


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    r"""Write columns (n,) of equal length to a file, atomically; its folder must exist.

    ``.npy`` has no names: one column is an array (n,), several are one array (n, d) of a common type.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     write_table(file, {"a": np.array([1, 2]), "b": np.array([0.1, 0.2])})
    ...     file.read_text()
    'a,b\n1,0.1\n2,0.2\n'
    """
    ending = path.suffix.lower()
    if ending not in WRITTEN:
        raise ValueError(
            f"{path} must end in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}, got {ending or 'no ending'}."
        )
    with replacing(path) as file:
        if ending == ".npy":
            parts = list(columns.values())
            np.save(file, parts[0] if len(parts) == 1 else np.column_stack(parts), allow_pickle=False)
        elif ending == ".parquet":
            _write_parquet(file, columns)
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write_csv(text, columns, "\t" if ending == ".tsv" else ",")
            text.detach()


def write_csv(text: TextIO, columns: Mapping[str, NDArray[Any]], delimiter: str = ",") -> None:
    """Write columns as text; numbers are read back exactly."""
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    n = len(next(iter(columns.values())))
    for start in range(0, n, ROWS):
        parts = [column[start : start + ROWS].tolist() for column in columns.values()]
        writer.writerows(zip(*parts, strict=True))
    text.flush()


def _write_parquet(file: BinaryIO, columns: Mapping[str, NDArray[Any]]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(NEEDS_PYARROW) from None
    parquet.write_table(pa.table(dict(columns)), file)
