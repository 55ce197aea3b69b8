"""Break the source in one place at a time and report the places that no test notices.

``python -m tests.mutate core/draws.py`` makes mutants of a file, or of every file of a folder, from its
syntax tree and runs the tests that belong to it:

1. the doctests of the file,
2. ``tests/<folder>/test_<file>.py``,
3. the test files that import the module, or else one of its public names from a facade,
   those in the mirror's folder first,
4. ``tests/test_gate.py``.

Each file runs only if those before it pass.

The working tree stays as it is: a mutant is written into a copy of the source. Mutants that no test can
notice are listed in ``tests/mutants_explained.txt``, one per line: ``path | mutated line | reason``.
The exit status is 1 if a mutant survived without an explanation, and 2 if a test fails without a mutant.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GATE = "tests/test_gate.py"
EXPLAINED = "tests/mutants_explained.txt"

PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.And, ast.Or),
]
SWAPPED = dict(PAIRS) | {two: one for one, two in PAIRS}
SWAPPED |= dict.fromkeys((ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult), ast.Mult)
"""Each operator and the one that replaces it."""

NOT_MUTATED = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
LOGGERS = {"log", "logger", "logging", "warnings"}


class Mutant(NamedTuple):
    """A file with one change: the number of the changed line, the line itself, and the whole text."""

    path: Path
    number: int
    line: str
    text: str

    @property
    def place(self) -> str:
        """The path below the package, as in the file of explanations."""
        return self.path.relative_to(ROOT / "src" / "swiftem").as_posix()

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = self.path.read_text(encoding="utf-8"), self.text
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), self.place, "mutant", "", "", 1)
        return "\n".join(line.rstrip("\n") for line in lines)


def changes_of(node: Any) -> Iterator[str]:
    """Yield the texts that replace a node."""
    match node:
        case ast.Compare(ops=operators):
            for place, one in enumerate(operators):
                swapped = [*operators[:place], SWAPPED[type(one)](), *operators[place + 1 :]]
                yield ast.unparse(ast.Compare(node.left, swapped, node.comparators))
        case ast.BinOp(op=operator) if type(operator) in SWAPPED:
            yield ast.unparse(ast.BinOp(node.left, SWAPPED[type(operator)](), node.right))
        case ast.BoolOp(op=operator):
            yield ast.unparse(ast.BoolOp(SWAPPED[type(operator)](), node.values))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value) | float(value)) if value in (0, 1):
            yield repr(value + 1)
        case ast.AugAssign() | ast.Raise() | ast.Assign(targets=[ast.Subscript(), *_]):
            yield f"pass  # {ast.unparse(node)}".partition("\n")[0]
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield f"return None  # {ast.unparse(node)}".partition("\n")[0]


def mutated_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, but not what has no behaviour to test: annotations, log lines."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in LOGGERS:
            return
    if isinstance(node, NOT_MUTATED):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_comment"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from mutated_nodes(child)


def mutants_of(path: Path) -> list[Mutant]:
    """Return the mutants of a file, in the order of its lines."""
    text = path.read_bytes()
    starts, found = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))], []
    for node in mutated_nodes(ast.parse(text)):
        for new in changes_of(node):
            begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            mutated = (text[:begin] + new.encode() + text[end:]).decode()
            number: int = node.lineno  # type: ignore[attr-defined]
            found.append(Mutant(path, number, mutated.splitlines()[number - 1].strip(), mutated))
    return sorted(found, key=lambda mutant: mutant.number)


def files_below(given: str) -> list[Path]:
    """Return the Python files of a path, which may be below ``src/swiftem``."""
    for path in (ROOT / "src" / "swiftem" / given, Path(given).resolve()):
        if path.is_dir():
            return sorted(path.rglob("*.py"))
        if path.is_file():
            return [path]
    raise SystemExit(f"{given} must be a file or folder below src/swiftem, and does not exist.")


def imported_names(path: Path) -> set[str]:
    """Return what a file imports from the package: modules, and names with their modules."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return {name for name in found if name.startswith("swiftem.")}


def exported_names(path: Path) -> set[str]:
    """Return the public functions and classes of a file, which tests may import from a facade."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def tests_of(path: Path) -> list[str]:
    """Return the tests that belong to a file of the package: its mirror, then those that import from it.

    Names from a facade count only if there is no other test: popular ones are in dozens of files.
    """
    inside = path.relative_to(ROOT / "src" / "swiftem")
    mirror = ROOT / "tests" / inside.parent / f"test_{inside.name}"
    module = ".".join(part for part in ("swiftem", *inside.with_suffix("").parts) if part != "__init__")
    imported = {test: imported_names(test) for test in sorted((ROOT / "tests").rglob("test_*.py"))}
    exported = exported_names(path)
    tests = [mirror] if mirror in imported else []
    tests += [
        test
        for test, names in imported.items()
        if test != mirror and any(f"{name}.".startswith(f"{module}.") for name in names)
    ]
    tests = tests or [
        test for test, names in imported.items() if exported & {name.rpartition(".")[2] for name in names}
    ]
    tests = tests[:1] + sorted(tests[1:], key=lambda test: test.parent != mirror.parent)
    return [test.relative_to(ROOT).as_posix() for test in tests]


def explanations() -> dict[tuple[str, str], str]:
    """Return the reasons of mutants that no test can notice, by path and mutated line."""
    found = {}
    for line in (ROOT / EXPLAINED).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            path, rest = line.split(" | ", 1)
            mutated, reason = rest.rsplit(" | ", 1)
            found[path.strip(), mutated.strip()] = reason.strip()
    return found


class Runner:
    """Runs tests in a copy of the source with a cache of kernels of its own, first without a mutant."""

    def __init__(self, folder: Path, tests: Sequence[str] | None, timeout: float | None) -> None:
        self._source, self._tests, self._timeout = folder / "src", tests, timeout
        self._limits: dict[tuple[str, ...], float] = {}
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = os.environ | {
            "PYTHONPATH": str(self._source),
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half of the time to start
        }

    def stages(self, path: Path) -> list[tuple[str, ...]]:
        """Return the groups of tests for a file, in the order in which they run.

        Doctests have a process of their own: they import the file once more, and its classes are then there
        twice.
        """
        if self._tests is not None:
            return [tuple(self._tests)]
        copy = self._source / path.relative_to(ROOT / "src")
        return [(test,) for test in (str(copy), *tests_of(path), GATE)]

    def survives(self, mutant: Mutant) -> bool:
        """Return whether every group of tests passes with the mutant."""
        copy = self._source / mutant.path.relative_to(ROOT / "src")
        date = copy.stat().st_mtime_ns
        for tests in self.stages(mutant.path):
            limit = self._limit(tests)
            copy.write_text(mutant.text, encoding="utf-8")
            try:
                if self._failure(tests, limit):
                    return False
            finally:
                shutil.copyfile(mutant.path, copy)
                os.utime(copy, ns=(date, date))  # Numba's cache compares dates
        return True

    def _limit(self, tests: tuple[str, ...]) -> float:
        """Return the timeout of tests, from the seconds that they take without a mutant."""
        if tests not in self._limits:
            begin = time.monotonic()
            failure = self._failure(tests, None)
            if failure:
                print(f"These tests fail without a mutant: {' '.join(tests)}\n{failure}")
                raise SystemExit(2)
            self._limits[tests] = self._timeout or 3 * (time.monotonic() - begin) + 30
        return self._limits[tests]

    def _failure(self, tests: Sequence[str], timeout: float | None) -> str:
        """Run tests; return the end of the output if one failed, or the timeout is over, else nothing."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), *tests]
        options = {"cwd": ROOT, "env": self._environment, "capture_output": True, "text": True}
        try:
            done = subprocess.run(command, timeout=timeout, check=False, **options)  # type: ignore[call-overload]
        except subprocess.TimeoutExpired:
            return "They take too long."
        nothing_collected = 5
        return "" if done.returncode in (0, nothing_collected) else (done.stdout + done.stderr)[-3000:]


def run(mutants: Sequence[Mutant], runner: Runner) -> int:
    """Run mutants, print a line for each, and return how many survived without an explanation."""
    counts, explained = {"killed": 0, "survived": 0, "explained": 0}, explanations()
    for mutant in mutants:
        if (mutant.place, mutant.line) in explained:
            verdict = "explained"
        else:
            verdict = "survived" if runner.survives(mutant) else "killed"
        counts[verdict] += 1
        print(f"{verdict:9} {mutant.place}:{mutant.number}: {mutant.line}", flush=True)
        if verdict == "survived":
            print(mutant.diff(), flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return counts["survived"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate", description="Break the source, run its tests."
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or folder, also below src/swiftem")
    parser.add_argument("--sample", type=int, metavar="N", help="run N mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample; 0 by default")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="run these tests instead")
    parser.add_argument(
        "--timeout", type=float, help="seconds of a group of tests; 3 times its usual by default"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    options = parser.parse_args(arguments)
    mutants = [
        mutant for given in options.paths for path in files_below(given) for mutant in mutants_of(path)
    ]
    if options.sample is not None and options.sample < len(mutants):
        chosen = sorted(random.Random(options.seed).sample(range(len(mutants)), options.sample))
        mutants = [mutants[place] for place in chosen]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.place}:{mutant.number}: {mutant.line}")
        return 0
    with tempfile.TemporaryDirectory(prefix="swiftem-mutants-") as folder:
        runner = Runner(Path(folder), options.tests, options.timeout)
        return int(run(mutants, runner) > 0)


if __name__ == "__main__":
    sys.exit(main())
