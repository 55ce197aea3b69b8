"""Whole fits with each package's own defaults, for the README's table: CPU seconds, and the quality.

``python -m benchmarks.peers [FILE]`` writes FILE, by default ``benchmarks/results/peers.json``, and prints
the rows of the table; it takes about seven minutes. Peers that are not installed are left out
(``pip install tomotopy pyspark``; Spark also needs Java). CPU seconds count all threads, and for Spark the
Java process: unlike wall time they hardly change if others use the machine.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from shutil import which
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import swiftem
from benchmarks import mixture_fit, mixture_pass
from benchmarks.environment import environment
from benchmarks.timing import threads
from benchmarks.topic_peers import tomotopy_model
from benchmarks.topics import completion, corpora, divided

FILE = Path(__file__).with_name("results") / "peers.json"
N, D, M, K, ROUNDS, SEEDS = 200_000, 8, 8, 20, 2, 5
WIDE = (("full", 50_000, 64, 3.0),)


def main(file: Path) -> None:
    spark = Spark() if find_spec("pyspark") and which("java") else None
    with threadpool_limits(1), threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: dict[str, Any] = {"mixture": mixtures(spark), "topics": topics(spark)}
        found |= {"same": same_fit(), "pass": one_pass(), "rounds": ROUNDS}
    versions = {name: version(name) for name in ("tomotopy", "pyspark") if find_spec(name)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"environment": environment() | versions, **found}, indent=1) + "\n")
    print("\n".join(table(found)))


def table(found: dict[str, Any]) -> list[str]:
    """Return the rows of the README's table, in Markdown."""
    mixture, topic = ({fit["package"]: fit for fit in found[name]["fits"]} for name in ("mixture", "topics"))

    def of_mixture(name: str) -> str:
        fit = mixture.get(name)
        return "" if fit is None else f"{fit['seconds']:.1f} s, {fit['value']:.4f}".replace("-", "−")

    def of_topics(name: str) -> str:
        fit = topic.get(name)
        return "" if fit is None else f"{fit['seconds']:.1f} s, {fit['value']:.0f}"

    same, sizes = found["same"], found["topics"]
    never = sum(not isfinite(seconds) for seconds in same["swiftem"])
    reached = f"{median(same['swiftem']):.2f} s"
    if never:
        reached += f"; not reached for {never} of {SEEDS} seeds"
    short, long = (of_topics(f"tomotopy LDA, {number} iterations") for number in ("200", "1,000"))
    sampled = f"{short} (200 iterations); {long} (1,000)" if short else ""
    rows = [
        ("fit", "swiftem", "scikit-learn", "tomotopy", "Spark"),
        ("---",) * 5,
        (
            f"mixture, {N:,} × {D} rows, {M} components: CPU seconds, log-likelihood",
            f"{of_mixture('swiftem')} (`em`: {of_mixture('swiftem, method em')})",
            of_mixture("scikit-learn"), "", of_mixture("Spark"),
        ),
        (
            f"mixture, {mixture_fit.N:,} × {mixture_fit.D} rows, {mixture_fit.M} overlapping components: "
            "median time to scikit-learn's final log-likelihood",
            reached, f"{median(same['scikit-learn']):.1f} s", "", "",
        ),
        (
            "one EM pass, 50,000 × 64 rows, 20 components",
            *(f"{found['pass'][name]:.2f} s" for name in ("swiftem", "scikit-learn")), "", "",
        ),
        (
            f"topics, {sizes['documents']:,} documents, {sizes['tokens']:,} tokens, {K} topics: CPU seconds, "
            "held-out perplexity",
            of_topics("swiftem"), of_topics("scikit-learn LDA"), sampled, of_topics("Spark LDA"),
        ),
    ]  # fmt: skip
    return [f"| {' | '.join(row)} |" for row in rows]


def same_fit() -> dict[str, list[float]]:
    """Return, for each seed, the seconds of scikit-learn's fit, and of ours until it is as good."""
    runs = [mixture_fit.times(mixture_fit.N, seed, methods=["auto"]) for seed in range(SEEDS)]
    return {"swiftem": [run["auto"] for run in runs], "scikit-learn": [run["scikit-learn"] for run in runs]}


def one_pass() -> dict[str, float]:
    """Return the seconds of a pass of em at the same parameters."""
    row = next(row for row in mixture_pass.rows(False, 3, cases=WIDE))
    return {"swiftem": row.value * 1e-9, "scikit-learn": float(row.peer_value or 0.0) * 1e-9}


def mixtures(spark: Spark | None) -> dict[str, Any]:
    """Full covariances; each package uses its default start and stops at a gain of 1e-3 per row."""
    from sklearn.mixture import GaussianMixture

    X = mixture_fit.overlapping(N, 0, D, M)
    for method in ("em", "auto"):
        swiftem.GaussianMixture(M, method=method, max_iter=3).fit(X[:100_000])  # compiled before

    def score(mixture: Any) -> float:
        return float(mixture.score(X))

    cases: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
        "swiftem": (lambda: swiftem.GaussianMixture(M, random_state=0).fit(X), score),
        "swiftem, method em": (
            lambda: swiftem.GaussianMixture(M, method="em", random_state=0).fit(X), score
        ),
        "scikit-learn": (lambda: GaussianMixture(M, random_state=0).fit(X), score),
    }  # fmt: skip
    if spark is not None:
        rows = spark.frame([(dense,) for dense in spark.vectors(X)], ["features"])
        cases["Spark"] = (lambda: spark.mixture(rows), lambda fitted: spark.mean_likelihood(fitted, X))
    return {"n": N, "d": D, "M": M, "measure": "mean log-likelihood", "fits": measured(cases, spark)}


def topics(spark: Spark | None) -> dict[str, Any]:
    """Held-out perplexity by one evaluator for all, from the topics' words alone."""
    from sklearn.decomposition import LatentDirichletAllocation

    (_, X), *_ = corpora(False)
    train, seen, hidden = divided(X)
    swiftem.PLSA(K, max_iter=2).fit(train[:1000])  # compiled before

    def score(words: Any) -> float:
        return completion(np.asarray(words), seen, hidden)

    cases: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
        "swiftem": (lambda: swiftem.PLSA(K, random_state=0).fit(train).components_, score),
        "scikit-learn LDA": (
            lambda: LatentDirichletAllocation(K, random_state=0).fit(train).components_, score
        ),
    }  # fmt: skip
    if find_spec("tomotopy"):
        cases["tomotopy LDA, 200 iterations"] = (lambda: gibbs(train, 200), score)
        cases["tomotopy LDA, 1,000 iterations"] = (lambda: gibbs(train, 1000), score)
    if spark is not None:
        counted = spark.counts(train)
        cases["Spark LDA"] = (lambda: spark.topics(counted), score)
    sizes = {"documents": train.shape[0], "words": train.shape[1], "tokens": int(train.sum()), "K": K}
    return sizes | {"measure": "held-out perplexity", "fits": measured(cases, spark)}


def gibbs(X: sparse.csr_array, iterations: int) -> Any:
    model = tomotopy_model(X, K)
    model.train(iterations, workers=1)
    found = np.zeros((K, X.shape[1]))
    found[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in range(K)]
    return found


def measured(cases: dict[str, Any], spark: Spark | None) -> list[dict[str, Any]]:
    """Return the minimum CPU seconds of each case, measured alternately, and the result of its last fit."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    results = {}
    for number in range(ROUNDS):
        for name, (fit, score) in cases.items():
            if number and "1,000" in name:  # a minute each
                continue
            before = process_time() + (spark.cpu_seconds() if spark else 0.0)
            fitted = fit()
            seconds[name].append(process_time() + (spark.cpu_seconds() if spark else 0.0) - before)
            results[name] = score(fitted)
            print(f"{name}: {seconds[name][-1]:.2f} s, {results[name]:.4f}", file=sys.stderr, flush=True)
    return [{"package": name, "seconds": min(seconds[name]), "value": results[name]} for name in cases]


class Spark:
    """Spark in a Java child of this process, on one core."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        build = SparkSession.builder.master("local[1]").config("spark.driver.memory", "3g")
        self.session = build.config("spark.ui.enabled", "false").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self._pid = self.session.sparkContext._gateway.proc.pid

    def cpu_seconds(self) -> float:
        """Return the CPU time of the Java process so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def frame(self, rows: Any, names: list[str]) -> Any:
        found = self.session.createDataFrame(rows, names).cache()
        found.count()
        return found

    def vectors(self, X: Any) -> Any:
        from pyspark.ml.linalg import Vectors

        return (Vectors.dense(row) for row in X)

    def counts(self, X: sparse.csr_array) -> Any:
        from pyspark.ml.linalg import Vectors

        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = [
            (d, Vectors.sparse(X.shape[1], X.indices[a:b].tolist(), X.data[a:b].tolist()))
            for d, (a, b) in enumerate(ends)
        ]
        return self.frame(rows, ["id", "features"])

    def mixture(self, rows: Any) -> Any:
        from pyspark.ml.clustering import GaussianMixture

        # Spark's tol is for the sum over rows.
        return GaussianMixture(k=M, seed=0, maxIter=100, tol=1e-3 * N).fit(rows)

    def mean_likelihood(self, fitted: Any, X: Any) -> float:
        found = fitted.gaussians
        means = np.array([one.mean.toArray() for one in found])
        covariances = np.array([one.cov.toArray() for one in found])
        ours = swiftem.GaussianMixture.from_parameters(fitted.weights, means, covariances)
        return float(ours.score(X))

    def topics(self, counted: Any) -> Any:
        from pyspark.ml.clustering import LDA

        return LDA(k=K, seed=0).fit(counted).topicsMatrix().toArray().T


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
