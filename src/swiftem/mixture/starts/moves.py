r"""Split-and-merge moves (Ueda et al. 2000): two components are merged, and another one is split.

A fit in a poor optimum has two components for the rows of one, and one for the rows of two; em does not leave
it. Merging components i and j, of weights w, into one with their moments costs at most, per row,

.. math:: \tfrac12 \bigl( (w_i + w_j) \log|\Sigma_{ij}| - w_i \log|\Sigma_i| - w_j \log|\Sigma_j| \bigr)

(Runnalls 2007), and splitting component k gains at least the bound of
:mod:`swiftem.mixture.starts.split`. Both bounds are far off in many dimensions, where the second looks
along single axes: they select the pairs to look at, and serve models whose components are not estimated one
by one. Otherwise gains and costs are computed on the rows of the components concerned
(:mod:`swiftem.mixture.starts.halves`). All moves of different components that promise a gain are
tried at once, then half of them and the best one; then single moves that promise none, since other components
adapt in ways that these sums do not see. Each is followed by a few passes of em on the sample, and the best
one is accepted if the likelihood rises, of the held-out rows and of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index, Theta
from swiftem.mixture.starts.halves import Halves, Seen, halves_of, losses_of_merges
from swiftem.mixture.starts.kinds import gaussians, splits_at, theta_of
from swiftem.mixture.starts.split import Gaussians, Split, apply_split, parameters_of
from swiftem.mixture.starts.together import is_divisible

__all__ = ["Proposal", "merge_costs", "merged", "moved", "proposals"]

MERGES, SPLITS = 3, 5
"""Number of cheapest pairs, and of the splits that they are combined with, of moves tried one at a time."""
PAIRS = 2
"""Pairs per component whose cost is computed on rows: those that are cheapest by the bound."""
GAIN = 1e-4
"""Minimum gain per row that a split promises: less, and no move is tried."""
ENTRIES = 1 << 22
"""Maximum number of responsibilities that splits and merges are computed from."""


class Proposal(NamedTuple):
    """A move: components ``pair`` are merged, another one is split; and its promised gain per row."""

    pair: tuple[int, int]
    split: Halves | Split
    gain: float


class Proposals(NamedTuple):
    """Moves to try: ``sure`` are sets of moves that promise a gain, ``others`` single ones, best first."""

    sure: list[list[Proposal]]
    others: list[list[Proposal]]


def proposals(on: Problem, held: Problem, theta: Any, most: int, gain: float = GAIN) -> Proposals:
    """Return the most promising moves.

    Parameters
    ----------
    on, held : Problem
        Rows that splits are fitted to, and rows on which gains and costs are computed.
    theta : GaussianTheta
        The parameters.
    most : int
        Maximum number of single moves.
    gain : float
        If no split gains more, there are none.
    """
    splits, pairs = _on_rows(on, held, theta, gain) if is_divisible(on) else _by_bounds(on, theta)
    if not (splits and pairs and splits[0].gain > gain):
        return Proposals([], [])
    chosen = _at_once(splits, pairs, gain)
    sure = [chosen[:count] for count in dict.fromkeys((len(chosen), -(-len(chosen) // 2), 1)) if chosen]
    single = [
        Proposal(pair, split, split.gain - cost)
        for cost, pair in pairs[:MERGES]
        for split in splits[:SPLITS]
        if split.k not in pair
    ]
    single = sorted(single, key=lambda one: -one.gain)[:most]
    return Proposals(sure, [[one] for one in single if [one] not in sure])


def _at_once(splits: list[Any], pairs: list[Any], gain: float) -> list[Proposal]:
    """Return moves of different components that promise a gain, best splits with cheapest merges."""
    used: set[int] = set()
    found: list[Proposal] = []
    for split in splits:
        free = ((cost, pair) for cost, pair in pairs if split.k not in pair and used.isdisjoint(pair))
        cost, pair = next(free, (inf, (0, 0)))
        if split.k in used or split.gain - cost <= gain:
            continue
        found.append(Proposal(pair, split, split.gain - cost))
        used |= {split.k, *pair}
    return found


def _on_rows(
    on: Problem, held: Problem, theta: Any, gain: float
) -> tuple[list[Any], list[tuple[float, Any]]]:
    """Return splits, best first, and pairs with their costs, cheapest first, computed on rows.

    There are none if no split gains more than ``gain``.
    """
    bound, count = on.bound, on.bound.n_components
    seen, other = (Seen.by(theta, problem, ENTRIES // count) for problem in (on, held))
    splits = halves_of(bound, theta, seen, other)
    if not (splits and splits[0].gain > gain):
        return [], []
    mixture = gaussians(bound, theta)
    costs = merge_costs(mixture)
    first, second = np.triu_indices(count, 1)
    order = np.argsort(costs[first, second], kind="stable")[: PAIRS * count]
    first, second = first[order], second[order]
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    losses = losses_of_merges(bound, _pooled(mixture, first, second), pairs, other)
    return splits, sorted(zip(losses.tolist(), pairs, strict=True))


def _by_bounds(on: Problem, theta: Any) -> tuple[list[Any], list[tuple[float, Any]]]:
    """Return the same by bounds that use no rows for merges, and one axis for splits."""
    costs = merge_costs(gaussians(on.bound, theta))
    first, second = np.triu_indices(len(costs), 1)
    pairs = sorted(
        zip(costs[first, second].tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True)
    )
    return sorted(splits_at(on, theta), key=lambda split: -split.gain), pairs


def moved(on: Problem, theta: Any, moves: Sequence[Proposal]) -> Theta:
    """Return the parameters after moves of different components; raises ValueError if there are none."""
    mixture = gaussians(on.bound, theta)
    for move in moves:
        parts = (
            apply_split(mixture, move.split)
            if isinstance(move.split, Split)
            else _divided(mixture, move.split)
        )
        mixture = Gaussians(mixture.covariance_type, *parts)
    for move in sorted(moves, key=lambda one: -one.pair[1]):  # a merge removes the second of a pair
        mixture = merged(mixture, *move.pair)
    return theta_of(on.bound, mixture)


def _divided(mixture: Gaussians, halves: Halves) -> tuple[Array, Array, Array]:
    """Return the parameters with the first part in place of a component, and the second one at the end."""
    weights, means, covariances = parameters_of(mixture)
    share = weights[halves.k] * halves.share
    found = []
    for all_of, parts in ((weights, share), (means, halves.means), (covariances, halves.covariances)):
        all_of[halves.k] = parts[0]
        found.append(np.concatenate([all_of, parts[1:]]))
    return found[0], found[1], found[2]


def merged(mixture: Gaussians, i: int, j: int) -> Gaussians:
    """Return the mixture with components i and j merged into i, with their weight, mean and covariance.

    >>> pair = Gaussians("diag", np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]), np.array([[1.0], [1.0]]))
    >>> merged(pair, 0, 1).covariances_
    array([[2.]])
    """
    kind, weights, means, covariances = mixture
    both = _pooled(mixture, np.array([i]), np.array([j]))
    weights, means = weights.copy(), means.copy()
    weights[i], means[i] = both.weights_[0], both.means_[0]
    if kind == "tied":
        covariances = both.covariances_
    else:
        covariances = covariances.copy()
        covariances[i] = both.covariances_[0]
        covariances = np.delete(covariances, j, axis=0)
    return Gaussians(kind, np.delete(weights, j), np.delete(means, j, axis=0), covariances)


def _pooled(mixture: Gaussians, first: Index, second: Index) -> Gaussians:
    """Return pairs of components as one each, with weight, mean and covariance of both; "tied": one pair."""
    kind, weights, means, covariances = mixture
    both = weights[first] + weights[second]
    share = (weights[first] / both)[:, None]
    mean = share * means[first] + (1.0 - share) * means[second]
    between = _square(kind, means[first] - means[second])
    if kind == "tied":
        return Gaussians(
            kind, both, mean, covariances + both[0] * float(share[0, 0] * (1.0 - share[0, 0])) * between[0]
        )
    share = share.reshape(-1, *[1] * (covariances.ndim - 1))
    pooled = share * covariances[first] + (1.0 - share) * covariances[second]
    return Gaussians(kind, both, mean, pooled + share * (1.0 - share) * between)


def merge_costs(mixture: Gaussians) -> Array:
    """Return the bounds on the cost of merging two components, (M, M); the diagonal is 0."""
    kind, weights, means, covariances = mixture
    count, d = means.shape
    pair = weights[:, None] + weights
    share = weights[:, None] / pair
    between = _square(kind, means[:, None] - means)  # (M, M, ...)
    factor = (share * share.T).reshape(count, count, *[1] * (between.ndim - 2))
    if kind == "tied":
        both = covariances + (pair.reshape(factor.shape) * factor) * between
        return np.asarray(0.5 * (_log_volume(kind, both, d) - _log_volume(kind, covariances, d)))
    share = share.reshape(factor.shape)
    other = np.swapaxes(share, 0, 1)
    both = share * covariances[:, None] + other * covariances[None] + factor * between
    own = weights * _log_volume(kind, covariances, d)
    return np.asarray(0.5 * (pair * _log_volume(kind, both, d) - own[:, None] - own))


def _square(kind: str, away: Array) -> Array:
    """Return the part of a kind's covariances for differences (..., d) of means."""
    if kind in ("full", "tied"):
        return np.asarray(away[..., :, None] * away[..., None, :])
    return np.asarray(away**2 if kind == "diag" else (away**2).mean(axis=-1))


def _log_volume(kind: str, covariances: Array, d: int) -> Array:
    if kind in ("full", "tied"):
        return np.asarray(np.linalg.slogdet(covariances)[1])
    return np.asarray(np.log(covariances).sum(axis=-1) if kind == "diag" else d * np.log(covariances))
