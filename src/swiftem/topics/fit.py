r"""A fit of topics: initial topics, a first reading by sem, passes of em, or runs of other methods.

**Starts.** From random topics em spends its first passes on topics that are alike. k-means on at most 5,000
documents costs a few passes and saves dozens. Several starts are compared, as their results differ by up to
4 %.

**Momentum.** After a pass from :math:`x` to :math:`F(x)`, the next one begins at
:math:`F(x) + \mu (F(x) - F(x'))`, where :math:`F(x')` is the result of the pass before (Nesterov, 1983).
Here x are the expected counts of words in topics, and the topics of documents. No number falls below a tenth
of F(x). If the objective is worse by more than the tolerance, the next pass begins at F(x).

**Learned α.** With counts :math:`n_{dk}` of topics in documents, :math:`N_d = \sum_k n_{dk}`, weights
:math:`w_d` and :math:`A = \sum_k \alpha_k`, the fixed-point step of Minka (2000), which climbs the likelihood
of Dirichlet-multinomial distributions, is

.. math::  \alpha_k \leftarrow \alpha_k\,
           \frac{\sum_d w_d\,[\psi(n_{dk} + \alpha_k) - \psi(\alpha_k)]}
                {\sum_d w_d\,[\psi(N_d + A) - \psi(A)]}.

Of counts, only means :math:`\bar n_{dk}` are known. For small α, ψ bends so much that ψ of the mean
overstates the mean of ψ: a tenth of a token in each document would count as if it were whole ones. A count is
therefore zero with the probability :math:`e^{-\bar n}` of a Poisson distribution, and else its mean if it is
not zero:

.. math::  \mathrm{E}[\psi(n + \alpha) - \psi(\alpha)] \approx
           p\,[\psi(\bar n / p + \alpha) - \psi(\alpha)], \qquad p = 1 - e^{-\bar n},

as Teh, Newman and Welling (2007) do it for their variational bound. A pass leaves topics of documents
:math:`\theta_{dk} = (\bar n_{dk} + \alpha_k) / (N_d + A)`, from which :math:`\bar n_{dk}` is known: no counts
are stored. One step follows each pass. Topics that are in many documents, such as a background, get a
larger α.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
from swiftem.fit.driver import Drive, FitState, Outcome, Phase, StartCheckpoint, StartWatch, drive
from swiftem.fit.history import History
from swiftem.kernels.threads import in_order, one_thread_blas, one_thread_openmp
from swiftem.methods import Method
from swiftem.topics.compute.corpus import DeviceDocuments, Documents, StreamedDocuments, nothing
from swiftem.topics.compute.numpy import LEAST, decorrelated, make_room, with_background
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.documents import DocumentModel, m_step, totals_of
from swiftem.topics.read import AnyDocuments
from swiftem.topics.resolve import TopicSpec, given_topics
from swiftem.topics.tokens import PLSAModel

if TYPE_CHECKING:
    from swiftem.topics.compute.torch import DeviceTopics

CALM = 2
"""Evaluations in a row with small gains, after which a fit has converged."""
LOOKED_AT = 500
"""Documents on which the likelihood of a stochastic method is evaluated: always the same."""
ROUNDS, TOLERANCE = 20, 1e-2
TRIED_ON, TRIED_FOR = 2_000, 10
"""Maximum number of documents, and passes, used to compare starts."""
OF_CLUSTER, OF_ALL = 0.7, 0.25
"""Parts of a start: its cluster, the whole corpus, and random noise, so that no two are the same."""
ROWS = 1024
"""Documents that are extrapolated at a time: they stay in the cache."""
RANGE = 1e-3, 1e3
"""A learned α stays between these: a topic of α = 0 could not return to a document."""
MOST_DOCUMENTS = 5_000
"""Documents that α is learned from, at equal distances: as many say it precisely, and ψ is slow."""


@dataclass(kw_only=True)
class TopicFit(FitState):
    """A fit: the corpus, what is done with it, and the state.

    Attributes
    ----------
    documents : Documents, StreamedDocuments or UnitDocuments
        The corpus.
    spec : TopicSpec
        What the fit does.
    starts : sequence of ndarray, shape (K, V)
        Candidates, of which the first phase chooses one.
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

    documents: AnyDocuments
    spec: TopicSpec
    starts: Sequence[Array]
    topics: Array
    doc_topic: Array
    alpha: Array
    counts: Array | None = None
    has_background: bool = False
    fetch: Callable[[], None] = nothing

    def kept(self) -> dict[str, Tree]:
        """Return what checkpoints store."""
        self.fetch()
        given = ("documents", "spec", "starts", "fetch")
        return {name: value for name, value in vars(self).items() if name not in given}

    def restore(self, kept: Mapping[str, Tree]) -> None:
        """Restore what a checkpoint stored; raise an error if it has another form."""
        shares, parts = self.doc_topic, dict(kept)
        stored = parts.pop("doc_topic")
        for name in ("topics", "alpha"):
            check_form(name, parts[name], getattr(self, name))
        if parts["counts"] is not None:
            check_form("counts", parts["counts"], self.topics)
        super().restore({**parts, "doc_topic": shares})
        self.starts = ()
        if stored is not None:  # else the checkpoint of a run has them
            check_form("doc_topic", stored, shares)
            for rows in row_blocks(shares):
                shares[rows] = stored[rows]

    def choose_start(self, check: Callable[[], None]) -> None:
        """Choose one of several starts, once; their passes do not count."""
        if len(self.starts) > 1:
            some = sample_of(self.documents)
            self.topics = best_start(self.starts, some, self.spec.alpha, self.spec.beta, check)
        self.starts = ()

    def e_step(self, doc_topic: Array, check: Callable[[], None] = nothing) -> tuple[Array, float]:
        """Return expected counts (K, V) and the log-likelihood; ``doc_topic`` (D, K) is replaced.

        Before there are counts, no token has added anything to them.
        """
        left_out, beta = None, self.spec.beta
        if self.spec.leaves_one_out and self.counts is not None:
            left_out = (totals_of(self.counts, beta), beta)
        return self.documents.em_pass(doc_topic, self.topics, self.alpha, left_out, check)

    def contrasted(self, counts: Array) -> Array:
        """Return the counts (K, V) that the M-step of a pass is made of."""
        spec = self.spec
        if not spec.decorrelation:
            return counts
        return decorrelated(counts, m_step(counts, spec.beta), spec.decorrelation, spec.background)


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
    some = sample_of(documents)
    return [clustered_topics(some, n_components, random_state, spec.clustered) for _ in range(spec.n_starts)]


def sample_of(documents: AnyDocuments) -> Documents | StreamedDocuments:
    """Return the documents, or a sample of those in units."""
    return documents.few if isinstance(documents, UnitDocuments) else documents


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
    fit = TopicFit(
        documents=documents,
        spec=spec,
        starts=starts,
        topics=starts[0],
        doc_topic=shares,
        alpha=spec.alpha,
        has_background=has_background,
    )
    phases = [Phase(Em(fit) if spec.is_em else Run(fit, spec.method, seed, budget=budget))]
    if spec.first is not None:
        phases.insert(0, Phase(Run(fit, spec.first, seed, epochs=1), {Outcome.OUT_OF_PASSES: 1}))
    drive(fit, phases, max_passes=spec.max_passes, watch=watch, keeper=keeper)
    fit.fetch()
    return fit


def memory_allocator(documents: AnyDocuments, spec: TopicSpec, budget: Budget) -> Allocate:
    """Return what allocates the memory of a method that draws tokens."""
    size = len(spec.alpha) * (documents.n + documents.n_words)
    return budget.reserve(_tokens(documents), spec.method, statistics=size).make_memory


def fitted_attributes(fit: TopicFit) -> dict[str, Any]:
    """Return the attributes of the fitted estimator, for which one more pass is made."""
    documents, spec = fit.documents, fit.spec
    ahead = documents.allocate(fit.doc_topic.shape)
    for rows in row_blocks(ahead, fit.doc_topic):
        ahead[rows] = fit.doc_topic[rows]
    after, value = fit.e_step(ahead)
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
        "stationarity_": relative_change(counts, fit.contrasted(after)),
        "topic_counts_": after.sum(axis=1),
        "_word_counts": np.ascontiguousarray(counts),
        "_is_stream": False,
    }
    if isinstance(documents, UnitDocuments):  # they stay with the workers
        del made["doc_topic_"]
    return made


def _tokens(documents: AnyDocuments) -> CountSource:
    """Return the tokens of documents."""
    assert isinstance(documents, Documents)  # resolve refuses others
    return CountSource(documents.matrix(), None if (documents.weight == 1).all() else documents.weight)


def next_alpha(alpha: Array, doc_topic: Array, length: Array, weight: Array) -> Array:
    """Return α (K,) after one fixed-point step.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
        α of the pass that has made ``doc_topic``; positive.
    doc_topic : ndarray, shape (D, K)
        Topics of documents after the pass.
    length, weight : ndarray, shape (D,)
        Tokens of the documents, without weights, and the documents' weights.

    Examples
    --------
    >>> counts, alpha = np.array([[9.0, 1.0], [5.0, 5.0]]), np.full(2, 0.1)
    >>> next_alpha(alpha, (counts + alpha) / 10.2, np.full(2, 10.0), np.ones(2)).round(3)
    array([0.162, 0.123])
    """
    from scipy.special import digamma

    some = np.arange(len(doc_topic))
    if len(some) > MOST_DOCUMENTS:
        some = np.linspace(0, len(some) - 1, MOST_DOCUMENTS).astype(np.intp)
    length, weight, total = length[some], weight[some], alpha.sum()
    counts = np.maximum(doc_topic[some] * (length + total)[:, None] - alpha, 0.0)
    positive = -np.expm1(-counts)
    if_positive = np.divide(counts, positive, out=np.ones_like(counts), where=positive > 0.0)
    more = positive * (digamma(if_positive + alpha) - digamma(alpha))
    above = (weight[:, None] * more).sum(axis=0)  # a product by BLAS would depend on its threads
    below = (weight * (digamma(length + total) - digamma(total))).sum()
    return np.clip(alpha * above / below, *RANGE) if below > 0.0 else alpha


class HostPasses:
    """em's passes over documents on the CPU, or of units of documents.

    Attributes
    ----------
    state : tuple of ndarrays or None
        State of the momentum: counts (K, V) and topics of documents (D, K) after the last pass.
    """

    def __init__(self, fit: TopicFit, state: Any = None) -> None:
        self._fit = fit
        self.state: tuple[Array, Array] | None = None
        if state is not None:
            before, shares = state
            check_form("counts", before, fit.counts)
            check_form("doc_topic", shares, fit.doc_topic)
            self._remember(before, shares)

    def step(self, check: Callable[[], None], *, add_background: bool, least: float) -> float:
        """Make a pass and the M-steps; return the log-likelihood before them.

        ``add_background`` is whether topic 0 becomes the background in this pass. If the log-likelihood is
        less than ``least``, the next pass begins where this one ends, without momentum.
        """
        fit, spec, documents = self._fit, self._fit.spec, self._fit.documents
        counts, value = fit.e_step(fit.doc_topic, check)
        if add_background:
            counts, place = with_background(counts)
            for rows in row_blocks(fit.doc_topic):
                make_room(fit.doc_topic[rows], place)
        elif spec.learns_alpha:
            assert not isinstance(documents, UnitDocuments)  # resolve refuses them
            fit.alpha = next_alpha(fit.alpha, fit.doc_topic, documents.length, documents.weight)
        fit.counts = fit.contrasted(counts)
        if spec.momentum:
            fit.counts = self.extrapolate(fit.counts, value < least)
        fit.topics = m_step(fit.counts, spec.beta)
        return value

    def extrapolate(self, counts: Array, is_worse: bool) -> Array:
        """Return the counts that the next pass begins at; the fit's topics of documents are changed likewise.

        Parameters
        ----------
        counts : ndarray, shape (K, V)
            The result of a pass.
        is_worse : bool
            Whether the point that it began at was worse than the one before.
        """
        doc_topic = self._fit.doc_topic
        if self.state is None or is_worse:
            self._remember(counts, doc_topic)
            return counts
        before, shares = self.state
        for block in row_blocks(shares, doc_topic):
            edges = pairwise([*range(block.start, block.stop, ROWS), block.stop])
            parts = [(doc_topic[slice(*ends)], shares[slice(*ends)]) for ends in edges]
            for _ in in_order(self._extrapolate_documents, parts):
                pass
        self.state = counts, shares
        return self._ahead(counts, before)

    def _remember(self, counts: Array, doc_topic: Array) -> None:
        shares = self._fit.documents.allocate(doc_topic.shape) if self.state is None else self.state[1]
        for rows in row_blocks(shares, doc_topic):
            shares[rows] = doc_topic[rows]
        self.state = counts, shares

    def _extrapolate_documents(self, doc_topic: Array, shares: Array) -> None:
        """Change the topics of some documents; ``shares`` are those after the last pass, before and after."""
        now = doc_topic.copy()
        found = self._ahead(now, shares)
        np.divide(found, found.sum(axis=1, keepdims=True), out=doc_topic)
        shares[:] = now

    def _ahead(self, now: Array, before: Array) -> Array:
        found = now - before
        found *= self._fit.spec.momentum
        found += now
        return np.maximum(found, LEAST * now, out=found)


class Em:
    """em: a pass at a time, at least one; the objective of a moment is that at the beginning of its pass."""

    _passes: HostPasses | DeviceTopics

    def __init__(self, fit: TopicFit) -> None:
        self._fit, self._last, self._last_gain, self._calm = fit, inf, inf, 0

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        self._fit.choose_start(drive.check)
        self._begin(None)

    def _begin(self, state: Any) -> None:
        fit, spec, documents = self._fit, self._fit.spec, self._fit.documents
        if isinstance(documents, DeviceDocuments) and not spec.learns_alpha:
            from swiftem.topics.compute.torch import DeviceTopics

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
            self._passes = HostPasses(fit, state)

    def advance(self, drive: Drive) -> Outcome | None:
        """Make a pass."""
        fit, spec, total = self._fit, self._fit.spec, self._fit.documents.total
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
    fit : TopicFit
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
        method: Method,
        seed: int,
        *,
        epochs: int | None = None,
        budget: Budget = NO_LIMIT,
    ) -> None:
        self._fit, self._method, self._seed = fit, method, seed
        self._epochs, self._budget = epochs, budget
        self._calm, self._before = 0, 0.0
        self._look: tuple[Array | None, float, float] = (None, 0.0, inf)

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        self._fit.choose_start(drive.check)
        self._before = self._fit.passes

    def advance(self, drive: Drive) -> Outcome:
        """Make the run."""
        fit, method = self._fit, self._method
        draws = self._of_tokens() if fit.spec.draws == "tokens" else self._of_documents()
        n, looked_at = draws.source.n, -1
        gamma = schedules.resolve(method.step_size, n, method.batch_size)

        def at_epoch(iterate: Iterate) -> bool:
            nonlocal looked_at
            if iterate.k == 0:
                return False
            looked_at = iterate.k
            draws.take(iterate.theta, iterate.s)
            fit.passes, fit.rejected = self._before + iterate.passes, iterate.rejected
            self._calm = self._calm + 1 if self._is_calm() else 0
            drive.note(self._look[2], float(gamma(iterate.k)), method.name, fit)
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

    @cached_property
    def _looked_at(self) -> Documents:
        """Documents on which the mean log-likelihood per token is evaluated, folded in: always the same."""
        some = sample_of(self._fit.documents)
        index = np.arange(some.n)
        if some.n > LOOKED_AT:
            index = np.sort(np.random.default_rng(0).choice(some.n, LOOKED_AT, replace=False))
        return some.some(index)

    def _is_calm(self) -> bool:
        """Evaluate; return whether the gain per pass is below ``tol`` or indistinguishable from zero."""
        fit, chosen, tol = self._fit, self._looked_at, self._fit.spec.tol
        _, found = chosen.fold_in(fit.topics, fit.spec.alpha, max_iter=ROUNDS, tol=TOLERANCE)
        weighed = chosen.weight * found / max(chosen.total, 1e-300)
        (last, last_passes, before), objective = self._look, -float(weighed.sum())
        self._look = weighed, fit.passes, objective
        if last is None:
            return False
        noise, change = 0.0, weighed - last
        if chosen.n < sample_of(fit.documents).n and tol:
            noise = 2.0 * sqrt(float(((change - change.mean()) ** 2).sum()))
        return abs(before - objective) < max(tol * (fit.passes - last_passes), noise)

    def _of_documents(self) -> Draws:
        """Return batches of documents."""
        fit, documents, spec = self._fit, self._fit.documents, self._fit.spec
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
        fit, spec, method, source = self._fit, self._fit.spec, self._method, _tokens(self._fit.documents)
        if source.n < len(spec.alpha):
            raise ValueError(
                f"n_components must be at most {source.n}, the number of tokens that are drawn, "
                f"got {len(spec.alpha)}: use fewer topics, or method='em'."
            )
        model = PLSAModel.from_counts(
            len(spec.alpha), source, alpha=float(spec.alpha[0]), beta=float(spec.beta.flat[0])
        )
        n_words = fit.documents.n_words

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
        return self._calm, self._before, self._look

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned; raise ValueError for evaluations of other documents."""
        self._calm, self._before, self._look = kept
        last = self._look[0]
        if last is not None and np.shape(last) != self._looked_at.weight.shape:
            raise ValueError("the objective was evaluated on other documents")
