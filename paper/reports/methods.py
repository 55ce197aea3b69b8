"""The section of the report on all methods: five problems, growing samples, claims of later papers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import fit_slope
from paper.experiments.method_cases import CASES, RECURSIVE
from paper.experiments.methods import MethodRow
from paper.reports.figures import label_ends, plain_axes
from paper.reports.numbers import short
from paper.reports.section import Finding, Panel, Picture, Section, Table
from swiftem.core.types import Array
from swiftem.report.numbers import seconds_text, signed, style_of

__all__ = ["methods_section"]

MEASURES = {
    "passes": "passes (E-step evaluations divided by n)",
    "seconds": "seconds of computing",
    "m_steps": "M-steps (iterations)",
}
SHORT = {"passes": "passes", "seconds": "seconds", "m_steps": "M-steps"}
GAPS = (1e-3, 1e-6)
"""How far above the optimum a run may be to count as there."""
SOON = 10.5
"""Passes after which the lowest objective is named; problems with several optima have no other winner."""
LEAST_GAP = 1e-13
"""What is below is rounding, and drawn there."""
EPSILONS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
INDEPENDENT, MOST_LINEAR, MOST_BOUND = 0.2, 1.1, 1.1
"""Slopes that count as independent of n, as at most n, and as at most 1/ε."""


class Costs:
    """The rows of one problem: when each run was first within a gap of the optimum."""

    def __init__(self, rows: Sequence[MethodRow]) -> None:
        self.methods = list(dict.fromkeys(row.method for row in rows))
        self.runs = sorted({row.run for row in rows})
        self.points = {
            (method, run): np.array(
                [
                    (row.passes, row.seconds, row.m_steps, row.value)
                    for row in rows
                    if (row.method, row.run) == (method, run)
                ]
            ).reshape(-1, 4)
            for method in self.methods
            for run in self.runs
        }

    def to(self, method: str, gap: float, measure: str) -> Array:
        """Return the cost of each run to the gap, shape (runs,); infinite if it did not get there."""
        column = list(MEASURES).index(measure)
        found = []
        for run in self.runs:
            points = self.points[method, run]
            there = np.flatnonzero(points[:, 3] <= gap)
            found.append(float(points[there[0], column]) if len(there) else inf)
        return np.array(found)

    def winner(self, gap: float, measure: str) -> tuple[str, float]:
        """Return the method with the least median cost, and that; none if no method gets there."""
        medians = {method: float(np.median(self.to(method, gap, measure))) for method in self.methods}
        best = min(medians, key=lambda method: medians[method])
        return (best, medians[best]) if isfinite(medians[best]) else ("", inf)

    def lowest(self, passes: float) -> tuple[str, float]:
        """Return the method with the lowest median gap after at most so many passes, and that."""
        medians = {
            method: float(np.median([part[part[:, 0] <= passes, 3][-1] for part in self._of(method)]))
            for method in self.methods
        }
        best = min(medians, key=lambda method: medians[method])
        return best, medians[best]

    def _of(self, method: str) -> list[Array]:
        return [self.points[method, run] for run in self.runs]


def methods_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.methods.compare_methods`.

    >>> from paper.experiments.methods import compare_methods
    >>> section = methods_section(compare_methods(runs=1, quick=True, sizes=[500, 1000], cases=["paper"]))
    >>> [picture.name for picture in section.pictures]
    ['methods-paper', 'methods-scaling']
    """
    lead = (
        "All methods of the library on five problems, with batches of √n samples: the objective above the "
        "optimum, against passes, seconds and M-steps. Then the evaluations to a precision as the sample "
        "grows, and the claims of the papers on SPIDER-EM (Fort, Moulines and Wai 2020) and opt-FIEM (Fort, "
        "Gach and Moulines 2021). Lines are medians, bands the range over the runs."
    )
    head = Section(
        "methods",
        "All methods, also the later ones",
        lead,
        settings=experiment.settings,
        interrupted=experiment.interrupted,
        data="methods.csv" if experiment.rows else "",
    )
    curves = [row for row in experiment.rows if row.part == "curve"]
    problems = {
        name: Costs([row for row in curves if row.problem == name])
        for name in dict.fromkeys(row.problem for row in curves)
    }
    scaling = [row for row in experiment.rows if row.part == "scaling"]
    variances = [row for row in experiment.rows if row.part == "variance"]
    findings, pictures, tables = [], [_picture(name, costs) for name, costs in problems.items()], []
    if problems:
        tables = [_winners(problems), *(_table(name, costs) for name, costs in problems.items())]
        findings += _accelerated(problems)
    if "paper" in problems and set(RECURSIVE) & set(problems["paper"].methods):
        findings.append(_in_epsilon(problems["paper"]))
    if scaling:
        pictures.append(_scaling_picture(scaling))
        tables.append(_scaling_table(scaling))
        if len({row.n for row in scaling}) > 2 and any(row.method in RECURSIVE for row in scaling):
            findings = [*_in_n(scaling), *findings]
    if variances:
        findings.append(_variance(variances))
    return Section(
        head.name,
        head.title,
        head.lead,
        findings,
        pictures,
        tables,
        head.settings,
        head.data,
        head.interrupted,
    )


def _picture(name: str, costs: Costs) -> Picture:
    def panel(measure: str) -> Panel:
        column = list(MEASURES).index(measure)

        def draw(axes: Any) -> None:
            plain_axes(axes, x=MEASURES[measure], y="objective above the optimum", log_x=True, log_y=True)
            ends = []
            for method in costs.methods:
                style = style_of(method)
                parts = [costs.points[method, run] for run in costs.runs]
                length = min(map(len, parts))
                # Logarithmic: the start has neither seconds nor M-steps.
                begin = 0 if measure == "passes" else 1
                x = np.median([part[begin:length, column] for part in parts], axis=0)
                values = np.maximum([part[begin:length, 3] for part in parts], LEAST_GAP)
                middle = np.median(values, axis=0)
                axes.plot(x, middle, style.line, color=style.colour, linewidth=1.8)
                if len(parts) > 1:
                    low, high = values.min(axis=0), values.max(axis=0)
                    axes.fill_between(x, low, high, color=style.colour, alpha=0.1, linewidth=0)
                if len(middle):
                    ends.append((float(middle[-1]), style.label, style.colour))
            label_ends(axes, ends)

        return Panel(f"against {SHORT[measure]}", draw)

    title = f"{CASES[name].title[0].upper()}{CASES[name].title[1:]}"
    ends = ", ".join(
        f"{style_of(m).label} {short(float(np.median([costs.points[m, run][-1, 3] for run in costs.runs])))}"
        for m in costs.methods
    )
    return Picture(
        f"methods-{name}",
        title,
        f"{title}: objective above the optimum at the end: {ends}",
        [panel(measure) for measure in MEASURES],
        columns=3,
    )


def _amount(measure: str, value: float) -> str:
    if not isfinite(value):
        return "never"
    return seconds_text(value) if measure == "seconds" else f"{value:,.0f}"


def _winners(problems: dict[str, Costs]) -> Table:
    rows = []
    for name, costs in problems.items():
        cells = []
        for gap in GAPS:
            for measure in MEASURES:
                method, value = costs.winner(gap, measure)
                cells.append(f"{style_of(method).label}, {_amount(measure, value)}" if method else "none")
        for passes in (SOON, inf):
            method, value = costs.lowest(passes)
            cells.append(f"{style_of(method).label}, {short(value)}")
        rows.append([CASES[name].title, *cells])
    head = ["", *(f"{SHORT[measure]} to {short(gap)}" for gap in GAPS for measure in MEASURES)]
    head += ["lowest after 10 passes", "lowest at the end"]
    return Table("Winners: the method with the least median cost to a gap above the optimum", head, rows)


def _table(name: str, costs: Costs) -> Table:
    rows = [
        [
            style_of(method).label,
            *(
                _amount(measure, float(np.median(costs.to(method, gap, measure))))
                for gap in GAPS
                for measure in MEASURES
            ),
        ]
        for method in costs.methods
    ]
    head = ["", *(f"{SHORT[measure]} to {short(gap)}" for gap in GAPS for measure in MEASURES)]
    return Table(f"{CASES[name].title}: median cost to a gap above the optimum", head, rows)


def _accelerated(problems: dict[str, Costs]) -> list[Finding]:
    """Return how many passes acceleration saves to the smallest gap that em and it reach."""
    said = []
    for name, costs in problems.items():
        for gap in reversed(GAPS):
            plain = float(np.median(costs.to("em", gap, "passes"))) if "em" in costs.methods else inf
            quick = {
                m: float(np.median(costs.to(m, gap, "passes"))) for m in costs.methods if m.startswith("em+")
            }
            best = min(quick, key=lambda m: quick[m]) if quick else ""
            if isfinite(plain) and best and isfinite(quick[best]):
                said.append(
                    f"{name} {plain:.0f} to {quick[best]:.0f} ({style_of(best).label}, gap {short(gap)})"
                )
                break
    if not said:
        return []
    words = "Passes of EM, and of the better acceleration, to the same gap: " + "; ".join(said) + "."
    return [Finding("Acceleration of EM (in none of these papers).", "beyond", words, "; ".join(said))]


def _in_epsilon(costs: Costs) -> Finding:
    """Return whether the M-steps of SPIDER-EM grow at most as 1/ε."""
    steps = [float(np.median(costs.to(RECURSIVE[0], gap, "m_steps"))) for gap in EPSILONS]
    known = [(1 / gap, k) for gap, k in zip(EPSILONS, steps, strict=True) if isfinite(k) and k > 0]
    slope = fit_slope([inverse for inverse, _ in known], [k for _, k in known]) if len(known) > 1 else nan  # type: ignore[misc]
    shown = ", ".join(
        f"{k:,.0f} to {short(gap)}" for gap, k in zip(EPSILONS, steps, strict=True) if isfinite(k)
    )
    if not isfinite(slope):
        return Finding(
            "SPIDER-EM needs O(1/ε) M-steps.",
            "beyond",
            f"Too few precisions were reached: {shown or 'none'}.",
            "too few precisions were reached",
        )
    return Finding(
        "SPIDER-EM needs O(1/ε) M-steps.",
        "agrees" if slope <= MOST_BOUND else "disagrees",
        f"On the paper's mixture the median M-steps to an objective gap are {shown}: of the order of "
        f"(1/ε)^{signed(slope, 2)}. The bound is for the squared gradient, to which the gap is proportional "
        "near the optimum; there convergence is faster than the bound.",
        f"(1/ε)^{signed(slope, 2)}",
    )


def _means(rows: Sequence[MethodRow], method: str, measure: str) -> tuple[list[int], list[float]]:
    sizes = sorted({row.n for row in rows})
    found = [
        float(np.mean([getattr(row, measure) for row in rows if (row.method, row.n) == (method, n)]))
        for n in sizes
    ]
    return sizes, found


def _in_n(rows: Sequence[MethodRow]) -> list[Finding]:
    sizes, steps = _means(rows, RECURSIVE[0], "m_steps")
    span = f"n = {sizes[0]:,} to {sizes[-1]:,}"
    slope = fit_slope(sizes, steps)
    counts = ", ".join(f"{k:,.0f}" if isfinite(k) else "not reached" for k in steps)
    by_n = fit_slope(*_means(rows, RECURSIVE[0], "value"))
    others = {m: fit_slope(*_means(rows, m, "value")) for m in dict.fromkeys(row.method for row in rows)}
    listed = ", ".join(f"{signed(value, 2)} ({style_of(m).label})" for m, value in others.items())
    return [
        Finding(
            "The M-steps of SPIDER-EM to a precision do not depend on n (b = √n, γ constant).",
            "agrees" if abs(slope) <= INDEPENDENT else "disagrees",
            f"Mean M-steps until |μ − μ*|² stays below 10⁻³, {span}: {counts}; slope {signed(slope, 2)}, "
            f"at most {INDEPENDENT} expected.",
            f"slope {signed(slope, 2)}: {counts}",
        ),
        Finding(
            "The evaluations of SPIDER-EM are of the order of n + √n/ε: at most linear in n.",
            "agrees" if by_n <= MOST_LINEAR else "disagrees",
            f"Slopes of the evaluations on n, {span}: {listed}.",
            f"slope of evaluations {signed(by_n, 2)}",
        ),
    ]


def _variance(rows: Sequence[MethodRow]) -> Finding:
    passes = sorted({row.passes for row in rows})
    medians = [float(np.median([row.value for row in rows if row.passes == p])) for p in passes]
    shown = ", ".join(f"{signed(v, 2)} after {p:.0f} passes" for p, v in zip(passes, medians, strict=True))
    return Finding(
        "The variance of opt-FIEM's proxy is at most fiEM's.",
        "agrees" if max(medians) <= 1.02 else "disagrees",
        f"On the paper's mixture, along a run of opt-FIEM with its estimated λ, the variance over that with "
        f"λ = 1 and the same memory is {shown}. While the memory is old the gain is largest.",
        shown,
    )


def _scaling_picture(rows: Sequence[MethodRow]) -> Picture:
    names = {
        "value": "E-step evaluations",
        "m_steps": "M-steps (iterations)",
        "seconds": "seconds of computing",
    }
    methods = list(dict.fromkeys(row.method for row in rows))

    def panel(measure: str) -> Panel:
        def draw(axes: Any) -> None:
            plain_axes(axes, x="samples n", y=names[measure], log_x=True, log_y=True)
            ends = []
            for method in methods:
                style, (sizes, means) = style_of(method), _means(rows, method, measure)
                axes.plot(sizes, means, style.line, color=style.colour, marker="o", linewidth=2)
                of = [
                    np.array([getattr(row, measure) for row in rows if (row.method, row.n) == (method, n)])
                    for n in sizes
                ]
                low = [np.nanmin(v) if np.isfinite(v).any() else nan for v in of]
                high = [np.nanmax(v) if np.isfinite(v).any() else nan for v in of]
                axes.fill_between(sizes, low, high, color=style.colour, alpha=0.15, linewidth=0)
                known = [value for value in means if isfinite(value)]
                if known:
                    slope = fit_slope(sizes, means)
                    text = f"{style.label}  {signed(slope, 2)}" if isfinite(slope) else style.label
                    ends.append((known[-1], text, style.colour))
            label_ends(axes, ends)

        return Panel(names[measure].split(" (")[0], draw)

    title = (
        "Cost until |μ − μ*|² stays below 10⁻³ on the paper's mixture, as n grows; slopes next to the names"
    )
    slopes = ", ".join(
        f"{style_of(m).label} {signed(fit_slope(*_means(rows, m, 'value')), 2)}" for m in methods
    )
    return Picture(
        "methods-scaling",
        title,
        f"{title}: slopes of evaluations {slopes}",
        [panel(measure) for measure in names],
        columns=3,
    )


def _scaling_table(rows: Sequence[MethodRow]) -> Table:
    methods = list(dict.fromkeys(row.method for row in rows))
    sizes = sorted({row.n for row in rows})

    def cell(method: str, n: int) -> str:
        found = np.array([row.value for row in rows if (row.method, row.n) == (method, n)])
        found = found[np.isfinite(found)]
        if not len(found):
            return "not reached"
        return f"{found.mean():,.0f} ({found.min():,.0f} to {found.max():,.0f})"

    body = [[f"{n:,}", *(cell(method, n) for method in methods)] for n in sizes]
    body.append(["slope", *(signed(fit_slope(*_means(rows, m, "value")), 2) for m in methods)])
    return Table(
        "Evaluations to stay below 10⁻³: mean (range) over the runs that do",
        ["n", *(style_of(m).label for m in methods)],
        body,
    )
