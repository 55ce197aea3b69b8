"""One run with a theorem's step, checked all the way; and one with the default step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from paper import theory
from paper.experiments.experiment import complete
from paper.theory.constants import Constants
from paper.theory.family import family_of
from paper.theory.mixture_bounds import component_cells
from paper.theory.polygon import Polygon
from swiftem._run import objective, run
from swiftem.core.result import Result
from swiftem.core.schedules import resolve
from swiftem.core.types import Array
from swiftem.methods import METHODS, Method
from swiftem.models import GaussianMixtureModel

__all__ = ["CHECKS", "EPOCHS", "ITERATIONS", "K_DRAWS", "TheoryRow", "practice_run", "theorem_run"]

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
    result: Result | None = None
    for k in stops:
        if result is None:
            result = run(model, y, method, s0=start, n_iter=k, seed=rng)
        else:
            result = run(
                model,
                y,
                method,
                theta0=result.theta,
                s0=result.s,
                state=result.state,
                n_iter=k - result.n_iter,
            )
        yield complete(result)


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
