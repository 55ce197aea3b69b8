"""Algorithm 1 of the paper: stochastic EM, iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from swiftem.core.averaging import Averages
from swiftem.core.compute import Compute
from swiftem.core.draws import Draws
from swiftem.core.method import Method
from swiftem.core.model import BoundModel
from swiftem.core.process import DeferredInterrupt
from swiftem.core.schedules import Schedule, check_step, constant, inverse, power
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta, Tree


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
        ...

    def snapshot(self) -> Tree:
        """Return the loop's state in addition to ``now``, a NamedTuple of new arrays, or None."""
        ...

    def restore(self, snapshot: Tree, now: Current) -> None:
        """Restore a snapshot if it belongs to ``now``; otherwise do nothing."""
        ...


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


def step_sizes(gamma: Schedule, start: int, stop: int) -> Array:
    """Return γ_(start+1), ..., γ_stop, validated: the steps of iterations ``start`` to ``stop`` − 1.

    >>> step_sizes(inverse(3, 10), 0, 3)
    array([0.27272727, 0.25      , 0.23076923])
    """
    k = np.arange(start + 1, stop + 1)
    if isinstance(gamma, constant):
        return np.full(len(k), gamma.g)
    if isinstance(gamma, inverse | power):
        steps = np.asarray(gamma(k.astype(np.float64)))
    else:
        steps = np.array([check_step(gamma(int(number)), int(number)) for number in k])
    bad = np.flatnonzero(~((steps > 0) & (steps <= 1)))
    if len(bad):
        check_step(float(steps[bad[0]]), int(k[bad[0]]))
    return steps
