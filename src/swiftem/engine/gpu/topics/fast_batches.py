"""Steps of sem and sem-vr by documents, by the kernels in Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton

from swiftem._typing import Array
from swiftem.engine.document_lane import LEAST_SCALE
from swiftem.engine.documents import LEAST_SINGLE
from swiftem.engine.gpu.topics import batch_kernels as kernels
from swiftem.engine.gpu.topics.batches import Done, DrawnDocuments, PlainSteps
from swiftem.engine.gpu.topics.fast import FastPasses
from swiftem.models.documents import BoundDocuments

__all__ = ["FastSteps"]

DOCUMENT_TILE, WORD_TILE = 4096, 1024
"""Numbers of a program's tile, entries times topics: a batch has few programs, which should not wait."""


class FastSteps(PlainSteps):
    """As :class:`PlainSteps`, by kernels; nothing is read from the device between iterations of a call."""

    _passes: FastPasses

    def __init__(self, passes: FastPasses, model: BoundDocuments, share: float) -> None:
        super().__init__(passes, model, share)
        device, n_topics, width = self._beta.device, passes.n_topics, passes.width
        padded = triton.next_power_of_2(width)
        sizes = {"K": n_topics, "S": width, "P": padded}
        self._of_words: dict[str, Any] = {
            **sizes, "B": max(1, WORD_TILE // padded), "num_warps": min(8, max(4, padded // 256)),
        }  # fmt: skip
        self._of_documents: dict[str, Any] = {**sizes, "B": max(1, DOCUMENT_TILE // padded), "num_warps": 8}
        self._of_topics: dict[str, Any] = {
            "K": n_topics, "P": padded, "num_warps": min(8, max(1, padded // 128)),
        }  # fmt: skip
        self._table = torch.zeros((model.n_words, width), dtype=torch.float32, device=device)
        self._shares = torch.empty((2, 0, width), dtype=torch.float32, device=device)
        self._change = torch.empty((0, n_topics), dtype=torch.float64, device=device)
        self._sums = torch.zeros(n_topics, dtype=torch.float64, device=device)

    def load_anchor(self, word_topic: Array) -> None:
        """As :meth:`PlainSteps.load_anchor`."""
        self._anchor = torch.zeros_like(self._table)
        given = self._there(word_topic)
        self._anchor[:, : given.shape[1]] = torch.where(given < LEAST_SINGLE, 0.0, given)

    def go(self, drawn: DrawnDocuments, steps: Array, given: Array | None, *, leaves: bool) -> Done:
        """As :meth:`PlainSteps.go`."""
        device, b = self._table.device, drawn.batch_size
        theta = None if given is None else self._there(given)
        numbers = torch.tensor(
            [self._scale, 0.0, 1.0, 0.0, 0.0, self._model.tokens, self._share], dtype=torch.float64
        ).to(device)
        gammas, rounds = self._there(steps), torch.zeros(len(drawn.row), dtype=torch.int32, device=device)
        again = torch.zeros_like(rounds)
        most = max(last - first for first, last in zip(drawn.at[:-1], drawn.at[1:], strict=True))
        if len(self._change) < most:
            self._change = torch.empty((most, self._change.shape[1]), dtype=torch.float64, device=device)
        if self._shares.shape[1] < b:
            self._shares = torch.empty((2, b, self._shares.shape[2]), dtype=torch.float32, device=device)
        low = self._scale
        for t, gamma in enumerate(steps.tolist()):
            self._topics_of(drawn, t, theta, numbers)
            self._e_step_of(drawn, t, self._table, self._shares[0], numbers, rounds)
            if self._anchor is not None:
                self._e_step_of(drawn, t, self._anchor, self._shares[1], numbers, again, subtract=True)
            if leaves:
                self._places.index_copy_(0, drawn.row[t * b : (t + 1) * b], self._shares[0, :b])
            low *= 1.0 - gamma
            self._step_of(drawn, t, gammas, numbers, may_shrink=low < LEAST_SCALE)
        length = drawn.begin.diff()
        spent = ((rounds + 1) * length).sum()
        if self._anchor is not None:
            spent = spent + ((again + 1) * length).sum()
        self._scale, rejected = numbers[[kernels.SCALE.value, kernels.REJECTED.value]].tolist()
        return Done(int(rejected), int(spent))

    def _topics_of(self, drawn: DrawnDocuments, t: int, given: Any, numbers: Any) -> None:
        """Write θ of the words of a batch into the table."""
        if drawn.at[t + 1] > drawn.at[t]:
            unused = self._u
            kernels.topics_of_words[(drawn.at[t + 1] - drawn.at[t],)](
                drawn.words, self._u, unused if self._centre is None else self._centre, self._beta,
                unused if given is None else given, self._total, self._centre_total, self._beta_total,
                numbers, self._table, drawn.at[t], S=self._passes.width, CENTRED=self._centre is not None,
                BETAS=len(self._beta) > 1, IS_GIVEN=given is not None, **self._of_topics,
            )  # fmt: skip

    def _e_step_of(
        self, drawn: DrawnDocuments, t: int, table: Any, shares: Any, numbers: Any, rounds: Any, *,
        subtract: bool = False,
    ) -> None:  # fmt: skip
        """Write where E-steps of a batch end into ``shares``, and its sums into the change."""
        model, b = self._model.model, drawn.batch_size
        kernels.fold_batch[(b,)](
            drawn.row, drawn.begin, drawn.word, drawn.count, table, self._passes.prior, self._places, shares,
            rounds, t * b, model.rounds, model.tolerance, **self._of_documents,
        )  # fmt: skip
        if drawn.at[t + 1] > drawn.at[t]:
            kernels.sums_of_words[(drawn.at[t + 1] - drawn.at[t],)](
                drawn.words, drawn.first, drawn.slot, drawn.heavy, table, shares, numbers, self._change,
                drawn.at[t], SUBTRACT=subtract, **self._of_words,
            )  # fmt: skip

    def _step_of(self, drawn: DrawnDocuments, t: int, steps: Any, numbers: Any, *, may_shrink: bool) -> None:
        """Make the step of a batch, unless it leaves the domain."""
        count = drawn.at[t + 1] - drawn.at[t]
        torch.sum(self._change[:count], dim=0, out=self._sums)
        kernels.decide[(1,)](
            self._sums, steps, self._total, self._centre_total, self._beta_total, numbers, t,
            **self._of_topics,
        )  # fmt: skip
        if may_shrink:
            self._u *= numbers[kernels.SHRINK.value]
        if count:
            kernels.add_to_words[(count,)](
                drawn.words, self._change, numbers, self._u, drawn.at[t], **self._of_topics
            )
