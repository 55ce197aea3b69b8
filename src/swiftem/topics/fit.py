"""One fit of pLSA: em by full passes; other methods by :func:`swiftem.run`, on documents or on tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from swiftem._run import run_problem
from swiftem.core.algorithm import Iterate
from swiftem.core.checkpoint import check_form
from swiftem.core.files import row_blocks
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import NO_LIMIT, Budget, Problem
from swiftem.core.process import clock
from swiftem.core.schedules import resolve
from swiftem.core.types import Array, Theta
from swiftem.data.documents.tokens import CountSource
from swiftem.fit.history import Moment
from swiftem.fit.watch import NoStart
from swiftem.methods import Method
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.device_documents import DeviceDocuments
from swiftem.topics.compute.streamed import StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.contrast import SHARE, decorrelated, with_background
from swiftem.topics.documents import DocumentModel, m_step, totals_of
from swiftem.topics.first_topics import best_start
from swiftem.topics.learned_alpha import next_alpha
from swiftem.topics.look import TopicLook
from swiftem.topics.momentum import Momentum
from swiftem.topics.resolve import TopicSpec
from swiftem.topics.tokens import PLSAModel

__all__ = ["TopicFit", "TopicFitting"]

CHOICE, READING, METHOD, OVER = range(4)
"""Phases of a fit."""

Watch = Callable[[Moment, Any], bool]


@dataclass
class TopicFit:
    """State and history of a fit.

    Attributes
    ----------
    topics : ndarray, shape (K, V)
        Words of topics.
    doc_topic : ndarray, shape (D, K)
        Topics of documents.
    alpha : ndarray, shape (K,)
        α of the next pass; None if it is not learned.
    counts : ndarray, shape (K, V)
        The expected counts that ``topics`` are the M-step of; None before the first pass.
    passes, tried : float
        E-steps of entries divided by their number, and those of them used to choose a start.
    has_background : bool
        Whether topic 0 has become the background.
    phase : int
        Current phase: the choice of a start, the first reading, the method itself, or the end.
    within : nested tuple or None
        State of a phase that has begun, for checkpoints.
    there : DeviceTopics or None
        em on a device, where topics, doc_topic and counts then are; see :meth:`fetch`.
    """

    topics: Array
    doc_topic: Array
    counts: Array | None = None
    alpha: Array | None = None
    moments: list[Moment] = field(default_factory=list)
    passes: float = 0.0
    tried: float = 0.0
    has_background: bool = False
    converged: bool = False
    interrupted: bool = False
    phase: int = CHOICE
    within: Any = None
    there: Any = field(default=None, repr=False)

    def fetch(self) -> None:
        """Copy topics, doc_topic and counts from the device, if they are there."""
        if self.there is not None:
            self.topics, self.doc_topic[:], self.counts = self.there.read()

    def kept(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        self.fetch()
        if self.there is not None and self.within is not None:
            self.within = (*self.within[:-1], self.there.behind())
        return {name: value for name, value in vars(self).items() if name != "there"}

    @property
    def bound(self) -> float:
        """The mean log-likelihood per token at its last evaluation."""
        return -self.moments[-1].objective if self.moments else -inf


class Clock:
    """Writes a fit's history and calls its observer; ``watch`` returns whether to stop."""

    def __init__(self, watch: Watch, before: float = 0.0) -> None:
        self._watch, self._began = watch, clock() - before

    def tell(self, fit: TopicFit, objective: float, step: float, rejected: int, method: str) -> bool:
        """Add a moment; return whether to stop."""
        fit.moments.append(
            Moment(fit.passes - fit.tried, clock() - self._began, objective, step, rejected, method)
        )
        return self._watch(fit.moments[-1], fit)


@dataclass
class TopicFitting:
    """The inputs of a fit.

    Attributes
    ----------
    documents : Documents, StreamedDocuments or UnitDocuments
        The corpus.
    spec : TopicSpec
        What the fit does.
    budget : Budget
        Memory budget of methods that draw tokens.
    """

    documents: Documents | StreamedDocuments | UnitDocuments
    spec: TopicSpec
    budget: Budget = NO_LIMIT

    @cached_property
    def tokens(self) -> CountSource:
        """The tokens of the documents."""
        documents: Any = self.documents  # in memory, others are refused before
        return CountSource(documents.matrix(), None if (documents.weight == 1).all() else documents.weight)

    @property
    def _here(self) -> Documents | StreamedDocuments:
        """The documents, or a sample of those in units."""
        return self.documents.few if isinstance(self.documents, UnitDocuments) else self.documents

    def fit(
        self, starts: Sequence[Array], seed: int, watch: Watch, keeper: NoStart | None = None
    ) -> TopicFit:
        """Return the fit from the best of the given topics; documents start uniform.

        ``keeper`` has the checkpoints.
        """
        with keeper or NoStart() as kept:
            fit = self._begin(starts, kept)
            if fit.phase == OVER:
                return fit
            clock = Clock(watch, fit.moments[-1].seconds if fit.moments else 0.0)
            try:
                self._by_phases(fit, starts, seed, clock, kept)
            except KeyboardInterrupt:
                fit.interrupted = True
            fit.fetch()
            fit.there = None
            if not fit.interrupted:
                fit.phase, fit.within = OVER, None
                kept.save(fit.kept, is_end=True)
        return fit

    def _begin(self, starts: Sequence[Array], keeper: NoStart) -> TopicFit:
        """Return the saved state of the fit, or its start."""
        kept = keeper.load()
        shares = self.documents.allocate((self.documents.n, len(self.spec.alpha)))
        for rows in row_blocks(shares):
            shares[rows] = 1.0 / len(self.spec.alpha)
        if kept is None:
            return TopicFit(
                starts[0], shares, has_background=self.spec.background and not self.spec.adds_background
            )
        with keeper.reading():
            fit = TopicFit(**kept)
            fit.doc_topic = shares if fit.doc_topic is None else fit.doc_topic
            check_form("doc_topic", fit.doc_topic, shares)
            for part in (fit.topics, *(() if fit.counts is None else (fit.counts,))):
                check_form("topics", part, starts[0])
            if fit.alpha is not None:
                check_form("alpha", fit.alpha, self.spec.alpha)
            if fit.phase not in range(OVER + 1):
                raise ValueError("its phase is unknown")
            for rows in row_blocks(shares):
                shares[rows] = fit.doc_topic[rows]
            fit.doc_topic = shares
            return fit

    def _by_phases(
        self, fit: TopicFit, starts: Sequence[Array], seed: int, clock: Clock, keeper: NoStart
    ) -> None:
        """Choose a start, read the documents once, and continue with the method: the phases that are left."""
        if fit.phase == CHOICE:
            with DeferredInterrupt() as interrupt:
                fit.topics, fit.tried = best_start(
                    starts, self._here, self.spec.alpha, self.spec.beta, interrupt.check
                )
            fit.passes, fit.phase = fit.tried, READING
        if not self.spec.is_em and self.spec.draws == "tokens":
            self._by_tokens(fit, self.spec.method, seed, clock, keeper)
            return
        if fit.phase == READING:
            stop = False
            if self.spec.first is not None:
                stop = self._by_documents(fit, self.spec.first, 1, seed, clock, keeper)
            fit.phase, fit.within = METHOD, None
            if stop and self.spec.is_em:
                return
        if not self.spec.is_em:
            self._by_documents(fit, self.spec.method, None, seed, clock, keeper)
        else:
            with DeferredInterrupt() as interrupt:
                self._em(fit, clock, keeper, interrupt.check)

    def e_step(
        self, fit: TopicFit, doc_topic: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """Return expected counts (K, V) and the log-likelihood; ``doc_topic`` (D, K) is replaced.

        Before there are counts, no token has added anything to them.
        """
        alpha = self.spec.alpha if fit.alpha is None else fit.alpha
        left_out = None
        if self.spec.leaves_one_out and fit.counts is not None:
            left_out = (totals_of(fit.counts, self.spec.beta), self.spec.beta)
        return self.documents.em_pass(doc_topic, fit.topics, alpha, left_out, between)

    def contrasted(self, counts: Array) -> Array:
        """Return the counts (K, V) that the M-step of a pass is made of."""
        if not self.spec.decorrelation:
            return counts
        return decorrelated(counts, self.spec.beta, self.spec.decorrelation, self.spec.background)

    def _em(self, fit: TopicFit, clock: Clock, keeper: NoStart, between: Callable[[], None]) -> None:
        """Iterate em, at least once; the objective of a moment is that at the beginning of its pass."""
        last, last_gain, calm, kept = (inf, inf, 0, None) if fit.within is None else fit.within
        spec, tol = self.spec, self.spec.gain
        momentum = Momentum(spec.momentum, self.documents)
        if isinstance(self.documents, DeviceDocuments) and not spec.learns_alpha:
            from swiftem.topics.torch_topics import DeviceTopics

            fit.there = DeviceTopics(
                self.documents.passes(spec.alpha),
                spec.beta,
                fit.topics,
                fit.doc_topic,
                fit.counts,
                leave_one_out=spec.leaves_one_out,
                contrast=(spec.background, SHARE, spec.decorrelation),
                momentum=spec.momentum,
                behind=kept,
            )
        else:
            with keeper.reading():
                momentum.restore(kept, fit.counts, fit.doc_topic)
        while not fit.converged:
            between()
            # An aborted pass has changed documents: checkpoints have their values before the pass.
            if fit.there is not None:
                is_first = spec.background and not fit.has_background
                least = -(spec.tol + last) * self.documents.total
                value = fit.there.step(between, add_background=is_first, least=least)
                fit.has_background = fit.has_background or is_first
            else:
                counts, value = self.e_step(fit, fit.doc_topic, between)
                if spec.background and not fit.has_background:
                    counts, fit.has_background = with_background(counts, fit.doc_topic), True
                elif spec.learns_alpha:
                    assert isinstance(self.documents, Documents | StreamedDocuments)
                    before = spec.alpha if fit.alpha is None else fit.alpha
                    fit.alpha = next_alpha(before, fit.doc_topic, self.documents)
                is_worse = last + value / self.documents.total < -spec.tol
                fit.counts = momentum.go(self.contrasted(counts), fit.doc_topic, is_worse)
                fit.topics = m_step(fit.counts, spec.beta)
            fit.passes += 1.0
            objective = -value / self.documents.total
            stop = clock.tell(fit, objective, 1.0, 0, "em")
            gain = last - objective
            # When topics begin to separate, gains are small and grow: this is not convergence.
            calm = calm + 1 if abs(gain) < tol and not gain > last_gain + 1e-3 * tol else 0
            last, last_gain, fit.converged = objective, gain, calm >= 2
            fit.within = (last, last_gain, calm, momentum.state)
            if fit.converged or stop or fit.passes + 1 > fit.tried + spec.max_passes + 1e-9:
                return
            keeper.save(fit.kept)

    def _by_documents(
        self, fit: TopicFit, method: Method, most: int | None, seed: int, clock: Clock, keeper: NoStart
    ) -> bool:
        """Batches of documents, ``most`` epochs of them, or until convergence."""
        documents, model = self.documents, DocumentModel(self.spec.alpha, self.spec.beta)
        documents.doc_topic, bound = fit.doc_topic, model.bind(documents)
        share = documents.total / (documents.total_weight * len(self.spec.alpha))

        def take(theta: Theta, s: Array) -> None:
            assert documents.doc_topic is not None
            fit.counts, fit.doc_topic = bound.counts(s), documents.doc_topic
            fit.topics = m_step(fit.counts, self.spec.beta)

        return self._by_run(
            fit,
            clock,
            keeper,
            take,
            model,
            documents,
            method,
            s0=(fit.topics.T * share).ravel(),
            seed=seed,
            n_iter=(most or self.spec.max_passes) * method.epoch(documents.n),
            rests=most is None,
        )

    def _by_tokens(self, fit: TopicFit, method: Method, seed: int, clock: Clock, keeper: NoStart) -> None:
        """The paper's setting: tokens, drawn one by one or in batches."""
        documents, source = self.documents, self.tokens
        if source.n < len(self.spec.alpha):
            raise ValueError(
                f"n_components must be at most {source.n}, the number of tokens that are drawn, "
                f"got {len(self.spec.alpha)}: use fewer topics, or method='em'."
            )
        model = PLSAModel.from_counts(
            len(self.spec.alpha), source, alpha=float(self.spec.alpha[0]), beta=float(self.spec.beta.flat[0])
        )

        def take(theta: Theta, s: Array) -> None:
            fit.topics, fit.doc_topic = theta.topic_word, theta.doc_topic
            fit.counts = model.unpack(s, n_words=documents.n_words).topic_word * source.total_weight

        # One pass is for the initial statistics; then n/b iterations cost this many.
        cost = method.evaluations + (method.renewal(0, source.n) is not None)
        epochs = max(1, int((self.spec.max_passes - 1) / cost))
        self._by_run(
            fit,
            clock,
            keeper,
            take,
            model,
            source,
            method,
            seed=seed,
            n_iter=epochs * method.epoch(source.n),
            theta0=model.theta(doc_topic=fit.doc_topic, topic_word=fit.topics),
        )

    def _by_run(
        self,
        fit: TopicFit,
        clock: Clock,
        keeper: NoStart,
        take: Callable[[Theta, Array], None],
        model: Any,
        source: Any,
        method: Method,
        *,
        rests: bool = True,
        **options: Any,
    ) -> bool:
        """Call :func:`swiftem.run`, with an evaluation per epoch; return whether the observer stopped it.

        ``take`` writes θ and s into the fit, ``rests`` is whether the run may end early on convergence.
        """
        epoch, gamma = method.epoch(source.n), resolve(method.step_size, source.n, method.batch_size)
        look = TopicLook(self._here, self.spec.alpha, self.spec.tol)
        calm, stop, before, looked_at = 0, False, fit.passes, -1
        if fit.within is not None:
            with keeper.reading():
                calm, stop, before, looked = fit.within
                look.restore(looked)

        def at_epoch(iterate: Iterate) -> bool:
            nonlocal calm, stop, looked_at
            if iterate.k == 0:
                return False
            looked_at = iterate.k
            take(iterate.theta, iterate.s)
            fit.passes = before + iterate.passes
            calm = calm + 1 if look.at(fit.topics, fit.passes) else 0
            fit.converged = calm >= 2 and rests
            stop = clock.tell(fit, look.objective, float(gamma(iterate.k)), iterate.rejected, method.name)
            fit.within = (calm, stop, before, look.snapshot())
            return stop or fit.converged or fit.passes >= fit.tried + self.spec.max_passes

        result = run_problem(
            Problem(model, source, budget=self.budget),
            method,
            **options,
            record_every=epoch,
            record=lambda iterate: None,
            callback=at_epoch,
            checkpoint=keeper.of_run(method, source.n, lambda: fit.kept() | {"doc_topic": None}),
        )
        if result.s is not None and result.n_iter != looked_at:
            take(result.theta, result.s)
            fit.passes = before + result.passes
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return stop
