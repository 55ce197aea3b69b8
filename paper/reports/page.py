"""A report as one self-contained HTML file: no network, no other file, any screen; figures are SVG inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from paper.reports.figures import panel_svg
from paper.reports.growth import MISSING
from paper.reports.section import OURS, Finding, Panel, Picture, Section, Table
from swiftem.show.numbers import counted

VERDICTS = {"agrees": "✓ agrees", "disagrees": "✗ disagrees", "open": "? open"}
FIGURES = {
    "Figure 1: the Gaussian mixture": {
        "gmm-precision": "precision by epoch",
        "gmm-scaling": "iterations by n",
    },
    "Figure 2: pLSA": {"plsa": ""},
}
"""The paper's figures: the experiments whose pictures begin with their panels, and titles of these."""
NOTES = (
    "Seconds are of this computer and without compiling. Passes are E-step evaluations divided by n. "
    "Lines and tables are medians over the runs, or means for counts of iterations; bands are the range "
    "over the runs."
)


def page(
    title: str, lead: str, sections: Sequence[Section], *, command: str, facts: Mapping[str, str]
) -> str:
    """Return the page: the paper's figures, a row of verdicts, and the sections with folded tables.

    Parameters
    ----------
    title, lead : str
        Heading of the page, and its content in a sentence or two.
    sections : sequence of Section
        The experiments.
    command : str
        The command that made the page.
    facts : mapping of str to str
        Versions and similar facts.

    Examples
    --------
    >>> from paper.experiments.experiment import Experiment
    >>> from paper.reports.page import page
    >>> from paper.reports.section import Section
    >>> toy = Section(Experiment("toy", {}, (), interrupted=False), "A toy", "Nothing.")
    >>> html = page("Toy", "A toy.", [toy], command="none", facts={"a": "1"})
    >>> html.startswith("<!doctype html>"), "http" in html
    (True, False)
    """
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{escape(s.experiment.name)}">{escape(s.title)}</a>' for s in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{escape(lead)}</p>\n{_figures(sections)}{_verdicts(sections)}<nav>{links}</nav>\n"
        f"{''.join(map(_section, sections))}<h2>How this was made</h2>\n<pre>{escape(command)}</pre>\n"
        f"{_facts(facts)}\n<footer>{escape(NOTES)}</footer>\n</body></html>\n"
    )


def _figures(sections: Sequence[Section]) -> str:
    """Return the paper's figures: the first panel of each picture of their experiments."""
    html = ""
    for title, experiments in FIGURES.items():
        panels = [
            (Panel(experiments[s.experiment.name] or picture.title, picture.panels[0].draw), picture.alt)
            for s in sections
            if s.experiment.name in experiments
            for picture in (s.pictures if s.experiment.name == "plsa" else s.pictures[:1])
        ]
        if panels:
            html += _panels(title, panels, columns=2)
    return html


def _verdicts(sections: Sequence[Section]) -> str:
    """Return how many claims agree, those of the paper and of other papers apart, and a row of verdicts."""
    by_source: dict[str, list[tuple[str, Finding]]] = {}
    for section in sections:
        for finding in section.findings:
            by_source.setdefault(finding.source, []).append((section.experiment.name, finding))
    if not by_source:
        return '<p class="claims">Nothing was complete enough to be compared with the paper.</p>'
    html = ""
    for source, found in sorted(by_source.items(), key=lambda item: item[0] != OURS):
        agree = sum(finding.verdict == "agrees" for _, finding in found)
        undecided = sum(finding.verdict == "open" for _, finding in found)
        claims = counted(len(found), "claim")
        words = f"Of the paper’s {claims}" if source == OURS else f"Of {claims} of {source}"
        words += f", {agree} {'agrees' if agree == 1 else 'agree'} with the measurements"
        words += f", {undecided} undecided." if undecided else "."
        chips = "".join(
            f'<a class="{finding.verdict}" href="#{escape(name)}" title="{escape(finding.brief)}">'
            f"{VERDICTS[finding.verdict][0]} {escape(finding.claim)}</a>"
            for name, finding in found
        )
        html += (
            f'<div class="claims"><p><b>{escape(words)}</b></p><div class="verdicts">{chips}</div></div>\n'
        )
    return html


def _section(section: Section) -> str:
    experiment = section.experiment
    parts = [
        f'<section id="{escape(experiment.name)}"><h2>{escape(section.title)}</h2>',
        f"<p>{escape(section.lead)}</p>",
    ]
    if experiment.interrupted:
        parts.append('<p class="warning">Interrupted: only complete results are shown.</p>')
    findings = "".join(
        f'<li><span class="verdict {f.verdict}">{VERDICTS[f.verdict]}</span><b>{escape(f.claim)}</b>'
        f"{escape(f.words)}</li>\n"
        for f in section.findings
    )
    parts.append(f'<ul class="findings">{findings}</ul>' if findings else "")
    parts += [_picture(picture) for picture in section.pictures]
    parts += [_table(table) for table in section.tables]
    if experiment.settings:
        parts.append(_folded("Settings", _facts(experiment.settings)))
    if experiment.rows:
        parts.append(f"<p>All numbers: <code>{escape(experiment.name)}.csv</code> next to this page.</p>")
    return "\n".join(parts) + "</section>\n"


def _picture(picture: Picture) -> str:
    return _panels(picture.title, [(panel, picture.alt) for panel in picture.panels], columns=3)


def _panels(title: str, panels: Iterable[tuple[Panel, str]], columns: int) -> str:
    images = "".join(
        f'<div><span>{escape(panel.title)}</span><img alt="{escape(f"{alt} ({panel.title})")}" '
        f'src="data:image/svg+xml;base64,{b64encode(panel_svg(panel)).decode()}"></div>'
        for panel, alt in panels
    )
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<div class="panels" style="--columns: {columns}">{images}</div></figure>\n'
    )


def _folded(title: str, content: str) -> str:
    return f'<details><summary>{escape(title)}</summary><div class="wide">{content}</div></details>'


def _table(table: Table) -> str:
    """Return a table, folded; columns and rows without any number are left out, and so is an empty table."""
    columns = [k for k in range(1, len(table.head)) if any(row[k] != MISSING for row in table.rows)]
    rows = [row for row in table.rows if any(row[k] != MISSING for k in columns)]
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(table.head[k])}</th>' for k in (0, *columns))
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(row[k])}</td>" for k in columns)
        + "</tr>"
        for row in rows
    )
    return _folded(table.title, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="settings"><tbody>{rows}</tbody></table>'
