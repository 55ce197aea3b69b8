"""All methods, also later ones.

All methods of the library on five problems, with batches of √n samples: the objective above the optimum,
against passes, seconds and M-steps. Then the evaluations to a precision as the sample grows, and claims of
later papers, on SPIDER-EM (Fort, Moulines and Wai 2020) and opt-FIEM (Fort, Gach and Moulines 2021). Lines
are medians, bands the range over the runs.

Steps of sEM are (k + 30)^(−0.6), for topics k^(−0.8); of all others b/(40·q) for statistics of length q, at
least b/n, for topics 10·b/n, and at most 0.3. Runs start from the true parameters with noise, for topics from
random ones; all methods of a run from the same. The optimum is the best objective of all methods, and after
more passes of accelerated EM.

The growing samples are of two Gaussians with known weights 0.2 and 0.8, until |μ − μ*|² stays below 0.001;
SPIDER-EM has b = √n and γ = 0.3, the others b = 1: sEM 3/(k + 10), and γ = 0.3·n^(−2/3).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from math import ceil, inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.docstrings import docstring_corpus
from paper.experiments.experiment import Experiment, Progress, collect, complete, no_progress, trace
from paper.experiments.gmm_precision import START_MEANS, gmm_data
from paper.experiments.gmm_scaling import SETTINGS, reach, sample
from paper.experiments.plsa import MODEL, count_tokens
from paper.report.figures import Panel, Picture, short
from paper.report.runs import Runs, fit_slope, growth_panels
from paper.report.section import MISSING, Finding, Section, Table
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
from swiftem.show.numbers import seconds_text, signed, style_of

RECURSIVE = "spider"
"""The method whose proxy follows θ from one iteration to the next."""
NOISE, LARGEST_STEP = 40.0, 0.3
"""γ = b / (40·q), at most 0.3, for statistics of length q: the rule of ``GaussianMixture``."""
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000), (1_000, 3_162)
PASSES, QUICK_PASSES = 120, 12
POLISH, QUICK_POLISH = 200, 30
"""Passes of accelerated em from the best run: its objective is the optimum."""
AGES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Epochs after which the variances of proxies are compared."""
GROWING = SETTINGS["known"]._replace(looks=100)
STEP = 0.3
"""γ of SPIDER-EM as n grows; that of the other methods with steps is 0.3·n^(−2/3)."""
MEASURES = {
    "passes": "passes (E-step evaluations divided by n)",
    "seconds": "seconds of computing",
    "m_steps": "M-steps (iterations)",
}
GROWTH = {"value": "E-step evaluations", "m_steps": MEASURES["m_steps"], "seconds": MEASURES["seconds"]}
GAPS = (1e-3, 1e-6)
"""How far above the optimum a run may be to count as there."""
LEAST_GAP = 1e-13
"""What is below is rounding, and drawn there."""
EPSILONS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
INDEPENDENT, MOST_LINEAR, MOST_BOUND, MOST_RATIO = 0.2, 1.1, 1.1, 1.02
"""Slopes that count as independent of n, as at most n, and as at most 1/ε; and a ratio as at most one."""
SPIDER, OPTIMAL = "Fort, Moulines and Wai 2020", "Fort, Gach and Moulines 2021"


class Made(NamedTuple):
    """A problem: model, data and start, the length of the statistics or None, and the step of sem."""

    model: Model
    source: Source
    theta0: Theta
    size: int | None
    sem_step: StepSize = power(1.0, 0.6, 30.0)


class Case(NamedTuple):
    """A problem by name: what it is in words, its size, the size if quick, and a function that makes it."""

    title: str
    n: int
    quick: int
    make: Callable[[int, np.random.Generator], Made]


def _paper(n: int, rng: np.random.Generator) -> Made:
    model = GaussianMixtureModel(2)
    return Made(model, ArraySource(gmm_data(n, rng)), model.theta(means=START_MEANS), 4)


def _gaussians(d: int, components: int, spread: float) -> Callable[[int, np.random.Generator], Made]:
    """Return a function that makes mixtures of full covariances; starts have noisy means, equal weights."""

    def make(n: int, rng: np.random.Generator) -> Made:
        means = spread * rng.normal(size=(components, d))
        shapes = np.eye(d) + 0.2 * rng.normal(size=(components, d, d))
        labels = rng.choice(components, n, p=rng.dirichlet(np.full(components, 8.0)))
        y = means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))
        model = GaussianMixtureModel(components, covariance="full", reg_covar=1e-6)
        noisy = means + 0.5 * rng.normal(size=means.shape)
        start = model.theta(means=noisy, covariances=np.array([np.eye(d)] * components))
        return Made(model, ArraySource(y), start, model.size(d))

    return make


def _poisson(n: int, rng: np.random.Generator) -> Made:
    rates = np.array([[1.0, 6.0, 3.0], [2.0, 3.0, 6.0], [4.0, 4.0, 1.0], [6.0, 1.0, 4.0]])
    y = rng.poisson(rates[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])]).astype(np.float64)
    model = MixtureModel(4, "poisson")
    start = model.theta(rates=rates + rng.uniform(0.0, 2.0, size=rates.shape))
    return Made(model, ArraySource(y), start, 16)


def _topics(n: int, rng: np.random.Generator) -> Made:
    source = count_tokens("docstrings", docstring_corpus().sample(n))
    return Made(MODEL, source, MODEL.bind(source).initial_theta(rng), None, power(1.0, 0.8))


CASES = {
    "paper": Case("the paper's mixture: two unit variances", 10_000, 1_000, _paper),
    "overlapping": Case("overlapping: 6 full covariances, d = 4", 20_000, 1_000, _gaussians(4, 6, 1.0)),
    "many": Case("many components: 30 full covariances, d = 2", 20_000, 600, _gaussians(2, 30, 4.0)),
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


class MethodRow(namedtuple("MethodRow", "part problem method n run passes seconds m_steps value")):
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


def compare_methods(
    *,
    runs: int = 5,
    quick: bool = False,
    sizes: Sequence[int] | None = None,
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
    sizes : sequence of int, optional
        Sample sizes of the paper's mixture; by default more if not ``quick``.
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
    chosen = (QUICK_SIZES if quick else SIZES) if sizes is None else sizes
    lengths = {name: CASES[name].quick if quick else CASES[name].n for name in CASES}
    settings = {CASES[name].title: f"n = {n:,}" for name, n in lengths.items()}
    settings["runs"] = f"{runs}, each with its own data, start and draws; seed {seed}"

    def parts() -> Iterator[list[MethodRow]]:
        jobs: list[tuple[str, Callable[[int], list[MethodRow]]]] = []
        jobs += [(CASES[name].title, partial(_curves, name, lengths[name], quick, seed)) for name in cases]
        jobs += [(f"paper's mixture, n = {n:,}", partial(_scaling, n, seed)) for n in chosen]
        jobs += [("variances of proxies", partial(_variances, 1_000 if quick else 2_000, seed))]
        for place, (doing, rows) in enumerate(jobs):
            for number in range(runs):
                progress(doing, (place + number / runs) / len(jobs))
                yield rows(number)

    return collect("methods", settings, parts())


def _epochs(method: Method, n: int, passes: int) -> int:
    """Return how many epochs cost at most this number of passes, at least two."""
    if not method.index_streams:
        return passes
    cost = method.evaluations + (method.renewal(0, n) is not None)
    return max(2, passes // cost)


def _curves(name: str, length: int, quick: bool, seed: int, number: int) -> list[MethodRow]:
    """Return the points of all methods, with the objective above the best of them."""
    made = CASES[name].make(length, np.random.default_rng([seed, number]))
    passes, polish = (QUICK_PASSES, QUICK_POLISH) if quick else (PASSES, POLISH)
    problem, n = Problem(made.model, made.source), made.source.n
    rows: list[MethodRow] = []
    best, best_theta = inf, made.theta0
    last: list[Theta] = [made.theta0]

    def measure(theta: Theta) -> float:
        last[0] = theta
        return problem.compute.objective(theta)

    for place, (method_name, method) in enumerate(methods_for(made).items(), start=1):
        points = trace(
            made.model,
            made.source,
            method,
            theta0=made.theta0,
            epochs=_epochs(method, n, passes),
            seed=np.random.SeedSequence([number, place]),
            measure=measure,
        )
        for epoch, passed, seconds, value in points:
            m_steps = epoch * method.epoch(n)
            rows.append(MethodRow("curve", name, method_name, n, number, passed, seconds, m_steps, value))
        if value < best:
            best, best_theta = value, last[0]
    accelerated = Accelerated(EM(), "squarem")
    polished = complete(run_problem(problem, accelerated, theta0=best_theta, n_iter=polish, seed=0))
    optimum = min(problem.compute.objective(polished.theta), *(row.value for row in rows))
    return [row._replace(value=row.value - optimum) for row in rows]


def _scaling(n: int, seed: int, number: int) -> list[MethodRow]:
    """Return the cost of all methods to 1e-3 on one sample of the paper's mixture."""
    randomness = np.random.SeedSequence([seed, n, number])
    y, limit = sample(GROWING.model, n, randomness)
    rows = []
    for name, kind in METHODS.items():
        options: dict[str, Any] = {}
        if name == RECURSIVE:
            options = {"step_size": STEP, "batch_size": ceil(sqrt(n))}
        elif name not in ("em", "sem", "iem"):
            options = {"step_size": sample_size(STEP)}
        method = kind(**options)
        _, stays, passes, seconds = reach(GROWING, y, method, limit, randomness)
        m_steps = stays * method.epoch(n) / n
        rows.append(MethodRow("scaling", "paper", name, n, number, passes, seconds, m_steps, passes * n))
    return rows


def _variances(n: int, seed: int, number: int) -> list[MethodRow]:
    r"""Return tr Var of :math:`\bar s_i - \lambda m_i` over that of fiem, λ = 1, along a run of opt-fiem."""
    made = CASES["paper"].make(n, np.random.default_rng([seed, number]))
    problem, rows = Problem(made.model, made.source), []
    method = OptFIEM(step_size=sample_size())
    start: dict[str, Any] = {"theta0": made.theta0, "seed": number}
    done = 0
    e_step = problem.compute
    each = [e_step.take(np.array([i])) for i in range(n)]
    for age in AGES:
        result = complete(run_problem(problem, method, n_iter=int(age * n) - done, **start))
        done = result.n_iter
        start = {"theta0": result.theta, "s0": result.s, "state": result.state}
        own, memory = e_step.rows(e_step.take(np.arange(n)), result.theta), result.state.method.memory

        def variance(factor: float, left: Any = own, right: Any = memory) -> float:
            rows = left - factor * right
            means = np.array([e_step.mean(batch, rows[i : i + 1]) for i, batch in enumerate(each)])
            return float(means.var(axis=0).sum())

        optimal, plain = variance(float(result.state.method.moments[2])), variance(1.0)
        ratio = optimal / plain if plain > 0.0 else nan
        rows.append(MethodRow("variance", "paper", "opt-fiem", n, number, result.passes, nan, done, ratio))
    return rows


def methods_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`compare_methods`.

    >>> section = methods_section(compare_methods(runs=1, quick=True, sizes=[500, 1000], cases=["paper"]))
    >>> [picture.name for picture in section.pictures]
    ['methods-paper', 'methods-scaling']
    """
    frame = pd.DataFrame(experiment.rows, columns=MethodRow._fields)
    parts = dict(list(frame.groupby("part")))
    findings: list[Finding] = []
    pictures: list[Picture] = []
    tables: list[Table] = []
    if "curve" in parts:
        problems = {str(name): part for name, part in parts["curve"].groupby("problem", sort=False)}
        pictures += [_picture(name, problem) for name, problem in problems.items()]
        tables.append(_winners(problems))
        if "paper" in problems:
            findings.append(_in_epsilon(problems["paper"]))
    if "scaling" in parts:
        growth = Runs(parts["scaling"], "n")
        title = "Cost until |μ − μ*|² stays below 10⁻³ on the paper's mixture, as n grows"
        pictures.append(Picture("methods-scaling", title, growth_panels(growth, GROWTH)))
        if len(growth.places) > 2 and RECURSIVE in growth.methods:
            findings = [*_in_n(growth), *findings]
    if "variance" in parts:
        findings.append(_variance(parts["variance"].groupby("passes")["value"].median()))
    return Section(experiment.name, __doc__, experiment.settings, findings, pictures, tables)


def _picture(name: str, problem: pd.DataFrame) -> Picture:
    """Return the panels of one problem, against each measure."""
    points = problem.assign(
        point=problem.groupby(["method", "run"]).cumcount(), value=problem["value"].clip(lower=LEAST_GAP)
    )
    panels = []
    for measure, label in MEASURES.items():
        # The start has neither seconds nor M-steps, and no place on a logarithmic axis.
        curves = Runs(points if measure == "passes" else points[points["point"] > 0], "point")
        lines = curves.lines(measure, "value")
        panels.append(Panel(f"against {label.split(' (')[0]}", (label, "objective above the optimum"), lines))
    title = f"{CASES[name].title[0].upper()}{CASES[name].title[1:]}"
    return Picture(f"methods-{name}", title, panels)


def _cost(problem: pd.DataFrame, gap: float, measure: str) -> pd.Series:
    """Return the median cost to a gap above the optimum by method; infinite if it is not reached."""
    runs = pd.MultiIndex.from_product([problem[name].unique() for name in ("method", "run")])
    first = problem[problem["value"] <= gap].groupby(["method", "run"])[measure].first()
    return first.reindex(runs, fill_value=inf).groupby(level=0, sort=False).median()


def _winners(problems: dict[str, pd.DataFrame]) -> Table:
    columns = {"": [CASES[name].title for name in problems]}
    for gap in GAPS:
        for measure, label in MEASURES.items():
            cells = columns[f"{label.split(' (')[0]} to {short(gap)}"] = []
            for costs in (_cost(problem, gap, measure) for problem in problems.values()):
                least = float(costs.min())
                text = seconds_text(least) if measure == "seconds" else f"{least:,.0f}"
                name = style_of(str(costs.idxmin())).label
                cells.append(f"{name}, {text}" if isfinite(least) else MISSING)
    return Table("Winners: the method with the least median cost to a gap above the optimum", columns)


def _in_epsilon(problem: pd.DataFrame) -> Finding:
    """Return whether the M-steps of SPIDER-EM grow at most as 1/ε."""
    steps = {gap: float(_cost(problem, gap, "m_steps").get(RECURSIVE, inf)) for gap in EPSILONS}
    steps = {gap: count for gap, count in steps.items() if 0 < count < inf}
    claim = "SPIDER-EM needs O(1/ε) M-steps."
    if len(steps) < 2:
        return Finding(claim, None, "too few precisions were reached", source=SPIDER)
    slope = fit_slope([1 / gap for gap in steps], list(steps.values()))
    shown = ", ".join(f"{count:,.0f} to {short(gap)}" for gap, count in steps.items())
    note = (
        f"On the paper's mixture the median M-steps to an objective gap are {shown}. The bound is for the "
        "squared gradient, to which the gap is proportional near the optimum; there convergence is "
        "faster than the bound."
    )
    return Finding(claim, slope <= MOST_BOUND, f"(1/ε)^{signed(slope, 2)}", note, SPIDER)


def _in_n(growth: Runs) -> list[Finding]:
    slope, linear = (growth.slope(RECURSIVE, column) for column in ("m_steps", "value"))
    steps = growth.means(RECURSIVE, "m_steps")
    counts = ", ".join(f"{k:,.0f}" if isfinite(k) else "not reached" for k in steps)
    return [
        Finding(
            "The M-steps of SPIDER-EM to a precision do not depend on n (b = √n, γ constant).",
            abs(slope) <= INDEPENDENT,
            f"slope {signed(slope, 2)}, at most {INDEPENDENT} expected",
            f"Mean M-steps until |μ − μ*|² stays below 10⁻³, n = {growth.span}: {counts}.",
            SPIDER,
        ),
        Finding(
            "The evaluations of SPIDER-EM are of the order of n + √n/ε: at most linear in n.",
            linear <= MOST_LINEAR,
            f"slope {signed(linear, 2)}",
            f"Slopes of the evaluations on n, n = {growth.span}: {growth.slopes('value')}.",
            SPIDER,
        ),
    ]


def _variance(medians: pd.Series) -> Finding:
    shown = ", ".join(f"{signed(float(v), 2)} after {float(p):.0f} passes" for p, v in medians.items())
    note = (
        "On the paper's mixture, along a run of opt-FIEM with its estimated λ: the variance over that "
        "with λ = 1 and the same memory. The gain is largest while the memory is old."
    )
    claim = "The variance of opt-FIEM's proxy is at most fiEM's."
    return Finding(claim, bool(medians.max() <= MOST_RATIO), shown, note, OPTIMAL)
