"""``python -m benchmarks``: tables on the screen, ``results/bench.csv``, and a page of the documentation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import (
    acceleration,
    checkpoint_cost,
    families,
    full_pass,
    gpu,
    hmm,
    later_methods,
    marks,
    memory,
    mini_batch,
    mixture_fit,
    mixture_pass,
    one_sample,
    optima,
    out_of_core,
    plsa,
    plsa_documents,
    start_up,
    topics,
    topics_beyond_memory,
    units,
)
from benchmarks.against import compared, read_run
from benchmarks.environment import VERSIONS, environment
from benchmarks.page import STORED, merged, page_of, write_rows
from benchmarks.screen import sizes, table
from benchmarks.timing import threads

FIGURES: dict[str, Any] = {
    "one-sample": one_sample,
    "plsa": plsa,
    "plsa-documents": plsa_documents,
    "later-methods": later_methods,
    "mini-batch": mini_batch,
    "full-pass": full_pass,
    "mixture-pass": mixture_pass,
    "families": families,
    "hmm": hmm,
    "mixture-fit": mixture_fit,
    "acceleration": acceleration,
    "optima": optima,
    "out-of-core": out_of_core,
    "topics": topics,
    "topics-memory": topics_beyond_memory,
    "units": units,
    "start-up": start_up,
    "checkpoints": checkpoint_cost,
    "memory": memory,
    "gpu": gpu,
}


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, measured once, without memory: a smoke test.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="FIGURE[,FIGURE...]", help=f"Some of {', '.join(FIGURES)}."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="By default results/bench.csv, or bench-quick.csv next to it."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="A stored run: list what got slower since then."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the documentation's page; figures not measured now are kept."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Measure nothing: fill stored figures into README and docs.")
    ] = False,
) -> None:
    """Time swiftem against named peers, on one thread unless stated otherwise."""
    if write:
        for changed in marks.write():
            print(f"Filled: {changed}")
        return
    if quick and page is not None:
        raise typer.BadParameter(
            "cannot be combined with --quick: its numbers are meaningless.", param_hint="--page"
        )
    stored = [] if against is None else read_run(against)
    given = [name for part in only or () for name in part.split(",")]
    names = given or [name for name in FIGURES if not (quick and name == "memory")]
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise typer.BadParameter(
            f"there is no figure {unknown[0]!r}: choose from {', '.join(FIGURES)}.", param_hint="--only"
        )
    # A smoke test must not overwrite numbers that took minutes.
    file = out or Path("results", "bench-quick.csv" if quick else "bench.csv")
    file.parent.mkdir(parents=True, exist_ok=True)

    console = Console()
    say = partial(console.print, soft_wrap=True, highlight=False)
    fixed = environment()
    versions = ", ".join(f"{name} {fixed[name]}" for name in VERSIONS)
    say(f"{fixed['cpu']}, {fixed['cores']} cores; commit {fixed['commit']}; {versions}")
    if quick:
        say("Quick: the sizes are tiny and each is measured once, so the numbers are meaningless.")
    say("Ratio: swiftem's time divided by the peer's; below 1 swiftem is faster.")
    written: list[dict[str, Any]] = []
    for name in names:
        figure, rows = FIGURES[name], []
        with threadpool_limits(1), threads(1), console.status(f"Timing {name} ...") as status:
            for row in figure.rows(quick, 1 if quick else 7):
                rows.append(row)
                status.update(f"Timing {name} ... {len(rows)} done")
        if not rows:
            say(f"\n{figure.TITLE}: cannot be measured on this system.")
            continue
        head, *more = sizes(rows)
        say(f"\n[bold]{figure.TITLE}[/bold]" + (f": {head}" if not more else ""))
        for line in [head, *more] if more else []:
            say(line)
        console.print(table(rows, figure.LEAD))
        say(figure.NOTE)
        written += [{**fixed, **row.columns()} for row in rows]
        write_rows(written, file)
    say(f"\nResults: {file}")
    if page is not None:
        whole = merged(read_run(STORED) if STORED.exists() else [], written)
        write_rows(whole, STORED)
        page.write_text(page_of(whole, FIGURES), encoding="utf-8")
        say(f"Page: {page}")
    if against is not None:
        slower, total = compared(written, stored)
        for line in [*slower, *total]:
            say(line)
        if slower:
            raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
