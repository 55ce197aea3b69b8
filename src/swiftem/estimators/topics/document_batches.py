"""sem and sem-vr on topics, by batches of documents."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np

from swiftem._typing import Array
from swiftem.data.draws import read_seed
from swiftem.estimators.topics.documents import Documents
from swiftem.estimators.topics.running_counts import RunningCounts, m_step
from swiftem.estimators.topics.streamed_documents import StreamedDocuments
from swiftem.schedules import check_step, resolve

__all__ = ["DocumentBatches"]

ROUNDS, TOLERANCE = 5, 1e-2
"""How long a document of a batch is folded in: it is one step of many; the next mend what is missing."""


class DocumentBatches:
    r"""Epochs of sem or sem-vr by documents.

    A document's statistics, :math:`s_i(\theta)` of shape (K, V), are the expected counts of its words in
    topics after it has been folded in with the topics θ, by at most five rounds from where it was when the
    epoch began. With the start fixed they are a function of θ alone, so that sem-vr's correction
    :math:`s_i(\theta) - s_i(\theta_{anchor})` has the right mean, although no document comes to its end.

    - sem: proxy = (tokens of all / tokens of the batch) · Σ_batch s_i(θ);
    - sem-vr: proxy = Σ_all s_i(anchor) + (D / b) · Σ_batch (s_i(θ) − s_i(anchor)).

    sem's factor is a ratio, as documents of different length would otherwise make the counts go up and down;
    the differences of sem-vr sum to zero over words and topics, and D / b makes them unbiased.

    Parameters
    ----------
    documents : Documents or StreamedDocuments
        The corpus.
    alpha, beta : ndarray, shape (K,), and (1, 1), (1, V) or (K, V)
        Added to counts.
    method : OnlineEM or VarianceReducedEM
        With its batch size and step.
    seed : int
        Of the order of the documents.
    topics : ndarray, shape (K, V)
        Where to start.
    doc_topic : ndarray, shape (D, K)
        Topics of documents to start from; kept up to date.
    allocate : callable
        Makes another array of that shape, for sem-vr.

    Attributes
    ----------
    epochs : int
        How often all documents have been read.
    passes : float
        E-steps of entries so far, over the number of entries.
    rejected : int
        Steps that would have left the domain, and were not made.
    gamma : float
        The last step.
    """

    def __init__(
        self, documents: Documents | StreamedDocuments, alpha: Array, beta: Array, method: Any, seed: int,
        topics: Array, doc_topic: Array, allocate: Callable[[tuple[int, int]], Array] = np.empty,
    ) -> None:  # fmt: skip
        self._documents, self._alpha, self._beta, self._doc_topic = documents, alpha, beta, doc_topic
        self._allocate = allocate
        self._reduced, self._b = method.name == "sem-vr", method.batch_size
        self._draws = documents.draws(read_seed(seed), self._b)
        self._step = resolve(method.step_size, documents.n, self._b)
        self._running = RunningCounts(topics * (documents.total / len(topics)), beta)
        self._evaluations = self.epochs = self.rejected = self._k = 0
        self.gamma = 0.0

    @property
    def passes(self) -> float:
        """E-steps of entries so far, over the number of entries."""
        return self._evaluations / max(1, self._documents.n_entries)

    def counts(self) -> Array:
        """Return the running counts, shape (K, V)."""
        return self._running.counts()

    def snapshot(self) -> tuple[Any, ...]:
        """Return where batches stand, besides the documents' topics."""
        return self._k, self.epochs, self.rejected, self._evaluations, self.gamma, self._running.snapshot()

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Go on where :meth:`snapshot` was taken."""
        self._k, self.epochs, self.rejected, self._evaluations, self.gamma, running = snapshot
        self._running.restore(running)

    def epoch(self, between: Callable[[], None]) -> None:
        """Read the documents once, rounded up to whole batches; ``between`` may raise, before any batch."""
        documents, start = self._documents, self._doc_topic
        if self._reduced:
            start = self._allocate(self._doc_topic.shape)
            start[:] = self._doc_topic
            anchor = m_step(self._running.counts(), self._beta).T
            anchor = np.ascontiguousarray(anchor)
            full, spent = documents.sums(anchor, self._alpha, self._doc_topic, ROUNDS, TOLERANCE, between)
            self._running.renew(full.T)
            self._evaluations += spent
        for _ in range(ceil(documents.n / self._b)):
            between()
            (numbers,) = self._draws.at(self._k)
            batch, words = documents.batch(numbers)
            self._k += 1
            self.gamma = check_step(self._step(self._k), self._k)
            if batch.total > 0:
                found = start[numbers]
                change = self._sums(batch, self._running.topics_at(words), found)
                if self._reduced:
                    change -= self._sums(batch, anchor[words], start[numbers])
                    change *= documents.n / self._b
                else:
                    change *= documents.total / batch.total
                    self._doc_topic[numbers] = found
                self.rejected += not self._running.step(words, change, self.gamma)
        self.epochs += 1

    def _sums(self, batch: Documents, word_topic: Array, doc_topic: Array) -> Array:
        by_word, spent = batch.sums(word_topic, self._alpha, doc_topic, ROUNDS, TOLERANCE)
        self._evaluations += spent
        return by_word
