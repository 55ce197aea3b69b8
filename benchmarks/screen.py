"""The tables on the screen, narrow enough for 80 columns, and the same in Markdown."""

from __future__ import annotations

from rich import box
from rich.table import Table

from benchmarks.row import Row

__all__ = ["markdown", "sizes", "table"]

LEFT = ("model", "setting", "method", "peer")
"""Columns of words; all others are numbers."""


def sizes(rows: list[Row]) -> list[str]:
    """Return the sizes of each model in words, one line if all are the same."""
    found = {row.model: _size(row) for row in rows if row.n}
    if len(set(found.values())) == 1:
        return [_size(rows[0])]
    return [f"{model}: {size}" for model, size in found.items()]


def table(rows: list[Row], lead: tuple[str, ...]) -> Table:
    """Return the table of one figure; ``lead`` names the columns that identify its rows."""
    names, headers = _columns(rows, lead)
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name, header in zip(names, headers, strict=True):
        found.add_column(header, justify="left" if name in LEFT else "right")
    for row in rows:
        cells = _cells(row)
        found.add_row(*(cells[name] for name in names))
    return found


def markdown(rows: list[Row], lead: tuple[str, ...]) -> list[str]:
    """Return the same table as lines of Markdown."""
    names, headers = _columns(rows, lead)
    rule = ["---" if name in LEFT else "--:" for name in names]
    lines = [headers, rule, *([_cells(row)[name] for name in names] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _columns(rows: list[Row], lead: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the columns of a figure, and their headers."""
    peers = {row.peer for row in rows}
    names = [*lead, "swiftem", *(["peer"] if len(peers) > 1 else []), "peer's", "result", "goal", "reached"]
    headers = {"peer's": rows[0].peer} if len(peers) == 1 else {}
    if {row.compared for row in rows} == {"ratio"}:
        headers["result"] = "ratio"
    return names, [headers.get(name, name) for name in names]


def _cells(row: Row) -> dict[str, str]:
    return {
        "model": row.model,
        "setting": row.setting,
        "method": row.method,
        "E-steps": str(row.e_steps),
        "swiftem": _amount(row.value, row.unit),
        "peer": row.peer,
        "peer's": "" if row.peer_value is None else _amount(row.peer_value, row.unit),
        "result": _result(row),
        "goal": _goal(row),
        "reached": row.reached,
    }


def _size(row: Row) -> str:
    d, m = ("D+V", "K") if "+" in row.d else ("d", "M")
    b = f", b = {row.b}" if 1 < row.b < row.n else ""
    return f"n = {row.n:,}, {d} = {row.d}, {m} = {row.components}{b}"


def _result(row: Row) -> str:
    if row.compared in ("ratio", "speed-up"):
        return f"{row.result:.2f}"
    sign = "+" if row.compared == "difference" and row.result >= 0 else ""
    return sign + _amount(row.result, row.unit)


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    if row.compared == "speed-up":
        return f"≥ {row.goal:g}"
    return f"≤ {row.goal:g}" if row.compared == "ratio" else f"≤ {_amount(row.goal, row.unit)}"


def _amount(value: float, unit: str) -> str:
    """Return a value with a suitable unit, such as 1.23 ms."""
    if unit == "s":
        return f"{value:.2f} s"
    if unit == "passes":
        return f"{value:.0f} passes"
    if unit in ("1 − NPMI", "repeated words"):
        return f"{value:.3f}"
    if unit == "nats":
        return f"{value:.4f}"
    if unit in ("perplexity", "passes"):
        return f"{value:.1f}"
    steps = (1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")
    if unit == "bytes":
        steps = (1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")
    size, name = max(((size, name) for size, name in steps if value >= size), default=steps[0])
    number = value / size
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {name}"
