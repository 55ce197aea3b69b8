"""Passes over documents in PyTorch, in float64: the definition of correct on a device; em of topics there.

The equations are in ``documents.py``; ``numpy.py`` has the same in NumPy. Entries are gone through twice, in
the order of documents and in that of words: both sides compute the responsibilities, and each adds its own,
segment by segment, in order. ``triton.py`` has the same passes in float32, by kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.device_documents import TopicArrays
from swiftem.topics.compute.numpy import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY
from swiftem.topics.documents import FLUSH

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "DeviceCounts",
    "DeviceTopics",
    "Folded",
    "LeftOut",
    "Pass",
    "Side",
    "TorchPasses",
    "left_out_of",
    "m_step",
]

SEGMENT = 256
"""Maximum number of entries that are added in float32, and of one program's work."""
BLOCK = 32 << 20
"""Bytes of topics of documents that stay in the cache of a device while the words of these documents are
summed: see :class:`DeviceCounts`."""


@dataclass(frozen=True)
class Side:
    """Entries in the order of rows, which are documents or words, in segments of a row.

    Attributes
    ----------
    row : tensor of int, shape (S,)
        Row of each segment.
    begin : tensor of int, shape (S + 1,)
        Segment i is entries ``begin[i]`` to ``begin[i + 1]`` − 1.
    other : tensor of int, shape (m,)
        The entries' words if rows are documents, and the reverse.
    count : tensor, shape (m,)
        Their counts.
    first : tensor of int, shape (R + 1,)
        The segments of row r are ``order[first[r]]`` to ``order[first[r + 1] - 1]``.
    order : tensor of int, shape (S,)
        Segments by row.
    """

    row: Tensor
    begin: Tensor
    other: Tensor
    count: Tensor
    first: Tensor
    order: Tensor

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.first) - 1

    @classmethod
    def of(cls, key: Tensor, n_keys: int, n_rows: int, other: Tensor, count: Tensor) -> Side:
        """Return entries as segments.

        Parameters
        ----------
        key : tensor of int, shape (m,)
            Ascending: the row of each entry, or block·n_rows + row.
        n_keys, n_rows : int
            Number of keys and of rows. With one block every row has a segment, even if it has no entries.
        other, count : tensor, shape (m,)
            The entries.
        """
        keys = torch.arange(n_keys, device=key.device)
        begin = torch.searchsorted(key, torch.arange(n_keys + 1, device=key.device, dtype=key.dtype))
        length = begin.diff()
        segments = (length + SEGMENT - 1) // SEGMENT
        if n_keys == n_rows:
            segments.clamp_(min=1)
        ends = segments.cumsum(0)
        of_segment = torch.repeat_interleave(keys, segments)
        place = torch.arange(len(of_segment), device=key.device) - (ends - segments)[of_segment]
        starts = torch.cat([begin[of_segment] + SEGMENT * place, begin[-1:]])
        row = of_segment % n_rows
        order = torch.argsort(row, stable=True)
        first = torch.zeros(n_rows + 1, dtype=torch.int64, device=key.device)
        first[1:] = torch.bincount(row, minlength=n_rows).cumsum(0)
        return cls(row.int(), starts, other, count, first, order)


FIELDS = [field.name for field in fields(Side)]


class DeviceCounts:
    """A corpus on a device, twice: by document, and by word.

    Each side computes its own sums, so that nothing is added atomically: sums have the same bits in every
    run. Words are summed from the topics of documents all over the corpus. If these do not fit into the
    device's cache, words are summed in blocks of documents that do.

    Parameters
    ----------
    documents : Documents
        The corpus.
    n_topics : int
        K, for the size of blocks.
    device : str or torch.device
        The device.
    dtype : torch.dtype
        Of the counts.

    Attributes
    ----------
    by_document, by_word : Side
        The entries.
    weight, length : tensor, shape (D,)
        Weights and tokens of documents, float64.
    is_plain : bool
        Whether all weights are one.
    """

    def __init__(self, documents: Documents, n_topics: int, device: Any, dtype: Any) -> None:
        self.n, self.n_words, self.n_entries = documents.n, documents.n_words, documents.n_entries

        def there(array: Any, kind: Any) -> Any:
            return torch.from_numpy(array).to(device).to(kind)

        word, count = there(documents.word, torch.int32), there(documents.count, dtype)
        begin = there(documents.begin, torch.int64)
        numbers = torch.arange(self.n, device=device, dtype=torch.int32)
        document = torch.repeat_interleave(numbers, begin.diff())
        self.by_document = Side.of(document, self.n, self.n, word, count)
        per_block = max(1, BLOCK // (4 * n_topics))
        n_blocks = -(-self.n // per_block)
        key: Any = word
        if n_blocks > 1:
            key = (document // per_block).long() * self.n_words + word
        key, order = torch.sort(key, stable=True)
        self.by_word = Side.of(key, n_blocks * self.n_words, self.n_words, document[order], count[order])
        self.weight, self.length = (
            there(documents.weight, torch.float64),
            there(documents.length, torch.float64),
        )
        self.is_plain = bool((documents.weight == 1.0).all())
        self.begin = begin

    def tensors(self) -> list[Any]:
        """Return all tensors, in the order that :meth:`with_tensors` takes them in."""
        sides = (self.by_document, self.by_word)
        return [
            *(getattr(side, name) for side in sides for name in FIELDS),
            self.weight,
            self.length,
            self.begin,
        ]

    def with_tensors(self, tensors: list[Any]) -> DeviceCounts:
        """Return the same counts in other memory."""
        found, size = copy(self), len(FIELDS)
        found.by_document, found.by_word = Side(*tensors[:size]), Side(*tensors[size : 2 * size])
        found.weight, found.length, found.begin = tensors[2 * size :]
        return found


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


class Folded(NamedTuple):
    """Documents after rounds of their own: topics and log-likelihoods (D,)."""

    doc_topic: Tensor
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
        self.counts, self.alpha = counts, alpha
        self._alpha = torch.from_numpy(alpha).to(counts.weight.device)
        tokens = counts.length + self._alpha.sum()
        self._own = torch.where(tokens > 0.0, 1.0 / tokens, 0.0)

    @property
    def device(self) -> Any:
        """The device."""
        return self._alpha.device

    def with_alpha(self, alpha: Array) -> TorchPasses:
        """Return the passes over the same counts with another α (K,)."""
        return type(self)(self.counts, alpha)

    @property
    def n_topics(self) -> int:
        """K."""
        return len(self._alpha)

    def shares(self, doc_topic: Array) -> Any:
        """Return topics of documents (D, K), an array, in the form of passes."""
        return torch.from_numpy(np.ascontiguousarray(doc_topic)).to(self._alpha.device)

    def array(self, doc_topic: Tensor) -> Array:
        """Return topics of documents as an array (D, K), float64."""
        found: Array = doc_topic[:, : self.n_topics].double().cpu().numpy()
        return found

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
        counts = self.counts
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
            sums.append(_by_row(side, torch.cat(parts)))
        return Pass(self._m_step(sums[0]), sums[1], logs)

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

    def _m_step(self, counts: Tensor) -> Any:
        """Return topics of documents (D, K) from their counts; uniform if there are none."""
        counts = counts + self._alpha
        total = counts.sum(dim=1, keepdim=True)
        found = torch.where(total > 0.0, counts / total, 1.0 / self.n_topics)
        return torch.where(found > TINY, found, 0.0)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> Folded:
        """Find documents' topics for given words of topics, from ``doc_topic`` on; each stops by itself.

        Every third iterate is extrapolated, as in :func:`swiftem.topics.compute.numpy.fold`.
        """
        found, zeroth = doc_topic.clone(), doc_topic.clone()
        goes_on = torch.ones(len(found), dtype=torch.bool, device=found.device)
        for count in range(1, max_iter + 1):
            if not bool(goes_on.any()):
                break
            after = self._m_step(self._of_documents(found, word_topic)[0])
            change = (after - found).abs().sum(dim=1)
            far = after
            if count % 2 == 0:
                jumps = (change >= tol) & (change > LEAST_LEAP) & (count < max_iter)
                far = torch.where(jumps[:, None], _leap(zeroth, found, after), after)
            zeroth = found
            found = torch.where(goes_on[:, None], far, found)
            goes_on &= change >= tol
        logs = self._of_documents(found, word_topic)[1]
        return Folded(found, logs)

    def _of_documents(self, doc_topic: Tensor, word_topic: Tensor) -> tuple[Tensor, Tensor]:
        """Return the documents' counts of topics (D, K), and their log-likelihoods (D,)."""
        parts, logs, side = [], [], self.counts.by_document
        for part, segment, lengths in _blocks(side, self.n_topics):
            document, n = side.row[segment].long(), side.count[part].double()
            joint = doc_topic[document] * word_topic[side.other[part].long()]
            p = joint.sum(dim=1).clamp_(min=SMALLEST)
            joint *= (n / p)[:, None]
            parts.append(torch.segment_reduce(joint, "sum", lengths=lengths, unsafe=True))
            logs.append(torch.segment_reduce(n * p.log(), "sum", lengths=lengths, unsafe=True))
        return _by_row(side, torch.cat(parts)), _by_row(side, torch.cat(logs))


def _leap(zeroth: Tensor, first: Tensor, second: Tensor) -> Any:
    """Extrapolate three iterates (D, K), document by document (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = step.square().sum(dim=1), bend.square().sum(dim=1)
    length = torch.where(bends > 0.0, (squares / bends).sqrt(), 1.0).clamp(1.0, LONGEST_LEAP)[:, None]
    found = torch.maximum(zeroth + 2.0 * length * step + length.square() * bend, 0.1 * second)
    return found / found.sum(dim=1, keepdim=True)


def _blocks(side: Side, n_topics: int) -> Iterator[tuple[slice, Any, Any]]:
    """Yield a slice of entries, the segment of each, and the lengths of these segments."""
    size = max(1, NUMBERS // (SEGMENT * n_topics))
    for start in range(0, len(side.row), size):
        begin = side.begin[start : start + size + 1]
        lengths = begin.diff()
        numbers = torch.arange(start, start + len(lengths), device=begin.device)
        yield slice(int(begin[0]), int(begin[-1])), torch.repeat_interleave(numbers, lengths), lengths


def _by_row(side: Side, of_segments: Tensor) -> Any:
    """Return the sums of segments by row."""
    return torch.segment_reduce(of_segments[side.order], "sum", lengths=side.first.diff(), unsafe=True)


LEAST = 0.1
"""No number falls below this share of em's own step, as in ``estimators/topics/momentum.py``."""
ROWS = 1 << 16
"""Documents that are extrapolated at a time."""


def m_step(counts: Tensor, beta: Tensor) -> Any:
    """Return words of topics (V, K) from counts (V, K) and β (1, K) or (V, K); uniform if there are none."""
    filled = counts.clamp(min=0.0).add_(beta)
    totals = filled.sum(dim=0)
    is_there = (totals > 0.0) & torch.isfinite(totals)
    found = torch.where(is_there, filled.div_(totals), 1.0 / len(filled))
    return torch.where(found < FLUSH, 0.0, found)


def left_out_of(counts: Tensor, beta: Tensor) -> LeftOut:
    """Return what leaving a token out needs of the topics' counts (V, K) and β."""
    totals = counts.clamp(min=0.0).sum(dim=0) + torch.broadcast_to(beta, counts.shape).sum(dim=0)
    inverse = torch.where(totals > 0.0, 1.0 / totals, 0.0)
    return LeftOut(inverse, beta * inverse)


def decorrelated(counts: Tensor, beta: Tensor, strength: float, background: bool) -> Any:
    """Return counts (V, K) over 1 + ``strength`` times the word's mean share in the other topics."""
    first = int(background)
    if strength == 0.0 or counts.shape[1] - first < 2:
        return counts
    by_word = m_step(counts, beta)[:, first:]
    others = by_word.sum(dim=1, keepdim=True) - by_word
    others.mul_(strength / (counts.shape[1] - first - 1)).add_(1.0)
    found = counts.clone()
    found[:, first:] /= others
    return found


def with_background(counts: Tensor, doc_topic: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return counts (V, K) and topics of documents (D, K) with the corpus in place of topic 0.

    The smallest topic is given up, and topic 0 takes its number; ``share`` is that of the background.
    """
    smallest = int(counts.sum(dim=0).argmin())
    found, shares = counts.clone(), doc_topic.double()
    of_all = found.sum(dim=1)
    found[:, smallest] = found[:, 0]
    found *= 1.0 - share
    found[:, 0] = share * of_all
    shares[:, smallest] = shares[:, 0]
    shares[:, 0] = 0.0
    totals = shares.sum(dim=1, keepdim=True)
    shares = torch.where(totals > 0.0, shares / (totals / (1.0 - share)), shares)
    shares[:, 0] = 1.0 - shares.sum(dim=1)
    return found, shares.to(doc_topic.dtype)


class DeviceMomentum:
    """As :class:`swiftem.estimators.topics.momentum.Momentum`, of tensors: counts are (V, K).

    Parameters
    ----------
    strength : float
        μ; 0 changes nothing.
    state : tuple of tensors or None
        Counts and topics of documents after the last pass; they are changed.
    """

    def __init__(self, strength: float, state: tuple[Any, Any] | None) -> None:
        self._strength, self.state = strength, state

    def go(self, counts: Tensor, doc_topic: Tensor, is_worse: bool) -> Any:
        """Return the counts that the next pass begins at; ``doc_topic`` is changed likewise."""
        if self._strength == 0.0:
            return counts
        if self.state is None or is_worse:
            self.state = counts.clone(), doc_topic.clone()
            return counts
        before, shares = self.state
        for first in range(0, len(doc_topic), ROWS):
            now, earlier = doc_topic[first : first + ROWS], shares[first : first + ROWS]
            ahead = self._ahead(now.double(), earlier)
            earlier.copy_(now)
            now.copy_(ahead.div_(ahead.sum(dim=1, keepdim=True)))
        self.state = counts.clone(), shares
        return self._ahead(counts, before)

    def _ahead(self, now: Tensor, before: Tensor) -> Any:
        return ((now - before) * self._strength + now).maximum(LEAST * now)


class DeviceTopics:
    """em's passes over documents on a device.

    Parameters
    ----------
    passes : TorchPasses
        The passes over the documents.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    state : TopicArrays
        Where em starts or resumes.
    leave_one_out : bool
        Whether tokens are left out of the counts that explain them, as soon as there are counts.
    contrast : tuple (background, share, strength)
        Whether topic 0 is a background, its share when it is added, and the strength of the decorrelation.
    momentum : tuple (strength, state)
        Of :class:`swiftem.estimators.topics.momentum.Momentum`; its state is None at first.

    Examples
    --------
    Documents make them: see :meth:`swiftem.topics.compute.device_documents.DeviceDocuments.topics`.
    """

    def __init__(
        self,
        passes: TorchPasses,
        beta: Array,
        state: TopicArrays,
        *,
        leave_one_out: bool = False,
        contrast: tuple[bool, float, float] = (False, 0.0, 0.0),
        momentum: tuple[float, Any] = (0.0, None),
    ) -> None:
        self._passes, self._leave_one_out = passes, leave_one_out
        self._background, self._share, self._strength = contrast
        self._beta = self._there(np.broadcast_to(beta.T, (beta.shape[1], passes.n_topics)))
        self._topics = self._there(state.topics.T)
        self._counts = None if state.counts is None else self._there(state.counts.T)
        self._doc_topic = passes.shares(state.doc_topic)
        strength, kept = momentum
        kept = None if kept is None else (self._there(kept[0].T), passes.shares(kept[1]))
        self._momentum = DeviceMomentum(strength, kept)

    def _there(self, array: Array) -> Any:
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
        left_out = None
        if self._leave_one_out and self._counts is not None:
            left_out = left_out_of(self._counts, self._beta)
        found = self._passes.em(self._doc_topic, self._topics, left_out)
        counts, self._doc_topic = found.by_word, found.doc_topic
        if add_background:
            shares = self._doc_topic[:, : self._passes.n_topics]
            counts, shares[:] = with_background(counts, shares, self._share)
        value = float(found.log_likelihood)
        counts = decorrelated(counts, self._beta, self._strength, self._background)
        self._counts = self._momentum.go(counts, self._doc_topic, value < least)
        self._topics = m_step(self._counts, self._beta)
        return value

    def read(self) -> TopicArrays:
        """Return the state as arrays."""
        counts = None if self._counts is None else self._counts.cpu().numpy().T
        return TopicArrays(self._topics.cpu().numpy().T, self._passes.array(self._doc_topic), counts)

    def behind(self) -> tuple[Array, Array] | None:
        """Return the state of the momentum as arrays: counts (K, V), doc_topic (D, K)."""
        if self._momentum.state is None:
            return None
        counts, doc_topic = self._momentum.state
        return counts.cpu().numpy().T, self._passes.array(doc_topic)
