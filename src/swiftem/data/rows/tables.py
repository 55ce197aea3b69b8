"""Rows in files, by their extension: opened as a source, or read as a table."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import checked_weights
from swiftem._typing import Array
from swiftem.data.rows.csv_layout import layout_of, number_in
from swiftem.data.rows.csv_source import CsvSource, read_csv
from swiftem.data.rows.npy_source import NpySource, read_npy
from swiftem.data.rows.parquet_source import ParquetSource, parquet_names, read_parquet
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.rows.table_columns import Column, Wanted, left_out_of, shortened

__all__ = [
    "ENDINGS",
    "TEXT",
    "Table",
    "are_paths",
    "find_table",
    "is_table",
    "open_source",
    "read_names",
    "read_table",
    "said_whose",
    "table_files",
]

TEXT = (".csv", ".tsv", ".txt")
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".npy")

log = logging.getLogger("swiftem")


@dataclass(frozen=True)
class Table:
    """Rows of numbers.

    Attributes
    ----------
    values : ndarray, shape (n, d)
        float64 or float32.
    names : tuple of str
        The names of the d columns; empty if the file has none.
    weights : ndarray, shape (n,), or None
        The column of weights, if one was requested.
    left_out : dict of str to str
        Columns that are not data, with the reason.
    notes : tuple of str
        Remarks for the user on how the file was read, in sentences.
    labels : ndarray of str, shape (n,), or None
        The column of labels, if one was requested; an empty text is a missing label.
    rows : ndarray of int, shape (n,), or None
        Indices of the rows in the file, from 0, if some were skipped.
    """

    values: NDArray[Any]
    names: tuple[str, ...] = ()
    weights: Array | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    labels: NDArray[Any] | None = None
    rows: NDArray[np.intp] | None = None


def is_table(path: str | os.PathLike[str]) -> bool:
    """Tell whether a name has the extension of a table.

    >>> is_table("flowers.CSV"), is_table("flowers.model")
    (True, False)
    """
    return Path(path).suffix.lower() in ENDINGS


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[Column] | None = None,
    weights: Column | None = None,
    *,
    drop: Sequence[Column] = (),
    label: Column | None = None,
    skip_missing: bool = False,
) -> Table:
    r"""Return the numeric columns of a file.

    Parameters
    ----------
    path : str or path
        ``.csv``, ``.tsv`` or ``.txt``: UTF-8 text with column names in the first line, delimited by commas,
        tabs, semicolons (then also with decimal commas) or spaces. A first line of only numbers is a
        row. ``.parquet``: needs pyarrow. ``.npy``: an array (n,) or (n, d), memory-mapped.
    columns : sequence of names or numbers, optional
        The columns to use, in this order; by default all numeric ones. Numbers are from 0, as integers, or as
        digits if no column has that name.
    weights : name or number, optional
        A column of weights, which is then not part of the data.
    drop : sequence of names or numbers, optional
        Columns that are not data.
    label : name or number, optional
        A column of labels, of text or of numbers, which is then not part of the data.
    skip_missing : bool
        Whether to leave out rows with a missing value in the data or the weights. An infinity is still an
        error.

    Returns
    -------
    Table
        Text, times, and columns without a name or without a value are left out, and rows are skipped, with a
        note.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file, or it is a folder.
    ValueError
        If there is no numeric column or no row, if a value is missing or not finite, if rows differ in
        length, or if a weight is invalid; the message says where.
    swiftem.data.UnknownColumnError
        A ValueError, if a requested column does not exist.
    ImportError
        If a Parquet file needs pyarrow.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "fish.csv")
    ...     _ = file.write_text("kind,length,width\nperch,20.5,3\nbream,31,4.5\n")
    ...     table = read_table(file)
    >>> table.values
    array([[20.5,  3. ],
           [31. ,  4.5]])
    >>> table.names, table.left_out
    (('length', 'width'), {'kind': 'text'})
    """
    wanted = Wanted(columns, weights, drop, label)
    file, ending = find_table(path)
    notes: list[str] = []
    with said_whose(file):
        if ending in TEXT:
            values, weight, chosen, cells, layout = read_csv(file, wanted, skip_missing)
            notes += _about_header(file, layout.names)
        else:
            read = read_npy if ending == ".npy" else read_parquet
            values, weight, chosen, cells = read(file, wanted, skip_missing)
    notes += left_out_of([file], [chosen])
    labels = None if cells is None else np.array(cells, dtype=object)
    kept = _complete(file, values, weight) if skip_missing else None
    if kept is not None:
        notes.append(
            f"Skipped {len(values) - len(kept):,} of {len(values):,} rows of {file}: missing values."
        )
        values = values[kept]
        weight, labels = (None if part is None else part[kept] for part in (weight, labels))
    if weight is not None:
        checked_weights(file, weight)
        if not weight.any():
            raise ValueError(f"{file} must have a positive weight, got only zeros.")
    for note in notes:
        log.info(note)
    return Table(values, chosen.names, weight, chosen.left_out, tuple(notes), labels, kept)


def _complete(file: Path, values: NDArray[Any], weight: Array | None) -> NDArray[np.intp] | None:
    """Return the indices of the rows without a missing value; None if that is all of them."""
    missing = np.isnan(values).any(axis=1)
    if weight is not None:
        missing |= np.isnan(weight)
    if not missing.any():
        return None
    if missing.all():
        raise ValueError(f"{file} must have a row without a missing value, got none among {len(values):,}.")
    return np.flatnonzero(~missing)


def read_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of all columns of a table, numeric or not; empty if it has none."""
    file, ending = find_table(path)
    with said_whose(file):
        if ending == ".npy":
            return ()
        return layout_of(file).names if ending in TEXT else parquet_names(file)


def find_table(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the file and its extension."""
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
    return file, ending


def _close_to(file: Path) -> str:
    """Return the table with a name similar to that of a missing file, if there is one."""
    try:
        names = [part.name for part in file.parent.iterdir() if is_table(part)]
    except OSError:
        return ""
    found = get_close_matches(file.name, names, n=1, cutoff=0.8)
    return str(file.with_name(found[0])) if found else ""


@contextmanager
def said_whose(file: Path) -> Iterator[None]:
    """Add the file's name to errors of the system."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error).partition("\n")[0]).rstrip(". ").lower()
        raise OSError(f"{file} cannot be read ({reason}).") from None


def _about_header(file: Path, names: tuple[str, ...]) -> list[str]:
    """Return a note if the first line is ambiguous."""
    if not names:
        return [f"{file} has numbers in its first line: read as a row, its columns have no names."]
    numbers = [name for name in names if number_in(name) is not None]
    if numbers:
        return [f"{file} has numbers in its first line ({shortened(numbers)}): read as names of columns."]
    return []


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
) -> StoredSource:
    r"""Return the rows of files as a source: they are read on demand, not loaded.

    Parameters
    ----------
    path : path, sequence of paths, or memory map
        Files with the extension ``.npy``, ``.parquet``, ``.csv``, ``.tsv`` or ``.txt``, all of one format and
        with the same columns; or a folder, whose files of these formats are sorted by name.
    columns : sequence of names or numbers, optional
        The columns to use, in this order; by default all numeric ones.
    weight : name or number, optional
        A column of weights, which is then not part of the data.
    drop : sequence of names or numbers, optional
        Columns that are not data.
    window : int, optional
        Rows within which draws are shuffled; by default as many as fit into 16 MiB. See
        :class:`swiftem.data.draws.BlockDraws`.

    Returns
    -------
    NpySource, ParquetSource or CsvSource
        The first two read rows by index, so that every method works; CSV is read in order: em, sem, sem-vr.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, ImportError
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
    endings = [find_table(file)[1] for file in files]
    kinds = {"text" if ending in TEXT else ending for ending in endings}
    if len(kinds) > 1:
        other = next(file for file, ending in zip(files, endings, strict=True) if ending != endings[0])
        raise ValueError(f"{other} must have the format of {files[0]}: all files of a fit have one format.")
    kind: Any = {"text": CsvSource, ".npy": NpySource, ".parquet": ParquetSource}[kinds.pop()]
    with said_whose(files[0] if len(files) == 1 else Path(f"{files[0]} or another of {len(files)} files")):
        source: StoredSource = kind(files, columns, weight, drop=drop, window=window)
    return source


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
