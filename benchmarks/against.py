"""Compares the ratios of a run with those of a stored one."""

from __future__ import annotations

import csv
from math import exp, log
from pathlib import Path
from typing import Any

__all__ = ["SLOWER", "compared", "read_run"]

KEY = ("figure", "model", "method", "setting", "n", "d", "components", "b", "threads", "peer")
"""Columns that identify a row."""
SLOWER = 1.05
"""Factor from which a row is reported as slower."""


def read_run(file: Path) -> list[dict[str, str]]:
    """Return the rows of a stored run."""
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def compared(rows: list[dict[str, Any]], stored: list[dict[str, str]]) -> tuple[list[str], list[str]]:
    """Return what got slower, one line each, and a summary.

    A row's ratio is its time divided by that of its peer in the same run, so that the two runs may be from
    different days; rows without a peer, or that only one of the runs has, are not compared.
    """
    before = {_key(row): float(row["ratio"]) for row in stored if row["ratio"]}
    factors = {
        _key(row): float(row["ratio"]) / before[_key(row)]
        for row in rows
        if row["ratio"] and _key(row) in before
    }
    slower = [
        f"{', '.join(part for part in key if part)}: {factor:.2f} times the stored ratio"
        for key, factor in sorted(factors.items(), key=lambda item: -item[1])
        if factor > SLOWER
    ]
    if not factors:
        return [], ["No row is in both runs."]
    mean = exp(sum(map(log, factors.values())) / len(factors))
    whole = (
        f"{len(factors)} rows compared, {len(slower)} slower by more than {SLOWER - 1:.0%}; mean {mean:.3f}."
    )
    return slower, [whole]


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEY)
