"""Fits that are killed: functions of a folder for checkpoints, or None, that return all of the result."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import helpers
import numpy as np
import scipy.sparse as sp

import swiftem
from swiftem import methods, models
from swiftem._cache import replacing
from swiftem.checkpoints.tree import encode

N = 6000


def rows(d: int = 3, dtype: Any = np.float64) -> Any:
    """Return rows (n, d) of a mixture of four components."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(N, d)) + 3 * rng.normal(size=(4, d))[rng.integers(4, size=N)]).astype(dtype)


def of_run(
    model: Any, data: Callable[[], Any], method: methods.Method, n_iter: int, every: int, **options: Any
) -> Callable[[str | None], bytes]:
    """Return a case of ``swiftem.run``: everything in the result but the memory's copy counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": every, "resume": "auto"}
        result = swiftem.run(
            model, data(), method, n_iter=n_iter, seed=1, record_every=max(1, n_iter // 7), **options, **kept
        )
        found = (result.theta, result.s, result.state, result.path, result.passes, result.status)
        return encode(found)

    return case


def of_fit(**parameters: Any) -> Callable[[str | None], bytes]:
    """Return a case of ``GaussianMixture.fit``: everything but the seconds counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        mixture = swiftem.GaussianMixture(5, random_state=0, max_iter=60, tol=1e-7, **parameters, **kept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge
            mixture.fit(rows())
        history = mixture.history_.table()
        del history["seconds"]
        found = (mixture.weights_, mixture.means_, mixture.covariances_, mixture.lower_bounds_)
        return encode((*found, history, float(mixture.stationarity_), mixture.n_iter_, mixture.method_))

    return case


def of_topics(**parameters: Any) -> Callable[[str | None], bytes]:
    """Return a case of ``PLSA.fit``: everything but the seconds counts."""

    def case(folder: str | None) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        topics = swiftem.PLSA(5, random_state=0, max_iter=60, tol=0.0, **parameters, **kept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not converge
            topics.fit(sp.csr_array(np.random.default_rng(0).poisson(0.1, size=(800, 200))))
        history = topics.history_.table()
        del history["seconds"]
        found = (topics.components_, topics.doc_topic_, history, topics.stationarity_, topics.n_iter_)
        return encode(found)

    return case


def weighted(name: str) -> dict[str, Any]:
    return {"sample_weight": np.random.default_rng(1).random(N)} if name == "weights" else {}


def counts() -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(60, 90)))


def stored() -> str:
    """Return rows in a file, which every process that is killed and its successors find."""
    file = Path(tempfile.gettempdir(), f"swiftem-fault-rows-{os.getuid()}.npy")
    if not file.exists():
        with replacing(file) as other:
            np.save(other, rows())
    return str(file)


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
    CASES[f"fit {_name}"] = of_fit(method=_name, batch_size="auto" if _name == "em" else 100)
for _name in ("auto", "em", "sem", "sem-vr", "fiem"):
    CASES[f"PLSA {_name}"] = of_topics(method=_name)
CASES["fit two starts"] = of_fit(method="fiem", n_init=2, init_params="random")

for _name in helpers.NAMES:
    CASES[f"file {_name}"] = of_run(
        FULL, stored, BATCHES[_name], 60 if _name == "em" else 400, 2 if _name == "em" else 11
    )

SHORT = (
    "unit em",
    "full iem",
    "topics sem-vr",
    "float32 fiem",
    "fit fiem",
    "unit sem",
    "PLSA auto",
    "file fiem",
)
"""The cases of the short form."""
