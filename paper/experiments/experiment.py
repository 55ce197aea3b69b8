"""The result of an experiment, its interruption by Ctrl-C, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from swiftem.core.result import Result

__all__ = ["Experiment", "Progress", "Tally", "collect", "complete", "no_progress"]

Progress = Callable[[str, float], None]
"""Called with the current task, in a few words, and the completed share of the experiment, from 0 to 1."""


def no_progress(doing: str, share: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class Experiment:
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


def collect(name: str, settings: dict[str, str], parts: Iterable[list[Any]]) -> Experiment:
    """Return the experiment with the rows of all parts; after Ctrl-C, of the complete ones."""
    rows: list[Any] = []
    try:
        for part in parts:
            rows += part
    except KeyboardInterrupt:
        return Experiment(name, settings, tuple(rows), interrupted=True)
    return Experiment(name, settings, tuple(rows), interrupted=False)


def complete(result: Result) -> Result:
    """Return the result of a run, or raise KeyboardInterrupt if Ctrl-C ended it early."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


class Tally:
    """Combines the progress of jobs of unequal cost into that of the whole.

    Parameters
    ----------
    total : float
        The cost of all jobs together, in any unit.
    progress : Progress
        Called with the progress.

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
        """Yield a function that takes the completed share of this job."""

        def at(share: float) -> None:
            # Estimates fluctuate; a bar that moves backwards would be worse.
            self._told = max(self._told, min(1.0, (self._done + cost * share) / self._total))
            self._progress(doing, self._told)

        at(0.0)
        yield at
        at(1.0)
        self._done += cost
