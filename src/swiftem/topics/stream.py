"""Topics of a stream of documents: online EM, and new words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_int, shown
from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.documents import RunningCounts

BATCH = 128
"""Documents per step."""
ROUNDS, TOLERANCE = 10, 1e-2
"""When a document is folded in."""
START = 2000.0
"""Weight of the initial topics, in tokens."""
POWER = 2.0
"""How fast a stream that begins with ``partial_fit`` forgets old documents: 1 would weigh all alike, also the
initial topics. After a ``fit`` it is 1: every token counts once."""


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
            change, _ = batch.sums(uniform, running.topics_at(batch.words), alpha, ROUNDS, TOLERANCE)
            gamma = 1.0 - (seen / (seen + batch.total)) ** power
            running.step(batch.words, change * (first_seen / batch.total), gamma)
            seen += batch.total
            running.tokens = seen
    return np.ascontiguousarray(running.counts().T) * (seen / first_seen)


def new_words(words: int | Sequence[str], names: ArrayLike | None) -> tuple[int, list[str]]:
    """Return the number of new words, and their names if the columns have names."""
    given = isinstance(words, Sequence | np.ndarray) and not isinstance(words, str | bytes | bytearray)
    new = [str(word) for word in np.ravel(np.asarray(words, dtype=object))] if given else []
    if isinstance(words, str | bytes | bytearray) or (given and not new):
        raise ValueError(f"words must be a positive number or a list of words, got {shown(words)}.")
    count = len(new) if given else check_int("words", words, minimum=1)
    if names is not None and not new:
        raise ValueError("words must be names, as the columns that the model was fitted with have names.")
    known = set() if names is None else set(np.asarray(names))
    twice = [word for number, word in enumerate(new) if word in known or word in new[:number]]
    if twice:
        raise ValueError(
            f"words must be new and distinct, got {shown(twice[0])}: already in the vocabulary or given "
            "twice."
        )
    return count, new
