"""Fits that are killed at random moments, or end early, and resume: here or in a new process, to the bit.

``SWIFTEM_KILLS`` sets how many kills the slow form has.
"""

import os
import random
import re
import signal
from contextlib import suppress
from time import perf_counter, sleep

import pytest
from dying_fits import Death, dying
from forks import Server
from resumable import CASES, TYPES

from swiftem.core.checkpoint import read_state
from swiftem.core.state_file import REGISTERED

SHORT = (
    "run unit em",
    "run full iem",
    "run tokens sem-vr",
    "run float32 fiem",
    "GaussianMixture full fiem",
    "run unit sem",
    "PLSA auto",
    "run file fiem",
    "PLSA file auto",
)
"""Cases of the short form."""
NAMED = re.compile(rb'"type": "([^"]+)"')
IN_RECORDS = {"GaussianStatistics", "MixtureStatistics", "PLSAStatistics"}
"""Types that only ``record`` may return, as in the case of records."""


@pytest.fixture(scope="module")
def server():
    server = Server("fork_server.py")
    yield server
    server.close()


def attempt(server, case, folder, out, delay=None, **options):
    """Fit, kill the process after ``delay`` seconds, and return whether that was before its end."""
    server.tell(do="fit", case=case, folder=str(folder), out=str(out), **options)
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
    wholes, seconds = {}, {}
    killed = fits = resumed = 0
    while killed < kills:
        case = cases[fits % len(cases)]
        here = folder / str(fits)
        here.mkdir()
        out, options = here / "out", {"length": 5}
        if case not in wholes:
            server.tell(do="whole", case=case, out=str(here / "whole"), **options)
            server.hear()
            wholes[case] = (here / "whole").read_bytes()
            began = perf_counter()  # how long it takes with checkpoints
            attempt(server, case, here / "timed", out, **options)
            seconds[case] = perf_counter() - began
            assert out.read_bytes() == wholes[case], f"{case}: checkpoints change the result"
            out.unlink()
        for _ in range(min(of_one, kills - killed)):
            delay, threads = rng.uniform(0.0, seconds[case]), rng.choice((1, 2))
            killed += attempt(server, case, here / "kept", out, delay, threads=threads, **options)
            if out.exists():
                break
            resumed += has_checkpoint(here / "kept")
        if not out.exists():
            attempt(server, case, here / "kept", out, threads=rng.choice((1, 2)), **options)
        assert out.read_bytes() == wholes[case], f"{case}: another result after kills"
        fits += 1
    return fits, resumed


def test_five_kills(server, tmp_path):
    fits, resumed = campaign(server, tmp_path, SHORT, 5, of_one=2, seed=0)
    assert fits >= 3
    assert resumed >= 1


@pytest.mark.slow
def test_many_kills(server, tmp_path):
    kills = int(os.environ.get("SWIFTEM_KILLS", "200"))
    cases = random.Random(0).sample(sorted(CASES), 40)
    fits, resumed = campaign(server, tmp_path, cases, kills, of_one=5, seed=1)
    print(f"{kills} kills of {fits} fits; {resumed} had a checkpoint; all results exact")
    assert resumed > kills / 3


@pytest.fixture(scope="module")
def new_server():
    """Return a process that has imported ``swiftem`` alone."""
    server = Server("fork_server.py")
    yield server
    server.close()


def resumes(server, folder, case):
    """End a case at its third checkpoint, resume it elsewhere, and return the types in the folder."""
    kept, out = folder / "kept", folder / "out"
    with dying(3), pytest.raises(Death):
        CASES[case](str(kept), False)
    files = [path for pattern in ("state", "records") for path in kept.rglob(pattern)]
    types = {name.decode() for path in files for name in NAMED.findall(path.read_bytes())}
    assert not [name for name in types if name.startswith("swiftem.")], "a type is not registered"
    attempt(server, case, kept, out, as_new=True, resume=True)
    assert out.read_bytes() == CASES[case](None)
    return types


@pytest.mark.parametrize("case", TYPES)
def test_a_new_process_resumes(new_server, tmp_path, case):
    assert resumes(new_server, tmp_path, case) >= TYPES[case]


def test_each_type_has_a_case():
    assert set().union(*TYPES.values()) >= set(REGISTERED) - IN_RECORDS


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in TYPES])
def test_a_new_process_resumes_every_pair(new_server, tmp_path, case):
    resumes(new_server, tmp_path, case)
