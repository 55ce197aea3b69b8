"""Topics that are merged, as functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swiftem.core.checks import check_int, shown
from swiftem.core.types import Array


def members_of(groups: Sequence[Sequence[int]], n_topics: int) -> list[list[int]]:
    """Return all topics, those of a group together, in the order of their first members."""
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(f"groups must be a list of lists of topics, got {shown(groups)}.")
    found: list[list[int]] = []
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise TypeError(f"groups must be a list of lists of topics, got {shown(group)} in it.")
        found.append(
            sorted(check_int("a topic in groups", k, minimum=0, maximum=n_topics - 1) for k in group)
        )
    named = [k for group in found for k in group]
    twice = next((k for k in named if named.count(k) > 1), None)
    if twice is not None:
        raise ValueError(f"groups must name each topic at most once, got {twice} twice.")
    alone = [[k] for k in range(n_topics) if k not in set(named)]
    return sorted([*(group for group in found if group), *alone])


def sums(rows: Array, members: Sequence[Sequence[int]]) -> Array:
    """Return the sum of each group's entries or rows."""
    return np.array([rows[group].sum(axis=0) for group in members])


def merged_topics(components: Array, tokens: Array, members: Sequence[Sequence[int]]) -> Array:
    """Return the mean of each group's topics (K, V), weighted by their tokens (K,)."""
    means = []
    for group in members:
        weights = tokens[group] if tokens[group].sum() > 0 else None
        means.append(np.average(components[group], axis=0, weights=weights))
    return np.array(means)
