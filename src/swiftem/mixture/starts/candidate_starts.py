"""Candidates of a race, of several kinds, and em of all of them at once.

None of the kinds is the best for all data. Each assigns labels to rows, whose M-step is the start. Labels are
those of the nearest of M centres: rows drawn at random, rows by greedy k-means++, or the means of a short
k-means; "pooled" has rows drawn at random as means and the covariance of all rows. Distances are between rows
with columns of unit variance, or between whitened rows, of unit covariance: the first do not depend on the
units of columns, the second on no linear map of the rows. "grown" begins with half as many components and
splits those that gain most.

See :mod:`swiftem.methods.accelerated` for the steps of em.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.methods.accelerated import ParallelSquarem
from swiftem.mixture.compute.batched import BatchedCompute, m_steps, passes_alone
from swiftem.mixture.starts.settings import NUMBERS
from swiftem.mixture.starts.split_and_merge import scaled_rows, with_splits

Kind = tuple[str, str]
"""How centres are found, and in which coordinates."""

KINDS: tuple[Kind, ...] = (
    ("k-means", "scaled"),
    ("k-means++", "white"),
    ("grown", "scaled"),
    ("rows", "scaled"),
    ("k-means++", "scaled"),
    ("rows", "white"),
    ("k-means", "white"),
    ("pooled", "scaled"),
)
"""The kinds of candidates, in their order."""
FEW_KINDS: tuple[Kind, ...] = (("k-means", "scaled"), ("k-means", "white"), ("rows", "scaled"))
"""The kinds on few rows."""


def candidate_starts(
    problem: Problem,
    kinds: Sequence[Kind],
    count: int,
    rng: np.random.Generator,
    mapped: Callable[..., Any] = map,
) -> list[Theta]:
    """Return ``count`` starts of several kinds in turn, without those that have no M-step.

    Parameters
    ----------
    problem : Problem
        Model and rows.
    kinds : sequence
        The kinds.
    count : int
        Number of starts.
    rng : Generator
        Source of randomness.
    mapped : callable
        ``map``, or the ``map`` of a pool of threads.
    """
    runs = [len(range(place, count, len(kinds))) for place in range(min(count, len(kinds)))]
    found = mapped(lambda *work: _of_kind(problem, *work), kinds, runs, rng.spawn(len(runs)))
    return [theta for thetas in found for theta in thetas]


def _of_kind(problem: Problem, kind: Kind, count: int, rng: np.random.Generator) -> list[Theta]:
    """Return up to ``count`` starts of a kind."""
    (name, coordinates), bound, source = kind, problem.bound, problem.source
    assert isinstance(source, ArraySource)
    if name == "pooled":
        return [bound.initial_theta(rng) for _ in range(count)]
    if name == "grown":
        grown = [_grown(problem, rng) for _ in range(count)]
        return [theta for theta in grown if theta is not None]
    z = scaled_rows(bound.for_start(source.y), white=coordinates == "white")
    if name == "rows":
        labels = [_nearest(z, z[rng.choice(len(z), bound.n_components, replace=False)]) for _ in range(count)]
    else:
        iterations = NUMBERS.short if name == "k-means" else 0
        labels = list(run_k_means(z, source.weight, bound.n_components, count, iterations, rng))
    batch, eye = source.take(np.arange(source.n)), np.eye(bound.n_components)
    s = [problem.compute.share(batch, bound.start_rows(eye[one], batch)) for one in labels]
    found = []
    for theta, own in zip(m_steps(bound, np.array(s)), s, strict=True):
        try:
            found.append(_mended(problem, own) if theta is None else theta)
        except ValueError:  # it has no M-step
            continue
    return found


def _mended(problem: Problem, s: Array) -> Theta:
    """Return the M-step of a start with components that have none; those without rows get some at random."""
    bound, source = problem.bound, problem.source
    empty = int((bound.unpack(s).weights <= 0.0).sum())
    rng = np.random.default_rng(0)
    rows = source.take(rng.choice(source.n, empty, replace=False)).y
    return bound.mended(s, np.asarray(rows, dtype=np.float64).reshape(empty, bound.d), rng)


def _nearest(z: Array, centres: Array) -> Index:
    return np.asarray(((centres**2).sum(axis=1) - 2.0 * z @ centres.T).argmin(axis=1))


def _grown(problem: Problem, rng: np.random.Generator) -> Theta | None:
    """Return a start with half of the components, fitted briefly, and those split that gain most."""
    bound = problem.bound
    half = bound.of_components(-(-bound.n_components // 2))
    smaller = Problem(half.model, problem.source, bound=half, placement=problem.placement)
    starts = _of_kind(smaller, KINDS[0], 1, rng)
    theta = em_of_candidates(smaller, starts, NUMBERS.short, 0.0)[0].theta if starts else None
    return None if theta is None else with_splits(smaller, theta, bound.n_components)


def run_k_means(
    z: Array, weight: Array | None, m: int, count: int, iterations: int, rng: np.random.Generator
) -> Index:
    r"""Return the labels (count, n) of several runs of k-means, computed at once.

    Each begins with greedy k-means++ (Arthur and Vassilvitskii 2007): a centre is the best of a few rows
    drawn in proportion to the squared distance from those before. Then

    .. math::

        \ell_i = \arg\min_m |z_i - c_m|^2, \qquad
        c_m = \sum_{\ell_i = m} w_i z_i / \sum_{\ell_i = m} w_i.

    Parameters
    ----------
    z : ndarray, shape (n, d)
        The rows.
    weight : ndarray, shape (n,), or None
        Their weights.
    m : int
        Number of centres.
    count : int
        Number of runs.
    iterations : int
        Number of times that centres become means of their rows.
    rng : Generator
        Source of randomness.
    """
    n, d = z.shape
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    squares, weighted = (z**2).sum(axis=1), z * w[:, None]
    trials, runs = 2 + int(np.log(m)), np.arange(count)
    centres = np.empty((count, m, d))
    nearest = np.full((count, n), np.inf)
    for k in range(m):
        chance = np.cumsum(w if k == 0 else w * nearest, axis=-1).reshape(-1, n)
        drawn = rng.random((count, trials if k else 1)) * chance[:, -1:]
        index = np.minimum((chance[:, None] <= drawn[..., None]).sum(axis=2), n - 1)
        away = squares + squares[index][..., None] - 2.0 * z[index] @ z.T
        near = np.minimum(nearest[:, None], np.maximum(away, 0.0))
        best = (near @ w).argmin(axis=1)
        nearest, centres[:, k] = near[runs, best], z[index[runs, best]]
    for left in range(iterations, -1, -1):
        away = (centres**2).sum(axis=2)[..., None] - 2.0 * centres @ z.T
        labels = away.argmin(axis=1)
        if left:
            member = (labels[:, None] == np.arange(m)[:, None]).astype(np.float64)
            sizes = member @ w
            np.divide(member @ weighted, sizes[..., None], out=centres, where=sizes[..., None] > 0.0)
    return np.asarray(labels)


class Improved(NamedTuple):
    """Parameters after em, None if there was no M-step, and the number of passes."""

    theta: Theta | None
    passes: int


def em_of_candidates(
    problem: Problem,
    thetas: Sequence[Theta],
    passes: int,
    tol: float,
    check: Callable[[], None] = lambda: None,
    batched: BatchedCompute | None = None,
) -> list[Improved]:
    """Return candidates after at most ``passes`` passes, or after a few that gain less than ``tol`` each.

    Parameters
    ----------
    problem : Problem
        Model and rows.
    thetas : sequence of NamedTuple
        Initial parameters, (K,).
    passes : int
        Maximum number of passes over the rows.
    tol : float
        Gain of the objective per pass.
    check : callable
        Called between the blocks of a pass; it may raise.
    batched : BatchedCompute, optional
        Computes the passes of all candidates at once; it raises ValueError if rows are too far away for that.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem import models
    >>> from swiftem.data.as_source import read_problem
    >>> y = np.random.default_rng(0).normal(size=2000) + np.repeat([0.0, 3.0], 1000)
    >>> model = models.GaussianMixtureModel(2, covariance="full")
    >>> theta0 = model.theta(means=[[0.0], [0.1]], covariances=[[[1.0]], [[1.0]]])
    >>> theta, passes = em_of_candidates(read_problem(model, y), [theta0], 100, 1e-9)[0]
    >>> np.abs(theta.means).round(1).ravel()
    array([0., 3.])
    """
    ends = [Improved(theta, 0) for theta in thetas]
    if not (passes and ends):
        return ends
    bound, live, points = problem.bound, np.arange(len(ends)), list(thetas)
    last, calm = np.full(len(ends), inf), np.zeros(len(ends), dtype=int)
    steps: ParallelSquarem | None = None

    def solve(s: Array) -> list[Any]:
        return [bound.solve(one) for one in s] if batched is None else m_steps(bound, s)

    with problem.compute.checked_by(check) as e_step:
        for number in range(1, passes + 1):
            s, objectives = passes_alone(e_step, points) if batched is None else batched.passes(points)
            with np.errstate(invalid="ignore"):  # none so far: ∞ − ∞ is not small
                calm = np.where(np.abs(last - objectives) < tol, calm + 1, 0)
            last = objectives
            if steps is None:
                steps, scale = ParallelSquarem(s), bound.unit_factors(s[0])
            steps.advance(s, objectives, scale)
            ended = (calm >= NUMBERS.calm) | (number == passes)
            for k, theta in zip(np.flatnonzero(ended).tolist(), solve(steps.kept[ended]), strict=True):
                ends[live[k]] = Improved(theta, number)
            if ended.any():
                live, last, calm = live[~ended], last[~ended], calm[~ended]
                steps.keep(~ended)
            if not len(live):
                break
            points = solve(steps.point)
            outside = np.flatnonzero([theta is None for theta in points])
            steps.accept(outside)
            if len(outside):
                for k, theta in zip(outside.tolist(), solve(steps.point[outside]), strict=True):
                    points[k] = theta
                    if theta is None:
                        ends[live[k]] = Improved(None, number)
                stay = np.array([theta is not None for theta in points])
                live, last, calm = live[stay], last[stay], calm[stay]
                steps.keep(stay)
                points = [theta for theta in points if theta is not None]
                if not len(live):
                    break
    return ends
