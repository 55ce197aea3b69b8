"""One fit of pLSA: em by full passes, sem and sem-vr by batches of documents, all four others by tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.algorithm import run
from swiftem.checkpoints.check_position import check_form
from swiftem.data.documents.count_source import CountSource
from swiftem.estimators.fit_checkpoint import NoStart
from swiftem.estimators.history import Moment
from swiftem.estimators.topics.document_batches import DocumentBatches
from swiftem.estimators.topics.documents import Documents
from swiftem.estimators.topics.first_topics import best_start
from swiftem.estimators.topics.look import TopicLook
from swiftem.estimators.topics.plan import TopicPlan
from swiftem.estimators.topics.running_counts import m_step, totals_of
from swiftem.estimators.topics.streamed_documents import StreamedDocuments
from swiftem.interrupt import DeferredInterrupt
from swiftem.models import PLSAModel
from swiftem.result import Iterate
from swiftem.schedules import Schedule, resolve

__all__ = ["TopicFit", "TopicFitting"]

CHOICE, READING, METHOD, OVER = range(4)
"""Phases of a fit."""

Watch = Callable[[Moment, Any], bool]
Allocator = Callable[[tuple[int, int]], Array]


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
    passes, tried : float
        E-steps of entries over their number, and those of them that went into the choice of a start.
    phase : int
        What is being done: the choice of a start, the first reading, the method itself, or nothing any more.
    within : nested tuple or None
        Where a phase stands that has begun: what a checkpoint needs besides the rest.
    """

    topics: Array
    doc_topic: Array
    counts: Array | None = None
    moments: list[Moment] = field(default_factory=list)
    passes: float = 0.0
    tried: float = 0.0
    converged: bool = False
    interrupted: bool = False
    phase: int = CHOICE
    within: Any = None

    @property
    def bound(self) -> float:
        """The mean log-likelihood of a token, when it was last looked at."""
        return -self.moments[-1].objective if self.moments else -inf


class Clock:
    """Writes a fit's history down and tells who watches it; ``watch`` returns whether to stop."""

    def __init__(self, watch: Watch, before: float = 0.0) -> None:
        self._watch, self._began = watch, perf_counter() - before

    def tell(self, fit: TopicFit, objective: float, step: float, rejected: int, method: str) -> bool:
        """Add a moment; return whether to stop."""
        fit.moments.append(
            Moment(fit.passes, perf_counter() - self._began, objective, step, rejected, method)
        )
        return self._watch(fit.moments[-1], fit)


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
    leave_one_out : bool
        Whether em explains no token by what it has itself added to the counts.
    allocate : callable
        Makes arrays of the documents' topics, given their shape.
    """

    documents: Documents | StreamedDocuments
    alpha: Array
    beta: Array
    plan: TopicPlan
    max_passes: int
    tol: float
    leave_one_out: bool = False
    allocate: Allocator = np.empty

    def fit(
        self, starts: Sequence[Array], seed: int, watch: Watch, keeper: NoStart | None = None
    ) -> TopicFit:
        """Return the fit from the best of the given words of topics; documents start uniform.

        By tokens, the first start is taken. ``keeper`` has the checkpoints.
        """
        with keeper or NoStart() as kept:
            fit = self._begin(starts, kept)
            if fit.phase == OVER:
                return fit
            clock = Clock(watch, fit.moments[-1].seconds if fit.moments else 0.0)
            if self.plan.by_tokens is not None:
                self._by_tokens(fit, seed, clock, kept)
            else:
                with DeferredInterrupt() as interrupt:
                    try:
                        self._by_phases(fit, starts, seed, clock, kept, interrupt.check)
                    except KeyboardInterrupt:
                        fit.interrupted = True
            if not fit.interrupted:
                fit.phase, fit.within = OVER, None
                kept.save(lambda: vars(fit), is_end=True)
        return fit

    def _begin(self, starts: Sequence[Array], keeper: NoStart) -> TopicFit:
        """Return where the fit was left, or its beginning."""
        kept = keeper.load()
        shares = self.allocate((self.documents.n, len(self.alpha)))
        if kept is None:
            shares[:] = 1.0 / len(self.alpha)
            return TopicFit(starts[0], shares)
        with keeper.reading():
            fit = TopicFit(**kept)
            check_form("doc_topic", fit.doc_topic, shares)
            for part in (fit.topics, *(() if fit.counts is None else (fit.counts,))):
                check_form("topics", part, starts[0])
            if fit.phase not in range(OVER + 1):
                raise ValueError("its phase is none")
            shares[:] = fit.doc_topic
            fit.doc_topic = shares
            return fit

    def _by_phases(
        self, fit: TopicFit, starts: Sequence[Array], seed: int, clock: Clock, keeper: NoStart,
        between: Callable[[], None],
    ) -> None:  # fmt: skip
        """Choose a start, read the documents once, and go on by documents or by em: what is left of it."""
        if fit.phase == CHOICE:
            fit.topics, fit.tried = best_start(starts, self.documents, self.alpha, self.beta, between)
            fit.passes, fit.phase = fit.tried, READING
        if fit.phase == READING:
            stop = False
            if self.plan.first is not None:
                stop = self._by_documents(fit, self.plan.first, 1, seed, clock, keeper, between)
            fit.phase, fit.within = METHOD, None
            if stop and self.plan.by_documents is None:
                return
        if self.plan.by_documents is not None:
            self._by_documents(fit, self.plan.by_documents, None, seed, clock, keeper, between)
        else:
            self._em(fit, clock, keeper, between)

    def e_step(
        self, fit: TopicFit, doc_topic: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """Return expected counts (K, V) and the log-likelihood; ``doc_topic`` (D, K) is replaced.

        Before there are counts, there is nothing that a token could have added to them.
        """
        if self.leave_one_out and fit.counts is not None:
            totals = totals_of(fit.counts, self.beta)
            return self.documents.leave_one_out_pass(
                doc_topic, fit.topics, totals, self.alpha, self.beta, between
            )
        return self.documents.em_pass(doc_topic, fit.topics, self.alpha, between)

    def _em(self, fit: TopicFit, clock: Clock, keeper: NoStart, between: Callable[[], None]) -> None:
        """Iterate em, at least once; the objective of a moment is that at the beginning of its pass."""
        last, last_gain, calm = (inf, inf, 0) if fit.within is None else fit.within
        while not fit.converged:
            between()
            # A pass that is broken off has changed documents: they are as before it in no checkpoint.
            counts, value = self.e_step(fit, fit.doc_topic, between)
            fit.counts, fit.topics = counts, m_step(counts, self.beta)
            fit.passes += 1.0
            objective = -value / self.documents.total
            stop = clock.tell(fit, objective, 1.0, 0, "em")
            gain = last - objective
            # Where topics begin to part, gains are small and grow: that is no rest.
            calm = calm + 1 if abs(gain) < self.tol and gain <= last_gain + 1e-3 * self.tol else 0
            last, last_gain, fit.converged = objective, gain, calm >= 2
            fit.within = (last, last_gain, calm)
            if fit.converged or stop or fit.passes + 1 > fit.tried + self.max_passes + 1e-9:
                return
            keeper.save(lambda: vars(fit))

    def _by_documents(
        self, fit: TopicFit, method: Any, most: int | None, seed: int, clock: Clock, keeper: NoStart,
        between: Callable[[], None],
    ) -> bool:  # fmt: skip
        """Read the documents ``most`` times, or until they are at rest or the passes are used up."""
        documents = self.documents
        batches = DocumentBatches(
            documents, self.alpha, self.beta, method, seed, fit.topics, fit.doc_topic, self.allocate
        )
        look = TopicLook(documents, self.alpha, self.tol)
        calm, stop, before = 0, False, fit.passes
        if fit.within is not None:
            with keeper.reading():
                calm, before, running, looked = fit.within
                batches.restore(running)
                look.restore(looked)
        try:
            while not (
                stop or fit.converged or batches.epochs == most or fit.passes >= fit.tried + self.max_passes
            ):
                batches.epoch(between)
                fit.counts = batches.counts()
                fit.topics, fit.passes = m_step(fit.counts, self.beta), before + batches.passes
                calm = calm + 1 if look.at(fit.topics, fit.passes) else 0
                fit.converged = calm >= 2 and most is None
                stop = clock.tell(fit, look.objective, batches.gamma, batches.rejected, method.name)
                fit.within = (calm, before, batches.snapshot(), look.snapshot())
                if not stop:
                    keeper.save(lambda: vars(fit))
        except KeyboardInterrupt:
            fit.counts, fit.passes = batches.counts(), before + batches.passes
            fit.topics = m_step(fit.counts, self.beta)
            raise
        return stop

    def _by_tokens(self, fit: TopicFit, seed: int, clock: Clock, keeper: NoStart) -> None:
        """The paper's setting: tokens drawn one by one (or in batches), by :func:`swiftem.run`."""
        method, documents = self.plan.by_tokens, self.documents
        assert method is not None
        assert isinstance(documents, Documents), "refused before"
        source = CountSource(documents.matrix(), None if (documents.weight == 1).all() else documents.weight)
        model = PLSAModel(
            len(self.alpha), alpha=float(self.alpha[0]) / source.total_weight,
            beta=float(self.beta.flat[0]) / source.total_weight,
        )  # fmt: skip
        epoch = method.epoch(source.n)
        gamma: Schedule = resolve(method.step_size, source.n, method.batch_size)
        look = TopicLook(documents, self.alpha, self.tol)
        calm = 0
        if fit.within is not None:
            with keeper.reading():
                calm, looked = fit.within
                look.restore(looked)

        def at_epoch(iterate: Iterate) -> bool:
            nonlocal calm
            if iterate.k == 0:
                return False
            fit.topics, fit.doc_topic = iterate.theta.topic_word, iterate.theta.doc_topic
            fit.passes = iterate.passes
            calm = calm + 1 if look.at(fit.topics, iterate.passes) else 0
            stop = clock.tell(fit, look.objective, float(gamma(iterate.k)), iterate.rejected, method.name)
            fit.converged = calm >= 2
            fit.within = (calm, look.snapshot())
            return stop or fit.converged

        # One pass is for the statistics to start from; then n/b iterations cost so many.
        cost = method.evaluations + (method.renewal(0, source.n) is not None)
        epochs = max(1, int((self.max_passes - 1) / cost))
        theta0 = model.theta(doc_topic=fit.doc_topic, topic_word=fit.topics)
        result = run(
            model, source, method, theta0=theta0, n_iter=epochs * epoch, seed=seed, record_every=epoch,
            record=lambda iterate: None, callback=at_epoch,
            checkpoint=keeper.of_run(method, source.n, lambda: vars(fit)),
        )  # fmt: skip
        theta: Theta = result.theta
        fit.topics, fit.doc_topic, fit.passes = theta.topic_word, theta.doc_topic, result.passes
        fit.interrupted = result.status == "interrupted"
        if result.s is not None:
            fit.counts = model.unpack(result.s, n_words=documents.n_words).topic_word * source.total_weight
