"""Changed model files and folders of checkpoints: refused by a sentence, or as good as before.

A few seconds of it in the quick suite; ``SWIFTEM_FUZZ_SECONDS`` sets how long each slow form takes. Cases
have numbers: ``python tests/_support/kept_server.py FOLDER`` and a line ``{"do": "model", "seed": 7}`` does
one again.
"""

import json
import os
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import pytest

SUPPORT = Path(__file__).parents[1] / "_support"
LONGEST = 5.0
"""Seconds that a case may take."""
START = 600.0
"""Seconds that the process may take to begin: it compiles, where nothing is in the cache."""


class Server:
    """The process that does the cases; where it crashes or hangs, another takes its place."""

    def __init__(self, folder):
        self._folder = folder
        self._start()

    def _start(self):
        paths = [str(SUPPORT), *sys.path]
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "kept_server.py"), str(self._folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
        ready = self._hear(START)
        if ready != {"ready": True}:
            self.close()
            raise AssertionError(f"the process does not begin: {ready}")

    def _hear(self, seconds):
        """Return an answer, or how the process ended instead."""
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        if not ready:
            self._process.kill()
        ended = self._process.wait()
        return {
            "done": "",
            "ended": "hang" if not ready else f"crash, exit status {ended}",
            "fault": "it ended",
        }

    def do(self, what, seed):
        """Do a case; return what was done, how it ended, and what is wrong with that."""
        self._process.stdin.write(json.dumps({"do": what, "seed": seed}) + "\n")
        self._process.stdin.flush()
        answer = self._hear(LONGEST)
        if self._process.poll() is not None:
            self.close()
            self._start()
        return answer

    def close(self):
        with self._process:  # closes its ends of the pipes, and waits
            self._process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("kept"))
    yield server
    server.close()


def campaign(server, what, *, count=None, seconds=None, first=0):
    """Do cases for so many, or so long; return how they ended, and one line for each class of finding."""
    began, ends, findings = perf_counter(), Counter(), {}
    seed = first
    while (count is None or seed < first + count) and (seconds is None or perf_counter() - began < seconds):
        answer = server.do(what, seed)
        ends[answer["ended"]] += 1
        if answer["fault"]:
            kind = f"{answer['ended']}: {answer['fault']}"
            seen, example = findings.get(kind, (0, f"seed {seed}, {answer['done']}"))
            findings[kind] = seen + 1, example
        seed += 1
    lines = [f"{seen} times {kind} ({example})" for kind, (seen, example) in sorted(findings.items())]
    return ends, lines


def test_changed_model_files(server):
    ends, findings = campaign(server, "model", count=90)
    assert not findings, "\n".join(findings)
    assert ends["refused"] > 30
    assert ends["works"] > 5


def test_changed_folders(server):
    ends, findings = campaign(server, "folder", count=60)
    assert not findings, "\n".join(findings)
    assert ends["refused"] > 10
    assert ends["same"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("what", ["model", "folder"])
def test_many_changes(server, what):
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "60"))
    first = int(os.environ.get("SWIFTEM_FUZZ_FIRST", "1000"))
    ends, findings = campaign(server, what, seconds=seconds, first=first)
    print(f"{sum(ends.values())} changed {what}s: {dict(ends)}")
    assert not findings, "\n".join(findings)
