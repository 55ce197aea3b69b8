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

from swiftem._typing import Array, Index, Theta
from swiftem.estimators.mixture.split import Gaussians, Split, apply_split, double_component, splits_of
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.problem import Problem

__all__ = ["KINDS", "gaussians", "kinds_for", "splits_at", "start", "theta_of"]

KINDS = (
    ("k-means", "scaled"), ("k-means++", "white"), ("grown", "scaled"), ("rows", "scaled"),
    ("k-means++", "scaled"), ("rows", "white"), ("k-means", "white"), ("pooled", "scaled"),
)  # fmt: skip
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
        name, _coordinates(bound.for_start(source.y), coordinates), source.weight, bound.n_components, rng
    )
    return of_labels(problem, labels)


def of_labels(problem: Problem, labels: Index) -> Theta:
    """Return the M-step of labels (n,)."""
    bound, source, e_step = problem.bound, problem.source, problem.e_step
    batch = source.take(np.arange(source.n))
    s = e_step.share(batch, bound.start_rows(np.eye(bound.n_components)[labels], batch))
    if bound.in_domain(s):
        theta: Theta = bound.m_step(s)
        return theta
    empty = int((bound.unpack(s).weights <= 0.0).sum())
    rng = np.random.default_rng(0)
    rows = source.take(rng.choice(source.n, empty, replace=False)).y
    mended: Theta = bound.mended(s, np.asarray(rows, dtype=np.float64).reshape(empty, bound.d), rng)
    return mended


def _labels(name: str, z: Array, weight: Array | None, count: int, rng: np.random.Generator) -> Index:
    if name == "rows":
        return _nearest(z, z[rng.choice(len(z), count, replace=False)])
    centres = z[_plus_plus(z, weight, count, rng)]
    labels = _nearest(z, centres)
    if name == "k-means":
        weighted = z if weight is None else z * weight[:, None]
        for _ in range(SHORT):
            member = np.eye(count)[labels]
            sizes = member.sum(axis=0) if weight is None else weight @ member
            filled = sizes > 0.0
            centres[filled] = (member.T @ weighted)[filled] / sizes[filled, None]
            labels = _nearest(z, centres)
    return labels


def _plus_plus(z: Array, weight: Array | None, count: int, rng: np.random.Generator) -> Index:
    """Return rows by greedy k-means++ (Arthur and Vassilvitskii 2007), as in scikit-learn.

    Each is the best of a few that are drawn in proportion to the squared distance from those before.
    """
    trials, squares = 2 + int(np.log(count)), np.einsum("ij,ij->i", z, z)
    found, near = np.empty(count, dtype=np.intp), np.full(len(z), np.inf)
    drawn = rng.choice(len(z), 1, p=None if weight is None else weight / weight.sum())
    for place in range(count):
        if place:
            up_to = np.cumsum(near if weight is None else near * weight)
            drawn = np.searchsorted(up_to, rng.random(trials) * up_to[-1]).clip(max=len(z) - 1)
        after = squares - 2.0 * z[drawn] @ z.T + squares[drawn, None]
        np.clip(after, 0.0, near, out=after)
        best = int((after.sum(axis=1) if weight is None else after @ weight).argmin()) if place else 0
        found[place], near = drawn[best], after[best]
    return found


def _nearest(z: Array, centres: Array) -> Index:
    return np.asarray(((centres**2).sum(axis=1) - 2.0 * z @ centres.T).argmin(axis=1))


def _coordinates(y: NDArray[Any], name: str) -> Array:
    """Return centred rows with columns of unit variance, or of unit covariance if possible."""
    z = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    z = z - z.mean(axis=0)
    deviation = z.std(axis=0)
    z /= np.where(deviation > 0.0, deviation, 1.0)
    if name == "white":
        values, vectors = np.linalg.eigh(z.T @ z / len(z))
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
    smaller = Problem(half.model, source, bound=half, kernels=problem.kernels)
    theta = start(("k-means", "scaled"), smaller, rng)
    for _ in range(SHORT):
        s = smaller.e_step.full(theta)
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
        raise ValueError(bound.ILL_DEFINED)
    return GaussianTheta(mixture.weights_, mixture.means_, mixture.covariances_, factors)


def splits_at(problem: Problem, theta: Any, most: int = 2000) -> list[Split]:
    """Return the best split of each component, computed from the first rows of the problem."""
    source: Any = problem.source
    rows = np.arange(min(source.n, most))
    batch = source.take(rows)
    r = problem.bound.posterior(batch, theta)[0][:, : problem.bound.n_components]
    X = np.asarray(batch.y, dtype=np.float64).reshape(len(rows), -1)
    X = problem.bound.imputed(X, r, theta, None)
    return splits_of(gaussians(problem.bound, theta), X, r, batch.weight)
