"""The five problems on which all methods are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from paper.docstrings import docstring_corpus
from paper.experiments.gmm import START_MEANS, gmm_data
from paper.experiments.plsa import MODEL, count_tokens
from swiftem.core.model import Model
from swiftem.core.schedules import StepSize, power
from swiftem.core.source import Source
from swiftem.core.types import Theta
from swiftem.data import ArraySource
from swiftem.methods import EM, METHODS, Accelerated, Method
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.models import GaussianMixtureModel, MixtureModel

__all__ = ["CASES", "RECURSIVE", "WEIGHTED", "Case", "Made", "methods_for"]

RECURSIVE = [name for name, kind in METHODS.items() if getattr(kind().update, "reference", "") == "previous"]
"""Methods whose proxy follows θ from one iteration to the next: SPIDER-EM."""
WEIGHTED = [name for name, kind in METHODS.items() if getattr(kind().update, "correction", 1.0) == "optimal"]
"""Methods with a coefficient of least variance: opt-FIEM."""

NOISE, LARGEST_STEP = 40.0, 0.3
"""γ = b / (40·q), at most 0.3, for statistics of length q: the rule of ``GaussianMixture``."""


class Made(NamedTuple):
    """A problem: model, data and start, the length of the statistics or None, and the step of sem."""

    model: Model
    source: Source
    theta0: Theta
    size: int | None
    sem_step: StepSize


class Case(NamedTuple):
    """A problem by name: what it is in words, its size, the size if quick, and a function that makes it."""

    title: str
    n: int
    quick: int
    make: Callable[[int, np.random.Generator], Made]


def _paper(n: int, rng: np.random.Generator) -> Made:
    model = GaussianMixtureModel(2)
    return _mixture(model, gmm_data(n, rng), model.theta(means=START_MEANS), 4)


def _overlapping(n: int, rng: np.random.Generator) -> Made:
    return _gaussians(n, rng, d=4, components=6, spread=1.0, shape=0.2)


def _many(n: int, rng: np.random.Generator) -> Made:
    return _gaussians(n, rng, d=2, components=30, spread=4.0, shape=0.2)


def _gaussians(
    n: int, rng: np.random.Generator, d: int, components: int, spread: float, shape: float
) -> Made:
    """Return a mixture of full covariances; the start has noisy means and equal weights."""
    means = spread * rng.normal(size=(components, d))
    shapes = np.eye(d) + shape * rng.normal(size=(components, d, d))
    labels = rng.choice(components, n, p=rng.dirichlet(np.full(components, 8.0)))
    y = means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))
    model = GaussianMixtureModel(components, covariance="full", reg_covar=1e-6)
    start = model.theta(
        means=means + 0.5 * rng.normal(size=means.shape), covariances=np.array([np.eye(d)] * components)
    )
    return _mixture(model, y, start, model.size(d))


def _poisson(n: int, rng: np.random.Generator) -> Made:
    rates = np.array([[1.0, 6.0, 3.0], [2.0, 3.0, 6.0], [4.0, 4.0, 1.0], [6.0, 1.0, 4.0]])
    y = rng.poisson(rates[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])]).astype(np.float64)
    model = MixtureModel(4, "poisson")
    return _mixture(model, y, model.theta(rates=rates + rng.uniform(0.0, 2.0, size=rates.shape)), 16)


def _mixture(model: Model, y: Any, theta0: Theta, size: int) -> Made:
    return Made(model, ArraySource(y), theta0, size, power(1.0, 0.6, 30.0))


def _topics(n: int, rng: np.random.Generator) -> Made:
    corpus = docstring_corpus()
    source = count_tokens("docstrings", corpus.sample(n))
    return Made(MODEL, source, MODEL.bind(source).initial_theta(rng), None, power(1.0, 0.8))


CASES = {
    "paper": Case("the paper's mixture: two unit variances", 10_000, 1_000, _paper),
    "overlapping": Case("overlapping: 6 full covariances, d = 4", 20_000, 1_000, _overlapping),
    "many": Case("many components: 30 full covariances, d = 2", 20_000, 600, _many),
    "topics": Case("topics: tokens of docstrings by pLSA, K = 10", 1_000, 25, _topics),
    "poisson": Case("Poisson mixture: 4 components, d = 3", 10_000, 400, _poisson),
}
"""By name; the size of topics is in documents."""


def methods_for(made: Made) -> dict[str, Method]:
    """Return all methods of the registry, and accelerated em, with batches of √n samples, by name.

    The step of sem decreases; that of the others is constant: 10·b/n for tokens, else as in ``NOISE``.
    """
    n = made.source.n
    b = ceil(sqrt(n))
    gamma = 10.0 * b / n if made.size is None else max(b / n, b / (NOISE * made.size))
    found: dict[str, Method] = {}
    for name, kind in METHODS.items():
        wanted = {"step_size": made.sem_step if name == "sem" else min(LARGEST_STEP, gamma), "batch_size": b}
        found[name] = kind(**{part.name: wanted[part.name] for part in fields(kind) if part.name in wanted})  # type: ignore[arg-type]
    return found | {f"em+{name}": Accelerated(EM(), name) for name in ACCELERATIONS}  # type: ignore[arg-type]
