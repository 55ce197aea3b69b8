"""Passes over counts that fit into a device's memory or not: then blocks are copied there in every pass.

Both sides of a block are made on the device once, and kept in pinned memory of the CPU. A pass copies the
next block while it computes one. Topics of documents are in pinned memory too, and go there and back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from swiftem.core.checks import MemoryLimitError
from swiftem.core.scratch import in_words
from swiftem.core.types import Array, Index
from swiftem.topics.compute import torch as passes
from swiftem.topics.compute.corpus import Documents, Rows
from swiftem.topics.compute.device_documents import DeviceDocuments
from swiftem.topics.compute.torch import SEGMENT, DeviceCounts, Folded, LeftOut, Pass, TorchPasses

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["HostBlocks", "MemorySize", "StreamedPasses", "passes_for"]

log = logging.getLogger("swiftem")


SLOTS = 2
"""Blocks on the device: one is copied, one is computed."""
ALIGNED = 16
"""Bytes that the place of a tensor in a block is a multiple of."""
MAKING = 80
"""Bytes for each entry while both sides are made: the entries, the sort, and its results."""
FAST_WORK = 64 << 20
"""Memory of temporary arrays of kernels."""
TABLES = 12
"""Arrays (V, K) of float64 on the device: words of topics, their counts, sums, and copies."""


class MemorySize:
    """Memory that counts need on a device, in bytes.

    Parameters
    ----------
    documents : Documents
        The counts.
    n_topics, itemsize : int
        K, and the size of the numbers that passes compute in.
    """

    def __init__(self, documents: Documents, n_topics: int, itemsize: int) -> None:
        self._documents = documents
        row = itemsize * (-(-n_topics // 8) * 8)
        work = FAST_WORK if itemsize == 4 else 5 * 8 * passes.NUMBERS
        self._fixed: int = work + documents.n_words * (TABLES * 8 * n_topics + 100)
        # Sums of segments that are not the only ones of their row.
        self._per_entry: int = MAKING + -(-4 * row // SEGMENT)
        self._per_document: int = 100 + (SLOTS + 3) * row

    @property
    def resident(self) -> int:
        """Of all counts."""
        return self._fixed + int(self._of_documents.sum())

    @property
    def least(self) -> int:
        """Of the topics and the largest document."""
        return self._fixed + int(self._of_documents.max())

    @property
    def _of_documents(self) -> Index:
        found: Index = self._per_entry * np.diff(self._documents.begin) + self._per_document
        return found

    def ranges(self, room: int) -> list[tuple[int, int]]:
        """Return ranges of documents that fit: their first numbers, and those after their last."""
        each = self._of_documents
        found, ends, most = [0], np.concatenate([[0], each.cumsum()]), room - self._fixed
        while found[-1] < len(each):
            found.append(int(np.searchsorted(ends, ends[found[-1]] + most, side="right")) - 1)
        return list(pairwise(found))


class HostBlocks:
    """Blocks of counts in memory of the CPU, pinned if the device is a GPU.

    Parameters
    ----------
    documents : Documents
        The counts.
    ranges : list of tuple
        First document of each block, and the one after its last.
    n_topics : int
        K.
    device : torch.device
        The device.
    dtype : torch.dtype
        Of the counts.
    """

    def __init__(
        self, documents: Documents, ranges: list[tuple[int, int]], n_topics: int, device: Any, dtype: Any
    ) -> None:
        self._documents, self._device, self._dtype = documents, device, dtype
        self.ranges = [slice(*edges) for edges in ranges]
        self.is_pinned = device.type == "cuda"
        self.nothing = self._counts(slice(0, 0), n_topics)
        self._packed, self._blocks = [], []
        for here in self.ranges:
            made = self._counts(here, n_topics)
            packed = _Packed(made.tensors(), is_pinned=self.is_pinned)
            self._packed.append(packed)
            self._blocks.append(made.with_tensors(packed.views(packed.memory)))

    def _counts(self, here: slice, n_topics: int) -> DeviceCounts:
        """Return some documents on the device."""
        documents = self._documents
        first, last = documents.begin[here.start], documents.begin[here.stop]
        rows = Rows(
            documents.begin[here.start : here.stop + 1] - first,
            documents.word[first:last],
            documents.count[first:last],
            (here.stop - here.start, documents.n_words),
        )
        return DeviceCounts(Documents(rows, documents.weight[here]), n_topics, self._device, self._dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        """Return memory of the CPU, a tensor."""
        return torch.empty(shape, dtype=dtype, pin_memory=self.is_pinned)

    def copies(self, topics: Tensor) -> Iterator[tuple[slice, DeviceCounts, Tensor]]:
        """Yield each block: its documents, its counts, and their rows of ``topics`` (D, S), on the device.

        A block is valid until the next.
        """
        if not self.is_pinned:
            for here, block in zip(self.ranges, self._blocks, strict=True):
                yield here, block, topics[here]
            return
        slots: list[_Slot] = []
        copying, ready = torch.cuda.Stream(self._device), -1
        most = max(here.stop - here.start for here in self.ranges), topics.shape[1]
        size = max(packed.memory.numel() for packed in self._packed)
        for number, (here, packed) in enumerate(zip(self.ranges, self._packed, strict=True)):
            if number < SLOTS:
                slots.append(_Slot(size, most, topics.dtype, self._device))
            slots[number % SLOTS].send(copying, packed.memory, topics[here])
            if ready >= 0:
                yield from self._copied(ready, slots[ready % SLOTS])
            ready = number
        yield from self._copied(ready, slots[ready % SLOTS])

    def _copied(self, number: int, slot: _Slot) -> Iterator[tuple[slice, DeviceCounts, Tensor]]:
        """Yield a block whose copy is under way; it may be overwritten after that."""
        here, now = self.ranges[number], torch.cuda.current_stream(self._device)
        now.wait_event(slot.copied)
        counts = self._blocks[number].with_tensors(self._packed[number].views(slot.memory))
        yield here, counts, slot.topics[: here.stop - here.start]
        slot.used.record(now)


class _Packed:
    """Tensors in one piece of memory of the CPU."""

    def __init__(self, tensors: list[Tensor], *, is_pinned: bool) -> None:
        self._parts, end = [], 0
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            self._parts.append((end, end + size, tensor.dtype))
            end += -(-size // ALIGNED) * ALIGNED
        self.memory = torch.empty(end, dtype=torch.uint8, pin_memory=is_pinned)
        for to, tensor in zip(self.views(self.memory), tensors, strict=True):
            to.copy_(tensor)

    def views(self, memory: Tensor) -> list[Tensor]:
        """Return the tensors in a copy of the memory."""
        return [memory[first:last].view(dtype) for first, last, dtype in self._parts]


class _Slot:
    """Memory of a block on the device, and when it may be overwritten."""

    def __init__(self, size: int, shape: tuple[int, int], dtype: Any, device: Any) -> None:
        self.memory = torch.empty(size, dtype=torch.uint8, device=device)
        self.topics = torch.empty(shape, dtype=dtype, device=device)
        self.copied, self.used = torch.cuda.Event(), torch.cuda.Event()
        self.used.record(torch.cuda.current_stream(device))  # the memory may be that of earlier work

    def send(self, copying: Any, memory: Tensor, topics: Tensor) -> None:
        """Begin to copy a block and the topics of its documents."""
        with torch.cuda.stream(copying):
            copying.wait_event(self.used)
            self.memory[: len(memory)].copy_(memory, non_blocking=True)
            self.topics[: len(topics)].copy_(topics, non_blocking=True)
            self.copied.record(copying)


class StreamedPasses(TorchPasses):
    """As :class:`TorchPasses`, over blocks; topics of documents are tensors in memory of the CPU.

    Sums of blocks are added in order: the same blocks give the same bits.

    Parameters
    ----------
    blocks : HostBlocks
        The counts.
    alpha
        As in :class:`TorchPasses`.
    kind : type of TorchPasses
        The passes over a block.
    """

    def __init__(self, blocks: HostBlocks, alpha: Array, kind: type[TorchPasses]) -> None:
        super().__init__(blocks.nothing, alpha)
        self._blocks, self._kind = blocks, kind
        self._single = kind(blocks.nothing, alpha)
        self._spare: Any = None

    def with_alpha(self, alpha: Array) -> TorchPasses:
        """Return the passes over the same counts with another α (K,)."""
        return StreamedPasses(self._blocks, alpha, self._kind)

    def shares(self, doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K), an array, in the form of passes, on the CPU."""
        found: Any = None
        for here in self._blocks.ranges:
            part = self._single.shares(doc_topic[here])
            if found is None:
                found = self._blocks.empty((len(doc_topic), part.shape[1]), part.dtype)
            found[here] = part
        return found

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`TorchPasses.em`; ``doc_topic`` becomes the memory of the next pass's result."""
        after = self._memory_like(doc_topic)
        by_word, logs = self._nothing(word_topic), 0.0
        for here, counts, topics in self._blocks.copies(doc_topic):
            found = self._kind(counts, self.alpha).em(topics, word_topic, left_out)
            after[here].copy_(found.doc_topic, non_blocking=True)
            by_word += found.by_word
            logs = logs + found.log_likelihood
        self._wait()
        self._spare = doc_topic
        return Pass(after, by_word, logs)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> Folded:
        """As :meth:`TorchPasses.fold`."""
        empty, n = self._blocks.empty, len(doc_topic)
        all_of = Folded(
            empty(tuple(doc_topic.shape), doc_topic.dtype),
            empty((n,), torch.float64),
        )
        for here, counts, topics in self._blocks.copies(doc_topic):
            found = self._kind(counts, self.alpha).fold(word_topic, topics, max_iter, tol)
            for to, part in zip(all_of, found, strict=True):
                to[here].copy_(part, non_blocking=True)
        self._wait()
        return all_of

    def _nothing(self, word_topic: Tensor) -> Tensor:
        """Return zeros of the shape of words of topics, (V, K), float64."""
        return torch.zeros(word_topic.shape, dtype=torch.float64, device=self.device)

    def _memory_like(self, doc_topic: Tensor) -> Tensor:
        """Return memory for the topics of documents after a pass."""
        found, self._spare = self._spare, None
        if found is None or found.shape != doc_topic.shape:
            found = self._blocks.empty(tuple(doc_topic.shape), doc_topic.dtype)
        return found

    def _wait(self) -> None:
        """Wait until results are in memory of the CPU."""
        if self._blocks.is_pinned:
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
    kind = kernel_passes(n_topics) if dtype is np.float32 and device.type == "cuda" else TorchPasses
    number_type = torch.float64 if kind is TorchPasses else torch.float32
    size = MemorySize(documents, n_topics, number_type.itemsize)
    room = size.resident if limit is None else limit
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if limit is None and size.resident > free:
            # The same blocks on the same kind of device, unless others need its memory.
            room = total // 4 if total // 4 <= free else int(0.8 * free)
        room = min(room, free)
    if size.resident <= room:
        return kind(DeviceCounts(documents, n_topics, device, number_type), alpha)
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
    blocks = HostBlocks(documents, size.ranges(room), n_topics, device, number_type)
    return StreamedPasses(blocks, alpha, kind)


def kernel_passes(n_topics: int) -> type[TorchPasses]:
    """Return the passes by kernels, or those of PyTorch without Triton, or if there are too many topics."""
    try:
        from swiftem.topics.compute.triton import MOST_TOPICS, KernelPasses
    except ImportError:  # Triton is for Linux
        return TorchPasses
    return KernelPasses if n_topics <= MOST_TOPICS else TorchPasses
