"""pLSA by tokens in compiled code: full passes on all cores, and iterations that cost O(b·K)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.compute import Compute
from swiftem.core.method import Update, declared
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.documents.tokens import CountSource
from swiftem.data.samples import NONE, Drawn, Samples, read_only
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.threads import in_order, part_ends
from swiftem.topics.tokens import BoundPLSA, PLSAModel, PLSATheta

if TYPE_CHECKING:
    from swiftem.topics.compute.tokens_kernels import Entries

__all__ = ["Before", "Tokens", "TokensCompute", "TokensLoop", "TokensSnapshot", "is_unrolled", "read_tokens"]

BLOCK = 1 << 16
"""Tokens read at once."""

RENEW_TOTALS = 1 << 20
"""Iterations after which the topics' totals are recomputed, so that rounding errors do not accumulate."""
MOST_TOKENS = 2_000_000_000
"""Maximum number of tokens that are expanded."""

Tokens = tuple[NDArray[np.uint32], Array]
"""Document and word of each token (n, 2), and their weights (n,), or (0,) if all are equal."""


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
        return place, _unless_ones(weight)
    place = np.empty((source.n, 2), dtype=np.uint32)
    weight = np.empty(source.n)
    for batch in source.blocks(BLOCK):
        place[batch.index] = batch.y
        weight[batch.index] = batch.weight
    return place, _unless_ones(weight)


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
    def _entries(self) -> Entries:
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
    scale: float
    before: Before | None


class TokensLoop(CompiledLoop):
    r"""Statistics as λ·C + scale·u, by documents and by words: :mod:`swiftem.topics.compute.tokens_kernels`.

    Compiled code needs θ = θ̄(s). That holds after every accepted step. Before the first one, and if a run
    continues from arrays that this loop did not make, iterations are done one by one as in Algorithm 1.

    Later iterations do not depend on the ends of stretches or on records.
    """

    MOST = 1 << 14  # more gain nothing, and the arrays of a stretch then stay in the cache

    def __init__(self, task: Task, update: Update) -> None:
        if is_unrolled(task.source):
            compute = task.compute
            known = compute.tokens if isinstance(compute, TokensCompute) else read_tokens(task.source)
            samples = Samples(read_only(known[0]), read_only(known[1]))
        else:
            # Only the drawn tokens of large counts are in memory.
            samples = Samples(NONE, NONE, task.source, task.source.is_weighted, np.uint32, 1 << 16)
        super().__init__(task, update, samples)
        self.model: BoundPLSA = task.model  # type: ignore[assignment]
        n_topics = self.model.model.n_topics
        sizes = (self.model.n_documents, self.model.n_words)
        parts = {"none": 1, "anchor": 3}.get(update.reference, 2)
        self.documents, self.words = (np.zeros((size, parts, n_topics)) for size in sizes)
        self.totals, self.scale_of_u = np.empty((2, n_topics)), 1.0
        self._before: Before | None = None
        if self._follows:
            by_document, by_word = (np.empty((size, 1, n_topics)) for size in sizes)
            self._before = Before(by_document, by_word, np.empty(n_topics), np.empty(2))
        self._stored: Array | None = None  # the statistics in ``now`` that the arrays above represent
        self._held = False

    @property
    def _correction(self) -> float | None:
        """λ, or None if there is no centre."""
        return None if self.update.reference == "none" else self.update.correction

    def load_theta(self, now: Current) -> None:
        """Write the tables from :attr:`s` and the centre, if θ = θ̄(s)."""
        split = [self.model.unpack(part) for part in (self.s, self.centre)]
        for number, table in enumerate((self.documents, self.words)):
            s, centre = (values[number].T if number else values[number] for values in split)
            table[:, 0] = s
            if self._correction is not None:
                table[:, 0] -= centre * self._correction
                table[:, 1] = centre
        self.scale_of_u = 1.0
        self._add_up()
        if self._uses_anchor:
            self._anchor_theta = now.state.anchor
            self.prepared(self._anchor_theta)
        self._stored, self._held = now.s, True

    def prepared(self, theta: PLSATheta) -> None:
        """Write the anchor's θ next to the statistics, or as that of the previous iteration."""
        if self._before is None:
            self.documents[:, 2], self.words[:, 2] = _working(theta)
        else:
            self._before.documents[:, 0], self._before.words[:, 0] = _reported(theta)
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
        return reached

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass, and rewrite the tables."""
        super()._renew(now)
        super().load(now)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the compiled iterations."""
        from swiftem.topics.compute.tokens_kernels import Tables, WeightedTokens, iterate

        b, own = self.task.method.batch_size, drawn.weight[:0] if self.is_divided else drawn.weight
        tokens = WeightedTokens(drawn.y, drawn.weight, own, self.scale / b, self.share)
        model, n_topics = self.model.model, self.totals.shape[1]
        prior = (model.alpha, model.beta, model.beta * self.model.n_words)
        tables = Tables(self.documents, self.words, self.totals, np.empty(n_topics), prior)
        order = drawn.index[0] if len(drawn.index) == 1 else np.concatenate(drawn.index, axis=1)
        self.scale_of_u, rejected = iterate(
            tokens,
            steps,
            order.ravel(),
            tables,
            self.scale_of_u,
            self._correction,
            np.empty((2 * b + 1, n_topics)),
            drawn.memory,
            self._before,
        )
        return rejected, 1

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``."""
        if self._held and self._is_begun:
            self.s = self._statistics()
            if self.update.centre in ("memory", "proxy"):
                self.centre = flat(self.documents[:, 1], self.words[:, 1])
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
        return deepcopy(TokensSnapshot(self.documents, self.words, self.totals, self.scale_of_u, before))

    def restore(self, snapshot: object, now: Current) -> None:
        """Restore a snapshot of such a loop, if it belongs to ``now``."""
        if not isinstance(snapshot, TokensSnapshot):
            return
        if snapshot.documents.shape != self.documents.shape or snapshot.words.shape != self.words.shape:
            return
        self.documents[:], self.words[:], self.totals[:], self.scale_of_u, before = snapshot
        if self._before is not None and before is not None:
            for part, values in zip(self._before, before, strict=True):
                part[:] = values
            self._anchor_theta, self._anchor_is_m_step = now.state.anchor, True
        self._held, self._stored = self._belongs(now, before), now.s

    def _belongs(self, now: Current, before: Before | None) -> bool:
        """Return whether the tables represent ``now``: it may have been combined from several results."""
        rounding = 1e-14 * np.abs(now.s).max()  # λ·C + (s − λ·C) is nearly s
        if not now.is_m_step or not np.allclose(self._statistics(), now.s, rtol=0.0, atol=rounding):
            return False
        if self._correction is not None:
            centre = flat(self.documents[:, 1], self.words[:, 1])
            if not np.array_equal(centre, now.state.centre):
                return False
        if before is None:
            return True
        statistics = flat(before.documents[:, 0], before.words[:, 0])
        return now.before is not None and np.array_equal(statistics, now.before)

    def _statistics(self) -> Array:
        """Return s."""
        tables = (self.documents, self.words)
        if self._correction is None:
            return flat(*(self.scale_of_u * table[:, 0] for table in tables))
        return flat(*(self._correction * table[:, 1] + self.scale_of_u * table[:, 0] for table in tables))

    def _add_up(self) -> None:
        """Compute the totals Σ_v s_kv and λ Σ_v C_kv."""
        self.totals[0] = self.model.unpack(self._statistics()).topic_word.sum(axis=1)
        self.totals[1] = 0.0
        if self._correction is not None:
            self.totals[1] = self._correction * self.words[:, 1].sum(axis=0)


def flat(by_document: Array, by_word: Array) -> Array:
    """Return statistics by documents (D, K) and by words (V, K) as one new vector."""
    return np.concatenate([by_document.ravel(), by_word.T.ravel()])


def is_served(update: Update) -> bool:
    """Return whether compiled iterations support this update.

    >>> is_served(Update()), is_served(Update(reference="memory"))
    (True, False)
    """
    if update.centre == "proxy":
        return update.correction == 1.0
    return update.reference != "memory" or update.renewed_by != "none"
