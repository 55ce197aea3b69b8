"""What a lane is, the common part of fused ones, and which lane a run gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.draws import Draws
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.source import Source
from swiftem.engine.expectation import Expectation, is_served
from swiftem.engine.threads import one_thread_blas
from swiftem.methods.method import Method, declared
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.model import BoundModel
from swiftem.process import DeferredInterrupt, clock
from swiftem.schedules import Schedule, check_step, constant, inverse, power

__all__ = ["Current", "FusedLane", "Lane", "OneThreadLane", "Task", "choose_lane", "step_sizes"]


@dataclass
class Current:
    """The state of Algorithm 1: complete after every iteration (of a fused lane: after every stretch)."""

    k: int
    theta: Theta
    s: Array
    state: Any
    rejected: int
    evaluations: int


class Task(NamedTuple):
    """The inputs of a run; constant during the run."""

    model: BoundModel
    method: Method
    source: Source
    gamma: Schedule
    draws: Draws
    e_step: Expectation
    interrupt: DeferredInterrupt
    plain: Callable[[Task], Lane]
    """Creates the lane that goes iteration by iteration, for cases that a fused lane does not support."""


class Lane(Protocol):
    """A way to do the iterations."""

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1, and leave ``now`` complete even if interrupted."""
        ...

    def snapshot(self) -> Any:
        """Return the lane's state in addition to ``now``, a NamedTuple of new arrays, or None."""
        ...

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore a snapshot if it belongs to ``now``; otherwise do nothing."""
        ...


class FusedLane(ABC):
    """A lane that does whole stretches of iterations in compiled code.

    A stretch lasts about a tenth of a second, so that Ctrl-C works. :meth:`load` copies the arrays from
    ``now`` (records must not change), :meth:`stretch` works on them, :meth:`store` puts them back.
    """

    SECONDS = 0.1
    FIRST, MOST = 256, 1 << 20

    def __init__(self, task: Task) -> None:
        self.task = task
        self._length = self.FIRST

    @abstractmethod
    def load(self, now: Current) -> None:
        """Load the state from ``now``."""

    @abstractmethod
    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations from ``now.k``, to ``stop`` − 1 or fewer (at least one), and return the k reached.

        Rejected steps and E-step evaluations are added to ``now.rejected`` and ``task.e_step.evaluations``.
        """

    @abstractmethod
    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``, in arrays that later stretches do not change."""

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1 in stretches."""
        self.load(now)
        try:
            while now.k < stop:
                self.task.interrupt.check()
                begin, first = clock(), now.k
                now.k = self.stretch(now, min(stop, now.k + self._length))
                now.evaluations = self.task.e_step.evaluations
                self._adapt(now.k - first, clock() - begin)
        finally:
            self.store(now)

    def snapshot(self) -> Any:
        """Return None: there is no state in addition to ``now``."""
        return None

    def restore(self, snapshot: Any, now: Current) -> None:
        """Do nothing: there is no state in addition to ``now``."""
        return

    def _adapt(self, done: int, seconds: float) -> None:
        """Choose the next stretch's length; one may have waited for others, so it shrinks only slowly."""
        wanted = int(done * self.SECONDS / max(seconds, 1e-6))
        self._length = min(max(wanted, self._length // 2, 1), 4 * self._length, self.MOST)


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


def choose_lane(kernels: str, task: Task) -> Lane | None:
    """Return the fused lane for this model and method, or None: then the run goes iteration by iteration.

    Parameters
    ----------
    kernels : {"auto", "reference", "numpy"} or str
        As in :class:`swiftem.problem.Problem`.
    task : Task
        Model, method and data.
    """
    if kernels.startswith("torch:"):
        from swiftem.engine.gpu.lane import device_lane

        return device_lane(task)
    if kernels != "auto":
        return None
    from swiftem.engine.document_lane import document_lane
    from swiftem.engine.functions import functions_lane
    from swiftem.engine.gaussian_mixture import gaussian_mixture_lane
    from swiftem.engine.gpu.topics.lane import device_document_lane
    from swiftem.engine.plsa import plsa_lane

    lanes = (
        gaussian_components_lane, gaussian_mixture_lane, plsa_lane, device_document_lane, document_lane,
        functions_lane,
    )  # fmt: skip
    for lane_for in lanes:
        lane = lane_for(task)
        if lane is not None:
            return lane
    return None


def gaussian_components_lane(task: Task) -> Lane | None:
    """Return the lane of a mixture: compiled stretches for Gaussians, single iterations for others."""
    if not isinstance(task.model, BoundComponents) or not is_served(task.source):
        return None
    if not isinstance(task.model, BoundGaussians):
        return OneThreadLane(task)
    y = task.source.y if isinstance(task.source, ArraySource) else None
    if y is not None and (not y.flags.c_contiguous or y.dtype not in (np.float32, np.float64)):
        # Each kind of array would be four more kernels to compile, and a copy would double the memory.
        return OneThreadLane(task)
    update = declared(task.method)
    if update is None:
        return OneThreadLane(task)
    from swiftem.engine.gaussian_batches import GaussianLane

    return GaussianLane(task, update)


class OneThreadLane:
    """Algorithm 1 with BLAS limited to one thread: for batches more threads cost more than they gain.

    E-steps are compiled (:class:`swiftem.engine.block_expectation.BlockExpectation`), and the threads
    of full passes are the library's own.
    """

    def __init__(self, task: Task) -> None:
        self._plain = task.plain(task)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1."""
        with one_thread_blas():
            self._plain.advance(now, stop)

    def snapshot(self) -> Any:
        """Return None: the whole state is in ``now``."""
        return self._plain.snapshot()

    def restore(self, snapshot: Any, now: Current) -> None:
        """Do nothing: the whole state is in ``now``."""
        self._plain.restore(snapshot, now)
