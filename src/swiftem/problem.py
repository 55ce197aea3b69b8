"""A problem: a model bound to its data, with everything that runs and passes share."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import check_int
from swiftem.arguments import check_model
from swiftem.budget import Budget, statistics_of
from swiftem.data.as_source import as_source
from swiftem.data.draws import BlockDraws, Draws, Entropy, GivenDraws, SeededDraws
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.engine.expectation import BLOCK, Expectation, choose_expectation
from swiftem.methods.method import Method
from swiftem.models.documents import BoundDocuments
from swiftem.models.model import BoundModel, Model
from swiftem.termination import RandomTermination

__all__ = ["Problem", "check_access"]

NO_LIMIT = Budget()


class Problem:
    """A model bound to its data once: binding may read all data, for their mean.

    Parameters
    ----------
    model : Model
        The model.
    source : Source
        The data.
    bound : BoundModel, optional
        The model for these data, if it is already bound, for example with a known centre.
    kernels : {"auto", "reference", "numpy"} or str
        As in :func:`swiftem.run`; "numpy": passes of mixtures, which must be small, compile nothing;
        "torch:cuda:0": passes on that device.
    budget : Budget
        Memory budget of the runs.

    Examples
    --------
    >>> from swiftem import models
    >>> from swiftem.problem import Problem
    >>> model = models.GaussianMixtureModel(1, delta=0.0, epsilon=0.0)
    >>> problem = Problem.read(model, [0.0, 2.0])
    >>> problem.e_step.full(model.theta(means=[[1.0]]))
    array([1., 1.])
    """

    def __init__(
        self, model: Model, source: Source, *, bound: BoundModel | None = None, kernels: str = "auto",
        budget: Budget = NO_LIMIT,
    ) -> None:  # fmt: skip
        self.model, self.source, self.kernels, self.budget = model, source, kernels, budget
        # Any kind, as an estimator uses more of its own bound model than the contract has.
        self.bound: Any = _bind(model, source) if bound is None else bound
        self._of_thread = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _of_thread=threading.local())

    @classmethod
    def read(cls, model: Model, data: Any, sample_weight: ArrayLike | None = None) -> Problem:
        """Return the problem of model and data as in :func:`swiftem.run`; data may already be one."""
        if isinstance(data, Problem):
            if data.model is not model or sample_weight is not None:
                raise ValueError("model and sample_weight must be those of the problem.")
            return data
        check_model(model)
        allow_missing = getattr(model, "missing", "error") == "ignore"
        return cls(model, as_source(data, sample_weight, allow_missing=allow_missing))

    def on(self, rows: Source) -> Problem:
        """Return the problem of the same bound model on other rows, for example a sample."""
        if rows is self.source:
            return self
        return Problem(self.model, rows, bound=self.bound, kernels=self.kernels)

    @property
    def e_step(self) -> Expectation:
        """The E-steps, which cache results about the data; every thread has its own."""
        found: Expectation | None = getattr(self._of_thread, "e_step", None)
        if found is None:
            found = self._of_thread.e_step = choose_expectation(self.kernels, self.bound, self.source)
        return found

    def reserve(self, method: Method) -> Budget:
        """Return the budget minus the needs of ``method``; raise MemoryLimitError if they do not fit."""
        return self.budget.reserve(self.source, method, statistics=statistics_of(self.bound))

    def draws(self, method: Method, entropy: Entropy, n_iter: Any, first: int, given: Any) -> Draws:
        """Return the sample indices of each iteration from ``first`` on: as given, or from the seed."""
        source = self.source
        if "weighted" in method.orders:
            self._check_weighted(method)
        if given is None and hasattr(source, "layout"):
            return BlockDraws(entropy, *source.layout, batch_size=method.drawn, streams=method.index_streams)
        if given is None:
            weight = None
            if "weighted" in method.orders:
                weight = np.concatenate([batch.weight for batch in source.blocks(BLOCK)])
            return SeededDraws(entropy, source.n, method.drawn, method.orders, weight)
        is_random = isinstance(n_iter, RandomTermination)
        most = n_iter.n_iter if is_random else check_int("n_iter", n_iter, minimum=0)
        return GivenDraws(
            given, n=source.n, batch_size=method.drawn, streams=method.index_streams, n_iter=most,
            start=first,
        )  # fmt: skip

    def _check_weighted(self, method: Method) -> None:
        """Raise ValueError if samples cannot be drawn in proportion to their weights."""
        if hasattr(self.source, "layout") or isinstance(self.bound, BoundDocuments):
            kind = (
                "documents" if isinstance(self.bound, BoundDocuments) else "data that are read block by block"
            )
            raise ValueError(
                f"order must be 'iid' or 'shuffled' for {kind}, got 'weighted': use an array, or tokens."
            )


def _bind(model: Model, source: Source) -> BoundModel:
    """Return the model for the data."""
    if isinstance(source, UnitSource):
        from swiftem.engine.units.rows import bind_units

        return bind_units(model, source)
    return model.bind(source)


def check_access(method: Method, source: Source) -> None:
    """Raise ValueError if the source cannot be used with the method."""
    if source.access == "sequential" and method.access == "random":
        stored = isinstance(source, StoredSource)
        instead = (
            "em, sem or sem-vr, or a .npy or Parquet file" if stored else "em, or load the data into an array"
        )
        raise ValueError(
            f"data can only be read in order, and {method.name} must find each sample's memory again: "
            f"use {instead}."
        )
    if source.access == "sequential" and method.index_streams and not hasattr(source, "layout"):
        raise ValueError(
            f"data can only be read in order, and {method.name} draws samples by index: "
            "use em, or load the data into an array."
        )
