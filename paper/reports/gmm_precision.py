"""The section of the report on the left panel of the paper's Gaussian figure."""

from __future__ import annotations

import numpy as np

from paper.experiments.experiment import Experiment
from paper.reports.curves import Curves, curve_panels, curve_table
from paper.reports.numbers import short
from paper.reports.section import Finding, Picture, Section, verdict
from swiftem.core.types import Array
from swiftem.show.numbers import counted, style_of

REDUCED, PLAIN = ("sem-vr", "fiem"), ("em", "sem", "iem")
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100)
"""The epochs of the table."""
LEAD = (
    "The paper's figure 1, left: the squared distance of the two means from the limit of batch EM, |μ − "
    "μ*|², for five methods on 10⁴ samples. An epoch is n iterations, one sample each; for EM it is one "
    "full pass."
)


def precision_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.gmm_precision.gmm_precision`.

    >>> from paper.experiments.gmm_precision import gmm_precision
    >>> section = precision_section(gmm_precision(n=1000, epochs=20, runs=1))
    >>> section.findings[0].verdict, len(section.pictures[0].panels)
    ('agrees', 3)
    """
    head = "Precision on the Gaussian mixture"
    if not experiment.rows:
        return Section(experiment, head, LEAD)
    curves = Curves(experiment.rows)
    last = curves.last_epoch
    after = f"after {counted(last, 'epoch')}"
    ends = {style_of(method).label: short(value) for method, value in curves.medians(last).items()}
    picture = Picture(
        "gmm-precision",
        f"Squared error |μ − μ*|² on the Gaussian mixture {after}",
        f"Squared error {after}: " + ", ".join(f"{name} {end}" for name, end in ends.items()),
        curve_panels(curves, value="squared error |μ − μ*|²", log="y", text=short),
    )
    columns = {style_of(m).label: (curves, m) for m in curves.methods}
    table = curve_table("Squared error |μ − μ*|², median over the runs", columns, SHOWN, short)
    compared = (*REDUCED, *PLAIN)
    findings = []
    if set(compared) <= set(curves.methods):  # after Ctrl-C some may be missing
        passes = curves.end("em", "passes")
        findings = [
            _compared(
                "sEM-VR and fiEM outperform the other methods, by epochs.",
                after,
                {m: curves.at_epoch(m, last) for m in compared},
            ),
            _compared(
                "The same by passes: an epoch of sEM-VR costs three passes, one of fiEM two.",
                f"at {passes:.0f} passes",
                {m: curves.at(m, "passes", passes) for m in compared},
            ),
        ]
    return Section(experiment, head, LEAD, findings, [picture], [table])


def _compared(claim: str, when: str, values: dict[str, Array]) -> Finding:
    """Return whether sEM-VR and fiEM are ahead in each run; ``values`` are the errors per run.

    Runs have samples of their own, and EM on the easiest may be ahead of fiEM on the hardest.
    """
    reduced, plain = (np.array([values[m] for m in methods]) for methods in (REDUCED, PLAIN))
    behind = int((reduced.max(axis=0) >= plain.min(axis=0)).sum())
    medians = ", ".join(f"{short(float(np.median(v)))} ({style_of(m).label})" for m, v in values.items())
    runs = counted(reduced.shape[1], "run")
    words = f"{when.capitalize()} the median error over the runs is {medians}. "
    words += f"In {behind or 'none'} of {runs} one of the others is as close as sEM-VR or fiEM."
    return Finding(claim, verdict(not behind), words, f"{when} {medians}")
