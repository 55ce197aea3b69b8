r"""em of several mixtures at once, on the same rows.

On a few thousand rows most of a pass is calls, not arithmetic. K mixtures of M components are one array of
K·M components, whose logits are one matrix product, :math:`\phi T(y)^\top` (K·M, n), normalised within each
mixture, and whose statistics are another one. The M-step of all is that of one array of K·M components, as
components do not depend on each other but for the weights: so it serves Gaussians without a prior, except
"tied". Statistics are (K, M, 1 + p), those of [1, T(y)]. Steps are those of
:func:`swiftem.mixture.starts.accelerated.accelerated`, mixture by mixture; one that has converged
leaves the array. Large passes are computed in slices of rows by several threads; slices depend on sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.problem import Problem
from swiftem.core.types import Array, Theta
from swiftem.kernels.threads import in_order
from swiftem.methods.accelerated import FACTOR, FIRST, SLACK
from swiftem.mixture.compute.numpy import LOWEST, NumpyCompute, squared_reach
from swiftem.mixture.covariance import GaussianStatistics, GaussianTheta
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["Together", "is_divisible"]

FARTHEST = 1e11
"""Squared distance, in standard deviations, up to which the rounding of expanded squares changes no logit by
more than about 1e-4: enough to compare starts, not for a fit."""
MOST, LOGITS = 1 << 21, 400_000
"""Maximum number of entries of T(y) that are kept, and of logits of a mixture: from there on arithmetic takes
most of the time, and compiled passes are as fast."""
EMPTY = 1e-15
"""A component with a smaller weight has no rows."""
SLICE = 1 << 16
"""Entries of T(y) and logits of a slice."""
PER_LOGIT, MANY = 16, 10_000_000
"""Work of a logit in addition to its products, and the work of a pass from which on threads gain."""
LARGE, SLICES = 1 << 18, 4
"""Entries of a slice for threads, which wait for each other between operations on short ones, and the minimum
number of slices."""


def is_divisible(problem: Problem) -> bool:
    """Tell whether components are estimated one by one, from complete rows."""
    bound = problem.bound
    return (
        isinstance(bound, BoundGaussians)
        and not bound.model.has_holes
        and not bound.kind.is_shared
        and bound.model.prior is None
        and bound.model.known_weights is None
    )


class Together(NumpyCompute):
    """Rows that several mixtures are fitted to at once.

    Parameters
    ----------
    problem : Problem
        Model and rows.
    check : callable
        Called before each pass; it may raise.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem import models
    >>> from swiftem.data.as_source import read_problem
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> starts = [model.theta(means=[[0.0], [m]], covariances=[[[1.0]], [[1.0]]]) for m in (0.1, 5.0)]
    >>> rows = Together(read_problem(model, y))
    >>> [np.sort(np.abs(theta.means).round(1), axis=None) for theta, _ in rows.improve(starts, 100, 1e-9)]
    [array([0., 3.]), array([0., 3.])]
    """

    def __init__(self, problem: Problem, check: Callable[[], None] = lambda: None) -> None:
        super().__init__(problem.bound, problem.source, problem.placement)
        self._between_blocks = check
        self._features()  # threads share them

    @staticmethod
    def serves_problem(problem: Problem) -> bool:
        """Tell whether the M-step treats components one by one, and whether T(y) is small enough."""
        bound: Any = problem.bound
        return (
            is_divisible(problem)
            and bound.epsilon == 0.0
            and problem.source.n * (bound.size // bound.n_components) <= MOST
            and problem.source.n * bound.n_components <= LOGITS
        )

    def improve(self, thetas: Sequence[Any], passes: int, tol: float) -> list[tuple[Theta, int]]:
        """Return parameters and number of passes of each mixture.

        A mixture makes at most ``passes`` passes, or stops after three that gain less than ``tol`` each.

        Raises
        ------
        ValueError
            If one of them has no M-step, or rows too far away for expanded squares.
        """
        if not passes:
            return [(theta, 0) for theta in thetas]
        count = len(thetas)
        live, phi = np.arange(count), self._phi(*_joined(thetas, self.bound.centre))
        last, calm, done = np.full(count, inf), np.zeros(count, dtype=int), np.zeros(count, dtype=int)
        steps, ends = _Steps(count), np.empty((count, self.bound.n_components, phi.shape[1]))
        scale: Array | None = None
        for number in range(1, passes + 1):
            s, objectives = self._pass_of(phi, len(live))
            with np.errstate(invalid="ignore"):  # none so far: ∞ − ∞ is not small
                calm = np.where(np.abs(last - objectives) < tol, calm + 1, 0)
            last = objectives
            scale = self._unit_factors(s[0]) if scale is None else scale
            steps.advance(s, objectives, scale)
            ends[live], done[live] = steps.kept, number
            stay = calm < 3
            if number == passes or not stay.any():
                break
            if not stay.all():
                live, last, calm = live[stay], last[stay], calm[stay]
                steps.keep(stay)
            solved = self._solved(steps.point)
            if solved is None:  # rarely: leaps outside the domain are shortened
                steps.shorten(lambda point: self._solved(point[None]) is not None)
                solved = self._solved(steps.point)
            phi = self._phi(*_existing(solved))
        found = _existing(self._solved(ends))
        each = [np.split(part, count) for part in (found[0], found[1] + self.bound.centre, *found[2:])]
        return [(GaussianTheta(*one), int(n)) for *one, n in zip(*each, done, strict=True)]

    def objectives(self, thetas: Sequence[Any]) -> Array:
        """Return the objective of each mixture, (K,)."""
        phi = self._phi(*_joined(thetas, self.bound.centre))
        return self._pass_of(phi, len(thetas), statistics=False)[1]

    def _solved(self, s: Array) -> tuple[Array, Array, Array, Array] | None:
        """Return weights, centred means, covariances and factors (K·M, ...), or None outside the domain."""
        bound: Any = self.bound
        d, kind, flat = bound.d, bound.kind, s.reshape(-1, s.shape[2])
        counts = flat[:, 0]
        if not counts.min() > EMPTY:
            return None
        sums = flat[:, 1 : 1 + d]
        means = sums / counts[:, None]
        given = GaussianStatistics(counts, sums, flat[:, 1 + d :].reshape(kind.squares_shape(len(flat), d)))
        covariances, floor = kind.covariances(given, means, bound.prior)
        kind.variances(covariances)[...] += float(bound.model.reg_covar)
        factors = kind.factor(covariances, floor)
        if factors is None:
            return None
        weights = s[:, :, 0] / s[:, :, 0].sum(axis=1, keepdims=True)
        return weights.ravel(), means, covariances, factors

    def _phi(self, weights: Array, means: Array, covariances: Array, factors: Array) -> Array:
        """Return the coefficients of [1, T(y)], (K·M, 1 + p)."""
        bound: Any = self.bound
        found = bound.kind.coefficients(weights, means, factors)
        # False for NaN, too: a variance without an inverse.
        if not squared_reach(found, self._features()[2]) <= FARTHEST:
            raise ValueError("rows must not be too far from the components for expanded squares.")
        return np.concatenate([found.constant[:, None], found.phi.T], axis=1)

    def _unit_factors(self, s: Array) -> Array:
        """Return factors (1 + p,) that make statistics (M, 1 + p) free of units.

        They depend on the rows only, but for rounding: each call of ``improve``, by whichever thread, has
        its own.
        """
        d, m = self.bound.d, self.bound.n_components
        scale = self.bound.unit_factors(
            np.concatenate([s[:, 0], s[:, 1 : 1 + d].ravel(), s[:, 1 + d :].ravel()])
        )
        return np.concatenate([[1.0], scale[m : m + d], scale[m * (1 + d) :][: s.shape[1] - 1 - d]])

    def _pass_of(self, phi: Array, count: int, *, statistics: bool = True) -> tuple[Array, Array]:
        """Return the statistics (K, M, 1 + p) of each mixture, and the objectives (K,)."""
        self._between_blocks()
        powers, weight, _ = self._features()
        n, width, total = powers.shape[1], len(powers) + len(phi), self._source.total_weight
        at_once = n * len(phi) * (len(powers) + PER_LOGIT) > MANY
        size = max(min(LARGE // width, -(-n // SLICES)) if at_once else SLICE // width, 64)

        def part(first: int) -> tuple[Array | None, Array]:
            here = slice(first, first + size)
            rows, own = powers[:, here], weight[here]
            logits = phi @ rows
            of_each = logits.reshape(count, -1, rows.shape[1])
            high = of_each.max(axis=1)
            of_each -= high[:, None]
            np.maximum(logits, LOWEST, out=logits)  # instead of zeros: 1e-20 counts for nothing
            np.exp(logits, out=logits)
            norm = of_each.sum(axis=1)
            high += np.log(norm)
            value = high @ own if len(weight) else high.sum(axis=1)
            if not statistics:
                return None, value
            np.divide(own if len(weight) else 1.0, norm, out=norm)
            of_each *= norm[:, None]
            return logits @ rows.T, value

        sums, values = np.zeros((len(phi), len(powers))), np.zeros(count)
        slices = [(first,) for first in range(0, n, size)]
        for one, value in in_order(part, slices) if at_once else starmap(part, slices):
            values += value
            if one is not None:
                sums += one
        return (sums / total).reshape(count, -1, len(powers)), -values / total


class _Steps:
    """The state of :class:`swiftem.methods.Squarem` of K mixtures.

    Attributes
    ----------
    point : ndarray, shape (K, M, 1 + p)
        Statistics of the next pass.
    kept : ndarray, shape (K, M, 1 + p)
        em's step from the last accepted point.
    """

    def __init__(self, count: int) -> None:
        self.point = self.kept = self._chain = np.empty(0)
        self._length, self._leaps = np.zeros(count, dtype=int), np.zeros(count, dtype=bool)
        self._objective, self._largest = np.full(count, inf), np.full(count, FIRST)
        self._last: tuple[NDArray[Any], ...] = ()

    def keep(self, stay: NDArray[np.bool_]) -> None:
        """Drop the others."""
        for name in ("point", "kept", "_chain", "_length", "_leaps", "_objective", "_largest"):
            setattr(self, name, getattr(self, name)[stay])
        if self._last:
            leapt, *others = self._last
            here = stay[leapt]
            self._last = (np.cumsum(stay) - 1)[leapt[here]], *(one[here] for one in others)

    def advance(self, s: Array, objectives: Array, scale: Array) -> None:
        """Take note of the statistics (K, M, 1 + p) and objectives (K,) of a pass at ``point``."""
        if not len(self._chain):
            self._chain = np.zeros((len(s), 3, *s.shape[1:]))
        if self._leaps.any():
            most = self._objective + SLACK * (1.0 + np.abs(self._objective))
            worse = self._leaps & ~(objectives <= most)
            if worse.any():
                s = np.where(worse[:, None, None], self.kept, s)
                objectives = np.where(worse, self._objective, objectives)
                self._largest[worse] = np.maximum(1.0, self._largest[worse] / 2.0)
                self._length[worse] = 0
            self._leaps[:] = False
        self.point, self.kept, self._objective, self._last = s, s, objectives, ()
        self._chain[np.arange(len(s)), self._length] = s
        self._length += 1
        ready = np.flatnonzero(self._length == 3)
        if not len(ready):
            return
        first, second, third = np.moveaxis(self._chain[ready], 1, 0)
        r = second - first
        v = third - second - r
        size, bend = (np.einsum("kmi,kmi->k", one, one) for one in (r * scale, v * scale))
        longest = self._largest[ready]
        alpha = np.ones(len(ready))
        np.divide(size, bend, out=alpha, where=bend > 0.0)
        alpha = np.minimum(np.sqrt(alpha), longest)
        leap = alpha > 1.0
        # A step of em, which is not worse, lifts a limit of 1.
        self._largest[ready] = np.where((alpha == longest) | (longest == 1.0), FACTOR * longest, longest)
        self._chain[ready, :2] = self._chain[ready, 1:]
        self._length[ready] = 2
        if not leap.any():
            return
        leapt, far = ready[leap], alpha[leap][:, None, None]
        self._last = leapt, first[leap], r[leap], v[leap], alpha[leap], longest[leap]
        self.point = s.copy()
        self.point[leapt] = first[leap] + 2.0 * far * r[leap] + far**2 * v[leap]
        self._chain[leapt, 0], self._length[leapt], self._leaps[leapt] = self.point[leapt], 1, True

    def shorten(self, exists: Callable[[Array], bool]) -> None:
        """Halve leaps until the M-step exists, down to em's step."""
        for k, first, r, v, alpha, longest in zip(*self._last, strict=True):
            while alpha > 1.0 and not exists(self.point[k]):
                alpha = max(1.0, alpha / 2.0)
                self.point[k], self._largest[k] = first + 2.0 * alpha * r + alpha**2 * v, alpha
                self._chain[k, 0] = self.point[k]
            if alpha == 1.0:
                self.point[k], self._chain[k, 0] = self.kept[k], first + r
                self._length[k], self._leaps[k], self._largest[k] = 2, False, longest


def _existing(solved: tuple[Array, Array, Array, Array] | None) -> tuple[Array, Array, Array, Array]:
    if solved is None:
        raise ValueError("s must lie in the model's domain, where the M-step exists.")
    return solved


def _joined(thetas: Sequence[Any], centre: Array) -> tuple[Array, Array, Array, Array]:
    """Return weights, centred means, covariances and factors of all components."""
    weights, means, covariances, factors = (np.concatenate(part) for part in zip(*thetas, strict=True))
    return weights, means - centre, covariances, factors
