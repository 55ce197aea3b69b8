"""``python -m paper``: the paper's experiments with a progress bar, raw numbers, figures and a report."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from paper.docstrings import docstring_corpus
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import gmm_precision
from paper.experiments.gmm_scaling import SIZES, gmm_scaling
from paper.experiments.methods import SIZES as METHOD_SIZES
from paper.experiments.methods import compare_methods
from paper.experiments.plsa import docstring_corpora, plsa, read_corpora
from paper.experiments.theory import SIZES as THEORY_SIZES
from paper.experiments.theory import theory_in_numbers
from paper.reports.figures import save_picture
from paper.reports.gmm_precision import precision_section
from paper.reports.gmm_scaling import scaling_section
from paper.reports.methods import methods_section
from paper.reports.page import VERDICTS, page
from paper.reports.plsa import plsa_section
from paper.reports.section import Section
from paper.reports.theory import theory_section
from swiftem.cli.failures import FAILED, INTERRUPTED
from swiftem.cli.screen import Console
from swiftem.core.describe import environment
from swiftem.core.files import write_atomically
from swiftem.estimators.watch import progress_bar
from swiftem.kernels.threads import get_threads
from swiftem.report.numbers import seconds_text

__all__ = ["NAMES", "Request", "reproduce"]

NAMES = ("gmm-precision", "gmm-scaling", "plsa", "theory", "methods")
SECTIONS: dict[str, Callable[[Experiment], Section]] = {
    "gmm-precision": precision_section,
    "gmm-scaling": scaling_section,
    "plsa": plsa_section,
    "theory": theory_section,
    "methods": methods_section,
}
NOTHING = "Interrupted before the first result; nothing was written."
REPORT = "report.html"
DOCUMENTS = "plsa-documents.csv"
COLOURS = {"agrees": "green", "disagrees": "red"}


@dataclass(frozen=True)
class Request:
    """Arguments of the command: names of experiments, quick or not, runs (None: the default), ...

    Quick experiments have smaller samples and fewer runs, but reach the epochs that the report compares.
    """

    names: Sequence[str]
    quick: bool
    runs: int | None
    seed: int
    corpora: Sequence[Path]
    out: Path
    command: str

    @classmethod
    def of(
        cls, name: str, quick: bool, runs: int | None, seed: int, corpora: Sequence[Path], out: Path
    ) -> Request:
        """Return the request, with the command line that repeats it."""
        words = ["python", "-m", "paper", name, *(["--quick"] if quick else [])]
        words += ["--runs", str(runs)] if runs is not None else []
        words += ["--seed", str(seed)]
        for corpus in corpora:
            words += ["--corpus", str(corpus)]
        names = NAMES if name == "all" else (name,)
        return cls(names, quick, runs, seed, corpora, out, shlex.join([*words, "--out", str(out)]))


def reproduce(request: Request, console: Console | None = None) -> int:
    """Run the experiments, show the findings, write everything to ``request.out``, return the exit code.

    Returns
    -------
    int
        0; 1 if the results could not be written or a corpus not be read; 130 after Ctrl-C.
    """
    console = console or Console()
    # A terminal may break a sentence; a log or a pipe gets it whole. Paths may hold what looks like markup.
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    began = perf_counter()
    try:
        corpora = read_corpora(request.corpora) if request.corpora else None
    except (OSError, ValueError) as error:
        say(str(error))
        return FAILED
    except KeyboardInterrupt:
        say(NOTHING)
        return INTERRUPTED
    experiments = _run_all(request, corpora, console)
    if not any(experiment.rows for experiment in experiments):
        say(NOTHING)
        return INTERRUPTED
    sections = [SECTIONS[experiment.name](experiment) for experiment in experiments]
    console.print(_headline_table(sections))
    facts = environment("scipy", "scikit-learn", "matplotlib") | {
        "threads": str(get_threads()),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "time": f"{seconds_text(perf_counter() - began)} in all, compiling and drawing included",
    }
    try:
        _write(request, experiments, sections, facts, say)
    except OSError as error:
        say(f"The results could not be written to {request.out}: {error.strerror or error}.")
        return FAILED
    except KeyboardInterrupt:
        say(f"Interrupted while figures and report were made; the numbers are in {request.out}.")
        return INTERRUPTED
    interrupted = any(experiment.interrupted for experiment in experiments)
    if interrupted:
        say("Interrupted: shown and written is what was complete.")
    say(f"Report: {request.out / REPORT} (open it in a browser); numbers and figures are beside it.")
    return INTERRUPTED if interrupted else 0


def _run_all(request: Request, corpora: Any, console: Console) -> list[Experiment]:
    """Return the experiments; after Ctrl-C the last one may be incomplete."""
    jobs: dict[str, Callable[..., Experiment]] = {
        "gmm-precision": partial(gmm_precision, runs=request.runs or 5),
        "gmm-scaling": partial(
            gmm_scaling,
            runs=request.runs or 5,
            sizes=SIZES[:-1] if request.quick else SIZES,
            settings=("known", "authors") if request.quick else ("known", "free", "authors"),
        ),
        "plsa": lambda **options: plsa(
            corpora or docstring_corpora(),
            runs=request.runs or (1 if request.quick else 3),
            epochs=50 if request.quick else 60,  # 50 are compared: fewer would lead to another conclusion
            **options,
        ),
        "theory": partial(
            theory_in_numbers,
            runs=request.runs or (2 if request.quick else 5),
            sizes=THEORY_SIZES[:3] if request.quick else THEORY_SIZES,
        ),
        "methods": partial(
            compare_methods,
            runs=request.runs or (1 if request.quick else 5),
            quick=request.quick,
            sizes=(1_000, 3_162) if request.quick else METHOD_SIZES,
        ),
    }
    done: list[Experiment] = []
    with progress_bar(console) as bar:
        tasks = {name: bar.add_task(name, total=1.0, start=False) for name in request.names}
        for name, task in tasks.items():
            bar.start_task(task)

            def show(doing: str, share: float, name: str = name, task: Any = task) -> None:
                bar.update(task, completed=share, description=f"{name}: {doing}")

            try:
                done.append(jobs[name](seed=request.seed, progress=show))
            except KeyboardInterrupt:  # while a corpus was read: nothing of this experiment is there
                done.append(Experiment(name, {}, (), interrupted=True))
            bar.update(task, description=name)
            if done[-1].interrupted:
                break
    return done


def _headline_table(sections: Sequence[Section]) -> Table:
    """Return the paper's claims and the findings; findings beyond the paper are in the report."""
    table = Table(title="The paper's claims, and what was found", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("")
    table.add_column("claim")
    table.add_column("measured")
    for section in sections:
        for finding in section.findings:
            if finding.verdict != "beyond":
                mark = Text(VERDICTS[finding.verdict], style=COLOURS[finding.verdict], no_wrap=True)
                table.add_row(mark, Text(finding.claim), Text(finding.brief))
    return table


def _write(
    request: Request,
    experiments: Sequence[Experiment],
    sections: Sequence[Section],
    facts: dict[str, str],
    say: Callable[[str], None],
) -> None:
    """Write the numbers first, as they need no matplotlib, then figures and report."""
    request.out.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        if experiment.rows:
            lines = io.StringIO()
            writer = csv.writer(lines)
            writer.writerow(experiment.rows[0]._fields)
            writer.writerows(experiment.rows)
            write_atomically(request.out / f"{experiment.name}.csv", lines.getvalue().encode())
    if not request.corpora and any(e.name == "plsa" and e.rows for e in experiments):
        docstring_corpus().write_contents(request.out / DOCUMENTS)
        facts["docstrings"] = f"the documents of plsa are listed in {DOCUMENTS} beside this page"
    figures = True
    try:
        for section in sections:
            for picture in section.pictures:
                save_picture(picture, request.out)
    except ImportError as missing:
        say(str(missing))
        figures = False
    html = page(
        "The paper's experiments, reproduced",
        "Karimi, Wai, Moulines and Lavielle, “On the Global Convergence of (Fast) Incremental Compute "
        "Maximization Methods” (NeurIPS 2019), with the methods of swiftem. Each section compares the "
        "paper's claims with what was measured here.",
        sections,
        command=request.command,
        facts=facts,
        figures=figures,
    )
    write_atomically(request.out / REPORT, html.encode())
