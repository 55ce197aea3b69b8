"""A fit of topics: the choice of a start, a first reading by sem, passes of em, or runs of other methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swiftem._run import run_problem
from swiftem.core import schedules
from swiftem.core.algorithm import Iterate
from swiftem.core.checkpoint import Allocate, check_form
from swiftem.core.files import row_blocks
from swiftem.core.model import Model
from swiftem.core.problem import NO_LIMIT, Budget, Problem, relative_change
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta, Tree
from swiftem.data.documents.tokens import CountSource
from swiftem.fit.driver import Drive, FitState, Outcome, Phase, StartCheckpoint, StartWatch, Step, drive
from swiftem.fit.history import History
from swiftem.methods import Method
from swiftem.topics.compute.corpus import DeviceDocuments, Documents, nothing
from swiftem.topics.compute.streamed import StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.documents import DocumentModel, m_step
from swiftem.topics.em import HostPasses, contrasted, e_step
from swiftem.topics.first_topics import best_start
from swiftem.topics.read import AnyDocuments
from swiftem.topics.resolve import TopicSpec
from swiftem.topics.tokens import PLSAModel

if TYPE_CHECKING:
    from swiftem.topics.compute.torch import DeviceTopics

CALM = 2
"""Evaluations in a row with small gains, after which a fit has converged."""
LOOKED_AT = 500
"""Documents on which the likelihood of a stochastic method is evaluated: always the same."""
ROUNDS, TOLERANCE = 20, 1e-2


@dataclass(kw_only=True)
class TopicFit(FitState):
    """State of a fit.

    Attributes
    ----------
    topics : ndarray, shape (K, V)
        Words of topics.
    doc_topic : ndarray, shape (D, K)
        Topics of documents.
    alpha : ndarray, shape (K,)
        α of the next pass.
    counts : ndarray, shape (K, V)
        The expected counts that ``topics`` are the M-step of; None before the first pass.
    has_background : bool
        Whether topic 0 has become the background.
    fetch : callable
        Copies topics, doc_topic and counts from a device, if they are there.
    """

    topics: Array
    doc_topic: Array
    alpha: Array
    counts: Array | None = None
    has_background: bool = False
    fetch: Callable[[], None] = nothing

    def kept(self) -> dict[str, Tree]:
        """Return what checkpoints store."""
        self.fetch()
        return {name: value for name, value in vars(self).items() if name != "fetch"}

    def restore(self, kept: Mapping[str, Tree]) -> None:
        """Restore what a checkpoint stored; raise an error if it has another form."""
        shares, parts = self.doc_topic, dict(kept)
        stored = parts.pop("doc_topic")
        for name in ("topics", "alpha"):
            check_form(name, parts[name], getattr(self, name))
        if parts["counts"] is not None:
            check_form("counts", parts["counts"], self.topics)
        super().restore({**parts, "doc_topic": shares})
        if stored is not None:  # else the checkpoint of a run has them
            check_form("doc_topic", stored, shares)
            for rows in row_blocks(shares):
                shares[rows] = stored[rows]


def fit_topics(
    documents: AnyDocuments,
    spec: TopicSpec,
    starts: Sequence[Array],
    seed: int,
    budget: Budget,
    watch: StartWatch,
    keeper: StartCheckpoint,
) -> TopicFit:
    """Return the fit from the best of the given topics; documents start uniform.

    Parameters
    ----------
    documents : Documents, StreamedDocuments or UnitDocuments
        The corpus.
    spec : TopicSpec
        What the fit does.
    starts : sequence of ndarray, shape (K, V)
        Candidates for the start.
    seed : int
        Seed of stochastic methods.
    budget : Budget
        Memory budget of methods that draw tokens.
    watch, keeper
        The observer and the checkpoints.
    """
    shares = documents.allocate((documents.n, len(spec.alpha)))
    for rows in row_blocks(shares):
        shares[rows] = 1.0 / len(spec.alpha)
    has_background = spec.background and not spec.adds_background
    fit = TopicFit(topics=starts[0], doc_topic=shares, alpha=spec.alpha, has_background=has_background)
    steps: list[Step] = [Choice(fit, documents, spec, starts)] if len(starts) > 1 else []
    if spec.first is not None:
        steps.append(Run(fit, documents, spec, spec.first, seed, epochs=1))
    if spec.is_em:
        steps.append(Em(fit, documents, spec))
    else:
        steps.append(Run(fit, documents, spec, spec.method, seed, budget=budget))
    phases = [Phase(step, {Outcome.OUT_OF_PASSES: number}) for number, step in enumerate(steps[:-1], 1)]
    drive(fit, [*phases, Phase(steps[-1])], max_passes=spec.max_passes, watch=watch, keeper=keeper)
    fit.fetch()
    return fit


def memory_allocator(documents: AnyDocuments, spec: TopicSpec, budget: Budget) -> Allocate:
    """Return what allocates the memory of a method that draws tokens."""
    size = len(spec.alpha) * (documents.n + documents.n_words)
    return budget.reserve(_tokens(documents), spec.method, statistics=size).make_memory


def fitted_attributes(fit: TopicFit, documents: AnyDocuments, spec: TopicSpec) -> dict[str, Any]:
    """Return the attributes of the fitted estimator, for which one more pass is made."""
    ahead = documents.allocate(fit.doc_topic.shape)
    for rows in row_blocks(ahead, fit.doc_topic):
        ahead[rows] = fit.doc_topic[rows]
    after, value = e_step(fit, documents, spec, ahead)
    counts = after if fit.counts is None else fit.counts
    by_batches = spec.draws == "documents" and not spec.is_em
    made = {
        "alpha_": fit.alpha,
        "background_": 0 if fit.has_background else None,
        "components_": np.ascontiguousarray(fit.topics),
        "converged_": fit.converged,
        # Batches leave documents in the state of their last reading.
        "doc_topic_": ahead if by_batches else fit.doc_topic,
        "history_": History(fit.moments),
        "log_likelihood_": value / documents.total,
        "method_": spec.method.name,
        "n_iter_": ceil(fit.passes - 1e-9),
        "stationarity_": relative_change(counts, contrasted(after, spec)),
        "topic_counts_": after.sum(axis=1),
        "_word_counts": np.ascontiguousarray(counts),
        "_is_stream": False,
    }
    if isinstance(documents, UnitDocuments):  # they stay with the workers
        del made["doc_topic_"]
    return made


def _some(documents: AnyDocuments) -> Documents | StreamedDocuments:
    """Return the documents, or a sample of those in units."""
    return documents.few if isinstance(documents, UnitDocuments) else documents


def _tokens(documents: AnyDocuments) -> CountSource:
    """Return the tokens of documents."""
    assert isinstance(documents, Documents)  # resolve refuses others
    return CountSource(documents.matrix(), None if (documents.weight == 1).all() else documents.weight)


class Choice:
    """Chooses the best of several starts."""

    def __init__(
        self, fit: TopicFit, documents: AnyDocuments, spec: TopicSpec, starts: Sequence[Array]
    ) -> None:
        self._fit, self._documents, self._spec, self._starts = fit, documents, spec, starts

    def begin(self, drive: Drive) -> None:
        """Do nothing."""

    def advance(self, drive: Drive) -> Outcome:
        """Compare the starts; their passes do not count."""
        some, spec = _some(self._documents), self._spec
        self._fit.topics = best_start(self._starts, some, spec.alpha, spec.beta, drive.check)
        return Outcome.OUT_OF_PASSES

    def kept(self) -> None:
        """Return nothing: a choice is made again."""

    def restore(self, kept: None) -> None:
        """Do nothing."""


class Em:
    """em: a pass at a time, at least one; the objective of a moment is that at the beginning of its pass."""

    _passes: HostPasses | DeviceTopics

    def __init__(self, fit: TopicFit, documents: AnyDocuments, spec: TopicSpec) -> None:
        self._fit, self._documents, self._spec = fit, documents, spec
        self._last, self._last_gain, self._calm = inf, inf, 0

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        self._begin(None)

    def _begin(self, state: Any) -> None:
        documents = self._documents
        if isinstance(documents, DeviceDocuments) and not self._spec.learns_alpha:
            from swiftem.topics.compute.torch import DeviceTopics

            fit, spec = self._fit, self._spec
            passes = self._passes = DeviceTopics(
                documents.passes(spec.alpha),
                spec.beta,
                fit.topics,
                fit.doc_topic,
                fit.counts,
                leave_one_out=spec.leaves_one_out,
                background=spec.background,
                decorrelation=spec.decorrelation,
                momentum=spec.momentum,
                state=state,
            )

            def fetch() -> None:
                fit.topics, fit.doc_topic[:], fit.counts = passes.read()

            fit.fetch = fetch
        else:
            self._passes = HostPasses(self._fit, documents, self._spec, state)

    def advance(self, drive: Drive) -> Outcome | None:
        """Make a pass."""
        fit, spec, total = self._fit, self._spec, self._documents.total
        drive.check()
        # An aborted pass has changed documents: checkpoints have their values before the pass.
        adds, least = spec.background and not fit.has_background, -(spec.tol + self._last) * total
        objective = -self._passes.step(drive.check, add_background=adds, least=least) / total
        fit.has_background |= adds
        fit.passes += 1.0
        drive.note(objective, 1.0, "em", fit)
        gain = self._last - objective
        # When topics begin to separate, gains are small and grow: this is not convergence.
        grows = gain > self._last_gain + 1e-3 * spec.gain
        self._calm = self._calm + 1 if abs(gain) < spec.gain and not grows else 0
        self._last, self._last_gain = objective, gain
        if self._calm >= CALM:
            return Outcome.CONVERGED
        return Outcome.OUT_OF_PASSES if drive.left < 1.0 - 1e-9 else None

    def kept(self) -> Tree:
        """Return the last gains and the state of the momentum."""
        return self._last, self._last_gain, self._calm, self._passes.state

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned."""
        self._last, self._last_gain, self._calm, state = kept
        self._begin(state)


class TopicLook:
    """Evaluates the mean log-likelihood per token on a fixed set of documents, folded in."""

    def __init__(self, documents: Documents | StreamedDocuments, alpha: Array, tol: float) -> None:
        index = np.arange(documents.n)
        if documents.n > LOOKED_AT:
            index = np.sort(np.random.default_rng(0).choice(documents.n, LOOKED_AT, replace=False))
        self._documents: Documents = documents.some(index)
        self._alpha, self._tol = alpha, tol
        self._all = len(index) == documents.n
        self._last: Array | None = None
        self._last_passes = 0.0
        self.objective = inf

    def at(self, topics: Array, passes: float) -> bool:
        """Evaluate; return whether the gain per pass is below ``tol`` or indistinguishable from zero."""
        chosen = self._documents
        _, found = chosen.fold_in(topics, self._alpha, max_iter=ROUNDS, tol=TOLERANCE)
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

    def snapshot(self) -> tuple[Array | None, float, float]:
        """Return the state that the next evaluation depends on."""
        return self._last, self._last_passes, self.objective

    def restore(self, snapshot: tuple[Array | None, float, float]) -> None:
        """Restore the state of an earlier evaluation."""
        if snapshot[0] is not None and np.shape(snapshot[0]) != self._documents.weight.shape:
            raise ValueError("the objective was evaluated on other documents")
        self._last, self._last_passes, self.objective = snapshot


class Draws(NamedTuple):
    """A run of a stochastic method: its arguments, and what writes θ and s into the fit."""

    model: Model
    source: Source
    take: Callable[[Theta, Array], None]
    n_iter: int
    start: Mapping[str, Any]


class Run:
    """A run of a stochastic method, on batches of documents or on tokens, evaluated once per epoch.

    Parameters
    ----------
    fit, documents, spec
        The fit.
    method : Method
        The method.
    seed : int
        Seed of the draws.
    epochs : int, optional
        Number of epochs; by default until convergence.
    budget : Budget
        Memory budget.
    """

    def __init__(
        self,
        fit: TopicFit,
        documents: AnyDocuments,
        spec: TopicSpec,
        method: Method,
        seed: int,
        *,
        epochs: int | None = None,
        budget: Budget = NO_LIMIT,
    ) -> None:
        self._fit, self._documents, self._spec, self._method = fit, documents, spec, method
        self._seed, self._epochs, self._budget = seed, epochs, budget
        self._calm, self._before = 0, 0.0
        self._state: tuple[Array | None, float, float] | None = None

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        self._before = self._fit.passes

    def advance(self, drive: Drive) -> Outcome:
        """Make the run."""
        fit, method, spec = self._fit, self._method, self._spec
        look = TopicLook(_some(self._documents), spec.alpha, spec.tol)
        if self._state is not None:
            look.restore(self._state)
        draws = self._of_tokens() if spec.draws == "tokens" else self._of_documents()
        n, looked_at = draws.source.n, -1
        gamma = schedules.resolve(method.step_size, n, method.batch_size)

        def at_epoch(iterate: Iterate) -> bool:
            nonlocal looked_at
            if iterate.k == 0:
                return False
            looked_at = iterate.k
            draws.take(iterate.theta, iterate.s)
            fit.passes, fit.rejected = self._before + iterate.passes, iterate.rejected
            self._calm = self._calm + 1 if look.at(fit.topics, fit.passes) else 0
            self._state = look.snapshot()
            drive.note(look.objective, float(gamma(iterate.k)), method.name, fit)
            return drive.is_stopped or self._rests or drive.left <= 0.0

        result = run_problem(
            Problem(draws.model, draws.source, budget=self._budget),
            method,
            **draws.start,
            seed=self._seed,
            n_iter=draws.n_iter,
            record_every=method.epoch(n),
            record=lambda iterate: None,
            callback=at_epoch,
            checkpoint=drive.of_run(method, n, doc_topic=None),
        )
        if result.s is not None and result.n_iter != looked_at:
            draws.take(result.theta, result.s)
            fit.passes = self._before + result.passes
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return Outcome.CONVERGED if self._rests else Outcome.OUT_OF_PASSES

    @property
    def _rests(self) -> bool:
        return self._calm >= CALM and self._epochs is None

    def _of_documents(self) -> Draws:
        """Return batches of documents."""
        fit, documents, spec = self._fit, self._documents, self._spec
        documents.doc_topic, model = fit.doc_topic, DocumentModel(spec.alpha, spec.beta)
        bound = model.bind(documents)

        def take(theta: Theta, s: Array) -> None:
            assert documents.doc_topic is not None
            fit.counts, fit.doc_topic = bound.counts(s), documents.doc_topic
            fit.topics = m_step(fit.counts, spec.beta)

        s0 = (fit.topics.T * (documents.total / (documents.total_weight * len(spec.alpha)))).ravel()
        epochs = self._epochs or spec.max_passes
        return Draws(model, documents, take, epochs * self._method.epoch(documents.n), {"s0": s0})

    def _of_tokens(self) -> Draws:
        """Return tokens, drawn one by one or in batches, as in the paper."""
        fit, spec, method, source = self._fit, self._spec, self._method, _tokens(self._documents)
        if source.n < len(spec.alpha):
            raise ValueError(
                f"n_components must be at most {source.n}, the number of tokens that are drawn, "
                f"got {len(spec.alpha)}: use fewer topics, or method='em'."
            )
        model = PLSAModel.from_counts(
            len(spec.alpha), source, alpha=float(spec.alpha[0]), beta=float(spec.beta.flat[0])
        )
        n_words = self._documents.n_words

        def take(theta: Theta, s: Array) -> None:
            fit.topics, fit.doc_topic = theta.topic_word, theta.doc_topic
            fit.counts = model.unpack(s, n_words=n_words).topic_word * source.total_weight

        # One pass is for the initial statistics; then n/b iterations cost this many.
        cost = method.evaluations + (method.renewal(0, source.n) is not None)
        epochs = max(1, int((spec.max_passes - 1) / cost))
        theta0 = model.theta(doc_topic=fit.doc_topic, topic_word=fit.topics)
        return Draws(model, source, take, epochs * method.epoch(source.n), {"theta0": theta0})

    def kept(self) -> Tree:
        """Return the state of the evaluations."""
        return self._calm, self._before, self._state

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned."""
        self._calm, self._before, self._state = kept
