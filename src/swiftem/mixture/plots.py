"""Plots of mixtures: ellipses of two columns, bars and curves of single columns, lines of regressions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.types import Array
from swiftem.show.drawing import COLOURS, new_axes, plain_axes

MOST_POINTS = 4000
"""Maximum number of rows that are plotted: more make a plot slower, not clearer."""
LARGEST_ASPECT = 5.0
"""If one axis is longer than the other by this factor, equal units would leave a narrow strip."""
NOTE: dict[str, Any] = {"fontsize": 8, "color": "#666666", "ha": "right", "va": "bottom"}
POINTS: dict[str, Any] = {
    "marker": "o",
    "color": "#9A9A9A",
    "markersize": 2.5,
    "markeredgewidth": 0,
    "alpha": 0.55,
}
NUMBER: dict[str, Any] = {"fontweight": "bold", "ha": "center", "va": "center", "zorder": 4}
"""Styles of the note, of rows and of the numbers of components."""
WIDE = 3
"""Panels in a row of a new figure."""
GREY = "#DDDDDD"
LABEL = 14
"""Characters of a label of a bar."""


def draw_mixture(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    names: Sequence[str],
    X: ArrayLike | None = None,
    axes: Any = None,
) -> Any:
    """Plot a mixture of two columns: ellipses at one and two standard deviations, with component numbers.

    Parameters
    ----------
    weights : array-like, shape (M,)
        Mixing weights: heavier components are drawn below lighter ones.
    means : array-like, shape (M, 2)
        Means.
    covariances : array-like, shape (M, 2, 2)
        Covariances.
    names : sequence of str
        Names of the two columns.
    X : array-like, shape (n, 2), optional
        Rows, drawn as light points; of many rows a random sample.
    axes : matplotlib axes, optional
        Axes to use; by default of a new figure.

    Returns
    -------
    matplotlib axes
        As of :func:`draw_history`.

    Examples
    --------
    >>> from swiftem.mixture.plots import draw_mixture
    >>> covariances = [[[1, 0.5], [0.5, 1]], [[1, 0], [0, 1]]]
    >>> draw_mixture([0.4, 0.6], [[0, 0], [3, 1]], covariances, ["length", "width"]).get_xlabel()
    'length'
    """
    weight, mean, covariance = (np.asarray(part, dtype=np.float64) for part in (weights, means, covariances))
    axes = new_axes() if axes is None else axes
    plain_axes(axes, x=names[0], y=names[1])
    note = "ellipses: 1 and 2 standard deviations"
    corners = [np.empty((0, 2))]
    if X is not None:
        rows, said = _shown(X)
        from matplotlib.lines import Line2D

        # As an artist, not by plot(): a single outlier must not determine the limits.
        axes.add_artist(Line2D(*rows.T, linestyle="", zorder=1.5, rasterized=True, **POINTS))
        note = f"{note}; {said}"
        corners.append(np.quantile(rows, [0.001, 0.999], axis=0))
    for number in np.argsort(-weight, kind="stable"):
        colour = COLOURS[number % len(COLOURS)]
        corners.append(_ellipses(axes, int(number), mean[number], covariance[number], colour))
    _frame(axes, np.concatenate(corners))
    axes.text(1.0, 1.01, note, transform=axes.transAxes, **NOTE)
    return axes


def _shown(X: ArrayLike) -> tuple[Array, str]:
    """Return the rows to plot, and a short note on them."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"X must be of shape (n, 2) to be drawn, got {rows.shape}.")
    n = len(rows)
    if n <= MOST_POINTS:
        return rows, f"{n:,} rows"
    index = np.random.default_rng(0).choice(n, MOST_POINTS, replace=False)
    return rows[index], f"{MOST_POINTS:,} of {n:,} rows"


def _ellipses(axes: Any, number: int, mean: Array, covariance: Array, colour: str) -> Array:
    """Draw one component; return the corners of its larger ellipse's bounding box."""
    from matplotlib.patches import Ellipse
    from matplotlib.patheffects import withStroke

    lengths, directions = np.linalg.eigh(covariance)
    angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
    minor, major = 2.0 * np.sqrt(np.maximum(lengths, 0.0))
    centre = float(mean[0]), float(mean[1])
    for deviations, fill, line in ((2, 0.10, 1.0), (1, 0.22, 1.8)):
        size = deviations * major, deviations * minor
        axes.add_patch(Ellipse(centre, *size, angle=angle, facecolor=colour, alpha=fill, zorder=2))
        axes.add_patch(
            Ellipse(centre, *size, angle=angle, fill=False, edgecolor=colour, linewidth=line, zorder=3)
        )
    halo = [withStroke(linewidth=3, foreground="white")]
    axes.text(*mean, str(number), color=colour, path_effects=halo, **NUMBER)
    reach = 2.0 * np.sqrt(np.diagonal(covariance))
    return np.array([mean - reach, mean + reach])


def _frame(axes: Any, corners: Array) -> None:
    """Show all ellipses and nearly all rows, in equal units if that gives a useful plot."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    axes.update_datalim(corners)
    axes.margins(0.04)
    axes.autoscale_view()
    if size.max() <= LARGEST_ASPECT * size.min():
        shared = axes.get_shared_x_axes(), axes.get_shared_y_axes()
        alone = all(len(group.get_siblings(axes)) == 1 for group in shared)
        # Axes that share their limits with others keep them, and change their shape instead.
        axes.set_aspect("equal", adjustable="datalim" if alone else "box")


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
        One for each panel; by default of a new figure.

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
    """Return the axes as given, or axes of a new figure."""
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
