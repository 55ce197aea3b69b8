"""Fits that are killed: functions of a folder for checkpoints, or None, that return all of the result."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import helpers
import numpy as np
import scipy.sparse as sp
from forks import encode
from surroundings import fit_within

import swiftem
from swiftem import methods, models
from swiftem.core.checks import MemoryLimitError
from swiftem.core.files import is_scratch, replacing

N = 6000


def rows(d: int = 3, dtype: Any = np.float64, n: int = N) -> Any:
    """Return rows (n, d) of a mixture of four components."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, d)) + 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)]).astype(dtype)


def of_run(
    model: Any, data: Callable[[], Any], method: methods.Method, n_iter: int, every: int, **options: Any
) -> Callable[[str | None], bytes]:
    """Return a case of ``swiftem.run``: everything in the result but the memory's copy counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": every, "resume": "auto"}
        result = swiftem.run(
            model, data(), method, n_iter=n_iter, seed=1, record_every=max(1, n_iter // 7), **options, **kept
        )
        if "memory_limit" in options:
            assert is_scratch(result.state.method.memory)
        found = (result.theta, result.s, result.state, result.path, result.passes, result.status)
        return encode(found)

    return case


def of_fit(data: Callable[[], Any] = rows, **parameters: Any) -> Callable[[str | None], bytes]:
    """Return a case of ``GaussianMixture.fit``: everything but the seconds counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        options = {"random_state": 0, "max_iter": 60, "tol": 1e-7} | parameters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge
            mixture = fit_within(swiftem.GaussianMixture, data(), n_components=5, **options, **kept)
        history = mixture.history_.table()
        del history["seconds"]
        found = (mixture.weights_, mixture.means_, mixture.covariances_, mixture.lower_bounds_)
        return encode((*found, history, float(mixture.stationarity_), mixture.n_iter_, mixture.method_))

    return case


def of_family(**parameters: Any) -> Callable[[str | None], bytes]:
    """Return a case of ``Mixture.fit`` on counts: everything but the seconds counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        options = {"family": "poisson", "random_state": 0, "max_iter": 60, "tol": 1e-7} | parameters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge
            mixture = fit_within(swiftem.Mixture, np.abs(np.round(rows())), n_components=5, **options, **kept)
        history = mixture.history_.table()
        del history["seconds"]
        found = (mixture.weights_, mixture.params_, mixture.lower_bounds_, history)
        return encode((*found, float(mixture.stationarity_), mixture.n_iter_, mixture.method_))

    return case


def of_topics(
    data: Callable[[], Any] = lambda: word_counts(), **parameters: Any
) -> Callable[[str | None], bytes]:
    """Return a case of ``PLSA.fit``: everything but the seconds counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        options = {"random_state": 0, "max_iter": 60, "tol": 0.0} | parameters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge
            topics = fit_within(swiftem.PLSA, data(), n_components=5, **options, **kept)
        assert is_scratch(topics.doc_topic_) == ("memory_limit" in parameters)
        history = topics.history_.table()
        del history["seconds"]
        found = (topics.components_, topics.doc_topic_, history, topics.stationarity_, topics.n_iter_)
        return encode(found)

    return case


def weighted(name: str) -> dict[str, Any]:
    return {"sample_weight": np.random.default_rng(1).random(N)} if name == "weights" else {}


def counts() -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(60, 90)))


def word_counts(n: int = 800, n_words: int = 200, mean: float = 0.1) -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(mean, size=(n, n_words)))


def kept_file(name: str, write: Callable[[Any], None]) -> str:
    """Return a file that every process that is killed and its successors find; ``write`` fills it."""
    file = Path(tempfile.gettempdir(), f"swiftem-fault-{os.getuid()}-{name}")
    if not file.exists():
        with replacing(file) as other:
            write(other)
    return str(file)


def stored(n: int = N) -> str:
    """Return rows in a file."""
    return kept_file(f"{n}-rows.npy", lambda other: np.save(other, rows(n=n)))


def documents(n: int = 1000) -> str:
    """Return documents in a file, one in each line: words and how often they are there."""

    def write(other: Any) -> None:
        counts = word_counts(n, 60)
        for first, last in pairwise(counts.indptr):
            pairs = zip(counts.indices[first:last], counts.data[first:last], strict=True)
            other.write(f"{last - first} {' '.join(f'{v}:{c}' for v, c in pairs)}\n".encode())

    return kept_file(f"{n}-documents.lda-c", write)


def under_limit(
    make: Callable[..., Callable[[str | None], bytes]], *given: Any, **options: Any
) -> Callable[[str | None], bytes]:
    """Return a case with so little memory that what is kept of each sample goes into a scratch file."""

    def case(folder: str | None) -> bytes:
        limit = 1
        while True:  # the sentence says how many megabytes would be enough, as far as is known by then
            try:
                return make(*given, **options, memory_limit=f"{limit}MB")(folder)
            except MemoryLimitError as error:
                limit = int(str(error).split("at least ")[1].split(" MB")[0])

    return case


UNIT, FULL = models.GaussianMixtureModel(4), models.GaussianMixtureModel(4, covariance="full")
BATCHES = {name: helpers.make_method(name, step_size=0.05, batch_size=50) for name in helpers.NAMES}
ONES = {name: helpers.make_method(name, step_size=0.01, batch_size=1) for name in helpers.NAMES}

CASES: dict[str, Callable[[str | None], bytes]] = {}
for _name in helpers.NAMES:
    _n_iter, _every = (60, 2) if _name == "em" else (400, 11)
    CASES[f"unit {_name}"] = of_run(UNIT, rows, BATCHES[_name], _n_iter, _every)
    CASES[f"full {_name}"] = of_run(FULL, rows, BATCHES[_name], _n_iter, _every)
    CASES[f"topics {_name}"] = of_run(
        models.PLSAModel(3), counts, ONES[_name], 60 if _name == "em" else 20_000, 2 if _name == "em" else 700
    )
CASES["one by one fiem"] = of_run(UNIT, rows, ONES["fiem"], 20_000, 700)
CASES["weights iem"] = of_run(UNIT, rows, BATCHES["iem"], 400, 11, **weighted("weights"))
CASES["float32 fiem"] = of_run(
    FULL, lambda: rows(dtype=np.float32),
    methods.FastIncrementalEM(step_size=0.05, batch_size=50, memory_order="shuffled", memory_dtype="float32"),
    400, 11,
)  # fmt: skip
CASES["reference sem-vr"] = of_run(UNIT, rows, BATCHES["sem-vr"], 200, 7, kernels="reference")
for _name in helpers.NAMES:
    CASES[f"fit {_name}"] = of_fit(method=helpers.make_method(_name, batch_size=100))
for _name in ("auto", "em", "sem", "sem-vr", "fiem"):
    CASES[f"PLSA {_name}"] = of_topics(method=_name)
for _name in ("em", "sem-vr", "fiem"):
    CASES[f"counts {_name}"] = of_family(method=_name)
CASES["fit two starts"] = of_fit(method="fiem", n_init=2, init_params="random")

for _name in helpers.NAMES:
    CASES[f"file {_name}"] = of_run(
        FULL, stored, BATCHES[_name], 60 if _name == "em" else 400, 2 if _name == "em" else 11
    )

for _name in ("auto", "em", "sem", "sem-vr"):
    CASES[f"PLSA file {_name}"] = of_topics(documents, method=_name, n_init=1, max_iter=40)

MANY = 60_000
"""Rows of which a memory is more than a megabyte, to which limits are rounded."""
for _name in ("iem", "fiem"):
    _method = helpers.make_method(_name, step_size=0.05, batch_size=500)
    CASES[f"limit {_name}"] = under_limit(of_run, FULL, partial(rows, n=MANY), _method, 300, 40)
    CASES[f"limit file {_name}"] = under_limit(of_run, FULL, partial(stored, MANY), _method, 300, 40)
CASES["limit fit fiem"] = under_limit(of_fit, partial(rows, n=MANY), method="fiem", max_iter=12)
CASES["limit fit file iem"] = under_limit(of_fit, partial(stored, MANY), method="iem", max_iter=12)
for _name in ("auto", "sem-vr"):
    CASES[f"limit PLSA file {_name}"] = under_limit(
        of_topics, partial(documents, 15_000), method=_name, n_init=1, max_iter=10
    )

SHORT = (
    "unit em", "full iem", "topics sem-vr", "float32 fiem", "fit fiem", "unit sem", "PLSA auto", "file fiem",
    "limit file fiem", "PLSA file auto",
)  # fmt: skip
"""The cases of the short form."""
