r"""What a split gains and a merge costs, on the rows of the components concerned.

With the responsibilities r of θ, let θ' have two parts :math:`g_1, g_2` with shares p instead of component k.
By Jensen's inequality the log-likelihood of θ' is at least that of θ plus

.. math:: \sum_i r_{ik} \log \frac{p_1 g_1(y_i) + p_2 g_2(y_i)}{g_k(y_i)},

and em on the rows weighted by :math:`r_{ik}` increases it: a few passes over 1/M of the rows with two
components, instead of over all rows with M. In the same way, one density g instead of components a and b
costs at most

.. math:: \sum_i (r_{ia} + r_{ib}) \log \frac{w_a g_a(y_i) + w_b g_b(y_i)}{(w_a + w_b)\, g(y_i)}.

Moves of different components add up. Both sums are computed on held-out rows, so that parts which only fit
noise gain nothing. Rows are in the coordinates of their component, where it is a standard normal: parts are
shrunk towards it as by as many further rows as there are columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem.core.problem import Problem
from swiftem.core.types import Array
from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.covariance import Covariance, GaussianStatistics, GaussianTheta
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.prior import BoundPrior
from swiftem.mixture.starts.sample import on_rows
from swiftem.mixture.starts.split import Gaussians, axes_of_few

__all__ = ["Halves", "Seen", "halves_of", "losses_of_merges"]

SMALL = 0.01
"""Rows with a smaller responsibility are ignored for a component."""
FIRST, PASSES = 3, 8
"""Passes of em from every start, and further ones from the best."""
FAR = 46.0
"""Largest difference of logits: what is further away has a share below 1e-20."""
LEAST_SHARE = 1e-3
"""Minimum share of a part."""
LEAST_ROWS = 8
"""Minimum number of rows of a component to be split."""
NUMBERS = 1 << 23
"""Maximum number of entries of T(y) of the rows of all components."""


class Seen(NamedTuple):
    """Rows (n, d), their weights (n,), responsibilities (n, M) and log-likelihoods (n,) at some θ."""

    y: Array
    weight: Array
    r: Array
    log_likelihood: Array

    @classmethod
    def by(cls, theta: Any, problem: Problem, most: int) -> Seen:
        """Return the first rows of a problem as θ sees them."""
        source: Any = problem.source
        if source.n > most:
            weight = None if source.weight is None else source.weight[:most]
            return cls.by(theta, on_rows(problem, source.like(source.y[:most], weight)), most)
        e_step: Any = problem.compute
        found = e_step.evaluate(theta, responsibilities=True)
        weight = np.ones(source.n) if source.weight is None else source.weight
        y = np.asarray(source.y, dtype=np.float64).reshape(source.n, -1)
        return cls(y, weight, found.responsibilities, found.log_likelihood)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def of(self, *components: int) -> _Rows:
        """Return the rows of some components, without those of small responsibility."""
        r = self.r[:, components].sum(axis=1)
        own = np.flatnonzero(r > SMALL)
        return _Rows(self.y[own], self.weight[own], r[own], self.log_likelihood[own])


class _Rows(NamedTuple):
    """Rows (n, d), their weights, responsibilities of some components together, and log-likelihoods (n,)."""

    y: Array
    weight: Array
    r: Array
    log_likelihood: Array

    def gain(self, after: Array, before: float = 0.0) -> float:
        r"""Return the sum of :math:`r \,(\log g' - \log g)`, where :math:`r = g e^{b} / \sum w g`.

        ``after`` (n,) is :math:`\log g'`, and ``before`` is b.
        """
        return float((self.weight * self.r) @ (after - np.log(self.r) - self.log_likelihood + before))


class Halves(NamedTuple):
    """Component ``k`` in two parts: what it gains per held-out row, shares (2,), means and covariances."""

    k: int
    gain: float
    share: Array
    means: Array
    covariances: Array


class _Own(NamedTuple):
    """The rows of a component.

    ``powers`` (n, 1 + p) is T(z) in its coordinates, ``weight`` (n,) adds up to 1, ``rows`` is as how many
    rows they count, and ``floor`` is ``reg_covar`` · I in its coordinates.
    """

    powers: Array
    weight: Array
    rows: float
    floor: Array
    d: int


def halves_of(bound: BoundGaussians, theta: GaussianTheta, seen: Seen, held: Seen) -> list[Halves]:
    """Return each component in two parts, best first; without those that have too few rows.

    Parameters
    ----------
    bound : BoundGaussians
        The model; not "tied".
    theta : GaussianTheta
        Parameters.
    seen, held : Seen
        Rows that the parts are fitted to, and rows on which their gain is computed.
    """
    kind, rows = bound.kind, {}
    for k in range(bound.n_components):
        own = _own_rows(kind, seen, k, theta, float(bound.model.reg_covar))
        if own is not None:
            rows[k] = own
    parts = _em(kind, list(rows.values()), bound.d)
    if parts is None:
        return []
    found = []
    for place, k in enumerate(rows):
        mean, factor = theta.means[k], theta.precisions_cholesky[k]
        one = GaussianTheta(*(part[2 * place : 2 * place + 2] for part in parts))
        near = held.of(k)
        # What changes coordinates is in both densities.
        after = _log_sum(*_log_densities(_whitened(near.y - mean, factor), one))
        after += _log_determinant(factor, bound.d)
        gain = near.gain(after, float(np.log(theta.weights[k]))) / held.total
        found.append(Halves(k, gain, one.weights, *_placed(one, mean, factor)))
    return sorted(found, key=lambda halves: -halves.gain)


def _own_rows(kind: Covariance, seen: Seen, k: int, theta: GaussianTheta, reg_covar: float) -> _Own | None:
    part = seen.of(k)
    y, weight = part.y, part.weight * part.r
    d = y.shape[1]
    width = 1 + d + int(np.prod(kind.squares_shape(1, d)))
    most = max(LEAST_ROWS, NUMBERS // (width * len(theta.weights)))
    every = max(1, -(-len(y) // most))
    y, weight = y[::every], weight[::every]
    count = float(weight.sum())
    if len(y) < LEAST_ROWS or not count > 0.0:
        return None
    factor = theta.precisions_cholesky[k]
    powers, weight = _powers(kind, _whitened(y - theta.means[k], factor)), weight / count
    floor = reg_covar * (factor.T @ factor if factor.ndim == 2 else factor**2)
    return _Own(powers, weight, count, np.asarray(floor), d)


def losses_of_merges(
    bound: BoundGaussians, merged: Gaussians, pairs: list[tuple[int, int]], held: Seen
) -> Array:
    """Return what single components instead of pairs cost, per held-out row: ∞ without an inverse."""
    found = np.full(len(pairs), np.inf)
    for place, (i, j) in enumerate(pairs):
        here = slice(place, place + 1)
        factors = bound.kind.factor(merged.covariances_[here])
        if factors is not None:
            one = GaussianTheta(
                merged.weights_[here], merged.means_[here], merged.covariances_[here], factors
            )
            own = held.of(i, j)
            found[place] = -own.gain(_log_densities(own.y, one)[0]) / held.total
    return found


def _log_densities(y: Array, parts: GaussianTheta) -> Array:
    """Return log w g (C, n) of rows (n, d)."""
    d, found = y.shape[1], np.empty((len(parts.weights), len(y)))
    for m, (weight, mean, _, factor) in enumerate(zip(*parts, strict=True)):
        z = _whitened(y - mean, factor)
        np.einsum("ij,ij->i", z, z, out=found[m])
        found[m] *= -0.5
        found[m] += np.log(weight) + _log_determinant(factor, d) - 0.5 * d * np.log(2.0 * np.pi)
    return found


def _log_determinant(factor: Array, d: int) -> float:
    of_axes = np.diagonal(factor) if factor.ndim == 2 else np.broadcast_to(factor, d)
    return float(np.log(of_axes).sum())


def _whitened(away: Array, factor: Array) -> Array:
    return np.asarray(away @ factor if factor.ndim == 2 else away * factor)


def _powers(kind: Covariance, z: Array) -> Array:
    """Return T(z) (n, 1 + p), with 1 first."""
    d = z.shape[1]
    powers = np.empty((len(z), 1 + d + int(np.prod(kind.squares_shape(1, d)))))
    powers[:, 0] = 1.0
    powers[:, 1 : 1 + d] = z
    if kind.name == "full":
        row, column = lower_triangle(d)
        np.multiply(z[:, row], z[:, column], out=powers[:, 1 + d :])
    elif kind.name == "diag":
        np.multiply(z, z, out=powers[:, 1 + d :])
    else:
        np.einsum("ij,ij->i", z, z, out=powers[:, 1 + d])
    return powers


def _first(z: Array, weight: Array) -> Array:
    r"""Return the first parts of several starts, (n, L), zeros and ones.

    These are rows on one side along three axes, and those closest to the mean. The axes are eigenvectors of
    :math:`E\, |z|^2 z z^T`, along which tails are longest and shortest (two groups of rows have short tails
    along the line between them), and the skewness :math:`E\, |z|^2 z`.
    """
    square = np.einsum("ij,ij->i", z, z)
    far = z * (weight * square)[:, None]
    if len(z) < z.shape[1]:
        vectors = axes_of_few(z * np.sqrt(weight * square)[:, None])[1]
    else:
        vectors = np.linalg.eigh(far.T @ z)[1]
    along = z @ np.stack([vectors[:, 0], vectors[:, -1], far.sum(axis=0)], axis=1)
    return np.asarray(
        np.concatenate([along, (np.median(square) - square)[:, None]], axis=1) > 0.0, dtype=float
    )


def _em(kind: Covariance, rows: list[_Own], d: int) -> GaussianTheta | None:
    """Return the parts (2K, ...) of K components after a few passes; None if there is no M-step.

    Passes are over the rows of one component after another, M-steps are those of all.
    """
    if not rows:
        return None
    totals = np.stack([own.weight @ own.powers for own in rows])
    r = [_first(own.powers[:, 1 : 1 + d], own.weight) for own in rows]
    for done in range(FIRST + PASSES):
        ones = np.stack(  # (K, L, 1 + p)
            [(part * own.weight[:, None]).T @ own.powers for part, own in zip(r, rows, strict=True)]
        )
        parts = _m_step(kind, ones, totals[:, None] - ones, rows)
        if parts is None:
            return None
        phi = _phi(kind, parts).reshape(totals.shape[1], len(rows), -1, 2)
        if done == FIRST - 1:  # the best start is left
            bounds = [
                own.weight @ _log_sum(own.powers @ phi[:, k, :, 0], own.powers @ phi[:, k, :, 1])
                for k, own in enumerate(rows)
            ]
            best = np.argmax(bounds, axis=1)
            phi = phi[:, np.arange(len(rows)), best][:, :, None]
        r = [_share(own.powers @ (phi[:, k, :, 1] - phi[:, k, :, 0])) for k, own in enumerate(rows)]
    return parts


def _share(logits: Array) -> Array:
    """Return 1 / (1 + exp(logits)); limits keep exponentials of NumPy on their fast path."""
    np.clip(logits, -FAR, FAR, out=logits)
    np.exp(logits, out=logits)
    logits += 1.0
    return np.divide(1.0, logits, out=logits)


def _log_sum(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)), some times as fast as :func:`numpy.logaddexp`.

    >>> _log_sum(np.array([0.0, -1e9]), np.array([0.0, 0.0])).round(6)
    array([0.693147, 0.      ])
    """
    away = np.abs(a - b)
    np.minimum(away, FAR, out=away)
    np.exp(-away, out=away)
    away += 1.0
    return np.asarray(np.maximum(a, b) + np.log(away, out=away))


def _m_step(kind: Covariance, ones: Array, others: Array, rows: list[_Own]) -> GaussianTheta | None:
    """Return the parts (K·L·2, ...) of statistics (K, L, 1 + p) of the first and of the second parts."""
    s = np.stack([ones, others], axis=2)
    each, s = s.shape[1] * 2, s.reshape(-1, s.shape[-1])
    d = rows[0].d
    counts = np.maximum(s[:, 0], LEAST_SHARE)
    means = s[:, 1 : 1 + d] / counts[:, None]
    given = GaussianStatistics(counts, s[:, 1 : 1 + d], s[:, 1 + d :].reshape(kind.squares_shape(len(s), d)))
    no_prior = BoundPrior(np.zeros(d), 0.0, 0.0, kind.no_scale(d))
    found, rounding = kind.covariances(given, means, no_prior)
    shape = -1, *[1] * (found.ndim - 1)
    more = np.repeat([d / own.rows for own in rows], each).reshape(shape)
    weight = counts.reshape(shape)
    found = (weight * found + more * (np.eye(d) if found.ndim == 3 else 1.0)) / (weight + more)
    found += np.repeat([own.floor for own in rows], each, axis=0)
    factors = kind.factor(found, rounding)
    if factors is None:
        return None
    pairs = counts.reshape(-1, 2)
    return GaussianTheta((pairs / pairs.sum(axis=1, keepdims=True)).ravel(), means, found, factors)


def _phi(kind: Covariance, parts: GaussianTheta) -> Array:
    """Return the coefficients of T(z), (1 + p, 2L)."""
    found = kind.coefficients(parts.weights, parts.means, parts.precisions_cholesky)
    return np.concatenate([found.constant[None], found.phi])


def _placed(parts: GaussianTheta, mean: Array, factor: Array) -> tuple[Array, Array]:
    """Return means and covariances of parts in the coordinates of the data."""
    if factor.ndim == 2:
        back = np.linalg.inv(factor)
        return mean + parts.means @ back, back.T @ parts.covariances @ back
    return mean + parts.means / factor, parts.covariances / factor**2
