"""Figures of the report: lines of methods with bands, logarithmic axes, labels at the ends, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from paper.reports.numbers import power_of_ten
from paper.reports.section import Panel, Picture
from swiftem.core.files import write_atomically
from swiftem.core.types import Array
from swiftem.show.drawing import new_axes, new_figure
from swiftem.show.drawing import plain_axes as linear_axes
from swiftem.show.numbers import style_of

COLUMNS = 3
"""Panels in a row."""
LABEL_GAP = 0.068
"""Minimum distance between the labels of two curves, as a share of the axis."""
FLOOR = 1e-33
"""Position of an error of exactly zero on a logarithmic axis: below the square of double precision."""
PLAIN_SVG: dict[Any, Any] = {"svg.hashsalt": "swiftem", "svg.fonttype": "path"}
"""The same picture gives the same file, and looks the same with any fonts."""


class Line(NamedTuple):
    """A method's curve: x (k,), values of each run (runs, k), and what stands after its name."""

    method: str
    x: Array
    values: Array
    note: str = ""


def line_panel(
    title: str,
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    log: str = "",
    centre: Callable[..., Any] = np.median,
    finish: Callable[[Any], None] = lambda axes: None,
) -> Panel:
    """Return a panel with a line for each method and a band, the range over its runs.

    Parameters
    ----------
    title : str
        Of the panel.
    lines : sequence of Line
        The curves.
    x, y : str
        Labels of the axes.
    log : {"", "y", "xy"}
        Logarithmic axes.
    centre : callable
        The mean or the median of the runs; NaN where a run has none.
    finish : callable
        Called with the axes before the labels are placed.
    """

    def draw(axes: Any) -> None:
        plain_axes(axes, x=x, y=y, log=log)
        ends = []
        for method, at, values, note in lines:
            style = style_of(method)
            values = np.maximum(values, FLOOR) if log else values
            middle = centre(values, axis=0)
            axes.plot(
                at, middle, style.line, color=style.colour, marker="o" if len(at) < 8 else "", linewidth=2
            )
            axes.fill_between(
                at, values.min(axis=0), values.max(axis=0), color=style.colour, alpha=0.15, lw=0
            )
            known = middle[np.isfinite(middle)]
            if len(known):
                ends.append((float(known[-1]), f"{style.label}  {note}".strip(), style.colour))
        finish(axes)
        label_ends(axes, ends)

    return Panel(title, draw)


def plain_axes(axes: Any, *, x: str, y: str, log: str = "") -> None:
    """Set the labels of axes, a light grid, and powers of ten on logarithmic axes.

    A logarithmic axis that spans less than two powers of ten has plain numbers, with 2 and 5 in between.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    linear_axes(axes, x=x, y=y)
    for name in log:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_major_formatter(FuncFormatter(partial(_tick, axis)))
        axis.set_minor_formatter(FuncFormatter(partial(_tick, axis)))


def _tick(axis: Any, value: float, place: int) -> str:
    """Return the label of a tick of a logarithmic axis; empty for most."""
    low, high = axis.get_view_interval()
    if high >= 100 * low:
        return power_of_ten(value)
    return f"{value:,.10g}" if f"{value:e}"[0] in "125" else ""


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write texts to the right of the axes at the ends of curves, moved apart if they would overlap.

    ``ends`` are height, text and colour of each curve; those whose height is not finite are omitted.
    """
    ends = [end for end in ends if np.isfinite(end[0])]
    frame, left = axes.transAxes.inverted(), axes.get_xlim()[0]
    heights = [frame.transform(axes.transData.transform((left, height)))[1] for height, _, _ in ends]
    for share, (_, text, colour) in zip(spread(np.array(heights), LABEL_GAP), ends, strict=True):
        axes.annotate(
            text,
            xy=(1.02, share),
            xycoords="axes fraction",
            color=colour,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def spread(heights: Array, gap: float) -> Array:
    """Return heights in the same order, at least ``gap`` apart: the nearest such, by least squares.

    >>> spread(np.array([0.5, 0.5, 0.9]), 0.1).round(2)
    array([0.45, 0.55, 0.9 ])
    """
    moved, steps = heights.copy(), gap * np.arange(len(heights))
    order = np.argsort(heights, kind="stable")
    if len(order):
        moved[order] = isotonic_regression(heights[order] - steps).x + steps
    return moved


def panel_svg(panel: Panel) -> bytes:
    """Return one panel as an SVG file, for a page that arranges panels itself."""
    axes = new_axes()
    panel.draw(axes)
    return _file(axes.figure, "svg")


def save_picture(picture: Picture, folder: Path) -> None:
    """Write all panels as one PNG and one SVG."""
    rows = -(-len(picture.panels) // COLUMNS)
    figure = new_figure(rows, COLUMNS)
    figure.suptitle(picture.title, x=0.01, ha="left", fontweight="bold")
    grid = np.atleast_1d(figure.subplots(rows, COLUMNS)).ravel()
    for axes, panel in zip(grid, picture.panels, strict=False):
        axes.set_title(panel.title, loc="left")
        panel.draw(axes)
    for axes in grid[len(picture.panels) :]:
        axes.set_axis_off()
    for kind in ("png", "svg"):
        write_atomically(folder / f"{picture.name}.{kind}", _file(figure, kind))


def _file(figure: Any, kind: str) -> bytes:
    from matplotlib import rc_context

    buffer, metadata = BytesIO(), {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context(PLAIN_SVG):
        figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()
