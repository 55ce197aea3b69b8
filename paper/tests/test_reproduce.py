"""``python -m paper``: its files and words, Ctrl-C, corpora, no matplotlib, a full disk."""

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
from paper.experiments.experiment import Experiment
from paper.experiments.gmm_precision import PrecisionRow, gmm_precision
from paper.experiments.gmm_scaling import ReachRow
from paper.experiments.plsa import LikelihoodRow
from paper.experiments.theory import TheoryRow
from paper.reproduce import Request, reproduce

SMALL = {
    "gmm_precision": {"n": 60, "epochs": 2},
    "gmm_scaling": {"sizes": (40, 80), "settings": ("known",)},
    "plsa": {"epochs": 2},
    "theory_in_numbers": {"sizes": (20, 40)},
    "compare_methods": {"sizes": (40, 80), "cases": ("paper",), "quick": True},
}
"""Sizes that take no time, in place of those that the command chooses."""
FRUIT = "\n".join(["apple pear plum apple fig", "hammer saw chisel saw plane"] * 5)


@pytest.fixture
def chosen(monkeypatch):
    """Have the experiments small, and return what the command chose for them, by name."""
    chosen = {}

    def shrink(name):
        real = getattr(module, name)

        def run(*args, **options):
            chosen[name] = {key: value for key, value in options.items() if key != "progress"}
            return real(*args, **{**options, **SMALL[name]})

        monkeypatch.setattr(module, name, run)

    for name in SMALL:
        shrink(name)
    monkeypatch.setattr("paper.experiments.gmm.MOST_PASSES", 200)
    monkeypatch.setattr("paper.experiments.theory.ITERATIONS", 200)
    monkeypatch.setattr("paper.experiments.theory.MOST_EPOCHS", 15)
    monkeypatch.setattr(module, "docstring_corpora", lambda: {"toy": FRUIT.split("\n")})
    return chosen


@pytest.fixture
def _undrawn(monkeypatch):
    """Have empty figures, which take no time; two tests draw real ones."""

    def save(picture, folder):
        for kind in ("png", "svg"):
            (folder / f"{picture.name}.{kind}").touch()

    monkeypatch.setattr(module, "save_picture", save)
    monkeypatch.setattr("paper.reports.page.panel_svg", lambda panel: b"<svg/>")


undrawn = pytest.mark.usefixtures("_undrawn")


def press_ctrl_c(monkeypatch, name, job, share=0.0):
    """Press Ctrl-C when an experiment tells that it does a job, and that this share of the whole is done."""
    real = getattr(module, name)

    def run(*args, progress, **options):
        def show(doing, done):
            progress(doing, done)
            if doing == job and done >= share:
                signal.raise_signal(signal.SIGINT)

        return real(*args, progress=show, **options)

    monkeypatch.setattr(module, name, run)


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
    assert chosen == {"gmm_precision": {"runs": 1, "seed": 4}}
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
    chosen = {}

    def stand_in(name):
        def run(*args, progress, **options):
            chosen[name] = options
            known = {"theory_in_numbers": "theory", "compare_methods": "methods"}
            return Experiment(known.get(name, name), {}, (), interrupted=False)

        monkeypatch.setattr(module, name, run)

    for name in SMALL:
        stand_in(name)
    for quick in (False, True):
        reproduce(Request("all", quick, None, 7, [], tmp_path), Console(file=io.StringIO()))
        settings = ("known", "authors") if quick else ("known", "free", "authors")
        sizes = (1_000, 3_162, 10_000, 31_623) if quick else (1_000, 3_162, 10_000, 31_623, 100_000)
        assert chosen == {
            "gmm_precision": {"runs": 5, "seed": 7},  # quick as it is
            "gmm_scaling": {"runs": 5, "seed": 7, "settings": settings, "sizes": sizes},
            "plsa": {"runs": 1 if quick else 3, "epochs": 50 if quick else 60, "seed": 7},
            "theory_in_numbers": {
                "runs": 2 if quick else 5,
                "seed": 7,
                "sizes": (100, 316, 1_000) if quick else (100, 316, 1_000, 3_162, 10_000),
            },
            "compare_methods": {
                "runs": 1 if quick else 5,
                "seed": 7,
                "quick": quick,
                "sizes": (1_000, 3_162) if quick else (1_000, 10_000, 100_000, 1_000_000),
            },
        }


def test_progress_shows_what_is_done_and_the_time_left(tmp_path, monkeypatch):
    def slowly(*, progress, **options):
        for tenth in range(6):
            progress("fiem", tenth / 10)
            time.sleep(0.1)
        return Experiment("gmm-precision", {}, (), interrupted=True)

    monkeypatch.setattr(module, "gmm_precision", slowly)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    reproduce(Request("gmm-precision", True, 1, 0, [], tmp_path), console)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert re.search(r"gmm-precision: fiem\W+[1-5]0 of 100, 0:00:0\d elapsed, 0:00:0\d remaining", shown)


def test_a_command_in_the_report_can_be_given_again():
    request = Request("plsa", True, 2, 3, [Path("my texts/a.txt"), Path("b.txt")], Path("out"))
    assert request.command == (
        "python -m paper plsa --quick --runs 2 --seed 3 --corpus 'my texts/a.txt' --corpus b.txt --out out"
    )
    assert Request("all", False, None, 0, [], Path("out")).command == "python -m paper all --seed 0 --out out"
    assert Request("all", False, None, 0, [], Path("out")).names == module.NAMES


@undrawn
def test_ctrl_c_writes_what_is_done(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm_precision", "sem-vr", share=0.5)
    code, output = invoke("all", "--runs", 2, "--out", tmp_path)
    assert code == 130
    assert "Interrupted: shown and written is what was complete." in output
    assert "report.html" in output
    rows = read(tmp_path, "gmm-precision", PrecisionRow)
    assert {row.run for row in rows} == {"0", "1"}
    assert {row.method for row in rows if row.run == "1"} == {"em", "sem", "iem"}
    assert "gmm_scaling" not in chosen  # Ctrl-C ends all, not only the one experiment
    assert files(tmp_path) == {"gmm-precision.csv", "gmm-precision.png", "gmm-precision.svg", "report.html"}
    assert "Interrupted: only complete results are shown." in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


@undrawn
def test_ctrl_c_in_a_later_experiment_keeps_the_earlier_ones(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm_scaling", "known weights, n = 40")
    code, _ = invoke("all", "--runs", 1, "--out", tmp_path)
    assert code == 130
    assert files(tmp_path) == {"gmm-precision.csv", "gmm-precision.png", "gmm-precision.svg", "report.html"}
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<section id="gmm-scaling">' in report
    assert "gmm-scaling.csv" not in report


def test_ctrl_c_before_the_first_result(tmp_path, chosen, monkeypatch, invoke):
    press_ctrl_c(monkeypatch, "gmm_precision", "EM until convergence")
    code, output = invoke("gmm-precision", "--out", tmp_path)
    assert code == 130
    assert "nothing was written" in output
    assert not files(tmp_path)


@pytest.mark.parametrize("where", ["docstring_corpora", "read_corpora"])
def test_ctrl_c_while_texts_are_read(where, tmp_path, chosen, monkeypatch, invoke):
    monkeypatch.setattr(module, where, lambda *args: signal.raise_signal(signal.SIGINT))
    options = ["--corpus", tmp_path / "x.txt"] if where == "read_corpora" else []
    code, output = invoke("plsa", *options, "--out", tmp_path / "out")
    assert code == 130
    assert "nothing was written" in output
    assert not (tmp_path / "out").exists()


def test_ctrl_c_while_figures_are_drawn_keeps_the_numbers(tmp_path, chosen, monkeypatch, invoke):
    monkeypatch.setattr(module, "save_picture", lambda *args: signal.raise_signal(signal.SIGINT))
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
        corpus.write_text(FRUIT, encoding="utf-8")
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
@pytest.mark.parametrize("where", ["save_picture", "write_atomically"])
def test_a_full_disk_is_one_sentence(where, tmp_path, chosen, monkeypatch, invoke):
    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, where, no_space)
    code, output = invoke("gmm-precision", "--runs", 1, "--out", tmp_path)
    assert code == 1
    assert "could not be written" in output
    assert "No space left on device" in output


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
        request = Request("all", True, None, seed, [], tmp_path)
        experiments = module._run_all(request, None, Console(file=io.StringIO()))
        findings = [finding for e in experiments for finding in module.SECTIONS[e.name](e).findings]
        verdicts.append({finding.claim: finding.verdict for finding in findings})
    assert len(verdicts[0]) == 18
    assert {"agrees", "disagrees"} <= set(verdicts[0].values())
    assert verdicts[0] == verdicts[1] == verdicts[2]
