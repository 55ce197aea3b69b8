"""The figure of the theorems in numbers, and the means in the figure and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

from paper.experiments.theory_run import TheoryRow
from paper.reports.figures import label_ends, plain_axes
from paper.reports.section import Panel, Picture
from swiftem.report.numbers import style_of

__all__ = ["Averages", "theory_picture"]

LOCAL_STYLES = {
    "fiem default": ("γ = n^(−2/3)", "#D55E00"),
    "fiem 1/n": ("γ = 1/n", "#0072B2"),
    "fiem proposition": ("Proposition's γ", "#009E73"),
}


class Averages:
    """Means over the runs, by part, method and size; steps have their kind in the part, ``"step:bound"``."""

    def __init__(self, rows: Sequence[TheoryRow]) -> None:
        self.sizes = sorted({row.n for row in rows})
        self._values: dict[tuple[str, str, int], list[TheoryRow]] = {}
        for row in rows:
            part = f"step:{row.kind}" if row.part == "step" else row.part
            self._values.setdefault((part, row.method, row.n), []).append(row)

    def of(self, part: str, method: str, n: int, field: str) -> float:
        """Return the mean of a field; NaN if there is no row."""
        found = self._values.get((part, method, n), [])
        return float(np.mean([getattr(row, field) for row in found])) if found else nan

    def line(self, part: str, method: str, field: str) -> list[float]:
        """Return the means by size."""
        return [self.of(part, method, n, field) for n in self.sizes]

    def outside(self, part: str) -> int:
        """Return how many rows of a part were not inside."""
        return sum(not row.inside for key, rows in self._values.items() if key[0] == part for row in rows)

    def nearest(self, n: int) -> int:
        """Return the size that is nearest to ``n``."""
        return min(self.sizes, key=lambda size: abs(np.log(size / n)))


def theory_picture(averages: Averages) -> Picture:
    """Return the three panels: both sides of the theorems, step sizes, and fiem's local rate."""
    return Picture(
        "theory",
        "The theorems in numbers: two Gaussians, δ = ε = 1",
        "Left: squared gradients at a random iteration, as measured, far below the theorems' bounds, neither "
        "growing with n. Middle: the theorem's step sizes, thousands of times below the default. Right: "
        "fiEM's rate near its limit falls like 1/n for each of three steps.",
        [
            Panel("squared gradient at a random K", lambda axes: _sides(axes, averages)),
            Panel("step size γ of Theorem 2, and default", lambda axes: _steps(axes, averages)),
            Panel("fiEM near its limit: error ∝ (1 − δ)^k", lambda axes: _local(axes, averages)),
        ],
        columns=3,
    )


def _sides(axes: Any, averages: Averages) -> None:
    plain_axes(axes, x="samples n", y="mean of ‖∇‖² over runs and K", log_x=True, log_y=True)
    ends = []
    for method in ("iem", "sem-vr", "fiem"):
        style = style_of(method)
        measured, bound = (averages.line("theorem", method, field) for field in ("measured", "right_side"))
        axes.plot(averages.sizes, measured, "-", color=style.colour, marker="o", linewidth=2)
        axes.plot(averages.sizes, bound, "--", color=style.colour, linewidth=2)
        ends += [
            (measured[-1], f"{style.label}, measured", style.colour),
            (bound[-1], f"{style.label}, bound", style.colour),
        ]
    label_ends(axes, ends)


def _steps(axes: Any, averages: Averages) -> None:
    plain_axes(axes, x="samples n", y="γ", log_x=True, log_y=True)
    ends = []
    for part, kind, words in (("theorem", "-", "δ = ε = 1"), ("step:bound", ":", "δ = ε = 10⁻³")):
        for method in ("sem-vr", "fiem"):
            style = style_of(method)
            line = averages.line(part, method, "gamma")
            axes.plot(averages.sizes, line, kind, color=style.colour, marker="o", linewidth=2)
            ends.append((line[-1], f"{style.label}, {words}", style.colour))
    default = averages.line("practice", "sem-vr", "gamma")
    axes.plot(averages.sizes, default, "-", color="#000000", marker="o", linewidth=2)
    label_ends(axes, [*ends, (default[-1], "default, n^(−2/3)", "#000000")])


def _local(axes: Any, averages: Averages) -> None:
    plain_axes(axes, x="samples n", y="fitted δ", log_x=True, log_y=True)
    ends = []
    for name, (words, colour) in LOCAL_STYLES.items():
        line = averages.line("local", name, "measured")
        axes.plot(averages.sizes, line, "-", color=colour, marker="o", linewidth=2)
        ends.append((line[-1], words, colour))
    proved = averages.line("local", "fiem proposition", "right_side")
    colour = LOCAL_STYLES["fiem proposition"][1]
    axes.plot(averages.sizes, proved, "--", color=colour, linewidth=2)
    ends.append((proved[-1], "its δ, estimate", colour))
    sizes = np.array(averages.sizes, dtype=np.float64)
    guide = 4.0 * averages.of("local", "fiem default", averages.sizes[0], "measured") * sizes[0] / sizes
    axes.plot(sizes, guide, ":", color="#777777", linewidth=1.5)
    middle = len(sizes) // 2
    axes.annotate(
        "∝ 1/n", (sizes[middle], guide[middle]), (4, 4), textcoords="offset points", color="#555555"
    )
    label_ends(axes, ends)
