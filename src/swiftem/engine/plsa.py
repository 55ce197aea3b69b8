"""pLSA token by token, in compiled code that costs O(b·K) an iteration."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.engine.lane import Current, FusedLane, Lane, Task, step_sizes
from swiftem.engine.plsa_expectation import MOST_TOKENS, PLSAExpectation, read_tokens
from swiftem.methods import FastIncrementalEM, IncrementalEM, OnlineEM, VarianceReducedEM
from swiftem.methods.fast_incremental_em import FastIncrementalEMState
from swiftem.methods.incremental_em import IncrementalEMState
from swiftem.methods.variance_reduced_em import VarianceReducedEMState
from swiftem.models.plsa import BoundPLSA, PLSAModel

__all__ = ["PLSALane", "plsa_lane"]

RENEW_TOTALS = 1 << 20
"""Iterations after which the topics' totals are added up anew, so that rounding does not pile up in them."""


class PLSASnapshot(NamedTuple):
    """``documents`` (D, C, K) or (D, K), ``words`` (V, C, K) or (V, K), ``totals`` (2, K) and ``scale``."""

    documents: Array
    words: Array
    totals: Array
    scale: float


class PLSALane(FusedLane):
    r"""Statistics as centre + scale · u, by documents and by words: :mod:`swiftem.engine.numba.plsa`.

    The compiled loops need θ = θ̄(s). That holds after every accepted step; before the first one, and where a
    run goes on from arrays that this lane did not make, iterations are done one by one as Algorithm 1 has
    them.

    What later iterations compute does not depend on where stretches end or what is recorded.
    """

    MOST = 1 << 14  # more gain nothing, and the arrays of a stretch then stay in the cache

    parts = 2
    """C, the arrays that lie side by side for each document and word: centre, u, and the anchor's θ."""

    def __init__(self, task: Task) -> None:
        from swiftem.engine.numba import plsa, plsa_batch

        super().__init__(task)
        self.model: BoundPLSA = task.model  # type: ignore[assignment]
        n, w, b = task.source.n, task.source.total_weight, task.method.batch_size
        shape = (self.parts, self.model.model.n_topics) if self.parts > 1 else (self.model.model.n_topics,)
        self.documents = np.empty((self.model.n_documents, *shape))
        self.words = np.empty((self.model.n_words, *shape))
        self.totals = np.empty((2, self.model.model.n_topics))
        self.work = np.empty((2 * b + 2, self.model.model.n_topics))
        self.scale = 1.0
        self.mean_scale, self.share_scale = n / (w * b), 1.0 / w
        self.tokens, self.weight = (
            task.e_step.tokens if isinstance(task.e_step, PLSAExpectation) else read_tokens(task.source)
        )
        self.loops: Any = plsa if b == 1 else plsa_batch
        self._stored: Array | None = None  # the statistics that the arrays above stand for, in ``now``
        self._loaded = self._changed = False

    # What the methods differ in.

    @abstractmethod
    def iterate(self, now: Current, steps: Array, draws: tuple[Any, ...]) -> int:
        """Do iterations ``now.k``, ... in compiled code and return how many were done."""

    @abstractmethod
    def take(self, now: Current) -> None:
        """Write the arrays from ``now``, where θ = θ̄(s)."""

    @abstractmethod
    def statistics(self) -> tuple[Array, Array]:
        """Return s by documents (D, K) and by words (V, K)."""

    def put(self, now: Current) -> None:
        """Put the method's state into ``now``, whose s is already there."""

    def renew(self, now: Current) -> None:
        """Do what an iteration does first; it may write to ``now``."""

    def last(self, k: int) -> int:
        """Return the k before which the stretch that begins at ``k`` must end."""
        return (k // RENEW_TOTALS + 1) * RENEW_TOTALS

    # What they share.

    def load(self, now: Current) -> None:
        """Take over from ``now``: nothing to do where it is what :meth:`store` left there."""
        self._loaded = self._loaded and now.s is self._stored

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations from ``now.k``, in compiled code where θ = θ̄(s)."""
        if not self._loaded:
            rejected = now.rejected
            self.task.plain(self.task).advance(now, now.k + 1)
            self._loaded = now.rejected == rejected
            if self._loaded:
                self.take(now)
                self._add_up()
                self._stored, self._changed = now.s, False
            return now.k
        self.renew(now)
        if now.k % RENEW_TOTALS == 0:
            self._add_up()
        stop = min(stop, self.last(now.k))
        done = self.iterate(now, step_sizes(self.task.gamma, now.k, stop), self.task.draws.block(now.k, stop))
        self._changed = self._changed or done > 0
        if now.k + done < stop and self._loaded:  # the next step is rejected, which the loop cannot do
            now.k += done
            self.store(now)
            self._loaded = False
            return self.stretch(now, stop)
        return now.k + done

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``."""
        if self._loaded and self._changed:
            by_document, by_word = self.statistics()
            now.s = self._stored = flat(by_document, by_word)
            now.theta = self.model.m_step(now.s)
            self.put(now)
            self._changed = False

    def snapshot(self) -> PLSASnapshot | None:
        """Return how the statistics are held: with the state it gives the same iterations to the last bit."""
        if not self._loaded:
            return None
        return PLSASnapshot(self.documents.copy(), self.words.copy(), self.totals.copy(), self.scale)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Go on from a snapshot of this lane, if ``now`` is where it was taken."""
        if not isinstance(snapshot, PLSASnapshot):
            return
        if snapshot.documents.shape != self.documents.shape or snapshot.words.shape != self.words.shape:
            return
        self.documents[:], self.words[:], self.totals[:], self.scale = snapshot
        self._loaded = self.belongs(now)
        self._stored, self._changed = now.s, False

    def belongs(self, now: Current) -> bool:
        """Tell whether the arrays stand for ``now``: it may have been put together from several results."""
        same_theta = all(map(np.array_equal, now.theta, self.model.m_step(now.s)))
        return same_theta and np.array_equal(flat(*self.statistics()), now.s)

    def _add_up(self) -> None:
        """Compute the totals Σ_v s_kv and Σ_v centre_kv."""
        self.totals[0] = self.statistics()[1].sum(axis=0)
        self.totals[1] = self.words[:, 0].sum(axis=0) if self.parts > 1 else 0.0

    def split(self, s: Array) -> tuple[Array, Array]:
        """Return views of flat statistics by documents (D, K) and by words (V, K)."""
        by_document, by_topic = self.model.unpack(s)
        return by_document, by_topic.T


def flat(by_document: Array, by_word: Array) -> Array:
    """Return statistics by documents (D, K) and by words (V, K) as one new vector."""
    return np.concatenate([by_document.ravel(), by_word.T.ravel()])


class _OnlineLane(PLSALane):
    """sem."""

    parts = 1

    def take(self, now: Current) -> None:
        self.documents[:], self.words[:] = self.split(now.s)
        self.scale = 1.0

    def statistics(self) -> tuple[Array, Array]:
        return self.scale * self.documents, self.scale * self.words

    def iterate(self, now: Current, steps: Array, draws: tuple[Any, ...]) -> int:
        done, rejected, self.scale = self.loops.online_em(
            self.tokens, self.weight, self.mean_scale, steps, *draws, self.documents, self.words, self.totals,
            self.scale, self.model.model.alpha, self.model.model.beta, self.work,
        )  # fmt: skip
        now.rejected += rejected
        self.task.e_step.evaluations += done * draws[0].shape[1]
        return int(done)


class _IncrementalLane(PLSALane):
    """iem: s is the centre, except after a rejected step, which is done one by one."""

    parts = 1

    def take(self, now: Current) -> None:
        self.documents[:], self.words[:] = self.split(now.s)

    def statistics(self) -> tuple[Array, Array]:
        return self.documents, self.words

    def put(self, now: Current) -> None:
        now.state = IncrementalEMState(now.s, now.state.memory)

    def iterate(self, now: Current, steps: Array, draws: tuple[Any, ...]) -> int:
        done = self.loops.incremental_em(
            self.tokens, self.weight, self.share_scale, *draws, self.documents, self.words, self.totals,
            now.state.memory, self.model.model.alpha, self.model.model.beta, self.work,
        )  # fmt: skip
        self.task.e_step.evaluations += done * draws[0].shape[1]
        return int(done)


class _CentredLane(PLSALane):
    """What sem-vr and fiem share."""

    def take(self, now: Current) -> None:
        for table, s, centre in zip(
            (self.documents, self.words), self.split(now.s), self.split(now.state.centre), strict=True
        ):
            table[:, 0], table[:, 1] = centre, s - centre
        self.scale = 1.0

    def belongs(self, now: Current) -> bool:
        centre = flat(self.documents[:, 0], self.words[:, 0])
        return super().belongs(now) and np.array_equal(centre, now.state.centre)

    def statistics(self) -> tuple[Array, Array]:
        return (
            self.documents[:, 0] + self.scale * self.documents[:, 1],
            self.words[:, 0] + self.scale * self.words[:, 1],
        )


class _VarianceReducedLane(_CentredLane):
    """sem-vr; its anchor is renewed before iterations 0, m, 2m, ..., at which stretches begin."""

    parts = 3

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        method: VarianceReducedEM = task.method  # type: ignore[assignment]
        self.epoch = method.epoch_length or method.epoch(task.source.n)

    def last(self, k: int) -> int:
        return min(super().last(k), (k // self.epoch + 1) * self.epoch)

    def take(self, now: Current) -> None:
        super().take(now)
        anchor = now.state.anchor
        self.documents[:, 2] = anchor.doc_topic
        self.words[:, 2] = (anchor.topic_word * anchor.topic_scale[:, None]).T

    def belongs(self, now: Current) -> bool:
        return super().belongs(now) and np.array_equal(self.documents[:, 2], now.state.anchor.doc_topic)

    def renew(self, now: Current) -> None:
        if now.k % self.epoch == 0:
            self.store(now)
            now.state = VarianceReducedEMState(now.theta, self.task.e_step.full(now.theta))
            self.take(now)
            self._add_up()

    def iterate(self, now: Current, steps: Array, draws: tuple[Any, ...]) -> int:
        done, rejected, self.scale = self.loops.variance_reduced_em(
            self.tokens, self.weight, self.mean_scale, steps, *draws, self.documents, self.words, self.totals,
            self.scale, self.model.model.alpha, self.model.model.beta, self.work,
        )  # fmt: skip
        now.rejected += rejected
        self.task.e_step.evaluations += 2 * done * draws[0].shape[1]
        return int(done)


class _FastIncrementalLane(_CentredLane):
    """fiem."""

    def put(self, now: Current) -> None:
        centre = flat(self.documents[:, 0], self.words[:, 0])
        now.state = FastIncrementalEMState(centre, now.state.memory)

    def iterate(self, now: Current, steps: Array, draws: tuple[Any, ...]) -> int:
        done, rejected, self.scale = self.loops.fast_incremental_em(
            self.tokens, self.weight, self.mean_scale, self.share_scale, steps, *draws,
            self.documents, self.words, self.totals, self.scale, now.state.memory,
            self.model.model.alpha, self.model.model.beta, self.work,
        )  # fmt: skip
        now.rejected += rejected
        self.task.e_step.evaluations += 2 * done * draws[0].shape[1]
        return int(done)


LANES: dict[type, type[PLSALane]] = {
    OnlineEM: _OnlineLane,
    IncrementalEM: _IncrementalLane,
    VarianceReducedEM: _VarianceReducedLane,
    FastIncrementalEM: _FastIncrementalLane,
}


def plsa_lane(task: Task) -> Lane | None:
    """Return the lane for this method on pLSA, or None where there is none.

    A class derived from the model or from a method may do something else, so types are compared exactly.
    """
    lane = LANES.get(type(task.method))
    if lane is None or type(task.model) is not BoundPLSA or type(task.model.model) is not PLSAModel:
        return None
    if task.source.access != "random" or task.source.n > MOST_TOKENS:
        return None
    return lane(task)
