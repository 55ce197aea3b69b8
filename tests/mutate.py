"""``python -m tests.mutate``: does a test notice when the source is broken?

Each ``tests/mutants_*.py`` has a list ``MUTANTS`` of ``(name, file, old, new, tests)``. In the file, a path
below ``src/swiftem``, the text ``old``, which stands there once, becomes ``new``; ``tests`` are those that
pytest runs, files or single tests as on a command line, and at least one of them must fail. A list
``EQUIVALENT`` of ``(name, file, old, new, why)`` has mutants that no test could notice: they are not run.

Every worker has a copy of the source and a cache of compiled kernels of its own; the source here stays as it
is. The exit status is 1 where a mutant survived or its text is gone, and 2 where tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import os
import queue
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 900
"""After so long a mutant counts as killed: it made an endless loop."""


class Mutant(NamedTuple):
    """One change of the source; ``tests`` is empty and ``why`` is not where no test could notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    why: str = ""


def read_mutants(folder: Path = ROOT / "tests") -> list[Mutant]:
    """Return all mutants of the lists in a folder, in the order of the files."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("mutants_*.py")):
        lists = runpy.run_path(str(path))
        found += [Mutant(*row) for row in lists.get("MUTANTS", ())]
        found += [Mutant(*row[:4], "", row[4]) for row in lists.get("EQUIVALENT", ())]
    return found


def apply(mutant: Mutant, package: Path) -> bool:
    """Change the copy of the package; return False where the text does not stand there exactly once."""
    path = package / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(mutant.old) != 1:
        return False
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return True


def verdict(status: int) -> str:
    """Return what pytest's exit status says: 1 is failed tests, below zero a crash, above 1 misuse."""
    return {0: "survived", 1: "killed"}.get(status, "killed" if status < 0 else "no tests ran")


class Worker:
    """A folder with a copy of the source, at one place: kernels that did not change are cached."""

    def __init__(self, folder: Path) -> None:
        self._source, self._cache = folder / "src", folder / "cache"

    def pytest(self, tests: Iterable[str], mutant: Mutant | None = None) -> tuple[str, str]:
        """Run tests on the source, changed by a mutant; return the verdict and the output."""
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None and not apply(mutant, self._source / "swiftem"):
            return "text is gone", ""
        environment = os.environ | {
            "PYTHONPATH": str(self._source),
            "NUMBA_CACHE_DIR": str(self._cache),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", *tests]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed", f"no end after {SECONDS} s"
        return verdict(done.returncode), done.stdout[-3000:] + done.stderr[-1000:]


def run_all(mutants: Sequence[Mutant], workers: int, say: bool) -> bool:
    """Run every mutant and print a line for each; return whether all were killed."""
    with tempfile.TemporaryDirectory(prefix="swiftem-mutants-") as folder:
        free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for place in range(workers):
            free.put(Worker(Path(folder) / str(place)))

        def one(mutant: Mutant) -> str:
            worker, begin = free.get(), time.monotonic()
            try:
                found, output = worker.pytest(shlex.split(mutant.tests), mutant)
            finally:
                free.put(worker)
            print(f"{found:12} {mutant.name}  ({time.monotonic() - begin:.0f} s)", flush=True)
            if say or found == "no tests ran":
                print(output, flush=True)
            return found

        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(one, mutants))
    print(", ".join(f"{found.count(kind)} {kind}" for kind in sorted(set(found))))
    return all(kind == "killed" for kind in found)


def passes_unchanged(mutants: Sequence[Mutant]) -> bool:
    """Tell whether the tests of these mutants pass on the source as it is: otherwise they tell nothing."""
    tests = sorted({test for mutant in mutants for test in shlex.split(mutant.tests)})
    with tempfile.TemporaryDirectory(prefix="swiftem-mutants-") as folder:
        found, output = Worker(Path(folder)).pytest(tests)
    if found != "survived":
        print(f"the tests do not pass without a mutant\n{output}")
    return found == "survived"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate", description="Break the source, run its tests."
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--only", metavar="NAME", action="append", help="mutants whose name contains NAME")
    parser.add_argument("--skip-unchanged", action="store_true", help="do not run the tests without a mutant")
    parser.add_argument("--tests", help="run these tests instead of those that are listed")
    parser.add_argument("-v", action="store_true", help="print what pytest says")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="mutants at a time")
    options = parser.parse_args(arguments)
    mutants = read_mutants()
    if options.only:
        mutants = [mutant for mutant in mutants if any(name in mutant.name for name in options.only)]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.file}: {mutant.tests or 'equivalent: ' + mutant.why}")
        return 0
    mutants = [mutant for mutant in mutants if not mutant.why]
    if options.tests is not None:
        mutants = [mutant._replace(tests=options.tests) for mutant in mutants]
    if not mutants:
        parser.error("there is no mutant of that name.")
    if not options.skip_unchanged and not passes_unchanged(mutants):
        return 2
    return 0 if run_all(mutants, max(1, options.j), options.v) else 1


if __name__ == "__main__":
    sys.exit(main())
