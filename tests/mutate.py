"""``python -m tests.mutate``: does a test notice when the source is broken?

Each ``tests/mutants_*.py`` has a list ``MUTANTS`` of ``(name, file, old, new, tests)``. In the file, a path
below ``src/swiftem``, the text ``old``, which stands there once, becomes ``new``; ``tests`` are those that
pytest runs, files or single tests as on a command line, and at least one of them must fail. A list
``EQUIVALENT`` of ``(name, file, old, new, why)`` has mutants that no test could notice: they are not run.

Every worker has a copy of the source and a cache of compiled kernels of its own; the source here stays as it
is. All mutants take an hour: ``--folder DIR`` keeps there what was found and compiled, and a call that was
stopped continues where it stood. What was found counts as long as the mutant, its file and its tests' files
are the same. The exit status is 1 where a mutant survived or its text is gone, and 2 where tests fail without
a mutant.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import queue
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
"""After so long a mutant counts as killed, if its tests end without it: it made an endless loop."""
OUTSIDE = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT}
"""Exit statuses of a pytest that something else ended, memory or a user."""


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
    crashed = status < 0 and status not in OUTSIDE
    return {0: "survived", 1: "killed"}.get(status, "killed" if crashed else "no tests ran")


def which_failed(output: str) -> str:
    """Return the test that pytest names as the failed one, or what there is in place of one."""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" - ")[0].partition(" ")[2] if lines else ""


def files_of(tests: Iterable[str]) -> list[Path]:
    """Return the files of tests that are given as on pytest's command line."""
    return sorted({ROOT / test.partition("::")[0] for test in tests})


def key_of(what: Sequence[str], files: Iterable[Path]) -> str:
    """Return a hash of texts and of the content of files."""
    digest = hashlib.blake2b(json.dumps(list(what)).encode(), digest_size=12)
    for path in files:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


class Results:
    """What was found so far, by key: a line of JSON each in a file, or nowhere if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "results.jsonl"
        self._found: dict[str, str] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self._found[row["key"]] = row["found"]

    def get(self, key: str) -> str | None:
        """Return what was found, or None."""
        return self._found.get(key)

    def add(self, key: str, found: str, **more: object) -> None:
        """Write down what was found."""
        self._found[key] = found
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"found": found, **more, "key": key}, ensure_ascii=False) + "\n")


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
            if mutant is None or self.pytest(tests)[0] != "survived":
                return "no tests ran", f"no end after {SECONDS} s, nor without the mutant"
            return "killed", f"FAILED no end after {SECONDS} s"
        return verdict(done.returncode), done.stdout[-3000:] + done.stderr[-1000:]


@contextlib.contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """Give a folder to work in: the one that is kept, or a new one that is removed at the end."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="swiftem-mutants-") as name:
            yield Path(name)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SystemExit(f"{folder} is in use: wait until the other call ends.") from None
            yield folder


def run_all(mutants: Sequence[Mutant], workers: int, say: bool, folder: Path, results: Results) -> bool:
    """Run every mutant and print a line for each; return whether all were killed."""
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for number in range(workers):
        free.put(Worker(folder / str(number)))

    def one(mutant: Mutant) -> str:
        tests = shlex.split(mutant.tests)
        key = key_of(mutant, [ROOT / "src" / "swiftem" / mutant.file, *files_of(tests)])
        known = results.get(key)
        if known is not None:
            return known
        worker, begin = free.get(), time.monotonic()
        try:
            found, output = worker.pytest(tests, mutant)
        finally:
            free.put(worker)
        seconds, by = round(time.monotonic() - begin), which_failed(output)
        print(f"{found:12} {mutant.name}  ({seconds} s){'  by ' if by else ''}{by}", flush=True)
        if say or found == "no tests ran":
            print(output, flush=True)
        if found in ("killed", "survived"):
            results.add(key, found, name=mutant.name, seconds=seconds, by=by)
        return found

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(one, mutants))
    print(", ".join(f"{found.count(kind)} {kind}" for kind in sorted(set(found))))
    return all(kind == "killed" for kind in found)


def failing_unchanged(mutants: Sequence[Mutant], folder: Path, results: Results) -> set[str]:
    """Return the tests, of files of which one fails on the source as it is: they tell nothing."""
    source = key_of([], sorted((ROOT / "src").rglob("*.py")))
    worker = Worker(folder / "0")
    of_file: dict[str, dict[str, str]] = {}
    failing: set[str] = set()
    for test in sorted({test for mutant in mutants for test in shlex.split(mutant.tests)}):
        key = key_of([source, test], files_of([test]))
        if results.get(key) is None:
            of_file.setdefault(test.partition("::")[0], {})[test] = key
    for keys in of_file.values():
        found, output = worker.pytest(keys)
        if found != "survived":
            print(f"the tests do not pass without a mutant\n{output}", flush=True)
            failing |= keys.keys()
            continue
        for test, key in keys.items():
            results.add(key, "passes", name=test)
    return failing


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate", description="Break the source, run its tests."
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--only", metavar="NAME", action="append", help="mutants whose name contains NAME")
    parser.add_argument("--skip-unchanged", action="store_true", help="do not run the tests without a mutant")
    parser.add_argument("--tests", help="run these tests instead of those that are listed")
    parser.add_argument("--folder", type=Path, help="keep results and compiled kernels here, and continue")
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
    with place(options.folder) as folder:
        results = Results(options.folder and folder)
        failing = set() if options.skip_unchanged else failing_unchanged(mutants, folder, results)
        told = [mutant for mutant in mutants if failing.isdisjoint(shlex.split(mutant.tests))]
        all_killed = run_all(told, max(1, options.j), options.v, folder, results)
        return 2 if len(told) < len(mutants) else int(not all_killed)


if __name__ == "__main__":
    sys.exit(main())
