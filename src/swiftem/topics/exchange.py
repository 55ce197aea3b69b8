"""Topics for other packages: scikit-learn's LDA, and pyLDAvis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from swiftem.core.types import Array

LEAST = 1e-3
"""Smallest parameter of a Dirichlet prior in scikit-learn, which does not take 0."""


def as_lda(counts: Array, alpha: float, beta: float) -> Any:
    """Return a fitted ``LatentDirichletAllocation``, from counts with β (K, V) and the priors."""
    from scipy.special import psi
    from sklearn.decomposition import LatentDirichletAllocation

    alpha, beta = max(alpha, LEAST), max(beta, LEAST)
    made = LatentDirichletAllocation(len(counts), doc_topic_prior=alpha, topic_word_prior=beta)
    made.components_ = np.maximum(counts, LEAST)
    expected_log = psi(made.components_) - psi(made.components_.sum(axis=1))[:, None]
    made.exp_dirichlet_component_ = np.exp(expected_log)
    made.doc_topic_prior_, made.topic_word_prior_ = alpha, beta
    made.n_features_in_, made.n_batch_iter_ = counts.shape[1], 1
    made.random_state_ = np.random.RandomState(0)
    made.bound_ = float("nan")
    return made


def pyldavis_data(
    transform: Callable[[Any], Array], components: Array, counts: Any, words: Sequence[str]
) -> dict[str, Any]:
    """Return the arguments of ``pyLDAvis.prepare``.

    Parameters
    ----------
    transform : callable
        Returns the topics of documents.
    components : ndarray, shape (K, V)
        Words of topics.
    counts : CSR array, shape (D, V)
        The documents to show; those without words are left out, as pyLDAvis does not allow them.
    words : sequence of str, length V
        The words; those that are in none of the documents are left out.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    used = np.flatnonzero(frequency)
    if not len(used):
        raise ValueError("X must have at least one token, got none.")
    documents, topics = transform(counts[lengths > 0]), components[:, used]
    return {
        "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
        "doc_topic_dists": documents / documents.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[lengths > 0],
        "vocab": [str(words[place]) for place in used.tolist()],
        "term_frequency": frequency[used],
    }
