"""Online EM on batches that come one after another, for ``partial_fit``."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.array_source import ArraySource
from swiftem.lanes.choose import choose_expectation
from swiftem.models import GaussianMixtureModel

__all__ = ["OnlineMixture"]

KEPT = 4096
"""Rows of the sample of what has been seen."""
REFIT_PASSES = 50
POWER = 2.0
"""Weight of a batch grows with this power of what has been seen before it."""


class OnlineMixture:
    r"""Running statistics, and a uniform sample of the rows seen so far.

    A batch of weight w, when W is the weight seen with it, moves the statistics by
    :math:`s \leftarrow s + \gamma (\bar s_{batch}(\theta) - s)`, γ = 1 − (1 − w/W)^(1+p), p = 2: every row counts
    with W^p of its time, so that what early batches said by poor parameters fades, and the order of the rows
    matters less with every pass.

    The first rows may be like no others, as where rows are sorted. Whenever twice as much has been seen as
    the last time, the mixture is fitted to the sample anew; it replaces the running one where it explains the
    sample better by more than its own number of parameters does. The sample is of bounded size, uniform over
    all rows seen whatever their order.

    Parameters
    ----------
    model : GaussianMixtureModel
        The model.
    seed : int
        For the sample.
    """

    def __init__(self, model: GaussianMixtureModel, seed: int) -> None:
        self.model = model
        self.n_batches = 0
        self.seen = 0.0
        self.bound = -np.inf
        self._rng = np.random.default_rng(seed)
        self._rows: Array | None = None
        self._weight = np.empty(0)
        self._keys = np.empty(0)
        self._refit_at = 0.0
        self._centre: Array | None = None
        self._s: Array | None = None

    def add(self, source: ArraySource, estimator: Any, theta: Theta | None) -> Theta:
        """Take one batch, and return θ; ``theta`` is the last one, None at first."""
        self._sample(source)
        if self._centre is None:
            y = np.asarray(source.y, dtype=np.float64)
            self._centre = y.mean(axis=0) if theta is None else theta.weights @ theta.means
        self.seen += source.total_weight
        if theta is not None:
            theta = self._step(source, theta)
        if theta is None or self.seen >= self._refit_at:
            theta = self._refit(estimator, theta)
            self._refit_at = 2.0 * self.seen
        self.n_batches += 1
        return theta

    def _step(self, source: ArraySource, theta: Theta) -> Theta:
        bound = self.model.bind(source, centre=self._centre)
        e_step = choose_expectation("auto", bound, source)
        proxy = e_step.full(theta)
        self.bound = -e_step.objective(theta)
        if self._s is None:
            self._s = proxy
        gamma = 1.0 - (1.0 - source.total_weight / self.seen) ** (1.0 + POWER)
        s = self._s + gamma * (proxy - self._s)
        if not bound.in_domain(s):
            return theta
        self._s = s
        return bound.m_step(s)  # type: ignore[no-any-return]

    def _refit(self, estimator: Any, theta: Theta | None) -> Theta:
        """Fit the sample anew, and take that where there is nothing yet or it is clearly better."""
        assert self._rows is not None
        rows = ArraySource(self._rows, self._weight)
        if theta is None and rows.n < self.model.n_components:
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.model.n_components}, n_samples = {rows.n}"
            )
        bound = self.model.bind(rows, centre=self._centre)
        candidate = estimator._fit_sample(self._rows, self._weight, REFIT_PASSES)
        e_step = choose_expectation("auto", bound, rows)
        s = e_step.full(candidate)
        found = -e_step.objective(candidate)
        if theta is not None and self._s is not None:
            allowed = estimator._n_parameters() / rows.n
            if found <= -e_step.objective(theta) + allowed:
                return theta
        self._s, self.bound = s, found
        return candidate  # type: ignore[no-any-return]

    def _sample(self, source: ArraySource) -> None:
        """Keep the rows with the largest keys u^(1/w): a sample in proportion to the weights, of any order."""
        y = np.asarray(source.y, dtype=np.float64)
        weight = np.ones(len(y)) if source.weight is None else source.weight
        keys = np.log(self._rng.random(len(y))) / weight
        rows = y if self._rows is None else np.concatenate([self._rows, y])
        keys = np.concatenate([self._keys, keys])
        if len(keys) > KEPT:
            kept = np.argpartition(keys, -KEPT)[-KEPT:]
            rows, keys = rows[kept], keys[kept]
        # Drawn in proportion to the weights, the rows of the sample count alike; while all are kept, they do not.
        weights = np.concatenate([self._weight, weight])
        self._weight = weights if len(weights) <= KEPT else np.ones(len(keys))
        self._rows, self._keys = rows, keys
