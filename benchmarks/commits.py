"""``python -m benchmarks.commits --base REV``: whole calls with this tree and with another commit.

Both trees are measured in turn, each in a process of its own with a warm kernel cache, on one thread. A ratio
is the smallest time of this tree divided by the smallest one of the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]
Call = Callable[[], object]


def rows(n: int, d: int, groups: int = 8) -> np.ndarray:
    """Return rows (n, d) of overlapping groups."""
    rng = np.random.default_rng(0)
    return 3.0 * rng.normal(size=(groups, d))[rng.integers(groups, size=n)] + rng.normal(size=(n, d))


def counts(documents: int, words: int) -> sp.csr_array:
    """Return counts of about 60 tokens per document, of twelve topics."""
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(words, 0.05), size=12)
    return sp.csr_array(rng.poisson(60.0 * rng.dirichlet(np.full(12, 0.1), size=documents) @ topics))


def methods_of_runs() -> Iterator[tuple[str, Call]]:
    """Yield runs of every method on mixtures, tokens and compiled functions."""
    import swiftem
    from swiftem import methods, models

    y = rows(20_000, 8)
    tokens = counts(400, 800)
    given = {
        "unit": (models.GaussianMixtureModel(8), y),
        "diag": (models.GaussianMixtureModel(8, covariance="diag"), y),
        "full": (models.GaussianMixtureModel(8, covariance="full"), y),
        "tokens": (models.PLSAModel(10, alpha=1e-4, beta=1e-4), tokens),
    }
    lengths = {"unit": 200_000, "diag": 20_000, "full": 5_000, "tokens": 50_000}
    for label, (model, data) in given.items():
        for name in ("sem", "iem", "sem-vr", "fiem", "spider", "opt-fiem"):
            for b in (1, 100):
                n_iter = lengths[label] // (b if name != "opt-fiem" else 100 * b)
                options = {"batch_size": b}
                if "step_size" in methods.METHODS[name].__dataclass_fields__:
                    options["step_size"] = 0.01
                method = methods.METHODS[name](**options)
                call = partial(swiftem.run, model, data, method, n_iter=n_iter, seed=0)
                yield f"{label}, {name}, b={b}", call
        call = partial(swiftem.run, model, data, methods.EM(), n_iter=20, seed=0)
        yield f"{label}, em", call
        call = partial(
            swiftem.run, model, data, methods.Accelerated(methods.EM(), "squarem"), n_iter=20, seed=0
        )
        yield f"{label}, squarem", call


def passes() -> Iterator[tuple[str, Call]]:
    """Yield passes of em over many rows: covariances, families, missing cells."""
    import swiftem
    from swiftem import methods, models

    y = rows(200_000, 16)
    positive = np.abs(y) + 0.1
    small = y[:50_000]
    gaps = np.where(np.random.default_rng(2).random(small.shape) < 0.1, np.nan, small)
    cases: dict[str, tuple[Any, Any]] = {
        kind: (models.GaussianMixtureModel(16, covariance=kind), y)
        for kind in ("unit", "full", "tied", "diag", "spherical")
    }
    cases |= {
        "poisson": (models.MixtureModel(16, "poisson"), np.round(positive)),
        "gamma": (models.MixtureModel(8, "gamma"), positive[:50_000]),
        "categorical": (models.MixtureModel(8, "categorical"), np.clip(np.round(positive[:50_000]), 0, 6)),
        "student-t": (models.MixtureModel(8, "student-t"), small[:20_000]),
        "missing full": (models.GaussianMixtureModel(8, covariance="full", missing="ignore"), gaps),
        "missing diag": (models.GaussianMixtureModel(8, covariance="diag", missing="ignore"), gaps),
    }
    for name, (model, data) in cases.items():
        call = partial(swiftem.run, model, data, methods.EM(), n_iter=4, seed=0)
        yield f"passes, {name}", call


def fits() -> Iterator[tuple[str, Call]]:
    """Yield default fits of the estimators, and what follows a fit."""
    import swiftem

    y = rows(30_000, 8)
    few = y[:800, :4]
    corpus = counts(4_000, 3_000)
    X = y[:20_000, :3]
    response = X @ np.array([1.0, -1.0, 0.5]) + np.random.default_rng(3).normal(size=len(X))
    for kind in ("full", "diag"):
        mixture = swiftem.GaussianMixture(8, covariance_type=kind, random_state=0)
        yield f"GaussianMixture, {kind}", partial(mixture.fit, y)
        yield f"GaussianMixture, {kind}, few rows", partial(mixture.fit, few)
    fitted = swiftem.GaussianMixture(8, random_state=0, max_iter=5, init_params="random").fit(y)
    yield "predict", partial(fitted.predict, y)
    yield "score", partial(fitted.score, y)
    yield (
        "Mixture, poisson",
        partial(swiftem.Mixture(5, family="poisson", random_state=0).fit, np.round(np.abs(X))),
    )
    yield "RegressionMixture", partial(swiftem.RegressionMixture(2, random_state=0).fit, X, response)
    for topics in (10, 50):
        plsa = swiftem.PLSA(topics, random_state=0, max_iter=20, tol=0.0)
        yield f"PLSA, {topics} topics", partial(plsa.fit, corpus)
    plsa = swiftem.PLSA(20, method="sem-vr", random_state=0, max_iter=4)
    yield "PLSA, sem-vr", partial(plsa.fit, corpus)
    topics_of = swiftem.PLSA(20, random_state=0, max_iter=5).fit(corpus)
    yield "PLSA, transform", partial(topics_of.transform, corpus)


def stored(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield runs on files, units and with checkpoints."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    import swiftem
    from swiftem import data, methods, models

    y = rows(100_000, 8)
    table = pa.table({f"x{j}": y[:, j] for j in range(8)})
    np.save(folder / "rows.npy", y)
    pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=10_000)
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    model = models.GaussianMixtureModel(8, covariance="diag")
    for ending in ("npy", "parquet", "csv"):
        file = folder / f"rows.{ending}"
        yield f"{ending}, em", partial(swiftem.run, model, file, methods.EM(), n_iter=3, seed=0)
        method = methods.OnlineEM(batch_size=100, step_size=0.01)
        yield f"{ending}, sem", partial(swiftem.run, model, file, method, n_iter=1_000, seed=0)
    method = methods.FastIncrementalEM(batch_size=100)
    yield "parquet, fiem", partial(swiftem.run, model, folder / "rows.parquet", method, n_iter=1_000, seed=0)
    units = data.open_units(folder / "rows.parquet")
    yield "units, em", partial(swiftem.run, model, units, methods.EM(), n_iter=3, seed=0)
    numbers = iter(range(10_000))

    def checkpointed() -> object:
        place = folder / f"run {next(numbers)}"
        return swiftem.run(model, y, method, n_iter=2_000, seed=0, checkpoint=place, checkpoint_every=500)

    yield "fiem with checkpoints", checkpointed


def measure(only: list[str], repeats: int) -> dict[str, float]:
    """Return the smallest seconds of each call whose name contains one of the words."""
    from threadpoolctl import threadpool_limits

    import swiftem

    warnings.simplefilter("ignore")
    swiftem.set_threads(1)
    seconds = {}
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        for part in (methods_of_runs(), passes(), fits(), stored(Path(folder))):
            for name, call in part:
                if only and not any(word in name for word in only):
                    continue
                times = []
                for _ in range(repeats + 1):  # the first one loads kernels
                    began = perf_counter()
                    call()
                    times.append(perf_counter() - began)
                seconds[name] = min(times[1:])
    return seconds


def measured(source: Path, only: list[str], repeats: int) -> dict[str, float]:
    """Return the seconds that the sources in a folder take, in a process of their own."""
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "benchmarks.commits", "--measure", "--repeats", str(repeats)]
    command += [part for word in only for part in ("--only", word)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, cwd=source)
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.commits", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--base", metavar="REV", default="HEAD", help="the other commit")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="calls whose names contain the word"
    )
    parser.add_argument("--rounds", type=int, default=2, help="processes per tree, in turn")
    parser.add_argument("--repeats", type=int, default=3, help="calls per process, after a first one")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.only, chosen.repeats)))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "base")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", place, chosen.base], check=True)
        try:
            ours, theirs = [], []
            for _ in range(chosen.rounds):
                ours.append(measured(ROOT / "src", chosen.only, chosen.repeats))
                theirs.append(measured(place / "src", chosen.only, chosen.repeats))
        finally:
            subprocess.run([*git, "remove", "--force", place], check=True)
    for name in ours[0]:
        mine, base = (min(run[name] for run in runs) for runs in (ours, theirs))
        print(f"{mine / base:5.2f}  {mine * 1e3:8.1f} ms, {base * 1e3:8.1f} at {chosen.base}  {name}")


if __name__ == "__main__":
    main()
