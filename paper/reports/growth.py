"""Costs of methods as the sample grows: slopes on log-log axes, panels and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from paper.experiments.gmm_scaling import fit_slope
from paper.reports.figures import Line, line_panel
from paper.reports.section import Panel, Table
from swiftem.core.types import Array
from swiftem.show.numbers import signed, style_of

MISSING = "–"
"""In tables: not all runs reached the precision."""


class Growth:
    """Costs by method, size of the sample and run, from rows with ``method``, ``n`` and ``run``.

    Examples
    --------
    >>> from paper.experiments.gmm_scaling import ReachRow
    >>> rows = [ReachRow("known", "em", n, 0, n, 2.0 * n, 2.0, 0.1) for n in (100, 1000)]
    >>> round(Growth(rows).slope("em", "stays"), 6)
    1.0
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        self._frame = pd.DataFrame(rows)
        self.methods: list[str] = list(self._frame["method"].unique())
        self.sizes: list[int] = sorted(self._frame["n"].unique().tolist())

    @property
    def span(self) -> str:
        """The range of the sizes, in words."""
        return f"{self.sizes[0]:,} to {self.sizes[-1]:,}"

    def values(self, method: str, measure: str) -> Array:
        """Return a measure, shape (runs, sizes); NaN if the precision was not reached."""
        mine = self._frame[self._frame["method"] == method]
        by_run = mine.pivot(index="run", columns="n", values=measure).reindex(columns=self.sizes)
        return np.asarray(by_run, dtype=np.float64)

    def means(self, method: str, measure: str) -> list[float]:
        """Return the mean over the runs by size; NaN unless all of them reached the precision."""
        return [float(value) for value in self.values(method, measure).mean(axis=0)]

    def slope(self, method: str, measure: str) -> float:
        """Return the slope of the means on log-log axes."""
        return fit_slope(self.sizes, self.means(method, measure))

    def slopes(self, measure: str, methods: Sequence[str] = ()) -> str:
        """Return the slopes of these methods, by default of all, in words."""
        return ", ".join(
            f"{signed(self.slope(method, measure), 2)} ({style_of(method).label})"
            for method in methods or self.methods
        )

    def panel(self, measure: str, label: str, finish: Callable[[Any], None] = lambda axes: None) -> Panel:
        """Return a panel of the means against n, with the slopes next to the names."""
        lines = []
        for method in self.methods:
            slope = self.slope(method, measure)
            note = signed(slope, 2) if isfinite(slope) else ""
            lines.append(Line(method, np.array(self.sizes, float), self.values(method, measure), note))
        title = f"{label.split(' (')[0]} (slopes next to the names)"
        return line_panel(title, lines, x="samples n", y=label, log="xy", centre=np.mean, finish=finish)

    def table(self, title: str, measure: str) -> Table:
        """Return the means and slopes."""
        columns = [
            [
                *(f"{mean:,.0f}" if isfinite(mean) else MISSING for mean in self.means(method, measure)),
                signed(self.slope(method, measure), 2).replace("none", MISSING),
            ]
            for method in self.methods
        ]
        first = [*(f"{n:,}" for n in self.sizes), "slope"]
        head = ["n", *(style_of(method).label for method in self.methods)]
        return Table(title, head, [list(row) for row in zip(first, *columns, strict=True)])
