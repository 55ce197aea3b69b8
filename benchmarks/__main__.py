"""``python -m benchmarks``: tables on the screen, and ``results/bench.csv``."""

from __future__ import annotations

import csv
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.cases import Case, all_cases
from benchmarks.environment import environment
from benchmarks.timing import interleaved

THREADS = 1
NOTE = """Ratio: swiftem's time over the peer's; below 1 swiftem is faster. An iteration of em is a full pass.
NumPy loop: written by hand for that one model and method; same draws, results equal to 1e-9 (checked first).
A mixture is timed for an epoch, with one renewal of sem-vr's anchor; pLSA between two renewals.
scikit-learn: an E-step and M-step of GaussianMixture(covariance_type="spherical"): it fits variances, too.
"""


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and once: tells only that all works.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="By default results/bench.csv, or bench-quick.csv beside it."),
    ] = None,
) -> None:
    """Time swiftem against named peers, on one thread."""
    # A smoke test must not overwrite numbers that took a minute.
    file = out or Path("results", "bench-quick.csv" if quick else "bench.csv")
    file.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    repeats = 1 if quick else 7
    fixed = environment()
    with threadpool_limits(THREADS):
        cases = track(list(all_cases(quick)), "Timing", console=console)
        rows = [{**fixed, **_timed(case, repeats)} for case in cases]
    _write(rows, file)

    versions = ", ".join(
        f"{name} {fixed[name]}" for name in ("python", "numpy", "scipy", "scikit-learn", "swiftem")
    )
    say = partial(console.print, soft_wrap=True, highlight=False)
    say(f"{fixed['cpu']}, {THREADS} of {fixed['cores']} cores; commit {fixed['commit']}; {versions}")
    for model, group in groupby(rows, key=lambda row: row["model"]):
        console.print(_table(str(model), list(group)))
    say(NOTE, end="")
    say(f"Results: {file}")


def _timed(case: Case, repeats: int) -> dict[str, Any]:
    """Return the columns of one case: its sizes, the least time of an iteration, and the peer's."""
    case.check()
    ours, theirs = (least / case.iterations for least in interleaved([case.swiftem, case.peer_call], repeats))
    return {
        "model": case.model,
        "method": case.method,
        "n": case.n,
        "d": case.d,
        "components": case.components,
        "b": case.b,
        "threads": THREADS,
        "iterations": case.iterations,
        "repeats": repeats,
        "ns_per_iteration": round(ours),
        "peer": case.peer,
        "peer_ns_per_iteration": round(theirs),
        "ratio": round(ours / theirs, 3),
    }


def _write(rows: list[dict[str, Any]], file: Path) -> None:
    with open(file, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _table(model: str, rows: list[dict[str, Any]]) -> Table:
    """Return the rows of one model; what is the same in all of them is in the title."""
    first = rows[0]
    d, m = ("D+V", "K") if model == "pLSA" else ("d", "M")
    title = f"{model}: n = {first['n']:,}, {d} = {first['d']}, {m} = {first['components']}"
    table = Table(title=title, min_width=78)
    for name in ("method", "b", "ns/iteration", "peer", "its ns/iteration", "ratio"):
        table.add_column(name, justify="left" if name in ("method", "peer") else "right")
    for row in rows:
        b = "all" if row["b"] == row["n"] else f"{row['b']}"
        times = f"{row['ns_per_iteration']:,}", row["peer"], f"{row['peer_ns_per_iteration']:,}"
        table.add_row(row["method"], b, *times, f"{row['ratio']:.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
