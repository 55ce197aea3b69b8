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
from swiftem.data.csv import CsvSource
from swiftem.data.npy import NpySource
from swiftem.data.parquet import ParquetSource
from swiftem.data.stored import StoredSource
from swiftem.data.table_files import TableSource

__all__ = [
    "ENDINGS",
    "are_paths",
    "find_table",
    "is_table",
    "open_source",
    "system_errors_named",
    "table_files",
]

SOURCES: dict[str, type[NpySource] | type[TableSource]] = {
    ".csv": CsvSource,
    ".tsv": CsvSource,
    ".txt": CsvSource,
    ".parquet": ParquetSource,
    ".npy": NpySource,
}
ENDINGS = tuple(SOURCES)


def are_paths(data: Any) -> bool:
    """Tell whether ``data`` is a path or a list of paths.

    >>> are_paths("rows.npy"), are_paths(["a.csv", "b.csv"]), are_paths([1.0]), are_paths([])
    (True, True, False, False)
    """
    if isinstance(data, str | os.PathLike):
        return True
    is_some = isinstance(data, list | tuple) and len(data) > 0
    return is_some and all(isinstance(part, str | os.PathLike) for part in data)


def open_source(
    path: Any,
    columns: Sequence[Column] | None = None,
    weight: Column | None = None,
    *,
    drop: Sequence[Column] = (),
    window: int | None = None,
    allow_missing: bool = False,
    leave_out: bool = False,
) -> StoredSource:
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
    NpySource, ParquetSource or CsvSource
        The first two read rows by index, so that every method works; CSV is read in order: em, sem, sem-vr.

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
    Wanted(columns, weight, drop)  # rejects a name instead of a list, before any file is opened
    if isinstance(path, np.ndarray):
        return NpySource(path, columns, weight, drop=drop, window=window)
    if not are_paths(path):
        what = "an empty one" if isinstance(path, list | tuple) and not path else type(path).__name__
        raise TypeError(f"path must be the name of a file or folder, or a list of them, got {what}.")
    files = [
        file for part in (path if isinstance(path, list | tuple) else [path]) for file in table_files(part)
    ]
    kinds = [find_table(file)[1] for file in files]
    for file, kind in zip(files, kinds, strict=True):
        if kind is not kinds[0]:
            raise ValueError(
                f"{file} must have the format of {files[0]}: all files of a fit have one format."
            )
    options: dict[str, Any] = {"drop": drop, "window": window, "allow_missing": allow_missing}
    if kinds[0] is not NpySource:
        options["leave_out"] = leave_out
    name = files[0] if len(files) == 1 else Path(f"{files[0]} or another of {len(files)} files")
    with system_errors_named(name):
        return kinds[0](files, columns, weight, **options)


def table_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return a file, or the tables in a folder."""
    file = Path(path)
    if not file.is_dir():
        return [file]
    found = sorted(part for part in file.iterdir() if part.is_file() and part.suffix.lower() in ENDINGS)
    if not found:
        raise ValueError(
            f"{file} must have a file that ends in {', '.join(ENDINGS)}, got a folder with none."
        )
    return found


def is_table(path: str | os.PathLike[str]) -> bool:
    """Tell whether a name has the extension of a table.

    >>> is_table("flowers.CSV"), is_table("flowers.model")
    (True, False)
    """
    return Path(path).suffix.lower() in ENDINGS


def find_table(path: str | os.PathLike[str]) -> tuple[Path, type[NpySource] | type[TableSource]]:
    """Return the file, and the source of its format."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {path!r}.")
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be a table ({', '.join(ENDINGS)}), got a folder.")
    if not file.exists():
        close = _close_to(file)
        instead = f": did you mean {close}?" if close else "."
        raise FileNotFoundError(f"{file} must be a table ({', '.join(ENDINGS)}), but does not exist{instead}")
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{file} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {ending or 'no ending'}."
        )
    return file, SOURCES[ending]


def _close_to(file: Path) -> str:
    """Return the table with a name similar to that of a missing file, if there is one."""
    try:
        names = [part.name for part in file.parent.iterdir() if is_table(part)]
    except OSError:
        return ""
    found = get_close_matches(file.name, names, n=1, cutoff=0.8)
    return str(file.with_name(found[0])) if found else ""


@contextmanager
def system_errors_named(file: Path) -> Iterator[None]:
    """Add the file's name to errors of the system."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error).partition("\n")[0]).rstrip(". ").lower()
        raise OSError(f"{file} cannot be read ({reason}).") from None
