"""Cases of topics: every parameter x kind of counts x empty documents x weights, and every later call."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from combinations.counts import FILES, KINDS, UNITS, is_whole
from combinations.inputs import Input
from combinations.judge import attempt, difference
from combinations.pairs import all_pairs, installed
from faults.call_fuzzer import problem_with_topics
from sklearn.base import clone
from surroundings import AROUND, fit_within

import swiftem
from swiftem.methods import METHODS

Case = dict[str, Any]
WORDS = 30


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
    "device": installed(["auto", "cpu", "torch:cpu"]),
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


def place_of(case: Case) -> str:
    """Return where the counts are."""
    return "file" if case["kind"] in FILES else "dask" if case["kind"] in UNITS else "memory"


def compatible(case: Case) -> bool:
    """Return whether the documentation promises that the options can be given together, for this input."""
    name, place = case["method"].partition(",")[0], place_of(case)
    is_em, tokens = name in ("auto", "em"), name not in ("auto", "em", "sem", "sem-vr")
    if not is_em and (case["background"] is True or case["decorrelation"] == 5.0 or case["alpha"] == "learn"):
        return False
    if tokens and (
        case["alpha"] in ("array", "tensor") or case["beta"] in ("words", "seeds") or place != "memory"
        or case["device"] == "torch:cpu"
    ):  # fmt: skip
        return False
    if place == "file" and case["device"] == "torch:cpu":
        return False
    is_for_units = (
        name in ("auto", "em", "sem") and case["alpha"] != "learn" and case["device"] != "torch:cpu"
    )
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
    if case["fractions"] and not is_whole(case["kind"]):
        counts *= np.array([0.25, 0.5, 1.75])[rng.integers(3, size=counts.shape)]
    return kind.values(counts)


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
def always_compiled(wanted: bool) -> Iterator[None]:
    """Let corpora of any size be fitted by compiled code."""
    from swiftem.topics import read as module

    with mock.patch.object(module, "FEW_ENTRIES", -1 if wanted else module.FEW_ENTRIES):
        yield


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


FEW = "init must be 'random' if there are fewer documents with words than topics"
PARAMETERS = (*OPTIONS, "X", "sample_weight", "Sample weights", "checkpoint_every", "resume", "labels")


def run_case(case: Case, n: int, folder: Path, seed: int = 0, *, may_refuse: bool = False) -> list[str]:
    """Fit a case and its plain counterpart, compare both and all later calls; return the findings."""
    rng = np.random.default_rng(seed)
    counts, weight = make_counts(case, n, rng), make_weight(case, n, rng)
    kind = KINDS[case["kind"]]
    given = kind.make(counts, weight, folder)
    with redirect_stdout(StringIO()), always_compiled(case["compiled"]):
        fitted = attempt(
            lambda: fit_within(swiftem.PLSA, given.X, sample_weight=given.weight, **options_of(case, folder))
        )
        if fitted.finding:
            return [f"fit {fitted.finding}"]
        if fitted.refusal:
            if not any(name in fitted.refusal for name in (*PARAMETERS, str(folder))):
                return [f"refused without a parameter: {fitted.refusal}"]
            return [] if may_refuse or FEW in fitted.refusal else [f"refused: {fitted.refusal}"]
        return list(_findings(case, fitted.value, given, counts, weight, folder))


def _findings(
    case: Case, model: Any, given: Input, counts: np.ndarray, weight: Any, folder: Path
) -> Iterator[str]:
    """Yield what is wrong with a fitted model."""
    if hasattr(model, "doc_topic_"):
        wrong = problem_with_topics(model)
        if wrong:
            yield wrong
            return
        if model.doc_topic_.shape != (len(counts), case["n_components"]):
            yield f"doc_topic_ has shape {model.doc_topic_.shape}"
    plain, place = sp.csr_array(counts), place_of(case)
    options = options_of(case, folder)
    for name in ("checkpoint", "checkpoint_every"):
        options.pop(name, None)
    single = case["tol"] >= 1e-6
    if place == "memory":
        other = attempt(lambda: fit_within(swiftem.PLSA, plain, sample_weight=weight, **options))
        if other.value is None:
            yield f"the plain fit {other.refusal or other.finding}"
            return
        wrong = difference(model_of(model), model_of(other.value), 1e-9)
        if wrong:
            yield f"the model {wrong}"
    elif place == "file" and case["method"] == "em":
        same = {name: value for name, value in options.items() if name not in AROUND}
        with always_compiled(True):
            other = attempt(lambda: swiftem.PLSA(**same).fit(plain, sample_weight=weight))
        wrong = difference(model_of(model)[:4], model_of(other.value)[:4], 2e-3 if single else 1e-9)
        if wrong:
            yield f"the model of a file {wrong}"
    if hasattr(model, "feature_names_in_"):
        plain = KINDS["pandas"].make(counts, None, folder).X  # without names, scikit-learn warns
    labels = np.arange(len(counts)) % 3
    close = 1e-9 if place == "memory" or (not single and place == "dask") else 5e-3
    for name, call in later_calls(labels, folder).items():
        wanted = attempt(partial(call, model, plain, weight))
        found = attempt(partial(call, model, given.X, given.weight))
        for which, outcome in (("", found), (" of plain counts", wanted)):
            if outcome.finding:
                yield f"{name}{which} {outcome.finding}"
        if bool(found.refusal) != bool(wanted.refusal):
            yield f"{name} refused by one: {found.refusal or wanted.refusal}"
        elif name != "representative_documents" or close < 1e-6:  # of near ties
            wrong = difference(found.value, wanted.value, close)
            if wrong:
                yield f"{name} {wrong}"
    if clone(model).n_components != model.n_components:
        yield "clone has another number of topics"


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
