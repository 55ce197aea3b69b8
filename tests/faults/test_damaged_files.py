"""Damaged files of data, models and checkpoints in watched child processes.

Each may be taken or refused; a refusal is one sentence with the file's name. Whatever else happens is a
finding: a crash, a hang, too much memory, another error, a result that is not sound. Findings are reported by
class, with the first case of each: ``run_cases(function, [case])`` does it again.

``SWIFTEM_FUZZ_SECONDS`` sets how long each slow form runs, ``SWIFTEM_FUZZ_SEED`` where its seeds begin.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from faults.watched import Outcome, run_cases

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

KINDS = ("uci", "lda-c", "matrixmarket", "npz", "npy", "parquet", "csv", "text", "folder")
MEMORY, HANG = 10**9, 5.0
"""Bytes beyond the imports, and seconds, from which on a small file is a finding."""


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWIFTEM_KEPT", str(tmp_path_factory.mktemp("kept")))
        yield


def seeds(what: str, seconds: float, first: int, most: int) -> Iterator[Any]:
    """Yield cases until the time is over or there were enough; time begins with the first answer."""
    end = inf
    for number in range(most):
        if number >= len(KINDS) and monotonic() > end:
            return
        if what == "data":
            yield KINDS[number % len(KINDS)], first + number // len(KINDS)
        else:
            yield first + number
        end = min(end, monotonic() + seconds)


FUNCTIONS = {
    "data": "faults.damaged_files:read_damaged",
    "model": "faults.kept_files:try_model",
    "folder": "faults.kept_files:try_folder",
}


def findings_of(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Yield the class of each finding."""
    if outcome.kind != "returned":
        yield outcome.kind, "" if outcome.kind == "memory" else outcome.what, outcome.where
    elif isinstance(outcome.value, dict):
        yield from (tuple(finding[:4]) for finding in outcome.value["findings"])
    elif outcome.value[2]:
        yield tuple(outcome.value[1:])


def campaign(
    what: str, *, seconds: float = inf, first: int = 0, most: int = 10**9
) -> tuple[Counter[str], list[str]]:
    """Return how cases ended, and a line for each class of findings."""
    found: dict[tuple[str, ...], list[Outcome]] = {}
    ends: Counter[str] = Counter()
    # The first case makes what is changed, and compiles.
    patience = HANG if what == "data" else 100.0
    for outcome in run_cases(FUNCTIONS[what], seeds(what, seconds, first, most), MEMORY, patience):
        if isinstance(outcome.value, dict):
            ends += Counter({end: outcome.value[end] for end in ("taken", "refused")})
        elif outcome.kind == "returned":
            ends[outcome.value[1]] += 1
        for key in findings_of(outcome):
            found.setdefault(key, []).append(outcome)
    return ends, [
        f"{len(outcomes)} × {', '.join(map(str, key))}: {outcomes[0].case} {outcomes[0].value}"
        for key, outcomes in found.items()
    ]


@pytest.mark.parametrize(
    ("what", "options", "least"),
    [
        ("data", {"seconds": 2.0, "most": 900}, {"taken": 1, "refused": 1}),
        ("model", {"most": 90}, {"refused": 30, "works": 5}),
        ("folder", {"most": 60}, {"refused": 10, "same": 10}),
    ],
)
def test_some_files(what: str, options: dict[str, Any], least: dict[str, int]) -> None:
    ends, findings = campaign(what, **options)
    assert not findings, "\n".join(findings)
    assert all(ends[end] >= count for end, count in least.items()), ends


@pytest.mark.slow
@pytest.mark.parametrize("what", FUNCTIONS)
def test_many_files(what: str) -> None:
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "300"))
    seed = int(os.environ.get("SWIFTEM_FUZZ_SEED", "1000000"))
    ends, findings = campaign(what, seconds=seconds, first=seed)
    print(f"{dict(ends)}, {len(findings)} classes of findings")
    assert not findings, "\n".join(findings)


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
