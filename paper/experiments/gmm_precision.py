"""Precision on the Gaussian mixture.

The paper's figure 1, left: the squared distance of the two means from the limit of batch EM, |μ − μ*|², for
five methods on 10⁴ samples. An epoch is n iterations, one sample each; for EM it is one full pass.

Samples are of two Gaussians with unit variances, means ±0.5 and equal weights. Runs start from means (1, −1)
and equal weights; weights are estimated, with δ = ε = 0.001. Steps are 3/(k + 10) for sEM and 0.003 for
sEM-VR and fiEM. μ* is the limit of batch EM in double precision, for each sample.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from paper.experiments.experiment import Experiment, Progress, collect, complete, no_progress, trace
from paper.report.figures import Picture, short
from paper.report.runs import Runs, curve_panels
from paper.report.section import Finding, Section
from swiftem._run import run
from swiftem.core.algorithm import Iterate
from swiftem.core.schedules import inverse
from swiftem.core.types import Array
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta
from swiftem.show.numbers import counted, style_of

MODEL = GaussianMixtureModel(n_components=2)
MEANS = (0.5, -0.5)
START_MEANS = ((1.0,), (-1.0,))
STEP = 0.003
DOUBLE_PRECISION = 1e-15
"""Batch EM has converged to double precision if its means, which are about 0.5, change by no more."""
MOST_PASSES = 50_000
REDUCED, PLAIN = ("sem-vr", "fiem"), ("em", "sem", "iem")


class Limit(NamedTuple):
    r"""Limit of batch EM: :math:`\theta^\star`, its number of iterations, and whether it converged."""

    theta: GaussianMixtureTheta
    n_iter: int
    converged: bool


def gmm_data(n: int, rng: np.random.Generator, first_weight: float = 0.5) -> Array:
    """Return ``n`` samples of two Gaussians of unit variance; ``first_weight`` is that of mean 0.5.

    >>> y = gmm_data(100_000, np.random.default_rng(0))
    >>> bool(abs(y.var() - 1.25) < 0.02)  # 1 within the components, 0.25 between them
    True
    """
    return np.where(rng.random(n) < first_weight, *MEANS) + rng.normal(size=n)


def squared_error(theta: GaussianMixtureTheta, limit: Limit) -> float:
    r"""Return :math:`|\mu - \mu^\star|^2`, summed over the components."""
    return float(((theta.means - limit.theta.means) ** 2).sum())


def batch_em_limit(
    model: GaussianMixtureModel,
    y: Array,
    theta0: GaussianMixtureTheta,
    *,
    smallest_change: float = DOUBLE_PRECISION,
) -> Limit:
    r"""Return :math:`\theta^\star`, the limit of batch EM from ``theta0``.

    It has converged if no mean changes by more than ``smallest_change``. Ctrl-C raises KeyboardInterrupt.

    Examples
    --------
    >>> y = gmm_data(1000, np.random.default_rng(0))
    >>> limit = batch_em_limit(MODEL, y, MODEL.theta(means=START_MEANS))
    >>> limit.converged, limit.theta.means.shape
    (True, (2, 1))
    """
    last = theta0.means

    def at_rest(iterate: Iterate) -> bool:
        nonlocal last
        change = float(np.abs(iterate.theta.means - last).max())
        last = iterate.theta.means
        return iterate.k > 0 and change <= smallest_change

    result = complete(
        run(model, y, EM(), theta0=theta0, n_iter=MOST_PASSES, record=lambda iterate: None, callback=at_rest)
    )
    return Limit(result.theta, result.n_iter, result.status == "stopped")


class PrecisionRow(namedtuple("PrecisionRow", "method run epoch passes seconds squared_error")):
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
        Called as a job begins, with its name and the completed share of the whole.

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
    start, methods = MODEL.theta(means=START_MEANS), precision_methods()
    settings = {"samples": f"n = {n:,}", "runs": f"{runs}, each with its own sample and draws; seed {seed}"}

    def curves() -> Iterator[list[PrecisionRow]]:
        for number in range(runs):
            progress("EM until convergence", number / runs)
            randomness = np.random.SeedSequence([seed, number])
            y = gmm_data(n, np.random.default_rng(randomness))
            limit = batch_em_limit(MODEL, y, start)
            if not limit.converged:
                settings["caution"] = f"EM had not converged in {MOST_PASSES:,} passes: errors are not exact"
            measure = partial(squared_error, limit=limit)
            for place, (name, method) in enumerate(methods.items(), start=1):
                progress(name, (number + place / (len(methods) + 1)) / runs)
                points = trace(
                    MODEL, y, method, theta0=start, epochs=epochs, seed=randomness, measure=measure
                )
                yield [PrecisionRow(name, number, *point) for point in points]

    return collect("gmm-precision", settings, curves())


def precision_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`gmm_precision`.

    >>> section = precision_section(gmm_precision(n=1000, epochs=20, runs=1))
    >>> section.findings[0].verdict, len(section.pictures[0].panels)
    ('agrees', 3)
    """
    curves = Runs(experiment.rows, "epoch")
    errors = {m: curves.values(m, "squared_error") for m in curves.methods}
    after = f"after {counted(curves.places[-1], 'epoch')}"
    picture = Picture(
        "gmm-precision",
        f"Squared error |μ − μ*|² on the Gaussian mixture {after}",
        curve_panels(curves, "squared_error", "squared error |μ − μ*|²", log="y", text=short),
    )
    findings = []
    if {*REDUCED, *PLAIN} <= errors.keys():  # after Ctrl-C some may be missing
        budget = curves.medians("em", "passes")[-1]
        # The last errors with at most so many passes.
        affordable = {m: (curves.values(m, "passes")[0] <= budget).sum() - 1 for m in errors}
        findings = [
            _compared(
                "sEM-VR and fiEM outperform the other methods, by epochs.",
                after,
                {m: error[:, -1] for m, error in errors.items()},
            ),
            _compared(
                "The same by passes: an epoch of sEM-VR costs three passes, one of fiEM two.",
                f"at {budget:.0f} passes",
                {m: error[:, affordable[m]] for m, error in errors.items()},
            ),
        ]
    return Section(experiment.name, __doc__, experiment.settings, findings, [picture])


def _compared(claim: str, when: str, errors: dict[str, Array]) -> Finding:
    """Return whether sEM-VR and fiEM are ahead in each run; ``errors`` are those of the runs.

    Runs have samples of their own, and EM on the easiest may be ahead of fiEM on the hardest.
    """
    reduced, plain = (np.array([errors[m] for m in methods]) for methods in (REDUCED, PLAIN))
    behind = int((reduced.max(axis=0) >= plain.min(axis=0)).sum())
    medians = ", ".join(
        f"{short(float(np.median(errors[m])))} ({style_of(m).label})" for m in (*REDUCED, *PLAIN)
    )
    note = f"In {behind or 'none'} of {counted(reduced.shape[1], 'run')} one of the others is as close."
    return Finding(claim, not behind, f"{when} the median error is {medians}", note)
