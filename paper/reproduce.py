"""Run the paper's experiments with a progress bar and write raw numbers, figures and the report."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
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
from paper.reports.section import OURS, Section
from paper.reports.theory import theory_section
from swiftem.core.describe import environment
from swiftem.core.files import write_atomically
from swiftem.fit.driver import progress_bar
from swiftem.kernels.threads import get_threads
from swiftem.show.numbers import seconds_text

SECTIONS: dict[str, Callable[[Experiment], Section]] = {
    "gmm-precision": precision_section,
    "gmm-scaling": scaling_section,
    "plsa": plsa_section,
    "theory": theory_section,
    "methods": methods_section,
}
NAMES = tuple(SECTIONS)
FAILED, INTERRUPTED = 1, 130
"""Exit codes."""
NOTHING = "Interrupted before the first result; nothing was written."
REPORT = "report.html"
DOCUMENTS = "plsa-documents.csv"
COLOURS = {"agrees": "green", "disagrees": "red", "open": "yellow"}
PAPER = (
    "Karimi, Wai, Moulines and Lavielle, “On the Global Convergence of (Fast) Incremental Expectation "
    "Maximization Methods” (NeurIPS 2019), with the methods of swiftem: the paper's figures, and its claims "
    "compared with what was measured here."
)


class Request(NamedTuple):
    """Arguments of the command; ``runs`` None stands for the default.

    Quick experiments have smaller samples and fewer runs, but reach the epochs that the report compares.
    """

    name: str
    quick: bool
    runs: int | None
    seed: int
    corpora: Sequence[Path]
    out: Path

    @property
    def names(self) -> tuple[str, ...]:
        """The experiments to run."""
        return NAMES if self.name == "all" else (self.name,)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        words = ["python", "-m", "paper", self.name, *(["--quick"] if self.quick else [])]
        words += ["--runs", str(self.runs)] if self.runs is not None else []
        words += ["--seed", str(self.seed)]
        for corpus in self.corpora:
            words += ["--corpus", str(corpus)]
        return shlex.join([*words, "--out", str(self.out)])


def reproduce(request: Request, console: Console | None = None) -> int:
    """Run the experiments, show the claims, write everything to ``request.out``, and return the exit code.

    It is 0; 1 if the results could not be written or a corpus not be read; 130 after Ctrl-C.
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
    console.print(_claims(sections))
    facts = environment("scipy", "scikit-learn", "matplotlib") | {
        "threads": str(get_threads()),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "time": f"{seconds_text(perf_counter() - began)} in all, compiling included",
    }
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        for experiment in experiments:
            if experiment.rows:
                _write_table(
                    request.out / f"{experiment.name}.csv", experiment.rows[0]._fields, experiment.rows
                )
        if not request.corpora and any(e.name == "plsa" and e.rows for e in experiments):
            corpus = docstring_corpus()
            lengths = zip(corpus.names, map(len, corpus.documents), strict=True)
            _write_table(request.out / DOCUMENTS, ("name", "characters"), lengths)
            facts["docstrings"] = f"the documents of plsa are listed in {DOCUMENTS} beside this page"
        for section in sections:
            for picture in section.pictures:
                save_picture(picture, request.out)
        html = page(
            "The paper's experiments, reproduced", PAPER, sections, command=request.command, facts=facts
        )
        write_atomically(request.out / REPORT, html.encode())
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
    quick, runs = request.quick, request.runs
    jobs: dict[str, Callable[..., Experiment]] = {
        "gmm-precision": partial(gmm_precision, runs=runs or 5),
        "gmm-scaling": partial(
            gmm_scaling,
            runs=runs or 5,
            sizes=SIZES[:-1] if quick else SIZES,
            settings=("known", "authors") if quick else ("known", "free", "authors"),
        ),
        "plsa": lambda **options: plsa(
            corpora or docstring_corpora(),
            runs=runs or (1 if quick else 3),
            epochs=50 if quick else 60,  # 50 are compared: fewer would lead to another conclusion
            **options,
        ),
        "theory": partial(
            theory_in_numbers,
            runs=runs or (2 if quick else 5),
            sizes=THEORY_SIZES[:3] if quick else THEORY_SIZES,
        ),
        "methods": partial(
            compare_methods,
            runs=runs or (1 if quick else 5),
            quick=quick,
            sizes=(1_000, 3_162) if quick else METHOD_SIZES,
        ),
    }
    done: list[Experiment] = []
    with progress_bar(console) as bar:
        for name in request.names:
            task = bar.add_task(name, total=100)

            def show(doing: str, share: float, name: str = name, task: Any = task) -> None:
                bar.update(task, completed=100 * share, description=f"{name}: {doing}")

            try:
                done.append(jobs[name](seed=request.seed, progress=show))
            except KeyboardInterrupt:  # while a corpus was read: nothing of this experiment is there
                done.append(Experiment(name, {}, (), interrupted=True))
            bar.update(task, description=name)
            if done[-1].interrupted:
                break
    return done


def _claims(sections: Sequence[Section]) -> Table:
    """Return the claims and the findings as a table for the terminal."""
    table = Table(
        "", "claim", "measured", title="Claims, and what was found", box=SIMPLE_HEAD, title_justify="left"
    )
    for finding in (finding for section in sections for finding in section.findings):
        mark = Text(VERDICTS[finding.verdict], style=COLOURS[finding.verdict], no_wrap=True)
        source = "" if finding.source == OURS else f" ({finding.source})"
        table.add_row(mark, Text(finding.claim + source), Text(finding.brief))
    return table


def _write_table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(head)
    writer.writerows(rows)
    write_atomically(path, lines.getvalue().encode())
