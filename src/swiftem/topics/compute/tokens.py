"""pLSA by tokens in compiled code: full passes on all cores, and iterations that cost O(b·K)."""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.compute import Compute
from swiftem.core.method import Update, declared
from swiftem.core.source import Source
from swiftem.core.types import Array, Index
from swiftem.data.documents.tokens import CountSource
from swiftem.kernels.loop import CompiledLoop, Drawn, Samples
from swiftem.kernels.threads import NONE, in_order, part_ends, read_only
from swiftem.topics.tokens import BoundPLSA, PLSAModel, PLSATheta

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
        """Return compiled stretches for declared methods that they support, else single iterations.

        A subclass of the model may differ, so its type is compared exactly.
        """
        update = declared(task.method)
        if update is None or type(self._model.model) is not PLSAModel:
            return Algorithm1(task)
        if update.centre == "proxy":
            is_served = update.correction == 1.0
        else:
            is_served = update.reference != "memory" or update.renewed_by != "none"
        return TokensLoop(task, update) if is_served else Algorithm1(task)

    @cached_property
    def tokens(self) -> Tokens:
        """All tokens, expanded."""
        return read_tokens(self._source)

    @cached_property
    def _entries(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Array, Index]:
        """Entries of passes, as :func:`swiftem.topics.compute.tokens_kernels.full_pass` takes them."""
        begin = np.empty(0, dtype=np.intp)
        if type(self._source) is not CountSource:
            place, given = self.tokens
            return place[:, 0].copy(), place[:, 1].copy(), given if len(given) else np.ones(len(place)), begin
        document, word, count, weight = self._source.entries()
        factor = np.ones(len(word)) if weight is None else weight
        if count is not None:
            factor, begin = factor * count, np.concatenate([[0], np.cumsum(count)])
        return document.astype(np.uint32), word.astype(np.uint32), factor, begin

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
        given = (self._entries, *_in_rows(theta.doc_topic, _working(theta)), memory)
        by_document, by_word = np.zeros(theta.doc_topic.shape), np.zeros(theta.topic_word.T.shape)
        for first, documents, words in in_order(full_pass, [(*given, *ends) for ends in self._parts]):
            self._between_blocks()
            by_document[first : first + len(documents)] += documents
            by_word += words
        self.evaluations += self.n
        s = np.concatenate([by_document.ravel(), by_word.T.ravel()])
        s /= self._source.total_weight
        return s, memory

    def objective(self, theta: PLSATheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        from swiftem.topics.compute.tokens_kernels import log_likelihood

        given = (self._entries, *_in_rows(theta.doc_topic, theta.topic_word))
        total = float(sum(in_order(log_likelihood, [(*given, *ends) for ends in self._parts])))
        return self._model.penalty(theta) - total / self._source.total_weight


def _working(theta: PLSATheta) -> Array:
    """Return words of topics as E-steps use them, shape (K, V)."""
    return theta.topic_word * theta.topic_scale[:, None]


def _in_rows(doc_topic: Array, topic_word: Array) -> tuple[Array, Array]:
    """Return topics of documents (D, K) and of words (V, K), contiguous."""
    return np.ascontiguousarray(doc_topic), np.ascontiguousarray(topic_word.T)


class Tables(NamedTuple):
    """Statistics in the form of compiled iterations.

    Attributes
    ----------
    documents, words : ndarray, shapes (D, parts, K) and (V, parts, K)
        u alone, or u and C, or these and the anchor's θ: a token needs one place in memory for each.
    totals : ndarray, shape (2, K)
        Σ_v s_kv and λ Σ_v C_kv.
    norm : ndarray, shape (K,)
        1 / (Σ_v s_kv + β'V).
    prior : ndarray, shape (3,)
        α', β' and β'V.
    """

    documents: Array
    words: Array
    totals: Array
    norm: Array
    prior: Array

    @classmethod
    def room(cls, model: BoundPLSA, parts: int) -> Tables:
        """Return zeros for a model."""
        n_topics = model.model.n_topics
        documents, words = (np.zeros((n, parts, n_topics)) for n in (model.n_documents, model.n_words))
        return cls(documents, words, np.zeros((2, n_topics)), np.zeros(n_topics), np.zeros(3))


Snapshot = tuple[Tables, float, Tables | None]
"""The statistics of a loop, the factor of u, and θ of the previous iteration."""


class TokensLoop(CompiledLoop):
    r"""Statistics as λ·C + scale·u, by documents and by words: :mod:`swiftem.topics.compute.tokens_kernels`.

    Compiled code needs θ = θ̄(s). That holds after every accepted step. Before the first one, and if a run
    continues from arrays that this loop did not make, iterations are done one by one as in Algorithm 1.

    Later iterations do not depend on the ends of stretches or on records.
    """

    MOST = 1 << 14  # more gain nothing, and the arrays of a stretch then stay in the cache

    def __init__(self, task: Task, update: Update) -> None:
        if is_unrolled(task.source):
            place, weight = task.compute.tokens  # type: ignore[attr-defined]
            samples = Samples(read_only(place), read_only(weight))
        else:
            # Only the drawn tokens of large counts are in memory.
            samples = Samples(NONE, NONE, task.source, task.source.is_weighted, np.uint32, 1 << 16)
        super().__init__(task, update, samples)
        self.model: BoundPLSA = task.model  # type: ignore[assignment]
        model = self.model.model
        self.tables = Tables.room(self.model, {"none": 1, "anchor": 3}.get(update.reference, 2))
        self.tables.prior[:] = model.alpha, model.beta, model.beta * self.model.n_words
        self.scale_of_u = 1.0
        #: θ of the previous iteration: s in documents and words, or θ and no prior.
        self._before = Tables.room(self.model, 1) if self.rule.follows else None
        self._stored: Array | None = None  # the statistics in ``now`` that the arrays above represent
        self._held = False

    @property
    def _correction(self) -> float | None:
        """λ, or None if there is no centre."""
        return None if self.update.reference == "none" else self.update.correction

    def load_theta(self, now: Current) -> None:
        """Write the tables from :attr:`s` and the centre, if θ = θ̄(s)."""
        split = [self.model.unpack(part) for part in (self.s, self.centre)]
        for number, table in enumerate(self.tables[:2]):
            s, centre = (values[number].T if number else values[number] for values in split)
            table[:, 0] = s
            if self._correction is not None:
                table[:, 0] -= centre * self._correction
                table[:, 1] = centre
        self.scale_of_u = 1.0
        self._add_up()
        if self.rule.at_anchor:
            self._anchor_theta = now.state.anchor
            self.prepared(self._anchor_theta)
        self._stored, self._held = now.s, True

    def prepared(self, theta: PLSATheta) -> None:
        """Write the anchor's θ next to the statistics, or as θ of the previous iteration."""
        if self._before is None:
            self.tables.documents[:, 2], self.tables.words[:, 2] = theta.doc_topic, _working(theta).T
        else:
            documents, words, _, norm, prior = self._before
            documents[:, 0], words[:, 0] = theta.doc_topic, theta.topic_word.T
            norm[:], prior[:] = theta.topic_scale, 0.0

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
        from swiftem.topics.compute.tokens_kernels import iterate

        b, own = self.task.method.batch_size, drawn.weight[:0] if self.rule.is_divided else drawn.weight
        order = drawn.index[0] if len(drawn.index) == 1 else np.concatenate(drawn.index, axis=1)
        self.scale_of_u, rejected = iterate(
            (drawn.y, drawn.weight, own, self.rule.scale / b, self.rule.share),
            steps,
            order.ravel(),
            self.tables,
            self.scale_of_u,
            self._correction,
            np.empty((2 * b + 1, self.model.model.n_topics)),
            drawn.memory,
            self._before,
        )
        return rejected, 1

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``."""
        if self._held and self._is_begun:
            self.s = self._statistics()
            if self.update.centre in ("memory", "proxy"):
                self.centre = flat(self.tables, 1)
            if self._before is not None:
                self.before = flat(self._before)
            super().store(now)
            self._stored = now.s
            self._begin(now)

    def snapshot(self) -> Snapshot | None:
        """Return the form of the statistics: with the state it gives the same iterations, bit by bit."""
        if not self._held:
            return None
        return deepcopy((self.tables, self.scale_of_u, self._before if self._anchor_is_m_step else None))

    def restore(self, snapshot: object, now: Current) -> None:
        """Restore a snapshot of such a loop, if it belongs to ``now``."""
        if not isinstance(snapshot, tuple) or not isinstance(snapshot[0], Tables):
            return
        tables, scale, before = snapshot
        if [part.shape for part in tables] != [part.shape for part in self.tables]:
            return
        for mine, given in ((self.tables, tables), (self._before, before)):
            if mine is not None and given is not None:
                for part, values in zip(mine, given, strict=True):
                    part[:] = values
        self.scale_of_u = scale
        if self._before is not None and before is not None:
            self._anchor_theta, self._anchor_is_m_step = now.state.anchor, True
        self._held, self._stored = self._belongs(now, before), now.s

    def _belongs(self, now: Current, before: Tables | None) -> bool:
        """Return whether the tables represent ``now``: it may have been combined from several results."""
        rounding = 1e-14 * np.abs(now.s).max()  # λ·C + (s − λ·C) is nearly s
        if not now.is_m_step or not np.allclose(self._statistics(), now.s, rtol=0.0, atol=rounding):
            return False
        if self._correction is not None and not np.array_equal(flat(self.tables, 1), now.state.centre):
            return False
        return before is None or (now.before is not None and np.array_equal(flat(before), now.before))

    def _statistics(self) -> Array:
        """Return s."""
        s = self.scale_of_u * flat(self.tables)
        return s if self._correction is None else self._correction * flat(self.tables, 1) + s

    def _add_up(self) -> None:
        """Compute the totals Σ_v s_kv and λ Σ_v C_kv."""
        totals = self.tables.totals
        totals[0] = self.model.unpack(self._statistics()).topic_word.sum(axis=1)
        totals[1] = 0.0
        if self._correction is not None:
            totals[1] = self._correction * self.tables.words[:, 1].sum(axis=0)


def flat(tables: Tables, part: int = 0) -> Array:
    """Return a part of documents (D, K) and of words (V, K) as one new vector of statistics."""
    return np.concatenate([tables.documents[:, part].ravel(), tables.words[:, part].T.ravel()])
