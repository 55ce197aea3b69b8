"""sem and sem-vr by documents: E-steps that begin where earlier ones ended, and steps as large as a batch.

The equations are in ``models/documents.py``, what a step changes in ``engine/running_counts.py``.
:class:`DocumentExpectation` is their plain form, for every method and iteration by iteration; the lane does
the same from the update that a method declares, in compiled code, at a cost of O(words of the batch · K).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array, Index, Theta
from swiftem.data.source import Batch
from swiftem.engine.documents import Documents
from swiftem.engine.expectation import BLOCK, Expectation
from swiftem.engine.lane import Current, Lane, Task
from swiftem.engine.running_counts import Running, RunningCounts
from swiftem.engine.streamed_documents import StreamedDocuments
from swiftem.methods.update import Update, declared
from swiftem.models.documents import BoundDocuments, DocumentTheta
from swiftem.schedules import check_step

__all__ = ["CompiledDocuments", "DocumentExpectation", "DocumentLane", "document_lane"]


class Places(NamedTuple):
    """``begin`` (D, K): where E-steps of documents begin, (0, K): where they ended; ``end`` (D, K): that."""

    begin: Array
    end: Array


class DocumentExpectation(Expectation):
    r"""E-steps of documents, with a place for each.

    A document's E-step begins where its last one ended, until there is a full pass: what a full pass has
    found is compared with later E-steps, and so these begin where it began, till the next one. Evaluations
    are E-steps of entries.
    """

    _model: BoundDocuments
    _source: Documents | StreamedDocuments

    def __init__(
        self, model: BoundDocuments, source: Any, between_blocks: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(model, source, between_blocks)
        self.per_pass = max(1, source.n_entries)
        shape = (source.n, len(model.model.alpha))
        if source.doc_topic is None or source.doc_topic.shape != shape:
            source.doc_topic = source.allocate(shape)
            source.doc_topic[:] = 1.0 / shape[1]
        self._begin: Array | None = None

    def places(self, index: Index) -> Array:
        """Return a copy of where E-steps of these documents begin, shape (b, K)."""
        begin = self._source.doc_topic if self._begin is None else self._begin
        return begin[index]  # type: ignore[index]

    def leave(self, index: Index, places: Array) -> None:
        """Take note of where E-steps ended."""
        if self._begin is None:
            self._source.doc_topic[index] = places  # type: ignore[index]

    def rows(self, batch: Batch, theta: Theta) -> Array:
        """Return the expected counts of the batch's entries, (m, K)."""
        found = self._model.fold(batch, theta, self.places(batch.index))
        self.leave(batch.index, found.doc_topic)
        self.evaluations += found.evaluations
        return found.rows

    def full(self, theta: Theta) -> Array:
        """Return the mean statistics of all documents, from where they were left."""
        before: Any = self._source.doc_topic
        after = self._source.allocate(before.shape) if self._begin is None else self._begin
        after[:] = before
        s, evaluations = self.sums(theta, after)
        self._begin, self._source.doc_topic = before, after
        self.evaluations += evaluations
        return s

    def sums(self, theta: DocumentTheta, places: Array) -> tuple[Array, int]:
        """Return mean statistics (V·K,) and evaluations of all documents; ``places`` (D, K) are replaced."""
        s, evaluations = np.zeros(theta.word_topic.size), 0
        for batch in self._source.blocks(BLOCK):
            self._between_blocks()
            found = self._model.fold(batch, theta, places[batch.index])
            places[batch.index] = found.doc_topic
            s += self._statistics(batch, found.rows, batch.weight / self._source.total_weight)
            evaluations += found.evaluations
        return s, evaluations

    def remember(self, theta: Theta) -> tuple[Array, Array]:
        """Refuse: a memory would have K numbers for each entry."""
        raise ValueError("method must not remember samples where these are documents: use em, sem or sem-vr.")

    def snapshot(self) -> Places:
        """Return the places, not copied."""
        end: Any = self._source.doc_topic
        return Places(end[:0] if self._begin is None else self._begin, end)

    def restore(self, snapshot: Any) -> None:
        """Go on from the places of these E-steps, or of the lane's."""
        places, end = getattr(snapshot, "places", snapshot), self._source.doc_topic
        if isinstance(places, Places) and end is not None and places.end.shape == end.shape:
            end[:] = places.end
            self._begin = None
            if places.begin.shape == end.shape:
                self._begin = self._source.allocate(end.shape)
                self._begin[:] = places.begin


class CompiledDocuments(DocumentExpectation):
    """The same, by compiled loops in threads."""

    def sums(self, theta: DocumentTheta, places: Array) -> tuple[Array, int]:
        """Return mean statistics (V·K,) and evaluations of all documents; ``places`` (D, K) are replaced."""
        model, source = self._model.model, self._source
        counts, evaluations = source.sums(
            places, theta.word_topic, model.alpha, model.rounds, model.tolerance, self._between_blocks
        )
        return counts.ravel() / source.total_weight, evaluations

    def of_batch(self, batch: Documents, numbers: Index, word_topic: Array) -> Array:
        """Return the sums (U, K) of the U words of a batch, whose θ is ``word_topic``, over its documents."""
        model, places = self._model.model, self.places(numbers)
        sums, evaluations = batch.sums(places, word_topic, model.alpha, model.rounds, model.tolerance)
        self.leave(numbers, places)
        self.evaluations += evaluations
        return sums


class DocumentSnapshot(NamedTuple):
    """``running``: how the lane holds the statistics; ``places``: of documents."""

    running: Running
    places: Places


class DocumentLane:
    """Iterations whose cost is that of their batch: reads a method's update, and knows no method.

    θ of the words of a batch is made of the running statistics. ``now`` gets θ and s at the end of a stretch,
    and nothing of that comes back: where a stretch ends changes no bit.
    """

    def __init__(self, task: Task, update: Update) -> None:
        self.task, self.update = task, update
        self.model: BoundDocuments = task.model  # type: ignore[assignment]
        self.source: Documents | StreamedDocuments = task.source  # type: ignore[assignment]
        self.e_step: CompiledDocuments = task.e_step  # type: ignore[assignment]
        self._stored: Array | None = None  # the s that the running statistics are, in ``now``
        self._given: Array | None = None  # θ before the first step, which need not be the M-step of s
        self._changed = False

    def advance(self, now: Current, stop: int) -> None:
        """Stochastic EM, iterations ``now.k`` to ``stop`` − 1."""
        task, method, n = self.task, self.task.method, self.source.n
        if now.s is not self._stored:
            self.running, self._stored, self._given = self._fresh(now), now.s, now.theta.word_topic
        scale = n / (self.source.total_weight * method.batch_size)
        try:
            while now.k < stop:
                task.interrupt.check()
                gamma = check_step(task.gamma(now.k + 1), now.k + 1)
                (numbers,) = task.draws.at(now.k)
                batch: Any = self.source.take(numbers).y
                words = batch.words
                if method.renewal(now.k, n) == now.k:
                    self._renew(now)
                at = self.running.topics_at(words) if self._given is None else self._given[words]
                change = self.e_step.of_batch(batch, numbers, at)
                if self.update.reference == "anchor":
                    change -= self.e_step.of_batch(batch, numbers, now.state.anchor.word_topic[words])
                change *= scale
                if self.running.step(words, change, gamma):
                    self._given, self._changed = None, True
                else:
                    now.rejected += 1
                now.k, now.evaluations = now.k + 1, self.e_step.evaluations
        finally:
            self._store(now)

    def _fresh(self, now: Current) -> RunningCounts:
        """Return the statistics of ``now``, with the method's centre."""
        running = RunningCounts(self.model.unpack(now.s), self.model.model.beta, self.model.tokens)
        if self.update.centre == "anchor":
            running.renew(self.model.unpack(now.state.centre))
        return running

    def _renew(self, now: Current) -> None:
        """Take θ for the anchor, and the full pass there for the centre."""
        self._store(now)
        now.state = now.state._replace(anchor=now.theta, centre=self.e_step.full(now.theta))
        self.running.renew(self.model.unpack(now.state.centre))

    def _store(self, now: Current) -> None:
        """Put s and θ into ``now``."""
        if self._changed:
            now.s = self._stored = self.running.counts().ravel()
            now.theta, self._changed = self.model.m_step(now.s), False

    def snapshot(self) -> DocumentSnapshot | Places:
        """Return how the statistics are held, and the places: not copied, as a lane ends with its run."""
        places = self.e_step.snapshot()
        return places if self._stored is None else DocumentSnapshot(self.running.snapshot(), places)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Go on from a snapshot of this lane, if ``now`` is where it was taken."""
        self.e_step.restore(snapshot)
        running = self._fresh(now)
        held, fresh = getattr(snapshot, "running", None), running.snapshot()
        if isinstance(held, Running) and [np.shape(a) for a in held] == [np.shape(a) for a in fresh]:
            running.restore(held)
            same_centre = np.array_equal(held.centre, fresh.centre)
            if same_centre and np.array_equal(running.counts().ravel(), now.s):
                self.running, self._stored, self._given = running, now.s, now.theta.word_topic
                is_m_step = np.array_equal(self._given, self.model.m_step(now.s).word_topic)
                if is_m_step and now.k > now.rejected:
                    self._given = None


def document_lane(task: Task) -> Lane | None:
    """Return the lane for documents, or None where the method declares nothing that it can do."""
    if type(task.e_step) is not CompiledDocuments:
        return None
    update = declared(task.method)
    does = (Update(), Update(reference="anchor", centre="anchor"))
    return DocumentLane(task, update) if update is not None and update in does else None
