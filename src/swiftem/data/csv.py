"""Tables in CSV files, read by pyarrow."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from swiftem.core.checks import shortened, shown
from swiftem.core.source import Access
from swiftem.data.columns import Columns, Header
from swiftem.data.table_files import ArrowArray, ArrowBatch, TableFile

HEAD_BYTES, LONGEST_LINE = 1 << 16, 1 << 26
"""Bytes that are examined for the layout, and most bytes of the first line."""
HEAD_ROWS = 1000
"""Number of rows examined for the contents of columns."""
BLOCK_BYTES = 1 << 18
"""Bytes of text that pyarrow reads at a time in a stream; it holds some dozens of such blocks."""
DELIMITERS = ("\t", ";", ",")
"""In this order: a decimal comma is no delimiter if there are semicolons."""
MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "+nan", "-nan", "null", "none", "?", ".")
"""Texts for a missing value, in lower case."""
NULLS = [
    space + form
    for text in MISSING
    for form in {text, text.upper(), text.title(), text.replace("nan", "NaN")}
    for space in ("", " ")
]
"""How they are written: pyarrow compares them as they are."""
BOOL = "true or false"
TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?( ?(z|utc|[+-]\d{2}:?\d{2}))?"
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})|"
    rf"\d{{1,2}}[- ]{MONTH}[- ,]+\d{{2,4}}|{MONTH} \d{{1,2}},? \d{{4}}"
)
CONTENTS = {
    BOOL: "true|false",
    "dates": rf"({DATE})([t ]+{TIME})?",
    "times": TIME,
    "durations": rf"-?\d+ days?,?( *[+-]?{TIME})?|-?p(\d+[ymwd])*(t(\d+([.,]\d+)?[hms])+)?",
    "lists": r"\[.*\]|\(.*,.*\)",
}
"""How columns that are neither numbers nor text are written."""
ROW = r"(?:Row #\d+: )?"
BAD_CELL = rf"In CSV column #(?P<column>\d+): {ROW}CSV conversion error to \w+: invalid value '(?P<cell>.*)'"
BAD_TEXT = rf"In CSV column #\d+: {ROW}CSV conversion error to string"
BAD_WIDTH = rf"CSV parse error: {ROW}Expected (?P<width>\d+) columns, got (?P<cells>\d+)"
"""Errors of pyarrow. It numbers rows from 1, with the header and without empty lines."""


class CsvFile(TableFile):
    """A CSV file; delimiter, decimal point, header and contents of columns are found in its first rows.

    Parameters
    ----------
    file : Path
        Text in UTF-8.
    """

    access: ClassVar[Access] = "sequential"
    reading: ClassVar[int] = 32 * 10**6

    def __init__(self, file: Path) -> None:
        self._file = file
        lines, is_cut = self._head()
        self._skipped = next(number for number, line in enumerate(lines) if line.strip())
        self._block = max(BLOCK_BYTES, 32 * max(map(len, lines)))
        self._delimiter = _delimiter(lines)
        first, *below = self._cells(lines)[: -1 if is_cut else None]
        self._decimal = _decimal(first, *below) if self._delimiter == ";" else "."
        given = [cell for cell in first if not self.is_missing(cell)]
        self._has_header = not given or any(number_in(cell, self._decimal) is None for cell in given)
        names = tuple(cell.strip() for cell in first) if self._has_header else ()
        rows = below if names else [first, *below]
        if not rows:
            raise ValueError(f"{file} must have at least one row below its column names, got none.")
        # Rows of another length are an error when they are read.
        rows = [row for row in rows if len(row) == len(first)] or [["0"] * len(first)]
        contents = [self._contents(column) for column in zip(*rows, strict=True)]
        self._bools = {number for number, what in enumerate(contents) if what == BOOL}
        unfit = ["" if what == BOOL else what for what in contents]
        if names:
            unfit = [what if name else "no name" for name, what in zip(names, unfit, strict=True)]
        self.header = Header(file, names, unfit)
        numbers = shortened([name for name in names if number_in(name) is not None])
        if not names:
            self.notes = (f"{file} has numbers in its first line: read as a row, its columns have no names.",)
        elif numbers:
            self.notes = (f"{file} has numbers in its first line ({numbers}): read as names of columns.",)

    def is_missing(self, cell: str | None) -> bool:
        """Return whether a cell marks a missing value."""
        return cell is None or cell.strip().lower() in MISSING

    def _head(self) -> tuple[list[str], bool]:
        """Return the first lines, at least two if there are as many, and whether there are more."""
        with self._file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            while head.count(b"\n") < 3 and (line := stream.readline(LONGEST_LINE)):
                head += line
            is_cut = bool(stream.read(1))
        if b"\0" in head:
            raise self._not_text("a NUL byte", "it is a binary file, or UTF-16")
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
        except UnicodeDecodeError as error:
            raise self._not_text(f"the byte 0x{head[error.start]:02x}") from None
        if not text.strip():
            what = "only empty lines" if text else "an empty file"
            raise ValueError(
                f"{self._file} must have column names in its first line and rows below, got {what}."
            )
        return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text), is_cut

    def _cells(self, lines: Sequence[str]) -> list[list[str]]:
        """Return the cells of the first rows."""
        if self._delimiter == " ":
            lines = [" ".join(line.split()) for line in lines]
        reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True)
        try:
            return list(islice((row for row in reader if any(map(str.strip, row))), HEAD_ROWS + 1))
        except csv.Error as error:
            raise ValueError(f"{self._file} must be a table in CSV, got something else ({error}).") from None

    def _contents(self, cells: Sequence[str]) -> str:
        """Return why a column cannot be data, or nothing: its first value decides.

        Text further down is a mistake in the file, and an error: leaving the column out would hide it.
        """
        given = [cell.strip() for cell in cells if not self.is_missing(cell)]
        if not given:
            return "no values"
        if number_in(given[0], self._decimal) is not None:
            return ""
        for what, form in CONTENTS.items():
            if all(re.fullmatch(form, cell, re.IGNORECASE | re.DOTALL) for cell in given):
                return what
        return "text"

    def read(self, columns: Columns) -> list[ArrowArray]:
        """Return whole columns of numbers and of text, read on all cores."""
        import pyarrow as pa
        from pyarrow.csv import read_csv

        try:
            table = read_csv(self._stream(), **self._options(columns))
        except pa.ArrowInvalid:  # one thread finds the row
            return super().read(columns)
        return _trimmed(table.columns, columns)

    def batches(self, columns: Columns, groups: Sequence[int], rows: int) -> Iterator[ArrowBatch]:
        """Yield columns of numbers and of text, some blocks of bytes at a time."""
        import pyarrow as pa
        from pyarrow.csv import open_csv

        options = self._options(columns, block_size=self._block, use_threads=False)
        first = 0
        try:
            # Pyarrow's own allocator would not return free memory.
            with open_csv(self._stream(), **options, memory_pool=pa.system_memory_pool()) as reader:
                for batch in reader:
                    yield first, _trimmed(batch.columns, columns)
                    first += batch.num_rows
        except pa.ArrowException as error:
            raise self._error(str(error)) from None

    def _stream(self) -> Any:
        """Return the open file, with one space between cells if white space delimits them."""
        import pyarrow as pa

        stream = pa.OSFile(str(self._file))
        return pa.TransformInputStream(stream, _squeezer()) if self._delimiter == " " else stream

    def _options(self, columns: Columns, **reading: int) -> dict[str, Any]:
        """Return the options of pyarrow's readers for columns of numbers and of text."""
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

        types = {
            str(number): pa.bool_() if number in self._bools else pa.float64() for number in columns.numbers
        }
        types |= {str(number): pa.string() for number in columns.others}
        return {
            "read_options": ReadOptions(
                column_names=[str(number) for number in range(len(self.header.unfit))],
                skip_rows=self._skipped,
                skip_rows_after_names=int(self._has_header),
                **reading,
            ),
            "parse_options": ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=_skip_empty
            ),
            "convert_options": ConvertOptions(
                column_types=types,
                include_columns=[*types],
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
                null_values=NULLS,
                decimal_point=self._decimal,
            ),
        }

    def _error(self, reason: str) -> ValueError:
        """Return the error for what pyarrow says."""
        match = re.match(f"{BAD_CELL}|{BAD_WIDTH}|{BAD_TEXT}", reason, re.DOTALL)
        if match is None:
            said = reason.splitlines()[0][:200].rstrip(".")
            return ValueError(f"{self._file} must be a table in CSV, got something else ({said}).")
        parts = match.groupdict()
        row = re.search(r"Row #(\d+)", reason)
        where = f"row {int(row[1]) - 1 - self._skipped - self._has_header} (from 0)" if row else "some row"
        if parts["width"]:
            width, cells = (f"{n} cell{'s' * (n != '1')}" for n in (parts["width"], parts["cells"]))
            return ValueError(f"{self._file} must have {width} in every row, got {cells} in {where}.")
        if parts["cell"] is None:
            return self._not_text(f"other bytes in {where}")
        cell, column = shown(parts["cell"]), self.header.label(int(parts["column"]))
        return ValueError(
            f"{self._file} must have a number in every cell, got {cell} in column {column!r}, {where}: "
            "correct it, or omit the column."
        )

    def _not_text(self, got: str, advice: str = "convert the file") -> ValueError:
        return ValueError(f"{self._file} must be text in UTF-8, got {got}: {advice}.")


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


def _delimiter(lines: Sequence[str]) -> str:
    r"""Return the delimiter that the first two lines have equally often; else the first line's commonest.

    >>> _delimiter(["a;b\n", "1,5;2"]), _delimiter(["in cm\n", "1"]), _delimiter(["a  b\n", " 1 2"])
    (';', ',', ' ')
    """
    text = re.sub('"[^"]*"', "x", "".join(lines))
    first, *others = [line for line in re.split(r"[\r\n]", text) if line.strip()]
    second = others[0] if others else first
    for delimiter in DELIMITERS:
        if first.count(delimiter) == second.count(delimiter) > 0:
            return delimiter
    if len(first.split()) == len(second.split()) > 1:
        return " "
    return max(",", ";", "\t", key=first.count)


def _decimal(*rows: Sequence[str]) -> str:
    """Return the comma if numbers have commas, and none has a point."""
    cells = [cell for row in rows for cell in row]
    signs = {sign for sign in ",." for cell in cells if sign in cell and number_in(cell, sign) is not None}
    return "," if signs == {","} else "."


def _skip_empty(row: Any) -> str:
    """Tell pyarrow to skip a line of white space, and that another number of cells is an error."""
    return "error" if row.text.strip() else "skip"


def _trimmed(arrays: list[ArrowArray], columns: Columns) -> list[ArrowArray]:
    """Return Arrow arrays without white space around text, which is in the columns after the numbers."""
    from pyarrow.compute import utf8_trim_whitespace

    width = len(columns.numbers)
    return [*arrays[:width], *map(utf8_trim_whitespace, arrays[width:])]


def _squeezer() -> Callable[[bytes], bytes]:
    r"""Return a function that replaces white space between cells by one space, block by block.

    >>> squeeze = _squeezer()
    >>> squeeze(b"  a \t b\n 1  "), squeeze(b"  2 \n")
    (b'a b\n1', b' 2\n')
    """
    tail = b"\n"  # the last byte, and white space that may be at the end of a line

    def squeeze(block: bytes) -> bytes:
        nonlocal tail
        text = re.sub(rb"[ \t]+", b" ", tail + bytes(block))
        text = re.sub(rb" ?([\r\n]) ?", rb"\1", text)
        end = len(text.rstrip(b" "))
        tail = text[end - 1 :]
        return text[1:end]

    return squeeze
