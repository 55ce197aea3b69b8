"""Start-up, in new processes: the import, and the time until iterations run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from time import monotonic

from benchmarks import first_fit, first_iterations
from benchmarks.row import Row
from benchmarks.timing import interleaved

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Start-up of a process"
LEAD = ("model", "setting")
NOTE = f"""Warm cache: from Python's start until {first_iterations.ITERATIONS} iterations of fiem are done.
With an empty cache, measured once, the difference is the time of compiling. First fits: CPU seconds of a
process with an empty cache, import included. Small fits: CPU seconds of default fits, which use NumPy below
a rule of sizes, compared with the compiled path and a warm cache."""
GOAL_IMPORT, GOAL_ITERATING = 0.3, 1.5
GOAL_SMALL = 1.2
"""Times the compiled path; single fits take a tenth of a second, and differ by this much from run to run."""


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    imports = [lambda name=name: fresh("-c", f"import {name}") for name in ("swiftem", "numpy")]
    for warm_up in imports:
        warm_up()
    value, peer_value = (time / 1e9 for time in interleaved(imports, repeats))
    yield Row(
        figure="start-up", model="any", method="any", setting="import", n=0, d="", components=0, b=0,
        iterations=0, repeats=repeats, value=value, unit="s", peer="import numpy", peer_value=peer_value,
        compared="difference", goal=GOAL_IMPORT,
    )  # fmt: skip
    for model, (n, d, components) in first_iterations.SIZES.items():
        sizes = {
            "model": model,
            "method": "fiem",
            "n": n,
            "d": d,
            "components": components,
            "b": 1,
            "e_steps": 2,
        }
        with TemporaryDirectory() as cache:
            cold = until_iterating(model, cache)
            warm = min(until_iterating(model, cache) for _ in range(repeats))
        yield Row(
            figure="start-up", setting="warm cache", **sizes,
            iterations=first_iterations.ITERATIONS, repeats=repeats, value=warm, unit="s",
            compared="value", goal=GOAL_ITERATING,
        )  # fmt: skip
        yield Row(
            figure="start-up", setting="empty cache", **sizes,
            iterations=first_iterations.ITERATIONS, repeats=1, value=cold, unit="s",
            peer="warm cache", peer_value=warm, compared="difference",
        )  # fmt: skip

    for name, (n, d, components, goal) in first_fit.FITS.items():
        yield Row(
            figure="start-up", model=name, method="auto", setting="first fit, CPU", n=n, d=d,
            components=components, b=0, iterations=0, repeats=repeats,
            value=min(of_a_first_fit(name) for _ in range(repeats)), unit="s", compared="value", goal=goal,
        )  # fmt: skip
    for n, width, components in first_fit.SMALL_FITS:
        ours, compiled = first_fit.small_fit(n, width, components, max(repeats, 3))
        yield Row(
            figure="start-up", model=f"mixture, d = {width}, M = {components}", method="auto",
            setting="small fit, CPU", n=n, d=str(width), components=components, b=0, iterations=0,
            repeats=repeats, value=ours, unit="s", peer="compiled", peer_value=compiled, compared="ratio",
            goal=GOAL_SMALL,
        )  # fmt: skip


def of_a_first_fit(name: str) -> float:
    """Return the CPU seconds of a process that does one fit, with an empty cache."""
    with TemporaryDirectory() as cache:
        return float(fresh("-m", "benchmarks.first_fit", name, NUMBA_CACHE_DIR=cache))


def until_iterating(model: str, cache: str) -> float:
    """Return the seconds from the start of a process until it has done its first iterations."""
    start = monotonic()
    return float(fresh("-m", "benchmarks.first_iterations", model, NUMBA_CACHE_DIR=cache)) - start


def fresh(*arguments: str, **variables: str) -> str:
    """Return the output of a new Python with these arguments."""
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout
