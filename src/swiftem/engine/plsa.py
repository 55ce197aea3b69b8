"""pLSA by tokens, in compiled code that costs O(b·K) per iteration."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from swiftem._typing import Array
from swiftem.engine.compiled_lane import CompiledLane, Drawn, Repeated, Whole
from swiftem.engine.lane import Current, Lane, Task, step_sizes
from swiftem.engine.plsa_expectation import PLSAExpectation, is_readable, is_unrolled, read_tokens
from swiftem.engine.snapshots import Before, PLSASnapshot
from swiftem.methods.method import Update, declared
from swiftem.models.plsa import BoundPLSA, PLSAModel, PLSATheta
from swiftem.schedules import constant

__all__ = ["PLSALane", "plsa_lane"]

RENEW_TOTALS = 1 << 20
"""Iterations after which the topics' totals are recomputed, so that rounding errors do not accumulate."""


NOTHING = np.zeros(())
"""What kernels take for an array that the method does not have."""


class PLSALane(CompiledLane):
    r"""Statistics as p·B + scale·u, by documents and by words: :mod:`swiftem.engine.numba.plsa`.

    The compiled loops need θ = θ̄(s). That holds after every accepted step. Before the first one, and if a
    run continues from arrays that this lane did not make, iterations are done one by one as in Algorithm 1.

    Later iterations do not depend on the ends of stretches or on records.

    Attributes
    ----------
    parts : int
        C, the number of contiguous arrays per document and word: B, u, and the anchor's θ; or 1.
    """

    MOST = 1 << 14  # more gain nothing, and the arrays of a stretch then stay in the cache

    def __init__(self, task: Task, update: Update) -> None:
        from swiftem.engine.numba import plsa, plsa_batch

        if is_unrolled(task.source):
            known = (
                task.e_step.tokens if isinstance(task.e_step, PLSAExpectation) else read_tokens(task.source)
            )
            super().__init__(task, update, Whole(*known))
        else:
            super().__init__(task, update, Repeated(task.source, np.uint32))
        self.model: BoundPLSA = task.model  # type: ignore[assignment]
        n, w, b = task.source.n, task.source.total_weight, task.method.batch_size
        sizes, n_topics = (self.model.n_documents, self.model.n_words), self.model.model.n_topics
        is_drawn, follows = update.renewed_by == "drawn", update.reference == "previous"
        is_one = isinstance(task.gamma, constant) and task.gamma.g == 1.0
        is_single = is_one if is_drawn else update.reference == "none"
        self.parts = 1 if is_single else 2 if follows or update.centre == "memory" else 3
        shape = (self.parts, n_topics) if self.parts > 1 else (n_topics,)
        self.documents, self.words = (np.zeros((size, *shape)) for size in sizes)
        self.totals, self.work = np.empty((2, n_topics)), np.empty((2 * b + 2, n_topics))
        self.u_scale, self.rates = 1.0, None
        if update.is_optimal:
            self.rates = np.ones(4)
        elif update.correction != 1.0 and not (is_single or is_drawn):
            self.rates = np.full(3, update.fixed)
        self._before: Before | None = None
        if follows:
            by_document, by_word = (np.empty((size, n_topics)) for size in sizes)
            self._before = Before(by_document, by_word, np.empty(n_topics), np.empty(2))
        self.mean_scale, self.share_scale = 1.0 / b if self.is_divided else n / (w * b), 1.0 / w
        is_simple = b == 1 and not follows and (is_single or not is_drawn)
        self._loop, self._lasting = (plsa if is_simple else plsa_batch).iterate, plsa_batch.lasting
        self._stored: Array | None = None  # the statistics in ``now`` that the arrays above represent
        self._held = self._moved = False

    def load_theta(self, now: Current) -> None:
        """Write the tables from :attr:`s` and the centre, if θ = θ̄(s)."""
        split = [self.model.unpack(values) for values in (self.s, self.centre)]
        for part, table in enumerate((self.documents, self.words)):
            s, centre = (values[part].T if part else values[part] for values in split)
            if self.parts == 1:
                table[:] = s
            else:
                table[:, 0], table[:, 1] = centre, s - centre * self._weight_of_centre(now.k)
        self.u_scale = 1.0
        if self.rates is not None:
            self.rates[:2] = self._weight_of_centre(now.k), 1.0
        self._add_up()
        if self.update.reference in ("anchor", "previous"):
            self._anchor_theta = now.state.anchor
            self.prepared(self._anchor_theta)
        self._stored, self._held = now.s, True

    def _weight_of_centre(self, k: int) -> float:
        """Return p before iteration k, with c = 1: the one that steps like the last one preserve, if any."""
        if self.rates is None:
            return 1.0
        kept = self.moments[2] if self.update.is_optimal else self.update.fixed
        if self._before is not None:
            kept = self._lasting(step_sizes(self.task.gamma, k - 1, k)[0], kept)
        return float(kept)

    def prepared(self, theta: PLSATheta) -> None:
        """Write the anchor's θ next to the statistics, or as that of the previous iteration."""
        if self._before is not None:
            working = theta.doc_topic, theta.topic_word.T, theta.topic_scale, np.zeros(2)
            for part, of in zip(self._before, working, strict=True):
                part[:] = of
        else:
            self.documents[:, 2] = theta.doc_topic
            self.words[:, 2] = (theta.topic_word * theta.topic_scale[:, None]).T

    def theta_of(self, s: Array) -> PLSATheta:
        """Return θ̄(s)."""
        return self.model.m_step(s)

    def load(self, now: Current) -> None:
        """Load the state from ``now``, unless it is what :meth:`store` left there."""
        self._held, self._moved = self._held and now.s is self._stored, False

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations from ``now.k``, in compiled code if θ = θ̄(s)."""
        if not self._held:
            rejected = now.rejected
            self.task.plain(self.task).advance(now, now.k + 1)
            if now.rejected == rejected:
                super().load(now)
            return now.k
        if now.k % RENEW_TOTALS == 0:
            self._add_up()
        reached = super().stretch(now, min(stop, (now.k // RENEW_TOTALS + 1) * RENEW_TOTALS))
        self._moved |= reached > now.k
        if self.undone and self.parts == 1:  # the next step is rejected, which the loop cannot do
            self.store(now)
            self._held = False
        return reached

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass, and rewrite the tables."""
        super()._renew(now)
        super().load(now)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        update, model = self.update, self.model.model
        done, rejected, self.u_scale = self._loop(
            drawn.y, drawn.weight, self.is_divided, self.mean_scale, self.share_scale,
            0.0 if update.reference == "none" else update.fixed, steps, drawn.index[0],
            drawn.index[1] if update.renewed_by == "other" else NOTHING, self.documents, self.words,
            self.totals, self.u_scale, NOTHING if drawn.memory is None else drawn.memory, self._before or (),
            NOTHING if self.rates is None else self.rates, self.moments if update.is_optimal else NOTHING,
            model.alpha, model.beta, self.work,
        )  # fmt: skip
        self.undone = len(steps) - done
        return rejected, 1

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``."""
        if self._held and self._moved:
            self.s = flat(*self._statistics())
            if self.update.centre in ("memory", "proxy"):
                self.centre = flat(*self._centre())
            if self._before is not None:
                self.before = flat(*self._before[:2])
            super().store(now)
            self._stored, self._moved = now.s, False

    def snapshot(self) -> PLSASnapshot | None:
        """Return the form of the statistics: with the state it gives the same iterations, bit by bit."""
        if not self._held:
            return None
        before = None if self._before is None or self._followed is not None else self._before
        held = (self.documents, self.words, self.totals, self.u_scale, self.rates, before)
        return deepcopy(PLSASnapshot(*held))

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore a snapshot of this lane, if it belongs to ``now``."""
        if not isinstance(snapshot, PLSASnapshot) or _size(snapshot.rates) != _size(self.rates):
            return
        if snapshot.documents.shape != self.documents.shape or snapshot.words.shape != self.words.shape:
            return
        self.documents[:], self.words[:], self.totals[:], self.u_scale, rates, before = snapshot
        if self.rates is not None:
            self.rates[:] = rates
        if self._before is not None and before is not None:
            for part, of in zip(self._before, before, strict=True):
                part[:] = of
            self._anchor_theta, self._followed = now.state.anchor, None
        if self.update.is_optimal:
            self.moments = now.state.moments.copy()
        self._held, self._stored = self._belongs(now, before), now.s

    def _belongs(self, now: Current, before: Before | None) -> bool:
        """Tell whether the tables represent ``now``: it may have been combined from several results."""
        s, rounding = flat(*self._statistics()), 1e-14 * np.abs(now.s).max()  # p·C + (s − p·C) is nearly s
        if not np.allclose(s, now.s, rtol=0.0, atol=rounding):
            return False
        pairs = [*zip(now.theta, self.theta_of(now.s), strict=True)]
        if self.update.centre != "zero":
            pairs.append((flat(*self._centre()), now.state.centre))
        if before is not None:
            pairs.extend(zip(self.theta_of(flat(*before[:2])), now.state.anchor, strict=True))
        return all(np.array_equal(*pair) for pair in pairs)

    def _statistics(self) -> tuple[Array, Array]:
        """Return s by documents (D, K) and by words (V, K)."""
        tables, p = (self.documents, self.words), 1.0 if self.rates is None else self.rates[0]
        if self.parts == 1:
            return self.u_scale * tables[0], self.u_scale * tables[1]
        by_document, by_word = (p * table[:, 0] + self.u_scale * table[:, 1] for table in tables)
        return by_document, by_word

    def _centre(self) -> tuple[Array, Array]:
        """Return C likewise; if there is one table, it is s."""
        if self.parts == 1:
            return self._statistics()
        c = 1.0 if self.rates is None else self.rates[1]
        return c * self.documents[:, 0], c * self.words[:, 0]

    def _add_up(self) -> None:
        """Compute the totals Σ_v s_kv and λ Σ_v C_kv."""
        correction = 1.0 if self.rates is None else self.rates[2]
        self.totals[0] = self._statistics()[1].sum(axis=0)
        self.totals[1] = correction * self._centre()[1].sum(axis=0) if self.parts > 1 else 0.0
        if self.rates is not None and self.update.is_optimal:
            self.rates[3] = sum(float(np.vdot(part, part)) for part in self._centre())


def flat(by_document: Array, by_word: Array) -> Array:
    """Return statistics by documents (D, K) and by words (V, K) as one new vector."""
    return np.concatenate([by_document.ravel(), by_word.T.ravel()])


def _size(rates: Array | None) -> int:
    return 0 if rates is None else len(rates)


def is_served(update: Update) -> bool:
    """Tell whether the loops support this update.

    >>> is_served(Update()), is_served(Update(reference="memory", centre="memory"))
    (True, False)
    """
    if update.centre == "proxy":
        return update.fixed > 0.0
    return update.reference != "memory" or update.renewed_by != "none"


def plsa_lane(task: Task) -> Lane | None:
    """Return the lane for this method on pLSA, or None if there is none.

    A subclass of the model may differ, so its type is compared exactly.
    """
    update = declared(task.method)
    if update is None or not is_served(update):
        return None
    if type(task.model) is not BoundPLSA or type(task.model.model) is not PLSAModel:
        return None
    if not is_readable(task.source):
        return None
    return PLSALane(task, update)
