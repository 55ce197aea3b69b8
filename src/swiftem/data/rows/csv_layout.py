"""Layout of a CSV file: delimiter, decimal point, header, and numeric columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from swiftem.data.documents.formats.lines import decode_line

__all__ = ["BOOLS", "NULLS", "CsvLayout", "is_missing", "layout_of", "number_in", "records"]

DELIMITERS = ("\t", ";", ",", " ")
"""In this order: a decimal comma is no delimiter if there are semicolons. A space is any white space."""
PIECE = 1 << 18
"""Bytes read at a time."""
PEEKED = 1000
"""Number of records examined."""
SNIFFED = 20
"""Lines that must have the same number of cells for a delimiter."""
MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "+nan", "-nan", "null", "none", "?", "."})
"""Texts for a missing value, in lower case."""
NULLS = sorted(
    {form for text in MISSING for form in (text, text.upper(), text.title(), text.replace("nan", "NaN"))}
)
"""How they are written: pyarrow compares them as they are."""
BOOL = "true or false"
BOOLS = {"true": 1.0, "false": 0.0}
"""Texts for true and false, in lower case."""
TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?( ?(z|utc|[+-]\d{2}:?\d{2}))?"
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = "|".join(
    (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
        r"\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})",
        rf"\d{{1,2}}[- ]{MONTH}[- ,]+\d{{2,4}}",
        rf"{MONTH} \d{{1,2}},? \d{{4}}",
    )
)
NOT_TEXT = {
    "dates": re.compile(rf"({DATE})([t ]+{TIME})?", re.IGNORECASE),
    "times": re.compile(TIME, re.IGNORECASE),
    "durations": re.compile(
        rf"-?\d+ days?,?( *[+-]?{TIME})?|-?p(\d+[ymwd])*(t(\d+([.,]\d+)?[hms])+)?", re.IGNORECASE
    ),
    "lists": re.compile(r"\[.*\]|\(.*,.*\)", re.DOTALL),
}
"""How columns that are neither numbers nor text are written."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class CsvLayout:
    """Layout found in the first records.

    Attributes
    ----------
    delimiter, decimal : str
        Between cells; in numbers.
    names : tuple of str
        From the header; empty if there is none, because the first line has only numbers.
    unfit : tuple of str
        Why a column cannot be data, one text per column; empty if it can.
    header_lines : int
        Lines before the first row.
    bools : tuple of int
        Columns of true and false, which are 1 and 0.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    unfit: tuple[str, ...]
    header_lines: int
    bools: tuple[int, ...] = ()


def is_missing(cell: str) -> bool:
    """Tell whether a cell marks a missing value.

    >>> is_missing(" NA"), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING


def number_in(cell: str, decimal: str = ".") -> float | None:
    """Return the number in a cell, or None.

    >>> number_in("1.5e3"), number_in("1,5", decimal=","), number_in("red"), number_in("2021_01")
    (1500.0, 1.5, None, None)
    """
    if "_" in cell:  # allowed in Python's numbers only
        return None
    try:
        return float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return None


def lines(file: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file; errors name the line.

    Lines end in LF, CRLF or CR, as in files from old Macs and some current tools.
    """
    with file.open("rb") as stream:
        for number, line in enumerate(_split(stream), start=1):
            yield decode_line(line, file, number)


def _split(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream with their ends, of any kind."""
    rest: list[bytes] = []
    while piece := stream.read(PIECE):
        rest.append(piece)
        if b"\n" in piece or b"\r" in piece:
            # The last line may continue, and a CR at its end may be half of a CRLF.
            *whole, last = b"".join(rest).splitlines(keepends=True)
            yield from whole
            rest = [last]
    yield from b"".join(rest).splitlines(keepends=True)


def records(file: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line (from 1) that a record ends in, and its cells; empty lines are skipped."""
    found = lines(file)
    reader = csv.reader(
        map(_spaced, found) if delimiter == " " else found, delimiter=delimiter, skipinitialspace=True
    )
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(
            f"{file} must be a table in CSV, got something else in line {reader.line_num} ({error})."
        ) from None


def _spaced(line: str) -> str:
    """Return a line whose cells are separated by spaces, with repeated spaces replaced by one."""
    return line.replace("\t", " ").strip()


def layout_of(file: Path) -> CsvLayout:
    """Return the layout; raise ValueError for a file without rows."""
    delimiter = _delimiter(file)
    peeked = list(islice(records(file, delimiter), PEEKED + 1))
    if not peeked:
        what = "only empty lines" if file.stat().st_size else "an empty file"
        raise ValueError(f"{file} must have column names in its first line and rows below, got {what}.")
    first_line, first = peeked[0]
    decimal = _decimal(delimiter, [cells for _, cells in peeked])
    known = [cell for cell in first if not is_missing(cell)]
    has_header = not known or any(number_in(cell, decimal) is None for cell in known)
    rows = peeked[1:] if has_header else peeked
    if not rows:
        raise ValueError(f"{file} must have at least one row below its column names, got none.")
    names = tuple(cell.strip() for cell in first) if has_header else ()
    unfit = tuple(
        "no name" if names and not names[number] else _unfit([cells for _, cells in rows], number, decimal)
        for number in range(len(first))
    )
    bools = tuple(number for number, why in enumerate(unfit) if why == BOOL)
    unfit = tuple("" if why == BOOL else why for why in unfit)
    return CsvLayout(delimiter, decimal, names, unfit, first_line if has_header else 0, bools)


def _delimiter(file: Path) -> str:
    """Return the delimiter that divides the first lines equally, in two or more cells; else the commonest."""
    sniffed = [line for line in islice(lines(file), SNIFFED) if line.strip()]
    widths: dict[str, list[int]] = {}
    for delimiter in DELIMITERS:
        these = map(_spaced, sniffed) if delimiter == " " else sniffed
        try:
            reader = csv.reader(these, delimiter=delimiter, skipinitialspace=True)
            widths[delimiter] = [len(cells) for cells in reader if cells]
        except csv.Error:
            widths[delimiter] = []
        found = widths[delimiter]
        if found and found[0] > 1 and len(set(found)) == 1:
            return delimiter
    # Names of columns may have spaces: they delimit only if the lines below have as many.
    by_space = widths.pop(" ") or [0]
    likeliest = max(reversed(DELIMITERS[:-1]), key=lambda delimiter: (widths[delimiter] or [0])[0])
    is_spaced = by_space[0] > 1 and 2 * by_space.count(by_space[0]) > len(by_space)
    return " " if is_spaced and (widths[likeliest] or [0])[0] <= 1 else likeliest


def _decimal(delimiter: str, peeked: list[list[str]]) -> str:
    """Return the comma if semicolons delimit and numbers have commas, and none has a point."""
    if delimiter != ";":
        return "."
    cells = [cell for record in peeked for cell in record]
    with_point = any("." in cell and number_in(cell) is not None for cell in cells)
    return "," if not with_point and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells) else "."


def _unfit(rows: list[list[str]], number: int, decimal: str) -> str:
    """Return why a column cannot be data: its first value decides.

    Text further down is a mistake in the file, and an error: leaving the column out would hide it.
    """
    cells = [cells[number].strip() for cells in rows if number < len(cells) and not is_missing(cells[number])]
    if not cells:
        return "no values"
    if number_in(cells[0], decimal) is not None:
        return ""
    if all(cell.lower() in BOOLS for cell in cells):
        return BOOL
    for what, form in NOT_TEXT.items():
        if all(form.fullmatch(cell) for cell in cells):
            return what
    return "text"
