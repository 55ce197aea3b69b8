"""Expected counts of words in topics, of which a batch touches the words that it has, and no others."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array, Index

__all__ = ["FLUSH", "RunningCounts", "by_rows", "m_step", "totals_of"]

FLUSH = 1e-100
"""Probabilities of words below this are read as zero: subnormal numbers are slow."""
LEAST_SCALE = 1e-80


def m_step(counts: Array, beta: Array) -> Array:
    """Return words of topics (K, V): equation (mstep_plsa), with negative entries read as zero.

    Parameters
    ----------
    counts : ndarray, shape (K, V)
        Expected counts.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to them.

    Returns
    -------
    ndarray, shape (K, V)
        In Fortran's order: loops over documents read a word's topics side by side.

    Examples
    --------
    >>> m_step(np.array([[3.0, 1.0], [0.0, 0.0]]), np.zeros((1, 1)))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    from swiftem.engine.numba.plsa_documents import m_step_of

    by_word = np.ascontiguousarray(counts.T)
    topics = np.empty(by_word.shape)
    m_step_of(by_word, by_rows(beta, len(counts)), FLUSH, topics)
    return topics.T


def by_rows(beta: Array, n_topics: int) -> Array:
    """Return β as compiled loops over words take it, shape (1, K) or (V, K)."""
    return np.ascontiguousarray(np.broadcast_to(beta.T, (beta.shape[1], n_topics)))


def totals_of(counts: Array, beta: Array) -> Array:
    """Return what counts (K, V) and β of each topic sum to, shape (K,)."""
    return np.asarray(np.maximum(counts, 0.0).sum(axis=1) + np.broadcast_to(beta, counts.shape).sum(axis=1))


class RunningCounts:
    r"""Counts = centre + scale·u: a step of sem or sem-vr changes ``scale`` and the words of a batch.

    deviation ← (1 − γ)·deviation + γ·change, where the deviation is scale·u, costs as much as the batch has
    words, and not as much as there are words in all.

    Parameters
    ----------
    counts : ndarray, shape (K, V)
        Where to start.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        What the M-step adds to them.

    Examples
    --------
    >>> running = RunningCounts(np.array([[4.0, 4.0]]), np.zeros((1, 1)))
    >>> running.step(np.array([1]), np.array([[8.0]]), 0.5)
    True
    >>> running.counts(), running.topics_at(np.array([1]))
    (array([[2., 6.]]), array([[0.75]]))
    """

    def __init__(self, counts: Array, beta: Array) -> None:
        self._u = np.ascontiguousarray(counts.T)
        self._scale = 1.0
        self._centre = np.empty((0, len(counts)))
        self._centre_total, self._total = np.zeros(len(counts)), self._u.sum(axis=0)
        self._beta = np.broadcast_to(beta.T, self._u.shape)
        self._beta_total = np.array(self._beta.sum(axis=0))

    def topics_at(self, words: Index) -> Array:
        """Return θ of some words, shape (U, K), over the totals of the counts as they are."""
        from swiftem.engine.numba.plsa_documents import topics_at

        found = np.empty((len(words), self._u.shape[1]))
        totals = self._centre_total + self._total + self._beta_total
        totals[totals <= 0.0] = 1.0
        topics_at(words, self._centre, self._u, self._scale, self._beta, totals, FLUSH, found)
        return found

    def step(self, words: Index, change: Array, gamma: float) -> bool:
        """Make a step with the change (U, K) of these words, each there once; return whether it was made.

        A step after which a topic would have fewer than no tokens leaves the domain and is not made.
        """
        from swiftem.engine.numba.plsa_documents import add_at

        after = (1.0 - gamma) * self._total + gamma * change.sum(axis=0)
        if not (after + self._centre_total + self._beta_total >= 0.0).all():
            return False
        self._scale *= 1.0 - gamma
        if self._scale < LEAST_SCALE:
            self._u *= self._scale
            self._scale = 1.0
        add_at(words, change, gamma / self._scale, self._u)
        self._total = after
        return True

    def grow(self, factor: float) -> None:
        """Multiply all counts by a number; there must be no centre."""
        self._scale *= factor
        self._total = self._total * factor

    def renew(self, centre: Array) -> None:
        """Change the centre (K, V); the counts stay as they are."""
        by_word = np.ascontiguousarray(centre.T)
        self._u = self._by_word() - by_word
        self._scale, self._centre = 1.0, by_word
        self._centre_total, self._total = by_word.sum(axis=0), self._u.sum(axis=0)

    def _by_word(self) -> Array:
        deviation = self._scale * self._u
        return deviation + self._centre if len(self._centre) else deviation

    def counts(self) -> Array:
        """Return the counts, shape (K, V)."""
        return self._by_word().T

    def snapshot(self) -> tuple[Array, float, Array, Array, Array]:
        """Return the counts as they are held, so that :meth:`restore` goes on to the same bits."""
        return self._u.copy(), self._scale, self._centre, self._centre_total, self._total

    def restore(self, snapshot: tuple[Array, float, Array, Array, Array]) -> None:
        """Go on from a snapshot."""
        u, scale, centre, centre_total, total = snapshot
        shape = self._u.shape
        if u.shape != shape or centre.shape not in (shape, (0, shape[1])):
            raise ValueError("the counts are of another shape")
        if {centre_total.shape, total.shape} != {shape[1:]}:
            raise ValueError("the totals are of another shape")
        self._u, self._scale = u.copy(), scale
        self._centre, self._centre_total, self._total = centre, centre_total, total
