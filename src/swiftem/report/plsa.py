"""The section of the report on the paper's pLSA figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swiftem.experiments.experiment import Experiment
from swiftem.experiments.plsa import LikelihoodRow
from swiftem.report.curves import Curves, curve_panels
from swiftem.report.method_names import style_of
from swiftem.report.numbers import likelihood, seconds_text
from swiftem.report.section import Finding, Picture, Section, Table, Verdict

__all__ = ["plsa_section"]

REDUCED, PLAIN = ("sem-vr", "fiem"), ("em", "iem")
KINDS = {"paper": "the paper's steps", "recommended": "recommended steps"}
EARLY, LATE, AHEAD = 5, 50, 0.2
"""The epochs that are compared, and what counts as ahead, in mean log-likelihood."""
SHOWN = (0, 1, 2, 5, 10, 20, 50)


def plsa_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`swiftem.experiments.plsa.plsa`.

    >>> from swiftem.experiments.plsa import plsa
    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> section = plsa_section(plsa({"toy": [fruit, tools] * 5}, epochs=2, runs=1))
    >>> [picture.name for picture in section.pictures], len(section.pictures[0].panels)
    (['plsa-toy'], 6)
    """
    lead = (
        "The paper's figure 2: the evidence lower bound of pLSA with ten topics and 300 words against epochs, on a "
        "small and a large corpus. The E-step is exact, so the bound is the log-likelihood; shown is its mean over "
        "tokens. All methods of a run start from the same parameters."
    )
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    for corpus in dict.fromkeys(row.corpus for row in experiment.rows):
        rows = [row for row in experiment.rows if row.corpus == corpus]
        by_steps = {steps: _curves(rows, steps) for steps in KINDS}
        # After Ctrl-C some methods may be missing.
        complete = {
            steps: c for steps, c in by_steps.items() if all(m in c for m in (*PLAIN, "sem", *REDUCED))
        }
        for steps, curves in complete.items():
            findings += _findings(corpus, steps, curves)
        pictures.append(_picture(corpus, by_steps))
        tables.append(_table(corpus, by_steps))
    return Section(
        "plsa", "Topics of texts (pLSA)", lead, findings, pictures, tables,
        experiment.settings, "plsa.csv", experiment.interrupted,
    )  # fmt: skip


def _curves(rows: Sequence[LikelihoodRow], steps: str) -> Curves:
    """Return the curves with these steps, em and iem, which have none, among them; the paper's order."""
    order = ["em", "sem", "iem", "sem-vr", "fiem"]
    chosen = sorted(
        (row for row in rows if row.steps in ("", steps)), key=lambda row: order.index(row.method)
    )
    return Curves((row.method, *row[3:]) for row in chosen)


def _values(curves: Curves, epoch: int) -> dict[str, float]:
    return {m: float(curves.at_epoch(m, epoch).mean()) for m in curves.methods}


def _list(values: dict[str, float], methods: Sequence[str]) -> str:
    return ", ".join(f"{likelihood(values[m])} ({style_of(m).label})" for m in methods)


def _findings(corpus: str, steps: str, curves: Curves) -> list[Finding]:
    early, late = min(EARLY, curves.last_epoch), min(LATE, curves.last_epoch)
    soon, then = _values(curves, early), _values(curves, late)
    lead = min(soon[m] for m in REDUCED) - max(soon[m] for m in PLAIN)
    quick: Verdict = "agrees" if lead > 0 else "disagrees"
    compared = (*REDUCED, *PLAIN)
    which = f"{corpus} corpus, {KINDS[steps]}"
    findings = [
        Finding(
            f"sEM-VR and fiEM converge faster ({which}).",
            quick,
            f"After {early} epochs {_list(soon, compared)}: "
            + (f"ahead of EM and iEM by {lead:.2f} or more." if lead > 0 else f"behind by {-lead:.2f}."),
            f"after {early} epochs {_list(soon, compared)}",
        )
    ]
    if late > early:
        below = min(then[m] for m in REDUCED) - then["em"]
        findings.append(
            Finding(
                f"... and stay ahead ({which}).",
                "agrees" if below >= 0 else "disagrees",
                f"After {late} epochs {_list(then, compared)}"
                + ("." if below >= 0 else f": EM has passed the slower of the two, by {-below:.2f}. The paper's step "
                   "n^(−2/3) is too large for a long run: both stall on their noise."),
                f"after {late} epochs {_list(then, compared)}",
            )
        )  # fmt: skip
    if steps == "recommended":
        clock = curves.end("em", "seconds")
        at = {m: float(curves.at(m, "seconds", clock).mean()) for m in curves.methods}
        same = {m: float(curves.at(m, "passes", 1.0 + 3 * early).mean()) for m in curves.methods}
        findings += [
            Finding(
                f"By passes and seconds (the paper does not say; {which}).",
                "beyond",
                f"At {1 + 3 * early} passes {_list(same, curves.methods)}. In the {seconds_text(clock)} that EM takes "
                f"for {curves.last_epoch} passes {_list(at, curves.methods)}.",
                f"in {seconds_text(clock)} {_list(at, curves.methods)}",
            ),
            Finding(
                f"sEM is as quick with another step ({which}).",
                "beyond",
                f"With k^(−0.8) instead of the paper's 1/(k + 10) sEM has {likelihood(soon['sem'])} after {early} epochs "
                f"and {likelihood(then['sem'])} after {late}.",
                f"after {early} epochs {likelihood(soon['sem'])}",
            ),
        ]
    return findings


def _picture(corpus: str, by_steps: dict[str, Curves]) -> Picture:
    panels = []
    for steps, curves in by_steps.items():
        ends = {m: likelihood(value) for m, value in _values(curves, curves.last_epoch).items()}
        panels += curve_panels(
            curves,
            value="mean log-likelihood of a token",
            logarithmic=False,
            ends=ends,
            suffix=f", {KINDS[steps]}",
        )
    ends = _values(by_steps["recommended"], by_steps["recommended"].last_epoch)
    return Picture(
        f"plsa-{_file_name(corpus)}",
        f"Mean log-likelihood of pLSA on the {corpus} corpus",
        f"Mean log-likelihood at the last epoch, recommended steps: {_list(ends, list(ends))}",
        panels,
        columns=3,
    )


def _file_name(corpus: str) -> str:
    """Return a corpus' name as part of a file's.

    >>> _file_name("my corpus/a")
    'my-corpus-a'
    """
    return (
        "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in corpus).strip("-.")
        or "corpus"
    )


def _table(corpus: str, by_steps: dict[str, Curves]) -> Table:
    columns = {}
    for steps, curves in by_steps.items():
        for m in curves.methods:
            name = style_of(m).label if m in PLAIN else f"{style_of(m).label}, {steps}"
            columns[name] = curves, m
    last = min(curves.last_epoch for curves in by_steps.values())
    epochs = sorted({epoch for epoch in SHOWN if epoch <= last} | {last})
    rows = [
        [f"{e}", *(f"{np.mean(c.at_epoch(m, e)):.3f}".replace("-", "−") for c, m in columns.values())]
        for e in epochs
    ]
    rows.append(["passes in all", *(f"{c.end(m, 'passes'):.0f}" for c, m in columns.values())])
    rows.append(["seconds in all", *(seconds_text(c.end(m, "seconds")) for c, m in columns.values())])
    return Table(f"Mean log-likelihood of a token by epoch, {corpus} corpus, mean over the runs",
                 ["epoch", *columns], rows)  # fmt: skip
