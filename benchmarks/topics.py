"""PLSA compared with tomotopy and scikit-learn: a pass, perplexity by time, the first reading, transform."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

import swiftem
from benchmarks.row import Row
from benchmarks.timing import interleaved, threads
from benchmarks.topic_peers import nmf, tomotopy_model, topics_after
from paper.docstrings import docstring_corpus
from swiftem import data
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.quality import coherence_of

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Topics"
LEAD = ("model", "setting", "method")
NOTE = """Two threads, also for the peers. A pass: over all tokens, compared with an iteration of the peer.
Perplexity: document completion of a held-out tenth of the documents, by one evaluator, from the topics'
words alone. "5 s, 20 s": swiftem's after 5 seconds divided by the best peer's after 20; NPMI of the ten
likeliest words on the fitted documents, as 1 − NPMI; distinct words among the 25 likeliest of all topics, as
the share of repeated ones. "default fit": seconds of ``PLSA(K).fit``. "read once": that of
sem when each document has been read once, divided by that of em after as many seconds: by default em starts
from random topics, sem from clusters, with the clustering timed; "same start" is em from clusters, too.
tomotopy is in no extra of swiftem: if it is not installed, its rows are left out."""
PASS_GOALS = {"tomotopy": {10: 7.0, 50: 4.0, 200: 3.0}, "scikit-learn NMF": {10: 15.0, 50: 15.0, 200: 15.0}}
OURS, THEIRS = 5.0, 20.0
DOCUMENTS_A_SECOND = 100_000
LESS_COHERENT, REPEATED = 0.01, 0.15
FAO = Path(__file__).parents[2] / "shared" / "data" / "fao-10k.txt"

Topics = NDArray[np.float64]


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    for name, X in corpora(quick):
        for n_topics in (10, 50) if quick else (10, 50, 200):
            with threads(2), threadpool_limits(2), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits that are stopped
                swiftem.PLSA(n_topics, method="sem", max_iter=1).fit(X[:100])  # compiled before
                yield from _rows(name, X, n_topics, quick, repeats)


def _rows(name: str, X: Any, n_topics: int, quick: bool, repeats: int) -> Iterator[Row]:
    def row(setting: str, method: str, **more: Any) -> Row:
        return Row(**{
            "figure": "topics", "model": f"{name}, K = {n_topics}", "setting": setting, "method": method,
            "n": int(X.sum()), "d": f"{X.shape[0]}+{X.shape[1]}",
            "components": n_topics, "b": 0, "threads": 2, "iterations": 1,
            "repeats": 1, "compared": "ratio",
        } | more)  # fmt: skip

    for peer, (ours, theirs) in pass_times(X, n_topics, repeats).items():
        yield row("a pass", "em", value=ours, unit="ns/iteration", peer=peer, peer_value=theirs,
                  repeats=repeats, compared="speed-up", goal=PASS_GOALS[peer][n_topics])  # fmt: skip
    train, seen, hidden = divided(X)
    began = perf_counter()
    swiftem.PLSA(n_topics, random_state=0).fit(train)
    yield row("default fit", "auto", value=perf_counter() - began, unit="s", compared="value")
    model = fitted_for(0.2 if quick else OURS, train, n_topics, "auto")
    ours = completion(model.components_, seen, hidden)
    others = topics_after(0.2 if quick else THEIRS, train, n_topics)
    theirs = {peer: completion(topics, seen, hidden) for peer, topics in others.items()}
    for peer, value in theirs.items():
        goal = 1.0 if value == min(theirs.values()) else None
        yield row("5 s, 20 s", "auto", value=ours, unit="perplexity", peer=peer, peer_value=value, goal=goal)
    coherent = 1.0 - float(model.coherence(train).mean())
    less = {
        peer: 1.0 - float(coherence_of(train, topics, "npmi", 10).mean()) for peer, topics in others.items()
    }
    for peer, value in less.items():
        goal = LESS_COHERENT if value == min(less.values()) else None
        yield row("5 s, 20 s", "auto", value=coherent, unit="1 − NPMI", peer=peer, peer_value=value,
                  compared="difference", goal=goal)  # fmt: skip
    yield row("5 s", "auto", value=repeated(model.components_), unit="repeated words", compared="value",
              goal=REPEATED if n_topics <= 50 else None)  # fmt: skip
    began = perf_counter()
    once = swiftem.PLSA(n_topics, method="sem", max_iter=1, random_state=0).fit(train)
    seconds = perf_counter() - began
    em = fitted_for(seconds, train, n_topics, "em")
    value = completion(once.components_, seen, hidden)
    yield row("read once", "sem", value=value, unit="perplexity", peer="em",
              peer_value=completion(em.components_, seen, hidden), goal=0.85)  # fmt: skip
    clustered = fitted_for(seconds, train, n_topics, "em", init="k-means")
    yield row("read once, same start", "sem", value=value, unit="perplexity", peer="em",
              peer_value=completion(clustered.components_, seen, hidden))  # fmt: skip
    if n_topics == 50:
        value, peer_value = (time / X.shape[0] for time in transform_times(X, em, repeats))
        common = {"value": value, "unit": "ns/iteration", "iterations": X.shape[0], "repeats": repeats}
        yield row("transform a document", "", **common, compared="value", goal=1e9 / DOCUMENTS_A_SECOND)
        yield row("transform a document", "", **common, peer="scikit-learn NMF", peer_value=peer_value,
                  compared="speed-up", goal=2.0)  # fmt: skip


def corpora(quick: bool) -> Iterator[tuple[str, Any]]:
    """Yield names and counts: the docstrings of this installation, and the FAO texts if available."""
    packages = ("json", "email") if quick else ("numpy", "scipy", "sklearn", "stdlib")
    yield "docstrings", _counted(docstring_corpus(packages).documents)
    if FAO.exists() and not quick:
        yield "fao-10k", _counted(data.read_documents(FAO))


def _counted(texts: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        stop_words="english", max_features=5000, min_df=3, token_pattern="[A-Za-z]{3,}"
    )
    X = sparse.csr_array(vectorizer.fit_transform(list(texts)).astype(np.float64))
    X.sort_indices()
    return X[np.diff(X.indptr) > 0]


def divided(X: Any) -> tuple[Any, Any, Any]:
    """Return documents to fit, and two halves of the tokens of the others."""
    rng = np.random.default_rng(0)
    order = rng.permutation(X.shape[0])
    few = X.shape[0] // 10
    seen, hidden = X[np.sort(order[:few])], X[np.sort(order[:few])]
    seen.data = rng.binomial(seen.data.astype(int), 0.5).astype(float)
    hidden.data = hidden.data - seen.data
    return X[np.sort(order[few:])], seen, hidden


def completion(topics: Topics, seen: Any, hidden: Any, alpha: float = 0.1) -> float:
    """Return the perplexity of ``hidden`` after ``seen`` was folded in: plain NumPy, 100 iterations."""
    words = np.ascontiguousarray(topics.T) + 1e-12
    words = words / words.sum(axis=0)
    shares = np.full((seen.shape[0], len(topics)), 1.0 / len(topics))

    def likelihood(X: Any) -> Any:
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.einsum("ek,ek->e", shares[row], words[X.indices])

    for _ in range(100):
        ratio = sparse.csr_array((seen.data / likelihood(seen), seen.indices, seen.indptr), shape=seen.shape)
        shares = shares * (ratio @ words) + alpha
        shares /= shares.sum(axis=1, keepdims=True)
    return float(np.exp(-(hidden.data @ np.log(likelihood(hidden))) / hidden.data.sum()))


def repeated(topics: Topics, n: int = 25) -> float:
    """Return the share of the topics' likeliest words that another topic has before."""
    words = np.argsort(-topics, axis=1, kind="stable")[:, :n]
    return 1.0 - len(np.unique(words)) / words.size


class _After:
    """Stops a fit after this many seconds: a callback of scikit-learn."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began = seconds, perf_counter()

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        return perf_counter() - self._began > self._seconds


def fitted_for(seconds: float, X: Any, n_topics: int, method: str, init: str = "auto") -> Any:
    """Return a model fitted for this many seconds."""
    model = swiftem.PLSA(n_topics, method=method, init=init, max_iter=10**6, tol=0.0, random_state=0)
    return model.set_callbacks(_After(seconds)).fit(X)


def pass_times(X: Any, n_topics: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Return the minimum time of a pass in nanoseconds, ours and the peer's, measured alternately."""
    documents = Documents(X, dtype=np.float32)  # as in a fit
    shares = np.full((X.shape[0], n_topics), 1.0 / n_topics)
    topics = np.asfortranarray(np.random.default_rng(0).dirichlet(np.ones(X.shape[1]), size=n_topics))
    alpha = np.full(n_topics, 0.1)

    def ours() -> None:
        nonlocal topics
        from swiftem.topics.documents import m_step

        counts, _ = documents.em_pass(shares, topics, alpha)
        topics = m_step(counts, np.full((1, 1), 0.05))

    found = {}
    gibbs = tomotopy_model(X, n_topics)
    if gibbs is not None:
        gibbs.train(20, workers=2)  # its first iterations are slower
        value, peer_value = interleaved([ours, lambda: gibbs.train(5, workers=2)], repeats)
        found["tomotopy"] = (value, peer_value / 5)
    short, long = nmf(n_topics, 2), nmf(n_topics, 7)
    value, few, many = interleaved([ours, lambda: short.fit(X), lambda: long.fit(X)], min(3, repeats))
    found["scikit-learn NMF"] = (value, max(many - few, 1) / 5)
    return found


def transform_times(X: Any, model: Any, repeats: int) -> tuple[float, float]:
    """Return the minimum time of ``transform`` in nanoseconds, ours and NMF's."""
    peer = nmf(len(model.components_), 20).fit(X).set_params(tol=1e-4, max_iter=200)
    value, peer_value = interleaved([lambda: model.transform(X), lambda: peer.transform(X)], min(3, repeats))
    return value, peer_value
