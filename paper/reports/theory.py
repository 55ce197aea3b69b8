"""The section of the report on the paper's theorems in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import fit_slope
from paper.experiments.theory import LOCAL_STEPS, TheoryRow
from paper.reports.figures import label_ends, plain_axes
from paper.reports.growth import MISSING
from paper.reports.numbers import short
from paper.reports.section import Finding, Panel, Picture, Section, Table, verdict
from swiftem.show.numbers import signed, style_of

METHODS = ("iem", "sem-vr", "fiem")
ONE_OVER_N = (-1.15, -0.85)
"""Slopes that count as 1/n."""
PROPOSITION = "fiem proposition"
LOCAL_STYLES = {
    "fiem default": ("γ = n^(−2/3)", "#D55E00"),
    "fiem 1/n": ("γ = 1/n", "#0072B2"),
    PROPOSITION: ("Proposition's γ", "#009E73"),
}
LEAD = (
    "The paper proves that the squared gradient at a random iteration K is below a bound, on average "
    "over the draws. Here are the numbers of both sides for a small mixture: the measured gradient, and "
    "the bound with constants that are themselves proven, for runs with the theorem's step size. The "
    "bounds hold, but the steps are far too small for practical use: the theorem says how steps and "
    "iterations should change with n, not how large they should be."
)


class Averages:
    """Means over the runs, by part, method and size; steps have their kind in the part, ``"step:bound"``."""

    def __init__(self, rows: Sequence[TheoryRow]) -> None:
        frame = pd.DataFrame(rows, columns=TheoryRow._fields)
        self.sizes: list[int] = sorted(frame["n"].unique().tolist())
        self.rows = frame.assign(
            part=frame["part"] + (":" + frame["kind"]).where(frame["part"] == "step", "")
        )
        self._means = self.rows.groupby(["part", "method", "n"]).mean(numeric_only=True)

    def line(self, part: str, method: str, field: str) -> list[float]:
        """Return the means of a field by size; NaN if there is no row."""
        return [float(self._means[field].get((part, method, n), nan)) for n in self.sizes]

    def outside(self, part: str, methods: Sequence[str]) -> int:
        """Return how many runs were not checked to be inside."""
        mine = self.rows[(self.rows["part"] == part) & self.rows["method"].isin(methods)]
        return int((~mine["inside"].astype(bool)).sum())


def theory_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.theory.theory_in_numbers`.

    >>> from paper.experiments.theory import theory_in_numbers
    >>> section = theory_section(theory_in_numbers(sizes=[40, 80], runs=1))
    >>> [picture.name for picture in section.pictures], section.findings[0].verdict
    (['theory'], 'agrees')
    """
    title = "The theorems in numbers"
    if not experiment.rows:
        return Section(experiment, title, LEAD)
    averages = Averages(experiment.rows)
    findings = [
        _bound(averages, ("iem",), "Theorem 1: iEM's squared gradient is below (21)."),
        _bound(averages, ("sem-vr", "fiem"), "Theorem 2: those of sEM-VR and fiEM are below (27), (28)."),
    ]
    if len(averages.sizes) > 1:
        findings.append(_local(averages))
    return Section(experiment, title, LEAD, findings, [_picture(averages)], _tables(averages))


def _range(values: Sequence[float]) -> str:
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def _bound(averages: Averages, methods: Sequence[str], claim: str) -> Finding:
    measured, right = (
        [value for m in methods for value in averages.line("theorem", m, field)]
        for field in ("measured", "right_side")
    )
    brief = f"measured {_range(measured)}; bound {_range(right)}"
    outside = averages.outside("theorem", methods)
    words = f"For n from {averages.sizes[0]:,} to {averages.sizes[-1]:,}, with proven constants: {brief}. "
    if outside:
        return Finding(claim, "open", words + f"{outside} runs may have left the theorem's set.", brief)
    words += "All runs were checked to stay in the theorem's set."
    return Finding(claim, verdict(all(m <= r for m, r in zip(measured, right, strict=True))), words, brief)


def _local(averages: Averages) -> Finding:
    rates = {name: averages.line("local", name, "measured") for name in LOCAL_STEPS}
    slopes = {name: fit_slope(averages.sizes, line) for name, line in rates.items()}
    # L_s depends on the largest sample: the step is not proportional to 1/n across samples, but δ is to it.
    with_step = slopes[PROPOSITION] / fit_slope(averages.sizes, averages.line("local", PROPOSITION, "gamma"))
    proved = averages.line("local", PROPOSITION, "right_side")
    faster = [rate / own for rate, own in zip(rates[PROPOSITION], proved, strict=True)]
    plain = [name for name in LOCAL_STEPS if name != PROPOSITION]
    low, high = ONE_OVER_N
    text = ", ".join(f"{signed(slopes[name], 2)} ({LOCAL_STYLES[name][0]})" for name in plain)
    words = (
        f"Near the limit ‖ŝ − s*‖² falls like (1 − δ)^k. Slopes of log δ on log n: {text}; −1 is 1/n, and "
        f"slopes from {signed(low, 2)} to {signed(high, 2)} count as −1. With the proposition's step, "
        "which is not proportional to 1/n across samples, the slope of log δ on log γ is "
        f"{signed(with_step, 2)}, 1 expected, and δ is {_range(faster)} times the proposition's (an "
        "estimate, as L_s is)."
    )
    brief = f"slopes of δ on n: {text}; −1 expected"
    claim = "Proposition 1: fiEM converges linearly near its limit, with δ = Θ(1/n)."
    if averages.outside("local", list(LOCAL_STEPS)):
        return Finding(
            claim, "open", f"{words} Some iterates were farther from the limit than B2 allows.", brief
        )
    holds = all(low <= slope <= high for slope in (*(slopes[name] for name in plain), -with_step))
    return Finding(claim, verdict(holds and min(faster) >= 1), words, brief)


def _picture(averages: Averages) -> Picture:
    """Return the three panels: both sides of the theorems, step sizes, and fiem's local rate."""

    def panel(title: str, y: str, lines: Sequence[tuple[list[float], str, str, str]]) -> Panel:
        def draw(axes: Any) -> None:
            plain_axes(axes, x="samples n", y=y, log="xy")
            for line, kind, colour, _ in lines:
                axes.plot(
                    averages.sizes, line, kind, color=colour, marker="o" if kind == "-" else "", linewidth=2
                )
            label_ends(axes, [(line[-1], label, colour) for line, _, colour, label in lines])

        return Panel(title, draw)

    sides = [
        (averages.line("theorem", m, field), kind, style_of(m).colour, f"{style_of(m).label}, {label}")
        for m in METHODS
        for field, kind, label in (("measured", "-", "measured"), ("right_side", "--", "bound"))
    ]
    steps = [
        (averages.line(part, m, "gamma"), kind, style_of(m).colour, f"{style_of(m).label}, {label}")
        for part, kind, label in (("theorem", "-", "δ = ε = 1"), ("step:bound", ":", "δ = ε = 10⁻³"))
        for m in METHODS[1:]
    ]
    steps.append((averages.line("practice", "sem-vr", "gamma"), "-", "#000000", "default, n^(−2/3)"))
    local = [
        (averages.line("local", name, "measured"), "-", colour, label)
        for name, (label, colour) in LOCAL_STYLES.items()
    ]
    proved = averages.line("local", PROPOSITION, "right_side")
    guide = [4.0 * local[0][0][0] * averages.sizes[0] / n for n in averages.sizes]
    local += [
        (proved, "--", LOCAL_STYLES[PROPOSITION][1], "its δ, estimate"),
        (guide, ":", "#777777", "∝ 1/n"),
    ]
    return Picture(
        "theory",
        "The theorems in numbers: two Gaussians, δ = ε = 1",
        "Left: squared gradients at a random iteration, as measured, far below the theorems' bounds, "
        "neither growing with n. Middle: the theorem's step sizes, thousands of times below the default. "
        "Right: fiEM's rate near its limit falls like 1/n for each of three steps.",
        [
            panel("squared gradient at a random K", "mean of ‖∇‖² over runs and K", sides),
            panel("step size γ of Theorem 2, and default", "γ", steps),
            panel("fiEM near its limit: error ∝ (1 − δ)^k", "fitted δ", local),
        ],
    )


def _tables(averages: Averages) -> list[Table]:
    def table(title: str, columns: dict[str, list[float]]) -> Table:
        cells = (
            [short(value) if isfinite(value) else MISSING for value in line] for line in columns.values()
        )
        rows = [[f"{n:,}", *row] for n, *row in zip(averages.sizes, *cells, strict=True)]
        return Table(title, ["n", *columns], rows)

    both = {
        f"{style_of(m).label}, {label}": averages.line("theorem", m, field)
        for m in METHODS
        for field, label in (("measured", "measured"), ("right_side", "bound"))
    }
    parts = {
        "theorem": "δ = ε = 1",
        "step:bound": "10⁻³",
        "step:estimate": "10⁻³, estimated constants",
        "practice": "default",
    }
    steps = {
        f"{style_of(m).label}, {label}": averages.line(part, m, "gamma")
        for m in METHODS[1:]
        for part, label in parts.items()
    }
    sizes = np.array(averages.sizes)
    local = {
        label: list(sizes * averages.line("local", name, "measured"))
        for name, (label, _) in LOCAL_STYLES.items()
    }
    local["the proposition's δ"] = list(sizes * averages.line("local", PROPOSITION, "right_side"))
    return [
        table("Squared gradient at a random K: measured, and the theorem's bound", both),
        table("Step sizes: from Theorem 2 with proven bounds, and the default", steps),
        table("n·δ of fiEM near its limit", local),
    ]
