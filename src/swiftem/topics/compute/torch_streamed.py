"""Passes over counts that fit into a device's memory or not: then blocks are copied there in every pass.

Both sides of a block are made on the device once, and kept in pinned memory of the CPU. A pass copies the
next block while it computes one. Topics of documents are in pinned memory too, and go there and back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from swiftem.core.checks import MemoryLimitError
from swiftem.core.files import in_words
from swiftem.core.types import Array, Index
from swiftem.kernels.torch_device import LIVE, copied
from swiftem.topics.compute import torch as passes
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.torch import SEGMENT, DeviceCounts, LeftOut, Pass, TorchPasses

if TYPE_CHECKING:
    from swiftem.topics.compute.device_documents import DeviceDocuments

__all__ = ["StreamedPasses", "bytes_needed", "host_blocks", "passes_for"]

log = logging.getLogger("swiftem")

MAKING = 80
"""Bytes for each entry while both sides are made: the entries, the sort, and its results."""
FAST_WORK = 64 << 20
"""Memory of temporary arrays of kernels."""
TABLES = 12
"""Arrays (V, K) of float64 on the device: words of topics, their counts, sums, and copies."""


def bytes_needed(documents: Documents, n_topics: int, itemsize: int) -> tuple[int, Index]:
    """Return the memory that passes need on a device: in any case, and for each document (D,).

    ``itemsize`` is the size of the numbers that they compute in.
    """
    row = itemsize * (-(-n_topics // 8) * 8)
    work = FAST_WORK if itemsize == 4 else 5 * 8 * passes.NUMBERS
    # Sums of segments that are not the only ones of their row.
    per_entry = MAKING + -(-4 * row // SEGMENT)
    per_document = 100 + (LIVE + 2) * row
    fixed = work + documents.n_words * (TABLES * 8 * n_topics + 100)
    return fixed, per_entry * np.diff(documents.begin) + per_document


def host_blocks(
    documents: Documents, edges: list[int], n_topics: int, device: torch.device, dtype: torch.dtype
) -> list[tuple[slice, DeviceCounts]]:
    """Return blocks of documents between ``edges``: their counts, made on the device, in pinned memory."""
    blocks = []
    for start, stop in pairwise(edges):
        part = Documents(documents.matrix()[start:stop], documents.weight[start:stop])
        made = DeviceCounts.of(part, n_topics, device, dtype)
        blocks.append((slice(start, stop), made.with_tensors([*map(_on_host, made.tensors())])))
    return blocks


def _on_host(tensor: Tensor) -> Tensor:
    """Return a copy in pinned memory of the CPU, if the tensor is on a GPU."""
    return tensor.cpu().pin_memory() if tensor.is_cuda else tensor


class StreamedPasses(TorchPasses):
    """As :class:`TorchPasses`, over blocks; topics of documents are tensors in memory of the CPU.

    Sums of blocks are added in order: the same blocks give the same bits.

    Parameters
    ----------
    blocks : list of tuple
        The counts, as :func:`host_blocks` returns them.
    alpha
        As in :class:`TorchPasses`.
    device : torch.device
        The device.
    single : type of TorchPasses
        The passes over a block.
    """

    def __init__(
        self,
        blocks: list[tuple[slice, DeviceCounts]],
        alpha: Array,
        device: torch.device,
        single: type[TorchPasses],
    ) -> None:
        self.blocks, self.alpha, self.device, self._single = blocks, alpha, device, single

    def with_alpha(self, alpha: Array) -> TorchPasses:
        """Return the passes over the same counts with another α (K,)."""
        return StreamedPasses(self.blocks, alpha, self.device, self._single)

    def shares(self, doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K) in the form of passes, on the CPU."""
        found = self._single.form(doc_topic)
        return self._room(like=found).copy_(found)

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`TorchPasses.em`."""
        after = self._room(like=doc_topic)
        by_word = torch.zeros_like(word_topic)
        logs = by_word.new_zeros(())
        for here, single, topics in self._copies(doc_topic):
            found = single.em(topics, word_topic, left_out)
            after[here].copy_(found.doc_topic, non_blocking=True)
            by_word += found.by_word
            logs += found.log_likelihood
        self._wait()
        return Pass(after, by_word, logs)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> tuple[Tensor, Tensor]:
        """As :meth:`TorchPasses.fold`."""
        after = self._room(like=doc_topic)
        logs = torch.empty(len(doc_topic), dtype=torch.float64)
        for here, single, topics in self._copies(doc_topic):
            found, logs[here] = single.fold(word_topic, topics, max_iter, tol)
            after[here].copy_(found, non_blocking=True)
        self._wait()
        return after, logs

    def _copies(self, doc_topic: Tensor) -> Iterator[tuple[slice, TorchPasses, Tensor]]:
        """Yield each block: its documents, its passes, and the topics of its documents on the device."""
        blocks = (((here, counts), [doc_topic[here], *counts.tensors()]) for here, counts in self.blocks)
        for (here, counts), (topics, *tensors) in copied(blocks, self.device):
            yield here, self._single(counts.with_tensors(tensors), self.alpha), topics

    def _room(self, like: Tensor) -> Tensor:
        """Return memory of the CPU, pinned if the device is a GPU."""
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=self.device.type == "cuda")

    def _wait(self) -> None:
        """Wait until results are in memory of the CPU."""
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()


def passes_for(documents: DeviceDocuments, alpha: Array, dtype: type) -> TorchPasses:
    """Return the passes over documents in a precision: by kernels if there are some for it.

    Counts that do not fit into the device's memory, or into the documents' limit, are copied in every pass.

    Raises
    ------
    ValueError
        If the topics and the largest document do not fit: a MemoryLimitError if that is due to the limit.
    """
    device, n_topics, limit = torch.device(documents.device), len(alpha), documents.limit
    single = kernel_passes(n_topics) if dtype is np.float32 and device.type == "cuda" else TorchPasses
    number_type = torch.float64 if single is TorchPasses else torch.float32
    fixed, each = bytes_needed(documents, n_topics, number_type.itemsize)
    resident, least = fixed + int(each.sum()), fixed + int(each.max())
    room = resident if limit is None else limit
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if limit is None and resident > free:
            # The same blocks on the same kind of device, unless others need its memory.
            room = total // 4 if total // 4 <= free else int(0.8 * free)
        room = min(room, free)
    if resident <= room:
        return single(DeviceCounts.of(documents, n_topics, device, number_type), alpha)
    if limit is not None and least > limit:
        raise MemoryLimitError(
            f"device_memory_limit must be at least {in_words(least)} for {n_topics} topics of "
            f"{documents.n_words:,} words, got {in_words(limit)}."
        )
    if least > room:
        raise ValueError(
            f"device must be 'cpu' for {documents.n_words:,} words and {n_topics} topics: they need "
            f"{in_words(least)} of the device's memory, and {in_words(room)} are free."
        )
    log.info("counts are copied to %s in every pass", device)
    edges, ends = [0], np.concatenate([[0], each.cumsum()])
    while edges[-1] < documents.n:
        edges.append(int(np.searchsorted(ends, ends[edges[-1]] + room - fixed, side="right")) - 1)
    return StreamedPasses(host_blocks(documents, edges, n_topics, device, number_type), alpha, device, single)


def kernel_passes(n_topics: int) -> type[TorchPasses]:
    """Return the passes by kernels, or those of PyTorch without Triton, or if there are too many topics."""
    try:
        from swiftem.topics.compute.triton import MOST_TOPICS, KernelPasses
    except ImportError:  # Triton is for Linux
        return TorchPasses
    return KernelPasses if n_topics <= MOST_TOPICS else TorchPasses
