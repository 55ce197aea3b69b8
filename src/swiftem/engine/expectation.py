"""E-steps on the data, the interface between methods and model and source; evaluations are counted.

Also the parts of full passes, and the form in which compiled code gets rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Batch, Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.engine.threads import part_ends
from swiftem.models.completed_gaussians import CompletedGaussians
from swiftem.models.components import BoundComponents
from swiftem.models.documents import BoundDocuments
from swiftem.models.gaussian_mixture import BoundGaussianMixture
from swiftem.models.model import BoundModel
from swiftem.models.plsa import BoundPLSA

__all__ = [
    "NONE", "Evaluation", "Expectation", "Part", "choose_expectation", "chunks", "is_served", "parts",
    "plain", "read_only",
]  # fmt: skip

BLOCK = 4096
"""Samples per block of a full pass."""


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


class Expectation:
    r"""The E-step of a bound model over its source.

    Methods access the data only through this object, so they are the same for every model, source and kernel.

    Parameters
    ----------
    model : BoundModel
        The model, bound to ``source``.
    source : Source
        The samples.

    Attributes
    ----------
    evaluations : int
        E-step evaluations so far: one for each sample and each θ at which its posterior was computed.
    per_pass : int
        Evaluations per pass.
    """

    def __init__(self, model: BoundModel, source: Source) -> None:
        self._model, self._source = model, source
        self._between_blocks: Callable[[], None] = lambda: None
        self.n = self.per_pass = source.n
        self.evaluations = 0
        self.memory_dtype: np.dtype[Any] = np.dtype(np.float64)
        self.is_divided = False
        #: Allocates the memory (n, R) of this dtype; a run with a small budget puts it into a file.
        self.allocate: Callable[[tuple[int, int], np.dtype[Any]], Array] = np.empty
        self._reader = source.reader() if isinstance(source, StoredSource) else source
        self._passed: tuple[Theta, float] | None = None

    def begin(
        self,
        memory_dtype: Any,
        allocate: Callable[[tuple[int, int], np.dtype[Any]], Array],
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
            if remember:  # the statistics are those of the stored rows, also in float32
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

    def snapshot(self) -> Any:
        """Return the state of the E-steps that later ones need, a NamedTuple of arrays, or None."""
        return None

    def restore(self, snapshot: Any) -> None:
        """Restore a snapshot of these E-steps; anything else is ignored."""

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted.

        It is free if the last full pass was at this θ.
        """
        loss = 0.0
        if self._passed is not None and self._passed[0] is theta:
            loss = self._passed[1]
        else:
            for batch in self._source.blocks(BLOCK):
                loss -= float(batch.weight @ self._model.posterior(batch, theta)[1])
        return self._model.penalty(theta) + loss / self._source.total_weight

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep)."""
        return self._model.m_step(s)

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists at ``s``."""
        return self._model.in_domain(s)

    def em(self) -> Any:
        """Return iterations of em that stay on a device, or None if passes and M-steps are the CPU's."""
        return None

    def scale(self, s: Array) -> Array:
        """Return factors (q,) that make statistics free of units; ones if the model does not say."""
        return self._model.without_unit(s) if isinstance(self._model, BoundComponents) else np.ones_like(s)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample and, optionally, its rows or their largest entry.

        Samples are read in blocks, and evaluations are not counted. For a mixture, rows are responsibilities.
        """
        log_likelihood, rows, largest = np.empty(self.n), [], np.empty(self.n, dtype=np.intp)
        for batch in self._source.blocks(BLOCK):
            self._between_blocks()
            posterior, log_likelihood[batch.index] = self._model.posterior(batch, theta)
            if isinstance(self._model, BoundComponents):  # what else is in a row is the family's own
                posterior = posterior[:, : self._model.n_components]
            if responsibilities:
                rows.append(posterior)
            largest[batch.index] = posterior.argmax(axis=1)
        return Evaluation(
            log_likelihood, np.concatenate(rows) if responsibilities else None, largest if labels else None
        )


def choose_expectation(
    kernels: str, model: BoundModel, source: Source, device_limit: int | None = None
) -> Expectation:
    """Return E-steps with the fastest full passes available for this model and source.

    ``kernels`` are as in :class:`swiftem.problem.Problem`; ``device_limit``, in bytes, limits the memory of a
    device.
    """
    compiled: Expectation | None = None
    if isinstance(source, UnitSource):
        from swiftem.engine.units.rows import UnitExpectation

        return UnitExpectation(model, source, kernels)
    if kernels.startswith("torch:"):
        from swiftem.engine.gpu.expectation import DeviceExpectation

        return DeviceExpectation(model, source, kernels, device_limit)
    if isinstance(model, CompletedGaussians):
        if kernels == "numpy":
            from swiftem.engine.missing.completed_rows import CompletedRows

            return CompletedRows(model, source)
        if kernels != "reference":
            from swiftem.engine.missing.completed_expectation import CompletedExpectation

            compiled = CompletedExpectation.of(model, source)
        return compiled or Expectation(model, source)
    if type(model) is BoundDocuments:
        from swiftem.engine.units.documents import DocumentUnitExpectation, UnitDocuments

        if isinstance(source, UnitDocuments):
            return DocumentUnitExpectation(model, source)
        from swiftem.engine.document_lane import CompiledDocuments, DocumentExpectation

        if kernels == "reference":
            return DocumentExpectation(model, source)
        compiled = CompiledDocuments(model, source)
    elif kernels == "reference":
        pass
    elif type(model) is BoundGaussianMixture:
        from swiftem.engine.gaussian_mixture import MixtureExpectation

        compiled = MixtureExpectation.of(model, source)
    elif isinstance(model, BoundComponents):
        if kernels == "numpy":
            from swiftem.engine.small_expectation import PlainExpectation, SmallExpectation

            small = SmallExpectation.of(model, source)
            return small or PlainExpectation(model, source)
        from swiftem.engine.block_expectation import BlockExpectation

        compiled = BlockExpectation.of(model, source)
    elif type(model) is BoundPLSA:
        from swiftem.engine.plsa_expectation import PLSAExpectation

        compiled = PLSAExpectation.of(model, source)
    return Expectation(model, source) if compiled is None else compiled


BLOCKS = 64
"""Blocks converted at a time if samples do not have the kernels' type."""


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: kernels are compiled for such arrays only.

    Numba would compile them again for a writable array.

    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def plain(y: NDArray[Any]) -> NDArray[Any]:
    """Return samples in the kernels' form: (b, d), in C order, read-only, float32 or float64.

    Others are converted: each kind of array would be one more kernel to compile.
    """
    y = y[:, None] if y.ndim == 1 else y
    dtype = y.dtype if y.dtype in (np.float32, np.float64) else np.float64
    return read_only(np.require(y, dtype, ["C", "A"]))


def chunks(count: int, block: int) -> list[slice]:
    """Return slices of whole blocks, large enough to be worth a call, and small if they are converted.

    >>> chunks(150, 1)
    [slice(0, 64, None), slice(64, 128, None), slice(128, 150, None)]
    """
    size = BLOCKS * block
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


NONE = read_only(np.empty(0))


class Part(NamedTuple):
    """Consecutive samples: the index of the first, ``y`` (b, d), and ``weight`` (b,) or (0,) for ones."""

    first: int
    y: NDArray[Any]
    weight: Array

    @property
    def here(self) -> slice:
        """Their position among all samples."""
        return slice(self.first, self.first + len(self.y))


def is_served(source: Source) -> bool:
    """Tell whether compiled code can read the rows of a source: in an array, or part by part."""
    return type(source) is ArraySource or isinstance(source, StoredSource)


def parts(source: Source, least_rows: int) -> list[Part] | Iterator[Part]:
    """Return the parts of a full pass, which depend only on the source, not on the number of threads.

    For an array they are views, all at once; for a stored source, they are a mebibyte each, read in order by
    a thread that is a few parts ahead of the computation.
    """
    if isinstance(source, StoredSource):
        return _read(source, source.chunk_rows)
    assert isinstance(source, ArraySource)
    y = source.y.reshape(source.n, -1)
    weight = None if source.weight is None else read_only(source.weight)
    return [
        Part(start, y[start:stop], NONE if weight is None else weight[start:stop])
        for start, stop in part_ends(source.n, least_rows=least_rows)
    ]


def _read(source: StoredSource, rows: int) -> Iterator[Part]:
    for batch in source.blocks(rows):
        y = batch.y[:, None] if batch.y.ndim == 1 else batch.y
        yield Part(int(batch.index[0]), y, read_only(batch.weight) if source.is_weighted else NONE)
