"""Ctrl-C at random moments: no traceback from the command line, and a process that can fit afterwards.

``SWIFTEM_INTERRUPTS`` sets how many the slow form has.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX")

# Python's own start, and the few modules before ``main``, are nobody's to guard.
COMMAND = "from swiftem.cli import main\nprint('ready', flush=True)\nmain()\n"

LIBRARY = """
import signal, sys
import numpy as np  # half an import of it cannot be mended

def fit(name):
    import swiftem
    X = np.random.default_rng(0).normal(size=(5_000, 3))
    if name == "PLSA":
        import scipy.sparse as sp
        counts = sp.csr_array(np.random.default_rng(0).poisson(0.2, size=(400, 100)))
        return swiftem.PLSA(4, random_state=0, max_iter=20, tol=0.0).fit(counts).components_
    if name == "run":
        model = swiftem.models.GaussianMixtureModel(3)
        method = swiftem.methods.FastIncrementalEM(0.01)
        return swiftem.run(model, X, method, n_iter=20_000, seed=0).theta.means
    return swiftem.GaussianMixture(4, random_state=0, max_iter=20, tol=0.0).fit(X).means_

print("ready", flush=True)
try:
    fit(sys.argv[1])
except KeyboardInterrupt:
    pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(fit(sys.argv[1]).tobytes().hex())
"""


def interrupted(code: str, arguments: list[str], delay: float | None) -> tuple[int, str, str, float]:
    """Run a program, press Ctrl-C ``delay`` seconds after its first line; return what came of it."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Also where whoever runs the tests ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = perf_counter()
        if delay is not None:
            sleep(delay)
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors, perf_counter() - began


def command_line(folder: Path, count: int, seed: int) -> int:
    """Interrupt ``swiftem fit`` and ``swiftem topics``; return how often it was before their end."""
    rng = random.Random(seed)
    table, text = folder / "rows.csv", folder / "texts.txt"
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
    words = [f"word{first}{last}" for first in "abcdefgh" for last in "abcdefgh"]
    text.write_text("\n".join(" ".join(rng.choices(words, k=30)) for _ in range(200)))
    commands = {
        "fit": ["fit", str(table), "-k", "3", "--tol", "0", "--max-iter", "30"],
        "topics": ["topics", str(text), "--topics", "3"],
    }
    seconds, pressed = {}, 0
    for number in range(count):
        name = ("fit", "topics")[number % 2]
        out = folder / f"out-{number}"
        arguments = [*commands[name], "--out", str(out)]
        if name not in seconds:
            code, _, errors, seconds[name] = interrupted(
                COMMAND, [*commands[name], "--out", f"{out}-0"], None
            )
            assert code == 0, errors
        code, output, errors, _ = interrupted(COMMAND, arguments, rng.uniform(0.0, 1.1 * seconds[name]))
        told = f"{name}, interrupt {number}: exit {code}\n{output}\n{errors}"
        assert "Traceback" not in output + errors, told
        assert code in (0, 130), told
        if code == 130:
            pressed += 1
            assert "nterrupted" in output + errors, told
        if name == "fit" and out.exists():
            from swiftem import GaussianMixture

            assert np.isfinite(GaussianMixture.load(out).means_).all(), told
    left = [file.name for file in folder.rglob(".*")]
    assert left == [], "unfinished files stay behind"
    return pressed


def library(count: int, seed: int) -> None:
    """Interrupt fits, from the first import on: the next fit of the same process is as good as any."""
    rng = random.Random(seed)
    wholes: dict[str, tuple[str, float]] = {}
    for number in range(count):
        name = ("mixture", "PLSA", "run")[number % 3]
        if name not in wholes:
            code, output, errors, seconds = interrupted(LIBRARY, [name], None)
            assert code == 0, errors
            wholes[name] = output, seconds / 1.5  # it fits twice
        whole, seconds = wholes[name]
        code, output, errors, _ = interrupted(LIBRARY, [name], rng.uniform(0.0, seconds))
        assert (code, output) == (0, whole), f"{name}, interrupt {number}: exit {code}\n{errors}"


def test_an_interrupt_of_the_command_line(tmp_path: Path) -> None:
    command_line(tmp_path, 1, seed=0)


def test_an_interrupt_of_a_fit() -> None:
    library(1, seed=3)


@pytest.mark.slow
def test_many_interrupts(tmp_path: Path) -> None:
    count = int(os.environ.get("SWIFTEM_INTERRUPTS", "200"))
    pressed = command_line(tmp_path, count, seed=1)
    library(count, seed=2)
    print(f"{count} interrupts of the command line, {pressed} before its end, and {count} of fits")
    assert pressed > count / 2
