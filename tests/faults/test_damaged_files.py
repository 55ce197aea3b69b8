"""Damaged files of data, models and checkpoints in watched child processes.

Each may be taken or refused; a refusal is one sentence with the file's name. Whatever else happens is a
finding: a crash, a hang, too much memory, another error, a result that is not sound. Findings are reported by
class, with the first case of each: ``run_cases(function, [case])`` does it again.

``SWIFTEM_FUZZ_SECONDS`` sets how long each slow form runs, ``SWIFTEM_FUZZ_SEED`` where its seeds begin.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.watched import campaign, for_a_while, run_cases

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

KINDS = ("uci", "lda-c", "matrixmarket", "npz", "npy", "parquet", "csv", "text", "folder")
FUNCTIONS = {
    "data": ("faults.damaged_files:read_damaged", 5.0),
    "model": ("faults.kept_files:try_model", 100.0),
    "folder": ("faults.kept_files:try_folder", 100.0),
}
"""Functions of cases, and the seconds that one may take: models and folders are made, and compile, before."""


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWIFTEM_KEPT", str(tmp_path_factory.mktemp("kept")))
        yield


def cases(what: str, first: int = 0) -> Iterator[Any]:
    seeds = itertools.count(first)
    return ((kind, seed) for seed in seeds for kind in KINDS) if what == "data" else seeds


def damage(what: str, chosen: Iterable[Any]) -> Counter[str]:
    """Do cases, each with a gigabyte; check that there are no findings, and return how they ended."""
    function, seconds = FUNCTIONS[what]
    ends, findings = campaign(function, chosen, 10**9, seconds)
    assert not findings, "\n".join(findings)
    return ends


@pytest.mark.parametrize(
    ("what", "most", "least"),
    [
        ("data", 300, {"taken": 30, "refused": 30}),
        ("model", 90, {"refused": 30, "works": 5}),
        ("folder", 60, {"refused": 10, "same": 10}),
    ],
)
def test_some_files(what: str, most: int, least: dict[str, int]) -> None:
    ends = damage(what, itertools.islice(cases(what), most))
    assert all(ends[end] >= count for end, count in least.items()), ends


@pytest.mark.slow
@pytest.mark.parametrize("what", FUNCTIONS)
def test_many_files(what: str) -> None:
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "300"))
    seed = int(os.environ.get("SWIFTEM_FUZZ_SEED", "1000000"))
    print(dict(damage(what, for_a_while(cases(what, seed), seconds))))


MISBEHAVING = {
    "returns": ("returned", "", 7),
    "raises": ("raised", "KeyError", "'raises'"),
    "is killed": ("crashed", "SIGSEGV", None),
    "hangs": ("hung", "", None),
    "takes memory": ("memory", "", None),
    "asks for memory": ("raised", "MemoryError", None),
}


def test_what_goes_wrong_is_noticed() -> None:
    """Each in turn, so that a child that ended has a successor."""
    order = [*MISBEHAVING, "returns"]
    found = list(run_cases("faults.misbehaving:misbehave", order, memory=100 * 10**6, seconds=1.0))
    assert [outcome.case for outcome in found] == order
    for outcome in found:
        kind, what, value = MISBEHAVING[outcome.case]
        assert outcome.kind == kind
        assert outcome.what.startswith(what)
        assert value in (None, outcome.value)
