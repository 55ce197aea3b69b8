"""E-steps of a bound model on its data: what methods ask for, and the choice among implementations."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Theta, Tree

if TYPE_CHECKING:
    from swiftem.core.algorithm import Loop, Task
    from swiftem.core.model import BoundModel

log = logging.getLogger("swiftem")

BLOCK = 4096
"""Samples per block of a full pass."""


class Placement(NamedTuple):
    """Where and in which form E-steps are computed.

    Attributes
    ----------
    device : str
        "cpu", or a device of PyTorch such as "torch:cuda:0" or "torch:cpu".
    form : {"auto", "numpy", "reference"}
        The fastest form; NumPy, for small data, as it compiles nothing; or the definition.
    memory_limit : int or None
        Memory limit of the device in bytes, without data given there.
    """

    device: str = "cpu"
    form: Literal["auto", "numpy", "reference"] = "auto"
    memory_limit: int | None = None

    @classmethod
    def named(cls, name: str, memory_limit: int | None = None) -> Placement:
        """Return a placement by its name: "auto", "numpy", or a device of PyTorch.

        >>> Placement.named("torch:cpu").device, Placement.named("numpy").form
        ('torch:cpu', 'numpy')
        """
        if name.startswith("torch:"):
            return cls(name, memory_limit=memory_limit)
        return cls(form="numpy" if name == "numpy" else "auto")


class Technology(NamedTuple):
    """An implementation of a model's E-steps.

    Attributes
    ----------
    name : str
        Its name in the log.
    refusal : callable
        Gets model, source and placement; returns why it cannot be used, or None.
    where : str
        Module and class, as in ``"swiftem.mixture.compute.passes:PassesCompute"``; it is imported when used,
        and called with model, source and placement.
    """

    name: str
    refusal: Callable[[Any, Source, Placement], str | None]
    where: str


def choose(
    technologies: Iterable[Technology], model: BoundModel, source: Source, placement: Placement
) -> Compute:
    """Return the E-steps of the first technology that can be used, or else the plain ones."""
    for technology in technologies:
        reason = technology.refusal(model, source, placement)
        if reason is None:
            log.info("E-steps: %s", technology.name)
            module, _, name = technology.where.partition(":")
            made: Compute = getattr(importlib.import_module(module), name)(model, source, placement)
            return made
        log.info("E-steps: not %s, because %s", technology.name, reason)
    return Compute(model, source, placement)


class Evaluation(NamedTuple):
    """E-step of every sample.

    Attributes
    ----------
    log_likelihood : ndarray, shape (n,)
        log g(y_i; θ).
    responsibilities : ndarray, shape (n, M), or None
        Rows of the posterior, if requested.
    labels : ndarray of int, shape (n,), or None
        Most likely components, if requested.
    """

    log_likelihood: Array
    responsibilities: Array | None
    labels: Index | None

    @classmethod
    def room(cls, n: int, n_components: int, responsibilities: bool, labels: bool) -> Evaluation:
        """Return arrays for the results of n samples."""
        return cls(
            np.empty(n),
            np.empty((n, n_components)) if responsibilities else None,
            np.empty(n, dtype=np.intp) if labels else None,
        )


class Compute:
    r"""E-steps of a bound model on its source, in plain NumPy; the base class of the faster ones.

    Methods access the data only through this object, so they are the same for every model, source and device.
    It belongs to one thread.

    Parameters
    ----------
    model : BoundModel
        The model, bound to ``source``.
    source : Source
        The samples.
    placement : Placement
        Device and form, for subclasses.

    Attributes
    ----------
    evaluations : int
        E-step evaluations so far: one for each sample and each θ at which its posterior was computed.
    per_pass : int
        Evaluations per pass.
    row_length : int or None
        Numbers of a sample in a memory, if they are known before the first pass.
    """

    is_on_device: ClassVar[bool] = False
    """Whether passes are computed on the device of the placement."""

    def __init__(self, model: BoundModel, source: Source, placement: Placement = Placement()) -> None:
        self._model, self._source, self.placement = model, source, placement
        self._between_blocks: Callable[[], None] = lambda: None
        self.n = self.per_pass = source.n
        self.row_length = model.row_length
        self.evaluations = 0
        self.memory_dtype: np.dtype = np.dtype(np.float64)
        self.is_divided = False
        #: Allocates the memory (n, R) of this dtype; a run with a small budget puts it into a file.
        self.allocate: Callable[[tuple[int, int], np.dtype], Array] = np.empty
        self._reader = source.reader()
        self._passed: tuple[Theta, float] | None = None

    def begin(
        self,
        memory_dtype: DTypeLike,
        allocate: Callable[[tuple[int, int], np.dtype], Array],
        is_divided: bool = False,
    ) -> None:
        """Reset the count and set, at the start of a run, the allocation of memories, and what a mean is.

        ``is_divided``: samples are drawn in proportion to their weights, so that a mean leaves these out.
        """
        self.evaluations, self.memory_dtype, self.allocate = 0, np.dtype(memory_dtype), allocate
        self.is_divided = is_divided

    @contextmanager
    def checked_by(self, check: Callable[[], None]) -> Iterator[Self]:
        """Context in which ``check`` is called between the blocks of a full pass; it may abort the pass."""
        before, self._between_blocks = self._between_blocks, check
        try:
            yield self
        finally:
            self._between_blocks = before

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices, which may repeat."""
        return self._reader.take(index)

    def rows(self, batch: Batch, theta: Theta) -> Array:
        """Return rows (b, R) that represent the samples' statistics at θ (estep_upd): one evaluation each."""
        self.evaluations += len(batch.index)
        return self._posterior(batch, theta)[0]

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        return self._model.posterior(batch, theta)

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return self._model.statistics(batch, rows, weight)

    def mean(self, batch: Batch, rows: Array) -> Array:
        r"""Return the mean over the batch; a repeated sample counts each time.

        With sample weights, :math:`b^{-1} \sum_{i \in I} (n w_i / W)\, s_i`, which is unbiased; if samples
        are drawn in proportion to these, :math:`b^{-1} \sum_{i \in I} s_i` is.
        """
        if self.is_divided:
            return self._statistics(batch, rows, np.full(len(batch.index), 1.0 / len(batch.index)))
        factor = self.n / (self._source.total_weight * len(batch.index))
        return self._statistics(batch, rows, batch.weight * factor)

    def share(self, batch: Batch, rows: Array) -> Array:
        r"""Return the batch's part of the mean over all samples, :math:`n^{-1} \sum_{i} s_i`.

        A repeated sample counts once. With sample weights, :math:`\sum_i (w_i / W)\, s_i`.
        """
        weight = batch.weight / self._source.total_weight
        if len(batch.index) > 1:
            first = np.zeros(len(weight), dtype=bool)
            first[np.unique(batch.index, return_index=True)[1]] = True
            weight *= first
        return self._statistics(batch, rows, weight)

    def full(self, theta: Theta) -> Array:
        r"""Return :math:`\bar s(\theta)`, equation (definition-overline-bss), by a full pass."""
        return self._pass(theta, remember=False)[0]

    def remember(self, theta: Theta) -> tuple[Array, Array]:
        r"""Return :math:`\bar s(\theta)` and the rows of every sample, shape (n, R), by a full pass."""
        s, memory = self._pass(theta, remember=True)
        assert memory is not None
        return s, memory

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        s: Array | None = None
        memory: Array | None = None
        loss, has_loss, self._passed = 0.0, True, None
        for batch in self._source.blocks(BLOCK):
            self._between_blocks()
            self.evaluations += len(batch.index)
            rows, log_likelihood = self._posterior(batch, theta)
            has_loss &= len(log_likelihood) == len(batch.index)
            loss -= float(batch.weight @ log_likelihood) if has_loss else 0.0
            if remember:  # statistics belong to the stored rows, also in float32
                rows = rows.astype(self.memory_dtype).astype(np.float64)
            part = self._statistics(batch, rows, batch.weight / self._source.total_weight)
            s = part if s is None else s + part
            if remember:
                if memory is None:
                    memory = self.allocate((self.n, rows.shape[1]), self.memory_dtype)
                memory[batch.index] = rows
        assert s is not None, "a source has at least one sample"
        self._passed = (theta, loss) if has_loss else None
        return s, memory

    def loop(self, task: Task) -> Loop:
        """Return the iterations of a run: Algorithm 1, unless a subclass has a faster form of them."""
        from swiftem.core.algorithm import Algorithm1

        return Algorithm1(task)

    def snapshot(self) -> Tree:
        """Return the state of the E-steps that later ones need, a NamedTuple of arrays, or None."""
        return None

    def restore(self, snapshot: Tree) -> None:
        """Restore a snapshot of these E-steps; anything else is ignored."""

    def extent(self) -> tuple[Array, float] | None:
        """Return what a full pass has learnt about the data, or None if E-steps need nothing of this kind.

        It is the largest distance of each feature from the centre (p,), and the mean of log h(y).
        """
        return None

    def set_extent(self, reach: Array, base: float) -> None:
        """Set what a full pass would learn about the data, as :meth:`extent` returns it."""

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted.

        It is free if the last full pass was at this θ.
        """
        loss = 0.0
        if self._passed is not None and self._passed[0] is theta:
            loss = self._passed[1]
        else:
            for batch in self._source.blocks(BLOCK):
                loss -= float(batch.weight @ self._posterior(batch, theta)[1])
        return self._model.penalty(theta) + loss / self._source.total_weight

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep)."""
        return self._model.m_step(s)

    def in_domain(self, s: Array) -> bool:
        """Return whether the M-step exists at ``s``."""
        return self._model.in_domain(s)

    def em(self, tol: float, small: float, least: float) -> Any:
        """Return passes of em that stay on a device, or None if passes and M-steps are the CPU's."""
        return None

    def starts(self) -> Any:
        """Return starts that are computed on a device, or None if they are computed on the CPU."""
        return None

    def scale(self, s: Array) -> Array:
        """Return factors (q,) that make each statistic free of units."""
        return self._model.unit_factors(s)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample and, optionally, its rows or their largest entry.

        Samples are read in blocks, and evaluations are not counted. For a mixture, rows are responsibilities.
        """
        log_likelihood, rows, largest = np.empty(self.n), [], np.empty(self.n, dtype=np.intp)
        for batch in self._source.blocks(BLOCK):
            self._between_blocks()
            posterior, log_likelihood[batch.index] = self._model.posterior(batch, theta)
            posterior = posterior[:, : self._model.n_classes]
            if responsibilities:
                rows.append(posterior)
            largest[batch.index] = posterior.argmax(axis=1)
        return Evaluation(
            log_likelihood, np.concatenate(rows) if responsibilities else None, largest if labels else None
        )
