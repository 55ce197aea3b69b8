"""Figures of stored runs in the pages: ``<!-- figure: mixture.swiftem -->0.3 s, −7.2515<!-- end -->``.

``python -m benchmarks --write`` fills all marks of README and docs; a test fails if that would change a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.page import PEERS, machine

__all__ = ["figures", "filled", "pages", "write"]

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"<!-- figure: (?P<name>[^ ]+) -->.*?<!-- end -->", re.S)


def pages() -> list[Path]:
    """Return the pages that may have marks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def figures(file: Path = PEERS) -> dict[str, str]:
    """Return the text of each figure.

    For each task and package: ``task.package`` has seconds and quality, ``task.package.seconds`` and
    ``task.package.value`` one of them, ``task.package.times`` how many times faster swiftem is;
    ``task.machine`` names commit, machine and versions, and ``task.title`` what was fitted.
    """
    found = {}
    for task, stored in json.loads(file.read_text(encoding="utf-8")).items():
        ours = next(fit["seconds"] for fit in stored["fits"] if fit["package"] == "swiftem")
        for fit in stored["fits"]:
            name = f"{task}.{fit['package']}"
            seconds, value = in_seconds(fit["seconds"]), f"{fit['value']:.{stored['digits']}f}"
            found[f"{name}.seconds"] = seconds
            found[f"{name}.value"] = value = value.replace("-", "−")
            found[name] = f"{seconds}, {value}"
            found[f"{name}.times"] = f"{fit['seconds'] / ours:.2g}".removesuffix(".0")
        found[f"{task}.machine"] = machine(stored["environment"])
        found[f"{task}.title"] = stored["title"]
        found[f"{task}.measure"] = stored["measure"]
    return found


def in_seconds(seconds: float) -> str:
    """Return seconds with two digits."""
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.{1 if seconds >= 0.995 else 2}f} s"


def filled(text: str, texts: Mapping[str, str]) -> str:
    """Return a page with its figures; raise KeyError for a mark that no stored run has."""

    def figure(mark: re.Match[str]) -> str:
        return f"<!-- figure: {mark['name']} -->{texts[mark['name']]}<!-- end -->"

    return MARK.sub(figure, text)


def write() -> list[Path]:
    """Fill the figures into all pages; return those that changed."""
    texts = figures()
    changed = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = filled(text, texts)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed
