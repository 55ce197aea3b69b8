"""The section of the report on the left panel of the paper's Gaussian figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paper.experiments.experiment import Experiment
from paper.reports.curves import Curves, curve_panels, curve_table
from paper.reports.numbers import short, times
from paper.reports.section import Finding, Picture, Section
from swiftem.core.types import Array
from swiftem.report.numbers import counted, seconds_text, style_of

__all__ = ["precision_section"]

REDUCED, PLAIN = ("sem-vr", "fiem"), ("em", "sem", "iem")
SHOWN, SOON = (0, 1, 2, 5, 10, 20, 50, 100), 10
"""The epochs of the table, and the one at which shuffled draws are compared."""


def precision_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.gmm_precision.gmm_precision`.

    >>> from paper.experiments.gmm_precision import gmm_precision
    >>> section = precision_section(gmm_precision(n=1000, epochs=20, runs=1))
    >>> section.findings[0].verdict, len(section.pictures[0].panels)
    ('agrees', 3)
    """
    lead = (
        "The paper's figure 1, left: the squared distance of the two means from the limit of batch EM, "
        "|μ − μ*|², for five methods on 10⁴ samples. An epoch is n iterations, one sample each; for EM it is "
        "one full pass."
    )
    head = Section(
        "gmm-precision",
        "Precision on the Gaussian mixture",
        lead,
        settings=experiment.settings,
        interrupted=experiment.interrupted,
    )
    if not experiment.rows:
        return head
    curves = Curves(experiment.rows)
    last = curves.last_epoch
    ends = {m: short(value) for m, value in curves.medians(last).items()}
    title = f"Squared error |μ − μ*|² on the Gaussian mixture: {_headline(curves, last)}"
    alt = f"Squared error after {counted(last, 'epoch')}: " + ", ".join(
        f"{style_of(m).label} {end}" for m, end in ends.items()
    )
    picture = Picture(
        "gmm-precision",
        title,
        alt,
        curve_panels(curves, value="squared error |μ − μ*|²", logarithmic=True, ends=ends),
        columns=3,
    )
    columns = {style_of(m).label: (curves, m) for m in curves.methods}
    table = curve_table("Squared error |μ − μ*|², median over the runs", columns, SHOWN, short)
    return replace(
        head,
        findings=_findings(curves, last) if _is_complete(curves) else [],
        pictures=[picture],
        tables=[table],
        data="gmm-precision.csv",
    )


def _is_complete(curves: Curves) -> bool:
    """Tell whether the paper's five methods are there; after Ctrl-C some may be missing."""
    return all(m in curves for m in (*REDUCED, *PLAIN))


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{short(value)} ({style_of(name).label})" for name, value in values.items())


def _gains(values: dict[str, Array]) -> Array:
    """Return the ratio of the smallest error of the others to the larger of sEM-VR's and fiEM's, per run."""
    reduced = np.max([values[m] for m in REDUCED], axis=0)
    plain = np.min([values[m] for m in PLAIN], axis=0)
    gains = np.where(plain > 0, np.inf, 1.0)  # an error of exactly zero beats all but another zero
    np.divide(plain, reduced, out=gains, where=reduced > 0)
    return gains


def _headline(curves: Curves, last: int) -> str:
    after = f"after {counted(last, 'epoch')}"
    if not _is_complete(curves):
        return after
    gain = float(_gains({m: curves.at_epoch(m, last) for m in curves.methods}).min())
    if gain < 2:
        return f"{after}, no gain from variance reduction"
    return f"{after}, {times(gain)} times smaller with variance reduction"


def _comparison(gains: Array) -> str:
    """Return the comparison of sEM-VR and fiEM with the others, in words."""
    runs, least = len(gains), float(gains.min())
    if least > 1:
        factor = times(least) if least >= 2 else f"{least:.1f}"
        where = f"In each of the {runs} runs" if runs > 1 else "In the only run"
        return f"{where} the larger of sEM-VR and fiEM is at least {factor} times smaller than all others."
    return f"In {int((gains <= 1).sum())} of {counted(runs, 'run')} one of the others is as close or closer."


def _compared(claim: str, when: str, values: dict[str, Array]) -> Finding:
    """Return whether sEM-VR and fiEM are ahead; ``values`` are the errors of each method, per run.

    Methods are compared within a run: each run has its own sample, and EM on the easiest sample may be ahead
    of fiEM on the hardest.
    """
    gains, medians = _gains(values), _list({m: float(np.median(value)) for m, value in values.items()})
    return Finding(
        claim,
        "agrees" if gains.min() > 1 else "disagrees",
        f"{when.capitalize()} the median error over the runs is {medians}. {_comparison(gains)}",
        f"{when} {medians}",
    )


def _findings(curves: Curves, last: int) -> list[Finding]:
    compared = (*REDUCED, *PLAIN)
    budget = curves.end("em", "passes")
    findings = [
        _compared(
            "sEM-VR and fiEM outperform the other methods, by epochs.",
            f"after {counted(last, 'epoch')}",
            {m: curves.at_epoch(m, last) for m in compared},
        ),
        _compared(
            "The same by passes: an epoch of sEM-VR costs three passes, one of fiEM two.",
            f"at {budget:.0f} passes",
            {m: curves.at(m, "passes", budget) for m in compared},
        ),
    ]
    clock = curves.end("em", "seconds")
    at = {m: float(np.median(curves.at(m, "seconds", clock))) for m in compared}
    best_at = min(at, key=lambda m: at[m])
    findings.append(
        Finding(
            "By seconds (not in the paper).",
            "beyond",
            f"In the {seconds_text(clock)} that EM takes for {last} passes: {_list(at)}. "
            f"{style_of(best_at).label} is closest. A full pass is matrix arithmetic on all cores and "
            "costs less per sample than single iterations, so an epoch is not a unit of time.",
            f"in {seconds_text(clock)} {_list(at)}",
        )
    )
    if "fiem-shuffled" in curves and last >= SOON:
        soon, late = curves.medians(SOON), curves.medians(last)
        findings.append(
            Finding(
                "fiEM with j in shuffled passes, as in the authors' code, instead of independent draws.",
                "beyond",
                f"After {SOON} epochs the median error is {short(soon['fiem-shuffled'])} with shuffled and "
                f"{short(soon['fiem'])} with independent j; after {last}, {short(late['fiem-shuffled'])} and "
                f"{short(late['fiem'])}. Independent draws leave a share e^(−t) of the memory unrenewed "
                "after t epochs.",
                f"after {SOON} epochs {short(soon['fiem-shuffled'])} against {short(soon['fiem'])}",
            )
        )
    return findings
