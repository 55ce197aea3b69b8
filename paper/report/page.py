"""A report as one self-contained HTML file: no network, no other file, any screen; figures are SVG inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from paper.report.figures import Panel, Picture
from paper.report.section import OURS, Section
from swiftem.show.numbers import counted

VERDICTS = {"agrees": "✓ agrees", "disagrees": "✗ disagrees", "open": "? open"}
FIGURES = {
    "Figure 1: the Gaussian mixture": ("gmm-precision", "gmm-scaling"),
    "Figure 2: pLSA": ("plsa",),
}
"""The paper's figures, and the experiments whose pictures begin with their panels."""


def page(
    about: str, sections: Sequence[Section], *, facts: Mapping[str, str], interrupted: bool = False
) -> str:
    r"""Return the page: the paper's figures, a row of verdicts, and the sections with folded tables.

    Parameters
    ----------
    about : str
        Heading of the page, and a paragraph on its content.
    sections : sequence of Section
        The experiments.
    facts : mapping of str to str
        The command that made the page, versions and similar facts.
    interrupted : bool
        Whether some results are missing.

    Examples
    --------
    >>> from paper.report.page import page
    >>> from paper.report.section import Section
    >>> toy = Section("toy", "A toy.\n\nNothing.", {}, [], [], [])
    >>> html = page("Toy.\n\nA toy.", [toy], facts={"a": "1"})
    >>> html.startswith("<!doctype html>"), "http" in html
    (True, False)
    """
    folder = FileSystemLoader(Path(__file__).parent, encoding="utf-8")
    templates = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.filters["svg"] = _svg
    return templates.get_template("page.html").render(
        about=about,
        sections=sections,
        facts=facts,
        interrupted=interrupted,
        figures=list(_figures(sections)),
        claims=list(_claims(sections)),
        VERDICTS=VERDICTS,
    )


def _svg(panel: Panel) -> str:
    return f"data:image/svg+xml;base64,{b64encode(panel.svg()).decode()}"


def _figures(sections: Sequence[Section]) -> Iterator[Picture]:
    """Yield the paper's figures: the first panel of each corpus, or of each other experiment."""
    for title, names in FIGURES.items():
        pictures: list[Picture] = []
        for section in (section for section in sections if section.name in names):
            pictures += section.pictures if section.name == "plsa" else section.pictures[:1]
        panels = [picture.panels[0]._replace(title=picture.title) for picture in pictures]
        if panels:
            yield Picture("", title, panels)


def _claims(sections: Sequence[Section]) -> Iterator[str]:
    """Yield how many claims agree, the paper's first, then those of each other paper."""
    findings = [finding for section in sections for finding in section.findings]
    for source in sorted({finding.source for finding in findings}, key=lambda name: (name != OURS, name)):
        verdicts = [finding.verdict for finding in findings if finding.source == source]
        agree, undecided = verdicts.count("agrees"), verdicts.count("open")
        words = (
            f"Of {source}’s {counted(len(verdicts), 'claim')}, {agree} {'agrees' if agree == 1 else 'agree'}"
        )
        yield f"{words} with the measurements" + (f", {undecided} undecided." if undecided else ".")
