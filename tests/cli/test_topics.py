"""``swiftem topics``: files and words, formats, new texts, Ctrl-C, and what is refused."""

import csv
import io
import os
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console
from typer.testing import CliRunner

import swiftem
from swiftem.cli import topics as module
from swiftem.cli.app import app
from swiftem.cli.topics import TopicsRequest, topics

FRUIT, TOOLS = "apple pear plum apple fig", "hammer saw chisel saw plane"
FILES = {"model.swiftem", "topic_words.csv", "document_topics.csv", "topics.html"}


def invoke(*arguments):
    """Return exit code and output, as one line: boxes and line breaks depend on the terminal's width."""
    result = CliRunner().invoke(app, ["topics", *(str(argument) for argument in arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return result.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", plain)


@pytest.fixture
def _csv_tables(monkeypatch):
    """Have tables in CSV, whether pyarrow is there or not."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.fixture
def _undrawn(monkeypatch):
    """Have an empty figure, which takes no time; one test draws a real one."""
    monkeypatch.setattr("swiftem.report.topics.panel_svg", lambda panel: b"<svg/>")


quickly = pytest.mark.usefixtures("_csv_tables", "_undrawn")


@pytest.fixture
def folder(tmp_path):
    """Return a folder of text files about two things."""
    folder = tmp_path / "my texts"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number:02}.txt").write_text(FRUIT if number % 3 else TOOLS)
    return folder


def files(out):
    return {file.name for file in out.iterdir()}


def read(file):
    with open(file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.usefixtures("_csv_tables")
def test_a_folder_of_text_files_with_no_options_but_topics(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = invoke(folder, "--topics", 2)
    assert code == 0
    for words in (
        "12 documents with 60 words, 8 of them different.",
        "2 topics",
        "apple, ",
        "saw, ",
        "coherence",
        "The fit came to rest after",
        "Page: results/topics/topics.html",
    ):
        assert words in output
    out = tmp_path / "results" / "topics"
    assert files(out) == FILES
    html = (out / "topics.html").read_text(encoding="utf-8")
    assert "Topics of my texts" in html
    assert html.count("<img") == 1
    assert f"swiftem topics &#x27;{folder}&#x27; --topics 2 --words 5000 --method auto --seed 0" in html
    for file in out.iterdir():
        assert file.stat().st_mode & 0o044 == 0o044  # others may read it


@quickly
def test_the_tables_are_those_of_the_model(folder, tmp_path):
    invoke(folder, "--topics", 2, "--seed", 3, "--out", tmp_path / "out")
    model = swiftem.PLSA.load(tmp_path / "out" / "model.swiftem")
    assert list(model.feature_names_in_) == sorted(set(f"{FRUIT} {TOOLS}".split()))
    rows = read(tmp_path / "out" / "topic_words.csv")
    assert list(rows[0]) == ["topic", "word", "probability"]
    assert len(rows) == 2 * 8
    for k, words in enumerate(model.top_words(n=8)):
        mine = [row for row in rows if row["topic"] == str(k)]
        assert [row["word"] for row in mine] == words
        np.testing.assert_allclose(
            [float(row["probability"]) for row in mine], np.sort(model.components_[k])[::-1]
        )
    rows = read(tmp_path / "out" / "document_topics.csv")
    assert list(rows[0]) == ["document", "words", "topic_0", "topic_1"]
    assert [row["document"] for row in rows] == [f"{number:02}.txt" for number in range(12)]
    assert {row["words"] for row in rows} == {"5"}
    shares = np.array([[float(row["topic_0"]), float(row["topic_1"])] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert len(set(shares.argmax(axis=1)[::3])) == 1


@pytest.mark.usefixtures("_undrawn")
def test_tables_in_parquet(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    invoke(folder, "--topics", 2, "--out", tmp_path)
    table = parquet.read_table(tmp_path / "topic_words.parquet")
    assert table.column_names == ["topic", "word", "probability"]
    assert parquet.read_table(tmp_path / "document_topics.parquet").num_rows == 12


@quickly
def test_the_same_seed_gives_the_same_topics(folder, tmp_path):
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        invoke(folder, "--topics", 2, "--seed", seed, "--out", tmp_path / out)
    one, same, other = ((tmp_path / out / "topic_words.csv").read_bytes() for out in "abc")
    assert one == same != other


@quickly
def test_results_in_the_folder_of_texts_are_not_read_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in range(2):
        code, output = invoke(".", "--topics", 2)
        assert code == 0
        assert "12 documents" in output
    assert "Topics of my texts" in (folder / "results/topics/topics.html").read_text(encoding="utf-8")


@quickly
def test_without_a_corpus_it_is_the_docstrings(tmp_path, monkeypatch):
    small = swiftem.data.docstring_corpus(["json"], cache=False)
    monkeypatch.setattr(module, "docstring_corpus", lambda: small)
    code, output = invoke("--topics", 2, "--words", 50, "--out", tmp_path)
    assert code == 0
    assert "50 of them different" in output
    assert "json.dump" in (tmp_path / "document_topics.csv").read_text()
    assert "the docstrings of Python packages" in (tmp_path / "topics.html").read_text(encoding="utf-8")


@quickly
def test_counts_without_words(tmp_path):
    sp.save_npz(tmp_path / "toy.npz", sp.csr_array([[2, 1, 0], [0, 1, 3]] * 4))
    code, output = invoke(tmp_path / "toy.npz", "--topics", 2, "--out", tmp_path / "out")
    assert code == 0
    assert "word 2" in output
    assert {row["word"] for row in read(tmp_path / "out" / "topic_words.csv")} == {
        "word 0",
        "word 1",
        "word 2",
    }
    code, output = invoke(
        "--apply", tmp_path / "out" / "model.swiftem", tmp_path / "toy.npz", "--out", tmp_path
    )
    assert (code, "8 documents" in output) == (0, True)
    texts = tmp_path / "a.txt"
    texts.write_text("rice\n")
    code, output = invoke("--apply", tmp_path / "out" / "model.swiftem", texts, "--out", tmp_path)
    assert code == 1
    assert "was fitted to words that had no names" in output
    sp.save_npz(tmp_path / "wide.npz", sp.csr_array([[2, 1, 0, 4]]))
    code, output = invoke(
        "--apply", tmp_path / "out" / "model.swiftem", tmp_path / "wide.npz", "--out", tmp_path
    )
    assert code == 1
    assert "must have 3 words, as many as" in output


@quickly
@pytest.mark.parametrize("method", ["em", "sem", "iem", "sem-vr", "fiem"])
def test_methods(folder, tmp_path, method):
    code, _ = invoke(folder, "--topics", 2, "--method", method, "--max-passes", 30, "--out", tmp_path)
    assert code == 0
    assert f"--method {method} " in (tmp_path / "topics.html").read_text(encoding="utf-8")


@quickly
def test_columns_and_vocabularies(tmp_path):
    table = tmp_path / "toy.csv"
    table.write_text(f"a,b\n{FRUIT},{TOOLS}\n{FRUIT},{TOOLS}\n")
    code, output = invoke(table, "--out", tmp_path / "out")
    assert (code, "--text-column" in output) == (1, True)
    code, output = invoke(table, "--text-column", "b", "--topics", 1, "--out", tmp_path / "out")
    assert (code, "hammer" in output) == (0, True)
    counts, words = tmp_path / "toy.dat", tmp_path / "words"
    counts.write_text("1 0:2\n1 1:2\n")
    words.write_text("rice\nfish\n")
    code, output = invoke(
        counts, "--topics", 1, "--format", "lda-c", "--vocabulary", words, "--out", tmp_path / "out"
    )
    assert (code, "rice" in output) == (0, True)


@quickly
def test_new_texts(folder, tmp_path):
    invoke(folder, "--topics", 2, "--out", tmp_path / "out")
    model = tmp_path / "out" / "model.swiftem"
    new = tmp_path / "new.txt"
    new.write_text("Apples, an apple and a pear.\nnothing\na saw\n")
    code, output = invoke("--apply", model, new, "--out", tmp_path / "new")
    assert code == 0
    assert "2 of 5 words (40%) are not among the 8 known ones and were left out" in output
    assert "1 of 3 documents has none of the words and was left out: line 2." in output
    assert files(tmp_path / "new") == {"document_topics.csv"}
    rows = read(tmp_path / "new" / "document_topics.csv")
    assert [row["document"] for row in rows] == ["line 1", "line 3"]
    assert (float(rows[0]["topic_0"]) > 0.5) != (float(rows[1]["topic_0"]) > 0.5)


def test_new_texts_need_a_corpus_and_a_model(tmp_path):
    code, output = invoke("--apply", tmp_path / "model", "--out", tmp_path)
    assert code == 2
    assert "name the corpus whose topics are to be found" in output
    texts = tmp_path / "a.txt"
    texts.write_text("rice\n")
    for model in (tmp_path / "nowhere", texts, tmp_path):
        code, output = invoke("--apply", model, texts, "--out", tmp_path)
        assert code == 1
        assert model.name in output
        assert "Traceback" not in output


def test_ctrl_c_while_new_texts_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(swiftem.PLSA, "load", lambda file: signal.raise_signal(signal.SIGINT))
    code, output = invoke("--apply", tmp_path, tmp_path, "--out", tmp_path / "out")
    assert (code, "nothing was written" in output) == (130, True)


def press_ctrl_c(monkeypatch, after):
    """Press Ctrl-C after so many passes."""
    from swiftem.estimators.watch import Watcher

    real = Watcher.watch

    def watch(self, number):
        look = real(self, number)

        def looks(moment, theta):
            if moment.passes >= after:
                signal.raise_signal(signal.SIGINT)
            return look(moment, theta)

        return looks

    monkeypatch.setattr(Watcher, "watch", watch)


@quickly
def test_ctrl_c_writes_what_there_is(folder, tmp_path, monkeypatch):
    press_ctrl_c(monkeypatch, after=2)
    code, output = invoke(folder, "--topics", 2, "--out", tmp_path / "out")
    assert code == 130
    assert "The fit was interrupted after 2 passes" in output
    assert "Interrupted: written is what there was (model.swiftem, topic_words.csv" in output
    assert files(tmp_path / "out") == FILES
    assert "The fit was interrupted after 2 passes" in (tmp_path / "out/topics.html").read_text(
        encoding="utf-8"
    )


@quickly
def test_ctrl_c_before_the_first_pass(folder, tmp_path, monkeypatch):
    from swiftem.estimators.documents import Documents

    real = Documents.em_pass

    def press(self, *args):
        monkeypatch.setattr(Documents, "em_pass", real)
        signal.raise_signal(signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(Documents, "em_pass", press)
    code, output = invoke(folder, "--topics", 2, "--out", tmp_path / "out")
    assert code == 130
    assert "Interrupted before there were topics; nothing was written." in output
    assert files(tmp_path / "out") == set()


@quickly
def test_ctrl_c_while_the_corpus_is_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "read_corpus", lambda *a, **k: signal.raise_signal(signal.SIGINT))
    code, output = invoke(folder, "--out", tmp_path / "out")
    assert code == 130
    assert "Interrupted while the corpus was read; nothing was written." in output


@quickly
def test_ctrl_c_while_results_are_written(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "topics_page", lambda *a, **k: signal.raise_signal(signal.SIGINT))
    code, output = invoke(folder, "--topics", 2, "--out", tmp_path / "out")
    assert code == 130
    assert "written is what there was (model.swiftem, topic_words.csv, document_topics.csv)" in output
    assert "Page:" not in output
    assert files(tmp_path / "out") == FILES - {"topics.html"}


@pytest.mark.skipif(os.name != "posix", reason="terminals as files are POSIX")
def test_progress_and_ctrl_c_in_a_terminal(folder, tmp_path):
    """The real thing: a bar that moves, ^C, no traceback, and the files."""
    for number in range(12, 3000):
        (folder / f"{number}.txt").write_text(FRUIT if number % 3 else TOOLS)
    command = [
        sys.executable,
        "-m",
        "swiftem",
        "topics",
        str(folder),
        "--topics",
        "40",
        "--max-passes",
        "1000000",
    ]
    # Words drawn at random never come to rest within the time.
    rng = np.random.default_rng(0)
    counts = tmp_path / "counts.npz"
    sp.save_npz(counts, sp.csr_array(rng.poisson(0.2, size=(2000, 500))))
    command[4] = str(counts)
    master, slave = os.openpty()
    process = subprocess.Popen([*command, "--out", str(tmp_path / "out")], stdin=slave, stdout=slave, stderr=slave,
                               start_new_session=True)  # fmt: skip
    os.close(slave)
    screen, pressed, deadline = b"", False, time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            screen += part
        if not pressed and re.search(rb"fitting: pass [2-9]", screen):
            process.send_signal(signal.SIGINT)
            pressed = True
    os.close(master)
    shown = screen.decode(errors="replace")
    assert process.wait(timeout=60) == 130, shown[-2000:]
    assert "Traceback" not in shown
    assert "Interrupted: written is what there was" in re.sub(r"\s+", " ", shown)
    assert "topics.html" in files(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "must have at least one document, got an empty file."),
        ("a.txt", b"it is\n", "must have at least one word of three letters that is no stop word, got none."),
        ("a.txt", b"rice\n\xff\n", "must be text in UTF-8, got the byte 0xff in line 2"),
        ("a.mtx", b"x", "must be a matrix of counts in MatrixMarket's format, got something else in line 1"),
        ("docword.a.txt", b"1\n1\n1\n1 1 1\n", "vocab.a.txt does not exist"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_one_sentence(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    code, output = invoke(tmp_path / name, "--out", tmp_path / "out")
    assert code == 1
    assert sentence in output
    assert files(tmp_path / "out") == set()


def test_no_such_corpus(tmp_path):
    code, output = invoke(tmp_path / "nowhere", "--out", tmp_path / "out")
    assert code == 1
    assert "nowhere must be a file or a folder with a corpus, but does not exist." in output


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied", "secret.txt")

    # Not by permissions of the file: those do not bind root, which tests may run as.
    monkeypatch.setattr(module, "read_corpus", refuse)
    code, output = invoke(tmp_path, "--out", tmp_path)
    assert code == 1
    assert "secret.txt cannot be read: permission denied." in output


@pytest.mark.parametrize(
    ("option", "value"),
    [("--topics", "0"), ("--words", "0"), ("--seed", "-1"), ("--max-passes", "0"), ("--method", "lda"),
     ("--format", "word")],
)  # fmt: skip
def test_bad_options_are_refused(option, value, tmp_path):
    code, output = invoke("--out", tmp_path, option, value)
    assert code == 2
    assert "Invalid value for" in output
    assert option in output


def test_a_folder_that_cannot_be_written_is_refused_first(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "read_corpus", lambda *a, **k: pytest.fail("computed before it was checked"))
    (tmp_path / "taken").write_text("mine")
    code, output = invoke(tmp_path, "--out", tmp_path / "taken")
    assert code == 2
    assert "is a file: name a folder" in output


@quickly
def test_a_full_disk_is_one_sentence(folder, tmp_path, monkeypatch):
    def no_space(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_table", no_space)
    code, output = invoke(folder, "--topics", 2, "--out", tmp_path)
    assert code == 1
    assert "could not be written" in output
    assert "No space left on device" in output
    invoke(folder, "--topics", 2, "--out", tmp_path)
    monkeypatch.setattr("swiftem.cli.apply_topics.write_table", no_space)
    code, output = invoke("--apply", tmp_path / "model.swiftem", folder, "--out", tmp_path)
    assert (code, "could not be written" in output) == (1, True)


@quickly
def test_what_is_worth_saying_is_said(folder, tmp_path):
    (folder / "odd.txt").write_bytes(b"\xe9 apple")
    _, output = invoke(folder, "--topics", 20, "--max-passes", 1, "--out", tmp_path)
    assert "1 file is not UTF-8 and read as Windows-1252: odd.txt." in output
    assert "fewer documents than topics" in output
    assert "had not quite come to rest after 1 pass over" in output
    assert "1 file is not UTF-8" in (tmp_path / "topics.html").read_text(encoding="utf-8")


@quickly
def test_names_that_look_like_markup(tmp_path):
    folder = tmp_path / "[bold] & <b>"
    folder.mkdir()
    (folder / "[red]<i>.txt").write_text(FRUIT)
    (folder / "b.txt").write_text(TOOLS)
    screen = io.StringIO()
    assert topics(TopicsRequest(folder, 1, tmp_path), Console(file=screen, width=200)) == 0
    html = (tmp_path / "topics.html").read_text(encoding="utf-8")
    assert "[red]&lt;i&gt;.txt" in html
    assert "<i>.txt" not in html


def test_a_command_can_be_given_again(tmp_path):
    request = TopicsRequest(
        tmp_path / "my texts.csv", 7, tmp_path / "out", 100, "fiem", 3, 9, "csv", "the text", tmp_path / "v"
    )
    assert request.command == (
        f"swiftem topics '{tmp_path}/my texts.csv' --topics 7 --words 100 --method fiem --seed 3 --max-passes 9 "
        f"--format csv --text-column 'the text' --vocabulary {tmp_path}/v --out {tmp_path}/out"
    )


def test_help():
    code, output = invoke("--help")
    assert code == 0
    for option in ("CORPUS", "--topics", "--out", "--words", "--method", "--seed", "--apply", "--vocabulary"):
        assert option in output
