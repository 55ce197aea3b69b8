"""How well topics describe documents that stay the same, and whether that still changes."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from swiftem._typing import Array
from swiftem.engine.documents import Documents
from swiftem.engine.streamed_documents import StreamedDocuments

__all__ = ["TopicLook"]

LOOKED_AT = 500
"""Documents on which the likelihood of a stochastic method is followed: always the same."""
ROUNDS, TOLERANCE = 20, 1e-2


class TopicLook:
    """Follows the mean log-likelihood of a token on documents that stay the same, folded in."""

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
        """Look; return whether the gain in a pass is below ``tol`` or cannot be told from nothing."""
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
        """Return what the next look needs of this one."""
        return self._last, self._last_passes, self.objective

    def restore(self, snapshot: tuple[Array | None, float, float]) -> None:
        """Go on from an earlier look."""
        if snapshot[0] is not None and np.shape(snapshot[0]) != self._documents.weight.shape:
            raise ValueError("other documents were looked at")
        self._last, self._last_passes, self.objective = snapshot
