"""Passes over documents by the kernels in Triton: tables in float32, sums of segments in float64."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import torch
import triton

from swiftem._typing import Array
from swiftem.engine.documents import LEAST_SINGLE
from swiftem.engine.gpu.topics import kernels
from swiftem.engine.gpu.topics.counts import DeviceCounts, Side
from swiftem.engine.gpu.topics.passes import Folded, LeftOut, Pass, PlainPasses

__all__ = ["MOST_TOPICS", "FastPasses"]

MOST_TOPICS = 4096
"""Largest number of topics that a program has registers for."""
TILE, LEFT_OUT_TILE = 512, 256
"""Numbers of a program's tile, entries times topics: of passes, and of those that leave tokens out."""
LOG_2 = log(2.0)


class FastSide:
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


class FastPasses(PlainPasses):
    """As :class:`PlainPasses`, by kernels; ``counts`` are float32.

    Topics of documents are (D, S), float32, with zeros behind the first K columns.
    """

    def __init__(self, counts: DeviceCounts, alpha: Array) -> None:
        super().__init__(counts, alpha)
        device, n_topics = self._alpha.device, len(alpha)
        self.width = -(-n_topics // 8) * 8
        padded = triton.next_power_of_2(self.width)
        self._sizes: dict[str, Any] = {
            "K": n_topics, "S": self.width, "P": padded, "B": max(1, TILE // padded),
            "num_warps": min(8, max(1, padded // 256)),
        }  # fmt: skip
        self._by_document = FastSide(counts.by_document, self.width)
        self._by_word = FastSide(counts.by_word, self.width)
        self.prior = self._row(self._alpha)
        self._single_own, self._weight = self._own.float(), counts.weight.float()
        self._table = torch.zeros((counts.n_words, self.width), dtype=torch.float32, device=device)
        self._spare = torch.empty((counts.n, self.width), dtype=torch.float32, device=device)
        self._by_word_sums = torch.zeros((counts.n_words, n_topics), dtype=torch.float64, device=device)
        self._log = torch.empty(len(counts.by_document.row), dtype=torch.float64, device=device)
        self._longest = torch.argsort(counts.begin.diff(), descending=True, stable=True).int()

    def _row(self, values: Any) -> Any:
        """Return numbers (..., K) as float32 with zeros behind them, (..., S)."""
        found = torch.zeros((*values.shape[:-1], self.width), dtype=torch.float32, device=values.device)
        found[..., : values.shape[-1]] = torch.where(values < LEAST_SINGLE, 0.0, values)
        return found

    def shares(self, doc_topic: Array) -> Any:
        """Return topics of documents (D, K), an array, in the form of passes."""
        given = torch.from_numpy(np.ascontiguousarray(doc_topic, dtype=np.float32)).to(self._alpha.device)
        found = torch.zeros((len(given), self.width), dtype=torch.float32, device=given.device)
        found[:, : self.n_topics] = torch.where(given > kernels.TINY.value, given, 0.0)
        return found

    def em(self, doc_topic: Any, word_topic: Any, left_out: LeftOut | None = None) -> Pass:
        """As :meth:`PlainPasses.em`; ``doc_topic`` becomes the memory of the next pass's result."""
        self._table[:, : self.n_topics] = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic)
        inverse = floor = self.prior
        if left_out is not None:
            inverse, floor = self._row(left_out.inverse), self._row(left_out.floor)
        given = (self._single_own, self._weight, self.prior, inverse, floor)
        flags = {
            **self._sizes, "LEAVE_OUT": left_out is not None, "FLOORS": floor.ndim == 2 and len(floor) > 1,
            "WEIGHTED": not self.counts.is_plain,
        }  # fmt: skip
        if left_out is not None:
            flags["B"] = max(1, LEFT_OUT_TILE // flags["P"])
        after, side = self._spare, self._by_document.side
        kernels.segment_sums[(len(side.row),)](
            side.row, side.begin, self._by_document.slot, side.other, side.count, doc_topic, self._table,
            self._by_document.parts, after, self._log, *given, DOCUMENTS=True, **flags,
        )  # fmt: skip
        self._sum_words(doc_topic, given, flags)
        if len(self._by_document.row):
            kernels.finish_documents[(len(self._by_document.row),)](
                self._by_document.parts, self._by_document.first, self._by_document.row, self.prior, after,
                **self._sizes,
            )  # fmt: skip
        self._spare = doc_topic
        return Pass(after, self._by_word_sums, self._log.sum() * LOG_2)

    def _sum_words(self, doc_topic: Any, given: tuple[Any, ...], flags: dict[str, Any]) -> None:
        """Write the words' counts, from the table and topics of documents."""
        fast, side, result = self._by_word, self._by_word.side, self._by_word_sums
        kernels.segment_sums[(len(side.row),)](
            side.row, side.begin, fast.slot, side.other, side.count, self._table, doc_topic, fast.parts,
            result, self._log, *given, DOCUMENTS=False, **flags,
        )  # fmt: skip
        if len(fast.row):
            kernels.finish_words[(len(fast.row),)](fast.parts, fast.first, fast.row, result, **self._sizes)

    def _of_words(self, doc_topic: Any, word_topic: Any) -> Any:
        """As :meth:`PlainPasses._of_words`; the table is that of :meth:`fold`."""
        given = (self._single_own, self._weight, self.prior, self.prior, self.prior)
        flags = {"LEAVE_OUT": False, "FLOORS": False, "WEIGHTED": not self.counts.is_plain}
        self._sum_words(doc_topic, given, self._sizes | flags)
        return self._by_word_sums

    def fold(self, word_topic: Any, doc_topic: Any, max_iter: int, tol: float, *, leaps: bool) -> Folded:
        """As :meth:`PlainPasses.fold`."""
        self._table[:, : self.n_topics] = torch.where(word_topic < LEAST_SINGLE, 0.0, word_topic)
        counts, found = self.counts, doc_topic.clone()
        logs = torch.empty(counts.n, dtype=torch.float64, device=found.device)
        rounds = torch.empty(counts.n, dtype=torch.int32, device=found.device)
        kernels.fold_in[(counts.n,)](
            self._longest, counts.begin, counts.by_document.other, counts.by_document.count, self._table,
            self.prior, found, logs, rounds, max_iter, tol, LEAPS=leaps, LIKELIHOOD=True, **self._sizes,
        )  # fmt: skip
        return Folded(found, logs * LOG_2, rounds)
