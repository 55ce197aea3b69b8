"""Calls of estimators, ``select``, ``run`` and what they take, with some arguments that are odd or bad."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from typing import Any

import numpy as np
from faults.odd_arguments import Draw, counts, number, rows, weights

import swiftem
from swiftem import data, methods, models, posterior, schedules

KINDS = ("full", "tied", "diag", "spherical")
NAMES = ("auto", "em", "sem", "iem", "sem-vr", "fiem")


Call = Callable[[], Any]
"""Does a call and returns all that must be sound."""


def some_odd(draw: Draw, good: dict[str, list[Any]], most: int = 2) -> dict[str, Any]:
    """Return parameters from lists of good values, most of them left out, a few of them odd."""
    chosen = {}
    for _ in range(draw.integer(0, 4)):
        name = draw.note(draw.pick(list(good)))
        chosen[name] = draw.note(draw.pick(good[name]))
    for _ in range(draw.pick([0, 0, 0, 0, 0, 1, 1, most])):
        chosen[draw.note(draw.pick(list(good)))] = number(draw)
    if isinstance(chosen.get("n_init"), int) and chosen["n_init"] > 7:
        chosen["n_init"] = 2  # so many starts are no mistake, but take long
    return chosen


def array_or_number(draw: Draw, shape: tuple[int, ...]) -> Any:
    """Return an array of nearly the shape, of any form, or something else."""
    return draw.pick([rows, lambda draw: rows(draw, *shape[:2]), number])(draw)


def at_most(value: Any, limit: int) -> Any:
    """Return a value, but no integer above the limit, which would be no mistake."""
    return min(value, limit) if type(value).__name__.startswith("int") else value


MIXTURE: dict[str, list[Any]] = {
    "n_components": [1, 2, 3, 8], "covariance_type": list(KINDS), "tol": [1e-3, 0.0, 10.0],
    "reg_covar": [1e-6, 0.0, 1.0, 1e-300, 1e200], "max_iter": [0, 1, 2, 5], "n_init": [1, 2],
    "init_params": ["kmeans", "k-means++", "random", "random_from_data", lambda X, m, r: np.zeros(len(X),
    int),
                    lambda X, m, r: None, np.zeros(20, int), np.ones((20, 2))],
    "weights_init": [[0.5, 0.5], [1.0, 0.0], [1e-300, 1.0], [1.0]], "means_init": [np.zeros((2, 2)),
    [[1e200, 0], [0, 1]]],
    "precisions_init": [[np.eye(2)] * 2, np.eye(2), np.ones((2, 2)), [1.0, 1e99], [1e-300, 1.0]],
    "random_state": [0, 1, None], "warm_start": [True, False], "verbose": [0], "verbose_interval": [1, 10],
    "method": [*NAMES, methods.IncrementalEM(batch_size=1000), methods.FastIncrementalEM(batch_size=5)] + [
        methods.OnlineEM(step_size=step)
        for step in (1.0, 1e-300, schedules.power(1.0, 0.6), lambda k: 0.5, lambda k: None, lambda k: np.nan)
    ],
    "prior": [models.NormalInverseWishart(5.0, 1.0), models.NormalInverseWishart(5.0, [1.0, 2.0], 3.0,
    [1.0, 1.0]),
              *(models.NormalInverseWishart(concentration=alpha) for alpha in (1.0, 5.0, 1e99)),
              models.NormalInverseWishart(1e99, 1e-99), models.NormalInverseWishart(9.0, 1e99)],
}  # fmt: skip
TOPICS: dict[str, list[Any]] = {
    "n_components": [1, 2, 3, 9], "alpha": [0.1, 0.0, 1e99, 1e-300, [0.1, 0.2]], "beta": [0.05, 0.0, 1e99,
    1e-300],
    "method": [*NAMES, methods.OnlineEM(schedules.inverse(3, 10), 7), methods.OnlineEM(lambda k: np.nan)],
    "init": ["auto", "random", "k-means", np.ones((2, 6)), np.eye(2, 6)],
    "n_init": ["auto", 1, 2],
    "max_iter": [1, 2, 5], "tol": [1e-4, 0.0, 10.0],
    "random_state": [0, 1, None], "verbose": [0], "verbose_interval": [1, 10],
}  # fmt: skip


def fit(kind: Any, good: dict[str, list[Any]], data: Callable[[Draw], Any], draw: Draw) -> Call:
    """Fit an estimator at once, by blocks, or both."""
    given, X = some_odd(draw, good), data(draw)
    given.setdefault("max_iter", 3)
    weight = weights(draw, X)
    other = "fit_transform" if kind is swiftem.PLSA else "fit_predict"
    how = draw.note(draw.pick(["fit", "fit", other, "partial_fit", "twice"]))

    def do() -> Any:
        estimator = kind(**given)
        found = getattr(estimator, "fit" if how == "twice" else how)(X, sample_weight=weight)
        if how == "twice":
            estimator.partial_fit(X, sample_weight=weight)
        return [estimator, found]

    return do


fit_mixture = partial(fit, swiftem.GaussianMixture, MIXTURE, rows)
fit_topics = partial(fit, swiftem.PLSA, TOPICS, counts)


@cache
def mixtures() -> list[Any]:
    X = np.random.default_rng(0).normal(size=(40, 2)) + 5.0 * (np.arange(40)[:, None] % 2)
    made = [swiftem.GaussianMixture(2, covariance_type=kind, random_state=0).fit(X) for kind in KINDS]
    return [*made * 2, swiftem.GaussianMixture(1).fit(X[:, :1]), swiftem.GaussianMixture(2)]


def ask_mixture(draw: Draw) -> Call:
    mixture, X = draw.pick(mixtures()), rows(draw, d=draw.pick([None, 2, 2, 2]))
    weight, odd, other = weights(draw, X), number(draw), array_or_number(draw, (1, 2))
    asked: dict[str, Call] = {
        **{name: lambda name=name: getattr(mixture, name)(X) for name in
           ("predict", "predict_proba", "score_samples")},
        **{name: lambda name=name: getattr(mixture, name)(X, sample_weight=weight) for name in
           ("score", "bic", "aic", "icl")},
        "sample": lambda: mixture.sample(at_most(odd, 100)),
        "marginal": lambda: mixture.marginal(odd),
        "marginal of rows": lambda: mixture.marginal(other),
        "condition": lambda: mixture.condition([0], other),
        "condition on odd": lambda: mixture.condition(odd, [0.0]),
        "full_covariances": mixture.full_covariances,
        "to_sklearn": mixture.to_sklearn,
    }  # fmt: skip
    return draw.choose(asked)


def from_parameters(draw: Draw) -> Call:
    kind = draw.note(draw.pick(KINDS))
    covariances = {
        "full": [np.eye(2)] * 2,
        "tied": np.eye(2),
        "diag": np.ones((2, 2)),
        "spherical": np.ones(2),
    }[kind]
    given = {"weights": [0.5, 0.5], "means": [[0.0, 0.0], [3.0, 3.0]], "covariances": covariances}
    for _ in range(draw.pick([1, 1, 2])):
        given[draw.note(draw.pick(list(given)))] = array_or_number(draw, (2, 2))
    makers: dict[str, Call] = {
        "from_parameters": lambda: swiftem.GaussianMixture.from_parameters(**given, covariance_type=kind),
        "theta": lambda: models.GaussianMixtureModel(2, covariance=kind).theta(**given),
    }
    return draw.choose(makers)


@cache
def fitted_topics() -> list[Any]:
    X = np.random.default_rng(0).poisson(1.0, size=(30, 6)) + np.eye(30, 6)
    return [swiftem.PLSA(2, random_state=0, tol=1.0).fit(X)] * 9 + [swiftem.PLSA(2)]


def ask_topics(draw: Draw) -> Call:
    topics, X, odd = deepcopy(draw.pick(fitted_topics())), counts(draw), number(draw)
    weight = weights(draw, X)
    asked: dict[str, Call] = {
        "transform": lambda: topics.transform(X),
        "score": lambda: topics.score(X, sample_weight=weight),
        "perplexity": lambda: topics.perplexity(X),
        "perplexity, seed": lambda: topics.perplexity(np.ones((3, 6)), random_state=odd),
        "coherence": lambda: topics.coherence(X, measure=draw.pick(["npmi", "umass"])),
        "coherence, n": lambda: topics.coherence(np.ones((3, 6)), n=odd),
        "coherence, measure": lambda: topics.coherence(np.ones((3, 6)), measure=odd),
        "top_words": lambda: topics.top_words(n=odd),
        "top_words, names": lambda: topics.top_words(odd),
        "to_pyldavis": lambda: topics.to_pyldavis(X),
        "add_words": lambda: topics.add_words(at_most(odd, 9)),
        "topic_prevalence": topics.topic_prevalence,
        "sorted_topics": topics.sorted_topics,
        "get_feature_names_out": topics.get_feature_names_out,
    }
    return draw.choose(asked)


def select(draw: Draw) -> Call:
    good: dict[str, list[Any]] = {
        "n_components": [1, range(1, 3), [2, 1], (1, 1)], "covariance_types": ["full", KINDS, ["diag"], ()],
        "criterion": ["bic", "aic", "icl", lambda m, X, w: 0.0, lambda m, X, w: np.nan, lambda m, X, w: None],
        "n_init": [1, 2], "n_jobs": [None, 1, -1], "random_state": [0], "max_iter": [1, 2],
        "method": list(NAMES),
        "tol": [1.0], "reg_covar": [0.0, 1e-6], "step_size": [0.5], "verbose": [False],
    }  # fmt: skip
    given, X = some_odd(draw, good), rows(draw)
    given.setdefault("n_components", 2)
    weight = weights(draw, X)
    return lambda: swiftem.select(X, **given, sample_weight=weight)


MODELS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "GaussianMixtureModel": lambda draw: some_odd(draw, {
        "n_components": [1, 2, 3], "covariance": ["unit", *KINDS], "reg_covar": [0.0, 1e-6],
        "delta": [1e-3, 0.0, 1e99],
        "epsilon": [1e-3, 0.0, 1e99], "known_weights": [None, [0.5, 0.5], [1.0, 0.0]],
        "concentration": [None, 2.0],
        "prior": [None, models.NormalInverseWishart(5.0, 1.0)],
    }),
    "PLSAModel": lambda draw: some_odd(draw, {"n_topics": [1, 2, 3], "alpha": [0.0, 1e-3, 1e99],
    "beta": [0.0, 1e-3]}),
}  # fmt: skip
METHODS: dict[str, dict[str, list[Any]]] = {
    "EM": {},
    "OnlineEM": {"step_size": [0.5, 1.0, lambda k: 1 / k], "batch_size": [1, 3]},
    "IncrementalEM": {"batch_size": [1, 3], "memory_dtype": ["float64", "float32"]},
    "VarianceReducedEM": {"step_size": [0.1, 1.0], "batch_size": [1, 3], "epoch_length": [1, 5]},
    "FastIncrementalEM": {"step_size": [0.1, 1.0], "batch_size": [1, 3], "memory_order": ["iid", "shuffled"],
                          "memory_dtype": ["float64", "float32"]},
}  # fmt: skip


def run(draw: Draw) -> Call:
    model = draw.note(draw.pick(list(MODELS)))
    of_model, name = MODELS[model](draw), draw.note(draw.pick(list(METHODS)))
    of_method = some_odd(draw, METHODS[name]) if METHODS[name] else {}
    of_model.setdefault("n_components" if model == "GaussianMixtureModel" else "n_topics", 2)
    X = rows(draw) if model == "GaussianMixtureModel" else counts(draw)
    weight = weights(draw, X)
    given = some_odd(draw, {
        "n_iter": [0, 1, 5, swiftem.RandomTermination(5)], "seed": [0, None, np.random.default_rng(0)],
        "record_every": [1, 2], "record": [lambda iterate: None], "callback": [lambda iterate: True,
        lambda iterate: 0],
        "kernels": ["auto", "reference"], "memory_limit": ["500MB", None], "scratch": [None, "/tmp"],
        "resume": [False],
        "draws": [None, [0, 1, 0, 1, 0], ([0] * 5, [1] * 5)], "s0": [None, np.ones(3), np.ones(6),
        np.full(14, 1e99)],
        "theta0": [None], "state": [None], "checkpoint": [None], "checkpoint_every": [None],
    })  # fmt: skip
    given.setdefault("n_iter", 5)
    if isinstance(given["n_iter"], int | np.integer) and given["n_iter"] > 1000:  # that many is no mistake
        given["n_iter"] = 5
    given.pop("checkpoint", None)  # names of folders are for other tests
    how = draw.note(draw.pick(["run", "run", "run", "posterior", "objective"]))

    def do() -> Any:
        made = getattr(models, model)(**of_model)
        if how == "run":
            return swiftem.run(made, X, getattr(methods, name)(**of_method), **given, sample_weight=weight)
        theta = given.get("theta0")
        if theta is None:
            theta = swiftem.run(made, X, methods.EM(), n_iter=0, seed=0).theta
        if how == "posterior":
            return posterior(made, X, theta, responsibilities=True, labels=True)
        return swiftem.objective(made, X, theta, sample_weight=weight)

    return do


def run_own(draw: Draw) -> Call:
    """A user's functions, one of which returns something odd."""
    good: dict[str, Callable[..., Any]] = {
        "initial_theta": lambda y, rng: 0.5,
        "expected_statistics": lambda y, theta: (np.reshape(y, (len(y), -1)), np.zeros(len(y))),
        "m_step": lambda s: s[0],
        "penalty": lambda theta: 0.0,
        "in_domain": lambda s: bool(np.isfinite(s).all()),
    }
    which, odd, X = draw.note(draw.pick(["none", *good])), array_or_number(draw, (3, 1)), rows(draw)
    name = draw.note(draw.pick(list(METHODS)))
    pair = draw.pick([lambda value: value, lambda value: (value, value)])
    if which != "none":
        good[which] = lambda *arguments: pair(odd)

    def do() -> Any:
        model = models.FunctionModel(**good)
        result = swiftem.run(model, X, getattr(methods, name)(), n_iter=4, seed=0)
        return (result.s if result.status != "rejected" else 0.0), result.passes  # a user's θ may be infinite

    return do


def make_other(draw: Draw) -> Call:
    """Schedules, termination, priors and sources, with odd arguments."""
    one, two, X = number(draw), number(draw), rows(draw)
    table, weight = counts(draw), weights(draw, X)
    indices = array_or_number(draw, (5, 1)), array_or_number(draw, (5, 1))
    asked: dict[str, Call] = {
        "constant": lambda: schedules.constant(one)(1),
        "inverse": lambda: schedules.inverse(one, two)(1),
        "power": lambda: schedules.power(one, 0.6, two)(1),
        "sample_size": lambda: schedules.sample_size(one).resolve(100, 2)(1),
        "RandomTermination": lambda: swiftem.RandomTermination(one, two),
        "NormalInverseWishart": lambda: models.NormalInverseWishart(one, two),
        "NormalInverseWishart, rows": lambda: models.NormalInverseWishart(5.0, X, 1.0, one),
        "ArraySource": lambda: data.ArraySource(X, sample_weight=weight),
        "CountSource": lambda: data.CountSource(table, sample_weight=weight),
        "TokenSource": lambda: data.TokenSource(indices[0], indices[1], sample_weight=weight),
        "as_source": lambda: data.as_source(X, weight),
        "open_source": lambda: data.open_source(one),
    }
    return draw.choose(asked)


FAMILIES: list[Callable[[Draw], Call]] = [
    *[fit_mixture] * 3,
    *[fit_topics] * 3,
    *(ask_mixture, ask_topics, run, run, from_parameters, select, run_own, make_other),
]


def make_call(draw: Draw) -> Call:
    """Return one call."""
    make = draw.pick(FAMILIES)
    draw.note(getattr(make, "__name__", "fit"))
    return make(draw)
