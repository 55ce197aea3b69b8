"""Curves of several methods over several runs: values by epoch, and the panels that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paper.reports.figures import FLOOR, label_ends, plain_axes
from paper.reports.section import Panel, Table
from swiftem.core.types import Array
from swiftem.report.numbers import seconds_text, style_of

__all__ = ["AXES", "Curve", "Curves", "curve_panels", "curve_table"]

AXES = {
    "epoch": "epochs (n iterations each; one of EM, a full pass)",
    "passes": "passes (E-step evaluations divided by n)",
    "seconds": "seconds of computing",
}
"""Horizontal axes of a curve: the paper's first."""


class Curve(NamedTuple):
    """One method: arrays of shape (runs, epochs + 1)."""

    epoch: Array
    passes: Array
    seconds: Array
    value: Array


class Curves:
    """The curves of an experiment by method.

    Parameters
    ----------
    points : iterable of (method, run, epoch, passes, seconds, value)
        In the order of the epochs. A run in which some method is missing, such as the last one after Ctrl-C,
        is left out, so that methods are compared on the same runs; all curves end with the shortest.

    Examples
    --------
    >>> points = [("em", 0, 0, 1.0, 0.0, 5.0), ("em", 0, 1, 2.0, 0.1, 3.0)]
    >>> curves = Curves(points + [("em", 1, 0, 1.0, 0.0, 4.0), ("em", 1, 1, 2.0, 0.1, 2.0)])
    >>> curves.at_epoch("em", 1)
    array([3., 2.])
    >>> curves.at("em", "passes", 1.5)
    array([5., 4.])
    """

    def __init__(self, points: Iterable[tuple[str, int, int, float, float, float]]) -> None:
        runs: dict[str, dict[int, list[tuple[float, ...]]]] = {}
        for method, run, *point in points:
            runs.setdefault(method, {}).setdefault(run, []).append(tuple(point))
        complete = set[int].intersection(*map(set, runs.values())) if runs else set()
        kept = {
            method: [points for run, points in by_run.items() if run in complete or not complete]
            for method, by_run in runs.items()
        }
        length = min((len(points) for curves in kept.values() for points in curves), default=0)
        self._curves = {
            method: Curve(*np.moveaxis(np.array([points[:length] for points in curves]), 2, 0))
            for method, curves in kept.items()
        }

    def __getitem__(self, method: str) -> Curve:
        """Return the curve of a method."""
        return self._curves[method]

    def __contains__(self, method: str) -> bool:
        """Tell whether there is a curve of this method."""
        return method in self._curves

    @property
    def methods(self) -> list[str]:
        """The methods in the order of their first points."""
        return list(self._curves)

    @property
    def last_epoch(self) -> int:
        """The last epoch, the same for all; −1 if there are no curves."""
        return min((len(curve.value[0]) for curve in self._curves.values()), default=0) - 1

    def at_epoch(self, method: str, epoch: int) -> Array:
        """Return the values after ``epoch`` epochs, shape (runs,)."""
        return self._curves[method].value[:, epoch]

    def medians(self, epoch: int) -> dict[str, float]:
        """Return the medians over the runs after ``epoch`` epochs, by method."""
        return {method: float(np.median(self.at_epoch(method, epoch))) for method in self.methods}

    def at(self, method: str, axis: str, x: float) -> Array:
        """Return the last values with at most ``x`` passes or seconds, shape (runs,); the first if none."""
        curve = self._curves[method]
        spent: Array = getattr(curve, axis)
        place = np.maximum((spent <= x).sum(axis=1) - 1, 0)
        return np.take_along_axis(curve.value, place[:, None], axis=1)[:, 0]

    def end(self, method: str, axis: str) -> float:
        """Return the total passes or seconds of the method, the median over the runs."""
        return float(np.median(getattr(self._curves[method], axis)[:, -1]))


def curve_panels(
    curves: Curves, *, value: str, logarithmic: bool, ends: Mapping[str, str], suffix: str = ""
) -> list[Panel]:
    """Return three panels, against epochs, passes and seconds: lines are medians, bands the range over runs.

    Parameters
    ----------
    curves : Curves
        The curves to plot.
    value : str
        Label of the vertical axis.
    logarithmic : bool
        Whether that axis is logarithmic.
    ends : mapping of str to str
        The last value of each method, as text, for the labels in the panel against epochs.
    suffix : str
        Added to the panels' titles.

    Returns
    -------
    list of Panel
    """

    def panel(axis: str) -> Panel:
        def draw(axes: Any) -> None:
            plain_axes(axes, x=AXES[axis], y=value, log_y=logarithmic)
            labels = []
            for method in curves.methods:
                curve, style = curves[method], style_of(method)
                values = np.maximum(curve.value, FLOOR) if logarithmic else curve.value
                x = np.median(getattr(curve, axis), axis=0)
                middle = np.median(values, axis=0)
                axes.plot(
                    x, middle, style.line, color=style.colour, linewidth=2, marker="" if len(x) > 1 else "o"
                )
                if len(values) > 1:
                    low, high = values.min(axis=0), values.max(axis=0)
                    axes.fill_between(x, low, high, color=style.colour, alpha=0.15, linewidth=0)
                text = f"{style.label}  {ends[method]}" if axis == "epoch" else style.label
                labels.append((float(middle[-1]), text, style.colour))
            axes.set_xlim(left=0)
            if not logarithmic:
                _hide_the_dive(axes, curves)
            label_ends(axes, labels)

        return Panel(f"against {axis if axis != 'epoch' else 'epochs'}{suffix}", draw)

    return [panel(axis) for axis in AXES]


def curve_table(
    title: str,
    columns: Mapping[str, tuple[Curves, str]],
    shown: Sequence[int],
    text: Callable[[float], str],
) -> Table:
    """Return the medians over the runs by epoch, and the totals.

    Parameters
    ----------
    title : str
        Of the table.
    columns : mapping of str to (Curves, str)
        Heads of the columns, and the curves and the method of each.
    shown : sequence of int
        Epochs to show, in addition to the last.
    text : callable
        Formats a value.
    """
    last = min(curves.last_epoch for curves, _ in columns.values())
    rows = [
        [f"{epoch}", *(text(curves.medians(epoch)[m]) for curves, m in columns.values())]
        for epoch in sorted({epoch for epoch in shown if epoch <= last} | {last})
    ]
    rows.append(["total passes", *(f"{curves.end(m, 'passes'):.0f}" for curves, m in columns.values())])
    seconds = (curves.end(m, "seconds") for curves, m in columns.values())
    rows.append(["total seconds", *map(seconds_text, seconds)])
    return Table(title, ["epoch", *columns], rows)


def _hide_the_dive(axes: Any, curves: Curves) -> None:
    """Limit the axis slightly below the common start: a bad first epoch would flatten the rest."""
    start = min(float(curves[method].value[:, 0].min()) for method in curves.methods)
    top = axes.get_ylim()[1]
    axes.set_ylim(bottom=max(axes.get_ylim()[0], start - 0.1 * (top - start)))
