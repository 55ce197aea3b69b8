"""Axes of all figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D00")
"""Colours of components, in order: Okabe and Ito's, with a darker yellow for a white background."""
KINDS = {
    "full": ("#0072B2", "o"),
    "tied": ("#D55E00", "s"),
    "diag": ("#009E73", "^"),
    "spherical": ("#CC79A7", "D"),
}
"""Colour and marker of each kind of covariances."""
PANEL_SIZE = (5.4, 4.0)
"""Size of one panel, in inches: its text is as large as the text around it, and legible on a phone."""


def plain_axes(axes: Any, *, x: str, y: str) -> None:
    """Set the labels of axes, and a light grid."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=3, pad=3)
    axes.spines[["top", "right"]].set_visible(False)


def new_axes() -> Any:
    """Return axes of the size of a panel, in a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed, with the command to install it.
    """
    return new_figure(1, 1).subplots()


def new_figure(rows: int, columns: int) -> Any:
    """Return a figure for a grid of panels; ImportError as in :func:`new_axes`."""
    try:
        # Figure itself, not pyplot: it works without a display and does not change the user's backend.
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError(
            "Figures need matplotlib: install it with pip install 'swiftem[plot]'."
        ) from missing
    width, height = PANEL_SIZE
    return Figure(
        figsize=(width * columns, height * rows + (0.3 if rows * columns > 1 else 0)), layout="constrained"
    )


def draw_criterion(
    axes: Any, values: Mapping[str, Mapping[int, float]], best: tuple[str, int], label: str
) -> None:
    """Plot a criterion against the number of components, one line per covariance type.

    Parameters
    ----------
    axes
        Axes to use.
    values : mapping of str to mapping of int to float
        The criterion by covariance type and number of components, without failed fits.
    best : tuple of str and int
        Covariance type and number of components to mark.
    label : str
        Label of the criterion.
    """
    from matplotlib.ticker import MaxNLocator

    plain_axes(axes, x="number of components", y=label)
    for number, (kind, line) in enumerate(values.items()):
        colour, marker = KINDS.get(kind, (COLOURS[number % len(COLOURS)], "o"))
        counts = sorted(line)
        found = [line[count] for count in counts]
        axes.plot(counts, found, color=colour, linewidth=1.8, marker=marker, markersize=5, label=kind)
    kind, count = best
    place = count, values[kind][count]
    axes.plot(*place, "ko", markersize=15, markerfacecolor="none", markeredgewidth=1.6)
    text = f"best: {kind}, {count}" if len(values) > 1 else f"best: {count}"
    below = {"xytext": (0, -12), "textcoords": "offset points", "ha": "center", "va": "top"}
    axes.annotate(text, place, **below, fontweight="bold")
    axes.margins(y=0.14)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(values) > 1:
        axes.legend(title="covariances" if set(values) <= set(KINDS) else "family", frameon=False)
