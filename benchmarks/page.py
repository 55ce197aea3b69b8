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

__all__ = ["PEERS", "STORED", "merged", "page_of", "write_rows"]

STORED = Path(__file__).with_name("results") / "bench.csv"
"""The last measurement of each figure."""
PEERS = Path(__file__).with_name("results") / "peers.json"
"""The output of ``python -m benchmarks.peers``."""

HEAD = """# Benchmarks

`make bench` measures these figures and writes this page. `python -m benchmarks --only topics --page
docs/benchmarks.md` measures some of them and keeps the others; `python -m benchmarks.peers` measures
the first section. Numbers depend on the machine, and each section says
on which it was measured. The ratio is swiftem's time over the peer's: below 1 swiftem is faster.
"Goal" is what the developers aim at, "reached" whether this run got there.
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
            command = f"python -m benchmarks --only {name} --page docs/benchmarks.md"
            lines += [f"## {figure.TITLE}\n", f"Not measured yet: `{command}`.\n"]
            continue
        read = [Row.read({key: str(value) for key, value in row.items()}) for row in here]
        lines += [f"## {figure.TITLE}\n", *(f"- {line}" for line in sizes(read)), ""]
        lines += [*markdown(read, figure.LEAD), "", " ".join(figure.NOTE.split()), "", _machine(here[0]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _machine(row: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {row[name]}" for name in VERSIONS)
    return f"Measured on {row['cores']} cores of {row['cpu']}, commit {row['commit']}; {versions}."


FITS_NOTE = """Each package with its own start and defaults, on one thread, kernels compiled before. Minimum
of {rounds} interleaved fits. CPU seconds include the Java process of Spark, whose first fit takes twice
as long. tomotopy's include handing over the documents. Mixtures stop if a pass gains less than 1e-3
per row. Perplexity is that of a tenth of the documents, which were not fitted: half of their tokens
are seen and predict the other half, with one evaluator for all packages. Others used the machine at
the same time."""


def _whole_fits(found: dict[str, Any]) -> list[str]:
    """Return the section on whole fits by swiftem, scikit-learn, tomotopy and Spark."""
    mixture, topics, machine = found["mixture"], found["topics"], found["environment"]
    mixture_sizes = f"n = {mixture['n']:,}, d = {mixture['d']}, M = {mixture['M']}"
    topic_sizes = f"{topics['words']:,} words, {topics['tokens']:,} tokens, K = {topics['K']}"
    lines = ["## Whole fits\n"]
    for title, part, digits in (
        (f"A Gaussian mixture with full covariances, {mixture_sizes}", mixture, 4),
        (f"Topics of {topics['documents']:,} docstrings, {topic_sizes}", topics, 0),
    ):
        lines += [f"{title}:\n", f"| package | CPU seconds | {part['measure']} |", "|---|--:|--:|"]
        for fit in part["fits"]:
            lines.append(f"| {fit['package']} | {fit['seconds']:.1f} | {fit['value']:.{digits}f} |")
        lines.append("")
    versions = "".join(f", {name} {machine[name]}" for name in ("tomotopy", "pyspark") if name in machine)
    lines += [
        " ".join(FITS_NOTE.format(rounds=found.get("rounds", "three")).split()),
        "",
        f"{_machine(machine).removesuffix('.')}{versions}.",
        "",
    ]
    return lines
