"""The parts of a report: claims with verdicts, pictures and tables, one section per experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from paper.report.figures import Panel, Picture

OURS = "the paper"
MISSING = "–"
"""In tables: not all runs reached the precision."""
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100)
"""Places of a long curve that are in its table, with the last."""


class Finding(NamedTuple):
    """A claim compared with the numbers.

    Attributes
    ----------
    claim : str
        A sentence.
    holds : bool or None
        Whether the numbers agree with it; None if they do not decide.
    measured, note : str
        The numbers in a phrase, and what else is known of them in sentences.
    source : str
        Whose claim it is.

    Examples
    --------
    >>> Finding("Two is more than one.", True, "2 > 1").verdict
    'agrees'
    """

    claim: str
    holds: bool | None
    measured: str
    note: str = ""
    source: str = OURS

    @property
    def sentence(self) -> str:
        """What was measured, as a sentence."""
        return f"{self.measured[0].upper()}{self.measured[1:]}."

    @property
    def verdict(self) -> str:
        """``"agrees"``, ``"disagrees"`` or ``"open"``."""
        return "open" if self.holds is None else "agrees" if self.holds else "disagrees"


class Table(NamedTuple):
    """A table of text: a title, and columns by their headers; the first column names the rows."""

    title: str
    columns: Mapping[str, Sequence[str]]

    def known(self) -> list[Sequence[str]]:
        """Return head and rows without columns and rows that have no number; nothing if none is left."""
        rows = [row for row in zip(*self.columns.values(), strict=True) if {*row[1:]} != {MISSING}]
        columns = [column for column in zip(self.columns, *rows, strict=True) if {*column[1:]} != {MISSING}]
        return list(zip(*columns, strict=True)) if rows else []


def panel_table(title: str, panel: Panel) -> Table | None:
    """Return what a panel shows, at some places if many; None if its lines have places of their own."""
    every = sorted({x for line in panel.lines for x in line.x.tolist()})
    if len(every) > max(len(line.x) for line in panel.lines) or any(x % 1 for x in every):
        return None
    places = [x for x in every if x in SHOWN or x == every[-1]] if len(every) > len(SHOWN) else every
    columns = {panel.labels[0].split(" (")[0]: [f"{x:,.0f}" for x in places]}
    for line in panel.lines:
        values = dict(zip(line.x.tolist(), panel.centre(line.values, axis=0), strict=True))
        cells = (float(values.get(x, "nan")) for x in places)
        columns[line.style.label] = [panel.text(v) if isfinite(v) else MISSING for v in cells]
    return Table(f"{title}: {panel.title.split(' (')[0]}", columns)


class Section(NamedTuple):
    """The section on the experiment ``name``.

    Attributes
    ----------
    about : str
        Docstring of the experiment's module: a title, a paragraph that leads, and what was set.
    settings : mapping of str to str
        What was set in this run.
    findings, pictures : sequence
        The claims and the figures.
    tables : sequence of Table
        Tables that do not repeat a figure.
    """

    name: str
    about: str
    settings: Mapping[str, str]
    findings: Sequence[Finding]
    pictures: Sequence[Picture]
    tables: Sequence[Table] = ()

    def all_tables(self) -> Iterator[Table]:
        """Yield the tables and those of panels, without empty ones."""
        panels = (panel_table(picture.title, panel) for picture in self.pictures for panel in picture.panels)
        yield from (table for table in (*self.tables, *panels) if table and table.known())
