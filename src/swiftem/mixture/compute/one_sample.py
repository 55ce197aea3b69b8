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
from swiftem.kernels.compile import inlined, kernel
from swiftem.kernels.loop import CompiledLoop, Drawn, Rule, samples_of
from swiftem.kernels.threads import NONE, read_only
from swiftem.kernels.vector import borrowed, weighted
from swiftem.mixture.components import MixtureStatistics as Stats
from swiftem.mixture.covariance import GaussianMixtureTheta as UnitTheta
from swiftem.mixture.gaussians import BoundGaussians

VANISHED = 1e-200
"""A sum of densities that is not above this has lost digits."""


class Stretch(NamedTuple):
    """The samples of a stretch of iterations, and constants.

    Attributes
    ----------
    y : ndarray, shape (n, d)
        Samples. If data are on disk, these, weights and memory are only of the samples of the stretch.
    weight : ndarray, shape (n,), or (0,) for ones
        Their weights.
    mean_weight : ndarray, shape (n,), or (0,) for ones
        Their weights in a mean over draws: none if they are drawn in proportion to their weights.
    rule : Rule
        The update.
    steps : ndarray, shape (iterations,)
        γ.
    delta, epsilon : float
        The penalty.
    known : bool
        Whether weights of components are constant.
    """

    y: Array
    weight: Array
    mean_weight: Array
    rule: Rule
    steps: Array
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
            row[m] = theta.weights[m] * math.exp(-0.5 * square)
            total += row[m]
        else:
            row[m] = square
            if theta.weights[m] > 0.0:
                nearest = min(nearest, square)
    if far is not None:
        for m in range(n_components):
            is_possible = theta.weights[m] > 0.0
            row[m] = theta.weights[m] * math.exp(0.5 * (nearest - row[m])) if is_possible else 0.0
            total += row[m]
    return total


@inlined
def _advance(
    stretch: Stretch,
    k: int,
    i: int,
    row: Array | None,
    factor: float,
    centre: Stats,
    s: Stats,
    theta: UnitTheta,
) -> int:
    """sE-step and M-step for S = λ·centre + factor·row ⊗ (1, y_i), or S = centre if there is no row.

    Return 1 if the step is rejected, else 0.
    """
    n_components, d = theta.means.shape
    gamma, delta, epsilon = stretch.steps[k], stretch.delta, stretch.epsilon
    correction, lowest = 1.0 if row is None else stretch.rule.correction, math.inf
    for m in range(n_components):
        proxy = correction * centre.weights[m]
        if row is not None:
            proxy += factor * row[m]
        lowest = min(lowest, s.weights[m] + gamma * (proxy - s.weights[m]))
    if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
        return 1
    for m in range(n_components):
        change = correction * centre.weights[m] - s.weights[m]
        if row is not None:
            change += factor * row[m]
        s.weights[m] += gamma * change  # (sestep)
        if not stretch.known:
            theta.weights[m] = s.weights[m] + epsilon  # (mstep_gmm0)
        for c in range(d):
            change = correction * centre.sums[m, c] - s.sums[m, c]
            if row is not None:
                change += factor * row[m] * stretch.y[i, c]
            s.sums[m, c] += gamma * change
            theta.means[m, c] = s.sums[m, c] / (s.weights[m] + delta)
    return 0


@inlined
def _remember(stretch: Stretch, i: int, row: Array, total: float, memory: Array, centre: Stats) -> None:
    """Write ``row`` (M,) / total into the memory of sample i; add its share of the change to the centre."""
    n_components, d = centre.sums.shape
    factor = weighted(stretch.weight, i, stretch.rule.share)
    for m in range(n_components):
        old = np.float64(memory[i, m])
        memory[i, m] = row[m] / total
        r = factor * (np.float64(memory[i, m]) - old)
        centre.weights[m] += r
        for c in range(d):
            centre.sums[m, c] += r * stretch.y[i, c]


@kernel
def iterations(
    stretch: Stretch,
    index: Index | None,
    other: Index | None,
    memory: Array | None,
    anchor: UnitTheta | None,
    before: Stats | None,
    centre: Stats,
    s: Stats,
    theta: UnitTheta,
    far: int | None,
) -> tuple[int, int, int]:
    """Do iterations of S = λC + s_i(θ) − λ·ref_i, ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    stretch : Stretch
        Samples and constants.
    index, other : ndarray of int, shape (iterations,), or None
        The sample i of each iteration; without it, S = C. The sample whose memory is renewed: before S = C is
        read, or at the end of an iteration.
    memory : ndarray, shape (n, M), or None
        The reference, unless there is an anchor. If it is float32, the rounded values are used.
    anchor, before : parameters and statistics, or None
        The reference is the sample's statistics at the anchor. With ``before``, centre and anchor follow S
        and θ, and the anchor is θ̄ of these statistics.
    centre, s, theta
        C, ŝ and θ, changed in place.
    far : int or None
        None for plain densities.

    Returns
    -------
    done, rejected, moved : int
        Numbers of iterations done, of rejected steps, and of accepted ones before the last iteration.
    """
    stretch, centre, s, theta = borrowed(stretch), borrowed(centre), borrowed(s), borrowed(theta)
    (n_components, d), y, correction = theta.means.shape, stretch.y, stretch.rule.correction
    row, second, rejected, moved = np.empty(n_components), np.empty(n_components), 0, 0
    i = j = 0
    total = total_second = least = 0.0
    for k in range(len(stretch.steps)):
        moved = k - rejected
        if index is not None:
            i = index[k]
            total = least = _densities(y, i, theta, row, far)
        if index is not None and anchor is not None:
            total_second = _densities(y, i, anchor, second, far)
            least = min(total, total_second)
        if other is not None:
            j = other[k]
            total_second = least = _densities(y, j, theta, second, far)
            if index is not None:
                least = min(total, total_second)
        if not least > (VANISHED if far is None else 0.0):  # also NaN
            return k, rejected, moved
        if other is not None and index is None:
            _remember(stretch, j, second, total_second, memory, centre)
            rejected += _advance(stretch, k, 0, None, 0.0, centre, s, theta)
        if index is not None:
            factor = weighted(stretch.mean_weight, i, stretch.rule.scale)
            if anchor is not None:
                for m in range(n_components):
                    row[m] = row[m] / total - correction * (second[m] / total_second)
            elif memory is not None:
                for m in range(n_components):
                    row[m] = row[m] / total - correction * memory[i, m]
            else:
                factor /= total  # one division for all components
            if anchor is not None and before is not None:
                for m in range(n_components):
                    before.weights[m], anchor.weights[m] = s.weights[m], theta.weights[m]
                    centre.weights[m] = correction * centre.weights[m] + factor * row[m]
                    for c in range(d):
                        before.sums[m, c], anchor.means[m, c] = s.sums[m, c], theta.means[m, c]
                        change = factor * row[m] * y[i, c]
                        centre.sums[m, c] = correction * centre.sums[m, c] + change
                rejected += _advance(stretch, k, 0, None, 0.0, centre, s, theta)
            else:
                rejected += _advance(stretch, k, i, row, factor, centre, s, theta)
            if other is not None:
                _remember(stretch, j, second, total_second, memory, centre)
    return len(stretch.steps), rejected, moved


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
        self._is_known = self.bound.model.known_weights is not None

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

    def _restate(self, theta: UnitTheta, s: Array) -> None:
        """Write the weights of θ̄(s) as the kernel does."""
        if not self._is_known:
            theta.weights[:] = self.bound.unpack(s).weights + self.bound.epsilon

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel; if a sample is too far from all means, switch to the careful one and continue."""
        if self.restates_anchor:
            self._restate(self.anchor, self.before)
            self.restates_anchor = False
        rule, bound = self.rule, self.bound
        stretch = Stretch(
            drawn.y,
            drawn.weight,
            NONE if rule.is_divided else drawn.weight,
            rule,
            read_only(steps),
            float(bound.prior.mean_precision),
            float(bound.epsilon),
            self._is_known,
        )
        done, rejected, moved = iterations(
            stretch,
            _first(drawn.index[0]) if rule.reads else None,
            _first(drawn.index[-1]) if rule.renews else None,
            drawn.memory,
            self.anchor,
            bound.unpack(self.before) if rule.follows else None,
            bound.unpack(self.centre),
            bound.unpack(self.s),
            self.theta,
            self.far,
        )
        if done == len(steps):
            return rejected, moved
        if self.far is not None:
            raise FloatingPointError("the statistics are no longer finite: use a smaller step_size.")
        self.far = 0
        rest = drawn._replace(index=tuple(part[done:] for part in drawn.index))
        more, moved = self.iterate(steps[done:], rest)
        return rejected + more, done - rejected + moved

    def snapshot(self) -> object:
        """Return True if the careful loop is in use, which rounds differently, else None."""
        return None if self.far is None else True

    def restore(self, snapshot: object, now: Current) -> None:
        """Continue with the same loop."""
        if snapshot is True:
            self.far = 0


def _first(index: Index) -> Index:
    """Return the only sample of each iteration."""
    return read_only(np.ascontiguousarray(index[:, 0]))
