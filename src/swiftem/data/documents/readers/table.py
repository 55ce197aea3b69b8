"""Tables with a column of text: CSV and Parquet."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swiftem.data.documents.counts import LabelledTexts, Texts
from swiftem.data.documents.readers.lines import existing_file, filled_lines, read_lines
from swiftem.data.parquet import check_rows, opened

__all__ = ["read_text_csv", "read_text_parquet"]

CSV = "a table in CSV with a column of text"
TEXT_PARQUET = "a Parquet file with a column of text"
DELIMITERS = ",;\t"
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|(nan|inf|na|null|none|true|false)?", re.I)
TITLES = ("title", "name", "id")
LONGEST_CELL = 1 << 30


def read_text_csv(
    path: str | os.PathLike[str], text_column: str | None = None, label_column: str | None = None
) -> Texts:
    r"""Return the texts of a CSV file whose first line has the names of the columns.

    Cells are separated by commas, semicolons or tabs: by whichever the first line has most of. The file is
    UTF-8, and may be compressed with gzip.

    Parameters
    ----------
    path : str or path
        The file.
    text_column : str, optional
        Name of the column with the texts. By default the only one that has not just numbers; among several
        the one named ``text``, or the only one not named ``title``, ``name`` or ``id``.
    label_column : str, optional
        Name of a column whose values are kept as ``labels``; it is not taken for the texts.

    Returns
    -------
    Texts
        ``names`` are from a column named ``title``, ``name`` or ``id``, or else the rows' numbers, from 1.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is missing or wrong, with the line, or if it is not clear which column has the texts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_text_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "letters.csv")
    ...     _ = file.write_text('id,body\n7,"Rice, and maize"\n8,Fish\n')
    ...     read_text_csv(file)
    LabelledTexts(texts=['Rice, and maize', 'Fish'], names=['7', '8'], notes=[...])
    """
    file = existing_file(path, CSV)
    header, rows = _csv_rows(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    of_text = [name for name in header if not all(NUMBER.fullmatch(cell.strip()) for cell in columns[name])]
    return _choose(file, header, of_text, text_column, label_column).texts(columns)


def _csv_rows(file: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the cells of the rows below, at least one."""
    first = next((line for _, line in filled_lines(file, CSV)), "")
    limit = csv.field_size_limit(LONGEST_CELL)
    # With their line ends: cells may have several lines.
    lines = (line + "\n" for _, line in read_lines(file, CSV))
    reader = csv.reader(lines, delimiter=max(DELIMITERS, key=first.count), strict=True)
    rows: list[list[str]] = []
    try:
        for cells in filter(any, reader):
            if rows and len(cells) != len(rows[0]):
                raise ValueError(
                    f"{file} must have {len(rows[0])} cells in each row, as its first line has, got "
                    f"{len(cells)} in line {reader.line_num}."
                )
            rows.append(cells)
    except csv.Error as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{file} must be {CSV}, got something else in line {reader.line_num} ({reason})."
        ) from None
    finally:
        csv.field_size_limit(limit)
    if len(rows) < 2:
        raise ValueError(f"{file} must have at least one row below the names of its columns, got none.")
    return [cell.strip() for cell in rows[0]], rows[1:]


def read_text_parquet(
    path: str | os.PathLike[str], text_column: str | None = None, label_column: str | None = None
) -> Texts:
    """Return the texts of a Parquet file; needs pyarrow.

    Arguments, result and errors as for :func:`read_text_csv`; columns of text hold strings.

    Raises
    ------
    ImportError
        If pyarrow is not installed, with the command to install it.
    """
    file = existing_file(path, TEXT_PARQUET)
    with opened(file) as stored:
        types = dict(zip(map(str, stored.schema_arrow.names), stored.schema_arrow.types, strict=True))
        of_text = [name for name, type in types.items() if _is_text(type)]
        chosen = _choose(file, list(types), of_text, text_column, label_column)
        if chosen.text not in of_text:
            raise ValueError(f"{file} must have text in column {chosen.text!r}, got {types[chosen.text]}.")
        wanted = sorted({name for name in (chosen.text, chosen.title, chosen.label) if name is not None})
        if not stored.metadata.num_rows:
            raise ValueError(f"{file} must have at least one row, got none.")
        check_rows(file, stored.metadata.num_rows, len(wanted), "split it into several files")
        table = stored.read(columns=wanted)
        return chosen.texts({name: table.column(name).to_pylist() for name in wanted})


class _Columns(NamedTuple):
    """Names of the columns with the texts, their titles and their labels; a note if the first was guessed."""

    text: str
    title: str | None
    label: str | None
    notes: list[str]

    def texts(self, columns: Mapping[str, Sequence[Any]]) -> LabelledTexts:
        """Return the texts, with their titles, or numbers from 1, as names, and their labels."""
        texts = [cell or "" for cell in columns[self.text]]
        titles = [""] * len(texts) if self.title is None else _cells(columns[self.title])
        names = [cell or f"row {number}" for number, cell in enumerate(titles, start=1)]
        labels = None if self.label is None else _cells(columns[self.label])
        return LabelledTexts.make(Texts(texts, names, self.notes), labels)


def _cells(values: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in values]


def _choose(
    file: Path, header: list[str], of_text: list[str], wanted: str | None, label: str | None
) -> _Columns:
    """Return the columns to read, or raise an error that lists the columns."""
    names = ", ".join(map(repr, header))
    for name in (label, wanted):
        if name is not None and name not in header:
            raise ValueError(f"{file} must have a column {name!r}, got {names}.")
    notes: list[str] = []
    if wanted is None:
        of_text = [name for name in of_text if name != label]
        called_text = [name for name in of_text if name.lower() == "text"]
        no_titles = [name for name in of_text if name.lower() not in TITLES]
        candidates = next((some for some in (of_text, called_text, no_titles) if len(some) == 1), None)
        if candidates is None:
            got = ", ".join(map(repr, of_text)) if of_text else f"none among {names}"
            raise ValueError(
                f"{file} must have one column of text, got {got}: name it with text_column (--text-column on "
                "the command line)."
            )
        wanted = candidates[0]
        notes = [f"The texts are in column {wanted!r}."] if len(header) > 1 else []
    title = next((name for name in header if name.lower() in TITLES and name != wanted), None)
    return _Columns(wanted, title, label, notes)


def _is_text(type: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(type):
        type = type.value_type
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))
