"""Opens files of any format, by their extension, as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.data.columns import Column, Wanted
from swiftem.data.csv import CsvFile
from swiftem.data.npy import NpySource
from swiftem.data.parquet import ParquetFile
from swiftem.data.table_files import TableFile, TableSource

__all__ = [
    "are_paths",
    "format_of",
    "is_table",
    "open_source",
    "system_errors_named",
    "table_files",
]

FORMATS: dict[str, type[TableFile] | None] = {
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".txt": CsvFile,
    ".parquet": ParquetFile,
    ".npy": None,
}
"""Tables by their extension; None: arrays."""
ENDINGS = tuple(FORMATS)


def are_paths(data: object) -> bool:
    """Return whether ``data`` is a path or a list of paths.

    >>> are_paths("rows.npy"), are_paths(["a.csv", "b.csv"]), are_paths([1.0]), are_paths([])
    (True, True, False, False)
    """
    parts = data if isinstance(data, list | tuple) else [data]
    return len(parts) > 0 and all(isinstance(part, str | os.PathLike) for part in parts)


def open_source(
    path: Any,
    columns: Sequence[Column] | None = None,
    weight: Column | None = None,
    *,
    drop: Sequence[Column] = (),
    window: int | None = None,
    allow_missing: bool = False,
    leave_out: bool = False,
) -> NpySource | TableSource:
    r"""Return the rows of files as a source: they are read on demand, not loaded.

    Parameters
    ----------
    path : path, sequence of paths, or memory map
        Files with the extension ``.npy``, ``.parquet``, ``.csv``, ``.tsv`` or ``.txt``, all of one format and
        with the same columns; or a folder, whose files of these formats are sorted by name.
    columns : sequence of names or numbers, optional
        The columns to use, in this order; by default all of them.
    weight : name or number, optional
        A column of weights, which is then not part of the data; rows of weight zero are ignored.
    drop : sequence of names or numbers, optional
        Columns that are not data.
    window : int, optional
        Rows within which draws are shuffled; by default as many as fit into 16 MiB. See
        :func:`swiftem.core.draws.block_draws`.
    allow_missing : bool
        Whether cells of the data may be missing (NaN, null, an empty cell of a text file), for models that
        take them; by default they are an error.
    leave_out : bool
        Whether columns of text, dates, durations, decimals or lists are left out, with a note; by default
        they are an error. True and false are 1 and 0; an index of pandas, and columns without a name, are
        left out.

    Returns
    -------
    NpySource or TableSource
        Rows of ``.npy`` and Parquet files are read by index, so that every method works; text is read in
        order: em, sem, sem-vr.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        As :func:`swiftem.data.read_table`, and if files differ in format or columns.

    Examples
    --------
    >>> import numpy as np, pathlib, swiftem, tempfile
    >>> from swiftem import methods, models
    >>> from swiftem.data import open_source
    >>> y = np.random.default_rng(0).normal(size=(500, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [pathlib.Path(folder, f"{number}.npy") for number in range(2)]
    ...     np.save(files[0], y[:300]), np.save(files[1], y[300:])
    ...     source = open_source(files)
    ...     result = swiftem.run(models.GaussianMixtureModel(2), source, methods.EM(), n_iter=3, seed=0)
    (None, None)
    >>> source.n, result.passes
    (500, 4.0)
    """
    wanted = Wanted(columns, weight, drop, leave_out=leave_out)
    if isinstance(path, np.ndarray):
        return NpySource(path, columns, weight, drop=drop, window=window, allow_missing=allow_missing)
    if not are_paths(path):
        what = "an empty one" if isinstance(path, list | tuple) and not path else type(path).__name__
        raise TypeError(f"path must be the name of a file or folder, or a list of them, got {what}.")
    files = [
        file
        for part in ([path] if isinstance(path, str | os.PathLike) else path)
        for file in table_files(part)
    ]
    formats = [format_of(file) for file in files]
    for file, table in zip(files, formats, strict=True):
        if table is not formats[0]:
            raise ValueError(
                f"{file} must have the format of {files[0]}: all files of a fit have one format."
            )
    name = files[0] if len(files) == 1 else f"{files[0]} or another of {len(files)} files"
    with system_errors_named(name):
        if formats[0] is None:
            return NpySource(files, columns, weight, drop=drop, window=window, allow_missing=allow_missing)
        tables = [formats[0](file) for file in files]
        return TableSource(tables, wanted, window=window, allow_missing=allow_missing)


def table_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return a file, or the tables in a folder."""
    file = Path(path)
    if not file.is_dir():
        return [file]
    tables = sorted(part for part in file.iterdir() if part.is_file() and is_table(part))
    if not tables:
        raise ValueError(
            f"{file} must have a file that ends in {', '.join(ENDINGS)}, got a folder with none."
        )
    return tables


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a name has the extension of a table.

    >>> is_table("flowers.CSV"), is_table("flowers.model")
    (True, False)
    """
    return Path(path).suffix.lower() in ENDINGS


def format_of(file: Path) -> type[TableFile] | None:
    """Return the class of a table by its extension, None for an array; raise an error if there is none."""
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be a table ({', '.join(ENDINGS)}), got a folder.")
    if not file.exists():
        names = [part.name for part in file.parent.glob("*") if is_table(part)]
        close = get_close_matches(file.name, names, n=1, cutoff=0.8)
        instead = f": did you mean {file.with_name(close[0])}?" if close else "."
        raise FileNotFoundError(f"{file} must be a table ({', '.join(ENDINGS)}), but does not exist{instead}")
    ending = file.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(
            f"{file} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {ending or 'no ending'}."
        )
    return FORMATS[ending]


@contextmanager
def system_errors_named(file: Path | str) -> Iterator[None]:
    """Add the file's name to errors of the system."""
    try:
        yield
    except OSError as error:
        if "cannot be read (" in str(error):
            raise
        reason = (error.strerror or str(error).partition("\n")[0]).rstrip(". ").lower()
        raise OSError(f"{file} cannot be read ({reason}).") from None
