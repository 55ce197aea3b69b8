"""Expected counts of words in topics, of which a batch touches the words that it has, and no others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem._typing import Array, Index
from swiftem.models.documents import FLUSH

__all__ = ["Running", "RunningCounts", "by_rows", "m_step", "totals_of"]

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


class Running(NamedTuple):
    """Counts = centre + scale·u, both (V, K); a centre of no rows is zero. ``total`` (K,) is scale·Σ_v u."""

    u: Array
    scale: float
    centre: Array
    total: Array


class RunningCounts:
    r"""Statistics = centre + scale·u: a step of sem or sem-vr changes ``scale`` and the words of a batch.

    deviation ← (1 − γ)·deviation + γ·change, where the deviation is scale·u, costs as much as the batch has
    words, and not as much as there are words in all. The M-step is that of ``models/documents.py``.

    Parameters
    ----------
    counts : ndarray, shape (V, K)
        Where to start; not changed.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        What the M-step adds to them.
    tokens : float
        What counts have to sum to for that: T.

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
        """Return what β is multiplied by, and the topics' totals with it, given those of the deviation."""
        of_counts = total + self._centre_total
        strength = float(of_counts.sum()) / self.tokens
        return strength, of_counts + strength * self._beta_total

    def topics_at(self, words: Index) -> Array:
        """Return θ of some words, shape (U, K)."""
        from swiftem.engine.numba.plsa_documents import topics_at

        found = np.empty((len(words), self._u.shape[1]))
        strength, totals = self._totals(self._total)
        totals[totals <= 0.0] = np.inf
        topics_at(words, self._centre, self._u, self._scale, self._beta, strength, totals, FLUSH, found)
        return found

    def step(self, words: Index, change: Array, gamma: float) -> bool:
        """Make a step with the change (U, K) of these words, each there once; return whether it was made.

        A step that leaves no tokens, or a topic with fewer than none, leaves the domain and is not made.
        """
        from swiftem.engine.numba.plsa_documents import add_at

        after = (1.0 - gamma) * self._total + gamma * change.sum(axis=0)
        strength, totals = self._totals(after)
        if not (strength > 0.0 and (totals >= 0.0).all()):
            return False
        self._scale *= 1.0 - gamma
        if self._scale < LEAST_SCALE:
            self._u *= self._scale
            self._scale = 1.0
        add_at(words, change, gamma / self._scale, self._u)
        self._total = after
        return True

    def renew(self, centre: Array) -> None:
        """Change the centre (V, K), which is not copied; the counts stay as they are."""
        u = self.counts() - centre
        self._u, self._scale, self._centre = u, 1.0, centre
        self._centre_total, self._total = centre.sum(axis=0), u.sum(axis=0)

    def counts(self) -> Array:
        """Return the counts, shape (V, K)."""
        deviation = self._scale * self._u
        return deviation + self._centre if len(self._centre) else deviation

    def snapshot(self) -> Running:
        """Return the counts as they are held: :meth:`restore` goes on to the same bits."""
        return Running(self._u, self._scale, self._centre, self._total)

    def restore(self, snapshot: Running) -> None:
        """Go on from a snapshot, which stays as it is."""
        self._u, self._scale, self._centre = np.array(snapshot.u, order="C"), snapshot.scale, snapshot.centre
        self._centre_total, self._total = self._centre.sum(axis=0), snapshot.total
