"""Run a function on many cases in a child process that is watched: crashes, hangs, memory and errors.

``run_cases("module:function", cases, memory, seconds)`` yields an :class:`Outcome` for each case. Cases are
what JSON can hold. The child runs them one after the other; where it dies, hangs or takes too much memory,
the case that was under way is named, and another child goes on with the next one.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOM = 512 << 20
"""Addresses that a child may have beyond ``memory``: stacks of threads and what allocators reserve."""
STARTING = 120.0
"""Seconds that a child may take for its imports."""
PATIENCE = 6
"""A case may take so many times ``seconds`` by the clock where it does not get the processor."""
QUIET = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}  # fmt: skip
"""Allocators that take addresses as they need them, so that a limit on these is one on memory."""
FRAME = re.compile(r'File "([^"]+)", line \d+,? in (\S+)')


class Outcome(NamedTuple):
    """What became of a case.

    ``kind`` is "returned", "raised", "crashed", "hung" or "memory"; ``what`` the type of the error or the
    signal; ``where`` the innermost function of swiftem, as "file:function"; ``value`` what was returned, or
    the error's sentence.
    """

    case: Any
    kind: str
    what: str = ""
    where: str = ""
    value: Any = None


class Verdict(NamedTuple):
    """What the function of a campaign says of a case: how it ended, the class of what is wrong, and words."""

    end: str
    wrong: str
    words: str


def campaign(
    function: str, cases: Iterable[Any], memory: int, seconds: float
) -> tuple[Counter[str], list[str]]:
    """Do cases in children; return how they ended, and a line for each class of findings with its first case.

    ``function`` returns a list of verdicts; the other arguments are those of :func:`run_cases`.
    """
    ends, found = Counter[str](), dict[str, list[str]]()
    for outcome in run_cases(function, cases, memory, seconds):
        died = Verdict(outcome.kind, f"{outcome.kind} {outcome.what} in {outcome.where}", str(outcome.value))
        for end, wrong, words in outcome.value if outcome.kind == "returned" else [died]:
            ends[end] += 1
            if wrong:
                found.setdefault(wrong, []).append(f"case {outcome.case}: {words}")
    return ends, [f"{len(places)} × {wrong}, {places[0]}" for wrong, places in sorted(found.items())]


def complaint(error: Exception, names: set[str]) -> str:
    """Return what is wrong with a refusal, which must be one sentence with one of the names, or nothing."""
    sentence = str(error)
    if not isinstance(error, ValueError | TypeError | OSError) or isinstance(error, UnicodeError):
        return f"refused by {type(error).__name__}"
    if "\n" in sentence or not sentence.endswith((".", "?")):
        return "refused by no sentence"
    return "" if any(name in sentence for name in names) else "refused without the name"


def for_a_while(cases: Iterable[Any], seconds: float) -> Iterator[Any]:
    """Yield cases until the time is over, which begins when the first one has ended."""
    end = inf
    for case in cases:
        if monotonic() > end:
            return
        yield case
        end = min(end, monotonic() + seconds)


def run_cases(
    function: str, cases: Iterable[Any], memory: int = 10**9, seconds: float = 5.0
) -> Iterator[Outcome]:
    """Yield the outcome of each case, in order.

    Parameters
    ----------
    function : str
        "module:function", importable with ``tests`` on the path.
    cases : iterable
        One after the other the function's argument.
    memory : int
        Bytes beyond those of the imports; to touch more is an outcome of its own.
    seconds : float
        Of the processor's time, after which a case hangs.
    """
    child: _Child | None = None
    try:
        for case in cases:
            child = child or _Child(function, memory, seconds)
            outcome = child.run(case)
            if outcome.kind in ("crashed", "hung"):
                child.close()
                child = None
            yield outcome
    finally:
        if child is not None:
            child.close()


class _Child:
    def __init__(self, function: str, memory: int, seconds: float) -> None:
        self._seconds = seconds
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        paths = os.pathsep.join([str(HERE.parent), str(HERE.parent / "_support"), *sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(HERE / "watched.py"), function, str(memory), str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env=os.environ | QUIET | {"PYTHONPATH": paths},
        )  # fmt: skip
        if self._hear(STARTING) is None:
            log = self._said()
            self.close()
            raise RuntimeError(f"{function} could not be imported by a child: {log}")

    def run(self, case: Any) -> Outcome:
        assert self._process.stdin is not None
        before = self._log.seek(0, os.SEEK_END)
        used, began = self._cpu(), monotonic()
        self._process.stdin.write(json.dumps(case).encode() + b"\n")
        self._process.stdin.flush()
        while True:
            answer = self._hear(self._seconds)
            if answer is not None:
                return Outcome(case, **answer)
            if self._process.poll() is not None:
                code = self._process.returncode
                name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                return Outcome(case, "crashed", name, innermost(self._said(before)))
            late = monotonic() - began > PATIENCE * self._seconds
            if late or self._cpu() - used > self._seconds:
                return Outcome(case, "hung", "", innermost(self._said(before)))

    def _hear(self, seconds: float) -> dict[str, Any] | None:
        """Return the answer, or None where there is none in time, or the child has ended."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else b""
        if ready and not line:
            self._process.wait()
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _said(self, start: int = 0) -> str:
        self._log.seek(start)
        return self._log.read().decode("utf-8", "replace")

    def close(self) -> None:
        with self._process:
            self._process.kill()
        self._log.close()


def innermost(text: str) -> str:
    """Return the innermost function of swiftem in a traceback, of either order."""
    frames = FRAME.findall(text)
    if "most recent call first" not in text:
        frames.reverse()
    inside = [(file, name) for file, name in frames if "/swiftem/" in file]
    return next((f"{Path(file).stem}:{name}" for file, name in inside), "")


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def _answer(work: Any, case: Any, memory: int) -> dict[str, Any]:
    with suppress(OSError):  # forget the peak of the cases before, where the system lets us
        Path("/proc/self/clear_refs").write_text("5")
    base = _status("VmRSS:")
    try:
        found = {"kind": "returned", "value": work(case)}
    except Exception as error:
        where = innermost("".join(traceback.format_exception(error)))
        found = {"kind": "raised", "what": type(error).__name__, "where": where, "value": str(error)[:2000]}
    peak = _status("VmHWM:") - base
    return found | ({"kind": "memory", "value": f"{peak / 1e9:.1f} GB"} if peak > memory else {})


def _main(function: str, memory: int, seconds: float) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    faulthandler.enable()
    module, _, name = function.partition(":")
    work = getattr(importlib.import_module(module), name)
    most = _status("VmSize:") + memory + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(seconds * 0.9)  # where it hangs, for the log
        found = _answer(work, json.loads(line), memory)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
