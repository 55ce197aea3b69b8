"""All methods on five problems, and as the sample grows: passes, seconds and M-steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from math import ceil, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from paper.docstrings import docstring_corpus
from paper.experiments.experiment import Experiment, Job, Progress, collect, complete, no_progress
from paper.experiments.gmm import START_MEANS, gmm_data, trace, warm_up
from paper.experiments.gmm_scaling import SETTINGS, WEIGHTS, reach, sample
from paper.experiments.plsa import MODEL, count_tokens
from swiftem._run import run_problem
from swiftem.core.model import Model
from swiftem.core.problem import Problem
from swiftem.core.schedules import StepSize, power, sample_size
from swiftem.core.source import Source
from swiftem.core.types import Theta
from swiftem.data import ArraySource
from swiftem.methods import EM, METHODS, Accelerated, Method, OptFIEM
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.models import GaussianMixtureModel, MixtureModel

RECURSIVE = "spider"
"""The method whose proxy follows θ from one iteration to the next."""
WEIGHTED = "opt-fiem"
"""The method with a coefficient of least variance."""

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


SIZES = (1_000, 10_000, 100_000, 1_000_000)
PASSES, QUICK_PASSES = 120, 12
POLISH, QUICK_POLISH = 200, 30
"""Passes of accelerated em from the best run: its objective is the optimum."""
AGES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Epochs after which the variances of proxies are compared."""
LOOKS = 100
"""How many times per epoch the error is evaluated as n grows."""
STEP = 0.3
"""γ of SPIDER-EM as n grows; that of the other methods with steps is 0.3·n^(−2/3)."""


class MethodRow(NamedTuple):
    """One method after some passes.

    Attributes
    ----------
    part : {"curve", "scaling", "variance"}
        A point of a run on one of the problems; the cost to a precision; or a variance.
    problem, method : str
        Their names.
    n, run : int
        Number of samples, and index of the data, the start and the draws.
    passes, seconds : float
        E-step evaluations divided by n, the first pass included; time of the run.
    m_steps : int
        Iterations: each has one M-step.
    value : float
        The objective minus that of the optimum; for ``"scaling"`` the evaluations until the squared error of
        the means stays below 1e-3, NaN if it did not; for ``"variance"`` that of the proxy over fiem's.
    """

    part: str
    problem: str
    method: str
    n: int
    run: int
    passes: float
    seconds: float
    m_steps: float
    value: float


def compare_methods(
    *,
    runs: int = 5,
    quick: bool = False,
    sizes: Sequence[int] = SIZES,
    cases: Sequence[str] = tuple(CASES),
    seed: int = 0,
    progress: Progress = no_progress,
) -> Experiment:
    """Run all methods of the registry, and accelerated em, on five problems and on growing samples.

    Parameters
    ----------
    runs : int
        Repetitions, each with its own data, start and draws.
    quick : bool
        Whether problems are small and runs short.
    sizes : sequence of int
        Sample sizes of the paper's mixture.
    cases : sequence of str
        Names of the problems.
    seed, progress
        As in :func:`paper.experiments.gmm_precision.gmm_precision`.

    Returns
    -------
    Experiment
        With rows :class:`MethodRow`.

    Examples
    --------
    >>> rows = compare_methods(runs=1, quick=True, sizes=[500], cases=["paper"]).rows
    >>> sorted({row.part for row in rows if row.method == "em"})
    ['curve', 'scaling']
    """
    passes = QUICK_PASSES if quick else PASSES
    said = {case.title: f"n = {case.quick if quick else case.n:,}" for case in CASES.values()} | {
        "batches and steps": "b = √n; sem (k + 30)^(−0.6), for topics k^(−0.8); all others γ = b/(40·q) for "
        "statistics of length q, at least b/n, for topics 10·b/n, and at most 0.3",
        "starts": "true parameters with noise; for topics random; the same for all methods of a run",
        "optimum": "the best objective of all methods, and after more passes of accelerated em",
        "growing samples": "two Gaussians, known weights 0.2 and 0.8, until |μ − μ*|² stays below 0.001; "
        "SPIDER-EM with b = √n and γ = 0.3, others with b = 1: sEM 3/(k + 10), and γ = 0.3·n^(−2/3)",
        "runs": f"{runs}, each with its own data, start and draws; seed {seed}",
    }

    def compiling() -> list[MethodRow]:
        for name in cases:
            made = CASES[name].make(40 if name == "topics" else 200, np.random.default_rng(0))
            warm_up(made.model, made.source, methods_for(made).values(), made.theta0)
        return []

    def curves(name: str, number: int) -> list[MethodRow]:
        made = CASES[name].make(_size(name, quick), np.random.default_rng([seed, number]))
        return _curves(name, made, number, passes, QUICK_POLISH if quick else POLISH)

    jobs = [Job("compiling", 10_000.0, compiling)]
    jobs += [
        Job(CASES[name].title, 50.0 * _size(name, quick), partial(curves, name, number))
        for name in cases
        for number in range(runs)
    ]
    jobs += [
        Job(f"paper's mixture, n = {n:,}", 20_000 + 15.0 * n, partial(_scaling, n, number, seed))
        for n in sizes
        for number in range(runs)
    ]
    jobs += [
        Job("variances of proxies", 10_000.0, partial(_variances, 1_000 if quick else 2_000, number, seed))
        for number in range(runs)
    ]
    return collect("methods", said, jobs, progress)


def _size(name: str, quick: bool) -> int:
    return CASES[name].quick if quick else CASES[name].n


def _epochs(method: Method, n: int, passes: int) -> int:
    """Return how many epochs cost at most this number of passes, at least two."""
    if not method.index_streams:
        return passes
    cost = method.evaluations + (method.renewal(0, n) is not None)
    return max(2, passes // cost)


def _curves(name: str, made: Made, number: int, passes: int, polish: int) -> list[MethodRow]:
    """Return the points of all methods, with the objective above the best of them."""
    problem, best, points = Problem(made.model, made.source), None, []
    n, methods = made.source.n, methods_for(made)
    for done, (method_name, method) in enumerate(methods.items(), start=1):
        last: list[Any] = []

        def measure(theta: Any, last: list[Any] = last) -> float:
            last[:] = [theta]
            return problem.compute.objective(theta)

        every = method.epoch(n)
        for point in trace(
            made.model,
            made.source,
            method,
            theta0=made.theta0,
            epochs=_epochs(method, n, passes),
            seed=np.random.SeedSequence([number, done]),
            measure=measure,
        ):
            points.append((method_name, point, point.epoch * every))
        value = points[-1][1].value
        if best is None or value < best[0]:
            best = value, last[0]
    assert best is not None
    polished = complete(
        run_problem(problem, Accelerated(EM(), "squarem"), theta0=best[1], n_iter=polish, seed=0)
    )
    optimum = min(problem.compute.objective(polished.theta), *(point.value for _, point, _ in points))
    return [
        MethodRow("curve", name, method_name, n, number, p.passes, p.seconds, m_steps, p.value - optimum)
        for method_name, p, m_steps in points
    ]


def _scaling(n: int, number: int, seed: int) -> list[MethodRow]:
    """Return the cost of all methods to 1e-3 on one sample of the paper's mixture."""
    setting = SETTINGS["known"]._replace(looks=LOOKS)
    model = GaussianMixtureModel(2, known_weights=WEIGHTS)
    randomness = np.random.SeedSequence([seed, n, number])
    y, limit = sample(model, n, randomness)
    rows = []
    for name, kind in METHODS.items():
        options: dict[str, Any] = {}
        if name == RECURSIVE:
            options = {"step_size": STEP, "batch_size": ceil(sqrt(n))}
        elif name not in ("em", "sem", "iem"):
            options = {"step_size": sample_size(STEP)}
        method = kind(**options)
        _, stays, passes, seconds = reach(model, y, method, None, setting, limit, 1e-3, randomness)
        m_steps = stays * method.epoch(n) / n
        rows.append(MethodRow("scaling", "paper", name, n, number, passes, seconds, m_steps, passes * n))
    return rows


def _variances(n: int, number: int, seed: int) -> list[MethodRow]:
    r"""Return tr Var of :math:`\bar s_i - \lambda m_i` over that of fiem, λ = 1, along a run of opt-fiem."""
    made = CASES["paper"].make(n, np.random.default_rng([seed, number]))
    problem, rows = Problem(made.model, made.source), []
    method = OptFIEM(step_size=sample_size())
    start: dict[str, Any] = {"theta0": made.theta0, "seed": number}
    done = 0
    for age in AGES:
        result = complete(run_problem(problem, method, n_iter=int(age * n) - done, **start))
        done = result.n_iter
        start = {"theta0": result.theta, "s0": result.s, "state": result.state}
        e_step = problem.compute
        batch = e_step.take(np.arange(n))
        own, memory = e_step.rows(batch, result.theta), result.state.method.memory
        of = [
            np.array(
                [
                    e_step.mean(e_step.take(np.array([i])), (own - factor * memory)[i : i + 1])
                    for i in range(n)
                ]
            )
            for factor in (float(result.state.method.moments[2]), 1.0)
        ]
        optimal, plain = (float(values.var(axis=0).sum()) for values in of)
        ratio = optimal / plain if plain > 0.0 else nan
        rows.append(MethodRow("variance", "paper", WEIGHTED, n, number, result.passes, nan, done, ratio))
    return rows
