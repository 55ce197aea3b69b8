"""All methods on five problems, and as the sample grows: passes, seconds and M-steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from paper.experiments.experiment import Experiment, Progress, Tally, collect, complete, no_progress
from paper.experiments.gmm_scaling import SETTINGS, WEIGHTS, reach, sample
from paper.experiments.method_cases import CASES, RECURSIVE, WEIGHTED, Made, methods_for
from paper.experiments.trace import trace, warm_up
from swiftem._run import run_problem
from swiftem.core.checks import check_int
from swiftem.core.problem import Problem
from swiftem.core.schedules import sample_size
from swiftem.methods import EM, METHODS, Accelerated, Method
from swiftem.models import GaussianMixtureModel

__all__ = ["SIZES", "MethodRow", "compare_methods"]

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
    check_int("runs", runs, minimum=1)
    check_int("seed", seed, minimum=0)
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
    costs = {name: (CASES[name].quick if quick else CASES[name].n) * 50.0 for name in cases}
    tally = Tally(runs * (sum(costs.values()) + sum(20_000 + 15.0 * n for n in sizes) + 1), progress)

    def rows() -> Iterator[list[MethodRow]]:
        for name in cases:
            made = CASES[name].make(40 if name == "topics" else 200, np.random.default_rng(0))
            warm_up(made.model, made.source, methods_for(made).values(), made.theta0)
        for name in cases:
            for number in range(runs):
                with tally.job(CASES[name].title, costs[name]) as at:
                    n = CASES[name].quick if quick else CASES[name].n
                    made = CASES[name].make(n, np.random.default_rng([seed, number]))
                    found = _curves(name, made, number, passes, QUICK_POLISH if quick else POLISH, at)
                yield found
        for n in sizes:
            for number in range(runs):
                with tally.job(f"paper's mixture, n = {n:,}", 20_000 + 15.0 * n):
                    found = _scaling(n, number, seed)
                yield found
        for name in WEIGHTED:
            for number in range(runs):
                yield _variances(name, 300 if quick else 2_000, number, seed)

    return collect("methods", said, rows())


def _epochs(method: Method, n: int, passes: int) -> int:
    """Return how many epochs cost at most this number of passes, at least two."""
    if not method.index_streams:
        return passes
    cost = method.evaluations + (method.renewal(0, n) is not None)
    return max(2, passes // cost)


def _curves(
    name: str, made: Made, number: int, passes: int, polish: int, at: Callable[[float], None]
) -> list[MethodRow]:
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
        at(done / (len(methods) + 1))
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
        if name in RECURSIVE:
            options = {"step_size": STEP, "batch_size": ceil(sqrt(n))}
        elif name not in ("em", "sem", "iem"):
            options = {"step_size": sample_size(STEP)}
        method = kind(**options)
        _, stays, passes, seconds = reach(model, y, method, None, setting, limit, 1e-3, randomness)
        m_steps = stays * method.epoch(n) / n
        rows.append(MethodRow("scaling", "paper", name, n, number, passes, seconds, m_steps, passes * n))
    return rows


def _variances(name: str, n: int, number: int, seed: int) -> list[MethodRow]:
    r"""Return tr Var of :math:`\bar s_i - \lambda m_i` over that of fiem, λ = 1, along a run of opt-fiem."""
    made = CASES["paper"].make(n, np.random.default_rng([seed, number]))
    problem, rows = Problem(made.model, made.source), []
    kind: Any = METHODS[name]
    method = kind(step_size=sample_size())
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
        rows.append(MethodRow("variance", "paper", name, n, number, result.passes, nan, done, ratio))
    return rows
