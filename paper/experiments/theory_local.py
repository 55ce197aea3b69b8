"""The local convergence rate of fiem near its limit, the paper's Proposition, fitted."""

from __future__ import annotations

from collections.abc import Callable
from math import expm1, nan
from typing import NamedTuple

import numpy as np

from paper.experiments.experiment import complete
from paper.experiments.theory_run import TheoryRow
from paper.theory.family import Family, family_of, full_pass
from swiftem._run import run
from swiftem.core.result import Iterate
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.methods import EM, FastIncrementalEM
from swiftem.models import GaussianMixtureModel

__all__ = ["LOCAL_STEPS", "Limit", "em_limit", "fit_rate", "local_constants", "local_rates"]

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
