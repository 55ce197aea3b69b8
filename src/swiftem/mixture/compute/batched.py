r"""E-steps and M-steps of several mixtures at once, on the same few rows.

On a few thousand rows most of a pass is calls, not arithmetic. K mixtures of M components are one array of
K·M components, whose logits are one matrix product, :math:`\phi T(y)` (K·M, n), normalised within each
mixture, and whose statistics are another one. The M-step is that of one mixture of K·M components, as
components do not depend on each other but for the weights. Large passes are computed in slices of rows by
several threads; slices depend on sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, starmap
from typing import Any

import numpy as np

from swiftem.core.compute import BLOCK
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.kernels.threads import in_order
from swiftem.mixture.components import BoundComponents, two_dimensional
from swiftem.mixture.compute.numpy import CODES, LINEAR, LOWEST, NumpyCompute, squared_reach

FARTHEST = 1e11
"""Squared distance, in standard deviations, up to which the rounding of expanded squares changes no logit by
more than about 1e-4: enough to compare starts, not for a fit."""
MOST_FEATURES, MOST_LOGITS = 1 << 21, 400_000
"""Maximum number of entries of T(y) that are kept, and of logits of a mixture: from there on arithmetic takes
most of the time, and compiled passes are as fast."""
EMPTY = 1e-15
"""A component with a smaller weight has no rows."""
SLICE = 1 << 16
"""Entries of T(y) and logits of a slice."""
PER_LOGIT, WORTH_THREADS = 16, 10_000_000
"""Work of a logit in addition to its products, and the work of a pass from which on threads gain."""
LARGE_SLICE, LEAST_SLICES = 1 << 18, 4
"""Entries of a slice for threads, which wait for each other between operations on short ones, and the minimum
number of slices."""


def is_batchable(problem: Problem) -> bool:
    """Return whether components have M-steps of their own, and T(y) is a matrix that is small enough."""
    bound: BoundComponents = problem.bound
    n, m = problem.source.n, bound.n_components
    is_small = n * (bound.size // m) <= MOST_FEATURES and n * m <= MOST_LOGITS
    return isinstance(problem.source, ArraySource) and is_small and _are_apart(bound)


def _are_apart(bound: BoundComponents) -> bool:
    """Return whether components have M-steps of their own."""
    is_linear = bound.code >= LINEAR or bound.code == CODES
    return is_linear and bound.model.known_weights is None and not bound.shares_products


def m_steps(bound: BoundComponents, s: Array) -> list[Theta | None]:
    """Return the M-steps of statistics (K, q), or None for those outside the domain."""
    m = bound.n_components
    if len(s) and (s[:, :m] > EMPTY).all() and _are_apart(bound):
        ends = np.cumsum(m * np.array(_widths(bound)))
        together = np.concatenate([part.ravel() for part in np.split(s, ends[:-1], axis=1)])
        solved = _of_components(bound, len(s) * m).solve(together)
        if solved is not None:
            parts = [_part(solved, slice(k * m, (k + 1) * m)) for k in range(len(s))]
            return [theta._replace(weights=theta.weights / theta.weights.sum()) for theta in parts]
        if len(s) == 1:
            return [None]
    if len(s) < 2:
        return [bound.solve(one) for one in s]
    half = len(s) // 2
    return m_steps(bound, s[:half]) + m_steps(bound, s[half:])


def _of_components(bound: BoundComponents, count: int) -> BoundComponents:
    """Return the model with as many components."""
    made: BoundComponents = replace(bound, model=replace(bound.model, n_components=count))
    return made


def _widths(bound: BoundComponents) -> list[int]:
    """Return the lengths of the parts of the statistics of a component."""
    kind, width = bound.kind, bound.size // bound.n_components
    d = width - 1 if kind is None or kind.has_masses else bound.d
    return [1, d, width - 1 - d]


class BatchedCompute(NumpyCompute):
    """E-steps and M-steps of several mixtures on the same rows.

    Parameters
    ----------
    problem : Problem
        Model and rows, for which :func:`is_batchable` is true.
    check : callable
        Called before each pass; it may raise.
    ends : sequence of int, optional
        Ends of groups of rows. The first mixtures are those of the first group, and as many are of each.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem import models
    >>> from swiftem.data.as_source import read_problem
    >>> model = models.GaussianMixtureModel(1, covariance="diag")
    >>> problem = read_problem(model, np.array([[0.0], [2.0]]))
    >>> batched = BatchedCompute(problem)
    >>> s, objectives = batched.passes([model.theta(means=[[m]], covariances=[[1.0]]) for m in (0.0, 1.0)])
    >>> objectives[0] - objectives[1]
    np.float64(0.5)
    >>> [theta.means.ravel() for theta in m_steps(problem.bound, s)]
    [array([1.]), array([1.])]
    """

    def __init__(
        self, problem: Problem, check: Callable[[], None] = lambda: None, ends: Sequence[int] = ()
    ) -> None:
        super().__init__(problem.bound, problem.source, problem.placement)
        self._groups = list(pairwise([0, *(ends or [self.n])]))
        self._between_blocks = check
        self._features()  # threads share them

    def _features(self) -> tuple[Array, Array, Array]:
        if self._rows is None and self.bound.code == CODES:
            bound, n = self.bound, self.n
            dense = len(bound.centre)
            powers, weight = np.zeros((bound.size // bound.n_components, n)), np.empty(n)
            powers[0] = 1.0
            for batch in self._source.blocks(BLOCK):
                here = slice(int(batch.index[0]), int(batch.index[-1]) + 1)
                y = two_dimensional(batch.y)
                powers[1 : 1 + dense, here] = (np.asarray(bound.features(y)) - bound.centre).T
                for column in bound.codes(y, here.start).T:  # type: ignore[attr-defined]
                    powers[1 + dense + column, np.arange(here.start, here.stop)] = 1.0
                weight[here] = batch.weight
                base = bound.log_base(y, here.start)
                self._base[here] = 0.0 if base is None else base
            self._rows = powers, weight[:0] if (weight == 1.0).all() else weight, np.zeros(dense)
        return super()._features()

    def passes(self, thetas: Sequence[Theta], *, statistics: bool = True) -> tuple[Array, Array]:
        """Return the statistics (K, q) of mixtures, or none of them, and their objectives (K,).

        Raises
        ------
        ValueError
            If rows are too far from the components for expanded squares.
        """
        self._between_blocks()
        powers, weight, reach = self._features()
        count = len(thetas)
        coefficients: Any = _of_components(self.bound, count * self.bound.n_components).coefficients(
            _joined(thetas)
        )
        parts = [coefficients.constant[:, None], coefficients.phi.T]
        if self.bound.code == CODES:
            parts.append(coefficients.table.T)
        elif not squared_reach(coefficients, reach) <= FARTHEST:  # also a variance without an inverse
            raise ValueError("rows must not be too far from the components for expanded squares.")
        phi = np.concatenate(parts, axis=1).reshape(len(self._groups), -1, len(powers))
        n, (own, width) = self.n, phi.shape[1:]
        each = count // len(phi)  # mixtures of a group
        width += own
        at_once = n * own * (len(powers) + PER_LOGIT) > WORTH_THREADS
        size = max(min(LARGE_SLICE // width, -(-n // LEAST_SLICES)) if at_once else SLICE // width, 64)

        def part(group: int, first: int, stop: int) -> tuple[Array | None, Array]:
            here = slice(first, min(first + size, stop))
            rows, own = powers[:, here], weight[here]
            logits = phi[group] @ rows
            of_each = logits.reshape(each, -1, rows.shape[1])
            high = of_each.max(axis=1)
            of_each -= high[:, None]
            np.maximum(logits, LOWEST, out=logits)  # instead of zeros: 1e-20 counts for nothing
            np.exp(logits, out=logits)
            norm = of_each.sum(axis=1)
            high += np.log(norm)
            high += self._base[here]
            value = high @ own if len(weight) else high.sum(axis=1)
            if not statistics:
                return None, value
            np.divide(own if len(weight) else 1.0, norm, out=norm)
            of_each *= norm[:, None]
            return logits @ rows.T, value

        sums, values = np.zeros(phi.shape), np.zeros((len(phi), each))
        slices = [
            (group, first, stop)
            for group, (begin, stop) in enumerate(self._groups)
            for first in range(begin, stop, size)
        ]
        done = in_order(part, slices) if at_once else starmap(part, slices)
        for (group, *_), (one, value) in zip(slices, done, strict=True):
            values[group] += value
            if one is not None:
                sums[group] += one
        self.evaluations += each * n
        totals = [self._source.total_weight]
        if len(phi) > 1:
            totals = [weight[begin:end].sum() if len(weight) else end - begin for begin, end in self._groups]
        total = np.array(totals)[:, None]
        penalties = [self.bound.penalty(theta) for theta in thetas]
        objectives = np.array(penalties) - (values / total).ravel()
        flat = (sums / total[..., None]).reshape(-1, len(powers))
        apart = np.split(flat, np.cumsum(_widths(self.bound))[:-1], axis=1)
        s = np.concatenate([one.reshape(count, -1) for one in apart], axis=1)
        return s if statistics else s[:0], objectives


def _joined(thetas: Sequence[Any]) -> Any:
    """Return the parameters of all components of mixtures."""
    first = thetas[0]
    if isinstance(first, dict):
        return {name: _joined([theta[name] for theta in thetas]) for name in first}
    if isinstance(first, tuple):
        return type(first)(*map(_joined, zip(*thetas, strict=True)))
    return np.concatenate(thetas)


def _part(theta: Any, here: slice) -> Any:
    """Return the parameters of some components."""
    if isinstance(theta, dict):
        return {name: _part(part, here) for name, part in theta.items()}
    if isinstance(theta, tuple):
        return type(theta)(*(_part(part, here) for part in theta))
    return theta[here]
