"""Damaged and forged files of nine kinds, read in watched child processes by every reader of swiftem.data.

A mutant may be taken or refused; a refusal is one sentence with the file's name. Whatever else happens is a
finding: a crash, a hang, too much memory, another error, a result that is not sound. Findings are reported by
class, and the first file of each class is kept.

``SWIFTEM_FUZZ_SECONDS`` sets how long the slow form runs, ``SWIFTEM_FUZZ_SEED`` where its seeds begin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from pathlib import Path
from time import monotonic

import pytest
from faults.file_mutants import KINDS, mutant
from faults.file_readers import complaint
from faults.watched import Outcome, run_cases

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

MEMORY, HANG = 10**9, 5.0
"""Bytes beyond the imports, and seconds, from which on a small file is a finding."""


def cases(seconds: float, seed: int, most: int) -> Iterator[tuple[str, int]]:
    """Yield kinds in turn with seeds, until the time is over or there were enough; all kinds at least once.

    Time begins with the first answer: the child has its imports to do.
    """
    end = inf
    for number in range(most):
        if number >= len(KINDS) and monotonic() > end:
            return
        yield KINDS[number % len(KINDS)], seed + number // len(KINDS)
        end = min(end, monotonic() + seconds)


def classes_of(outcome: Outcome) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the class of each finding, and what the first of it said."""
    kind = outcome.case[0]
    if outcome.kind != "returned":
        what = "" if outcome.kind == "memory" else outcome.what
        yield (kind, outcome.kind, what, outcome.where), f"{outcome.what} {outcome.value or ''}"
        return
    for reader, error, where, wrong, sentence in outcome.value["findings"]:
        yield (kind, reader, error, where, wrong), sentence


def campaign(folder: Path, seconds: float, seed: int, most: int) -> tuple[dict[str, int], list[str]]:
    """Return numbers of files, acceptances and refusals, and a line for each class of findings."""
    found: dict[tuple[str, ...], tuple[int, str, str]] = {}
    numbers = dict.fromkeys(("files", "taken", "refused", "megabytes"), 0)
    for outcome in run_cases("faults.file_readers:read_mutant", cases(seconds, seed, most), MEMORY, HANG):
        numbers["files"] += 1
        numbers["megabytes"] = max(numbers["megabytes"], outcome.peak // 10**6)
        if outcome.kind == "returned":
            numbers["taken"] += outcome.value["taken"]
            numbers["refused"] += outcome.value["refused"]
        for key, sentence in classes_of(outcome):
            often, _, _ = found.get(key, (0, "", ""))
            if not often:
                found[key] = 0, sentence, str(keep(folder, outcome.case, len(found)))
            found[key] = often + 1, *found[key][1:]
    lines = [
        f"{often} × {', '.join(key)}: {said[:200]} ({kept})" for key, (often, said, kept) in found.items()
    ]
    return numbers, lines


def keep(folder: Path, case: tuple[str, int], number: int) -> Path:
    """Write the files of a mutant to a folder whose name says how to make it again."""
    kind, seed = case
    kept = folder / f"{number}-{kind}-{seed}"
    for name, content in mutant(kind, seed).items():
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_bytes(content)
    return kept


def test_some_seconds_of_damaged_files(tmp_path):
    numbers, findings = campaign(tmp_path, 2.0, seed=0, most=900)
    assert not findings, "\n".join(findings)
    assert numbers["taken"] > 0
    assert numbers["refused"] > 0


@pytest.mark.slow
def test_damaged_files(tmp_path):
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "600"))
    seed = int(os.environ.get("SWIFTEM_FUZZ_SEED", "1000000"))
    numbers, findings = campaign(tmp_path, seconds, seed, most=10**9)
    print(f"{numbers}, {len(findings)} classes of findings")
    assert not findings, "\n".join(findings)


MISBEHAVING = {
    "returns": ("returned", "", 7),
    "raises": ("raised", "KeyError", "'raises'"),
    "is killed": ("crashed", "SIGSEGV", None),
    "hangs": ("hung", "", None),
    "takes memory": ("memory", "", None),
    "asks for memory": ("raised", "MemoryError", None),
}


def test_what_goes_wrong_is_noticed():
    """Each in turn, so that a child that ended has a successor."""
    order = [*MISBEHAVING, "returns"]
    found = list(run_cases("faults.misbehaving:misbehave", order, memory=100 * 10**6, seconds=1.0))
    assert [outcome.case for outcome in found] == order
    for outcome in found:
        kind, what, value = MISBEHAVING[outcome.case]
        assert outcome.kind == kind
        assert outcome.what.startswith(what)
        assert value in (None, outcome.value)


REFUSALS = {
    "a sentence": (ValueError("toy.npz must be whole, got a damaged one."), ""),
    "a question": (TypeError("toy.npz has no column 'a': did you mean 'b'?"), ""),
    "of the system": (PermissionError("toy.npz cannot be read (permission denied)."), ""),
    "another kind": (KeyError("toy.npz must be whole."), "not a refusal"),
    "no decoding": (UnicodeDecodeError("utf-8", b"toy.npz.", 0, 1, "toy.npz."), "not a refusal"),
    "two lines": (ValueError("toy.npz must be whole,\ngot a damaged one."), "not one sentence"),
    "no end": (ValueError("toy.npz must be whole"), "not one sentence"),
    "no name": (ValueError("it must be whole."), "does not name the file"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_refusal_is(case):
    error, expected = REFUSALS[case]
    assert complaint(error, {"toy.npz"}) == expected


def test_a_mutant_is_a_function_of_its_seed():
    for kind in KINDS:
        assert mutant(kind, 3) == mutant(kind, 3)
        assert mutant(kind, 3) != mutant(kind, 4)
