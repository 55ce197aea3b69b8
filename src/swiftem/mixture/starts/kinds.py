"""Kinds of starts in a race: none of them is the best for all data.

Each kind assigns labels to rows, whose M-step is the start. Labels are those of the nearest of M centres:
rows drawn at random, rows by greedy k-means++, or the means of a short k-means; "pooled" has rows drawn at
random as means and the covariance of all rows. Distances are between rows with columns of unit variance, or
between whitened rows, of unit covariance: the first do not depend on the units of columns, the second on no
linear map of the rows. "grown" begins with half as many components and splits those that gain most.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index, Theta
from swiftem.mixture.covariance import GaussianTheta
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.components import starts_of
from swiftem.mixture.starts.split import (
    Gaussians,
    Split,
    apply_split,
    axes_of_few,
    double_component,
    splits_of,
)

__all__ = [
    "KINDS",
    "gaussians",
    "kinds_for",
    "of_labels",
    "run_k_means",
    "scaled_rows",
    "splits_at",
    "start",
    "theta_of",
]

KINDS = (
    ("k-means", "scaled"),
    ("k-means++", "white"),
    ("grown", "scaled"),
    ("rows", "scaled"),
    ("k-means++", "scaled"),
    ("rows", "white"),
    ("k-means", "white"),
    ("pooled", "scaled"),
)
"""How centres are found, and in which coordinates, in the order of the candidates."""
SHORT = 5
"""Iterations of k-means."""
FEW = 600
"""Rows from which the splits of "grown" are computed."""


def kinds_for(bound: Any) -> tuple[tuple[str, str], ...]:
    """Return the kinds available for a model."""
    if isinstance(bound, BoundGaussians):
        return KINDS
    return tuple(kind for kind in KINDS if kind[0] != "grown" and kind[1] == "scaled")


def start(kind: tuple[str, str], problem: Problem, rng: np.random.Generator) -> Theta:
    """Return the parameters of a start of a kind; ``problem`` has the rows that it is made from."""
    name, coordinates = kind
    bound = problem.bound
    if name == "pooled":
        theta: Theta = bound.initial_theta(rng)
        return theta
    if name == "grown":
        return _grown(problem, rng)
    source: Any = problem.source
    labels = _labels(
        name,
        scaled_rows(starts_of(bound).for_start(source.y), coordinates),
        source.weight,
        bound.n_components,
        rng,
    )
    return of_labels(problem, labels)


def of_labels(problem: Problem, labels: Index) -> Theta:
    """Return the M-step of labels (n,)."""
    bound, source, e_step = problem.bound, problem.source, problem.compute
    batch = source.take(np.arange(source.n))
    s = e_step.share(batch, starts_of(bound).start_rows(np.eye(bound.n_components)[labels], batch))
    if bound.in_domain(s):
        theta: Theta = bound.m_step(s)
        return theta
    empty = int((bound.unpack(s).weights <= 0.0).sum())
    rng = np.random.default_rng(0)
    rows = source.take(rng.choice(source.n, empty, replace=False)).y
    mended: Theta = starts_of(bound).mended(
        s, np.asarray(rows, dtype=np.float64).reshape(empty, bound.d), rng
    )
    return mended


def _labels(name: str, z: Array, weight: Array | None, count: int, rng: np.random.Generator) -> Index:
    if name != "rows":
        return np.asarray(run_k_means(z, weight, count, 1, SHORT if name == "k-means" else 0, rng)[0])
    centres = z[rng.choice(len(z), count, replace=False)]
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
        few = len(z) < z.shape[1]
        values, vectors = axes_of_few(z / np.sqrt(len(z))) if few else np.linalg.eigh(z.T @ z / len(z))
        some = values > 1e-6 * values[-1]
        z = z @ (vectors[:, some] / np.sqrt(values[some]))
    return np.asarray(z)


def _grown(problem: Problem, rng: np.random.Generator) -> Theta:
    """Return a start with half of the components, fitted briefly, and those split that gain most."""
    bound: BoundGaussians = problem.bound
    source: Any = problem.source
    count = bound.n_components
    few = -(-count // 2)
    half = replace(bound, model=replace(bound.model, n_components=few))
    smaller = Problem(half.model, source, bound=half, placement=problem.placement)
    theta = start(("k-means", "scaled"), smaller, rng)
    for _ in range(SHORT):
        s = smaller.compute.full(theta)
        if not half.in_domain(s):
            break
        theta = half.m_step(s)
    splits = sorted(splits_at(smaller, theta, FEW), key=lambda split: -split.gain)[: count - few]
    grown = gaussians(bound, theta)
    for split in splits:
        grown = Gaussians(grown.covariance_type, *apply_split(grown, split))
    while len(grown.weights_) < count:
        grown = Gaussians(grown.covariance_type, *double_component(grown))
    return theta_of(bound, grown)


def gaussians(bound: BoundGaussians, theta: Any) -> Gaussians:
    """Return parameters in the form of the rules for splits."""
    return Gaussians(bound.kind.name, theta.weights, theta.means, theta.covariances)


def theta_of(bound: BoundGaussians, mixture: Gaussians) -> GaussianTheta:
    """Return parameters in the form of the model; ValueError if a covariance is not positive definite."""
    factors = bound.kind.factor(mixture.covariances_)
    if factors is None:
        raise ValueError(starts_of(bound).ILL_DEFINED)
    return GaussianTheta(mixture.weights_, mixture.means_, mixture.covariances_, factors)


def splits_at(problem: Problem, theta: Any, most: int = 2000) -> list[Split]:
    """Return the best split of each component, computed from the first rows of the problem."""
    source: Any = problem.source
    rows = np.arange(min(source.n, most))
    batch = source.take(rows)
    r = problem.bound.posterior(batch, theta)[0][:, : problem.bound.n_components]
    X = np.asarray(batch.y, dtype=np.float64).reshape(len(rows), -1)
    X = starts_of(problem.bound).imputed(X, r, theta, None)
    return splits_of(gaussians(problem.bound, theta), X, r, batch.weight)
