"""Run the paper's experiments with a progress bar and write raw numbers, figures and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

import paper
from paper.docstrings import docstring_corpus
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import gmm_precision, precision_section
from paper.experiments.gmm_scaling import SIZES, gmm_scaling, scaling_section
from paper.experiments.methods import compare_methods, methods_section
from paper.experiments.plsa import plsa, plsa_section, read_corpora
from paper.experiments.theory import SIZES as THEORY_SIZES
from paper.experiments.theory import theory_in_numbers, theory_section
from paper.report.page import VERDICTS, page
from paper.report.section import OURS, Section
from swiftem.core.describe import environment
from swiftem.core.files import write_atomically
from swiftem.fit.driver import progress_bar
from swiftem.kernels.threads import get_threads
from swiftem.show.numbers import seconds_text
from swiftem.show.table import Table

EXPERIMENTS: dict[str, tuple[Callable[..., Experiment], Callable[[Experiment], Section]]] = {
    "gmm-precision": (gmm_precision, precision_section),
    "gmm-scaling": (gmm_scaling, scaling_section),
    "plsa": (plsa, plsa_section),
    "theory": (theory_in_numbers, theory_section),
    "methods": (compare_methods, methods_section),
}
QUICK: dict[str, dict[str, Any]] = {
    "gmm-scaling": {"sizes": SIZES[:-1], "settings": ("known", "authors")},
    "plsa": {"runs": 1, "epochs": 50},  # 50 are compared: fewer would lead to another conclusion
    "theory": {"runs": 2, "sizes": THEORY_SIZES[:3]},
    "methods": {"runs": 1, "quick": True},
}
"""Options of quick experiments: smaller samples and fewer runs, but the epochs that the report compares."""
FAILED, INTERRUPTED = 1, 130
"""Exit codes."""


class Request(NamedTuple):
    """Arguments of the command, and the command line that repeats it; ``runs`` None is the default."""

    name: str
    quick: bool
    runs: int | None
    seed: int
    corpus: Sequence[Path]
    out: Path
    command: str


def reproduce(request: Request, console: Console | None = None) -> int:
    """Run the experiments, show the claims, write everything to ``request.out``, and return the exit code.

    It is 0; 1 if the results could not be written or a corpus not be read; 130 after Ctrl-C.
    """
    console = console or Console()
    # A terminal may break a sentence; a log or a pipe gets it whole. Paths may hold what looks like markup.
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    began = perf_counter()
    left = "nothing was written"
    try:
        try:
            inputs = {"plsa": {"corpora": read_corpora(request.corpus)}} if request.corpus else {}
        except ValueError as error:
            say(str(error))
            return FAILED
        experiments = run_all(request, inputs, console)
        complete = [experiment for experiment in experiments if experiment.rows]
        sections = [EXPERIMENTS[experiment.name][1](experiment) for experiment in complete]
        if not sections:
            raise KeyboardInterrupt
        console.print(_claims(sections))
        request.out.mkdir(parents=True, exist_ok=True)
        facts = {"command": request.command} | environment("scipy", "scikit-learn", "matplotlib")
        for experiment in complete:
            _write_table(request.out / f"{experiment.name}.csv", experiment.rows)
            if experiment.name == "plsa" and not request.corpus:
                corpus = docstring_corpus()
                lengths = {"name": corpus.names, "characters": map(len, corpus.documents)}
                _write_table(request.out / "plsa-documents.csv", lengths)
                facts["docstrings"] = (
                    "the documents of plsa are listed in plsa-documents.csv beside this page"
                )
        left = f"the numbers are in {request.out}"
        for picture in (picture for section in sections for picture in section.pictures):
            picture.save(request.out)
        facts |= {
            "threads": str(get_threads()),
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "time": f"{seconds_text(perf_counter() - began)} in all, compiling included",
        }
        interrupted = experiments[-1].interrupted
        html = page(str(paper.__doc__), sections, facts=facts, interrupted=interrupted)
        write_atomically(request.out / "report.html", html.encode())
    except OSError as error:
        say(f"{error}\n{left.capitalize()}.")
        return FAILED
    except KeyboardInterrupt:
        say(f"Interrupted: {left}.")
        return INTERRUPTED
    if interrupted:
        say("Interrupted: shown and written is what was complete.")
    say(f"Report: {request.out / 'report.html'} (open it in a browser); numbers and figures are beside it.")
    return INTERRUPTED if interrupted else 0


def run_all(request: Request, inputs: dict[str, dict[str, Any]], console: Console) -> list[Experiment]:
    """Return the experiments, with ``inputs`` by name; after Ctrl-C the last one may be incomplete."""
    done: list[Experiment] = []
    with progress_bar(console) as bar:
        for name in EXPERIMENTS if request.name == "all" else (request.name,):
            options = inputs.get(name, {}) | (QUICK.get(name, {}) if request.quick else {})
            if request.runs is not None:
                options["runs"] = request.runs
            task = bar.add_task(name, total=100)

            def show(doing: str, share: float, name: str = name, task: Any = task) -> None:
                bar.update(task, completed=100 * share, description=f"{name}: {doing}")

            done.append(EXPERIMENTS[name][0](seed=request.seed, progress=show, **options))
            if done[-1].interrupted:
                break
            bar.update(task, completed=100, description=name)
    return done


def _claims(sections: Sequence[Section]) -> Table:
    """Return the claims and the findings as a table for the terminal."""
    rows = [
        (VERDICTS[f.verdict], f"{f.claim}{f' ({f.source})' * (f.source != OURS)} {f.sentence}")
        for section in sections
        for f in section.findings
    ]
    return Table("Claims, and what was found", ["", "claim, and what was measured"], rows)


def _write_table(path: Path, rows: Any) -> None:
    text = pd.DataFrame(rows).to_csv(index=False, na_rep="nan", lineterminator="\r\n")
    write_atomically(path, text.encode())
