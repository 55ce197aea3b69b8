"""Plots of Gaussian mixtures of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.types import Array
from swiftem.show.drawing import COLOURS, new_axes, plain_axes

__all__ = ["draw_mixture"]

MOST_POINTS = 4000
"""Maximum number of rows that are plotted: more make a plot slower, not clearer."""
LARGEST_ASPECT = 5.0
"""If one axis is longer than the other by this factor, equal units would leave a narrow strip."""
NOTE = {"fontsize": 8, "color": "#666666"}


def draw_mixture(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    X: ArrayLike | None = None,
    axes: Any = None,
    names: Sequence[str] | None = None,
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
    X : array-like, shape (n, 2), optional
        Rows, drawn as light points; of many rows a random sample.
    axes : matplotlib axes, optional
        Axes to use; by default of a new figure.
    names : sequence of str, optional
        Names of the two columns; by default of ``X``, if it has names.

    Returns
    -------
    matplotlib axes
        As of :func:`draw_history`.

    Examples
    --------
    >>> from swiftem.mixture.plots import draw_mixture
    >>> axes = draw_mixture([0.4, 0.6], [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[1, 0], [0, 1]]])
    >>> axes.get_xlabel()
    'column 0'
    """
    weight, mean, covariance = (np.asarray(part, dtype=np.float64) for part in (weights, means, covariances))
    if mean.ndim != 2 or mean.shape[1] != 2 or covariance.shape != (len(mean), 2, 2):
        raise ValueError(
            "draw_mixture needs means of shape (M, 2) and covariances of shape (M, 2, 2), "
            f"got {mean.shape} and {covariance.shape}."
        )
    names = getattr(X, "columns", None) if names is None else names
    x, y = ("column 0", "column 1") if names is None else (str(name) for name in names)
    axes = new_axes() if axes is None else axes
    plain_axes(axes, x=x, y=y)
    note = "ellipses: 1 and 2 standard deviations"
    corners = [np.empty((0, 2))]
    if X is not None:
        rows, said = _shown(X)
        from matplotlib.lines import Line2D

        # As an artist, not by plot(): a single outlier must not determine the limits.
        axes.add_artist(
            Line2D(
                rows[:, 0],
                rows[:, 1],
                linestyle="",
                marker="o",
                color="#9A9A9A",
                markersize=2.5,
                markeredgewidth=0,
                alpha=0.55,
                zorder=1.5,
                rasterized=True,
            )
        )
        note = f"{note}; {said}"
        corners.append(np.quantile(rows, [0.001, 0.999], axis=0))
    for number in np.argsort(-weight, kind="stable"):
        colour = COLOURS[number % len(COLOURS)]
        corners.append(_ellipses(axes, int(number), mean[number], covariance[number], colour))
    _frame(axes, np.concatenate(corners))
    axes.text(1.0, 1.01, note, transform=axes.transAxes, ha="right", va="bottom", **NOTE)
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
    axes.text(
        *mean,
        str(number),
        color=colour,
        fontweight="bold",
        ha="center",
        va="center",
        zorder=4,
        path_effects=halo,
    )
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
        alone = all(
            len(shared.get_siblings(axes)) == 1
            for shared in (axes.get_shared_x_axes(), axes.get_shared_y_axes())
        )
        # Axes that share their limits with others keep them, and change their shape instead.
        axes.set_aspect("equal", adjustable="datalim" if alone else "box")
