"""Topics for people: the summary, the shell of the page, and what pyLDAvis takes."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem.data import CorpusCounts
from swiftem.data.documents.corpus import count_texts
from swiftem.data.documents.counts import Texts
from swiftem.fit.driver import Moment
from swiftem.fit.history import History
from swiftem.topics.explorer.content import Topic, TopicSummary, explorer_content, summarise_topics
from swiftem.topics.explorer.page import topics_page

FRUIT, TOOLS = "apple pear plum apple fig common", "hammer saw chisel saw plane common"
HISTORY = History([Moment(p, p / 10, 7 - p / 10, 1.0, 0, "sem" if p == 1 else "em") for p in (1.0, 2.0, 3.0)])


class Checker(HTMLParser):
    """Checks that tags are closed in order, and collects text, links and ids."""

    VOID = frozenset({"meta", "input"})

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.links, self.ids, self.scripts = [], [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [attrs["href"]] if "href" in attrs else []
        self.ids += [attrs["id"]] if "id" in attrs else []
        assert "src" not in attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts.append(data)
        elif "style" not in self.open:
            self.text.append(data)


def words_of(html):
    return re.sub(r"\s+", " ", " ".join(Checker(html).text))


@pytest.fixture(scope="module")
def fitted():
    texts = [FRUIT] * 6 + [TOOLS] * 3 + ["pear fig", "saw"]
    corpus = count_texts(Texts(texts, [f"doc {number}" for number in range(len(texts))], []))
    return swiftem.PLSA(2, random_state=0, tol=1e-8, max_iter=500).fit(corpus.counts), corpus


def make_page(summary, history=HISTORY, content=None, **options):
    defaults = {
        "fit": "It converged.", "command": "swiftem topics toys", "settings": {"seed": "0"},
        "facts": {"numpy": "2"},
    }  # fmt: skip
    return topics_page(content or {"title": "toys"}, summary, history, **{**defaults, **options})


def test_summary(fitted):
    model, corpus = fitted
    summary = summarise_topics(model, corpus, n_words=4)
    fruit, tools = summary.topics
    assert fruit.prevalence > tools.prevalence
    assert fruit.prevalence + tools.prevalence == pytest.approx(1.0)
    assert fruit.words[0] == "apple"
    assert tools.words[0] == "saw"
    assert fruit.prevalence == model.topic_prevalence()[fruit.number]
    np.testing.assert_allclose(fruit.coherence, model.coherence(corpus.counts)[fruit.number])
    assert summary.perplexity == pytest.approx(model.perplexity(corpus.counts))
    assert (summary.n_documents, summary.n_words, summary.n_tokens) == (11, 9, 57)


def test_specific_words_make_the_name(fitted):
    model, corpus = fitted
    fruit = summarise_topics(model, corpus, n_words=10).topics[0]
    assert "common" in fruit.words
    assert "common" not in fruit.name(3)
    assert fruit.label(1) == fruit.name(1) == "apple"
    given = ["", ""]
    given[fruit.number] = "Fruit"
    named = summarise_topics(model, corpus, given=given).topics
    assert [topic.name(1) for topic in named] == ["Fruit", "saw"]


def test_the_background_is_marked(fitted):
    model, corpus = fitted
    content, pages = [], []
    for background in (None, 1):
        marked = model.merge_topics([])
        marked.background_ = background
        summary = summarise_topics(marked, corpus)
        assert [topic.number for topic in summary.topics if topic.is_background] == [1] * (background == 1)
        shares = marked.transform(corpus.counts)
        content.append(explorer_content(marked, corpus, shares, summary, title="toys")["topics"])
        pages.append(words_of(make_page(summary)))
    assert [topic.get("background") for topic in content[0]] == [None, None]
    assert [topic.get("background") for topic in content[1]] == [None, True]
    assert ["1 (background)" in page for page in pages] == [False, True]


def test_a_corpus_without_words_or_texts():
    corpus = CorpusCounts(sp.csr_array([[1, 0], [0, 1]]), None, ("row 0", "row 1"))
    model = swiftem.PLSA(2, random_state=0).fit(corpus.counts)
    summary = summarise_topics(model, corpus)
    assert summary.topics[0].words[0].startswith("word ")
    content = explorer_content(model, corpus, model.transform(corpus.counts), summary, title="counts")
    assert content["documents"]["names"] == ["row 0", "row 1"]
    assert content["documents"]["texts"] == []


def test_the_page_says_it_all(fitted):
    model, corpus = fitted
    summary = summarise_topics(model, corpus)
    content = explorer_content(model, corpus, model.transform(corpus.counts), summary, title="toys")
    html = make_page(
        summary, model.history_, content, notes=["One file is odd."], files={"model.swiftem": "the model"}
    )
    page = Checker(html)
    text = words_of(html)
    for words in (
        "Topics of toys", "apple", "hammer", "11 documents", "57 words", "9 different", "2 topics",
        "perplexity", "coherence", "It converged.", "swiftem topics toys", "One file is odd.",
        "model.swiftem", "seed", "numpy",
    ):  # fmt: skip
        assert words in text
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    data, script = page.scripts
    assert json.loads(data)["title"] == "toys"
    assert "innerHTML" not in script
    assert "eval(" not in script
    for outside in ("http:", "https:", "<link", "@import", "url("):
        assert outside not in html.replace('"http://www.w3.org/2000/svg"', "")
    assert '<meta name="viewport"' in html
    assert len(script) < 100_000


def test_everything_is_escaped():
    bad = "<b>\"&'</b></script>"
    topic = Topic(0, 1.0, 0.5, (bad,), (bad,))
    html = make_page(
        TopicSummary((topic,), 1, 1, 1, 2.0), content={"title": bad}, fit=bad, command=bad,
        settings={bad: bad}, facts={bad: bad}, notes=[bad], files={bad: bad},
    )  # fmt: skip
    assert bad not in html
    page = Checker(html)
    assert "".join(page.text).count(bad) == 13
    assert json.loads(page.scripts[0]) == {"title": bad}


def test_the_curve_of_the_fit():
    topic = Topic(0, 1.0, 0.5, ("a",))
    html = make_page(TopicSummary((topic,), 1, 1, 1, 2.0))
    points = re.search(r'points="([^"]*)"', html).group(1).split()
    assert [float(point.split(",")[1]) for point in points] == [190.0, 105.0, 20.0]
    assert "Mean log-likelihood per word from −6.900 to −6.700" in html


def test_a_fit_without_history():
    html = make_page(TopicSummary((Topic(0, 1.0, float("nan"), ()),), 1, 1, 1, 2.0), History())
    assert "polyline" not in html
    assert "nan" not in words_of(html)


def test_what_pyldavis_takes(fitted):
    model, corpus = fitted
    padded = sp.csr_array(np.vstack([corpus.counts.toarray(), np.zeros(9)]))  # a document without words
    data = model.to_pyldavis(padded, corpus.words)
    np.testing.assert_allclose(data["topic_term_dists"].sum(axis=1), 1.0)
    np.testing.assert_allclose(data["doc_topic_dists"].sum(axis=1), 1.0)
    assert data["doc_topic_dists"].shape == (11, 2)
    assert data["doc_lengths"].sum() == data["term_frequency"].sum() == 57
    assert data["vocab"] == list(corpus.words)
    rare = corpus.counts[:6]  # none of these has the tools
    data = model.to_pyldavis(rare, corpus.words)
    assert "saw" not in data["vocab"]
    assert len(data["vocab"]) == len(data["term_frequency"]) == data["topic_term_dists"].shape[1]
    with pytest.raises(ValueError, match="names must be one for each of the 9 columns, got 1"):
        model.to_pyldavis(rare, ["a"])
    with pytest.raises(ValueError, match="X must have at least one token"):
        model.to_pyldavis(sp.csr_array((2, 9)), corpus.words)
    assert model.to_pyldavis(corpus.counts)["vocab"][0] == str(model._words(None)[0])


def test_pyldavis_itself(fitted):
    pyldavis = pytest.importorskip("pyLDAvis", reason="pyLDAvis is not installed")
    model, corpus = fitted
    prepared = pyldavis.prepare(**model.to_pyldavis(corpus.counts, corpus.words), R=5, n_jobs=1)
    assert prepared.topic_coordinates["Freq"].sum() == pytest.approx(100.0)
