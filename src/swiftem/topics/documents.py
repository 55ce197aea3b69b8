r"""pLSA with documents as samples, for sem and sem-vr by documents.

A document i has entries, words v with counts n, and a weight w_i. Its E-step at θ begins at topics a (K,),
its *place*, and takes at most R rounds, fewer if a round changes a by less than a tolerance:

.. math::  r_{ek} = a_k \theta_{kv} / \textstyle\sum_k a_k \theta_{kv}, \qquad
           a_k \leftarrow (\textstyle\sum_e n_e r_{ek} + \alpha_k) / \textstyle\sum_k (\cdot),

equations (condexp_plsa) and (mstep_plsa) for the document alone. Its statistics are the expected counts of
its words in topics, :math:`s_i(\theta)_{vk} = \sum_{e: v} n_e r_{ek}`, at the final a. They are a function of
θ and of the place: as long as the place is fixed, sem-vr's differences have the right mean, although no
document's E-step converges. The statistics of all are :math:`\bar s = \sum_i w_i s_i / \sum_i w_i`.

The M-step, with T tokens in all (weighted) and :math:`|s| = \sum_{vk} s_{vk}`, is

.. math::  \theta_{kv} = \frac{\max(s_{vk}, 0) + \beta_{kv} |s| / T}{\sum_v (s_{vk} + \beta_{kv} |s| / T)}.

β is added to counts of T tokens. The M-step is a ratio of two means: batches of long and of short documents
make s fluctuate, but not θ. sem-vr may take entries of s below zero, which the numerator reads as zero. The
denominator does not, so that a step can update it at a cost of O(words of the batch · K).

Parameters θ are words of topics (V, K): columns sum to 1 if no entry of s is below zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swiftem.core.compute import Compute, Placement, choose
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta
from swiftem.topics.compute import DOCUMENTS, numpy

if TYPE_CHECKING:
    from swiftem.topics.compute.corpus import Documents

STOP = 5, 1e-2
"""When a document's E-step ends; its next E-step continues from its place."""
FLUSH = 1e-100
"""Smaller probabilities of words are read as zero: subnormal numbers are slow."""
FEW = 1 << 14
"""Numbers up to which NumPy does what compiled code would do, to the same bits, as fast as it."""


@dataclass(frozen=True, eq=False)
class DocumentModel(Model):
    """Words of topics, fitted to documents.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, swiftem
    >>> from swiftem.topics.compute.corpus import Documents
    >>> from swiftem.topics.documents import DocumentModel
    >>> documents = Documents(sp.csr_array([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]]))
    >>> model = DocumentModel(np.full(2, 0.1), np.full((1, 1), 0.05))
    >>> method = swiftem.methods.VarianceReducedEM(step_size=0.5, batch_size=2)
    >>> result = swiftem.run(model, documents, method, n_iter=100, seed=1)
    >>> sorted(result.theta.argmax(axis=0) // 2)
    [np.int64(0), np.int64(1)]
    """

    alpha: Array
    beta: Array

    def bind(self, source: Source) -> BoundDocuments:
        """Return the model for these documents."""
        if source.samples != "documents":
            raise TypeError("data must be documents, swiftem.topics.compute.corpus.Documents.")
        return BoundDocuments(self, source.n_words, source.total, source.total_weight)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class BoundDocuments(BoundModel):
    """A :class:`DocumentModel` for V words, T tokens and documents whose weights sum to W."""

    model: DocumentModel
    n_words: int
    tokens: float
    total_weight: float

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps in the first technology that can be used."""
        return choose(DOCUMENTS, self, source, placement)

    def initial_theta(self, rng: np.random.Generator) -> Array:
        """Return random topics, from a flat Dirichlet."""
        return rng.dirichlet(np.ones(self.n_words), size=len(self.model.alpha)).T.copy()

    def check_theta(self, theta: Theta, name: str = "theta0") -> Array:
        """Return ``theta``, or raise ValueError for another shape."""
        topics, shape = np.asarray(theta, dtype=np.float64), (self.n_words, len(self.model.alpha))
        if topics.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {topics.shape}.")
        return topics

    def fold(self, batch: Batch, theta: Array, places: Array) -> tuple[Array, Array, Array, int]:
        """E-step of a batch of documents from their places.

        Return the expected counts of the entries in topics (m, K), the documents' topics (b, K) and
        log-likelihoods (b,), and the number of E-steps of entries.
        """
        y: Documents = batch.y  # type: ignore[assignment]
        words = theta[y.words]
        topics, p, evaluations = numpy.fold(y.entries, words, self.model.alpha, STOP, places)
        rows = numpy.responsibilities(y.entries, p, topics, words)
        return rows, topics, numpy.log_likelihoods(y.entries, p), evaluations

    def posterior(self, batch: Batch, theta: Array) -> tuple[Array, Array]:
        """E-step from uniform places: expected counts of the m entries (m, K) and log-likelihood (b,)."""
        shape = (len(batch.index), len(self.model.alpha))
        rows, _, log_likelihood, _ = self.fold(batch, theta, np.full(shape, 1.0 / shape[1]))
        return rows, log_likelihood

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the documents' statistics, shape (V·K,)."""
        y: Documents = batch.y  # type: ignore[assignment]
        s = np.zeros((self.n_words, rows.shape[1]))
        np.add.at(s, y.words[y.word], np.repeat(weight, np.diff(y.begin))[:, None] * rows)
        return s.ravel()

    def _totals(self, s: Array) -> tuple[float, Array]:
        """Return |s| / T and the topics' totals (K,)."""
        totals = s.sum(axis=0)
        strength = float(totals.sum()) / self.tokens
        beta = np.broadcast_to(self.model.beta, s.shape[::-1]).sum(axis=1)
        return strength, totals + strength * beta

    def m_step(self, s: Array) -> Array:
        """Return θ; a topic whose total is zero has no words."""
        table = self.unpack(s)
        strength, totals = self._totals(table)
        return word_topic(table.copy(), strength * self.model.beta.T, totals)

    def counts(self, s: Array) -> Array:
        """Return the expected counts of words in topics, shape (K, V), of all T tokens."""
        table = self.unpack(s)
        return np.asarray(table * (self.tokens / table.sum())).T

    def penalty(self, theta: Array) -> float:
        """Return −Σ β log θ / W."""
        beta = np.broadcast_to(self.model.beta.T, theta.shape)
        with np.errstate(divide="ignore"):
            return float(-(beta[beta > 0] * np.log(theta[beta > 0])).sum() / self.total_weight)

    def in_domain(self, s: Array) -> bool:
        """Return whether there are tokens, and no topic has a negative total."""
        strength, totals = self._totals(self.unpack(s))
        return strength > 0.0 and bool((totals >= 0.0).all())

    def unpack(self, s: Array) -> Array:
        """Return flat statistics as a view of shape (V, K)."""
        shape = (self.n_words, len(self.model.alpha))
        if np.shape(s) != (shape[0] * shape[1],):
            raise ValueError(f"s must have shape ({shape[0] * shape[1]},), got {np.shape(s)}.")
        return s.reshape(shape)


def word_topic(counts: Array, beta: Array, totals: Array) -> Array:
    """Return max(counts, 0) + β over the topics' totals (K,), in place of counts (V, K)."""
    np.maximum(counts, 0.0, out=counts)
    counts += beta
    counts /= np.where(totals > 0.0, totals, np.inf)
    counts[counts <= FLUSH] = 0.0
    return counts


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
        In Fortran order: loops over documents read a word's topics contiguously.

    Examples
    --------
    >>> m_step(np.array([[3.0, 1.0], [0.0, 0.0]]), np.zeros((1, 1)))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    by_word, floor = np.ascontiguousarray(counts.T), numpy.by_rows(beta, len(counts))
    if by_word.size <= FEW:
        filled = np.maximum(by_word, 0.0) + floor
        totals = filled.sum(axis=0)
        topics = np.full_like(filled, 1.0 / len(filled))
        np.divide(filled, totals, out=topics, where=(totals > 0.0) & (totals < np.inf))
        topics[topics < FLUSH] = 0.0
        return topics.T
    from swiftem.topics.compute import passes_kernels

    topics = np.empty_like(by_word)
    passes_kernels.m_step(by_word, floor, FLUSH, topics, np.zeros(len(counts)))
    return topics.T


def totals_of(counts: Array, beta: Array) -> Array:
    """Return the sums of counts (K, V) and β for each topic, shape (K,)."""
    return np.asarray(np.maximum(counts, 0.0).sum(axis=1) + np.broadcast_to(beta, counts.shape).sum(axis=1))
