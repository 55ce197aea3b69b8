"""Counts in lines of text, "row column count", from 1: common to UCI's bags of words and MatrixMarket.

The lines are parsed by SciPy's compiled reader of MatrixMarket. It crashes on unexpected bytes (a NUL, a
blank at the very end), reads 1.5 as 1, and allocates arrays of whatever size a file claims. Therefore its
input is validated here first, by one pattern for all lines. Python reads line by line only to name the line
that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from swiftem._typing import Array
from swiftem.data.documents.formats.lines import shortened_number, whole_number

__all__ = ["EntryLines", "Field", "whole_numbers"]

Field = Literal["integer", "real", "pattern"]
INTEGER, SIGNED = rb"[0-9]++", rb"[+-]?+[0-9]++"
REAL = rb"[+-]?+(?:(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+|(?i:nan|inf(?:inity)?+))"
MOST_COUNT = 2**63 - 1
LONG = 18
"""Digits of a number that are rare enough to be read one by one."""


@dataclass(frozen=True)
class EntryLines:
    """What the header of a file says about its lines.

    Parameters
    ----------
    file : Path
        For messages.
    shape : pair of int
        Rows and columns.
    n_entries, said_in : int
        Number of entries, and the number of the line that says so.
    rows, columns : str
        Their names in messages.
    field : {"integer", "real", "pattern"}
        Type of an entry's value.
    layout : {"coordinate", "array"}
        Whether entries have positions, or are all entries of a dense matrix, by columns.
    symmetry : str
        As in MatrixMarket.
    """

    file: Path
    shape: tuple[int, int]
    n_entries: int
    said_in: int
    rows: str = "rows"
    columns: str = "columns"
    field: Field = "integer"
    layout: Literal["coordinate", "array"] = "coordinate"
    symmetry: str = "general"

    def _line(self, integer: bytes = INTEGER) -> bytes:
        """Return the regular expression of a line, which may be empty."""
        place = [integer, integer] if self.layout == "coordinate" else []
        value = {"integer": [integer], "real": [REAL], "pattern": []}[self.field]
        # Possessive, so that there is no backtracking: files have up to 10^8 lines.
        return rb"[ \t]*+(?:" + rb"[ \t]++".join(place + value) + rb")?+[ \t\r]*+"

    def are_lines(self, content: bytes, start: int = 0) -> bool:
        """Tell whether ``content`` from ``start`` on has only entries and empty lines."""
        line = self._line()
        return re.compile(rb"(?:" + line + rb"\n)*+" + line).fullmatch(content, start) is not None

    def read(self, content: bytes, start: int, first_line: int) -> Any:
        """Return the entries as a sparse matrix in COO form, or an array; or raise an error with the line.

        Parameters
        ----------
        content : bytes
            The file; lines begin at ``start``, with number ``first_line``.
        """
        import io

        from scipy.io import mmread

        if 0 in self.shape:  # the reader divides by it
            raise ValueError(
                f"{self.file} must have at least one of its {self.rows} and {self.columns}, got shape "
                f"{self.shape} in line {self.said_in}."
            )
        enough = content.count(b"\n", start) + 1 >= self.n_entries
        if not (enough and self.are_lines(content, start)):
            raise self.fault(content[start:], first_line)
        size = f"{self.shape[0]} {self.shape[1]}" + (
            f" {self.n_entries}" if self.layout == "coordinate" else ""
        )
        head = f"%%MatrixMarket matrix {self.layout} {self.field} {self.symmetry}\n{size}\n"
        end = len(content.rstrip(b" \t\r\n"))
        text = b"".join((head.encode(), memoryview(content)[start:end], b"\n"))
        try:
            return mmread(io.BytesIO(text), spmatrix=False)
        except (ValueError, OverflowError) as error:
            raise self.fault(content[start:], first_line, str(error)) from None

    def fault(self, content: bytes, first_line: int, reason: str = "") -> ValueError:
        """Return an error for the first wrong line, for the number of lines, or with the ``reason``."""
        seen = 0
        for number, line in self._lines(content, first_line):
            seen += 1
            sentence = self._wrong(line, number)
            if sentence:
                return ValueError(sentence)
        if seen != self.n_entries:
            return self.miscounted(seen)
        # Numbers out of the reader's range, or mirrored entries outside the matrix.
        reason = re.sub(r"^Line \d+: ", "", reason).strip().rstrip(".")
        return ValueError(f"{self.file} must have entries of a matrix in its lines, got others ({reason}).")

    def first_fault(self, content: bytes, first_line: int) -> ValueError | None:
        """Return a sentence on the first wrong line, or None."""
        found = (self._wrong(line, number) for number, line in self._lines(content, first_line))
        sentence = next((sentence for sentence in found if sentence), None)
        return None if sentence is None else ValueError(sentence)

    def miscounted(self, seen: int) -> ValueError:
        """Return the error for a wrong number of entries."""
        return ValueError(
            f"{self.file} must have {self.n_entries:,} entries, as its line {self.said_in} says, "
            f"got {seen:,}."
        )

    def _lines(self, content: bytes, first_line: int) -> Iterator[tuple[int, bytes]]:
        lines = enumerate(content.split(b"\n"), start=first_line)
        return ((number, line) for number, line in lines if line.strip(b" \t\r"))

    def _wrong(self, line: bytes, number: int) -> str:
        """Return a sentence on what is wrong in a line, or nothing."""
        if not re.fullmatch(self._line(SIGNED), line):
            got = line.decode("utf-8", "replace").rstrip("\r")[:40]
            return f"{self.file} must have {self._wanted()} in each line, got {got!r} in line {number}."
        cells = line.decode("ascii").split()
        if self.layout == "coordinate":
            pairs = zip((self.rows, self.columns), cells[:2], self.shape, strict=True)
            for what, cell, most in pairs:
                if not 1 <= whole_number(cell) <= most:
                    got = shortened_number(cell)
                    return f"{self.file} must have {what} from 1 to {most}, got {got} in line {number}."
        if self.field == "integer" and not 0 <= whole_number(cells[-1]) <= MOST_COUNT:
            got = shortened_number(cells[-1])
            return f"{self.file} must have counts of at least 0, got {got} in line {number}."
        return ""

    def _wanted(self) -> str:
        value = {"integer": ["count"], "real": ["number"], "pattern": []}[self.field]
        names = (
            [self.rows.rstrip("s"), self.columns.rstrip("s"), *value]
            if self.layout == "coordinate"
            else value
        )
        articles = [f"a {name}" for name in names]
        listed = " and ".join(filter(None, [", ".join(articles[:-1]), articles[-1]]))
        whole = {1: "a whole number", 2: "two whole numbers", 3: "three whole numbers"}
        return f"{listed}, {whole[len(names)]}," if self.field != "real" else listed


def whole_numbers(content: bytes) -> Array:
    r"""Return the numbers of lines that have only digits and white space, exact up to 2^53.

    All numbers get their next digit at once: several times as fast as to read each of them.

    >>> whole_numbers(b" 12 007\t3\r\n40 5 6\n")
    array([12.,  7.,  3., 40.,  5.,  6.])
    """
    raw = np.frombuffer(content, dtype=np.uint8)
    is_digit = np.zeros(len(raw) + 2, dtype=bool)
    is_digit[1:-1] = raw >= ord("0")
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1])
    begin, size = edges[::2], edges[1::2] - edges[::2]
    longest = int(size.max(initial=0))
    if longest > LONG:
        return np.array(content.split(), dtype=np.float64)
    found = np.zeros(len(begin))
    here = np.arange(len(begin))
    for place in range(longest):
        here = here[size[here] > place]
        found[here] = 10.0 * found[here] + (raw[begin[here] + place] - float(ord("0")))
    return found
