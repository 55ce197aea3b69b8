"""``swiftem topics`` and Ctrl-C, at every stage and in a terminal."""

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

from swiftem import PLSA
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


def test_ctrl_c_before_the_first_pass(run, folder, tmp_path, monkeypatch):
    from swiftem.topics.compute.corpus import SmallDocuments

    real = SmallDocuments.em_pass

    def press(self, *args):
        monkeypatch.setattr(SmallDocuments, "em_pass", real)
        signal.raise_signal(signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(SmallDocuments, "em_pass", press)
    output = run(folder, "--topics", 2, "--out", tmp_path / "out", code=130)
    assert "Interrupted before there were topics; nothing was written." in output
    assert not (tmp_path / "out").exists()


def test_ctrl_c_while_the_corpus_is_read(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "swiftem.cli.topics_files.read_corpus", lambda *a, **k: signal.raise_signal(signal.SIGINT)
    )
    assert "Interrupted; nothing was written." in run(folder, "--out", tmp_path / "out", code=130)


def test_ctrl_c_while_the_model_is_saved(run, folder, tmp_path, monkeypatch):
    real = PLSA.save

    def press(self, file):
        signal.raise_signal(signal.SIGINT)
        real(self, file)

    monkeypatch.setattr(PLSA, "save", press)
    output = run(folder, "--topics", 2, "--out", tmp_path / "out", code=130)
    assert "Interrupted. Wrote model.swiftem." in output
    assert files(tmp_path / "out") == {"model.swiftem"}


def test_ctrl_c_while_results_are_written(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "swiftem.cli.topics_files.topics_page", lambda *a, **k: signal.raise_signal(signal.SIGINT)
    )
    output = run(folder, "--topics", 2, "--out", tmp_path / "out", code=130)
    assert "Wrote model.swiftem, topic_words.parquet, document_topics.parquet." in output
    assert "Page:" not in output
    assert files(tmp_path / "out") == FILES - {"topics.html"}


@pytest.mark.skipif(os.name != "posix", reason="terminals as files are POSIX")
@pytest.mark.slow
def test_progress_and_ctrl_c_in_a_terminal(tmp_path):
    """The real thing: a bar that moves, ^C, no traceback, and the files."""
    # Words drawn at random never converge within the time.
    rng = np.random.default_rng(0)
    counts = tmp_path / "counts.npz"
    sp.save_npz(counts, sp.csr_array(rng.poisson(0.2, size=(2000, 500))))
    command = [sys.executable, "-m", "swiftem", "topics", str(counts), "--topics", "40"]
    command += ["--out", str(tmp_path / "out")]
    master, slave = os.openpty()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave,
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
        if not pressed and re.search(rb"log-likelihood -", screen):
            process.send_signal(signal.SIGINT)
            pressed = True
    os.close(master)
    shown = screen.decode(errors="replace")
    assert process.wait(timeout=60) == 130, shown[-2000:]
    assert "Traceback" not in shown
    assert "Interrupted. Wrote" in re.sub(r"\s+", " ", shown)
    assert "topics.html" in files(tmp_path / "out")
