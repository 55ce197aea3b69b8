r"""α learned from the topics of documents, by a fixed point.

With counts :math:`n_{dk}` of topics in documents, :math:`N_d = \sum_k n_{dk}`, weights :math:`w_d` and
:math:`A = \sum_k \alpha_k`, the fixed-point step of Minka (2000), which climbs the likelihood of
Dirichlet-multinomial distributions, is

.. math::  \alpha_k \leftarrow \alpha_k\,
           \frac{\sum_d w_d\,[\psi(n_{dk} + \alpha_k) - \psi(\alpha_k)]}
                {\sum_d w_d\,[\psi(N_d + A) - \psi(A)]}.

Of counts, only means :math:`\bar n_{dk}` are known. For small α, ψ bends so much that ψ of the mean
overstates the mean of ψ: a tenth of a token in each document would count as if it were whole ones. A count is
therefore zero with the probability :math:`e^{-\bar n}` of a Poisson distribution, and else its mean if it is
not zero:

.. math::  \mathrm{E}[\psi(n + \alpha) - \psi(\alpha)] \approx
           p\,[\psi(\bar n / p + \alpha) - \psi(\alpha)], \qquad p = 1 - e^{-\bar n},

as Teh, Newman and Welling (2007) do it for their variational bound. A pass leaves topics of documents
:math:`\theta_{dk} = (\bar n_{dk} + \alpha_k) / (N_d + A)`, from which :math:`\bar n_{dk}` is known: no counts
are stored. One step follows each pass. Topics that are in many documents, such as a background, get a
larger α.
"""

from __future__ import annotations

import numpy as np

from swiftem.core.types import Array

LEARN = "learn"
"""The name of an α that is learned."""
FIRST = 0.1
"""Its first value, the same for all topics."""
RANGE = 1e-3, 1e3
"""α stays between these: a topic of α = 0 could not return to a document."""
MOST_DOCUMENTS = 5_000
"""Documents that α is learned from, at equal distances: as many say it precisely, and ψ is slow."""


def next_alpha(alpha: Array, doc_topic: Array, length: Array, weight: Array) -> Array:
    """Return α (K,) after one fixed-point step.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
        α of the pass that has made ``doc_topic``; positive.
    doc_topic : ndarray, shape (D, K)
        Topics of documents after the pass.
    length, weight : ndarray, shape (D,)
        Tokens of the documents, without weights, and the documents' weights.

    Examples
    --------
    >>> counts, alpha = np.array([[9.0, 1.0], [5.0, 5.0]]), np.full(2, 0.1)
    >>> next_alpha(alpha, (counts + alpha) / 10.2, np.full(2, 10.0), np.ones(2)).round(3)
    array([0.162, 0.123])
    """
    from scipy.special import digamma

    some = np.arange(len(doc_topic))
    if len(some) > MOST_DOCUMENTS:
        some = np.linspace(0, len(some) - 1, MOST_DOCUMENTS).astype(np.intp)
    length, weight, total = length[some], weight[some], alpha.sum()
    counts = np.maximum(doc_topic[some] * (length + total)[:, None] - alpha, 0.0)
    positive = -np.expm1(-counts)
    if_positive = np.divide(counts, positive, out=np.ones_like(counts), where=positive > 0.0)
    more = positive * (digamma(if_positive + alpha) - digamma(alpha))
    above = (weight[:, None] * more).sum(axis=0)  # a product by BLAS would depend on its threads
    below = (weight * (digamma(length + total) - digamma(total))).sum()
    return np.clip(alpha * above / below, *RANGE) if below > 0.0 else alpha
