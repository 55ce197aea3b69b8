"""The objective of a stochastic fit of topics, on a fixed set of documents."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.streamed import StreamedDocuments

LOOKED_AT = 500
"""Documents on which the likelihood of a stochastic method is evaluated: always the same."""
ROUNDS, TOLERANCE = 20, 1e-2


class TopicLook:
    """Evaluates the mean log-likelihood per token on a fixed set of documents, folded in."""

    def __init__(self, documents: Documents | StreamedDocuments, alpha: Array, tol: float) -> None:
        index = np.arange(documents.n)
        if documents.n > LOOKED_AT:
            index = np.sort(np.random.default_rng(0).choice(documents.n, LOOKED_AT, replace=False))
        self._documents: Documents = documents.some(index)
        self._alpha, self._tol = alpha, tol
        self._all = len(index) == documents.n
        self._last: Array | None = None
        self._last_passes = 0.0
        self.objective = inf

    def at(self, topics: Array, passes: float) -> bool:
        """Evaluate; return whether the gain per pass is below ``tol`` or indistinguishable from zero."""
        chosen = self._documents
        _, found = chosen.fold_in(topics, self._alpha, max_iter=ROUNDS, tol=TOLERANCE)
        weighed = chosen.weight * found / max(chosen.total, 1e-300)
        objective = -float(weighed.sum())
        calm = False
        if self._last is not None:
            change = weighed - self._last
            noise = 0.0 if self._all else sqrt(float(((change - change.mean()) ** 2).sum()))
            calm = abs(self.objective - objective) < max(
                self._tol * (passes - self._last_passes), 2.0 * noise if self._tol else 0.0
            )
        self._last, self._last_passes, self.objective = weighed, passes, objective
        return calm

    def snapshot(self) -> tuple[Array | None, float, float]:
        """Return the state that the next evaluation depends on."""
        return self._last, self._last_passes, self.objective

    def restore(self, snapshot: tuple[Array | None, float, float]) -> None:
        """Restore the state of an earlier evaluation."""
        if snapshot[0] is not None and np.shape(snapshot[0]) != self._documents.weight.shape:
            raise ValueError("the objective was evaluated on other documents")
        self._last, self._last_passes, self.objective = snapshot
