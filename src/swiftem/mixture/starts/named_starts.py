"""Starts of a fit: from labels, responsibilities or given parameters; re-initialisation of components."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from swiftem.core.checks import in_numpy
from swiftem.core.compute import BLOCK
from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.validated import some_rows
from swiftem.kernels.threads import openmp_after_fork
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.starts.settings import NUMBERS, Start, StartSettings

Rows = Callable[[int, int], Array]
"""Returns the responsibilities of rows ``start`` to ``stop`` − 1, shape (., M)."""


def make_start(problem: Problem, settings: StartSettings, random_state: np.random.RandomState) -> Start:
    """Return a start by ``init_params``, or by the callable of the settings.

    Given values replace those of the initialisation; if all are given, there is none. Stored rows are not
    read as a whole: names and functions get a sample of them.
    """
    bound, source = problem.bound, cast("ArraySource | StoredSource | UnitSource", problem.source)
    given, kept = settings.given, settings.kept
    if len(given) == len(bound.like()):
        return Start(type(bound.like())(**given), None, 0)
    if settings.own is not None:
        return Start(settings.own(source, random_state), None, 0)
    init_params = in_numpy(settings.init_params)
    if kept is not None and not (isinstance(init_params, str) or callable(init_params)):
        given_rows = np.asarray(init_params)
        init_params = given_rows[kept] if len(given_rows) == len(kept) else given_rows
    if isinstance(source, UnitSource) and not (isinstance(init_params, str) or callable(init_params)):
        raise TypeError("init_params must be a name or a function for a Dask collection, got an array.")
    if not isinstance(source, ArraySource) and (isinstance(init_params, str) or callable(init_params)):
        source = some_rows(source, bound.model.n_components, random_state)
    s = start_statistics(init_params, problem.on(source), random_state)
    if bound.in_domain(s):
        theta = bound.m_step(s)
        return Start(theta._replace(**given), None, 0) if given else Start(theta, s, 0)
    empty = int((bound.unpack(s).weights <= 0.0).sum())
    drawn = np.empty(0)
    if empty:
        rows = source if isinstance(source, ArraySource) else some_rows(source, empty, random_state)
        drawn = rows.take(random_state.choice(rows.n, empty, replace=False)).y
    rng = np.random.default_rng(0)
    try:
        theta = bound.mended(s, np.asarray(drawn, dtype=np.float64).reshape(empty, bound.d), rng)
    except ValueError:
        raise ValueError(bound.ILL_DEFINED) from None
    return Start(theta._replace(**given), None, 0 if "means" in given else empty)


def start_statistics(
    init_params: Any,
    problem: Problem,
    random_state: np.random.RandomState,
) -> Array:
    """Return the statistics of an initialisation, whose M-step is the start.

    Parameters
    ----------
    init_params : str, callable or array-like of shape (n,) or (n, M)
        One of scikit-learn's four names, or "race", which is "kmeans" here; a function of (X, n_components,
        random_state) that returns labels (n,) or responsibilities (n, M); or an array of these.
    problem : Problem
        Model and data; stored data only with an array as ``init_params``.
    random_state : RandomState
        Used as in scikit-learn, so that the same seed gives the same start.
    """
    bound, source, e_step = problem.bound, cast("ArraySource | StoredSource", problem.source), problem.compute
    on_device = e_step.starts()
    if isinstance(init_params, str) and init_params in ("k-means++", "random_from_data"):  # no other row
        if on_device is None:
            index = _single_rows(init_params, problem, random_state)
        else:
            index = on_device.single_rows(init_params, random_state)
        ones = np.eye(len(index))
        batch = source.take(index)._replace(weight=np.ones(len(index)), index=np.arange(len(index)))
        s = e_step.share(batch, ones if on_device is not None else bound.start_rows(ones, batch))
        return np.asarray(s / float(bound.unpack(s).weights.sum()))
    if on_device is not None and isinstance(init_params, str) and init_params in ("kmeans", "race"):
        return np.asarray(on_device.statistics(on_device.k_means(random_state)))
    rows = _responsibilities(init_params, source, bound, random_state)
    if on_device is not None:
        return np.asarray(on_device.statistics(rows))
    parts = (
        e_step.share(batch, bound.start_rows(rows(int(batch.index[0]), int(batch.index[-1]) + 1), batch))
        for batch in source.blocks(BLOCK)
    )
    s = reduce(np.add, parts)
    return np.asarray(s / float(bound.unpack(s).weights.sum()))


def _single_rows(name: str, problem: Problem, random_state: np.random.RandomState) -> Index:
    """Return the indices of rows (M,), one for each component."""
    bound, source = problem.bound, cast(ArraySource, problem.source)
    if name == "random_from_data":
        return np.asarray(random_state.choice(source.n, size=bound.n_components, replace=False))
    from sklearn.cluster import kmeans_plusplus

    X, weight = bound.for_start(source.y), source.weight
    with openmp_after_fork():
        _, index = kmeans_plusplus(X, bound.n_components, sample_weight=weight, random_state=random_state)
    return np.asarray(index)


def _responsibilities(
    init_params: Any,
    source: ArraySource | StoredSource,
    bound: BoundComponents,
    random_state: np.random.RandomState,
) -> Rows:
    n, n_components = source.n, bound.n_components
    if isinstance(source, StoredSource):
        return _given(init_params, n, n_components)
    if isinstance(init_params, str):
        if init_params in ("kmeans", "race"):
            labels = _kmeans(bound.for_start(source.y), source.weight, n_components, random_state)
            return _of_labels(labels, n_components)

        def uniform(start: int, stop: int) -> Array:
            drawn = random_state.uniform(size=(stop - start, n_components))
            return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

        return uniform
    found = init_params(source.y, n_components, random_state) if callable(init_params) else init_params
    return _given(found, n, n_components)


def _given(values: Any, n: int, n_components: int) -> Rows:
    """Return given labels or responsibilities, validated."""
    found = np.asarray(in_numpy(values))
    if found.ndim == 1 and len(found) == n and found.dtype.kind in "iu":
        if found.min() < 0 or found.max() >= n_components:
            raise ValueError(
                f"init_params must give labels from 0 to {n_components - 1}, "
                f"got {found.min()} to {found.max()}."
            )
        return _of_labels(found, n_components)
    if found.shape != (n, n_components) or found.dtype.kind not in "biuf":
        raise ValueError(
            f"init_params must give integer labels of shape ({n},) or responsibilities of shape "
            f"({n}, {n_components}), got {found.dtype} of shape {found.shape}."
        )
    if not (np.isfinite(found).all() and (found >= 0).all() and (found.sum(axis=1) > 0).all()):
        raise ValueError(
            "init_params must give responsibilities that are finite, not negative and not all zero in a row."
        )
    return lambda start, stop: found[start:stop] / found[start:stop].sum(axis=1, keepdims=True)


def _kmeans(
    X: NDArray[Any], weight: Array | None, n_components: int, random_state: np.random.RandomState
) -> NDArray[Any]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if len(X) < 4 * NUMBERS.sample:
        kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    else:
        kmeans = MiniBatchKMeans(
            n_clusters=n_components, n_init=1, batch_size=4096, max_iter=5, random_state=random_state
        )
        if X.dtype == np.float32:  # k-means does not centre, and squares of an offset leave no digits
            X = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)
    with warnings.catch_warnings():
        # Missing clusters are reported in another way.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        with openmp_after_fork():
            return np.asarray(kmeans.fit(X, sample_weight=weight).labels_)


def _of_labels(labels: NDArray[Any], n_components: int) -> Rows:
    one = np.eye(n_components)
    return lambda start, stop: one[labels[start:stop]]


class DegenerateComponentWarning(UserWarning):
    """A component had no rows, or collapsed onto too few of them, and was re-initialised."""


def reseed(
    bound: BoundComponents, source: Source, theta: Theta, s: Array, gone: Index, rng: np.random.Generator
) -> Theta:
    """Set components of θ, whose statistics are ``s``, to the rows that the others explain worst."""
    source = source.some if isinstance(source, UnitSource) else source
    batch = source.take(rng.choice(source.n, min(source.n, NUMBERS.least_rows), replace=False))
    worst = np.resize(np.argsort(bound.posterior(batch, theta)[1])[: len(gone)], len(gone))
    rows = np.asarray(batch.y, dtype=np.float64).reshape(len(batch.index), -1)[worst]
    try:
        return bound.reset(theta, s, gone, rows, rng)
    except ValueError:
        raise ValueError(bound.ILL_DEFINED) from None
