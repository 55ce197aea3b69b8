"""The fused lane of a user's own model, where its functions are compiled by Numba."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.engine.lane import Current, FusedLane, Lane, Task, step_sizes
from swiftem.methods import FastIncrementalEM, IncrementalEM, OnlineEM, VarianceReducedEM
from swiftem.models.exponential_family import BoundExponentialFamily, ExponentialFamilyModel, is_finite

if TYPE_CHECKING:
    from swiftem.engine.numba.compose import Loop

__all__ = ["FunctionsLane", "functions_lane"]

METHODS = (OnlineEM, IncrementalEM, VarianceReducedEM, FastIncrementalEM)


def functions_lane(task: Task) -> Lane | None:
    """Return the lane, or None where model, method or data do not allow it."""
    if type(task.model) is not BoundExponentialFamily or type(task.source) is not ArraySource:
        return None
    if type(task.method) not in METHODS:
        return None
    functions = _compiled_functions(task.model.model)
    if functions is None:
        return None
    from swiftem.engine.numba.compile import say_when_compiling
    from swiftem.engine.numba.compose import compose

    say_when_compiling()
    y, remembered = task.source.y, task.e_step.memory_dtype
    loop = compose(task.method.name, functions, y.dtype, y.ndim, remembered)
    return None if loop is None else FunctionsLane(task, loop)


def _compiled_functions(model: Any) -> tuple[Any, Any, Any] | None:
    """Return (expected_statistics, m_step, in_domain) if all are Numba's, the default domain included."""
    if "numba" not in sys.modules:  # then nothing is compiled, and the import would take a while
        return None
    from numba.core.dispatcher import Dispatcher

    functions = [getattr(model, name) for name in ("expected_statistics", "m_step", "in_domain")]
    default = functions[2] is is_finite or (
        isinstance(model, ExponentialFamilyModel)
        and getattr(functions[2], "__func__", None) is ExponentialFamilyModel.in_domain
    )
    if default and all(isinstance(function, Dispatcher) for function in functions[:2]):
        from swiftem.engine.numba.functions import is_finite as compiled_is_finite

        functions[2] = compiled_is_finite
    if not all(isinstance(function, Dispatcher) for function in functions):
        return None
    expected_statistics, m_step, in_domain = functions
    return expected_statistics, m_step, in_domain


class FunctionsLane(FusedLane):
    """Stretches of sem, iem, sem-vr or fiem in compiled code that calls the user's compiled functions."""

    def __init__(self, task: Task, loop: Loop) -> None:
        super().__init__(task)
        assert isinstance(task.source, ArraySource)
        self._loop, b = loop, task.method.batch_size
        self._length = max(1, self.FIRST // b)
        y = np.require(task.source.y, requirements="A")
        batch = np.empty((b, *y.shape[1:]), dtype=y.dtype)
        weight = np.empty(0) if task.source.weight is None else np.ascontiguousarray(task.source.weight)
        self._data = (y.reshape(len(y), -1), batch, batch.reshape(b, -1), weight)
        n, total = task.source.n, task.source.total_weight
        self._mean, self._share = n / (total * b), 1 / total
        self._known: list[tuple[Theta, Any]] = []

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1, in stretches once θ has the type that the M-step gives."""
        while now.k < stop and not self._fits(now):
            self.task.plain(self.task).advance(now, now.k + 1)
        if now.k < stop:
            super().advance(now, stop)

    def load(self, now: Current) -> None:
        """Take over from ``now``."""
        self._s, self._theta = now.s, now.theta
        self._state = now.state
        if hasattr(now.state, "memory"):
            # Before the first iteration, centre and s are one array.
            self._state = now.state._replace(centre=now.state.centre.copy())

    def stretch(self, now: Current, stop: int) -> int:
        """Do iterations to ``stop`` − 1, or until sem-vr renews its anchor."""
        method, e_step, first = self.task.method, self.task.e_step, now.k
        evaluations = method.batch_size * (stop - first)
        own: tuple[Any, ...]
        if isinstance(method, OnlineEM):
            own = (self._mean,)
        elif isinstance(method, IncrementalEM):
            own = (self._share, self._state.centre, self._state.memory)
        elif isinstance(method, VarianceReducedEM):
            length = method.epoch_length or method.epoch(e_step.n)
            if first % length == 0:
                centre = e_step.full(self._theta)
                self._state = self._state._replace(anchor=self._theta, centre=centre)
            stop = min(stop, (first // length + 1) * length)
            evaluations = 2 * method.batch_size * (stop - first)
            anchor = self._plain(self._state.anchor)
            own = (self._mean, anchor, self._state.centre)
        else:
            evaluations *= 2
            own = (self._mean, self._share, self._state.centre, self._state.memory)
        gamma = step_sizes(self.task.gamma, first, stop)
        drawn = (np.ascontiguousarray(part, np.intp) for part in self.task.draws.block(first, stop))
        s, theta, rejected = self._loop.run(
            *self._data, gamma, self._s, self._plain(self._theta), *drawn, *own
        )
        self._s, self._theta = s, theta if self._loop.names is None else self._loop.names(*theta)
        self._known = [(self._theta, theta)]
        if isinstance(method, VarianceReducedEM):
            self._known.append((self._state.anchor, anchor))
        now.rejected += rejected
        e_step.evaluations += evaluations
        return stop

    def store(self, now: Current) -> None:
        """Put s, θ and the method's state into ``now``: the loops return new arrays at each stretch."""
        now.s, now.theta, now.state = self._s, self._theta, self._state

    def _plain(self, theta: Theta) -> Any:
        for known, plain in self._known:  # fitting takes as long as an iteration in Python
            if theta is known:
                return plain
        return fit(theta, self._loop.theta)

    def _fits(self, now: Current) -> bool:
        """Tell whether the compiled loop, which trusts types and shapes, can go on from here."""
        state, q = now.state, len(now.s)
        try:
            self._plain(now.theta)
            if isinstance(self.task.method, VarianceReducedEM):
                self._plain(state.anchor)
        except TypeError:
            return False
        if hasattr(state, "memory"):
            kind, shape = self.task.e_step.memory_dtype, (self.task.source.n, q)
            memory: Array = state.memory
            if memory.dtype != kind or memory.shape != shape or not memory.flags.carray:
                return False
        return not hasattr(state, "centre") or state.centre.shape == (q,)


def fit(theta: Theta, kind: Any) -> Any:
    """Return ``theta`` as a value of a Numba type, the same numbers in the layout that compiled code expects.

    >>> from numba import types
    >>> vector = types.Array(types.float64, 1, "C")
    >>> fit([1, np.zeros(2, dtype=np.float32)], types.Tuple([types.float64, vector]))
    (1.0, array([0., 0.]))
    """
    from numba.np.numpy_support import as_dtype

    from swiftem.engine.numba.pointer import types

    if isinstance(kind, types.BaseTuple):
        if not isinstance(theta, tuple | list) or len(theta) != len(kind.types):
            raise TypeError(f"parameters must be a tuple of {len(kind.types)}.")
        return tuple(fit(part, of) for part, of in zip(theta, kind.types, strict=True))
    value = np.asarray(theta)
    dtype = as_dtype(kind.dtype if isinstance(kind, types.Array) else kind)
    if not np.can_cast(value.dtype, dtype, "safe") or value.ndim != getattr(kind, "ndim", 0):
        raise TypeError(f"parameters must be of type {kind}.")
    if isinstance(kind, types.Array):
        return np.require(value, dtype, ["W", "A", "F" if kind.layout == "F" else "C"])
    return value.astype(dtype).item()
