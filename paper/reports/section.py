"""The parts of a report: findings, pictures and tables, one section per experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "Panel", "Picture", "Section", "Table", "Verdict"]

Verdict = Literal["agrees", "disagrees", "beyond"]
"""The paper's claim is confirmed, is contradicted, or does not exist."""


class Finding(NamedTuple):
    """One claim compared with the numbers.

    Attributes
    ----------
    claim : str
        The paper's claim, or an open question.
    verdict : {"agrees", "disagrees", "beyond"}
        Whether the numbers agree.
    words : str
        The measurements, in a sentence or two.
    brief : str
        The same in a few figures, for one line of a terminal.
    """

    claim: str
    verdict: Verdict
    words: str
    brief: str


class Panel(NamedTuple):
    """One pair of axes: a title, and a function that draws on matplotlib axes."""

    title: str
    draw: Callable[[Any], None]


class Picture(NamedTuple):
    """Panels of one figure.

    Attributes
    ----------
    name : str
        Name of the files, without an extension.
    title : str
        Title, a sentence.
    alt : str
        Alternative text.
    panels : sequence of Panel
        Row by row.
    columns : int
        Panels per row.
    """

    name: str
    title: str
    alt: str
    panels: Sequence[Panel]
    columns: int


class Table(NamedTuple):
    """A table of text: title, column headers, rows; the first column names the row."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One experiment of a report.

    Attributes
    ----------
    name, title : str
        The name on the command line, and the title.
    lead : str
        The paper's figure and the experiment, in two or three sentences.
    findings : sequence of Finding
        Agreement and disagreement with the paper.
    pictures, tables : sequences
        Of :class:`Picture` and :class:`Table`.
    settings : mapping of str to str
        The settings.
    data : str
        File name of the raw numbers.
    interrupted : bool
        Whether Ctrl-C ended the experiment early.

    Examples
    --------
    >>> from paper.reports.section import Section
    >>> Section("toy", "A toy", "Nothing was done.").findings
    ()
    """

    name: str
    title: str
    lead: str
    findings: Sequence[Finding] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    interrupted: bool = False
