"""em of topics with larger steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from swiftem.core.types import Array
from swiftem.fit.stopping import Leaps
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.topics.documents import m_step

__all__ = ["TopicLeaps"]

LEAST = 0.1
"""No number falls below this share of em's own step in a leap: em could not leave zero."""


class TopicLeaps:
    """Passes of em at points that an acceleration chooses.

    The statistics are the topics of documents (D, K), which are linear in their expected counts, and the
    expected counts of words (K, V). Both stay positive in a leap. The objective of a pass includes the
    penalties of α and β, as em climbs the penalised likelihood.

    Parameters
    ----------
    fitting : TopicFitting
        Documents, α, β, the acceleration and the tolerance.
    fit : TopicFit
        The fit, whose arrays are always em's step from the last accepted point.
    """

    def __init__(self, fitting: Any, fit: Any) -> None:
        self._fitting, self._fit = fitting, fit
        self._leaps = Leaps(ACCELERATIONS[fitting.acceleration]())
        lengths = fitting.documents.length + fitting.alpha.sum()
        of_documents = np.repeat(fitting.documents.weight * lengths, len(fitting.alpha))
        self._scale = np.concatenate([of_documents, np.ones(fit.topics.size)])

    @property
    def state(self) -> Any:
        """The state of the acceleration."""
        return self._leaps.state

    def restore(self, state: Any) -> None:
        """Restore a state; raise TypeError if it has another form."""
        self._leaps.restore(state, len(self._scale))

    def scale(self, s: Array) -> Array:
        """Return factors that make topics of documents expected counts, too."""
        return self._scale

    def in_domain(self, s: Array) -> bool:
        """Tell whether the statistics are numbers: a pass makes them positive."""
        return bool(np.isfinite(s).all())

    def go(self, last: float, between: Callable[[], None]) -> tuple[float, bool]:
        """Make a pass; return the log-likelihood at its point, and whether that was a leap that was worse."""
        fitting, fit = self._fitting, self._fit
        doc_topic, topics = fit.doc_topic.copy(), fit.topics
        if self._leaps.point is not None:
            point = np.maximum(self._leaps.point, LEAST * self._leaps.state.kept)
            doc_topic, counts = self._parts(point)
            doc_topic = doc_topic / doc_topic.sum(axis=1, keepdims=True)
            topics = m_step(counts, fitting.beta)
        penalty = self._penalty(doc_topic, topics)
        counts, value = fitting.documents.em_pass(doc_topic, topics, fitting.alpha, None, between)
        total = fitting.documents.total
        s = np.concatenate([doc_topic.ravel(), counts.ravel()])
        is_calm = abs(last + value / total) < fitting.tol
        taken = self._leaps.take(s, (penalty - value) / total, self, is_calm)
        fit.doc_topic[:], fit.counts = self._parts(taken)
        fit.topics = m_step(fit.counts, fitting.beta)
        return value, taken is not s

    def _parts(self, s: Array) -> tuple[Array, Array]:
        """Return topics of documents and expected counts."""
        size = self._fit.doc_topic.size
        return s[:size].reshape(self._fit.doc_topic.shape), s[size:].reshape(self._fit.topics.shape)

    def _penalty(self, doc_topic: Array, topics: Array) -> float:
        """Return −Σ α log θ over documents, weighted, and −Σ β log θ over topics."""
        alpha, beta = self._fitting.alpha, np.broadcast_to(self._fitting.beta, topics.shape)
        weight = self._fitting.documents.weight
        of_documents = (np.log(doc_topic[:, alpha > 0.0]) * alpha[alpha > 0.0]).sum(axis=1)
        there = beta > 0.0
        return -float((weight * of_documents).sum() + (beta[there] * np.log(topics[there])).sum())
