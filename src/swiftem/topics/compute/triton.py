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
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton
import triton.language as tl

from swiftem.core.types import Array
from swiftem.kernels.cache import keep_private
from swiftem.topics.compute.corpus import LEAST_SINGLE
from swiftem.topics.compute.torch import DeviceCounts, Folded, LeftOut, Pass, Side, TorchPasses

if TYPE_CHECKING:
    from torch import Tensor

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
def without_token(
    joint, own, other, p, count, of_document, weight, alpha, inverse, floor, DOCUMENTS: tl.constexpr
):
    """Return responsibilities (b, P) and their sums (b,) if a token is left out of what explains it."""
    one = tl.minimum(count, 1.0) / p  # a fraction of a token has added no more than itself
    a = own[None, :] if DOCUMENTS else other
    b = other if DOCUMENTS else own[None, :]
    a = tl.maximum(a - (one * of_document)[:, None] * joint, of_document[:, None] * alpha[None, :])
    b = tl.maximum(b - (one * tl.minimum(weight, 1.0))[:, None] * (joint * inverse[None, :]), floor)
    rows = a * b
    left = tl.sum(rows, 1)
    is_left = left > SMALLEST  # else nothing is left without the token: it is included
    return tl.where(is_left[:, None], rows, joint), tl.where(is_left, left, p)


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
    OF_DOCUMENT,
    WEIGHT,
    ALPHA,
    INVERSE,
    FLOOR,
    K: tl.constexpr,
    S: tl.constexpr,
    P: tl.constexpr,
    B: tl.constexpr,
    DOCUMENTS: tl.constexpr,
    LEAVE_OUT: tl.constexpr,
    FLOORS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """The sums of a segment, B entries at a time.

    ROW (s,), BEGIN (s + 1,): of segments. SLOT (s,): row of PARTS (., S) that the sums go to, or −1 if the
    segment is its row's only one: then RESULT gets the document's topics (D, S), or the word's counts (V, K)
    in float64. LOG (s,): Σ n log2 p, float64, of documents. OF_DOCUMENT (D,): 1 / tokens, and WEIGHT (D,).
    ALPHA and INVERSE (S,), FLOOR (1, S), or (V, S) if FLOORS: see ``LeftOut``.
    """
    segment = tl.program_id(0)
    row = tl.load(ROW + segment).to(tl.int64)
    first, last = tl.load(BEGIN + segment), tl.load(BEGIN + segment + 1)
    topic = tl.arange(0, P)
    is_topic = topic < S
    own = tl.load(OWN_TABLE + row * S + topic, mask=is_topic, other=0.0)
    if LEAVE_OUT:
        alpha = tl.load(ALPHA + topic, mask=is_topic, other=0.0)
        inverse = tl.load(INVERSE + topic, mask=is_topic, other=0.0)
        if not FLOORS:
            floor = tl.load(FLOOR + topic, mask=is_topic, other=0.0)[None, :]
        elif not DOCUMENTS:
            floor = tl.load(FLOOR + row * S + topic, mask=is_topic, other=0.0)[None, :]
    sums = tl.zeros((B, P), tl.float32)
    log = tl.zeros((B,), tl.float64)
    for start in range(first, last, B):
        entry = start + tl.arange(0, B)
        is_entry = entry < last
        number = tl.load(OTHER + entry, mask=is_entry, other=0).to(tl.int64)
        count = tl.load(COUNT + entry, mask=is_entry, other=0.0)
        at = number[:, None] * S + topic[None, :]
        is_there = is_entry[:, None] & is_topic[None, :]
        other = tl.load(OTHER_TABLE + at, mask=is_there, other=0.0)
        joint = other * own[None, :]
        p = tl.maximum(tl.sum(joint, 1), SMALLEST)
        if DOCUMENTS:
            logs = tl.where(p > 2.0 * SMALLEST, tl.log2(p), IMPOSSIBLE)
            log += (count * logs).to(tl.float64)
        heavy = count
        if WEIGHTED and not DOCUMENTS:
            heavy = count * tl.load(WEIGHT + number, mask=is_entry, other=0.0)
        if LEAVE_OUT:
            of_document = tl.load(OF_DOCUMENT + (row + tl.zeros_like(number) if DOCUMENTS else number))
            weight = tl.full((B,), 1.0, tl.float32)
            if WEIGHTED:
                weight = tl.load(WEIGHT + (row + tl.zeros_like(number) if DOCUMENTS else number))
            if FLOORS and DOCUMENTS:
                floor = tl.load(FLOOR + at, mask=is_there, other=0.0)
            joint, p = without_token(
                joint, own, other, p, count, of_document, weight, alpha, inverse, floor, DOCUMENTS
            )
            sums += (heavy / p)[:, None] * joint
        else:
            sums += (heavy / p)[:, None] * other
    found = tl.sum(sums, 0)
    if not LEAVE_OUT:
        found *= own
    slot = tl.load(SLOT + segment).to(tl.int64)
    if slot >= 0:
        tl.store(PARTS + slot * S + topic, found, mask=is_topic)
    elif DOCUMENTS:
        found += tl.load(ALPHA + topic, mask=is_topic, other=0.0)
        tl.store(RESULT + row * S + topic, shares_of(found, topic < K, K), mask=is_topic)
    else:
        tl.store(RESULT + row * K + topic, found.to(tl.float64), mask=topic < K)
    if DOCUMENTS:
        total = tl.sum(log)
        if WEIGHTED:
            total *= tl.load(WEIGHT + row).to(tl.float64)
        tl.store(LOG + segment, total)


@triton.jit
def sum_of_parts(PARTS, FIRST, program, topic, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr):
    """Return the sums (P,) of a row's parts, B at a time, in order, in float64."""
    first, last = tl.load(FIRST + program).to(tl.int64), tl.load(FIRST + program + 1).to(tl.int64)
    sums = tl.zeros((B, P), tl.float64)
    for start in range(first, last, B):
        part = start + tl.arange(0, B)
        is_there = (part < last)[:, None] & (topic < S)[None, :]
        sums += tl.load(PARTS + part[:, None] * S + topic[None, :], mask=is_there, other=0.0).to(tl.float64)
    return tl.sum(sums, 0)


@triton.jit
def finish_documents(
    PARTS, FIRST, ROW, ALPHA, RESULT, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr
):
    """Topics of the documents ROW (R,) that have several segments: parts FIRST[i] to FIRST[i + 1] − 1."""
    program, topic = tl.program_id(0), tl.arange(0, P)
    sums = sum_of_parts(PARTS, FIRST, program, topic, S, P, B)
    sums += tl.load(ALPHA + topic, mask=topic < S, other=0.0).to(tl.float64)
    row = tl.load(ROW + program).to(tl.int64)
    found = shares_of(sums, topic < K, K).to(tl.float32)
    tl.store(RESULT + row * S + topic, found, mask=topic < S)


@triton.jit
def finish_words(
    PARTS, FIRST, ROW, RESULT, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr
):
    """Counts of the words ROW (R,) that have several segments."""
    program, topic = tl.program_id(0), tl.arange(0, P)
    sums = sum_of_parts(PARTS, FIRST, program, topic, S, P, B)
    row = tl.load(ROW + program).to(tl.int64)
    tl.store(RESULT + row * K + topic, sums, mask=topic < K)


@triton.jit
def counts_of(
    WORD,
    COUNT,
    TABLE,
    first,
    last,
    a,
    topic,
    S: tl.constexpr,
    P: tl.constexpr,
    B: tl.constexpr,
    LIKELIHOOD: tl.constexpr,
):
    """Return a document's counts of topics (P,), and Σ n log2 p in float64 if LIKELIHOOD."""
    sums = tl.zeros((B, P), tl.float32)
    log = tl.zeros((B,), tl.float64)
    for start in range(first, last, B):
        entry = start + tl.arange(0, B)
        is_entry = entry < last
        word = tl.load(WORD + entry, mask=is_entry, other=0).to(tl.int64)
        count = tl.load(COUNT + entry, mask=is_entry, other=0.0)
        is_there = is_entry[:, None] & (topic < S)[None, :]
        b = tl.load(TABLE + word[:, None] * S + topic[None, :], mask=is_there, other=0.0)
        p = tl.maximum(tl.sum(b * a[None, :], 1), SMALLEST)
        sums += (count / p)[:, None] * b
        if LIKELIHOOD:
            logs = tl.where(p > 2.0 * SMALLEST, tl.log2(p), IMPOSSIBLE)
            log += (count * logs).to(tl.float64)
    return a * tl.sum(sums, 0), tl.sum(log)


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
        sums, _ = counts_of(WORD, COUNT, TABLE, first, last, a, topic, S, P, B, False)
        one = shares_of(sums + alpha, topic < K, K)
        change = tl.sum(tl.abs(one - a))
        rounds += 1
        if (rounds < max_iter) & (change >= tol):
            sums, _ = counts_of(WORD, COUNT, TABLE, first, last, one, topic, S, P, B, False)
            two = shares_of(sums + alpha, topic < K, K)
            change = tl.sum(tl.abs(two - one))
            rounds += 1
            jumps = (rounds < max_iter) & (change >= tol) & (change > LEAST_LEAP)
            one = tl.where(jumps, leap(a, one, two), two)
        a = one
    a = tl.where(a > TINY, a, 0.0)
    tl.store(SHARES + document * S + topic, a, mask=topic < S)
    _, log = counts_of(WORD, COUNT, TABLE, first, last, a, topic, S, P, B, True)
    tl.store(LOG + document, log)


class SideSums:
    """A side of the counts, with places for the sums of rows that have several segments."""

    def __init__(self, side: Side, width: int) -> None:
        self.side = side
        several = side.first.diff() > 1
        self.row = several.nonzero()[:, 0].int()
        lengths = side.first.diff()[several]
        self.first = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=side.row.device)
        self.first[1:] = lengths.cumsum(0)
        self.slot = torch.full((len(side.row),), -1, dtype=torch.int32, device=side.row.device)
        partial = side.order[several[side.row[side.order].long()]]
        self.slot[partial] = torch.arange(len(partial), dtype=torch.int32, device=side.row.device)
        self.parts = torch.empty((max(1, len(partial)), width), dtype=torch.float32, device=side.row.device)


class KernelPasses(TorchPasses):
    """As :class:`TorchPasses`, by kernels; ``counts`` are float32.

    Topics of documents are (D, S), float32, with zeros behind the first K columns.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        super().__init__(counts, alpha)
        device, n_topics = self._alpha.device, len(alpha)
        self.width = -(-n_topics // 8) * 8
        padded = triton.next_power_of_2(self.width)
        self._sizes: dict[str, Any] = {
            "K": n_topics,
            "S": self.width,
            "P": padded,
            "B": max(1, TILE // padded),
            "num_warps": min(8, max(1, padded // 256)),
        }
        self._by_document = SideSums(counts.by_document, self.width)
        self._by_word = SideSums(counts.by_word, self.width)
        self.prior = self._row(self._alpha)
        self._single_own, self._weight = self._own.float(), counts.weight.float()
        self._table = torch.zeros((counts.n_words, self.width), dtype=torch.float32, device=device)
        self._spare = torch.empty((counts.n, self.width), dtype=torch.float32, device=device)
        self._by_word_sums = torch.zeros((counts.n_words, n_topics), dtype=torch.float64, device=device)
        self._log = torch.empty(len(counts.by_document.row), dtype=torch.float64, device=device)
        self._longest = torch.argsort(counts.begin.diff(), descending=True, stable=True).int()

    def _row(self, values: Tensor) -> Any:
        """Return numbers (..., K) as float32 with zeros behind them, (..., S)."""
        found = torch.zeros((*values.shape[:-1], self.width), dtype=torch.float32, device=values.device)
        found[..., : values.shape[-1]] = torch.where(values < LEAST_SINGLE, 0.0, values)
        return found

    def shares(self, doc_topic: Array) -> Any:
        """Return topics of documents (D, K), an array, in the form of passes."""
        given = torch.from_numpy(np.ascontiguousarray(doc_topic, dtype=np.float32)).to(self._alpha.device)
        found = torch.zeros((len(given), self.width), dtype=torch.float32, device=given.device)
        found[:, : self.n_topics] = torch.where(given > TINY.value, given, 0.0)
        return found

    def em(self, doc_topic: Tensor, word_topic: Tensor, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`TorchPasses.em`; ``doc_topic`` becomes the memory of the next pass's result."""
        self._table[:, : self.n_topics] = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic)
        inverse = floor = self.prior
        if left_out is not None:
            inverse, floor = self._row(left_out.inverse), self._row(left_out.floor)
        given = (self._single_own, self._weight, self.prior, inverse, floor)
        flags = {
            **self._sizes,
            "LEAVE_OUT": left_out is not None,
            "FLOORS": floor.ndim == 2 and len(floor) > 1,
            "WEIGHTED": not self.counts.is_plain,
        }
        if left_out is not None:
            flags["B"] = max(1, LEFT_OUT_TILE // flags["P"])
        after, side = self._spare, self._by_document.side
        segment_sums[(len(side.row),)](
            side.row,
            side.begin,
            self._by_document.slot,
            side.other,
            side.count,
            doc_topic,
            self._table,
            self._by_document.parts,
            after,
            self._log,
            *given,
            DOCUMENTS=True,
            **flags,
        )
        self._sum_words(doc_topic, given, flags)
        if len(self._by_document.row):
            finish_documents[(len(self._by_document.row),)](
                self._by_document.parts,
                self._by_document.first,
                self._by_document.row,
                self.prior,
                after,
                **self._sizes,
            )
        self._spare = doc_topic
        return Pass(after, self._by_word_sums, self._log.sum() * LOG_2)

    def _sum_words(self, doc_topic: Tensor, given: tuple[Any, ...], flags: dict[str, Any]) -> None:
        """Write the words' counts, from the table and topics of documents."""
        fast, side, result = self._by_word, self._by_word.side, self._by_word_sums
        segment_sums[(len(side.row),)](
            side.row,
            side.begin,
            fast.slot,
            side.other,
            side.count,
            self._table,
            doc_topic,
            fast.parts,
            result,
            self._log,
            *given,
            DOCUMENTS=False,
            **flags,
        )
        if len(fast.row):
            finish_words[(len(fast.row),)](fast.parts, fast.first, fast.row, result, **self._sizes)

    def fold(self, word_topic: Tensor, doc_topic: Tensor, max_iter: int, tol: float) -> Folded:
        """As :meth:`TorchPasses.fold`."""
        self._table[:, : self.n_topics] = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic)
        counts, found = self.counts, doc_topic.clone()
        logs = torch.empty(counts.n, dtype=torch.float64, device=found.device)
        fold_in[(counts.n,)](
            self._longest,
            counts.begin,
            counts.by_document.other,
            counts.by_document.count,
            self._table,
            self.prior,
            found,
            logs,
            max_iter,
            tol,
            **self._sizes,
        )
        return Folded(found, logs * LOG_2)
