"""A small table: text for a terminal, HTML for a notebook, a data frame to work with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import zip_longest
from numbers import Integral, Real
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from swiftem.core.messages import visible
from swiftem.show.numbers import counted, number_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

WIDTH = 110
"""Characters of a line if there is no terminal."""
WIDEST = 40
"""Characters of a cell of text in a line; more are wrapped at words."""
GAP = "  "
NUMBER = re.compile(r"[-−+.]*\d((?![^\W\d_]{2}).)*")
"""A cell of numbers, such as 1.2 ± 0.3 or 1e-05: it is aligned at the right and not wrapped."""


@dataclass(frozen=True, repr=False)
class Table:
    """A table to read: ``print`` shows text, a notebook HTML, rich its terminal's width.

    Text is wrapped at words; numbers are never cut. A table that is wider than a line continues below, with
    its first columns repeated.

    Attributes
    ----------
    title : str
        A line above the table; it may be empty.
    columns : sequence of str
        Names of the columns.
    rows : sequence of sequences
        A cell for each column: text, a number, True or False, or None for an empty cell.
    notes : sequence of str
        Lines below the table.
    n_index : int
        Number of first columns that are repeated if the table continues below.
    formats : mapping of str to callable
        Functions that return the text of a column's numbers; by default they have four digits.

    Examples
    --------
    >>> from swiftem.show.table import Table
    >>> Table("Two components", ["component", "weight", "rate"], [[0, 0.25, 12345.6], [1, 0.75, -0.0]])
    Two components
    <BLANKLINE>
    component  weight    rate
            0    0.25  12,346
            1    0.75       0
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    n_index: int = 1
    formats: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    def head(self, n: int, what: str = "row") -> Table:
        """Return the first ``n`` rows, with a note that counts the others.

        >>> Table("", ["k"], [[0], [1], [2]]).head(1, "topic").notes
        ('... and 2 more topics.',)
        """
        more = len(self.rows) - n
        if more <= 0:
            return self
        return replace(
            self, rows=self.rows[:n], notes=(f"... and {counted(more, f'more {what}')}.", *self.notes)
        )

    def to_text(self, width: int = WIDTH) -> str:
        """Return the table as text, in lines of at most ``width`` characters if its cells allow it."""
        parts = [part for part in wrap(visible(self.title), width)]
        for block in self._blocks(width):
            parts += [""] * bool(parts) + block
        for note in self.notes:
            parts += wrap(visible(note), width)
        return "\n".join(parts)

    def __repr__(self) -> str:
        return self.to_text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text(self.to_text(options.max_width), no_wrap=True, overflow="ignore")

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        top = "".join(f"<th>{escape(visible(name))}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._texts()
        )
        title, *notes = (
            f"<p>{escape(visible(line))}</p>" if line else "" for line in (self.title, *self.notes)
        )
        table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{title}{table}{''.join(notes)}</div>"

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas, with numbers as they are."""
        import pandas as pd

        return pd.DataFrame([list(row) for row in self.rows], columns=list(self.columns))

    def _texts(self) -> list[list[str]]:
        formats = [self.formats.get(name, number_text) for name in self.columns]
        return [
            [_text(cell, as_text) for cell, as_text in zip(row, formats, strict=True)] for row in self.rows
        ]

    def _blocks(self, width: int) -> Iterator[list[str]]:
        """Yield the lines of the table, then of its continuations."""
        texts = [[visible(name) for name in self.columns], *self._texts()]
        columns = [_Column(list(cells)) for cells in zip(*texts, strict=True)]
        index, others = columns[: self.n_index], columns[self.n_index :]
        if others and others[-1].is_text:
            beside = _used(columns[:-1]) if _used(columns[:-1]) + WIDEST <= width else _used(index)
            others[-1] = _Column(others[-1].cells, max(width - beside - len(GAP), 1))
        for block in _continued(index, others, width):
            rows = [zip_longest(*parts) for parts in zip(*(column.lines() for column in block), strict=True)]
            yield [
                GAP.join(column.aligned(part) for column, part in zip(block, line, strict=True)).rstrip()
                for row in rows
                for line in row
            ]


class _Column:
    """The cells of a column, its name first, with the width that they have."""

    def __init__(self, cells: list[str], widest: int = WIDEST) -> None:
        self.cells = cells
        self.is_text = not all(NUMBER.fullmatch(cell) for cell in cells[1:] if cell)
        longest = max(map(len, cells))
        self.width = min(longest, widest) if self.is_text else longest

    def lines(self) -> list[list[str]]:
        """Return the lines of each cell: text is wrapped at words."""
        return [[cell] if len(cell) <= self.width else wrap(cell, self.width) for cell in self.cells]

    def aligned(self, line: str | None) -> str:
        """Return a line of a cell in the column's width."""
        return (line or "").ljust(self.width) if self.is_text else (line or "").rjust(self.width)


def _continued(index: list[_Column], others: list[_Column], width: int) -> list[list[_Column]]:
    """Return the columns of the table, then of its continuations, each with the index."""
    blocks = [[*index, *others[:1]]]
    for column in others[1:]:
        if _used([*blocks[-1], column]) <= width:
            blocks[-1].append(column)
        else:
            blocks.append([*index, column])
    return blocks


def _used(columns: Sequence[_Column]) -> int:
    """Return the width of columns side by side."""
    return sum(column.width + len(GAP) for column in columns) - len(GAP)


def _text(cell: Any, as_text: Callable[[Any], str]) -> str:
    """Return a cell as text in one line."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, Integral):
        return f"{cell:,}"
    return as_text(cell) if isinstance(cell, Real) else visible(str(cell)).replace("\n", "\\n")
