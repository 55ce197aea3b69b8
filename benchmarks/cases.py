"""What is timed: each case is a call of swiftem, a peer that does the same work, and their sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import swiftem
from benchmarks import batch_loops, mixture_loops, plsa_loops
from swiftem import data, methods, models, schedules
from swiftem.experiments.gaussian import MODEL, START, gaussian_data, paper_methods

__all__ = ["Case", "all_cases"]

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row: ``iterations`` is what both calls do, ``same`` whether their results must agree.

    ``d`` is the dimension, or D+V, and ``components`` M or K.
    """

    model: str
    method: str
    n: int
    d: str
    components: int
    b: int
    iterations: int
    swiftem: Call
    peer: str
    peer_call: Call
    same: bool = True

    def check(self) -> None:
        """Refuse to time a peer that does something else; this is the warm-up, too."""
        ours, theirs = self.swiftem(), self.peer_call()
        if not self.same:
            return
        for one, other in zip(ours.theta, theirs, strict=False):
            difference = np.abs(one - np.reshape(other, one.shape)) / np.maximum(np.abs(one), 1e-3)
            assert difference.max() < 1e-9, (
                f"{self.model}, {self.method}: peers differ by {difference.max():.1e}"
            )


def all_cases(quick: bool) -> Iterator[Case]:
    """Yield the cases, at a fiftieth of their size when ``quick``."""
    part = 50 if quick else 1
    yield from _paper_mixture(n=10_000 // part)
    yield from _wide_mixture(n=25_600 // part)
    yield from _topics(iterations=5_000 // part)


def _paper_mixture(n: int) -> Iterator[Case]:
    y = gaussian_data(n, np.random.default_rng(0))
    for method in paper_methods():
        yield _mixture("paper's mixture", MODEL, y, method, START, mixture_loops.LOOPS[method.name])
    yield _against_scikit_learn("paper's mixture", MODEL, y[:, None], START)


def _wide_mixture(n: int, d: int = 16, m: int = 32, b: int = 256) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(m, d))
    y = centres[rng.integers(m, size=n)] + rng.normal(size=(n, d))
    model = models.GaussianMixtureModel(n_components=m)
    start = model.theta(means=y[:m])
    for method in (
        methods.EM(),
        methods.OnlineEM(batch_size=b),
        methods.IncrementalEM(batch_size=b),
        methods.VarianceReducedEM(step_size=0.003, batch_size=b),
        methods.FastIncrementalEM(step_size=0.003, batch_size=b),
    ):
        yield _mixture("wide mixture", model, y, method, start, batch_loops.LOOPS[method.name])
    yield _against_scikit_learn("wide mixture", model, y, start)


def _mixture(name: str, model: Any, y: Any, method: Any, theta: Any, loop: Callable[..., Any]) -> Case:
    """Time one epoch after the first iteration: it has one renewal of sem-vr's anchor, and no first pass."""
    iterations = method.epoch(len(y)) if method.index_streams else 5
    ours, start, draws = _resumed(model, data.ArraySource(y), method, theta, iterations)
    arguments = draws if draws else (iterations,)
    b = method.batch_size if method.index_streams else len(y)
    return Case(
        name, method.name, len(y), str(y[0].size), model.n_components, b, iterations,
        ours, "NumPy loop", partial(loop, y, start, *arguments),
    )  # fmt: skip


def _resumed(model: Any, source: Any, method: Any, theta: Any, iterations: int) -> tuple[Call, Any, Any]:
    """Return a call that goes on after iteration 0, where it goes on from, and its draws."""
    rng = np.random.default_rng(1)
    shape = (iterations + 1, method.batch_size) if method.batch_size > 1 else (iterations + 1,)
    streams = [rng.integers(source.n, size=shape) for _ in range(method.index_streams)]

    def given(part: slice) -> Any:
        cut = [stream[part] for stream in streams]
        return None if not cut else cut[0] if len(cut) == 1 else cut

    start = swiftem.run(model, source, method, theta0=theta, n_iter=1, draws=given(slice(1)), seed=0)
    rest = given(slice(1, None))

    def call() -> Any:
        return swiftem.run(
            model,
            source,
            method,
            theta0=start.theta,
            s0=start.s,
            state=start.state,
            n_iter=iterations,
            draws=rest,
        )

    return call, start, tuple(stream[1:] for stream in streams)


def _against_scikit_learn(name: str, model: Any, y: Any, theta: Any, n_iter: int = 5) -> Case:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    source = data.ArraySource(y)

    def scikit_learn() -> Any:
        peer = GaussianMixture(
            model.n_components, covariance_type="spherical", tol=0.0, max_iter=n_iter,
            init_params="random_from_data", random_state=0,
            weights_init=theta.weights, means_init=theta.means, precisions_init=np.ones(model.n_components),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return peer.fit(y)

    # Both do one E-step more than M-steps: a first pass here, a last one there.
    return Case(
        name, "em", len(y), str(y.shape[1]), model.n_components, len(y), n_iter + 1,
        lambda: swiftem.run(model, source, methods.EM(), theta0=theta, n_iter=n_iter),
        "scikit-learn", scikit_learn, same=False,
    )  # fmt: skip


def _topics(iterations: int, documents: int = 1000, words: int = 300, topics: int = 10) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    doc_topic = rng.dirichlet(np.full(topics, 0.2), size=documents)
    topic_word = rng.dirichlet(np.full(words, 0.1), size=topics)
    counts = [rng.multinomial(20, mixed) for mixed in doc_topic @ topic_word]
    document, word = np.nonzero(counts)
    repeats = np.asarray(counts)[document, word]
    source = data.TokenSource(
        np.repeat(document, repeats), np.repeat(word, repeats), n_documents=documents, n_words=words
    )
    tokens = list(zip(*(part.tolist() for part in source.take(np.arange(source.n)).y.T), strict=True))
    model = models.PLSAModel(n_topics=topics)
    theta = model.theta(
        doc_topic=np.full((documents, topics), 1 / topics),
        topic_word=rng.dirichlet(np.ones(words), size=topics),
    )
    gamma = 10 / source.n
    for method in (
        methods.OnlineEM(step_size=schedules.inverse(1, 10)),
        methods.IncrementalEM(),
        methods.VarianceReducedEM(step_size=gamma),
        methods.FastIncrementalEM(step_size=gamma),
    ):
        ours, start, draws = _resumed(model, source, method, theta, iterations)
        loop, step = plsa_loops.LOOPS[method.name], (gamma,) if method.name in ("sem-vr", "fiem") else ()
        yield Case(
            "pLSA", method.name, source.n, f"{documents}+{words}", topics, 1, iterations,
            ours, "NumPy loop, O(K)",
            partial(loop, tokens, model, words, start, *draws, *step),
        )  # fmt: skip
