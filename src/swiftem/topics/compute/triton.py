"""Passes over documents by kernels in Triton, in float32; ``torch.py`` defines what they compute.

A program does one segment of a row of counts: of a document (its entries are words) or of a word (its entries
are documents). With a the document's topics and b the word's, an entry of count n adds n·a_k·b_k / Σ ab to
both: the documents' kernel adds the first, the words' kernel computes the same again and adds the second.
Nothing is added atomically: results have the same bits in every run. At most 256 entries are added in
float32; sums of segments are float64.

Tables have S numbers per row, K of them in use and zeros behind them; P is the next power of two. Limits are
those of ``topics/compute/passes_kernels.py`` in float32.
"""

from __future__ import annotations

from math import log

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from swiftem.core.types import Array
from swiftem.kernels.cache import keep_private
from swiftem.topics.compute.corpus import LEAST_SINGLE
from swiftem.topics.compute.torch import DeviceCounts, LeftOut, Pass, Side, TorchPasses

__all__ = ["MOST_TOPICS", "KernelPasses"]

keep_private()

MOST_TOPICS = 4096
"""Largest number of topics that a program has registers for."""
TILE, LEFT_OUT_TILE = 512, 256
"""Numbers of a program's tile, entries times topics: of passes, and of those that leave tokens out."""
LOG_2 = log(2.0)
SMALLEST = tl.constexpr(1e-30)
TINY = tl.constexpr(1e-12)
IMPOSSIBLE = tl.constexpr(-498.2892142331043)
"""log2(1e-150), of a word that no topic of the document has: as in float64."""
LEAST_LEAP = tl.constexpr(1e-6)
LONGEST_LEAP = tl.constexpr(8.0)


@triton.jit
def shares_of(sums, is_topic, K: tl.constexpr):
    """Return a document's topics (P,) from its counts with α; uniform if there are none."""
    total = tl.sum(sums)
    found = tl.where(total > 0.0, sums / tl.where(total > 0.0, total, 1.0), 1.0 / K)
    return tl.where(is_topic & (found > TINY), found, 0.0)


@triton.jit
def entry_sums(
    OTHER,
    COUNT,
    TABLE,
    DOCUMENT,
    PRIOR,
    first,
    last,
    row,
    own,
    topic,
    S: tl.constexpr,
    B: tl.constexpr,
    DOCUMENTS: tl.constexpr,
    LEAVE_OUT: tl.constexpr,
    FLOORS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LIKELIHOOD: tl.constexpr,
):
    """Return Σ n·r (P,) and Σ n log2 p, float64, of entries ``first`` to ``last`` − 1 of a row, B at a time.

    ``own`` (P,) is the row of its own table, TABLE (., S) the other one. DOCUMENT (D, 2): 1 / tokens, and
    weights. PRIOR (2 + F, S): α, then inverse and floor of ``LeftOut``, of each word if FLOORS. Without
    LEAVE_OUT these are not read but for weights; without LIKELIHOOD the second result is zero.
    """
    P: tl.constexpr = topic.shape[0]
    is_topic = topic < S
    sums = tl.zeros((B, P), tl.float32)
    log = tl.zeros((B,), tl.float64)
    if LEAVE_OUT:
        alpha = tl.load(PRIOR + topic, mask=is_topic, other=0.0)
        inverse = tl.load(PRIOR + S + topic, mask=is_topic, other=0.0)
        word = row if FLOORS and not DOCUMENTS else 0
        floor = tl.load(PRIOR + (2 + word) * S + topic, mask=is_topic, other=0.0)[None, :]
    for start in range(first, last, B):
        entry = start + tl.arange(0, B)
        is_entry = entry < last
        number = tl.load(OTHER + entry, mask=is_entry, other=0).to(tl.int64)
        count = tl.load(COUNT + entry, mask=is_entry, other=0.0)
        is_there = is_entry[:, None] & is_topic[None, :]
        other = tl.load(TABLE + number[:, None] * S + topic[None, :], mask=is_there, other=0.0)
        joint = other * own[None, :]
        p = tl.maximum(tl.sum(joint, 1), SMALLEST)
        if LIKELIHOOD:
            logs = tl.where(p > 2.0 * SMALLEST, tl.log2(p), IMPOSSIBLE)
            log += (count * logs).to(tl.float64)
        document = (row + tl.zeros_like(number)) if DOCUMENTS else number
        heavy = count
        if WEIGHTED and not DOCUMENTS:
            heavy = count * tl.load(DOCUMENT + 2 * document + 1)
        if LEAVE_OUT:
            one = tl.minimum(count, 1.0) / p  # a fraction of a token has added no more than itself
            share = tl.load(DOCUMENT + 2 * document)
            least = floor
            if FLOORS and DOCUMENTS:
                at = (2 + number)[:, None] * S + topic[None, :]
                least = tl.load(PRIOR + at, mask=is_there, other=0.0)
            a = own[None, :] if DOCUMENTS else other
            b = other if DOCUMENTS else own[None, :]
            a = tl.maximum(a - (one * share)[:, None] * joint, share[:, None] * alpha[None, :])
            if WEIGHTED:
                one *= tl.minimum(tl.load(DOCUMENT + 2 * document + 1), 1.0)
            b = tl.maximum(b - one[:, None] * (joint * inverse[None, :]), least)
            rows = a * b
            left = tl.sum(rows, 1)
            is_left = left > SMALLEST  # else nothing is left without the token: it is included
            sums += (heavy / tl.where(is_left, left, p))[:, None] * tl.where(is_left[:, None], rows, joint)
        else:
            sums += (heavy / p)[:, None] * other
    found = tl.sum(sums, 0)
    return found if LEAVE_OUT else found * own, tl.sum(log)


@triton.jit
def segment_sums(
    ROW,
    BEGIN,
    SLOT,
    OTHER,
    COUNT,
    OWN_TABLE,
    OTHER_TABLE,
    PARTS,
    RESULT,
    LOG,
    DOCUMENT,
    PRIOR,
    K: tl.constexpr,
    S: tl.constexpr,
    P: tl.constexpr,
    B: tl.constexpr,
    DOCUMENTS: tl.constexpr,
    LEAVE_OUT: tl.constexpr,
    FLOORS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """The sums of a segment; see :func:`entry_sums`.

    ROW (s,), BEGIN (s + 1,): of segments. SLOT (s,): row of PARTS (., S) that the sums go to, or −1 if the
    segment is its row's only one: then RESULT gets the document's topics (D, S), or the word's counts (V, K)
    in float64. LOG (s,): Σ n log2 p, float64, of documents.
    """
    segment, topic = tl.program_id(0), tl.arange(0, P)
    row = tl.load(ROW + segment).to(tl.int64)
    first, last = tl.load(BEGIN + segment), tl.load(BEGIN + segment + 1)
    own = tl.load(OWN_TABLE + row * S + topic, mask=topic < S, other=0.0)
    found, log = entry_sums(
        OTHER,
        COUNT,
        OTHER_TABLE,
        DOCUMENT,
        PRIOR,
        first,
        last,
        row,
        own,
        topic,
        S,
        B,
        DOCUMENTS,
        LEAVE_OUT,
        FLOORS,
        WEIGHTED,
        DOCUMENTS,
    )
    slot = tl.load(SLOT + segment).to(tl.int64)
    if slot >= 0:
        tl.store(PARTS + slot * S + topic, found, mask=topic < S)
    elif DOCUMENTS:
        found += tl.load(PRIOR + topic, mask=topic < S, other=0.0)
        tl.store(RESULT + row * S + topic, shares_of(found, topic < K, K), mask=topic < S)
    else:
        tl.store(RESULT + row * K + topic, found.to(tl.float64), mask=topic < K)
    if DOCUMENTS:
        if WEIGHTED:
            log *= tl.load(DOCUMENT + 2 * row + 1).to(tl.float64)
        tl.store(LOG + segment, log)


@triton.jit
def finish(
    PARTS,
    FIRST,
    ROW,
    PRIOR,
    RESULT,
    K: tl.constexpr,
    S: tl.constexpr,
    P: tl.constexpr,
    B: tl.constexpr,
    DOCUMENTS: tl.constexpr,
):
    """Topics of documents, or counts of words, of the rows ROW (R,) that have several segments.

    Row i has the parts FIRST[i] to FIRST[i + 1] − 1, which are added in order, in float64.
    """
    program, topic = tl.program_id(0), tl.arange(0, P)
    first, last = tl.load(FIRST + program).to(tl.int64), tl.load(FIRST + program + 1).to(tl.int64)
    parts = tl.zeros((B, P), tl.float64)
    for start in range(first, last, B):
        part = start + tl.arange(0, B)
        is_there = (part < last)[:, None] & (topic < S)[None, :]
        parts += tl.load(PARTS + part[:, None] * S + topic[None, :], mask=is_there, other=0.0).to(tl.float64)
    sums, row = tl.sum(parts, 0), tl.load(ROW + program).to(tl.int64)
    if DOCUMENTS:
        sums += tl.load(PRIOR + topic, mask=topic < S, other=0.0).to(tl.float64)
        shares = shares_of(sums, topic < K, K).to(tl.float32)
        tl.store(RESULT + row * S + topic, shares, mask=topic < S)
    else:
        tl.store(RESULT + row * K + topic, sums, mask=topic < K)


@triton.jit
def leap(zeroth, first, second):
    """Extrapolate three iterates of a document's topics (SQUAREM, third scheme)."""
    step = first - zeroth
    bend = second - first - step
    squares, bends = tl.sum(step * step), tl.sum(bend * bend)
    length = tl.where(bends > 0.0, tl.sqrt(squares / tl.where(bends > 0.0, bends, 1.0)), 1.0)
    length = tl.minimum(tl.maximum(length, 1.0), LONGEST_LEAP)
    found = tl.maximum(zeroth + 2.0 * length * step + length * length * bend, 0.1 * second)
    return found / tl.sum(found)


@triton.jit
def counts_of(
    WORD, COUNT, TABLE, first, last, a, topic, S: tl.constexpr, B: tl.constexpr, LIKELIHOOD: tl.constexpr
):
    """Return a document's counts of topics (P,), and Σ n log2 p in float64 if LIKELIHOOD."""
    return entry_sums(
        WORD,
        COUNT,
        TABLE,
        TABLE,
        TABLE,
        first,
        last,
        0,
        a,
        topic,
        S,
        B,
        True,
        False,
        False,
        False,
        LIKELIHOOD,
    )


@triton.jit
def fold_in(
    DOCUMENT,
    BEGIN,
    WORD,
    COUNT,
    TABLE,
    ALPHA,
    SHARES,
    LOG,
    max_iter,
    tol,
    K: tl.constexpr,
    S: tl.constexpr,
    P: tl.constexpr,
    B: tl.constexpr,
):
    """Find the topics of a document for given words of topics: SHARES (D, S), from there on, is replaced.

    DOCUMENT (D,): the order in which programs do documents, the longest first. LOG (D,): Σ n log2 p.
    """
    document = tl.load(DOCUMENT + tl.program_id(0)).to(tl.int64)
    first, last = tl.load(BEGIN + document), tl.load(BEGIN + document + 1)
    topic = tl.arange(0, P)
    alpha = tl.load(ALPHA + topic, mask=topic < S, other=0.0)
    a = tl.load(SHARES + document * S + topic, mask=topic < S, other=0.0)
    a = tl.where(a > TINY, a, 0.0)
    rounds = tl.zeros((), tl.int32)
    change = tl.zeros((), tl.float32) + 3.0
    while (rounds < max_iter) & (change >= tol):
        sums, _ = counts_of(WORD, COUNT, TABLE, first, last, a, topic, S, B, False)
        one = shares_of(sums + alpha, topic < K, K)
        change = tl.sum(tl.abs(one - a))
        rounds += 1
        if (rounds < max_iter) & (change >= tol):
            sums, _ = counts_of(WORD, COUNT, TABLE, first, last, one, topic, S, B, False)
            two = shares_of(sums + alpha, topic < K, K)
            change = tl.sum(tl.abs(two - one))
            rounds += 1
            jumps = (rounds < max_iter) & (change >= tol) & (change > LEAST_LEAP)
            one = tl.where(jumps, leap(a, one, two), two)
        a = one
    a = tl.where(a > TINY, a, 0.0)
    tl.store(SHARES + document * S + topic, a, mask=topic < S)
    _, log = counts_of(WORD, COUNT, TABLE, first, last, a, topic, S, B, True)
    tl.store(LOG + document, log)


class SideSums:
    """A side of the counts, with places for the sums of rows that have several segments.

    Parameters
    ----------
    side : Side
        The entries.
    width : int
        S, numbers of a row of the tables.
    """

    def __init__(self, side: Side, width: int) -> None:
        self._side, device = side, side.row.device
        several = side.first.diff() > 1
        self._row = several.nonzero()[:, 0].int()
        lengths = side.first.diff()[several]
        self._first = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=device)
        self._first[1:] = lengths.cumsum(0)
        self._slot = torch.full((len(side.row),), -1, dtype=torch.int32, device=device)
        partial = side.order[several[side.row[side.order].long()]]
        self._slot[partial] = torch.arange(len(partial), dtype=torch.int32, device=device)
        self._parts = torch.empty((max(1, len(partial)), width), dtype=torch.float32, device=device)

    def run(
        self, tables: tuple[Tensor, Tensor], result: Tensor, given: tuple[Tensor, ...], **sizes: int
    ) -> None:
        """Write the sums of all rows.

        Parameters
        ----------
        tables : tuple of tensors
            The rows' own table, and the other one.
        result : tensor
            RESULT of :func:`segment_sums`.
        given : tuple of tensors
            Its LOG, DOCUMENT and PRIOR.
        """
        side, prior = self._side, given[-1]
        segments = side.row, side.begin, self._slot, side.other, side.counts
        segment_sums[(len(side.row),)](*segments, *tables, self._parts, result, *given, **sizes)
        if len(self._row):
            sizes = {name: sizes[name] for name in ("K", "S", "P", "B", "DOCUMENTS", "num_warps")}
            finish[(len(self._row),)](self._parts, self._first, self._row, prior, result, **sizes)


class KernelPasses(TorchPasses):
    """As :class:`TorchPasses`, by kernels; ``counts`` are float32.

    Topics of documents are (D, S), float32, with zeros behind the first K columns.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        super().__init__(counts, alpha)
        n, n_words, width = len(counts.weight), len(counts.by_word.first) - 1, _width(len(alpha))
        padded = triton.next_power_of_2(width)
        self._sizes = {
            "K": len(alpha),
            "S": width,
            "P": padded,
            "B": max(1, TILE // padded),
            "num_warps": min(8, max(1, padded // 256)),
        }
        self._by_document = SideSums(counts.by_document, width)
        self._by_word = SideSums(counts.by_word, width)
        self._prior = self._row(self._alpha[None])
        self._document = torch.stack([self._own, counts.weight], dim=1).float()
        self._table, self._spare = self._prior.new_zeros((n_words, width)), self._prior.new_empty((n, width))
        self._by_word_sums = counts.weight.new_zeros((n_words, len(alpha)))
        self._log = counts.weight.new_empty(len(counts.by_document.row))
        self._longest = torch.argsort(counts.begin.diff(), descending=True, stable=True).int()

    def _row(self, values: Tensor) -> Tensor:
        """Return numbers (n, K) as float32 with zeros behind them, (n, S)."""
        values = torch.where(values < LEAST_SINGLE, 0.0, values).float()
        return torch.nn.functional.pad(values, (0, self._sizes["S"] - values.shape[1]))

    @staticmethod
    def form(doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K) in the form of passes, in memory of the CPU."""
        given = torch.from_numpy(np.ascontiguousarray(doc_topic, dtype=np.float32))
        given = torch.where(given > TINY.value, given, 0.0)
        return torch.nn.functional.pad(given, (0, _width(given.shape[1]) - given.shape[1]))

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`TorchPasses.em`; ``doc_topic`` becomes the memory of the next pass's result."""
        self._load(word_topic)
        sizes, prior, after = self._sizes, self._prior, self._spare
        if left_out is not None:
            prior = torch.cat([prior, self._row(left_out.inverse[None]), self._row(left_out.floor)])
            sizes = sizes | {"B": max(1, LEFT_OUT_TILE // sizes["P"])}
        flags = {
            "LEAVE_OUT": left_out is not None,
            "FLOORS": left_out is not None and len(left_out.floor) > 1,
            "WEIGHTED": self.counts.is_weighted,
        }
        given = self._log, self._document, prior
        self._by_document.run((doc_topic, self._table), after, given, DOCUMENTS=True, **sizes, **flags)
        self._by_word.run(
            (self._table, doc_topic), self._by_word_sums, given, DOCUMENTS=False, **sizes, **flags
        )
        self._spare = doc_topic
        return Pass(after, self._by_word_sums, self._log.sum() * LOG_2)

    def _load(self, word_topic: Tensor) -> None:
        """Write the words of topics (V, K) into the table of kernels."""
        self._table[:, : self.n_topics] = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> tuple[Tensor, Tensor]:
        """As :meth:`TorchPasses.fold`."""
        self._load(word_topic)
        side, found, logs = self.counts.by_document, doc_topic.clone(), torch.empty_like(self.counts.weight)
        entries = self._longest, self.counts.begin, side.other, side.counts
        fold_in[(len(logs),)](*entries, self._table, self._prior, found, logs, max_iter, tol, **self._sizes)
        return found, logs * LOG_2


def _width(n_topics: int) -> int:
    """Return S, the numbers of a row of the tables."""
    return -(-n_topics // 8) * 8
