"""The paper's theorems in numbers: measured gradients and their bounds, as the sample grows."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from paper import theory
from paper.experiments.experiment import Experiment, Progress, Tally, collect, no_progress
from paper.experiments.theory_local import LOCAL_STEPS, em_limit, local_rates
from paper.experiments.theory_run import (
    CHECKS,
    EPOCHS,
    ITERATIONS,
    K_DRAWS,
    TheoryRow,
    practice_run,
    theorem_run,
)
from swiftem._run import run
from swiftem.core.checks import check_int
from swiftem.core.types import Array
from swiftem.methods import EM
from swiftem.models import GaussianMixtureModel

__all__ = ["SIZES", "USUAL", "mixture_data", "theory_in_numbers"]

SIZES = (100, 316, 1_000, 3_162, 10_000)
FIGURE, USUAL = 1.0, 1e-3
"""δ and ε of the figure, and the usual ones."""
MEANS, WEIGHTS = (2.0, -2.0), (0.3, 0.7)
START_WEIGHTS, START_MEANS = (0.5, 0.5), ((1.0,), (-1.0,))
MOST_ESTIMATED = 1_000
"""Constants are also estimated for the largest sample up to this size: each point costs passes."""


def mixture_data(n: int, rng: np.random.Generator) -> Array:
    """Return ``n`` samples of two Gaussians of unit variance, means ±2 and weights 0.3 and 0.7.

    They are farther apart than those of the paper's figure, which a penalty of strength 1 would merge.

    >>> import numpy as np
    >>> mixture_data(3, np.random.default_rng(0)).shape
    (3,)
    """
    return np.where(rng.random(n) < WEIGHTS[0], *MEANS) + rng.normal(size=n)


def theory_in_numbers(
    *, sizes: Sequence[int] = SIZES, runs: int = 5, seed: int = 0, progress: Progress = no_progress
) -> Experiment:
    r"""Measure the gradients of the theorems for runs with their γ and m, and fiem's local rate.

    Parameters
    ----------
    sizes : sequence of int
        Sample sizes.
    runs : int
        Runs on each sample, with their own draws.
    seed, progress
        As in :func:`paper.experiments.gmm_precision.gmm_precision`.

    Returns
    -------
    Experiment
        With rows :class:`paper.experiments.theory_run.TheoryRow`.

    Examples
    --------
    >>> from paper.experiments.theory import theory_in_numbers
    >>> rows = theory_in_numbers(sizes=[50], runs=1).rows
    >>> row = next(row for row in rows if row.part == "theorem" and row.method == "iem")
    >>> row.measured < row.right_side, row.kind, row.inside
    (True, 'bound', True)
    """
    if not len(sizes):
        raise ValueError("sizes must hold at least one number of samples, got none.")
    for n in sizes:
        check_int("sizes", n, minimum=10)
    check_int("runs", runs, minimum=1)
    check_int("seed", seed, minimum=0)
    said = {
        "samples": "two Gaussians, unit variances, means ±2, weights 0.3 and 0.7; one sample for each n",
        "penalty": "δ = ε = 1, so that ρ = 1/2; 10⁻³, the default, for the table of steps only",
        "start": "ŝ^(0) = s̄ at means (1, −1) and equal weights, θ^(0) = θ̄(ŝ^(0))",
        "steps": "those of Theorem 2 from proven bounds of the constants; iEM's is 1",
        "iterations": f"K_max = {ITERATIONS:,}·n^(2/3) for sEM-VR (a multiple of m) and fiEM, "
        f"{EPOCHS}·n for iEM",
        "measured": f"at {K_DRAWS} draws of K in each run, one in each {K_DRAWS}th of 0 to K_max − 1, for "
        "iEM of 1 to K_max",
        "checked": f"that a run stays in S_ρ: at {CHECKS} places and each K, with a margin for the largest "
        "step times the iterations in between; for iEM, that θ + ∇L̄(θ)/L_e, which the proof uses, cannot "
        "leave the set of L_e",
        "local rate": "fiEM from near the limit of EM: least squares of log ‖ŝ − s*‖² on k; steps "
        + ", ".join(LOCAL_STEPS.values()),
        "runs": f"{runs} on each sample, each with its own draws; the mean is shown; seed {seed}",
    }
    estimated = max((n for n in sizes if n <= MOST_ESTIMATED), default=0)
    tally = Tally(float(sum(_cost(n) * runs for n in sizes)), progress)
    by_size = (_one_size(n, runs, seed, tally, estimate=n == estimated) for n in sizes)
    return collect("theory", said, by_size)


def _cost(n: int) -> float:
    """Return the approximate cost of all runs, in any unit: only for the estimate of the remaining time."""
    return float(n ** (2 / 3) + 0.01 * n + 20.0)


def _model(strength: float) -> GaussianMixtureModel:
    return GaussianMixtureModel(2, delta=strength, epsilon=strength)


def _one_size(n: int, runs: int, seed: int, tally: Tally, estimate: bool) -> list[TheoryRow]:
    """Return all rows of one sample; an incomplete set would be misleading."""
    y = mixture_data(n, np.random.default_rng([seed, n]))
    model = _model(FIGURE)
    start = run(model, y, EM(), theta0=model.theta(weights=START_WEIGHTS, means=START_MEANS), n_iter=0).s
    found = theory.constants(model, y)
    limit = em_limit(model, y, start)
    rows = _usual_steps(y, estimate)
    for number in range(runs):
        with tally.job(f"n = {n:,}", _cost(n)) as at:
            for done, method in enumerate(theory.THEOREMS, start=1):
                rows.append(theorem_run(model, y, method, found, start, number, seed))
                at(0.3 * done)
            rows += [practice_run(model, y, method, start, number, seed) for method in ("sem-vr", "fiem")]
            rows += local_rates(model, y, start, limit, number, seed)
    return rows


def _usual_steps(y: Array, estimate: bool) -> list[TheoryRow]:
    """Return the theorem's steps for a penalty of the usual strength, without a run."""
    model = _model(USUAL)
    found = [theory.constants(model, y)]
    if estimate:
        found.append(theory.estimate_constants(model, y))
    theorems = {"sem-vr": theory.VarianceReducedTheorem, "fiem": theory.FastIncrementalTheorem}
    steps = [
        (name, theorem(constants).gamma, constants.L_V.kind)
        for constants in found
        for name, theorem in theorems.items()
    ]
    return [
        TheoryRow("step", name, len(y), 0, gamma, 0, nan, nan, nan, kind, False)
        for name, gamma, kind in steps
    ]
