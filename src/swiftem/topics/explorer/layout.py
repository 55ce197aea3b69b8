"""The map of topics: near topics use the same words, circles are as large as shares and do not overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index

HEIGHT = 0.72
"""Height of the map; its width is 1."""
FILLED, LARGEST, SMALLEST = 0.4, 0.12, 0.012
"""Share of the map that circles cover, and bounds of their radii."""
GAP = 0.006
"""Minimum distance between circles."""
NEAREST = 4
"""Neighbours that a topic is linked with to measure distances along the map."""
COLOURS = 8


class TopicMap(NamedTuple):
    """Positions of topics.

    Attributes
    ----------
    x, y : ndarray, shape (K,)
        Centres, within [0, 1] × [0, HEIGHT].
    radius : ndarray, shape (K,)
        Radii; areas are proportional to shares, unless a topic is very small or large.
    colour : ndarray of int, shape (K,)
        Groups of neighbours on the map, from 0 to at most 7.
    """

    x: Array
    y: Array
    radius: Array
    colour: Index


def topic_map(similarity: Array, shares: Array) -> TopicMap:
    """Return the map.

    Distances are √(1 − similarity), summed along links between near topics: topics of different subjects
    share hardly a word, so that direct distances are almost equal. Multidimensional scaling gives positions;
    then circles are moved apart.

    Parameters
    ----------
    similarity : ndarray, shape (K, K)
        From 0 to 1.
    shares : ndarray, shape (K,)
        Sizes.

    Examples
    --------
    >>> import numpy as np
    >>> similarity = np.array([[1, 0.8, 0.1], [0.8, 1, 0.1], [0.1, 0.1, 1]])
    >>> found = topic_map(similarity, np.array([0.5, 0.3, 0.2]))
    >>> apart = np.hypot(found.x - found.x[0], found.y - found.y[0])
    >>> bool(apart[1] < apart[2]), bool((apart[1:] > found.radius[0] + found.radius[1:]).all())
    (True, True)
    """
    radius = _radii(shares)
    distance = np.sqrt(np.maximum(1.0 - 0.5 * (similarity + similarity.T), 0.0))
    np.fill_diagonal(distance, 0.0)
    place = _scaled(_along_links(distance))
    place = _apart(_into_map(place, radius), radius)
    colour = _colours(place)
    return TopicMap(place[:, 0], place[:, 1], radius, colour)


def _radii(shares: Array) -> Array:
    total = max(float(shares.sum()), 1e-300)
    radius = np.sqrt(FILLED * HEIGHT * np.maximum(shares, 0.0) / total / np.pi)
    return np.clip(radius, SMALLEST, LARGEST)


def _along_links(distance: Array) -> Array:
    """Return the lengths of shortest paths over links between neighbours; all topics are connected."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

    n = len(distance)
    if n <= NEAREST + 1:
        return distance
    distance = np.maximum(distance, 1e-9)  # a link of length 0 would be none
    links = np.zeros((n, n))
    near = np.argsort(distance + 10.0 * np.eye(n), axis=1, kind="stable")[:, :NEAREST]
    rows = np.repeat(np.arange(n), NEAREST)
    links[rows, near.ravel()] = distance[rows, near.ravel()]
    links = np.maximum(links, minimum_spanning_tree(csr_array(distance)).toarray())
    return np.asarray(shortest_path(csr_array(links), directed=False))


def _scaled(distance: Array) -> Array:
    """Return points in the plane, shape (K, 2), with about these distances; the long side is the width."""
    from sklearn.decomposition import PCA, KernelPCA
    from sklearn.manifold import smacof

    n = len(distance)
    if n == 1:
        return np.zeros((1, 2))
    classical = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(-0.5 * distance**2)
    start = np.zeros((n, 2))
    start[:, : classical.shape[1]] = classical
    start += 1e-6 * np.stack([np.cos(np.arange(n)), np.sin(np.arange(n))], axis=1)  # equal topics
    rounds = _rounds(300, n)
    place, _ = smacof(distance, init=start, n_init=1, max_iter=rounds, normalized_stress=False)
    return np.asarray(PCA(2, svd_solver="full").fit_transform(place))


def _distances(place: Array) -> tuple[Array, Array, Array]:
    """Return differences of x and of y, and distances, shape (K, K)."""
    dx, dy = (place[:, i, None] - place[:, i] for i in (0, 1))
    return dx, dy, np.sqrt(dx * dx + dy * dy)


def _rounds(most: int, n_topics: int) -> int:
    """Return the number of rounds, each of which costs K² operations: fewer for more than 200 topics."""
    return min(most, max(40, most * 40_000 // n_topics**2))


def _into_map(place: Array, radius: Array) -> Array:
    """Return the points moved and stretched so that all circles are within the map."""
    size = np.array([1.0, HEIGHT])
    if len(place) == 1:
        return (size / 2)[None, :]
    low, high = place.min(axis=0), place.max(axis=0)
    unit = (place - low) / np.maximum(high - low, 1e-12)
    unit[:, high - low < 1e-9] = 0.5
    room = size - 2 * radius[:, None] - 2 * GAP
    return np.asarray(radius[:, None] + GAP + unit * room)


def _apart(place: Array, radius: Array) -> Array:
    """Return the points moved apart until circles do not overlap."""
    place, home = place.copy(), place.copy()
    size = np.array([1.0, HEIGHT])
    wanted = radius[:, None] + radius + GAP
    np.fill_diagonal(wanted, 0.0)
    rounds = _rounds(600, len(place))
    for step in range(rounds):
        dx, dy, apart = _distances(place)
        np.fill_diagonal(apart, 1.0)
        overlap = np.maximum(wanted - apart, 0.0)
        if 2 * step >= rounds and overlap.max() < 1e-4:
            break
        share = 0.5 * overlap / np.maximum(apart, 1e-9)
        place += np.stack([(dx * share).sum(axis=1), (dy * share).sum(axis=1)], axis=1)
        if 2 * step < rounds:  # towards where they belong, if there is room
            place += 0.04 * (1 - 2 * step / rounds) * (home - place)
        place = np.clip(place, radius[:, None] + GAP, size - radius[:, None] - GAP)
    return place


def _colours(place: Array) -> Index:
    """Return groups of neighbours, numbered from left to right; few topics have a group each."""
    from scipy.cluster.hierarchy import fcluster, ward

    n = len(place)
    found = np.arange(n) if n <= COLOURS else fcluster(ward(place), COLOURS, criterion="maxclust") - 1
    middle = [place[found == group, 0].mean() for group in range(int(found.max()) + 1)]
    return np.asarray(np.argsort(np.argsort(middle, kind="stable"), kind="stable")[found], dtype=np.intp)
