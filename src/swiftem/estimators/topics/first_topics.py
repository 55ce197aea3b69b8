"""Where topics start: at random, or from clusters of documents; the best of several starts.

From random topics em spends its first passes on topics that are alike. k-means on at most 5,000 documents
takes as long as a few passes and saves dozens. Starts are compared because they end up to 4 % apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from swiftem._typing import Array
from swiftem.engine.documents import Documents
from swiftem.engine.streamed_documents import StreamedDocuments
from swiftem.engine.threads import one_thread_blas, one_thread_openmp
from swiftem.models.documents import m_step, totals_of

__all__ = ["INITS", "best_start", "clustered_topics", "random_topics"]

INITS = ("auto", "random", "k-means")
CLUSTERED, FEW = 5_000, 2_000
"""Documents that are clustered at most: for a fit, and for a single reading, which should not take longer."""
TRIED_ON, TRIED_FOR = 2_000, 10
"""Documents at most, and passes, by which starts are compared."""
OF_CLUSTER, OF_ALL = 0.7, 0.25
"""What a start is made of: its cluster, the whole corpus, and chance, so that no two are the same."""


def random_topics(n_components: int, n_words: int, beta: Array, random_state: np.random.RandomState) -> Array:
    """Return random topics (K, V), of a flat Dirichlet; seed words in β count for more than chance.

    Parameters
    ----------
    n_components, n_words : int
        K and V.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Seed words are where it has a row for each topic.
    random_state : RandomState
        Draws them.
    """
    seeds = len(beta) > 1
    topics = random_state.dirichlet(np.full(n_words, 25.0 if seeds else 1.0), size=n_components)
    return 0.5 * (topics + m_step(np.zeros_like(topics), beta)) if seeds else np.asarray(topics)


def clustered_topics(
    documents: Documents | StreamedDocuments, n_components: int, random_state: np.random.RandomState,
    most: int = CLUSTERED,
) -> Array:  # fmt: skip
    """Return topics (K, V) that are the words of clusters of documents, by k-means.

    Documents are rows of log(1 + count) times the words' inverse document frequency, of length one; at most
    ``most`` of them are clustered, by mini-batches. A cluster's words are mixed with those of all documents,
    so that no word is left out. Needs at least as many documents with tokens as topics.
    """
    from scipy.sparse import csr_array
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfTransformer

    there = np.flatnonzero(documents.length * documents.weight > 0)
    if len(there) > most:
        there = np.sort(random_state.choice(there, most, replace=False))
    taken = documents.some(there)
    counts = taken.matrix()
    # scikit-learn's k-means takes 32-bit indices only; these are few documents.
    indices, begin = counts.indices.astype(np.int32), counts.indptr.astype(np.int32)
    rows = csr_array((np.log1p(counts.data), indices, begin), shape=counts.shape)
    kmeans = MiniBatchKMeans(
        n_components, n_init=1, init_size=max(1000, 3 * n_components), batch_size=1024, max_iter=3,
        random_state=random_state,
    )  # fmt: skip
    # A cluster's step is short: threads would wait for each other longer than they work.
    with one_thread_blas(), one_thread_openmp(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # fewer kinds of documents than topics
        labels = kmeans.fit(TfidfTransformer().fit_transform(rows), sample_weight=taken.weight).labels_
    weighted = counts.multiply(taken.weight[:, None]).tocsr()
    of_all = np.asarray(weighted.sum(axis=0)).ravel()
    chance = random_state.dirichlet(np.ones(documents.n_words), size=n_components)
    topics = (1.0 - OF_CLUSTER - OF_ALL) * chance + OF_ALL * of_all / of_all.sum()
    for k in range(n_components):
        words = np.asarray(weighted[labels == k].sum(axis=0)).ravel()
        topics[k] += OF_CLUSTER * (words / words.sum() if words.sum() > 0 else chance[k])
    return np.asarray(topics / topics.sum(axis=1, keepdims=True))


def best_start(
    starts: Sequence[Array], documents: Documents | StreamedDocuments, alpha: Array, beta: Array,
    between: Callable[[], None] = lambda: None,
) -> tuple[Array, float]:  # fmt: skip
    """Return the start that is best after ten passes over a few documents, and the passes this has cost.

    Passes leave each token out, so that a start is not preferred for how well it can be overfitted. They are
    counted in entries of all documents.
    """
    if len(starts) == 1:
        return starts[0], 0.0
    few = np.arange(documents.n)
    if documents.n > TRIED_ON:
        few = np.sort(np.random.default_rng(0).choice(documents.n, TRIED_ON, replace=False))
    tried = documents.some(few)
    best, chosen = -inf, starts[0]
    for start in starts:
        shares, topics, value = np.full((tried.n, len(alpha)), 1.0 / len(alpha)), start, -inf
        counts, _ = tried.em_pass(shares, topics, alpha, between)
        for _ in range(TRIED_FOR - 1):
            topics = m_step(counts, beta)
            counts, value = tried.leave_one_out_pass(
                shares, topics, totals_of(counts, beta), alpha, beta, between
            )
        if value > best:
            best, chosen = value, start
    spent = len(starts) * TRIED_FOR * tried.n_entries / max(1, documents.n_entries)
    return chosen, spent
