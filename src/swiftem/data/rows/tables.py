"""Tables of numbers in files: CSV, Parquet and ``.npy``, by their extension."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import shortened
from swiftem._typing import Array
from swiftem.data.rows.csv_layout import layout_of, number_in, records
from swiftem.data.rows.csv_source import read_csv
from swiftem.data.rows.npy_source import open_npy, read_npy
from swiftem.data.rows.open_source import TEXT, find_table, said_whose
from swiftem.data.rows.parquet_source import opened, parquet_names, read_parquet
from swiftem.data.rows.table_columns import Column, Wanted, choose_columns, left_out_of
from swiftem.data.sample_weight import checked_weights

__all__ = ["Table", "read_cells", "read_names", "read_places", "read_table"]


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
    texts : dict of int to ndarray of object, shape (n,)
        Columns of text by place, if they were requested; None is a missing cell. In ``values`` they are zero,
        or NaN.
    numbers : tuple of int
        Indices of the d columns in the file, from 0.
    """

    values: NDArray[Any]
    names: tuple[str, ...] = ()
    weights: Array | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    labels: NDArray[Any] | None = None
    rows: NDArray[np.intp] | None = None
    texts: dict[int, NDArray[Any]] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()

    @property
    def cells(self) -> NDArray[Any]:
        """Numbers and text, (n, d): the values if there is no text, else an array of objects."""
        if not self.texts:
            return self.values
        found = self.values.astype(object)
        for place, cells in self.texts.items():
            found[:, place] = cells
        return found


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
    wanted = Wanted(columns, weights, drop, label, response, text)
    file, ending = find_table(path)
    notes: list[str] = []
    with said_whose(file):
        if ending in TEXT:
            values, weight, chosen, cells, layout, found = read_csv(
                file, wanted, skip_missing or allow_missing
            )
            notes += _about_header(file, layout.names)
        elif ending == ".npy":
            values, weight, chosen, cells = read_npy(file, wanted, skip_missing or allow_missing)
            if chosen.text:
                raise ValueError(f"{file} must have columns of text, got an array of numbers.")
        else:
            values, weight, chosen, cells, found = read_parquet(file, wanted, skip_missing or allow_missing)
    texts: dict[int, NDArray[Any]] = {}
    if chosen.text:
        values, texts = _with_text(values, chosen.text, found)
    notes += left_out_of([file], [chosen])
    labels = None if cells is None else np.array(cells, dtype=object)
    kept = _complete(file, values, weight) if skip_missing else None
    if kept is not None:
        texts = {place: part[kept] for place, part in texts.items()}
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
    return Table(
        values, chosen.names, weight, chosen.left_out, tuple(notes), labels, kept, texts, chosen.numbers
    )


def _with_text(
    numbers: NDArray[Any], text: Mapping[int, int], found: Sequence[Sequence[str | None]]
) -> tuple[NDArray[Any], dict[int, NDArray[Any]]]:
    """Return values with zeros and NaN at the places of text, and the text by place."""
    n = len(found[0])
    values = np.zeros((n, numbers.shape[1] + len(text)))
    values[:, [place for place in range(values.shape[1]) if place not in text]] = numbers
    texts = {place: np.array(cells, dtype=object) for place, cells in zip(text, found, strict=True)}
    for place, cells in texts.items():
        values[[cell is None for cell in cells.tolist()], place] = np.nan
    return values, texts


def read_cells(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return all columns of a table with names, unchanged: text of CSV files, values of Parquet files.

    Missing cells are an empty text, or None. It is empty for tables without names.
    """
    file, ending = find_table(path)
    with said_whose(file):
        if ending == ".npy":
            return {}
        if ending not in TEXT:
            with opened(file) as stored:
                found = stored.read()
            return {
                str(name): np.array(column.to_pylist(), dtype=object)
                for name, column in zip(found.column_names, found.columns, strict=True)
            }
        layout = layout_of(file)
        rows = [cells for line, cells in records(file, layout.delimiter) if line > layout.header_lines]
    return {
        name: np.array([cells[j].strip() for cells in rows], dtype=object)
        for j, name in enumerate(layout.names)
    }


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


def read_places(path: str | os.PathLike[str], wanted: Wanted) -> tuple[int, ...]:
    """Return the number of columns of a table without names, and the numbers of those that are wanted.

    It is empty if the table has names, or if all columns are wanted, in order.
    """
    if read_names(path):
        return ()
    file, ending = find_table(path)
    with said_whose(file):
        unfit = [""] * int(np.prod(open_npy(file).shape[1:])) if ending == ".npy" else layout_of(file).unfit
    chosen = choose_columns(file, (), unfit, wanted).data
    return () if chosen == tuple(range(len(unfit))) else (len(unfit), *chosen)


def _about_header(file: Path, names: tuple[str, ...]) -> list[str]:
    """Return a note if the first line is ambiguous."""
    if not names:
        return [f"{file} has numbers in its first line: read as a row, its columns have no names."]
    numbers = [name for name in names if number_in(name) is not None]
    if numbers:
        return [f"{file} has numbers in its first line ({shortened(numbers)}): read as names of columns."]
    return []
