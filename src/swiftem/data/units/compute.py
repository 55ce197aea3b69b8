r"""E-steps by units of rows, wherever the units are.

A task returns the mean statistics of a unit and its mean log-likelihood: pure, by the same E-steps as rows in
memory, whatever the model. Rows of a memory are these statistics, (b, q), and a full pass is their weighted
mean, summed pairwise in the order of the units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.model import BoundModel
from swiftem.core.source import Batch
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.units.source import UnitSource
from swiftem.data.units.unit import Place, read_unit

__all__ = ["UnitCompute", "pairwise_sum"]


class _Task(NamedTuple):
    """Common arguments of all units of a pass.

    Attributes
    ----------
    bound : BoundModel
        The model, without its data.
    theta : Theta
        Parameters.
    placement : Placement
        Where and in which form E-steps are computed.
    reach : ndarray, shape (p,), or None
        Distance of the features of all rows from the centre; None if it is not known yet.
    """

    bound: BoundModel
    theta: Theta
    placement: Placement
    reach: Array | None


class _UnitSums(NamedTuple):
    """Mean statistics of a unit (q,), its mean log-likelihood, and its extent if that was not known."""

    s: Array
    log_likelihood: float
    extent: tuple[Array, float] | None


def _unit_sums(task: _Task, unit: Any, weight: Any, where: Place, base: float) -> _UnitSums:
    """Return the results of a unit at θ; ``base`` is its mean of log h(y), if the reach is known."""
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows were left out"
    compute = task.bound.compute(source, task.placement)
    if task.reach is not None:
        compute.set_extent(task.reach, base)
    s = compute.full(task.theta)
    log_likelihood = float(task.bound.penalty(task.theta) - compute.objective(task.theta))
    return _UnitSums(s, log_likelihood, compute.extent() if task.reach is None else None)


def pairwise_sum(parts: Array) -> Array:
    """Return the sum of rows (k, q) over the first axis, pairwise: rounding grows with log k.

    >>> pairwise_sum(np.array([[1.0], [2.0], [4.0]]))
    array([7.])
    """
    while len(parts) > 1:
        odd = parts[-1:] if len(parts) % 2 else parts[:0]
        parts = np.concatenate([parts[:-1:2] + parts[1::2], odd])
    return np.asarray(parts[0])


class UnitCompute(Compute):
    """E-steps of a bound model on units: ``n`` is their number, rows are their statistics.

    Parameters
    ----------
    model : BoundModel
        The model, bound to a sample of the rows.
    source : UnitSource
        The units.
    placement : Placement
        Where and in which form tasks compute.
    """

    _source: UnitSource

    def __init__(self, model: BoundModel, source: UnitSource, placement: Placement) -> None:
        super().__init__(model, source, placement)
        rows: Any = model
        # Tasks need neither the sample nor its size: they get the model bound to one row.
        self._task_model = replace(rows, source=ArraySource(np.zeros((1, len(source.mean)))))
        self._last: tuple[Theta, Array] | None = None
        self._extents: dict[int, tuple[Array, float]] = {}

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        numbers, place = np.unique(batch.index, return_inverse=True)
        reach = None
        if len(self._extents) == self.n:
            reach = np.max([extent[0] for extent in self._extents.values()], axis=0)
        work = [
            (*self._source.work[number], 0.0 if reach is None else self._extents[number][1])
            for number in numbers
        ]
        task = _Task(self._task_model, theta, self.placement, reach)
        sums: list[_UnitSums] = self._source.pool.map(
            _unit_sums, task, work, name="e-step", check=self._between_blocks
        )
        for number, unit in zip(numbers, sums, strict=True):
            if unit.extent is not None:
                self._extents[number] = unit.extent
        log_likelihood = np.array([unit.log_likelihood for unit in sums])
        if len(numbers) == self.n:
            self._last = theta, log_likelihood
        return np.array([unit.s for unit in sums])[place], log_likelihood[place]

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return pairwise_sum(rows * weight[:, None])

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._last is None or self._last[0] is not theta:
            self._posterior(self._source.take(np.arange(self.n)), theta)
        assert self._last is not None
        mean = float(pairwise_sum((self._last[1] * self._source.weight)[:, None])[0])
        return self._model.penalty(theta) - mean / self._source.total_weight

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Raise TypeError: values of single rows stay where the rows are."""
        raise TypeError(
            "data must be an array, a file or a Dask collection for values of each row, got units."
        )
