"""What ``swiftem topics`` cannot read or write, or does not take: one sentence each."""

import re

import pytest
from full_disk import full_disk
from table_files import unreadable_file


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "must have at least one document, got an empty file."),
        ("docword.a.txt", b"1\n1\n1\n1 1 1\n", "vocab.a.txt does not exist"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_one_sentence(run, tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    assert sentence in run(tmp_path / name, "--out", tmp_path / "out", code=1)
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_read(run, tmp_path, monkeypatch):
    file = unreadable_file(tmp_path, monkeypatch, "secret.txt")
    assert "secret.txt cannot be read: no such device" in run(file, "--out", tmp_path, code=1)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--topics", "0"), ("--words", "0"), ("--seed", "-1"), ("--method", "lda")],
)  # fmt: skip
def test_bad_options_are_refused(run, option, value, tmp_path):
    output = run(tmp_path, "--out", tmp_path, option, value, code=2)
    assert "Invalid value for" in output
    assert option in output


def test_a_full_disk_is_one_sentence(run, folder, tmp_path):
    run(folder, "--topics", 2, "--out", tmp_path)
    for given in ([folder, "--topics", 2], ["--apply", tmp_path / "model.swiftem", folder]):
        with full_disk():
            output = run(*given, "--out", tmp_path, code=1)
        assert len(re.findall("cannot be written", output)) == 1
        assert "file too large" in output.lower()


def test_fewer_documents_than_topics(run, folder, tmp_path):
    output = run(folder, "--topics", 13, "--out", tmp_path / "out", code=2)
    assert "'--topics': n_components must be at most the number of documents, but" in output
    (tmp_path / "one.txt").write_text("Rice and maize.\n")
    output = run(tmp_path / "one.txt", "--topics", 2, "--out", tmp_path / "out", code=2)
    assert "has 1 document (each line is one), got 2." in output
    assert not (tmp_path / "out").exists()
