"""``python -m tests.paths [NAME ...] [--list]``: how many modules of swiftem does a call go through?

A module counts if one of its functions runs. What runs once when it is imported, or compiles, does not: each
path is walked once before it is counted. Compiled kernels do not show.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import swiftem
from swiftem.cli.app import app
from swiftem.core.algorithm import Task
from swiftem.core.draws import read_seed
from swiftem.core.loop import DeferredInterrupt, first_pass
from swiftem.core.problem import Problem
from swiftem.core.schedules import resolve

PACKAGE = str(Path(swiftem.__file__).parent)
Walk = Callable[[Path], object]


def rows(n: int = 20_000) -> np.ndarray:
    """Return n rows of three components, (n, 4)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)) + 6 * rng.integers(3, size=(n, 1))


def fit_of(n: int, **parameters: Any) -> Callable[[Path], Walk]:
    """GaussianMixture.fit of an array of n rows; starts are compared on 20,000 of them."""
    return lambda folder: lambda _: swiftem.GaussianMixture(3, random_state=0, **parameters).fit(rows(n))


def parquet_fit(folder: Path) -> Walk:
    """GaussianMixture.fit of a Parquet file under a memory limit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    y = rows(200_000)
    table = pa.table({f"c{j}": y[:, j] for j in range(4)})
    pq.write_table(table, folder / "t.parquet", row_group_size=20_000)
    mixture = swiftem.GaussianMixture(3, method="em", random_state=0)

    def fit(_: Path) -> None:
        with swiftem.config_context(memory_limit="1GB"):
            mixture.fit(folder / "t.parquet")

    return fit


def run_fiem(folder: Path) -> Walk:
    """swiftem.run of the paper's mixture, with fiem."""
    y, model, method = rows(), swiftem.models.GaussianMixtureModel(3), swiftem.methods.FastIncrementalEM()
    return lambda _: swiftem.run(model, y, method, n_iter=1000, seed=0)


def iteration(folder: Path) -> Walk:
    """A stretch of iterations of fiem, as swiftem.run does them between two records."""
    source = swiftem.data.ArraySource(rows())
    method = swiftem.methods.FastIncrementalEM()
    problem = Problem(swiftem.models.GaussianMixtureModel(3), source)
    gamma = resolve(method.step_size, source.n, method.batch_size)
    draws = problem.draws(method, read_seed(0), 10_000, 0, None)
    task = Task(problem.bound, method, source, gamma, draws, problem.compute, DeferredInterrupt())
    loop, now = (
        problem.compute.loop(task),
        first_pass(task, problem.bound.initial_theta(np.random.default_rng(0)), None),
    )
    return lambda _: loop.advance(now, now.k + 1000)


def topics(folder: Path) -> Walk:
    """``swiftem topics`` of a folder of text files."""
    rng = np.random.default_rng(0)
    words = [a + b + c for a in ("mor", "tel", "gan") for b in ("ami", "ero") for c in ("lak", "sun", "dov")]
    (folder / "texts").mkdir()
    for i in range(60):
        half = words[:9] if i % 2 else words[9:]
        (folder / "texts" / f"{i:02d}.txt").write_text(" ".join(rng.choice(half, size=120)), encoding="utf-8")
    argv = ["topics", str(folder / "texts"), "--topics", "2", "--seed", "0"]

    def walk(out: Path) -> object:
        with redirect_stdout(StringIO()):
            return app([*argv, "--out", str(out / "page")], standalone_mode=False)

    return walk


def resume(folder: Path) -> Walk:
    """swiftem.run that resumes from a checkpoint."""
    y = rows()
    model, method = swiftem.models.GaussianMixtureModel(3), swiftem.methods.FastIncrementalEM()
    swiftem.run(model, y, method, n_iter=500, seed=0, checkpoint=folder / "c")
    steps = iter((1000, 1500))
    return lambda _: swiftem.run(
        model, y, method, n_iter=next(steps), seed=0, checkpoint=folder / "c", resume=True
    )


def predict(folder: Path) -> Walk:
    """Predict of a fitted mixture, for an array."""
    y = rows()
    fitted = swiftem.GaussianMixture(3, random_state=0).fit(y)
    return lambda _: fitted.predict(y)


PATHS = {
    "predict": predict,
    "run": run_fiem,
    "iteration": iteration,
    "fit": fit_of(20_000, method="em"),
    "resume": resume,
    "topics": topics,
    "parquet": parquet_fit,
    "auto": fit_of(40_000),
    "sem-vr": fit_of(40_000, method="sem-vr"),
}


def walked(path: Callable[[Path], Walk]) -> Counter[str]:
    """Return the modules of which functions run, with the number of their functions."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        walk = path(folder)
        for out in ("before", "counted"):
            (folder / out).mkdir()
            if out == "counted":
                gc.collect()  # what earlier calls left behind must not run now
                threading.setprofile(note)
                sys.setprofile(note)
            try:
                walk(folder / out)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
    optimized = 1  # CO_OPTIMIZED: a function, not a module or the body of a class
    files = [c.co_filename for c in seen if c.co_flags & optimized and c.co_filename.startswith(PACKAGE)]
    return Counter(name.removeprefix(PACKAGE)[1:] for name in files)


def command(argv: list[str] | None = None) -> None:
    """Print the number of modules per path; with --list also which."""
    parser = argparse.ArgumentParser(prog="python -m tests.paths", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="NAME", help=f"one of {', '.join(PATHS)}; by default all")
    parser.add_argument("--list", action="store_true", help="name the modules, with their functions that ran")
    given = parser.parse_args(argv)
    for name in given.paths or PATHS:
        found = walked(PATHS[name])
        print(f"{name:8} {len(found):3} modules, {sum(found.values()):4} functions")
        if given.list:
            for module, count in sorted(found.items()):
                print(f"    {count:4} {module}")


if __name__ == "__main__":
    command()
