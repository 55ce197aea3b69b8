"""Online EM on successive batches, for ``partial_fit``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.core.schedules import Schedule
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.model import MixtureModel
from swiftem.mixture.resolve import kernels_for

KEPT, MOST_KEPT, PER_PARAMETER = 4096, 32_768, 8
"""Size of the sample of rows: minimum, maximum, and rows per estimated number."""
MOST_NUMBERS = 1 << 24
"""Maximum number of cells of the sample: with many columns it has fewer rows."""
POWER = 2.0
"""In a stream from scratch the weight of a row grows with this power of the total weight before it."""

AnyMixtureModel: TypeAlias = GaussianMixtureModel | MixtureModel
FitRows = Callable[[ArraySource, Theta | None], Theta]
"""Fits a few rows: from a new start, or from given parameters."""


class Past(NamedTuple):
    """What ``fit`` stores for a later ``partial_fit``: statistics, their centre, and the rows' weight."""

    s: Array | None
    centre: Array
    weight: float


@dataclass(frozen=True)
class Reservoir:
    r"""Weighted sample: the rows with the smallest ranks :math:`e_i / w_i`, :math:`e_i \sim \mathrm{Exp}(1)`.

    Let τ be the smallest rank left out, ∞ while all rows are kept. Given the other rows' ranks, row i is
    kept with probability :math:`1 - e^{-w_i \tau}`. With weight :math:`w_i / (1 - e^{-w_i \tau})`, the
    sample's sums are unbiased for sums of all rows (Cohen and Kaplan, 2007). Heavy rows, which are almost
    surely kept, then keep their own weight, and light ones all have the same.

    Attributes
    ----------
    size : int
        Maximum number of rows.
    rows : ndarray, shape (k, d)
        The sample.
    weight, rank : ndarray, shape (k,)
        Weights and ranks of its rows.
    threshold : float
        τ.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sample = Reservoir.empty(2, d=1).add(np.array([[1.0], [2.0]]), np.array([1.0, 3.0]), rng)
    >>> sample.weights()
    array([1., 3.])
    >>> sample = sample.add(np.arange(98.0)[:, None], np.ones(98), rng)
    >>> sample.rows.shape
    (2, 1)
    """

    size: int
    rows: Array
    weight: Array
    rank: Array
    threshold: float = inf

    @classmethod
    def empty(cls, size: int, d: int) -> Reservoir:
        """Return an empty sample."""
        return cls(size, np.empty((0, d)), np.empty(0), np.empty(0))

    def add(self, rows: NDArray[Any], weight: Array | None, rng: np.random.Generator) -> Reservoir:
        """Return the sample after rows (b, d) of positive weights (b,), or 1, are added, in new arrays."""
        weight = np.ones(len(rows)) if weight is None else weight
        rank = rng.exponential(size=len(rows)) / weight
        enters = rank < self.threshold
        left_out = float(rank[~enters].min(initial=inf))
        threshold = min(self.threshold, left_out)
        if not enters.any():
            return self
        all_rows = np.concatenate([self.rows, np.asarray(rows[enters], dtype=np.float64)])
        all_weight = np.concatenate([self.weight, weight[enters]])
        all_rank = np.concatenate([self.rank, rank[enters]])
        if len(all_rank) > self.size:
            order = np.argpartition(all_rank, self.size)
            threshold = min(threshold, float(all_rank[order[self.size]]))
            kept = np.sort(order[: self.size])
            all_rows, all_weight, all_rank = all_rows[kept], all_weight[kept], all_rank[kept]
        return replace(self, rows=all_rows, weight=all_weight, rank=all_rank, threshold=threshold)

    def weights(self) -> Array:
        """Return the weights (k,) with which the sample represents all rows seen."""
        if self.threshold == inf:
            return self.weight
        return self.weight / -np.expm1(-self.weight * self.threshold)


@dataclass(frozen=True)
class OnlineMixture:
    r"""Running statistics, and a sample of the rows seen so far.

    A batch of weight w moves the statistics by :math:`s \leftarrow s + \gamma (\bar s_{batch}(\theta) - s)`,
    γ = 1 − (1 − w/W)^(1+p), p = 2, where W is the total weight including the batch. A row seen at total
    weight W thus counts with W^p, however the rows are divided into batches and whatever their weights: the
    share of the batch is :math:`\int_{W-w}^W x^p dx / \int_0^W x^p dx`. Contributions of early batches, made
    with poor parameters, fade as W^(−1−p). The influence of the order of the rows falls as 1/passes. After a
    fit p = 0 and γ = w/W: every row counts once, also each row of the fit. A method with a ``step_size`` of
    its own gives γ instead, and the sample, which represents all rows, is not fitted.

    The first rows may differ from all others, for example if rows are sorted, and online EM does not leave
    the neighbourhood of its start. Therefore the sample is fitted twice whenever the total weight has
    doubled: from a new start and from the running parameters. The running mixture moves to the better one
    if it lags behind by more than its number of parameters explains: to the first only if that is better
    than the second by more than noise. The sample has a bounded size and represents all rows seen, whatever
    their order and weights (:class:`Reservoir`).

    Attributes
    ----------
    model : Model
        The model.
    centre : ndarray, shape (p,)
        Centre of the statistics.
    s : ndarray, shape (q,)
        The running statistics.
    seen : float
        Total weight of all rows so far.
    sample : Reservoir
        Sample of these rows.
    rng : Generator
        Generator for the sample.
    refit_at : float
        Total weight at which the sample is fitted again.
    bound : float
        Minus the objective of the last batch, before its update.
    n_batches : int
        Number of batches so far.
    power : float
        p.
    """

    model: AnyMixtureModel
    centre: Array
    s: Array
    seen: float
    sample: Reservoir
    rng: np.random.Generator
    refit_at: float
    bound: float = -inf
    n_batches: int = 0
    power: float = POWER

    @classmethod
    def begin(
        cls, model: AnyMixtureModel, source: ArraySource, fit_rows: FitRows, rng: np.random.Generator
    ) -> tuple[OnlineMixture, Theta]:
        """Return the state after a first batch, which is fitted as a whole."""
        theta = fit_rows(source, None)
        bound = model.bind(source)
        e_step, seen = _problem(bound).compute, source.total_weight
        s = e_step.full(theta)
        sample = Reservoir.empty(_kept(bound), bound.d).add(source.y, source.weight, rng)
        about, value = bound.about, -e_step.objective(theta)
        return cls(bound.model, about, s, seen, sample, rng, 2.0 * seen, value, 1), theta

    @classmethod
    def go_on(
        cls, model: AnyMixtureModel, theta: Theta, d: int, past: Past, rng: np.random.Generator
    ) -> OnlineMixture:
        """Return the state after a fit; its sample is drawn from the mixture.

        If the weight of its rows is zero, the parameters are only a start.
        """
        s, centre, seen = past
        if len(centre) != model.width(d) or (s is not None and len(s) != model.size(d)):
            model = model.with_holes()
        bound: BoundComponents = model.bind(ArraySource(np.zeros((1, d))), centre=centre)
        size = _kept(bound)
        sample = Reservoir.empty(size, d)
        if s is None or not seen > 0.0:
            return cls(model, centre, np.empty(0), 0.0, sample, rng, 0.0)
        labels = rng.choice(bound.n_components, size=size, p=theta.weights / theta.weights.sum())
        rows = bound.draw(theta, labels, rng, s)
        sample = sample.add(rows, np.full(size, seen / size), rng)
        return cls(model, centre, s, seen, sample, rng, 2.0 * seen, power=0.0)

    def add(
        self, source: ArraySource, theta: Theta, fit_rows: FitRows, step: Schedule | None = None
    ) -> tuple[OnlineMixture, Theta]:
        """Return the state after one more batch; ``theta`` are the current parameters.

        ``step`` maps k = 1, 2, ..., the number of the batch, to γ; None for the rule of this class.
        """
        if source.has_missing and not self.model.has_holes:
            return self._widened().add(source, theta, fit_rows, step)
        seen = self.seen + source.total_weight
        bound = self._bind(source, seen)
        e_step = _problem(bound).compute
        proxy = e_step.full(theta)
        now = replace(
            self,
            seen=seen,
            bound=-e_step.objective(theta),
            n_batches=self.n_batches + 1,
            sample=self.sample.add(source.y, source.weight, self.rng),
        )
        gamma = 1.0 - (1.0 - source.total_weight / seen) ** (1.0 + self.power)
        if step is not None:
            gamma = float(step(now.n_batches))
        s = self.s + gamma * (proxy - self.s) if gamma < 1.0 and len(self.s) else proxy
        if bound.in_domain(s):
            now, theta = replace(now, s=s), bound.m_step(s)
        is_due = seen >= self.refit_at and (step is None or not len(self.s))
        return now._looked(theta, fit_rows) if is_due else (now, theta)

    def _widened(self) -> OnlineMixture:
        """Return the state in the form for rows with missing cells, after complete rows."""
        model = self.model.with_holes()
        s, centre = model.widened(self.s, self.centre)
        return replace(self, model=model, s=s, centre=centre)

    def _looked(self, theta: Theta, fit_rows: FitRows) -> tuple[OnlineMixture, Theta]:
        """Fit the sample, and move to its parameters if they are better."""
        now = replace(self, refit_at=2.0 * self.seen)
        weight = self.sample.weights()
        rows = ArraySource(self.sample.rows, weight, allow_missing=True)
        if rows.n < self.model.n_components:
            return now, theta
        bound = self._bind(rows, self.seen)
        e_step = _problem(bound).compute
        try:
            fresh, near = fit_rows(rows, None), fit_rows(rows, theta)
        except ValueError:  # for example if all rows are equal: there is nothing better
            if not len(self.s):
                raise
            return now, theta
        share = weight / weight.sum()
        found = [e_step.evaluate(at).log_likelihood for at in (fresh, near, theta)]
        if_fresh, if_near, now_is = (
            bound.penalty(at) - float(share @ values)
            for at, values in zip((fresh, near, theta), found, strict=True)
        )
        change = found[0] - found[1]
        error = sqrt(float(share**2 @ (change - share @ change) ** 2))
        by_parameters = now_is - bound.size * float(share @ share)
        if if_fresh < min(if_near - error, by_parameters):
            theta = fresh
        elif if_near < by_parameters:
            theta = near
        elif len(self.s):
            return now, theta
        return replace(now, s=e_step.full(theta)), theta

    def _bind(self, source: ArraySource, seen: float) -> BoundComponents:
        """Return the model for a batch, its prior divided by the weight of all rows seen."""
        bound: BoundComponents = self.model.bind(source, centre=self.centre)
        return bound.with_share(source.total_weight / seen)


def _problem(bound: BoundComponents) -> Problem:
    """Return the problem of a batch, with the kernels for its size."""
    placement = Placement.named(kernels_for(bound.source.n, bound.size))
    return Problem(bound.model, bound.source, bound=bound, placement=placement)


def _kept(bound: BoundComponents) -> int:
    """Return the size of the sample: enough rows to estimate the parameters, if memory allows it."""
    rows = max(KEPT, min(PER_PARAMETER * bound.size, MOST_KEPT))
    return min(rows, max(MOST_NUMBERS // bound.d, bound.n_components))
