"""``python -m tests.gate --base REV``: do all runs still give the same bits as at another commit?

Each case is a run of 300 iterations of one method on one kind of model at one batch size, through the public
interface alone. The command runs all cases with the sources of this tree and with those of the other commit,
on this machine, and compares θ, s and counts bit by bit. Differences are named with their size, relative to
the largest number of the array; a move may change rounding only where that stays below 1e-12.

``tests/gate_values.npz`` holds the values themselves, which ``tests/test_gate.py`` compares to 1e-12;
``--store`` writes them anew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
VALUES = HERE / "gate_values.npz"
N_ITER, BATCHES = 300, (1, 7, 256)
NAMES = ("em", "sem", "iem", "sem-vr", "fiem")
KINDS = ("unit", "full", "tied", "diag", "spherical")
TOLERANCE = 1e-12


def rows() -> Any:
    """Return rows (700, 2) of three groups, with an offset."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [-2.0, 5.0]])
    return 10.0 + centres[rng.integers(3, size=700)] + rng.normal(size=(700, 2)) * [1.0, 0.5]


def method(name: str, b: int) -> Any:
    from swiftem import methods

    kind = methods.METHODS[name]
    options = {"batch_size": b, "step_size": 0.02 * b**0.5}
    return kind(**{key: value for key, value in options.items() if key in kind.__dataclass_fields__})


def cases() -> Iterator[tuple[str, Any, Any, Any, dict[str, Any]]]:
    """Yield name, model, data, method and options of every case."""
    import scipy.sparse as sp
    from compiled_models import own

    from swiftem import models

    y = rows()
    weights = np.random.default_rng(1).uniform(0.2, 3.0, size=len(y))
    counts = sp.csr_array(np.random.default_rng(2).poisson(0.6, size=(12, 15)))
    for name in NAMES:
        for b in BATCHES if name != "em" else (1,):
            chosen = method(name, b)
            for kind in KINDS:
                model = models.GaussianMixtureModel(3, covariance=kind)
                yield f"{kind}, {name}, b={b}", model, y, chosen, {}
            yield f"plsa, {name}, b={b}", models.PLSAModel(3, alpha=1e-4, beta=1e-4), counts, chosen, {}
            functions = own(n=200)
            yield f"functions, {name}, b={b}", functions.model, functions.y, chosen, {}
        chosen = method(name, 7)
        full = models.GaussianMixtureModel(3, covariance="full", reg_covar=1e-6)
        yield f"full, {name}, weights", full, y, chosen, {"sample_weight": weights}
        yield f"unit, {name}, float32", models.GaussianMixtureModel(3), y.astype(np.float32), chosen, {}
        yield f"unit, {name}, reference", models.GaussianMixtureModel(3), y, chosen, {"kernels": "reference"}


def values() -> dict[str, Any]:
    """Return θ, s and counts of every case, as one vector each."""
    import swiftem

    found = {}
    for name, model, data, chosen, options in cases():
        n_iter = 30 if chosen.name == "em" else N_ITER
        result = swiftem.run(model, data, chosen, n_iter=n_iter, seed=3, **options)
        parts = [np.ravel(part) for part in (*_leaves(result.theta), result.s)]
        found[name] = np.concatenate([*parts, [result.passes, result.n_iter, result.rejected]])
    return found


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [np.asarray(value, dtype=np.float64)]


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


def values_of(source: Path) -> dict[str, Any]:
    """Return the values that the sources in a folder give, computed in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "values.npz")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}
        subprocess.run(
            [sys.executable, str(HERE / "gate.py"), "--values", str(out)], env=environment, check=True
        )
        with np.load(out) as stored:
            return dict(stored)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__.partition("\n")[0])
    parser.add_argument("--base", metavar="REV", help="compare bits with this commit")
    parser.add_argument("--store", action="store_true", help=f"write {VALUES.name}")
    parser.add_argument("--values", metavar="FILE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.values:
        np.savez_compressed(chosen.values, **values())
        return 0
    root = HERE.parent
    ours = values_of(root / "src")
    if chosen.store:
        np.savez_compressed(VALUES, **ours)
        print(f"{len(ours)} cases stored in {VALUES}, {VALUES.stat().st_size / 1e3:.0f} kB")
    if not chosen.base:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "base")
        subprocess.run(["git", "worktree", "add", "-q", "--detach", place, chosen.base], cwd=root, check=True)
        try:
            theirs = values_of(place / "src")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", place], cwd=root, check=True)
    found = differences(ours, theirs)
    for name, size in found.items():
        print(f"{name}: differs by {size:.1e}")
    print(f"{len(theirs) - len(found)} of {len(theirs)} cases are the same to the last bit")
    return int(any(size > TOLERANCE for size in found.values()))


if __name__ == "__main__":
    sys.exit(main())
