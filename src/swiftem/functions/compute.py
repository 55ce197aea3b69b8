"""E-steps of users' models, with compiled iterations if the functions are compiled by Numba.

All such models share one compiled loop, which calls their functions. At one sample per iteration it takes
about twice as long as a loop written for the model.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.compute import Compute
from swiftem.core.method import Update, declared
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.functions.model import BoundFunctions, ExponentialFamilyModel, FunctionModel, is_finite
from swiftem.kernels.loop import CompiledLoop, Drawn, Samples
from swiftem.kernels.threads import read_only

if TYPE_CHECKING:
    from swiftem.functions.kernel import Compiled, Functions


class FunctionsCompute(Compute):
    """E-steps by the user's functions."""

    def loop(self, task: Task) -> Loop:
        """Return compiled stretches if Numba has compiled the functions, else single iterations."""
        update, source = declared(task.method), task.source
        if self.placement.form == "reference" or update is None or type(source) is not ArraySource:
            return Algorithm1(task)
        assert isinstance(task.model, BoundFunctions)
        functions = _jitted_functions(task.model.model)
        if functions is None:
            return Algorithm1(task)
        from swiftem.functions.kernel import compiled

        made = compiled(functions, source.y.dtype, source.y.ndim, self.memory_dtype)
        return Algorithm1(task) if made is None else FunctionsLoop(task, update, made)


def _jitted_functions(model: ExponentialFamilyModel | FunctionModel) -> Functions | None:
    """Return (expected_statistics, m_step, in_domain) if all are Numba's, or the default domain."""
    if "numba" not in sys.modules:  # then no function is compiled, and the import takes time
        return None
    from numba.extending import is_jitted

    expected_statistics, m_step, in_domain = model.expected_statistics, model.m_step, model.in_domain
    if not (is_jitted(expected_statistics) and is_jitted(m_step)):
        return None
    if in_domain is is_finite or getattr(in_domain, "__func__", None) is ExponentialFamilyModel.in_domain:
        from swiftem.functions import kernel

        in_domain = kernel.is_finite
    return (expected_statistics, m_step, in_domain) if is_jitted(in_domain) else None


class FunctionsLoop(CompiledLoop):
    """Stretches in compiled code that calls the user's compiled functions."""

    def __init__(self, task: Task, update: Update, compiled: Compiled) -> None:
        source, b = task.source, task.method.batch_size
        assert isinstance(source, ArraySource)
        y = np.require(source.y, requirements="A")
        weight = np.empty(0) if source.weight is None else np.ascontiguousarray(source.weight)
        super().__init__(task, update, Samples(read_only(y.reshape(len(y), -1)), read_only(weight)))
        self._compiled, self._length = compiled, max(1, self.FIRST // b)
        self._batch = np.empty((b, *y.shape[1:]), dtype=y.dtype)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1, in stretches once θ has the type of M-step results."""
        while now.k < stop and not self._fits(now):
            Algorithm1(self.task).advance(now, now.k + 1)
        if now.k < stop:
            super().advance(now, stop)

    def load_theta(self, now: Current) -> None:
        """Load θ."""
        self._theta = self.prepared(now.theta)

    def prepared(self, theta: Theta) -> Theta:
        """Return θ in the form of compiled code."""
        from swiftem.functions.kernel import converted

        return converted(theta, self._compiled.theta)

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        plain, names = self._compiled.functions[1](s), self._compiled.names
        return plain if names is None else names(*plain)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the compiled loop."""
        from swiftem.functions.kernel import Samples, Steps

        memory = drawn.memory
        if memory is None:
            memory = np.empty((0, 0), dtype=self.task.compute.memory_dtype)
        mean_weight = drawn.weight[:0] if self.rule.is_divided else drawn.weight
        rows = self._batch.reshape(len(self._batch), -1)
        self.s, self._theta, self.anchor, self.before, rejected, moved = self._compiled.run(
            *self._compiled.functions,
            Samples(drawn.y, self._batch, rows, drawn.weight, mean_weight),
            self.rule,
            Steps(steps, drawn.index[0], drawn.index[-1]),
            self.s,
            self._theta,
            self._theta if self.anchor is None else self.anchor,
            self.centre,
            memory,
        )
        return rejected, moved

    def _fits(self, now: Current) -> bool:
        """Return whether the compiled loop, which trusts types and shapes, can continue from here."""
        state, q = now.state, len(now.s)
        try:
            self.prepared(now.theta)
            if self.rule.at_anchor:
                self.prepared(state.anchor)
        except TypeError:
            return False
        if self.rule.renews:
            memory: Array = state.memory
            is_own = memory.dtype == self.task.compute.memory_dtype and memory.flags.carray
            if not is_own or memory.shape != (self.task.source.n, q):
                return False
        return self.update.centre == "zero" or state.centre.shape == (q,)
