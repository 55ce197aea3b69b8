"""A full pass, one iteration of em: two threads compared with one, and one with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import swiftem
from benchmarks.problems import paper_mixture, token_source, wide_mixture
from benchmarks.row import Row
from benchmarks.runs import agree
from benchmarks.timing import Laps, interleaved, least, threads
from swiftem import data, methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Full pass and M-step"
LEAD = ("model",)
NOTE = """One thread: the speed-up by a second thread; results are equal bit by bit (checked first).
scikit-learn: ratio of times on one thread; its GaussianMixture(covariance_type="spherical")
also fits variances. The Poisson mixture's goal is for its time divided by that of unit variances."""
GOAL, FAMILY_GOAL = 1.6, 1.2
WORDS, TOPICS = 1_000, 10


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n = 10_000 if quick else 1_000_000
    yield from _mixture("paper's mixture", 1, *paper_mixture(n), repeats)
    yield from _mixture("wide mixture", 16, *wide_mixture(n), repeats)
    yield _poisson(n, repeats)
    documents = n // 100
    source, model = token_source(documents, WORDS, topics=TOPICS), models.PLSAModel(n_topics=TOPICS)
    theta = model.bind(source).initial_theta(np.random.default_rng(0))
    yield from _threads("pLSA", f"{documents}+{WORDS}", TOPICS, model, source, theta, repeats)


def _mixture(name: str, d: int, model: Any, source: Any, theta: Any, repeats: int) -> Iterator[Row]:
    m = model.n_components
    yield from _threads(name, str(d), m, model, source, theta, repeats)
    ours, theirs = passes(model, source, theta, 1), scikit_learn_pass(source.y.reshape(-1, d), theta)
    theirs()
    value, peer_value = least([ours, lambda: interleaved([theirs], 1)[0]], repeats)
    yield Row(
        figure="full-pass", model=name, method="em", n=source.n, d=str(d), components=m, b=source.n,
        iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="scikit-learn", peer_value=peer_value, compared="ratio",
    )  # fmt: skip


def _poisson(n: int, repeats: int) -> Row:
    """A family of components compared with the mixture with unit variances, of the same sizes."""
    model, source, theta = wide_mixture(n)
    (m, d), rng = theta.means.shape, np.random.default_rng(0)
    rates = rng.gamma(2.0, 3.0, size=(m, d))
    counts = data.ArraySource(rng.poisson(rates[rng.integers(m, size=n)]).astype(np.float64))
    poisson = models.MixtureModel(m, "poisson")
    value, peer_value = least(
        [passes(poisson, counts, poisson.theta(rates=rates), 1), passes(model, source, theta, 1)], repeats
    )
    return Row(
        figure="full-pass", model="Poisson mixture", method="em", n=n, d=str(d), components=m, b=n,
        iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="unit-variance mixture", peer_value=peer_value, compared="ratio", goal=FAMILY_GOAL,
    )  # fmt: skip


def _threads(
    name: str, d: str, components: int, model: Any, source: Any, theta: Any, repeats: int
) -> Iterator[Row]:
    calls = [passes(model, source, theta, number) for number in (2, 1)]
    results = []
    for number in (2, 1):
        with threads(number):
            results.append(swiftem.run(model, source, methods.EM(), theta0=theta, n_iter=1).theta)
    agree(f"{TITLE}, {name}", *results, tolerance=0.0)
    value, peer_value = least(calls, repeats)
    yield Row(
        figure="full-pass", model=name, method="em", n=source.n, d=d, components=components, b=source.n,
        threads=2, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="one thread", peer_value=peer_value, compared="speed-up", goal=GOAL,
    )  # fmt: skip


def passes(model: Any, source: Any, theta: Any, number: int) -> Callable[[], float]:
    """Return a measurement of a pass and M-step with this many threads, in nanoseconds: the better of two."""
    s0 = swiftem.run(model, source, methods.EM(), theta0=theta, n_iter=0).s

    def measure() -> float:
        laps = Laps()
        with threads(number):
            swiftem.run(
                model, source, methods.EM(), theta0=theta, s0=s0, n_iter=2,
                record_every=1, record=lambda iterate: None, callback=laps,
            )  # fmt: skip
        return 1e9 * laps.least()

    return measure


def scikit_learn_pass(y: Any, theta: Any) -> Callable[[], None]:
    """Return a call of one E-step and M-step; ``fit`` would add checks, a start and a last E-step."""
    from sklearn.mixture import GaussianMixture

    m = len(theta.weights)
    peer = GaussianMixture(m, covariance_type="spherical")
    peer.weights_, peer.means_ = theta.weights, theta.means
    peer.covariances_ = peer.precisions_cholesky_ = np.ones(m)

    def call() -> None:
        _, log_responsibility = peer._e_step(y)
        peer._m_step(y, log_responsibility)

    return call
