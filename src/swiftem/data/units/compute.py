r"""E-steps by units of rows, wherever the units are.

A task returns the mean statistics of a unit and its mean log-likelihood: pure, by the same E-steps as rows in
memory, whatever the model. Rows of a memory are these statistics, (b, q), and a full pass is their weighted
mean, summed pairwise in the order of the units.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.model import BoundModel
from swiftem.core.source import Batch
from swiftem.core.types import Array, Index, Theta
from swiftem.data.array import ArraySource
from swiftem.data.units.source import UnitSource


def _unit_sums(
    bound: BoundModel,
    theta: Theta,
    placement: Placement,
    reach: Array | None,
    source: ArraySource,
    base: float,
) -> tuple[Array, float, tuple[Array, float] | None]:
    """Return the results of a unit at θ.

    Parameters
    ----------
    bound : BoundModel
        The model, without its data.
    theta : Theta
        Parameters.
    placement : Placement
        Where and in which form E-steps are computed.
    reach : ndarray, shape (p,), or None
        Distance of the features of all rows from the centre; None if it is not known yet.
    source : ArraySource
        The rows of the unit.
    base : float
        Their mean of log h(y), if the reach is known.

    Returns
    -------
    s, log_likelihood : ndarray, shape (q,), and float
        Means over the rows.
    extent : tuple or None
        Reach and base of the rows, if the reach is not known.
    """
    compute = bound.compute(source, placement)
    if reach is not None:
        compute.set_extent(reach, base)
    s = compute.full(theta)
    log_likelihood = float(bound.penalty(theta) - compute.objective(theta))
    return s, log_likelihood, compute.extent() if reach is None else None


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
        self.row_length = model.size  # rows are statistics
        self._extents: dict[int, tuple[Array, float]] = {}

    @cached_property
    def _task_model(self) -> BoundModel:
        """The model bound to one row: tasks need neither the sample nor its size."""
        one_row = ArraySource(np.zeros((1, len(self._source.mean))))
        return replace(self._model, source=one_row)  # type: ignore[type-var]

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        numbers, place = np.unique(batch.index, return_inverse=True)
        sums = self._sums(numbers, theta)
        return np.array([s for s, _ in sums])[place], np.array([value for _, value in sums])[place]

    def _sums(self, numbers: Index, theta: Theta) -> list[tuple[Array, float]]:
        """Return mean statistics (q,) and log-likelihoods of units."""
        reach = None
        if len(self._extents) == self.n:
            reach = np.max([extent[0] for extent in self._extents.values()], axis=0)
        work = [(number, 0.0 if reach is None else self._extents[number][1]) for number in numbers]
        task = partial(_unit_sums, self._task_model, theta, self.placement, reach)
        sums = self._source.units.map(task, work, check=self._between_blocks)
        for number, (_, _, extent) in zip(numbers, sums, strict=True):
            if extent is not None:
                self._extents[number] = extent
        return [(s, log_likelihood) for s, log_likelihood, _ in sums]

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return pairwise_sum(rows * weight[:, None])

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Raise TypeError: values of single rows stay where the rows are."""
        raise TypeError(
            "data must be an array, a file or a Dask collection for values of each row, got units."
        )
