"""Cases of ``swiftem.run``, one value for each of its choices, and what is wrong with how one ends.

A case is good if its result is that of the plain array in NumPy's own arithmetic, or if it is refused by a
sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from combinations.counts import KINDS as MATRICES
from combinations.inputs import KINDS, Input, Kind, array
from combinations.pairs import installed
from faults.call_fuzzer import problem_of
from helpers import assert_close, leaves, tokens_of

import swiftem
from swiftem import data, methods, models, schedules
from swiftem.mixture.covariance import ESTIMATED

N_ITER, HALF = 12, 5
SEED = 7

MODELS: dict[str, Callable[[], Any]] = {
    "unit": lambda: models.GaussianMixtureModel(3),
    **{kind: partial(models.GaussianMixtureModel, 3, covariance=kind) for kind in ESTIMATED},
    "missing": lambda: models.GaussianMixtureModel(2, covariance="full", missing="ignore"),
    **{name: partial(models.MixtureModel, 2, name) for name in ("poisson", "categorical", "student-t")},
    "blocks": lambda: models.MixtureModel(2, {"gaussian": [0], "poisson": [1]}),
    "own": lambda: models.FunctionModel(
        lambda y, rng: (np.float64(1.0),),
        lambda y, theta: (np.abs(y[:, :1]), np.log(theta[0]) - theta[0] * np.abs(y[:, 0])),
        lambda s: (1.0 / s[0],),
        lambda theta: 0.0,
    ),
    "topics": lambda: models.PLSAModel(3),
}

SCHEDULES: dict[str, Any] = {
    "default": None,
    "constant": 0.2,
    "power": schedules.power(0.9, 0.6),
    "inverse": schedules.inverse(2, 5),
    "size": schedules.sample_size(2.0),
    "function": lambda k: 1.0 / (k + 1),
}


def unit_source(y: np.ndarray, weight: Any, folder: Path) -> Input:
    weights = None if weight is None else np.array_split(weight, 3)
    return Input(data.UnitSource(np.array_split(y, 3), weights, allow_missing=bool(np.isnan(y).any())))


def token_source(table: np.ndarray, weight: Any, folder: Path) -> Input:
    D, V = table.shape
    source = data.TokenSource(*tokens_of(table), n_documents=D, n_words=V, sample_weight=weight)
    return Input(source)


HELD = ("array", "Fortran", "strided", "float32", "int64", "lists", "tensor", "pandas", "polars")
STORED = ("memory map", "ArraySource", "npy", "CSV", "Parquet", "blocks", "Dask array")
ROWS = {name: KINDS[name] for name in installed(HELD + STORED)}
ROWS |= {"units": Kind(unit_source, stored=True)}
COUNTS = {
    **{name: MATRICES[name] for name in ("csr_array", "csc", "csr with zeros", "csr int16")},
    "dense": MATRICES["array"],
    "tokens": Kind(lambda table, weight, folder: Input(tokens_of(table), weight)),
    "token source": Kind(token_source),
    "count source": Kind(lambda table, weight, folder: Input(data.CountSource(sp.csr_array(table), weight))),
    "fractions": array(lambda table: sp.csr_array(0.5 * table)),
}
TOKENS, UNITS = ("tokens", "token source"), ("Dask array", "units")

FACTORS: dict[str, list[Any]] = {
    "n": [90],
    "model": list(MODELS),
    "method": [*methods.METHODS, "averaged"],
    "acceleration": [None, "squarem", "anderson"],
    "order": ["iid", "shuffled", "weighted"],
    "memory_order": ["iid", "shuffled"],
    "memory_dtype": ["float64", "float32"],
    "batch_size": [1, 7, 40],
    "schedule": list(SCHEDULES),
    "source": [*ROWS, *COUNTS],
    "weight": [None, "random", "zeros"],
    "start": [None, "theta0", "s0", "both"],
    "draws": ["seeded", "given"],
    "n_iter": ["int", "none", "random"],
    "record": [None, "every", "record", "callback"],
    "kept": [None, "written", "resumed", "halves", "in the first pass"],
    "memory_limit": [None, "500MB"],
    "kernels": ["auto", "auto", "reference"],
}


def allowed(case: dict[str, Any]) -> bool:
    """Return whether a case makes sense: what a user could not even write is left out."""
    if (case["model"] == "topics") != (case["source"] in COUNTS):
        return False
    if case["acceleration"] is not None and case["method"] != "em":
        return False
    if case["source"] == "int64" and case["model"] not in ("poisson", "categorical", "blocks"):
        return False
    if case["kept"] in ("resumed", "halves", "in the first pass") and case["n_iter"] != "int":
        return False
    if case["kept"] == "resumed" and case["draws"] == "given":
        return False  # such a run has its length
    if case["kept"] is not None and case["model"] == "own":
        return False  # its functions are other ones in every call
    # Indices are those of the samples that count.
    return not (case["draws"] == "given" and (case["weight"] == "zeros" or case["source"] == "fractions"))


def rows_of(case: dict[str, Any]) -> Any:
    """Return rows (n, 2) in the range of a model."""
    rng, n, model = np.random.default_rng(0), case["n"], case["model"]
    y = rng.normal(size=(n, 2)) + 3 * rng.normal(size=(3, 2))[rng.integers(3, size=n)]
    if model in ("poisson", "blocks"):
        return np.round(np.abs(y))
    if model == "categorical":
        return np.clip(np.round(np.abs(y)), 0, 3)
    if model == "missing":
        y[::9, 0] = np.nan
    return y


def counts(case: dict[str, Any]) -> np.ndarray:
    """Return counts of about n tokens."""
    return np.random.default_rng(0).poisson(1.0, size=(8, case["n"] // 8))


def given_data(case: dict[str, Any], folder: Path) -> Input:
    """Return the data of a case, and ``sample_weight`` unless the data have the weights."""
    name, weight = case["source"], weight_of(case)
    if name in COUNTS:
        return COUNTS[name].make(counts(case), weight, folder)
    return ROWS[name].make(ROWS[name].values(rows_of(case)), weight, folder)


def plain_data(case: dict[str, Any]) -> Any:
    """Return the same data as an array, a matrix in rows, or tokens, which have weights of their own."""
    if case["source"] not in COUNTS:
        return ROWS[case["source"]].values(rows_of(case))
    if case["source"] in TOKENS:
        return tokens_of(counts(case))
    return sp.csr_array(counts(case) * (0.5 if case["source"] == "fractions" else 1))


def method_of(case: dict[str, Any]) -> Any:
    """Return the method of a case; it may refuse its own options."""
    name = case["method"]
    is_averaged = name == "averaged"
    name = "sem" if is_averaged else name
    wanted = {key: case[key] for key in ("order", "memory_order", "memory_dtype", "batch_size")}
    if SCHEDULES[case["schedule"]] is not None:
        wanted["step_size"] = SCHEDULES[case["schedule"]]
    made = methods.make_method(name, **wanted)
    made = methods.Averaged(made, 4) if is_averaged else made
    return made if case["acceleration"] is None else methods.Accelerated(made, case["acceleration"])


def weight_of(case: dict[str, Any]) -> Any:
    if case["weight"] is None:
        return None
    n = case["n"]
    if case["source"] in COUNTS:
        n = int(counts(case).sum()) if case["source"] in TOKENS else 8
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=n)
    if case["weight"] == "zeros":
        weight[::5] = 0.0
    return weight


def result_of(
    case: dict[str, Any], given: tuple[Any, Any], kernels: str, folder: Path, *, is_plain: bool
) -> Any:
    """Return the result of a case with these data; without what must not change it if ``is_plain``."""
    source, weight = given
    model, method = MODELS[case["model"]](), method_of(case)
    options: dict[str, Any] = {"kernels": kernels, "sample_weight": weight, "seed": SEED}
    if not is_plain:
        options["memory_limit"] = case["memory_limit"]
    if case["start"] is not None:
        first = swiftem.run(model, plain_data(case), methods.EM(), n_iter=2, seed=3, kernels="reference")
        wanted = {"theta0": first.theta, "s0": first.s}
        options |= {key: wanted[key] for key in wanted if case["start"] in (key, "both")}
    n_iter: Any = {"int": N_ITER, "none": 0, "random": swiftem.RandomTermination(N_ITER)}[case["n_iter"]]
    if case["draws"] == "given" and method.index_streams:
        n = 3 if case["source"] in UNITS else case["n"]
        n = int(counts(case).sum()) if case["source"] in COUNTS else n
        size = (0 if case["n_iter"] == "none" else N_ITER, method.batch_size)
        drawn = [np.random.default_rng(k).integers(n, size=size) for k in range(method.index_streams)]
        options["draws"] = drawn[0] if len(drawn) == 1 else tuple(drawn)
    if case["record"] == "every":
        options["record_every"] = 3
    elif case["record"] == "record":
        options["record"] = lambda iterate: iterate.k
    elif case["record"] == "callback":
        options |= {"record_every": 2, "callback": lambda iterate: iterate.k >= 8}
    kept = None if is_plain else case["kept"]
    if kept in ("written", "resumed"):
        options |= {"checkpoint": folder / "kept", "checkpoint_every": 2, "resume": "auto"}
    if kept in ("resumed", "halves"):
        first = _half(model, source, method, options)
        if kept == "resumed":
            return swiftem.run(model, source, method, n_iter=n_iter, **options)
        return _rest(model, source, method, options, first, N_ITER - first.n_iter)
    if kept == "in the first pass":
        with patch("swiftem.core.loop.first_pass", side_effect=KeyboardInterrupt):
            first = swiftem.run(model, source, method, n_iter=n_iter, **options)
        return _rest(model, source, method, options, first, n_iter)
    return swiftem.run(model, source, method, n_iter=n_iter, **options)


def _half(model: Any, source: Any, method: Any, options: dict[str, Any]) -> Any:
    if "draws" in options:
        options = options | {"draws": _cut(options["draws"], slice(HALF))}
    return swiftem.run(model, source, method, n_iter=HALF, **options)


def _rest(model: Any, source: Any, method: Any, options: dict[str, Any], first: Any, n_iter: int) -> Any:
    start = {"theta0": first.theta, "s0": first.s, "state": first.state}
    if "draws" in options:
        options = options | {"draws": _cut(options["draws"], slice(first.n_iter, None))}
    return swiftem.run(model, source, method, n_iter=n_iter, **options | start)


def _cut(draws: Any, part: slice) -> Any:
    return tuple(one[part] for one in draws) if isinstance(draws, tuple) else draws[part]


def finding(case: dict[str, Any], folder: Path) -> str:
    """Return what is wrong with how a case ends; nothing if all is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # every step was rejected
        try:
            found = result_of(case, given_data(case, folder), case["kernels"], folder, is_plain=False)
        except Exception as error:
            return problem_of(error)
        # Rows of files are drawn in windows, those of a start too, and units as such: the runs are others.
        is_other = case["source"] in ROWS and ROWS[case["source"]].stored
        is_drawn = bool(method_of(case).index_streams) and case["draws"] == "seeded"
        has_start = case["start"] is not None
        is_own = (is_other and (is_drawn or not has_start)) or case["source"] in UNITS
        source = given_data(case, folder) if is_own else Input(plain_data(case), weight_of(case))
        try:
            plain = result_of(case, source, "reference", folder, is_plain=True)
        except Exception as error:
            return f"the plain array is refused: {error}"
    return difference(case, found, plain)


def difference(case: dict[str, Any], found: Any, plain: Any) -> str:
    """Return in what two results differ."""
    counts_of = [(one.n_iter, one.rejected, one.passes, one.status) for one in (found, plain)]
    if counts_of[0] != counts_of[1]:
        return f"it is {counts_of[0]}, not {counts_of[1]}"
    close = 1e-5 if "float32" in (case["source"], case["memory_dtype"]) else 1e-9
    for one, other in zip(leaves((found.theta, found.s)), leaves((plain.theta, plain.s)), strict=True):
        try:
            assert_close(one, other, close)
        except AssertionError as wrong:
            return str(wrong)
    return ""
