"""A problem: a model bound to its data, with what runs and passes share.

Also checks of a run's arguments, and how far statistics are from a stationary point: the certificate of
convergence.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_floats, check_choice, check_int, shown
from swiftem._typing import Array, Theta
from swiftem.budget import Budget, statistics_of
from swiftem.data.as_source import as_source
from swiftem.data.draws import (
    TERMINATION,
    BlockDraws,
    Draws,
    Entropy,
    GivenDraws,
    Seed,
    SeededDraws,
    generator,
    read_seed,
)
from swiftem.data.foreign import DEVICE_KERNELS
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.engine.expectation import BLOCK, Expectation, choose_expectation
from swiftem.engine.gpu.expectation import check_on_device
from swiftem.files.scratch import is_scratch, scratch_array
from swiftem.methods.method import Method
from swiftem.models.components import BoundComponents
from swiftem.models.documents import BoundDocuments
from swiftem.models.model import BoundModel, Model
from swiftem.models.plsa import BoundPLSA
from swiftem.models.rows import has_missing
from swiftem.result import State
from swiftem.schedules import Schedule
from swiftem.termination import RandomTermination

__all__ = [
    "KERNELS",
    "NO_LIMIT",
    "Problem",
    "certificate",
    "certify",
    "check_access",
    "check_callable",
    "check_kernels",
    "check_method",
    "check_model",
    "check_state",
    "copy_arrays",
    "read_n_iter",
    "read_start",
    "relative_change",
]

KERNELS = ("auto", "reference")
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
        "torch:cuda:0": passes and iterations on that device.
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
        if kernels.startswith(DEVICE_KERNELS):
            check_on_device(self.bound)
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
        budget = Budget(on_device=self.budget.on_device)
        return Problem(self.model, rows, bound=self.bound, kernels=self.kernels, budget=budget)

    @property
    def e_step(self) -> Expectation:
        """The E-steps, which cache results about the data; every thread has its own."""
        found: Expectation | None = getattr(self._of_thread, "e_step", None)
        if found is None:
            found = self._of_thread.e_step = choose_expectation(
                self.kernels, self.bound, self.source, device_limit=self.budget.on_device
            )
        return found

    def reserve(self, method: Method) -> Budget:
        """Return the budget minus the needs of ``method``; raise MemoryLimitError if they do not fit."""
        return self.budget.reserve(self.source, method, statistics=statistics_of(self.bound))

    def draws(self, method: Method, entropy: Entropy, n_iter: Any, first: int, given: Any) -> Draws:
        """Return the sample indices of each iteration from ``first`` on: as given, or from the seed."""
        source = self.source
        if "weighted" in method.orders:
            self._check_weighted(method)
        if given is None:
            self.budget.check_order(source, method)
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
            kind, instead = "data that are read block by block", "an array in memory"
            if isinstance(self.bound, BoundDocuments):
                kind, instead = "documents", "tokens"
            elif self.budget.limit is not None:
                kind = "files and memory maps with memory_limit"
            raise ValueError(f"order must be 'iid' or 'shuffled' for {kind}, got 'weighted': use {instead}.")


def _bind(model: Model, source: Source) -> BoundModel:
    """Return the model for the data."""
    if getattr(model, "missing", None) == "error" and has_missing(source):
        raise ValueError("missing must be 'ignore' for rows with allow_missing=True, got 'error'.")
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


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError if the value is neither None nor a function."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of an iterate, got {shown(value)}.")


def check_kernels(kernels: str) -> None:
    """Raise ValueError for an unknown name of kernels.

    >>> check_kernels("reference")
    """
    check_choice("kernels", kernels, KERNELS)


def check_model(model: Any) -> None:
    """Raise TypeError if the value is not a model, but a name or a class, for example."""
    if isinstance(model, type) or not hasattr(model, "bind"):
        raise TypeError(f"model must be an instance such as models.PLSAModel(10), got {shown(model)}.")


def check_method(method: Any) -> None:
    """Raise TypeError if the value is not a method, but a name or a class, for example."""
    if not isinstance(method, Method):
        raise TypeError(f"method must be an instance such as methods.EM(), got {shown(method)}.")


def check_state(
    state: State | None,
    method: Method,
    source: Source,
    seed: Seed,
    theta0: Theta | None,
    s0: ArrayLike | None,
) -> Entropy:
    """Return the seed's words: those of the state, if there is a valid one."""
    if state is None:
        return read_seed(seed)
    if not isinstance(state, State):
        raise TypeError(f"state must be the state of a result, got {type(state).__name__}.")
    if theta0 is None or (s0 is None and not state.is_before_first_pass):
        raise ValueError("state needs theta0 and s0, the theta and s of the same result.")
    if seed is not None and not np.array_equal(read_seed(seed), state.entropy):
        raise ValueError("seed must be left out if state is given, or be that of the first run.")
    if (state.name, state.n) != (method.name, source.n):
        raise ValueError(
            f"state must come from a run of {method.name} on {source.n} samples, "
            f"got one of {state.name} on {state.n}."
        )
    return state.entropy


def read_n_iter(n_iter: Any, gamma: Schedule, entropy: Entropy, k0: int) -> int:
    """Return the number of iterations: as given, or drawn."""
    if isinstance(n_iter, RandomTermination):
        return n_iter.draw(gamma, generator(entropy, TERMINATION, k0), first=k0)
    return check_int("n_iter", n_iter, minimum=0)


def read_start(
    model: BoundModel, theta0: Theta | None, s0: ArrayLike | None, rng: np.random.Generator
) -> tuple[Theta, Any]:
    """Return θ^(0), given, drawn, or from ``s0``, and ``s0`` as an array or None."""
    s: Array | None = None
    if s0 is not None:
        s = as_floats("s0", s0, shape=(None,)).copy()
        try:
            model.unpack(s)
        except ValueError as error:
            raise ValueError(f"s0 does not fit model and data: {error}") from None
        if not model.in_domain(s):
            raise ValueError("s0 must lie in the model's domain, where the M-step exists.")
    if theta0 is not None:
        return model.check_theta(theta0), s
    return (model.initial_theta(rng) if s is None else model.m_step(s)), s


def copy_arrays(value: Any, scratch: Any = None) -> Any:
    """Return a copy of nested tuples of arrays, so that one state can be resumed twice.

    Arrays in a scratch file are copied to another file, in the folder ``scratch``.
    """
    if isinstance(value, np.ndarray):
        if is_scratch(value):  # it did not fit into memory
            copied = scratch_array(value.shape, value.dtype, scratch)
            copied[...] = value
            return copied
        return value.copy()
    if isinstance(value, tuple):
        parts = [copy_arrays(part, scratch) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def relative_change(before: Array, after: Array, scale: Array | float = 1.0) -> float:
    r"""Return :math:`\|(a - b) \circ c\| / \|a \circ c\|` for a before, b after and factors c.

    Parameters
    ----------
    before, after : ndarray, of the same shape
        Statistics, and those of one more E-step.
    scale : ndarray, shape of the statistics, or float
        Factors that make the statistics free of units.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.problem import relative_change
    >>> relative_change(np.array([3.0, 4.0]), np.array([3.0, 3.5]))
    0.1
    """
    size = before * scale
    largest = float(np.abs(size).max(initial=0.0))
    if not largest:  # all were zero: everything that is there now has changed
        return float(np.any(after != before))
    # Relative to the largest, as squares of large numbers overflow and those of small ones underflow.
    change, size = (before - after) * scale / largest, size / largest
    # Not by BLAS, whose last bit depends on its threads.
    return float(np.sqrt(np.square(change).sum() / np.square(size).sum()))


def certificate(bound: Any, s: Array, after: Array) -> float:
    r"""Return :math:`\|s - \bar s(\bar\theta(s))\| / \|s\|`, with norms of unit-free statistics.

    If one more E-step changes nothing, θ is a stationary point (Lemma global). Statistics of mixtures with
    covariances are scaled as if rows had unit variance, those of other families as if features had a mean
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
    scale: Array | float = 1.0
    if isinstance(bound, BoundComponents):
        scale = bound.without_unit(after)
    elif isinstance(bound, BoundPLSA):
        scale = np.ones_like(s)
        bound.unpack(scale).doc_topic[...] = 0.0
    return relative_change(s, after, scale)


def certify(problem: Problem, s: Array, theta: Theta) -> tuple[float, float]:
    r"""Return the objective at :math:`\theta = \bar\theta(s)` and the certificate of ``s``, by one pass."""
    after = problem.e_step.full(theta)
    return problem.e_step.objective(theta), certificate(problem.bound, s, after)
