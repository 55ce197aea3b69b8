"""Compiled stretches of iterations, for any method that declares its update, and the samples they get."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from swiftem.core.algorithm import Current, Task
from swiftem.core.method import Update
from swiftem.core.schedules import step_sizes
from swiftem.core.source import Reader, Source
from swiftem.core.types import Array, Index, Theta
from swiftem.kernels.threads import NONE, read_only


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
        Their sample indices, or None if ``y`` and ``memory`` hold all samples.
    """

    y: np.ndarray
    weight: Array
    index: tuple[Index, ...]  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    memory: np.ndarray | None
    numbers: Index | None

    def remember(self, memory: np.ndarray | None) -> None:
        """Write the changed rows back to the memory of all samples."""
        if self.numbers is not None and memory is not None:
            memory[self.numbers] = self.memory


@dataclass
class Samples:
    """Provides compiled loops with the samples of a stretch: all samples of an array, else the drawn ones.

    The drawn ones are read into an array, with their memory. Thus arrays and files share one set of kernels,
    and a memory in a file is accessed in order. :func:`samples_of` makes them from a source.

    Attributes
    ----------
    y, weight : ndarray, shape (n, ...) and (n,) or (0,)
        All samples and their weights, read-only, if they are in memory.
    reader : Reader or None
        Reads samples by index if they are not in memory.
    is_weighted : bool
        Whether what it reads has weights.
    dtype : dtype or None
        Type to convert what it reads to; None for its own.
    most_rows : int or None
        Largest number of samples that a stretch may read.
    """

    y: np.ndarray
    weight: Array
    reader: Reader | None = None
    is_weighted: bool = False
    dtype: DTypeLike | None = None
    most_rows: int | None = None

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        """Return where a stretch from ``start`` must stop: its samples must fit into a window."""
        return stop if self.most_rows is None else min(stop, start + max(1, self.most_rows // batch_size))

    def drawn(self, index: tuple[Index, ...], memory: np.ndarray | None = None) -> Drawn:
        """Return the samples of ``index``, an array (iterations, b) per stream."""
        if self.reader is None:
            return Drawn(self.y, self.weight, index, memory, None)
        numbers = np.concatenate([part.ravel() for part in index])
        place = np.arange(len(numbers))
        if memory is not None:  # a sample that is drawn twice has one row
            numbers, place = np.unique(numbers, return_inverse=True)
        batch = self.reader.take(numbers)
        y = read_only(np.require(batch.y.reshape(len(numbers), -1), self.dtype, ["C", "A"]))
        edges = np.cumsum([part.size for part in index])[:-1]
        local = tuple(
            np.ascontiguousarray(here.reshape(part.shape), dtype=np.intp)
            for here, part in zip(np.split(place, edges), index, strict=True)
        )
        weight = read_only(batch.weight) if self.is_weighted else NONE
        return Drawn(y, weight, local, None if memory is None else memory[numbers], numbers)


def samples_of(source: Source, dtype: DTypeLike | None = None, streams: int = 1) -> Samples:
    """Return the samples of a source for a number of streams of draws; ``dtype`` converts them."""
    if source.rows_in_memory is None:
        assert source.layout is not None, "samples that are not in memory have a layout"
        reader = source.reader()
        reader.serve(streams)
        return Samples(NONE, NONE, reader, source.is_weighted, dtype, source.layout.window_rows)
    y = read_only(np.require(source.rows_in_memory.reshape(source.n, -1), dtype, ["C", "A"]))
    if source.weight is None:
        return Samples(y, NONE)
    return Samples(y, read_only(np.require(source.weight, np.float64, ["C", "A"])))


class Rule(NamedTuple):
    """A declared update, as :class:`swiftem.core.method.Update` has it, for compiled code.

    Attributes
    ----------
    at_anchor, in_memory : bool
        Which reference is used; none if both are False.
    reads : bool
        Whether S is computed from the samples I; otherwise it is the renewed centre.
    renews : bool
        Whether the memory of the samples J is renewed.
    follows : bool
        Whether centre and anchor follow S and θ.
    is_divided : bool
        Whether I are drawn in proportion to their weights, which a mean over I then leaves out.
    correction : float
        λ.
    scale, share : float
        n / W, or 1 if ``is_divided``, and 1 / W, W the sum of weights.
    """

    at_anchor: bool
    in_memory: bool
    reads: bool
    renews: bool
    follows: bool
    is_divided: bool
    correction: float
    scale: float
    share: float


class CompiledLoop(ABC):
    """Iterations in stretches of compiled code: draws and steps, the centre, the anchor, counts.

    A model implements how θ is loaded (:meth:`load_theta`), the arrays of an anchor (:meth:`prepared`), the
    iterations (:meth:`iterate`) and the resulting θ (:meth:`theta_of`). :meth:`load` copies the arrays from
    ``now`` (records must not change), :meth:`stretch` works on them, :meth:`store` puts them back.

    Attributes
    ----------
    s, centre : ndarray, shape (q,)
        Statistics and centre, changed in place; the centre is zero if the method has none.
    anchor : object
        Result of :meth:`prepared`, or None if the method has no anchor.
    before : ndarray, shape (q,)
        Statistics of the previous iteration, written by :meth:`iterate` if the anchor is the previous θ.
    restates_anchor : bool
        Whether the next iterations must first compute the anchor from ``before``, as compiled code does.
    rule : Rule
        The update.
    """

    SECONDS = 0.1
    """Duration of a stretch, so that Ctrl-C works."""
    FIRST, MOST = 256, 1 << 20
    """Iterations of the first stretch, and of any."""

    def __init__(self, task: Task, update: Update, samples: Samples | None = None) -> None:
        self.task, self.update, source = task, update, task.source
        self._length = self.FIRST
        self.samples = samples or samples_of(source, streams=task.method.index_streams)
        scale, is_divided = source.n / source.total_weight, task.method.order == "weighted"
        self.rule = Rule(
            at_anchor=update.reference in ("anchor", "previous"),
            in_memory=update.reference == "memory",
            reads=update.renewed_by != "drawn",
            renews=update.renewed_by != "none",
            follows=update.reference == "previous",
            is_divided=is_divided,
            correction=float(update.correction),
            scale=1.0 if is_divided else float(scale),
            share=float(scale / source.n),
        )
        self.anchor: Any = None
        self.restates_anchor = False
        self._anchor_theta: Theta | None = None
        self._anchor_is_m_step = False
        self._renewed = -1

    @abstractmethod
    def load_theta(self, now: Current) -> None:
        """Load θ into new arrays; :attr:`s` is already set.

        If θ is θ̄(s) (``now.is_m_step``) it is loaded as the kernels write it, not as it is reported. A
        stretch can then begin anywhere: records, callbacks and interruptions change no bit of a trajectory.
        """

    @abstractmethod
    def prepared(self, theta: Theta) -> Any:
        """Return an anchor's θ in new arrays."""

    @abstractmethod
    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Do the iterations of a stretch.

        Return how many steps were rejected, and how many accepted before the last iteration.
        """

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s), the model's own M-step."""
        return self.task.model.m_step(s)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1 in stretches."""
        self.load(now)
        try:
            while now.k < stop:
                self.task.interrupt.check()
                begin, first = perf_counter(), now.k
                now.k = self.stretch(now, min(stop, now.k + self._length))
                now.evaluations = self.task.compute.evaluations
                # A stretch may have waited for others, so that the next one is at least half as long.
                wanted = int((now.k - first) * self.SECONDS / max(perf_counter() - begin, 1e-6))
                self._length = min(max(wanted, self._length // 2, 1), 4 * self._length, self.MOST)
        finally:
            self.store(now)

    def snapshot(self) -> object:
        """Return None: there is no state in addition to ``now``."""
        return None

    def restore(self, snapshot: object, now: Current) -> None:  # noqa: B027
        """Do nothing: there is no state in addition to ``now``."""

    def load(self, now: Current) -> None:
        """Copy s, θ and the centre, which are changed in place."""
        self._begin(now)
        self.s, self._anchor_is_m_step = now.s.copy(), False
        self.centre = np.zeros_like(now.s) if self.update.centre == "zero" else now.state.centre.copy()
        if self.update.centre == "memory" and not now.state.memory.flags.carray:
            now.state = now.state._replace(memory=np.require(now.state.memory, requirements=["C", "A", "W"]))
        self.before = (now.s if now.before is None else now.before).copy()
        self.load_theta(now)

    def _begin(self, now: Current) -> None:
        """Note that no iteration has been done since ``now``."""
        self._loaded, self._accepted, self._is_begun = now.theta, 0, False

    def stretch(self, now: Current, stop: int) -> int:
        """Renew the anchor if it is due, and do iterations until the next renewal or ``stop``.

        Return the k reached. Rejected steps and E-step evaluations are counted.
        """
        method, n = self.task.method, self.task.source.n
        if method.renewal(now.k, n) == now.k and self._renewed != now.k:
            self._renew(now)
        if self.rule.at_anchor and self._anchor_theta is not now.state.anchor:
            self._load_anchor(now)
        renewal = method.renewal(now.k + 1, n)
        stop = min(self.samples.stop(now.k, stop, method.batch_size), stop if renewal is None else renewal)
        memory = now.state.memory if self.update.centre == "memory" else None
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), memory)
        rejected, moved = self.iterate(step_sizes(self.task.gamma, now.k, stop), drawn)
        drawn.remember(memory)
        self._is_begun, self._anchor_is_m_step = True, now.is_m_step or moved > 0
        accepted = stop - now.k - rejected
        self._accepted += accepted
        now.is_m_step |= accepted > 0
        now.rejected += rejected
        self.task.compute.evaluations += (stop - now.k) * method.batch_size * self.update.evaluations
        return stop

    def _renew(self, now: Current) -> None:
        """Set the anchor to θ, and the centre to its full pass."""
        self.store(now)
        now.state = now.state._replace(anchor=now.theta, centre=self.task.compute.full(now.theta))
        self.centre = now.state.centre.copy()
        self._begin(now)
        self._renewed, self._anchor_theta, now.before = now.k, None, None

    def _load_anchor(self, now: Current) -> None:
        """Prepare the anchor, by :attr:`before` if it is the M-step of these statistics."""
        self._anchor_theta = now.state.anchor
        self.anchor = self.prepared(now.state.anchor)
        self.restates_anchor = self.rule.follows and now.before is not None

    def store(self, now: Current) -> None:
        """Store s, θ = θ̄(s) and the method's state; θ stays if every step was rejected."""
        if self._accepted:
            now.s = self.s.copy()
            now.theta = self.theta_of(now.s)
        if self.update.centre in ("memory", "proxy"):
            now.state = now.state._replace(centre=self.centre.copy())
        if self.rule.follows and self._is_begun:
            now.before = self.before.copy() if self._anchor_is_m_step else None
            anchor = self._loaded if now.before is None else self.theta_of(now.before)
            now.state, self._anchor_theta = now.state._replace(anchor=anchor), anchor
