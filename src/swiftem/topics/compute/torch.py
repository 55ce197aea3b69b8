"""Passes over documents in PyTorch, in float64: the definition of correct on a device; em of topics there.

The equations are in ``documents.py``; ``numpy.py`` has the same in NumPy. Entries are gone through twice, in
the order of documents and in that of words: both sides compute the responsibilities, and each adds its own,
segment by segment, in order. ``triton.py`` has the same passes in float32, by kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.numpy import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY
from swiftem.topics.documents import FLUSH

__all__ = ["DeviceCounts", "DeviceTopics", "LeftOut", "Pass", "Side", "TorchPasses", "left_out_of", "m_step"]

SEGMENT = 256
"""Maximum number of entries that are added in float32, and of one program's work."""
BLOCK = 32 << 20
"""Bytes of topics of documents that stay in the cache of a device while the words of these documents are
summed: see :class:`DeviceCounts`."""


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
    begin : tensor of int, shape (D + 1,)
        First entries of the documents.
    """

    is_weighted: bool
    by_document: Side
    by_word: Side
    weight: Tensor
    length: Tensor
    begin: Tensor

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
        return cls(bool((documents.weight != 1.0).any()), by_document, by_word, weight, length, begin)

    def tensors(self) -> list[Tensor]:
        """Return all tensors, in the order that :meth:`with_tensors` takes them in."""
        return [*self.by_document, *self.by_word, self.weight, self.length, self.begin]

    def with_tensors(self, tensors: list[Tensor]) -> DeviceCounts:
        """Return the same counts in other memory."""
        size = len(Side._fields)
        sides = Side(*tensors[:size]), Side(*tensors[size : 2 * size])
        return DeviceCounts(self.is_weighted, *sides, *tensors[2 * size :])


NUMBERS = 1 << 24
"""Numbers of an array that is computed at a time: entries times topics."""


class LeftOut(NamedTuple):
    """What leaving a token out needs of the topics, float64.

    Attributes
    ----------
    inverse : tensor, shape (K,)
        1 / B_k, with B_k the sum of counts and β over a topic's words; 0 for B_k = 0.
    floor : tensor, shape (1, K) or (V, K)
        β_kv / B_k: what is left of a word's probability at least.
    """

    inverse: Tensor
    floor: Tensor


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
        counts, weight = self.counts, self.counts.weight
        by_document, logs = self._sums(counts.by_document, doc_topic, word_topic, left_out)
        by_word, _ = self._sums(counts.by_word, doc_topic, word_topic, left_out)
        return Pass(self._m_step(by_document), by_word, (weight * logs).sum())

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
        return _by_row(side, torch.cat(parts)), _by_row(side, torch.cat(logs))

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
        floor = left_out.floor if len(left_out.floor) == 1 else left_out.floor[word]
        a *= torch.maximum(b - one[:, None] * joint * left_out.inverse, floor)
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
        found, zeroth, side = doc_topic.clone(), doc_topic.clone(), self.counts.by_document
        goes_on = torch.ones(len(found), dtype=torch.bool, device=found.device)
        for count in range(1, max_iter + 1):
            if not bool(goes_on.any()):
                break
            after = self._m_step(self._sums(side, found, word_topic, None)[0])
            change = (after - found).abs().sum(dim=1)
            far = after
            if count % 2 == 0:
                jumps = (change >= tol) & (change > LEAST_LEAP) & (count < max_iter)
                far = torch.where(jumps[:, None], _leap(zeroth, found, after), after)
            zeroth = found
            found = torch.where(goes_on[:, None], far, found)
            goes_on &= change >= tol
        return found, self._sums(side, found, word_topic, None)[1]


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


def _by_row(side: Side, segments: Tensor) -> Tensor:
    """Return the sums of segments by row."""
    return torch.segment_reduce(segments[side.order], "sum", lengths=side.first.diff(), unsafe=True)


LEAST = 0.1
"""No number falls below this share of em's own step, as in ``estimators/topics/momentum.py``."""
ROWS = 1 << 16
"""Documents that are extrapolated at a time."""


def m_step(counts: Tensor, beta: Tensor) -> Tensor:
    """Return words of topics (V, K) from counts (V, K) and β (1, K) or (V, K); uniform if there are none."""
    filled = counts.clamp(min=0.0).add_(beta)
    totals = filled.sum(dim=0)
    is_there = (totals > 0.0) & torch.isfinite(totals)
    found = torch.where(is_there, filled.div_(totals), 1.0 / len(filled))
    return torch.where(found < FLUSH, 0.0, found)


def left_out_of(totals: Tensor, beta: Tensor) -> LeftOut:
    """Return what leaving a token out needs of the topics' totals (K,), counts and β, and of β."""
    inverse = torch.where(totals > 0.0, 1.0 / totals, 0.0)
    return LeftOut(inverse, beta * inverse)


def decorrelated(counts: Tensor, beta: Tensor, strength: float, background: bool) -> Tensor:
    """Return counts (V, K) over 1 + ``strength`` times the word's mean share in the other topics."""
    first = int(background)
    if strength == 0.0 or counts.shape[1] - first < 2:
        return counts
    by_word = m_step(counts, beta)[:, first:]
    others = by_word.sum(dim=1, keepdim=True) - by_word
    found = counts.clone()
    found[:, first:] /= others.mul_(strength / (counts.shape[1] - first - 1)).add_(1.0)
    return found


def with_background(counts: Tensor, doc_topic: Tensor, share: float) -> Tensor:
    """Return counts (V, K) with the corpus in place of topic 0; ``doc_topic`` (D, K) is changed likewise.

    The smallest topic is dropped, and its index goes to the former topic 0.
    """
    smallest = int(counts.sum(dim=0).argmin())
    found, shares = counts * (1.0 - share), doc_topic.double()
    found[:, smallest] = found[:, 0]
    found[:, 0] = share * counts.sum(dim=1)
    shares[:, smallest] = shares[:, 0]
    shares[:, 0] = 0.0
    totals = shares.sum(dim=1, keepdim=True)
    shares = torch.where(totals > 0.0, shares / (totals / (1.0 - share)), shares)
    shares[:, 0] = 1.0 - shares.sum(dim=1)
    doc_topic.copy_(shares)
    return found


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
    contrast : tuple (background, share, strength)
        Whether topic 0 is a background, its share when it is added, and the strength of the decorrelation.
    momentum : float
        Its strength, as in :class:`swiftem.estimators.topics.momentum.Momentum`.
    behind : tuple of ndarrays or None
        Counts (K, V) and topics of documents (D, K) after the pass before: the state of the momentum.

    Examples
    --------
    Documents make them: see :meth:`swiftem.topics.compute.device_documents.DeviceDocuments.topics`.
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
        contrast: tuple[bool, float, float] = (False, 0.0, 0.0),
        momentum: float = 0.0,
        behind: tuple[Array, Array] | None = None,
    ) -> None:
        self._passes, self._leave_one_out, self._momentum = passes, leave_one_out, momentum
        self._background, self._share, self._strength = contrast
        self._beta = self._there(np.broadcast_to(beta.T, (beta.shape[1], passes.n_topics)))
        self._topics, self._doc_topic = self._there(topics.T), passes.shares(doc_topic)
        self._counts = None if counts is None else self._there(counts.T)
        self._behind: tuple[Tensor, Tensor] | None = None
        if behind is not None:
            self._behind = self._there(behind[0].T), passes.shares(behind[1])

    def _there(self, array: Array) -> Tensor:
        """Return a copy of an array on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._passes.device)

    def step(
        self,
        between: Callable[[], None] = lambda: None,
        *,
        add_background: bool = False,
        least: float = -np.inf,
    ) -> float:
        """Make a pass and the M-steps; return the log-likelihood before them.

        ``add_background`` is whether topic 0 becomes the background in this pass. If the log-likelihood is
        less than ``least``, the next pass begins where this one ends.
        """
        between()
        left_out, beta = None, self._beta
        if self._leave_one_out and self._counts is not None:
            totals = self._counts.clamp(min=0.0).sum(dim=0) + beta.expand_as(self._counts).sum(dim=0)
            left_out = left_out_of(totals, beta)
        found = self._passes.em(self._doc_topic, self._topics, left_out)
        counts, self._doc_topic = found.by_word, found.doc_topic
        if add_background:
            counts = with_background(counts, self._doc_topic[:, : self._passes.n_topics], self._share)
        value = float(found.log_likelihood)
        counts = decorrelated(counts, beta, self._strength, self._background)
        self._counts = self._ahead(counts, value < least) if self._momentum else counts
        self._topics = m_step(self._counts, beta)
        return value

    def _ahead(self, counts: Tensor, is_worse: bool) -> Tensor:
        """Return the counts that the next pass begins at; topics of documents are changed likewise."""
        before = self._behind
        if before is None or is_worse:
            self._behind = counts.clone(), self._doc_topic.clone()
            return counts
        for first in range(0, len(self._doc_topic), ROWS):
            now, earlier = (part[first : first + ROWS] for part in (self._doc_topic, before[1]))
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

    def behind(self) -> tuple[Array, Array] | None:
        """Return the state of the momentum as arrays: counts (K, V), doc_topic (D, K)."""
        if self._behind is None:
            return None
        counts, doc_topic = self._behind
        return counts.cpu().numpy().T, self._passes.array(doc_topic)
