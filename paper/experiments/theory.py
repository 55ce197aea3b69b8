"""The theorems in numbers.

The paper proves that the squared gradient at a random iteration K is below a bound, on average over the
draws. Here are the numbers of both sides for a small mixture: the measured gradient, and the bound with
constants that are themselves proven, for runs with the theorem's step size. The bounds hold, but the steps
are far too small for practical use: the theorem says how steps and iterations should change with n, not how
large they should be.

Samples, one for each n, are of two Gaussians with unit variances, means ±2 and weights 0.3 and 0.7. The
penalty is δ = ε = 1, so that ρ = 1/2; 10⁻³, the default, for the table of steps only. Runs start from s̄ at
means (1, −1) and equal weights, and from its M-step. Steps are those of Theorem 2 from proven bounds of the
constants; iEM's is 1.

K_max is 60,000·n^(2/3) for sEM-VR (a multiple of m) and fiEM, 20·n for iEM. The gradient is measured at 16
draws of K in each run, one in each 16th of 0 to K_max − 1, for iEM of 1 to K_max. That a run stays in S_ρ is
checked at 64 places and each K, with a margin for the largest step times the iterations in between; for iEM,
that θ + ∇L̄(θ)/L_e, which the proof uses, cannot leave the set of L_e.

The local rate is of fiEM from near the limit of EM, by least squares of log ‖ŝ − s*‖² on k. The mean over the
runs is shown.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import expm1, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper import theory
from paper.experiments.experiment import Experiment, Progress, collect, complete, no_progress, shares
from paper.report.figures import Line, Panel, Picture, short
from paper.report.runs import Runs
from paper.report.section import Finding, Section
from paper.theory.constants import Constants, component_cells
from paper.theory.family import family_of, full_pass
from paper.theory.sets import Polygon
from swiftem._run import objective, run
from swiftem.core.algorithm import Iterate, Result
from swiftem.core.schedules import resolve
from swiftem.core.types import Array
from swiftem.methods import EM, METHODS, FastIncrementalEM, Method
from swiftem.models import GaussianMixtureModel
from swiftem.show.numbers import Style, signed, style_of

SIZES = (100, 316, 1_000, 3_162, 10_000)
FIGURE, USUAL = 1.0, 1e-3
"""δ and ε of the figure, and the usual ones."""
MEANS, WEIGHTS = (2.0, -2.0), (0.3, 0.7)
START_WEIGHTS, START_MEANS = (0.5, 0.5), ((1.0,), (-1.0,))
MOST_ESTIMATED = 1_000
"""Constants are also estimated for the largest sample up to this size: each point costs passes."""
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
PROPOSITION = "fiem proposition"
LOCAL_STEPS = {
    PROPOSITION: Style("Proposition's γ", "#009E73", "-"),
    "fiem 1/n": Style("γ = 1/n", "#0072B2", "-"),
    "fiem default": Style("γ = n^(−2/3)", "#D55E00", "-"),
}
"""Step sizes of the local rate: the proposition's is (λ/4) / (2L_s²(2 + n))."""
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
"""Number of directions in which the Lipschitz constant of J_F is estimated."""
STEPS = (
    ("theorem", "δ = ε = 1", "-"),
    ("step:bound", "10⁻³", ":"),
    ("step:estimate", "10⁻³, estimated constants", "--"),
)
"""Which steps are shown."""
ONE_OVER_N = (-1.15, -0.85)
"""Slopes that count as 1/n."""


class TheoryRow(
    namedtuple("TheoryRow", "part method n run gamma n_iter at_start measured right_side kind inside")
):
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


class Sample(NamedTuple):
    """A sample (n,), the model, and ŝ^(0) as in ``swiftem.run``."""

    model: GaussianMixtureModel
    y: Array
    start: Array

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.y)


def draw(n: int, seed: int) -> Sample:
    """Return ``n`` samples of two Gaussians of unit variance, means ±2 and weights 0.3 and 0.7.

    They are farther apart than those of the paper's figure, which a penalty of strength 1 would merge.

    >>> draw(3, 0).y.shape
    (3,)
    """
    rng = np.random.default_rng([seed, n])
    y = np.where(rng.random(n) < WEIGHTS[0], *MEANS) + rng.normal(size=n)
    model = _model(FIGURE)
    theta0 = model.theta(weights=START_WEIGHTS, means=START_MEANS)
    return Sample(model, y, run(model, y, EM(), theta0=theta0, n_iter=0).s)


def _model(strength: float) -> GaussianMixtureModel:
    return GaussianMixtureModel(2, delta=strength, epsilon=strength)


def theorem_run(sample: Sample, name: str, found: Constants, number: int, seed: int) -> TheoryRow:
    """Return one run of iem, sem-vr or fiem with the theorem's step, of part ``"theorem"``.

    ``found`` are the constants for model and sample, ``number`` is the index of the draws.
    """
    model, y, n, incremental = sample.model, sample.y, sample.n, name == "iem"
    theorem: Any = theory.THEOREMS[name](found)
    gamma = 1.0 if incremental else theorem.gamma
    rng = np.random.default_rng([seed, n, number, STREAMS[name]])
    m = theorem.epoch_length if name == "sem-vr" else 1
    n_iter = EPOCHS * n if incremental else m * max(1, round(ITERATIONS * n ** (2 / 3) / m))
    # Stratified: one draw in each of as many parts of the range, which has less noise than free draws.
    drawn = int(incremental) + ((np.arange(K_DRAWS) + rng.random(K_DRAWS)) * n_iter / K_DRAWS).astype(int)
    last = n_iter + int(incremental)  # the decrease in Theorem 1 is to θ^(K_max + 1)
    stops = sorted({0, last, *drawn.tolist(), *np.linspace(0, n_iter, CHECKS + 1).astype(int).tolist()})
    visited = dict(zip(stops, _stops(sample, theorem.method(), stops, rng), strict=True))
    squares = {k: _square(sample, incremental, visited[k]) for k in {0, *drawn.tolist()}}
    decrease = objective(model, y, visited[0].theta) - objective(model, y, visited[last].theta)
    right = theorem.right_hand_side(n_iter=n_iter, decrease=decrease)
    measured = float(np.mean([squares[k] for k in drawn.tolist()]))
    if incremental:
        room, inside = ROUNDING, _proof_stays(sample, found)
        del visited[last]
    else:
        room = found.rho - gamma * _largest_move(y, found.rho) * int(np.diff(stops).max())
        inside = room >= 0
    polygon, family = Polygon(y), family_of(model, y)[0]
    inside &= all(
        polygon.holds(family.coordinates(at.s), room) and at.rejected == 0 for at in visited.values()
    )
    values = squares[0], measured, right.value, right.kind, inside
    return TheoryRow("theorem", name, n, number, gamma, n_iter, *values)


def practice_run(sample: Sample, name: str, number: int, seed: int) -> TheoryRow:
    """Return one run with the library's default step, of part ``"practice"``; arguments as above."""
    n, method = sample.n, METHODS[name]()
    rng = np.random.default_rng([seed, n, number, STREAMS[name], 1])
    first, last = _stops(sample, method, [0, EPOCHS * n], rng)
    gamma = resolve(method.step_size, n, 1)(1)
    values = _square(sample, False, first), _square(sample, False, last), nan, "", last.rejected == 0
    return TheoryRow("practice", name, n, number, gamma, EPOCHS * n, *values)


def _stops(sample: Sample, method: Method, stops: Sequence[int], rng: Any) -> Iterator[Result]:
    """Yield the result of one run after each of these iterations."""
    done, given = 0, {"s0": sample.start, "seed": rng}
    for k in stops:
        result = complete(run(sample.model, sample.y, method, n_iter=k - done, **given))
        done, given = k, {"theta0": result.theta, "s0": result.s, "state": result.state}
        yield result


def _square(sample: Sample, incremental: bool, result: Result) -> float:
    """Return the quantity that the method's theorem bounds, at one iterate."""
    if incremental:
        gradient = theory.gradient_objective(sample.model, sample.y, result.theta)
        return float(gradient @ gradient)
    return theory.stationarity(sample.model, sample.y, result.s).gradient


def _largest_move(y: Array, rho: float) -> float:
    """Return the most that ŝ moves in an iteration, divided by γ.

    It moves by γ·(S − ŝ), of which no statistic exceeds the width of S_0 plus ρ plus the largest change of
    one sample's statistics. If the distance of ŝ from S_0 is at most ρ minus this move times the iterations
    between two checks, no iterate in between leaves S_ρ.
    """
    polygon = Polygon(y)
    width = max(1.0, float(polygon.upper.max() - polygon.lower.min()))
    return width + rho + max(1.0, float(np.abs(y).max()))


def _proof_stays(sample: Sample, found: Constants) -> bool:
    r"""Return whether the proof of Theorem 1 stays in the set of L_e at every iteration of iem.

    Iterates of iem are means of possible statistics of samples and lie in S_0. The proof continues from there
    by ∇L̄(θ)/L_e, and :math:`\nabla\overline{\mathcal L}(\theta) = J_\phi^\top (s - \bar s(\theta))` is at
    most C_φ times the largest residual: θ̄(S_0) and a neighbourhood of that size must lie in the box of L_e.
    """
    delta, epsilon = sample.model.delta, sample.model.epsilon
    around = found.C_phi.value * found.C_S_residual.value / found.L_e.value
    low, high = component_cells(sample.y, 0.0, delta, epsilon).mu_range
    weight = epsilon / (1.0 + 2.0 * epsilon)
    # With two components the second weight changes by as much as the first.
    least, most = np.array([weight, weight, low, low]), np.array([1 - weight, 1 - weight, high, high])
    return bool((least - around >= found.box.low).all() and (most + around <= found.box.high).all())


class Limit(NamedTuple):
    r"""The limit of EM, and the proposition's constants there; all except ``s`` are estimates.

    Attributes
    ----------
    s : ndarray, shape (4,)
        s*, in the form of a run.
    lam, L_s : float
        λ and L_s of :func:`em_limit`. λ > 0 is B1, as :math:`\nabla^2 V = \mathrm B (I - J_F)` at s*.
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


def em_limit(sample: Sample) -> Limit:
    r"""Return the limit of EM, and the constants there by finite differences.

    F(s) is :math:`\bar s(\bar\theta(s))` and f_i a sample's part of it. λ is one minus the largest eigenvalue
    of J_F, and L_s the largest norm of any J_(f_i). The Lipschitz constant of J_F is the largest quotient for
    points at the distance of the runs' start, along S_0.
    """
    rest = complete(run(sample.model, sample.y, EM(), s0=sample.start, n_iter=REST)).s
    family, source = family_of(sample.model, sample.y)
    s, batch = family.coordinates(rest), source.take(np.arange(source.n))

    def F(x: Array) -> Array:
        return full_pass(family, source, family.theta(x)).s

    def each(x: Array) -> Array:
        return family.each_statistics(batch, family.bound.posterior(batch, family.theta(x))[0])

    J = _derivative(F, s)
    norms = np.linalg.norm(_derivative(each, s).transpose(1, 0, 2), ord=2, axis=(1, 2))
    around = NEAR * float(np.linalg.norm(family.coordinates(sample.start) - s))
    turn = np.linspace(0.0, 2.0 * np.pi, DIRECTIONS, endpoint=False)
    ways = around * np.column_stack([np.cos(turn), np.sin(turn), np.zeros(DIRECTIONS)])
    change = max(float(np.linalg.norm(_derivative(F, s + way) - J, 2)) / around for way in ways)
    lam = 1.0 - float(np.linalg.eigvals(J).real.max())
    return Limit(rest, lam, float(norms.max()), lam / change)


def local_rates(sample: Sample, limit: Limit, number: int, seed: int) -> list[TheoryRow]:
    r"""Return one run of fiem for each of :data:`LOCAL_STEPS`, of part ``"local"``.

    The proposition has :math:`\gamma = \frac a2 (b + c(1+n))^{-1}`, a = λ/2, b = c = 2L_s², and then
    :math:`\delta = \gamma a - \gamma^2 (b + c(1+n)) = \gamma a / 2`. A run is inside if λ > 0 and every
    iterate that was checked is as near to s* as B2 requires.
    """
    n, (rest, lam, L_s, near) = sample.n, limit
    gammas = (lam / 4.0 / (2.0 * L_s**2 * (2.0 + n)), 1.0 / n, n ** (-2 / 3))
    rows = []
    for place, (name, gamma) in enumerate(zip(LOCAL_STEPS, gammas, strict=True)):
        # The mean moves by γλ per iteration, its square by twice that; memories are renewed in n iterations.
        n_iter = int(np.clip(FOLDS / (2.0 * gamma * lam), LEAST_EPOCHS * n, MOST_EPOCHS * n))

        def look(iterate: Iterate) -> tuple[int, float]:
            return iterate.k, float(((iterate.s - rest) ** 2).sum())

        result = run(
            sample.model,
            sample.y,
            FastIncrementalEM(step_size=gamma),
            s0=rest + NEAR * (sample.start - rest),
            n_iter=n_iter,
            seed=np.random.default_rng([seed, n, number, 11 + place]),
            record_every=max(1, n_iter // LOOKS),
            record=look,
        )
        k, error = np.array(complete(result).path).T
        proposed, kind = (gamma * lam / 4.0, "estimate") if name == PROPOSITION else (nan, "")
        # A run's error has both components, the paper's coordinates have one: it is twice as large.
        inside = result.rejected == 0 and lam > 0 and bool(0.5 * error.max() <= near**2)
        values = nan, fit_rate(k, error), proposed, kind, inside
        rows.append(TheoryRow("local", name, n, number, gamma, n_iter, *values))
    return rows


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
    settings = {"runs": f"{runs} on each sample, each with its own draws; seed {seed}"}
    estimated = max((n for n in sizes if n <= MOST_ESTIMATED), default=0)

    def parts() -> Iterator[list[TheoryRow]]:
        for n, share in zip(sizes, shares([n ** (2 / 3) + 0.01 * n + 20.0 for n in sizes]), strict=True):
            progress(f"n = {n:,}", share)
            yield _one_size(draw(n, seed), runs, seed, n == estimated)

    return collect("theory", settings, parts())


def _one_size(sample: Sample, runs: int, seed: int, estimate: bool) -> list[TheoryRow]:
    """Return all rows of one sample; an incomplete set would be misleading."""
    found = theory.constants(sample.model, sample.y)
    limit = em_limit(sample)
    rows = _usual_steps(sample.y, estimate)
    for number in range(runs):
        rows += [theorem_run(sample, method, found, number, seed) for method in theory.THEOREMS]
        rows += [practice_run(sample, method, number, seed) for method in ("sem-vr", "fiem")]
        rows += local_rates(sample, limit, number, seed)
    return rows


def _usual_steps(y: Array, estimate: bool) -> list[TheoryRow]:
    """Return the theorem's steps for a penalty of the usual strength, without a run."""
    model, rows = _model(USUAL), []
    for constants in (theory.constants, theory.estimate_constants)[: 1 + estimate]:
        found = constants(model, y)
        for name in ("sem-vr", "fiem"):
            theorem: Any = theory.THEOREMS[name](found)
            values = theorem.gamma, 0, nan, nan, nan, found.L_V.kind, False
            rows.append(TheoryRow("step", name, len(y), 0, *values))
    return rows


def theory_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`theory_in_numbers`.

    >>> section = theory_section(theory_in_numbers(sizes=[40, 80], runs=1))
    >>> [picture.name for picture in section.pictures], section.findings[0].verdict
    (['theory'], 'agrees')
    """
    frame = pd.DataFrame(experiment.rows)
    frame["part"] += (":" + frame["kind"]).where(frame["part"] == "step", "")
    parts = {str(part): Runs(rows, "n") for part, rows in frame.groupby("part")}
    findings = [
        _bound(parts["theorem"], ("iem",), "Theorem 1: iEM's squared gradient is below (21)."),
        _bound(
            parts["theorem"], ("sem-vr", "fiem"), "Theorem 2: those of sEM-VR and fiEM are below (27), (28)."
        ),
    ]
    if len(parts["local"].places) > 1:
        findings.append(_local(parts["local"]))
    picture = Picture(
        "theory",
        "The theorems in numbers: two Gaussians, δ = ε = 1",
        _panels(parts),
    )
    return Section(experiment.name, __doc__, experiment.settings, findings, [picture])


def _range(values: Array) -> str:
    low, high = short(values.min()), short(values.max())
    return low if low == high else f"{low} to {high}"


def _outside(runs: Runs, methods: Sequence[str]) -> int:
    """Return how many runs were not checked to be inside."""
    return int(sum((1.0 - runs.values(m, "inside")).sum() for m in methods))


def _bound(runs: Runs, methods: Sequence[str], claim: str) -> Finding:
    measured, right = (
        np.array([runs.means(m, field) for m in methods]) for field in ("measured", "right_side")
    )
    outside = _outside(runs, methods)
    left = f"{outside} runs may have left" if outside else "All runs were checked to stay in"
    note = f"For n from {runs.span}, with proven constants. {left} the theorem's set."
    holds = None if outside else bool((measured <= right).all())
    return Finding(claim, holds, f"measured {_range(measured)}; bound {_range(right)}", note)


def _local(runs: Runs) -> Finding:
    slopes = {name: runs.slope(name, "measured") for name in LOCAL_STEPS}
    # L_s depends on the largest sample: the step is not proportional to 1/n across samples, but δ is to it.
    with_step = slopes.pop(PROPOSITION) / runs.slope(PROPOSITION, "gamma")
    faster = runs.means(PROPOSITION, "measured") / runs.means(PROPOSITION, "right_side")
    low, high = ONE_OVER_N
    text = ", ".join(f"{signed(slope, 2)} ({LOCAL_STEPS[name].label})" for name, slope in slopes.items())
    note = (
        f"Slopes from {signed(low, 2)} to {signed(high, 2)} count as −1, which is 1/n. With the "
        f"proposition's step, the slope of log δ on log γ is {signed(with_step, 2)}, 1 expected, and δ is "
        f"{_range(faster)} times the proposition's (an estimate, as L_s is)."
    )
    slopes_hold = all(low <= slope <= high for slope in (*slopes.values(), -with_step))
    holds: bool | None = bool(slopes_hold and faster.min() >= 1)
    if _outside(runs, list(LOCAL_STEPS)):
        holds, note = None, f"{note} Some iterates were farther from the limit than B2 allows."
    claim = "Proposition 1: fiEM converges linearly near its limit, with δ = Θ(1/n)."
    return Finding(claim, holds, f"slopes of δ on n: {text}; −1 expected", note)


def _panels(parts: Mapping[str, Runs]) -> list[Panel]:
    """Return both sides of the theorems, step sizes, and fiem's local rate."""

    def line(part: str, method: str, field: str, label: str, kind: str) -> Line:
        runs, colour = parts[part], (LOCAL_STEPS.get(method) or style_of(method)).colour
        return Line(Style(label, colour, kind), np.array(runs.places), runs.values(method, field))

    def panel(title: str, y: str, lines: Sequence[Line]) -> Panel:
        return Panel(title, ("samples n", y), lines, centre=np.mean)

    sides = [
        line("theorem", m, field, f"{style_of(m).label}, {words}", kind)
        for m in theory.THEOREMS
        for field, words, kind in (("measured", "measured", "-"), ("right_side", "bound", "--"))
    ]
    steps = [
        line(part, m, "gamma", f"{style_of(m).label}, {words}", kind)
        for part, words, kind in STEPS
        if part in parts
        for m in ("sem-vr", "fiem")
    ]
    steps.append(line("practice", "sem-vr", "gamma", "default, n^(−2/3)", "-."))
    local = [line("local", name, "measured", style.label, "-") for name, style in LOCAL_STEPS.items()]
    sizes, values = local[-1].x, local[-1].values
    local += [
        line("local", PROPOSITION, "right_side", "its δ, estimate", "--"),
        Line(Style("∝ 1/n", "#777777", ":"), sizes, 4.0 * values[:1, :1] * sizes[0] / sizes),
    ]
    return [
        panel("squared gradient at a random K", "mean of ‖∇‖² over runs and K", sides),
        panel("step size γ of Theorem 2, and default", "γ", steps),
        panel("fiEM near its limit: error ∝ (1 − δ)^k", "fitted δ", local),
    ]
