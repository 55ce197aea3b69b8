"""The page of the documentation that ``make bench`` writes: the last measurement of every figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.environment import VERSIONS
from benchmarks.row import Row
from benchmarks.screen import markdown, sizes

__all__ = ["PEERS", "STORED", "machine", "merged", "page_of", "write_rows"]

STORED = Path(__file__).with_name("results") / "bench.csv"
"""The last measurement of each figure."""
PEERS = Path(__file__).with_name("results") / "peers.json"
"""The output of ``python -m benchmarks.peers``."""

HEAD = """# Benchmarks

`make bench` measures these figures and writes this page. `python -m benchmarks --only topics --page
docs/benchmarks.md` measures some of them and keeps the others; `python -m benchmarks.peers` measures
the first section, and `python -m benchmarks --write` fills its figures into all pages. Numbers depend
on the machine, and each section says on which it was measured. The ratio is swiftem's time over the
peer's: below 1 swiftem is faster. "Goal" is what the developers aim at, "reached" whether this run
got there.
"""


def write_rows(rows: list[dict[str, Any]], file: Path) -> None:
    """Write lines that all have the same columns."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def merged(stored: list[dict[str, str]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stored lines, with those of figures that were measured again replaced."""
    again = {row["figure"] for row in rows}
    return [row for row in stored if row["figure"] not in again] + rows


def page_of(rows: list[dict[str, Any]], figures: Mapping[str, Any], peers: Path = PEERS) -> str:
    """Return the page: whole fits first, then every figure that has rows, in the order of ``figures``."""
    lines = [HEAD]
    if peers.exists():
        lines += _whole_fits(json.loads(peers.read_text(encoding="utf-8")))
    for name, figure in figures.items():
        here = [row for row in rows if row["figure"] == name]
        if not here:
            continue
        read = [Row.read({key: str(value) for key, value in row.items()}) for row in here]
        lines += [f"## {figure.TITLE}\n", *(f"- {line}" for line in sizes(read)), ""]
        lines += [*markdown(read, figure.LEAD), "", " ".join(figure.NOTE.split()), ""]
        fixed = {column: here[0][column] for column in ("commit", "cpu", "cores", *VERSIONS)}
        lines += [f"Measured on {machine(fixed)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


FITS_NOTE = """Each package's fit as its users call it: with its own start, its defaults and all cores; wall
seconds, the median of three fits after one that compiled or loaded the kernels (of one, if it takes more than
20 seconds). Perplexity is of a tenth of the documents, which were not fitted: half of their tokens are seen
and predict the other half, with one evaluator for all packages; tomotopy's sampler makes 1,000 iterations."""


def _whole_fits(tasks: dict[str, Any]) -> list[str]:
    """Return the section on whole fits by swiftem and other packages."""
    lines = ["## Whole default fits\n", " ".join(FITS_NOTE.split()), ""]
    for stored in tasks.values():
        lines += [f"{stored['title']}:\n", f"| package | seconds | {stored['measure']} |", "|---|--:|--:|"]
        for fit in stored["fits"]:
            value = f"{fit['value']:.{stored['digits']}f}"
            lines.append(f"| {fit['package']} | {fit['seconds']:.2f} | {value} |")
        lines += ["", f"Measured on {machine(stored['environment'])}.", ""]
    return lines


def machine(environment: Mapping[str, Any]) -> str:
    """Return the machine and what was installed on it."""
    fixed = ("commit", "cpu", "cores")
    versions = ", ".join(f"{name} {environment[name]}" for name in environment if name not in fixed)
    return f"{environment['cores']} cores of {environment['cpu']}, commit {environment['commit']}; {versions}"
