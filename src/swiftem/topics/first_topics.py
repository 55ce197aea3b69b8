"""Initial topics: at random, or from clusters of documents; the best of several starts.

From random topics em spends its first passes on topics that are alike. k-means on at most 5,000 documents
costs a few passes and saves dozens. Several starts are compared, as their results differ by up to 4 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.types import Array
from swiftem.kernels.threads import one_thread_blas, one_thread_openmp
from swiftem.topics.compute.corpus import DeviceDocuments, Documents
from swiftem.topics.compute.streamed import StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.documents import m_step, totals_of
from swiftem.topics.resolve import TopicSpec, given_topics

TRIED_ON, TRIED_FOR = 2_000, 10
"""Maximum number of documents, and passes, used to compare starts."""
OF_CLUSTER, OF_ALL = 0.7, 0.25
"""Parts of a start: its cluster, the whole corpus, and random noise, so that no two are the same."""


def random_topics(n_components: int, n_words: int, beta: Array, random_state: np.random.RandomState) -> Array:
    """Return random topics (K, V) from a flat Dirichlet; seed words in β outweigh the randomness.

    Parameters
    ----------
    n_components, n_words : int
        K and V.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        It has seed words if it has a row for each topic.
    random_state : RandomState
        Generator.
    """
    seeds = len(beta) > 1
    topics = random_state.dirichlet(np.full(n_words, 25.0 if seeds else 1.0), size=n_components)
    return 0.5 * (topics + m_step(np.zeros_like(topics), beta)) if seeds else np.asarray(topics)


def clustered_topics(
    documents: Documents | StreamedDocuments,
    n_components: int,
    random_state: np.random.RandomState,
    most: int,
) -> Array:
    """Return topics (K, V): the words of clusters of documents, by k-means.

    Documents are rows of log(1 + count) times the words' inverse document frequency, with unit length; at
    most ``most`` of them are clustered, by mini-batches. A cluster's words are mixed with the words of all
    documents, so that every word has a positive probability. There must be at least as many non-empty
    documents as topics.
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
    # scikit-learn's k-means takes 32-bit indices only; there are few documents here.
    indices, begin = counts.indices.astype(np.int32), counts.indptr.astype(np.int32)
    rows = csr_array((np.log1p(counts.data), indices, begin), shape=counts.shape)
    kmeans = MiniBatchKMeans(
        n_components,
        n_init=1,
        init_size=max(1000, 3 * n_components),
        batch_size=1024,
        max_iter=3,
        random_state=random_state,
    )
    # The steps are short: synchronising threads would take longer than the work.
    with one_thread_blas(), one_thread_openmp(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # fewer kinds of documents than topics
        labels = kmeans.fit(TfidfTransformer().fit_transform(rows), sample_weight=taken.weight).labels_
    weighted = counts.multiply(taken.weight[:, None]).tocsr()
    of_all = np.asarray(weighted.sum(axis=0)).ravel()
    chance = random_state.dirichlet(np.ones(documents.n_words), size=n_components)
    topics = (1.0 - OF_CLUSTER - OF_ALL) * chance + OF_ALL * of_all / of_all.sum()
    members = csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), (n_components, len(labels)))
    for k, words in enumerate((members @ weighted).toarray()):
        topics[k] += OF_CLUSTER * (words / words.sum() if words.sum() > 0 else chance[k])
    return np.asarray(topics / topics.sum(axis=1, keepdims=True))


def starts_of(
    documents: Documents | StreamedDocuments | UnitDocuments,
    spec: TopicSpec,
    init: ArrayLike | str,
    random_state: np.random.RandomState,
) -> list[Array]:
    """Return the candidate starts, topics (K, V)."""
    n_components, n_words = len(spec.alpha), documents.n_words
    if not isinstance(init, str):
        return [given_topics(init, n_components, n_words)]
    if not spec.clustered:
        return [random_topics(n_components, n_words, spec.beta, random_state) for _ in range(spec.n_starts)]
    some = documents.few if isinstance(documents, UnitDocuments) else documents
    return [clustered_topics(some, n_components, random_state, spec.clustered) for _ in range(spec.n_starts)]


def best_start(
    starts: Sequence[Array],
    documents: Documents | StreamedDocuments,
    alpha: Array,
    beta: Array,
    check: Callable[[], None] = lambda: None,
) -> Array:
    """Return the best start after ten passes over a few documents.

    The passes use leave-one-out, so that a start does not win by overfitting. ``check`` is called between
    parts of passes.
    """
    few = np.arange(documents.n)
    if documents.n > TRIED_ON:
        few = np.sort(np.random.default_rng(0).choice(documents.n, TRIED_ON, replace=False))
    tried = documents.some(few)
    return max(starts, key=lambda start: _tried(start, tried, alpha, beta, check))


def _tried(
    start: Array, documents: Documents, alpha: Array, beta: Array, between: Callable[[], None]
) -> float:
    """Return the log-likelihood of documents after a few passes from a start.

    In memory, the first two are a reading as sem's, whose code a fit needs anyway.
    """
    shares, topics, value = np.full((documents.n, len(alpha)), 1.0 / len(alpha)), start, -inf
    if isinstance(documents, DeviceDocuments):
        from swiftem.topics.compute.torch import DeviceTopics

        there = DeviceTopics(documents.passes(alpha), beta, start, shares, None, leave_one_out=True)
        return [there.step(between) for _ in range(TRIED_FOR)][-1]
    by_word, _ = documents.sums(shares, np.ascontiguousarray(topics.T), alpha, 1, 0.0, between)
    counts = by_word.T
    for _ in range(TRIED_FOR - 2):
        topics = m_step(counts, beta)
        left_out = (totals_of(counts, beta), beta)
        counts, value = documents.em_pass(shares, topics, alpha, left_out, between)
    return value
