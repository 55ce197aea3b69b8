"""Passes over documents by kernels in Triton, in float32; ``torch.py`` defines what they compute.

A program does one segment of a row of counts: of a document (its entries are words) or of a word (its entries
are documents). With a the document's topics and b the word's, an entry of count n adds n·a_k·b_k / Σ ab to
both: a launch for documents adds the first, one for words computes the same again and adds the second.
Nothing is added atomically: results have the same bits in every run. At most 256 entries are added in
float32; sums of segments are added in float64.

Tables have S numbers per row, K of them in use and zeros behind them; P is the next power of two. Limits are
as in ``topics/compute/passes_kernels.py`` in float32.
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
from swiftem.topics.compute.torch import DeviceCounts, LeftOut, Side, TorchPasses, by_row

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


@triton.jit
def shares_of(sums, is_topic, K: tl.constexpr):
    """Return a document's topics (P,) from its counts with α; uniform if there are none."""
    total = tl.sum(sums)
    found = tl.where(total > 0.0, sums / tl.where(total > 0.0, total, 1.0), 1.0 / K)
    return tl.where(is_topic & (found > TINY), found, 0.0)


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
    """Compute Σ n·r (P,) of the entries of a segment, B at a time; the twin is ``TorchPasses._sums``.

    Chosen for float32 on a GPU and at most :data:`MOST_TOPICS` topics.

    ROW (s,), BEGIN (s + 1,): of segments. SLOT (s,): row of PARTS (., S) that the sums go to, or −1 if the
    segment is its row's only one: then RESULT gets the document's topics (D, S), or the word's counts (V, K)
    in float64. LOG (s,): Σ n log2 p, float64, of documents.

    OWN_TABLE (., S) is of the rows, OTHER_TABLE of the entries. DOCUMENT (D, 2): 1 / tokens, and weights.
    PRIOR (2 + F, S): α, then what leaving a token out needs, the inverse and the floor, of each word if
    FLOORS. Without LEAVE_OUT only α and weights are read.
    """
    segment, topic = tl.program_id(0), tl.arange(0, P)
    is_topic = topic < S
    row = tl.load(ROW + segment).to(tl.int64)
    first, last = tl.load(BEGIN + segment), tl.load(BEGIN + segment + 1)
    own = tl.load(OWN_TABLE + row * S + topic, mask=is_topic, other=0.0)
    alpha = tl.load(PRIOR + topic, mask=is_topic, other=0.0)
    parts = tl.zeros((B, P), tl.float32)
    log = tl.zeros((B,), tl.float64)
    if LEAVE_OUT:
        inverse = tl.load(PRIOR + S + topic, mask=is_topic, other=0.0)
        word = row if FLOORS and not DOCUMENTS else 0
        floor = tl.load(PRIOR + (2 + word) * S + topic, mask=is_topic, other=0.0)[None, :]
    for start in range(first, last, B):
        entry = start + tl.arange(0, B)
        is_entry = entry < last
        number = tl.load(OTHER + entry, mask=is_entry, other=0).to(tl.int64)
        count = tl.load(COUNT + entry, mask=is_entry, other=0.0)
        is_there = is_entry[:, None] & is_topic[None, :]
        other = tl.load(OTHER_TABLE + number[:, None] * S + topic[None, :], mask=is_there, other=0.0)
        joint = other * own[None, :]
        p = tl.maximum(tl.sum(joint, 1), SMALLEST)
        if DOCUMENTS:
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
            parts += (heavy / tl.where(is_left, left, p))[:, None] * tl.where(is_left[:, None], rows, joint)
        else:
            parts += (heavy / p)[:, None] * other
    sums = tl.sum(parts, 0)
    if not LEAVE_OUT:
        sums *= own
    slot = tl.load(SLOT + segment).to(tl.int64)
    if slot >= 0:
        tl.store(PARTS + slot * S + topic, sums, mask=is_topic)
    elif DOCUMENTS:
        tl.store(RESULT + row * S + topic, shares_of(sums + alpha, topic < K, K), mask=is_topic)
    else:
        tl.store(RESULT + row * K + topic, sums.to(tl.float64), mask=topic < K)
    if DOCUMENTS:
        tl.store(LOG + segment, tl.sum(log))


@triton.jit
def row_sums(PARTS, FIRST, RESULT, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr):
    """Add PARTS (., S) in float64, B at a time; the twin is ``by_row``, which adds one after the other.

    Chosen for rows that have several segments: row i has the parts FIRST[i] to FIRST[i + 1] − 1, and its sums
    go to RESULT (R, S).
    """
    program, topic = tl.program_id(0), tl.arange(0, P)
    first, last = tl.load(FIRST + program), tl.load(FIRST + program + 1)
    parts = tl.zeros((B, P), tl.float64)
    for start in range(first, last, B):
        part = start + tl.arange(0, B)
        is_there = (part < last)[:, None] & (topic < S)[None, :]
        parts += tl.load(PARTS + part[:, None] * S + topic[None, :], mask=is_there, other=0.0).to(tl.float64)
    tl.store(RESULT + program * S + topic, tl.sum(parts, 0), mask=topic < S)


class KernelPasses(TorchPasses):
    """As :class:`TorchPasses`, by the kernels; ``counts`` are float32.

    Topics of documents are (D, S), float32, with zeros behind the first K columns.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        super().__init__(counts, alpha)
        width = _width(len(alpha))
        padded = triton.next_power_of_2(width)
        self._sizes = {
            "K": len(alpha),
            "S": width,
            "P": padded,
            "B": max(1, TILE // padded),
            "num_warps": min(8, max(1, padded // 256)),
        }
        self._prior = self._table(self._alpha[None])
        self._document = torch.stack([self._own, counts.weight], dim=1).float()
        self._several = _several(counts.by_word), _several(counts.by_document)

    def _table(self, word_topic: Tensor) -> Tensor:
        """Return numbers (n, K) as float32 with zeros behind them, (n, S)."""
        values = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic).float()
        return torch.nn.functional.pad(values, (0, self._sizes["S"] - values.shape[1]))

    @staticmethod
    def form(doc_topic: Array) -> Tensor:
        """Return topics of documents (D, K) in the form of passes, in memory of the CPU."""
        given = torch.from_numpy(np.ascontiguousarray(doc_topic, dtype=np.float32))
        given = torch.where(given > TINY.value, given, 0.0)
        return torch.nn.functional.pad(given, (0, _width(given.shape[1]) - given.shape[1]))

    def _documents(
        self, doc_topic: Tensor, table: Tensor, left_out: LeftOut | None = None
    ) -> tuple[Tensor, Tensor]:
        after, side = torch.zeros_like(doc_topic), self.counts.by_document
        logs = self._own.new_empty(len(side.row))
        rows, sums = self._launch(True, (doc_topic, table), (after, logs), left_out)
        after[rows, : self.n_topics] = self._m_step(sums).float()
        # PyTorch adds rows of a matrix faster than numbers of a vector.
        return after, by_row(side, logs[:, None])[:, 0] * LOG_2

    def _words(self, doc_topic: Tensor, table: Tensor, left_out: LeftOut | None) -> Tensor:
        by_word = self._own.new_zeros((len(table), self.n_topics))
        rows, sums = self._launch(False, (table, doc_topic), (by_word, self._own), left_out)
        by_word[rows] = sums
        return by_word

    def _launch(
        self,
        is_documents: bool,
        tables: tuple[Tensor, Tensor],
        results: tuple[Tensor, Tensor],
        left_out: LeftOut | None,
    ) -> tuple[Tensor, Tensor]:
        """Run the kernel; return the rows that have several segments, and their sums (., K), float64.

        Parameters
        ----------
        is_documents : bool
            Whether rows are documents.
        tables : tuple of tensors
            The rows' own table, and the other one.
        results : tuple of tensors
            RESULT and LOG of :func:`segment_sums`.
        left_out : LeftOut or None
            If given, each token is left out of the counts that explain it.
        """
        side = self.counts.by_document if is_documents else self.counts.by_word
        rows, first, slot, n_parts = self._several[is_documents]
        prior, sizes = self._prior, self._sizes
        flags = {"DOCUMENTS": is_documents, "LEAVE_OUT": left_out is not None, "FLOORS": False}
        if left_out is not None:
            inverse, floor = left_out
            prior = torch.cat([prior, self._table(inverse[None]), self._table(floor)])
            sizes = sizes | {"B": max(1, LEFT_OUT_TILE // sizes["P"])}
            flags["FLOORS"] = len(floor) > 1
        segments = side.row, side.begin, slot, side.other, side.counts
        parts = prior.new_empty((n_parts, sizes["S"]))
        given = parts, *results, self._document, prior
        segment_sums[(len(slot),)](
            *segments, *tables, *given, **sizes, **flags, WEIGHTED=self.counts.is_weighted
        )
        sums = self._own.new_empty((len(rows), sizes["S"]))
        if n_parts:
            row_sums[(len(rows),)](parts, first, sums, **{name: self._sizes[name] for name in "SPB"})
        return rows, sums[:, : self.n_topics]


def _several(side: Side) -> tuple[Tensor, Tensor, Tensor, int]:
    """Return the rows that have several segments, and the places of these segments, row by row.

    That is row (R,), the first place of each and the end (R + 1,), the place of every segment, −1 if it is
    its row's only one, (S,), and the number of places.
    """
    lengths = side.first.diff()
    is_several = lengths > 1
    partial = side.order[is_several[side.row[side.order].long()]]
    places = torch.full_like(side.row, -1)
    places[partial] = torch.arange(len(partial), dtype=places.dtype, device=places.device)
    first = torch.nn.functional.pad(lengths[is_several].cumsum(0), (1, 0))
    return is_several.nonzero()[:, 0], first, places, len(partial)


def _width(n_topics: int) -> int:
    """Return S, the numbers of a row of the tables."""
    return -(-n_topics // 8) * 8
