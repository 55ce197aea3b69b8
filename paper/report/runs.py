"""Measurements of several methods in several runs: values, slopes and panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd

from paper.report.figures import Line, Panel
from swiftem.core.types import Array
from swiftem.show.numbers import signed, style_of

AXES = {
    "epoch": ("epochs", "epochs (n iterations each; one of EM, a full pass)"),
    "passes": ("passes", "passes (E-step evaluations divided by n)"),
    "seconds": ("seconds", "seconds of computing"),
}
"""Names and labels of the horizontal axes of a curve: the paper's first."""


def fit_slope(sizes: Sequence[float], values: Sequence[float] | Array) -> float:
    """Return the least-squares slope of log values on log n; NaN with fewer than two sizes.

    >>> round(fit_slope([1000, 10_000, 100_000], [50, 232, 1077]), 2)
    0.67
    """
    known = [(n, value) for n, value in zip(sizes, values, strict=True) if np.isfinite(value)]
    if len(known) < 2:
        return nan
    x, y = np.log(np.array(known, dtype=np.float64)).T
    x -= x.mean()
    return float((x @ y) / (x @ x))


class Runs:
    """Measurements by method, run and place, such as an epoch or a sample size.

    Parameters
    ----------
    rows : sequence of NamedTuple, or DataFrame
        With method, run, place and measurements. Runs in which some method is missing, such as the last one
        after Ctrl-C, are left out, so that methods are compared on the same runs.
    place : str
        Name of the column of places.

    Examples
    --------
    >>> from paper.experiments.gmm_scaling import ReachRow
    >>> rows = [ReachRow("known", "em", n, 0, n, 2.0 * n, 2.0, 0.1) for n in (100, 1000)]
    >>> runs = Runs(rows, "n")
    >>> runs.values("em", "stays")
    array([[ 200., 2000.]])
    >>> round(runs.slope("em", "stays"), 6)
    1.0
    """

    def __init__(self, rows: Sequence[Any] | pd.DataFrame, place: str) -> None:
        frame = pd.DataFrame(rows)
        methods = frame.groupby("run")["method"].nunique()
        frame = frame[frame["run"].isin(methods.index[methods == methods.max()])]
        self.place, self.methods = place, list(frame["method"].unique())
        self.places: list[int] = sorted(frame[place].unique().tolist())
        self._table = frame.assign(place=frame[place]).pivot(index=["method", "run"], columns="place")

    @property
    def span(self) -> str:
        """The range of the places, in words."""
        return f"{self.places[0]:,} to {self.places[-1]:,}"

    def values(self, method: str, column: str) -> Array:
        """Return a column of a method, shape (runs, places); NaN if there is no value."""
        return np.asarray(self._table.loc[method][column], dtype=np.float64)

    def means(self, method: str, column: str) -> Array:
        """Return the means over the runs, shape (places,); NaN unless all of them have a value."""
        return np.asarray(self.values(method, column).mean(axis=0))

    def medians(self, method: str, column: str) -> Array:
        """Return the medians over the runs, shape (places,)."""
        return np.asarray(np.median(self.values(method, column), axis=0))

    def slope(self, method: str, column: str) -> float:
        """Return the slope of the means on log-log axes."""
        return fit_slope(self.places, self.means(method, column))

    def slopes(self, column: str, methods: Sequence[str] = ()) -> str:
        """Return the slopes of these methods, by default of all, in words."""
        names = methods or self.methods
        return ", ".join(f"{signed(self.slope(m, column), 2)} ({style_of(m).label})" for m in names)

    def lines(self, x: str, y: str, note: Callable[[str], str] = lambda method: "") -> list[Line]:
        """Return column ``y`` against the medians of ``x`` by method, with notes after the names."""
        return [Line(style_of(m), self.medians(m, x), self.values(m, y), note(m)) for m in self.methods]


def curve_panels(
    runs: Runs, column: str, label: str, *, log: str, text: Callable[[float], str], suffix: str = ""
) -> list[Panel]:
    """Return three panels of a column, against epochs, passes and seconds; ``suffix`` ends their titles."""

    def last(method: str) -> str:
        return text(float(runs.medians(method, column)[-1]))

    return [
        Panel(
            f"against {name}{suffix}",
            (words, label),
            runs.lines(axis, column, last) if axis == "epoch" else runs.lines(axis, column),
            log,
            text=text,
        )
        for axis, (name, words) in AXES.items()
    ]


def growth_panels(runs: Runs, measures: Mapping[str, str]) -> list[Panel]:
    """Return a panel of the means against n for each measure, by its label, with slopes next to the names."""

    def panel(column: str, label: str) -> Panel:
        slopes = {method: runs.slope(method, column) for method in runs.methods}
        notes = {method: signed(slope, 2) if isfinite(slope) else "" for method, slope in slopes.items()}
        title = f"{label.split(' (')[0]} (slopes next to the names)"
        return Panel(title, ("samples n", label), runs.lines("n", column, notes.__getitem__), centre=np.mean)

    return [panel(column, label) for column, label in measures.items()]
