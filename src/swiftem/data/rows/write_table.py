"""Tables of numbers to files: CSV, Parquet and ``.npy``, by their extension."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from swiftem.data.rows.parquet_source import NEEDS_PYARROW
from swiftem.files.durable import replacing

__all__ = ["WRITTEN", "write_csv", "write_table", "write_table_blocks"]

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


def write_table_blocks(path: Path, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> None:
    r"""Write blocks of columns with the same names one after the other: CSV, TSV or Parquet, atomically.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     write_table_blocks(file, ({"a": np.array([number])} for number in (1, 2)))
    ...     file.read_text()
    'a\n1\n2\n'
    """
    with replacing(path) as file:
        if path.suffix.lower() == ".parquet":
            pa, parquet = _pyarrow()
            writer = None
            for columns in blocks:
                table = pa.table(dict(columns))
                if writer is None:
                    writer = parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        for number, columns in enumerate(blocks):
            write_csv(text, columns, "\t" if path.suffix.lower() == ".tsv" else ",", header=number == 0)
        text.detach()


def write_csv(
    text: TextIO, columns: Mapping[str, NDArray[Any]], delimiter: str = ",", *, header: bool = True
) -> None:
    """Write columns as text; numbers are read back exactly."""
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(columns)
    n = len(next(iter(columns.values())))
    for start in range(0, n, ROWS):
        parts = [column[start : start + ROWS].tolist() for column in columns.values()]
        writer.writerows(zip(*parts, strict=True))
    text.flush()


def _write_parquet(file: BinaryIO, columns: Mapping[str, NDArray[Any]]) -> None:
    pa, parquet = _pyarrow()
    parquet.write_table(pa.table(dict(columns)), file)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(NEEDS_PYARROW) from None
    return pyarrow, parquet
