"""Fits that are killed at random moments, several times each, end exactly where the others do.

``SWIFTEM_KILLS`` sets how many kills the slow form has.
"""

import os
import random
import signal
from contextlib import suppress
from time import perf_counter, sleep

import pytest
from fault_cases import CASES, SHORT
from forks import Server

from swiftem.core.checkpoint import read_state


@pytest.fixture(scope="module")
def server():
    server = Server("fault_server.py")
    yield server
    server.close()


def attempt(server, case, folder, out, threads, delay=None):
    """Fit, kill the process after ``delay`` seconds, and return whether that was before its end."""
    server.tell(do="fit", case=case, folder=str(folder), out=str(out), threads=threads)
    child = server.hear()["child"]
    if delay is not None:
        sleep(delay)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    ended = server.hear()["ended"]
    error = out.with_name(f"{out.name}.error")
    assert not error.exists(), f"{case}: {error.read_text()}"
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def has_checkpoint(folder):
    """Return whether a fit or a run was killed after its first checkpoint."""
    return any(read_state(state.parent).number for state in folder.rglob("state"))


def campaign(server, folder, cases, kills, of_one, seed):
    """Kill fits of each case in turn, each at most ``of_one`` times, until there were so many kills.

    Return how many fits there were, and how often one went on from a checkpoint.
    """
    rng = random.Random(seed)
    wholes, lengths = {}, {}
    killed = fits = resumed = 0
    while killed < kills:
        case = cases[fits % len(cases)]
        here = folder / str(fits)
        here.mkdir()
        if case not in wholes:
            server.tell(do="whole", case=case, out=str(here / "whole"))
            server.hear()
            wholes[case] = (here / "whole").read_bytes()
            began = perf_counter()  # how long it takes with checkpoints
            attempt(server, case, here / "timed", here / "out", 1)
            lengths[case] = perf_counter() - began
            assert (here / "out").read_bytes() == wholes[case], f"{case}: checkpoints change the result"
            (here / "out").unlink()
        for _ in range(min(of_one, kills - killed)):
            delay = rng.uniform(0.0, lengths[case])
            killed += attempt(server, case, here / "kept", here / "out", rng.choice((1, 2)), delay)
            if (here / "out").exists():
                break
            resumed += has_checkpoint(here / "kept")
        if not (here / "out").exists():
            attempt(server, case, here / "kept", here / "out", rng.choice((1, 2)))
        assert (here / "out").read_bytes() == wholes[case], f"{case}: another result after kills"
        fits += 1
    return fits, resumed


def test_five_kills(server, tmp_path):
    fits, resumed = campaign(server, tmp_path, SHORT, 5, of_one=2, seed=0)
    assert fits >= 3
    assert resumed >= 1


@pytest.mark.slow
def test_many_kills(server, tmp_path):
    kills = int(os.environ.get("SWIFTEM_KILLS", "200"))
    fits, resumed = campaign(server, tmp_path, tuple(CASES), kills, of_one=5, seed=1)
    print(f"{kills} kills of {fits} fits; {resumed} had a checkpoint; all results exact")
    assert resumed > kills / 3
