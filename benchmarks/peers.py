"""Whole default fits beside other packages: the figures of README and of the benchmarks page.

``python -m benchmarks.peers [NAME ...]`` measures all tasks, or those that are named, and stores them in
``benchmarks/results/peers.json``; ``python -m benchmarks --write`` then fills the figures into the pages.
Each package fits with its own start and its own defaults, on all cores, in wall seconds. Peers that are not
installed are left out (``pip install tomotopy stepmix pyspark``; Spark also needs Java).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import swiftem
from benchmarks.environment import environment
from benchmarks.mixture_fit import overlapping
from benchmarks.topic_peers import tomotopy_model
from benchmarks.topics import completion, corpora, divided

FILE = Path(__file__).with_name("results") / "peers.json"
ROUNDS = 3
LONG = 20.0
"""A fit that takes more seconds than this is measured once."""
PACKAGES = ("scikit-learn", "tomotopy", "stepmix", "pyspark")


class Fit(NamedTuple):
    """A package's default fit, and the quality of what it returns."""

    fit: Callable[[], Any]
    quality: Callable[[Any], float]


class Task(NamedTuple):
    """What is fitted: a sentence, the name of the quality and its digits, and a fit for each package."""

    title: str
    measure: str
    digits: int
    fits: Callable[[], Mapping[str, Fit]]


def mixture(n: int, components: int) -> Mapping[str, Fit]:
    """A Gaussian mixture with full covariances."""
    from sklearn.mixture import GaussianMixture

    X = overlapping(n, 0, 8, components)

    def score(fitted: Any) -> float:
        return float(fitted.score(X))

    found = {
        "swiftem": Fit(lambda: swiftem.GaussianMixture(components, random_state=0).fit(X), score),
        "scikit-learn": Fit(lambda: GaussianMixture(components, random_state=0).fit(X), score),
    }
    if n <= 200_000 and spark() is not None:
        rows = frame([(dense,) for dense in vectors(X)], ["features"])
        found["Spark"] = Fit(lambda: spark_mixture(rows, components, n), score)
    return found


def survey() -> Mapping[str, Fit]:
    """Latent classes of answers, a tenth of which is missing."""
    rng = np.random.default_rng(0)
    kind = rng.choice(5, 20_000, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    levels = rng.dirichlet(np.full(4, 0.8), size=(5, 15)).cumsum(axis=2)
    answers = (rng.random((20_000, 15, 1)) > levels[kind]).sum(axis=2).clip(max=3).astype(float)
    answers[rng.random(answers.shape) < 0.1] = np.nan

    def ours() -> Any:
        return swiftem.Mixture(5, family="categorical", missing="ignore", random_state=0).fit(answers)

    found = {"swiftem": Fit(ours, lambda fitted: float(fitted.score(answers)))}
    if find_spec("stepmix"):
        from stepmix.stepmix import StepMix

        def theirs() -> Any:
            peer = StepMix(5, measurement="categorical_nan", random_state=0, verbose=0, progress_bar=0)
            return peer.fit(answers)

        found["StepMix"] = Fit(theirs, lambda fitted: float(fitted.score(answers)))
    return found


@cache
def documents() -> tuple[sparse.csr_array, ...]:
    """Return the counts of docstrings: those to fit, and the seen and hidden halves of the others."""
    (_, X), *_ = corpora(False)
    return divided(X)


def topics(n_topics: int) -> Mapping[str, Fit]:
    """Topics of docstrings; perplexity by one evaluator for all, from the topics' words alone."""
    from sklearn.decomposition import LatentDirichletAllocation

    train, seen, hidden = documents()

    def quality(words: Any) -> float:
        return completion(np.asarray(words), seen, hidden)

    found = {
        "swiftem": Fit(lambda: swiftem.PLSA(n_topics, random_state=0).fit(train).components_, quality),
        "scikit-learn": Fit(
            lambda: LatentDirichletAllocation(n_topics, random_state=0).fit(train).components_, quality
        ),
    }
    if find_spec("tomotopy"):
        found["tomotopy"] = Fit(lambda: gibbs(train, n_topics, 1000), quality)
    return found


TASKS = {
    "mixture": Task(
        "Gaussian mixture, full covariances, 200,000 rows × 8 columns, 8 components",
        "log-likelihood per row", 4, lambda: mixture(200_000, 8),
    ),
    "overlapping": Task(
        "Gaussian mixture, full covariances, 500,000 rows × 8 columns, 16 overlapping components",
        "log-likelihood per row", 4, lambda: mixture(500_000, 16),
    ),
    "survey": Task(
        "Latent classes, 20,000 people × 15 questions, a tenth of the answers missing, 5 classes",
        "log-likelihood per row", 4, survey,
    ),
    "topics": Task(
        "Topics of Python docstrings, 20 topics", "held-out perplexity", 0, lambda: topics(20)
    ),
}  # fmt: skip


def gibbs(X: sparse.csr_array, n_topics: int, iterations: int) -> Any:
    """Return the topics' words of tomotopy after this many iterations of its sampler."""
    model = tomotopy_model(X, n_topics)
    model.train(iterations)
    found = np.zeros((n_topics, X.shape[1]))
    found[:, [int(word) for word in model.used_vocabs]] = [
        model.get_topic_word_dist(k) for k in range(n_topics)
    ]
    return found


@cache
def spark() -> Any:
    """Return a session of Spark on all cores, or None if Spark or Java is not installed."""
    if not (find_spec("pyspark") and which("java")):
        return None
    from pyspark.sql import SparkSession

    build = SparkSession.builder.master("local[*]").config("spark.driver.memory", "3g")
    build = build.config("spark.ui.showConsoleProgress", "false")
    session = build.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def frame(rows: Any, names: list[str]) -> Any:
    found = spark().createDataFrame(rows, names).cache()
    found.count()
    return found


def vectors(X: Any) -> Any:
    from pyspark.ml.linalg import Vectors

    return (Vectors.dense(row) for row in X)


def spark_mixture(rows: Any, components: int, n: int) -> Any:
    """Return Spark's mixture with the interface of ours."""
    from pyspark.ml.clustering import GaussianMixture

    # Spark's tol is for the sum over rows.
    found = GaussianMixture(k=components, seed=0, tol=1e-3 * n).fit(rows)
    means = np.array([one.mean.toArray() for one in found.gaussians])
    covariances = np.array([one.cov.toArray() for one in found.gaussians])
    return swiftem.GaussianMixture.from_parameters(found.weights, means, covariances)


def measured(fits: Mapping[str, Fit]) -> list[dict[str, Any]]:
    """Return the median seconds of each package, measured alternately after one fit, and the quality."""
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    quality = {}
    fits["swiftem"].fit()  # compiles or loads the kernels
    for _ in range(ROUNDS):
        for name, one in fits.items():
            if any(time > LONG for time in seconds[name]):
                continue
            began = perf_counter()
            fitted = one.fit()
            seconds[name].append(perf_counter() - began)
            quality[name] = one.quality(fitted)
            print(f"  {name}: {seconds[name][-1]:.2f} s, {quality[name]:.4f}", file=sys.stderr, flush=True)
    return [{"package": name, "seconds": median(seconds[name]), "value": quality[name]} for name in fits]


def main(names: list[str], file: Path = FILE) -> None:
    """Measure the tasks of these names, all by default, and store them beside the others."""
    unknown = sorted(set(names) - set(TASKS))
    if unknown:
        sys.exit(f"NAME must be one of {', '.join(TASKS)}, got {unknown[0]!r}.")
    stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    versions = {
        name: version(name) for name in PACKAGES if find_spec(name.replace("scikit-learn", "sklearn"))
    }
    for name in names or TASKS:
        task = TASKS[name]
        print(task.title, file=sys.stderr)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits of peers that have not converged
            fits = measured(task.fits())
        texts = {"title": task.title, "measure": task.measure, "digits": task.digits}
        stored[name] = {**texts, "environment": environment() | versions, "fits": fits}
    file.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
