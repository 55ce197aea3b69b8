"""``swiftem demo``: the paper's Gaussian example with a progress bar, a table, a CSV and a figure."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from swiftem.experiments.gaussian import GaussianConvergence, Row, gaussian_convergence, paper_methods
from swiftem.report.conclusion import conclusion, headline
from swiftem.report.convergence import plot_convergence
from swiftem.report.method_names import style_of

__all__ = ["run_demo"]

COST = {"em": 0.0, "sem": 1.0, "iem": 1.2, "sem-vr": 1.6, "fiem": 2.0}
"""Time of an epoch, in units of sem's: only for the estimate of the time left."""

CSV, PNG = "gaussian.csv", "gaussian.png"

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as shells have it."""


def run_demo(*, epochs: int, n: int, seed: int, out: Path, console: Console | None = None) -> int:
    """Run the comparison, show it, write it to ``out``, and return the exit code.

    Parameters
    ----------
    epochs, n, seed : int
        As in :func:`swiftem.experiments.gaussian.gaussian_convergence`.
    out : Path
        A folder that exists.
    console : rich.console.Console, optional
        Where to print.

    Returns
    -------
    int
        0; 1 where the results could not be written; 130 after Ctrl-C.
    """
    console = console or Console()
    # A terminal may break a sentence; a log or a pipe gets it whole. Paths may hold what looks like markup.
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    say(f"Five methods fit two overlapping Gaussians: n = {n:,}, {epochs} epochs, seed {seed}.")
    result = _with_progress_bar(console, epochs=epochs, n=n, seed=seed)
    if not result.rows:
        say("Interrupted before the first result; nothing was written.")
        return INTERRUPTED

    console.print(_table(result))
    if result.limit is not None and not result.limit.converged:
        say(f"EM still moved after {result.limit.n_iter:,} passes: the smallest errors are not exact.")
    try:
        files = _write(result, out)
    except OSError as error:
        say(f"The results could not be written to {out}: {error.strerror or error}.")
        return 1
    except ImportError as missing:
        say(str(missing))
        files = [out / CSV]
    if result.interrupted:
        say("Interrupted: shown and written are the epochs that were complete.")
    say(conclusion(result.errors))
    say("Results: " + ", ".join(str(file) for file in files))
    return INTERRUPTED if result.interrupted else 0


def _with_progress_bar(console: Console, *, epochs: int, n: int, seed: int) -> GaussianConvergence:
    """Run the experiment under two bars: the reference, then all methods together."""
    names = [method.name for method in paper_methods()]
    finished = {name: sum(COST[before] for before in names[:place]) for place, name in enumerate(names)}
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )
    with bar:
        reference = bar.add_task("Reference: EM until it rests", total=1.0)
        methods = bar.add_task("Five methods", total=sum(COST.values()), start=False)

        def show(stage: str, share: float) -> None:
            if stage == "reference":
                bar.update(reference, completed=share)
                return
            bar.start_task(methods)
            done = finished[stage] + COST[stage] * share
            bar.update(methods, completed=done, description=f"Five methods: {style_of(stage).label}")

        result = gaussian_convergence(n=n, epochs=epochs, seed=seed, progress=show)
        bar.update(methods, description="Five methods")
    return result


def _table(result: GaussianConvergence) -> Table:
    """Return squared errors: a handful of epochs down, methods across."""
    errors = result.errors
    last = max(len(series) for series in errors.values()) - 1
    table = Table(title="Squared error |μ − μ*|² by epoch")
    table.add_column("epoch", justify="right")
    for method in errors:
        table.add_column(style_of(method).label, justify="right")
    for epoch in _handful(last):
        cells = (f"{series[epoch]:.1e}" if epoch < len(series) else "" for series in errors.values())
        table.add_row(str(epoch), *cells)
    table.add_section()
    # What an epoch costs differs between methods: without this the comparison would flatter some.
    ends = {row.method: row for row in result.rows}
    table.add_row("passes", *(f"{row.passes:.0f}" for row in ends.values()))
    table.add_row(
        "seconds",
        *(f"{row.seconds:.2g}" if row.seconds < 10 else f"{row.seconds:.0f}" for row in ends.values()),
    )
    return table


def _handful(last: int) -> list[int]:
    """Return 0, 1, and about six epochs more up to ``last``, at round numbers.

    >>> _handful(25), _handful(3)
    ([0, 1, 5, 10, 15, 20, 25], [0, 1, 2, 3])
    """
    step = next(size for size in _round_numbers() if size * 6 >= last)
    return sorted({0, min(1, last), *range(0, last + 1, step), last})


def _round_numbers() -> list[int]:
    return [digit * 10**power for power in range(12) for digit in (1, 2, 5)]


def _write(result: GaussianConvergence, out: Path) -> list[Path]:
    """Write all rows and the figure, the rows first as they need no matplotlib."""
    with open(out / CSV, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows(result.rows)
    figure = plot_convergence(
        result.errors,
        out / PNG,
        title=headline(result.errors),
        subtitle=f"n = {result.n:,} samples of two unit-variance Gaussians, means ±0.5; μ* is where EM ends",
    )
    return [out / CSV, figure]
