r"""em of several mixtures at once, on the same few rows.

On 1,000 rows most of a pass is calls, not arithmetic. K mixtures of M components are one array of K·M
components, whose logits are one matrix product, :math:`\phi T(y)^\top` (K·M, n), normalised within each
mixture, and whose statistics are another one. The M-step of all is that of one mixture of K·M components, as
components do not depend on each other but for the weights: so it serves Gaussians without a prior, except
"tied". Steps are those of :func:`swiftem.estimators.mixture.optima.accelerated.accelerated`, mixture by
mixture; one that has converged leaves the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.engine.small_expectation import LOWEST, NUMBERS, SmallExpectation, squared_reach
from swiftem.methods.acceleration import Squarem
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.problem import Problem

__all__ = ["Together", "is_divisible"]

FARTHEST = 1e11
"""Squared distance, in standard deviations, up to which the rounding of expanded squares changes no logit by
more than about 1e-4: enough to compare starts, not for a fit."""
MOST, LOGITS = 1 << 22, 100_000
"""Maximum number of entries of T(y) that are kept, and of logits of a mixture: from there on arithmetic takes
most of the time, and compiled passes are as fast."""


def is_divisible(problem: Problem) -> bool:
    """Tell whether components are estimated one by one, from complete rows."""
    bound = problem.bound
    return (
        type(bound) is BoundGaussians
        and bound.kind.name != "tied"
        and bound.model.prior is None
        and bound.model.known_weights is None
    )


class Together(SmallExpectation):
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
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> starts = [model.theta(means=[[0.0], [m]], covariances=[[[1.0]], [[1.0]]]) for m in (0.1, 5.0)]
    >>> rows = Together(Problem.read(model, y))
    >>> [np.sort(np.abs(theta.means).round(1), axis=None) for theta, _ in rows.improve(starts, 100, 1e-9)]
    [array([0., 3.]), array([0., 3.])]
    """

    def __init__(self, problem: Problem, check: Callable[[], None] = lambda: None) -> None:
        super().__init__(problem.bound, problem.source)
        self._between_blocks = check
        self._joint: dict[int, BoundGaussians] = {}
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
        scheme, count = Squarem(), len(thetas)
        ends: list[tuple[Array, int]] = [(np.empty(0), 0)] * count
        states: list[Any] = [None] * count
        last, calm = [inf] * count, [0] * count
        space: _Space | None = None
        live, at = list(range(count)), _joined(thetas)
        for done in range(1, passes + 1):
            found, objectives = self._pass_of(at, len(live))
            space = space or _Space(self.bound.without_unit(found[0]))
            left, given = [], {}
            for k, s, objective in zip(live, found, objectives.tolist(), strict=True):
                given[k] = scheme.begin(s) if states[k] is None else states[k], s, objective
                calm[k] = calm[k] + 1 if abs(last[k] - objective) < tol else 0
                last[k] = objective
                states[k] = scheme.advance(*given[k], space)
                ends[k] = states[k].kept, done
                if calm[k] < 3:
                    left.append(k)
            live = left
            if not live or done == passes:
                break
            bound = self._bound_of(len(live))
            points = self._flattened([states[k].point for k in live])
            if not bound.in_domain(points):  # rarely: then one by one, with leaps that are shortened
                for k in live:
                    states[k] = scheme.advance(*given[k], _Space(space.of_rows, self.bound))
                points = self._flattened([states[k].point for k in live])
            at = bound.m_step(points)
        if not passes:
            return [(theta, 0) for theta in thetas]
        return [(self.bound.m_step(s), done) for s, done in ends]

    def objectives(self, thetas: Sequence[Any]) -> Array:
        """Return the objective of each mixture, (K,)."""
        return self._pass_of(_joined(thetas), len(thetas), statistics=False)[1]

    def _bound_of(self, count: int) -> BoundGaussians:
        """Return the model of ``count`` mixtures."""
        found = self._joint.get(count)
        if found is None:
            bound: Any = self.bound
            model = replace(bound.model, n_components=count * bound.n_components)
            found = self._joint[count] = replace(bound, model=model)
        return found

    def _flattened(self, points: list[Array]) -> Array:
        """Return statistics of all mixtures, in the form of one."""
        parts = [self.bound.unpack(s) for s in points]
        return np.concatenate(
            [
                *(part.weights for part in parts), *(part.sums.ravel() for part in parts),
                *(part.squares.ravel() for part in parts),
            ]
        )  # fmt: skip

    def _pass_of(self, theta: GaussianTheta, count: int, *, statistics: bool = True) -> tuple[Any, Array]:
        """Return the statistics (K, q) of each mixture, and the objectives (K,)."""
        self._between_blocks()
        powers, weight, reach = self._features()
        prepared = self._bound_of(count).coefficients(theta)
        if squared_reach(prepared, reach) > FARTHEST:
            raise ValueError("rows must not be too far from the components for expanded squares.")
        phi = np.concatenate([prepared.constant[:, None], prepared.phi.T], axis=1)
        sums, values, total = np.zeros((len(phi), len(powers))), np.zeros(count), self._source.total_weight
        for here, rows in self._slices(powers.shape[1], len(powers) + len(phi)):
            logits = phi @ powers[:, here]
            of_each = logits.reshape(count, -1, rows)
            high = of_each.max(axis=1)
            of_each -= high[:, None]
            np.copyto(of_each, -inf, where=of_each < LOWEST)
            np.exp(of_each, out=of_each)
            norm = of_each.sum(axis=1)
            high += np.log(norm)
            values += high @ weight[here] if len(weight) else high.sum(axis=1)
            if statistics:
                share = weight[here] / norm if len(weight) else 1.0 / norm
                of_each *= share[:, None]
                sums += logits @ powers[:, here].T
        d, m = self.bound.d, self.bound.n_components
        found = [
            np.concatenate([one[:, 0], one[:, 1 : 1 + d].ravel(), one[:, 1 + d :].ravel()]) / total
            for one in (sums.reshape(count, m, -1) if statistics else ())
        ]
        # The weights of all mixtures add up to one: each has 1 / K of them.
        return found, -(values / total + log(count))

    def _slices(self, n: int, width: int) -> Iterator[tuple[slice, int]]:
        size = max(4 * NUMBERS // width, 64)
        for first in range(0, n, size):
            stop = min(first + size, n)
            yield slice(first, stop), stop - first


class _Space:
    """Scales, which are those of the rows; the domain is that of ``bound``, or not checked."""

    def __init__(self, of_rows: Array, bound: Any = None) -> None:
        self.of_rows, self._bound = of_rows, bound

    def scale(self, s: Array) -> Array:
        return self.of_rows

    def in_domain(self, s: Array) -> bool:
        return self._bound is None or bool(self._bound.in_domain(s))


def _joined(thetas: Sequence[Any]) -> GaussianTheta:
    """Return all components, with weights that add up to one."""
    weights, means, covariances, factors = (np.concatenate(part) for part in zip(*thetas, strict=True))
    return GaussianTheta(weights / len(thetas), means, covariances, factors)
