"""The left panel of the paper's Gaussian figure: precision of five methods, epoch by epoch."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from paper.experiments.experiment import Experiment, Job, Progress, collect, no_progress
from paper.experiments.gmm import START_MEANS, Limit, batch_em_limit, gmm_data, squared_error, trace, warm_up
from swiftem.core.schedules import inverse
from swiftem.core.types import Array
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM
from swiftem.models import GaussianMixtureModel

MODEL = GaussianMixtureModel(n_components=2)
STEP = 0.003
COST = {"em": 0.1, "sem": 1.0, "iem": 1.2, "sem-vr": 1.6, "fiem": 2.0, "fiem-shuffled": 2.0}
"""Time of an epoch, in units of sem's: only for the estimate of the remaining time."""
REFERENCE_COST = 5.0
"""Time until batch EM converges, in units of a hundred epochs of sem."""


class PrecisionRow(NamedTuple):
    r"""One method after one epoch of one run.

    Attributes
    ----------
    method : str
        The name that users write; ``"fiem-shuffled"`` is fiem with j in shuffled passes.
    run, epoch : int
        Index of the sample and its draws, and the epochs done: n iterations each, one for ``"em"``.
    passes, seconds : float
        E-step evaluations divided by n, the first pass included; time of the run.
    squared_error : float
        :math:`|\mu - \mu^\star|^2`.
    """

    method: str
    run: int
    epoch: int
    passes: float
    seconds: float
    squared_error: float


def precision_methods() -> dict[str, Method]:
    """Return the five methods with the paper's step sizes, and fiem with j in shuffled passes.

    >>> list(precision_methods())
    ['em', 'sem', 'iem', 'sem-vr', 'fiem', 'fiem-shuffled']
    """
    return {
        "em": EM(),
        "sem": OnlineEM(step_size=inverse(3, 10)),
        "iem": IncrementalEM(),
        "sem-vr": VarianceReducedEM(step_size=STEP),
        "fiem": FastIncrementalEM(step_size=STEP),
        "fiem-shuffled": FastIncrementalEM(step_size=STEP, memory_order="shuffled"),
    }


def gmm_precision(
    *, n: int = 10_000, epochs: int = 100, runs: int = 5, seed: int = 0, progress: Progress = no_progress
) -> Experiment:
    r"""Run the methods of the paper and measure :math:`|\mu - \mu^\star|^2` after each epoch.

    Each run has its own sample and draws; all methods of a run share the sample and start from means
    (1, −1) and equal weights. :math:`\mu^\star` is the limit of batch EM in double precision.

    Parameters
    ----------
    n : int
        Number of samples.
    epochs : int
        Epochs of each method, n iterations each; the paper shows 100.
    runs : int
        Independent repetitions.
    seed : int
        For samples and draws.
    progress : callable, optional
        Called with the current task and the completed share of the whole.

    Returns
    -------
    Experiment
        With rows :class:`PrecisionRow`, by run and method. Ctrl-C keeps the complete curves.

    Examples
    --------
    >>> from paper.experiments.gmm_precision import gmm_precision
    >>> rows = gmm_precision(n=100, epochs=2, runs=1).rows
    >>> [(row.method, row.epoch, row.passes) for row in rows[:4]]
    [('em', 0, 1.0), ('em', 1, 2.0), ('em', 2, 3.0), ('sem', 0, 1.0)]
    """
    start = MODEL.theta(means=START_MEANS)
    methods = precision_methods()
    settings = {
        "samples": f"n = {n:,} of two Gaussians, unit variances, means ±0.5, equal weights",
        "start": "means (1, −1), equal weights; weights are estimated, δ = ε = 0.001",
        "μ*": "the limit of batch EM in double precision, for each sample",
        "steps": f"sEM 3/(k + 10); sEM-VR and fiEM γ = {STEP}; one sample per iteration",
        "runs": f"{runs}, each with its own sample and draws; seed {seed}",
    }

    samples: dict[int, tuple[Array, Limit]] = {}

    def compiling() -> list[PrecisionRow]:
        # Not fewer samples: shuffled passes are drawn many at a time, the more the shorter they are.
        seconds = warm_up(MODEL, np.linspace(-2.0, 2.0, 1000), methods.values(), start)
        settings["compiling"] = f"{seconds:.1f} s, not counted"
        return []

    def reference(number: int) -> list[PrecisionRow]:
        y = gmm_data(n, np.random.default_rng(np.random.SeedSequence([seed, number])))
        samples[number] = y, batch_em_limit(MODEL, y, start)
        passes = sorted({limit.n_iter for _, limit in samples.values()})
        settings["passes of EM to convergence"] = " to ".join(
            f"{k:,}" for k in sorted({passes[0], passes[-1]})
        )
        if not all(limit.converged for _, limit in samples.values()):
            settings["caution"] = f"EM had not converged in {passes[-1]:,} passes: errors are not exact"
        return []

    def curve(number: int, name: str) -> list[PrecisionRow]:
        y, limit = samples[number]
        points = trace(
            MODEL,
            y,
            methods[name],
            theta0=start,
            epochs=epochs,
            seed=np.random.SeedSequence([seed, number]),
            measure=partial(squared_error, limit=limit),
        )
        return [PrecisionRow(name, number, *point) for point in points]

    jobs = [Job("compiling", 1.0, compiling)]
    for number in range(runs):
        jobs.append(Job("EM until convergence", REFERENCE_COST, partial(reference, number)))
        jobs += [Job(name, COST[name], partial(curve, number, name)) for name in methods]
    return collect("gmm-precision", settings, jobs, progress)
