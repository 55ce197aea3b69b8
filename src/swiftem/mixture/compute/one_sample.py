"""Iterations of mixtures with unit variances, one sample each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem.core.algorithm import Current, Task
from swiftem.core.method import Update
from swiftem.core.types import Array, Index
from swiftem.data.parts import NONE, read_only
from swiftem.data.samples import Drawn, samples_of
from swiftem.kernels.loop import CompiledLoop
from swiftem.mixture.compute import one_sample_kernel as loops
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["Far", "OneSampleLoop"]


class Far(NamedTuple):
    """Whether a sample was far from all means: the loop then rounds differently."""

    is_far: bool


class OneSampleLoop(CompiledLoop):
    """One sample after the other.

    The fast loop computes plain densities, and returns if all of them vanish; from there on it uses
    the same loop compiled with densities relative to the largest.
    """

    far: int | None = None

    def __init__(self, task: Task, update: Update) -> None:
        super().__init__(task, update, samples_of(task.source, np.float64, task.method.index_streams))
        assert isinstance(task.model, BoundGaussians)
        self.bound = task.model
        known = self.bound.model.known_weights is not None
        penalty = float(self.bound.prior.mean_precision), float(self.bound.epsilon)
        self._rule = loops.Rule(update.correction, *penalty, known)

    def load_theta(self, now: Current) -> None:
        """Copy θ.

        If it is θ̄(s), its weights are loaded as the kernels write them, not normalised: then the beginning
        of a stretch makes no difference, bit by bit.
        """
        self.theta = self.prepared(now.theta)
        if now.is_m_step:
            self._restate(self.theta, now.s)

    def prepared(self, theta: Any) -> loops.Theta:
        """Return a copy."""
        return loops.Theta(theta.weights.copy(), theta.means.copy())

    def theta_of(self, s: Array) -> Any:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def _parts(self, flat: Array) -> loops.Stats:
        """Return views of flat statistics."""
        return loops.Stats(*self.bound.unpack(flat))

    def _restate(self, theta: loops.Theta, s: Array) -> None:
        """Write the weights of θ̄(s) as the kernels do."""
        if not self._rule.known:
            theta.weights[:] = self._parts(s).weights + self._rule.epsilon

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel; if a sample is too far from all means, switch to the careful one and continue."""
        if self.restates_anchor:
            self._restate(self.anchor, self.before)
            self.restates_anchor = False
        rejected, begin = 0, 0
        while True:
            done, more, moved = self._loop(read_only(steps[begin:]), drawn, begin)
            if begin + done == len(steps):
                return rejected + more, begin - rejected + moved
            if self.far is not None:
                raise FloatingPointError("the statistics are no longer finite: use a smaller step_size.")
            self.far, begin, rejected = 0, done, more

    def _loop(self, steps: Array, drawn: Drawn, begin: int) -> tuple[int, int, int]:
        """Do iterations from number ``begin`` of the stretch on, by the loop for this update."""
        update, centre = self.update, self._parts(self.centre)
        rest = self._rule, self._parts(self.s), self.theta, self.far
        index = drawn.index[0][begin:, 0]
        found: tuple[int, int, int]
        if update.renewed_by == "drawn":
            draw = self._draw(drawn, drawn.weight, index, self.share)
            found = loops.incremental(draw, steps, drawn.memory, centre, *rest)
            return found
        draw = self._draw(drawn, NONE if self.is_divided else drawn.weight, index, self.scale)
        if update.reference == "memory":
            other = None
            if update.renewed_by == "other":
                other = self._draw(drawn, drawn.weight, drawn.index[-1][begin:, 0], self.share)
            found = loops.remembered(draw, other, steps, drawn.memory, centre, *rest)
        elif update.reference == "none":
            found = loops.online(draw, steps, centre, *rest)
        else:
            before = self._parts(self.before) if update.reference == "previous" else None
            found = loops.anchored(draw, steps, self.anchor, before, centre, *rest)
        return found

    @staticmethod
    def _draw(drawn: Drawn, weight: Array, index: Index, factor: float) -> loops.Draw:
        return loops.Draw(drawn.y, weight, read_only(np.ascontiguousarray(index)), float(factor))

    def snapshot(self) -> Far | None:
        """Return whether the careful loop is in use."""
        return None if self.far is None else Far(True)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Continue with the same loop."""
        if isinstance(snapshot, Far):
            self.far = 0
