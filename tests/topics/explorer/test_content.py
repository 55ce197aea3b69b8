"""What the explorer of topics is made of: the map, passages, groups, names, and the packed content."""

import base64
import json

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem.data import CorpusCounts
from swiftem.topics.explorer import content as module
from swiftem.topics.explorer.content import (
    HEIGHT,
    as_json,
    explorer_content,
    passage,
    summarise_topics,
    topic_map,
)
from swiftem.topics.explorer.groups import group_documents
from swiftem.topics.explorer.names import TopicNames, read_names


def unpack(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def corpus_of(n_topics, n_documents=400, n_words=600, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.03), n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.1), n_documents)
    counts = rng.poisson(60 * shares @ topics) + (
        np.arange(n_words) == np.arange(n_documents)[:, None] % n_words
    )
    words = tuple(f"word{v}" for v in range(n_words))
    texts = tuple(" ".join(np.repeat(words, row)[:80]) for row in counts)
    corpus = CorpusCounts(sp.csr_array(counts), words, tuple(f"d{d}" for d in range(n_documents)), texts)
    return swiftem.PLSA.from_counts(topics * 1000 + 1e-9), corpus, shares


@pytest.mark.parametrize("n_topics", [1, 2, 3, 5, 6, 20, 100])
def test_circles_are_within_the_map_and_apart(n_topics):
    model, _, _ = corpus_of(n_topics, n_documents=20)
    shares = np.random.default_rng(n_topics).dirichlet(np.ones(n_topics))
    x, y, radius, colour = topic_map(model.topic_similarity(measure="hellinger"), shares)
    assert (x >= radius).all()
    assert (x <= 1 - radius).all()
    assert (y >= radius).all()
    assert (y <= HEIGHT - radius).all()
    apart = np.hypot(x[:, None] - x, y[:, None] - y) - radius[:, None] - radius
    assert (apart[~np.eye(n_topics, dtype=bool)] > -2e-3).all()
    assert set(colour.tolist()) == set(range(min(n_topics, colour.max() + 1)))
    if n_topics == 1:
        assert (x[0], y[0]) == (0.5, HEIGHT / 2)
    between = np.argsort(shares)[n_topics // 4 : n_topics // 2]
    if len(between) > 3:  # neither the smallest nor the largest circles
        np.testing.assert_allclose(np.ptp(radius[between] ** 2 / shares[between]), 0.0, atol=1e-9)


def test_equal_topics_have_a_map_too():
    x, y, radius, _ = topic_map(np.ones((9, 9)), np.full(9, 1 / 9))
    assert np.isfinite([x, y, radius]).all()


def test_similar_topics_are_near():
    rng = np.random.default_rng(0)
    centres = rng.dirichlet(np.full(300, 0.05), 5)
    topics = np.vstack([0.7 * centre + 0.3 * rng.dirichlet(np.full(300, 0.05), 6) for centre in centres])
    model = swiftem.PLSA.from_counts(topics + 1e-12)
    x, y, _, _ = topic_map(model.topic_similarity(measure="hellinger"), np.full(30, 1 / 30))
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    same = np.arange(30)[:, None] // 6 == np.arange(30) // 6
    assert apart[same & ~np.eye(30, dtype=bool)].mean() < 0.5 * apart[~same].mean()


def test_a_passage_is_where_the_words_are():
    text = "Nothing here at all. " * 20 + "Rice and maize, rice and rye. " + "Nothing again. " * 20
    found = passage(text, {"rice": 1.0, "maize": 1.0, "rye": 0.5}, 80)
    assert "Rice and maize, rice and rye" in found
    assert found.startswith("… ")
    assert found.endswith(" …")
    assert len(found) <= 82
    assert passage(text, {}, 80) == passage(text, {"none": 1.0}, 80)
    assert passage(text, {}, 80).startswith("Nothing here")
    assert passage("rice " * 5, {"rice": 1.0}, 80) == "rice " * 5
    text = "Rice, rice, rice and rice. " + "Nothing here. " * 20 + "Fish in a pond."
    assert "pond" in passage(text, {"rice": 0.3, "fish": 0.2, "pond": 0.2}, 40)  # repetition says little


@pytest.mark.parametrize(
    ("values", "unit", "labels"),
    [
        (["2021-03-04", "2021-03-06"], "day", ["2021-03-04", "2021-03-05", "2021-03-06"]),
        (["2019", "2021"], "year", ["2019", "2020", "2021"]),
        (["1890", "1990"], "decade", [f"{year}s" for year in range(1890, 2000, 10)]),
        (["2020-11", "2021-01"], "month", ["2020-11", "2020-12", "2021-01"]),
        (["04.03.2021", "24.03.2021"], "day", [f"2021-03-{day:02}" for day in range(4, 25)]),
        (["3/14/2021", "3/15/2021"], "day", ["2021-03-14", "2021-03-15"]),
        (["14 March 2021", "15 March 2021"], "day", ["2021-03-14", "2021-03-15"]),
        (["Mar 14, 2021", "Mar 15, 2021"], "day", ["2021-03-14", "2021-03-15"]),
        (["Mar 2021", "Apr 2021"], "month", ["2021-03", "2021-04"]),
        (["2021/03", "2021/04"], "month", ["2021-03", "2021-04"]),
        (["20210314", "20210315"], "day", ["2021-03-14", "2021-03-15"]),
        (["Mon, 20 Nov 1995 19:12:08 -0500", "21 Nov 1995 00:00:00 +0000"], "day",
         ["1995-11-20", "1995-11-21"]),
        (["2012-01-01T10:00:00", "2020-12-31 23:59"], "quarter",
         [f"{year} Q{quarter}" for year in range(2012, 2021) for quarter in range(1, 5)]),
    ],
)  # fmt: skip
def test_dates(values, unit, labels):
    found = group_documents(values, "day")
    assert (found.kind, found.unit, found.labels) == ("date", unit, labels)
    assert found.group.tolist() == [0, len(labels) - 1]


def test_dates_of_two_readings_are_said():
    assert group_documents(["3/4/2021", "3/14/2021"], "d").notes == [
        "Dates such as 3/4/2021 are read as month/day/year."
    ]
    assert group_documents(["14/3/2021", "15/3/2021"], "d").labels == ["2021-03-14", "2021-03-15"]


def test_labels():
    found = group_documents(["10", "9", "", "9"], "stars")
    assert (found.kind, found.labels, found.group.tolist()) == ("label", ["9", "10"], [1, 0, -1, 0])
    assert found.notes == ["1 document has no value in column 'stars'."]
    found = group_documents(["2021-01-01"] * 19 + ["unknown"], "day")
    assert (found.kind, found.notes) == ("date", ["1 document has no date in column 'day'."])
    assert found.group.tolist() == [0] * 19 + [-1]
    with pytest.raises(ValueError, match="column 'a' must have a value for some documents, got none"):
        group_documents(["", ""], "a")


def test_numbers_survive_the_packing():
    model, corpus, shares = corpus_of(7)
    summary = summarise_topics(model, corpus)
    found = explorer_content(
        model,
        corpus,
        shares,
        summary,
        title="toy",
        by=("half", group_documents([str(d % 2) for d in range(400)], "half")),
    )
    start = unpack(found["entries"]["start"], "<u4")
    word, log = (
        unpack(found["entries"]["word"], "<u2"),
        unpack(found["entries"]["p"], "<u2") / 65535 * 12 - 12,
    )
    number = {name: v for v, name in enumerate(corpus.words)}
    kept = np.array([number[name] for name in found["words"]])
    assert (model.components_[:, kept].max(axis=0) >= 1e-5).all()
    for k in range(7):
        part = slice(start[k], start[k + 1])
        expected = model.components_[k, kept]
        np.testing.assert_array_equal(word[part], np.flatnonzero(expected >= 1e-5))
        np.testing.assert_allclose(np.exp(log[part]), expected[word[part]], rtol=1e-4)
    np.testing.assert_allclose(
        unpack(found["marginal"], "<f4"), (model.topic_prevalence() @ model.components_)[kept], rtol=1e-6
    )
    each = found["documents"]["each"]
    top = unpack(found["documents"]["topics"], "<u2").reshape(-1, each)
    np.testing.assert_array_equal(top[:, 0], shares.argmax(axis=1))
    np.testing.assert_allclose(
        unpack(found["documents"]["shares"], "<u2").reshape(-1, each)[:, 0] / 65535,
        shares.max(axis=1),
        atol=1e-5,
    )
    lengths = corpus.counts.sum(axis=1)
    tokens = unpack(found["by"]["tokens"], "<f4").reshape(2, 7)
    np.testing.assert_allclose(tokens[1], lengths[1::2] @ shares[1::2], rtol=1e-5)
    frequent = unpack(found["found"], "<u4").reshape(-1, 4)[:, 0]
    counts = corpus.counts.tocsc()
    for v in range(0, len(kept), 50):
        column = counts[:, [kept[v]]].toarray().ravel()
        if column.any():
            assert column[frequent[v]] / np.sqrt(lengths[frequent[v]]) == pytest.approx(
                (column / np.sqrt(lengths)).max()
            )
    for k, topic in enumerate(found["topics"]):
        assert shares[topic["documents"][0], k] >= 0.9 * shares[:, k].max()
        assert len({corpus.texts[d] for d in topic["documents"]}) == len(topic["documents"])


def test_a_large_corpus_is_cut_to_the_limits(monkeypatch):
    for name, value in (
        ("ENTRIES", 500),
        ("DOCUMENTS", 150),
        ("NAMES", 300),
        ("TEXTS", 1500),
        ("PASSAGES", 3000),
    ):
        monkeypatch.setattr(module, name, value)
    model, corpus, shares = corpus_of(7)
    found = explorer_content(model, corpus, shares, summarise_topics(model, corpus), title="toy")
    assert len(unpack(found["entries"]["p"], "<u2")) == 500
    names, texts = found["documents"]["names"], found["documents"]["texts"]
    assert len(names) == len(texts) == 150
    assert sum(map(len, names)) <= 300
    assert sum(map(len, texts)) <= 1.2 * 4500
    assert max(d for topic in found["topics"] for d in topic["documents"]) < 150
    documents = unpack(found["found"], "<u4")
    assert documents[documents != 0xFFFFFFFF].max() < 150


def test_ten_thousand_documents_take_three_megabytes():
    model, _, _ = corpus_of(100, 50, 5000)
    rng = np.random.default_rng(0)
    counts = sp.random_array((10_000, 5000), density=0.01, rng=rng, format="csr")
    counts.data[:] = 1
    text = "Größe und Gewicht, ein langer Satz mit Umlauten: ä, ö, ü. " * 20
    corpus = CorpusCounts(
        counts,
        tuple(f"wörterbuch{v}" for v in range(5000)),
        tuple(f"Ordner/Jahr/Brief {d}" for d in range(10_000)),
        tuple(f"{d} {text}" for d in range(10_000)),
    )
    shares = rng.dirichlet(np.full(100, 0.05), 10_000)
    found = explorer_content(model, corpus, shares, summarise_topics(model, corpus), title="Briefe")
    assert len(as_json(found).encode()) < 2.9e6


def test_nothing_ends_the_script():
    text = as_json({"a": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


COUNTS = np.array([[9.0, 3, 1, 0, 0, 0], [0, 0, 0, 9, 3, 1], [0, 1, 9, 0, 2, 0]])
WORDS = ["ape", "bee", "cod", "dog", "eel", "fox"]


def test_names_follow_topics_to_another_fit():
    first = swiftem.PLSA.from_counts(COUNTS, names=WORDS)
    names = TopicNames(("A", "", "C"), ((0,), (1,), (2,)), tuple(map(tuple, first.top_words(n=3))))
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        model, given, notes = names.apply(swiftem.PLSA.from_counts(COUNTS[order]), WORDS)
        assert [("A", "", "C")[k] for k in order] == list(given)
        assert notes == []
    same = TopicNames(("A", "B"), ((0,), (1,)), (("ape", "bee"),) * 2)  # equally alike: by number
    assert same.apply(swiftem.PLSA.from_counts(COUNTS[[0, 0]]), WORDS)[1] == ("A", "B")
    merged = TopicNames(("A and C", ""), ((0, 2), (1,)), names.words)
    model, given, _ = merged.apply(swiftem.PLSA.from_counts(COUNTS[[1, 2, 0]]), WORDS)
    assert given == ("", "A and C")
    np.testing.assert_allclose(model.topic_counts_, [13, 25])
    again, given, _ = merged.apply(model, WORDS)
    assert (again is model, given) == (True, ("", "A and C"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("no json", "got no JSON"),
        ("[1]", 'without "swiftem"'),
        ({"words": [["a"], 3]}, '"words" are not a list of words for each topic'),
        ({"topics": [{"name": 3, "merge": [0]}]}, 'do not have a "name"'),
        ({"topics": [{"name": "", "merge": [2]}]}, "do not have each number below 2 once"),
        ({"topics": [{"name": "", "merge": [0]}]}, "do not have each number below 2 once"),
        ({"topics": [{"name": "", "merge": [0, 1, 1]}]}, "do not have each number below 2 once"),
    ],
)
def test_files_that_are_no_names(tmp_path, content, words):
    file = tmp_path / "names.json"
    whole = {"swiftem": "topic names", "words": [["a"], ["b"]], "topics": []}
    file.write_text(content if isinstance(content, str) else json.dumps(whole | content))
    with pytest.raises(ValueError, match=words):
        read_names(file)
    file.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="got no JSON"):
        read_names(file)
