"""Figures of the report: lines of methods with bands, labels at the ends, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from swiftem.core.files import write_atomically
from swiftem.core.types import Array
from swiftem.show.drawing import new_axes, new_figure, plain_axes
from swiftem.show.numbers import Style

COLUMNS = 3
"""Panels in a row."""
LABEL_GAP = 0.068
"""Minimum distance between the labels of two curves, as a share of the axis."""
FLOOR = 1e-33
"""Position of an error of exactly zero on a logarithmic axis: below the square of double precision."""
PLAIN_SVG: dict[Any, Any] = {"svg.hashsalt": "swiftem", "svg.fonttype": "path"}
"""The same picture gives the same file, and looks the same with any fonts."""
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float) -> str:
    """Return two digits of a positive number, in the paper's notation.

    >>> short(1.3e-20), short(0.0003), short(0.25), short(1234.0), short(0.0)
    ('1.3·10⁻²⁰', '3.0·10⁻⁴', '0.25', '1,200', '0')
    """
    if not isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else "none"
    digits, power = f"{value:.1e}".split("e")  # rounded first: 9.96e-5 is 1.0·10⁻⁴
    if -2 <= int(power) <= 3:
        return f"{float(f'{value:.2g}'):,.10g}"
    return f"{digits}·10" + str(int(power)).translate(SUPERSCRIPT)


class Line(NamedTuple):
    """A curve: its name and look, x (k,), values of each run (runs, k), and what stands after its name."""

    style: Style
    x: Array
    values: Array
    note: str = ""


class Panel(NamedTuple):
    """One pair of axes with a line for each curve and a band, the range over its runs.

    Attributes
    ----------
    title : str
        Of the panel.
    labels : tuple of two str
        Of the horizontal and of the vertical axis.
    lines : sequence of Line
        The curves.
    log : {"", "y", "xy"}
        Logarithmic axes.
    centre : callable
        The mean or the median of the runs; NaN where a run has none.
    text : callable
        Returns a value as text.
    """

    title: str
    labels: tuple[str, str]
    lines: Sequence[Line]
    log: str = "xy"
    centre: Callable[..., Array] = np.median
    text: Callable[[float], str] = short

    def draw(self, axes: Any) -> None:
        """Draw the panel on matplotlib axes."""
        plain_axes(axes, x=self.labels[0], y=self.labels[1])
        for name in self.log:
            getattr(axes, f"set_{name}scale")("log")
        for style, x, values, _ in self.lines:
            values = np.maximum(values, FLOOR) if self.log else values
            marker = "o" if len(x) < 8 and style.line != ":" else ""
            middle, low, high = self.centre(values, axis=0), values.min(axis=0), values.max(axis=0)
            axes.plot(x, middle, style.line, color=style.colour, marker=marker, linewidth=2)
            if len(x) > 1:
                axes.fill_between(x, low, high, color=style.colour, alpha=0.15, lw=0)
        if "x" not in self.log:
            axes.set_xlim(left=0)
        if not self.log:  # slightly below the common start: a bad first epoch would flatten the rest
            low, high = axes.get_ylim()
            start = min(line.values[:, 0].min() for line in self.lines)
            axes.set_ylim(bottom=max(low, start - 0.1 * (high - start)))
        ends = (
            (
                max(end, FLOOR) if self.log else end,
                f"{line.style.label}  {line.note}".strip(),
                line.style.colour,
            )
            for line, end in self.ends()
        )
        label_ends(axes, list(ends))

    def ends(self) -> Iterator[tuple[Line, float]]:
        """Yield the lines that have values, with the last."""
        for line in self.lines:
            middle = self.centre(line.values, axis=0)
            known = middle[np.isfinite(middle)]
            if len(known):
                yield line, float(known[-1])

    @property
    def alt(self) -> str:
        """The ends of the lines, in words: an alternative text."""
        ends = (f"{line.style.label} {self.text(end)}" for line, end in self.ends())
        return f"{self.labels[1]} {self.title}, at the end: {', '.join(ends)}"

    def svg(self) -> bytes:
        """Return the panel as an SVG file, for a page that arranges panels itself."""
        axes = new_axes()
        self.draw(axes)
        return _file(axes.figure, "svg")


class Picture(NamedTuple):
    """Panels of one figure in rows of three: the name of its files, and a title."""

    name: str
    title: str
    panels: Sequence[Panel]

    def save(self, folder: Path) -> None:
        """Write all panels as one PNG and one SVG."""
        rows = -(-len(self.panels) // COLUMNS)
        figure = new_figure(rows, COLUMNS)
        figure.suptitle(self.title, x=0.01, ha="left", fontweight="bold")
        grid = figure.subplots(rows, COLUMNS).ravel()
        for axes, panel in zip(grid, self.panels, strict=False):
            axes.set_title(panel.title, loc="left")
            panel.draw(axes)
        for axes in grid[len(self.panels) :]:
            axes.set_axis_off()
        for kind in ("png", "svg"):
            write_atomically(folder / f"{self.name}.{kind}", _file(figure, kind))


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write texts to the right of the axes at the ends of curves, moved apart if they would overlap.

    ``ends`` are height, text and colour of each curve.
    """
    frame, left = axes.transAxes.inverted(), axes.get_xlim()[0]
    heights = [frame.transform(axes.transData.transform((left, height)))[1] for height, _, _ in ends]
    look = {"xycoords": "axes fraction", "fontweight": "bold", "va": "center", "annotation_clip": False}
    shares = spread(np.array(heights), LABEL_GAP)
    shares -= max(0.0, shares.max(initial=0.0) - 1.0)  # not above the axes, where the title is
    for share, (_, text, colour) in zip(shares, ends, strict=True):
        axes.annotate(text, (1.02, share), color=colour, **look)


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


def _file(figure: Any, kind: str) -> bytes:
    from matplotlib import rc_context

    buffer, metadata = BytesIO(), {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context(PLAIN_SVG):
        figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()
