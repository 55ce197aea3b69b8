"""Passes over documents in PyTorch, in float64: the definition of correct on a device.

The equations are in ``documents.py``; ``numpy.py`` has the same in NumPy. Entries are gone through twice, in
the order of documents and in that of words: both sides compute the responsibilities, and each adds its own,
segment by segment, in order. ``triton.py`` has the same passes in float32, by kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.numpy import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY

__all__ = ["DeviceCounts", "LeftOut", "Pass", "Side", "TorchPasses", "left_out_of"]

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


def left_out_of(totals: Tensor, beta: Tensor) -> LeftOut:
    """Return what leaving a token out needs of the topics' totals (K,), counts and β, and of β."""
    inverse = torch.where(totals > 0.0, 1.0 / totals, 0.0)
    return LeftOut(inverse, beta * inverse)
