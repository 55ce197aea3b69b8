"""Runs and fits that end early and are resumed: every model, method and estimator.

A case is a function of a folder for checkpoints, or None, and ``resume``; it returns all of the result but
seconds. Only what users import is imported, so that a new process has nothing else when it reads the folder.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from forks import encode
from gate_cases import KINDS, MIXED, corpus, counts, mixed_rows, responses, rows, rows_of, weights, with_gaps
from surroundings import within

import swiftem
from swiftem import methods, models

Case = Callable[..., bytes]


def far_rows() -> Any:
    y = rows()
    y[::12] *= 400.0
    return y


def gaps() -> Any:
    return with_gaps(rows())


def stored(name: str, write: Callable[[Path], None]) -> str:
    """Return a file that every process that is killed and its successors find; ``write`` fills it."""
    file = Path(tempfile.gettempdir(), f"swiftem-fault-{os.getuid()}-{name}")
    if not file.exists():
        part = file.with_name(f"{os.getpid()}-{file.name}")
        write(part)
        part.replace(file)
    return str(file)


def stored_rows() -> str:
    return stored("rows.npy", lambda file: np.save(file, rows()))


def stored_documents() -> str:
    """Return documents in a file, one in each line: words and how often they are there."""

    def write(file: Path) -> None:
        matrix, lines = counts(600, 60, 0.1), []
        for first, last in pairwise(matrix.indptr):
            pairs = zip(matrix.indices[first:last], matrix.data[first:last], strict=True)
            lines.append(f"{last - first} {' '.join(f'{v}:{c}' for v, c in pairs)}\n")
        file.write_text("".join(lines))

    return stored("documents.ldac", write)


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


def of_fit(kind: str, names: tuple[str, ...], data: Callable[[], Any], **parameters: Any) -> Case:
    """Return a case of ``fit``; ``names`` are the attributes that count."""

    def case(folder: str | None, resume: Any = "auto", length: int = 1, seed: int = 0) -> bytes:
        given = {"n_components": 3, "random_state": seed, "max_iter": 40, "tol": 0.0} | parameters
        estimator = getattr(swiftem, kind)(**given)
        with warnings.catch_warnings(), within(folder, 1, resume):
            warnings.simplefilter("ignore")  # of fits that did not converge
            X = data()
            estimator.fit(*X if isinstance(X, tuple) else (X,))
        history = estimator.history_.table()
        del history["seconds"]
        return encode((*(getattr(estimator, name) for name in names), history, estimator.n_iter_))

    return case


gaussians = partial(of_fit, "GaussianMixture", ("weights_", "means_", "covariances_", "lower_bounds_"))
families = partial(of_fit, "Mixture", ("weights_", "params_", "lower_bounds_"))
topics = partial(of_fit, "PLSA", ("components_", "doc_topic_", "stationarity_"))
regressions = partial(of_fit, "RegressionMixture", ("weights_", "coef_", "intercept_", "lower_bound_"))
UNIT, FULL = models.GaussianMixtureModel(3), models.GaussianMixtureModel(3, covariance="full")


def runs() -> dict[str, Case]:
    """Return runs of every method on every kind of model."""
    made: dict[str, tuple[Any, Callable[[], Any]]] = {"unit": (UNIT, rows), "own": (OWN, rows)}
    for kind in KINDS[1:]:
        made[kind] = models.GaussianMixtureModel(3, covariance=kind), rows
        made[f"missing {kind}"] = models.GaussianMixtureModel(3, covariance=kind, missing="ignore"), gaps
    for family in swiftem.families.FAMILIES:
        made[family] = models.MixtureModel(3, family), partial(rows_of, family)
    made["blocks"] = models.MixtureModel(3, MIXED), mixed_rows
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
    found["run weights iem"] = of_run(UNIT, rows, methods_of(5)["iem"], sample_weight=weights())
    found["run reference sem-vr"] = of_run(UNIT, rows, methods_of(5)["sem-vr"], kernels="reference")
    return found


def fits() -> dict[str, Case]:
    """Return fits of every estimator by every method."""
    found: dict[str, Case] = {}
    named = {name: name for name in ("auto", *methods.METHODS)}
    for name, method in {**named, "squarem": methods.Accelerated(methods.EM(), "squarem")}.items():
        for kind in KINDS[1:]:
            found[f"GaussianMixture {kind} {name}"] = gaussians(rows, covariance_type=kind, method=method)
        for family in swiftem.families.FAMILIES:
            data = partial(rows_of, family)
            found[f"Mixture {family} {name}"] = families(data, family=family, method=method)
        starts = {"n_init": 2, "init_params": "random"}
        found |= {
            f"GaussianMixture missing {name}": gaussians(gaps, missing="ignore", method=method),
            f"GaussianMixture two starts {name}": gaussians(rows, method=method, **starts),
            f"Mixture blocks {name}": families(mixed_rows, family=MIXED, method=method),
            f"RegressionMixture {name}": regressions(partial(responses, "gaussian"), method=method),
        }
    found["RegressionMixture poisson"] = regressions(partial(responses, "poisson"), family="poisson")
    found |= {f"PLSA {name}": topics(corpus, method=name) for name in named}
    found |= {
        "PLSA alpha": topics(corpus, alpha="learn"),
        "PLSA background": topics(corpus, background=True),
    }
    for name in ("auto", "em", "sem", "sem-vr"):
        found[f"PLSA file {name}"] = topics(stored_documents, method=name)
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
