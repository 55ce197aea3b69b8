"""The fused lane of a user-defined model whose functions are compiled by Numba.

All such models share one loop, which calls their functions by address. At one sample per iteration that takes
1.6 to 2.4 times as long as a loop written for the model (measured): the library's models have their own
loops, with inlined helpers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.rows.array_source import ArraySource
from swiftem.engine.compiled_lane import CompiledLane, Drawn, Whole
from swiftem.engine.lane import Current, Lane, Task
from swiftem.methods.method import Update, declared
from swiftem.models.exponential_family import BoundExponentialFamily, ExponentialFamilyModel, is_finite

if TYPE_CHECKING:
    from swiftem.engine.numba.compose import Loop

__all__ = ["FunctionsLane", "functions_lane"]


def functions_lane(task: Task) -> Lane | None:
    """Return the lane, or None if model, method or data do not allow it."""
    if type(task.model) is not BoundExponentialFamily or type(task.source) is not ArraySource:
        return None
    update, functions = declared(task.method), _compiled_functions(task.model.model)
    if update is None or functions is None:
        return None
    from swiftem.engine.numba.compose import compose

    y, remembered = task.source.y, task.e_step.memory_dtype
    loop = compose(functions, y.dtype, y.ndim, remembered)
    return None if loop is None else FunctionsLane(task, update, loop)


def _compiled_functions(model: Any) -> tuple[Any, Any, Any] | None:
    """Return (expected_statistics, m_step, in_domain) if all are Numba's, including the default domain."""
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


class FunctionsLane(CompiledLane):
    """Stretches in compiled code that calls the user's compiled functions; θ stays in their form."""

    def __init__(self, task: Task, update: Update, loop: Loop) -> None:
        assert isinstance(task.source, ArraySource)
        y, weight, b = np.require(task.source.y, requirements="A"), task.source.weight, task.method.batch_size
        weight = np.empty(0) if weight is None else np.ascontiguousarray(weight)
        super().__init__(task, update, Whole(y.reshape(len(y), -1), weight))
        self._loop, self._length = loop, max(1, self.FIRST // b)
        batch = np.empty((b, *y.shape[1:]), dtype=y.dtype)
        self._batch = batch, batch.reshape(b, -1)
        total = float(task.source.n) if self.is_divided else task.source.total_weight
        self._mean, self._share = task.source.n / (total * b), 1 / task.source.total_weight
        self._known: list[tuple[Theta, Any]] = []

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1, in stretches once θ has the type of M-step results."""
        while now.k < stop and not self._fits(now):
            self.task.plain(self.task).advance(now, now.k + 1)
        if now.k < stop:
            super().advance(now, stop)

    def load_theta(self, now: Current) -> None:
        """Load θ."""
        self._theta = self.prepared(now.theta)

    def prepared(self, theta: Theta) -> Any:
        """Return θ in the form of compiled code."""
        for known, plain in self._known:
            if theta is known:
                return self._remember(theta, plain)
        return self._remember(theta, fit(theta, self._loop.theta))

    def _remember(self, theta: Theta, plain: Any) -> Any:
        """Cache the compiled forms of the last few θ: conversion takes as long as an iteration in Python."""
        self._known = [(theta, plain), *(pair for pair in self._known if pair[0] is not theta)][:4]
        return plain

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        plain = self._loop.m_step(s)
        theta = plain if self._loop.names is None else self._loop.names(*plain)
        self._remember(theta, plain)
        return theta

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the loop."""
        update, memory = self.update, drawn.memory
        if memory is None:
            memory = np.empty((0, 0), dtype=self.task.e_step.memory_dtype)
        self.s, self._theta, self.anchor, self.before, rejected, moved = self._loop.run(
            drawn.y, *self._batch, drawn.weight, self.is_divided, self._mean, self._share,
            update.reference in ("anchor", "previous"), update.reference == "memory", update.fixed,
            self.moments, update.renewed_by != "drawn", update.renewed_by != "none", update.centre == "proxy",
            steps, drawn.index[0], drawn.index[-1], self.s, self._theta,
            self._theta if self.anchor is None else self.anchor, self.centre, memory,
        )  # fmt: skip
        return rejected, moved

    def snapshot(self) -> None:
        """Return None: the whole state is in ``now``."""

    def restore(self, snapshot: Any, now: Current) -> None:
        """Do nothing: the whole state is in ``now``."""

    def _fits(self, now: Current) -> bool:
        """Tell whether the compiled loop, which trusts types and shapes, can continue from here."""
        update, state, q = self.update, now.state, len(now.s)
        try:
            self.prepared(now.theta)
            if update.reference in ("anchor", "previous"):
                self.prepared(state.anchor)
        except TypeError:
            return False
        if update.renewed_by != "none":
            kind, shape = self.task.e_step.memory_dtype, (self.task.source.n, q)
            memory: Array = state.memory
            if memory.dtype != kind or memory.shape != shape or not memory.flags.carray:
                return False
        return update.centre == "zero" or state.centre.shape == (q,)


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
