"""Passes over documents in PyTorch, in float64: the definition of correct on a device, and its fallback.

The equations are in ``engine/numba/plsa_document_passes.py``; ``engine/reference/plsa_documents.py`` has the
same in NumPy. Entries are gone through twice, in the order of documents and in that of words: both sides
compute the responsibilities, and each adds its own, segment by segment, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array, Index
from swiftem.data.foreign import torch_of
from swiftem.engine.gpu.topics.counts import SEGMENT, DeviceCounts, Side
from swiftem.engine.reference.plsa_documents import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY

__all__ = ["Folded", "LeftOut", "Pass", "PlainPasses"]

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

    inverse: Any
    floor: Any


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

    doc_topic: Any
    by_word: Any
    log_likelihood: Any


class Folded(NamedTuple):
    """Documents after rounds of their own: topics, log-likelihoods (D,) and numbers of rounds (D,)."""

    doc_topic: Any
    log_likelihood: Any
    rounds: Any


class PlainPasses:
    """Passes over a corpus on a device.

    Parameters
    ----------
    counts : DeviceCounts
        The corpus.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        self.counts, self.alpha = counts, alpha
        self._torch = torch_of("a device")
        self._alpha = self._torch.from_numpy(alpha).to(counts.weight.device)
        tokens = counts.length + self._alpha.sum()
        self._own = self._torch.where(tokens > 0.0, 1.0 / tokens, 0.0)

    @property
    def device(self) -> Any:
        """The device."""
        return self._alpha.device

    @property
    def single(self) -> PlainPasses:
        """Passes of the same kind for batches of documents."""
        return self

    def with_alpha(self, alpha: Array) -> PlainPasses:
        """Return the passes over the same counts with another α (K,)."""
        return type(self)(self.counts, alpha)

    def entries_of(self, numbers: Index) -> tuple[Any, Any, Any, Any]:
        """Return lengths (b,), words (m,), counts (m,) and weights (b,) of documents, on the device."""
        torch, counts = self._torch, self.counts
        row = torch.from_numpy(np.ascontiguousarray(numbers, np.int64)).to(self.device)
        begin = counts.begin[row]
        length = counts.begin[row + 1] - begin
        entry = torch.repeat_interleave(begin - (length.cumsum(0) - length), length)
        entry += torch.arange(len(entry), device=entry.device)
        side = counts.by_document
        return length, side.other[entry], side.count[entry], counts.weight[row]

    @property
    def n_topics(self) -> int:
        """K."""
        return len(self._alpha)

    def shares(self, doc_topic: Array) -> Any:
        """Return topics of documents (D, K), an array, in the form of passes."""
        return self._torch.from_numpy(np.ascontiguousarray(doc_topic)).to(self._alpha.device)

    def array(self, doc_topic: Any) -> Array:
        """Return topics of documents as an array (D, K), float64."""
        found: Array = doc_topic[:, : self.n_topics].double().cpu().numpy()
        return found

    def em(self, doc_topic: Any, word_topic: Any, left_out: LeftOut | None = None) -> Pass:
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
        torch, counts = self._torch, self.counts
        sums, logs = [], torch.zeros((), dtype=torch.float64, device=doc_topic.device)
        for side in (counts.by_document, counts.by_word):
            is_first = side is counts.by_document
            parts = []
            for part, segment, lengths in _blocks(side, self.n_topics):
                row, other = side.row[segment].long(), side.other[part].long()
                document, word = (row, other) if is_first else (other, row)
                a, b, n = doc_topic[document], word_topic[word], side.count[part].double()
                rows, p = self._responsibilities(a, b, n, document, word, left_out)
                weighted = n if is_first else n * counts.weight[document]
                rows *= weighted[:, None]
                parts.append(torch.segment_reduce(rows, "sum", lengths=lengths, unsafe=True))
                if is_first:
                    logs = logs + (n * counts.weight[document] * p.log()).sum()
            sums.append(_by_row(torch, side, torch.cat(parts)))
        return Pass(self._m_step(sums[0]), sums[1], logs)

    def _responsibilities(
        self, a: Any, b: Any, n: Any, document: Any, word: Any, left_out: LeftOut | None
    ) -> tuple[Any, Any]:
        """Return r (m, K) and p (m,) of entries, from a and b (m, K)."""
        torch = self._torch
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

    def _m_step(self, counts: Any) -> Any:
        """Return topics of documents (D, K) from their counts; uniform if there are none."""
        torch = self._torch
        counts = counts + self._alpha
        total = counts.sum(dim=1, keepdim=True)
        found = torch.where(total > 0.0, counts / total, 1.0 / self.n_topics)
        return torch.where(found > TINY, found, 0.0)

    def fold(self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float, *, leaps: bool) -> Folded:
        """Find documents' topics for given words of topics, from ``doc_topic`` on; each stops by itself.

        ``leaps`` is whether every third iterate is extrapolated, as in
        :func:`swiftem.engine.reference.plsa_documents.fold`.
        """
        return self.folded(self.counts.by_document, word_topic, doc_topic, max_iter, tol, leaps=leaps)

    def folded(
        self, side: Side, word_topic: Any, doc_topic: Any, max_iter: int, tol: float, *, leaps: bool
    ) -> Folded:
        """As :meth:`fold`, of the documents that are the rows of ``side``."""
        torch = self._torch
        found, zeroth = doc_topic.clone(), doc_topic.clone()
        rounds = torch.zeros(len(found), dtype=torch.int64, device=found.device)
        goes_on = torch.ones(len(found), dtype=torch.bool, device=found.device)
        for count in range(1, max_iter + 1):
            if not bool(goes_on.any()):
                break
            after = self._m_step(self._of_documents(side, found, word_topic)[0])
            change = (after - found).abs().sum(dim=1)
            rounds[goes_on] = count
            far = after
            if leaps and count % 2 == 0:
                jumps = (change >= tol) & (change > LEAST_LEAP) & (count < max_iter)
                far = torch.where(jumps[:, None], _leap(torch, zeroth, found, after), after)
            zeroth = found
            found = torch.where(goes_on[:, None], far, found)
            goes_on &= change >= tol
        logs = self._of_documents(side, found, word_topic)[1]
        return Folded(found, logs, rounds)

    def sums(self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float) -> tuple[Folded, Any]:
        """Fold all documents in by plain iterations; return that and the words' counts (V, K), float64."""
        found = self.fold(word_topic, doc_topic, max_iter, tol, leaps=False)
        return found, self._of_words(found.doc_topic, word_topic)

    def _of_words(self, doc_topic: Any, word_topic: Any) -> Any:
        """Return the words' counts of topics (V, K), weighted."""
        side = self.counts.by_word
        return self.of_words(
            side, side.count.double() * self.counts.weight[side.other.long()], doc_topic, word_topic
        )

    def of_words(self, side: Side, count: Any, doc_topic: Any, word_topic: Any) -> Any:
        """Return the sums (R, K) of a side whose rows are words; ``word_topic`` (R, K) is theirs."""
        torch, parts = self._torch, []
        for part, segment, lengths in _blocks(side, self.n_topics):
            joint = doc_topic[side.other[part].long()] * word_topic[side.row[segment].long()]
            joint *= (count[part] / joint.sum(dim=1).clamp_(min=SMALLEST))[:, None]
            parts.append(torch.segment_reduce(joint, "sum", lengths=lengths, unsafe=True))
        return _by_row(torch, side, torch.cat(parts))

    def _of_documents(self, side: Side, doc_topic: Any, word_topic: Any) -> tuple[Any, Any]:
        """Return the documents' counts of topics (D, K), and their log-likelihoods (D,)."""
        torch, parts, logs = self._torch, [], []
        for part, segment, lengths in _blocks(side, self.n_topics):
            document, n = side.row[segment].long(), side.count[part].double()
            joint = doc_topic[document] * word_topic[side.other[part].long()]
            p = joint.sum(dim=1).clamp_(min=SMALLEST)
            joint *= (n / p)[:, None]
            parts.append(torch.segment_reduce(joint, "sum", lengths=lengths, unsafe=True))
            logs.append(torch.segment_reduce(n * p.log(), "sum", lengths=lengths, unsafe=True))
        return _by_row(torch, side, torch.cat(parts)), _by_row(torch, side, torch.cat(logs))


def _leap(torch: Any, zeroth: Any, first: Any, second: Any) -> Any:
    """Extrapolate three iterates (D, K), document by document (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = step.square().sum(dim=1), bend.square().sum(dim=1)
    length = torch.where(bends > 0.0, (squares / bends).sqrt(), 1.0).clamp(1.0, LONGEST_LEAP)[:, None]
    found = torch.maximum(zeroth + 2.0 * length * step + length.square() * bend, 0.1 * second)
    return found / found.sum(dim=1, keepdim=True)


def _blocks(side: Side, n_topics: int) -> Iterator[tuple[slice, Any, Any]]:
    """Yield a slice of entries, the segment of each, and the lengths of these segments."""
    torch = torch_of("a device")
    size = max(1, NUMBERS // (SEGMENT * n_topics))
    for start in range(0, len(side.row), size):
        begin = side.begin[start : start + size + 1]
        lengths = begin.diff()
        numbers = torch.arange(start, start + len(lengths), device=begin.device)
        yield slice(int(begin[0]), int(begin[-1])), torch.repeat_interleave(numbers, lengths), lengths


def _by_row(torch: Any, side: Side, of_segments: Any) -> Any:
    """Return the sums of segments by row."""
    return torch.segment_reduce(of_segments[side.order], "sum", lengths=side.first.diff(), unsafe=True)
