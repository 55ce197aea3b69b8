"""A problem: a model bound to its data, with what runs and passes share, and the memory budget of runs.

A memory limit does not change results: windows and parts have fixed sizes, and a run that does not fit raises
MemoryLimitError with its needs. These are an upper bound by formula, with measured constants.
"""

from __future__ import annotations

import os
import re
import threading
from math import inf
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import MemoryLimitError, check_int, shown
from swiftem.core.compute import BLOCK, Compute, Placement
from swiftem.core.draws import Draws, Entropy, block_draws, given_draws, seeded_draws
from swiftem.core.files import in_words, scratch_array
from swiftem.core.method import Method
from swiftem.core.model import BoundModel, Model
from swiftem.core.schedules import RandomTermination
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")

BASE = 48 * 10**6
"""Memory of every run, whatever the data: compiled code, buffers of BLAS and threads (measured)."""
OF_A_START = 50 * 10**6
"""Memory of an estimator in addition to its passes: sampled rows, and statistics of candidates (measured)."""
COPIES = 12
"""Vectors of statistics, and parameters of about that size, in memory at a time."""
SHARE = 0.9
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells the limit of a container."""


def read_memory_limit(limit: object, name: str = "memory_limit") -> int | None:
    """Return a limit in bytes, or None if there is none.

    Parameters
    ----------
    limit : int, str or None
        Bytes, or a text such as "500MB" or "1.5 GiB".
    name : str
        Name of the argument, for errors.

    Examples
    --------
    >>> read_memory_limit("500MB"), read_memory_limit("1.5GiB"), read_memory_limit(None)
    (500000000, 1610612736, None)
    """
    if limit is None:
        return None
    wrong = f'{name} must be a number of bytes, a text such as "500MB" or None, got {shown(limit)}.'
    if isinstance(limit, str):
        match = TEXT.fullmatch(limit)
        size = float(match[1]) * UNITS.get(match[2].lower(), 0) if match else 0.0
    elif isinstance(limit, Integral) and not isinstance(limit, bool):
        size = int(limit)
    else:
        raise TypeError(wrong)
    if not 1 <= size < inf:
        raise ValueError(wrong)
    return int(size)


class Budget(NamedTuple):
    """The memory budget of a run.

    Attributes
    ----------
    limit : int or None
        In bytes; None for no limit.
    scratch : path or None
        Folder for a method's memory if it does not fit.
    reserved : int
        Memory of the run without the method's memory, if there is a limit.
    """

    limit: int | None = None
    scratch: str | os.PathLike[str] | None = None
    reserved: int = 0

    def reserve(self, source: Source, method: Method, *, statistics: int = 0, starts: bool = False) -> Budget:
        """Return the budget with the needs of a run reserved; raise MemoryLimitError if they do not fit.

        Arguments are as in :func:`bytes_needed`.
        """
        if self.limit is None:
            return self
        needed = bytes_needed(source, method, statistics=statistics, starts=starts)
        if needed <= self.limit:
            return self._replace(reserved=needed)
        hint = ""
        if source.layout is not None and source.row_bytes and method.index_streams:
            rows = source.layout.window_rows
            size = in_words(rows * source.row_bytes)
            hint = f" (windows for draws have {rows:,} rows, {size}: a smaller window needs less)"
        raise MemoryLimitError(
            f"memory_limit must be at least {in_words(needed)} for {method.name} on these data, "
            f"got {in_words(self.limit)}{hint}."
        )

    def make_memory(self, shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Return an array for a method's memory: in RAM if it fits, else in a scratch file."""
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if self.limit is not None and size + self.reserved > self.limit:
            return scratch_array(shape, dtype, self.scratch)
        found = available_memory()
        if size > found:
            raise MemoryLimitError(
                f"memory_limit must be less than {in_words(found)}, the memory that is available, for a "
                f"method that stores {in_words(size)} of {shape[0]:,} samples, got {shown(self.limit)}: with "
                "a limit they are in a file; em, sem and sem-vr store nothing."
            )
        return np.empty(shape, dtype)

    def check_order(self, source: Source, method: Method) -> None:
        """Raise MemoryLimitError if the order of so many samples does not fit into the machine's memory."""
        needed, found = order_bytes(source, method), available_memory()
        if needed > found:
            given = next(order for order in method.orders if order != "iid")
            raise MemoryLimitError(
                f"order and memory_order must be 'iid' for {source.n:,} samples, got {given!r}: it takes "
                f"{in_words(needed)}, and {in_words(found)} are available."
            )


def bytes_needed(source: Source, method: Method, *, statistics: int = 0, starts: bool = False) -> int:
    """Return an upper bound on the bytes of a run, without the method's memory of all samples.

    Parameters
    ----------
    source : Source
        The data. For an array only copies of it count.
    method : Method
        The method.
    statistics : int
        Length of the vector of statistics.
    starts : bool
        Whether a start is computed as by :class:`swiftem.GaussianMixture`.
    """
    needed = BASE + (COPIES + method.vectors) * 8 * statistics + (OF_A_START if starts else 0)
    needed += order_bytes(source, method)
    return needed + source.bytes_needed(method.index_streams)


def order_bytes(source: Source, method: Method) -> int:
    """Return the bytes of permutations, or of the sums of weights that samples are drawn by."""
    if source.layout is not None:
        return 0
    return source.n * sum({"shuffled": 16, "weighted": 32}.get(order, 0) for order in method.orders)


def available_memory() -> float:
    """Return the bytes that the process can take, as far as the system tells; else infinity.

    A tenth is left to others: a process that takes all of it is ended by the system.
    """
    found = inf
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = 1024.0 * int(line.split()[1])
    except (OSError, ValueError):  # macOS, for example
        if hasattr(os, "sysconf"):
            found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in CONTAINER:
        try:
            found = min(found, float(Path(file).read_text()))
        except (OSError, ValueError):  # not in a container, or "max"
            continue
    return SHARE * found


NO_LIMIT = Budget()


class _OfThread(threading.local):
    """The E-steps of a thread, made when it first needs them."""

    compute: Compute | None = None


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
        self._of_thread = _OfThread()
        if placement.device != "cpu" and not self.compute.is_on_device:  # before any work
            raise ValueError("device must be 'cpu' for this model: there are no passes on a GPU for it.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _of_thread=_OfThread())

    def on(self, rows: Source) -> Problem:
        """Return the problem of the same bound model on other rows, for example a sample."""
        if rows is self.source:
            return self
        return Problem(self.model, rows, bound=self.bound, placement=self.placement)

    @property
    def compute(self) -> Compute:
        """The E-steps, which cache results about the data; every thread has its own."""
        if self._of_thread.compute is None:
            self._of_thread.compute = self.source.compute(self.bound, self.placement)
        return self._of_thread.compute

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
