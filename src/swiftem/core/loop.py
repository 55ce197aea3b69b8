"""One run: its start, its iterations with records, Ctrl-C and checkpoints, and its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from types import FrameType, MethodType
from typing import Any

import numpy as np

from swiftem.core.algorithm import Averages, Current, Iterate, Loop, Result, State, Status, Task
from swiftem.core.checkpoint import Position, RunCheckpoint, check_form
from swiftem.core.checks import check_int
from swiftem.core.draws import Entropy
from swiftem.core.files import is_scratch, scratch_array
from swiftem.core.method import declared
from swiftem.core.model import BoundModel
from swiftem.core.process import AfterImports
from swiftem.core.types import Array, Theta, Tree


class DeferredInterrupt:
    """Context in which Ctrl-C raises at the next :meth:`check` instead of anywhere.

    Memory and statistics are then never half-written. A second Ctrl-C raises at once. Outside the main
    thread, or if the program has its own signal handler, nothing is changed. Within another one, both raise.

    >>> with DeferredInterrupt() as interrupt:
    ...     interrupt.check()
    """

    def __init__(self) -> None:
        self._requested = False
        self._previous: Any = None
        self._outer: DeferredInterrupt | None = None

    def __enter__(self) -> DeferredInterrupt:
        handler = signal.getsignal(signal.SIGINT)
        raises = handler is signal.default_int_handler or isinstance(handler, AfterImports)
        if threading.current_thread() is not threading.main_thread():
            return self
        if raises:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        elif isinstance(handler, MethodType) and isinstance(handler.__self__, DeferredInterrupt):
            self._outer = handler.__self__
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._outer is not None:
            self._outer.check()
        if self._requested:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True


class Records:
    """Records of a run, and calls of its callback: every ``every`` iterations, by default once per epoch.

    ``path`` has the records, ``last`` is the k of the last one (−1 before the first), ``stopped`` says
    whether the callback ended the run, and ``per_pass`` is the number of evaluations per pass.
    """

    def __init__(
        self,
        every: int | None,
        record: Callable[[Iterate], object] | None,
        callback: Callable[[Iterate], bool | None] | None,
        epoch: int,
    ) -> None:
        if every is not None:
            self.every = check_int("record_every", every, minimum=1)
        else:
            self.every = 0 if record is None and callback is None else epoch
        self._record, self._callback, self.per_pass = record, callback, 1
        self.path: list[Tree] = []
        self.last, self.stopped = -1, False

    def is_due(self, k: int) -> bool:
        """Return whether iterate ``k`` is to be recorded, and is not yet."""
        return bool(self.every) and k % self.every == 0 and k != self.last and not self.stopped

    def take(self, now: Current) -> None:
        """Record the current iterate if that is due and not done yet, and call the callback."""
        if not self.is_due(now.k):
            return
        self.last = now.k
        iterate = Iterate(now.k, now.evaluations / self.per_pass, now.theta, now.s, now.rejected)
        record = iterate if self._record is None else self._record(iterate)
        if record is not None:
            self.path.append(record)
        self.stopped = self._callback is not None and bool(self._callback(iterate))


@dataclass(frozen=True)
class RunLoop:
    """One run of a method, from its first iterate to its result.

    Parameters
    ----------
    task : Task
        The inputs of the iterations.
    records : Records
        Records and callback.
    checkpoints : RunCheckpoint or None
        The open folder, if there are checkpoints.
    entropy : ndarray of uint32, shape (4,)
        The seed of the draws.
    first, stop : int
        Iterations before and after the run.
    scratch : path or None
        Folder for copies of arrays that do not fit into memory.
    """

    task: Task
    records: Records
    checkpoints: RunCheckpoint | None
    entropy: Entropy
    first: int
    stop: int
    scratch: str | PathLike[str] | None = None

    def result(self, theta: Theta, s: Array | None, state: State | None) -> Result:
        """Run, and return the result; Ctrl-C ends the iterations early.

        Parameters
        ----------
        theta, s
            The start of the run, or the end of the run that it continues.
        state : State or None
            State of that run.
        """
        task, records = self.task, self.records
        records.per_pass = task.compute.per_pass
        loop, (every, window) = task.compute.loop(task), task.method.averaging(task.source.n)
        saved = self._load(theta)
        try:
            now = self._begin(loop, theta, s, state, saved)
        except KeyboardInterrupt:  # there is only θ^(0) so far
            begun = State(task.method.name, task.source.n, 0, 0, 0, self.entropy, None)
            return Result(theta, s, begun, 0.0, 0, 0, "interrupted", records.path)  # type: ignore[arg-type]
        if every and now.averages is None:
            now.averages = Averages.empty(every, window, now.theta, now.s)
        try:
            if state is None or saved is not None:  # a continued run has recorded its first iterate
                records.take(reported(task.model, now))
            self._iterate(loop, now)
            status = self._status(now, 0 if state is None else state.rejected)
        except KeyboardInterrupt:
            status = "interrupted"
        if self.checkpoints is not None:
            self.checkpoints.end(*self._position(loop, now))
        last, passes = reported(task.model, now), now.evaluations / task.compute.per_pass
        end = self._state(loop, now)
        return Result(last.theta, last.s, end, passes, now.k, now.rejected, status, records.path)

    def _load(self, theta: Theta) -> Position | None:
        """Return the position of the checkpoint, if there is one, and restore the records."""
        if self.checkpoints is None:
            return None
        saved = self.checkpoints.load(lambda at: check_position(at, self.task, theta, self.entropy))
        if saved is not None:
            self.records.path, self.records.last = saved.path, saved.recorded
            self.records.stopped = bool(saved.stopped)
            if self.stop < saved.state.k:
                raise ValueError(
                    f"n_iter must be at least {saved.state.k - self.first}, the iterations of the checkpoint."
                )
        return saved

    def _begin(
        self, loop: Loop, theta: Theta, s: Array | None, state: State | None, saved: Position | None
    ) -> Current:
        """Return the first iterate: of the checkpoint, of the run that is continued, or of a first pass."""
        compute = self.task.compute
        with compute.checked_by(self.task.interrupt.check):
            if saved is not None:
                theta, s, state = saved.theta, saved.s, saved.state
                now = resumed(state, theta, s)
            elif state is not None:
                assert s is not None, "a state comes with s"
                now = self._continued(state, theta, s)
            else:
                now = first_pass(self.task, theta, s)
        compute.evaluations = now.evaluations
        if state is not None:
            loop.restore(state.loop, now)
        return now

    def _continued(self, state: State, theta: Theta, s: Array) -> Current:
        """Return the end of an earlier run; its state is copied, so that it can be continued twice.

        If θ and s are averages, the last ones are in the state.
        """
        model, update = self.task.model, declared(self.task.method)
        copied = copy_arrays(state.method, self.scratch)
        now = resumed(state._replace(method=copied), theta, s)
        if now.averages is not None:
            now.theta, now.s = now.averages.theta, now.averages.s
        now.is_m_step = is_m_step_of(model, now.theta, now.s)
        has_anchor = update is not None and update.reference in ("anchor", "previous")
        if now.before is not None and has_anchor and not is_same(now.state.anchor, model.m_step(now.before)):
            now.before = None
        return now

    def _iterate(self, loop: Loop, now: Current) -> None:
        """Iterate until the end or until the callback stops the run; Ctrl-C is raised between stretches."""
        task, records, checkpoints = self.task, self.records, self.checkpoints
        pauses = (now.averages, records, checkpoints)
        distances = [pause.every for pause in pauses if pause is not None and pause.every]
        while now.k < self.stop and not records.stopped:
            with task.compute.checked_by(task.interrupt.check):  # the callback's passes are not interrupted
                loop.advance(now, min([self.stop, *(now.k - now.k % every + every for every in distances)]))
            if now.averages is not None:
                now.averages = now.averages.add(now.k, now.s)
            if records.is_due(now.k):
                records.take(reported(task.model, now))
            if checkpoints is not None and checkpoints.is_due(now.k):
                checkpoints.save(*self._position(loop, now))
        task.interrupt.check()

    def _status(self, now: Current, rejected_before: int) -> Status:
        """Return the status of a run that was not interrupted; raise ValueError if θ has NaN."""
        accepted = now.k - self.first - (now.rejected - rejected_before)
        if accepted and any(map(has_nan, leaves(now.theta))):
            raise ValueError(
                "m_step must return numbers, got NaN: in_domain must be False if there is no M-step."
            )
        if self.records.stopped and now.k < self.stop:
            return "stopped"
        return "rejected" if now.k > self.first and not accepted else "completed"

    def _state(self, loop: Loop, now: Current) -> State:
        """Return the state of the run, without θ and s."""
        averages = None if now.averages is None else now.averages._replace(theta=now.theta, s=now.s)
        run = self.task.method.name, self.task.source.n, now.k, now.evaluations, now.rejected, self.entropy
        return State(*run, now.state, loop.snapshot(), now.is_m_step, now.before, averages)

    def _position(self, loop: Loop, now: Current) -> tuple[Position, Array | None]:
        """Return what a checkpoint saves, and the method's memory."""
        records, memory = self.records, self.task.method.memory_of(now.state)
        state = self._state(loop, now)
        return Position(now.theta, now.s, state, records.last, records.stopped, records.path), memory


def check_position(at: Position, task: Task, theta: Theta, entropy: Entropy) -> None:
    """Raise ValueError or TypeError unless the run can resume from ``at``: compiled code trusts shapes.

    Parameters
    ----------
    at : Position
        As read from the checkpoint.
    task, entropy
        Inputs and seed of the run.
    theta : NamedTuple
        Parameters of the right form: given or drawn as the start of the run.
    """
    state, method, n = at.state, task.method, task.source.n
    if not isinstance(state, State) or (state.name, state.n) != (method.name, n):
        raise ValueError(f"it is not of {method.name} on {n} samples")
    if not np.array_equal(state.entropy, entropy):
        raise ValueError("its seed differs")
    numbers = (state.k, state.evaluations, state.rejected)
    if not all(type(number) is int and number >= 0 for number in numbers) or type(at.recorded) is not int:
        raise ValueError("its counts are invalid")
    check_form("theta", at.theta, theta)
    task.model.unpack(at.s)
    if at.s.dtype != np.float64 or at.s.ndim != 1:
        raise ValueError("s has a different form")
    memory = method.memory_of(state.method)
    if method.remembers and (
        memory is None or len(memory) != n or task.compute.row_length not in (None, memory.shape[1])
    ):
        raise ValueError("the memory has a different size")
    check_form("the method's state", state.method, method.init(theta, at.s, memory))
    check_form("before", state.before, None if state.before is None else at.s)
    if state.averages is not None:
        check_form("averages", state.averages, Averages.empty(*method.averaging(n), at.theta, at.s))


def first_pass(task: Task, theta: Theta, s_given: Array | None) -> Current:
    r"""Return the start of Algorithm 1: :math:`\hat s^{(0)} = \bar s(\theta^{(0)})` unless it is given."""
    method, compute, memory = task.method, task.compute, None
    if method.remembers:
        s, memory = compute.remember(theta)
    else:
        s = compute.full(theta) if s_given is None else s_given
    state = method.init(theta, s, memory)
    is_m_step = s_given is not None and is_m_step_of(task.model, theta, s_given)
    s = s if s_given is None else s_given
    return Current(0, theta, s, state, evaluations=compute.evaluations, is_m_step=is_m_step)


def resumed(state: State, theta: Theta, s: Array) -> Current:
    """Return the iterate at which a run ended or was saved."""
    counts = state.rejected, state.evaluations
    return Current(state.k, theta, s, state.method, *counts, state.is_m_step, state.before, state.averages)


def is_m_step_of(model: BoundModel, theta: Theta, s: Array) -> bool:
    """Return whether θ, given by the user, is the M-step of s, bit by bit."""
    return model.in_domain(s) and is_same(theta, model.m_step(s))


def reported(model: BoundModel, now: Current) -> Current:
    """Return ``now``, or the average of its statistics and their M-step, if there are averages."""
    mean = None if now.averages is None else now.averages.mean()
    if mean is None or not model.in_domain(mean):
        return now
    return replace(now, s=mean, theta=model.m_step(mean))


def is_same(theta: Theta, other: Theta) -> bool:
    """Return whether parameters, arrays or numbers in nested tuples, are equal bit by bit."""
    parts, others = list(leaves(theta)), list(leaves(other))
    return len(parts) == len(others) and all(map(np.array_equal, parts, others))


def copy_arrays(state: Tree, scratch: str | PathLike[str] | None = None) -> Tree:
    """Return a copy of nested tuples of arrays, so that one state can be resumed twice.

    Arrays in a scratch file are copied to another file, in the folder ``scratch``.
    """

    def copy(array: np.ndarray) -> np.ndarray:
        if not is_scratch(array):
            return array.copy()
        copied = scratch_array(array.shape, array.dtype, scratch)  # it did not fit into memory
        copied[...] = array
        return copied

    return map_arrays(copy, state)


def has_nan(part: object) -> bool:
    """Return whether a part of θ is or has NaN."""
    is_number = isinstance(part, float | np.ndarray | np.floating) and np.asarray(part).dtype.kind == "f"
    return is_number and bool(np.isnan(part).any())  # type: ignore[call-overload]


def leaves(tree: Tree) -> Iterator[Any]:
    """Yield the arrays and numbers in nested tuples, lists and dicts.

    >>> list(leaves((1.0, [2, {"a": 3}])))
    [1.0, 2, 3]
    """
    if isinstance(tree, dict):
        tree = list(tree.values())
    if not isinstance(tree, tuple | list):
        yield tree
        return
    for part in tree:
        yield from leaves(part)


def map_arrays(function: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree:
    """Return nested tuples and dicts with ``function`` applied to each array in them.

    >>> map_arrays(np.sum, (np.ones(3), "text", {"a": np.ones(2)}))
    (np.float64(3.0), 'text', {'a': np.float64(2.0)})
    """
    if isinstance(tree, np.ndarray):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_arrays(function, part) for key, part in tree.items()}
    if isinstance(tree, tuple):
        parts = [map_arrays(function, part) for part in tree]
        return tuple(parts) if type(tree) is tuple else type(tree)(*parts)
    return tree
