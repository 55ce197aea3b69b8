"""What a report is made of: findings, pictures and tables, one section an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "Panel", "Picture", "Section", "Table", "Verdict"]

Verdict = Literal["agrees", "disagrees", "beyond"]
"""With the paper, against it, or about what the paper does not say."""


class Finding(NamedTuple):
    """One claim held against the numbers.

    Attributes
    ----------
    claim : str
        What the paper says, or what it leaves open.
    verdict : {"agrees", "disagrees", "beyond"}
        Whether the numbers say so, too.
    words : str
        What was measured, in a sentence or two.
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
    """Panels that belong together.

    Attributes
    ----------
    name : str
        Of the files, without an ending.
    title : str
        What is seen, in a sentence.
    alt : str
        What it shows, for those who cannot see it.
    panels : sequence of Panel
        Row by row.
    columns : int
        Panels in a row.
    """

    name: str
    title: str
    alt: str
    panels: Sequence[Panel]
    columns: int


class Table(NamedTuple):
    """A table of text: title, heads of the columns, rows; the first column names the row."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One experiment of a report.

    Attributes
    ----------
    name, title : str
        As on the command line, and for people.
    lead : str
        What the paper shows and what was done, in two or three sentences.
    findings : sequence of Finding
        What agrees with the paper and what does not.
    pictures, tables : sequences
        Of :class:`Picture` and :class:`Table`.
    settings : mapping of str to str
        What was set.
    data : str
        File name of the raw numbers.
    interrupted : bool
        Whether Ctrl-C cut the experiment short.

    Examples
    --------
    >>> from swiftem.report.section import Section
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
