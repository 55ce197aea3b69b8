"""Documents on a device: passes and folding in are computed there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from swiftem._checks import MemoryLimitError
from swiftem._typing import Array, Index
from swiftem.data.foreign import torch_of
from swiftem.engine.documents import LEAST_CHANGE, Documents
from swiftem.engine.gpu.topics.counts import DeviceCounts
from swiftem.engine.gpu.topics.passes import LeftOut, PlainPasses
from swiftem.engine.gpu.topics.streamed import HostBlocks, MemorySize, StreamedPasses
from swiftem.engine.gpu.topics.topics import DeviceTopics, TopicArrays
from swiftem.files.scratch import in_words

__all__ = ["DeviceDocuments", "passes_for"]

log = logging.getLogger("swiftem")


class DeviceDocuments(Documents):
    """As :class:`swiftem.engine.documents.Documents`, with passes and folding in on a device.

    In float32 they are computed by kernels in Triton, in float64 by PyTorch. Batches of documents are those
    of :class:`swiftem.engine.gpu.topics.lane.DeviceDocumentLane`.

    Parameters
    ----------
    X, weight
        As in :class:`swiftem.engine.documents.Documents`.
    device : str
        PyTorch's name of the device.
    limit : int, optional
        Limit of the device's memory in bytes. Counts that do not fit are copied there in every pass.

    Examples
    --------
    >>> import pytest, scipy.sparse as sp
    >>> _ = pytest.importorskip("torch")
    >>> documents = DeviceDocuments(sp.csr_array([[2, 1, 0], [0, 1, 1]]), device="cpu")
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> documents.fold_in(topics, np.full(2, 0.1))[0].argmax(axis=1)
    array([0, 1])
    """

    def __init__(
        self, X: Any, weight: Array | None = None, dtype: type = np.float64, *, device: str,
        limit: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(X, weight, dtype)
        self.device, self.limit = device, limit
        self._passes: dict[type, PlainPasses] = {}

    def some(self, numbers: Index) -> Documents:
        """Return some of the documents, with all words."""
        return DeviceDocuments(
            self.matrix()[numbers], self.weight[numbers], self.dtype, device=self.device, limit=self.limit
        )

    def passes(self, alpha: Array, dtype: type | None = None) -> PlainPasses:
        """Return the passes over the documents, which are copied to the device once."""
        dtype = self.dtype if dtype is None else dtype
        found = self._passes.get(dtype)
        if found is None or len(found.alpha) != len(alpha):
            self._passes.pop(dtype, None)
            found = passes_for(self, alpha, dtype)
        elif not np.array_equal(found.alpha, alpha):
            found = found.with_alpha(alpha)
        self._passes[dtype] = found
        return found

    def topics(self, state: TopicArrays, alpha: Array, beta: Array, **options: Any) -> DeviceTopics:
        """Return em's steps from a state on; options as in :class:`DeviceTopics`."""
        return DeviceTopics(self.passes(alpha), beta, state, **options)

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """As :meth:`Documents.em_pass`."""
        return self._pass(doc_topic, topics, alpha, None, between)

    def leave_one_out_pass(
        self, doc_topic: Array, topics: Array, totals: Array, alpha: Array, beta: Array,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, float]:  # fmt: skip
        """As :meth:`Documents.leave_one_out_pass`."""
        inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
        floor = np.broadcast_to(beta.T, (beta.shape[1], len(alpha))) * inverse
        return self._pass(doc_topic, topics, alpha, LeftOut(*map(self._there, (inverse, floor))), between)

    def _pass(
        self, doc_topic: Array, topics: Array, alpha: Array, left_out: LeftOut | None,
        between: Callable[[], None],
    ) -> tuple[Array, float]:  # fmt: skip
        """One pass; ``doc_topic`` (D, K) is replaced."""
        between()
        passes = self.passes(alpha)
        found = passes.em(passes.shares(doc_topic), self._there(topics.T), left_out)
        doc_topic[:] = passes.array(found.doc_topic)
        return found.by_word.cpu().numpy().T, float(found.log_likelihood)

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """As :meth:`Documents.fold_in`."""
        passes = self.passes(alpha, self.dtype if tol >= LEAST_CHANGE else np.float64)
        start = passes.shares(np.full((self.n, len(topics)), 1.0 / len(topics)))
        found = passes.fold(self._there(topics.T), start, max_iter, tol, leaps=True)
        return passes.array(found.doc_topic), found.log_likelihood.cpu().numpy()

    def sums(
        self, doc_topic: Array, word_topic: Array, alpha: Array, max_iter: int, tol: float,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, int]:  # fmt: skip
        """As :meth:`Documents.sums`."""
        between()
        passes = self.passes(alpha)
        found, by_word = passes.sums(self._there(word_topic), passes.shares(doc_topic), max_iter, tol)
        doc_topic[:] = passes.array(found.doc_topic)
        evaluations = ((found.rounds.cpu().numpy() + 1) * np.diff(self.begin)).sum()
        return by_word.cpu().numpy(), int(evaluations)

    def _there(self, array: Array) -> Any:
        """Return a copy of an array on the device."""
        return torch_of("a device").from_numpy(np.ascontiguousarray(array)).to(self.device)


def passes_for(documents: DeviceDocuments, alpha: Array, dtype: type) -> PlainPasses:
    """Return the passes over documents in a precision: by kernels if there are some for it.

    Counts that do not fit into the device's memory, or into the documents' limit, are copied in every pass.

    Raises
    ------
    ValueError
        If the topics and the largest document do not fit: a MemoryLimitError if that is due to the limit.
    """
    torch = torch_of(f"device={documents.device!r}")
    device, n_topics, limit = torch.device(documents.device), len(alpha), documents.limit
    fast: Any = fast_passes() if dtype is np.float32 and device.type == "cuda" else None
    is_fast = fast is not None and n_topics <= fast.MOST_TOPICS
    kind: Any = fast.FastPasses if is_fast else PlainPasses
    kept = torch.float32 if is_fast else torch.float64
    size = MemorySize(documents, n_topics, 4 if is_fast else 8)
    room = size.resident if limit is None else limit
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if limit is None and size.resident > free:
            # The same blocks on the same kind of device, unless others need its memory.
            room = total // 4 if total // 4 <= free else int(0.8 * free)
        room = min(room, free)
    if size.resident <= room:
        return cast(PlainPasses, kind(DeviceCounts(documents, n_topics, device, kept), alpha))
    if limit is not None and size.least > limit:
        raise MemoryLimitError(
            f"device_memory_limit must be at least {in_words(size.least)} for {n_topics} topics of "
            f"{documents.n_words:,} words, got {in_words(limit)}."
        )
    if size.least > room:
        raise ValueError(
            f"device must be 'cpu' for {documents.n_words:,} words and {n_topics} topics: they need "
            f"{in_words(size.least)} of the device's memory, and {in_words(room)} are free."
        )
    log.info("counts are copied to %s in every pass", device)
    blocks = HostBlocks(documents, size.ranges(room), n_topics, device, kept)
    return StreamedPasses(blocks, alpha, kind, size.most_entries(room))


def fast_passes() -> Any:
    """Return the module of the kernels' passes, or None without Triton."""
    try:
        from swiftem.engine.gpu.topics import fast
    except ImportError:  # Triton is for Linux
        return None
    return fast
