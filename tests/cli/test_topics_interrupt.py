"""``swiftem topics`` and Ctrl-C, at every stage and in a terminal."""

import os
import pkgutil
import re
import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from terminals import screen_of

from swiftem.fit.driver import StartWatch

FILES = {"model.swiftem", "topic_words.parquet", "document_topics.parquet", "topics.html"}


def files(out):
    return {file.name for file in out.iterdir()}


def press_ctrl_c(monkeypatch, after):
    """Press Ctrl-C after so many passes."""
    real = StartWatch.__call__

    def look(self, moment, theta):
        if moment.passes >= after:
            signal.raise_signal(signal.SIGINT)
        return real(self, moment, theta)

    monkeypatch.setattr(StartWatch, "__call__", look)


def test_ctrl_c_writes_what_there_is(run, folder, tmp_path, monkeypatch):
    press_ctrl_c(monkeypatch, after=2)
    output = run(folder, "--topics", 2, "--out", tmp_path / "out", code=130)
    assert "Interrupted after 2 passes" in output
    assert "Interrupted. Wrote model.swiftem, topic_words.parquet" in output
    assert files(tmp_path / "out") == FILES
    assert "Interrupted after 2 passes" in (tmp_path / "out/topics.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("place", "said", "written"),
    [
        ("cli.topics_files.read_corpus", "Interrupted; nothing was written.", None),
        (
            "topics.compute.corpus.SmallDocuments.em_pass",
            "Interrupted; nothing was written.",
            None,
        ),
        ("PLSA.save", "Interrupted. Wrote model.swiftem.", {"model.swiftem"}),
        (
            "cli.topics_files.topics_page",
            "Wrote model.swiftem, topic_words.parquet, document_topics.parquet.",
            FILES - {"topics.html"},
        ),
        ("cli.topics.open_model", "nothing was written", None),
    ],
)
def test_ctrl_c_at_every_stage(run, folder, tmp_path, monkeypatch, place, said, written):
    real = pkgutil.resolve_name(f"swiftem.{place}")

    def press(*given, **options):
        signal.raise_signal(signal.SIGINT)
        if place.endswith("em_pass"):
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(f"swiftem.{place}", press)
    given = ["--apply", tmp_path] if "open_model" in place else ["--topics", 2]
    output = run(folder, *given, "--out", tmp_path / "out", code=130)
    assert said in output
    assert "Page:" not in output
    assert (files(tmp_path / "out") if (tmp_path / "out").exists() else None) == written


@pytest.mark.skipif(os.name != "posix", reason="terminals as files are POSIX")
@pytest.mark.slow
def test_progress_and_ctrl_c_in_a_terminal(tmp_path):
    """The real thing: a bar that moves, ^C, no traceback, and the files."""
    # Words drawn at random never converge within the time.
    rng = np.random.default_rng(0)
    counts = tmp_path / "counts.npz"
    sp.save_npz(counts, sp.csr_array(rng.poisson(0.2, size=(2000, 500))))
    command = [sys.executable, "-m", "swiftem", "topics", counts, "--topics", "40", "--out", tmp_path / "out"]
    shown, status = screen_of(command, press_at=rb"log-likelihood -")
    assert status == 130, shown[-2000:]
    assert "Traceback" not in shown
    assert "Interrupted. Wrote" in re.sub(r"\s+", " ", shown)
    assert "topics.html" in files(tmp_path / "out")
