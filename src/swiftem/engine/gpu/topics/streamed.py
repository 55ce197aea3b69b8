"""Counts larger than a device's memory: blocks of documents, copied there in every pass.

Both sides of a block are made on the device once, and kept in pinned memory of the CPU. A pass copies the
next block while it computes one. Topics of documents are in pinned memory too, and go there and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from swiftem._typing import Array, Index
from swiftem.data.foreign import torch_of
from swiftem.engine.documents import Documents, Rows
from swiftem.engine.gpu.topics import passes as plain
from swiftem.engine.gpu.topics.counts import SEGMENT, DeviceCounts
from swiftem.engine.gpu.topics.passes import Folded, LeftOut, Pass, PlainPasses

__all__ = ["HostBlocks", "MemorySize", "StreamedPasses"]

SLOTS = 2
"""Blocks on the device: one is copied, one is computed."""
ALIGNED = 16
"""Bytes that the place of a tensor in a block is a multiple of."""
MAKING = 80
"""Bytes for each entry while both sides are made: the entries, the sort, and its results."""
BATCHES = 200
"""Bytes for each entry of a stretch of batches."""
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
        work = FAST_WORK if itemsize == 4 else 5 * 8 * plain.NUMBERS
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

    def most_entries(self, room: int) -> int:
        """Return the entries of batches that fit into ``room`` beside the topics."""
        return max(1, (room - self._fixed) // (BATCHES + self._per_document))


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
        self._torch, self.documents, self.device, self.dtype = (
            torch_of("a device"), documents, device, dtype,
        )  # fmt: skip
        self.ranges = [slice(*edges) for edges in ranges]
        self.is_pinned = device.type == "cuda"
        self.nothing = self._counts(slice(0, 0), n_topics)
        self._packed, self._blocks = [], []
        for here in self.ranges:
            made = self._counts(here, n_topics)
            packed = _Packed(self._torch, made.tensors(), is_pinned=self.is_pinned)
            self._packed.append(packed)
            self._blocks.append(made.with_tensors(packed.views(packed.memory)))

    def _counts(self, here: slice, n_topics: int) -> DeviceCounts:
        """Return some documents on the device."""
        documents = self.documents
        first, last = documents.begin[here.start], documents.begin[here.stop]
        rows = Rows(
            documents.begin[here.start : here.stop + 1] - first, documents.word[first:last],
            documents.count[first:last], (here.stop - here.start, documents.n_words),
        )  # fmt: skip
        return DeviceCounts(Documents(rows, documents.weight[here]), n_topics, self.device, self.dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return memory of the CPU, a tensor."""
        return self._torch.empty(shape, dtype=dtype, pin_memory=self.is_pinned)

    def copies(self, topics: Any) -> Iterator[tuple[slice, DeviceCounts, Any]]:
        """Yield each block: its documents, its counts, and their rows of ``topics`` (D, S), on the device.

        A block is valid until the next.
        """
        if not self.is_pinned:
            for here, block in zip(self.ranges, self._blocks, strict=True):
                yield here, block, topics[here]
            return
        slots: list[_Slot] = []
        copying, ready = self._torch.cuda.Stream(self.device), -1
        most = max(here.stop - here.start for here in self.ranges), topics.shape[1]
        size = max(packed.memory.numel() for packed in self._packed)
        for number, (here, packed) in enumerate(zip(self.ranges, self._packed, strict=True)):
            if number < SLOTS:
                slots.append(_Slot(self._torch, size, most, topics.dtype, self.device))
            slots[number % SLOTS].send(self._torch, copying, packed.memory, topics[here])
            if ready >= 0:
                yield from self._copied(ready, slots[ready % SLOTS])
            ready = number
        yield from self._copied(ready, slots[ready % SLOTS])

    def _copied(self, number: int, slot: _Slot) -> Iterator[tuple[slice, DeviceCounts, Any]]:
        """Yield a block whose copy is under way; it may be overwritten after that."""
        here, now = self.ranges[number], self._torch.cuda.current_stream(self.device)
        now.wait_event(slot.copied)
        counts = self._blocks[number].with_tensors(self._packed[number].views(slot.memory))
        yield here, counts, slot.topics[: here.stop - here.start]
        slot.used.record(now)


class _Packed:
    """Tensors in one piece of memory of the CPU."""

    def __init__(self, torch: Any, tensors: list[Any], *, is_pinned: bool) -> None:
        self._parts, end = [], 0
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            self._parts.append((end, end + size, tensor.dtype))
            end += -(-size // ALIGNED) * ALIGNED
        self.memory = torch.empty(end, dtype=torch.uint8, pin_memory=is_pinned)
        for to, tensor in zip(self.views(self.memory), tensors, strict=True):
            to.copy_(tensor)

    def views(self, memory: Any) -> list[Any]:
        """Return the tensors in a copy of the memory."""
        return [memory[first:last].view(dtype) for first, last, dtype in self._parts]


class _Slot:
    """Memory of a block on the device, and when it may be overwritten."""

    def __init__(self, torch: Any, size: int, shape: tuple[int, int], dtype: Any, device: Any) -> None:
        self.memory = torch.empty(size, dtype=torch.uint8, device=device)
        self.topics = torch.empty(shape, dtype=dtype, device=device)
        self.copied, self.used = torch.cuda.Event(), torch.cuda.Event()
        self.used.record(torch.cuda.current_stream(device))  # the memory may be that of earlier work

    def send(self, torch: Any, copying: Any, memory: Any, topics: Any) -> None:
        """Begin to copy a block and the topics of its documents."""
        with torch.cuda.stream(copying):
            copying.wait_event(self.used)
            self.memory[: len(memory)].copy_(memory, non_blocking=True)
            self.topics[: len(topics)].copy_(topics, non_blocking=True)
            self.copied.record(copying)


class StreamedPasses(PlainPasses):
    """As :class:`PlainPasses`, over blocks; topics of documents are tensors in memory of the CPU.

    Sums of blocks are added in order: the same blocks give the same bits.

    Parameters
    ----------
    blocks : HostBlocks
        The counts.
    alpha
        As in :class:`PlainPasses`.
    kind : type of PlainPasses
        The passes over a block.
    most_entries : int
        Maximum number of entries of a stretch of batches.
    """

    def __init__(self, blocks: HostBlocks, alpha: Array, kind: type[PlainPasses], most_entries: int) -> None:
        super().__init__(blocks.nothing, alpha)
        self._blocks, self._kind, self.most_entries = blocks, kind, most_entries
        self._single = kind(blocks.nothing, alpha)
        self._spare: Any = None

    @property
    def single(self) -> PlainPasses:
        """Passes of the same kind for batches of documents."""
        return self._single

    def with_alpha(self, alpha: Array) -> PlainPasses:
        """Return the passes over the same counts with another α (K,)."""
        return StreamedPasses(self._blocks, alpha, self._kind, self.most_entries)

    def shares(self, doc_topic: Array) -> Any:
        """Return topics of documents (D, K), an array, in the form of passes, on the CPU."""
        found: Any = None
        for here in self._blocks.ranges:
            part = self._single.shares(doc_topic[here])
            if found is None:
                found = self._blocks.empty((len(doc_topic), part.shape[1]), part.dtype)
            found[here] = part
        return found

    def em(self, doc_topic: Any, word_topic: Any, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`PlainPasses.em`; ``doc_topic`` becomes the memory of the next pass's result."""
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

    def fold(self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float, *, leaps: bool) -> Folded:
        """As :meth:`PlainPasses.fold`."""
        return self._folded_blocks(word_topic, doc_topic, max_iter, tol, leaps=leaps)[0]

    def sums(self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float) -> tuple[Folded, Any]:
        """As :meth:`PlainPasses.sums`."""
        return self._folded_blocks(word_topic, doc_topic, max_iter, tol, leaps=None)

    def _folded_blocks(
        self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float, *, leaps: bool | None
    ) -> tuple[Folded, Any]:
        """Return all documents folded in, and the words' counts if ``leaps`` is None."""
        torch, empty = self._torch, self._blocks.empty
        n, by_word = len(doc_topic), self._nothing(word_topic)
        all_of = Folded(
            empty(tuple(doc_topic.shape), doc_topic.dtype),
            empty((n,), torch.float64),
            empty((n,), torch.int64),
        )
        for here, counts, topics in self._blocks.copies(doc_topic):
            passes = self._kind(counts, self.alpha)
            if leaps is None:
                found, sums = passes.sums(word_topic, topics, max_iter, tol)
                by_word += sums
            else:
                found = passes.fold(word_topic, topics, max_iter, tol, leaps=leaps)
            for to, part in zip(all_of, found, strict=True):
                to[here].copy_(part, non_blocking=True)
        self._wait()
        return all_of, by_word

    def entries_of(self, numbers: Index) -> tuple[Any, Any, Any, Any]:
        """As :meth:`PlainPasses.entries_of`, from memory of the CPU."""
        documents, torch = self._blocks.documents, self._torch
        first = documents.begin[numbers]
        length = documents.begin[numbers + 1] - first
        entry = np.repeat(first - (length.cumsum() - length), length) + np.arange(length.sum())
        found = (length, documents.word[entry], documents.count[entry], documents.weight[numbers])
        lengths, words, counts, weights = (torch.from_numpy(part).to(self.device) for part in found)
        return lengths, words, counts.to(self._blocks.dtype), weights

    def _nothing(self, word_topic: Any) -> Any:
        """Return zeros of the shape of words of topics, (V, K), float64."""
        return self._torch.zeros(word_topic.shape, dtype=self._torch.float64, device=self.device)

    def _memory_like(self, doc_topic: Any) -> Any:
        """Return memory for the topics of documents after a pass."""
        found, self._spare = self._spare, None
        if found is None or found.shape != doc_topic.shape:
            found = self._blocks.empty(tuple(doc_topic.shape), doc_topic.dtype)
        return found

    def _wait(self) -> None:
        """Wait until results are in memory of the CPU."""
        if self._blocks.is_pinned:
            self._torch.cuda.current_stream(self.device).synchronize()
