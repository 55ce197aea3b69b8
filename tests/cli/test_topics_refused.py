"""What ``swiftem topics`` cannot read or write, or does not take: one sentence each."""

import pytest


def files(out):
    return {file.name for file in out.iterdir()}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "must have at least one document, got an empty file."),
        (
            "a.txt",
            b"it is\n",
            "must have at least one word of three letters that is not a stop word, got none.",
        ),
        ("a.txt", b"rice\n\xff\n", "must be text in UTF-8, got the byte 0xff in line 2"),
        ("a.mtx", b"x", "must be a matrix of counts in MatrixMarket's format, got something else in line 1"),
        ("docword.a.txt", b"1\n1\n1\n1 1 1\n", "vocab.a.txt does not exist"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_one_sentence(run, tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    assert sentence in run(tmp_path / name, "--out", tmp_path / "out", code=1)
    assert not (tmp_path / "out").exists()


def test_no_such_corpus(run, tmp_path):
    output = run(tmp_path / "nowhere", "--out", tmp_path / "out", code=1)
    assert "nowhere must be a file or a folder with a corpus, but does not exist." in output


def test_a_file_that_may_not_be_read(run, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied", "secret.txt")

    # Not by permissions of the file: those do not bind root, which tests may run as.
    monkeypatch.setattr("swiftem.cli.topics_files.read_corpus", refuse)
    assert "secret.txt cannot be read: permission denied." in run(tmp_path, "--out", tmp_path, code=1)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--topics", "0"), ("--words", "0"), ("--seed", "-1"), ("--method", "lda")],
)  # fmt: skip
def test_bad_options_are_refused(run, option, value, tmp_path):
    output = run(tmp_path, "--out", tmp_path, option, value, code=2)
    assert "Invalid value for" in output
    assert option in output


def test_a_full_disk_is_one_sentence(run, folder, tmp_path, monkeypatch):
    def no_space(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("swiftem.cli.topics_files.write_table", no_space)
    output = run(folder, "--topics", 2, "--out", tmp_path, code=1)
    assert "could not be written" in output
    assert "No space left on device" in output
    output = run("--apply", tmp_path / "model.swiftem", folder, "--out", tmp_path, code=1)
    assert "could not be written" in output


def test_fewer_documents_than_topics(run, folder, tmp_path):
    output = run(folder, "--topics", 13, "--out", tmp_path / "out", code=2)
    assert "'--topics': n_components must be at most the number of documents, but" in output
    (tmp_path / "one.txt").write_text("Rice and maize.\n")
    output = run(tmp_path / "one.txt", "--topics", 2, "--out", tmp_path / "out", code=2)
    assert "has 1 document (each line is one), got 2." in output
    assert not (tmp_path / "out").exists()
