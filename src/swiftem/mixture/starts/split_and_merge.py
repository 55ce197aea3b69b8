r"""Split-and-merge moves (Ueda et al. 2000): two components are merged, and another one is split.

A fit in a poor optimum has two components for the rows of one, and one for the rows of two; em does not leave
it. What a split gains and a merge costs is computed on the rows of the components concerned. With the
responsibilities r of θ, two parts :math:`g_1, g_2` with shares p instead of one density g of component k gain

.. math:: \sum_i r_{ik} \log \frac{p_1 g_1(y_i) + p_2 g_2(y_i)}{g(y_i)},

and em on the rows weighted by :math:`r_{ik}` increases it: a few passes over 1/M of the rows with two
components, instead of over all rows with M. In the same way, one density g instead of components a and b
costs

.. math:: \sum_i (r_{ia} + r_{ib}) \log \frac{w_a g_a(y_i) + w_b g_b(y_i)}{(w_a + w_b)\, g(y_i)}.

Both sums are computed on held-out rows, so that parts which only fit noise gain nothing. Merges are of pairs
whose responsibilities overlap most. Statistics are linear: those of a merged component are a sum, those of
all components together give θ by one M-step, whatever the family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.core.source import Batch
from swiftem.core.types import Array, Rows, Theta
from swiftem.data.array import ArraySource
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.compute.batched import BatchedCompute, is_batchable, m_steps, passes_alone
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.settings import NUMBERS

ENTRIES = 1 << 22
"""Maximum number of responsibilities, and of entries of T(y), that splits and merges are computed from."""
FLAT = 1e-12
"""Share of the largest eigenvalue below which another one is zero up to rounding."""


class Parts(NamedTuple):
    """Component ``k`` in two parts: their statistics (2, q / M), and their ``gain`` per held-out row."""

    k: int
    gain: float
    statistics: Array


class Move(NamedTuple):
    """Parameters after one or several moves of different components, and how many these are."""

    theta: Theta
    number: int


class Anatomy:
    """The rows of each component of a mixture, by their responsibilities.

    Parameters
    ----------
    problem : Problem
        Model and rows; missing cells are replaced by their conditional means.
    theta : NamedTuple
        The parameters.
    """

    def __init__(self, problem: Problem, theta: Theta) -> None:
        bound, source = problem.bound, problem.source
        most = ENTRIES // max(bound.n_components, bound.size // bound.n_components)
        batch = source.take(np.arange(min(source.n, most)))
        rows, self.log_likelihood = bound.posterior(batch, theta)
        if isinstance(bound, BoundGaussians) and bound.model.has_holes:
            y = bound.imputed(batch.y, rows[:, : bound.n_components], theta, None)
            bound = replace(bound, model=replace(bound.model, has_holes=False))
            batch, rows = batch._replace(y=y), rows[:, : bound.n_components]
        self.bound, self.batch, self._rows = bound, batch, rows
        self.r = rows[:, : bound.n_components]

    def gain_of(self, statistics: Array) -> float:
        """Return the gain per row by other components of these statistics, (M', q / M)."""
        theta = theta_of(self.bound, statistics)
        if theta is None:
            return -inf
        bound = self.bound.of_components(len(statistics))
        gains = bound.posterior(self.batch, theta)[1] - self.log_likelihood
        return float(np.average(gains, weights=self.batch.weight))

    def rows_of(self, *components: int) -> tuple[Batch, Array, Array]:
        """Return rows weighted by their responsibilities of components, these, and log-likelihoods."""
        r = self.r[:, components].sum(axis=1)
        own = np.flatnonzero(r > NUMBERS.ignored)
        batch = self.batch
        return Batch(batch.y[own], batch.weight[own] * r[own], own), r[own], self.log_likelihood[own]

    @cached_property
    def statistics(self) -> Array:
        """Return the statistics of each component alone, (M, q / M)."""
        one, count = self.bound.of_components(1), self.bound.n_components
        total = self.batch.weight.sum()
        found = [one.statistics(self.batch, self._rows[:, k::count], self.batch.weight) for k in range(count)]
        return np.asarray(np.array(found) / total)


def theta_of(bound: BoundComponents, statistics: Array) -> Theta | None:
    """Return the M-step of the statistics of components (M, q / M), or None outside the domain."""
    whole = bound.of_components(len(statistics))
    return whole.solve(_joined(whole, statistics))


def _joined(whole: BoundComponents, statistics: Array) -> Array:
    """Return the statistics of a mixture by the ones of each component alone, (M, q / M)."""
    s = np.zeros(whole.size)
    one, parts = whole.of_components(1), whole.split(s)
    for m, own in enumerate(statistics):
        for place, (all_of, part) in enumerate(zip(parts, one.split(own), strict=True)):
            if place == 2 and whole.shares_products:
                all_of += part
            elif all_of is not None:
                all_of[m] = part[0]
    return s


def split_parts(seen: Anatomy, held: Anatomy) -> list[Parts]:
    """Return each component in two parts, best first; without those that have too few rows.

    Parameters
    ----------
    seen, held : Anatomy
        Rows that the parts are fitted to, and rows on which their gain is computed.
    """
    two, total, found = seen.bound.of_components(2), held.batch.weight.sum(), []
    for k, theta, parts in _in_two(seen):
        if seen.bound.shares_products:  # a split changes the covariance of all
            gain = held.gain_of(np.concatenate([np.delete(seen.statistics, k, axis=0), parts]))
        else:
            near, r, log_likelihood = held.rows_of(k)
            gains = two.posterior(near, theta)[1] + np.log(seen.statistics[k, 0] / r) - log_likelihood
            gain = float(near.weight @ gains) / total
        found.append(Parts(k, gain, parts))
    return sorted(found, key=lambda parts: -parts.gain)


def _in_two(seen: Anatomy) -> Iterator[tuple[int, Theta, Array]]:
    """Yield components, the parameters of their two parts, and the statistics of these, (2, q / M).

    Parts are shrunk towards the whole as by as many rows as there are columns. Passes are over the rows of
    one component after another, M-steps are those of all.
    """
    one, two = seen.bound.of_components(1), seen.bound.of_components(2)
    own, first = [], []
    for k, statistics in enumerate(seen.statistics):
        batch = seen.rows_of(k)[0]
        if len(batch.y) < NUMBERS.least_split:
            continue
        y, total = batch.y.reshape(len(batch.y), -1), batch.weight.sum()
        more = min(y.shape[1] / total, 0.5) * statistics / statistics[0]
        further = _joined(two, np.stack([more, more]))
        whole = two.solve(further)
        if whole is None:
            continue
        own.append((k, batch._replace(y=y, index=np.arange(len(y))), whole, more, further))
        for part in _partitions(two.for_start(y), batch.weight).T:
            rows = two.start_rows(np.stack([part, 1.0 - part], axis=1), batch)
            first.append(two.statistics(batch, rows, batch.weight) / total)
    if not own:
        return
    passes = _passes_over([batch for _, batch, *_ in own], two)
    further = np.stack([found for *_, found in own])[:, None]
    s = np.array(first).reshape(len(own), -1, two.size)
    for number in range(NUMBERS.short):
        solved = m_steps(two, (s + further).reshape(-1, two.size))
        thetas = [own[k // s.shape[1]][2] if theta is None else theta for k, theta in enumerate(solved)]
        found, objectives = passes(thetas)
        s = found.reshape(s.shape)
        if number == NUMBERS.short // 2 - 1:
            s = s[np.arange(len(own)), objectives.reshape(len(own), -1).argmin(axis=1)][:, None]
    for (k, batch, _, more, _), theta, flat in zip(own, thetas, s[:, 0], strict=True):
        if two.shares_products:
            r = two.posterior(batch, theta)[0]
            parts = np.array([one.statistics(batch, r[:, part::2], batch.weight) for part in range(2)])
            parts /= batch.weight.sum()
        else:
            parts = two.apart(flat)
        share = more[0]
        yield k, theta, seen.statistics[k, 0] * (parts + more) / (1.0 + 2.0 * share)


def _passes_over(
    groups: Sequence[Batch], bound: BoundComponents
) -> Callable[[Sequence[Theta]], tuple[Array, Array]]:
    """Return passes of mixtures, as many over each group of rows."""

    def problem_of(batches: Sequence[Batch]) -> Problem:
        y, weight = (np.concatenate(parts) for parts in list(zip(*batches, strict=True))[:2])
        source = ArraySource(y, weight, allow_missing=bool(np.isnan(y).any()))
        own = replace(bound, source=source)
        return Problem(bound.model, source, bound=own, placement=Placement(form="numpy"))

    whole = problem_of(groups)
    if is_batchable(whole):
        return BatchedCompute(whole, ends=np.cumsum([len(batch.y) for batch in groups]).tolist()).passes
    each = [problem_of([batch]).compute for batch in groups]

    def passes(thetas: Sequence[Theta]) -> tuple[Array, Array]:
        pairs = zip(np.repeat(np.arange(len(each)), len(thetas) // len(each)), thetas, strict=True)
        found = [passes_alone(each[k], [theta]) for k, theta in pairs]
        return np.concatenate([s for s, _ in found]), np.concatenate([value for _, value in found])

    return passes


def _partitions(y: Rows, weight: Array) -> Array:
    r"""Return the first parts of several partitions of rows, (n, L), zeros and ones.

    These are rows on one side along three axes, and those closest to the mean. The axes are eigenvectors of
    :math:`E\, |z|^2 z z^T` of whitened rows, along which tails are longest and shortest (two groups of rows
    have short tails along the line between them), and the skewness :math:`E\, |z|^2 z`.
    """
    share, z = weight / weight.sum(), scaled_rows(y, weight, white=True)
    square = np.einsum("ij,ij->i", z, z)
    axes = axes_of(z * np.sqrt(share * square)[:, None])[1]
    skewness = (share * square) @ z
    along = z @ np.stack([axes[:, 0], axes[:, -1], skewness], axis=1)
    return np.asarray(
        np.concatenate([along, (np.median(square) - square)[:, None]], axis=1) > 0.0, dtype=float
    )


def scaled_rows(y: Rows, weight: Array | None = None, *, white: bool) -> Array:
    """Return centred rows (n, k) with columns of unit variance, or of unit covariance where they vary."""
    z = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    share = np.full(len(z), 1.0 / len(z)) if weight is None else weight / weight.sum()
    z = z - share @ z
    deviation = np.sqrt(share @ z**2)
    z /= np.where(deviation > 0.0, deviation, 1.0)
    if white:
        values, vectors = axes_of(z * np.sqrt(share)[:, None])
        varies = values > 1e-6 * values[-1]
        z = z @ (vectors[:, varies] / np.sqrt(values[varies])) if values[-1] > 0.0 else z
    return z


def axes_of(rows: Array) -> tuple[Array, Array]:
    """Return eigenvalues, ascending, and eigenvectors (d, k) of RᵀR for rows R (n, d).

    For fewer rows than columns they come from the n × n matrix RRᵀ, without the eigenvalues of zero.

    >>> values, vectors = axes_of(np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    >>> values, np.abs(vectors.T)
    (array([4., 9.]), array([[0., 0., 1.],
           [1., 0., 0.]]))
    """
    if len(rows) >= rows.shape[1]:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return values, vectors
    values, left = np.linalg.eigh(rows @ rows.T)
    extends = values > FLAT * values[-1]
    extends[-1] = True  # rows without any extent have an axis of zeros
    values, left = values[extends], left[:, extends]
    return values, rows.T @ left / np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))


def merge_costs(seen: Anatomy, held: Anatomy, most: int) -> list[tuple[float, tuple[int, int]]]:
    """Return what one component instead of a pair costs per held-out row, cheapest first.

    Parameters
    ----------
    seen, held : Anatomy
        Rows that give the merged component, and rows on which its cost is computed.
    most : int
        Maximum number of pairs: the ones whose responsibilities overlap most.
    """
    one, statistics, shares = seen.bound.of_components(1), seen.statistics, held.r.mean(axis=0)
    alike = seen.r / np.maximum(np.sqrt((seen.r**2).sum(axis=0)), np.finfo(np.float64).tiny)
    first, second = np.triu_indices(len(shares), 1)
    order = np.argsort(-(alike.T @ alike)[first, second], kind="stable")[:most]
    found = []
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        both = statistics[i] + statistics[j]
        if seen.bound.shares_products:
            cost = -held.gain_of(np.vstack([np.delete(statistics, [i, j], axis=0), both]))
            found.append((cost, (i, j)))
            continue
        theta = one.solve(both)
        if theta is None:
            continue
        near, r, log_likelihood = held.rows_of(i, j)
        lost = np.log(r / both[0]) + log_likelihood - one.posterior(near, theta)[1]
        found.append((float(near.weight @ lost) / held.batch.weight.sum(), (i, j)))
    return sorted(found)


def proposed_moves(
    seen: Problem, held: Problem, theta: Theta, most: int, least_gain: float = NUMBERS.tol
) -> tuple[list[Move], list[Move]]:
    """Return sets of moves that promise a gain, and single ones, best first.

    Parameters
    ----------
    seen, held : Problem
        Rows that components are fitted to, and rows on which gains and costs are computed.
    theta : NamedTuple
        The parameters.
    most : int
        Maximum number of single moves.
    least_gain : float
        The least gain of a split per held-out row; with less, no move is tried.
    """
    rows, others = Anatomy(seen, theta), Anatomy(held, theta)
    splits = split_parts(rows, others)
    if not (splits and splits[0].gain > least_gain):
        return [], []
    merges = merge_costs(rows, others, NUMBERS.pairs * rows.bound.n_components)
    at_once = _compatible(splits, merges, least_gain)
    sets = [at_once[:count] for count in dict.fromkeys((len(at_once), -(-len(at_once) // 2), 1)) if count]
    singles = [
        (split.gain - cost, split, pair)
        for cost, pair in merges[: NUMBERS.finalists]
        for split in splits[: NUMBERS.short]
        if split.k not in pair
    ]
    best = sorted(singles, key=lambda one: -one[0])[:most]
    statistics = rows.statistics

    def moved(chosen: Sequence[tuple[float, Parts, tuple[int, int]]]) -> list[Move]:
        made = theta_of(rows.bound, _moved(statistics, chosen))
        return [] if made is None else [Move(made, len(chosen))]

    return (
        [move for chosen in sets for move in moved(chosen)],
        [move for one in best if [one] not in sets for move in moved([one])],
    )


def _compatible(
    splits: list[Parts], merges: list[tuple[float, tuple[int, int]]], least: float
) -> list[tuple[float, Parts, tuple[int, int]]]:
    """Return moves of different components that promise a gain, best splits with cheapest merges."""
    used: set[int] = set()
    found = []
    for split in splits:
        free = ((cost, pair) for cost, pair in merges if split.k not in pair and used.isdisjoint(pair))
        cost, pair = next(free, (inf, (0, 0)))
        if split.k in used or split.gain - cost <= least:
            continue
        found.append((split.gain - cost, split, pair))
        used |= {split.k, *pair}
    return found


def _moved(statistics: Array, chosen: Sequence[tuple[float, Parts, tuple[int, int]]]) -> Array:
    """Return the statistics of components (M, q / M) after moves of different ones."""
    found = statistics.copy()
    for _, split, (i, j) in chosen:
        found[split.k], second = split.statistics
        found[i] += found[j]
        found[j] = second
    return found


def with_splits(problem: Problem, theta: Theta, count: int) -> Theta | None:
    """Return parameters with ``count`` components, by the best splits, and then by copies of the largest."""
    rows = Anatomy(problem, theta)
    statistics = rows.statistics
    for split in split_parts(rows, rows)[: count - len(statistics)]:
        statistics = np.concatenate([statistics, split.statistics[1:]])
        statistics[split.k] = split.statistics[0]
    while len(statistics) < count:
        largest = int(statistics[:, 0].argmax())
        statistics[largest] /= 2.0
        statistics = np.concatenate([statistics, statistics[largest : largest + 1]])
    return theta_of(rows.bound, statistics)
