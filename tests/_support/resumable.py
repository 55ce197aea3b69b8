"""Runs and fits that end early and are resumed: every model, method and estimator.

A case is a function of a folder for checkpoints, or None, and ``resume``; it returns all of the result but
seconds. Only what users import is imported, so that a new process has nothing else when it reads the folder.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from forks import encode
from surroundings import within

import swiftem
from swiftem import methods, models

Case = Callable[..., bytes]
N = 240
KINDS = ("full", "tied", "diag", "spherical")
BLOCKS = {"gaussian": [0], "poisson": [1]}


def rows(d: int = 2, n: int = N) -> Any:
    """Return rows of a mixture of three components."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(3, d))[rng.integers(3, size=n)]


def far_rows() -> Any:
    y = rows()
    y[::12] *= 400.0
    return y


def with_gaps() -> Any:
    y = rows(3)
    y[np.random.default_rng(1).random(y.shape) < 0.1] = np.nan
    return y


def of_family(name: str) -> Any:
    """Return rows in the range of a family."""
    y = rows()
    if name == "bernoulli":
        return (y > 0) * 1.0
    if name in ("binomial", "categorical"):
        return np.clip(np.round(np.abs(y)), 0, 4)
    if name == "poisson":
        return np.round(np.abs(y))
    if name == "von-mises-fisher":
        return y / np.linalg.norm(y, axis=1, keepdims=True)
    return y if name in ("gaussian", "student-t") else np.abs(y) + 0.1


def counts(documents: int = 30, words: int = 25, mean: float = 0.4) -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(mean, size=(documents, words)))


def many_counts() -> Any:
    return counts(600, 40, 0.2)


def stored(name: str, write: Callable[[Path], None]) -> str:
    """Return a file that every process that is killed and its successors find; ``write`` fills it."""
    file = Path(tempfile.gettempdir(), f"swiftem-fault-{os.getuid()}-{name}")
    if not file.exists():
        part = file.with_name(f"{os.getpid()}-{file.name}")
        write(part)
        part.replace(file)
    return str(file)


def stored_rows(n: int = N) -> str:
    return stored(f"{n}-rows.npy", lambda file: np.save(file, rows(n=n)))


def stored_documents(n: int = 600) -> str:
    """Return documents in a file, one in each line: words and how often they are there."""

    def write(file: Path) -> None:
        matrix, lines = counts(n, 60, 0.1), []
        for first, last in pairwise(matrix.indptr):
            pairs = zip(matrix.indices[first:last], matrix.data[first:last], strict=True)
            lines.append(f"{last - first} {' '.join(f'{v}:{c}' for v, c in pairs)}\n")
        file.write_text("".join(lines))

    return stored(f"{n}-documents.ldac", write)


class Rate(NamedTuple):
    """θ of a model of one's own."""

    rate: float


OWN = models.FunctionModel(
    lambda y, rng: Rate(1.0),
    lambda y, theta: (np.abs(y[:, :1]), np.log(theta.rate) - theta.rate * np.abs(y[:, 0])),
    lambda s: Rate(1.0 / float(s[0])),
    lambda theta: 0.0,
)


def methods_of(b: int) -> dict[str, methods.Method]:
    """Return the methods by name, with batches of b."""
    made: dict[str, methods.Method] = {
        name: methods.make_method(name, step_size=0.1, batch_size=b) for name in methods.METHODS
    }
    made["averaged"] = methods.Averaged(methods.OnlineEM(step_size=0.2, batch_size=b), 40)
    for name in ("squarem", "anderson"):
        made[name] = methods.Accelerated(methods.EM(), name)
    return made


def of_run(model: Any, data: Callable[[], Any], method: methods.Method, **options: Any) -> Case:
    """Return a case of ``swiftem.run``; ``length`` makes it longer."""
    every = 9 if method.index_streams else 1

    def case(folder: str | None, resume: Any = "auto", length: int = 1, seed: int = 1) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": every, "resume": resume}
        how = {"n_iter": 8 * every * length, "seed": seed, "record_every": 2 * every * length}
        result = swiftem.run(model, data(), method, **how, **options, **kept)
        return encode((result.theta, result.s, result.state, result.path, result.passes, result.status))

    return case


def of_fit(kind: Any, data: Callable[[], tuple[Any, ...]], *names: str, **parameters: Any) -> Case:
    """Return a case of ``fit``; ``names`` are the attributes that count."""

    def case(folder: str | None, resume: Any = "auto", length: int = 1, seed: int = 0) -> bytes:
        given = {"n_components": 3, "random_state": seed, "max_iter": 40, "tol": 0.0} | parameters
        estimator = kind(**given)
        with warnings.catch_warnings(), within(folder, 1, resume):
            warnings.simplefilter("ignore")  # of fits that did not converge
            estimator.fit(*data())
        history = estimator.history_.table()
        del history["seconds"]
        return encode((*(getattr(estimator, name) for name in names), history, estimator.n_iter_))

    return case


GAUSSIAN = ("weights_", "means_", "covariances_", "lower_bounds_")
MIXTURE = ("weights_", "params_", "lower_bounds_")
TOPICS = ("components_", "doc_topic_", "stationarity_")
REGRESSION = ("weights_", "coef_", "intercept_", "lower_bound_")
UNIT, FULL = models.GaussianMixtureModel(3), models.GaussianMixtureModel(3, covariance="full")


def runs() -> dict[str, Case]:
    """Return runs of every method on every kind of model."""
    made: dict[str, tuple[Any, Callable[[], Any]]] = {"unit": (UNIT, rows), "own": (OWN, rows)}
    for kind in KINDS:
        gaps = models.GaussianMixtureModel(3, covariance=kind, missing="ignore")
        made[kind] = models.GaussianMixtureModel(3, covariance=kind), rows
        made[f"missing {kind}"] = gaps, with_gaps
    for family in swiftem.families.FAMILIES:
        made[family] = models.MixtureModel(3, family), lambda family=family: of_family(family)
    made["blocks"] = models.MixtureModel(3, BLOCKS), lambda: np.abs(np.round(rows()))
    made["tokens"] = models.PLSAModel(3), counts
    made["file"] = FULL, stored_rows
    found = {
        f"run {label} {name}": of_run(model, data, method)
        for name, method in methods_of(5).items()
        for label, (model, data) in made.items()
    }
    for name, method in methods_of(1).items():
        found[f"run one by one {name}"] = of_run(UNIT, rows, method)
        found[f"run far {name}"] = of_run(UNIT, far_rows, method)
        found[f"run token by token {name}"] = of_run(models.PLSAModel(3), counts, method)

    def record(iterate: Any) -> Any:
        return UNIT.bind(swiftem.data.as_source(rows())).unpack(iterate.s)

    found["run records"] = of_run(UNIT, rows, methods.EM(), record=record)
    half = methods.FastIncrementalEM(
        step_size=0.05, batch_size=50, memory_order="shuffled", memory_dtype="float32"
    )
    found["run float32 fiem"] = of_run(FULL, lambda: rows().astype(np.float32), half)
    weight = np.random.default_rng(1).random(N)
    found["run weights iem"] = of_run(UNIT, rows, methods_of(5)["iem"], sample_weight=weight)
    found["run reference sem-vr"] = of_run(UNIT, rows, methods_of(5)["sem-vr"], kernels="reference")
    return found


def fits() -> dict[str, Case]:
    """Return fits of every estimator by every method."""
    found: dict[str, Case] = {}
    named = {name: name for name in ("auto", *methods.METHODS)}
    for name, method in {**named, "squarem": methods.Accelerated(methods.EM(), "squarem")}.items():
        for kind in KINDS:
            found[f"GaussianMixture {kind} {name}"] = of_fit(
                swiftem.GaussianMixture, lambda: (rows(),), *GAUSSIAN, covariance_type=kind, method=method
            )
        found[f"GaussianMixture missing {name}"] = of_fit(
            swiftem.GaussianMixture, lambda: (with_gaps(),), *GAUSSIAN, missing="ignore", method=method
        )
        found[f"GaussianMixture two starts {name}"] = of_fit(
            swiftem.GaussianMixture,
            lambda: (rows(),),
            *GAUSSIAN,
            n_init=2,
            init_params="random",
            method=method,
        )
        for family in swiftem.families.FAMILIES:
            found[f"Mixture {family} {name}"] = of_fit(
                swiftem.Mixture, lambda of=family: (of_family(of),), *MIXTURE, family=family, method=method
            )
        found[f"Mixture blocks {name}"] = of_fit(
            swiftem.Mixture, lambda: (np.abs(np.round(rows())),), *MIXTURE, family=BLOCKS, method=method
        )
        found[f"RegressionMixture gaussian {name}"] = of_fit(
            swiftem.RegressionMixture, lambda: (rows(), rows(3)[:, 2]), *REGRESSION, method=method
        )
    for name in named:
        found[f"PLSA {name}"] = of_fit(swiftem.PLSA, lambda: (many_counts(),), *TOPICS, method=name)
    found["RegressionMixture poisson"] = of_fit(
        swiftem.RegressionMixture,
        lambda: (rows(), np.round(np.abs(rows(3)[:, 2]))),
        *REGRESSION,
        family="poisson",
    )
    for name, options in {"alpha": {"alpha": "learn"}, "background": {"background": True}}.items():
        found[f"PLSA {name}"] = of_fit(swiftem.PLSA, lambda: (many_counts(),), *TOPICS, **options)
    for name in ("auto", "em", "sem", "sem-vr"):
        found[f"PLSA file {name}"] = of_fit(swiftem.PLSA, lambda: (stored_documents(),), *TOPICS, method=name)
    return found


CASES: dict[str, Case] = runs() | fits()

TYPES = {
    "run unit em": {"Iterate", "State", "NoState", "GaussianMixtureTheta"},
    "run records": {"MixtureStatistics"},
    "run full squarem": {"AcceleratedState", "SquaremState", "GaussianTheta"},
    "run poisson anderson": {"AndersonState", "MixtureTheta"},
    "run unit averaged": {"Averages"},
    "run diag iem": {"MemoryState"},
    "run one by one fiem": {"MemoryState"},
    "run far fiem": {"MemoryState"},
    "run unit opt-fiem": {"OptFIEMState"},
    "run unit spider": {"AnchorState"},
    "run token by token spider": {"PLSATheta", "Tables"},
    "run own sem": {"NoState", "resumable:Rate"},
    "GaussianMixture full spider": {"Start"},
    "PLSA auto": {"Moment"},
    "PLSA sem-vr": {"AnchorState", "DocumentSnapshot"},
    "RegressionMixture poisson": {"Regressions"},
}
"""Cases that are tested each time, and the types that they store: each type of state is in one of them."""
