r"""Split-and-merge moves (Ueda et al. 2000): two components are merged, and another one is split.

A fit in a poor optimum has two components for the rows of one, and one for the rows of two; em does not leave
it. Merging components i and j, of weights w, into one with their moments costs at most, per row,

.. math:: \tfrac12 \bigl( (w_i + w_j) \log|\Sigma_{ij}| - w_i \log|\Sigma_i| - w_j \log|\Sigma_j| \bigr)

(Runnalls 2007), and splitting component k gains at least the bound of
:mod:`swiftem.estimators.mixture.split`. The most promising pairs of a merge and a split are tried: a few
passes of em on the sample, and the best one is accepted if the likelihood of the held-out rows rises.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.estimators.mixture.optima.kinds import gaussians, splits_at, theta_of
from swiftem.estimators.mixture.split import Gaussians, Split, apply_split
from swiftem.problem import Problem

__all__ = ["Proposal", "merge_costs", "merged", "moved", "proposals"]

MERGES = 3
"""Number of cheapest pairs, which are combined with as many splits."""


class Proposal(NamedTuple):
    """A move: components ``pair`` are merged, then ``split`` is done; and its promised gain per row."""

    pair: tuple[int, int]
    split: Split
    gain: float


def proposals(on: Problem, theta: Any, most: int) -> list[Proposal]:
    """Return the most promising moves, best first, of those that merge and split different components."""
    mixture = gaussians(on.bound, theta)
    costs = merge_costs(mixture)
    first, second = np.triu_indices(len(costs), 1)
    order = np.argsort(costs[first, second], kind="stable")[:MERGES]
    pairs = [(int(first[k]), int(second[k])) for k in order]
    splits = sorted(splits_at(on, theta), key=lambda split: -split.gain)[: MERGES + 2]
    found = [
        Proposal(pair, split, split.gain - float(costs[pair]))
        for pair in pairs
        for split in splits
        if split.k not in pair
    ]
    return sorted(found, key=lambda proposal: -proposal.gain)[:most]


def moved(on: Problem, theta: Any, proposal: Proposal) -> Theta:
    """Return the parameters after a move; raises ValueError if there are none."""
    mixture = gaussians(on.bound, theta)
    split = Gaussians(mixture.covariance_type, *apply_split(mixture, proposal.split))
    return theta_of(on.bound, merged(split, *proposal.pair))


def merged(mixture: Gaussians, i: int, j: int) -> Gaussians:
    """Return the mixture with components i and j merged into i, with their weight, mean and covariance.

    >>> pair = Gaussians("diag", np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]), np.array([[1.0], [1.0]]))
    >>> merged(pair, 0, 1).covariances_
    array([[2.]])
    """
    kind, weights, means, covariances = mixture
    share = weights[[i, j]] / weights[[i, j]].sum()
    weights, means, covariances = weights.copy(), means.copy(), covariances.copy()
    between = share[0] * share[1] * _square(kind, means[i] - means[j])
    weights[i] += weights[j]
    means[i] = share[0] * means[i] + share[1] * means[j]
    if kind == "tied":
        covariances += weights[i] * between
    else:
        covariances[i] = share[0] * covariances[i] + share[1] * covariances[j] + between
        covariances = np.delete(covariances, j, axis=0)
    return Gaussians(kind, np.delete(weights, j), np.delete(means, j, axis=0), covariances)


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
