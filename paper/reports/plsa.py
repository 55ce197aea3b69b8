"""The section of the report on the paper's pLSA figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.experiments.experiment import Experiment
from paper.experiments.plsa import LikelihoodRow
from paper.reports.curves import Curves, curve_panels, curve_table
from paper.reports.numbers import likelihood
from paper.reports.section import Finding, Panel, Picture, Section, Table
from swiftem.report.numbers import counted, seconds_text, signed, style_of

__all__ = ["plsa_section"]

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


def plsa_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`paper.experiments.plsa.plsa`.

    >>> from paper.experiments.plsa import plsa
    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> section = plsa_section(plsa({"toy": [fruit, tools] * 5}, epochs=2, runs=1))
    >>> [picture.name for picture in section.pictures], len(section.pictures[0].panels)
    (['plsa-toy'], 6)
    """
    lead = (
        "The paper's figure 2: the evidence lower bound of pLSA with ten topics and 300 words against "
        "epochs, on a small and a large corpus. The E-step is exact, so the bound is the log-likelihood; "
        "its mean over tokens is shown. All methods of a run start from the same parameters."
    )
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    corpora = list(dict.fromkeys(row.corpus for row in experiment.rows))
    for corpus, file in zip(corpora, _file_names(corpora), strict=True):
        by_steps = _by_steps([row for row in experiment.rows if row.corpus == corpus])
        findings += _findings(corpus, by_steps)
        pictures.append(_picture(file, corpus, by_steps))
        tables.append(_table(corpus, by_steps))
    return Section(
        "plsa",
        "Topics of texts (pLSA)",
        lead,
        findings,
        pictures,
        tables,
        experiment.settings,
        "plsa.csv" if experiment.rows else "",
        experiment.interrupted,
    )


def _by_steps(rows: Sequence[LikelihoodRow]) -> dict[str, Curves]:
    """Return the curves with the paper's and with recommended steps; after Ctrl-C the available ones."""
    by_steps = {steps: _curves(rows, steps) for steps in KINDS}
    begun = {steps: curves for steps, curves in by_steps.items() if set(curves.methods) - {*WITHOUT_STEPS}}
    return begun or {"paper": by_steps["paper"]}


def _curves(rows: Sequence[LikelihoodRow], steps: str) -> Curves:
    """Return the curves with these steps, and of em and iem, which have none, in the paper's order."""
    chosen = sorted(
        (row for row in rows if row.steps in ("", steps)), key=lambda row: ORDER.index(row.method)
    )
    return Curves((row.method, *row[3:]) for row in chosen)


def _is_complete(curves: Curves) -> bool:
    return all(m in curves for m in ORDER)


def _list(values: dict[str, float], methods: Sequence[str]) -> str:
    return ", ".join(f"{likelihood(values[m])} ({style_of(m).label})" for m in methods)


def _names(methods: Sequence[str]) -> str:
    """Return the methods' names for a sentence.

    >>> _names(("em", "sem", "iem"))
    'EM, sEM and iEM'
    """
    labels = [style_of(m).label for m in methods]
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def _findings(corpus: str, by_steps: dict[str, Curves]) -> list[Finding]:
    findings: list[Finding] = []
    for steps, curves in by_steps.items():
        if _is_complete(curves):
            which = f"{corpus} corpus, {KINDS[steps]}"
            findings += _is_faster(which, steps, curves)
            if steps == "recommended":
                findings += [_by_cost(which, curves), _other_step(which, curves, by_steps.get("paper"))]
    return findings


def _is_faster(which: str, steps: str, curves: Curves) -> list[Finding]:
    """Return the paper's claim early and, if there are more epochs, late, compared with the numbers."""
    early, late = min(EARLY, curves.last_epoch), min(LATE, curves.last_epoch)
    soon, then = curves.medians(early), curves.medians(late)
    others = COMPETING[steps]
    compared = (*REDUCED, *others)
    lead = min(soon[m] for m in REDUCED) - max(soon[m] for m in others)
    after = f"fter {counted(early, 'epoch')} {_list(soon, compared)}"
    findings = [
        Finding(
            f"sEM-VR and fiEM converge faster than {_names(others)} ({which}).",
            "agrees" if lead > 0 else "disagrees",
            f"A{after}: "
            + (
                f"both are ahead of {_names(others)} by {lead:.2f} or more."
                if lead > 0
                else f"the slower of the two is behind the best of {_names(others)} by {-lead:.2f}."
            ),
            f"a{after}",
        )
    ]
    if late > early:
        ahead = min(then[m] for m in REDUCED) - max(then[m] for m in WITHOUT_STEPS)
        after = f"fter {counted(late, 'epoch')} {_list(then, compared)}"
        if ahead >= 0:
            words = f"A{after}: both are ahead of EM and iEM by {ahead:.2f} or more."
        elif ahead >= -LEVEL:
            words = f"A{after}: the slower of the two is level with the better of EM and iEM, within {LEVEL}."
        else:
            words = f"A{after}: the better of EM and iEM has passed the slower of the two, by {-ahead:.2f}."
        if ahead < 0 and steps == "paper":
            words += " A step of n^(−2/3) is too large for a long run: both stall at their noise."
        findings.append(
            Finding(
                f"... and do not fall behind EM and iEM later ({which}).",
                "agrees" if ahead >= -LEVEL else "disagrees",
                words,
                f"a{after}",
            )
        )
    return findings


def _by_cost(which: str, curves: Curves) -> Finding:
    budget, clock = 1 + 3 * min(EARLY, curves.last_epoch), curves.end("em", "seconds")
    at_budget, at_clock = (
        {m: float(np.median(curves.at(m, axis, x))) for m in curves.methods}
        for axis, x in (("passes", float(budget)), ("seconds", clock))
    )
    return Finding(
        f"By passes and seconds (not in the paper; {which}).",
        "beyond",
        f"At {budget} passes {_list(at_budget, curves.methods)}. In the {seconds_text(clock)} that EM takes "
        f"for {curves.last_epoch} passes {_list(at_clock, curves.methods)}.",
        f"in {seconds_text(clock)} {_list(at_clock, curves.methods)}",
    )


def _other_step(which: str, curves: Curves, paper: Curves | None) -> Finding:
    epochs = sorted({min(EARLY, curves.last_epoch), min(LATE, curves.last_epoch)})
    after = "after " + " and ".join([*map(str, epochs[:-1]), counted(epochs[-1], "epoch")])

    def sem(found: Curves) -> str:
        return " and ".join(likelihood(found.medians(epoch)["sem"]) for epoch in epochs)

    words = f"With k^(−0.8) sEM has {sem(curves)} {after}"
    if paper is not None and "sem" in paper:
        words += f", with the paper's 1/(k + 10) {sem(paper)}"
    reduced = " and ".join(likelihood(curves.medians(epochs[0])[m]) for m in REDUCED)
    words += f". sEM-VR and fiEM have {reduced} after {counted(epochs[0], 'epoch')}."
    return Finding(f"sEM with another step ({which}).", "beyond", words, f"{sem(curves)} {after}")


def _picture(file: str, corpus: str, by_steps: dict[str, Curves]) -> Picture:
    panels: list[Panel] = []
    for steps, curves in by_steps.items():
        last = curves.medians(curves.last_epoch)
        panels += curve_panels(
            curves,
            value="mean log-likelihood per token",
            logarithmic=False,
            ends={m: likelihood(value) for m, value in last.items()},
            suffix=f", {KINDS[steps]}",
        )
    return Picture(
        f"plsa-{file}",
        f"Mean log-likelihood of pLSA on the {corpus} corpus",
        f"Mean log-likelihood at the last epoch, {KINDS[steps]}: {_list(last, list(last))}",
        panels,
        columns=3,
    )


def _file_names(corpora: Sequence[str]) -> list[str]:
    """Return the corpora's names as parts of file names, unique also if case is ignored.

    >>> _file_names(["my corpus/a", "My-corpus a", "…"])
    ['my-corpus-a', 'My-corpus-a-2', 'corpus']
    """
    names: list[str] = []
    for corpus in corpora:
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in corpus)
        name = stem = plain.strip("-.") or "corpus"
        number = 1
        while name.lower() in (taken.lower() for taken in names):
            number += 1
            name = f"{stem}-{number}"
        names.append(name)
    return names


def _table(corpus: str, by_steps: dict[str, Curves]) -> Table:
    columns = {}
    for steps, curves in by_steps.items():
        for m in curves.methods:
            name = style_of(m).label if m in WITHOUT_STEPS else f"{style_of(m).label}, {steps}"
            columns[name] = curves, m
    title = f"Mean log-likelihood per token by epoch, {corpus} corpus, median over the runs"
    return curve_table(title, columns, SHOWN, lambda value: signed(value, 3))
