"""``python -m tests.gate --base REV``: do all runs and fits still give the same bits as at another commit?

The cases are in ``tests/gate_cases.py``: every method on every kind of model, kinds of data, options of runs,
and the estimators, through the public interface alone. The command computes them with the sources of this
tree and with those of the other commit, on this machine, and compares all numbers bit by bit. Differences are
named with their size, relative to the largest number of the case; a move may change rounding only where that
stays below 1e-12. A case that the other sources cannot run is named, and not compared.

``tests/gate_values.npz`` holds the values, which ``tests/test_gate.py`` compares to 1e-12: a vector of each
case, of the long ones the first entries and a random projection. ``--store`` writes them anew, with
``--only WORD`` those of the cases whose names contain the word.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
VALUES = HERE / "gate_values.npz"
TOLERANCE = 1e-12
HEAD, PROJECTIONS = 8, 24


def values(only: Sequence[str] = (), *, is_strict: bool = True) -> dict[str, Any]:
    """Return all numbers of each case whose name contains one of the words, as one vector.

    If not ``is_strict``, a case that fails has an empty vector.
    """
    from gate_cases import cases, compute

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases(Path(folder)):
            if not is_chosen(name, only):
                continue
            try:
                found[name] = compute(case)
            except Exception as error:
                if is_strict:
                    error.add_note(f"in the case {name!r}")
                    raise
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                found[name] = np.empty(0)
    return found


def is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(word in name for word in only)


def condensed(vector: Any) -> Any:
    """Return a vector if it is short, else its first entries and a random projection."""
    if len(vector) <= HEAD + PROJECTIONS:
        return vector
    directions = np.random.default_rng(len(vector)).uniform(-1.0, 1.0, size=(PROJECTIONS, len(vector)))
    return np.concatenate([vector[:HEAD], directions @ vector / np.sqrt(len(vector))])


def stored() -> dict[str, Any]:
    """Return the stored vectors by case."""
    with np.load(VALUES) as file:
        parts = np.split(file["numbers"], np.cumsum(file["lengths"])[:-1])
        return dict(zip(file["names"].tolist(), parts, strict=True))


def store(found: dict[str, Any]) -> None:
    """Write the condensed vectors of all cases."""
    np.savez_compressed(
        VALUES,
        names=np.array(list(found)),
        lengths=np.array([len(vector) for vector in found.values()]),
        numbers=np.concatenate(list(found.values())),
    )


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Return the cases that differ in a bit, with the largest difference relative to the largest number."""
    found = {}
    for name, expected in theirs.items():
        actual = ours.get(name)
        if actual is None or actual.shape != expected.shape:
            found[name] = np.inf
        elif not np.array_equal(actual, expected):
            found[name] = float(np.abs(actual - expected).max() / np.abs(expected).max())
    return found


def values_of(source: Path, only: Sequence[str], *, is_strict: bool) -> dict[str, Any]:
    """Return the values that the sources in a folder give, computed in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "values.npz")
        paths = [source, HERE / "_support", HERE]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, str(HERE / "gate.py"), "--values", str(out)]
        command += [part for word in only for part in ("--only", word)] + ["--strict"] * is_strict
        subprocess.run(command, env=environment, check=True)
        with np.load(out) as file:
            return dict(file)


def values_at(revision: str, only: Sequence[str]) -> dict[str, Any]:
    """Return the values that the sources of another commit give."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "base")
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", place, revision], check=True)
        try:
            return values_of(place / "src", only, is_strict=False)
        finally:
            subprocess.run([*git, "remove", "--force", place], check=True)


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> int:
    """Print the differences from another commit; return 1 if one is larger than rounding, else 0."""
    failed = [name for name, vector in theirs.items() if not len(vector)]
    theirs = {name: vector for name, vector in theirs.items() if len(vector)}
    found = differences(ours, theirs)
    for name, size in found.items():
        print(f"{name}: differs by {size:.1e}")
    if failed:
        print(f"{len(failed)} cases do not run there and are not compared: {'; '.join(failed)}")
    print(f"{len(theirs) - len(found)} of {len(theirs)} cases are the same to the last bit")
    return int(any(size > TOLERANCE for size in found.values()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__.partition("\n")[0])
    parser.add_argument("--base", metavar="REV", help="compare bits with this commit")
    parser.add_argument("--store", action="store_true", help=f"write {VALUES.name}")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="cases whose names contain the word"
    )
    parser.add_argument("--values", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--strict", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.values:
        np.savez(chosen.values, **values(chosen.only, is_strict=chosen.strict))
        return 0
    ours = values_of(HERE.parent / "src", chosen.only, is_strict=True)
    short = {name: condensed(vector) for name, vector in ours.items()}
    if chosen.store:
        store((stored() if chosen.only else {}) | short)
        print(f"{len(ours)} cases stored in {VALUES}, {VALUES.stat().st_size / 1e3:.0f} kB")
    else:
        known = {name: vector for name, vector in stored().items() if name in short}
        found = {name: size for name, size in differences(short, known).items() if size > TOLERANCE}
        for name, size in found.items():
            print(f"{name}: differs from the stored value by {size:.1e}")
        print(f"{len(known) - len(found)} of {len(short)} cases are those stored, to {TOLERANCE:g}")
    return compare(ours, values_at(chosen.base, chosen.only)) if chosen.base else 0


if __name__ == "__main__":
    sys.exit(main())
