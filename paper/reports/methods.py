"""The section of the report on all methods: five problems, growing samples, claims of later papers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

import numpy as np
import pandas as pd

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import fit_slope
from paper.experiments.methods import CASES, RECURSIVE, MethodRow
from paper.reports.figures import Line, line_panel
from paper.reports.growth import MISSING, Growth
from paper.reports.numbers import short
from paper.reports.section import Finding, Picture, Section, Table, verdict
from swiftem.show.numbers import seconds_text, signed, style_of

MEASURES = {
    "passes": "passes (E-step evaluations divided by n)",
    "seconds": "seconds of computing",
    "m_steps": "M-steps (iterations)",
}
GROWING = {
    "value": "E-step evaluations",
    "m_steps": "M-steps (iterations)",
    "seconds": "seconds of computing",
}
GAPS = (1e-3, 1e-6)
"""How far above the optimum a run may be to count as there."""
LEAST_GAP = 1e-13
"""What is below is rounding, and drawn there."""
EPSILONS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
INDEPENDENT, MOST_LINEAR, MOST_BOUND, MOST_RATIO = 0.2, 1.1, 1.1, 1.02
"""Slopes that count as independent of n, as at most n, and as at most 1/ε; and a ratio as at most one."""
SPIDER, OPTIMAL = "Fort, Moulines and Wai 2020", "Fort, Gach and Moulines 2021"
LEAD = (
    "All methods of the library on five problems, with batches of √n samples: the objective above the "
    "optimum, against passes, seconds and M-steps. Then the evaluations to a precision as the sample "
    f"grows, and claims of later papers, on SPIDER-EM ({SPIDER}) and opt-FIEM ({OPTIMAL}). Lines are "
    "medians, bands the range over the runs."
)


def methods_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.methods.compare_methods`.

    >>> from paper.experiments.methods import compare_methods
    >>> section = methods_section(compare_methods(runs=1, quick=True, sizes=[500, 1000], cases=["paper"]))
    >>> [picture.name for picture in section.pictures]
    ['methods-paper', 'methods-scaling']
    """
    frame = pd.DataFrame(experiment.rows, columns=MethodRow._fields)
    curves = frame[frame["part"] == "curve"]
    problems = {str(name): part for name, part in curves.groupby("problem", sort=False)}
    pictures = [_picture(name, problem) for name, problem in problems.items()]
    tables = [_winners(problems)] if problems else []
    findings: list[Finding] = []
    scaling = [row for row in experiment.rows if row.part == "scaling"]
    if scaling:
        growth = Growth(scaling)
        title = "Cost until |μ − μ*|² stays below 10⁻³ on the paper's mixture, as n grows"
        panels = [growth.panel(measure, label) for measure, label in GROWING.items()]
        alt = f"{title}: slopes of evaluations {growth.slopes('value')}"
        pictures.append(Picture("methods-scaling", title, alt, panels))
        tables.append(
            growth.table("Evaluations until |μ − μ*|² stays below 10⁻³, mean over the runs", "value")
        )
        if len(growth.sizes) > 2 and RECURSIVE in growth.methods:
            findings += _in_n(growth)
    if "paper" in problems:
        findings.append(_in_epsilon(problems["paper"]))
    variances = frame[frame["part"] == "variance"]
    if len(variances):
        findings.append(_variance(variances.groupby("passes")["value"].median()))
    return Section(experiment, "All methods, also later ones", LEAD, findings, pictures, tables)


def _picture(name: str, problem: pd.DataFrame) -> Picture:
    """Return the panels of one problem, against each measure."""
    points = problem.assign(point=problem.groupby(["method", "run"]).cumcount())
    points["value"] = points["value"].clip(lower=LEAST_GAP)
    panels = []
    for measure, label in MEASURES.items():
        lines = []
        for method, part in points.groupby("method", sort=False):
            # The start has neither seconds nor M-steps, and no place on a logarithmic axis.
            x, values = (
                part.pivot(index="run", columns="point", values=column).to_numpy()[:, measure != "passes" :]
                for column in (measure, "value")
            )
            lines.append(Line(str(method), np.median(x, axis=0), values))
        panels.append(
            line_panel(
                f"against {label.split(' (')[0]}", lines, x=label, y="objective above the optimum", log="xy"
            )
        )
    title = CASES[name].title
    last = (
        points.groupby(["method", "run"], sort=False)["value"].last().groupby("method", sort=False).median()
    )
    ends = ", ".join(f"{style_of(str(method)).label} {short(float(gap))}" for method, gap in last.items())
    title = f"{title[0].upper()}{title[1:]}"
    return Picture(
        f"methods-{name}", title, f"{title}: objective above the optimum at the end: {ends}", panels
    )


def _cost(problem: pd.DataFrame, gap: float, measure: str) -> pd.Series:
    """Return the median cost to a gap above the optimum by method; infinite if it is not reached."""
    runs = pd.MultiIndex.from_product([problem[name].unique() for name in ("method", "run")])
    first = problem[problem["value"] <= gap].groupby(["method", "run"])[measure].first()
    return first.reindex(runs, fill_value=inf).groupby(level=0, sort=False).median()


def _winners(problems: dict[str, pd.DataFrame]) -> Table:
    rows = []
    for name, problem in problems.items():
        cells = []
        for gap in GAPS:
            for measure in MEASURES:
                costs = _cost(problem, gap, measure)
                best, least = str(costs.idxmin()), float(costs.min())
                text = seconds_text(least) if measure == "seconds" else f"{least:,.0f}"
                cells.append(f"{style_of(best).label}, {text}" if isfinite(least) else MISSING)
        rows.append([CASES[name].title, *cells])
    head = ["", *(f"{label.split(' (')[0]} to {short(gap)}" for gap in GAPS for label in MEASURES.values())]
    return Table("Winners: the method with the least median cost to a gap above the optimum", head, rows)


def _in_epsilon(problem: pd.DataFrame) -> Finding:
    """Return whether the M-steps of SPIDER-EM grow at most as 1/ε."""
    steps = {gap: float(_cost(problem, gap, "m_steps").get(RECURSIVE, inf)) for gap in EPSILONS}
    steps = {gap: count for gap, count in steps.items() if 0 < count < inf}
    claim = "SPIDER-EM needs O(1/ε) M-steps."
    if len(steps) < 2:
        return Finding(claim, "open", "Too few precisions were reached.", "too few precisions", SPIDER)
    slope = fit_slope([1 / gap for gap in steps], list(steps.values()))
    shown = ", ".join(f"{count:,.0f} to {short(gap)}" for gap, count in steps.items())
    words = (
        f"On the paper's mixture the median M-steps to an objective gap are {shown}. The bound is for the "
        "squared gradient, to which the gap is proportional near the optimum; there convergence is "
        "faster than the bound."
    )
    return Finding(claim, verdict(slope <= MOST_BOUND), words, f"(1/ε)^{signed(slope, 2)}", SPIDER)


def _in_n(growth: Growth) -> Sequence[Finding]:
    slope, linear = (growth.slope(RECURSIVE, measure) for measure in ("m_steps", "value"))
    counts = ", ".join(
        f"{k:,.0f}" if isfinite(k) else "not reached" for k in growth.means(RECURSIVE, "m_steps")
    )
    return (
        Finding(
            "The M-steps of SPIDER-EM to a precision do not depend on n (b = √n, γ constant).",
            verdict(abs(slope) <= INDEPENDENT),
            f"Mean M-steps until |μ − μ*|² stays below 10⁻³, n = {growth.span}: {counts}.",
            f"slope {signed(slope, 2)}, at most {INDEPENDENT} expected",
            SPIDER,
        ),
        Finding(
            "The evaluations of SPIDER-EM are of the order of n + √n/ε: at most linear in n.",
            verdict(linear <= MOST_LINEAR),
            f"Slopes of the evaluations on n, {growth.span}: {growth.slopes('value')}.",
            f"slope {signed(linear, 2)}",
            SPIDER,
        ),
    )


def _variance(medians: pd.Series) -> Finding:
    shown = ", ".join(f"{signed(float(v), 2)} after {float(p):.0f} passes" for p, v in medians.items())
    return Finding(
        "The variance of opt-FIEM's proxy is at most fiEM's.",
        verdict(bool(medians.max() <= MOST_RATIO)),
        "On the paper's mixture, along a run of opt-FIEM with its estimated λ, the variance over that "
        f"with λ = 1 and the same memory is {shown}. The gain is largest while the memory is old.",
        shown,
        OPTIMAL,
    )
