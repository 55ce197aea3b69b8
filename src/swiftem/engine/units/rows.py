r"""E-steps by units of rows, wherever the units are.

A task returns the mean statistics of a unit and its mean log-likelihood: pure, by the same E-steps as rows in
memory, whatever the model. Rows of the expectation are these statistics, (b, q), and a full pass is their
weighted mean, summed pairwise in the order of the units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.source import Batch, Source
from swiftem.data.units.unit import DATA, Place, read_unit
from swiftem.data.units.unit_source import UnitSource
from swiftem.engine.expectation import Evaluation, Expectation, choose_expectation
from swiftem.models.gaussian_mixture import GaussianMixtureModel
from swiftem.models.mixture import MixtureModel
from swiftem.models.model import BoundModel, Model
from swiftem.models.rows import check_extent, check_seen

__all__ = [
    "UnitExpectation",
    "UnitSums",
    "UnitTask",
    "bind_units",
    "compile_passes",
    "pairwise_sum",
    "unit_statistics",
]


class UnitTask(NamedTuple):
    """Common arguments of all units of a pass.

    Attributes
    ----------
    bound : BoundModel
        The model, without its data.
    theta : Theta
        Parameters.
    kernels : str
        As in :class:`swiftem.problem.Problem`.
    reach : ndarray, shape (p,), or None
        Distance of the features of all rows from the centre; None if it is not known yet.
    """

    bound: Any
    theta: Theta
    kernels: str
    reach: Array | None = None


class UnitSums(NamedTuple):
    """Result for a unit.

    Attributes
    ----------
    s : ndarray, shape (q,)
        Mean statistics.
    log_likelihood : float
        Mean log-likelihood.
    known : tuple or None
        Reach of the rows (p,), and their mean log h(y), if these were not known: they are the same for all θ.
    """

    s: Array
    log_likelihood: float
    known: tuple[Array, float] | None


def unit_statistics(given: UnitTask, unit: Any, weight: Any, where: Place, base: float | None) -> UnitSums:
    """Return the mean statistics of a unit at θ, and its mean log-likelihood.

    ``base`` is the mean of log h(y), if it is known.
    """
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows were left out"
    e_step: Any = choose_expectation(given.kernels, given.bound, source)
    has_reach = hasattr(e_step, "reach")
    if has_reach and given.reach is not None:
        e_step.reach, e_step.base = given.reach, base
    s = e_step.full(given.theta)
    log_likelihood = float(given.bound.penalty(given.theta) - e_step.objective(given.theta))
    is_new = has_reach and given.reach is None
    return UnitSums(s, log_likelihood, (e_step.reach, e_step.mean_base()) if is_new else None)


def compile_passes() -> None:
    """Compile the passes of mixtures: by one over a few rows."""
    source = ArraySource(np.arange(12.0).reshape(6, 2) % 5.0)
    bound = GaussianMixtureModel(2, covariance="full").bind(source)
    theta = bound.initial_theta(np.random.default_rng(0))
    unit_statistics(UnitTask(bound, theta, "auto"), source.y, None, DATA, None)


def _features_mean(model: MixtureModel, unit: Any, weight: Any, where: Place) -> Array:
    """Return the mean features of a unit."""
    source = read_unit(unit, weight, where)
    assert source is not None, "units without rows were left out"
    return model.middle(source)


def bind_units(model: Model, source: UnitSource) -> BoundModel:
    """Return a model bound to units: about the mean of all rows, with a sample of them for starts.

    The weights of the sample are scaled so that they sum to those of all rows, which priors depend on.
    """
    check_extent(source.largest, source.dtype)
    if hasattr(source, "n_words") or not hasattr(model, "n_components"):
        raise TypeError(f"model must be a mixture for data in units, got {type(model).__name__}.")
    if source.masses is not None:
        check_seen(source.masses > 0.0)
    some = source.some
    weight = np.ones(some.n) if some.weight is None else some.weight
    weight = weight * (source.total_weight / weight.sum())
    rows = ArraySource(some.y, weight, allow_missing=source.masses is not None)
    centre = source.mean
    if isinstance(model, MixtureModel):
        model = model.learnt(source)
        means = source.pool.map(_features_mean, model, source.work, name="features-of")
        centre = source.weight @ np.array(means) / source.total_weight
    elif isinstance(model, GaussianMixtureModel) and source.masses is not None:
        model = model.with_holes()
    bound: BoundModel = model.bind(rows, centre=centre)  # type: ignore[call-arg]
    return bound


def pairwise_sum(parts: Array) -> Array:
    """Return the sum of rows (k, q) over the first axis, pairwise: rounding grows with log k.

    >>> pairwise_sum(np.array([[1.0], [2.0], [4.0]]))
    array([7.])
    """
    while len(parts) > 1:
        odd = parts[-1:] if len(parts) % 2 else parts[:0]
        parts = np.concatenate([parts[:-1:2] + parts[1::2], odd])
    return np.asarray(parts[0])


class UnitExpectation(Expectation):
    """As :class:`Expectation`, of units: ``n`` is their number, rows are their statistics."""

    def __init__(self, model: BoundModel, source: Source, kernels: str) -> None:
        super().__init__(model, source)
        assert isinstance(source, UnitSource)
        self._units, self._kernels = source, kernels
        rows: Any = model
        # Tasks need neither the sample nor its size: they get the model bound to one row.
        self._task_model = replace(rows, source=ArraySource(np.zeros((1, len(source.mean)))))
        self._last: tuple[Theta, Array] | None = None
        self._known: list[tuple[Array, float] | None] = [None] * source.n
        if kernels == "auto":
            source.pool.equip(compile_passes)

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        numbers, place = np.unique(batch.index, return_inverse=True)
        known = [item for item in self._known if item is not None]
        reach = np.max([item[0] for item in known], axis=0) if len(known) == self.n else None
        work = [
            (*self._units.work[number], None if reach is None else known[number][1]) for number in numbers
        ]
        found: list[UnitSums] = self._units.pool.map(
            unit_statistics, UnitTask(self._task_model, theta, self._kernels, reach), work,
            name="e-step", check=self._between_blocks,
        )  # fmt: skip
        for number, one in zip(numbers, found, strict=True):
            self._known[number] = one.known or self._known[number]
        log_likelihood = np.array([one.log_likelihood for one in found])
        if len(numbers) == self.n:
            self._last = theta, log_likelihood
        return np.array([one.s for one in found])[place], log_likelihood[place]

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return pairwise_sum(rows * weight[:, None])

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._last is None or self._last[0] is not theta:
            self._posterior(self._units.take(np.arange(self.n)), theta)
        assert self._last is not None
        mean = float(pairwise_sum((self._last[1] * self._units.weight)[:, None])[0])
        return self._model.penalty(theta) - mean / self._units.total_weight

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Raise TypeError: values of single rows stay where the rows are."""
        raise TypeError(
            "data must be an array, a file or a Dask collection for values of each row, got units."
        )
