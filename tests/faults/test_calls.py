"""Calls with odd and bad arguments, in child processes: a sound result or one sentence, and no crash.

``SWIFTEM_FUZZ_SECONDS`` is for how long the slow test goes on, from a call that depends on the day.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("call_fuzzer.py")


def fuzz(*arguments):
    """Return what the fuzzer says."""
    command = [sys.executable, str(FUZZER), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_the_first_calls():
    done = fuzz("--count", 200)
    assert done.stdout.startswith("200 calls, "), done.stderr[-1000:]
    assert " 0 findings." in done.stdout, done.stdout
    assert int(done.stdout.split()[2]) > 40  # results: not everything is refused


def test_calls_that_hypothesis_chooses():
    done = fuzz("--hypothesis", 40)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_calls_for_a_while():
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "120"))
    first = int(time.time()) // 86_400 * 10**6
    done = fuzz("--first", first, "--seconds", seconds)
    print(done.stdout)
    assert " 0 findings." in done.stdout, done.stdout


def test_the_fuzzer_notices():
    """A crash, an error that is no sentence, a warning and a result that is not finite are findings."""
    sys.path.insert(0, str(FUZZER.parent))
    try:
        import call_fuzzer
    finally:
        sys.path.pop(0)
    for error in (
        IndexError("list index out of range"),
        ValueError("nobody in the library raised this."),
        KeyError("a"),
    ):
        try:
            raise error
        except Exception as raised:
            assert call_fuzzer.problem_of(raised)
    assert call_fuzzer.problem_with((1.0, [float("nan")]))
    assert not call_fuzzer.problem_with((1.0, "a", None))
