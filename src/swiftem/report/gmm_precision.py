"""The section of the report on the left panel of the paper's Gaussian figure."""

from __future__ import annotations

import numpy as np

from swiftem.experiments.experiment import Experiment
from swiftem.report.curves import Curves, curve_panels
from swiftem.report.method_names import style_of
from swiftem.report.numbers import seconds_text, short, times
from swiftem.report.section import Finding, Picture, Section, Table

__all__ = ["precision_section"]

REDUCED, PLAIN = ("sem-vr", "fiem"), ("em", "sem", "iem")
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100)


def precision_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`swiftem.experiments.gmm_precision.gmm_precision`.

    >>> from swiftem.experiments.gmm_precision import gmm_precision
    >>> section = precision_section(gmm_precision(n=1000, epochs=20, runs=1))
    >>> section.findings[0].verdict, len(section.pictures[0].panels)
    ('agrees', 3)
    """
    lead = (
        "The paper's figure 1, left: the squared distance of the two means from where batch EM ends, |μ − μ*|², "
        "for five methods on 10⁴ samples. An epoch is n iterations, one sample each; of EM it is one full pass."
    )
    head = Section("gmm-precision", "Precision on the Gaussian mixture", lead, settings=experiment.settings,
                   data="gmm-precision.csv", interrupted=experiment.interrupted)  # fmt: skip
    if not experiment.rows:
        return head
    curves = Curves(experiment.rows)
    last = curves.last_epoch
    ends = {m: short(float(np.median(curves.at_epoch(m, last)))) for m in curves.methods}
    title = f"Squared error |μ − μ*|² on the Gaussian mixture: {_headline(curves, last)}"
    alt = f"Squared error after {last} epochs: " + ", ".join(
        f"{style_of(m).label} {end}" for m, end in ends.items()
    )
    picture = Picture(
        "gmm-precision", title, alt,
        curve_panels(curves, value="squared error |μ − μ*|²", logarithmic=True, ends=ends), columns=3,
    )  # fmt: skip
    return Section(
        head.name, head.title, lead, _findings(curves, last), [picture], [_table(curves, last)],
        experiment.settings, head.data, experiment.interrupted,
    )  # fmt: skip


def _present(curves: Curves, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in curves]


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{short(value)} ({style_of(name).label})" for name, value in values.items())


def _headline(curves: Curves, last: int) -> str:
    reduced, plain = _present(curves, REDUCED), _present(curves, PLAIN)
    if not reduced or not plain:
        return f"after {last} epochs"
    gain = min(float(curves.at_epoch(m, last).min()) for m in plain) / max(
        float(curves.at_epoch(m, last).max()) for m in reduced
    )
    if gain < 2:
        return f"after {last} epochs, no gain from variance reduction"
    return f"after {last} epochs, {times(gain)} times smaller with variance reduction"


def _findings(curves: Curves, last: int) -> list[Finding]:
    reduced, plain = _present(curves, REDUCED), _present(curves, PLAIN)
    if not reduced or not plain:
        return []
    worst = {m: float(curves.at_epoch(m, last).max()) for m in reduced}
    best = {m: float(curves.at_epoch(m, last).min()) for m in plain}
    end = {m: float(np.median(curves.at_epoch(m, last))) for m in reduced + plain}
    ahead = max(worst.values()) < min(best.values())
    findings = [
        Finding(
            "sEM-VR and fiEM outperform the other methods, by epochs.",
            "agrees" if ahead else "disagrees",
            f"After {last} epochs the median error over the runs is {_list(end)}; the largest of sEM-VR and fiEM is "
            f"{short(max(worst.values()))}, the smallest of the others {short(min(best.values()))}.",
            f"after {last} epochs {_list(end)}",
        )
    ]
    budget = curves.end("em", "passes") if "em" in curves else float(last)
    at = {m: float(np.median(curves.at(m, "passes", budget))) for m in reduced + plain}
    findings.append(
        Finding(
            "The same by passes: an epoch of sEM-VR costs three passes, one of fiEM two.",
            "agrees" if max(at[m] for m in reduced) < min(at[m] for m in plain) else "disagrees",
            f"At {budget:.0f} passes: {_list(at)}, medians over the runs.",
            f"at {budget:.0f} passes {_list(at)}",
        )
    )
    if "em" in curves:
        clock = curves.end("em", "seconds")
        at = {m: float(np.median(curves.at(m, "seconds", clock))) for m in reduced + plain}
        best_at = min(at, key=lambda m: at[m])
        findings.append(
            Finding(
                "By seconds (the paper does not say).",
                "beyond",
                f"In the {seconds_text(clock)} that EM takes for {last} passes: {_list(at)}. "
                f"{style_of(best_at).label} is closest: a full pass runs as matrix arithmetic on all cores and costs "
                "less a sample than single iterations, so an epoch is not a unit of time.",
                f"in {seconds_text(clock)} {_list(at)}",
            )
        )
    if "fiem" in curves and "fiem-shuffled" in curves and last >= 10:
        iid, shuffled = (float(np.median(curves.at_epoch(m, 10))) for m in ("fiem", "fiem-shuffled"))
        findings.append(
            Finding(
                "fiEM with j in shuffled passes, as in the authors' code, instead of independent draws.",
                "beyond",
                f"After ten epochs the median error is {short(shuffled)} with shuffled and {short(iid)} with independent "
                f"j; after {last}, {short(float(np.median(curves.at_epoch('fiem-shuffled', last))))} and "
                f"{short(float(np.median(curves.at_epoch('fiem', last))))}. Independent draws leave a share e^(−t) "
                "of the memory unrenewed after t epochs.",
                f"after ten epochs {short(shuffled)} against {short(iid)}",
            )
        )
    return findings


def _table(curves: Curves, last: int) -> Table:
    epochs = sorted({epoch for epoch in SHOWN if epoch <= last} | {last})
    rows = [
        [f"{epoch}", *(short(float(np.median(curves.at_epoch(m, epoch)))) for m in curves.methods)]
        for epoch in epochs
    ]
    rows.append(["passes in all", *(f"{curves.end(m, 'passes'):.0f}" for m in curves.methods)])
    rows.append(["seconds in all", *(seconds_text(curves.end(m, "seconds")) for m in curves.methods)])
    head = ["epoch", *(style_of(m).label for m in curves.methods)]
    return Table("Squared error |μ − μ*|², median over the runs", head, rows)
