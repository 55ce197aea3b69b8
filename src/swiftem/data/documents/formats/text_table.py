"""Tables with a column of text: CSV and Parquet."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swiftem.data.documents.corpus_counts import TableTexts, Texts
from swiftem.data.documents.formats.lines import existing_file, filled_lines, read_lines
from swiftem.data.rows.parquet_source import check_rows, opened

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
    TableTexts(texts=['Rice, and maize', 'Fish'], names=['7', '8'], notes=[...])
    """
    file = existing_file(path, CSV)
    header: list[str] = []
    rows: list[list[str]] = []
    delimiter = _delimiter(file)
    limit = csv.field_size_limit(LONGEST_CELL)
    # With their line ends: cells may have several lines.
    reader = csv.reader((line + "\n" for _, line in read_lines(file, CSV)), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if not any(cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
            elif len(cells) != len(header):
                raise ValueError(
                    f"{file} must have {len(header)} cells in each row, as its first line has, got "
                    f"{len(cells)} in line {reader.line_num}."
                )
            else:
                rows.append(cells)
    except csv.Error as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{file} must be {CSV}, got something else in line {reader.line_num} ({reason})."
        ) from None
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise ValueError(f"{file} must have at least one row below the names of its columns, got none.")
    columns = list(zip(*rows, strict=True))
    of_text = [
        name
        for name, cells in zip(header, columns, strict=True)
        if not all(NUMBER.fullmatch(cell.strip()) for cell in cells)
    ]
    label = _label(file, header, label_column)
    chosen = _choose(file, header, of_text, text_column, label)
    titles = next((i for i, name in enumerate(header) if name.lower() in TITLES and i != chosen), None)
    names = _names(None if titles is None else columns[titles], len(rows))
    labels = None if label is None else _cells(columns[label])
    notes = _note(header, chosen, text_column)
    return TableTexts.of(list(columns[chosen]), names, notes, header[chosen], labels)


def read_text_parquet(
    path: str | os.PathLike[str], text_column: str | None = None, label_column: str | None = None
) -> Texts:
    """Return the texts of a Parquet file; needs pyarrow.

    Arguments, result and errors are those of :func:`read_text_csv`; columns of text are those of strings.

    Raises
    ------
    ImportError
        If pyarrow is not installed, with the command to install it.
    """
    file = existing_file(path, TEXT_PARQUET)
    with opened(file) as stored:
        header = [str(name) for name in stored.schema_arrow.names]
        of_text = [
            name for name, kind in zip(header, stored.schema_arrow.types, strict=True) if _is_text(kind)
        ]
        label = _label(file, header, label_column)
        chosen = _choose(file, header, of_text, text_column, label)
        if header[chosen] not in of_text:
            kind = stored.schema_arrow.types[chosen]
            raise ValueError(f"{file} must have text in column {header[chosen]!r}, got {kind}.")
        titles = next((i for i, name in enumerate(header) if name.lower() in TITLES and i != chosen), None)
        wanted = {header[place] for place in (chosen, titles, label) if place is not None}
        check_rows(file, stored.metadata.num_rows, len(wanted), "split it into several files")
        table = stored.read(columns=sorted(wanted))
        columns = {name: table.column(name).to_pylist() for name in wanted}
    texts = [cell or "" for cell in columns[header[chosen]]]
    if not texts:
        raise ValueError(f"{file} must have at least one row, got none.")
    names = _names(None if titles is None else columns[header[titles]], len(texts))
    labels = None if label is None else _cells(columns[header[label]])
    return TableTexts.of(texts, names, _note(header, chosen, text_column), header[chosen], labels)


def _names(titles: Sequence[Any] | None, count: int) -> list[str]:
    """Return the documents' names: their titles, or their rows if they have none."""
    cells = _cells(titles or [""] * count)
    return [cell or f"row {number}" for number, cell in enumerate(cells, start=1)]


def _cells(values: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in values]


def _label(file: Path, header: Sequence[str], wanted: str | None) -> int | None:
    """Return the index of the column with the labels, or raise an error that lists the columns."""
    if wanted is not None and wanted not in header:
        raise ValueError(f"{file} must have a column {wanted!r}, got {', '.join(map(repr, header))}.")
    return None if wanted is None else header.index(wanted)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _delimiter(file: Path) -> str:
    first = next((line for _, line in filled_lines(file, CSV)), "")
    return max(DELIMITERS, key=first.count)


def _choose(
    file: Path, header: Sequence[str], of_text: Sequence[str], wanted: str | None, label: int | None
) -> int:
    """Return the index of the column with the texts, or raise an error that lists the columns."""
    names = ", ".join(map(repr, header))
    if wanted is not None:
        if wanted not in header:
            raise ValueError(f"{file} must have a column {wanted!r}, got {names}.")
        return header.index(wanted)
    if label is not None:
        of_text = [name for name in of_text if name != header[label]]
    called_text = [name for name in of_text if name.lower() == "text"]
    no_titles = [name for name in of_text if name.lower() not in TITLES]
    candidates = next((some for some in (of_text, called_text, no_titles) if len(some) == 1), None)
    if candidates is None:
        got = ", ".join(map(repr, of_text)) if of_text else f"none among {names}"
        raise ValueError(
            f"{file} must have one column of text, got {got}: name it with text_column (--text-column on the "
            "command line)."
        )
    return header.index(candidates[0])


def _note(header: Sequence[str], chosen: int, wanted: str | None) -> list[str]:
    """Return a note on the guessed column."""
    return [] if wanted is not None or len(header) == 1 else [f"The texts are in column {header[chosen]!r}."]
