"""Kinds of candidates in a race: none of them is the best for all data.

Each kind assigns labels to rows, whose M-step is the start. Labels are those of the nearest of M centres:
rows drawn at random, rows by greedy k-means++, or the means of a short k-means; "pooled" has rows drawn at
random as means and the covariance of all rows. Distances are between rows with columns of unit variance, or
between whitened rows, of unit covariance: the first do not depend on the units of columns, the second on no
linear map of the rows. "grown" begins with half as many components and splits those that gain most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.mixture.compute.batched import m_steps
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.em_of_candidates import em_of_candidates
from swiftem.mixture.starts.split_and_merge import axes_of, with_splits

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
SHORT = 5
"""Iterations of k-means."""
FEW = 600
"""Rows from which the splits of "grown" are computed."""


def kinds_for(bound: Any, *, few: bool = False) -> list[Kind]:
    """Return the kinds available for a model: rows are whitened for Gaussians only."""
    if isinstance(bound, BoundGaussians):
        return list(FEW_KINDS[:2] if few else KINDS)
    return [kind for kind in (FEW_KINDS if few else KINDS) if kind[1] == "scaled"]


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
        ``map``, or that of a pool of threads.
    """
    wanted = [kinds[k % len(kinds)] for k in range(count)]
    names = list(dict.fromkeys(wanted))
    runs = [wanted.count(name) for name in names]
    work = (
        (lambda kind, number, own: _of_kind(problem, kind, number, own)),
        names,
        runs,
        rng.spawn(len(names)),
    )
    return [theta for thetas in mapped(*work) for theta in thetas]


def _of_kind(problem: Problem, kind: Kind, count: int, rng: np.random.Generator) -> list[Theta]:
    """Return up to ``count`` starts of a kind."""
    (name, coordinates), bound, source = kind, problem.bound, problem.source
    assert isinstance(source, ArraySource)
    if name == "pooled":
        return [bound.initial_theta(rng) for _ in range(count)]
    if name == "grown":
        grown = [_grown(problem, rng) for _ in range(count)]
        return [theta for theta in grown if theta is not None]
    z = scaled_rows(bound.for_start(source.y), coordinates)
    if name == "rows":
        labels = [_nearest(z, z[rng.choice(len(z), bound.n_components, replace=False)]) for _ in range(count)]
    else:
        iterations = SHORT if name == "k-means" else 0
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


def scaled_rows(y: NDArray[Any], name: str) -> Array:
    """Return centred rows with columns of unit variance, or of unit covariance if possible."""
    z = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    z = z - z.mean(axis=0)
    deviation = z.std(axis=0)
    z /= np.where(deviation > 0.0, deviation, 1.0)
    if name == "white":
        values, vectors = axes_of(z / np.sqrt(len(z)))
        varies = values > 1e-6 * values[-1]
        z = z @ (vectors[:, varies] / np.sqrt(values[varies]))
    return np.asarray(z)


def _grown(problem: Problem, rng: np.random.Generator) -> Theta | None:
    """Return a start with half of the components, fitted briefly, and those split that gain most."""
    bound, source = problem.bound, problem.source
    half = replace(bound, model=replace(bound.model, n_components=-(-bound.n_components // 2)))
    smaller = Problem(half.model, source, bound=half, placement=problem.placement)
    starts = _of_kind(smaller, KINDS[0], 1, rng)
    theta = em_of_candidates(smaller, starts, SHORT, 0.0)[0].theta if starts else None
    return None if theta is None else with_splits(smaller.on(_first(source, FEW)), theta, bound.n_components)


def _first(source: Any, rows: int) -> ArraySource:
    """Return the first rows of a source in memory."""
    found: ArraySource = source
    if rows < source.n:
        found = source.like(source.y[:rows], None if source.weight is None else source.weight[:rows])
    return found
