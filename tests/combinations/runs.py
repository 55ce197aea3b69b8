"""Cases of ``swiftem.run``, one value for each of its choices, and what is wrong with how one ends.

A case is good if its result is that of the plain array in NumPy's own arithmetic, or if it is refused by a
sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from combinations.pairs import installed
from faults.call_fuzzer import problem_of
from helpers import leaves

import swiftem
from swiftem import data, methods, models, schedules

N_ITER, HALF = 12, 5
SEED = 7

MODELS: dict[str, Callable[[], Any]] = {
    "unit": lambda: models.GaussianMixtureModel(3),
    **{
        kind: lambda kind=kind: models.GaussianMixtureModel(3, covariance=kind)  # type: ignore[misc]
        for kind in ("full", "tied", "diag", "spherical")
    },
    "missing": lambda: models.GaussianMixtureModel(2, covariance="full", missing="ignore"),
    "poisson": lambda: models.MixtureModel(2, "poisson"),
    "categorical": lambda: models.MixtureModel(2, "categorical"),
    "student-t": lambda: models.MixtureModel(2, "student-t"),
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

ROWS = installed([
    "array", "fortran", "strided", "float32", "int", "list", "memmap", "tensor", "pandas", "polars", "source",
    "npy", "csv", "parquet", "blocks", "dask", "units",
])  # fmt: skip
COUNTS = ("csr", "csc", "coo", "int8", "tokens", "token source", "count source", "dense", "fractions")
STORED, UNITS = ("npy", "csv", "parquet", "blocks"), ("dask", "units")

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
    if case["source"] == "int" and case["model"] not in ("poisson", "categorical", "blocks"):
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


def counts(case: dict[str, Any]) -> Any:
    """Return counts of about n tokens."""
    return sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(8, case["n"] // 8)))


def given_data(case: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """Return the data of a case and ``sample_weight``, which is None if the data have the weights."""
    name, weight = case["source"], weight_of(case)
    if name in COUNTS:
        return _counts_as(name, counts(case), weight), None if name.endswith("source") else weight
    y = rows_of(case)
    if name in ("csv", "parquet"):
        file = _written(name, y, weight, folder)
        if weight is None:
            return file, None
        return data.open_source(file, weight="w", allow_missing=case["model"] == "missing"), None
    if name == "dask":
        import dask.array as da

        chunked = None if weight is None else da.from_array(weight, chunks=case["n"] // 3)
        return da.from_array(y, chunks=(case["n"] // 3, 2)), chunked
    inside = name in ("source", "blocks", "units")
    return _rows_as(name, y, weight, folder), None if inside else weight


def _written(name: str, y: Any, weight: Any, folder: Path) -> Path:
    """Return a file of rows, with a column of weights if there are any."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({"a": pa.array(y[:, 0], from_pandas=True), "b": y[:, 1]})
    if weight is not None:
        table = table.append_column("w", pa.array(weight))
    file = folder / f"rows.{name}"
    if name == "csv":
        pyarrow.csv.write_csv(table, file)
    else:
        pyarrow.parquet.write_table(table, file, row_group_size=32)
    return file


def _rows_as(name: str, y: Any, weight: Any, folder: Path) -> Any:
    if name in ("npy", "memmap"):
        np.save(folder / "rows.npy", y)
        return np.load(folder / "rows.npy", mmap_mode="r") if name == "memmap" else folder / "rows.npy"
    if name == "pandas":
        import pandas as pd

        return pd.DataFrame(y, columns=["a", "b"])
    if name == "polars":
        import polars as pl

        return pl.DataFrame({"a": y[:, 0], "b": y[:, 1]})
    if name == "tensor":
        import torch

        return torch.tensor(y)
    gaps = bool(np.isnan(y).any())
    parts, weights = np.array_split(y, 3), None if weight is None else np.array_split(weight, 3)
    made: dict[str, Callable[[], Any]] = {
        "array": lambda: y,
        "fortran": lambda: np.asfortranarray(y),
        "strided": lambda: np.repeat(y, 2, axis=0)[::2],
        "float32": lambda: y.astype(np.float32),
        "int": lambda: y.astype(np.int32),
        "list": y.tolist,
        "source": lambda: data.ArraySource(y, weight, allow_missing=gaps),
        "blocks": lambda: lambda: iter(parts if weights is None else zip(parts, weights, strict=True)),
        "units": lambda: data.UnitSource(parts, weights, allow_missing=gaps),
    }
    return made[name]()


def _counts_as(name: str, matrix: Any, weight: Any = None) -> Any:
    tokens = matrix.toarray()
    document, word = (np.repeat(place, tokens[tokens > 0]) for place in np.nonzero(tokens))
    made: dict[str, Callable[[], Any]] = {
        "csr": lambda: matrix,
        "csc": matrix.tocsc,
        "coo": matrix.tocoo,
        "int8": lambda: matrix.astype(np.int8),
        "tokens": lambda: (document, word),
        "token source": lambda: data.TokenSource(
            document, word, n_documents=matrix.shape[0], n_words=matrix.shape[1], sample_weight=weight
        ),
        "count source": lambda: data.CountSource(matrix, weight),
        "dense": lambda: tokens,
        "fractions": lambda: matrix * 0.5,
    }
    return made[name]()


def plain_data(case: dict[str, Any]) -> Any:
    """Return the same data as an array, or a matrix in rows."""
    if case["source"] in COUNTS:
        # A weight is one of a token there.
        same = {"fractions": "fractions", "tokens": "tokens", "token source": "tokens"}.get(
            case["source"], "csr"
        )
        return _counts_as(same, counts(case))
    y = rows_of(case)
    return y.astype(np.float32).astype(np.float64) if case["source"] == "float32" else y


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
        n = int(counts(case).sum()) if case["source"] in ("tokens", "token source") else 8
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
        n = (
            int(counts(case).sum())
            if case["source"] in COUNTS
            else 3
            if case["source"] in UNITS
            else case["n"]
        )
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
        is_other = case["source"] in (*STORED, *UNITS)
        is_drawn = bool(method_of(case).index_streams) and case["draws"] == "seeded"
        has_start = case["start"] is not None
        is_own = (is_other and (is_drawn or not has_start)) or case["source"] in UNITS
        source = given_data(case, folder) if is_own else (plain_data(case), weight_of(case))
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
    for one, other in zip(numbers(found), numbers(plain), strict=True):
        one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        if one.shape != other.shape:
            return f"its shape is {one.shape}, not {other.shape}"
        if not np.isfinite(one).all():
            return "it is not finite"
        error = np.abs(one - other) / np.maximum(np.abs(other), 1e-3)
        if error.max(initial=0.0) > close:
            return f"it differs by {error.max():.1e}"
    return ""


def numbers(result: Any) -> list[Any]:
    """Return all numbers of θ and s."""
    found = []
    for leaf in leaves((result.theta, result.s)):
        found += _values(leaf) if isinstance(leaf, dict) else [leaf]
    return found


def _values(params: dict[str, Any]) -> list[Any]:
    return [
        leaf for value in params.values() for leaf in (_values(value) if isinstance(value, dict) else [value])
    ]
