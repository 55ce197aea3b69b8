"""Compiled stretches of iterations, for any method that declares its update."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.engine.expectation import NONE, read_only
from swiftem.engine.lane import Current, FusedLane, Task, step_sizes
from swiftem.engine.snapshots import Followed
from swiftem.methods.method import Update

__all__ = ["CompiledLane", "Drawn", "Repeated", "Samples", "Whole"]


class Drawn(NamedTuple):
    """The samples of a stretch, in the form of compiled loops.

    Attributes
    ----------
    y, weight : ndarray, shape (u, d) and (u,) or (0,)
        Samples.
    index : tuple of ndarray, shape (iterations, b)
        Positions of the drawn samples in ``y``.
    memory : ndarray, shape (u, R), or None
        Their memory.
    numbers : ndarray of int, shape (u,), or None
        Their sample indices, or None if ``y`` and ``memory`` are those of all samples.
    """

    y: NDArray[Any]
    weight: Array
    index: tuple[Index, ...]  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    memory: Any
    numbers: Index | None


class Samples:
    """Provides compiled loops with the samples of a stretch: all samples of an array, else the drawn ones.

    The drawn ones are read into an array, with their memory. Thus arrays and files share one set of kernels,
    and a memory in a file is accessed in order.

    Parameters
    ----------
    source : ArraySource or StoredSource
        The data.
    dtype : dtype, optional
        Type to convert samples to; by default they are not converted.
    """

    def __init__(self, source: Source, dtype: Any = None, streams: int = 1) -> None:
        self._dtype = dtype
        self._reader: Any = None
        self.most_rows: int | None = None
        if isinstance(source, StoredSource):
            self._reader, self._is_weighted = source.reader(), source.is_weighted
            self._reader.serve(streams)
            self.most_rows = source.layout.window_rows
        else:
            assert isinstance(source, ArraySource)
            y = source.y.reshape(source.n, -1)
            self.y = read_only(np.require(y, dtype, ["C", "A"]))
            self.weight = NONE
            if source.weight is not None:
                self.weight = read_only(np.require(source.weight, np.float64, ["C", "A"]))

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        """Return where a stretch from ``start`` must stop: its samples must fit into a window."""
        return stop if self.most_rows is None else min(stop, start + max(1, self.most_rows // batch_size))

    def drawn(self, index: tuple[Index, ...], memory: Any = None) -> Drawn:
        """Return the samples of ``index``, an array (iterations, b) per stream."""
        if self._reader is None:
            return Drawn(self.y, self.weight, index, memory, None)
        flat = np.concatenate([part.ravel() for part in index])
        numbers = flat
        place = np.arange(len(flat))
        if memory is not None:  # a sample that is drawn twice has one row
            numbers, place = np.unique(flat, return_inverse=True)
        batch = self._reader.take(numbers)
        y = read_only(np.require(batch.y.reshape(len(numbers), -1), self._dtype, ["C", "A"]))
        edges = np.cumsum([part.size for part in index])[:-1]
        local = tuple(
            np.ascontiguousarray(here.reshape(part.shape), dtype=np.intp)
            for here, part in zip(np.split(place, edges), index, strict=True)
        )
        remembered = None if memory is None else memory[numbers]
        weight = read_only(batch.weight) if self._is_weighted else NONE
        return Drawn(y, weight, local, remembered, numbers)

    @staticmethod
    def remember(drawn: Drawn, memory: Any) -> None:
        """Write the changed rows back to the memory."""
        if drawn.numbers is not None and memory is not None:
            memory[drawn.numbers] = drawn.memory


class Whole(Samples):
    """Samples in memory, in the given arrays: ``y`` (n, ...) and ``weight`` (n,) or (0,)."""

    def __init__(self, y: NDArray[Any], weight: Array) -> None:
        self.y, self.weight = read_only(y), read_only(weight)
        self._reader, self.most_rows = None, None


class Repeated(Samples):
    """Tokens of large counts, of which only the drawn ones are in memory."""

    def __init__(self, source: Any, dtype: Any) -> None:
        self._reader, self._dtype, self.most_rows = source, dtype, 1 << 16
        self._is_weighted = source.entries()[3] is not None


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
        n / W and 1 / W, W the sum of weights.
    is_divided : bool
        Whether samples are drawn in proportion to weights: a mean over the batch leaves these out, and its
        ``scale`` is 1.
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
        self.is_divided = task.method.order == "weighted"
        if self.is_divided:
            self.scale = 1.0
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
