"""Text files: their bytes and lines, vocabularies, and documents in lines, folders and tables."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from swiftem.core.checks import shortened
from swiftem.data.documents.counts import UNPACKED, Entries, FileDocuments, PathName, Texts, most_bytes
from swiftem.data.documents.words import count_known_words
from swiftem.data.table_files import check_rows, opened

GZIP = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes read at a time."""
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
STRING = re.compile(r"(dictionary<values=)?(large_)?string")
"""Types of Arrow that hold text."""
TITLES = ("title", "name", "id")
LONGEST_CELL = 1 << 30


def existing_file(path: PathName, what: str) -> Path:
    """Return ``path`` if it is a file; ``what`` describes in a message what it should be.

    >>> existing_file("no-such-file", "a vocabulary, one word per line")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no-such-file must be a vocabulary, one word per line, but does not exist.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be {what}, got a folder.")
    if not file.exists():
        raise FileNotFoundError(f"{file} must be {what}, but does not exist.")
    return file


def read_pieces(path: PathName, what: str) -> Iterator[bytes]:
    r"""Yield the bytes of a file in pieces of about 1 MB, cut at the ends of lines.

    A file compressed with gzip is unpacked, whatever its name.

    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.gz")
    ...     _ = file.write_bytes(gzip.compress(b"rice\nfish\n"))
    ...     list(read_pieces(file, "a text file"))
    [b'rice\nfish\n']
    """
    file = existing_file(path, what)
    with file.open("rb") as raw:
        is_packed = raw.read(2) == GZIP
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
        size, rest = 0, list[bytes]()  # the beginning of a line that is longer than a piece
        try:
            while content := stream.read(PIECE):
                size += len(content)
                if is_packed:
                    check_unpacked(file, size, raw.tell())
                lines, end, beginning = content.rpartition(b"\n")
                if end:
                    yield b"".join([*rest, lines, end])
                    rest = []
                rest.append(beginning)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            reason = (str(error).rstrip(".") or type(error).__name__).lower()
            raise ValueError(f"{file} must be a whole gzip file, got a damaged one ({reason}).") from None
        if last := b"".join(rest):
            yield last


def check_unpacked(file: Path, size: int, packed_size: int) -> None:
    """Raise ValueError if the content of a compressed file takes much more memory than the file."""
    if size > most_bytes(packed_size):
        advice = "store it without compression if this is intended"
        raise ValueError(
            f"{file} must be at most {UNPACKED} times as large when unpacked, got more: {advice}."
        )


def read_lines(path: PathName, what: str = "a text file") -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and the text of each line of a UTF-8 file, without its end: LF, CRLF or CR.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "three.txt")
    ...     _ = file.write_bytes(b"rice\n\nfish\r\n")
    ...     list(read_lines(file))
    [(1, 'rice'), (2, ''), (3, 'fish')]
    """
    number = 1
    for piece in read_pieces(path, what):
        content = piece.removeprefix(codecs.BOM_UTF8) if number == 1 else piece
        lines = _decode(content.removesuffix(b"\n"), path, number).split("\n")
        if len(lines) == 1:  # a file without a line feed has lines that end in CR
            lines = lines[0].removesuffix("\r").split("\r")
        for line in lines:
            yield number, line.rstrip("\r")
            number += 1


def _decode(content: bytes, path: PathName, first_line: int) -> str:
    """Return lines as text, or raise ValueError that names the first wrong one."""
    place, advice = content.find(b"\0"), "it is a binary file, or UTF-16"
    if place < 0:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            place, advice = error.start, "convert the file first"
    got = f"the byte 0x{content[place]:02x}" if content[place] else "a NUL byte"
    line = first_line + content.count(b"\n", 0, place)
    raise ValueError(f"{path} must be text in UTF-8, got {got} in line {line}: {advice}.")


def filled_lines(path: PathName, what: str = "a text file") -> Iterator[tuple[int, str]]:
    """Yield the lines of :func:`read_lines` that have more than white space."""
    return ((number, line) for number, line in read_lines(path, what) if line and not line.isspace())


def read_vocabulary(path: PathName) -> tuple[str, ...]:
    r"""Return the words of a file with one word per line: the first is word 0 (1 in UCI files).

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, a line is empty, or a word occurs twice; the message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_vocabulary
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "vocab.txt")
    ...     _ = file.write_text("fish\nrice\n")
    ...     read_vocabulary(file)
    ('fish', 'rice')
    """
    line_of: dict[str, int] = {}
    for number, line in filled_lines(path, "a vocabulary, one word per line"):
        word = line.strip()
        if number > len(line_of) + 1:  # empty lines at the end are ignored, one in between would shift words
            raise ValueError(f"{path} must have a word in every line, got none in line {len(line_of) + 1}.")
        if word in line_of:
            where = f"lines {line_of[word]} and {number}"
            raise ValueError(f"{path} must have each word once, got {word!r} in {where}.")
        line_of[word] = number
    if not line_of:
        raise ValueError(f"{path} must have at least one word, got none.")
    return tuple(line_of)


def vocabulary_beside(file: Path, vocabulary: PathName | None, n_words: int = 0) -> tuple[str, ...] | None:
    """Return the words of counts: of a given file, or of one next to the counts; None if there is none.

    For ``docword.nips.txt.gz`` it is ``vocab.nips.txt``; for ``ap.dat`` one of ``ap.vocab``,
    ``ap.vocab.txt``, ``vocab.ap.txt`` and ``vocab.txt``. A file that is not given and has another number of
    words than ``n_words`` belongs to other counts, unless it has the name of UCI's vocabularies.

    >>> vocabulary_beside(Path("/nowhere/docword.nips.txt"), None) is None
    True
    """
    name = file.name.removesuffix(".gz")
    is_guess = vocabulary is None and not name.startswith("docword.")
    if vocabulary is None:
        stem = name.rpartition(".")[0] or name
        names = [f"{stem}.vocab", f"{stem}.vocab.txt", f"vocab.{stem}.txt", "vocab.txt"]
        beside = [file.with_name(other) for other in ["vocab." + name.removeprefix("docword."), *names]]
        vocabulary = next((path for path in beside if path.is_file() and path != file), None)
    if vocabulary is None:
        return None
    words = read_vocabulary(vocabulary)
    if n_words in (0, len(words)):
        return words
    if is_guess:
        return None
    raise ValueError(f"{vocabulary} must have the {n_words:,} words of {file}, got {len(words):,}.")


def open_texts(file: Path, words: Sequence[str] | PathName) -> FileDocuments:
    """Return the texts of a file, one per line, counted in given words.

    Parameters
    ----------
    file : path
        A UTF-8 file, compressed with gzip or not.
    words : sequence of str, or path
        The vocabulary, or a file with one word per line. :func:`swiftem.data.count_words` defines words.
    """
    known = read_vocabulary(words) if isinstance(words, str | os.PathLike) else tuple(words)
    if not known:
        raise ValueError("words must have at least one word, got none.")

    def read() -> Iterator[tuple[int, Entries]]:
        n_documents, lines = 0, filled_lines(file, TEXT)
        while texts := [line for _, line in islice(lines, LINES)]:
            counts, kept, _ = count_known_words(texts, known, None)
            entries = counts.tocoo()
            table = np.stack([n_documents + kept[entries.row], entries.col, entries.data], axis=1)
            n_documents += len(texts)
            yield n_documents, table

    return FileDocuments(file, "text", read, len(known), known)


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
    names = []
    for base, folders, files in os.walk(folder):
        inside = Path(base)
        folders[:] = [name for name in folders if name[0] != "." and (inside / name).resolve() != leave_out]
        # Opening pipes and sockets would block.
        visible = [inside / name for name in files if name[0] != "." and (inside / name).is_file()]
        names += [file.relative_to(folder).as_posix() for file in visible]
    return sorted(names)


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
        of_text = [column.name for column in schema if STRING.match(str(column.type))]
        if not n_rows:
            raise ValueError(f"{file} must have at least one row, got none.")
        check_rows(file, n_rows, 3, "split it into several files")
        cells = lambda name: stored.read(columns=[name]).column(name).to_pylist()  # noqa: E731
        return _texts(file, schema.names, of_text, cells, text_column, label_column)


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
