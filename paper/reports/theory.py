"""The section of the report on the paper's theorems in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from paper.experiments.experiment import Experiment
from paper.experiments.gmm_scaling import fit_slope
from paper.experiments.theory_local import LOCAL_STEPS
from paper.experiments.theory_run import TheoryRow
from paper.reports.numbers import short, times
from paper.reports.section import Finding, Section, Table, Verdict
from paper.reports.theory_figure import Averages, theory_picture
from swiftem.report.numbers import seconds_text, signed, style_of

__all__ = ["theory_section"]

ONE_OVER_N = (-1.15, -0.85)
"""Slopes that count as 1/n."""
PROPOSITION = "fiem proposition"
NANOSECONDS = 50.0
"""Approximate time of an iteration: for the duration of a run with the theorem's steps."""
YEAR = 365.25 * 24 * 3600


def theory_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.theory.theory_in_numbers`.

    >>> from paper.experiments.theory import theory_in_numbers
    >>> section = theory_section(theory_in_numbers(sizes=[40, 80], runs=1))
    >>> [picture.name for picture in section.pictures], section.findings[0].verdict
    (['theory'], 'agrees')
    """
    lead = (
        "The paper proves that the squared gradient at a random iteration K is below a bound, on average "
        "over the draws. Here are the numbers of both sides for a small mixture: the measured gradient, and "
        "the bound with constants that are themselves proven, for runs with the theorem's step size. "
        "The bounds hold, but the steps are far too small for practical use: the theorem "
        "says how steps and iterations should change with n, not how large they should be."
    )
    rows = experiment.rows
    averages = Averages(rows)
    findings: list[Finding] = []
    if averages.sizes:
        findings.append(_bound(averages, rows, ("iem",), "Theorem 1: iEM's squared gradient is below (21)."))
        findings.append(
            _bound(
                averages,
                rows,
                ("sem-vr", "fiem"),
                "Theorem 2: those of sEM-VR and fiEM are below (27), (28).",
            )
        )
        if len(averages.sizes) > 1:
            findings += [_growth(averages), _local(averages)]
        findings.append(_cost(averages))
    return Section(
        "theory",
        "The theorems in numbers",
        lead,
        findings,
        [theory_picture(averages)] if averages.sizes else [],
        _tables(averages),
        experiment.settings,
        "theory.csv" if rows else "",
        experiment.interrupted,
    )


def _range(values: Sequence[float]) -> str:
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def _bound(averages: Averages, rows: Sequence[TheoryRow], methods: Sequence[str], claim: str) -> Finding:
    measured = [averages.of("theorem", m, n, "measured") for m in methods for n in averages.sizes]
    right = [averages.of("theorem", m, n, "right_side") for m in methods for n in averages.sizes]
    mine = [row for row in rows if row.part == "theorem" and row.method in methods]
    outside = sum(not row.inside for row in mine)
    holds = all(m <= r for m, r in zip(measured, right, strict=True))
    kinds = "proven bounds" if all(row.kind == "bound" for row in mine) else "estimates"
    words = (
        f"Measured {_range(measured)}, right-hand sides {_range(right)}, for n from {averages.sizes[0]:,} to "
        f"{averages.sizes[-1]:,}; the constants in them are {kinds}. "
    )
    if outside:
        words += f"{outside} of {len(mine)} runs may have left the theorem's set: no verdict."
    else:
        words += f"All {len(mine)} runs were checked to stay in the theorem's set."
    brief = f"measured {_range(measured)}; bound {_range(right)}"
    verdict: Verdict = "beyond" if outside else "agrees" if holds else "disagrees"
    return Finding(claim, verdict, words, brief)


def _growth(averages: Averages) -> Finding:
    methods = ("iem", "sem-vr", "fiem")
    slopes = {m: fit_slope(averages.sizes, averages.line("theorem", m, "measured")) for m in methods}
    left = {
        m: [
            averages.of("theorem", m, n, "measured") / averages.of("theorem", m, n, "at_start")
            for n in averages.sizes
        ]
        for m in methods
    }
    text = ", ".join(f"{signed(slope, 2)} ({style_of(m).label})" for m, slope in slopes.items())
    shares = ", ".join(f"{_range(values)} ({style_of(m).label})" for m, values in left.items())
    words = (
        "K_max was proportional to n^(2/3) for sEM-VR and fiEM and to n for iEM, for which the bounds stay "
        f"about the same as n grows. So do the measured values: slopes on log-log axes {text}. The mean over "
        f"K was {shares} times the squared gradient at the start. This shows the theorems' scaling, but "
        "does not test it: with steps this small there is hardly any noise, and the progress of a run is "
        "γ times its iterations, which the theorem keeps the same up to its constants. The exponents for "
        "practical steps are tested by gmm-scaling."
    )
    claim = "Both sides as n grows."
    return Finding(claim, "beyond", words, f"slopes of the measured values {text}")


def _local(averages: Averages) -> Finding:
    plain = [name for name in LOCAL_STEPS if name != PROPOSITION]
    slopes = {
        name: fit_slope(averages.sizes, averages.line("local", name, "measured")) for name in LOCAL_STEPS
    }
    gammas, rates, proved = (
        averages.line("local", PROPOSITION, field) for field in ("gamma", "measured", "right_side")
    )
    # L_s depends on the largest sample, so the proposition's step is not proportional to 1/n across samples;
    # it says that δ is proportional to the step.
    with_step = slopes[PROPOSITION] / fit_slope(averages.sizes, gammas)
    low, high = ONE_OVER_N
    holds = all(low <= slope <= high for slope in (*(slopes[name] for name in plain), -with_step))
    faster = [rate / own for rate, own in zip(rates, proved, strict=True)]
    scaled = [n * averages.of("local", "fiem default", n, "measured") for n in averages.sizes]
    text = ", ".join(
        f"{signed(slopes[name], 2)} (step {LOCAL_STEPS[name].split(',')[0]})"
        for name in (*plain, PROPOSITION)
    )
    words = (
        f"Near the limit ‖ŝ − s*‖² falls like (1 − δ)^k. Slopes of log δ on log n: {text}; −1 is 1/n, and "
        f"slopes from {signed(low, 2)} to {signed(high, 2)} count as −1. The proposition's step depends on "
        "L_s, which differs between samples; there the slope of log δ on log γ is compared: "
        f"{signed(with_step, 2)}, 1 expected. With it δ is {_range(faster)} times the proposition's "
        "(an estimate, as L_s is). A larger step does not change the order: with the default n·δ is "
        f"{_range(scaled)}; a memory that is renewed once in n iterations allows about 2."
    )
    brief = f"slopes of δ on n: {', '.join(signed(slopes[name], 2) for name in plain)}; −1 expected"
    claim = "Proposition 1: fiEM converges linearly near its limit, with δ = Θ(1/n)."
    verdict: Verdict = "agrees" if holds and min(faster) >= 1 else "disagrees"
    if averages.outside("local"):
        verdict = "beyond"
        words += " Some iterates were farther from the limit than B2 allows: no verdict."
    return Finding(claim, verdict, words, brief)


def _cost(averages: Averages) -> Finding:
    n = averages.nearest(1000)
    ours, default, usual = (
        averages.of(part, "sem-vr", n, "gamma") for part in ("theorem", "practice", "step:bound")
    )
    estimated = averages.of("step:estimate", "sem-vr", n, "gamma")
    start = averages.of("theorem", "sem-vr", n, "at_start")
    epochs = averages.of("theorem", "sem-vr", n, "n_iter") / n
    slow, quick = (averages.of(part, "sem-vr", n, "measured") for part in ("theorem", "practice"))
    words = (
        f"sEM-VR at n = {n:,}: with δ = ε = 1 the theorem's γ is {short(ours)}, the default n^(−2/3) is "
        f"{times(default / ours)} times as large. In {epochs:,.0f} epochs the theorem's step took the "
        f"squared gradient from {short(start)} to {short(slow)} on average over K; the default took it to "
        f"{short(quick)} in 20. With the usual δ = ε = 10⁻³, γ is {short(usual)}"
    )
    if isfinite(estimated):
        words += f" ({short(estimated)} if the constants are estimates instead of bounds)"
    wait = NANOSECONDS * 1e-9 / usual
    years = f"{times(wait / YEAR)} years" if wait > YEAR else seconds_text(wait)
    words += (
        f": there is no visible progress. 1/γ iterations, the time scale of the method, would take {years} "
        f"at {NANOSECONDS:.0f} ns each. The constants are products of worst cases over a large set."
    )
    claim = "The cost of the theorem's step sizes."
    return Finding(claim, "beyond", words, f"γ = {short(ours)} and {short(usual)}, default {short(default)}")


def _tables(averages: Averages) -> list[Table]:
    if not averages.sizes:
        return []
    methods = ("iem", "sem-vr", "fiem")
    both = [
        [f"{n:,}"]
        + [
            short(averages.of("theorem", m, n, field))
            for m in methods
            for field in ("measured", "right_side")
        ]
        for n in averages.sizes
    ]
    steps = [
        [f"{n:,}"]
        + [
            short(averages.of(part, m, n, "gamma"))
            for m in ("sem-vr", "fiem")
            for part in ("theorem", "step:bound", "practice")
        ]
        for n in averages.sizes
    ]
    local = [
        [f"{n:,}"]
        + [short(n * averages.of("local", name, n, "measured")) for name in LOCAL_STEPS]
        + [short(n * averages.of("local", "fiem proposition", n, "right_side"))]
        for n in averages.sizes
    ]
    heads = [
        f"{style_of(m).label}, {what}"
        for m in ("sem-vr", "fiem")
        for what in ("δ = ε = 1", "10⁻³", "default")
    ]
    sides = [f"{style_of(m).label}, {what}" for m in methods for what in ("measured", "bound")]
    steps_head = [f"γ = {words.split(',')[0]}" for words in LOCAL_STEPS.values()]
    return [
        Table("Squared gradient at a random K: measured, and the theorem's bound", ["n", *sides], both),
        Table("Step sizes: from Theorem 2 with proven bounds, and the default", ["n", *heads], steps),
        Table("n·δ of fiEM near its limit", ["n", *steps_head, "the proposition's δ"], local),
    ]
