"""``python -m paper``: help, options, files and words, Ctrl-C, corpora, a full disk."""

import csv
import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from math import isnan
from pathlib import Path

import pytest
from rich.console import Console

from paper import reproduce as module
from paper.__main__ import request
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import PrecisionRow, gmm_precision
from paper.experiments.gmm_scaling import ReachRow
from paper.experiments.plsa import LikelihoodRow
from paper.experiments.theory import TheoryRow
from paper.reproduce import EXPERIMENTS, Request, reproduce
from paper.tests.conftest import SMALL, TOY


def replace(monkeypatch, name, function):
    """Have ``function`` called in place of an experiment, with it first."""
    run, section = EXPERIMENTS[name]
    monkeypatch.setitem(EXPERIMENTS, name, (lambda **options: function(run, **options), section))


@pytest.fixture
def chosen(monkeypatch, small):
    """Have the experiments small, and return what the command chose for them, by name."""
    chosen = {}

    def shrink(name):
        def run(real, **options):
            chosen[name] = {key: value for key, value in options.items() if key != "progress"}
            return real(**{**options, **SMALL[name]})

        replace(monkeypatch, name, run)

    for name in SMALL:
        shrink(name)
    return chosen


@pytest.fixture
def _undrawn(monkeypatch):
    """Have empty figures, which take no time; two tests draw real ones."""

    def save(picture, folder):
        for kind in ("png", "svg"):
            (folder / f"{picture.name}.{kind}").touch()

    monkeypatch.setattr("paper.report.figures.Picture.save", save)
    monkeypatch.setattr("paper.report.figures.Panel.svg", lambda panel: b"<svg/>")


undrawn = pytest.mark.usefixtures("_undrawn")


def press_ctrl_c(monkeypatch, name, job, share=0.0):
    """Press Ctrl-C when an experiment begins a job, and this share of the whole is done."""

    def run(real, *, progress, **options):
        def show(doing, done):
            progress(doing, done)
            if doing == job and done >= share:
                signal.raise_signal(signal.SIGINT)

        return real(progress=show, **options)

    replace(monkeypatch, name, run)


def read(folder, name, kind):
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == kind._fields
    return [kind(*row) for row in rows]


def files(folder):
    return {file.name for file in folder.iterdir()}


def test_one_experiment_writes_numbers_figures_and_report(tmp_path, chosen, invoke):
    out = tmp_path / "new" / "folder"
    code, output = invoke("gmm-precision", "--quick", "--runs", 1, "--seed", 4, "--out", out)
    assert code == 0
    assert files(out) == {"gmm-precision.csv", "gmm-precision.png", "gmm-precision.svg", "report.html"}
    assert chosen == {"gmm-precision": {"runs": 1, "seed": 4}}
    expected = gmm_precision(n=60, epochs=2, runs=1, seed=4).rows
    written = read(out, "gmm-precision", PrecisionRow)
    assert [(row.method, int(row.epoch), float(row.squared_error)) for row in written] == [
        (row.method, row.epoch, row.squared_error) for row in expected
    ]
    report = (out / "report.html").read_text(encoding="utf-8")
    assert f"python -m paper gmm-precision --quick --runs 1 --seed 4 --out {out}" in report
    assert report.count("<img") == 1 + 3
    for words in ("Claims, and what was found", "agrees", "by epochs", "Report:", "report.html"):
        assert words in output
    image = pytest.importorskip("PIL.Image")
    with image.open(out / "gmm-precision.png") as picture:
        picture.verify()


@pytest.mark.slow
@undrawn
def test_all_writes_everything_in_one_report(tmp_path, chosen, invoke):
    code, _ = invoke("all", "--runs", 1, "--out", tmp_path)
    assert code == 0
    names = ("gmm-precision", "gmm-scaling-known", "plsa-1-toy", "theory", "methods-paper", "methods-scaling")
    figures = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    written = {
        "report.html", "gmm-precision.csv", "gmm-scaling.csv", "plsa.csv", "plsa-documents.csv", "theory.csv",
        "methods.csv",
    }  # fmt: skip
    assert files(tmp_path) == written | set(figures)
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("gmm-precision", "gmm-scaling", "plsa", "theory", "methods"):
        assert f'<section id="{name}">' in report
    assert len(read(tmp_path, "gmm-scaling", ReachRow)) == 8
    assert len(read(tmp_path, "plsa", LikelihoodRow)) == 24
    parts = [row.part for row in read(tmp_path, "theory", TheoryRow)]
    assert [parts.count(part) for part in ("theorem", "practice", "step", "local")] == [6, 4, 6, 6]
    assert (tmp_path / "report.html").stat().st_mode & 0o044 == 0o044  # others may read it


def test_what_is_chosen_for_a_full_and_for_a_quick_run(tmp_path, monkeypatch):
    defaults = {name: run.__kwdefaults__ for name, (run, _) in EXPERIMENTS.items()}
    runs = {"gmm-precision": 5, "gmm-scaling": 5, "plsa": 3, "theory": 5, "methods": 5}
    assert {name: options["runs"] for name, options in defaults.items()} == runs
    assert defaults["gmm-scaling"]["sizes"] == (1_000, 3_162, 10_000, 31_623, 100_000)
    assert defaults["gmm-scaling"]["settings"] == ("known", "free", "authors")
    assert defaults["theory"]["sizes"] == (100, 316, 1_000, 3_162, 10_000)
    assert (defaults["plsa"]["epochs"], defaults["methods"]["quick"]) == (60, False)
    chosen = {}

    def stand_in(name):
        def run(real, *, progress, **options):
            chosen[name] = options
            return Experiment(name, {}, (), interrupted=False)

        replace(monkeypatch, name, run)

    for name in SMALL:
        stand_in(name)
    for quick in ([], ["--quick"]):
        reproduce(
            request(["all", "--seed", "7", *quick, "--out", str(tmp_path)]), Console(file=io.StringIO())
        )
        if not quick:  # what the functions do by default, with the paper's sizes
            assert chosen == {name: {"seed": 7} for name in SMALL}
    assert chosen == {
        "gmm-precision": {"seed": 7},  # quick as it is
        "gmm-scaling": {"seed": 7, "settings": ("known", "authors"), "sizes": (1_000, 3_162, 10_000, 31_623)},
        "plsa": {"seed": 7, "runs": 1, "epochs": 50},
        "theory": {"seed": 7, "runs": 2, "sizes": (100, 316, 1_000)},
        "methods": {"seed": 7, "runs": 1, "quick": True},
    }
    assert not list(tmp_path.iterdir())


def test_progress_shows_what_is_done_and_the_time_left(tmp_path, monkeypatch):
    def slowly(real, *, progress, **options):
        for tenth in range(6):
            progress("fiem", tenth / 10)
            time.sleep(0.1)
        return Experiment("gmm-precision", {}, (), interrupted=True)

    replace(monkeypatch, "gmm-precision", slowly)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    reproduce(request(["gmm-precision", "--out", str(tmp_path)]), console)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert re.search(r"gmm-precision: fiem\W+[1-5]0 of 100, 0:00:0\d elapsed, 0:00:0\d remaining", shown)


def test_a_command_in_the_report_can_be_given_again():
    given = ["plsa", "--quick", "--runs", "2", "--corpus", "my texts/a.txt", "--corpus", "b.txt"]
    command = "python -m paper plsa --quick --runs 2 --corpus 'my texts/a.txt' --corpus b.txt"
    corpora = [Path("my texts/a.txt"), Path("b.txt")]
    assert request(given) == Request("plsa", True, 2, 0, corpora, Path("results/paper"), command)


@undrawn
def test_ctrl_c_writes_what_is_done(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm-precision", "sem-vr", share=0.5)
    code, output = invoke("all", "--runs", 2, "--out", tmp_path)
    assert code == 130
    assert "Interrupted: shown and written is what was complete." in output
    assert "report.html" in output
    rows = read(tmp_path, "gmm-precision", PrecisionRow)
    assert {row.run for row in rows} == {"0", "1"}
    assert {row.method for row in rows if row.run == "1"} == {"em", "sem", "iem"}
    assert "gmm-scaling" not in chosen  # Ctrl-C ends all, not only the one experiment
    assert files(tmp_path) == {"gmm-precision.csv", "gmm-precision.png", "gmm-precision.svg", "report.html"}
    assert "Interrupted: only complete results are shown." in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


@undrawn
def test_ctrl_c_in_a_later_experiment_keeps_the_earlier_ones(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm-scaling", "known weights, n = 40")
    code, _ = invoke("all", "--runs", 1, "--out", tmp_path)
    assert code == 130
    assert files(tmp_path) == {"gmm-precision.csv", "gmm-precision.png", "gmm-precision.svg", "report.html"}
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Interrupted: only complete results are shown." in report
    assert "gmm-scaling.csv" not in report


def test_ctrl_c_before_the_first_result(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm-precision", "EM until convergence")
    code, output = invoke("gmm-precision", "--out", tmp_path)
    assert code == 130
    assert "nothing was written" in output
    assert not files(tmp_path)


@pytest.mark.parametrize("where", ["docstring_corpora", "read_documents"])
def test_ctrl_c_while_texts_are_read(where, tmp_path, chosen, monkeypatch, invoke):
    monkeypatch.setattr(f"paper.experiments.plsa.{where}", lambda *args: signal.raise_signal(signal.SIGINT))
    options = ["--corpus", tmp_path / "x.txt"] if where == "read_documents" else []
    code, output = invoke("plsa", *options, "--out", tmp_path / "out")
    assert code == 130
    assert "nothing was written" in output
    assert not (tmp_path / "out").exists()


def test_ctrl_c_while_figures_are_drawn_keeps_the_numbers(tmp_path, chosen, monkeypatch, invoke):
    press = lambda *args: signal.raise_signal(signal.SIGINT)  # noqa: E731
    monkeypatch.setattr("paper.report.figures.Picture.save", press)
    code, output = invoke("gmm-precision", "--runs", 1, "--out", tmp_path)
    assert code == 130
    assert "the numbers are in" in output
    assert files(tmp_path) == {"gmm-precision.csv"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals to a process, and terminals, are POSIX")
def test_ctrl_c_at_a_running_process(tmp_path):
    """In a terminal, as users see it: once iem is at work, em and sem are complete."""
    import pty

    terminal, screen = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "paper",
        "gmm-precision",
        "--runs",
        "900",
        "--out",
        tmp_path,
    ]
    with subprocess.Popen(
        command, stdout=screen, stderr=screen, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(screen)
        output = read_until(terminal, b"gmm-precision: iem")
        process.send_signal(signal.SIGINT)
        output += read_until(terminal, None)
        assert process.wait(timeout=60) == 130
    os.close(terminal)
    assert b"Traceback" not in output
    assert b"left" in output
    assert b"Interrupted" in output
    assert {row.method for row in read(tmp_path, "gmm-precision", PrecisionRow)} >= {"em", "sem"}
    assert (tmp_path / "report.html").exists()


def read_until(terminal, words, timeout=120.0):
    """Return what was shown until these words, or until the end."""
    output, end = b"", time.monotonic() + timeout
    while words is None or words not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"not shown within {timeout} s: {words!r}; shown: {output[-500:]!r}"
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux: the other end was closed
            part = b""
        if not part:
            assert words is None, output
            break
        output += part
    return output


@undrawn
def test_texts_of_the_users_own(tmp_path, chosen, invoke):
    (tmp_path / "a").mkdir()
    corpora = [tmp_path / "fruit.txt", tmp_path / "a" / "tools <b>.txt"]
    for corpus in corpora:
        corpus.write_text("\n".join(TOY.documents), encoding="utf-8")
    out = tmp_path / "out"
    code, _ = invoke("plsa", "--runs", 1, "--corpus", corpora[0], "--corpus", corpora[1], "--out", out)
    assert code == 0
    assert {row.corpus for row in read(out, "plsa", LikelihoodRow)} == {"fruit", "tools <b>"}
    assert {"plsa-1-fruit.png", "plsa-2-tools--b-.png"} <= files(out)
    assert "tools &lt;b&gt;" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "must be a text file, one document per line, but does not exist."),
        (b"", "must have at least one document, got an empty file."),
        (b"the of and", "at least one word of three letters that is not a stop word, got none."),
        (b"apple", "data must have at least n_topics=10 tokens, got 1."),
    ],
    ids=["missing", "empty", "no words", "too few"],
)
@pytest.mark.parametrize("name", ["plsa", "all"])
def test_a_bad_corpus_is_one_sentence_before_anything_is_computed(
    name, content, sentence, tmp_path, chosen, invoke
):
    file = tmp_path / "bad.txt"
    if content is not None:
        file.write_bytes(content)
    code, output = invoke(name, "--corpus", file, "--out", tmp_path / "out")
    assert code == 1
    assert sentence in output
    assert str(file) in output.replace(" ", "") or "bad.txt" in output
    assert chosen == {}
    assert not (tmp_path / "out").exists()


@undrawn
@pytest.mark.parametrize("where", ["report.figures.Picture.save", "reproduce.write_atomically"])
def test_a_full_disk_is_one_sentence(where, tmp_path, chosen, monkeypatch, invoke):
    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"paper.{where}", no_space)
    code, output = invoke("gmm-precision", "--runs", 1, "--out", tmp_path)
    assert code == 1
    assert "No space left on device" in output
    assert ("The numbers are in" in output) == ("Picture" in where)


@undrawn
def test_an_older_report_is_replaced(tmp_path, chosen, invoke):
    (tmp_path / "report.html").write_text("old")
    assert invoke("gmm-scaling", "--runs", 1, "--out", tmp_path)[0] == 0
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert all(not isnan(float(row.stays)) for row in read(tmp_path, "gmm-scaling", ReachRow))


@pytest.mark.slow
def test_another_seed_gives_the_same_conclusions(tmp_path):
    verdicts = []
    for seed in (0, 1, 2):
        given = request(["all", "--quick", "--seed", str(seed), "--out", str(tmp_path)])
        experiments = module.run_all(given, {}, Console(file=io.StringIO()))
        findings = [finding for e in experiments for finding in EXPERIMENTS[e.name][1](e).findings]
        verdicts.append({finding.claim: finding.verdict for finding in findings})
    assert len(verdicts[0]) == 18
    assert {"agrees", "disagrees"} <= set(verdicts[0].values())
    assert verdicts[0] == verdicts[1] == verdicts[2]


def test_help(invoke):
    code, output = invoke("--help")
    assert code == 0
    for words in (
        "--quick",
        "--runs",
        "--seed",
        "--corpus",
        "--out",
        "for plsa 3",
        "results/paper",
        *EXPERIMENTS,
    ):
        assert words in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: name"),
        (["gmm-precison"], "choose from"),
        (["all", "--quik"], "--quik"),
        (["plsa", "--runs", "0"], "--runs: 0 is less than 1"),
        (["plsa", "--runs", "many"], "argument --runs: invalid int value: 'many'"),
        (["plsa", "--seed", "-1"], "--seed: -1 is less than 0"),
        (["gmm-scaling", "--corpus", "texts.txt"], "only plsa and all read a corpus"),
    ],
)
def test_wrong_options_are_refused(arguments, words, invoke):
    code, output = invoke(*arguments)
    assert code == 2
    assert words in output


def test_a_file_as_folder_is_refused(tmp_path, invoke):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below"):
        code, output = invoke("plsa", "--out", out)
        assert code == 2
        assert "--out" in output
    assert file.read_text() == "mine"
