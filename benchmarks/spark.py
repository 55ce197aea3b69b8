"""Iterations and whole fits of a Gaussian mixture on two cores: swiftem here and on Dask workers, and Spark.

``python -m benchmarks.spark [FILE] [--n N] [--rounds R]`` prints JSON, and writes it to FILE. It needs Dask,
pyspark and Java (``pip install pyspark``). Spark's rows are cached. An iteration is (t(12) − t(2)) / 10, of
the minima of several measurements; all start from the parameters that Spark draws. Spark 4 loads Java's
vector module itself and says so.
"""

from __future__ import annotations

import argparse
import json
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


def main(n: int, rounds: int, most: int, masters: tuple[str, ...] = MASTERS) -> dict[str, Any]:
    """Return seconds per iteration, and of whole fits until Spark's final log-likelihood."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X = overlapping(n, 0, D, M)
    found: dict[str, Any] = {"n": n, "d": D, "M": M, "iteration": {}, "whole fit": {}}
    theta, value = None, -np.inf
    for master in masters:
        spark = Spark(master, X)
        name = f"Spark, {master}"
        theta = theta_of(spark.fit(0)) if theta is None else theta
        found["iteration"][name] = _iteration(spark.fit, rounds)
        began = perf_counter()
        fitted = spark.fit(most, tol=1e-3 * n)  # for the sum over rows
        seconds = perf_counter() - began
        value = -float(swiftem.objective(MODEL, X, theta_of(fitted)))
        found["whole fit"][name] = {"seconds": seconds, "log-likelihood": value}
        print(name, found["iteration"][name], found["whole fit"][name], flush=True)
        spark.session.stop()
    with (
        threads(2),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1") as cluster,
        Client(cluster),
    ):
        # The objective of each iterate is another pass: it is not part of the time.
        needed = _em(X, theta, most, lambda now: -swiftem.objective(MODEL, X, now.theta) >= value).n_iter
        planned = da.from_array(X, chunks=(-(-n // UNITS), D))
        for name, rows in (("swiftem, two workers", planned), ("swiftem, here", X)):
            # Rows are read and kept once per run: t(12) − t(2) is without that, as Spark's is.
            found["iteration"][name] = _iteration(lambda k, rows=rows: _em(rows, theta, k), rounds)
            began = perf_counter()
            ended = _em(rows, theta, needed)
            seconds = perf_counter() - began
            reached = -float(swiftem.objective(MODEL, X, ended.theta))
            found["whole fit"][name] = {"seconds": seconds, "iterations": needed, "log-likelihood": reached}
    return found


def _em(rows: Any, theta: Any, n_iter: int, callback: Any = None) -> Any:
    options = {} if callback is None else {"callback": callback, "record_every": 1}
    return swiftem.run(MODEL, rows, methods.EM(), theta0=theta, n_iter=n_iter, **options)


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
    """Spark's GaussianMixture on cached rows; the same seed draws the same start."""

    def __init__(self, master: str, X: Any) -> None:
        from pyspark.ml.linalg import Vectors
        from pyspark.sql import SparkSession

        build = SparkSession.builder.master(master).config("spark.driver.memory", "6g")
        self.session = build.config("spark.ui.enabled", "false").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        rows = self.session.createDataFrame(((Vectors.dense(row),) for row in X), ["features"])
        self.rows = rows.repartition(UNITS).cache()
        self.rows.count()

    def fit(self, iterations: int, tol: float = 0.0) -> Any:
        """Return the model after at most so many iterations; 0 are the parameters of the start."""
        from pyspark.ml.clustering import GaussianMixture

        return GaussianMixture(k=M, seed=0, maxIter=iterations, tol=tol).fit(self.rows)


def theta_of(fitted: Any) -> Any:
    """Return the parameters of Spark's model."""
    means = [one.mean.toArray() for one in fitted.gaussians]
    covariances = [one.cov.toArray() for one in fitted.gaussians]
    return MODEL.theta(weights=fitted.weights, means=means, covariances=covariances)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=100, help="Maximum number of iterations of whole fits.")
    parser.add_argument("--master", action="append", help="By default local[2] and a cluster of two workers.")
    chosen = parser.parse_args()
    result = main(chosen.n, chosen.rounds, chosen.most, tuple(chosen.master or MASTERS))
    text = json.dumps(environment() | {"pyspark": version("pyspark")} | result, indent=1)
    print(text)
    if chosen.file is not None:
        chosen.file.write_text(text + "\n")
