"""The section of the report on the right panel of the paper's Gaussian figure."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import AUTHORS_LOG, SETTINGS, ReachRow, fit_slope
from paper.reports.figures import label_ends, plain_axes
from paper.reports.section import Finding, Panel, Picture, Section, Table
from swiftem.core.types import Array
from swiftem.report.numbers import signed, style_of

__all__ = ["scaling_section"]

MEASURES = {
    "stays": "iterations (one of EM counts as n)",
    "passes": "passes (E-steps divided by n)",
    "seconds": "seconds of computing",
}
LINEAR, TWO_THIRDS = (0.9, 1.1), (0.55, 0.8)
"""Slopes that count as n and as n^(2/3)."""


class Reached:
    """The rows of one setting: the cost of each method, by sample size."""

    def __init__(self, rows: Sequence[ReachRow]) -> None:
        self.rows = rows
        self.sizes = sorted({row.n for row in rows})
        self.methods = list(dict.fromkeys(row.method for row in rows))

    def values(self, method: str, n: int, measure: str) -> Array:
        """Return a measure over the runs, shape (runs,); NaN if the precision was not reached."""
        return np.array([getattr(row, measure) for row in self.rows if row.method == method and row.n == n])

    def mean(self, method: str, n: int, measure: str) -> float:
        """Return the mean over the runs; NaN unless all of them reached the precision."""
        values = self.values(method, n, measure)
        return float(values.mean()) if len(values) else nan

    def means(self, method: str, measure: str) -> list[float]:
        """Return the means by sample size."""
        return [self.mean(method, n, measure) for n in self.sizes]

    def slope(self, method: str, measure: str = "stays") -> float:
        """Return the slope on log-log axes."""
        return fit_slope(self.sizes, self.means(method, measure))


def scaling_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.gmm_scaling.gmm_scaling`.

    >>> from paper.experiments.gmm_scaling import gmm_scaling
    >>> section = scaling_section(gmm_scaling(sizes=[500, 1000], runs=1, settings=["known"]))
    >>> [picture.name for picture in section.pictures], len(section.findings)
    (['gmm-scaling-known'], 2)
    """
    lead = (
        "The paper's figure 1, right: the number of iterations until |μ − μ*|² is below 10⁻³, as the "
        "sample grows. In theory it is of the order of n for iEM and n^(2/3) for sEM-VR and fiEM. Here "
        "reached means that a run stays below: a noisy run is briefly below long before it has converged. "
        "γ = 0.3·n^(−2/3), for which the noise is well below the precision."
    )
    by_setting = {
        name: Reached([row for row in experiment.rows if row.setting == name])
        for name in SETTINGS
        if any(row.setting == name for row in experiment.rows)
    }
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    for name, reached in by_setting.items():
        if name == "authors":
            findings.append(_beside_the_log(reached))
            tables.append(_log_table(reached))
        else:
            if len(reached.sizes) > 1:  # after Ctrl-C there may be no slope
                findings += _slopes(reached) if name == "known" else [_free_slopes(reached)]
            pictures.append(_picture(name, reached))
            tables.append(_table(name, reached))
    return Section(
        "gmm-scaling",
        "Iterations as the sample grows",
        lead,
        findings,
        pictures,
        tables,
        experiment.settings,
        "gmm-scaling.csv" if experiment.rows else "",
        experiment.interrupted,
    )


def _slope_text(reached: Reached, methods: Sequence[str]) -> str:
    return ", ".join(f"{signed(reached.slope(m), 2)} ({style_of(m).label})" for m in methods)


def _slopes(reached: Reached) -> list[Finding]:
    findings = []
    for claim, methods, (low, high) in (
        ("iEM needs of the order of n iterations, and so does EM.", ("em", "iem"), LINEAR),
        ("sEM-VR and fiEM need of the order of n^(2/3) iterations.", ("sem-vr", "fiem"), TWO_THIRDS),
    ):
        holds = all(low <= reached.slope(m) <= high for m in methods)
        slopes = _slope_text(reached, methods)
        words = f"Known weights: slopes {slopes} for n = {_range(reached)}; {low} to {high} expected."
        words += _given_up("known", [row for row in reached.rows if row.method in methods])
        brief = f"slopes {slopes}; expected {low} to {high}"
        findings.append(Finding(claim, "agrees" if holds else "disagrees", words, brief))
    return findings


def _free_slopes(reached: Reached) -> Finding:
    words = (
        f"Slopes {_slope_text(reached, reached.methods)} for n = {_range(reached)}. Read them with care: "
        "with estimated weights the optimum μ* itself varies from sample to sample, most at small n, and so "
        "does the path, as the width of the bands shows." + _given_up("free", reached.rows)
    )
    return Finding(
        "With free weights (not in the paper; the authors' code has known weights).",
        "beyond",
        words,
        f"slopes {_slope_text(reached, reached.methods)}",
    )


def _given_up(setting: str, rows: Sequence[ReachRow]) -> str:
    """Return a sentence on the runs that were given up, if any."""
    missed = sum(not isfinite(row.stays) for row in rows)
    if not missed:
        return ""
    return (
        f" {missed} of {len(rows)} runs were given up after {SETTINGS[setting].most_epochs} epochs; a size "
        "with such a run is omitted from its method's slope."
    )


def _range(reached: Reached) -> str:
    return f"{reached.sizes[0]:,} to {reached.sizes[-1]:,}"


def _beside_the_log(reached: Reached) -> Finding:
    ratios = [reached.mean(m, n, "first") / AUTHORS_LOG[n][m] for n in reached.sizes for m in reached.methods]
    known = [ratio for ratio in ratios if isfinite(ratio)]
    if known:
        low, high = min(known), max(known)
        brief = f"first below 10⁻³ at {low:.2f} to {high:.2f} times their iterations"
        words = f"Counted to the first time below 10⁻³, ours are {low:.2f} to {high:.2f} times theirs."
    else:
        low, high = nan, nan
        brief, words = "not reached", "None of our runs fell below 10⁻³."
    if 0 < len(known) < len(ratios):
        words += f" In {len(ratios) - len(known)} of {len(ratios)} cases a run did not fall below it."
    later = [
        reached.mean(m, n, "stays") / reached.mean(m, n, "first")
        for n in reached.sizes
        for m in ("sem-vr", "fiem")
    ]
    later = [ratio for ratio in later if isfinite(ratio)]
    if later:
        words += (
            f" To stay below, sEM-VR and fiEM take up to {max(later):.1f} times as many: with "
            "c = 1 their noise is as large as the precision."
        )
    agrees = len(known) == len(ratios) and low >= 0.5 and high <= 2
    return Finding(
        "The authors' logged iterations (c = 1, known weights).",
        "agrees" if agrees else "disagrees",
        words,
        brief,
    )


def _picture(name: str, reached: Reached) -> Picture:
    def panel(measure: str) -> Panel:
        def draw(axes: Any) -> None:
            plain_axes(axes, x="samples n", y=MEASURES[measure], log_x=True, log_y=True)
            ends = []
            for m in reached.methods:
                style, means = style_of(m), np.array(reached.means(m, measure))
                values = [reached.values(m, n, measure) for n in reached.sizes]
                axes.plot(reached.sizes, means, style.line, color=style.colour, marker="o", linewidth=2)
                low = [np.nanmin(v) if np.isfinite(v).any() else nan for v in values]
                high = [np.nanmax(v) if np.isfinite(v).any() else nan for v in values]
                axes.fill_between(reached.sizes, low, high, color=style.colour, alpha=0.15, linewidth=0)
                known = means[np.isfinite(means)]
                if len(known):
                    slope = reached.slope(m, measure)
                    text = f"{style.label}  {signed(slope, 2)}" if isfinite(slope) else style.label
                    ends.append((float(known[-1]), text, style.colour))
            if measure == "stays":
                _guides(axes, reached)
            label_ends(axes, ends)

        name = "iterations" if measure == "stays" else measure
        return Panel(f"{name} (slopes next to the names)", draw)

    title = f"Cost to stay below 10⁻³, {SETTINGS[name].title}"
    slopes = _slope_text(reached, reached.methods)
    return Picture(
        f"gmm-scaling-{name}",
        title,
        f"{title}: slopes of iterations {slopes}",
        [panel(m) for m in MEASURES],
        columns=3,
    )


def _guides(axes: Any, reached: Reached) -> None:
    """Draw n and n^(2/3) next to the curves, each slightly below a method that should follow it."""
    sizes = np.array(reached.sizes, dtype=np.float64)
    for method, exponent, name in (("iem", 1.0, "n"), ("fiem", 2 / 3, "n^(2/3)")):
        first = reached.mean(method, reached.sizes[0], "stays") if method in reached.methods else nan
        if isfinite(first):
            axes.plot(
                sizes, 0.6 * first * (sizes / sizes[0]) ** exponent, ":", color="#777777", linewidth=1.5
            )
            middle = len(sizes) // 2
            height = 0.6 * first * (sizes[middle] / sizes[0]) ** exponent
            axes.annotate(
                f"∝ {name}", (sizes[middle], height), (4, -12), textcoords="offset points", color="#555555"
            )


def _count(value: float) -> str:
    return f"{value:,.0f}" if isfinite(value) else "not reached"


def _table(name: str, reached: Reached) -> Table:
    rows = [
        [f"{n:,}", *(_count(reached.mean(m, n, "stays")) for m in reached.methods)] for n in reached.sizes
    ]
    rows.append(["slope", *(signed(reached.slope(m), 2) for m in reached.methods)])
    head = ["n", *(style_of(m).label for m in reached.methods)]
    return Table(f"Iterations to stay below 10⁻³, {SETTINGS[name].title}, mean over the runs", head, rows)


def _log_table(reached: Reached) -> Table:
    rows = [
        [
            f"{style_of(m).label}, n = {n:,}",
            _count(AUTHORS_LOG[n][m]),
            _count(reached.mean(m, n, "first")),
            _count(reached.mean(m, n, "stays")),
        ]
        for n in reached.sizes
        for m in reached.methods
    ]
    head = ["", "authors", "ours, first below", "ours, stays below"]
    return Table("The authors' log and ours: γ = n^(−2/3), known weights, mean over the runs", head, rows)
