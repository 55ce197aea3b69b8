"""Cases of topics: every parameter x kind of counts x empty documents x weights, and every later call.

``python tests/combinations/topics.py --seed 3 --sizes 60,520`` prints the findings of all cases.
"""

from __future__ import annotations

import argparse
import gzip
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy.io
import scipy.sparse as sp

if __name__ == "__main__":  # as a script
    sys.path[:0] = [str(Path(__file__).parents[1] / "_support"), str(Path(__file__).parents[1])]
from combinations.pairs import all_pairs, installed
from faults.call_fuzzer import is_own, problem_of, problem_with_topics
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from surroundings import AROUND, fit_within

import swiftem
from swiftem.data import CsrDocuments, open_documents
from swiftem.methods import METHODS

Case = dict[str, Any]
WORDS = 30


class Given(NamedTuple):
    """What is given to ``fit``: counts and weights."""

    X: Any
    weight: Any = None


class Kind(NamedTuple):
    """A kind of counts: how it is made, whether of whole numbers only, and where it is."""

    make: Callable[[np.ndarray, Any, Path], Given]
    whole: bool = False
    place: str = "memory"
    ones: bool = False


def of(change: Callable[[np.ndarray], Any], **options: Any) -> Kind:
    """Return a kind made by a function of the dense counts."""
    return Kind(lambda counts, weight, folder: Given(change(counts), weight), **options)


def typed(dtype: Any, **options: Any) -> Kind:
    return of(lambda counts: counts.astype(dtype), whole=np.dtype(dtype).kind in "iub", **options)


def strided(counts: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(counts), 2 * counts.shape[1]), np.nan)
    wide[::2, ::2] = counts
    return wide[::2, ::2]


def read_only(counts: np.ndarray) -> np.ndarray:
    counts = counts.copy()
    counts.flags.writeable = False
    return counts


def matrix(counts: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(counts)


def memory_map(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    np.save(folder / "map.npy", counts)
    return Given(np.load(folder / "map.npy", mmap_mode="r"), weight)


def diagonals(counts: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        return sp.dia_array(counts)


def disordered(counts: np.ndarray) -> Any:
    """Entries in any order, each in two parts, and stored zeros."""
    row, column = np.nonzero(np.ones_like(counts))
    order = np.random.default_rng(0).permutation(2 * len(row))
    values = np.tile(counts[row, column] / 2.0, 2)[order]
    return sp.coo_array((values, (np.tile(row, 2)[order], np.tile(column, 2)[order])), shape=counts.shape)


def with_zeros(counts: np.ndarray) -> Any:
    made = sp.csr_array(counts + 1.0)
    made.data -= 1.0
    return made


def wide_indices(counts: np.ndarray) -> Any:
    made = sp.csr_matrix(counts)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def names(counts: np.ndarray) -> list[str]:
    return [f"word{v}" for v in range(counts.shape[1])]


def pandas(dtype: Any) -> Callable[[np.ndarray, Any, Path], Given]:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Given:
        import pandas as pd

        index = np.arange(len(counts))[::-1] + 7
        kind = pd.SparseDtype(float, 0.0) if dtype == "sparse" else dtype
        frame = pd.DataFrame(counts, columns=names(counts), index=index).astype(kind)
        return Given(frame, None if weight is None else pd.Series(weight, index=index))

    return make


def polars(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    import polars as pl

    return Given(pl.DataFrame(counts, schema=names(counts)), None if weight is None else pl.Series(weight))


def arrow(counts: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.table(dict(zip(names(counts), counts.T, strict=True)))


def tensor(dtype: str, layout: str = "", **options: Any) -> Callable[[np.ndarray, Any, Path], Given]:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Given:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compressed layouts are beta, as PyTorch says
            made = torch.tensor(counts, dtype=getattr(torch, dtype), **options)
            made = getattr(made, layout)() if layout else made
        return Given(made, None if weight is None else torch.tensor(weight))

    return make


def units(block: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray, Any, Path], Given]:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Given:
        import dask

        def split(values: np.ndarray, change: Callable[[np.ndarray], Any]) -> list[Any]:
            return [dask.delayed(change)(part) for part in np.array_split(values, 3)]

        return Given(split(counts, block), None if weight is None else split(weight, np.asarray))

    return make


def dask_array(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    import dask.array as da

    chunk = max(len(counts) // 3, 1)
    made = da.from_array(counts, chunks=(chunk, -1))
    return Given(made, None if weight is None else da.from_array(weight, chunks=chunk))


def dask_frame(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(counts, columns=names(counts)), npartitions=3)
    return Given(frame, None if weight is None else dd.from_pandas(pd.Series(weight), npartitions=3))


def npz(form: str) -> Callable[[np.ndarray, Any, Path], Given]:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Given:
        sp.save_npz(folder / "counts.npz", sp.coo_array(counts).asformat(form))
        return Given(str(folder / "counts.npz"), weight)

    return make


def market(name: str, dense: bool = False) -> Callable[[np.ndarray, Any, Path], Given]:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Given:
        with (folder / "plain.mtx").open("wb") as file:
            scipy.io.mmwrite(file, counts if dense else sp.coo_array(counts), precision=17)
        content = (folder / "plain.mtx").read_bytes()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return Given(folder / name, weight)

    return make


def uci(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    entries = np.argwhere(counts)
    lines = [f"{d + 1} {v + 1} {int(counts[d, v])}" for d, v in entries]
    (folder / "docword.toy.txt").write_text(
        "\n".join([*map(str, (*counts.shape, len(lines))), *lines]) + "\n"
    )
    (folder / "vocab.toy.txt").write_text("\n".join(names(counts)) + "\n")
    return Given(folder / "docword.toy.txt", weight)


def lda_c(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    lines = []
    for row in counts:
        pairs = [f"{v}:{int(row[v])}" for v in np.flatnonzero(row)]
        lines.append(" ".join([str(len(pairs)), *pairs]))
    (folder / "toy.ldac").write_text("\n".join(lines) + "\n")
    (folder / "toy.vocab").write_text("\n".join(names(counts)) + "\n")
    return Given(folder / "toy.ldac", weight)


def opened(counts: np.ndarray, weight: Any, folder: Path) -> Given:
    return Given(open_documents(lda_c(counts, None, folder).X), weight)


KINDS: dict[str, Kind] = {
    "csr_array": of(sp.csr_array),
    "array": of(np.ascontiguousarray),
    "Fortran": of(np.asfortranarray),
    "reversed": of(lambda counts: counts[::-1].copy()[::-1]),
    "strided": of(strided),
    "read-only": of(read_only),
    "memory map": Kind(memory_map),
    "np.matrix": of(matrix),
    "big-endian": typed(">f8"),
    "float32": typed(np.float32),
    "float16": typed(np.float16),
    "longdouble": typed(np.longdouble),
    "int8": typed(np.int8),
    "int64": typed(np.int64),
    "uint16": typed(np.uint16),
    "uint64": typed(np.uint64),
    "bool": typed(bool, ones=True),
    "objects": typed(object),
    "lists": of(lambda counts: counts.tolist()),
    "tuples": of(lambda counts: tuple(map(tuple, counts.tolist()))),
    "arrays in a list": of(list),
    "masked": of(np.ma.masked_array),
    "pandas": Kind(pandas(float)),
    "pandas sparse": Kind(pandas("sparse")),
    "pandas Int64": Kind(pandas("Int64"), whole=True),
    "polars": Kind(polars),
    "arrow": of(arrow),
    "csr_matrix": of(sp.csr_matrix),
    "csc": of(sp.csc_array),
    "coo": of(disordered),
    "bsr": of(lambda counts: sp.bsr_array(counts, blocksize=(1, 5))),
    "lil": of(sp.lil_array),
    "dok": of(sp.dok_array),
    "dia": of(diagonals),
    "csr with zeros": of(with_zeros),
    "csr int64 indices": of(wide_indices),
    "csr float32": of(lambda counts: sp.csr_array(counts.astype(np.float32))),
    "csr int16": of(lambda counts: sp.csr_array(counts.astype(np.int16)), whole=True),
    "csr bool": of(lambda counts: sp.csr_array(counts.astype(bool)), ones=True),
    "tensor": Kind(tensor("float64")),
    "tensor float32": Kind(tensor("float32")),
    "tensor int64": Kind(tensor("int64"), whole=True),
    "tensor with gradient": Kind(tensor("float64", requires_grad=True)),
    "tensor csr": Kind(tensor("float64", "to_sparse_csr")),
    "tensor csc": Kind(tensor("float64", "to_sparse_csc")),
    "tensor coo": Kind(tensor("float64", "to_sparse_coo")),
    "npz csr": Kind(npz("csr"), place="file"),
    "npz csc": Kind(npz("csc"), place="file"),
    "npz coo": Kind(npz("coo"), place="file"),
    "mtx": Kind(market("counts.mtx"), place="file"),
    "mtx.gz": Kind(market("counts.mtx.gz"), place="file"),
    "mtx of an array": Kind(market("counts.mtx", dense=True), place="file"),
    "uci": Kind(uci, whole=True, place="file"),
    "lda-c": Kind(lda_c, whole=True, place="file"),
    "open_documents": Kind(opened, whole=True, place="file"),
    "CsrDocuments": of(lambda counts: CsrDocuments(sp.csr_array(counts)), place="file"),
    "Dask array": Kind(dask_array, place="dask"),
    "Dask frame": Kind(dask_frame, place="dask"),
    "delayed": Kind(units(sp.csr_array), place="dask"),
    "delayed arrays": Kind(units(np.asarray), place="dask"),
}
KINDS = {name: KINDS[name] for name in installed(KINDS)}


def schedule(k: int) -> float:
    return 1.0 / (k + 2.0) ** 0.6


MADE = {
    f"{name}, {said}": METHODS[name](**given)
    for name in ("sem", "sem-vr", "fiem")
    for said, given in {
        "b=7": {"batch_size": 7},
        "b=10^6": {"batch_size": 10**6},
        "step 0.3": {"step_size": 0.3},
        "schedule": {"step_size": schedule},
    }.items()
}
"""Methods with fields, by what is said of them."""
OPTIONS: dict[str, list[Any]] = {
    "n_components": [3, 1, 9],
    "alpha": installed([0.1, 0.0, "array", "learn", "tensor"]),
    "beta": ["auto", 0.0, 0.5, "words", "seeds"],
    "background": ["auto", True, False],
    "decorrelation": ["auto", 0.0, 5.0],
    "method": ["auto", *METHODS, *MADE],
    "init": ["auto", "random", "k-means", "given"],
    "n_init": ["auto", 1, 3],
    "max_iter": [12, 1, 40],
    "tol": [1e-4, 0.0, 1e-7],
    "memory_limit": [None, "400MB"],
    "scratch": [None, "folder"],
    "device": installed(["auto", "cpu", "cuda"]),
    "device_memory_limit": [None, "1GB"],
    "checkpoint": [None, "folder", "every 2"],
    "random_state": [0, "RandomState"],
    "verbose": [0, 1],
}
"""Values of the parameters of PLSA."""
DATA: dict[str, list[Any]] = {
    "kind": list(KINDS),
    "empty": ["none", "some", "most"],
    "weight": [None, "ones", "fractions", "zeros", "whole"],
    "fractions": [False, True],
    "compiled": [False, True],
}


def compatible(case: Case) -> bool:
    """Return whether the documentation promises that the options can be given together, for this input."""
    name, place = case["method"].partition(",")[0], KINDS[case["kind"]].place
    is_em, tokens = name in ("auto", "em"), name not in ("auto", "em", "sem", "sem-vr")
    if not is_em and (case["background"] is True or case["decorrelation"] == 5.0 or case["alpha"] == "learn"):
        return False
    if tokens and (
        case["alpha"] in ("array", "tensor") or case["beta"] in ("words", "seeds") or place != "memory"
        or case["device"] == "cuda"
    ):  # fmt: skip
        return False
    if place == "file" and case["device"] == "cuda":
        return False
    is_for_units = name in ("auto", "em", "sem") and case["alpha"] != "learn" and case["device"] != "cuda"
    return place != "dask" or is_for_units


def make_counts(case: Case, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return counts (n, V) as the kind can hold them: every word is there, and some documents are empty."""
    kind = KINDS[case["kind"]]
    topics = rng.dirichlet(np.full(WORDS, 0.2), size=3)
    counts = np.array([rng.multinomial(m, topics[m % 3]) for m in rng.integers(1, 25, n)]).astype(float)
    if case["empty"] != "none":
        empty = rng.permutation(n)[: n // (6 if case["empty"] == "some" else 2)]
        counts[empty] = 0.0
        counts[[0, n - 1]] = 0.0
    if kind.ones:
        return (counts > 0).astype(float)
    if case["fractions"] and not kind.whole:
        counts *= np.array([0.25, 0.5, 1.75])[rng.integers(3, size=counts.shape)]
    return counts


def make_weight(case: Case, n: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return weights of documents, or None."""
    if case["weight"] is None:
        return None
    made = {"ones": np.ones(n), "fractions": rng.random(n) + 0.1, "whole": rng.integers(1, 4, n) * 1.0}
    made["zeros"] = made["fractions"] * (rng.random(n) < 0.7)
    return made[case["weight"]]


def options_of(case: Case, folder: Path) -> dict[str, Any]:
    """Return the arguments of PLSA, made new for each fit."""
    rng, K = np.random.default_rng(5), case["n_components"]
    given = {name: case[name] for name in OPTIONS}
    if case["alpha"] in ("array", "tensor"):
        given["alpha"] = rng.random(K) + 0.05
        if case["alpha"] == "tensor":
            import torch

            given["alpha"] = torch.tensor(given["alpha"], requires_grad=True)
    if case["beta"] in ("words", "seeds"):
        given["beta"] = rng.random((K, WORDS) if case["beta"] == "seeds" else WORDS)
    if case["init"] == "given":
        given["init"] = rng.random((K, WORDS))
    given["method"] = MADE.get(case["method"], case["method"])
    if case["random_state"] == "RandomState":
        given["random_state"] = np.random.RandomState(0)
    if case["scratch"]:
        given["scratch"] = folder
    if case["checkpoint"]:
        given["checkpoint"] = folder / "kept"
        given["checkpoint_every"] = 2 if case["checkpoint"] == "every 2" else None
    return given


@contextmanager
def torch_cpu_for_cuda() -> Iterator[None]:
    """Let device="cuda" be PyTorch's CPU: data of a device, on a machine without one."""
    from swiftem.topics import read as module

    real = module.kernels_of

    def kernels_of(device: str, data: Any = None) -> str | None:
        return "torch:cpu" if device == "cuda" else real(device, data)

    with mock.patch.object(module, "kernels_of", kernels_of):
        yield


@contextmanager
def always_compiled(wanted: bool) -> Iterator[None]:
    """Let corpora of any size be fitted by compiled code."""
    from swiftem.topics import read as module

    with mock.patch.object(module, "FEW_ENTRIES", -1 if wanted else module.FEW_ENTRIES):
        yield


class Outcome(NamedTuple):
    """What a call did: its value, the sentence that refused it, or what is wrong."""

    value: Any = None
    refusal: str = ""
    finding: str = ""


def attempt(do: Callable[[], Any]) -> Outcome:
    """Call a function; other exceptions than a sentence, and foreign warnings, are findings."""
    with warnings.catch_warnings(record=True) as heard, redirect_stdout(StringIO()):
        warnings.simplefilter("always")
        try:
            value = do()
        except Exception as error:
            wrong = problem_of(error)
            return Outcome(finding=wrong) if wrong else Outcome(refusal=f"{type(error).__name__}: {error}")
    foreign = [str(each.message)[:120] for each in heard if not is_own(each)]
    foreign += [
        str(each.message)[:120]
        for each in heard
        if not issubclass(each.category, ConvergenceWarning) and "swiftem" not in each.filename
    ]
    return Outcome(finding=f"warns {foreign[0]!r}") if foreign else Outcome(value)


def arrays(value: Any) -> list[np.ndarray]:
    """Return all numbers in a result as arrays of NumPy."""
    if isinstance(value, dict):
        return [part for name in sorted(value) for part in arrays(value[name])]
    if isinstance(value, tuple | list):
        return [part for each in value for part in arrays(each)]
    if hasattr(type(value), "__dask_graph__"):
        value = value.compute()
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return [np.asarray(value)]


def differs(one: Any, other: Any, precision: float) -> str:
    """Return in what two results differ by more than the precision; nothing if they agree."""
    one, other = arrays(one), arrays(other)
    if len(one) != len(other):
        return f"has {len(one)} and {len(other)} parts"
    parts = list(zip(one, other, strict=True))
    for number, (a, b) in enumerate(parts):
        if a.shape != b.shape:
            return f"part {number} has shapes {a.shape} and {b.shape}"
        if a.dtype.kind not in "biuf":
            if not np.array_equal(a, b):
                return f"part {number} is {a.ravel()[:3]} and {b.ravel()[:3]}"
            continue
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return f"part {number} is NaN in one only"
        scale = max(1.0, float(np.nanmax(np.abs(b), initial=0.0)))
        error = float(np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0))
        if error > precision * scale:
            return f"part {number} differs by {error / scale:.1e}"
    return ""


def model_of(model: Any) -> list[Any]:
    """Return what a fit has found."""
    found = [model.components_, model.alpha_, model.topic_counts_, model.log_likelihood_, model.n_iter_]
    return [*found, model.doc_topic_] if hasattr(model, "doc_topic_") else found


def later_calls(labels: np.ndarray, folder: Path) -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Return calls of a fitted model with counts and weights, by name."""

    def file(model: Any) -> Any:
        model.save(folder / "a.model")
        return type(model).load(folder / "a.model")

    def copied(model: Any, X: Any) -> list[Any]:
        again = pickle.loads(pickle.dumps(model))
        return [again.components_, again.transform(X)]

    def streamed(model: Any, X: Any, weight: Any) -> list[Any]:
        model = deepcopy(model).partial_fit(X, sample_weight=weight)
        return [model.components_, model.doc_topic_, model.n_iter_]

    return {
        "transform": lambda model, X, weight: model.transform(X),
        "score": lambda model, X, weight: model.score(X),
        "weighted score": lambda model, X, weight: model.score(X, sample_weight=weight),
        "perplexity": lambda model, X, weight: model.perplexity(X, random_state=3),
        "coherence": lambda model, X, weight: model.coherence(X),
        "umass": lambda model, X, weight: model.coherence(X, measure="umass", n=5, relevance=0.5),
        "topics_over": lambda model, X, weight: model.topics_over(labels, X, background=False),
        "representative_documents": lambda model, X, weight: model.representative_documents(X, n=3),
        "partial_fit": streamed,
        "to_pyldavis": lambda model, X, weight: model.to_pyldavis(X),
        "save and load": lambda model, X, weight: [file(model).components_, file(model).transform(X)],
        "pickle": lambda model, X, weight: copied(model, X),
        "to_sklearn": lambda model, X, weight: model.to_sklearn().components_,
        "merge_topics": lambda model, X, weight: model.merge_topics([list(range(model.n_components))[:2]])
        .transform(X),
        "top_words": lambda model, X, weight: model.top_words(n=3),
        "diversity": lambda model, X, weight: model.diversity(),
        "similarity": lambda model, X, weight: model.topic_similarity(model),
        "feature names": lambda model, X, weight: model.get_feature_names_out(),
    }  # fmt: skip


PARAMETERS = (*OPTIONS, "X", "sample_weight", "Sample weights", "checkpoint_every", "resume", "labels")


def run_case(case: Case, n: int, folder: Path, seed: int = 0, *, may_refuse: bool = False) -> list[str]:
    """Fit a case and its plain counterpart, compare both and all later calls; return the findings."""
    rng = np.random.default_rng(seed)
    counts, weight = make_counts(case, n, rng), make_weight(case, n, rng)
    kind = KINDS[case["kind"]]
    given = kind.make(counts, weight, folder)
    with torch_cpu_for_cuda(), always_compiled(case["compiled"]):
        fitted = attempt(
            lambda: fit_within(swiftem.PLSA, given.X, sample_weight=given.weight, **options_of(case, folder))
        )
        if fitted.finding:
            return [f"fit {fitted.finding}"]
        if fitted.refusal:
            named = any(name in fitted.refusal for name in (*PARAMETERS, str(folder)))
            if not named:
                return [f"refused without a parameter: {fitted.refusal}"]
            few = (
                "init must be 'random' if there are fewer documents with words than topics" in fitted.refusal
            )
            return [] if may_refuse or few else [f"refused: {fitted.refusal}"]
        return list(_findings(case, fitted.value, given, counts, weight, folder))


def _findings(
    case: Case, model: Any, given: Given, counts: np.ndarray, weight: Any, folder: Path
) -> Iterator[str]:
    """Yield what is wrong with a fitted model."""
    if hasattr(model, "doc_topic_"):
        wrong = problem_with_topics(model)
        if wrong:
            yield wrong
            return
        if model.doc_topic_.shape != (len(counts), case["n_components"]):
            yield f"doc_topic_ has shape {model.doc_topic_.shape}"
    plain, kind = sp.csr_array(counts), KINDS[case["kind"]]
    options = options_of(case, folder)
    for name in ("checkpoint", "checkpoint_every"):
        options.pop(name, None)
    single = case["tol"] >= 1e-6
    if kind.place == "memory":
        other = attempt(lambda: fit_within(swiftem.PLSA, plain, sample_weight=weight, **options))
        if other.value is None:
            yield f"the plain fit {other.refusal or other.finding}"
            return
        wrong = differs(model_of(model), model_of(other.value), 1e-9)
        if wrong:
            yield f"the model {wrong}"
    elif kind.place == "file" and case["method"] == "em":
        same = {name: value for name, value in options.items() if name not in AROUND}
        with always_compiled(True):
            other = attempt(lambda: swiftem.PLSA(**same).fit(plain, sample_weight=weight))
        wrong = differs(model_of(model)[:4], model_of(other.value)[:4], 2e-3 if single else 1e-9)
        if wrong:
            yield f"the model of a file {wrong}"
    if hasattr(model, "feature_names_in_"):
        plain = pandas(float)(counts, None, folder).X  # without names, scikit-learn warns
    labels = np.arange(len(counts)) % 3
    close = 1e-9 if kind.place == "memory" or (not single and kind.place == "dask") else 5e-3
    for name, call in later_calls(labels, folder).items():
        wanted = attempt(lambda call=call: arrays(call(model, plain, weight)))
        found = attempt(lambda call=call: arrays(call(model, given.X, given.weight)))
        if found.finding:
            yield f"{name} {found.finding}"
        elif wanted.finding:
            yield f"{name} of plain counts {wanted.finding}"
        elif bool(found.refusal) != bool(wanted.refusal):
            yield f"{name} refused by one: {found.refusal or wanted.refusal}"
        elif not found.refusal and (name != "representative_documents" or close < 1e-6):  # of near ties
            wrong = differs(found.value, wanted.value, close)
            if wrong:
                yield f"{name} {wrong}"
    wrong = differs(clone(model).get_params()["n_components"], model.get_params()["n_components"], 0.0)
    if wrong:
        yield f"clone {wrong}"


@cache
def cases(seed: int, *, refusable: bool = False) -> list[Case]:
    """Return cases in which every two values meet; if ``refusable``, also those that must be refused."""
    allowed = None if refusable else compatible
    return all_pairs(OPTIONS | DATA, np.random.default_rng(seed), allowed=allowed)


def some_cases(
    factors: dict[str, list[Any]], count: int, allowed: Callable[[Case], bool], seed: int = 0
) -> list[Case]:
    """Return random cases, quickly: one factor after another takes any value that is then allowed."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        case = {name: values[0] for name, values in factors.items()}
        for name in rng.permutation(list(factors)).tolist():
            values = factors[name]
            changed = case | {name: values[rng.integers(len(values))]}
            case = changed if allowed(changed) else case
        made.append(case)
    return made


def shown(case: Case) -> str:
    """Return what is unusual in a case."""
    usual = {name: values[0] for name, values in (OPTIONS | DATA).items()}
    return ", ".join(f"{name}={value!r}" for name, value in case.items() if value != usual[name])


def main() -> None:
    """Print the findings of all cases of a seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", default="40")
    parser.add_argument("--count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--refusable", action="store_true")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    made = cases(given.seed, refusable=given.refusable)
    print(len(made), "cases")
    seen: dict[str, int] = {}
    for number, case in list(enumerate(made))[given.first :: given.every][: given.count]:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            n = sizes[number % len(sizes)]
            found = run_case(case, n, Path(folder), number, may_refuse=given.refusable)
        for finding in found:
            key = finding[:60]
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= 3:
                print(f"{number} (n={n}): {finding}\n    {shown(case)}", flush=True)
        if time.perf_counter() - began > 10:
            print(f"{number} took {time.perf_counter() - began:.0f} s: {shown(case)}", flush=True)
    for key, times in sorted(seen.items(), key=lambda item: -item[1]):
        print(times, key)


if __name__ == "__main__":
    main()
