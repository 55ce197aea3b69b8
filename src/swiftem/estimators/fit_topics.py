"""One fit of pLSA: em by full passes, sem and sem-vr by batches of documents, all four others by tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.algorithm import run
from swiftem.data.count_source import CountSource
from swiftem.data.draws import SeededDraws, read_seed
from swiftem.estimators.documents import Documents
from swiftem.estimators.history import Moment
from swiftem.estimators.plan_topics import TopicPlan
from swiftem.interrupt import DeferredInterrupt
from swiftem.models import PLSAModel
from swiftem.result import Iterate
from swiftem.schedules import Schedule, resolve

__all__ = ["TopicFit", "TopicFitting"]

INNER_PASSES, INNER_TOLERANCE = 10, 1e-2
"""How long a document of a batch is folded in: it is a step of many, and the next ones mend what is missing."""
LOOKED_AT = 1000
"""Documents on which the likelihood of a stochastic method is followed: always the same."""
FLUSH = 1e-100
"""Probabilities of words below this are read as zero: subnormal numbers are slow."""

Watch = Callable[[Moment, Any], bool]


@dataclass
class TopicFit:
    """Where a fit stands, and how it went.

    Attributes
    ----------
    topics : ndarray, shape (K, V)
        Words of topics.
    doc_topic : ndarray, shape (D, K)
        Topics of documents.
    counts : ndarray, shape (K, V)
        The expected counts that ``topics`` are the M-step of; None before the first pass.
    """

    topics: Array
    doc_topic: Array
    counts: Array | None = None
    moments: list[Moment] = field(default_factory=list)
    passes: float = 0.0
    converged: bool = False
    interrupted: bool = False


@dataclass
class TopicFitting:
    """What a fit needs to know.

    Attributes
    ----------
    documents : Documents
        The corpus.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    plan : TopicPlan
        Methods, one after the other.
    max_passes, tol
        When to stop.
    """

    documents: Documents
    alpha: Array
    beta: Array
    plan: TopicPlan
    max_passes: int
    tol: float

    def fit(self, topics: Array, seed: int, watch: Watch) -> TopicFit:
        """Return the fit from given words of topics; documents start uniform."""
        fit = TopicFit(topics, np.full((self.documents.n, len(self.alpha)), 1.0 / len(self.alpha)))
        began = perf_counter()
        if self.plan.by_tokens is not None:
            self._by_tokens(fit, seed, watch, began)
            return fit
        with DeferredInterrupt() as interrupt:
            try:
                if self.plan.first is not None:
                    self._by_documents(fit, self.plan.first, 1, False, seed, watch, began, interrupt.check)
                if self.plan.by_documents is not None:
                    reduced = self.plan.name == "sem-vr"
                    self._by_documents(
                        fit,
                        self.plan.by_documents,
                        self.max_passes,
                        reduced,
                        seed,
                        watch,
                        began,
                        interrupt.check,
                    )
                else:
                    self._em(fit, watch, began, interrupt.check)
            except KeyboardInterrupt:
                fit.interrupted = True
        return fit

    def m_step(self, counts: Array) -> Array:
        """Return words of topics: equation (mstep_plsa), with negative entries read as zero."""
        regularised = np.maximum(counts, 0.0) + self.beta
        topics = regularised / np.maximum(regularised.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        topics[topics < FLUSH] = 0.0
        empty = topics.sum(axis=1) <= 0.0
        topics[empty] = 1.0 / topics.shape[1]
        return topics

    def _em(self, fit: TopicFit, watch: Watch, began: float, between: Callable[[], None]) -> None:
        last = inf
        while fit.passes < self.max_passes:
            between()
            counts, value = self.documents.em_pass(fit.doc_topic, fit.topics, self.alpha, between)
            fit.counts, fit.topics = counts, self.m_step(counts)
            fit.passes += 1
            objective = -value / self.documents.total
            fit.moments.append(Moment(fit.passes, perf_counter() - began, objective, 1.0, 0, "em"))
            stop = watch(fit.moments[-1], fit)
            fit.converged = abs(last - objective) < self.tol
            last = objective
            if fit.converged or stop:
                return

    def _by_documents(
        self, fit: TopicFit, method: Any, passes: int, reduced: bool, seed: int, watch: Watch, began: float,
        between: Callable[[], None],
    ) -> None:  # fmt: skip
        """Batches of documents in shuffled order: sem, or sem-vr with an anchor renewed each epoch."""
        documents, b = self.documents, method.batch_size
        draws = SeededDraws(read_seed(seed), documents.n, b, ["shuffled"])
        gamma = resolve(method.step_size, documents.n, b)
        epoch = ceil(documents.n / b)
        look = TopicLook(documents, self.alpha, self.tol)
        look.at(fit.topics, fit.passes)
        counts = fit.topics * (documents.total / len(fit.topics)) if fit.counts is None else fit.counts
        everything = np.arange(documents.n)
        k, calm, spent = 0, 0, 0.0
        while spent + (2 if reduced else 0) < passes:
            if reduced:
                anchor = fit.topics
                full, _ = documents.batch_sums(everything, anchor, self.alpha, INNER_PASSES, INNER_TOLERANCE)
            for _ in range(epoch):
                between()
                numbers = draws.at(k)[0]
                k += 1
                found, of_batch = documents.batch_sums(
                    numbers, fit.topics, self.alpha, INNER_PASSES, INNER_TOLERANCE
                )
                fit.doc_topic[numbers] = of_batch
                share = documents.total / max(
                    float(documents.weight[numbers] @ documents.length[numbers]), 1e-300
                )
                proxy = found * share
                if reduced:
                    before, _ = documents.batch_sums(
                        numbers, anchor, self.alpha, INNER_PASSES, INNER_TOLERANCE
                    )
                    proxy += full - before * share
                counts = counts + gamma(k) * (proxy - counts)
                fit.topics = self.m_step(counts)
                fit.counts = counts
            cost = 3.0 if reduced else 1.0
            spent, fit.passes = spent + cost, fit.passes + cost
            at_rest = look.at(fit.topics, fit.passes)
            calm = calm + 1 if at_rest else 0
            fit.moments.append(
                Moment(fit.passes, perf_counter() - began, look.objective, float(gamma(k)), 0,
                       "sem-vr" if reduced else "sem")
            )  # fmt: skip
            stop = watch(fit.moments[-1], fit)
            fit.converged = passes > 1 and calm >= 2
            if fit.converged or stop:
                break
        if passes > 1:
            fit.doc_topic, _ = documents.fold_in(fit.topics, self.alpha)

    def _by_tokens(self, fit: TopicFit, seed: int, watch: Watch, began: float) -> None:
        """The paper's setting: tokens drawn one by one (or in batches), by :func:`swiftem.run`."""
        method, documents = self.plan.by_tokens, self.documents
        assert method is not None
        source = CountSource(documents.matrix(), None if (documents.weight == 1).all() else documents.weight)
        model = PLSAModel(
            len(self.alpha), alpha=float(self.alpha[0]) / source.total_weight,
            beta=float(self.beta.flat[0]) / source.total_weight,
        )  # fmt: skip
        epoch = method.epoch(source.n)
        gamma: Schedule = resolve(method.step_size, source.n, method.batch_size)
        look = TopicLook(documents, self.alpha, self.tol)
        look.at(fit.topics, 0.0)
        calm = 0

        def at_epoch(iterate: Iterate) -> bool:
            nonlocal calm
            if iterate.k == 0:
                return False
            fit.topics = iterate.theta.topic_word
            calm = calm + 1 if look.at(fit.topics, iterate.passes) else 0
            fit.moments.append(
                Moment(iterate.passes, perf_counter() - began, look.objective, float(gamma(iterate.k)),
                       iterate.rejected, method.name)
            )  # fmt: skip
            fit.converged = calm >= 2
            return watch(fit.moments[-1], fit) or fit.converged

        cost = {"sem": 1.0, "iem": 1.0, "sem-vr": 3.0, "fiem": 2.0}[method.name]
        epochs = max(1, int((self.max_passes - 1) / cost))
        theta0 = model.theta(doc_topic=fit.doc_topic, topic_word=fit.topics)
        result = run(
            model, source, method, theta0=theta0, n_iter=epochs * epoch, seed=seed, record_every=epoch,
            record=lambda iterate: None, callback=at_epoch,
        )  # fmt: skip
        theta: Theta = result.theta
        fit.topics, fit.doc_topic, fit.passes = theta.topic_word, theta.doc_topic, result.passes
        fit.interrupted = result.status == "interrupted"
        if result.s is not None and not fit.interrupted:
            fit.counts = model.unpack(result.s, n_words=documents.n_words).topic_word * source.total_weight


class TopicLook:
    """Follows the mean log-likelihood of a token on documents that stay the same, folded in."""

    def __init__(self, documents: Documents, alpha: Array, tol: float) -> None:
        index = np.arange(documents.n)
        if documents.n > LOOKED_AT:
            index = np.sort(np.random.default_rng(0).choice(documents.n, LOOKED_AT, replace=False))
        self._documents, self._alpha, self._tol = documents.take(index), alpha, tol
        self._all = len(index) == documents.n
        self._last: Array | None = None
        self._last_passes = 0.0
        self.objective = inf

    def at(self, topics: Array, passes: float) -> bool:
        """Look; return whether the gain in a pass is below ``tol`` or cannot be told from nothing."""
        chosen = self._documents
        _, found = chosen.fold_in(topics, self._alpha, max_iter=20, tol=INNER_TOLERANCE)
        weighed = chosen.weight * found / max(chosen.total, 1e-300)
        objective = -float(weighed.sum())
        calm = False
        if self._last is not None:
            change = weighed - self._last
            noise = 0.0 if self._all else sqrt(float(((change - change.mean()) ** 2).sum()))
            calm = abs(self.objective - objective) < max(
                self._tol * (passes - self._last_passes), 2.0 * noise if self._tol else 0.0
            )
        self._last, self._last_passes, self.objective = weighed, passes, objective
        return calm
