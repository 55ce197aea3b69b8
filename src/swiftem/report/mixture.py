"""Plots of mixtures: their components, the history of a fit, and the choice among several fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.types import Array
from swiftem.show.drawing import COLOURS, new_axes, plain_axes
from swiftem.show.numbers import style_of

if TYPE_CHECKING:
    from swiftem.fit.history import Moment

__all__ = ["draw_history", "draw_mixture"]

MOST_POINTS = 4000
"""Maximum number of rows that are plotted: more make a plot slower, not clearer."""
LARGEST_ASPECT = 5.0
"""If one axis is longer than the other by this factor, equal units would leave a narrow strip."""
NOTE = {"fontsize": 8, "color": "#666666"}


def draw_history(history: Iterable[Moment], axes: Any = None) -> Any:
    """Plot the mean log-likelihood against the passes, in the colours of the methods.

    A stochastic fit may begin with a pass of sem; that part is shaded. If steps were rejected, because they
    left the model's domain, crosses at the bottom show when, and the legend has their number.

    Parameters
    ----------
    history : iterable of Moment
        The evaluations of a fit, in order, as in ``history_``.
    axes : matplotlib axes, optional
        Axes to use; by default those of a new figure.

    Returns
    -------
    matplotlib axes
        Their ``figure`` has ``savefig``.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    >>> mixture.plot_convergence().get_ylabel()
    'mean log-likelihood'
    """
    moments = list(history)
    axes = new_axes() if axes is None else axes
    plain_axes(axes, x="passes over the data", y="mean log-likelihood")
    runs = [list(run) for _, run in groupby(moments, key=lambda moment: moment.method)]
    size = 6 if len(moments) < 15 else 3 if len(moments) < 60 else 0
    before: list[Moment] = []
    for number, run in enumerate(runs):
        style = style_of(run[0].method)
        points = [*before, *run]
        axes.plot(
            [moment.passes for moment in points],
            [-moment.objective for moment in points],
            style.line,
            color=style.colour,
            linewidth=2,
            marker="o",
            markersize=size,
            markevery=(len(before), 1),
            label=_once(axes, style.label + (", at first" if number == 0 and len(runs) > 1 else "")),
        )
        before = run[-1:]
    if len(runs) > 1:
        axes.axvspan(0, runs[0][-1].passes, color=style_of(runs[0][0].method).colour, alpha=0.12, linewidth=0)
    _mark_rejected(axes, runs)
    axes.set_xlim(left=0)
    if moments:
        axes.legend(loc="best", frameon=False)
    else:
        axes.text(
            0.5,
            0.5,
            "no history: the model was given, not fitted",
            transform=axes.transAxes,
            ha="center",
            **NOTE,
        )
    return axes


def _once(axes: Any, label: str) -> str:
    """Return a label that is hidden if the axes already have it: several fits may share them."""
    return f"_{label}" if label in axes.get_legend_handles_labels()[1] else label


def _mark_rejected(axes: Any, runs: Sequence[Sequence[Moment]]) -> None:
    """Draw a cross where steps were rejected since the last evaluation; counts restart with each method."""
    when: list[float] = []
    total = 0
    for run in runs:
        counts = np.array([moment.rejected for moment in run])
        when += [run[place].passes for place in np.flatnonzero(np.diff(counts, prepend=0) > 0).tolist()]
        total += int(counts[-1])
    if total:
        axes.plot(
            when,
            np.full(len(when), 0.03),
            "x",
            color="#555555",
            transform=axes.get_xaxis_transform(),
            label=f"{total:,} step{'s' if total > 1 else ''} rejected",
        )


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
        Axes to use; by default those of a new figure.
    names : sequence of str, optional
        Names of the two columns; by default those of ``X``, if it has names.

    Returns
    -------
    matplotlib axes
        As of :func:`draw_history`.

    Examples
    --------
    >>> from swiftem.report.mixture import draw_mixture
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
