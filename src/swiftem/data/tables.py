"""Tables in files of any format: opened as a source of rows, or read into memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.core.checks import check_weight_column, either
from swiftem.core.types import Array, Index
from swiftem.data.columns import Column, Columns, Header, Wanted, as_label, choose_columns, left_out_of
from swiftem.data.csv import CsvFile
from swiftem.data.npy import NpySource, cell_of, is_small, npy_header, open_npy
from swiftem.data.table_files import MISSING_ADVICE, ParquetFile, TableFile, TableSource, check_cells

log = logging.getLogger("swiftem")
FORMATS: dict[str, type[TableFile] | type[NpySource]] = {
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".txt": CsvFile,
    ".parquet": ParquetFile,
    ".npy": NpySource,
}
"""Tables that pyarrow reads, and sources of other files, by their extension."""
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
        return NpySource(path, wanted, window=window, allow_missing=allow_missing)
    if not are_paths(path):
        what = "an empty one" if isinstance(path, list | tuple) and not path else type(path).__name__
        raise TypeError(f"path must be the name of a file or folder, or a list of them, got {what}.")
    paths = path if isinstance(path, list | tuple) else [path]
    files = [file for part in paths for file in table_files(part)]
    formats = [format_of(file) for file in files]
    for file, other in zip(files, formats, strict=True):
        if other is not formats[0]:
            raise ValueError(
                f"{file} must have the format of {files[0]}: all files of a fit have one format."
            )
    name = files[0] if len(files) == 1 else f"{files[0]} or another of {len(files)} files"
    make = formats[0]
    with system_errors_named(name):
        if not issubclass(make, TableFile):
            return make(files, wanted, window=window, allow_missing=allow_missing)
        tables = [make(file) for file in files]
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


def format_of(file: Path) -> type[TableFile] | type[NpySource]:
    """Return the class of a table by its extension; raise an error if there is none."""
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be a table ({', '.join(ENDINGS)}), got a folder.")
    if not file.exists():
        names = [part.name for part in file.parent.glob("*") if is_table(part)]
        close = get_close_matches(file.name, names, n=1, cutoff=0.8)
        instead = f": did you mean {file.with_name(close[0])}?" if close else "."
        raise FileNotFoundError(f"{file} must be a table ({', '.join(ENDINGS)}), but does not exist{instead}")
    ending = file.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"{file} must end in {either(ENDINGS)}, got {ending or 'no ending'}.")
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
    texts : dict of int to ndarray of object, shape (n,)
        Columns of text by place, if they were requested; None is a missing cell. In ``values`` they are zero,
        or NaN.
    numbers : tuple of int
        Indices of the d columns in the file, from 0.
    """

    values: np.ndarray
    names: tuple[str, ...] = ()
    weights: Array | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    labels: np.ndarray | None = None
    rows: Index | None = None
    texts: dict[int, np.ndarray] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()

    @property
    def cells(self) -> np.ndarray:
        """Numbers and text, (n, d): the values if there is no text, else an array of objects."""
        if not self.texts:
            return self.values
        cells = self.values.astype(object)
        for place, column in self.texts.items():
            cells[:, place] = column
        return cells


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[Column] | None = None,
    weights: Column | None = None,
    *,
    drop: Sequence[Column] = (),
    label: Column | None = None,
    response: Column | None = None,
    text: Sequence[Column] | None = None,
    skip_missing: bool = False,
    allow_missing: bool = False,
) -> Table:
    r"""Return the numeric columns of a file.

    Parameters
    ----------
    path : str or path
        ``.csv``, ``.tsv`` or ``.txt``: UTF-8 text with column names in the first line, delimited by commas,
        tabs, semicolons (then also with decimal commas) or spaces. A first line of only numbers is a
        row. ``.parquet``. ``.npy``: an array (n,) or (n, d), memory-mapped.
    columns : sequence of names or numbers, optional
        The columns to use, in this order; by default all numeric ones. Numbers are from 0, as integers, or as
        digits if no column has that name.
    weights : name or number, optional
        A column of weights, which is then not part of the data.
    drop : sequence of names or numbers, optional
        Columns that are not data.
    label : name or number, optional
        A column of labels, of text or of numbers, which is then not part of the data.
    response : name or number, optional
        A numeric column that becomes the last one of the data.
    text : sequence of names or numbers, optional
        If given, columns of text are data, too, in ``texts``; those listed are read as text whatever they
        hold.
    skip_missing : bool
        Whether to leave out rows with a missing value in the data or the weights. An infinity is still an
        error.
    allow_missing : bool
        Whether missing values of the data are NaN, for models that take them; weights must have none.

    Returns
    -------
    Table
        Text, dates, durations, decimals, lists, and columns without a name or without a value are left out,
        and rows are skipped, with a note; true and false are 1 and 0.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file, or it is a folder.
    ValueError
        If there is no numeric column or no row, if a value is missing or not finite, if rows differ in
        length, or if a weight is invalid; the message says where.
    swiftem.data.UnknownColumnError
        A ValueError, if a requested column does not exist.

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
    wanted = Wanted(columns, weights, drop, label, response, text)
    return read_wanted(path, wanted, skip_missing=skip_missing, allow_missing=allow_missing)


def read_wanted(
    path: str | os.PathLike[str], wanted: Wanted, *, skip_missing: bool = False, allow_missing: bool = False
) -> Table:
    """Return columns of a file, see :func:`read_table`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {path!r}.")
    file, may_miss = Path(path), skip_missing or allow_missing
    make = format_of(file)
    with system_errors_named(file):
        table = (
            _read_arrow(make(file), wanted, may_miss)
            if issubclass(make, TableFile)
            else _read_npy(file, wanted, may_miss)
        )
    if skip_missing:
        table = _without_missing(file, table)
    if table.weights is not None:
        check_weight_column(table.weights, lambda row: (file, row))
        if not table.weights.any():
            raise ValueError(f"{file} must have a positive weight, got only zeros.")
    for note in table.notes:
        log.info(note)
    return table


def _read_npy(file: Path, wanted: Wanted, allow_missing: bool) -> Table:
    """Return columns of an array; float32 and float64 that are used as a whole stay in the file."""
    label, array = open_npy(file)
    array = array[:, None] if array.ndim == 1 else array
    chosen = choose_columns(npy_header(label, array), wanted)
    if chosen.text:
        raise ValueError(f"{file} must have columns of text, got an array of numbers.")
    # In rows, as a file with these columns alone: sums of columns would round otherwise.
    is_whole = chosen.numbers == tuple(range(array.shape[1]))
    values = array if is_whole else np.ascontiguousarray(array[:, chosen.numbers])
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow: reported below
        values = np.asarray(values, dtype=np.float32 if is_small(values) else np.float64)
    check_cells(values, allow_missing, lambda row, column: (file, cell_of(row, chosen.numbers[column])))
    weights = labels = None
    if chosen.weights is not None:
        values, weights = np.ascontiguousarray(values[:, :-1]), values[:, -1].astype(np.float64)
    if chosen.label is not None:
        labels = _labels(array[:, chosen.label].tolist())
    return Table(values, (), weights, labels=labels, numbers=chosen.data)


def _read_arrow(table: TableFile, wanted: Wanted, allow_missing: bool) -> Table:
    """Return columns of a CSV or Parquet file."""
    chosen = choose_columns(table.header, wanted)
    arrays = table.read(chosen)
    dtype = np.dtype(np.float32 if table.small.issuperset(chosen.numeric) else np.float64)
    values, weights = table.chunk((0, arrays), chosen, dtype, allow_missing)
    others = [array.to_pylist() for array in arrays[len(chosen.numbers) :]]
    labels = None if chosen.label is None else _labels(others[-1])
    texts = {
        chosen.data.index(number): _text(table, number, cells, allow_missing)
        for number, cells in zip(chosen.text, others, strict=False)
    }
    return Table(
        _with_text(values, texts) if texts else values,
        chosen.names,
        weights,
        chosen.left_out,
        (*table.notes, *left_out_of([table.header.file], [chosen])),
        labels,
        texts=texts,
        numbers=chosen.data,
    )


def _labels(cells: list[object]) -> np.ndarray:
    """Return the cells of a column as text, empty if they are missing."""
    return np.array(["" if cell is None else as_label(cell) for cell in cells], dtype=object)


def _text(table: TableFile, number: int, cells: list[str | None], allow_missing: bool) -> np.ndarray:
    """Return the cells of a column as text, None if they are missing."""
    text = [None if table.is_missing(cell) else as_label(cell) for cell in cells]
    if None in text and not allow_missing:
        raise ValueError(
            f"{table.header.file} must have a value in every cell, got a missing value in column "
            f"{table.header.label(number)!r}, row {text.index(None)} (from 0): {MISSING_ADVICE}."
        )
    return np.array(text, dtype=object)


def _with_text(numbers: np.ndarray, texts: dict[int, np.ndarray]) -> np.ndarray:
    """Return numbers with further columns at the places of text: zeros, and NaN if a cell is missing."""
    values = np.zeros((len(numbers), numbers.shape[1] + len(texts)))
    values[:, [place for place in range(values.shape[1]) if place not in texts]] = numbers
    for place, cells in texts.items():
        values[[cell is None for cell in cells.tolist()], place] = np.nan
    return values


def _without_missing(file: Path, table: Table) -> Table:
    """Return the rows without a missing value, with a note."""
    missing = np.isnan(table.values).any(axis=1)
    if table.weights is not None:
        missing |= np.isnan(table.weights)
    if not missing.any():
        return table
    n, rows = len(missing), np.flatnonzero(~missing)
    if not len(rows):
        raise ValueError(f"{file} must have a row without a missing value, got none among {n:,}.")
    return replace(
        table,
        values=table.values[rows],
        weights=None if table.weights is None else table.weights[rows],
        labels=None if table.labels is None else table.labels[rows],
        texts={place: cells[rows] for place, cells in table.texts.items()},
        notes=(*table.notes, f"Skipped {n - len(rows):,} of {n:,} rows of {file}: missing values."),
        rows=rows,
    )


def read_cells(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return all columns of a table with names, unchanged: text of CSV files, values of Parquet files.

    Missing cells are an empty text, or None. It is empty for tables without names.
    """
    file = Path(path)
    make = format_of(file)
    if not issubclass(make, TableFile):
        return {}
    with system_errors_named(file):
        table = make(file)
        names = table.header.names
        every = tuple(range(len(names)))
        columns = table.read(Columns(every, (), every, None, None, {})) if names else []
    return {
        name: np.array(column.to_pylist(), dtype=object) for name, column in zip(names, columns, strict=True)
    }


def _read_header(path: str | os.PathLike[str]) -> Header:
    """Return the columns of a table, numeric or not."""
    file = Path(path)
    make = format_of(file)
    with system_errors_named(file):
        return make(file).header if issubclass(make, TableFile) else npy_header(*open_npy(file))


def read_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of all columns of a table, numeric or not; empty if it has none."""
    return tuple(_read_header(path).names)


def read_places(path: str | os.PathLike[str], wanted: Wanted) -> tuple[int, ...]:
    """Return the number of columns of a table without names, and the numbers of those that are wanted.

    It is empty if the table has names, or if all columns are wanted, in order.
    """
    header = _read_header(path)
    if header.names:
        return ()
    chosen, width = choose_columns(header, wanted).data, len(header.unfit)
    return () if chosen == tuple(range(width)) else (width, *chosen)
