"""Passes over documents in PyTorch, in float64: the definition of correct on a device.

The equations are in ``documents.py``; ``numpy.py`` has the same in NumPy. Entries are gone through twice, by
document and by word: both sides compute the responsibilities, and each adds its own, segment by segment, in
order. ``triton.py`` has the same sums in float32, by a kernel.

Counts that do not fit into the device's memory are copied there in every pass, block by block, as
:class:`StreamedPasses` does. :func:`passes_for` chooses. :class:`DeviceTopics` has em's passes with what
``topics/fit.py`` says; topics stay on the device between them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from swiftem.core.checks import MemoryLimitError
from swiftem.core.files import in_words
from swiftem.core.types import Array, Index
from swiftem.kernels.torch_device import LIVE, copied
from swiftem.topics.compute.corpus import Documents, nothing
from swiftem.topics.compute.numpy import (
    LEAST,
    LEAST_LEAP,
    LONGEST_LEAP,
    SMALLEST,
    TINY,
    decorrelated,
    make_room,
    with_background,
)
from swiftem.topics.documents import FLUSH

if TYPE_CHECKING:
    from swiftem.topics.compute.corpus import DeviceDocuments

log = logging.getLogger("swiftem")

SEGMENT = 256
"""Maximum number of entries that are added in float32, and of one program's work."""
BLOCK = 32 << 20
"""Bytes of topics of documents that stay in the cache of a device while the words of these documents are
summed: see :class:`DeviceCounts`."""
NUMBERS = 1 << 24
"""Numbers of an array that is computed at a time: entries times topics."""
MAKING = 80
"""Bytes for each entry while both sides are made: the entries, the sort, and its results."""
FAST_WORK = 64 << 20
"""Memory of temporary arrays of kernels."""
TABLES = 12
"""Arrays (V, K) of float64 on the device: words of topics, their counts, sums, and copies."""
AHEAD = 1 << 16
"""Documents that are extrapolated at a time."""
FOLDS, FOLD_CHANGE = 10, 1e-2
"""Passes over documents before the first M-step of words, and the change of its topics that ends a
document's."""
COPIES = 8
"""Arrays (D, K) on the device while documents are folded in, in addition to the blocks that are copied."""

LeftOut = tuple[Tensor, Tensor]
"""What leaving a token out needs of the topics, float64: 1 / B_k (K,), with B_k the sum of counts and β over
a topic's words, or 0 for B_k = 0; and the least that is left of a word's probability, β_kv / B_k, of shape
(1, K) or (V, K)."""


class Side(NamedTuple):
    """Entries in the order of rows, which are documents or words, in segments of a row.

    Attributes
    ----------
    row : tensor of int, shape (S,)
        Row of each segment.
    begin : tensor of int, shape (S + 1,)
        Segment i is entries ``begin[i]`` to ``begin[i + 1]`` − 1.
    other : tensor of int, shape (m,)
        The entries' words if rows are documents, and the reverse.
    counts : tensor, shape (m,)
        Their counts.
    first : tensor of int, shape (R + 1,)
        The segments of row r are ``order[first[r]]`` to ``order[first[r + 1] - 1]``.
    order : tensor of int, shape (S,)
        Segments by row.
    """

    row: Tensor
    begin: Tensor
    other: Tensor
    counts: Tensor
    first: Tensor
    order: Tensor

    @classmethod
    def of(cls, key: Tensor, n_keys: int, n_rows: int, other: Tensor, counts: Tensor) -> Side:
        """Return entries as segments.

        Parameters
        ----------
        key : tensor of int, shape (m,)
            Ascending: the row of each entry, or block·n_rows + row.
        n_keys, n_rows : int
            Number of keys and of rows. With one block every row has a segment, even if it has no entries.
        other, counts : tensor, shape (m,)
            The entries.
        """
        keys = torch.arange(n_keys, device=key.device)
        begin = torch.searchsorted(key, torch.arange(n_keys + 1, device=key.device, dtype=key.dtype))
        segments = (begin.diff() + SEGMENT - 1) // SEGMENT
        if n_keys == n_rows:
            segments.clamp_(min=1)
        key_of_segment = torch.repeat_interleave(keys, segments)
        before = (segments.cumsum(0) - segments)[key_of_segment]
        place = torch.arange(len(key_of_segment), device=key.device) - before
        starts = torch.cat([begin[key_of_segment] + SEGMENT * place, begin[-1:]])
        row = key_of_segment % n_rows
        order = torch.argsort(row, stable=True)
        first = torch.zeros(n_rows + 1, dtype=torch.int64, device=key.device)
        first[1:] = torch.bincount(row, minlength=n_rows).cumsum(0)
        return cls(row.int(), starts, other, counts, first, order)


class DeviceCounts(NamedTuple):
    """A corpus on a device, twice: by document, and by word.

    Each side computes its own sums, so that nothing is added atomically: sums have the same bits in every
    run. Words are summed from the topics of documents all over the corpus. If these do not fit into the
    device's cache, words are summed in blocks of documents that do.

    Attributes
    ----------
    is_weighted : bool
        Whether a weight is not one.
    by_document, by_word : Side
        The entries.
    weight, length : tensor, shape (D,)
        Weights and tokens of documents, float64.
    """

    is_weighted: bool
    by_document: Side
    by_word: Side
    weight: Tensor
    length: Tensor

    @classmethod
    def of(
        cls, documents: Documents, n_topics: int, device: torch.device | str, dtype: torch.dtype
    ) -> DeviceCounts:
        """Return documents on a device, with counts of this type; blocks are for this number of topics."""
        n, n_words = documents.n, documents.n_words
        word = torch.from_numpy(documents.word).to(device)
        counts = torch.from_numpy(documents.count).to(device).to(dtype)
        begin = torch.from_numpy(documents.begin).to(device)
        numbers = torch.arange(n, device=device, dtype=torch.int32)
        document = torch.repeat_interleave(numbers, begin.diff())
        by_document = Side.of(document, n, n, word, counts)
        per_block = max(1, BLOCK // (4 * n_topics))
        n_blocks = -(-n // per_block)
        key = word if n_blocks <= 1 else (document // per_block).long() * n_words + word
        key, order = torch.sort(key, stable=True)
        by_word = Side.of(key, n_blocks * n_words, n_words, document[order], counts[order])
        weight, length = torch.from_numpy(np.stack([documents.weight, documents.length])).to(device)
        return cls(bool((documents.weight != 1.0).any()), by_document, by_word, weight, length)

    def tensors(self) -> list[Tensor]:
        """Return all tensors, in the order that :meth:`with_tensors` takes them in."""
        return [*self.by_document, *self.by_word, self.weight, self.length]

    def with_tensors(self, tensors: list[Tensor]) -> DeviceCounts:
        """Return the same counts in other memory."""
        size = len(Side._fields)
        sides = Side(*tensors[:size]), Side(*tensors[size : 2 * size])
        return DeviceCounts(self.is_weighted, *sides, *tensors[2 * size :])


class Pass(NamedTuple):
    """Results of a pass.

    Attributes
    ----------
    doc_topic : tensor, shape (D, K) or padded
        Topics of documents after their M-step.
    by_word : tensor, shape (V, K)
        Expected counts of words in topics, weighted, float64.
    log_likelihood : tensor, shape ()
        Σ n log p of all entries, weighted, before the M-step, float64.
    """

    doc_topic: Tensor
    by_word: Tensor
    log_likelihood: Tensor


class TorchPasses:
    """Passes over a corpus on a device.

    Parameters
    ----------
    counts : DeviceCounts
        The corpus.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        self.counts, self.alpha, self.device = counts, alpha, counts.weight.device
        self._alpha = torch.from_numpy(alpha).to(self.device)
        tokens = counts.length + self._alpha.sum()
        self._own = torch.where(tokens > 0.0, 1.0 / tokens, 0.0)

    def with_alpha(self, alpha: Array) -> TorchPasses:
        """Return the passes over the same counts with another α (K,)."""
        return type(self)(self.counts, alpha)

    @property
    def n_topics(self) -> int:
        """K."""
        return len(self.alpha)

    def on_device(self, array: Array) -> Tensor:
        """Return a copy of an array on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @staticmethod
    def form(doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K) in the form of passes, in memory of the CPU."""
        return torch.from_numpy(np.ascontiguousarray(doc_topic))

    def shares(self, doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K) in the form of passes."""
        return self.form(doc_topic).to(self.device)

    def array(self, doc_topic: Tensor) -> Array:
        """Return topics of documents as an array (D, K), float64."""
        return np.asarray(doc_topic[:, : self.n_topics].double().cpu().numpy())

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """One E-step of all documents, and the M-step of their topics.

        Parameters
        ----------
        doc_topic : tensor, shape (D, K)
            Topics of documents, in the form of passes.
        word_topic : tensor, shape (V, K)
            Words of topics, float64.
        left_out : LeftOut, optional
            If given, each token is left out of the counts that explain it.
        """
        table = self._table(word_topic)
        after, logs = self._documents(doc_topic, table, left_out)
        by_word = self._words(doc_topic, table, left_out)
        return Pass(after, by_word, (self.counts.weight * logs).sum())

    def _table(self, word_topic: Tensor) -> Tensor:
        """Return words of topics (V, K) in the form of passes."""
        return word_topic

    def _documents(
        self, doc_topic: Tensor, table: Tensor, left_out: LeftOut | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return topics of documents (D, K) after their M-step, and Σ n log p before it (D,)."""
        sums, logs = self._sums(self.counts.by_document, doc_topic, table, left_out)
        return self._m_step(sums), logs

    def _words(self, doc_topic: Tensor, table: Tensor, left_out: LeftOut | None) -> Tensor:
        """Return the expected counts of words in topics (V, K), weighted, float64."""
        return self._sums(self.counts.by_word, doc_topic, table, left_out)[0]

    def _sums(
        self, side: Side, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None
    ) -> tuple[Tensor, Tensor]:
        """Return Σ n·r of rows (R, K), weighted if they are words, and Σ n log p (R,)."""
        parts, logs, is_documents = [], [], side is self.counts.by_document
        for part, segment, lengths in _blocks(side, self.n_topics):
            row, other, n = side.row[segment].long(), side.other[part].long(), side.counts[part].double()
            document, word = (row, other) if is_documents else (other, row)
            a, b = doc_topic[document], word_topic[word]
            rows, p = self._responsibilities(a, b, n, document, word, left_out)
            rows *= (n if is_documents else n * self.counts.weight[document])[:, None]
            parts.append(torch.segment_reduce(rows, "sum", lengths=lengths, unsafe=True))
            logs.append(torch.segment_reduce(n * p.log(), "sum", lengths=lengths, unsafe=True))
        return by_row(side, torch.cat(parts)), by_row(side, torch.cat(logs))

    def _responsibilities(
        self, a: Tensor, b: Tensor, n: Tensor, document: Tensor, word: Tensor, left_out: LeftOut | None
    ) -> tuple[Tensor, Tensor]:
        """Return r (m, K) and p (m,) of entries, from a and b (m, K)."""
        joint = a * b
        p = joint.sum(dim=1).clamp_(min=SMALLEST)
        if left_out is None:
            return joint.div_(p[:, None]), p
        one = n.clamp(max=1.0) / p  # a fraction of a token has added no more than itself
        own = self._own[document]
        a = torch.maximum(a - (one * own)[:, None] * joint, own[:, None] * self._alpha)
        one = one * self.counts.weight[document].clamp(max=1.0)
        inverse, floor = left_out
        a *= torch.maximum(b - one[:, None] * joint * inverse, floor if len(floor) == 1 else floor[word])
        without = a.sum(dim=1)
        is_left = without > SMALLEST  # else nothing is left without the token: it is included
        a = torch.where(is_left[:, None], a, joint)
        return a.div_(torch.where(is_left, without, p)[:, None]), p

    def _m_step(self, counts: Tensor) -> Tensor:
        """Return topics of documents (D, K) from their counts; uniform if there are none."""
        counts = counts + self._alpha
        total = counts.sum(dim=1, keepdim=True)
        found = torch.where(total > 0.0, counts / total, 1.0 / self.n_topics)
        return torch.where(found > TINY, found, 0.0)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> tuple[Tensor, Tensor]:
        """Find documents' topics for given words of topics, from ``doc_topic`` on; each stops by itself.

        Return them, and the log-likelihoods (D,). Every third iterate is extrapolated, as in
        :func:`swiftem.topics.compute.numpy.fold`.
        """
        found, zeroth, table = doc_topic, doc_topic, self._table(word_topic)
        goes_on = torch.ones(len(found), dtype=torch.bool, device=found.device)
        for count in range(1, max_iter + 1):
            if not bool(goes_on.any()):
                break
            after, _ = self._documents(found, table)
            change = (after - found).abs().sum(dim=1)
            far = after
            if count % 2 == 0:
                jumps = (change >= tol) & (change > LEAST_LEAP) & (count < max_iter)
                far = torch.where(jumps[:, None], _leap(zeroth, found, after), after)
            zeroth = found
            found = torch.where(goes_on[:, None], far, found)
            goes_on &= change >= tol
        return found, self._documents(found, table)[1]


def _leap(zeroth: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Extrapolate three iterates (D, K), document by document (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = step.square().sum(dim=1), bend.square().sum(dim=1)
    length = torch.where(bends > 0.0, (squares / bends).sqrt(), 1.0).clamp(1.0, LONGEST_LEAP)[:, None]
    found = torch.maximum(zeroth + 2.0 * length * step + length.square() * bend, 0.1 * second)
    return found / found.sum(dim=1, keepdim=True)


def _blocks(side: Side, n_topics: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield a slice of entries, the segment of each, and the lengths of these segments."""
    size = max(1, NUMBERS // (SEGMENT * n_topics))
    for start in range(0, len(side.row), size):
        begin = side.begin[start : start + size + 1]
        lengths = begin.diff()
        numbers = torch.arange(start, start + len(lengths), device=begin.device)
        yield slice(int(begin[0]), int(begin[-1])), torch.repeat_interleave(numbers, lengths), lengths


def by_row(side: Side, segments: Tensor) -> Tensor:
    """Return the sums of segments by row."""
    return torch.segment_reduce(segments[side.order], "sum", lengths=side.first.diff(), unsafe=True)


def left_out_of(totals: Tensor, beta: Tensor) -> LeftOut:
    """Return what leaving a token out needs of the topics' totals (K,), counts and β, and of β."""
    inverse = torch.where(totals > 0.0, 1.0 / totals, 0.0)
    return inverse, beta * inverse


def bytes_needed(documents: Documents, n_topics: int, itemsize: int) -> tuple[int, Index]:
    """Return the memory that passes need on a device: in any case, and for each document (D,).

    ``itemsize`` is the size of the numbers that they compute in.
    """
    row = itemsize * (-(-n_topics // 8) * 8)
    work = FAST_WORK if itemsize == 4 else 5 * 8 * NUMBERS
    # Sums of segments that are not the only ones of their row.
    per_entry = MAKING + -(-4 * row // SEGMENT)
    per_document = 100 + (LIVE + COPIES) * row
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
        return self._room(found).copy_(found)

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`TorchPasses.em`."""
        after, by_word = self._room(doc_topic), torch.zeros_like(word_topic)
        logs = by_word.new_zeros(())
        for here, single, topics in self._copies(doc_topic):
            found = single.em(topics, word_topic, left_out)
            by_word += found.by_word
            logs += found.log_likelihood
            after[here].copy_(found.doc_topic)
        return Pass(after, by_word, logs)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> tuple[Tensor, Tensor]:
        """As :meth:`TorchPasses.fold`."""
        after, logs = self._room(doc_topic), torch.empty(len(doc_topic), dtype=torch.float64)
        for here, single, topics in self._copies(doc_topic):
            after[here], logs[here] = single.fold(word_topic, topics, max_iter, tol)
        return after, logs

    def _copies(self, doc_topic: Tensor) -> Iterator[tuple[slice, TorchPasses, Tensor]]:
        """Yield each block: its documents, its passes, and the topics of its documents on the device."""
        blocks = (((here, counts), [doc_topic[here], *counts.tensors()]) for here, counts in self.blocks)
        for (here, counts), (topics, *tensors) in copied(blocks, self.device):
            yield here, self._single(counts.with_tensors(tensors), self.alpha), topics

    def _room(self, like: Tensor) -> Tensor:
        """Return memory of the CPU, pinned if the device is a GPU."""
        return torch.empty_like(like, pin_memory=self.device.type == "cuda")


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
    """Return the passes by kernels, or by PyTorch if Triton is missing or there are too many topics."""
    try:
        from swiftem.topics.compute.triton import MOST_TOPICS, KernelPasses
    except ImportError:  # Triton is for Linux
        return TorchPasses
    return KernelPasses if n_topics <= MOST_TOPICS else TorchPasses


def m_step(counts: Tensor, beta: Tensor) -> Tensor:
    """Return words of topics (V, K) from counts (V, K) and β (1, K) or (V, K); uniform if there are none."""
    filled = counts.clamp(min=0.0).add_(beta)
    totals = filled.sum(dim=0)
    is_there = (totals > 0.0) & torch.isfinite(totals)
    found = torch.where(is_there, filled.div_(totals), 1.0 / len(filled))
    return torch.where(found < FLUSH, 0.0, found)


class DeviceTopics:
    """em's passes over documents on a device.

    Parameters
    ----------
    passes : TorchPasses
        The passes over the documents.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    topics, doc_topic, counts : ndarray, shapes (K, V), (D, K) and (K, V)
        Where em starts or resumes; counts may be None.
    leave_one_out : bool
        Whether tokens are left out of the counts that explain them, as soon as there are counts.
    background, decorrelation : bool and float
        Whether topic 0 is a background, and how strongly topics repel each other.
    momentum : float
        Strength of the momentum.
    state : tuple of ndarrays or None
        Counts (K, V) and topics of documents (D, K) after the pass before: the state of the momentum.
    """

    def __init__(
        self,
        passes: TorchPasses,
        beta: Array,
        topics: Array,
        doc_topic: Array,
        counts: Array | None,
        *,
        leave_one_out: bool = False,
        background: bool = False,
        decorrelation: float = 0.0,
        momentum: float = 0.0,
        state: tuple[Array, Array] | None = None,
    ) -> None:
        self._passes, self._leave_one_out, self._momentum = passes, leave_one_out, momentum
        self._background, self._strength = background, decorrelation
        self._beta = passes.on_device(np.broadcast_to(beta.T, (beta.shape[1], passes.n_topics)))
        self._topics, self._doc_topic = passes.on_device(topics.T), passes.shares(doc_topic)
        self._counts = None if counts is None else passes.on_device(counts.T)
        if momentum and counts is None:  # in place of a first reading by sem
            self._doc_topic = passes.fold(self._topics, self._doc_topic, FOLDS, FOLD_CHANGE)[0]
        self._behind: tuple[Tensor, Tensor] | None = None
        if state is not None:
            self._behind = passes.on_device(state[0].T), passes.shares(state[1])

    def step(
        self,
        between: Callable[[], None] = nothing,
        *,
        add_background: bool = False,
        least: float = -np.inf,
    ) -> float:
        """As :meth:`swiftem.topics.fit.HostPasses.step`."""
        between()
        left_out, beta = None, self._beta
        if self._leave_one_out and self._counts is not None:
            totals = self._counts.clamp(min=0.0).sum(dim=0) + beta.expand_as(self._counts).sum(dim=0)
            left_out = left_out_of(totals, beta)
        found = self._passes.em(self._doc_topic, self._topics, left_out)
        counts, self._doc_topic = found.by_word, found.doc_topic
        if add_background:
            by_topic, place = with_background(counts.T)
            counts, used = by_topic.T, self._doc_topic[:, : self._passes.n_topics]
            shares = used.double()
            make_room(shares, place)
            used.copy_(shares)
        value = float(found.log_likelihood)
        if self._strength:
            topics = m_step(counts, beta).T
            counts = decorrelated(counts.T, topics, self._strength, self._background).T
        self._counts = self._ahead(counts, value < least) if self._momentum else counts
        self._topics = m_step(self._counts, beta)
        return value

    def _ahead(self, counts: Tensor, is_worse: bool) -> Tensor:
        """Return the counts that the next pass begins at; topics of documents are changed likewise."""
        before = self._behind
        if before is None or is_worse:
            self._behind = counts.clone(), self._doc_topic.clone()
            return counts
        for first in range(0, len(self._doc_topic), AHEAD):
            now, earlier = (part[first : first + AHEAD] for part in (self._doc_topic, before[1]))
            ahead = self._extrapolated(now.double(), earlier)
            earlier.copy_(now)
            now.copy_(ahead.div_(ahead.sum(dim=1, keepdim=True)))
        self._behind = counts.clone(), before[1]
        return self._extrapolated(counts, before[0])

    def _extrapolated(self, now: Tensor, before: Tensor) -> Tensor:
        return ((now - before) * self._momentum + now).maximum(LEAST * now)

    def read(self) -> tuple[Array, Array, Array | None]:
        """Return topics (K, V), doc_topic (D, K), and counts (K, V) or None, as arrays."""
        counts = None if self._counts is None else self._counts.cpu().numpy().T
        return self._topics.cpu().numpy().T, self._passes.array(self._doc_topic), counts

    @property
    def state(self) -> tuple[Array, Array] | None:
        """State of the momentum as arrays: counts (K, V), doc_topic (D, K)."""
        if self._behind is None:
            return None
        counts, doc_topic = self._behind
        return counts.cpu().numpy().T, self._passes.array(doc_topic)
