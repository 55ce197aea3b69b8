"""``topics.html``: an explorer of topics in one file that needs no network and no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files as resources
from math import isfinite
from typing import Any

import numpy as np

from swiftem.fit.history import History
from swiftem.show.numbers import share_text, signed
from swiftem.topics.explorer.content import TopicSummary, as_json

SCRIPTS = ("data", "dom", "map", "list", "detail", "parts", "names", "search", "main")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src '{script}'; base-uri 'none'; "
    "form-action 'none'"
)
"""Only the page's own script runs, even if there were a way to put another one into the page."""


def topics_page(
    content: Mapping[str, Any],
    summary: TopicSummary,
    history: History,
    *,
    fit: str,
    command: str,
    settings: Mapping[str, str],
    facts: Mapping[str, str],
    notes: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> str:
    """Return the page, as HTML.

    Parameters
    ----------
    content : mapping
        What the explorer shows, of :func:`swiftem.topics.explorer.content.explorer_content`.
    summary : TopicSummary
        The topics, for the heading and for readers without scripts.
    history : History
        History of the fit: columns ``passes`` and ``objective``.
    fit : str
        How the fit ended, in a sentence.
    command : str
        The command that made the page.
    settings, facts : mapping of str to str
        The settings; versions and similar facts.
    notes : sequence of str
        Sentences on the input.
    files : mapping of str to str, optional
        Files next to the page, and their content.

    Examples
    --------
    >>> from swiftem.fit.driver import Moment
    >>> from swiftem.fit.history import History
    >>> from swiftem.topics.explorer.content import Topic, TopicSummary
    >>> html = topics_page(
    ...     {"title": "<toy>"}, TopicSummary((Topic(0, 1.0, 0.2, ("rice",)),), 3, 1, 9, 1.5),
    ...     History([Moment(1.0, 0.1, 3.0, 1.0, 0, "em")]),
    ...     fit="It converged.", command="none", settings={}, facts={},
    ... )
    >>> "Topics of &lt;toy&gt;" in html, "<toy>" in html, html.count("<script>")
    (True, False, 1)
    """
    script = "".join(_part(f"{name}.js") for name in SCRIPTS)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    title = f"Topics of {content['title']}"
    warnings = "".join(f'<p class="warning">{escape(note)}</p>' for note in notes)
    beside = f"<p>Next to this page:</p>{_pairs(files)}" if files else ""
    shell = (
        _part("explorer.html")
        .replace("<!--heading-->", escape(title))
        .replace("<!--facts-->", escape(_facts(summary)))
        .replace("<!--without-->", _without_scripts(summary))
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(script=f"sha256-{digest}")}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_part('explorer.css')}</style></head>\n<body>\n{shell}"
        f'<section class="about" aria-label="About">{warnings}{_part("about.html")}'
        f"<details><summary>How the fit went</summary><p>{escape(fit)}</p>"
        "<p>Perplexity: from one half of a document's words the model predicts the other half as well as a "
        "choice among this many equally likely words. Lower is better; compare it on the same words only.</p>"
        f"{_curve(history)}</details>\n"
        f"<details><summary>How this was made</summary><pre>{escape(command)}</pre>{beside}"
        f"{_pairs(settings)}{_pairs(facts)}</details></section>\n"
        f'<script type="application/json" id="data">{as_json(content)}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


def _part(name: str) -> str:
    return (resources("swiftem.topics.explorer") / name).read_text(encoding="utf-8")


def _facts(summary: TopicSummary) -> str:
    return (
        f"{summary.n_documents:,} documents · {summary.n_tokens:,.0f} words · {summary.n_words:,} different"
        f" · {len(summary.topics)} topics · perplexity {summary.perplexity:,.0f}"
    )


def _without_scripts(summary: TopicSummary) -> str:
    """Return the topics as a table, for readers whose browser runs no scripts."""
    rows = "".join(
        f'<tr><th scope="row">{topic.number}{" (background)" if topic.is_background else ""}</th>'
        f"<td>{escape(topic.name())}</td>"
        f"<td>{share_text(topic.prevalence)}</td>"
        f"<td>{signed(topic.coherence, 2) if isfinite(topic.coherence) else ''}</td>"
        f"<td>{escape(topic.label(10))}</td></tr>\n"
        for topic in summary.topics
    )
    return (
        "<p>The explorer needs JavaScript. These are the topics, the largest first:</p>"
        '<table class="without"><thead><tr><th>topic</th><th>name</th><th>share</th><th>coherence</th>'
        f"<th>words</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _pairs(values: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in values.items())
    return f"<dl>{rows}</dl>"


def _curve(history: History) -> str:
    """Return the likelihood against passes as SVG."""
    if not len(history):
        return ""
    value, passes = -np.asarray(history.objective), np.asarray(history.passes)
    low, high = float(value.min()), float(value.max())
    spread, last = max(high - low, 1e-9), max(float(passes.max()), 1e-9)
    x, y = 62 + 520 * passes / last, 190 - 170 * (value - low) / spread
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    alt = f"Mean log-likelihood per word from {signed(value[0], 3)} to {signed(value[-1], 3)}"
    return (
        "<p>Mean log-likelihood per word, against passes over all documents. Higher is better; flat means "
        f'converged.</p><svg class="curve" viewBox="0 0 600 225" role="img" aria-label="{escape(alt)}">'
        '<line class="grid" x1="62" x2="582" y1="190" y2="190"></line>'
        '<line class="grid" x1="62" x2="582" y1="20" y2="20"></line>'
        f'<text x="56" y="194" class="end">{signed(low, 3)}</text>'
        f'<text x="56" y="24" class="end">{signed(high, 3)}</text>'
        '<text x="62" y="210" class="middle">0</text>'
        f'<text x="582" y="210" class="end">{last:.4g} passes</text>'
        f'<polyline class="line" points="{line}"></polyline></svg>'
    )
