"""Algorithm 1 of the paper: stochastic EM, iteration by iteration, and what a run consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from swiftem.core.compute import Compute
from swiftem.core.draws import Draws, Entropy
from swiftem.core.method import Method
from swiftem.core.model import BoundModel
from swiftem.core.schedules import Schedule, check_step
from swiftem.core.source import Source
from swiftem.core.types import Array, Index, Theta, Tree

if TYPE_CHECKING:
    from swiftem.core.loop import DeferredInterrupt

Status = Literal["completed", "stopped", "interrupted", "rejected"]


@dataclass
class Current:
    r"""The current iterate: complete after every iteration (of a compiled loop: after every stretch).

    Attributes
    ----------
    k : int
        Iterations done.
    theta, s : NamedTuple and ndarray, shape (q,)
        :math:`\theta^{(k)}` and :math:`\hat s^{(k)}`.
    state : NamedTuple
        The method's state.
    rejected, evaluations : int
        Steps that left the model's domain, and E-step evaluations, so far.
    is_m_step : bool
        Whether θ is :math:`\bar\theta(\hat s)`. Compiled loops then compute θ from the statistics, so that
        records and interruptions change no bit of a trajectory.
    before : ndarray, shape (q,), or None
        Likewise for a method whose anchor is the previous θ: statistics of which the anchor is the M-step.
    averages : Averages or None
        Averages of the statistics, if the method reports them.
    """

    k: int
    theta: Theta
    s: Array
    state: Tree
    rejected: int = 0
    evaluations: int = 0
    is_m_step: bool = False
    before: Array | None = None
    averages: Averages | None = None


class Task(NamedTuple):
    """The inputs of a run, constant during the run."""

    model: BoundModel
    method: Method
    source: Source
    gamma: Schedule
    draws: Draws
    compute: Compute
    interrupt: DeferredInterrupt


class Loop(Protocol):
    """The iterations of one run."""

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1, and leave ``now`` complete even if interrupted."""

    def snapshot(self) -> Tree:
        """Return the loop's state in addition to ``now``, a NamedTuple of new arrays, or None."""

    def restore(self, snapshot: Tree, now: Current) -> None:
        """Restore a snapshot if it belongs to ``now``; otherwise do nothing."""


class Algorithm1:
    """The loop for every method and model: the paper's Algorithm 1.

    Parameters
    ----------
    task : Task
        The inputs of the run.
    within : callable
        Returns a context for the iterations, for example one that limits the threads of BLAS.
    """

    def __init__(
        self, task: Task, within: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        self.task, self._within = task, within

    def advance(self, now: Current, stop: int) -> None:
        """Stochastic EM, iterations ``now.k`` to ``stop`` − 1 (Algorithm 1, the loop).

        The sE-step is s + γ(S − s), as in the paper: (1 − γ)s + γS drifts, as the two factors do not sum to 1
        in floating point.
        """
        model, method, _, gamma, draws, compute, interrupt = self.task
        with self._within():
            for k in range(now.k, stop):
                interrupt.check()
                drawn, step = draws.at(k), check_step(gamma(k + 1), k + 1)
                proxy, now.state = method.proxy(k, now.theta, drawn, now.state, compute)  # (iem), (oem), ...
                now.before = now.s if now.is_m_step else None
                s = now.s + step * (proxy - now.s) if step < 1 else proxy  # (sestep)
                if model.in_domain(s):
                    now.s, now.theta, now.is_m_step = s, model.m_step(s), True  # (mstep)
                else:
                    now.rejected += 1
                now.k, now.evaluations = k + 1, compute.evaluations

    def snapshot(self) -> Tree:
        """Return the state of the E-steps; everything else is in ``now``."""
        return self.task.compute.snapshot()

    def restore(self, snapshot: Tree, now: Current) -> None:
        """Restore the state of the E-steps."""
        self.task.compute.restore(snapshot)


class Averages(NamedTuple):
    """The average of ŝ at every m-th iteration, from some point on; E-steps use ŝ itself.

    Two sums, of the points before and since the last restart, give an average over the last W to 2W
    iterations (restarts every W), or over their last half to three quarters (restarts at powers of two).

    Attributes
    ----------
    every : int
        Iterations between two points.
    window : int
        Points between two restarts, or 0: at powers of two.
    sums, counts : ndarray, shapes (2, q) and (2,)
        Of points before and since the last restart.
    theta, s
        The last iterate, from which a run is resumed: its result is the average.
    """

    every: int
    window: int
    sums: Array
    counts: Index
    theta: Theta
    s: Array

    @classmethod
    def empty(cls, every: int, window: int, theta: Theta, s: Array) -> Averages:
        """Return averages of no points."""
        return cls(every, window, np.zeros((2, len(s))), np.zeros(2, dtype=np.int64), theta, s)

    def add(self, k: int, s: Array) -> Averages:
        """Return the averages with the statistics of iteration ``k``, if it is a point."""
        if k % self.every:
            return self
        number, sums, counts = k // self.every, self.sums.copy(), self.counts.copy()
        if number % self.window == 0 if self.window else number & (number - 1) == 0:
            sums[0], counts[0], sums[1], counts[1] = sums[1], counts[1], 0.0, 0
        sums[1] += s
        counts[1] += 1
        return self._replace(sums=sums, counts=counts)

    def mean(self) -> Array | None:
        """Return the average, or None if there are no points yet."""
        count = self.counts.sum()
        return self.sums.sum(axis=0) / count if count else None


@dataclass(frozen=True, slots=True)
class Iterate:
    r"""One recorded iterate; unpacks as ``k, passes, theta``.

    Attributes
    ----------
    k : int
        Iterations done.
    passes : float
        E-step evaluations so far, divided by n.
    theta : NamedTuple
        :math:`\theta^{(k)}`.
    s : ndarray, shape (q,)
        :math:`\hat s^{(k)}`.
    rejected : int
        Steps rejected so far.
    """

    k: int
    passes: float
    theta: Theta
    s: Array
    rejected: int

    def __iter__(self) -> Iterator[Tree]:
        return iter((self.k, self.passes, self.theta))


class State(NamedTuple):
    """State of a run, without θ and s: enough to continue exactly.

    Attributes
    ----------
    name, n : str and int
        The method's name and the number of samples.
    k, evaluations, rejected : int
        Iterations done, E-step evaluations, and steps rejected since the first run.
    entropy : ndarray of uint32, shape (4,)
        The seed of the draws.
    method : NamedTuple
        The method's own state.
    loop : NamedTuple or None
        Internal form of the statistics in compiled code, if it is not just s: without it a run would
        continue equal up to rounding only.
    is_m_step, before : bool and ndarray or None
        As in :class:`Current`.
    averages : Averages or None
        What is averaged, if the method reports averages.
    """

    name: str
    n: int
    k: int
    evaluations: int
    rejected: int
    entropy: Entropy
    method: Tree
    loop: Tree = None
    is_m_step: bool = False
    before: Array | None = None
    averages: Averages | None = None

    @property
    def is_before_first_pass(self) -> bool:
        """Whether Ctrl-C came in the first pass, so that there are only θ^(0) and the seed."""
        return self.k == self.evaluations == 0 and self.method is None


@dataclass(frozen=True)
class Result:
    """The result of :func:`swiftem.run`.

    Attributes
    ----------
    theta : NamedTuple
        Final parameters.
    s : ndarray, shape (q,)
        Final statistics; ``model.unpack`` names their parts. None if Ctrl-C came in the first pass, unless
        they were given as ``s0``.
    state : State
        Pass it to :func:`swiftem.run` with ``theta`` and ``s`` to continue exactly here.
    passes : float
        E-step evaluations divided by n, the first pass included.
    n_iter : int
        Number of iterations, with those before a resumed run.
    rejected : int
        Number of steps that would have left the model's domain.
    status : {"completed", "stopped", "interrupted", "rejected"}
        All iterations done; stopped by a callback; interrupted by Ctrl-C; or all iterations done and every
        step rejected, so that θ is the initial one. Steps before a resumed run do not count for that.
    path : list
        The records.
    """

    theta: Theta
    s: Array = field(repr=False)
    state: State = field(repr=False)
    passes: float
    n_iter: int
    rejected: int
    status: Status
    path: list[Tree] = field(repr=False)
