"""Counts in lines "row column count", numbered from 1: UCI's bags of words and MatrixMarket.

The lines are parsed by SciPy's compiled reader of MatrixMarket. It crashes on unexpected bytes (a NUL, a
blank at the very end), reads 1.5 as 1, and allocates arrays of whatever size a file claims. Therefore one
pattern validates all lines first. Python reads line by line only to name the wrong line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from swiftem.data.documents.readers.lines import shortened_number, whole_number

__all__ = ["EntryLines", "Field"]

Field = Literal["integer", "real", "pattern"]
INTEGER, SIGNED = rb"[0-9]++", rb"[+-]?+[0-9]++"
REAL = rb"[+-]?+(?:(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+|(?i:nan|inf(?:inity)?+))"
BLANK = re.compile(rb"\n[ \t\r]*+(?=\n)")
"""A line between others that has only white space."""
MOST_COUNT = 2**53
"""Largest count: larger ones are not exact in float64."""


@dataclass(frozen=True)
class EntryLines:
    """What the header of a file says about its lines.

    Parameters
    ----------
    file : Path
        For messages.
    shape : pair of int
        Rows and columns, at least one of each.
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

    def read(self, pieces: Iterable[bytes], first_line: int) -> Iterator[Any]:
        """Yield the entries of each piece as a sparse matrix in COO form, or an array.

        Parameters
        ----------
        pieces : iterable of bytes
            Whole lines, of which the first is number ``first_line`` of the file; all lines of an array.

        Raises
        ------
        ValueError
            With the number of the first wrong line, or for a wrong number of entries.
        """
        line = self._line(INTEGER)
        valid = re.compile(rb"(?:" + line + rb"\n)*+" + line)
        seen, number = 0, first_line
        for content in pieces:
            if not valid.fullmatch(content):
                raise self._fault(content, number)
            text = content.strip()
            count = text.count(b"\n") + 1 - len(BLANK.findall(text)) if text else 0
            seen += count
            if seen > self.n_entries or (self.layout == "array" and seen < self.n_entries):
                raise self._miscounted(seen)
            try:
                yield self._parsed(text, count)
            except (ValueError, OverflowError):  # a number out of range
                raise self._fault(content, number) from None
            number += content.count(b"\n")
        if seen < self.n_entries:
            raise self._miscounted(seen)

    def _parsed(self, text: bytes, count: int) -> Any:
        from scipy.io import mmread
        from scipy.sparse import coo_array

        if not count:
            return coo_array(self.shape, dtype=int)
        size = f"{self.shape[0]} {self.shape[1]}" + (f" {count}" if self.layout == "coordinate" else "")
        head = f"%%MatrixMarket matrix {self.layout} {self.field} {self.symmetry}\n{size}\n"
        return mmread(io.BytesIO(b"".join((head.encode(), text, b"\n"))), spmatrix=False)

    def _line(self, integer: bytes) -> bytes:
        """Return the regular expression of a line, which may be empty."""
        places = [integer, integer] if self.layout == "coordinate" else []
        value = {"integer": [integer], "real": [REAL], "pattern": []}[self.field]
        # Possessive, so that there is no backtracking: files have up to 10^8 lines.
        return rb"[ \t]*+(?:" + rb"[ \t]++".join(places + value) + rb")?+[ \t\r]*+"

    def _miscounted(self, seen: int) -> ValueError:
        wanted = f"{self.n_entries:,} entries, as its line {self.said_in} says"
        more = " or more" if seen > self.n_entries else ""
        return ValueError(f"{self.file} must have {wanted}, got {seen:,}{more}.")

    def _fault(self, content: bytes, first_line: int) -> ValueError:
        """Return the error for the first wrong line."""
        lines = enumerate(content.split(b"\n"), start=first_line)
        faults = (self._wrong(line, number) for number, line in lines if line.strip(b" \t\r"))
        other = f"{self.file} must have entries of a matrix in its lines, got others."
        return ValueError(next(filter(None, faults), other))

    def _wrong(self, line: bytes, number: int) -> str:
        """Return a sentence on what is wrong in a line, or nothing."""
        if not re.fullmatch(self._line(SIGNED), line):
            got = line.decode("utf-8", "replace").rstrip("\r")[:40]
            return f"{self.file} must have {self._wanted()} in each line, got {got!r} in line {number}."
        cells = line.decode("ascii").split()
        if self.layout == "coordinate":
            for what, cell, most in zip((self.rows, self.columns), cells, self.shape, strict=False):
                if not 1 <= whole_number(cell) <= most:
                    got = shortened_number(cell)
                    return f"{self.file} must have {what} from 1 to {most}, got {got} in line {number}."
        if self.field == "integer" and not 0 <= whole_number(cells[-1]) <= MOST_COUNT:
            got = shortened_number(cells[-1])
            return f"{self.file} must have counts from 0 to 2^53, got {got} in line {number}."
        return ""

    def _wanted(self) -> str:
        value = {"integer": ["count"], "real": ["number"], "pattern": []}[self.field]
        places = [self.rows.rstrip("s"), self.columns.rstrip("s")] if self.layout == "coordinate" else []
        articles = [f"a {name}" for name in places + value]
        listed = " and ".join(filter(None, [", ".join(articles[:-1]), articles[-1]]))
        whole = {1: "a whole number", 2: "two whole numbers", 3: "three whole numbers"}
        return listed if self.field == "real" else f"{listed}, {whole[len(articles)]},"
