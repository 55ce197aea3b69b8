"""``swiftem topics --apply``: new texts, and what cannot be applied."""

import pytest
from pyarrow import parquet


def files(out):
    return {file.name for file in out.iterdir()}


def read(file):
    return parquet.read_table(file).to_pylist()


def test_new_texts(run, folder, tmp_path):
    run(folder, "--topics", 2, "--out", tmp_path / "out")
    model = tmp_path / "out" / "model.swiftem"
    new = tmp_path / "new.txt"
    new.write_text("Apples, an apple and a pear.\nnothing\na saw\n")
    output = run("--apply", model, new, "--out", tmp_path / "new")
    assert "1 of 4 words (25%) are not among the 8 known ones and were left out" in output
    assert "1 of 3 documents has none of the words and was left out: line 2." in output
    assert "2 documents with 3 known words." in output
    rows = read(tmp_path / "new" / "document_topics.parquet")
    for k in range(2):
        share = sum(float(row["words"]) * float(row[f"topic_{k}"]) for row in rows) / 3
        assert f" {k} {share:.1%} " in output
    assert f"Shares of the topics in each document: {tmp_path / 'new' / 'document_topics.parquet'}" in output
    assert files(tmp_path / "new") == {"document_topics.parquet"}
    rows = read(tmp_path / "new" / "document_topics.parquet")
    assert [row["document"] for row in rows] == ["line 1", "line 3"]
    assert (float(rows[0]["topic_0"]) > 0.5) != (float(rows[1]["topic_0"]) > 0.5)


def test_new_texts_need_a_corpus_and_a_model(run, tmp_path):
    output = run("--apply", tmp_path / "model", "--out", tmp_path, code=2)
    assert "Missing argument 'CORPUS'" in output
    texts = tmp_path / "a.txt"
    texts.write_text("rice\n")
    for model in (tmp_path / "nowhere", texts, tmp_path):
        output = run("--apply", model, texts, "--out", tmp_path, code=1)
        assert model.name in output
        assert "Traceback" not in output


@pytest.mark.parametrize(
    "given",
    [["-k", 3], ["--seed", 1], ["--stop-words", "de"], ["--phrases"], ["--method", "em"]],
    ids=lambda given: given[0],
)
def test_options_of_new_topics_are_refused(run, tmp_path, given):
    output = run("--apply", tmp_path / "model", tmp_path, "--out", tmp_path, *given, code=2)
    assert "this is for new topics; those of --apply are as they were fitted." in output
