"""The paper's theorems in numbers: runs with their steps, fiem's local rate, and both sides as n grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import expm1, nan
from typing import Any, NamedTuple

import numpy as np

from paper import theory
from paper.experiments.experiment import Experiment, Job, Progress, collect, complete, no_progress
from paper.theory.constants import Constants, component_cells
from paper.theory.family import Family, family_of, full_pass
from paper.theory.sets import Polygon
from swiftem._run import objective, run
from swiftem.core.algorithm import Iterate, Result
from swiftem.core.schedules import resolve
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.methods import EM, METHODS, FastIncrementalEM, Method
from swiftem.models import GaussianMixtureModel

ITERATIONS = 60_000
"""K_max of sem-vr and fiem in units of n^(2/3), as the theorem scales: enough for visible progress."""
EPOCHS = 20
"""K_max of iem in units of n; runs with the default step have as many iterations."""
K_DRAWS = 16
"""Draws of K per run, at each of which the gradient is measured: the mean over a uniform K is that over all
iterations."""
STREAMS = {"fiem": 1, "iem": 2, "sem-vr": 4}
"""Keys of the methods' random numbers; they must not change, so that tables can be reproduced."""
ROUNDING = 1e-9
CHECKS = 64
"""Number of further checks that a run is in the theorem's set."""


class TheoryRow(NamedTuple):
    r"""One run, or one step size.

    Attributes
    ----------
    part : {"theorem", "practice", "step", "local"}
        A run with the theorem's step; one with the library's default step; only the theorem's step, for the
        usual penalty; or fiem's convergence near its limit.
    method : str
        The name that users write; for ``"local"`` with the step, as in ``"fiem 1/n"``.
    n, run : int
        Size of the sample, and index of the draws.
    gamma : float
        Step; 1 for iem.
    n_iter : int
        K_max.
    at_start : float
        :math:`\|\nabla V(\hat s^{(0)})\|^2`, for iem :math:`\|\nabla\overline{\mathcal L}(\theta^{(0)})\|^2`.
    measured : float
        The mean of the same over K; for ``"practice"`` only after the last iteration; for ``"local"`` δ of
        the fitted :math:`(1-\delta)^k`.
    right_side : float
        The theorem's, with this run's decrease; for ``"local"`` δ of the proposition. NaN if there is none.
    kind : {"bound", "estimate", ""}
        Kind of ``right_side``, or of the step of ``"step"``.
    inside : bool
        Whether the run was checked to be in the theorem's set, all the way.

    Examples
    --------
    >>> TheoryRow("local", "fiem 1/n", 100, 0, 0.01, 1500, 0.0, 0.0136, float("nan"), "", True).measured
    0.0136
    """

    part: str
    method: str
    n: int
    run: int
    gamma: float
    n_iter: int
    at_start: float
    measured: float
    right_side: float
    kind: str
    inside: bool


def theorem_run(
    model: GaussianMixtureModel, y: Array, name: str, found: Constants, start: Array, number: int, seed: int
) -> TheoryRow:
    """Return one run with the theorem's step, of part ``"theorem"``.

    Parameters
    ----------
    model : GaussianMixtureModel
        The model, of two components.
    y : ndarray, shape (n,)
        The sample.
    name : {"iem", "sem-vr", "fiem"}
        The method.
    found : Constants
        For model and sample.
    start : ndarray, shape (4,)
        ŝ^(0), as in ``swiftem.run``.
    number, seed : int
        Index of the draws, and seed.
    """
    n, incremental = len(y), name == "iem"
    theorem: Any = theory.THEOREMS[name](found)
    rng = np.random.default_rng([seed, n, number, STREAMS[name]])
    m = theorem.epoch_length if name == "sem-vr" else 1
    n_iter = EPOCHS * n if incremental else m * max(1, round(ITERATIONS * n ** (2 / 3) / m))
    # Stratified: one draw in each of as many parts of the range, which has less noise than free draws.
    drawn = int(incremental) + ((np.arange(K_DRAWS) + rng.random(K_DRAWS)) * n_iter / K_DRAWS).astype(int)
    last = n_iter + int(incremental)  # the decrease in Theorem 1 is to θ^(K_max + 1)
    stops = sorted({0, last, *drawn.tolist(), *np.linspace(0, n_iter, CHECKS + 1).astype(int).tolist()})
    watch = _Watch(model, y, theorem, name, int(np.diff(stops).max()))
    squares: dict[int, float] = {}
    for result in _stops(model, y, theorem.method(), start, stops, rng):
        if result.n_iter == 0:
            first = result
        if result.n_iter < last or not incremental:
            watch.look(result)
        if result.n_iter == 0 or result.n_iter in drawn:
            squares[result.n_iter] = _square(model, y, incremental, result)
    decrease = objective(model, y, first.theta) - objective(model, y, result.theta)
    right = theorem.right_hand_side(n_iter=n_iter, decrease=decrease)
    measured = float(np.mean([squares[k] for k in drawn.tolist()]))
    inside = watch.inside and result.rejected == 0
    return TheoryRow(
        "theorem", name, n, number, watch.gamma, n_iter, squares[0], measured, right.value, right.kind, inside
    )


def practice_run(
    model: GaussianMixtureModel, y: Array, name: str, start: Array, number: int, seed: int
) -> TheoryRow:
    """Return one run with the library's default step, of part ``"practice"``; arguments as above."""
    n = len(y)
    method = METHODS[name]()
    rng = np.random.default_rng([seed, n, number, STREAMS[name], 1])
    first, last = _stops(model, y, method, start, [0, EPOCHS * n], rng)
    gamma = resolve(method.step_size, n, 1)(1)
    before, after = (_square(model, y, False, result) for result in (first, last))
    return TheoryRow(
        "practice", name, n, number, gamma, EPOCHS * n, before, after, nan, "", last.rejected == 0
    )


def _stops(
    model: GaussianMixtureModel, y: Array, method: Method, start: Array, stops: Sequence[int], rng: Any
) -> Iterator[Result]:
    """Yield the result of one run after each of these iterations."""
    done, given = 0, {"s0": start, "seed": rng}
    for k in stops:
        result = complete(run(model, y, method, n_iter=k - done, **given))
        done, given = k, {"theta0": result.theta, "s0": result.s, "state": result.state}
        yield result


def _square(model: GaussianMixtureModel, y: Array, incremental: bool, result: Result) -> float:
    """Return the quantity that the method's theorem bounds, at one iterate."""
    if incremental:
        gradient = theory.gradient_objective(model, y, result.theta)
        return float(gradient @ gradient)
    return theory.stationarity(model, y, result.s).gradient


class _Watch:
    r"""Checks that a run is in its theorem's set, also between two checks.

    In an iteration ŝ moves by γ·(S − ŝ), of which no statistic exceeds the width of S_0 plus ρ plus the
    largest change of one sample's statistics. If the distance of ŝ from S_0 is at most ρ minus γ times this
    times the iterations between two checks, no iterate in between leaves S_ρ.

    Iterates of iem are means of possible statistics of samples and lie in S_0. The proof continues from there
    by ∇L̄(θ)/L_e, and :math:`\nabla\overline{\mathcal L}(\theta) = J_\phi^\top (s - \bar s(\theta))` is at
    most C_φ times the largest residual: if θ̄(S_0) and a neighbourhood of that size lie in the box of L_e,
    the condition holds at every iteration.
    """

    def __init__(self, model: GaussianMixtureModel, y: Array, theorem: Any, name: str, between: int) -> None:
        self.polygon, self.family = Polygon(y), family_of(model, y)[0]
        self.gamma = 1.0 if name == "iem" else theorem.gamma
        rho = theorem.constants.rho
        width = max(1.0, float(self.polygon.upper.max() - self.polygon.lower.min()))
        largest = width + rho + max(1.0, float(np.abs(y).max()))
        if name == "iem":
            self.room, self.inside = ROUNDING, _proof_stays(model, y, theorem.constants)
        else:
            self.room = rho - self.gamma * largest * between
            self.inside = self.room >= 0

    def look(self, result: Result) -> None:
        """Check an iterate."""
        self.inside &= self.polygon.holds(self.family.coordinates(result.s), self.room)


def _proof_stays(model: GaussianMixtureModel, y: Array, found: Constants) -> bool:
    """Tell whether θ̄(S_0), and C_φ times the largest residual over L_e around it, lie in the box of L_e."""
    around = found.C_phi.value * found.C_S_residual.value / found.L_e.value
    low, high = component_cells(y, 0.0, model.delta, model.epsilon).mu_range
    weight = model.epsilon / (1.0 + 2.0 * model.epsilon)
    # With two components the second weight changes by as much as the first.
    least, most = np.array([weight, weight, low, low]), np.array([1 - weight, 1 - weight, high, high])
    return bool((least - around >= found.box.low).all() and (most + around <= found.box.high).all())


LOCAL_STEPS = {
    "fiem proposition": "the proposition's (λ/4) / (2L_s²(2 + n))",
    "fiem 1/n": "1/n",
    "fiem default": "n^(−2/3), the default",
}
"""Names of the step sizes, and their descriptions."""
NEAR = 0.05
"""Start of the runs, as a share of the distance from the limit to the start of the other runs."""
FOLDS = 12.0
"""A run is long enough for the mean square error to fall by this power of e."""
MOST_EPOCHS, LEAST_EPOCHS = 1_000, 15
LOOKS = 60
FLOOR = 1e-24
"""A smaller mean square error is rounding."""
REST = 500
"""Passes until EM converges up to rounding, for the strong penalty of this experiment."""
STEP = 1e-5
"""Step of the finite differences."""
DIRECTIONS = 8
"""Radius in which the Lipschitz constant of J_F is estimated."""


class Limit(NamedTuple):
    r"""The limit of EM, and the proposition's constants there; all except ``s`` are estimates.

    Attributes
    ----------
    s : ndarray, shape (4,)
        s*, in the form of a run.
    lam, L_s : float
        λ and L_s of :func:`local_constants`. λ > 0 is B1, as :math:`\nabla^2 V = \mathrm B (I - J_F)` at s*.
    near : float
        Radius of B2, λ over the Lipschitz constant of J_F, which replaces the paper's L_s.
    """

    s: Array
    lam: float
    L_s: float
    near: float


def fit_rate(k: Array, error: Array) -> float:
    """Return δ of the (1 − δ)^k fitted to squared errors (·,) at iterations k (·,) by least squares of logs.

    The first eighth, in which memories are as new as the start, and everything from where rounding dominates
    are left out.

    >>> import numpy as np
    >>> k = np.arange(0, 1000, 10)
    >>> round(fit_rate(k, 3.0 * 0.99**k), 6)
    0.01
    """
    rounding = np.flatnonzero(error <= FLOOR)
    end = int(rounding[0]) if len(rounding) else len(k)
    use = slice(end // 8, end)
    if len(k[use]) < 3:
        return nan
    return float(-expm1(np.polyfit(k[use], np.log(error[use]), 1)[0]))


def _derivative(function: Callable[[Array], Array], s: Array) -> Array:
    """Return the derivative in each coordinate, shape (q, ...), by central differences."""
    steps = STEP * np.eye(len(s))
    return np.array([(function(s + step) - function(s - step)) / (2 * STEP) for step in steps])


def local_constants(family: Family, source: Source, s: Array, around: float) -> tuple[float, float, float]:
    r"""Return λ, L_s and the Lipschitz constant of J_F at s*, all by finite differences: estimates.

    F(s) is :math:`\bar s(\bar\theta(s))` and f_i a sample's part of it. λ is one minus the largest eigenvalue
    of J_F, and L_s the largest norm of any J_(f_i); the last is the largest quotient for points at distance
    ``around``, along S_0.
    """
    batch = source.take(np.arange(source.n))

    def F(x: Array) -> Array:
        return full_pass(family, source, family.theta(x)).s

    def each(x: Array) -> Array:
        return family.each_statistics(batch, family.bound.posterior(batch, family.theta(x))[0])

    J = _derivative(F, s)
    norms = np.linalg.norm(_derivative(each, s).transpose(1, 0, 2), ord=2, axis=(1, 2))
    turn = np.linspace(0.0, 2.0 * np.pi, DIRECTIONS, endpoint=False)
    ways = around * np.column_stack([np.cos(turn), np.sin(turn), np.zeros(DIRECTIONS)])
    change = max(float(np.linalg.norm(_derivative(F, s + way) - J, 2)) / around for way in ways)
    return 1.0 - float(np.linalg.eigvals(J).real.max()), float(norms.max()), change


def em_limit(model: GaussianMixtureModel, y: Array, start: Array) -> Limit:
    """Return the limit of EM, and the constants there."""
    result = complete(run(model, y, EM(), s0=start, n_iter=REST))
    family, source = family_of(model, y)
    s = family.coordinates(result.s)
    around = NEAR * float(np.linalg.norm(family.coordinates(start) - s))
    lam, L_s, change = local_constants(family, source, s, around)
    return Limit(result.s, lam, L_s, lam / change)


def local_rates(
    model: GaussianMixtureModel, y: Array, start: Array, limit: Limit, number: int, seed: int
) -> list[TheoryRow]:
    r"""Return one run of fiem for each of :data:`LOCAL_STEPS`, of part ``"local"``.

    The proposition has :math:`\gamma = \frac a2 (b + c(1+n))^{-1}`, a = λ/2, b = c = 2L_s², and then
    :math:`\delta = \gamma a - \gamma^2 (b + c(1+n)) = \gamma a / 2`. A run is inside if λ > 0 and every
    iterate that was checked is as near to s* as B2 requires.
    """
    n = len(y)
    rest, lam, L_s, near = limit
    gammas = {
        "fiem proposition": lam / 4.0 / (2.0 * L_s**2 * (2.0 + n)),
        "fiem 1/n": 1.0 / n,
        "fiem default": n ** (-2 / 3),
    }
    rows = []
    for place, (name, gamma) in enumerate(gammas.items()):
        # The mean moves by γλ per iteration, its square by twice that; memories are renewed in n iterations.
        n_iter = int(np.clip(FOLDS / (2.0 * gamma * lam), LEAST_EPOCHS * n, MOST_EPOCHS * n))

        def look(iterate: Iterate) -> tuple[int, float]:
            return iterate.k, float(((iterate.s - rest) ** 2).sum())

        result = run(
            model,
            y,
            FastIncrementalEM(step_size=gamma),
            s0=rest + NEAR * (start - rest),
            n_iter=n_iter,
            seed=np.random.default_rng([seed, n, number, 11 + place]),
            record_every=max(1, n_iter // LOOKS),
            record=look,
        )
        k, error = np.array(complete(result).path).T
        proposed = gamma * lam / 4.0 if name == "fiem proposition" else nan
        kind = "estimate" if name == "fiem proposition" else ""
        # A run's error has both components, the paper's coordinates have one: it is twice as large.
        inside = result.rejected == 0 and lam > 0 and bool(0.5 * error.max() <= near**2)
        fitted = fit_rate(k, error)
        rows.append(TheoryRow("local", name, n, number, gamma, n_iter, nan, fitted, proposed, kind, inside))
    return rows


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
        With rows :class:`paper.experiments.theory.TheoryRow`.

    Examples
    --------
    >>> from paper.experiments.theory import theory_in_numbers
    >>> rows = theory_in_numbers(sizes=[50], runs=1).rows
    >>> row = next(row for row in rows if row.part == "theorem" and row.method == "iem")
    >>> row.measured < row.right_side, row.kind, row.inside
    (True, 'bound', True)
    """
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
    jobs = [
        Job(f"n = {n:,}", _cost(n), partial(_one_size, n, runs, seed, estimate=n == estimated)) for n in sizes
    ]
    return collect("theory", said, jobs, progress)


def _cost(n: int) -> float:
    """Return the approximate cost of all runs, in any unit: only for the estimate of the remaining time."""
    return float(n ** (2 / 3) + 0.01 * n + 20.0)


def _model(strength: float) -> GaussianMixtureModel:
    return GaussianMixtureModel(2, delta=strength, epsilon=strength)


def _one_size(n: int, runs: int, seed: int, estimate: bool) -> list[TheoryRow]:
    """Return all rows of one sample; an incomplete set would be misleading."""
    y = mixture_data(n, np.random.default_rng([seed, n]))
    model = _model(FIGURE)
    start = run(model, y, EM(), theta0=model.theta(weights=START_WEIGHTS, means=START_MEANS), n_iter=0).s
    found = theory.constants(model, y)
    limit = em_limit(model, y, start)
    rows = _usual_steps(y, estimate)
    for number in range(runs):
        rows += [theorem_run(model, y, method, found, start, number, seed) for method in theory.THEOREMS]
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
