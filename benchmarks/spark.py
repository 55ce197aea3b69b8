"""Iterations and whole fits of a Gaussian mixture on two cores: swiftem here and on Dask workers, and Spark.

``python -m benchmarks.spark [STAGE ...] [--folder F] [--n N] [--rounds R] [--most K] [--master URL]`` needs
Dask, pyspark and Java (``pip install pyspark``). Stages, in their order; all of them by default:

- ``rows``: the rows, in Parquet files;
- ``iteration``: Spark, (t(12) − t(2)) / 10 of the minima of several measurements, on each master;
- ``fit``: Spark, its start and a whole fit, on the master of the faster iteration;
- ``floor``: Spark's iterations in NumPy, with the machine epsilon that it adds to every weighted density, and
  their log-likelihood, not timed;
- ``swiftem``: iterations and whole fits from Spark's start, here and on two workers; whole fits by default
  (the stored figures are of fits with split-and-merge moves).

Each stage writes what it found to the folder, so that each may be started by itself, on a quiet machine; the
folder's ``result.json`` has all figures, and is printed. Spark's rows are cached, and Spark 4 loads Java's
vector module itself. A start is drawn by the session that fits from it: draws depend on partitions.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import swiftem
from benchmarks.environment import environment
from benchmarks.mixture_fit import overlapping
from benchmarks.timing import threads
from swiftem import methods, models

D, M, UNITS = 16, 32, 8
FEW, MANY = 2, 12
MASTERS = ("local[2]", "local-cluster[2,1,4096]")
"""Two threads, and a standalone cluster of two workers of one core each."""
MODEL = models.GaussianMixtureModel(M, covariance="full", reg_covar=1e-6)
START, END = "start.npz", "end.npz"


def write_rows(folder: Path, n: int) -> None:
    """Write the rows, to one Parquet file for each unit."""
    import pyarrow as pa
    from pyarrow import parquet

    X = overlapping(n, 0, D, M)
    np.save(folder / "rows.npy", X)
    shutil.rmtree(folder / "rows", ignore_errors=True)
    (folder / "rows").mkdir()
    for number, part in enumerate(np.array_split(X, UNITS)):
        table = pa.table({f"x{c}": part[:, c] for c in range(D)})
        parquet.write_table(table, folder / "rows" / f"part-{number}.parquet")


def iteration(folder: Path, master: str, rounds: int) -> dict[str, Any]:
    """Return Spark's seconds per iteration."""
    spark = Spark(master, folder)
    seconds = _iteration(spark.fit, rounds)
    spark.session.stop()
    return {f"Spark, {master}": seconds}


def fit(folder: Path, master: str, most: int) -> dict[str, Any]:
    """Return the seconds of Spark's whole fit; store where it starts and ends."""
    spark = Spark(master, folder)
    X = np.load(folder / "rows.npy", mmap_mode="r")
    start = spark.fit(0)
    began = perf_counter()
    fitted = spark.fit(most, tol=1e-3 * len(X))  # for the sum over rows
    seconds, done = perf_counter() - began, fitted.summary.numIter
    for name, model in ((START, start), (END, fitted)):
        means = [one.mean.toArray() for one in model.gaussians]
        covariances = [one.cov.toArray() for one in model.gaussians]
        np.savez(folder / name, weights=model.weights, means=means, covariances=covariances)
    spark.session.stop()
    value = -float(swiftem.objective(MODEL, X, theta_of(folder / END)))
    return {f"Spark, {master}": {"seconds": seconds, "iterations": done, "log-likelihood": value}}


def floor(folder: Path, iterations: int) -> float:
    """Return the log-likelihood after Spark's iterations in NumPy: em with w_m N_m(y) + ε for w_m N_m(y).

    A row that is below ε = 2⁻⁵² in all components gets the same responsibility of each. In Spark's start,
    whose covariances are those of five rows each, 3 % of the rows do: its iterations are not those of em.
    """
    X, theta = np.load(folder / "rows.npy", mmap_mode="r"), theta_of(folder / START)
    for _ in range(iterations):
        sums, squares, weights = np.zeros((M, D)), np.zeros((M, D, D)), np.zeros(M)
        whitened = np.linalg.inv(np.linalg.cholesky(theta.covariances))
        constant = np.log(theta.weights) - 0.5 * D * np.log(2.0 * np.pi)
        constant += np.log(np.diagonal(whitened, axis1=1, axis2=2)).sum(axis=1)
        for first in range(0, len(X), 50_000):
            y = X[first : first + 50_000]
            away = np.stack([(((y - theta.means[m]) @ whitened[m].T) ** 2).sum(axis=1) for m in range(M)])
            share = np.exp(constant[:, None] - 0.5 * away) + np.finfo(float).eps
            share /= share.sum(axis=0)
            weights += share.sum(axis=1)
            sums += share @ y
            squares += np.stack([(y * one[:, None]).T @ y for one in share])
        means = sums / weights[:, None]
        covariances = squares / weights[:, None, None] - means[:, :, None] * means[:, None]
        theta = MODEL.theta(weights=weights / weights.sum(), means=means, covariances=covariances)
    return -float(swiftem.objective(MODEL, X, theta))


def ours(folder: Path, rounds: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the seconds of iterations, and of whole fits from Spark's start."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X, start = np.load(folder / "rows.npy"), theta_of(folder / START)
    per_iteration: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    with (
        threads(2),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1") as cluster,
        Client(cluster),
    ):
        planned = da.from_array(X, chunks=(-(-len(X) // UNITS), D))
        for name, rows in (("swiftem, two workers", planned), ("swiftem, here", X)):
            # Rows are read and kept once per run: t(12) − t(2) is without that, as Spark's is.
            per_iteration[name] = _iteration(lambda k, rows=rows: _em(rows, start, k), rounds)
            mixture = swiftem.GaussianMixture(
                M, random_state=0, weights_init=start.weights, means_init=start.means,
                precisions_init=np.linalg.inv(start.covariances),
            )  # fmt: skip
            mixture.fit(rows)  # compiled
            began = perf_counter()
            mixture.fit(rows)
            seconds, done = perf_counter() - began, mixture.n_iter_
            whole[name] = {"seconds": seconds, "passes": done, "log-likelihood": float(mixture.score(X))}
    return per_iteration, whole


def _em(rows: Any, theta: Any, n_iter: int) -> Any:
    return swiftem.run(MODEL, rows, methods.EM(), theta0=theta, n_iter=n_iter)


def _iteration(fit: Callable[[int], Any], rounds: int) -> float:
    """Return the seconds of an iteration."""
    taken: dict[int, list[float]] = {FEW: [], MANY: []}
    fit(FEW)  # compiled, and cached
    for _ in range(rounds):
        for iterations, seconds in taken.items():
            began = perf_counter()
            fit(iterations)
            seconds.append(perf_counter() - began)
    return (min(taken[MANY]) - min(taken[FEW])) / (MANY - FEW)


class Spark:
    """Spark's GaussianMixture on cached rows; the same seed draws the same start in a session."""

    def __init__(self, master: str, folder: Path) -> None:
        from pyspark.ml.feature import VectorAssembler
        from pyspark.sql import SparkSession

        build = SparkSession.builder.master(master).config("spark.driver.memory", "6g")
        self.session = build.config("spark.ui.enabled", "false").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        table = self.session.read.parquet(str(folder / "rows"))
        columns = VectorAssembler(inputCols=[f"x{c}" for c in range(D)], outputCol="features")
        self.rows = columns.transform(table).select("features").repartition(UNITS).cache()
        self.rows.count()

    def fit(self, iterations: int, tol: float = 0.0) -> Any:
        """Return the model after at most so many iterations; 0 are the parameters of the start."""
        from pyspark.ml.clustering import GaussianMixture

        return GaussianMixture(k=M, seed=0, maxIter=iterations, tol=tol).fit(self.rows)


def theta_of(path: Path) -> Any:
    """Return stored parameters."""
    with np.load(path) as stored:
        return MODEL.theta(**stored)


def main(chosen: argparse.Namespace) -> dict[str, Any]:
    """Do the stages, and return all that is known."""
    folder: Path = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "result.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    for stage in chosen.stages or STAGES:
        if stage == "rows":
            write_rows(folder, chosen.n)
            known = environment() | {"pyspark": version("pyspark"), "n": chosen.n, "d": D, "M": M}
            known |= {"iteration": {}, "whole fit": {}}
        elif not known:
            raise SystemExit(f"{folder} must have rows: do the stage rows first.")
        elif stage == "iteration":
            for master in chosen.master or MASTERS:
                known["iteration"] |= iteration(folder, master, chosen.rounds)
        elif stage == "fit":
            timed = {master: known["iteration"].get(f"Spark, {master}", np.inf) for master in MASTERS}
            master = (chosen.master or [min(timed, key=lambda one: timed[one])])[0]
            known["whole fit"] |= fit(folder, master, chosen.most)
        elif stage == "floor":
            done = next(one["iterations"] for name, one in known["whole fit"].items() if "Spark" in name)
            known["in NumPy, with Spark's floor"] = floor(folder, done)
        else:
            per_iteration, whole = ours(folder, chosen.rounds)
            known["iteration"] |= per_iteration
            known["whole fit"] |= whole
        file.write_text(json.dumps(known, indent=1) + "\n")
    return known


STAGES = ("rows", "iteration", "fit", "floor", "swiftem")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stages", nargs="*", choices=[*STAGES, []], metavar="STAGE")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "swiftem-spark")
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--most", type=int, default=100, help="Maximum number of iterations of whole fits.")
    parser.add_argument("--master", action="append", help="By default local[2] and a cluster of two workers.")
    print(json.dumps(main(parser.parse_args()), indent=1))
