"""``topics.html``: topics as readable cards, in one file without scripts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

import numpy as np

from swiftem.report.drawing import panel_svg, plain_axes
from swiftem.report.numbers import seconds_text, share_text, style_of
from swiftem.report.page import STYLE, html_page, settings_table
from swiftem.report.section import Panel
from swiftem.report.topic_summary import Topic, TopicSummary, TopicWord

__all__ = ["topics_page"]

CARDS = """
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.2rem 0; padding: 0; list-style: none; }
.tiles li { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .9rem; min-width: 7.5rem; }
.tiles b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: .85rem; }
.overview { list-style: none; margin: 1rem 0; padding: 0; max-width: 60rem; }
.overview li { display: grid; grid-template-columns: 4.6rem minmax(0, 1fr) 12rem 3.6rem; gap: .6rem;
  align-items: center; padding: .25rem 0; border-bottom: 1px solid var(--line); }
.overview .names { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.overview .number, .words .number { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: block; height: .8rem; border-radius: 2px; background: #0072B2; min-width: 1px; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .2rem 1rem 1rem; break-inside: avoid; }
.card h3 { margin: .8rem 0 .1rem; overflow-wrap: anywhere; }
.card h4 { margin: 1rem 0 .2rem; font-size: .9rem; }
.card .about { margin: 0 0 .6rem; color: var(--soft); font-size: .9rem; }
.words { width: 100%; font-size: .9rem; table-layout: fixed; }
.words th, .words td { border: 0; padding: .1rem .3rem; line-height: 1.3; }
.words thead th { font-weight: 400; color: var(--soft); font-size: .78rem; vertical-align: bottom; }
.words tbody th { font-weight: 400; text-align: left; white-space: normal; overflow-wrap: anywhere; }
.words .narrow { width: 3.7rem; white-space: normal; } .words .word { width: 36%; }
.typical { margin: 0; padding: 0; list-style: none; font-size: .88rem; }
.typical li { padding: .35rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.typical span { color: var(--soft); } .curve { max-width: 36rem; width: 100%; height: auto; }
.notes { max-width: 50rem; } .back { font-size: .85rem; }
@media (max-width: 34rem) { .overview li { grid-template-columns: 4.4rem minmax(0, 1fr) 3.4rem; }
  .overview .place { grid-column: 1 / -1; grid-row: 2; } .tiles li { flex: 1 1 40%; } }
"""
SHOWN_CHARACTERS = 150


def topics_page(
    summary: TopicSummary,
    history: Any,
    *,
    corpus: str,
    fit: str,
    command: str,
    settings: Mapping[str, str],
    facts: Mapping[str, str],
    notes: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> str:
    """Return the page.

    Parameters
    ----------
    summary : TopicSummary
        The topics.
    history : History
        History of the fit: columns ``passes``, ``seconds``, ``objective`` and ``method``.
    corpus : str
        Name of the corpus, for the title.
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

    Returns
    -------
    str
        HTML; without matplotlib the fit is a table instead of a curve.

    Examples
    --------
    >>> from swiftem.estimators.watch import History, Moment
    >>> from swiftem.report.topic_summary import Topic, TopicSummary, TopicWord
    >>> topic = Topic(0, 1.0, 0.2, (TopicWord("rice", 0.5, 1.0, 1.0),), ())
    >>> html = topics_page(
    ...     TopicSummary((topic,), 3, 1, 9, 1.5), History([Moment(1.0, 0.1, 3.0, 1.0, 0, "em")]),
    ...     corpus="<toy>", fit="It converged.", command="none", settings={}, facts={},
    ... )
    >>> "Topics of &lt;toy&gt;" in html, "<script" in html, "http" in html.replace("www.w3.org", "")
    (True, False, False)
    """
    largest = max(topic.prevalence for topic in summary.topics)
    overview = "".join(_overview_row(topic, largest) for topic in summary.topics)
    cards = "".join(_card(topic) for topic in summary.topics)
    said = "".join(f'<p class="warning">{escape(note)}</p>' for note in notes)
    beside = "".join(
        f"<li><code>{escape(name)}</code>: {escape(what)}</li>" for name, what in (files or {}).items()
    )
    return html_page(
        f"Topics of {corpus}",
        STYLE + CARDS,
        f"<p>A topic is a group of words that are used together. {len(summary.topics)} topics were found "
        "from the texts alone, without labels; each document is a mixture of several.</p>\n"
        f"{_tiles(summary)}\n<h2>Overview</h2>\n<p>Share of each topic in all texts, by words. Numbers "
        f'are those of the model, from 0.</p>\n<ul class="overview">{overview}</ul>\n'
        f'<h2>The topics</h2>\n{HOW_TO_READ}\n<div class="cards">{cards}</div>\n'
        f"<h2>How the fit went</h2>\n<p>{escape(fit)}</p>\n{_convergence(history)}\n"
        f"<h2>How this was made</h2>\n<pre>{escape(command)}</pre>\n"
        + (f'<div class="notes">{said}</div>\n' if said else "")
        + (f'<p>Next to this page:</p><ul class="notes">{beside}</ul>\n' if beside else "")
        + f"{settings_table(settings)}\n<h3>Versions</h3>\n{settings_table(facts)}",
    )


HOW_TO_READ = (
    "<p>Each card is named by words that are frequent in the topic and rare elsewhere. Below are its most "
    "likely words. <i>Share of topic</i>, the length of the bar: how much of the topic is this word. "
    "<i>Its uses here</i>, the shade of the bar: how many of all uses of the word belong to this "
    "topic. A dark bar is a word of this topic only, a pale one a word that is used everywhere.</p>"
    "<p><i>Coherence</i> measures whether the topic's ten most likely words occur in the same documents: "
    "1 always, 0 as often as by chance, −1 never (NPMI). A topic of low coherence may be "
    "several topics, or none.</p>"
)


def _tiles(summary: TopicSummary) -> str:
    tiles = {
        "documents": f"{summary.n_documents:,}",
        "words counted": f"{summary.n_tokens:,.0f}",
        "different words": f"{summary.n_words:,}",
        "topics": f"{len(summary.topics)}",
    }
    if isfinite(summary.perplexity):
        tiles["perplexity"] = f"{summary.perplexity:,.0f}"
    items = "".join(
        f"<li><b>{escape(value)}</b><span>{escape(name)}</span></li>" for name, value in tiles.items()
    )
    words = (
        "<p>Perplexity: from one half of a document's words the model predicts the other half as well as a "
        "choice among this many equally likely words. Lower is better; compare it on the same words only.</p>"
        if isfinite(summary.perplexity)
        else ""
    )
    return f'<ul class="tiles">{items}</ul>{words}'


def _overview_row(topic: Topic, largest: float) -> str:
    width = 100 * topic.prevalence / largest
    return (
        f'<li><a href="#topic-{topic.number}">topic {topic.number}</a>'
        f'<span class="names">{escape(topic.name(5))}</span>'
        f'<span class="place"><span class="bar" style="width:{width:.1f}%"></span></span>'
        f'<span class="number">{share_text(topic.prevalence)}</span></li>\n'
    )


def _card(topic: Topic) -> str:
    most = max((word.probability for word in topic.words), default=1.0) or 1.0
    rows = "".join(_word_row(word, most) for word in topic.words)
    coherence = f" · coherence {topic.coherence:.2f}".replace("-", "−") if isfinite(topic.coherence) else ""
    documents = "".join(
        f"<li><b>{escape(document.name)}</b> <span>{_percent(document.share)} this topic</span>"
        + (f"<br>{escape(_shortened(document.text))}" if document.text else "")
        + "</li>"
        for document in topic.documents
    )
    typical = f'<h4>Most typical documents</h4><ul class="typical">{documents}</ul>' if documents else ""
    return (
        f'<article class="card" id="topic-{topic.number}"><h3>{escape(topic.name())}</h3>'
        f'<p class="about">topic {topic.number} · {share_text(topic.prevalence)} of all '
        f"words{escape(coherence)}</p>"
        '<table class="words"><thead><tr><th scope="col" class="word">word</th><th aria-hidden="true"></th>'
        '<th scope="col" class="narrow">share of topic</th><th scope="col" class="narrow">its uses '
        f"here</th></tr></thead><tbody>{rows}</tbody></table>{typical}</article>\n"
    )


def _word_row(word: TopicWord, most: float) -> str:
    # Never invisible: the width is the main information, the shade the second.
    shade = 0.25 + 0.75 * min(1.0, word.share)
    return (
        f'<tr><th scope="row">{escape(word.word)}</th><td>'
        f'<span class="bar" style="width:{100 * word.probability / most:.1f}%;opacity:{shade:.2f}"></span>'
        "</td>"
        f'<td class="number">{_percent(word.probability)}</td><td class="number">'
        f"{_percent(word.share)}</td></tr>"
    )


def _percent(share: float) -> str:
    r"""Return a share as a percentage.

    >>> [_percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.1234, 0.0123, 0.0001, 1.0)]
    ['12 %', '1.2 %', '< 0.1 %', '100 %']
    """
    if 0 < share < 0.0005:
        return "<\N{NO-BREAK SPACE}0.1\N{NO-BREAK SPACE}%"
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}\N{NO-BREAK SPACE}%"


def _shortened(text: str) -> str:
    """Return the first characters of a text, whole words."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    cut = text[:SHOWN_CHARACTERS]
    return (cut.rpartition(" ")[0] or cut).rstrip(" .,;:…") + "\N{NO-BREAK SPACE}…"


def _convergence(history: Any) -> str:
    """Return the curve of the fit, or a table if it cannot be drawn."""
    if not len(history):
        return ""
    value = -np.asarray(history.objective)
    try:
        svg = panel_svg(Panel("fit", lambda axes: _draw(axes, history, value)))
    except ImportError:
        return _moments(history, value)
    alt = f"Mean log-likelihood per word from {value[0]:.3f} to {value[-1]:.3f}"
    return (
        f"<figure><figcaption>Mean log-likelihood per word, against passes over all documents. Higher "
        "is better; flat means converged.</figcaption>"
        f'<img class="curve" alt="{escape(alt)}" src="data:image/svg+xml;base64,{b64encode(svg).decode()}">'
        "</figure>"
    )


def _draw(axes: Any, history: Any, value: Any) -> None:
    methods = np.asarray(history.method)
    passes = np.asarray(history.passes)
    axes.plot(passes, value, color="#999999", linewidth=1.2, zorder=1)
    for method in dict.fromkeys(methods.tolist()):
        chosen = methods == method
        style = style_of(method)
        axes.plot(passes[chosen], value[chosen], "o", markersize=4, color=style.colour, label=style.label)
    plain_axes(axes, x="passes over all documents", y="mean log-likelihood per word")
    axes.set_xlim(left=0)
    axes.legend(frameon=False, loc="lower right")


def _moments(history: Any, value: Any) -> str:
    places = sorted(set(np.linspace(0, len(value) - 1, 10).astype(int).tolist()))
    rows = "".join(
        f"<tr><td>{history.passes[i]:.4g}</td><td>{_number(value[i])}</td><td>"
        f"{seconds_text(history.seconds[i])}</td></tr>"
        for i in places
    )
    return (
        '<div class="wide"><table><thead><tr><th scope="col">passes</th><th scope="col">mean '
        "log-likelihood per word"
        f'</th><th scope="col">time</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _number(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")
