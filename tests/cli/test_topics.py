"""``swiftem topics``: its files and words, formats and methods."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from pyarrow import parquet

import swiftem

FRUIT, TOOLS = "apple pear plum apple fig", "hammer saw chisel saw plane"
FILES = {"model.swiftem", "topic_words.parquet", "document_topics.parquet", "topics.html"}


def files(out):
    return {file.name for file in out.iterdir()}


def read(file):
    return parquet.read_table(file).to_pylist()


def test_a_folder_of_text_files_with_no_options_but_topics(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = run(folder, "--topics", 2)
    for words in (
        "12 documents with 60 words, 8 of them different.",
        "2 topics",
        "apple, ",
        "saw, ",
        "coherence",
        "Converged after ",
        "Page: results/topics/topics.html",
    ):
        assert words in output
    out = tmp_path / "results" / "topics"
    assert files(out) == FILES
    html = (out / "topics.html").read_text(encoding="utf-8")
    assert "Topics of my texts" in html
    assert html.count("<script>") == 1
    assert f"topics &#x27;{folder}&#x27; --topics 2<" in html
    assert re.search(r"<dd>auto \((em|sem|sem-vr)\)</dd>", html)
    for file in out.iterdir():
        assert file.stat().st_mode & 0o044 == 0o044  # others may read it


def test_numbers_are_the_same_everywhere(run, invoke, folder, tmp_path):
    output = run(folder, "--topics", 2, "--out", tmp_path)
    html = (tmp_path / "topics.html").read_text(encoding="utf-8")
    info = invoke("info", tmp_path / "model.swiftem")
    passes, value = re.search(
        r"after (\d+) passes .* Mean log-likelihood of a word (\S+)\. ", output
    ).groups()
    assert f"passes {passes} converged" in info
    assert f"log-likelihood {value}, mean" in info
    assert f"after {passes} passes" in html
    assert f"<dd>{passes}</dd>" in html
    assert f"{value} per word" in html
    shares = re.findall(r"\d+\.\d%", info)
    assert len(shares) == 2
    assert re.findall(r"\d+\.\d%", output) == shares
    overview = html.partition("<noscript>")[2].partition("</noscript>")[0]
    assert re.findall(r"\d+\.\d%", re.sub(r"<[^>]*>", " ", overview)) == shares


def test_the_tables_are_those_of_the_model(run, folder, tmp_path):
    run(folder, "--topics", 2, "--seed", 3, "--out", tmp_path / "out")
    model = swiftem.PLSA.load(tmp_path / "out" / "model.swiftem")
    assert list(model.feature_names_in_) == sorted(set(f"{FRUIT} {TOOLS}".split()))
    rows = read(tmp_path / "out" / "topic_words.parquet")
    assert list(rows[0]) == ["topic", "word", "probability"]
    assert len(rows) == 2 * 8
    for k, words in enumerate(model.top_words(n=8, relevance=1.0)):
        mine = [row for row in rows if row["topic"] == k]
        assert [row["word"] for row in mine] == words
        np.testing.assert_allclose(
            [float(row["probability"]) for row in mine], np.sort(model.components_[k])[::-1]
        )
    rows = read(tmp_path / "out" / "document_topics.parquet")
    assert list(rows[0]) == ["document", "words", "topic_0", "topic_1"]
    assert [row["document"] for row in rows] == [f"{number:02}.txt" for number in range(12)]
    assert {row["words"] for row in rows} == {5}
    shares = np.array([[float(row["topic_0"]), float(row["topic_1"])] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert len(set(shares.argmax(axis=1)[::3])) == 1


def test_the_same_seed_gives_the_same_topics(run, folder, tmp_path):
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(folder, "--topics", 2, "--seed", seed, "--out", tmp_path / out)
    one, same, other = ((tmp_path / out / "topic_words.parquet").read_bytes() for out in "abc")
    assert one == same != other


def test_results_in_the_folder_of_texts_are_not_read_again(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in range(2):
        assert "12 documents" in run(".", "--topics", 2)
    assert "Topics of my texts" in (folder / "results/topics/topics.html").read_text(encoding="utf-8")


def test_counts_without_words(run, tmp_path):
    sp.save_npz(tmp_path / "toy.npz", sp.csr_array([[2, 1, 0], [0, 1, 3]] * 4))
    assert "word 2" in run(tmp_path / "toy.npz", "--topics", 2, "--out", tmp_path / "out")
    assert {row["word"] for row in read(tmp_path / "out" / "topic_words.parquet")} == {
        "word 0",
        "word 1",
        "word 2",
    }
    output = run("--apply", tmp_path / "out" / "model.swiftem", tmp_path / "toy.npz", "--out", tmp_path)
    assert "8 documents" in output
    texts = tmp_path / "a.txt"
    texts.write_text("rice\n")
    output = run("--apply", tmp_path / "out" / "model.swiftem", texts, "--out", tmp_path, code=1)
    assert "has words without names, got texts." in output
    sp.save_npz(tmp_path / "wide.npz", sp.csr_array([[2, 1, 0, 4]]))
    output = run(
        "--apply", tmp_path / "out" / "model.swiftem", tmp_path / "wide.npz", "--out", tmp_path, code=1
    )
    assert "must have 3 words, as many as" in output


def test_columns_and_vocabularies(run, tmp_path):
    table = tmp_path / "toy.csv"
    table.write_text(f"a,b\n{FRUIT},{TOOLS}\n{FRUIT},{TOOLS}\n")
    output = run(table, "--out", tmp_path / "out", code=1)
    assert "--text-column" in output
    output = run(table, "--text-column", "b", "--topics", 1, "--out", tmp_path / "out")
    assert "hammer" in output
    counts, words = tmp_path / "toy.dat", tmp_path / "words"
    counts.write_text("1 0:2\n1 1:2\n")
    words.write_text("rice\nfish\n")
    assert "rice" in run(counts, "--topics", 1, "--words", words, "--out", tmp_path / "out")


def test_what_is_worth_saying_is_said(run, folder, tmp_path):
    (folder / "odd.txt").write_bytes(b"\xe9 apple")
    output = run(folder, "--topics", 2, "--out", tmp_path)
    assert "1 file is not UTF-8 and read as Windows-1252: odd.txt." in output
    assert "1 file is not UTF-8" in (tmp_path / "topics.html").read_text(encoding="utf-8")


def test_names_that_look_like_markup(run, tmp_path):
    folder = tmp_path / "[bold] & <b>"
    folder.mkdir()
    (folder / "[red]<i>.txt").write_text(FRUIT)
    (folder / "b.txt").write_text(TOOLS)
    run(folder, "-k", 1, "--out", tmp_path)
    html = (tmp_path / "topics.html").read_text(encoding="utf-8")
    assert "Topics of [bold] &amp; &lt;b&gt;" in html
    assert "[red]\\u003ci\\u003e.txt" in html
    assert "<i>.txt" not in html


def test_topics_by_a_column(run, tmp_path):
    table = tmp_path / "reviews.csv"
    rows = [
        f"{2019 + number // 3}-05-0{1 + number},{number % 2},{(FRUIT, TOOLS)[number % 2]}"
        for number in range(8)
    ]
    table.write_text("\n".join(["day,stars,review", *rows]))
    output = run(table, "--topics", 2, "--by", "day", "--out", tmp_path / "days")
    assert "The texts are in column 'review'." in output
    found = read(tmp_path / "days" / "topics_by.parquet")
    assert [row["day"] for row in found][:2] == ["2019-05", "2019-06"]
    assert list(found[0]) == ["day", "documents", "words", "topic_0", "topic_1"]
    assert sum(int(row["documents"]) for row in found) == 8
    assert sum(float(row["words"]) for row in found) == pytest.approx(40)
    run(table, "--topics", 2, "--text-column", "review", "--by", "stars", "--out", tmp_path / "stars")
    found = read(tmp_path / "stars" / "topics_by.parquet")
    assert [(row["stars"], row["documents"]) for row in found] == [("0", 4), ("1", 4)]
    assert {max(float(row["topic_0"]), float(row["topic_1"])) > 0.9 for row in found} == {True}


def test_topics_by_subfolder(run, folder, tmp_path):
    for number, name in enumerate(("a", "b")):
        (folder / name).mkdir()
        for copy in range(3):
            (folder / name / f"{copy}.txt").write_text((FRUIT, TOOLS)[number])
    output = run(folder, "--topics", 2, "--by", "folder", "--out", tmp_path / "out")
    assert "12 documents have no value in column 'folder'." in output
    assert [row["folder"] for row in read(tmp_path / "out" / "topics_by.parquet")] == ["a", "b"]


def test_what_topics_cannot_be_shown_by(run, folder, tmp_path):
    output = run(folder / "00.txt", "--topics", 1, "--by", "day", "--out", tmp_path / "out", code=2)
    assert "'--by': label_column is for tables (csv, parquet) and folders" in output
    table = tmp_path / "toy.csv"
    table.write_text("a,text\n" + "\n".join(f"name {n},{FRUIT} {TOOLS}" for n in range(150)))
    output = run(folder, "--topics", 2, "--by", "day", "--out", tmp_path / "out", code=2)
    assert "label_column must be 'folder' for a folder of texts, got 'day'" in output
    output = run(table, "--topics", 2, "--by", "b", "--out", tmp_path / "out", code=1)
    assert "must have a column 'b', got 'a', 'text'" in output
    output = run(table, "--topics", 2, "--by", "a", "--out", tmp_path / "out", code=1)
    assert "column 'a' must have dates, or at most 100 different values, got 150" in output
    output = run("--apply", table, table, "--by", "a", "--out", tmp_path / "out", code=2)
    assert "this is for new topics" in output


def names_of(model, groups, names):
    words = model.top_words(n=3)
    rows = [{"name": name, "merge": group} for group, name in zip(groups, names, strict=True)]
    return json.dumps({"swiftem": "topic names", "topics": rows, "words": words})


def test_names_and_merged_topics(run, folder, tmp_path):
    run(folder, "--topics", 3, "--out", tmp_path / "first")
    model = swiftem.PLSA.load(tmp_path / "first" / "model.swiftem")
    file = tmp_path / "names.json"
    alone = int(np.argmax([words[0] == "saw" for words in model.top_words(n=1)]))
    others = [k for k in range(3) if k != alone]
    file.write_text(names_of(model, [others, [alone]], ["Fruit <b>", ""]))
    output = run(folder, "--topics", 3, "--names", file, "--out", tmp_path / "second")
    assert "2 topics" in output
    assert re.search(r"Fruit <b>: (apple|fig|pear|plum),", output)
    merged = swiftem.PLSA.load(tmp_path / "second" / "model.swiftem")
    assert len(merged.components_) == 2
    html = (tmp_path / "second" / "topics.html").read_text(encoding="utf-8")
    assert "Fruit &lt;b&gt;" in html
    assert "Fruit <b>" not in html
    assert f"--names {file}" in html
    assert list(read(tmp_path / "second" / "document_topics.parquet")[0]) == [
        "document",
        "words",
        "topic_0",
        "topic_1",
    ]
    # A model that has been merged takes the same names, and so does one that has not.
    for made in ("first", "second"):
        output = run(
            "--apply", tmp_path / made / "model.swiftem", folder, "--names", file, "--out", tmp_path / "a"
        )
        assert "Fruit <b>: " in output
        assert "topic_2" not in read(tmp_path / "a" / "document_topics.parquet")[0]


def test_names_of_other_topics(run, folder, tmp_path):
    file = tmp_path / "names.json"
    file.write_text(
        names_of(swiftem.PLSA.from_counts(np.eye(2) + 1, names=["x", "y"]), [[0], [1]], ["X", ""])
    )
    output = run(folder, "--topics", 2, "--names", file, "--out", tmp_path / "out")
    assert "1 name was not used: no topic has the words that the name was given to." in output
    output = run(folder, "--topics", 3, "--names", file, "--out", tmp_path / "out", code=2)
    assert "names must be of a model of 3 topics, got names of 2." in output
    file.write_text("{}")
    output = run(folder, "--topics", 2, "--names", file, "--out", tmp_path / "out", code=1)
    assert 'got JSON without "swiftem": "topic names".' in output
    output = run(folder, "--topics", 2, "--names", tmp_path / "none", "--out", tmp_path / "out", code=1)
    assert "none cannot be read: no such file" in output


def test_words_are_chosen(run, tmp_path):
    texts = tmp_path / "mails"
    texts.mkdir()
    for number in range(40):
        body = ("a new hard drive and a saw", "the hard drive, an apple", "plum and pear, ripe")[number % 3]
        (texts / f"{number}.txt").write_text(f"{body}, common word\n")
    own = tmp_path / "own.txt"
    own.write_text("ripe\nnew the and")
    output = run(texts, "-k", 2, "--out", tmp_path / "out", "--stop-words", own)
    assert "leave them out as stop words, or with drop_common=0.3 in Python." in output
    own.write_text("ripe new the and common word")
    run(texts, "-k", 2, "--out", tmp_path / "out", "--phrases", "--stop-words", own)
    words = {row["word"] for row in read(tmp_path / "out" / "topic_words.parquet")}
    assert words == {"apple", "hard drive", "pear", "plum", "saw"}
    html = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "--phrases --stop-words" in html
    output = run(texts, "-k", 2, "--out", tmp_path / "out", "--stop-words", "xx", code=2)
    assert "got 'xx'" in output
    model = tmp_path / "out" / "model.swiftem"
    output = run(texts, "--apply", model, "--phrases", "--out", tmp_path / "out", code=2)
    assert "this is for new topics" in output


def test_a_range_of_numbers_is_compared(run, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join([FRUIT, TOOLS, "rice maize wheat rye oats"] * 40))
    output = run(texts, "--topics", "2:4", "--out", tmp_path / "out")
    assert "topics perplexity coherence stability" in output
    assert "3 topics" in output
    rows = read(tmp_path / "out" / "numbers_of_topics.parquet")
    assert [row["n_components"] for row in rows] == [2, 3, 4]
    assert (tmp_path / "out" / "numbers_of_topics.svg").stat().st_size > 1000
    assert swiftem.PLSA.load(tmp_path / "out" / "model.swiftem").components_.shape == (3, 13)
    html = (tmp_path / "out" / "topics.html").read_text(encoding="utf-8")
    assert "3 of 2, 3, 4" in html
    assert "numbers_of_topics" in html
    texts.write_text("\n".join([FRUIT, TOOLS] * 10))
    output = run(texts, "--topics", "2:4", "--out", tmp_path / "out", code=1)
    assert "at least 50 documents with words" in output
    output = run(texts, "--topics", "4:2", "--out", tmp_path / "out", code=2)
    assert "'--topics': n_components must be a number, a range such as 1:20" in output
