"""The figure of squared error against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from swiftem.report.method_names import style_of

__all__ = ["plot_convergence"]

FLOOR = 1e-33
"""Where an error of exactly zero is drawn on the logarithmic axis: below the square of double precision."""

LABEL_GAP = 0.055
"""Least distance between the labels of two curves, as a share of the axis."""


def plot_convergence(
    errors: Mapping[str, Sequence[float]], path: str | Path, *, title: str, subtitle: str = ""
) -> Path:
    r"""Draw squared error against epochs, the error logarithmically, and save it as a PNG.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        Method's name to its :math:`|\mu - \mu^\star|^2` after epochs 0, 1, ...; lengths may differ.
    path : str or Path
        The file to write.
    title, subtitle : str
        What is seen, and of what.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        Without matplotlib, with the command that installs it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.report.convergence import plot_convergence
    >>> errors = {"em": [1.0, 0.5], "fiem": [1.0, 1e-4]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = plot_convergence(errors, pathlib.Path(folder, "two.png"), title="Two methods")
    ...     file.read_bytes()[:4]
    b'\x89PNG'
    """
    try:
        # Figure itself, not pyplot: that works without a screen and leaves the user's backend alone.
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
    except ImportError as missing:
        raise ImportError(
            "Figures need matplotlib: install it with pip install 'swiftem[plot]'."
        ) from missing
    if not any(len(series) for series in errors.values()):
        raise ValueError("errors must have at least one value to draw, got none.")

    figure = Figure(figsize=(8.4, 5.2), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    ends: dict[str, float] = {}
    for method, series in errors.items():
        if not len(series):
            continue
        style = style_of(method)
        drawn = np.maximum(np.asarray(series, dtype=np.float64), FLOOR)
        # A single value is no line: it needs a dot to be seen.
        dot = "o" if len(drawn) == 1 else ""
        axes.plot(drawn, style.line, color=style.colour, linewidth=2.2, marker=dot)
        ends[method] = float(drawn[-1])

    axes.set_yscale("log")
    axes.set_xlim(0, max(1, *(len(series) - 1 for series in errors.values())))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("epochs (n iterations each; for EM one iteration, which is a full pass)")
    axes.set_ylabel(r"squared error of the means $|\mu - \mu^\star|^2$ (data units squared)")
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=26 if subtitle else 10)
    axes.annotate(
        subtitle, (0, 1), (0, 10), xycoords="axes fraction", textcoords="offset points", color="#444444"
    )

    low, high = np.log10(axes.get_ylim())
    heights = {method: (np.log10(end) - low) / (high - low) for method, end in ends.items()}
    for method, height in spread(heights, LABEL_GAP).items():
        style = style_of(method)
        axes.annotate(
            f"{style.label}  {errors[method][-1]:.0e}",
            xy=(len(errors[method]) - 1, ends[method]),
            xytext=(1.02, height),
            textcoords="axes fraction",
            color=style.colour,
            fontsize=11,
            fontweight="bold",
            va="center",
        )
    file = Path(path)
    figure.savefig(file, format="png")
    return file


def spread(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Return heights in the same order, moved apart where two are closer than ``gap``.

    Neighbours that collide form a group, which is centred where its members were.

    >>> {name: round(height, 2) for name, height in spread({"a": 0.5, "b": 0.5, "c": 0.9}, 0.1).items()}
    {'a': 0.45, 'b': 0.55, 'c': 0.9}
    """
    groups: list[list[str]] = []
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


def _bottom(group: list[str], heights: Mapping[str, float], gap: float) -> float:
    mean = sum(heights[name] for name in group) / len(group)
    return mean - gap * (len(group) - 1) / 2


def _top(group: list[str], heights: Mapping[str, float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)
