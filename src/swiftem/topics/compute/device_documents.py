"""Documents on a device: passes and folding in are computed there. PyTorch is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from swiftem.core.types import Array
from swiftem.topics.compute import numpy
from swiftem.topics.compute.corpus import LEAST_CHANGE, Between, Documents, LeftOut, nothing
from swiftem.topics.compute.numpy import Entries

if TYPE_CHECKING:
    from swiftem.topics.compute.torch import TorchPasses


class DeviceDocuments(Documents):
    """As :class:`swiftem.topics.compute.corpus.Documents`, with passes and folding in on a device.

    In float32 they are computed by kernels in Triton, in float64 by PyTorch. sem and sem-vr are computed on
    the CPU.

    Parameters
    ----------
    X, weight
        As in :class:`swiftem.topics.compute.corpus.Documents`.
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
        self,
        X: Any,
        weight: Array | None = None,
        dtype: type = np.float64,
        *,
        device: str,
        limit: int | None = None,
    ) -> None:
        self.device, self.limit = device, limit
        super().__init__(X, weight, dtype)

    def _read(self, entries: Entries, n_words: int) -> None:
        super()._read(entries, n_words)
        self._passes: dict[type, TorchPasses] = {}

    def passes(self, alpha: Array, dtype: type | None = None) -> TorchPasses:
        """Return the passes over the documents, which are copied to the device once."""
        from swiftem.topics.compute.torch import passes_for

        dtype = self.dtype if dtype is None else dtype
        found = self._passes.get(dtype)
        if found is None or len(found.alpha) != len(alpha):
            self._passes.pop(dtype, None)
            found = passes_for(self, alpha, dtype)
        elif not np.array_equal(found.alpha, alpha):
            found = found.with_alpha(alpha)
        self._passes[dtype] = found
        return found

    def em_pass(
        self,
        doc_topic: Array,
        topics: Array,
        alpha: Array,
        left_out: LeftOut | None = None,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """See :meth:`Corpus.em_pass`."""
        from swiftem.topics.compute.torch import left_out_of

        between()
        passes = self.passes(alpha)
        without = None
        if left_out is not None:
            totals, beta = left_out
            least = numpy.by_rows(beta, len(alpha))
            without = left_out_of(passes.on_device(totals), passes.on_device(least))
        found = passes.em(passes.shares(doc_topic), passes.on_device(topics.T), without)
        doc_topic[:] = passes.array(found.doc_topic)
        return found.by_word.cpu().numpy().T, float(found.log_likelihood)

    def fold_in(
        self, topics: Array, alpha: Array, *, max_iter: int = 100, tol: float = 1e-3, likelihood: bool = True
    ) -> tuple[Array, Array]:
        """See :meth:`Corpus.fold_in`."""
        passes = self.passes(alpha, self.dtype if tol >= LEAST_CHANGE else np.float64)
        start = passes.shares(np.full((self.n, len(topics)), 1.0 / len(topics)))
        doc_topic, log_likelihood = passes.fold(passes.on_device(topics.T), start, max_iter, tol)
        return passes.array(doc_topic), log_likelihood.cpu().numpy()
