r"""Adds a component to a fitted mixture: which component to split in two, and how.

Divide the responsibilities :math:`r_{ik}` of component k into parts :math:`r_{ik} \pi_{ij}`, j = 1, 2. By
Jensen's inequality the log-likelihood after the M-step on these is at least the previous one plus

.. math:: N_k \Bigl(\sum_j p_j \log p_j + H\Bigr) - \tfrac12 \sum_j N_k p_j \log |\Sigma_{kj}| / |\Sigma_k|,

N_k = Σ r_ik, p_j the share of part j, H the mean entropy of π, and Σ_kj the covariances of the parts: the
cost of two labels, against the gain of smaller covariances. Along one axis all of this is one-dimensional:
rows are standardised by their component and projected, and a mixture of two is fitted to the projections. No
covariance matrix is estimated; therefore a sample of the rows is enough, also in many dimensions.

The component and axis with the largest bound are split. On 2,000 rows that takes milliseconds; trying every
split by em would take one fit each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem.core.types import Array

__all__ = [
    "Gaussians",
    "Split",
    "apply_split",
    "axes_of_few",
    "double_component",
    "parameters_of",
    "split_component",
    "splits_of",
]

AXES = 2
"""Axes tried per component."""
ITERATIONS = 15
LEAST_SHARE, LEAST_VARIANCE = 0.02, 0.01
"""Smallest variance of a part: repeated rows must not become a component without variance."""
FAR = 3.5
"""Projections are clipped here for the moments that choose the axes: otherwise a few outliers decide."""
LEAST_ROWS = 4
"""Minimum number of rows in the sample of a component to be split."""
FLAT = 1e-12
"""Share of the largest eigenvalue below which another one is zero up to rounding."""
SMALL = 1e-3
"""Rows with a smaller responsibility are ignored for a component."""
HALF = float(np.sqrt(2.0 / np.pi))
"""Mean of the upper half of a standard normal."""
STARTS = (
    (np.array([0.5, 0.5]), np.array([HALF, -HALF]), np.array([1.0 - HALF**2, 1.0 - HALF**2])),
    (np.array([0.1, 0.9]), np.array([1.8, -0.2]), np.array([0.6, 0.6])),
    (np.array([0.5, 0.5]), np.array([0.05, -0.05]), np.array([0.3, 1.7])),
)
"""Initial shares, means and variances of the parts: the halves of a normal; a tail and the rest; and core
and tails, which changes nothing for a shared covariance."""

Parameters = tuple[Array, Array, Array]
"""Weights, means and covariances."""
Start = tuple[Array, Array, Array]


class _Rows(NamedTuple):
    """The rows in the coordinates of one component.

    ``whitened`` (n, d) has unit covariance if the component fits its rows, ``weight`` (n,) sums to 1, and
    the columns of ``lower`` (d, d), or its diagonal (d,), map back to the data's coordinates.
    """

    whitened: Array
    weight: Array
    lower: Array

    def direction(self, axis: Array) -> Array:
        """Return an axis (d,) of the whitened rows in the data's coordinates."""
        return self.lower * axis if self.lower.ndim == 1 else self.lower @ axis


class _Parts(NamedTuple):
    """Two parts of each of t projections (n,) of zero mean and unit variance.

    ``share``, ``mean``, ``variance`` (2, t) of the parts, ``label`` (t,) = Σ p log p + H, and ``first``
    (n, t), the share π of the first part in each row.
    """

    share: Array
    mean: Array
    variance: Array
    label: Array
    first: Array


class Gaussians(NamedTuple):
    """Parameters of a mixture, with the names of an estimator's attributes."""

    covariance_type: str
    weights_: Array
    means_: Array
    covariances_: Array


class Split(NamedTuple):
    """The split of component ``k``, and a bound on its ``gain``: see :func:`apply_split`."""

    k: int
    gain: float
    share: Array
    place: Array
    spread: Array
    direction: Array


def split_component(mixture: Any, X: Array, weight: Array | None = None) -> Parameters:
    """Return the parameters of a mixture with one component more.

    Parameters
    ----------
    mixture : GaussianMixture
        A fitted mixture.
    X : ndarray, shape (n, d)
        Rows; a sample of the data is enough.
    weight : ndarray, shape (n,), optional
        Their weights.

    Returns
    -------
    weights, means, covariances : ndarray
        The first part replaces the split component, the second is the last component.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem.mixture.starts.split import split_component
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(500, 1)) for m in (0, 10, 16)])
    >>> mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    >>> np.sort(split_component(mixture, X)[1].ravel()).round() + 0.0
    array([ 0., 10., 16.])
    """
    X = np.asarray(X, dtype=np.float64)
    r = np.asarray(mixture.predict_proba(X), dtype=np.float64)
    found = splits_of(mixture, X, r, weight)
    if not found:
        return double_component(mixture)
    return apply_split(mixture, max(found, key=lambda split: split.gain))


def splits_of(mixture: Any, X: Array, r: Array, weight: Array | None = None) -> list[Split]:
    """Return the best split of each component that has enough rows.

    Parameters
    ----------
    mixture : GaussianMixture or Gaussians
        The mixture.
    X : ndarray, shape (n, d)
        Rows.
    r : ndarray, shape (n, M)
        Their responsibilities.
    weight : ndarray, shape (n,), optional
        Their weights.
    """
    kind = mixture.covariance_type
    weight = np.ones(len(X)) if weight is None else weight
    shares = (weight / weight.sum()) @ r
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    splits: list[Split] = []
    for k, share in enumerate(shares):
        own = np.flatnonzero(r[:, k] > SMALL)
        if len(own) < LEAST_ROWS:
            continue
        part = r[own, k] * weight[own]
        rows = _seen_by(mixture, k, X[own], part / part.sum())
        splits.append(_best_split(kind, k, float(share), rows, _axes(kind, rows, scale)))
    return splits


def double_component(mixture: Any) -> Parameters:
    """Return the parameters with the heaviest component doubled, at half its weight: the same density.

    >>> import swiftem
    >>> mixture = swiftem.GaussianMixture.from_parameters([0.2, 0.8], [[0.0], [1.0]], [[[1.0]], [[2.0]]])
    >>> double_component(mixture)[0]
    array([0.2, 0.4, 0.4])
    """
    weights, means, covariances = parameters_of(mixture)
    k = int(weights.argmax())
    weights[k] /= 2.0
    if mixture.covariance_type != "tied":
        covariances = np.concatenate([covariances, covariances[k : k + 1]])
    return np.append(weights, weights[k]), np.concatenate([means, means[k : k + 1]]), covariances


def parameters_of(mixture: Any) -> Parameters:
    """Return copies in double precision; weights sum to 1 up to rounding."""
    weights = np.array(mixture.weights_, dtype=np.float64)
    return weights / weights.sum(), np.array(mixture.means_, float), np.array(mixture.covariances_, float)


def _seen_by(mixture: Any, k: int, X: Array, weight: Array) -> _Rows:
    covariance = np.asarray(mixture.covariances_, dtype=np.float64)
    if mixture.covariance_type != "tied":
        covariance = covariance[k]
    away = X - np.asarray(mixture.means_[k], dtype=np.float64)
    if mixture.covariance_type in ("full", "tied"):
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        return _Rows(np.asarray(np.linalg.solve(lower, away.T).T, dtype=np.float64), weight, lower)
    deviations = np.sqrt(np.broadcast_to(covariance, X.shape[1:]))
    return _Rows(away / deviations, weight, deviations)


def axes_of_few(rows: Array) -> tuple[Array, Array]:
    """Return eigenvalues, ascending, and eigenvectors (d, k) of RᵀR for fewer rows R (n, d) than columns.

    They come from the n × n matrix RRᵀ. Eigenvalues of zero, along which rows have no extent, are left out.

    >>> values, vectors = axes_of_few(np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    >>> values, np.abs(vectors.T)
    (array([4., 9.]), array([[0., 0., 1.],
           [1., 0., 0.]]))
    """
    values, left = np.linalg.eigh(rows @ rows.T)
    some = values > FLAT * values[-1]
    some[-1] = True  # rows without any extent have an axis of zeros
    values, left = values[some], left[:, some]
    return values, rows.T @ left / np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))


def _axes(kind: str, rows: _Rows, scale: Array) -> Array:
    """Return the axes to try as columns of unit length, in the whitened coordinates.

    These are the component's principal axes, with the data's columns scaled alike: of its covariance, or of
    its rows if the covariance is shared or a number; for diag the columns themselves. If there are many, the
    axes along which the rows are least normal are taken: by the approximation skewness²/12 + excess²/48 of
    the negative entropy, or by how far their variance exceeds the component's.
    """
    d, away = len(scale), rows.whitened - rows.weight @ rows.whitened
    axes: Array | None = None
    if kind == "full":
        axes = np.linalg.svd(rows.lower / scale[:, None])[2].T
    elif kind == "tied":
        lower = rows.lower / scale[:, None]
        away = away @ lower.T
        axes = np.linalg.solve(lower, np.linalg.eigh((away * rows.weight[:, None]).T @ away)[1])
        axes /= np.linalg.norm(axes, axis=0)
    elif kind == "spherical" and len(away) < d:
        axes = axes_of_few(away * np.sqrt(rows.weight)[:, None])[1]
    elif kind == "spherical":
        axes = np.linalg.eigh((away * rows.weight[:, None]).T @ away)[1]
    z = rows.whitened if axes is None else rows.whitened @ axes
    mean = rows.weight @ z
    variance = rows.weight @ (z - mean) ** 2
    z = np.clip((z - mean) / np.sqrt(np.where(variance > 0, variance, 1.0)), -FAR, FAR)
    square = z * z
    promise = (rows.weight @ (square * z)) ** 2 / 12.0 + (rows.weight @ (square * square) - 3.0) ** 2 / 48.0
    if kind in ("tied", "spherical"):
        promise += (
            0.5 * np.maximum(variance - 1.0 - np.log(np.maximum(variance, 1e-12)), 0) * (variance > 1.0)
        )
    best = np.argsort(-promise, kind="stable")[:AXES]
    if axes is not None:
        return np.asarray(axes[:, best])
    columns = np.zeros((d, len(best)))
    columns[best, np.arange(len(best))] = 1.0
    return columns


def _best_split(kind: str, k: int, share: float, rows: _Rows, axes: Array) -> Split:
    """Return the best split of a component with a share of all rows, along one of the axes (d, a)."""
    starts = STARTS[: 2 if kind == "tied" else 3]
    of = np.repeat(np.arange(axes.shape[1]), len(starts))  # every axis from every start: columns below
    z = rows.whitened @ axes
    mean = rows.weight @ z
    z = z - mean
    deviation = np.sqrt(rows.weight @ z**2)
    deviation[deviation <= 0] = 1.0
    z /= deviation
    side = np.where(rows.weight @ z**3 >= 0, 1.0, -1.0)
    first = [np.tile(np.array([start[part] for start in starts]).T, len(side)) for part in range(3)]
    first[1] = first[1] * side[of]
    parts = _two_parts(z[:, of], rows.weight, (first[0], first[1], first[2]), shared=kind == "tied")
    deviation, mean = deviation[of], mean[of]
    if kind == "tied":
        # The reduced spread of this component's rows is shared by all components.
        between = share * deviation**2 * (parts.share * parts.mean**2).sum(axis=0)
        spread = np.minimum(between, 0.99)[None]
        gain = share * parts.label - 0.5 * np.log(1.0 - spread[0])
    elif kind == "spherical":
        d = len(axes)
        squares = ((rows.whitened - rows.weight @ rows.whitened) ** 2).sum(axis=1)
        whole = float(rows.weight @ squares)
        in_first = (rows.weight * squares) @ parts.first
        of_parts = np.array([in_first, whole - in_first]) / parts.share
        spread = np.maximum(of_parts - (deviation * parts.mean) ** 2, LEAST_VARIANCE * d) / d
        whole = max(whole / d, LEAST_VARIANCE)
        gain = share * (parts.label - 0.5 * d * (parts.share * np.log(spread / whole)).sum(axis=0))
    else:
        spread = parts.variance * deviation**2
        gain = share * (parts.label - 0.5 * (parts.share * np.log(parts.variance)).sum(axis=0))
    best = int(gain.argmax())
    place = mean[best] + deviation[best] * parts.mean[:, best]
    direction = rows.direction(axes[:, of[best]])
    return Split(k, float(gain[best]), parts.share[:, best], place, spread[:, best], direction)


def _two_parts(z: Array, weight: Array, start: Start, *, shared: bool) -> _Parts:
    """Fit a mixture of two to columns (n, t) of zero mean and unit variance, by a few iterations of em."""
    share, mean, variance = start
    first, square = np.empty_like(z), z * z
    for _ in range(ITERATIONS):
        # log p_2 − log p_1 of the densities is a polynomial of z.
        half = 0.5 / variance
        constant = np.log(share) - 0.5 * np.log(variance) - half * mean**2
        slope = 2.0 * half * mean
        logit = (constant[1] - constant[0]) + (slope[1] - slope[0]) * z + (half[0] - half[1]) * square
        first = 1.0 / (1.0 + np.exp(np.clip(logit, -100.0, 100.0)))
        r = weight[:, None] * first
        p = np.clip(r.sum(axis=0), LEAST_SHARE, 1.0 - LEAST_SHARE)
        share = np.array([p, 1.0 - p])
        total, of_first = (r * z).sum(axis=0), (r * square).sum(axis=0)
        mean = np.array([total, -total]) / share
        variance = np.maximum(np.array([of_first, 1.0 - of_first]) / share - mean**2, LEAST_VARIANCE)
        if shared:
            variance = np.repeat((share * variance).sum(axis=0)[None], 2, axis=0)
    inside = np.clip(first, 1e-300, 1.0 - 1e-16)
    entropy = -(weight @ (inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside)))
    return _Parts(share, mean, variance, (share * np.log(share)).sum(axis=0) + entropy, first)


def apply_split(mixture: Any, split: Split) -> Parameters:
    """Return the parameters after a split.

    Parts lie at ``place`` (2,) times the direction from the mean. For full and diag, ``spread`` (2,) is their
    variance along it, in units of the component's own; for spherical, it applies to all variances; for tied,
    ``spread`` (1,) is the reduction of the shared one.
    """
    weights, means, covariances = parameters_of(mixture)
    k, kind, along = split.k, mixture.covariance_type, split.direction
    placed = means[k] + split.place[:, None] * along
    weights = np.append(weights, weights[k] * split.share[1])
    weights[k] *= split.share[0]
    means = np.concatenate([means, placed[1:]])
    means[k] = placed[0]
    if kind == "tied":
        return weights, means, covariances - split.spread[0] * np.outer(along, along)
    if kind == "full":
        own = covariances[k] + (split.spread - 1.0)[:, None, None] * np.outer(along, along)
    elif kind == "diag":
        own = covariances[k] + (split.spread - 1.0)[:, None] * along**2
    else:
        own = covariances[k] * split.spread
    covariances = np.concatenate([covariances, own[1:]])
    covariances[k] = own[0]
    return weights, means, covariances
