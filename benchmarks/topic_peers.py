"""Topics of other packages: their input and output in one form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEERS", "nmf", "tomotopy_model", "topics_after"]

Topics = NDArray[np.float64]


def tomotopy_model(X: Any, n_topics: int) -> Any:
    """Return tomotopy's LDA with the documents in it, or None if it is not installed."""
    if find_spec("tomotopy") is None:
        return None
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, seed=1)
    for d in range(X.shape[0]):
        entries = slice(X.indptr[d], X.indptr[d + 1])
        model.add_doc(list(map(str, np.repeat(X.indices[entries], X.data[entries].astype(int)))))
    model.train(0)
    return model


def nmf(n_topics: int, iterations: int) -> Any:
    """Return scikit-learn's NMF with pLSA's loss, for this many iterations."""
    from sklearn.decomposition import NMF

    return NMF(
        n_topics, beta_loss="kullback-leibler", solver="mu", init="random", tol=0.0, max_iter=iterations,
        random_state=0,
    )  # fmt: skip


def _tomotopy(X: Any, n_topics: int, seconds: float) -> Topics | None:
    model = tomotopy_model(X, n_topics)
    if model is None:
        return None
    began = perf_counter()
    while perf_counter() - began < seconds:
        model.train(5, workers=2)
    topics = np.zeros((n_topics, X.shape[1]))
    words = [int(word) for word in model.used_vocabs]
    for k in range(n_topics):
        topics[k, words] = model.get_topic_word_dist(k)
    return topics


def _nmf(X: Any, n_topics: int, seconds: float) -> Topics:
    began = perf_counter()
    nmf(n_topics, 5).fit(X)
    iterations = max(1, int(5 * seconds / (perf_counter() - began)))
    return np.asarray(nmf(n_topics, iterations).fit(X).components_)


def _lda(X: Any, n_topics: int, seconds: float) -> Topics:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(n_topics, learning_method="online", random_state=0)
    began = perf_counter()
    order = np.random.default_rng(0).permutation(X.shape[0])
    while True:
        for start in range(0, len(order), 256):
            model.partial_fit(X[order[start : start + 256]])
            if perf_counter() - began > seconds:
                return np.asarray(model.components_)


PEERS: dict[str, Callable[[Any, int, float], Topics | None]] = {
    "tomotopy LDA": _tomotopy,
    "scikit-learn NMF": _nmf,
    "scikit-learn LDA": _lda,
}


def topics_after(seconds: float, X: Any, n_topics: int) -> dict[str, Topics]:
    """Return the topics of each installed peer after this many seconds of fitting."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in PEERS.items():
            topics = fit(X, n_topics, seconds)
            if topics is not None:
                found[name] = topics
    return found
