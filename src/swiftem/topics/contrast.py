r"""Topics that differ: a background topic, and topics that repel each other.

Words that are common to all documents of a corpus are likely in every topic of it, and hide what a topic is
about. Two means against it, both for em's passes:

- *background*: topic 0 starts at the frequencies of words in the whole corpus. It is a topic like the others,
  but does not take part in the decorrelation: words that are common to many topics move to it.
- *decorrelation*: after each pass, a topic's expected counts of a word are divided by
  :math:`1 + \tau \bar\theta_v`, where :math:`\bar\theta_v` is the mean probability of the word in the other
  topics, without the background. This is the decorrelation of Tan and Ou (2010) and Vorontsov and Potapenko
  (2015), as a division, which never makes a word impossible, instead of a difference.

Neither climbs the likelihood: predictions become a little worse, and topics easier to tell apart. How the
default was chosen is in ``benchmarks/DECISIONS.md``.
"""

from __future__ import annotations

import numpy as np

from swiftem.core.files import row_blocks
from swiftem.core.types import Array
from swiftem.topics.documents import m_step

SHARE = 0.3
"""Share of the background in each document when it is added."""


def decorrelated(counts: Array, beta: Array, strength: float, background: bool) -> Array:
    """Return expected counts (K, V) over 1 + ``strength`` times the word's mean share in the other topics.

    Parameters
    ----------
    counts : ndarray, shape (K, V)
        Expected counts of words in topics.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to them in the M-step.
    strength : float
        τ; 0 returns the counts themselves.
    background : bool
        Whether topic 0 does not take part.

    Examples
    --------
    >>> decorrelated(np.array([[8.0, 2.0], [0.0, 5.0]]), np.zeros((1, 1)), 5.0, False).round(2)
    array([[8.  , 0.33],
           [0.  , 2.5 ]])
    """
    first = int(background)
    if strength == 0.0 or len(counts) - first < 2:
        return counts
    by_word = np.array(m_step(counts, beta).T[:, first:], order="C")
    others = by_word.sum(axis=1, keepdims=True) - by_word
    others *= strength / (len(counts) - first - 1)
    others += 1.0
    found = np.array(counts.T, order="C")
    found[:, first:] /= others
    return found.T


def with_background(counts: Array, doc_topic: Array) -> Array:
    """Return counts (K, V) with the corpus in place of topic 0; ``doc_topic`` (D, K) is changed likewise.

    The smallest topic is given up, and topic 0 takes its number.

    >>> shares = np.array([[0.5, 0.5, 0.0]])
    >>> with_background(np.array([[4.0, 0.0], [0.0, 4.0], [1.0, 1.0]]), shares).round(2)
    array([[1.5, 1.5],
           [0. , 2.8],
           [2.8, 0. ]])
    >>> shares.round(2)
    array([[0.3 , 0.35, 0.35]])
    """
    smallest = int(counts.sum(axis=1).argmin())
    found = np.array(counts.T, order="C").T
    of_all = found.sum(axis=0)
    found[smallest] = found[0]
    found *= 1.0 - SHARE
    found[0] = SHARE * of_all
    for rows in row_blocks(doc_topic):
        shares = doc_topic[rows]
        shares[:, smallest] = shares[:, 0]
        shares[:, 0] = 0.0
        totals = shares.sum(axis=1, keepdims=True)
        np.divide(shares, totals / (1.0 - SHARE), out=shares, where=totals > 0.0)
        shares[:, 0] = 1.0 - shares.sum(axis=1)
    return found
