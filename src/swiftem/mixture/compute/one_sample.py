"""Mixtures with unit variances: iterations of one sample each, as fast as loops written for one method.

One loop implements all declarations :class:`swiftem.methods.Update`. Numba leaves out what a method does not
use, as these arguments are None, so that it is compiled once for each method. Weights of θ need not sum to 1:
the E-step does not require it, and it saves a division in the chain of dependent operations.

The loop computes plain densities, and ends, with nothing of the iteration done, if all of them vanish. It is
compiled again, with ``far`` not None, with densities relative to the largest: a third slower.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from swiftem.core.algorithm import Current, Task
from swiftem.core.method import Update
from swiftem.core.types import Array, Index, Theta
from swiftem.data.samples import NONE, Drawn, read_only, samples_of
from swiftem.kernels.compile import inlined, kernel
from swiftem.kernels.loop import CompiledLoop
from swiftem.mixture.components import MixtureStatistics as Stats
from swiftem.mixture.covariance import GaussianMixtureTheta as UnitTheta
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["Far", "OneSampleLoop"]

VANISHED = 1e-200
"""A sum of densities that is not above this has lost digits."""


class Far(NamedTuple):
    """Whether a sample was far from all means: the loop then rounds differently."""

    is_far: bool


class Draw(NamedTuple):
    """Samples drawn one after the other.

    Attributes
    ----------
    y : ndarray, shape (n, d)
        Samples. If data are on disk, these, weights and memory are only of the samples of the stretch.
    weight : ndarray, shape (n,), or (0,) for ones
        Their weights.
    index : ndarray of int, shape (iterations,)
        The sample of each iteration.
    factor : float
        Multiplies the weights: n / W for a mean over draws, 1 / W for a share of the sum.
    """

    y: Array
    weight: Array
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    factor: float


class Rule(NamedTuple):
    """``correction``: λ; ``delta`` and ``epsilon``: the penalty; ``known``: whether weights are constant."""

    correction: float
    delta: float
    epsilon: float
    known: bool


@inlined
def _densities(y: Array, i: int, theta: UnitTheta, row: Array, far: int | None) -> float:
    """Write weight times density of sample i into ``row`` (M,), up to a factor; return the sum. (cexp)."""
    n_components, d = theta.means.shape
    nearest, total = np.inf, 0.0
    for m in range(n_components):
        square = 0.0
        for c in range(d):
            difference = y[i, c] - theta.means[m, c]
            square += difference * difference
        if far is None:
            density = theta.weights[m] * math.exp(-0.5 * square)
            row[m] = density
            total += density
        else:
            row[m] = square
            if theta.weights[m] > 0.0:
                nearest = min(nearest, square)
    if far is not None:
        for m in range(n_components):
            density = 0.0
            if theta.weights[m] > 0.0:
                density = theta.weights[m] * math.exp(0.5 * (nearest - row[m]))
            row[m] = density
            total += density
    return total


@inlined
def _vanished(total: float, far: int | None) -> bool:
    """Return whether a sum of densities has lost its digits; for relative ones only if it is NaN."""
    if far is None:
        return not total > VANISHED
    return not total > 0.0


@inlined
def _factor(draw: Draw, i: int) -> float:
    """Return the factor of sample i."""
    return draw.factor * draw.weight[i] if len(draw.weight) else draw.factor


@inlined
def _advance(
    y: Array,
    i: int,
    row: Array | None,
    factor: float,
    gamma: float,
    centre: Stats,
    rule: Rule,
    s: Stats,
    theta: UnitTheta,
) -> int:
    """sE-step and M-step for S = λ·centre + factor·row ⊗ (1, y_i), or S = centre if there is no row.

    Return 1 if the step is rejected, else 0.
    """
    n_components, d = theta.means.shape
    correction, lowest = 1.0 if row is None else rule.correction, math.inf
    for m in range(n_components):
        proxy = correction * centre.weights[m]
        if row is not None:
            proxy += factor * row[m]
        lowest = min(lowest, s.weights[m] + gamma * (proxy - s.weights[m]))
    if not (lowest + rule.epsilon > 0.0 and lowest + rule.delta > 0.0):
        return 1
    for m in range(n_components):
        change = correction * centre.weights[m] - s.weights[m]
        if row is not None:
            change += factor * row[m]
        s.weights[m] += gamma * change  # (sestep)
        if not rule.known:
            theta.weights[m] = s.weights[m] + rule.epsilon  # (mstep_gmm0)
        for c in range(d):
            change = correction * centre.sums[m, c] - s.sums[m, c]
            if row is not None:
                change += factor * row[m] * y[i, c]
            s.sums[m, c] += gamma * change
            theta.means[m, c] = s.sums[m, c] / (s.weights[m] + rule.delta)
    return 0


@inlined
def _remember(draw: Draw, i: int, row: Array, total: float, memory: Array, centre: Stats) -> None:
    """Write ``row`` (M,) / total into the memory of sample i; add its share of the change to the centre."""
    n_components, d = centre.sums.shape
    factor = _factor(draw, i)
    for m in range(n_components):
        old = np.float64(memory[i, m])
        memory[i, m] = row[m] / total
        r = factor * (np.float64(memory[i, m]) - old)
        centre.weights[m] += r
        for c in range(d):
            centre.sums[m, c] += r * draw.y[i, c]


@kernel
def iterations(
    draw: Draw | None,
    other: Draw | None,
    steps: Array,
    memory: Array | None,
    anchor: UnitTheta | None,
    before: Stats | None,
    centre: Stats,
    rule: Rule,
    s: Stats,
    theta: UnitTheta,
    far: int | None,
) -> tuple[int, int, int]:
    """Do iterations of S = λC + s_i(θ) − λ·ref_i, ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    draw, other : Draw or None
        The samples i; without them, S = C. The samples whose memory is renewed: before S = C is read, or at
        the end of an iteration.
    steps : ndarray, shape (iterations,)
        γ.
    memory : ndarray, shape (n, M), or None
        The reference, unless there is an anchor. If it is float32, the rounded values are used.
    anchor, before : parameters and statistics, or None
        The reference is the sample's statistics at the anchor. With ``before``, centre and anchor follow S
        and θ, and the anchor is θ̄ of these statistics.
    centre, s, theta
        C, ŝ and θ, changed in place.
    rule, far
        Constants, and None for plain densities.

    Returns
    -------
    done, rejected, moved : int
        Numbers of iterations done, of rejected steps, and of accepted ones before the last iteration.
    """
    n_components, d = theta.means.shape
    row, second, rejected, moved = np.empty(n_components), np.empty(n_components), 0, 0
    i = j = 0
    total = total_second = least = 0.0
    for k in range(len(steps)):
        moved = k - rejected
        if draw is not None:
            i = draw.index[k]
            total = least = _densities(draw.y, i, theta, row, far)
        if draw is not None and anchor is not None:
            total_second = _densities(draw.y, i, anchor, second, far)
            least = min(total, total_second)
        if other is not None:
            j = other.index[k]
            total_second = least = _densities(other.y, j, theta, second, far)
            if draw is not None:
                least = min(total, total_second)
        if _vanished(least, far):
            return k, rejected, moved
        if other is not None and draw is None:
            _remember(other, j, second, total_second, memory, centre)
            rejected += _advance(None, 0, None, 0.0, steps[k], centre, rule, s, theta)
        if draw is not None:
            factor = _factor(draw, i)
            if anchor is not None:
                for m in range(n_components):
                    row[m] = row[m] / total - rule.correction * (second[m] / total_second)
            elif memory is not None:
                for m in range(n_components):
                    row[m] = row[m] / total - rule.correction * memory[i, m]
            else:
                factor /= total  # one division for all components
            if anchor is not None and before is not None:
                for m in range(n_components):
                    before.weights[m], anchor.weights[m] = s.weights[m], theta.weights[m]
                    centre.weights[m] = rule.correction * centre.weights[m] + factor * row[m]
                    for c in range(d):
                        before.sums[m, c], anchor.means[m, c] = s.sums[m, c], theta.means[m, c]
                        change = factor * row[m] * draw.y[i, c]
                        centre.sums[m, c] = rule.correction * centre.sums[m, c] + change
                rejected += _advance(None, 0, None, 0.0, steps[k], centre, rule, s, theta)
            else:
                rejected += _advance(draw.y, i, row, factor, steps[k], centre, rule, s, theta)
            if other is not None:
                _remember(other, j, second, total_second, memory, centre)
    return len(steps), rejected, moved


class OneSampleLoop(CompiledLoop):
    """One sample after the other.

    The fast loop computes plain densities, and returns if all of them vanish; from there on it uses
    the same loop compiled with densities relative to the largest.
    """

    far: int | None = None

    def __init__(self, task: Task, update: Update) -> None:
        super().__init__(task, update, samples_of(task.source, np.float64, task.method.index_streams))
        assert isinstance(task.model, BoundGaussians)
        self.bound = task.model
        known = self.bound.model.known_weights is not None
        penalty = float(self.bound.prior.mean_precision), float(self.bound.epsilon)
        self._rule = Rule(update.correction, *penalty, known)

    def load_theta(self, now: Current) -> None:
        """Copy θ.

        If it is θ̄(s), its weights are loaded as the kernel writes them, not normalised: then the beginning
        of a stretch makes no difference, bit by bit.
        """
        self.theta = self.prepared(now.theta)
        if now.is_m_step:
            self._restate(self.theta, now.s)

    def prepared(self, theta: Theta) -> UnitTheta:
        """Return a copy."""
        return UnitTheta(theta.weights.copy(), theta.means.copy())

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def _restate(self, theta: UnitTheta, s: Array) -> None:
        """Write the weights of θ̄(s) as the kernel does."""
        if not self._rule.known:
            theta.weights[:] = self.bound.unpack(s).weights + self._rule.epsilon

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel; if a sample is too far from all means, switch to the careful one and continue."""
        if self.restates_anchor:
            self._restate(self.anchor, self.before)
            self.restates_anchor = False
        rejected, begin = 0, 0
        while True:
            done, more, moved = self._iterations(read_only(steps[begin:]), drawn, begin)
            if begin + done == len(steps):
                return rejected + more, begin - rejected + moved
            if self.far is not None:
                raise FloatingPointError("the statistics are no longer finite: use a smaller step_size.")
            self.far, begin, rejected = 0, done, more

    def _iterations(self, steps: Array, drawn: Drawn, begin: int) -> tuple[int, int, int]:
        """Do iterations from number ``begin`` of the stretch on."""
        update, draw, other = self.update, None, None
        if update.renewed_by != "drawn":
            weight = NONE if self.is_divided else drawn.weight
            draw = Draw(drawn.y, weight, _first(drawn.index[0], begin), float(self.scale))
        if update.renewed_by != "none":
            other = Draw(drawn.y, drawn.weight, _first(drawn.index[-1], begin), float(self.share))
        before = self.bound.unpack(self.before) if update.reference == "previous" else None
        centre, s = self.bound.unpack(self.centre), self.bound.unpack(self.s)
        references = drawn.memory, self.anchor, before
        counts: tuple[int, int, int] = iterations(
            draw, other, steps, *references, centre, self._rule, s, self.theta, self.far
        )
        return counts

    def snapshot(self) -> Far | None:
        """Return whether the careful loop is in use."""
        return None if self.far is None else Far(True)

    def restore(self, snapshot: object, now: Current) -> None:
        """Continue with the same loop."""
        if isinstance(snapshot, Far):
            self.far = 0


def _first(index: Index, begin: int) -> Index:
    """Return the only sample of each iteration from ``begin`` on."""
    return read_only(np.ascontiguousarray(index[begin:, 0]))
