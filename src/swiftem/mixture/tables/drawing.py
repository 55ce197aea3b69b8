"""Plots of the columns of a mixture: bars of probabilities, curves of densities, lines of regressions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.show.drawing import COLOURS, plain_axes

WIDE = 3
"""Panels in a row of a new figure."""
GREY = "#DDDDDD"
LABEL = 14
"""Characters of a label of a bar."""


def draw_columns(
    panels: Sequence[Any], weights: Any, rows: Sequence[NDArray[Any] | None], axes: Any = None
) -> NDArray[Any]:
    """Draw one panel per column: the components in their colours, and the data in grey.

    Parameters
    ----------
    panels : sequence of Panel
        Name, values or labels, and heights (M, k) of each column.
    weights : array-like, shape (M,)
        Mixing weights, in the legend. Densities are drawn without them.
    rows : sequence of ndarray or None
        The values of each column in the data, drawn as a histogram below the curves.
    axes : array of matplotlib axes, optional
        One for each panel; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib axes, shape (len(panels),)
        ``[0].figure`` has ``savefig``.
    """
    found = _axes_for(len(panels), axes)
    n_components = len(weights)
    for panel, values, ax in zip(panels, rows, found, strict=True):
        plain_axes(ax, x="", y=panel.what)
        ax.set_title(panel.name, fontsize=10)
        if panel.x is None:
            _bars(ax, panel, n_components)
        else:
            _curves(ax, panel, values)
    drawn = zip(panels, rows, strict=True)
    has_data = any(panel.x is not None and values is not None for panel, values in drawn)
    _legend(found, weights, axes, has_data=has_data)
    return found


class Curves(NamedTuple):
    """What to draw of a column of regressors: means of y (M, k) over ``x`` (k,), and the data.

    ``rows`` (n,) is the column, ``values`` (n,) has the responses and ``labels`` (n,) their components, or
    both are None.
    """

    name: str
    x: NDArray[Any]
    heights: NDArray[Any]
    rows: NDArray[Any]
    values: NDArray[Any] | None
    labels: NDArray[Any] | None


def draw_curves(panels: Sequence[Curves], weights: Any, response: str, axes: Any = None) -> NDArray[Any]:
    """Draw one panel per column of regressors: a curve for each component, and the rows as points.

    Parameters
    ----------
    panels : sequence of Curves
        The columns.
    weights : array-like, shape (M,)
        Mixing weights, in the legend.
    response : str
        Name of the response.
    axes
        As in :func:`draw_columns`, which returns the same.
    """
    found = _axes_for(len(panels), axes)
    for panel, ax in zip(panels, found, strict=True):
        plain_axes(ax, x="", y=response)
        ax.set_title(panel.name, fontsize=10)
        for m, heights in enumerate(panel.heights):
            colour = COLOURS[m % len(COLOURS)]
            if panel.values is not None:
                here = panel.labels == m
                ax.scatter(panel.rows[here], panel.values[here], s=6, color=colour, alpha=0.35, linewidths=0)
            ax.plot(panel.x, heights, color=colour, linewidth=1.8, zorder=3)
    _legend(found, weights, axes, has_data=False)
    return found


def _axes_for(count: int, axes: Any) -> NDArray[Any]:
    """Return the axes as given, or those of a new figure."""
    found = _new_axes(count) if axes is None else np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(found) != count:
        raise ValueError(f"axes must be one per column, {count}, got {len(found)}.")
    return found


def _legend(found: NDArray[Any], weights: Any, axes: Any, *, has_data: bool) -> None:
    """Draw the legend: outside the panels of a new figure, else in the first panel."""
    from matplotlib.patches import Patch

    labels = [f"component {m}: {100 * float(weight):.0f} %" for m, weight in enumerate(weights)]
    handles = [Patch(color=COLOURS[m % len(COLOURS)]) for m in range(len(weights))]
    if has_data:
        handles, labels = [*handles, Patch(color=GREY)], [*labels, "data"]
    if axes is None:
        found[0].figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 4), frameon=False, fontsize=9
        )
    else:
        found[0].legend(handles, labels, frameon=False, fontsize=8)


def _new_axes(count: int) -> NDArray[Any]:
    import matplotlib.pyplot as plt

    across = min(count, WIDE)
    down = ceil(count / across)
    size = max(3.2 * across, 4.2), 2.5 * down + 0.5
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.ravel()[count:]:
        figure.delaxes(ax)
    found: NDArray[Any] = axes.ravel()[:count]
    return found


def _bars(axes: Any, panel: Any, n_components: int) -> None:
    """Draw groups of bars, one for each component."""
    place = np.arange(len(panel.labels))
    width = 0.84 / n_components
    for m, heights in enumerate(panel.heights):
        at = place + (m - 0.5 * (n_components - 1)) * width
        axes.bar(at, heights, 0.92 * width, color=COLOURS[m % len(COLOURS)])
    names = [label if len(label) <= LABEL else label[: LABEL - 1] + "…" for label in panel.labels]
    tilt = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, names)) > 30 else {}
    axes.set_xticks(place, names, fontsize=8, **tilt)
    if panel.what == "probability":
        axes.set_ylim(0, None)


def _curves(axes: Any, panel: Any, values: NDArray[Any] | None) -> None:
    """Draw a curve for each component, over a histogram of the data."""
    is_count = panel.what == "probability"
    if values is not None:
        if is_count:
            edges = np.append(panel.x, 2.0 * panel.x[-1] - panel.x[-2]) - 0.5 * (panel.x[1] - panel.x[0])
        else:
            edges = np.linspace(panel.x[0], panel.x[-1], 41)
        counts, _ = np.histogram(values, edges)
        share = counts / (len(values) * (1.0 if is_count else edges[1] - edges[0]))
        axes.stairs(share, edges, color=GREY, fill=True, zorder=1)
    for m, heights in enumerate(panel.heights):
        colour = COLOURS[m % len(COLOURS)]
        axes.plot(panel.x, heights, color=colour, linewidth=1.8, zorder=2)
        axes.fill_between(panel.x, heights, color=colour, alpha=0.12, linewidth=0, zorder=1.5)
    finite = panel.heights[np.isfinite(panel.heights)]
    if len(finite):  # a density may be infinite at a bound
        axes.set_ylim(0, 1.05 * min(float(finite.max()), 20.0 * float(np.quantile(finite, 0.9)) or np.inf))
    axes.set_xlim(panel.x[0], panel.x[-1])
