"""A report as one self-contained HTML file: no network, no other file, any screen.

Figures are SVG inside the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from paper.reports.figures import panel_svg
from paper.reports.section import Finding, Picture, Section, Table

__all__ = ["page"]

STYLE = """
:root { --ink: #1a1a1a; --soft: #555; --line: #ddd; --good: #00704a; --bad: #b3261e; --note: #6b4e00; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; } h2 { font-size: 1.35rem; margin: 2.5rem 0 .5rem;
  border-top: 2px solid var(--line); padding-top: 1.2rem; } h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { max-width: 50rem; } nav a { margin-right: 1rem; }
code, pre { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: #f4f4f4; border-radius: 4px; }
code { padding: .1em .3em; overflow-wrap: anywhere; } pre { padding: .7rem; overflow-x: auto; }
.findings { list-style: none; padding: 0; margin: 1rem 0; max-width: 60rem; }
.findings li { padding: .5rem 0 .5rem 8.2rem; position: relative; border-bottom: 1px solid var(--line); }
.findings b { display: block; }
.verdict { position: absolute; left: 0; top: .55rem; width: 7.4rem; font-size: .85rem; font-weight: 600; }
.agrees { color: var(--good); } .disagrees { color: var(--bad); } .beyond { color: var(--note); }
figure { margin: 1rem 0; } figcaption { font-weight: 600; margin-bottom: .5rem; }
.panels { display: grid; gap: .5rem; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); }
.panels div { margin: 0; } .panels img { width: 100%; height: auto; display: block; }
.panels span { font-size: .9rem; color: var(--soft); }
.wide { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { text-align: right; white-space: nowrap;
  padding: .25rem .7rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
thead th { white-space: normal; vertical-align: bottom; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
.settings td, .settings th { white-space: normal; text-align: left; vertical-align: top; }
.warning { background: #fff3d6; padding: .6rem .8rem; border-radius: 4px; }
footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 60rem) { .panels { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 34rem) { .findings li { padding-left: 0; } .verdict { position: static; width: auto; }
  th, td { padding: .25rem .4rem; } }
@media print { .panels { break-inside: avoid; } }
"""

VERDICTS = {"agrees": "✓ agrees", "disagrees": "✗ disagrees", "beyond": "+ not in the paper"}


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    command: str,
    facts: Mapping[str, str],
    figures: bool = True,
) -> str:
    """Return the page.

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
    figures : bool
        Whether to include the figures, which need matplotlib.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from paper.reports.page import page
    >>> from paper.reports.section import Section
    >>> html = page("Toy", "A toy.", [Section("toy", "A toy", "Nothing.")], command="none", facts={"a": "1"})
    >>> html.startswith("<!doctype html>"), "http" in html
    (True, False)
    """
    findings = [(section, finding) for section in sections for finding in section.findings]
    counts = {verdict: sum(finding.verdict == verdict for _, finding in findings) for verdict in VERDICTS}
    summary = (
        f"Of {counts['agrees'] + counts['disagrees']} claims of the paper that were checked, "
        f"{counts['agrees']} agree with the measurements, {counts['disagrees']} not; "
        "the other findings are not in the paper."
        if findings
        else "Nothing was complete enough to be compared with the paper."
    )
    links = "".join(f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in sections)
    body = "".join(_section(section, figures) for section in sections)
    return html_page(
        title,
        STYLE,
        f"<p>{escape(lead)}</p>\n<p><b>{escape(summary)}</b></p>\n<nav>{links}</nav>\n"
        f"{body}\n<h2>How this was made</h2>\n<pre>{escape(command)}</pre>\n{settings_table(facts)}\n"
        "<footer>Seconds are of this computer and without compiling. Passes are E-step evaluations divided "
        "by n. Lines and tables are medians over the runs, or means for counts of iterations; bands are the "
        "range over the runs.</footer>",
    )


def html_page(title: str, style: str, body: str) -> str:
    """Return a complete page: head, style, the title as heading, and the content."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n"
        f'<h1 id="top">{escape(title)}</h1>\n{body}\n</body></html>\n'
    )


def _section(section: Section, figures: bool) -> str:
    parts = [
        f'<section id="{escape(section.name)}"><h2>{escape(section.title)}</h2>',
        f"<p>{escape(section.lead)}</p>",
    ]
    if section.interrupted:
        parts.append('<p class="warning">Interrupted: only complete results are shown.</p>')
    parts.append(_findings(section.findings))
    if figures:
        parts += [_picture(picture) for picture in section.pictures]
    elif section.pictures:
        parts.append('<p class="warning">No figures: matplotlib is not installed.</p>')
    parts += [_table(table) for table in section.tables]
    if section.settings:
        parts.append(f"<h3>Settings</h3>{settings_table(section.settings)}")
    if section.data:
        parts.append(f"<p>All numbers: <code>{escape(section.data)}</code> next to this page.</p>")
    return "\n".join(parts) + "</section>\n"


def _findings(findings: Sequence[Finding]) -> str:
    items = "".join(
        f'<li><span class="verdict {f.verdict}">{VERDICTS[f.verdict]}</span><b>{escape(f.claim)}</b>'
        f"{escape(f.words)}</li>\n"
        for f in findings
    )
    return f'<ul class="findings">{items}</ul>' if items else ""


def _picture(picture: Picture) -> str:
    panels = "".join(
        f'<div><span>{escape(panel.title)}</span><img alt="{escape(f"{picture.alt} ({panel.title})")}" '
        f'src="data:image/svg+xml;base64,{b64encode(panel_svg(panel)).decode()}"></div>'
        for panel in picture.panels
    )
    return (
        f"<figure><figcaption>{escape(picture.title)}</figcaption>"
        f'<div class="panels" style="--columns: {picture.columns}">{panels}</div></figure>'
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def settings_table(settings: Mapping[str, str]) -> str:
    """Return names and values as a table."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in settings.items()
    )
    return f'<table class="settings"><tbody>{rows}</tbody></table>'
