"""The section of the report on the paper's pLSA figure."""

from __future__ import annotations

from collections.abc import Sequence

from paper.experiments.experiment import Experiment
from paper.experiments.plsa import LikelihoodRow
from paper.reports.curves import Curves, curve_panels, curve_table
from paper.reports.section import Finding, Picture, Section, Table, verdict
from swiftem.show.numbers import counted, signed, style_of

REDUCED, WITHOUT_STEPS = ("sem-vr", "fiem"), ("em", "iem")
COMPETING = {"paper": ("em", "sem", "iem"), "recommended": WITHOUT_STEPS}
"""Methods that sEM-VR and fiEM are compared with: for the paper's steps all others, as in the paper."""
KINDS = {"paper": "the paper's steps", "recommended": "recommended steps"}
ORDER = ("em", "sem", "iem", "sem-vr", "fiem")
EARLY, LATE = 5, 50
"""The epochs that are compared."""
LEVEL = 0.025
"""Insignificant late differences of the mean log-likelihood: another start or seed inverts them."""
SHOWN = (0, 1, 2, 5, 10, 20, 50)
LEAD = (
    "The paper's figure 2: the evidence lower bound of pLSA with ten topics and 300 words against "
    "epochs, on a small and a large corpus. The E-step is exact, so the bound is the log-likelihood; its "
    "mean over tokens is shown. All methods of a run start from the same parameters."
)


def plsa_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.plsa.plsa`.

    >>> from paper.experiments.plsa import plsa
    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> section = plsa_section(plsa({"toy": [fruit, tools] * 5}, epochs=2, runs=1))
    >>> [picture.name for picture in section.pictures], len(section.pictures[0].panels)
    (['plsa-1-toy'], 6)
    """
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    for number, corpus in enumerate(dict.fromkeys(row.corpus for row in experiment.rows), start=1):
        by_steps = _by_steps([row for row in experiment.rows if row.corpus == corpus])
        columns, panels = {}, []
        for steps, curves in by_steps.items():
            panels += curve_panels(
                curves,
                value="mean log-likelihood per token",
                log="",
                text=_likelihood,
                suffix=f", {KINDS[steps]}",
            )
            for m in curves.methods:
                label = style_of(m).label
                columns[label if m in WITHOUT_STEPS else f"{label}, {steps}"] = curves, m
            if set(ORDER) <= set(curves.methods):  # after Ctrl-C some may be missing
                findings += _is_faster(f"{corpus} corpus, {KINDS[steps]}", steps, curves)
        plain = "".join(letter if letter.isalnum() else "-" for letter in corpus)
        title = f"Mean log-likelihood of pLSA on the {corpus} corpus"
        first = next(iter(by_steps.values()))
        ends = _list(first.medians(first.last_epoch), first.methods)
        pictures.append(
            Picture(f"plsa-{number}-{plain}", title, f"{title} at the last epoch: {ends}", panels)
        )
        title = f"Mean log-likelihood per token by epoch, {corpus} corpus, median over the runs"
        tables.append(curve_table(title, columns, SHOWN, lambda value: signed(value, 3)))
    return Section(experiment, "Topics of texts (pLSA)", LEAD, findings, pictures, tables)


def _by_steps(rows: Sequence[LikelihoodRow]) -> dict[str, Curves]:
    """Return the curves with the paper's and with recommended steps; em and iem, which have none, in both."""
    curves = {}
    for steps in KINDS:
        mine = [row for row in rows if row.steps in ("", steps)]
        if steps == "paper" or any(row.steps for row in mine):
            mine.sort(key=lambda row: ORDER.index(row.method))
            curves[steps] = Curves(mine)
    return curves


def _likelihood(value: float) -> str:
    return signed(value, 2)


def _list(values: dict[str, float], methods: Sequence[str]) -> str:
    return ", ".join(f"{_likelihood(values[m])} ({style_of(m).label})" for m in methods)


def _is_faster(which: str, steps: str, curves: Curves) -> list[Finding]:
    """Return the paper's claim early and, if there are more epochs, late, compared with the numbers."""
    early, late = min(EARLY, curves.last_epoch), min(LATE, curves.last_epoch)
    others = COMPETING[steps]
    names = "EM, sEM and iEM" if steps == "paper" else "EM and iEM"
    claims = [(f"sEM-VR and fiEM converge faster than {names} ({which}).", early, others, 0.0)]
    if late > early:
        claims.append(
            (f"sEM-VR and fiEM do not fall behind EM and iEM later ({which}).", late, WITHOUT_STEPS, -LEVEL)
        )
    findings = []
    for claim, epoch, compared, least in claims:
        values = curves.medians(epoch)
        ahead = min(values[m] for m in REDUCED) - max(values[m] for m in compared)
        after = f"after {counted(epoch, 'epoch')} {_list(values, (*REDUCED, *others))}"
        words = f"A{after[1:]}: the slower of the two is {abs(ahead):.2f} "
        words += f"{'ahead of' if ahead >= 0 else 'behind'} the best of the others."
        if least and steps == "paper" and ahead < 0:
            words += " A step of n^(−2/3) is too large for a long run: both stall at their noise."
        findings.append(Finding(claim, verdict(ahead > least), words, after))
    return findings
