"""The explorer of topics in a browser: clicks, search, slider, names, keys, and texts that must not run."""

import json
import re
from copy import copy
from time import monotonic, sleep

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem.data import CorpusCounts
from swiftem.topics.explorer.content import explorer_content, summarise_topics
from swiftem.topics.explorer.groups import group_documents
from swiftem.topics.explorer.names import read_names
from swiftem.topics.explorer.page import topics_page

EVIL = '</script><img src=x onerror="window.hurt=1"><b>\''
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def made_corpus(n_topics, n_documents, n_words, words=None):
    """Return a model, a corpus and its topics; the first word of each topic is used by it alone."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.02), n_topics) + 1e-7
    topics[:, :n_topics] = 1e-7
    topics[np.arange(n_topics), np.arange(n_topics)] = 0.1
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(n_topics, 0.05) * np.linspace(3, 1, n_topics), n_documents)
    counts = rng.poisson(50 * shares @ topics) + (rng.random((n_documents, n_words)) < 1 / n_words)
    counts[:, 0] += 1
    words = words or [f"word{''.join(chr(97 + int(c)) for c in str(v))}" for v in range(n_words)]
    texts = tuple(
        " ".join(np.array(words, dtype=object)[np.repeat(np.arange(n_words), row)][:60]) for row in counts
    )
    names = tuple(f"letter {d}" for d in range(n_documents))
    corpus = CorpusCounts(sp.csr_array(counts), tuple(words), names, texts)
    tokens = counts.sum(axis=1) @ shares
    return swiftem.PLSA.from_counts(topics * tokens[:, None]), corpus, shares


def write_page(file, model, corpus, shares, by=None, **options):
    summary = summarise_topics(model, corpus)
    content = explorer_content(model, corpus, shares, summary, title=options.pop("title", "toys"), by=by)
    page = {"fit": "It converged.", "command": "swiftem topics toys", "settings": {}, "facts": {}} | options
    file.write_text(topics_page(content, summary, model.history_, **page), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def made():
    return made_corpus(12, 300, 400)


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    days = [f"202{d % 4}-0{1 + d % 9}-1{d % 7}" for d in range(300)]
    return write_page(
        tmp_path_factory.mktemp("page") / "topics.html", *made, by=("day", group_documents(days, "day"))
    )


@pytest.fixture
def opened(browser, page):
    """Return a function that evaluates an expression in the page, opened at 1280 px and as it was written."""
    browser.open(page.as_uri())
    browser.evaluate("localStorage.clear()")
    browser.open(page.as_uri() + "?again")
    yield browser.evaluate
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def press(browser, key, **options):
    text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
    codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
    code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
    browser.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code, **options)
    browser.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code, **options)


def click(browser, selector):
    """Click with the mouse in the middle of an element."""
    x, y = browser.evaluate(
        f"""(() => {{ const part = document.querySelector({json.dumps(selector)});
        part.scrollIntoView({{block: 'center', behavior: 'instant'}});
        const box = part.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def texts(evaluate, selector):
    """Return the texts of all elements that a selector finds."""
    return evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(part => part.textContent)")


def text(evaluate, selector):
    """Return the text of the first element."""
    return texts(evaluate, selector)[0]


def heading(opened):
    return text(opened, "#detail h2")


def test_the_largest_topic_is_shown_first(opened, made):
    model, corpus, _ = made
    largest = summarise_topics(model, corpus).topics[0]
    assert heading(opened) == largest.name()
    assert len(texts(opened, ".map circle")) == 12
    assert "dashed" not in opened("document.querySelector('.hint').innerText")
    assert len(texts(opened, "#words tr")) == 20
    assert f"topic {largest.number}" in text(opened, "#detail")
    about = text(opened, "#detail .about-topic")
    assert about.startswith(f"{100 * largest.prevalence:.0f} % of all words · coherence")


def test_a_click_on_the_map_shows_words_documents_and_neighbours(opened, browser, made):
    model, corpus, shares = made
    click(browser, ".map circle:nth-of-type(5)")
    label = opened("document.querySelector('.map circle.chosen').getAttribute('aria-label')")
    k = int(re.match(r"topic (\d+): ", label).group(1))
    assert opened("location.hash") == f"#topic={k}"
    assert heading(opened) in label
    rows = opened(
        "[...document.querySelectorAll('#words tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    number = {word: v for v, word in enumerate(corpus.words)}
    for word, _, share, uses in rows:
        p = model.components_[k, number[word]]
        assert float(share.removesuffix(" %")) == pytest.approx(100 * p, abs=0.051 if p < 0.0995 else 0.51)
        expected = (
            model.topic_prevalence()[k] * p / (model.topic_prevalence() @ model.components_[:, number[word]])
        )
        assert float(uses.removesuffix(" %").removeprefix("< ")) == pytest.approx(100 * expected, abs=0.6)
    document = int(text(opened, ".documents .link").removeprefix("letter "))
    assert shares[document, k] >= 0.9 * shares[:, k].max()
    marks = texts(opened, ".documents li:first-child mark")
    assert corpus.words[k] in marks
    assert len(texts(opened, ".near li")) == 6
    similarity = np.where(np.arange(12) == k, -1, model.topic_similarity(measure="hellinger")[k])
    near = text(opened, ".near li .link")
    assert (
        near == {t.number: t.name() for t in summarise_topics(model, corpus).topics}[int(similarity.argmax())]
    )


def test_hover_names_a_topic(opened, browser):
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)  # where no test has left it
    assert opened("document.querySelector('#tip').hidden")
    x, y = opened(
        "(() => { const box = document.querySelector('.map circle').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert not opened("document.querySelector('#tip').hidden")
    assert "of all words" in text(opened, "#tip")
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert opened("document.querySelector('#tip').hidden")


def test_the_slider_orders_words(opened, made):
    model, corpus, _ = made
    k = summarise_topics(model, corpus).topics[0].number
    marginal = model.topic_prevalence() @ model.components_
    there = model.components_[k] >= 1e-5
    for weight in (0.0, 0.35, 1.0):
        opened(
            f"(() => {{ const field = document.querySelector('#lambda'); field.value = {weight};"
            " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        found = texts(opened, "#words th")
        relevance = np.where(there, np.log(model.components_[k]) - (1 - weight) * np.log(marginal), -np.inf)
        values = relevance[[corpus.words.index(word) for word in found]]
        np.testing.assert_allclose(values, np.sort(relevance)[::-1][:20], atol=1e-3)
        assert text(opened, "#lambda-value") == f"λ {weight:.2f}"


def test_search_for_a_word(opened, browser, made):
    _, corpus, _ = made
    press(browser, "/")
    browser.send("Input.insertText", text=corpus.words[3])
    assert opened("document.activeElement.getAttribute('aria-expanded')") == "true"
    press(browser, "Enter")
    assert heading(opened) == corpus.words[3]
    shown = text(opened, "#detail")
    assert f"used {int(corpus.counts[:, [3]].sum())} times" in shown
    assert text(opened, "#detail tbody tr .number").startswith(("9", "100"))
    assert len(texts(opened, "#detail .documents li")) == 4
    assert opened(
        "[...new Set([...document.querySelectorAll('#detail mark')].map(mark => mark.textContent))]"
    ) == [corpus.words[3]]
    press(browser, "Escape")
    assert text(opened, "#detail .kind").startswith("topic ")


def test_search_for_a_document(opened, browser, made):
    _, _, shares = made
    click(browser, "#find")
    browser.send("Input.insertText", text="letter 123")
    kinds = texts(opened, "#found .kind")
    assert kinds == ["Documents"]
    press(browser, "ArrowDown")
    press(browser, "ArrowUp")
    press(browser, "Enter")
    assert heading(opened) == "letter 123"
    found = text(opened, "#detail tbody .number")
    assert float(found.removesuffix(" %")) == pytest.approx(100 * shares[123].max(), abs=0.51)
    assert "day: " in text(opened, "#detail .about-topic")
    click(browser, "#find")
    browser.send("Input.insertText", text="zzzz")
    assert "Nothing found" in text(opened, "#found")
    press(browser, "Escape")
    assert opened("document.querySelector('#found').hidden")


def test_the_list_is_sorted_by_what_is_asked(opened, browser, made):
    click(browser, "#tab-list")
    shares = (
        "[...document.querySelectorAll('.topics tbody td.share')].map(cell => parseFloat(cell.textContent))"
    )
    assert opened(shares) == sorted(opened(shares), reverse=True)
    click(browser, ".topics th.share .sort")
    assert opened(shares) == sorted(opened(shares))
    assert opened("document.querySelector('.topics th.share').getAttribute('aria-sort')") == "ascending"
    click(browser, ".topics tbody tr:nth-child(4) .link")
    assert heading(opened) == text(opened, ".topics tr.chosen .link")


def test_topics_over_time(opened, browser, made):
    model, corpus, shares = made
    click(browser, "#tab-by")
    assert text(opened, "#tab-by") == "By month of day"
    assert len(texts(opened, ".multiple")) == 12
    head = texts(opened, ".heat thead tr:first-child th")
    assert head[:3] == ["Topic", "2020-01", "2020-02"]
    lengths = np.asarray(corpus.counts.sum(axis=1)).ravel()
    month = np.array([f"202{d % 4}-0{1 + d % 9}" == "2020-01" for d in range(300)])
    k = summarise_topics(model, corpus).topics[0].number
    expected = lengths[month] @ shares[month, k] / lengths[month].sum()
    assert float(text(opened, ".heat tbody td")) == pytest.approx(100 * expected, abs=0.051)
    click(browser, "#same")
    assert opened("document.querySelector('#same').checked")
    click(browser, ".multiple:nth-child(3)")
    assert heading(opened) == text(opened, ".multiple:nth-child(3) .name span")


def test_names_and_merged_topics_are_kept_and_exported(opened, browser, page, made, tmp_path):
    model, corpus, _ = made
    order = [topic.number for topic in summarise_topics(model, corpus).topics]
    press(browser, "r")
    browser.send("Input.insertText", text="Own <name>")
    press(browser, "Enter")
    assert heading(opened) == "Own <name>"
    press(browser, "ArrowRight")
    opened(f"document.querySelector('#other').value = '{order[2]}'")
    click(browser, "#merge")
    pair = sorted(order[1:3])
    assert text(opened, "#detail .kind") == f"topics {pair[0]} + {pair[1]}"
    assert len(texts(opened, ".map circle")) == 11
    assert (
        opened(
            "Math.min(...topics.flatMap((a, i) => topics.slice(i + 1).map("
            "b => Math.hypot(a.x - b.x, a.y - b.y) - a.r - b.r)))"
        )
        > -0.001
    )  # circles make room
    merged = model.merge_topics([pair])
    about = text(opened, "#detail .about-topic")
    share = merged.topic_prevalence()[sorted(set(range(12)) - {pair[1]}).index(pair[0])]
    assert float(about.split(" %")[0]) == pytest.approx(100 * share, abs=0.51)
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    click(browser, "#export")
    file, end = tmp_path / "topic-names.json", monotonic() + 20
    while not file.exists() and monotonic() < end:
        sleep(0.05)
        opened("1")
    names = read_names(file)
    assert "Own <name>" in names.names
    assert tuple(pair) in names.groups
    applied, given, notes = names.apply(model, corpus.words)
    assert (len(applied.components_), notes, given[given.index("Own <name>")]) == (11, [], "Own <name>")
    np.testing.assert_allclose(applied.components_, merged.components_)
    browser.open(page.as_uri() + "?later")
    assert len(texts(opened, ".map circle")) == 11
    assert heading(opened) in ("Own <name>", *opened("topics.map(topic => topic.name)"))
    opened(f"go({{topic: {pair[0]}}})")
    click(browser, "#split")
    assert len(texts(opened, ".map circle")) == 12
    opened(f"loadNames({json.dumps(file.read_text())})")
    assert len(texts(opened, ".map circle")) == 11
    opened("loadNames('{}')")
    assert text(opened, "#toast") == "This file does not have names of 12 topics."


def test_keys(opened, browser):
    names = opened("topics.map(topic => topic.name)")
    press(browser, "ArrowRight")
    assert heading(opened) == names[1]
    press(browser, "ArrowLeft")
    press(browser, "ArrowLeft")
    assert heading(opened) == names[-1]
    opened("document.querySelector('[aria-label=\\'Next topic\\']').focus()")
    press(browser, "Enter")
    assert heading(opened) == names[0]
    assert opened("document.activeElement.getAttribute('aria-label')") == "Next topic"
    opened("document.querySelector('#words .link').focus()")
    press(browser, "Enter")
    assert opened("document.activeElement.id") == "detail"
    press(browser, "Escape")
    opened("document.querySelector('.map circle.chosen').focus()")
    before = opened("document.activeElement.getAttribute('aria-label')")
    for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
        press(browser, key)
    after = opened("document.activeElement.getAttribute('aria-label')")
    press(browser, "Enter")
    assert heading(opened) in after
    opened("document.querySelector('#tab-map').focus()")
    press(browser, "ArrowRight")
    assert opened("document.activeElement.id") == "tab-list"
    assert not opened("document.querySelector('#view-list').hidden")
    assert before


def test_the_background_is_marked_and_last_among_neighbours(browser, made, tmp_path):
    model, corpus, shares = made
    marked = copy(model)
    largest, second = (topic.number for topic in summarise_topics(model, corpus).topics[:2])
    marked.background_ = largest
    browser.open(write_page(tmp_path / "topics.html", marked, corpus, shares).as_uri())
    assert browser.evaluate("state.topic") == second
    assert len(texts(browser.evaluate, ".map circle.background")) == 1
    assert "dashed circle is the background" in browser.evaluate("document.querySelector('.hint').innerText")
    label = browser.evaluate("document.querySelector('circle.background').getAttribute('aria-label')")
    assert label.startswith(f"topic {largest}, background: ")
    assert browser.evaluate("topicOf[state.topic].near.at(-1).topic.background")
    assert browser.evaluate("topics.filter(topic => topic.background).map(topic => topic.id)") == [largest]
    assert browser.errors == []


def test_everything_that_can_be_used_has_a_name(opened):
    nameless = """[...document.querySelectorAll('button, input, select, [role]:not([role=presentation])')]
      .filter(part => !part.hidden && !['aria-label', 'aria-labelledby'].some(name => part.getAttribute(name))
        && !part.textContent.trim() && !part.labels?.[0]?.textContent.trim() && part.role !== 'status')
      .map(part => part.outerHTML)"""
    for tab in ("map", "list", "by"):
        opened(f"document.querySelector('#tab-{tab}').click()")
        assert opened(nameless) == []
    assert opened(
        "(() => { const ids = [...document.querySelectorAll('[id]')].map(part => part.id);"
        " return ids.length === new Set(ids).size; })()"
    )


@pytest.mark.parametrize("width", [1280, 400, 320])
def test_nothing_is_too_wide_and_dark_is_dark(browser, page, width):
    for scheme in ("light", "dark"):
        browser.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        browser.open(page.as_uri(), width)
        for tab in ("map", "list", "by"):
            browser.evaluate(f"document.querySelector('#tab-{tab}').click()")
            assert browser.evaluate(OVERFLOW) <= 0, (width, tab)
        for address in ("#word=wordd", "#document=3", "#topic=2"):
            browser.evaluate(f"location.hash = '{address}'; new Promise(done => setTimeout(done, 30))")
            assert browser.evaluate(OVERFLOW) <= 0, (width, address)
        paper, ink = browser.evaluate(
            "(found => [found.backgroundColor, found.color])(getComputedStyle(document.body))"
        )
        assert (max(map(int, re.findall(r"\d+", paper))) < 60) == (scheme == "dark")
        assert (min(map(int, re.findall(r"\d+", ink))) > 200) == (scheme == "dark")
        assert browser.errors == []
    for _ in range(2):
        browser.evaluate("document.querySelector('#theme').click()")
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"
    browser.send("Emulation.setEmulatedMedia", features=[])
    browser.evaluate("localStorage.clear()")


def test_paper_shows_all_views(browser, page):
    browser.open(page.as_uri())
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        for part in ("#view-map", "#view-list", "#view-by", "#detail"):
            assert browser.evaluate(f"document.querySelector('{part}').offsetHeight") > 100
        assert browser.evaluate("document.querySelector('.tools').offsetHeight") == 0
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


def test_no_text_runs(browser, tmp_path):
    model, corpus, shares = made_corpus(4, 60, 50, [f"{EVIL}{v}" for v in range(50)])
    corpus = CorpusCounts(
        corpus.counts,
        corpus.words,
        tuple(f"{EVIL}{d}" for d in range(60)),
        tuple(f"{EVIL} {text}" for text in corpus.texts),
    )
    labels = group_documents([f"{EVIL}{d % 3}" for d in range(60)], EVIL)
    page = write_page(
        tmp_path / "evil.html", model, corpus, shares, by=(EVIL, labels), title=EVIL, notes=[EVIL], fit=EVIL,
        command=EVIL, settings={EVIL: EVIL}, facts={EVIL: EVIL}, files={EVIL: EVIL},
    )  # fmt: skip
    browser.open(page.as_uri())
    for tab in ("map", "list", "by"):
        browser.evaluate(f"document.querySelector('#tab-{tab}').click()")
    browser.evaluate("rename(topics[0], DATA.title); merge(topics[0], topics[1]); hover(topics[0])")
    browser.evaluate(
        "go({word: 1}); go({document: 2}); go({topic: topics[0].id}); byId('find').value = 'img'; drawFound()"
    )
    assert EVIL in browser.evaluate("document.body.textContent")
    assert len(texts(browser.evaluate, "img, body b:not(#tip b)")) == 6  # of the help
    assert browser.evaluate("window.hurt") is None
    assert browser.errors == []
    # Neither would one that found its way into the page.
    browser.evaluate(
        "(script => { script.textContent = 'window.hurt = 1'; document.body.append(script); })"
        "(document.createElement('script'))"
    )
    assert browser.evaluate("window.hurt") is None
    assert len(browser.errors) == 1
    browser.evaluate("localStorage.clear()")


def test_words_with_apostrophes_and_phrases_are_found_in_texts(browser, tmp_path):
    words = ("hard drive", "farmer", "eau", "aujourd'hui", "don", "été")
    texts = (
        "A Hard-drive; the farmer's l'eau, aujourd’hui I don't. E\u0301te\u0301!",
        "hard drive drive, don hard",
    )
    corpus = CorpusCounts(sp.csr_array([[1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]), words, ("a", "b"), texts)
    model = swiftem.PLSA.from_counts(np.ones((1, 6)))
    page = write_page(tmp_path / "words.html", model, corpus, np.ones((2, 1)))
    browser.open(page.as_uri())
    found = "DOCUMENTS.texts.map(text => tokens(text).map(part => WORDS[part.number]).filter(word => word))"
    assert browser.evaluate(found) == [
        ["hard drive", "farmer", "eau", "aujourd'hui", "été"],
        ["hard drive", "don"],
    ]
    assert browser.errors == []
