"""The section of the report on the right panel of the paper's Gaussian figure."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import AUTHORS_LOG, SETTINGS
from paper.reports.growth import MISSING, Growth
from paper.reports.section import Finding, Picture, Section, Table, verdict
from swiftem.show.numbers import style_of

MEASURES = {
    "stays": "iterations (one of EM counts as n)",
    "passes": "passes (E-steps divided by n)",
    "seconds": "seconds of computing",
}
CLAIMS = (
    ("iEM needs of the order of n iterations, and so does EM.", ("em", "iem"), (0.9, 1.1)),
    ("sEM-VR and fiEM need of the order of n^(2/3) iterations.", ("sem-vr", "fiem"), (0.55, 0.8)),
)
"""Claims, their methods, and the slopes that count as n and as n^(2/3)."""
LEAD = (
    "The paper's figure 1, right: the number of iterations until |μ − μ*|² is below 10⁻³, as the sample "
    "grows. In theory it is of the order of n for iEM and n^(2/3) for sEM-VR and fiEM. Here reached "
    "means that a run stays below: a noisy run is briefly below long before it has converged. γ = "
    "0.3·n^(−2/3), for which the noise is well below the precision. With free weights, which the "
    "authors' code does not have, the optimum itself varies from sample to sample."
)


def scaling_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.gmm_scaling.gmm_scaling`.

    >>> from paper.experiments.gmm_scaling import gmm_scaling
    >>> section = scaling_section(gmm_scaling(sizes=[500, 1000], runs=1, settings=["known"]))
    >>> [picture.name for picture in section.pictures], len(section.findings)
    (['gmm-scaling-known'], 2)
    """
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    for name in dict.fromkeys(row.setting for row in experiment.rows):
        growth = Growth([row for row in experiment.rows if row.setting == name])
        if name == "authors":
            findings.append(_beside_the_log(growth))
            tables.append(_log_table(growth))
            continue
        title = f"to stay below 10⁻³, {SETTINGS[name].title}"
        guides = partial(_guides, growth)
        panels = [growth.panel(m, MEASURES[m], *[guides] * (m == "stays")) for m in MEASURES]
        alt = f"Slopes of the iterations {title}: {growth.slopes('stays')}"
        pictures.append(Picture(f"gmm-scaling-{name}", f"Cost {title}", alt, panels))
        tables.append(growth.table(f"Iterations {title}, mean over the runs", "stays"))
        if name == "known" and len(growth.sizes) > 1:  # after Ctrl-C there may be no slope
            findings += _slopes(growth)
    return Section(experiment, "Iterations as the sample grows", LEAD, findings, pictures, tables)


def _slopes(growth: Growth) -> list[Finding]:
    findings = []
    for claim, methods, (low, high) in CLAIMS:
        slopes = growth.slopes("stays", methods)
        words = f"Known weights: slopes {slopes} for n = {growth.span}; {low} to {high} expected."
        missed = sum(int(np.isnan(growth.values(m, "stays")).sum()) for m in methods)
        if missed:
            words += (
                f" {missed} runs were given up; a size with such a run is omitted from its method's slope."
            )
        holds = all(low <= growth.slope(m, "stays") <= high for m in methods)
        findings.append(Finding(claim, verdict(holds), words, f"slopes {slopes}; expected {low} to {high}"))
    return findings


def _beside_the_log(growth: Growth) -> Finding:
    ratios = [
        mean / AUTHORS_LOG[n][method]
        for method in growth.methods
        for n, mean in zip(growth.sizes, growth.means(method, "first"), strict=True)
    ]
    known = [ratio for ratio in ratios if isfinite(ratio)]
    brief, words = "not reached", "None of our runs fell below 10⁻³."
    if known:
        brief = f"first below 10⁻³ at {min(known):.2f} to {max(known):.2f} times their iterations"
        words = f"Ours are {brief}. To stay below, sEM-VR and fiEM take longer: with c = 1 their noise "
        words += "is as large as the precision."
    if 0 < len(known) < len(ratios):
        words += f" In {len(ratios) - len(known)} of {len(ratios)} cases a run did not fall below it."
    holds = len(known) == len(ratios) and min(known) >= 0.5 and max(known) <= 2
    return Finding("The authors' logged iterations (c = 1, known weights).", verdict(holds), words, brief)


def _guides(growth: Growth, axes: Any) -> None:
    """Draw n and n^(2/3) next to the curves, each slightly below a method that should follow it."""
    sizes = np.array(growth.sizes, dtype=np.float64)
    for method, exponent, name in (("iem", 1.0, "n"), ("fiem", 2 / 3, "n^(2/3)")):
        first = growth.means(method, "stays")[0]
        if isfinite(first):
            line = 0.6 * first * (sizes / sizes[0]) ** exponent
            axes.plot(sizes, line, ":", color="#777777", linewidth=1.5)
            at = sizes[len(sizes) // 2], line[len(sizes) // 2]
            axes.annotate(f"∝ {name}", at, (4, -12), textcoords="offset points", color="#555555")


def _log_table(growth: Growth) -> Table:
    rows = []
    for method in growth.methods:
        ours = (growth.means(method, measure) for measure in ("first", "stays"))
        for n, *counts in zip(growth.sizes, *ours, strict=True):
            cells = (
                f"{count:,.0f}" if isfinite(count) else MISSING for count in (AUTHORS_LOG[n][method], *counts)
            )
            rows.append([f"{style_of(method).label}, n = {n:,}", *cells])
    head = ["", "authors", "ours, first below", "ours, stays below"]
    return Table("The authors' log and ours: γ = n^(−2/3), known weights, mean over the runs", head, rows)
