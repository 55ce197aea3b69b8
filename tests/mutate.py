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
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GATE = "tests/test_gate.py"
EXPLAINED = "tests/mutants_explained.txt"

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""The text of each operator and of the one that replaces it."""

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


class Edit(NamedTuple):
    """A replacement of the characters from ``begin`` to ``end``."""

    begin: int
    end: int
    new: str


class Edits:
    """The edits of a source text that make its mutants, in the order of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def __iter__(self) -> Iterator[Edit]:
        """Yield the edits of all nodes."""
        return self._below(ast.parse(self.text))

    def _below(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, NOT_MUTATED) or _is_skipped(node):
            return
        yield from self._of_node(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._below(child)

    def _of_node(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.Compare(left=left, ops=operators, comparators=right):
                operands = [left, *right]
                for operator, one, two in zip(operators, operands, operands[1:], strict=False):
                    yield self._operator(operator, one, two)
            case ast.BinOp(left=one, op=operator, right=two) if type(operator) in OPERATORS:
                yield self._operator(operator, one, two)
            case ast.BoolOp(op=operator, values=values):
                for one, two in itertools.pairwise(values):
                    yield self._operator(operator, one, two)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield Edit(self._begin(node), self._begin(operand), self._between(node, operand))
            case ast.Constant(value=bool(value)):
                yield self._replace(node, str(not value))
            case ast.Constant(value=int(value) | float(value)) if value in (0, 1):
                yield self._replace(node, repr(value + 1))
            case ast.AugAssign() | ast.Raise() | ast.Assign(targets=[ast.Subscript(), *_]):
                yield self._replace(node, f"pass  # {self._first_line(node)}")
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self._replace(node, f"return None  # {self._first_line(node)}")

    def _operator(self, operator: ast.AST, one: ast.AST, two: ast.AST) -> Edit:
        old, new = OPERATORS[type(operator)]
        begin, end = self._end(one), self._begin(two)
        pattern = r"\s+".join(map(re.escape, old.split()))
        # Comments between the operands may have operators of their own.
        between = re.sub(r"#.*", lambda comment: " " * len(comment[0]), self.text[begin:end])
        match = re.search(pattern, between)
        assert match is not None, self.text[begin:end]
        return Edit(begin + match.start(), begin + match.end(), new)

    def _between(self, node: ast.AST, operand: ast.AST) -> str:
        """Return what stands between a unary operator and its operand, such as a parenthesis."""
        text = self.text[self._begin(node) : self._begin(operand)]
        return text.removeprefix("not").removeprefix("-").lstrip()

    def _replace(self, node: ast.AST, new: str) -> Edit:
        return Edit(self._begin(node), self._end(node), new)

    def _first_line(self, node: ast.AST) -> str:
        return self.text[self._begin(node) : self._end(node)].partition("\n")[0]

    def _begin(self, node: ast.AST) -> int:
        return self._position(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _position(self, number: int, column: int) -> int:
        """Return the index in the text; the columns of a syntax tree count bytes."""
        line = self._lines[number - 1].encode()[:column].decode()
        return self._starts[number - 1] + len(line)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_skipped(node: ast.AST) -> bool:
    """Return whether a statement has no behaviour to test: ``__all__``, log lines, imports for types."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def mutants_of(path: Path) -> list[Mutant]:
    """Return the mutants of a file, in the order of its lines."""
    text, found = path.read_text(encoding="utf-8"), []
    for begin, end, new in Edits(text):
        mutated = text[:begin] + new + text[end:]
        number = text.count("\n", 0, begin) + 1
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


class Copy:
    """A copy of the source in which tests run, with a cache of compiled kernels of its own."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = os.environ | {
            "PYTHONPATH": str(self._source),
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half of the time to start
        }

    def path(self, path: Path) -> Path:
        """Return a file's path in the copy."""
        return self._source / path.relative_to(ROOT / "src")

    def passes(self, tests: Sequence[str], timeout: float | None = None) -> bool:
        """Run tests and return whether all passed; a timeout is a failure."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), *tests]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        self.output = done.stdout[-2000:] + done.stderr[-1000:]
        nothing_collected = 5
        return done.returncode in (0, nothing_collected)

    def survives(self, mutant: Mutant, tests: Sequence[str], timeout: float) -> bool:
        """Run tests with a mutant and return whether all passed."""
        copy = self.path(mutant.path)
        date = copy.stat().st_mtime_ns
        copy.write_text(mutant.text, encoding="utf-8")
        try:
            return self.passes(tests, timeout)
        finally:
            shutil.copyfile(mutant.path, copy)
            os.utime(copy, ns=(date, date))  # Numba's cache compares dates


class Runner:
    """Runs mutants, each group of tests first without one."""

    def __init__(self, copy: Copy, tests: Sequence[str] | None, timeout: float | None) -> None:
        self._copy, self._tests, self._timeout = copy, tests, timeout
        self._limits: dict[tuple[str, ...], float] = {}

    def stages(self, path: Path) -> list[tuple[str, ...]]:
        """Return the groups of tests for a file, in the order in which they run."""
        if self._tests is not None:
            return [tuple(self._tests)]
        tests = tests_of(path)
        return [(str(self._copy.path(path)), *tests[:1]), *((test,) for test in [*tests[1:], GATE])]

    def survives(self, mutant: Mutant) -> bool:
        """Return whether every group of tests passes with the mutant."""
        for tests in self.stages(mutant.path):
            if not self._copy.survives(mutant, tests, self._limit(tests)):
                return False
        return True

    def _limit(self, tests: tuple[str, ...]) -> float:
        """Return the timeout of tests, from the seconds that they take without a mutant."""
        if tests not in self._limits:
            begin = time.monotonic()
            if not self._copy.passes(tests):
                print(f"These tests fail without a mutant: {' '.join(tests)}\n{self._copy.output}")
                raise SystemExit(2)
            self._limits[tests] = 3 * (time.monotonic() - begin) + 30
        return self._limits[tests] if self._timeout is None else self._timeout


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
        runner = Runner(Copy(Path(folder)), options.tests, options.timeout)
        return int(run(mutants, runner) > 0)


if __name__ == "__main__":
    sys.exit(main())
