"""Topics in the form of pyLDAvis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from swiftem.data.documents.counts import checked_sparse, is_sparse

__all__ = ["pyldavis_data"]


def pyldavis_data(model: Any, counts: Any, words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``pyLDAvis.prepare(**pyldavis_data(model, counts, words))``.

    Parameters
    ----------
    model : PLSA
        A fitted model.
    counts : sparse, shape (D, V)
        The documents to show; those without words are left out, as pyLDAvis does not allow them.
    words : sequence of str, length V
        The words.

    Returns
    -------
    dict
        ``topic_term_dists`` (K, V), ``doc_topic_dists`` (D, K), ``doc_lengths`` (D,), ``vocab`` (V,) and
        ``term_frequency`` (V,); words that are in none of the documents are left out.

    Examples
    --------
    >>> import scipy.sparse as sp, swiftem
    >>> from swiftem.report.pyldavis import pyldavis_data
    >>> X = sp.csr_array([[3, 2, 0, 0], [0, 0, 4, 1]])
    >>> data = pyldavis_data(swiftem.PLSA(2, random_state=0).fit(X), X, ["ape", "bee", "cod", "dog"])
    >>> data["doc_topic_dists"].shape, data["doc_lengths"], data["term_frequency"]
    ((2, 2), array([5., 5.]), array([3., 2., 4., 1.]))
    """
    import scipy.sparse as sp

    if is_sparse(counts):
        counts = checked_sparse("counts", counts)
    matrix = sp.csr_array(counts, dtype=np.float64)
    if len(words) != matrix.shape[1]:
        raise ValueError(f"words must be one for each of the {matrix.shape[1]} columns, got {len(words)}.")
    lengths = np.asarray(matrix.sum(axis=1)).ravel()
    frequency = np.asarray(matrix.sum(axis=0)).ravel()
    used = np.flatnonzero(frequency)
    if not len(used):
        raise ValueError("counts must have at least one token, got none.")
    documents = model.transform(matrix[lengths > 0])
    topics = np.asarray(model.components_)[:, used]
    return {
        "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
        "doc_topic_dists": documents / documents.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[lengths > 0],
        "vocab": [str(words[place]) for place in used.tolist()],
        "term_frequency": frequency[used],
    }
