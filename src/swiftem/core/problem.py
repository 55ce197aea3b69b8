"""A problem: a model bound to its data, with what runs and passes share.

Also how far statistics are from a stationary point: the certificate of convergence.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.budget import Budget
from swiftem.core.checks import check_int, shown
from swiftem.core.compute import BLOCK, Compute, Placement
from swiftem.core.draws import Draws, Entropy, block_draws, given_draws, seeded_draws
from swiftem.core.method import Method
from swiftem.core.model import BoundModel, Model
from swiftem.core.schedules import RandomTermination
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta

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
    placement : Placement
        Where and in which form E-steps are computed.
    budget : Budget
        Memory budget of the runs.

    Examples
    --------
    >>> from swiftem import models
    >>> from swiftem.core.problem import Problem
    >>> from swiftem.data import ArraySource
    >>> model = models.GaussianMixtureModel(1, delta=0.0, epsilon=0.0)
    >>> problem = Problem(model, ArraySource([0.0, 2.0]))
    >>> problem.compute.full(model.theta(means=[[1.0]]))
    array([1., 1.])
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        *,
        bound: BoundModel | None = None,
        placement: Placement = Placement(),
        budget: Budget = NO_LIMIT,
    ) -> None:
        self.model, self.source, self.placement, self.budget = model, source, placement, budget
        # Typed as Any: estimators use members that BoundModel does not declare.
        self.bound: Any = source.bind(model) if bound is None else bound
        if placement.device != "cpu":
            self.bound.check_device()
        self._of_thread = threading.local()
        if placement.device != "cpu" and not self.compute.is_on_device:  # before any work
            raise ValueError("device must be 'cpu' for this model: there are no passes on a GPU for it.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _of_thread=threading.local())

    def on(self, rows: Source) -> Problem:
        """Return the problem of the same bound model on other rows, for example a sample."""
        if rows is self.source:
            return self
        return Problem(self.model, rows, bound=self.bound, placement=self.placement)

    @property
    def compute(self) -> Compute:
        """The E-steps, which cache results about the data; every thread has its own."""
        made: Compute | None = getattr(self._of_thread, "compute", None)
        if made is None:
            made = self._of_thread.compute = self.source.compute(self.bound, self.placement)
        return made

    def reserve(self, method: Method) -> Budget:
        """Return the budget minus the needs of ``method``; raise MemoryLimitError if they do not fit."""
        return self.budget.reserve(self.source, method, statistics=self.bound.size or 0)

    def draws(
        self,
        method: Method,
        entropy: Entropy,
        n_iter: int | RandomTermination,
        first: int,
        given: ArrayLike | None,
    ) -> Draws:
        """Return the sample indices of each iteration from ``first`` on: as given, or from the seed."""
        source, b, streams = self.source, method.batch_size, method.index_streams
        if "weighted" in method.orders:
            self._check_weighted()
        if given is not None:
            limit = n_iter.n_iter if isinstance(n_iter, RandomTermination) else n_iter
            count = check_int("n_iter", limit, minimum=0)
            return given_draws(given, n=source.n, batch_size=b, streams=streams, n_iter=count, start=first)
        self.budget.check_order(source, method)
        if source.layout is not None:
            return block_draws(entropy, *source.layout, batch_size=b, streams=streams)
        weight = None
        if "weighted" in method.orders:
            weight = np.concatenate([batch.weight for batch in source.blocks(BLOCK)])
        return seeded_draws(entropy, source.n, b, method.orders, weight)

    def _check_weighted(self) -> None:
        """Raise ValueError if samples cannot be drawn in proportion to their weights."""
        has_documents = self.source.samples == "documents"
        if self.source.layout is not None or has_documents:
            kind, instead = "data that are read block by block", "an array in memory"
            if has_documents:
                kind, instead = "documents", "tokens"
            elif self.budget.limit is not None:
                kind = "files and memory maps with memory_limit"
            raise ValueError(f"order must be 'iid' or 'shuffled' for {kind}, got 'weighted': use {instead}.")


def allows_missing(model: Model) -> bool:
    """Return whether the model accepts rows with missing cells."""
    return model.missing == "ignore"


def check_access(method: Method, source: Source) -> None:
    """Raise ValueError if the source cannot be used with the method."""
    if source.access == "sequential" and method.access == "random":
        instead = "em, or load the data into an array"
        if source.row_bytes:
            instead = "em, sem or sem-vr, or a .npy or Parquet file"
        raise ValueError(
            f"data can only be read in order, and {method.name} must find each sample's memory again: "
            f"use {instead}."
        )
    if source.access == "sequential" and method.index_streams and source.layout is None:
        raise ValueError(
            f"data can only be read in order, and {method.name} draws samples by index: "
            "use em, or load the data into an array."
        )


def check_model(model: object) -> None:
    """Raise TypeError if the value is not a model, but a name or a class, for example."""
    if not isinstance(model, Model):
        raise TypeError(f"model must be an instance such as models.PLSAModel(10), got {shown(model)}.")


def relative_change(before: Array, after: Array, scale: Array | float = 1.0) -> float:
    r"""Return :math:`\|(a - b) \circ c\| / \|a \circ c\|` for a before, b after and factors c.

    Parameters
    ----------
    before, after : ndarray, of the same shape
        Statistics before and after one more E-step.
    scale : ndarray, shape of the statistics, or float
        Factors that make the statistics free of units.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.core.problem import relative_change
    >>> relative_change(np.array([3.0, 4.0]), np.array([3.0, 3.5]))
    0.1
    """
    size = before * scale
    largest = float(np.abs(size).max(initial=0.0))
    if not largest:  # all were zero: everything that is there now has changed
        return float(np.any(after != before))
    # Relative to the largest, as squares of large numbers overflow, and of small ones underflow.
    change, size = (before - after) * scale / largest, size / largest
    # Not by BLAS, whose last bit depends on its threads.
    return float(np.sqrt(np.square(change).sum() / np.square(size).sum()))


def certificate(bound: BoundModel, s: Array, after: Array) -> float:
    r"""Return :math:`\|s - \bar s(\bar\theta(s))\| / \|s\|`, with norms of unit-free statistics.

    If one more E-step changes nothing, θ is a stationary point (Lemma global). Statistics of mixtures with
    covariances are scaled as if rows had unit variance, and of other families as if features had a mean
    square of one. For pLSA only the statistics of the words are used, which determine the topics. Others are
    not scaled: a mixture of unit variances has the standard deviation as its unit.

    Parameters
    ----------
    bound : BoundModel
        The model bound to its data.
    s : ndarray, shape (q,)
        Statistics.
    after : ndarray, shape (q,)
        :math:`\bar s(\bar\theta(s))`.
    """
    return relative_change(s, after, bound.certificate_factors(after))


def certify(problem: Problem, s: Array, theta: Theta) -> tuple[float, float]:
    r"""Return the objective at :math:`\theta = \bar\theta(s)` and the certificate of ``s``, by one pass."""
    after = problem.compute.full(theta)
    return problem.compute.objective(theta), certificate(problem.bound, s, after)
