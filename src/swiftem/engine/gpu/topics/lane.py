"""sem and sem-vr by documents on a device: stretches of iterations, whose batches are made there at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array, Index
from swiftem.data.foreign import torch_of
from swiftem.engine.document_lane import CompiledDocuments, DocumentLane
from swiftem.engine.gpu.topics.batches import DrawnDocuments, PlainSteps
from swiftem.engine.gpu.topics.documents import DeviceDocuments
from swiftem.engine.gpu.topics.passes import PlainPasses
from swiftem.engine.lane import Current, Lane, Task, step_sizes
from swiftem.methods.update import Update, declared

__all__ = ["DeviceDocumentLane", "device_document_lane"]

MOST_ENTRIES = 1 << 21
"""Approximate number of entries of a stretch: sorting its batches by word takes 100 MB."""


class DeviceDocumentLane(DocumentLane):
    """As :class:`DocumentLane`, on the device that the documents are on.

    The running counts and the topics of documents stay there during a call of :meth:`advance`. Draws are
    those of the CPU. The ends of stretches change no bit.
    """

    source: DeviceDocuments
    running: PlainSteps  # type: ignore[assignment]

    def __init__(self, task: Task, update: Update) -> None:
        super().__init__(task, update)
        passes = self.source.passes(self.model.model.alpha)
        share = self.source.n / (self.source.total_weight * task.method.batch_size)
        self.running = steps_for(passes)(passes, self.model, share)
        self._every = np.arange(self.source.n)
        self._known: Array | None = None  # the places that the device has
        self._anchor: Array | None = None
        self._is_left = False

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1."""
        task, method, n = self.task, self.task.method, self.source.n
        if now.s is not self._stored:
            self._fresh(now)
            self._stored, self._given = now.s, now.theta.word_topic
        per_batch = max(1, self.source.n_entries * method.batch_size // n)
        most = max(1, MOST_ENTRIES // per_batch)
        try:
            while now.k < stop:
                task.interrupt.check()
                if method.renewal(now.k, n) == now.k:
                    self._renew(now)
                following = method.renewal(now.k + 1, n)
                last = min(stop, now.k + most, stop if following is None else following)
                self._load(now)
                leaves = not len(self.e_step.snapshot().begin)
                steps = step_sizes(task.gamma, now.k, last)
                drawn = self._drawn(task.draws.block(now.k, last)[0])
                done = self.running.go(drawn, steps, self._given, leaves=leaves)
                self._is_left |= leaves
                if done.rejected < len(steps):
                    self._given, self._changed = None, True
                self.e_step.evaluations += done.evaluations
                now.k, now.rejected = last, now.rejected + done.rejected
                now.evaluations = self.e_step.evaluations
        finally:
            self._store(now)
            self._leave()

    def _drawn(self, numbers: Index) -> DrawnDocuments:
        """Return the documents with these numbers (T, b) as batches."""
        counts, torch = self.source.passes(self.model.model.alpha).counts, torch_of("a device")
        row = torch.from_numpy(np.ascontiguousarray(numbers, np.int64)).to(counts.begin.device).ravel()
        begin = counts.begin[row]
        length = counts.begin[row + 1] - begin
        shift = begin - (length.cumsum(0) - length)
        entry = torch.repeat_interleave(shift, length)
        entry += torch.arange(len(entry), device=entry.device)
        side = counts.by_document
        return DrawnDocuments.of(
            row, length, side.other[entry], side.count[entry], counts.weight[row], numbers.shape[1],
            counts.n_words,
        )  # fmt: skip

    def _load(self, now: Current) -> None:
        """Copy places and anchor to the device, unless they are there."""
        begin, end = self.e_step.snapshot()
        places = begin if len(begin) else end
        if self._known is not places:
            self.running.load_places(places)
            self._known = places
        if self.update.reference == "anchor" and self._anchor is not now.state.anchor.word_topic:
            self._anchor = now.state.anchor.word_topic
            self.running.load_anchor(self._anchor)

    def _leave(self) -> None:
        """Copy the places back, where E-steps ended."""
        if self._is_left:
            self.e_step.leave(self._every, self.running.places())
            self._is_left = False

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass."""
        self._leave()
        super()._renew(now)
        self._known = None

    def _fresh(self, now: Current) -> Any:
        """Return the statistics of ``now``, with the method's centre."""
        centre = self.model.unpack(now.state.centre) if self.update.centre == "anchor" else None
        self.running.load(self.model.unpack(now.s), centre)
        return self.running

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore a snapshot of a lane of documents, if it belongs to ``now``."""
        super().restore(snapshot, now)
        self._known = None


def steps_for(passes: Any) -> type[PlainSteps]:
    """Return the steps that belong to these passes: by kernels, or by PyTorch."""
    if type(passes) is PlainPasses:
        return PlainSteps
    from swiftem.engine.gpu.topics.fast_batches import FastSteps

    return FastSteps


def device_document_lane(task: Task) -> Lane | None:
    """Return the lane for documents on a device, or None if they are not, or for other methods."""
    if type(task.e_step) is not CompiledDocuments or not isinstance(task.source, DeviceDocuments):
        return None
    update = declared(task.method)
    does = (Update(), Update(reference="anchor", centre="anchor"))
    return DeviceDocumentLane(task, update) if update is not None and update in does else None
