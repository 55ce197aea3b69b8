"""The result of an experiment, its jobs with their progress, and its interruption by Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from swiftem.core.algorithm import Result

Progress = Callable[[str, float], None]
"""Called with the current job, in a few words, and the completed share of the experiment, from 0 to 1."""


def no_progress(doing: str, share: float) -> None:
    """Ignore the progress."""


class Job(NamedTuple):
    """A part of an experiment: what it does, in a few words, its cost in any unit, and its rows."""

    doing: str
    cost: float
    rows: Callable[[], Sequence[Any]]


class Experiment(NamedTuple):
    """The raw numbers of one experiment.

    Attributes
    ----------
    name : str
        As on the command line, such as ``"gmm-precision"``.
    settings : dict of str to str
        The settings, in words, for the report.
    rows : tuple of NamedTuple
        One type of row per experiment: the lines of its CSV.
    interrupted : bool
        Whether Ctrl-C ended it early: ``rows`` then has the complete parts.

    Examples
    --------
    >>> from paper.experiments.gmm_precision import gmm_precision
    >>> experiment = gmm_precision(n=100, epochs=2, runs=1)
    >>> experiment.name, experiment.rows[0].method, experiment.rows[0].passes
    ('gmm-precision', 'em', 1.0)
    """

    name: str
    settings: dict[str, str]
    rows: tuple[Any, ...]
    interrupted: bool


def collect(name: str, settings: dict[str, str], jobs: Sequence[Job], progress: Progress) -> Experiment:
    """Return the experiment with the rows of all jobs; after Ctrl-C, of the complete ones."""
    rows: list[Any] = []
    total, done = sum(job.cost for job in jobs), 0.0
    try:
        for job in jobs:
            progress(job.doing, done / total)
            rows += job.rows()
            done += job.cost
            progress(job.doing, done / total)
    except KeyboardInterrupt:
        return Experiment(name, settings, tuple(rows), interrupted=True)
    return Experiment(name, settings, tuple(rows), interrupted=False)


def complete(result: Result) -> Result:
    """Return the result of a run, or raise KeyboardInterrupt if Ctrl-C ended it early."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
