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
from swiftem.engine.gpu.topics.streamed import StreamedPasses
from swiftem.engine.lane import Current, Lane, Task, step_sizes
from swiftem.methods.method import Update, declared

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
        self._passes = self.source.passes(self.model.model.alpha)
        share = self.source.n / (self.source.total_weight * task.method.batch_size)
        self.running = steps_for(self._passes.single)(self._passes.single, self.model, share)
        self._known: Array | None = None  # the places that the device has, all of them
        self._some = np.arange(0 if self._is_streamed else self.source.n)  # documents that it has places of
        self._anchor: Array | None = None
        self._is_left = False

    @property
    def _is_streamed(self) -> bool:
        return isinstance(self._passes, StreamedPasses)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1."""
        task, method, n = self.task, self.task.method, self.source.n
        if now.s is not self._stored:
            self._fresh(now)
            self._stored, self._given = now.s, now.theta.word_topic
        most = MOST_ENTRIES
        if isinstance(self._passes, StreamedPasses):
            most = min(most, self._passes.most_entries)
        most = max(1, most * n // max(1, self.source.n_entries * method.batch_size))
        try:
            while now.k < stop:
                task.interrupt.check()
                if method.renewal(now.k, n) == now.k:
                    self._renew(now)
                following = method.renewal(now.k + 1, n)
                last = min(stop, now.k + most, stop if following is None else following)
                drawn = self._load(now, task.draws.block(now.k, last)[0])
                leaves = not len(self.e_step.snapshot().begin)
                steps = step_sizes(task.gamma, now.k, last)
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

    def _load(self, now: Current, numbers: Index) -> DrawnDocuments:
        """Copy places and anchor to the device, unless they are there; return batches of documents (T, b)."""
        begin, end = self.e_step.snapshot()
        places, rows = begin if len(begin) else end, numbers.ravel()
        if self._is_streamed:
            self._leave()
            self._some, rows = np.unique(rows, return_inverse=True)
            self.running.load_places(places[self._some])
        elif self._known is not places:
            self.running.load_places(places)
            self._known = places
        if self.update.reference == "anchor" and self._anchor is not now.state.anchor.word_topic:
            self._anchor = now.state.anchor.word_topic
            self.running.load_anchor(self._anchor)
        row = torch_of("a device").from_numpy(np.ascontiguousarray(rows, np.int64)).to(self._passes.device)
        entries = self._passes.entries_of(numbers.ravel())
        return DrawnDocuments.of(row, *entries, numbers.shape[1], self.source.n_words)

    def _leave(self) -> None:
        """Copy the places back, where E-steps ended."""
        if self._is_left:
            self.e_step.leave(self._some, self.running.places())
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
