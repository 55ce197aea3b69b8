"""Figures of the report: logarithmic axes, labels at the ends of curves, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from paper.reports.numbers import power_of_ten
from paper.reports.section import Panel, Picture
from swiftem.core.files import replacing, write_atomically
from swiftem.report.drawing import new_axes, new_figure
from swiftem.report.drawing import plain_axes as linear_axes

__all__ = ["FLOOR", "label_ends", "panel_svg", "plain_axes", "save_picture", "spread"]

Key = TypeVar("Key", str, int)

FLOOR = 1e-33
"""Position of an error of exactly zero on a logarithmic axis: below the square of double precision."""
LABEL_GAP = 0.068
"""Minimum distance between the labels of two curves, as a share of the axis."""
PLAIN_SVG: dict[Any, Any] = {"svg.hashsalt": "swiftem", "svg.fonttype": "path"}
"""The same picture gives the same file, and looks the same with any fonts."""


def plain_axes(axes: Any, *, x: str, y: str, log_x: bool = False, log_y: bool = False) -> None:
    """Set the labels of axes, a light grid, and powers of ten on logarithmic axes.

    A logarithmic axis that spans less than two powers of ten has plain numbers, with 2 and 5 in between.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    linear_axes(axes, x=x, y=y)
    for name, logarithmic in (("x", log_x), ("y", log_y)):
        if logarithmic:
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
    frame, left = axes.transAxes.inverted(), axes.get_xlim()[0]
    shares = {
        place: float(frame.transform(axes.transData.transform((left, height)))[1])
        for place, (height, _, _) in enumerate(ends)
        if isfinite(height)
    }
    for place, share in spread(shares, LABEL_GAP).items():
        _, text, colour = ends[place]
        axes.annotate(
            text,
            xy=(1.02, share),
            xycoords="axes fraction",
            color=colour,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def spread(heights: Mapping[Key, float], gap: float) -> dict[Key, float]:
    """Return heights in the same order, moved apart if two are closer than ``gap``.

    Neighbours that collide form a group, which is centred at their mean position.

    >>> {name: round(height, 2) for name, height in spread({"a": 0.5, "b": 0.5, "c": 0.9}, 0.1).items()}
    {'a': 0.45, 'b': 0.55, 'c': 0.9}
    """
    groups: list[list[Key]] = []
    for name in sorted(heights, key=lambda name: heights[name]):
        groups.append([name])
        while len(groups) > 1 and _bottom(groups[-1], heights, gap) - _top(groups[-2], heights, gap) < gap:
            last = groups.pop()
            groups[-1] += last
    return {
        name: _bottom(group, heights, gap) + place * gap
        for group in groups
        for place, name in enumerate(group)
    }


def _bottom(group: list[Key], heights: Mapping[Key, float], gap: float) -> float:
    mean = sum(heights[name] for name in group) / len(group)
    return mean - gap * (len(group) - 1) / 2


def _top(group: list[Key], heights: Mapping[Key, float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)


def panel_svg(panel: Panel) -> bytes:
    """Return one panel as an SVG file, for a page that arranges panels itself."""
    axes = new_axes()
    panel.draw(axes)
    return _svg(axes.figure)


def save_picture(picture: Picture, folder: Path) -> list[Path]:
    """Write all panels as one PNG and one SVG, and return the files.

    Raises
    ------
    ImportError
        If matplotlib is not installed, with the command to install it.
    """
    rows = -(-len(picture.panels) // picture.columns)
    figure = new_figure(rows, picture.columns)
    figure.suptitle(picture.title, x=0.01, ha="left", fontweight="bold")
    grid = np.atleast_1d(figure.subplots(rows, picture.columns)).ravel()
    for axes, panel in zip(grid, picture.panels, strict=False):
        axes.set_title(panel.title, loc="left")
        panel.draw(axes)
    for axes in grid[len(picture.panels) :]:
        axes.set_axis_off()
    png, svg = folder / f"{picture.name}.png", folder / f"{picture.name}.svg"
    with replacing(png) as file:
        figure.savefig(file, format="png", dpi=130, metadata={"Software": None})
    write_atomically(svg, _svg(figure))
    return [png, svg]


def _svg(figure: Any) -> bytes:
    from matplotlib import rc_context

    buffer = BytesIO()
    with rc_context(PLAIN_SVG):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
