"""Where a fit starts: from labels, from responsibilities or from given parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Theta
from swiftem.data.array_source import ArraySource
from swiftem.expectation import BLOCK
from swiftem.lanes.choose import choose_expectation

__all__ = ["share_largest", "start_statistics", "with_given"]

LARGE = 100_000
"""From so many rows on, k-means is by mini-batches."""

Rows = Callable[[int, int], Array]
"""Gives the responsibilities of rows ``start`` to ``stop`` − 1, shape (., M)."""


def start_statistics(
    init_params: Any, bound: Any, source: ArraySource, random_state: np.random.RandomState
) -> Array:
    """Return the statistics of an initialisation, whose M-step is the start.

    Parameters
    ----------
    init_params : str, callable or array-like of shape (n, M)
        One of scikit-learn's four names; a function of (X, n_components, random_state) that returns labels
        (n,) or responsibilities (n, M); or responsibilities.
    bound : BoundGaussians
        The model, for these data.
    source : ArraySource
        The data.
    random_state : RandomState
        Used as scikit-learn does, so that the same seed gives the same start.
    """
    n_components = bound.model.n_components
    rows = _responsibilities(init_params, source, n_components, random_state)
    e_step = choose_expectation("auto", bound, source)
    s: Array | None = None
    for batch in source.blocks(BLOCK):
        part = e_step.share(batch, rows(int(batch.index[0]), int(batch.index[-1]) + 1))
        s = part if s is None else s + part
    assert s is not None, "a source has at least one row"
    # k-means++ and random_from_data give one row to each component and none to the rest.
    given = float(bound.unpack(s).weights.sum())
    return s / given if given > 0 else s


def _responsibilities(
    init_params: Any, source: ArraySource, n_components: int, random_state: np.random.RandomState
) -> Rows:
    X, n = source.y, source.n
    if isinstance(init_params, str):
        if init_params == "kmeans":
            return _of_labels(_kmeans(X, source.weight, n_components, random_state), n_components)
        if init_params == "random":

            def uniform(start: int, stop: int) -> Array:
                drawn = random_state.uniform(size=(stop - start, n_components))
                return drawn / drawn.sum(axis=1, keepdims=True)

            return uniform
        if init_params == "random_from_data":
            return _of_rows(random_state.choice(n, size=n_components, replace=False), n_components)
        from sklearn.cluster import kmeans_plusplus

        _, index = kmeans_plusplus(X, n_components, sample_weight=source.weight, random_state=random_state)
        return _of_rows(index, n_components)
    found = np.asarray(init_params(X, n_components, random_state) if callable(init_params) else init_params)
    if found.ndim == 1 and len(found) == n and found.dtype.kind in "iu":
        if found.min() < 0 or found.max() >= n_components:
            raise ValueError(
                f"init_params must give labels from 0 to {n_components - 1}, got {found.min()} to {found.max()}."
            )
        return _of_labels(found, n_components)
    if found.shape != (n, n_components) or found.dtype.kind not in "biuf":
        raise ValueError(
            f"init_params must give labels of shape ({n},) or responsibilities of shape ({n}, {n_components}), "
            f"got {found.dtype} of shape {found.shape}."
        )
    if not (np.isfinite(found).all() and (found >= 0).all() and (found.sum(axis=1) > 0).all()):
        raise ValueError(
            "init_params must give responsibilities that are not negative and not all zero in a row."
        )
    return lambda start, stop: found[start:stop] / found[start:stop].sum(axis=1, keepdims=True)


def _kmeans(
    X: NDArray[Any], weight: Array | None, n_components: int, random_state: np.random.RandomState
) -> NDArray[Any]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if len(X) < LARGE:
        kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    else:
        kmeans = MiniBatchKMeans(
            n_clusters=n_components, n_init=1, batch_size=4096, max_iter=5, random_state=random_state
        )
    return np.asarray(kmeans.fit(X, sample_weight=weight).labels_)


def _of_labels(labels: NDArray[Any], n_components: int) -> Rows:
    one = np.eye(n_components)
    return lambda start, stop: one[labels[start:stop]]


def _of_rows(index: NDArray[Any], n_components: int) -> Rows:
    """Give row ``index[m]`` to component m, and no other row to any."""

    def rows(start: int, stop: int) -> Array:
        found = np.zeros((stop - start, n_components))
        for m in np.flatnonzero((index >= start) & (index < stop)):
            found[index[m] - start, m] = 1.0
        return found

    return rows


def share_largest(bound: Any, s: Array) -> NDArray[np.intp]:
    """Give components without a row an equal share of the largest one's statistics, and return which they are.

    k-means may find fewer clusters than it is asked for, where rows repeat.
    """
    parts = bound.unpack(s)
    empty = np.flatnonzero(parts.weights <= 0.0)
    if len(empty) and bound.epsilon == 0.0:
        largest = int(parts.weights.argmax())
        sharing = np.append(empty, largest)
        for part in parts if bound.kind.name != "tied" else parts[:2]:
            part[sharing] = part[largest] / len(sharing)
        return empty
    return empty[:0]


def with_given(theta: Theta, weights: Any, means: Any, precisions: tuple[Array, Array] | None) -> Theta:
    """Return ``theta`` with what the user gave in its place; ``precisions`` as (covariances, cholesky)."""
    changed = {}
    if weights is not None:
        changed["weights"] = np.asarray(weights, dtype=np.float64)
    if means is not None:
        changed["means"] = np.asarray(means, dtype=np.float64)
    if precisions is not None:
        changed["covariances"], changed["precisions_cholesky"] = precisions
    return theta._replace(**changed)
