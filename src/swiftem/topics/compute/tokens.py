"""pLSA by tokens in compiled code: full passes on all cores, and iterations that cost O(b·K)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task, step_sizes
from swiftem.core.compute import Compute
from swiftem.core.method import Update, declared
from swiftem.core.schedules import constant
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.documents.tokens import CountSource, TokenSource
from swiftem.data.parts import NONE, read_only
from swiftem.data.samples import Drawn, Samples
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.threads import in_order, part_ends
from swiftem.topics.tokens import BoundPLSA, PLSAModel, PLSATheta

__all__ = ["Before", "Tokens", "TokensCompute", "TokensLoop", "TokensSnapshot", "is_unrolled", "read_tokens"]

BLOCK = 1 << 16
"""Tokens read at once."""

RENEW_TOTALS = 1 << 20
"""Iterations after which the topics' totals are recomputed, so that rounding errors do not accumulate."""
MOST_TOKENS = 2_000_000_000
"""Maximum number of tokens that are expanded."""

Numbers = NDArray[np.uint32]


class Tokens(NamedTuple):
    """``place`` (n, 2): document and word of each token; ``weight`` (n,), or (0,) if all are equal."""

    place: Numbers
    weight: Array


def is_unrolled(source: Source) -> bool:
    """Return whether tokens are kept one by one: repeated ones of large counts are not."""
    return type(source) is not CountSource or source.is_unrolled


def is_readable(source: Source) -> bool:
    """Return whether compiled code can have the tokens of a source."""
    return source.access == "random" and not (is_unrolled(source) and source.n > MOST_TOKENS)


def read_tokens(source: Source) -> Tokens:
    """Return all tokens of a source, expanded."""
    if type(source) is CountSource:
        document, word, count, weight = source.entries()
        place = np.stack([document.astype(np.uint32), word.astype(np.uint32)], axis=1)
        if count is not None:
            place = np.repeat(place, count, axis=0)
            weight = None if weight is None else np.repeat(weight, count)
        return Tokens(place, _unless_ones(weight))
    if type(source) is TokenSource:
        return Tokens(source.y.astype(np.uint32), _unless_ones(source.weight))
    place = np.empty((source.n, 2), dtype=np.uint32)
    weight = np.empty(source.n)
    for batch in source.blocks(BLOCK):
        place[batch.index] = batch.y
        weight[batch.index] = batch.weight
    return Tokens(place, _unless_ones(weight))


def _unless_ones(weight: Array | None) -> Array:
    return np.empty(0) if weight is None or (weight == 1).all() else weight


class TokensCompute(Compute):
    """E-steps of pLSA whose full passes are compiled and use all cores.

    Results do not depend on the number of threads: parts are fixed, and their sums are added in order.
    """

    _model: BoundPLSA

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches for declared methods, else single iterations.

        A subclass of the model may differ, so its type is compared exactly.
        """
        update = declared(task.method)
        if update is None or not is_served(update) or type(self._model.model) is not PLSAModel:
            return Algorithm1(task)
        return TokensLoop(task, update)

    @cached_property
    def tokens(self) -> Tokens:
        """All tokens, expanded."""
        return read_tokens(self._source)

    @cached_property
    def _entries(self) -> Any:
        from swiftem.topics.compute.tokens_kernels import Entries

        if type(self._source) is CountSource:
            document, word, count, weight = self._source.entries()
            factor = np.ones(len(word)) if weight is None else weight
            begin = np.empty(0, dtype=np.intp)
            if count is not None:
                factor, begin = factor * count, np.concatenate([[0], np.cumsum(count)])
            return Entries(document.astype(np.uint32), word.astype(np.uint32), factor, begin)
        place, given = self.tokens
        factor = given if len(given) else np.ones(len(place))
        return Entries(place[:, 0].copy(), place[:, 1].copy(), factor, np.empty(0, dtype=np.intp))

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Parts of the entries, each with more entries than rows in its sums."""
        document, word = self._entries[:2]
        rows = self._model.n_words
        if not (document[1:] >= document[:-1]).all():  # then a part may have every document
            rows += self._model.n_documents
        return part_ends(len(word), least_rows=max(4096, rows))

    def _pass(self, theta: PLSATheta, remember: bool) -> tuple[Array, Array | None]:
        from swiftem.topics.compute.tokens_kernels import full_pass

        memory = self.allocate((self.n, theta.doc_topic.shape[1]), self.memory_dtype) if remember else None
        given = (self._entries, *_working(theta), memory)
        return self._sum(in_order(full_pass, [(*given, *ends) for ends in self._parts])), memory

    def objective(self, theta: PLSATheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        from swiftem.topics.compute.tokens_kernels import log_likelihood

        given = (self._entries, *_reported(theta))
        total = float(sum(in_order(log_likelihood, [(*given, *ends) for ends in self._parts])))
        return self._model.penalty(theta) - total / self._source.total_weight

    def _sum(self, parts: Iterator[tuple[int, Array, Array]]) -> Array:
        """Return the statistics from those of the parts."""
        by_word: Array | None = None
        for first, of_documents, of_words in parts:
            self._between_blocks()
            if by_word is None:
                by_document = np.zeros((self._model.n_documents, of_words.shape[1]))
                by_word = of_words
            else:
                by_word += of_words
            by_document[first : first + len(of_documents)] += of_documents
        assert by_word is not None, "a source has at least one token"
        self.evaluations += self.n
        s = np.concatenate([by_document.ravel(), by_word.T.ravel()])
        s /= self._source.total_weight
        return s


def _reported(theta: PLSATheta) -> tuple[Array, Array]:
    """Return doc_topic (D, K) and topic_word (V, K)."""
    return np.ascontiguousarray(theta.doc_topic), np.ascontiguousarray(theta.topic_word.T)


def _working(theta: PLSATheta) -> tuple[Array, Array]:
    """Return doc_topic (D, K) and topic_word times topic_scale (V, K)."""
    return np.ascontiguousarray(theta.doc_topic), np.ascontiguousarray(
        (theta.topic_word * theta.topic_scale[:, None]).T
    )


class Before(NamedTuple):
    """θ of the previous iteration as statistics (D, 1, K) and (V, 1, K), norms (K,), and α' and β' (2,)."""

    documents: Array
    words: Array
    norm: Array
    prior: Array


class TokensSnapshot(NamedTuple):
    """The form of the statistics in :mod:`swiftem.topics.compute.tokens_kernels`."""

    documents: Array
    words: Array
    totals: Array
    rates: Array
    before: Before | None


class TokensLoop(CompiledLoop):
    r"""Statistics as p·B + scale·u, by documents and by words: :mod:`swiftem.topics.compute.tokens_kernels`.

    Compiled code needs θ = θ̄(s). That holds after every accepted step. Before the first one, and if a run
    continues from arrays that this loop did not make, iterations are done one by one as in Algorithm 1.

    Later iterations do not depend on the ends of stretches or on records.

    Attributes
    ----------
    parts : int
        Number of contiguous arrays per document and word: u, B, and the anchor's θ; or u alone.
    documents, words, totals, rates
        See the kernels.
    """

    MOST = 1 << 14  # more gain nothing, and the arrays of a stretch then stay in the cache

    def __init__(self, task: Task, update: Update) -> None:
        from swiftem.topics.compute import tokens_kernels

        if is_unrolled(task.source):
            compute = task.compute
            known = compute.tokens if isinstance(compute, TokensCompute) else read_tokens(task.source)
            samples = Samples(read_only(known[0]), read_only(known[1]))
        else:
            # Only the drawn tokens of large counts are in memory.
            samples = Samples(NONE, NONE, task.source, task.source.is_weighted, np.uint32, 1 << 16)
        super().__init__(task, update, samples)
        self.model: BoundPLSA = task.model  # type: ignore[assignment]
        self._kernels: Any = tokens_kernels
        b, n_topics = task.method.batch_size, self.model.model.n_topics
        sizes = (self.model.n_documents, self.model.n_words)
        is_one = isinstance(task.gamma, constant) and task.gamma.g == 1.0
        is_single = is_one if update.renewed_by == "drawn" else update.reference == "none"
        self.parts = 1 if is_single else 3 if update.reference == "anchor" else 2
        self.documents, self.words = (np.zeros((size, self.parts, n_topics)) for size in sizes)
        self.totals, self._norm = np.empty((2, n_topics)), np.empty(n_topics)
        self._work = np.empty((2 * b + 1, n_topics))
        self.rates = np.array([1.0, 1.0, 1.0, update.correction])
        self._before: Before | None = None
        if self._follows:
            by_document, by_word = (np.empty((size, 1, n_topics)) for size in sizes)
            self._before = Before(by_document, by_word, np.empty(n_topics), np.empty(2))
        self._stored: Array | None = None  # the statistics in ``now`` that the arrays above represent
        self._held = False

    def load_theta(self, now: Current) -> None:
        """Write the tables from :attr:`s` and the centre, if θ = θ̄(s)."""
        p, split = self._weight_of_centre(now.k), [self.model.unpack(part) for part in (self.s, self.centre)]
        for number, table in enumerate((self.documents, self.words)):
            s, centre = (values[number].T if number else values[number] for values in split)
            table[:, 0] = s
            if self.parts > 1:
                table[:, 0] -= centre * p
                table[:, 1] = centre
        self.rates[:3] = 1.0, p, 1.0
        self._add_up()
        if self._uses_anchor:
            self._anchor_theta = now.state.anchor
            self.prepared(self._anchor_theta)
        self._stored, self._held = now.s, True

    def _weight_of_centre(self, k: int) -> float:
        """Return p before iteration k, with c = 1: the one that steps like the last one preserve, if any."""
        correction = self.update.correction
        if not self._follows or correction == 1.0:
            return correction
        return float(self._kernels.lasting(step_sizes(self.task.gamma, k - 1, k)[0], correction))

    def prepared(self, theta: PLSATheta) -> None:
        """Write the anchor's θ next to the statistics, or as that of the previous iteration."""
        if self._before is None:
            self.documents[:, 2] = theta.doc_topic
            self.words[:, 2] = (theta.topic_word * theta.topic_scale[:, None]).T
        else:
            self._before.documents[:, 0], self._before.words[:, 0] = theta.doc_topic, theta.topic_word.T
            self._before.norm[:], self._before.prior[:] = theta.topic_scale, 0.0

    def theta_of(self, s: Array) -> PLSATheta:
        """Return θ̄(s)."""
        return self.model.m_step(s)

    def load(self, now: Current) -> None:
        """Load the state from ``now``, unless it is what :meth:`store` left there."""
        self._held = self._held and now.s is self._stored
        self._begin(now)

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations from ``now.k``, in compiled code if θ = θ̄(s)."""
        if not self._held:
            Algorithm1(self.task).advance(now, now.k + 1)
            if now.is_m_step:
                super().load(now)
            return now.k
        if now.k % RENEW_TOTALS == 0:
            self._add_up()
        reached = super().stretch(now, min(stop, (now.k // RENEW_TOTALS + 1) * RENEW_TOTALS))
        self._accepted += 1  # rejected steps change the form of the statistics, too
        if self.undone and self.parts == 1:  # the next step is rejected, which the loop cannot do
            self.store(now)
            self._held = False
        return reached

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass, and rewrite the tables."""
        super()._renew(now)
        super().load(now)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel of the method's reference."""
        kernels, update, model = self._kernels, self.update, self.model.model
        b, own = self.task.method.batch_size, drawn.weight[:0] if self.is_divided else drawn.weight
        n, total_weight = self.task.source.n, self.task.source.total_weight
        mean = 1.0 / b if self.is_divided else n / (total_weight * b)
        tokens = kernels.WeightedTokens(drawn.y, drawn.weight, own, mean, 1.0 / total_weight)
        tables = kernels.Tables(self.documents, self.words, self.totals, self._norm)
        prior = kernels.Prior(model.alpha, model.beta, model.beta * self.model.n_words)
        order, p = drawn.index[0].ravel(), None if self.parts == 1 else float(self.rates[1])
        given = (tokens, steps, order, tables, self.rates, prior, self._work)
        if self._follows:
            done, rejected = kernels.batches_previous(*given, self._before)
        elif update.renewed_by == "other":
            run = kernels.one_token_memory if b == 1 else kernels.batches_memory
            done, rejected = run(*given, drawn.index[1].ravel(), drawn.memory)
        elif update.renewed_by == "drawn" and p is None and b == 1:
            done, rejected = kernels.one_token_drawn(tokens, order, *given[3:], drawn.memory)
        elif update.renewed_by == "drawn":
            done, rejected = kernels.batches_drawn(*given, drawn.memory, p)
        elif b > 1:
            done, rejected = kernels.batches(*given, p)
        else:
            run = kernels.one_token if p is None else kernels.one_token_anchor
            done, rejected = run(*given)
        self.undone = len(steps) - done
        return rejected, 1

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``."""
        if self._held and self._is_begun:
            self.s = flat(*self._statistics())
            if self.update.centre in ("memory", "proxy"):
                self.centre = flat(*self._centre())
            if self._before is not None:
                self.before = flat(self._before.documents[:, 0], self._before.words[:, 0])
            super().store(now)
            self._stored = now.s
            self._begin(now)

    def snapshot(self) -> TokensSnapshot | None:
        """Return the form of the statistics: with the state it gives the same iterations, bit by bit."""
        if not self._held:
            return None
        before = self._before if self._anchor_is_m_step else None
        return deepcopy(TokensSnapshot(self.documents, self.words, self.totals, self.rates, before))

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore a snapshot of such a loop, if it belongs to ``now``."""
        if not isinstance(snapshot, TokensSnapshot) or snapshot.rates[3] != self.rates[3]:
            return
        if snapshot.documents.shape != self.documents.shape or snapshot.words.shape != self.words.shape:
            return
        self.documents[:], self.words[:], self.totals[:], self.rates[:], before = snapshot
        if self._before is not None and before is not None:
            for part, values in zip(self._before, before, strict=True):
                part[:] = values
            self._anchor_theta, self._anchor_is_m_step = now.state.anchor, True
        self._held, self._stored = self._belongs(now, before), now.s

    def _belongs(self, now: Current, before: Before | None) -> bool:
        """Return whether the tables represent ``now``: it may have been combined from several results."""
        s, rounding = flat(*self._statistics()), 1e-14 * np.abs(now.s).max()  # p·C + (s − p·C) is nearly s
        if not now.is_m_step or not np.allclose(s, now.s, rtol=0.0, atol=rounding):
            return False
        if self.update.centre != "zero" and not np.array_equal(flat(*self._centre()), now.state.centre):
            return False
        if before is None:
            return True
        statistics = flat(before.documents[:, 0], before.words[:, 0])
        return now.before is not None and np.array_equal(statistics, now.before)

    def _statistics(self) -> tuple[Array, Array]:
        """Return s by documents (D, K) and by words (V, K)."""
        scale, p = self.rates[:2]
        if self.parts == 1:
            return scale * self.documents[:, 0], scale * self.words[:, 0]
        by_document, by_word = (
            p * table[:, 1] + scale * table[:, 0] for table in (self.documents, self.words)
        )
        return by_document, by_word

    def _centre(self) -> tuple[Array, Array]:
        """Return C likewise; if there is one table, it is s."""
        if self.parts == 1:
            return self._statistics()
        return self.rates[2] * self.documents[:, 1], self.rates[2] * self.words[:, 1]

    def _add_up(self) -> None:
        """Compute the totals Σ_v s_kv and λ Σ_v C_kv."""
        self.totals[0] = self._statistics()[1].sum(axis=0)
        self.totals[1] = self.rates[3] * self._centre()[1].sum(axis=0) if self.parts > 1 else 0.0


def flat(by_document: Array, by_word: Array) -> Array:
    """Return statistics by documents (D, K) and by words (V, K) as one new vector."""
    return np.concatenate([by_document.ravel(), by_word.T.ravel()])


def is_served(update: Update) -> bool:
    """Return whether compiled iterations support this update.

    >>> is_served(Update()), is_served(Update(reference="memory"))
    (True, False)
    """
    if update.centre == "proxy":
        return update.correction > 0.0
    return update.reference != "memory" or update.renewed_by != "none"
