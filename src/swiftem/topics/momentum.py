r"""Passes of em over documents with momentum.

After a pass from :math:`x` to :math:`F(x)`, the next one begins at
:math:`F(x) + \mu (F(x) - F(x'))`, where :math:`F(x')` is the result of the pass before (Nesterov, 1983).
Here x are the expected counts of words in topics, and the topics of documents. No number falls below a tenth
of that in F(x). If the objective is worse by more than the tolerance, the next pass begins at F(x).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from swiftem.core.checkpoint import check_form
from swiftem.core.files import row_blocks
from swiftem.core.types import Array
from swiftem.kernels.threads import in_order

LEAST = 0.1
"""No number falls below this share of em's own step: em could not leave zero."""
ROWS = 1024
"""Documents that are extrapolated at a time: they stay in the cache."""


class Momentum:
    """Extrapolates the results of passes.

    Parameters
    ----------
    strength : float
        μ; 0 changes nothing.
    documents
        The corpus, which allocates an array of documents' topics.

    Attributes
    ----------
    state : tuple of ndarrays or None
        Counts (K, V) and topics of documents (D, K) after the last pass.
    """

    def __init__(self, strength: float, documents: Any) -> None:
        self._strength, self._documents = strength, documents
        self.state: tuple[Array, Array] | None = None

    def restore(self, state: Any, counts: Array | None, doc_topic: Array) -> None:
        """Restore a state; raise ValueError or TypeError if it has another form."""
        if state is None:
            return
        before, shares = state
        check_form("counts", before, counts)
        check_form("doc_topic", shares, doc_topic)
        self._remember(before, shares)

    def _remember(self, counts: Array, doc_topic: Array) -> None:
        shares = self._documents.allocate(doc_topic.shape) if self.state is None else self.state[1]
        for rows in row_blocks(shares, doc_topic):
            shares[rows] = doc_topic[rows]
        self.state = counts, shares

    def go(self, counts: Array, doc_topic: Array, is_worse: bool) -> Array:
        """Return the counts that the next pass begins at; ``doc_topic`` is changed likewise.

        Parameters
        ----------
        counts, doc_topic : ndarray, shapes (K, V) and (D, K)
            The results of a pass.
        is_worse : bool
            Whether the point that it began at was worse than the one before.
        """
        if self._strength == 0.0:
            return counts
        if self.state is None or is_worse:
            self._remember(counts, doc_topic)
            return counts
        before, shares = self.state
        for block in row_blocks(shares, doc_topic):
            edges = [*range(block.start, block.stop, ROWS), block.stop]
            for _ in in_order(
                self._go, [(doc_topic[slice(*ends)], shares[slice(*ends)]) for ends in pairwise(edges)]
            ):
                pass
        self.state = counts, shares
        return self._ahead(counts, before)

    def _go(self, doc_topic: Array, shares: Array) -> None:
        """Change the topics of some documents; ``shares`` are those after the last pass, before and after."""
        now = doc_topic.copy()
        found = self._ahead(now, shares)
        np.divide(found, found.sum(axis=1, keepdims=True), out=doc_topic)
        shares[:] = now

    def _ahead(self, now: Array, before: Array) -> Array:
        found = now - before
        found *= self._strength
        found += now
        return np.maximum(found, LEAST * now, out=found)
