"""Compiled stretches of iterations, for any method that declares its update."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.engine.lane import Current, FusedLane, Task, step_sizes
from swiftem.engine.parts import NONE, Drawn, Samples
from swiftem.methods.update import Update

__all__ = ["CompiledLane", "Followed"]


class Followed(NamedTuple):
    """``before`` (q,): the statistics whose θ̄ is the anchor, so that compiled code writes the same bits."""

    before: Array


class CompiledLane(FusedLane):
    """The part common to all models: draws and steps of a stretch, the centre, the anchor, counts.

    A model implements how θ is loaded (:meth:`load_theta`), the arrays of an anchor (:meth:`prepared`), the
    iterations (:meth:`iterate`) and the resulting θ (:meth:`theta_of`).

    Attributes
    ----------
    s, centre : ndarray, shape (q,)
        Statistics and centre, changed in place; the centre is zero if the method has none.
    anchor : object
        Result of :meth:`prepared`, or None if the method has no anchor.
    moments : ndarray, shape (3,), or (0,)
        What λ is learned from, and λ, changed in place; empty if λ is fixed.
    before : ndarray, shape (q,)
        If the anchor follows θ: the statistics of which it is θ̄.
    restates_anchor : bool
        Whether the next iterations must first write the anchor as θ̄(before).
    scale, share : float
        n / W, or 1 if weights are divided out (``is_divided``), and 1 / W, W the sum of weights.
    undone : int
        Iterations that the last call of :meth:`iterate` did not do.
    """

    undone = 0

    def __init__(self, task: Task, update: Update, samples: Samples | None = None) -> None:
        super().__init__(task)
        self.update, source = update, task.source
        self.samples = samples or Samples(source, streams=task.method.index_streams)
        self.scale = source.n / source.total_weight
        self.share = self.scale / source.n
        self.is_divided = task.method.order == "weighted" and update.renewed_by == "none"
        if self.is_divided:  # a mean over the batch has no weights: they are in the draws
            self.samples.weight, self.scale = NONE, 1.0
        self.anchor: Any = None
        self._anchor_theta: Theta = None
        self._followed: Theta = ()
        self._renewed, self._is_of_s = -1, False
        self.restates_anchor = False
        self._restored: Array | None = None

    @abstractmethod
    def load_theta(self, now: Current) -> None:
        """Load θ into new arrays; :attr:`s` is already set.

        If θ is θ̄(s) it is loaded as the kernels write it, not as it is reported. A stretch can then begin
        anywhere: records, callbacks and interruptions change no bit of a trajectory.
        """

    @abstractmethod
    def prepared(self, theta: Theta) -> Any:
        """Return an anchor's θ in new arrays."""

    @abstractmethod
    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations of a stretch.

        Return how many steps were rejected, and how many accepted before the last iteration.
        """

    @abstractmethod
    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""

    def load(self, now: Current) -> None:
        """Copy s, θ and the centre, which are changed in place."""
        self.s, self.before = now.s.copy(), now.s.copy()
        self._loaded, self._moved = now.theta, False
        self._followed = getattr(now.state, "anchor", None)
        self.moments = now.state.moments.copy() if self.update.is_optimal else np.empty(0)
        self.centre = now.state.centre.copy() if self.update.centre != "zero" else np.zeros_like(now.s)
        if self.update.centre == "memory" and not now.state.memory.flags.carray:
            now.state = now.state._replace(memory=np.require(now.state.memory, requirements=["C", "A", "W"]))
        # These are then the statistics of an anchor that follows θ.
        self._is_of_s = (
            self.update.reference == "previous"
            and self.task.model.in_domain(now.s)
            and _is_same(now.theta, self.theta_of(now.s))
        )
        self.load_theta(now)

    def stretch(self, now: Current, stop: int) -> int:
        """Renew the anchor if it is due, and do iterations until the next renewal or ``stop``."""
        method, update, n = self.task.method, self.update, self.task.source.n
        if method.renewal(now.k, n) == now.k and self._renewed != now.k:
            self._renew(now)
        ends = [stop, self.samples.stop(now.k, stop, method.batch_size)]
        following = method.renewal(now.k + 1, n)
        stop = min(ends if following is None else [*ends, following])
        if update.reference in ("anchor", "previous") and self._anchor_theta is not now.state.anchor:
            self._anchor_theta = now.state.anchor
            self.anchor = self.prepared(now.state.anchor)
            self.restates_anchor = self._restored is not None
            if self._restored is not None:
                self.before[:], self._restored = self._restored, None
        memory = now.state.memory if update.centre == "memory" else None
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), memory)
        rejected, moved = self.iterate(step_sizes(self.task.gamma, now.k, stop), drawn)
        self.samples.remember(drawn, memory)
        stop -= self.undone
        if update.reference == "previous":
            self._followed = None if self._moved or moved or self._is_of_s else self._loaded
        self._moved |= stop - now.k > rejected
        now.rejected += rejected
        self.task.e_step.evaluations += (stop - now.k) * method.batch_size * update.evaluations
        return stop

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass."""
        self.store(now)
        now.state = now.state._replace(anchor=now.theta, centre=self.task.e_step.full(now.theta))
        self.centre = now.state.centre.copy()
        self._is_of_s |= self._moved
        self._loaded, self._moved, self._renewed = now.theta, False, now.k
        self._followed, self._anchor_theta, self._restored = now.theta, None, None

    def store(self, now: Current) -> None:
        """Store s, θ = θ̄(s) and the method's state; θ stays if every step was rejected."""
        if self._moved:
            now.s = self.s.copy()
            now.theta = self.theta_of(now.s)
        if self.update.centre in ("memory", "proxy"):
            now.state = now.state._replace(centre=self.centre.copy())
        if self.update.is_optimal:
            now.state = now.state._replace(moments=self.moments.copy())
        if self.update.reference == "previous":
            anchor = self.theta_of(self.before.copy()) if self._followed is None else self._followed
            now.state = now.state._replace(anchor=anchor)
            self._anchor_theta = anchor

    def snapshot(self) -> Any:
        """Return the statistics of which the anchor is θ̄, if it follows θ."""
        if self._restored is not None:  # no iteration has been done since
            return Followed(self._restored)
        is_of = self.update.reference == "previous" and self._followed is None
        return Followed(self.before.copy()) if is_of else None

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore these statistics, if they belong to the anchor."""
        if isinstance(snapshot, Followed) and self.update.reference == "previous":
            theta = self.theta_of(snapshot.before.copy())
            if _is_same(theta, now.state.anchor):
                self._restored = snapshot.before


def _is_same(theta: Theta, other: Theta) -> bool:
    """Tell whether parameters, arrays or numbers in nested tuples, are equal bit by bit."""
    if isinstance(theta, tuple):
        return len(theta) == len(other) and all(map(_is_same, theta, other))
    return bool(np.array_equal(theta, other))
