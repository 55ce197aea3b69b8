"""Files of texts: one document per line, folders of text files, and tables with a column of text."""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from swiftem.core.checks import shortened
from swiftem.data.documents.blocks import FileDocuments
from swiftem.data.documents.counts import Entries, Texts
from swiftem.data.documents.lines import (
    PathName,
    existing_file,
    filled_lines,
    read_lines,
    read_pieces,
    read_vocabulary,
)
from swiftem.data.documents.words import count_known_words
from swiftem.data.parquet import check_rows, opened

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "TextDocuments",
    "read_documents",
    "read_folder",
    "read_text_csv",
    "read_text_lines",
    "read_text_parquet",
]

TEXT = "a text file, one document per line"
LINES = 4096
"""Texts that are counted at a time."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
GUESSED = "not UTF-8 and read as Windows-1252"
EMPTY, BINARY, UNREADABLE = (f"{what} and left out" for what in ("empty", "binary", "unreadable"))
CSV = "a table in CSV with a column of text"
TEXT_PARQUET = "a Parquet file with a column of text"
DELIMITERS = ",;\t"
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|(nan|inf|na|null|none|true|false)?", re.I)
TITLES = ("title", "name", "id")
LONGEST_CELL = 1 << 30


class TextDocuments(FileDocuments):
    r"""The texts of a file, one per line, counted in given words; memory does not grow with the file.

    Parameters
    ----------
    path : path
        A UTF-8 file, compressed with gzip or not.
    words : sequence of str, or path
        The vocabulary, or a file with one word per line. :func:`swiftem.data.count_words` defines words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import TextDocuments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.txt")
    ...     _ = file.write_text("Fish and rice.\nNothing of it.\n")
    ...     [block.toarray().tolist() for _, block in TextDocuments(file, ["fish", "rice"]).blocks(2)]
    [[[1, 1], [0, 0]]]
    """

    words: tuple[str, ...]

    def __init__(self, path: PathName, words: Sequence[str] | PathName) -> None:
        given = read_vocabulary(words) if isinstance(words, str | os.PathLike) else tuple(words)
        if not given:
            raise ValueError("words must have at least one word, got none.")
        super().__init__(Path(path), given, len(given))

    def entries(self) -> Iterator[Entries]:
        """Yield the entries of some lines at a time, and count the documents."""
        first, lines = 0, filled_lines(self.file, TEXT)
        while texts := [line for _, line in islice(lines, LINES)]:
            counts, kept, _ = count_known_words(texts, self.words, None)
            entries = counts.tocoo()
            yield np.stack([first + kept[entries.row], entries.col, entries.data], axis=1)
            first += len(texts)
        self.n_documents = first


def read_documents(path: PathName) -> list[str]:
    r"""Return the documents of a UTF-8 text file, one per line.

    Lines of only white space are skipped. Lines may end in LF or CRLF, and the file may begin with a
    byte order mark.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    list of str, length D
        The lines in order, without their ends.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file, or it is a folder.
    ValueError
        If it has no document, or is not UTF-8 text; the message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.txt")
    ...     _ = file.write_bytes(b"Rice and maize.\r\n\r\nFish ponds.\r\n")
    ...     read_documents(file)
    ['Rice and maize.', 'Fish ponds.']
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {path!r}.")
    return read_text_lines(Path(path)).texts


def read_text_lines(file: Path) -> Texts:
    """Return the lines that are documents, at least one, with their numbers as names."""
    lines = list(filled_lines(file, TEXT))
    if not lines:
        what = "only white space" if file.stat().st_size else "an empty file"
        raise ValueError(f"{file} must have at least one document, got {what}.")
    return Texts([line for _, line in lines], [f"line {number}" for number, _ in lines], [])


def read_folder(path: PathName, leave_out: PathName | None = None) -> Texts:
    r"""Return the text files of a folder and its subfolders, one document per file.

    All files are read, also those compressed with gzip, except hidden ones. Text is UTF-8, or UTF-16 if it
    has a byte order mark. Other files are read as Windows-1252 (Latin-1), which accepts any bytes: a
    collection of old texts has some, and one of them should not stop the whole. (A single text file raises an
    error with the line.) Binary and empty files are left out. The notes name the files.

    Parameters
    ----------
    path : str or path
        The folder.
    leave_out : str or path, optional
        A subfolder that is not read, for example the one for results.

    Returns
    -------
    Texts
        ``names`` are the files' paths in the folder, sorted.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, ValueError
        If there is no such folder, or no text in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "letters").mkdir()
    ...     _ = pathlib.Path(folder, "rice.txt").write_text("Rice and maize.")
    ...     _ = pathlib.Path(folder, "letters", "1").write_bytes(b"Caf\xe9.")
    ...     texts, names, notes, _ = read_folder(folder)
    >>> texts, names, notes
    (['Café.', 'Rice and maize.'], ['letters/1', 'rice.txt'], ['1 file is not UTF-8 ... letters/1.'])
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"{folder} must be a folder of text files, but does not exist.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder of text files, got a file.")
    texts, names = list[str](), list[str]()
    noted = {remark: list[str]() for remark in (GUESSED, EMPTY, BINARY, UNREADABLE)}
    for name in _files(folder, None if leave_out is None else Path(leave_out).resolve()):
        text, remark = _read(folder / name)
        if remark:
            noted[remark].append(name)
        if text:
            texts.append(text)
            # A file's name need not be valid text: the name of a document must be.
            names.append(os.fsencode(name).decode("utf-8", "replace"))
    notes = [
        f"{'1 file is' if len(files) == 1 else f'{len(files):,} files are'} {remark}: {shortened(files, 3)}."
        for remark, files in noted.items()
        if files
    ]
    if not texts:
        what = f"none: {' '.join(notes)}" if notes else "no files."
        raise ValueError(f"{folder} must have at least one text file, got {what}")
    return Texts(texts, names, notes)


def _files(folder: Path, leave_out: Path | None) -> list[str]:
    """Return the paths of all files in a folder, with slashes, sorted; hidden ones are left out."""
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and (Path(base) / name).resolve() != leave_out
        ]
        inside = Path(base).relative_to(folder)
        # Opening pipes and sockets would block.
        found += [
            (inside / name).as_posix()
            for name in files
            if not name.startswith(".") and (Path(base) / name).is_file()
        ]
    return sorted(found)


def _read(file: Path) -> tuple[str, str]:
    """Return the text of a file, empty if it is left out, and a remark, empty if there is none."""
    try:
        content = b"".join(read_pieces(file, "a text file"))
    except (OSError, ValueError):  # the latter if it is compressed and damaged
        return "", UNREADABLE
    is_utf_16, remark = content.startswith(UTF_16), ""
    if b"\0" in content and not is_utf_16:
        return "", BINARY
    try:
        text = content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        if is_utf_16:
            return "", BINARY
        text, remark = content.decode("cp1252", "replace"), GUESSED
    return (text, remark) if text.strip() else ("", EMPTY)


def read_text_csv(path: PathName, text_column: str | None = None, label_column: str | None = None) -> Texts:
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
    Texts(texts=['Rice, and maize', 'Fish'], names=['7', '8'], notes=[...], labels=None)
    """
    file = existing_file(path, CSV)
    header, rows = _csv_rows(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    of_text = [name for name in header if not all(NUMBER.fullmatch(cell.strip()) for cell in columns[name])]
    return _texts(file, header, of_text, columns.__getitem__, text_column, label_column)


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
                got = f"{len(cells)} in line {reader.line_num}"
                raise ValueError(f"{file} must have {len(rows[0])} cells in each row, got {got}.")
            rows.append(cells)
    except csv.Error as error:
        raise ValueError(f"{file} must be {CSV}, got line {reader.line_num} ({error}).") from None
    finally:
        csv.field_size_limit(limit)
    if len(rows) < 2:
        raise ValueError(f"{file} must have at least one row below the names of its columns, got none.")
    return [cell.strip() for cell in rows[0]], rows[1:]


def read_text_parquet(
    path: PathName, text_column: str | None = None, label_column: str | None = None
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
        schema, n_rows = stored.schema_arrow, stored.metadata.num_rows
        header = [str(name) for name in schema.names]
        of_text = [name for name, type in zip(header, schema.types, strict=True) if _is_text(type)]
        if not n_rows:
            raise ValueError(f"{file} must have at least one row, got none.")
        check_rows(file, n_rows, 3, "split it into several files")
        cells = lambda name: stored.read(columns=[name]).column(name).to_pylist()  # noqa: E731
        return _texts(file, header, of_text, cells, text_column, label_column)


def _is_text(type: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(type):
        type = type.value_type
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def _texts(
    file: Path,
    header: list[str],
    of_text: list[str],
    cells: Callable[[str], Sequence[object]],
    text: str | None,
    label: str | None,
) -> Texts:
    """Return the texts of a table, with their titles, or numbers from 1, as names, and their labels.

    Parameters
    ----------
    file : Path
        For messages.
    header, of_text : lists of str
        Names of all columns, and of those that hold text.
    cells : callable
        Returns a column by its name.
    text, label : str or None
        Names of the columns of texts and labels; by default the only likely one of texts, and no labels.
    """
    for name in (label, text):
        if name is not None and name not in header:
            raise ValueError(f"{file} must have a column {name!r}, got {', '.join(map(repr, header))}.")
    notes = []
    if text is None:
        of_text = [name for name in of_text if name != label]
        called_text = [name for name in of_text if name.lower() == "text"]
        no_titles = [name for name in of_text if name.lower() not in TITLES]
        likely = [names[0] for names in (of_text, called_text, no_titles) if len(names) == 1]
        if not likely:
            got = ", ".join(map(repr, of_text)) if of_text else f"none among {', '.join(map(repr, header))}"
            advice = "name it with text_column (--text-column on the command line)"
            raise ValueError(f"{file} must have one column of text, got {got}: {advice}.")
        text = likely[0]
        notes = [f"The texts are in column {text!r}."] if len(header) > 1 else []
    texts = ["" if cell is None else str(cell) for cell in cells(text)]
    title = next((name for name in header if name.lower() in TITLES and name != text), None)
    titles = [""] * len(texts) if title is None else _stripped(cells(title))
    names = [cell or f"row {number}" for number, cell in enumerate(titles, start=1)]
    return Texts(texts, names, notes, None if label is None else _stripped(cells(label)))


def _stripped(cells: Sequence[object]) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in cells]
