"""Curves of several methods over several runs: values by epoch, the panels that show them, and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from paper.reports.figures import Line, line_panel
from paper.reports.section import Panel, Table
from swiftem.core.types import Array
from swiftem.show.numbers import seconds_text

AXES = {
    "epoch": "epochs (n iterations each; one of EM, a full pass)",
    "passes": "passes (E-step evaluations divided by n)",
    "seconds": "seconds of computing",
}
"""Horizontal axes of a curve: the paper's first."""


class Curves:
    """The curves of an experiment by method.

    Parameters
    ----------
    rows : sequence of NamedTuple
        With method, run, epoch, passes, seconds and the value last, in the order of the epochs. Runs in which
        some method is missing, such as the last one after Ctrl-C, are left out, so that methods are compared
        on the same runs; all curves end with the shortest.

    Examples
    --------
    >>> from paper.experiments.gmm_precision import PrecisionRow
    >>> points = [("em", 0, 0, 1.0, 0.0, 5.0), ("em", 0, 1, 2.0, 0.1, 3.0), ("em", 1, 0, 1.0, 0.0, 4.0)]
    >>> curves = Curves([PrecisionRow(*point) for point in [*points, ("em", 1, 1, 2.0, 0.1, 2.0)]])
    >>> curves.at_epoch("em", 1)
    array([3., 2.])
    >>> curves.at("em", "passes", 1.5)
    array([5., 4.])
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        frame = pd.DataFrame(rows)
        frame = frame.rename(columns={frame.columns[-1]: "value"})
        methods = frame.groupby("run")["method"].nunique()
        frame = frame[frame["run"].isin(methods.index[methods == methods.max()])]
        self.methods: list[str] = list(frame["method"].unique())
        self.last_epoch = int(frame.groupby(["method", "run"])["epoch"].max().min())
        self._frame = frame[frame["epoch"] <= self.last_epoch]

    def values(self, method: str, column: str = "value") -> Array:
        """Return a column of a method, shape (runs, epochs + 1)."""
        mine = self._frame[self._frame["method"] == method]
        return np.asarray(mine.pivot(index="run", columns="epoch", values=column), dtype=np.float64)

    def at_epoch(self, method: str, epoch: int) -> Array:
        """Return the values after ``epoch`` epochs, shape (runs,)."""
        return self.values(method)[:, epoch]

    def medians(self, epoch: int) -> dict[str, float]:
        """Return the medians over the runs after ``epoch`` epochs, by method."""
        return {method: float(np.median(self.at_epoch(method, epoch))) for method in self.methods}

    def at(self, method: str, axis: str, x: float) -> Array:
        """Return the last values with at most ``x`` passes or seconds, shape (runs,); the first if none."""
        place = np.maximum((self.values(method, axis) <= x).sum(axis=1) - 1, 0)
        return np.take_along_axis(self.values(method), place[:, None], axis=1)[:, 0]

    def end(self, method: str, axis: str) -> float:
        """Return the total passes or seconds of the method, the median over the runs."""
        return float(np.median(self.values(method, axis)[:, -1]))


def curve_panels(
    curves: Curves, *, value: str, log: str, text: Callable[[float], str], suffix: str = ""
) -> list[Panel]:
    """Return three panels, against epochs, passes and seconds: lines are medians, bands the range over runs.

    ``text`` formats the last value of each method, a label in the panel against epochs; ``suffix`` is added
    to the titles.
    """
    ends = curves.medians(curves.last_epoch)

    def finish(axes: Any) -> None:
        axes.set_xlim(left=0)
        if not log:  # slightly below the common start: a bad first epoch would flatten the rest
            start, top = (
                min(curves.values(method)[:, 0].min() for method in curves.methods),
                axes.get_ylim()[1],
            )
            axes.set_ylim(bottom=max(axes.get_ylim()[0], start - 0.1 * (top - start)))

    panels = []
    for axis, label in AXES.items():
        lines = [
            Line(
                method,
                np.median(curves.values(method, axis) if axis != "epoch" else _epochs(curves), axis=0),
                curves.values(method),
                text(ends[method]) if axis == "epoch" else "",
            )
            for method in curves.methods
        ]
        title = f"against {axis}{'s' if axis == 'epoch' else ''}{suffix}"
        panels.append(line_panel(title, lines, x=label, y=value, log=log, finish=finish))
    return panels


def _epochs(curves: Curves) -> Array:
    return np.arange(curves.last_epoch + 1, dtype=np.float64)[None]


def curve_table(
    title: str, columns: Mapping[str, tuple[Curves, str]], shown: Sequence[int], text: Callable[[float], str]
) -> Table:
    """Return the medians over the runs after the epochs ``shown`` and the last, and the totals.

    ``columns`` are heads with the curves and the method of each; ``text`` formats a value.
    """
    last = min(curves.last_epoch for curves, _ in columns.values())
    rows = [
        [f"{epoch}", *(text(curves.medians(epoch)[method]) for curves, method in columns.values())]
        for epoch in sorted({epoch for epoch in shown if epoch <= last} | {last})
    ]
    rows.append(["total passes", *(f"{curves.end(m, 'passes'):.0f}" for curves, m in columns.values())])
    rows.append(
        ["total seconds", *(seconds_text(curves.end(m, "seconds")) for curves, m in columns.values())]
    )
    return Table(title, ["epoch", *columns], rows)
