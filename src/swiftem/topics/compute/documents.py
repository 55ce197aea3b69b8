r"""sem and sem-vr by documents: E-steps that continue from earlier ones, and steps that cost O(batch).

The equations are in ``topics/documents.py``. :class:`DocumentsCompute` has their E-steps, for every method.
:class:`DocumentsLoop` does the iterations of a method that declares its update. It stores s as centre +
scale·u, so that an iteration costs O(words of the batch · K), whatever V is:

- the sE-step :math:`s \leftarrow s + \gamma (S - s)`, where :math:`S = C + \Delta`, is
  :math:`d \leftarrow (1 - \gamma) d + \gamma \Delta` for the deviation d = s − C = scale·u;
- sem: C = 0, Δ = mean of the batch's statistics at θ; sem-vr: C = s̄(anchor), Δ = the mean of their
  differences from those at the anchor. Δ is zero except for the words of the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.compute import Compute, Placement
from swiftem.core.method import Update, declared
from swiftem.core.schedules import check_step
from swiftem.core.source import Batch
from swiftem.core.types import Array, Index, Theta
from swiftem.topics.compute.corpus import Corpus, Documents
from swiftem.topics.documents import FEW, FLUSH, STOP, BoundDocuments, word_topic

LEAST_SCALE = 1e-80
BATCH = 128
"""Documents per step of a stream."""
STREAM_STOP = 10, 1e-2
"""When a document of a stream is folded in."""
UPDATES = (Update(), Update(reference="anchor"))
"""Updates of :class:`DocumentsLoop`: sem and sem-vr."""

Running = tuple[Array, float, Array, Array]
"""u (V, K), scale, centre (V, K) or (0, K), and the total scale·Σ_v u (K,) of :class:`RunningCounts`."""


class DocumentSnapshot(NamedTuple):
    """The places of documents, and the form of the statistics.

    Attributes
    ----------
    begin : ndarray, shape (D, K) or (0, K)
        Topics from which E-steps begin; without rows if these are ``end``.
    end : ndarray, shape (D, K)
        Topics at which they ended.
    running : Running or None
        The statistics of a loop.
    """

    begin: Array
    end: Array
    running: Running | None


class DocumentsCompute(Compute):
    r"""E-steps of documents, with a place for each document.

    A document's E-step begins where its last one ended, until there is a full pass. The results of a full
    pass are compared with later E-steps, which therefore begin where it began, until the next one.
    Evaluations are E-steps of entries.
    """

    _model: BoundDocuments
    _source: Corpus

    def __init__(self, model: BoundDocuments, source: Corpus, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        self.per_pass = max(1, source.n_entries)
        shape = (source.n, len(model.model.alpha))
        if source.doc_topic is None or source.doc_topic.shape != shape:
            source.doc_topic = source.allocate(shape)
            source.doc_topic[:] = 1.0 / shape[1]
        self._begin: Array | None = None

    @property
    def _end(self) -> Array:
        """The places where E-steps ended, shape (D, K)."""
        assert self._source.doc_topic is not None
        return self._source.doc_topic

    def places(self, index: Index) -> Array:
        """Return a copy of the places where E-steps of these documents begin, shape (b, K)."""
        return (self._end if self._begin is None else self._begin)[index]

    def leave(self, index: Index, places: Array) -> None:
        """Store the places where E-steps ended."""
        if self._begin is None:
            self._end[index] = places

    def rows(self, batch: Batch, theta: Theta) -> Array:
        """Return the expected counts of the batch's entries, (m, K)."""
        rows, places, _, evaluations = self._model.fold(batch, theta, self.places(batch.index))
        self.leave(batch.index, places)
        self.evaluations += evaluations
        return rows

    def of_batch(self, batch: Documents, numbers: Index, word_topic: Array) -> Array:
        """Return the sums (U, K) over the documents of a batch for its U words, whose θ is ``word_topic``."""
        places = self.places(numbers)
        sums, evaluations = batch.sums(places, word_topic, self._model.model.alpha, STOP)
        self.leave(numbers, places)
        self.evaluations += evaluations
        return sums

    def full(self, theta: Theta) -> Array:
        """Return the mean statistics of all documents, from their current places."""
        before = self._end
        after = self._source.allocate(before.shape) if self._begin is None else self._begin
        after[:] = before
        alpha, between = self._model.model.alpha, self._between_blocks
        counts, evaluations = self._source.sums(after, theta, alpha, STOP, between)
        self._begin, self._source.doc_topic = before, after
        self.evaluations += evaluations
        return counts.ravel() / self._source.total_weight

    def loop(self, task: Task) -> Loop:
        """Return iterations that cost O(batch), for sem and sem-vr."""
        update = declared(task.method)
        if update is None or update not in UPDATES or self.placement.form == "reference":
            return Algorithm1(task)
        return DocumentsLoop(task, update)

    def remember(self, theta: Theta) -> tuple[Array, Array]:
        """Raise ValueError: a memory would have K numbers for each entry."""
        raise ValueError("method must not remember samples if these are documents: use em, sem or sem-vr.")

    def snapshot(self) -> DocumentSnapshot:
        """Return the places, not copied."""
        return DocumentSnapshot(self._end[:0] if self._begin is None else self._begin, self._end, None)

    def restore(self, snapshot: object) -> None:
        """Restore the places, if there are as many."""
        end = self._end
        if isinstance(snapshot, DocumentSnapshot) and snapshot.end.shape == end.shape:
            end[:] = snapshot.end
            self._begin = None
            if snapshot.begin.shape == end.shape:
                self._begin = self._source.allocate(end.shape)
                self._begin[:] = snapshot.begin


class RunningCounts:
    r"""Statistics = centre + scale·u: a step of sem or sem-vr changes ``scale`` and the words of a batch.

    deviation ← (1 − γ)·deviation + γ·change, where the deviation is scale·u, costs O(words of the batch),
    whatever the size of the vocabulary. The M-step is defined in ``topics/documents.py``.

    Parameters
    ----------
    counts : ndarray, shape (V, K)
        Initial counts; not changed.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to the counts in the M-step.
    tokens : float
        T, the sum of counts in the M-step.

    Examples
    --------
    >>> running = RunningCounts(np.array([[4.0], [4.0]]), np.zeros((1, 1)), 8.0)
    >>> running.step(np.array([1]), np.array([[8.0]]), 0.5)
    True
    >>> running.counts(), running.topics_at(np.array([1]))
    (array([[2.],
           [6.]]), array([[0.75]]))
    """

    def __init__(self, counts: Array, beta: Array, tokens: float) -> None:
        self.tokens, self._beta = tokens, np.broadcast_to(beta.T, counts.shape)
        self._beta_total = np.array(self._beta.sum(axis=0))
        self._u, self._scale, self._centre = np.array(counts, order="C"), 1.0, np.empty((0, counts.shape[1]))
        self._centre_total, self._total = np.zeros(counts.shape[1]), counts.sum(axis=0)

    def _totals(self, total: Array) -> tuple[float, Array]:
        """Return the factor of β, and the topics' totals with it, given the totals of the deviation."""
        of_counts = total + self._centre_total
        strength = float(of_counts.sum()) / self.tokens
        return strength, of_counts + strength * self._beta_total

    def topics_at(self, words: Index) -> Array:
        """Return θ of some words, shape (U, K)."""
        strength, totals = self._totals(self._total)
        topics = np.empty((len(words), self._u.shape[1]))
        if topics.size <= FEW:
            np.multiply(self._u[words], self._scale, out=topics)
            if len(self._centre):
                topics += self._centre[words]
            return word_topic(topics, strength * self._beta[words], totals)
        from swiftem.topics.compute.passes_kernels import topics_at

        totals[totals <= 0.0] = np.inf
        topics_at(words, self._centre, self._u, self._scale, self._beta, strength, totals, FLUSH, topics)
        return topics

    def step(self, words: Index, change: Array, gamma: float) -> bool:
        """Make a step with the change (U, K) of these distinct words; return whether it was accepted.

        A step that leaves no tokens, or a topic with a negative total, leaves the domain and is rejected.
        """
        after = (1.0 - gamma) * self._total + gamma * change.sum(axis=0)
        strength, totals = self._totals(after)
        if not (strength > 0.0 and (totals >= 0.0).all()):
            return False
        self._scale *= 1.0 - gamma
        if self._scale < LEAST_SCALE:
            self._u *= self._scale
            self._scale = 1.0
        factor = gamma / self._scale
        if change.size <= FEW:
            self._u[words] += factor * change
        else:
            from swiftem.topics.compute.passes_kernels import add_at

            add_at(words, change, factor, self._u)
        self._total = after
        return True

    def renew(self, centre: Array) -> None:
        """Change the centre (V, K), which is not copied; the counts stay the same."""
        u = self.counts() - centre
        self._u, self._scale, self._centre = u, 1.0, centre
        self._centre_total, self._total = centre.sum(axis=0), u.sum(axis=0)

    def counts(self) -> Array:
        """Return the counts, shape (V, K)."""
        deviation: Array = self._scale * self._u
        return deviation + self._centre if len(self._centre) else deviation

    def snapshot(self) -> Running:
        """Return the internal form of the counts: :meth:`restore` continues with the same bits."""
        return self._u, self._scale, self._centre, self._total

    def restore(self, snapshot: Running) -> None:
        """Restore a snapshot, which is not changed."""
        u, self._scale, self._centre, self._total = snapshot
        self._u, self._centre_total = np.array(u, order="C"), self._centre.sum(axis=0)


class DocumentsLoop:
    """Iterations that cost O(batch), from a method's update.

    θ of the words of a batch is computed from the running statistics. ``now`` gets θ and s at the end of a
    stretch, but they are not read back: the end of a stretch changes no bit.
    """

    def __init__(self, task: Task, update: Update) -> None:
        self.task, self.update = task, update
        self.model: BoundDocuments = task.model  # type: ignore[assignment]
        self.source: Corpus = task.source  # type: ignore[assignment]
        self.compute: DocumentsCompute = task.compute  # type: ignore[assignment]
        self._stored: Array | None = None  # the s in ``now`` that equals the running statistics
        self._given: Array | None = None  # θ before the first step, which need not be the M-step of s
        self._changed = False

    def advance(self, now: Current, stop: int) -> None:
        """Stochastic EM, iterations ``now.k`` to ``stop`` − 1."""
        task, method, n = self.task, self.task.method, self.source.n
        if now.s is not self._stored:
            self.running, self._stored, self._given = self._fresh(now), now.s, now.theta
        scale = n / (self.source.total_weight * method.batch_size)
        try:
            while now.k < stop:
                task.interrupt.check()
                gamma = check_step(task.gamma(now.k + 1), now.k + 1)
                (numbers,) = task.draws.at(now.k)
                batch: Documents = self.source.take(numbers).y  # type: ignore[assignment]
                words = batch.words
                if method.renewal(now.k, n) == now.k:
                    self._renew(now)
                at = self.running.topics_at(words) if self._given is None else self._given[words]
                change = self.compute.of_batch(batch, numbers, at)
                if self.update.reference == "anchor":
                    change -= self.compute.of_batch(batch, numbers, now.state.anchor[words])
                change *= scale
                if self.running.step(words, change, gamma):
                    self._given, self._changed = None, True
                else:
                    now.rejected += 1
                now.k, now.evaluations = now.k + 1, self.compute.evaluations
        finally:
            self._store(now)

    def _fresh(self, now: Current) -> RunningCounts:
        """Return the statistics of ``now``, with the method's centre."""
        running = RunningCounts(self.model.unpack(now.s), self.model.model.beta, self.model.tokens)
        if self.update.centre == "anchor":
            running.renew(self.model.unpack(now.state.centre))
        return running

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass."""
        self._store(now)
        now.state = now.state._replace(anchor=now.theta, centre=self.compute.full(now.theta))
        self.running.renew(self.model.unpack(now.state.centre))

    def _store(self, now: Current) -> None:
        """Put s and θ into ``now``."""
        if self._changed:
            now.s = self._stored = self.running.counts().ravel()
            now.theta, now.is_m_step, self._changed = self.model.m_step(now.s), True, False

    def snapshot(self) -> DocumentSnapshot:
        """Return the form of the statistics, and the places: not copied, as a loop ends with its run."""
        running = None if self._stored is None else self.running.snapshot()
        return self.compute.snapshot()._replace(running=running)

    def restore(self, snapshot: object, now: Current) -> None:
        """Restore a snapshot of this loop, if it belongs to ``now``."""
        self.compute.restore(snapshot)
        running, held = self._fresh(now), snapshot.running if isinstance(snapshot, DocumentSnapshot) else None
        fresh = running.snapshot()
        if held is not None and [np.shape(part) for part in held] == [np.shape(part) for part in fresh]:
            running.restore(held)
            if np.array_equal(held[2], fresh[2]) and np.array_equal(running.counts().ravel(), now.s):
                self.running, self._stored, self._given = running, now.s, now.theta
                if now.is_m_step and now.k > now.rejected:
                    self._given = None


def counts_after(counts: Array, documents: Documents, alpha: Array, beta: Array, power: float) -> Array:
    """Return the expected counts of words in topics (K, V) after more documents.

    Parameters
    ----------
    counts : ndarray, shape (K, V)
        The counts before.
    documents : Documents
        The new documents.
    alpha, beta : ndarray
        Added to counts of topics in documents, and of words in topics.
    power : float
        How fast old documents are forgotten.
    """
    seen = first_seen = float(counts.sum())
    running = RunningCounts(counts.T, beta, seen)
    for start in range(0, documents.n, BATCH):
        index = np.arange(start, min(start + BATCH, documents.n))
        batch: Documents = documents.take(index).y  # type: ignore[assignment]
        if batch.total > 0:
            uniform = np.full((batch.n, len(alpha)), 1.0 / len(alpha))
            change, _ = batch.sums(uniform, running.topics_at(batch.words), alpha, STREAM_STOP)
            gamma = 1.0 - (seen / (seen + batch.total)) ** power
            running.step(batch.words, change * (first_seen / batch.total), gamma)
            seen += batch.total
            running.tokens = seen
    return np.ascontiguousarray(running.counts().T) * (seen / first_seen)
