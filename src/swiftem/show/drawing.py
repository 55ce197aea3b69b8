"""Axes of all figures."""

from __future__ import annotations

from typing import Any

__all__ = ["new_axes", "new_figure", "plain_axes"]

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
