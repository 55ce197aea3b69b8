"""Tables as files: Parquet where pyarrow is installed, else CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from swiftem._cache import write_atomically

__all__ = ["write_columns"]


def write_columns(path: str | os.PathLike[str], columns: Mapping[str, Any], *, parquet: bool = True) -> Path:
    """Write a table, and return the file.

    Parameters
    ----------
    path : str or path
        The file without its ending, which is ``.parquet``, or ``.csv`` where pyarrow is not installed.
    columns : mapping of str to array or sequence of str
        All of the same length.
    parquet : bool
        False for CSV in any case.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns = {"word": ["rice", "fish"], "probability": np.array([0.5, 0.25])}
    ...     print(write_columns(pathlib.Path(folder, "table"), columns, parquet=False).read_text())
    word,probability
    rice,0.5
    fish,0.25
    <BLANKLINE>
    """
    try:
        if not parquet:
            raise ImportError
        content = _parquet(columns)
        file = Path(f"{os.fspath(path)}.parquet")
    except ImportError:
        content = _csv(columns)
        file = Path(f"{os.fspath(path)}.csv")
    write_atomically(file, content)
    file.chmod(0o644)  # a temporary file is its owner's alone, and so is what it becomes
    return file


def _parquet(columns: Mapping[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), buffer)
    return buffer.getvalue()


def _csv(columns: Mapping[str, Any]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    # Python's own floats: the shortest text that gives the same number again.
    plain = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
    writer.writerows(zip(*plain, strict=True))
    # A name may hold half of a surrogate pair, from a file name that is no text.
    return buffer.getvalue().encode("utf-8", "backslashreplace")
