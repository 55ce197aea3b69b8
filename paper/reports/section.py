"""The parts of a report: findings, pictures and tables, one section per experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from paper.experiments.experiment import Experiment

Verdict = Literal["agrees", "disagrees", "open"]
"""The numbers agree with the claim, or not, or do not decide."""
OURS = "the paper"


def verdict(holds: bool) -> Verdict:
    """Return the verdict on a claim that holds, or does not."""
    return "agrees" if holds else "disagrees"


class Finding(NamedTuple):
    """A claim compared with the numbers: the measurements in words and in brief, and whose claim it is."""

    claim: str
    verdict: Verdict
    words: str
    brief: str
    source: str = OURS


class Panel(NamedTuple):
    """One pair of axes: a title, and a function that draws on matplotlib axes."""

    title: str
    draw: Callable[[Any], None]


class Picture(NamedTuple):
    """Panels of one figure in rows of three: the name of its files, a title, and an alternative text."""

    name: str
    title: str
    alt: str
    panels: Sequence[Panel]


class Table(NamedTuple):
    """A table of text: title, column headers, rows; the first column names the row."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """The section on an experiment, of which Ctrl-C may have left no rows."""

    experiment: Experiment
    title: str
    lead: str
    findings: Sequence[Finding] = ()
    pictures: Sequence[Picture] = field(default_factory=list)
    tables: Sequence[Table] = ()
