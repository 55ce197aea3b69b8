"""What every experiment returns, how Ctrl-C ends it, and how it tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from swiftem.result import Result

__all__ = ["Experiment", "Progress", "Tally", "collect", "complete", "no_progress"]

Progress = Callable[[str, float], None]
"""Told what is being done, in a few words, and the share of the experiment that is done, from 0 to 1."""


def no_progress(doing: str, share: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Experiment:
    """The raw numbers of one experiment.

    Attributes
    ----------
    name : str
        As on the command line, such as ``"gmm-precision"``.
    settings : dict of str to str
        What was set, in words, for the report.
    rows : tuple of NamedTuple
        One type of row an experiment: the lines of its CSV.
    interrupted : bool
        Whether Ctrl-C cut it short: ``rows`` then holds what was complete.

    Examples
    --------
    >>> from swiftem.theory.experiments.gmm_precision import gmm_precision
    >>> experiment = gmm_precision(n=100, epochs=2, runs=1)
    >>> experiment.name, experiment.rows[0].method, experiment.rows[0].passes
    ('gmm-precision', 'em', 1.0)
    """

    name: str
    settings: dict[str, str]
    rows: tuple[Any, ...]
    interrupted: bool


def collect(name: str, settings: dict[str, str], parts: Iterable[list[Any]]) -> Experiment:
    """Return the experiment with the rows of all parts; after Ctrl-C, of those that were complete."""
    rows: list[Any] = []
    try:
        for part in parts:
            rows += part
    except KeyboardInterrupt:
        return Experiment(name, settings, tuple(rows), interrupted=True)
    return Experiment(name, settings, tuple(rows), interrupted=False)


def complete(result: Result) -> Result:
    """Return the result of a run, or raise KeyboardInterrupt where Ctrl-C cut it short."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


class Tally:
    """Adds the shares of jobs of unequal cost up to the share of the whole.

    Parameters
    ----------
    total : float
        The cost of all jobs together, in any unit.
    progress : Progress
        Who is told.

    Examples
    --------
    >>> tally = Tally(4.0, lambda doing, share: print(doing, share))
    >>> with tally.job("first", 1.0) as at:
    ...     at(0.5)
    first 0.0
    first 0.125
    first 0.25
    """

    def __init__(self, total: float, progress: Progress) -> None:
        self._total, self._progress = total, progress
        self._done = self._told = 0.0

    @contextmanager
    def job(self, doing: str, cost: float) -> Iterator[Callable[[float], None]]:
        """Give a function that is told the share of this job that is done."""

        def at(share: float) -> None:
            # Estimates waver; a bar that goes back would be worse.
            self._told = max(self._told, min(1.0, (self._done + cost * share) / self._total))
            self._progress(doing, self._told)

        at(0.0)
        yield at
        at(1.0)
        self._done += cost
